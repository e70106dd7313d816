"""Counts the requests of any WSGI application: a middleware.

    application = RedmeterMiddleware(application)

shared/web.py describes the metrics. The integrations of Flask and Django know routes.

Problem: a response is more than a function's return value. It continues while the server iterates,
its status can be replaced meanwhile, and servers treat some objects specially: several add a
Content-Length to a list with one element, and the kernel may send a file.

Idea: keep the object that the server gets wherever possible. A list or tuple is complete, so it is
recorded and passed on as it is. A file in the server's wrapper is passed on too, and recorded when
it is closed, or at once if the wrapper cannot report that. Anything else is passed on as an
iterator that yields each piece unread, and is recorded once: when it has no more pieces, when the
server closes it, or when the server drops it. Adapters such as asgiref's WsgiToAsgi never close.

    the response ended                    the status that was sent
    it or the application raised          500, and the exception, which propagates to the server
    the server refused a piece            500, and the reason: a `str`, more than Content-Length
    closed after some pieces, no error    `disconnected`: the client left
    write() raised as the client left     the same, unless the application raised another error
    closed before the first piece         the status: no body was wanted, as for HEAD
    dropped before the first piece        500: a middleware around this one raised
    close() raised after the last piece   the status; the exception is recorded

An OSError that the application raises, such as FileNotFoundError, is a failure like any other. The
status is the last one that the server accepted, including one replaced by exc_info.

Nested middlewares count a request once: the outermost one does.

Bound: one object for each request and one call for each piece. Nothing is buffered or read.

Not done: the time to send a list; answers that the server makes without the application.

Source: PEP 3333.
"""

import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Unpack

from redmeter import Meter
from redmeter.integrations.shared.options import WSGI, Arguments, load_application, own_integration
from redmeter.integrations.shared.routes import publish_routes
from redmeter.integrations.shared.web import (
    DISCONNECTED,
    ROUTE,
    WATCHED,
    Requests,
    requests_of,
)

#: What waitress and Starlette's WSGIMiddleware raise in place of an OSError when a client left.
_LEFT = frozenset({"ClientDisconnected", "BrokenResourceError", "ClosedResourceError"})

Environ = dict[str, Any]
Application = Callable[[Environ, Any], Iterable[bytes]]


class RedmeterMiddleware:
    """Counts the requests of a WSGI application. Never raises, never waits.

    Args:
        app: the application.
        meter: records the requests. None: a Meter with the given options and the environment's
            settings.
        options: see Arguments, e.g. ignore_paths="/health"; without a meter, also what Meter
            takes, e.g. url="redis://localhost". They win over the environment.

    Raises:
        TypeError: an option's name is unknown.
    """

    def __init__(
        self,
        app: Application,
        meter: Meter | None = None,
        **options: Unpack[Arguments],
    ) -> None:
        self.app = app
        #: The mount point in the application's settings, a prefix of all paths and routes.
        self.root = ""
        self.requests = requests_of(meter, options)
        publish_routes(app)
        #: Returns the route of an environ, as soon as the response starts; None: there is none.
        self.route: Callable[[Environ], str | None] | None = self.requests.options.route

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.meter!r} around {self.app!r}>"

    @property
    def meter(self) -> Meter:
        """Where requests are recorded, for counters of your own as well."""
        return self.requests.meter

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        """Answer a request, as the application does."""
        path = f"{self.root}{environ.get('PATH_INFO') or '/'}"
        if not path.isascii():
            path = path.encode("latin-1", "replace").decode("utf-8", "replace")
        if WATCHED in environ or not self.requests.watched(path):
            return self.app(environ, start_response)
        watched = Watched(self.requests, environ, path, start_response, self.route)
        environ[WATCHED] = watched
        try:
            result = self.app(environ, watched.start_response)
        except BaseException as error:
            watched.end(error)
            raise
        if type(result) is list or type(result) is tuple:
            watched.end(None)
            return result
        return watched.around(result)


