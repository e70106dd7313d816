"""The Django middleware: routes of all kinds, errors, streams, under WSGI and under ASGI."""

import asyncio
import contextlib
import gc
import io
import logging
from collections.abc import Iterator
from typing import Any
from wsgiref.util import FileWrapper, setup_testing_defaults
from wsgiref.validate import validator

import django  # type: ignore[import-untyped]
import pytest
from django.core import checks  # type: ignore[import-untyped]
from django.core.exceptions import MiddlewareNotUsed  # type: ignore[import-untyped]
from django.core.handlers.asgi import ASGIHandler  # type: ignore[import-untyped]
from django.core.handlers.wsgi import WSGIHandler  # type: ignore[import-untyped]
from django.core.signals import got_request_exception  # type: ignore[import-untyped]
from django.test import override_settings  # type: ignore[import-untyped]

from redmeter import Meter
from redmeter.integrations import asgi, wsgi
from redmeter.integrations.django import RedmeterMiddleware
from redmeter.integrations.django import meter as project_meter
from redmeter.integrations.django.apps import check_settings
from redmeter.integrations.django.routes import readable_route
from redmeter.names import parse_name
from redmeter.testing import MemoryMeter
from support import django_project

django.setup()
COMMON = "django.middleware.common.CommonMiddleware"


@pytest.fixture
def shop(memory: MemoryMeter) -> Iterator[MemoryMeter]:
    """The project, counted in memory; Django logs nothing."""
    logging.getLogger("django").setLevel(logging.CRITICAL)
    with override_settings(REDMETER_METER=memory):
        yield memory


def counted(memory: MemoryMeter) -> list[tuple[str, str]]:
    """Return route and status of each request, in their order."""
    found = [parse_name(one.series) for one in memory.events]
    labels = [dict(pairs) for name, pairs in found if name == "http_requests"]
    return [(one["route"], one["status"]) for one in labels]


def environ(path: str, method: str, **more: Any) -> dict[str, Any]:
    """Return what a WSGI server would hand over."""
    path, _, query = path.partition("?")
    found: dict[str, Any] = {"PATH_INFO": path, "REQUEST_METHOD": method, "QUERY_STRING": query}
    found["SCRIPT_NAME"] = ""
    setup_testing_defaults(found)
    return found | more


Answer = tuple[str, list[tuple[str, str]], bytes]


def ask(path: str, method: str = "GET", pieces: int = 100, **more: Any) -> Answer:
    """Ask as a WSGI server does; return status, headers and what was read of the body."""
    started: list[Any] = []
    result: Any = WSGIHandler()(environ(path, method, **more), lambda *sent: started.append(sent))
    body = [piece for _, piece in zip(range(pieces), result, strict=False)]
    result.close()
    return started[0][0], started[0][1], b"".join(body)


async def ask_asgi(path: str, method: str = "GET", leave: bool = False) -> Answer:
    """Ask as an ASGI server does; leave before it is done, if told to."""
    path, _, query = path.partition("?")
    scope: dict[str, Any] = {"reached": asyncio.Event()}
    scope |= {"type": "http", "method": method, "path": path, "query_string": query.encode()}
    scope |= {"headers": [(b"host", b"testserver")], "http_version": "1.1", "root_path": ""}
    asked = 0
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        nonlocal asked
        asked += 1
        if asked == 1:
            return {"type": "http.request", "body": b"", "more_body": False}
        if leave:
            await scope["reached"].wait()
        else:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)
        if message["type"] == "http.response.body":
            scope["reached"].set()

    await ASGIHandler()(scope, receive, send)
    start = sent[0] if sent else dict[str, Any](status=0, headers=[])
    headers = [(name.decode(), value.decode()) for name, value in start["headers"]]
    return str(start["status"]), headers, b"".join(each.get("body", b"") for each in sent)


def uncounted(path: str, method: str = "GET") -> Answer:
    """Ask the project without the middleware."""
    with override_settings(MIDDLEWARE=[COMMON]):
        return ask(path, method)


