"""The route of a request: the template by which a framework found its handler.

    /users/7                                Starlette   /users/{user_id}
    /shop/items/3                                       /shop/items/{id}        a sub-application
    /tenants/a/items/3                                  /tenants/{tenant}/items/{id}
    /static/app.css                                     /static/{path}          no routes within
    @get("/users/{user_id:int}")            Litestar    /users/{user_id}
    @asgi("/files", is_mount=True)          Litestar    /files/{path}
    @app.get("/users/<int:user_id>")        Quart       /users/{user_id}
    app.add_route("/users/{user_id:int}")   Falcon      /users/{user_id}

Problem: Starlette and FastAPI do not put the template into the scope. `scope["route"]` is absent in
older versions of Starlette, and for some routes in all versions of FastAPI. If present, it is the
innermost route, without the mounts before it and, since included routers are no longer copied,
without their prefix. `root_path` has the mounts as requested, not as templates.

Idea: `scope["endpoint"]` is present in all versions, for every route and mount that matched. The
application's routes are walked once, including mounts and included routers, and each endpoint is
cached with its template. If an endpoint has several, the path decides.

A request that another middleware answered, before the routing or between a mount and the routing
within it, is matched by its path as the router would do: the first route or mount that accepts the
method, else a route of another method. A preflight is matched by the method that it requests.

Other frameworks know the template, each in its own way:

    Litestar    leaves it in the scope; litestar_route() reads it; a hook for exceptions keeps those
                that it converts to a response
    Quart       knows the rule while it handles the request; a signal handler reads it
    Falcon      keeps it on its request; a Falcon middleware reads it

publish_routes() registers a listener with the application that a RedmeterMiddleware wraps, by the
framework's public API: a signal, add_middleware(). The listener writes the template to
`redmeter.route` in the scope or environ, as any application may. A 405 has the template of the
route that matched the path.

A framework is imported only if the application is one of its own: an object with `routes` is a
router, one with an `endpoint` is a route.

Bound: for Starlette one dictionary look-up per request, and one walk per new endpoint; KNOWN
endpoints are cached. By path: one prefix comparison per route, and one regular expression for those
with the same prefix, up to the first match; one walk after routes were added. For the others a
signal or a call for each request, and one substitution.

Not done: a redirect that adds or removes a slash at the end of the path is `(unmatched)`. An
exception that Falcon converts to a response counts as 5xx, but is not logged: Falcon has no hook
for it. Its sinks and static routes have no template.

Source: Starlette, routing.py; FastAPI, routing.py (`_IncludedRouter`, since 0.13x); Quart,
"Signals"; Falcon, "Middleware"; Litestar, types of the ASGI scope.
"""

import contextlib
import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from redmeter.integrations.shared.web import CONVERTED, FAILED, ROUTE

#: Endpoints whose templates are cached.
KNOWN = 4096
#: How deep nested applications and routers are searched.
_DEPTH = 10
#: The header of a preflight with the method that it requests.
_WANTED = b"access-control-request-method"
#: The status of a request whose method no handler of its path has.
NOT_ALLOWED = 405
#: A parameter of a rule, with its converter: `<int:id>` of werkzeug, `{id:int}` of Falcon.
_OF_RULE, _OF_TEMPLATE = re.compile(r"<(?:[^<>]*:)?([^<>:]+)>"), re.compile(r"\{([^{}:]+):[^{}]*\}")
#: A parameter in a template of Litestar, escaped for a regular expression.
_PARAMETER = re.compile(r"\\\{[^{}]*\\\}")


class _Route(NamedTuple):
    """One way to an endpoint."""

    template: str | None
    endpoint: object
    #: The path's prefix before any parameter.
    start: str
    #: The path must match these: one per mount, then the route's own.
    regexes: tuple[re.Pattern[str], ...]
    methods: frozenset[str] | None
    #: Whether the path may continue after the template.
    mount: bool

    def matches(self, path: str) -> bool:
        """Return whether a path matches, regardless of the method."""
        if not path.startswith(self.start):
            return False
        for regex in self.regexes:
            match = regex.match(path)
            if match is None:
                return False
            path = "/" + match.groupdict().get("path", "")
        return True


