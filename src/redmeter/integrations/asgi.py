"""Counts the requests of an ASGI application: FastAPI, Starlette, or any other.

    app.add_middleware(RedmeterMiddleware)          Starlette, FastAPI
    app = RedmeterMiddleware(app)                   any application

shared/web.py describes the metrics. This module maps ASGI to them.

Idea: an application is called with two functions, one to receive messages and one to send them. Two
wrappers inspect each message and pass it on at once, unchanged. Nothing is buffered, so streaming
and background tasks work as without the middleware.

When: a request is recorded once its last byte is handed to the server. A background task that runs
after that is not part of the duration; an exception in it is logged, but the request was answered.
A WebSocket is recorded when its connection ends, with the connection's lifetime, the method
WEBSOCKET and the status 101; so is the lifetime of a stream of server-sent events, whose duration
ends where its response starts.

Disconnected: the server sent `http.disconnect` before the last byte, refused a message with an
OSError, or cancelled the task that serves the request, see is_cancelled(). Any other CancelledError
is a failure of the application. The middleware never asks the server whether the client is there:
if the application did not notice, the request counts as answered. A WebSocket is disconnected if it
ended without a code, or before it was accepted.

Nested middlewares count a request once: the outermost one does. shared/routes.py finds the route.

Bound: two functions for each request, one inspection of each message, no task, no thread.

Not done: trailers are not waited for.

Source: ASGI specification 3.0, "HTTP & WebSocket ASGI Message Format" 2.5, "Lifespan Protocol" 2.0.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Unpack

from redmeter import Meter
from redmeter.integrations.shared.databases import Spent
from redmeter.integrations.shared.options import ASGI, Arguments, load_application
from redmeter.integrations.shared.routes import (
    RouteFinder,
    litestar_route,
    path_within,
    publish_routes,
)
from redmeter.integrations.shared.web import (
    CONVERTED,
    DISCONNECTED,
    FAILED,
    ROUTE,
    WATCHED,
    WEBSOCKET,
    requests_of,
)
from redmeter.recording.process import watch_uvicorn

#: Mappings, which frameworks declare in different ways.
_Scope = Any
_Message = Any
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
App = Callable[[_Scope, _Receive, _Send], Awaitable[None]]

#: Messages that are a complete body, so the last of their response.
_WHOLE = frozenset({"http.response.pathsend", "http.response.zerocopysend"})
#: Exceptions by which Starlette, and frameworks built on it, report that a client disconnected. By
#: name, since this module imports no framework.
_LEFT = frozenset({"ClientDisconnect", "ClientDisconnected", "WebSocketDisconnect"})
#: Exceptions by which a server cancels the call, under asyncio and trio. SystemExit is not one.
_ENDED = frozenset({"CancelledError", "Cancelled", "GeneratorExit"})
#: WebSocket close codes that are never sent: the connection was lost.
_LOST = frozenset({1006, 1015})


class RedmeterMiddleware:
    """Counts and times requests. Leaves them unchanged, and never raises.

    Args:
        app: the ASGI application.
        meter: records the requests; flushed when the server shuts down. None: a Meter by the
            settings, which is closed then.
        options: see Arguments, e.g. ignore_paths="/health"; without a meter, also what Meter
            takes, e.g. url="redis://localhost". They win over the environment. An invalid value
            is logged and ignored.

    Raises:
        TypeError: an option's name is unknown.
    """

    def __init__(
        self,
        app: App,
        meter: Meter | None = None,
        **options: Unpack[Arguments],
    ) -> None:
        self.app = app
        self.requests = requests_of(meter, options)
        self._own = meter is None
        self._route_of = self.requests.options.route
        self._finder = RouteFinder(app)
        publish_routes(app)
        self._serving = False

    @property
    def meter(self) -> Meter:
        """Where requests are recorded, for counters of your own as well."""
        return self.requests.meter

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.requests.meter!r}>"

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """Serve a request as the application does."""
        kind = scope["type"]
        if kind == "http" or kind == "websocket":
            path = path_within(scope)
            if WATCHED not in scope and self.requests.watched(path):
                serve = self._serve if kind == "http" else self._serve_websocket
                await serve(scope, path, receive, send)
                return
        elif kind == "lifespan":
            await self._live(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _begin(self, scope: _Scope) -> tuple[Spent | None, float]:
        scope[WATCHED] = True
        if not self._serving:
            self._serving = True
            watch_uvicorn()  # the first event may come after its shutdown
        return self.requests.begin()  # starts the cleaner too: there may be no lifespan

    async def _serve(self, scope: _Scope, path: str, receive: _Receive, send: _Send) -> None:
        requests, now = self.requests, self.requests.now
        app = scope.get("app")
        status: int | None = None
        gone = last = recorded = False
        answer: tuple[float | None, str] = None, ""
        refused: OSError | None = None
        spent, start = self._begin(scope)

        async def received() -> _Message:
            nonlocal gone
            message = await receive()
            if message["type"] == "http.disconnect" and not last:
                gone = True
            return message

        async def sent(message: _Message) -> None:
            nonlocal status, gone, last, recorded, refused, answer
            kind = message["type"]
            if kind == "http.response.start":
                status = message["status"]
                answer = now() - start, _content_type(message)
            elif kind == "http.response.body":
                last = not message.get("more_body")
            elif kind in _WHOLE:
                last = True
            try:
                await send(message)
            except OSError as error:
                gone, refused = True, error
                raise
            if last and not recorded:
                recorded = True
                outcome = DISCONNECTED if gone else status
                self._record(scope, path, app, outcome, now() - start, None, spent, *answer)

        try:
            await self.app(scope, received, sent)
        except BaseException as error:
            seconds = now() - start
            failed = not _left(error, refused)
            if recorded:
                if failed:
                    requests.failed(scope["method"], self._route(scope, app), error)
            elif failed:
                self._record(scope, path, app, status, seconds, error, spent, *answer)
            else:
                self._record(scope, path, app, DISCONNECTED, seconds, None, spent, *answer)
            raise
        else:
            if not recorded:
                # Without any status, what the server answers for it.
                outcome = DISCONNECTED if gone else 500 if status is None else status
                self._record(scope, path, app, outcome, now() - start, None, spent, *answer)
        finally:
            refused = None  # it holds these frames
            if spent is not None:
                spent.end()  # in the context in which it began

    async def _serve_websocket(
        self, scope: _Scope, path: str, receive: _Receive, send: _Send
    ) -> None:
        requests = self.requests
        app = scope.get("app")
        status: int | str | None = None
        closed = False
        refused: OSError | None = None
        spent, start = self._begin(scope)

        async def received() -> _Message:
            nonlocal status, closed
            message = await receive()
            if message["type"] == "websocket.disconnect" and not closed:
                closed = True
                if status is None or message.get("code") in _LOST:
                    status = DISCONNECTED
            return message

        async def sent(message: _Message) -> None:
            nonlocal status, closed, refused
            kind = message["type"]
            if kind == "websocket.accept":
                status = status or 101
            elif kind == "websocket.close":
                closed = True
                status = status or 403
            elif kind == "websocket.http.response.start":
                closed = True
                status = message["status"]
            try:
                await send(message)
            except OSError as error:
                refused = error
                if not closed:
                    status = DISCONNECTED
                raise

        try:
            await self.app(scope, received, sent)
        except BaseException as error:
            seconds = requests.now() - start
            if not _left(error, refused):
                self._record(scope, path, app, status, seconds, error, spent)
            else:
                outcome = status if closed else DISCONNECTED
                self._record(scope, path, app, outcome, seconds, None, spent)
            raise
        else:
            outcome = 500 if status is None else status
            self._record(scope, path, app, outcome, requests.now() - start, None, spent)
        finally:
            refused = None  # it holds these frames
            if spent is not None:
                spent.end()  # in the context in which it began

    def _record(
        self,
        scope: _Scope,
        path: str,
        app: object,
        status: int | str | None,
        seconds: float,
        error: BaseException | None,
        spent: Spent | None,
        began: float | None = None,
        content_type: str = "",
    ) -> None:
        method, route = scope.get("method", WEBSOCKET), self._route(scope, app)
        if FAILED in scope:
            error = scope.pop(FAILED)
        elif error is None and isinstance(status, int) and status >= 500:
            error = scope.pop(CONVERTED, None)
        self.requests.record(
            *(method, path, route, status, seconds, scope, error, spent, began, content_type)
        )

    def _route(self, scope: _Scope, app: object) -> str | None:
        try:
            if self._route_of is not None:
                return self._route_of(scope)
            if "litestar_app" in scope:
                return scope.get(ROUTE) or litestar_route(scope)
            return scope.get(ROUTE) or self._finder.route(scope, app)
        except Exception as error:  # noqa: BLE001 - of the application's function, or its router
            self.requests.record_error("finding the route of a request", error)
            return None

    async def _live(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        cleaner = self.requests.cleaner

        async def received() -> _Message:
            message = await receive()
            if message["type"] == "lifespan.startup" and cleaner is not None:
                cleaner.start()
            return message

        async def sent(message: _Message) -> None:
            if message["type"] in _ENDS:
                self._end()
            await send(message)

        await self.app(scope, received, sent)

    def _end(self) -> None:
        """Store pending events, for 2 s at most; the server has answered all requests by now."""
        try:
            if self.requests.cleaner is not None:
                self.requests.cleaner.stop()
            if self._own:
                self.requests.meter.close()
            else:
                self.requests.meter.flush()
        except Exception as error:  # noqa: BLE001 - must not disturb the server's shutdown
            self.requests.record_error("storing pending events", error)


def from_env() -> RedmeterMiddleware:
    """Return the application that REDMETER_APP names, counted; all settings are the environment's.

        REDMETER_APP=shop:app uvicorn --factory redmeter.integrations.asgi:from_env

    Raises:
        InvalidSetting: REDMETER_APP is not set, or names no ASGI application.
    """
    return RedmeterMiddleware(load_application(ASGI))


_ENDS = frozenset(
    {"lifespan.shutdown.complete", "lifespan.shutdown.failed", "lifespan.startup.failed"}
)


def _content_type(message: _Message) -> str:
    """Return the content type of a response that starts; "" if it has none."""
    headers = message.get("headers")
    if isinstance(headers, list | tuple):  # else an iterator, which the server needs
        for name, value in headers:
            if name.lower() == b"content-type":
                return bytes(value).decode("latin-1")
    return ""


def _left(error: BaseException, refused: BaseException | None) -> bool:
    """Return whether an exception means only that the client disconnected or the server stops.

    Args:
        refused: the exception by which the server refused a message.
    """
    return all(each is refused or _is_end(each) for each in _members(error))


def is_cancelled() -> bool:
    """Return whether the current task is being cancelled; True outside of asyncio.

    It distinguishes a request that the server cancels from one that awaited a cancelled task, which
    raises CancelledError too. A server cancels the task that serves a request when the client
    leaves or the server shuts down. A view that awaits another task, which is cancelled, fails with
    the same exception; but its own task goes on, and the client gets a 500.

    AnyIO's cancel scopes cancel tasks in the same way and undo it where they end. Trio raises an
    exception of its own, which never leaves the scope that was cancelled; if it gets here, the
    scope is the server's. Source: asyncio, `Task.cancelling()`.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:  # another event loop
        return True
    return task is None or task.cancelling() > 0


def _is_end(error: BaseException) -> bool:
    kind = type(error).__name__
    if isinstance(error, Exception):
        return kind in _LEFT
    return kind in _ENDED and (kind != "CancelledError" or is_cancelled())


def _members(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _members(each)
    else:
        yield error