PAGES = [
    ("GET", "/", "/", "2xx"),
    ("HEAD", "/", "/", "2xx"),
    ("GET", "/missing/ada", "/missing/{what}", "4xx"),
    ("GET", "/nothing", "(unmatched)", "4xx"),
    ("GET", "/denied", "/denied", "4xx"),
    ("GET", "/suspicious", "/suspicious", "4xx"),
    ("POST", "/get", "/get", "4xx"),
    ("GET", "/slash", "(unmatched)", "3xx"),
    ("GET", "/api/users/7/", "/api/users/{pk}/", "2xx"),
    ("GET", "/other/users/7/", "/other/users/{pk}/", "2xx"),
    ("GET", "/api/v1/tea.json/", "/api/v1/{item}.{form}/", "2xx"),
    ("GET", "/articles/2026/", "/articles/{year}/", "2xx"),
    ("GET", "/unnamed/12/", "/unnamed/{0}/", "2xx"),
    ("GET", "/broken", "/broken", "5xx"),
    ("GET", "/template", "/template", "5xx"),
    ("GET", "/stream", "/stream", "2xx"),
    ("GET", "/download", "/download", "2xx"),
    ("GET", "/apage/3", "/apage/{number}", "2xx"),
]


@pytest.mark.parametrize(("method", "path", "route", "status"), PAGES)
def test_the_route_is_the_one_that_was_resolved(
    shop: MemoryMeter, method: str, path: str, route: str, status: str
) -> None:
    """With what includes it, and readable where it is a regular expression."""
    assert ask(path, method) == uncounted(path, method)
    assert counted(shop) == [(route, status)]
    assert shop.recorded("hits") == 1


@pytest.mark.parametrize(("method", "path", "route", "status"), PAGES)
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")
def test_it_is_the_same_under_asgi(
    shop: MemoryMeter, method: str, path: str, route: str, status: str
) -> None:
    """The whole way being asynchronous."""
    answer = asyncio.run(ask_asgi(path, method))
    with override_settings(MIDDLEWARE=[COMMON]):
        assert asyncio.run(ask_asgi(path, method)) == answer
    assert counted(shop) == [(route, status)]


def test_exceptions_are_logged_where_nobody_handles_them(shop: MemoryMeter) -> None:
    """A 404 that a view raises is an answer."""
    for _, path, _, _ in PAGES:
        ask(path)
    asyncio.run(ask_asgi("/abroken"))
    assert [one.pattern.partition(" at ")[0] for one in shop.messages] == [
        "GET /broken [LookupError",
        "GET /template [KeyError",
        "GET /abroken [LookupError",
    ]


def test_exceptions_of_other_middleware_are_logged_too(shop: MemoryMeter) -> None:
    """And those that it handles are not."""
    layers = [f"{__name__}.{name}" for name in ("handling", "failing")]
    with override_settings(MIDDLEWARE=[django_project.MIDDLEWARE, *layers]):
        ask("/")
        ask("/broken")
    assert counted(shop) == [("(unmatched)", "5xx"), ("/broken", "4xx")]
    (logged,) = shop.messages
    assert logged.pattern.startswith("GET (unmatched) [ZeroDivisionError at test_django.py")


def failing(get_response: Any) -> Any:
    """A middleware that fails for one page."""

    def middleware(request: Any) -> Any:
        return 1 / 0 if request.path == "/" else get_response(request)

    return middleware


class handling:
    """A middleware that makes an answer of an exception."""

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: Any) -> Any:
        return self.get_response(request)

    def process_exception(self, *_: Any) -> Any:
        from django.http import HttpResponse  # type: ignore[import-untyped]

        return HttpResponse("handled", status=409)


def test_a_signal_that_somebody_else_sends_is_no_trouble(shop: MemoryMeter) -> None:
    """With something that is no request."""
    RedmeterMiddleware(lambda request: request)
    for strange in ({"request": None}, {"request": 7}, {}):
        try:
            raise ValueError("nowhere")
        except ValueError:
            got_request_exception.send(sender=None, **strange)
    assert shop.messages == []


def test_exceptions_that_django_passes_on_are_counted_once(shop: MemoryMeter) -> None:
    """As it does where it is told to; and what ends a process is passed on anyway."""
    with override_settings(DEBUG_PROPAGATE_EXCEPTIONS=True), pytest.raises(LookupError):
        ask("/broken")
    with pytest.raises(SystemExit):
        ask("/sleeping")
    assert counted(shop) == [("/broken", "5xx"), ("/sleeping", "5xx")]
    assert len(shop.messages) == 2


def test_a_stream_is_timed_until_its_end(shop: MemoryMeter) -> None:
    """And passed on piece by piece."""
    result: Any = WSGIHandler()(environ("/stream", "GET"), lambda *_: None)
    pieces = iter(result)
    assert next(pieces) == b"a"
    assert shop.events == []
    shop.clock.advance(3.0)
    assert list(pieces) == [b"b"]
    shop.clock.advance(3.0)
    result.close()
    labels = {"method": "GET", "route": "/stream"}
    assert shop.observed("http_request_seconds", labels=labels) == [3.0]
    assert counted(shop) == [("/stream", "2xx")]
    assert shop.messages == []  # it is slow by when it began


