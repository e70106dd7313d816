"""Routes of Litestar, Quart and Falcon, whose routers are not Starlette's.

    Litestar    leaves the template in the scope; litestar_route() reads it; a hook for exceptions
                keeps those that it converts to a response
    Quart       knows the rule while it handles the request; a signal handler reads it
    Falcon      keeps the template on its request; a Falcon middleware reads it

Idea: publish_routes() registers a listener with the application that a RedmeterMiddleware wraps, by
the framework's public API: a signal, add_middleware(). The listener writes the template to
`redmeter.route` in the scope or environ, as any application may. A framework is imported only if
the application is one of its own.

    @get("/users/{user_id:int}")            Litestar    /users/{user_id}
    @asgi("/files", is_mount=True)          Litestar    /files/{path}
    @app.get("/users/<int:user_id>")        Quart       /users/{user_id}
    app.add_route("/users/{user_id:int}")   Falcon      /users/{user_id}

Bound: a signal or a call for each request, and one substitution.

A 405 has the template of the route that matched the path.

Not done: an exception that Falcon converts to a
response counts as 5xx, but is not logged: Falcon has no hook for it. Its sinks and static routes
have no template.

Source: Quart, "Signals"; Falcon, "Middleware"; Litestar, types of the ASGI scope.
"""

import contextlib
import importlib
import re
from collections.abc import Mapping
from typing import Any

from redmeter.integrations.web import CONVERTED, FAILED, ROUTE

#: How deep nested applications are searched.
_DEPTH = 10
#: A parameter of a rule, with its converter: `<int:id>` of werkzeug, `{id:int}` of Falcon.
_OF_RULE = re.compile(r"<(?:[^<>]*:)?([^<>:]+)>")
#: A parameter in a template of Litestar, escaped for a regular expression.
_PARAMETER = re.compile(r"\\\{[^{}]*\\\}")
#: The status of a request whose method no handler of its path has.
NOT_ALLOWED = 405
_OF_TEMPLATE = re.compile(r"\{([^{}:]+):[^{}]*\}")


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
