"""FastAPI: included routers, mounts, and whatever else its scope does not tell."""

from pathlib import Path
from typing import Any

import pytest
import starlette.routing
from fastapi import APIRouter, BackgroundTasks, Depends, FastAPI, HTTPException, Request, WebSocket
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.staticfiles import StaticFiles
from starlette.middleware.base import BaseHTTPMiddleware

from redmeter.integrations.asgi import RedmeterMiddleware
from redmeter.testing import MemoryMeter
from support.asgi import Answer, ask, connect
from support.counted import HUNG, Case, check_counted, recorded


async def plain(request: Request) -> PlainTextResponse:
    """Be a route of Starlette's within FastAPI."""
    return PlainTextResponse("plain")


async def user() -> str:
    """Return who asks."""
    return "ada"


def shop(folder: Path) -> FastAPI:
    """Return an application with routers within routers, mounts and traps."""
    (folder / "app.css").write_text("p {}")
    parts = APIRouter(prefix="/parts", dependencies=[Depends(user)])

    @parts.get("/{part_id}")
    async def part(part_id: int) -> dict[str, int]:
        return {"part": part_id}

    @parts.get("/")
    async def parts_of_it() -> list[int]:
        return []

    items = APIRouter()
    items.add_route("/plain/{word}", plain)

    @items.get("/{item_id}")
    async def item(item_id: int) -> dict[str, int]:
        return {"item": item_id}

    @items.websocket("/{item_id}/talk")
    async def talk(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.close()

    items.include_router(parts, prefix="/{item_id}")
    inner = FastAPI(openapi_url=None)
    inner.include_router(items, prefix="/items")

    @inner.get("/fail")
    async def fail() -> None:
        raise OverflowError("inner")

    app = FastAPI()

    @app.get("/users/{user_id}")
    def read_user(user_id: int) -> dict[str, int]:
        return {"user": user_id}

    @app.get("/refused")
    async def refused() -> None:
        raise HTTPException(402)

    @app.get("/handled")
    async def handled() -> None:
        raise LookupError("handled")

    @app.exception_handler(LookupError)
    async def handle(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"sorry": True}, 418)

    app.add_route("/plain", plain)
    app.include_router(items, prefix="/items")
    app.include_router(items, prefix="/v{version}/items")
    app.mount("/static", StaticFiles(directory=folder))
    app.mount("/inner", inner)
    app.mount("/inner-of/{tenant}", inner)
    app.include_router(mounting(folder), prefix="/media")
    return app


def mounting(folder: Path) -> APIRouter:
    """Return a router with a mount."""
    router = APIRouter()
    router.mount("/files", StaticFiles(directory=folder))
    return router


CASES = [
    ("GET", "/users/7", "/users/{user_id}", 200),
    ("GET", "/users/x", "/users/{user_id}", 422),
    ("POST", "/users/7", "/users/{user_id}", 405),
    ("GET", "/users/7/", "(unmatched)", 307),
    ("GET", "/refused", "/refused", 402),
    ("GET", "/handled", "/handled", 418),
    ("GET", "/plain", "/plain", 200),
    ("GET", "/docs", "/docs", 200),
    ("GET", "/openapi.json", "/openapi.json", 200),
    ("GET", "/items/7", "/items/{item_id}", 200),
    ("DELETE", "/items/7", "/items/{item_id}", 405),
    ("GET", "/items/plain/tea", "/items/plain/{word}", 200),
    ("GET", "/items/7/parts/3", "/items/{item_id}/parts/{part_id}", 200),
    ("GET", "/items/7/parts/", "/items/{item_id}/parts/", 200),
    ("GET", "/v2/items/7", "/v{version}/items/{item_id}", 200),
    ("GET", "/v2/items/7/parts/3", "/v{version}/items/{item_id}/parts/{part_id}", 200),
    ("GET", "/v2/items/plain/tea", "/v{version}/items/plain/{word}", 200),
    ("GET", "/items/7/none", "(unmatched)", 404),
    ("GET", "/static/app.css", "/static/{path}", 200),
    ("GET", "/static/none", "/static/{path}", 404),
    ("GET", "/inner/items/7", "/inner/items/{item_id}", 200),
    ("GET", "/inner/items/7/parts/3", "/inner/items/{item_id}/parts/{part_id}", 200),
    ("GET", "/inner-of/acme/items/7", "/inner-of/{tenant}/items/{item_id}", 200),
    ("GET", "/inner/none", "(unmatched)", 404),
    ("GET", "/none", "(unmatched)", 404),
]


@pytest.mark.parametrize("hung", HUNG)
@pytest.mark.parametrize("case", CASES)
def test_a_request_is_counted_by_the_template_of_its_route(
    tmp_path: Path, memory: MemoryMeter, case: Case, hung: str
) -> None:
    """With the prefixes of all routers and mounts around it."""
    check_counted(lambda: shop(tmp_path), memory, case, hung)


def test_a_mount_of_an_included_router_has_its_prefix(tmp_path: Path, memory: MemoryMeter) -> None:
    """As far as FastAPI serves it: older versions leave such mounts out."""
    answered = ask(RedmeterMiddleware(shop(tmp_path), memory), "/media/files/app.css")
    known = ("/media/files/{path}", "2xx") if answered.status == 200 else ("(unmatched)", "4xx")
    assert recorded(memory) == ("GET", *known)