def test_a_stream_of_events_took_as_long_as_its_start(shop: MemoryMeter) -> None:
    """How long it lived is no response time."""
    result: Any = WSGIHandler()(environ("/stream?events", "GET"), lambda *_: None)
    pieces = iter(result)
    next(pieces)
    shop.clock.advance(3.0)
    assert list(pieces) == [b"b"]
    labels = {"method": "GET", "route": "/stream"}
    assert shop.observed("http_request_seconds", labels=labels) == [0.0]
    assert shop.observed('event_stream_seconds{route="/stream"}') == [3.0]


def test_a_client_that_left_is_told_from_an_error(shop: MemoryMeter) -> None:
    """And an error on the way from a client that left."""
    ask("/stream", pieces=1)
    result: Any = WSGIHandler()(environ("/stream?fail", "GET"), lambda *_: None)
    with pytest.raises(ValueError, match="half way"):
        list(result)
    result.close()
    ask("/stream", method="HEAD", pieces=1)
    assert [status for _, status in counted(shop)] == ["disconnected", "5xx", "2xx"]
    assert len(shop.messages) == 1


@pytest.mark.parametrize(("pieces", "status"), [(5, "2xx"), (1, "disconnected")])
def test_a_stream_that_is_never_closed_is_recorded(
    shop: MemoryMeter, pieces: int, status: str
) -> None:
    """At its end, or when the server drops it."""
    result: Any = WSGIHandler()(environ("/stream", "GET"), lambda *_: None)
    for _ in zip(range(pieces), result, strict=False):
        pass
    del result
    gc.collect()  # Django's response and request refer to each other
    assert counted(shop) == [("/stream", status)]


@pytest.mark.filterwarnings("ignore:Unclosed file:ResourceWarning")
def test_a_stream_under_asgi_is_followed_to_its_end(shop: MemoryMeter) -> None:
    """Whole, and failing."""
    asyncio.run(ask_asgi("/astream"))
    with pytest.raises(ValueError, match="half way"):
        asyncio.run(ask_asgi("/astream?fail"))
    with pytest.raises(ValueError, match="half way"), pytest.warns(match="asynchronous iterator"):
        asyncio.run(ask_asgi("/stream?fail"))
    gc.collect()  # Django leaves the request's body open there
    assert counted(shop) == [("/astream", "2xx"), ("/astream", "5xx"), ("/stream", "5xx")]
    assert len(shop.messages) == 2


@pytest.mark.skipif(django.VERSION < (5, 0), reason="Django itself does not look before 5.0")
@pytest.mark.parametrize("path", ["/astream?wait", "/forever"])
def test_a_client_that_left_under_asgi_is_seen(shop: MemoryMeter, path: str) -> None:
    """In the middle of a response, and before there is any."""
    asyncio.run(ask_asgi(path, leave=True))
    assert counted(shop) == [(path.partition("?")[0], "disconnected")]
    assert shop.messages == []


@pytest.mark.skipif(django.VERSION < (5, 0), reason="Django itself does not look before 5.0")
@pytest.mark.parametrize("path", ["/cancelled", "/cancelled?stream"])
@pytest.mark.filterwarnings("ignore:Unclosed file:ResourceWarning")
def test_a_task_of_its_own_that_was_cancelled_is_the_failure_of_the_project(
    shop: MemoryMeter, path: str
) -> None:
    """The client is still there; a view or a stream awaits the task."""
    with contextlib.suppress(asyncio.CancelledError):  # the view's, which some versions pass on
        asyncio.run(ask_asgi(path))
    gc.collect()
    assert counted(shop) == [("/cancelled", "5xx")]
    (told,) = shop.logged("http", "error")
    assert "CancelledError" in told


@pytest.mark.filterwarnings("ignore:Unclosed file:ResourceWarning")
def test_what_ends_a_worker_is_recorded_with_its_route(shop: MemoryMeter) -> None:
    """Under WSGI and under ASGI, in Django's middleware and in one around it."""
    outer = MemoryMeter()
    with pytest.raises(SystemExit):
        ask("/sleeping")
    with pytest.raises(SystemExit):
        wsgi.RedmeterMiddleware(WSGIHandler(), outer)(environ("/sleeping", "GET"), lambda *_: None)
    for app in (ASGIHandler(), asgi.RedmeterMiddleware(ASGIHandler(), outer)):
        with pytest.raises(django_project.Timeout):  # SystemExit ends the event loop
            within_asgi(app, "/sleeping", b"timeout")
    gc.collect()  # Django leaves the request's body open there
    assert counted(shop) == counted(outer) == [("/sleeping", "5xx")] * 2
    assert len(shop.messages) == len(outer.messages) == 2