class Watched:
    """A request from its start to its end, and the body of its response.

    Args:
        requests: records it.
        environ, start_response: the server's.
        path: as it is compared with patterns.
        route: finds the route.
    """

    __slots__ = (
        *("_began", "_environ", "_error", "_headers", "_path", "_recorded", "_refused"),
        *("_requests", "_route", "_route_of", "_spent", "_start", "_start_response", "_status"),
        "_write",
    )

    def __init__(
        self,
        requests: Requests,
        environ: Environ,
        path: str,
        start_response: Any,
        route: Callable[[Environ], str | None] | None,
    ) -> None:
        self._requests = requests
        self._environ = environ
        self._path = path
        self._start_response = start_response
        self._route_of = route
        self._route: str | None = None
        self._status: str | None = None
        self._headers: Any = ()
        self._error: BaseException | None = None
        #: The exception by which the server refused to send the data of write().
        self._refused: Exception | None = None
        #: Method and route of the request, once it is recorded.
        self._recorded: tuple[str, str | None] = "", None
        #: When the first piece of the body, or the file, was available.
        self._began: float | None = None
        self._spent, self._start = requests.begin()

    # What the application sees

    def start_response(self, status: str, headers: Any, exc_info: Any = None) -> Any:
        """Start the response, or replace a started one; exceptions of the server propagate."""
        if exc_info is None:
            write = self._start_response(status, headers)
        else:
            try:
                write = self._start_response(status, headers, exc_info)
            finally:
                exc_info = None  # it holds this frame
        self._status, self._headers = status, headers
        if self._route_of is not None:
            self._find_route()
        self._write = write
        return self._pass_on

    def _pass_on(self, data: bytes) -> Any:
        self.begin_body()
        try:
            return self._write(data)
        except Exception as error:
            if _is_departure(error):
                self._refused = error
            raise

    # For the integrations of frameworks

    def failed(self, error: BaseException) -> None:
        """Keep an unhandled exception that the framework converts to a response."""
        self._error = error
        if self._route_of is not None:
            self._find_route()

    def ending(self) -> None:
        """Find the route of a request that ends without a response, while it is still known."""
        if self._status is None and self._route_of is not None:
            self._find_route()

    def routed_by(self, route: Callable[[Environ], str | None], environ: Environ) -> None:
        """Find the route with a framework's function, unless the application's option has one.

        Args:
            route: the function of an inner integration.
            environ: the inner integration's environ, which may be a copy.
        """
        of_options = self._requests.options.route
        self._route_of = lambda outer: (of_options and of_options(outer)) or route(environ)

    def drop(self) -> None:
        """Record a request whose body was neither read nor closed; called later, do nothing."""
        head = self._environ.get("REQUEST_METHOD") == "HEAD"
        self.end(None, status=None if head else 500)

    def _find_route(self) -> None:
        assert self._route_of is not None, "the caller looks"
        try:
            self._route = self._route_of(self._environ) or self._route
        except Exception as error:  # noqa: BLE001 - the application's function
            self._requests.record_error("finding the route of a request", error)

    # What the server sees

    def around(self, body: Any) -> Iterable[bytes]:
        """Return the body that the server iterates over and closes."""
        wrapper = self._environ.get("wsgi.file_wrapper")
        if type(wrapper) is type and isinstance(body, wrapper):
            return self._around_file(body)
        return (_SizedBody if hasattr(type(body), "__len__") else _Body)(self, body)

    def _around_file(self, file: Any) -> Iterable[bytes]:
        body: Iterable[bytes] = file
        self.begin_body()
        if self._spent is not None:
            self._spent.end()  # by this thread; another one may close it
        try:
            file.close = _CloseFile(self, getattr(body, "close", None))
        except (AttributeError, TypeError):  # of a server that is written in C
            self.end(None)
        return body

    def is_complete(self, size: int) -> bool:
        """Return whether a body of so many bytes has the length that the response declares."""
        length = self._header("content-length")
        return length.isdecimal() and int(length) == size

    def _header(self, wanted: str) -> str:
        try:
            for name, value in self._headers:
                if name.lower() == wanted:
                    return str(value).strip()
        except (AttributeError, TypeError, ValueError):  # headers that no server would send
            pass
        return ""

    def begin_body(self) -> None:
        """Note that a piece of the body, or the file, is available."""
        if self._began is None:
            self._began = self._requests.now()

    def end(
        self, error: BaseException | None, *, left: bool = False, status: int | None = None
    ) -> None:
        """Record the request. Called again, it only records an exception.

        Args:
            error: an exception that was not handled.
            left: whether the server ended the body before it was complete.
            status: replaces the one that was sent.
        """
        environ = self._environ
        if not environ:
            if error is not None:
                self._requests.failed(*self._recorded, error)
            return
        seconds = self._requests.now() - self._start
        began = None if self._began is None else self._began - self._start
        method = environ.get("REQUEST_METHOD", "")
        if self._status is None and self._route_of is not None and self._route is None:
            self._find_route()
        outcome: int | str | None = status
        error = error or self._error
        if error is None:
            gone = self._refused is not None or (left and method != "HEAD")
        else:
            gone = error is self._refused
        if gone:
            outcome, error = DISCONNECTED, None
        elif outcome is None and self._status is not None:
            try:
                outcome = int(self._status[:3])
            except (TypeError, ValueError):
                outcome = None
        route = environ.get(ROUTE) or self._route
        if not isinstance(route, str):
            route = None
        path, spent = self._path, self._spent
        kind = self._header("content-type")
        self._requests.record(
            *(method, path, route, outcome, seconds, environ, error, spent, began, kind)
        )
        self._recorded = method, route
        # They may hold references to this object.
        self._environ, self._error, self._refused, self._route_of = {}, None, None, None
        self._headers = ()


