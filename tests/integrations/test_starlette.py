"""Starlette: a route is its template, with the mounts before it, whatever matched."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import starlette.routing
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Host, Mount, Route, Router, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket

from redmeter.integrations.asgi import RedmeterMiddleware
from redmeter.integrations.shared import routes
from redmeter.names import parse_name
from redmeter.testing import MemoryMeter
from support.asgi import ask, connect, http_scope
from support.counted import HUNG, Case, check_counted, recorded


async def answer(request: Request) -> Response:
    """Answer what was asked for."""
    return PlainTextResponse(f"{request.method} {dict(request.path_params)}")


async def fail(request: Request) -> Response:
    """Fail."""
    raise ValueError("no such plan")


class Page(HTTPEndpoint):
    """A route that is a class."""

    async def get(self, request: Request) -> Response:
        """Answer."""
        return PlainTextResponse(f"page by {request.method}")


async def talk(socket: WebSocket) -> None:
    """Say back what was said, until told to go."""
    await socket.accept()
    text = await socket.receive_text()
    await socket.send_text(text)
    await socket.close()


async def raw(scope: Any, receive: Any, send: Any) -> None:
    """Be an application without routes."""
    await PlainTextResponse("raw")(scope, receive, send)


def around(app: Any) -> Any:
    """Be a middleware that answers some requests by itself, and copies the scope of all others."""

    async def middleware(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["query_string"] == b"stop":
            await PlainTextResponse("no", 401)(scope, receive, send)
        else:
            await app(dict(scope), receive, send)

    middleware.app = app  # type: ignore[attr-defined]
    return middleware


def shop(folder: Path, *middleware: Any) -> Starlette:
    """Return an application with most of what routes can be."""
    (folder / "app.css").write_text("p {}")
    items = [Route("/items/{id:int}", answer), Route("/", answer), Route("/fail", fail)]
    return Starlette(
        routes=[
            Route("/", answer),
            Route("/users/{user_id}", answer, methods=["GET", "POST"]),
            Route("/users/{user_id}", Page, methods=["DELETE"]),
            Route("/same", answer),
            Route("/files/{path:path}", answer),
            Route("/page", Page),
            Route("/fail", fail),
            Route("/slash/", answer),
            WebSocketRoute("/talk/{room}", talk),
            Mount("/static", StaticFiles(directory=folder)),
            Mount("/raw", raw),
            Mount("/sub", Starlette(routes=items)),
            Mount("/wrapped", around(Starlette(routes=[Route("/deep/{x}", talk_not)]))),
            Mount("/tenants/{tenant}", routes=[Mount("/inner", routes=items)]),
            Mount("/again", Router(items)),
            Host("api.example", Router([Route("/of-host/{x}", Page)])),
        ],
        middleware=[Middleware(each) for each in middleware],
    )


async def talk_not(request: Request) -> Response:
    """Answer, for one route alone."""
    return PlainTextResponse("deep")


CASES = [
    ("GET", "/", "/", 200),
    ("GET", "/users/7", "/users/{user_id}", 200),
    ("POST", "/users/7", "/users/{user_id}", 200),
    ("HEAD", "/users/7", "/users/{user_id}", 200),
    ("OPTIONS", "/users/7", "/users/{user_id}", 405),
    ("PATCH", "/users/7", "/users/{user_id}", 405),
    ("GET", "/users/7/../8", "(unmatched)", 404),
    ("GET", "/same", "/same", 200),
    ("GET", "/files/a/b/c.txt", "/files/{path}", 200),
    ("GET", "/page", "/page", 200),
    ("POST", "/page", "/page", 405),
    ("GET", "/slash", "(unmatched)", 307),
    ("GET", "/slash/", "/slash/", 200),
    ("GET", "/static/app.css", "/static/{path}", 200),
    ("GET", "/static/none.css", "/static/{path}", 404),
    ("POST", "/static/app.css", "/static/{path}", 405),
    ("GET", "/raw/anything/below", "/raw/{path}", 200),
    ("GET", "/sub/items/3", "/sub/items/{id}", 200),
    ("GET", "/sub/", "/sub/", 200),
    ("GET", "/sub/none", "(unmatched)", 404),
    ("GET", "/wrapped/none", "(unmatched)", 404),
    ("GET", "/tenants/acme/inner/items/3", "/tenants/{tenant}/inner/items/{id}", 200),
    ("GET", "/tenants/acme/inner/", "/tenants/{tenant}/inner/", 200),
    ("GET", "/tenants/acme/none", "(unmatched)", 404),
    ("GET", "/again/items/3", "/again/items/{id}", 200),
    ("POST", "/again/items/3", "/again/items/{id}", 405),
    ("GET", "/nothing/here", "(unmatched)", 404),
    ("GET", "/%00/\x00/\u202e", "(unmatched)", 404),
    ("PROPFIND", "/users/7", "/users/{user_id}", 405),
]


@pytest.mark.parametrize("hung", HUNG)
@pytest.mark.parametrize("case", CASES)
def test_a_request_is_counted_by_the_template_of_its_route(
    tmp_path: Path, memory: MemoryMeter, case: Case, hung: str
) -> None:
    """Whether the middleware is the application's own, or stands around it."""
    check_counted(lambda: shop(tmp_path), memory, case, hung)