def test_a_file_is_handed_to_the_server_as_it_is(shop: MemoryMeter) -> None:
    """In the server's own wrapper; it is timed until that is closed."""
    env = environ("/download", "GET") | {"wsgi.file_wrapper": FileWrapper}
    result: Any = WSGIHandler()(env, lambda *_: None)
    assert type(result) is FileWrapper
    assert isinstance(result.filelike, io.BytesIO)
    shop.clock.advance(2.0)
    result.close()
    labels = {"method": "GET", "route": "/download"}
    assert shop.observed("http_request_seconds", labels=labels) == [2.0]
    assert counted(shop) == [("/download", "2xx")]


def test_the_rules_of_wsgi_are_kept(shop: MemoryMeter) -> None:
    """As wsgiref's validator sees it."""
    for path in ("/", "/stream"):
        result: Any = validator(WSGIHandler())(environ(path, "GET"), lambda *_: lambda *_: None)
        assert b"".join(result)
        result.close()


def test_where_a_project_is_mounted_is_told_by_the_project_alone(shop: MemoryMeter) -> None:
    """Servers and proxies take it from headers, which whoever asks may send."""
    for number in range(3):
        ask("/api/users/7/", SCRIPT_NAME=f"/secret{number}")
    with override_settings(FORCE_SCRIPT_NAME="/shop/"):
        ask("/api/users/7/")
    wanted = [("/api/users/{pk}/", "2xx")] * 3 + [("/shop/api/users/{pk}/", "2xx")]
    assert counted(shop) == wanted


def test_patterns_are_compared_with_the_path_within_the_project(memory: MemoryMeter) -> None:
    """As routes are written: with what the project says, without what a server says."""
    given_ = {"REDMETER_METER": memory, "REDMETER_IGNORE_PATHS": "/get /shop/get"}
    with override_settings(**given_, REDMETER_COUNT_PATHS="/api/*=api /shop/api/*=api"):
        for path in ("/get", "/api/users/7/"):
            ask(path, SCRIPT_NAME="/proxy")
            within_asgi(ASGIHandler(), f"/proxy{path}", root_path="/proxy")
            with override_settings(FORCE_SCRIPT_NAME="/shop/"):
                ask(path)
    assert memory.recorded("hits") == memory.recorded("api") == 3


def within_asgi(outer: Any, path: str, query: bytes = b"", root_path: str = "") -> None:
    """Ask the project through a middleware of ASGI."""
    environment = {"type": "http", "method": "GET", "path": path, "query_string": query}
    environment |= {"headers": [(b"host", b"shop")], "http_version": "1.1"}
    environment |= {"root_path": root_path}

    async def receive() -> dict[str, Any]:
        if "asked" in environment:
            await asyncio.Event().wait()
        environment["asked"] = ""
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        pass

    asyncio.run(outer(environment, receive, send))


@pytest.mark.parametrize("kind", ["asgi", "wsgi"])
def test_a_project_within_a_middleware_is_counted_once_with_its_route(
    shop: MemoryMeter, kind: str
) -> None:
    """By the outermost one; routes and exceptions are Django's."""
    outer = MemoryMeter()
    for path in ("/api/users/7/", "/nothing", "/broken"):
        if kind == "asgi":
            within_asgi(asgi.RedmeterMiddleware(ASGIHandler(), outer), path)
        else:
            app = wsgi.RedmeterMiddleware(WSGIHandler(), outer)
            result: Any = app(environ(path, "GET"), lambda *_: None)
            result.close()
    assert shop.events == []
    assert shop.messages == []
    assert counted(outer) == [
        ("/api/users/{pk}/", "2xx"),
        ("(unmatched)", "4xx"),
        ("/broken", "5xx"),
    ]
    (told,) = outer.logged("http", "error")
    assert told.startswith("GET /broken\n")


def test_settings_are_those_of_the_table(memory: MemoryMeter) -> None:
    """By the same names, in Django's settings."""
    with override_settings(
        REDMETER_METER=memory,
        REDMETER_IGNORE_PATHS=["/", "/stream"],
        REDMETER_EXACT_STATUS=True,
        REDMETER_CLEANER=True,
        REDMETER_LABELS="support.django_project.host_of",
        REDMETER_ROUTE=lambda request: "/mine" if request.path == "/get" else None,
    ):
        for path in ("/", "/stream", "/get", "/nothing"):
            ask(path)
        asyncio.run(ask_asgi("/"))
    assert counted(memory) == [("/mine", "200"), ("(unmatched)", "404")]
    (requests,) = {
        e.series for e in memory.events if "/mine" in e.series and "requests" in e.series
    }
    assert 'host="127.0.0.1"' in requests


