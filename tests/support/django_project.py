"""A Django project for tests: a database in memory, a few pages of all kinds."""

import asyncio
import io
from collections.abc import AsyncIterator, Iterator
from typing import Any

from django.conf import settings  # type: ignore[import-untyped]
from django.core.exceptions import (  # type: ignore[import-untyped]
    PermissionDenied,
    SuspiciousOperation,
)
from django.http import (  # type: ignore[import-untyped]
    FileResponse,
    Http404,
    HttpResponse,
    StreamingHttpResponse,
)
from django.urls import include, path, re_path  # type: ignore[import-untyped]
from django.views.decorators.http import require_GET  # type: ignore[import-untyped]

MIDDLEWARE = "redmeter.integrations.django.RedmeterMiddleware"

if not settings.configured:
    settings.configure(
        ROOT_URLCONF=__name__,
        SECRET_KEY="not one",
        ALLOWED_HOSTS=["*"],
        MIDDLEWARE=[MIDDLEWARE, "django.middleware.common.CommonMiddleware"],
        INSTALLED_APPS=["redmeter.integrations.django"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        USE_TZ=True,
        LOGGING_CONFIG=None,
    )


def index(request: Any, **_: Any) -> HttpResponse:
    return HttpResponse(f"page {request.path}")


def broken(request: Any) -> HttpResponse:
    raise LookupError("no such plate")


def missing(request: Any, **_: Any) -> HttpResponse:
    raise Http404("no such user")


def denied(request: Any) -> HttpResponse:
    raise PermissionDenied


def suspicious(request: Any) -> HttpResponse:
    raise SuspiciousOperation("odd")


def stream(request: Any) -> StreamingHttpResponse:
    def pieces() -> Iterator[str]:
        yield "a"
        if "fail" in request.GET:
            raise ValueError("half way")
        yield "b"

    kind = "text/event-stream" if "events" in request.GET else None
    return StreamingHttpResponse(pieces(), content_type=kind)


async def astream(request: Any) -> StreamingHttpResponse:
    async def pieces() -> AsyncIterator[str]:
        yield "a"
        if "fail" in request.GET:
            raise ValueError("half way")
        if "wait" in request.GET:
            await asyncio.Event().wait()
        yield "b"

    return StreamingHttpResponse(pieces())


async def apage(request: Any, number: int) -> HttpResponse:
    return HttpResponse(f"async {number}")


async def abroken(request: Any) -> HttpResponse:
    raise LookupError("no such async plate")


async def forever(request: Any) -> HttpResponse:
    request.scope["reached"].set()
    await asyncio.Event().wait()
    return HttpResponse("never")


async def cancelled(request: Any) -> HttpResponse:
    task = asyncio.ensure_future(asyncio.Event().wait())
    await asyncio.sleep(0)
    task.cancel()
    if "stream" not in request.GET:
        await task

    async def pieces() -> AsyncIterator[str]:
        yield "a"
        await task

    return StreamingHttpResponse(pieces())


def download(request: Any) -> FileResponse:
    return FileResponse(io.BytesIO(b"x" * 9000), content_type="text/plain")


class Timeout(BaseException):
    """As that of gevent."""


def sleeping(request: Any) -> HttpResponse:
    raise Timeout if "timeout" in request.GET else SystemExit(3)


def template(request: Any) -> HttpResponse:
    class Late(HttpResponse):  # type: ignore[misc]
        def render(self) -> HttpResponse:
            raise KeyError("no such template")

    return Late()


api = [
    path("users/<int:pk>/", index),
    re_path(r"^v1/(?P<item>[^/.]+)(?:\.(?P<form>[a-z]+))?/$", index),
]

urlpatterns = [
    path("", index),
    path("broken", broken),
    path("missing/<slug:what>", missing),
    path("denied", denied),
    path("suspicious", suspicious),
    path("stream", stream),
    path("astream", astream),
    path("apage/<int:number>", apage),
    path("abroken", abroken),
    path("forever", forever),
    path("cancelled", cancelled),
    path("download", download),
    path("sleeping", sleeping),
    path("template", template),
    path("get", require_GET(index)),
    path("slash/", index),
    path("api/", include((api, "api"), namespace="first")),
    re_path(r"^other/", include((api, "api"), namespace="second")),
    re_path(r"^articles/(?P<year>[0-9]{4})/$", index),
    re_path(r"^unnamed/(\d+)/$", lambda request, *_: index(request)),
]


def host_of(request: Any) -> dict[str, str]:
    return {"host": request.get_host().partition(":")[0]}