class RouteFinder:
    """Finds routes.

    Args:
        app: the application, or a middleware around it.
    """

    def __init__(self, app: object) -> None:
        self._app = app
        # By identity, since endpoints need not be hashable. Held, so that no id is reused.
        self._known: dict[int, tuple[object, list[_Route]]] = {}
        # All routes that were walked; their lists, with the lengths at that time.
        self._all: list[_Route] = []
        self._lists: list[tuple[Sequence[Any], int]] = []

    def route(self, scope: Mapping[str, Any], app: object) -> str | None:
        """Return the template of an answered request; None if no route matched.

        Args:
            scope: in the application's final state.
            app: `scope["app"]` before the request: the application around this middleware, if any.
        """
        endpoint = scope.get("endpoint")
        if endpoint is None:
            return self._by_path(scope, app)
        known = self._known.get(id(endpoint))
        routes = self._look_up(scope, endpoint) if known is None else known[1]
        route = routes[0]
        if len(routes) > 1:
            path = path_within(scope)
            route = next((each for each in routes if each.matches(path)), route)
        if route.template is None and route.mount:
            # No route within the mount matched, or a middleware there answered.
            return _matched(self._walked(scope.get("router") or self._app), scope)
        return route.template

    def _look_up(self, scope: Mapping[str, Any], endpoint: object) -> list[_Route]:
        """Return all ways to an endpoint, one for each template."""
        by_template: dict[str | None, _Route] = {}
        for each in _walk(scope.get("router") or self._app, []):
            if each.endpoint is endpoint:
                by_template.setdefault(each.template, each)
        routes = list(by_template.values())
        if not routes:  # its router is not reachable from the application
            template = getattr(scope.get("route"), "path_format", None)
            routes = [_Route(template, endpoint, "", (), None, mount=False)]
        if len(self._known) < KNOWN:
            self._known[id(endpoint)] = endpoint, routes
        return routes

    def _by_path(self, scope: Mapping[str, Any], app: object) -> str | None:
        """Return the template of a request for which no router has set an endpoint."""
        frontend = scope.get("fastapi", {}).get("frontend_path")
        if isinstance(frontend, str):  # FastAPI's static files, by their prefix
            path = str(scope["path"])
            return f"{path[: len(path) - len(frontend)].rstrip('/')}/{{path}}"
        if "router" in scope:
            return None  # the router found no route
        return _matched(self._walked(app if hasattr(app, "routes") else self._app), scope)

    def _walked(self, app: object) -> list[_Route]:
        """Return all routes of an application; walk them again if any were added."""
        lists = self._lists
        if (
            not lists
            or lists[0][0] is not _routes_of(app)
            or any(len(routes) != length for routes, length in lists)
        ):
            seen: list[tuple[Sequence[Any], int]] = []
            self._all, self._lists = list(_walk(app, seen)), seen
        return self._all


def _matched(routes: Sequence[_Route], scope: Mapping[str, Any]) -> str | None:
    """Return the template that a router would find by path and method."""
    path, method = path_within(scope), _method(scope)
    other: str | None = None
    for each in routes:
        # A Host has no regular expression for the path.
        if each.regexes and each.matches(path):
            if method is None or each.methods is None or method in each.methods:
                return other if each.template is None else each.template
            other = other or each.template
    return other


def _method(scope: Mapping[str, Any]) -> str | None:
    """Return the method that a route must accept; None: any."""
    method = str(scope.get("method", "WEBSOCKET"))
    if method != "OPTIONS":
        return method
    methods = (value for name, value in scope["headers"] if name == _WANTED)
    return next((value.decode("latin-1") for value in methods), None)