def from_env() -> Application:
    """Return the application that REDMETER_APP names, counted; all settings are the environment's.

        REDMETER_APP=shop:app gunicorn 'redmeter.integrations.wsgi:from_env()'

    A Flask application is counted by its routes, see own_integration(). Where SIGTERM would end the
    process at once, as it does under waitress and cheroot, it flushes first.

    Raises:
        InvalidSetting: REDMETER_APP is not set, or names no WSGI application.
    """
    app: Application = load_application(WSGI)
    integration = own_integration(app)
    counted = (integration or RedmeterMiddleware)(app)
    _flush_first(counted.meter)
    return app if integration else counted


def _flush_first(meter: Meter) -> None:
    """Flush on SIGTERM where the server does not handle it. uWSGI does, which Python cannot see."""
    if (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        and "uwsgi" not in sys.modules
    ):
        meter.flush_on_sigterm()


class _Body:
    """The body of a response: passes the pieces on, and ends the request.

    The request does not refer to it, so it is deleted as soon as the server drops it.
    """

    __slots__ = ("_body", "_given", "_next", "_pending", "_size", "_watched")

    def __init__(self, watched: Watched, body: Any) -> None:
        self._watched = watched
        self._body = body
        self._next: Callable[[], bytes] | None = None
        #: The class of the last piece.
        self._given: type = bytes
        #: Whether the body was started and has not ended.
        self._pending = False
        #: Bytes passed on. Some servers stop once they have as many as the response declares.
        self._size = 0

    def __iter__(self) -> Iterator[bytes]:
        if self._next is None:
            try:
                self._next = iter(self._body).__next__
            except BaseException as error:
                self._watched.end(error)
                raise
        return self

    def __next__(self) -> bytes:
        self._pending = True
        try:
            if self._next is None:
                iter(self)
            assert self._next is not None, "made by iter()"
            piece = self._next()
        except StopIteration:
            self._pending = False
            self._watched.end(None)
            raise
        except BaseException as error:
            self._pending = False
            self._watched.end(error)
            raise
        self._given = type(piece)
        self._watched.begin_body()
        if self._given is bytes:
            self._size += len(piece)
        return piece

    def close(self) -> None:
        """Close the response, and record the request. Called again, it does nothing."""
        body, self._body, self._next = self._body, None, _nothing
        refusal = _refusal(self._given) if self._pending else None
        try:
            close = getattr(body, "close", None)
            if close is not None:
                close()
        except BaseException as error:
            refusal = refusal or error
            raise
        finally:
            self._watched.end(refusal, left=self._is_left())
            self._pending = False

    def __del__(self) -> None:
        if self._pending:
            self._watched.end(None, left=self._is_left())
        else:
            self._watched.drop()

    def _is_left(self) -> bool:
        return self._pending and not self._watched.is_complete(self._size)


class _SizedBody(_Body):
    """A body whose length is known, as some servers ask."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(self._body)


class _CloseFile:
    """Closes a file of the server's wrapper, and ends the request; also when it is deleted."""

    __slots__ = ("_close", "_watched")

    def __init__(self, watched: Watched, close: Callable[[], object] | None) -> None:
        self._watched = watched
        self._close = close

    def __call__(self) -> None:
        try:
            if self._close is not None:
                self._close()
        finally:
            self._watched.end(None)

    def __del__(self) -> None:
        self._watched.end(None)


def _refusal(given: type) -> BaseException | None:
    """Return why a server closes a response before its end; None if the client left.

    Args:
        given: the class of the last piece.
    """
    if not issubclass(given, bytes | bytearray | memoryview):
        return TypeError(f"a body consists of bytes, not {given.__name__}")
    raised = sys.exc_info()[1]
    if not isinstance(raised, Exception) or _is_departure(raised):
        return None
    return raised


def _is_departure(error: Exception) -> bool:
    """Return whether a server raises an exception because the client has left."""
    return isinstance(error, OSError) or type(error).__name__ in _LEFT


def _nothing() -> bytes:
    raise StopIteration
