"""The middleware: counts the requests of a Django project, under WSGI and ASGI.

Idea: a request lasts until the middleware returns its response or, for a streaming response, until
its last piece, or until Django closes it or the server drops it earlier. The route is the one that
the resolver found, with all include()s. A mount point is part of it only if the project sets it
(FORCE_SCRIPT_NAME): the server's may come from a header that the client can set.

    path("api/", include([path("users/<int:pk>/", …)]))     /api/users/{pk}/
    re_path(r"^articles/(?P<year>[0-9]{4})/$", …)           /articles/{year}/
    nothing matched, or a middleware answered before        (unmatched)

Django converts an unhandled exception to a page before it reaches this middleware, and sends the
signal got_request_exception, which it does not do for a 404 or 403. A streaming response ends in
one of three ways, see _Stream:

    complete                                                its status
    raised while streaming                                  500, and the exception
    closed or dropped before its end, or cancelled          `disconnected`: the client left

Bound: a few look-ups per request and one call per chunk of a streaming response. Nothing here
waits, opens a connection or raises.

Not done: responses that the server makes without Django, such as runserver's static files. The time
to send a response that is not streaming is not part of its duration.

Source: Django, "Middleware", "Signals" (got_request_exception).
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import lru_cache
from typing import Any, cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings  # type: ignore[import-untyped]
from django.core.exceptions import MiddlewareNotUsed  # type: ignore[import-untyped]
from django.core.signals import got_request_exception  # type: ignore[import-untyped]

from redmeter.integrations.asgi import is_cancelled
from redmeter.integrations.django.project import project_requests
from redmeter.integrations.django.routes import readable_route
from redmeter.integrations.shared.databases import Spent
from redmeter.integrations.shared.web import DISCONNECTED, FAILED, ROUTE, WATCHED
from redmeter.integrations.wsgi import Watched

#: Attribute of a request: its unhandled exception.
_ERROR = "_redmeter_error"


class RedmeterMiddleware:
    """Counts and times requests. Put it first, so that it sees all of them for their full duration.

    Args:
        get_response: the next middleware, or the view.

    Raises:
        MiddlewareNotUsed: the URL of the store is `off`.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        self.requests = project_requests()
        if not self.requests.on:
            raise MiddlewareNotUsed("Redmeter is off")
        self.get_response = get_response
        self._route_of = self.requests.options.route
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)
        got_request_exception.connect(_note, dispatch_uid="redmeter")

    def __call__(self, request: Any) -> Any:
        """Return the response of the next middleware or the view."""
        if self._is_async:
            return self._answer(request)
        outer = _outer(request)
        if outer is not None:
            try:
                return self.get_response(request)
            finally:
                self._tell(request, outer)
        if not self.requests.watched(_path(request)):
            return self.get_response(request)
        spent, start = self.requests.begin()
        try:
            response = self.get_response(request)
        except BaseException as error:
            self._end(request, start, spent, None, error)
            raise
        return self._answered(request, response, start, spent)

    async def _answer(self, request: Any) -> Any:
        answer = cast(Awaitable[Any], self.get_response(request))
        outer = _outer(request)
        if outer is not None:
            try:
                return await answer
            finally:
                self._tell(request, outer)
        if not self.requests.watched(_path(request)):
            return await answer
        spent, start = self.requests.begin()
        try:
            response = await answer
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                self._end(request, start, spent, DISCONNECTED, None)
            else:
                self._end(request, start, spent, None, error)
            raise
        return self._answered(request, response, start, spent)

    def _answered(self, request: Any, response: Any, start: float, spent: Spent | None) -> Any:
        try:
            streaming = response.streaming
        except AttributeError:  # not a response, which Django reports
            return response
        if not streaming:
            self._end(request, start, spent, response.status_code, None)
        else:
            try:
                _Stream(self, request, response.status_code, start, spent).begin(response)
            except Exception as error:  # noqa: BLE001 - a response of a strange class
                self.requests.record_error("watching a response", error)
        return response

    def _end(
        self,
        request: Any,
        start: float,
        spent: Spent | None,
        status: int | str | None,
        error: BaseException | None,
        began: float | None = None,
        content_type: str = "",
    ) -> None:
        requests = self.requests
        seconds = requests.now() - start
        try:
            error = request.__dict__.pop(_ERROR, None) or error
            route = self._route(request)
            method, path = request.method or "", _path(request)
            requests.record(
                *(method, path, route, status, seconds, request, error, spent, began, content_type)
            )
        except Exception as failure:  # noqa: BLE001 - a request or a route of a strange class
            requests.record_error("recording a request", failure)

    def _tell(self, request: Any, outer: dict[str, Any]) -> None:
        """Pass the route to the integration around Django that counts the request."""
        try:
            route = self._route(request)
            if route is not None:
                outer.setdefault(ROUTE, route)
        except Exception as failure:  # noqa: BLE001 - a request or a route of a strange class
            self.requests.record_error("finding the route of a request", failure)

    def _route(self, request: Any) -> str | None:
        if self._route_of is not None:
            try:
                route = self._route_of(request)
                if route:
                    return str(route)
            except Exception as failure:  # noqa: BLE001 - of a function of the application
                self.requests.record_error("finding the route of a request", failure)
        return _route(request)