def test_a_root_path_of_the_server_is_no_part_of_a_route(
    tmp_path: Path, memory: MemoryMeter
) -> None:
    """As with uvicorn --root-path."""
    app = RedmeterMiddleware(shop(tmp_path), memory)
    answered = ask(app, "/proxy/again/items/3", root_path="/proxy")
    assert answered.status == 200
    assert recorded(memory) == ("GET", "/again/items/{id}", "2xx")


def test_routes_of_a_host_have_no_prefix(tmp_path: Path, memory: MemoryMeter) -> None:
    """The host is none of the route; at another one, the path is unmatched."""
    app = RedmeterMiddleware(shop(tmp_path), memory)
    assert ask(app, "/of-host/3").status == 404
    assert recorded(memory) == ("GET", "(unmatched)", "4xx")
    memory.forget()
    assert ask(app, "/of-host/3", headers=[(b"host", b"api.example")]).status == 200
    assert recorded(memory) == ("GET", "/of-host/{x}", "2xx")


def test_what_was_answered_before_routing_is_matched_by_its_path(
    tmp_path: Path, memory: MemoryMeter
) -> None:
    """By another middleware, which may also have copied the scope."""
    for app in (
        RedmeterMiddleware(shop(tmp_path, around), memory),
        shop(tmp_path, lambda app: RedmeterMiddleware(app, memory), around),
    ):
        for path in ("/users/7?stop", "/tenants/acme/inner/items/3?stop"):
            assert ask(app, path).status == 401
        assert ask(app, "/users/7").status == 200
        assert ask(app, "/sub/none").status == 404
    found = sorted(each for each in memory.names() if each.startswith("http_requests"))
    assert [parse_name(each).label("route") for each in found] == [
        "(unmatched)",
        "/tenants/{tenant}/inner/items/{id}",
        "/users/{user_id}",
        "/users/{user_id}",
    ]


def test_routes_that_cannot_be_seen_are_told_as_far_as_starlette_tells_them(
    memory: MemoryMeter,
) -> None:
    """Those of an application within a closure, of which newer versions leave the route behind."""
    hidden = Starlette(routes=[Route("/deep/{x}", answer)])

    async def closed(scope: Any, receive: Any, send: Any) -> None:
        await hidden(scope, receive, send)

    app = RedmeterMiddleware(Starlette(routes=[Mount("/sub", closed)]), memory)
    assert ask(app, "/sub/deep/7").status == 200
    _, route, _ = recorded(memory)
    assert route == ("/deep/{x}" if _SETS_ROUTE else "(unmatched)")


#: Whether this version does.
_SETS_ROUTE = 'scope["route"]' in inspect.getsource(starlette.routing)


def test_an_application_within_itself_is_walked_to_an_end(memory: MemoryMeter) -> None:
    """As deep as anybody goes."""
    app = Starlette(routes=[Route("/{x}", answer)])
    app.mount("/a", app)
    app.mount("/b", app)
    for path, route in (("/7", "/{x}"), ("/a/b/7", "/a/b/{x}")):
        memory.forget()
        assert ask(RedmeterMiddleware(app, memory), path).status == 200
        assert recorded(memory)[1] == route