def test_functions_of_the_project_that_fail_cost_nothing_else(memory: MemoryMeter) -> None:
    """Which are looked at, and counted as trouble."""
    with override_settings(
        REDMETER_METER=memory,
        REDMETER_LABELS=lambda _: 1 / 0,
        REDMETER_ROUTE=lambda _: 1 / 0,
    ):
        assert ask("/get")[0] == "200 OK"
    assert counted(memory) == [("/get", "2xx")]


@pytest.mark.parametrize(
    "wrong",
    [
        {"REDMETER_URL": "nonsense://x"},
        {"REDMETER_URL": 5},
        {"REDMETER_SLOW_REQUEST": "soon"},
        {"REDMETER_LABELS": "support.nowhere.labels"},
        {"REDMETER_ROUTE": 7},
        {"REDMETER_METER": "support.django_project.host_of"},
        {"REDMETER_IGNORE": "/health"},
        {"REDMETER_CLEANER": "often"},
    ],
    ids=str,
)
def test_a_setting_that_cannot_be_used_is_told_and_passed_over(wrong: dict[str, Any]) -> None:
    """The check says so; the project runs."""
    with override_settings(**{"REDMETER_URL": "off", **wrong}):
        (found,) = check_settings()
        assert isinstance(found, checks.Warning)
        assert next(iter(wrong)) in found.msg or next(iter(wrong))[9:].lower() in found.msg
        assert ask("/")[2] == b"page /"
        project_meter().count("mine")


def test_the_check_says_where_nothing_is_counted() -> None:
    """The app alone does not count."""
    with override_settings(REDMETER_URL="off"):
        assert checks.run_checks() == []
        with override_settings(MIDDLEWARE=[COMMON]):
            (found,) = checks.run_checks()
    assert found.id == "redmeter.W002"
    assert django_project.MIDDLEWARE in found.hint


def test_switched_off_it_is_not_in_the_way_at_all() -> None:
    """Django leaves it out."""
    with override_settings(REDMETER_URL="off"):
        assert ask("/")[2] == b"page /"
        assert repr(project_meter()) == "<Meter off>"
        with pytest.raises(MiddlewareNotUsed):
            RedmeterMiddleware(lambda request: request)


def test_the_meter_is_one_for_the_process(meter: Meter) -> None:
    """What is counted with it is stored beside the requests."""
    with override_settings(REDMETER_METER=meter):
        for _ in range(10):
            ask("/api/users/7/")
        assert project_meter() is meter
        project_meter().count("orders")
        assert meter.flush()
    labels = {"method": "GET", "route": "/api/users/{pk}/", "status": "2xx"}
    assert meter.total("http_requests", labels=labels) == 10
    assert meter.total("orders") == 1


@pytest.mark.parametrize(
    ("route", "wanted"),
    [
        ("", "/"),
        ("users/<int:pk>/", "/users/{pk}/"),
        ("<slug>", "/{slug}"),
        ("c++/", "/c++/"),
        ("feed.xml", "/feed.xml"),
        (r"^feed\.xml$", "/feed.xml"),
        (r"^articles/(?P<year>[0-9]{4})/(?P<month>\d{1,2})/$", "/articles/{year}/{month}/"),
        (r"^(?P<kind>(a|b(c)?))/(?P<x>[)(]+)/?$", "/{kind}/{x}/"),
        (r"api/^v1/(?P<id>[^/.]+)(?:\.(?P<f>\w+))?/?$", "/api/v1/{id}.{f}/"),
        (r"^a/(\d+)/\w+/[a-z]+/(?:x|y)/.*$", "/a/{0}/{1}/{2}/{3}/{4}"),
        (r"^(?:page-(?P<n>[0-9]+)/)?$", "/page-{n}/"),
        (r"^x(?=y)(?!z)\Z", "/x"),
        (r"^en/users/<int:pk>$", "/en/users/{pk}"),
        ("^(", "/{0}"),
        ("^[", "/{0}"),
        ("^a\\", "/a"),
        ("^a)b", "/a"),
    ],
)
def test_a_route_is_readable(route: str, wanted: str) -> None:
    """Parameters in braces, as in all frameworks; what is no route is no trouble either."""
    assert readable_route(route) == wanted