class _Stream:
    """A streaming response, until its end."""

    __slots__ = (
        "_began",
        "_content_type",
        "_ended",
        "_error",
        "_middleware",
        "_pending",
        "_request",
        "_spent",
        "_start",
        "_status",
    )

    def __init__(
        self,
        middleware: RedmeterMiddleware,
        request: Any,
        status: int,
        start: float,
        spent: Spent | None,
    ) -> None:
        self._middleware = middleware
        self._request = request
        self._status: int | str = status
        self._start = start
        self._began = middleware.requests.now() - start
        self._spent = spent
        self._content_type = ""
        self._error: BaseException | None = None
        self._ended = False
        #: Whether the body was started and has not ended.
        self._pending = False

    def begin(self, response: Any) -> None:
        """Wrap a response's body, and register for its end."""
        self._content_type = str(response.get("Content-Type", ""))
        # A file is passed to the server unchanged.
        if getattr(response, "file_to_stream", None) is None:
            body = response.streaming_content
            response.streaming_content = (
                self._pass_async(body) if response.is_async else self._pass(body)
            )
        elif self._spent is not None:
            self._spent.end()  # by this thread; another one may close it
        # Closed with the response; replacing close() itself would make a reference cycle.
        response._resource_closers.append(self._end)

    def _pass(self, body: Iterator[bytes]) -> Iterator[bytes]:
        self._pending = True
        try:
            yield from body
        except GeneratorExit:
            raise
        except BaseException as error:
            self._error = error
            self._end()  # under ASGI Django does not close it
            raise
        self._pending = False
        self._end()  # adapters such as asgiref's WsgiToAsgi do not close it

    async def _pass_async(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        self._pending = True
        try:
            async for piece in body:
                yield piece
        except GeneratorExit:
            raise
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                raise
            self._error = error
            self._end()  # under ASGI Django does not close it
            raise
        self._pending = False
        self._end()

    def __del__(self) -> None:
        self._end()  # dropped, not closed

    def _end(self) -> None:
        if self._ended:
            return
        self._ended = True
        status = self._status
        if self._pending and self._error is None and self._request.method != "HEAD":
            status = DISCONNECTED
        self._middleware._end(
            *(self._request, self._start, self._spent, status, self._error),
            *(self._began, self._content_type),
        )
        self._error = None


def _note(request: Any = None, **_: object) -> None:
    """Keep an unhandled exception until its request is recorded."""
    error = sys.exc_info()[1]
    try:
        if error is None:
            return
        outer = _outer(request)
        if outer is None:
            if project_requests().watched(_path(request)):
                setattr(request, _ERROR, error)
        elif type(outer[WATCHED]) is Watched:
            outer[WATCHED].failed(error)
        else:
            outer[FAILED] = error
    except Exception as failure:  # noqa: BLE001 - sent by somebody else, with something else
        project_requests().record_error("taking note of an exception", failure)


def _outer(request: Any) -> dict[str, Any] | None:
    """Return the environ or scope of a request that an outer integration counts, else None."""
    outer: dict[str, Any] = getattr(request, "scope", request.META)
    return outer if WATCHED in outer else None


def _path(request: Any) -> str:
    """Return the path in the form of routes: with the project's mount point, not the server's."""
    mount: str = settings.FORCE_SCRIPT_NAME or ""
    return f"{mount.rstrip('/')}{request.path_info}"


def _route(request: Any) -> str | None:
    """Return the route by which a request found its view."""
    match = request.resolver_match
    if match is None:
        return None
    return _template(settings.FORCE_SCRIPT_NAME or "", match.route)


@lru_cache(maxsize=4096)
def _template(mount: str, route: str) -> str:
    return mount.rstrip("/") + readable_route(route)
