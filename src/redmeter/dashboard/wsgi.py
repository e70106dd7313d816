"""The dashboard as a WSGI application. Imported where it is used.

a2wsgi runs the ASGI application in an event loop of its own, in a thread. That starts with the
first request of each process: a server may load the application before it forks. What a server may
hand over and a2wsgi cannot read is refused before.
"""

import http
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from a2wsgi import ASGIMiddleware
from starlette.types import ASGIApp

from redmeter.dashboard.api.serialize import as_json
from redmeter.dashboard.errors import HTTPError
from redmeter.dashboard.guard import HEADERS

StartResponse = Callable[..., Any]


class WSGI:
    """A WSGI application. A function for `access=` finds the environ in request.scope.

    Args:
        application: what answers.
    """

    def __init__(self, application: ASGIApp) -> None:
        self._application = application
        self._forget()
        # A thread does not come along into a fork, and a lock comes as somebody else holds it.
        forget = weakref.WeakMethod(self._forget)
        os.register_at_fork(after_in_child=lambda: (found := forget()) and found())

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._app: ASGIMiddleware | None = None

    def _made(self) -> ASGIMiddleware:
        """Return what answers in this process."""
        with self._lock:
            if self._app is None:
                self._app = ASGIMiddleware(self._application)  # type: ignore[arg-type]  # TypedDicts
            return self._app

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        try:
            environ.get("QUERY_STRING", "").encode("ascii")
            for part in ("SCRIPT_NAME", "PATH_INFO"):
                environ.get(part, "").encode("latin-1").decode()
        except UnicodeError:
            return _refused(start_response)
        return self._made()(environ, start_response)  # type: ignore[arg-type]  # its own TypedDict


def _refused(start_response: StartResponse) -> list[bytes]:
    fix = "encode it as UTF-8, then by percent signs"
    refusal = HTTPError(400, "not-utf-8", "the address is no UTF-8", fix)
    body = as_json(refusal.answer())
    headers = {**HEADERS, "Content-Type": "application/json", "Cache-Control": "no-store"}
    headers["Content-Length"] = str(len(body))
    status = f"{refusal.status} {http.HTTPStatus(refusal.status).phrase}"
    start_response(status, list(headers.items()))
    return [body]
