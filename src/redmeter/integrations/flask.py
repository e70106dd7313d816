"""Counts the requests of a Flask application, by its routes.

    app = Flask(__name__)
    redmeter = Redmeter(app)

or, with an application factory:

    redmeter = Redmeter()
    redmeter.init_app(app)

Record your own metrics with `redmeter.meter.count("orders")`.

Settings come from the arguments of Redmeter(), then app.config["REDMETER_URL"] and so on, then the
environment. Their names are those of settings.py.

Idea: the middleware of wsgi.py wraps app.wsgi_app, so it sees errors outside of views and streamed
bodies. It replaces no function of the application, and registers no hook that another hook could
suppress. The request, which knows the matched rule, is in the environ while the response starts:
werkzeug puts it there, and Flask removes it when its context ends.

    @app.get("/users/<int:id>")                     /users/{id}
    a blueprint with url_prefix="/shop"             /shop/cart
    one with APPLICATION_ROOT="/admin"              /admin/users/{id}
    a rule for this path, none for the method       the rule's, with 405
    no rule                                         (unmatched)

A signal reports exceptions that no errorhandler handles, also if a page for 500 is shown. Flask
sends no signal for a BaseException that is not an Exception, such as the SystemExit by which
gunicorn ends a slow worker. Its route is read when Flask tears down the request's context, which
happens first.

Not done: a redirect that adds a slash to the path is `(unmatched)`, since no rule matched.

Source: the documentation of Flask, "The Lifecycle of a Request", "Signals".
"""

import logging
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Unpack

from flask import (
    Flask,
    current_app,
    got_request_exception,
    has_app_context,
    has_request_context,
    request,
    request_tearing_down,
)
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from redmeter import Meter
from redmeter.integrations.shared.meters import unknown_settings
from redmeter.integrations.shared.options import Arguments
from redmeter.integrations.shared.routes import rule_template
from redmeter.integrations.shared.web import WATCHED, Requests, requests_of
from redmeter.integrations.wsgi import Environ, RedmeterMiddleware, Watched

_NAME = "redmeter"

logger = logging.getLogger("redmeter")


class Redmeter:
    """Counts and times the requests of Flask applications. Never raises into them, never blocks.

    Args:
        app: an application; init_app() adds further ones, or one that is created later.
        meter: records the requests. None: a Meter by the settings, shared by equal settings.
        options: see Arguments, e.g. ignore_paths="/health"; without a meter, also what Meter
            takes, e.g. url="redis://localhost". They win over app.config and the environment.

    Raises:
        TypeError: an option's name is unknown.
    """

    def __init__(
        self,
        app: Flask | None = None,
        meter: Meter | None = None,
        **options: Unpack[Arguments],
    ) -> None:
        self._meter = meter
        self._options = options
        self._last: Meter | None = meter
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Count the requests of an application from now on. For the same one again: no effect.

        Raises:
            TypeError: an option's name is unknown.
        """
        if _NAME in app.extensions:
            return
        requests = requests_of(self._meter, self._options, app.config)
        app.extensions[_NAME] = self._last = requests.meter
        for text in unknown_settings(app.config):
            logger.error("redmeter ignores a setting: %s", text)
        root = str(app.config.get("APPLICATION_ROOT") or "").rstrip("/")
        app.wsgi_app = _Middleware(app.wsgi_app, requests, root)  # type: ignore[method-assign]
        got_request_exception.connect(_failed)
        request_tearing_down.connect(_torn_down)

    @property
    def meter(self) -> Meter:
        """The meter of the current application; outside of one, of the last that init_app() got.

        Raises:
            RuntimeError: there is no application yet.
        """
        here = current_app.extensions.get(_NAME) if has_app_context() else None
        meter: Meter | None = here or self._last
        if meter is None:
            raise RuntimeError("Redmeter has no application yet: call init_app(app) first")
        return meter


class _Middleware(RedmeterMiddleware):
    """The middleware, with Flask's routes.

    Args:
        root: the mount point, by the application's own APPLICATION_ROOT.
    """

    def __init__(self, app: Any, requests: Requests, root: str) -> None:
        self.app = app
        self.root = root
        self.requests = requests
        of_options = requests.options.route

        def found(environ: Environ) -> str | None:
            return (of_options and of_options(environ)) or _route(environ, root)

        self.route: Callable[[Environ], str | None] = found

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        """Serve a request; if a middleware around this one counts it, pass it the route."""
        watched = environ.get(WATCHED)
        if type(watched) is Watched:
            watched.routed_by(self.route, environ)
        return super().__call__(environ, start_response)


def _failed(_sender: object, exception: object = None, **_: object) -> None:
    """Record an exception that no errorhandler handled; Flask answers with its page for 500."""
    watched = request.environ.get(WATCHED) if has_request_context() else None
    if type(watched) is Watched and isinstance(exception, BaseException):
        watched.failed(exception)


def _torn_down(_sender: object, exc: object = None, **_: object) -> None:
    """Find the route of a request that SystemExit or the like ends: Flask sends no other signal."""
    watched = request.environ.get(WATCHED) if exc is not None and has_request_context() else None
    if type(watched) is Watched:
        watched.ending()


def _route(environ: Environ, root: str) -> str | None:
    """Return the template of the rule that matched, as long as the environ has the request."""
    matched = environ.get("werkzeug.request")
    rule = getattr(matched, "url_rule", None)
    if rule is None:
        rule = _rule_of_other_method(matched)
        if rule is None:
            return None
    return _template(root, rule.rule)


@lru_cache(maxsize=4096)
def _template(root: str, rule: str) -> str:
    return root + rule_template(rule)


def _rule_of_other_method(found: Any) -> Any:
    """Return the rule that matched the path where none matched the method, else None."""
    error = getattr(found, "routing_exception", None)
    if not isinstance(error, MethodNotAllowed) or not error.valid_methods:
        return None
    adapter = current_app.create_url_adapter(found)
    if adapter is None:
        return None
    try:
        return adapter.match(method=next(iter(error.valid_methods)), return_rule=True)[0]
    except HTTPException:
        return None