def test_a_root_path_of_the_application_is_no_part_of_a_route(
    tmp_path: Path, memory: MemoryMeter
) -> None:
    """As behind a proxy that takes it off, or leaves it."""
    for path in ("/v2/items/7/parts/3", "/api/v2/items/7/parts/3"):
        app = shop(tmp_path)
        app.root_path = "/api"
        assert ask(RedmeterMiddleware(app, memory), path).status == 200
        assert recorded(memory) == ("GET", "/v{version}/items/{item_id}/parts/{part_id}", "2xx")


def test_a_websocket_of_an_included_router_has_its_prefix(
    tmp_path: Path, memory: MemoryMeter
) -> None:
    """Of each of its two ways."""
    app = RedmeterMiddleware(shop(tmp_path), memory)
    connect(app, "/v2/items/7/talk")
    assert recorded(memory) == ("WEBSOCKET", "/v{version}/items/{item_id}/talk", "1xx")


def test_other_middleware_does_not_hide_the_route(tmp_path: Path, memory: MemoryMeter) -> None:
    """Neither inside nor outside, of the kind that runs the application in a task of its own."""

    async def dispatch(request: Request, call_next: Any) -> Any:
        return await call_next(request)

    app = shop(tmp_path)
    app.add_middleware(BaseHTTPMiddleware, dispatch=dispatch)
    app.add_middleware(RedmeterMiddleware, meter=memory)
    app.add_middleware(BaseHTTPMiddleware, dispatch=dispatch)
    assert ask(app, "/v2/items/7").status == 200
    assert recorded(memory) == ("GET", "/v{version}/items/{item_id}", "2xx")


def test_an_exception_of_a_sub_application_is_a_message(
    tmp_path: Path, memory: MemoryMeter
) -> None:
    """With the whole route and the place; it goes on as it did."""
    app = shop(tmp_path)
    app.add_middleware(RedmeterMiddleware, meter=memory)
    answered = ask(app, "/inner-of/acme/fail")
    assert (answered.status, type(answered.error)) == (500, OverflowError)
    assert recorded(memory) == ("GET", "/inner-of/{tenant}/fail", "5xx")
    (found,) = memory.log_frequencies("http")
    assert found.pattern.startswith(
        "GET /inner-of/{tenant}/fail [OverflowError at test_fastapi.py:"
    )


def background(memory: MemoryMeter, *, fails: bool) -> Answer:
    """Ask for something after which there is work for a minute."""
    app = FastAPI()

    def work() -> None:
        memory.clock.advance(60)
        if fails:
            raise ValueError("too late")

    @app.get("/order")
    async def order(tasks: BackgroundTasks) -> str:
        memory.clock.advance(0.5)
        tasks.add_task(work)
        return "done"

    return ask(RedmeterMiddleware(app, memory), "/order")


def test_background_tasks_are_no_part_of_the_duration(memory: MemoryMeter) -> None:
    """The client has its answer before they begin; they run all the same."""
    before = memory.clock.monotonic()
    assert background(memory, fails=False).body == b'"done"'
    assert memory.clock.monotonic() - before == 60.5
    assert memory.observed('http_request_seconds{method="GET",route="/order"}') == [0.5]
    assert memory.messages == []


def test_a_background_task_that_fails_is_logged_beside_the_request(memory: MemoryMeter) -> None:
    """The request itself was answered."""
    answered = background(memory, fails=True)
    assert isinstance(answered.error, ValueError)
    assert recorded(memory) == ("GET", "/order", "2xx")
    (found,) = memory.log_frequencies("http")
    assert found.pattern.startswith("GET /order [ValueError at test_fastapi.py:")
    assert [m.time for m in memory.log_messages("http")] == [memory.clock.wall()]


def test_one_endpoint_of_many_routes_is_told_apart_by_the_path(memory: MemoryMeter) -> None:
    """With each method by itself."""
    app = FastAPI()

    @app.get("/a/{x}")
    @app.post("/b/{x}")
    @app.get("/b/{x}/c")
    async def any_of_them(x: str) -> str:
        return x

    app = RedmeterMiddleware(app, memory)  # type: ignore[assignment]
    for method, path, route in (
        ("GET", "/a/1", "/a/{x}"),
        ("POST", "/b/1", "/b/{x}"),
        ("GET", "/b/1", "/b/{x}"),
        ("GET", "/b/1/c", "/b/{x}/c"),
    ):
        memory.forget()
        ask(app, path, method)
        assert recorded(memory)[1] == route


@pytest.mark.skipif(not hasattr(FastAPI, "frontend"), reason="no such feature in this version")
def test_static_pages_of_a_frontend_are_one_route(tmp_path: Path, memory: MemoryMeter) -> None:
    """By the prefix under which they lie."""
    (tmp_path / "index.html").write_text("hello")
    (tmp_path / "about.html").write_text("about")
    for prefix, route in (("/", "/{path}"), ("/pages", "/pages/{path}")):
        memory.forget()
        app = FastAPI()
        app.frontend(prefix, directory=tmp_path)
        for page in ("/index.html", "/about.html"):
            assert ask(RedmeterMiddleware(app, memory), prefix.rstrip("/") + page).status == 200
        assert recorded(memory) == ("GET", route, "2xx")


def test_routes_that_are_added_later_are_found(memory: MemoryMeter) -> None:
    """While the application serves."""
    app = FastAPI()
    around = RedmeterMiddleware(app, memory)
    assert ask(around, "/late/7").status == 404
    app.router.routes.append(starlette.routing.Route("/late/{x}", plain))
    memory.forget()
    assert ask(around, "/late/7").status == 200
    assert recorded(memory) == ("GET", "/late/{x}", "2xx")