def test_endpoints_are_remembered_within_a_limit(
    memory: MemoryMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit is looked up each time."""
    monkeypatch.setattr(routes, "KNOWN", 2)

    def made() -> Any:
        async def endpoint(request: Request) -> Response:
            return PlainTextResponse("made")

        return endpoint

    app = RedmeterMiddleware(Starlette(routes=[Route(f"/{n}", made()) for n in range(5)]), memory)
    for number in range(5):
        ask(app, f"/{number}")
    found = (each for each in memory.names() if each.startswith("http_requests"))
    assert [parse_name(each).label("route") for each in found] == [f"/{n}" for n in range(5)]
    assert len(app._finder._known) == 2


def test_what_is_matched_by_its_path_has_the_route_of_its_method(memory: MemoryMeter) -> None:
    """As the router would have found it; where there is none, that of another method."""
    two = [
        Route("/x/{read}", answer, methods=["GET"]),
        Route("/x/{written}", answer, methods=["POST"]),
    ]
    app = RedmeterMiddleware(around(Starlette(routes=two)), memory)
    for method, route in (("POST", "/x/{written}"), ("GET", "/x/{read}"), ("PUT", "/x/{read}")):
        memory.forget()
        assert ask(app, "/x/7?stop", method).status == 401
        assert recorded(memory)[1] == route


PREFLIGHT = [(b"origin", b"http://a.example"), (b"access-control-request-method", b"POST")]


def cross_origin(app: Any) -> Any:
    """Answer preflights."""
    return CORSMiddleware(app, allow_origins=["*"], allow_methods=["*"])


@pytest.mark.parametrize(
    ("path", "headers", "route"),
    [
        ("/users/7", PREFLIGHT, "/users/{user_id}"),
        ("/admin/carts/7", PREFLIGHT, "/admin/carts/{written}"),
        ("/static/app.css", PREFLIGHT, "/static/{path}"),
        ("/page/7", PREFLIGHT, "/{path}"),
        ("/users/7?stop", [], "/users/{user_id}"),
        ("/admin/carts/7?stop", [], "/admin/carts/{read}"),
    ],
)
def test_a_preflight_has_the_route_of_what_it_asks_for(
    memory: MemoryMeter, path: str, headers: list[Any], route: str
) -> None:
    """Whatever is mounted beside it, and takes all methods: as the router would have found it."""
    carts = [
        Route("/carts/{read}", answer, methods=["GET"]),
        Route("/carts/{written}", answer, methods=["POST"]),
    ]
    inner = [
        Mount("/static", raw),
        Mount("/admin", Starlette(routes=carts)),
        Route("/users/{user_id}", answer, methods=["POST"]),
        Route("/page/{number}", answer, methods=["GET"]),
        Mount("/", raw),
    ]
    app = RedmeterMiddleware(cross_origin(around(Starlette(routes=inner))), memory)
    assert ask(app, path, "OPTIONS", headers=headers).status == (200 if headers else 401)
    assert recorded(memory)[1] == route


@pytest.mark.parametrize(
    ("path", "status", "route"),
    [
        ("/admin/users/3?stop", 401, "/admin/users/{id}"),
        ("/admin/users/3", 200, "/admin/users/{id}"),
        ("/admin/none?stop", 401, "(unmatched)"),
        ("/admin/none", 404, "(unmatched)"),
        ("/mounted/users/3?stop", 401, "/mounted/users/{id}"),
        ("/mounted/none", 404, "(unmatched)"),
    ],
)
@pytest.mark.parametrize("hung", ["within", "around"])
def test_what_a_middleware_of_a_mount_answers_has_its_route(
    memory: MemoryMeter, hung: str, path: str, status: int, route: str
) -> None:
    """Of a sub-application, or of the mount itself; what is not there is unmatched as ever."""
    users = [Route("/users/{id}", answer)]
    guard = [Middleware(around)]
    shop = Starlette(
        routes=[
            Mount("/admin", Starlette(routes=users, middleware=guard)),
            Mount("/mounted", routes=users, middleware=guard),
            Route("/{everything:path}", answer),
        ]
    )
    if hung == "within":
        shop.add_middleware(RedmeterMiddleware, meter=memory)
    app: Any = shop if hung == "within" else RedmeterMiddleware(shop, memory)
    for _ in range(2):
        assert ask(app, path).status == status
    assert recorded(memory)[1] == route


def test_routes_that_come_later_are_found_by_their_path(memory: MemoryMeter) -> None:
    """Those of a mounted application, too."""
    inner = Starlette()
    shop = Starlette(routes=[Mount("/sub", inner)])
    app = RedmeterMiddleware(around(shop), memory)
    for path in ("/late/7?stop", "/sub/late/7?stop"):
        ask(app, path)
    assert recorded(memory)[1] == "(unmatched)"
    inner.router.routes.append(Route("/late/{x}", answer))
    shop.router.routes.append(Route("/late/{x}", answer))
    for path in ("/late/7?stop", "/sub/late/7?stop"):
        memory.forget()
        ask(app, path)
        assert recorded(memory)[1] == path.replace("7?stop", "{x}")


def test_a_route_that_ignores_case_is_found_by_its_path(memory: MemoryMeter) -> None:
    """By whatever its regular expression takes, not by how its template begins."""
    route = Route("/Users/{user_id}", answer)
    route.path_regex = re.compile(route.path_regex.pattern, re.IGNORECASE)
    app = RedmeterMiddleware(around(Starlette(routes=[route])), memory)
    ask(app, "/users/7?stop")
    assert recorded(memory)[1] == "/Users/{user_id}"


def test_only_routes_that_begin_alike_are_looked_at_closer(memory: MemoryMeter) -> None:
    """Up to the first that fits, however many there are."""
    many = [Route(f"/part{number}/{{id}}", answer) for number in range(50)]
    shop = Starlette(routes=[*many, Mount("/tenants/{tenant}", routes=many)])
    found = routes.RouteFinder(shop)
    scope = http_scope("GET", "/part7/3")
    assert found.route(scope, None) == "/part7/{id}"
    looked: list[str] = []

    class Regex:
        def __init__(self, template: str) -> None:
            self.template = template

        def match(self, _path: str) -> None:
            looked.append(self.template)

    for number, route in enumerate(found._all):
        regexes: Any = (Regex(route.template or ""),)
        found._all[number] = route._replace(regexes=regexes)
    assert found.route(scope, None) is None
    assert looked == ["/part7/{id}"]


def test_a_middleware_of_a_mounted_application_sees_its_requests_alone(
    tmp_path: Path, memory: MemoryMeter
) -> None:
    """By the whole template, with the mount."""
    inner = Starlette(routes=[Route("/items/{id}", answer)])
    inner.add_middleware(RedmeterMiddleware, meter=memory)
    app = Starlette(routes=[Mount("/v{version}", inner), Route("/", answer)])
    assert ask(app, "/").status == 200
    assert ask(app, "/v2/items/3").status == 200
    assert recorded(memory) == ("GET", "/v{version}/items/{id}", "2xx")


def test_a_connection_of_a_websocket_is_counted_when_it_ends(
    tmp_path: Path, memory: MemoryMeter
) -> None:
    """As a request with a method of its own, and the status by which it began."""
    app = RedmeterMiddleware(shop(tmp_path), memory, exact_status=True)
    connect(app, "/talk/tea", {"type": "websocket.receive", "text": "hello"})
    assert recorded(memory) == ("WEBSOCKET", "/talk/{room}", "101")
    memory.forget()
    connect(app, "/none")
    assert recorded(memory) == ("WEBSOCKET", "(unmatched)", "403")


def test_an_exception_is_a_message_with_its_route_and_place(
    tmp_path: Path, memory: MemoryMeter
) -> None:
    """The 500 that Starlette makes of it is counted once, wherever the middleware hangs."""
    within = shop(tmp_path)
    within.add_middleware(RedmeterMiddleware, meter=memory)
    for app in (within, RedmeterMiddleware(shop(tmp_path), memory)):
        memory.forget()
        answered = ask(app, "/sub/fail")
        assert answered.status == 500
        assert isinstance(answered.error, ValueError)
        assert recorded(memory) == ("GET", "/sub/fail", "5xx")
        (found,) = memory.log_frequencies("http")
        assert found.pattern.startswith("GET /sub/fail [ValueError at test_starlette.py:")
        assert found.pattern.endswith(" in fail]")


def streaming(*parts: bytes, wait: Callable[[], None] = lambda: None) -> Any:
    """Return an application that sends its body in parts."""

    async def stream(request: Request) -> Response:
        async def made() -> Any:
            for part in parts:
                wait()
                yield part

        return StreamingResponse(made())

    return Starlette(routes=[Route("/stream", stream)])


@pytest.mark.parametrize("spec", ["2.3", "2.4"])
def test_a_stream_lasts_until_its_last_part(memory: MemoryMeter, spec: str) -> None:
    """Each part is passed on as it comes."""
    app = RedmeterMiddleware(
        streaming(b"a", b"b", b"c", wait=lambda: memory.clock.advance(2)), memory
    )
    answered = ask(app, "/stream", asgi={"version": "3.0", "spec_version": spec})
    assert [m.get("body") for m in answered.messages[1:]] == [b"a", b"b", b"c", b""]
    assert memory.observed('http_request_seconds{method="GET",route="/stream"}') == [6]


@pytest.mark.parametrize("spec", ["2.3", "2.4"])
def test_a_client_that_leaves_a_stream_is_no_error(memory: MemoryMeter, spec: str) -> None:
    """Told by the server's message, or, since version 2.4, by an OSError."""

    def after(count: int) -> None:
        if count == 3 and spec == "2.4":
            raise OSError

    app = RedmeterMiddleware(streaming(*[b"a"] * 9), memory)
    ask(
        app,
        "/stream",
        leaves=spec == "2.3",
        after=after,
        asgi={"version": "3.0", "spec_version": spec},
    )
    assert recorded(memory) == ("GET", "/stream", "disconnected")
    assert memory.messages == []