def path_within(scope: Mapping[str, Any]) -> str:
    """Return the path within the application, without the prefix of a server or proxy.

    Some servers omit `root_path` from `path`; the specification requires it.
    """
    path, root = str(scope["path"]), scope.get("app_root_path", scope.get("root_path", ""))
    if not root or not path.startswith(root):
        return path
    return path[len(root) :] if path.startswith("/", len(root)) else path if path != root else "/"


class _Above(NamedTuple):
    """The mounts above a route."""

    template: str = ""
    #: See _Route.start.
    start: str = ""
    #: Whether the template has no parameter so far.
    plain: bool = True
    regexes: tuple[re.Pattern[str], ...] = ()
    depth: int = 0

    def down(self, template: str, regex: re.Pattern[str]) -> "_Above":
        """Return a copy with one more template."""
        begins, brace, _ = template.partition("{")
        # Whether the regular expression is the framework's own, not e.g. one that ignores case.
        cased = not regex.flags & re.IGNORECASE
        usual = cased and regex.pattern.startswith("^" + re.escape(begins))
        start = self.start + begins if self.plain and usual else self.start
        plain = self.plain and usual and not brace
        return _Above(
            self.template + template, start, plain, (*self.regexes, regex), self.depth + 1
        )


_NOTHING = _Above()


def _walk(
    app: object, lists: list[tuple[Sequence[Any], int]], above: _Above = _NOTHING
) -> Iterator[_Route]:
    """Yield all routes of an application, in the order in which the router tries them.

    Args:
        lists: receives the walked lists of routes, with their lengths.
    """
    routes = _routes_of(app)
    if routes is None or above.depth > _DEPTH:
        return
    lists.append((routes, len(routes)))
    for route in routes:
        for each in _included(route, lists):
            yield from _walk_route(each, lists, above)


def _walk_route(
    route: Any, lists: list[tuple[Sequence[Any], int]], above: _Above
) -> Iterator[_Route]:
    regex = getattr(route, "path_regex", None)
    inner = getattr(route, "app", None)
    if hasattr(route, "endpoint") and regex is not None:
        here = above.down(getattr(route, "path_format", route.path), regex)
        methods = getattr(route, "methods", None)
        known = frozenset(methods) if methods else None
        yield _Route(here.template, route.endpoint, here.start, here.regexes, known, mount=False)
    elif inner is not None and regex is not None:  # Mount
        here = above.down(route.path_format.removesuffix("/{path}"), regex)
        yield from _walk(inner, lists, here)
        # With routes of its own, None: if the mount is the endpoint, none of them matched.
        template = f"{here.template}/{{path}}" if _routes_of(inner) is None else None
        yield _Route(template, inner, here.start, here.regexes, None, mount=True)
    elif inner is not None:  # Host
        yield from _walk(inner, lists, above._replace(depth=above.depth + 1))
        if _routes_of(inner) is None:
            template = f"{above.template}/{{path}}"
            yield _Route(template, inner, above.start, above.regexes, None, mount=True)


def _included(route: Any, lists: list[tuple[Sequence[Any], int]]) -> Iterator[Any]:
    """Yield a route, or the routes of a router that FastAPI included, with its prefix."""
    contexts = getattr(route, "effective_route_contexts", None)
    if contexts is None:
        yield route
        return
    _list_included(route, lists)
    for each in contexts():
        yield getattr(each, "starlette_route", None) or each


def _list_included(route: Any, lists: list[tuple[Sequence[Any], int]]) -> None:
    routes = getattr(getattr(route, "original_router", None), "routes", None)
    if isinstance(routes, list):
        lists.append((routes, len(routes)))
        for each in routes:
            if hasattr(each, "original_router"):
                _list_included(each, lists)


def _routes_of(app: Any) -> Sequence[Any] | None:
    """Return the routes of an application, or of the one that a middleware wraps."""
    for _ in range(_DEPTH):
        routes = getattr(app, "routes", None)
        if isinstance(routes, list | tuple):
            return routes
        app = getattr(app, "app", None)
        if app is None:
            return None
    return None


