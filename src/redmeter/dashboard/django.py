"""The dashboard in the URLs of a Django project.

    path("metrics/", include(dashboard_urls(access=lambda request: request.user.is_staff)))

A function of the project controls access. It gets Django's request, with its session and user. A
view calls the WSGI application for the rest, under WSGI and ASGI alike.
"""

import inspect
import io
from collections.abc import Iterable
from typing import Any

from asgiref.sync import async_to_sync
from django.core.exceptions import (  # type: ignore[import-untyped]
    PermissionDenied,
    SuspiciousOperation,
)
from django.http import Http404, HttpRequest, HttpResponse  # type: ignore[import-untyped]
from django.http.response import HttpResponseBase  # type: ignore[import-untyped]
from django.urls import URLPattern, re_path  # type: ignore[import-untyped]

from redmeter.extras import needs

with needs("page", "the dashboard"):
    from redmeter.dashboard.access import Given, check_access, forbidden, logger, passes
    from redmeter.dashboard.app import Dashboard
    from redmeter.dashboard.guard import HEADERS, VITAL, error_response


def dashboard_urls(
    source: Any = None,
    *,
    access: Given = None,
    prefix: str | None = None,
    allowed_hosts: Iterable[str] | None = None,
) -> list[URLPattern]:
    """Return patterns for include(). Under a path that ends with a slash.

    Args:
        source, prefix: see Dashboard.
        access: a function, plain or async, that gets Django's request and returns whether it may
            pass, or a response; or "open" for everybody.
        allowed_hosts: as for Dashboard, in addition to the project's ALLOWED_HOSTS.

    Raises:
        InvalidSetting: see Dashboard.
    """
    policy = check_access(access)
    dashboard = Dashboard(source, access="open", prefix=prefix, allowed_hosts=allowed_hosts)

    def redmeter_dashboard(request: HttpRequest, rest: str) -> HttpResponseBase:
        if policy is not None and f"/{rest}" not in VITAL:
            reply = _said(policy, request)
            if isinstance(reply, HttpResponseBase):
                return reply
            if not passes(reply):
                return _forbidden()
        return _answered(dashboard, request, rest)

    return [re_path(r"^(?P<rest>.*)\Z", redmeter_dashboard, name="redmeter-dashboard")]


def _said(access: Any, request: HttpRequest) -> Any:
    try:
        reply = access(request)
        if inspect.isawaitable(reply):

            async def waited() -> Any:
                return await reply

            reply = async_to_sync(waited)()
    except (PermissionDenied, Http404, SuspiciousOperation):
        raise  # the project answers these
    except Exception:  # noqa: BLE001  whatever the project raises: nobody may then
        logger.exception("redmeter: access= of the dashboard failed; the request is refused")
        return False
    return reply


def _forbidden() -> HttpResponse:
    answer = error_response(forbidden())
    headers = {**HEADERS, "Cache-Control": "no-store"}
    return HttpResponse(answer.body, "application/json", 403, headers=headers)


def _answered(dashboard: Dashboard, request: HttpRequest, rest: str) -> HttpResponse:
    base = request.path[: len(request.path) - len(rest)].rstrip("/")
    environ = {
        **{key: text for key, text in request.META.items() if key.startswith("HTTP_")},
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": _raw(base),
        "PATH_INFO": _raw(f"/{rest}"),
        "QUERY_STRING": request.META.get("QUERY_STRING", ""),
        "SERVER_NAME": request.META.get("SERVER_NAME", "localhost"),
        "SERVER_PORT": str(request.META.get("SERVER_PORT", "80")),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_LENGTH": "0",
        "wsgi.url_scheme": request.scheme,
        "wsgi.input": io.BytesIO(),
    }
    response: list[Any] = []
    body = b"".join(dashboard.wsgi(environ, lambda *given: response.extend(given)))
    status, headers = response[0], dict(response[1])
    code, _, reason = status.partition(" ")
    return HttpResponse(
        body, headers.pop("content-type", None), int(code), reason=reason, headers=headers
    )


def _raw(path: str) -> str:
    """Return a path in the form of an environ: its bytes, as Latin-1 (PEP 3333)."""
    return path.encode("utf-8", "surrogateescape").decode("latin-1")
