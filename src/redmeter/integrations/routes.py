"""The route of a request: the template by which Starlette or FastAPI found what answers it.

    /users/7                    /users/{user_id}
    /shop/items/3               /shop/items/{id}            a sub-application, an included router
    /tenants/a/items/3          /tenants/{tenant}/items/{id}
    /static/app.css             /static/{path}              a sub-application without routes

Problem: none of what the frameworks leave in the scope is the template. `scope["route"]` is absent
in older versions of Starlette, and for some routes in all versions of FastAPI; where it is there,
it is the innermost route, without the mounts before it, and, since included routers are no longer
copied, without their prefix. `root_path` has the mounts as they were asked for, not as templates.

Idea: `scope["endpoint"]` is there in all versions, for every route and mount that matched. The
application's routes are walked once, mounts and included routers too, and each endpoint is
remembered with its template. Where an endpoint has several, the path says which. A request that was
answered before routing, by another middleware, is matched by the path alone.

Nothing of a framework is imported: what has `routes` is a router, what has an `endpoint` a route.

Bound: a look into a dictionary for a request; a walk for an endpoint that is not known yet. KNOWN
endpoints are remembered.

Not done: a redirect to the same path with, or without, a slash at its end is `(unmatched)`.

Source: Starlette, routing.py; FastAPI, routing.py (`_IncludedRouter`, since 0.13x).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

#: Endpoints that are remembered.
KNOWN = 4096
#: Applications within applications that are looked into, and routers within routers.
_DEPTH = 10


class Route(NamedTuple):
    """One way to an endpoint."""

    template: str | None
    endpoint: object
    #: What the path has to match, mount by mount, then the route itself.
    regexes: tuple[re.Pattern[str], ...]
    methods: frozenset[str] | None
    #: Whether anything may follow.
    mount: bool

    def matches(self, path: str) -> bool:
        """Return whether a path leads here, whatever the method."""
        for regex in self.regexes:
            found = regex.match(path)
            if found is None:
                return False
            path = "/" + found.groupdict().get("path", "")
        return True


class Finder:
    """Finds routes.

    Args:
        app: the application, or a middleware around it.
    """

    def __init__(self, app: object) -> None:
        self._app = app
        # By identity, since endpoints need not be hashable; each is held, so it stays its own.
        self._known: dict[int, tuple[object, list[Route]]] = {}
        self._all: list[Route] | None = None

    def route(self, scope: Mapping[str, Any], app: object) -> str | None:
        """Return the template of a request that was answered; None where no route matched.

        Args:
            scope: as the application left it.
            app: what `scope["app"]` was before: the application around this middleware, if any.
        """
        endpoint = scope.get("endpoint")
        if endpoint is None:
            return self._by_path(scope, app)
        found = self._known.get(id(endpoint))
        routes = self._look_up(scope, endpoint) if found is None else found[1]
        if len(routes) == 1:
            return routes[0].template
        path = _path(scope)
        return next((each for each in routes if each.matches(path)), routes[0]).template

    def _look_up(self, scope: Mapping[str, Any], endpoint: object) -> list[Route]:
        """Return all ways to an endpoint, one for each template."""
        by_template: dict[str | None, Route] = {}
        for each in _walk(scope.get("router") or self._app):
            if each.endpoint is endpoint:
                by_template.setdefault(each.template, each)
        routes = list(by_template.values())
        if not routes:  # of a router that is hidden from us
            template = getattr(scope.get("route"), "path_format", None)
            routes = [Route(template, endpoint, (), None, mount=False)]
        if len(self._known) < KNOWN:
            self._known[id(endpoint)] = endpoint, routes
        return routes

    def _by_path(self, scope: Mapping[str, Any], app: object) -> str | None:
        """Return the template of what no router has set an endpoint for."""
        frontend = scope.get("fastapi", {}).get("frontend_path")
        if isinstance(frontend, str):  # FastAPI's own kind of static files, by their prefix
            path = str(scope["path"])
            return f"{path[: len(path) - len(frontend)].rstrip('/')}/{{path}}"
        if "router" in scope:
            return None  # it looked, and found none
        if self._all is None:
            self._all = list(_walk(app if hasattr(app, "routes") else self._app))
        path, method = _path(scope), scope.get("method")
        fit = [each for each in self._all if each.matches(path)]
        exact = [each for each in fit if each.methods is None or method in each.methods]
        return next((each.template for each in exact or fit), None)


def _path(scope: Mapping[str, Any]) -> str:
    """Return the path within the application, see starlette.routing.get_route_path()."""
    path, root = str(scope["path"]), scope.get("app_root_path", scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


def _walk(
    app: object, prefix: str = "", regexes: tuple[re.Pattern[str], ...] = (), depth: int = 0
) -> Iterator[Route]:
    """Yield all routes of an application, in the order in which they are tried."""
    if depth > _DEPTH:
        return
    for route in _routes_of(app) or ():
        for each in _included(route):
            yield from _walk_route(each, prefix, regexes, depth)


def _walk_route(
    route: Any, prefix: str, regexes: tuple[re.Pattern[str], ...], depth: int
) -> Iterator[Route]:
    regex = getattr(route, "path_regex", None)
    inner = getattr(route, "app", None)
    if hasattr(route, "endpoint") and regex is not None:
        template = prefix + getattr(route, "path_format", route.path)
        methods = getattr(route, "methods", None)
        known = frozenset(methods) if methods else None
        yield Route(template, route.endpoint, (*regexes, regex), known, mount=False)
    elif inner is not None and regex is not None:  # Mount
        below, chain = prefix + route.path_format.removesuffix("/{path}"), (*regexes, regex)
        yield from _walk(inner, below, chain, depth + 1)
        # Where it has routes, and its own endpoint is what was found, none of them matched.
        template = f"{below}/{{path}}" if _routes_of(inner) is None else None
        yield Route(template, inner, chain, None, mount=True)
    elif inner is not None:  # Host
        yield from _walk(inner, prefix, regexes, depth + 1)
        if _routes_of(inner) is None:
            yield Route(f"{prefix}/{{path}}", inner, (), None, mount=True)


def _included(route: Any) -> Iterator[Any]:
    """Yield a route, or those of a router that FastAPI included, with their prefix."""
    contexts = getattr(route, "effective_route_contexts", None)
    if contexts is None:
        yield route
        return
    for each in contexts():
        yield getattr(each, "starlette_route", None) or each


def _routes_of(app: Any) -> Sequence[Any] | None:
    """Return the routes of an application, also where middleware is around it."""
    for _ in range(_DEPTH):
        routes = getattr(app, "routes", None)
        if isinstance(routes, list | tuple):
            return routes
        app = getattr(app, "app", None)
        if app is None:
            return None
    return None