def rule_template(rule: str) -> str:
    """Return a rule of werkzeug as a template: `/users/<int:id>` is `/users/{id}`."""
    return _OF_RULE.sub(r"{\1}", rule)


def litestar_route(scope: Mapping[str, Any]) -> str | None:
    """Return the template that Litestar matched, if any."""
    template = scope.get("path_template")
    if template != "":
        return template
    handler = scope.get("route_handler")
    for route in scope["litestar_app"].routes:  # a mount
        if getattr(route, "route_handler", None) is handler:
            return f"{route.path_format.rstrip('/')}/{{path}}"
    return None


def publish_routes(app: Any) -> None:
    """Have an application of Quart or Falcon write its routes to the scope or environ.

    And one of Quart or Litestar its exceptions.

    Args:
        app: the application, its `asgi_app`, or a middleware around it. Others are ignored.
    """
    for _ in range(_DEPTH):
        app = getattr(app, "__self__", app)
        frameworks = {kind.__module__.partition(".")[0] for kind in type(app).__mro__}
        if "quart" in frameworks and hasattr(app, "url_map"):
            _listen_to_quart(app)
        elif "falcon" in frameworks and hasattr(app, "add_middleware"):
            app.add_middleware(_FalconRoutes())
        elif "litestar" in frameworks and hasattr(app, "after_exception"):
            app.after_exception.append(_keep_exception)
        app = getattr(app, "app", None)
        if app is None:
            return


async def _keep_exception(error: Exception, scope: Any) -> None:
    """Keep an exception that Litestar converts to a response, and the route of a 405."""
    scope[CONVERTED] = error
    if getattr(error, "status_code", None) == NOT_ALLOWED:
        for route in scope["litestar_app"].routes:
            template = route.path_format
            if re.fullmatch(_PARAMETER.sub("[^/]+", re.escape(template)), scope["path"]):
                scope[ROUTE] = template
                return


def _listen_to_quart(app: Any) -> None:
    quart, signals = (importlib.import_module(name) for name in ("quart", "quart.signals"))
    failures = (importlib.import_module("werkzeug.exceptions").HTTPException,)

    async def begins(_sender: object, **_: object) -> None:
        request = quart.request if quart.has_request_context() else quart.websocket
        rule = request.url_rule
        allowed = getattr(request.routing_exception, "valid_methods", None)
        if rule is None and allowed:  # a 405
            with contextlib.suppress(LookupError, *failures):
                adapter = quart.current_app.create_url_adapter(request)
                rule, _ = adapter.match(method=min(allowed), return_rule=True)
        if rule is not None:
            request.scope[ROUTE] = rule_template(rule.rule)

    async def fails(_sender: object, exception: BaseException, **_: object) -> None:
        request = quart.request if quart.has_request_context() else quart.websocket
        request.scope[FAILED] = exception

    # Not weakly: nothing else holds these functions.
    for signal in (signals.request_started, signals.websocket_started):
        signal.connect(begins, app, weak=False)
    for signal in (signals.got_request_exception, signals.got_websocket_exception):
        signal.connect(fails, app, weak=False)


class _FalconRoutes:
    """A Falcon middleware, for WSGI and ASGI."""

    def process_response(self, req: Any, _resp: object, _resource: object, _done: bool) -> None:
        """Publish the template."""
        self._publish(req, req.env)

    async def process_response_async(
        self, req: Any, _resp: object, _resource: object, _done: bool
    ) -> None:
        """Publish the template."""
        self._publish(req, req.scope)

    async def process_resource_ws(
        self, req: Any, _socket: object, _resource: object, _parameters: object
    ) -> None:
        """Publish the template."""
        self._publish(req, req.scope)

    def _publish(self, req: Any, to: dict[str, Any]) -> None:
        if req.uri_template:
            to[ROUTE] = _OF_TEMPLATE.sub(r"{\1}", req.uri_template)
