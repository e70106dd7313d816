"""Routes of Litestar, Quart and Falcon: by template, as those of Starlette are."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from redmeter.integrations import asgi, wsgi
from redmeter.names import parse_name
from redmeter.testing import MemoryMeter
from support.asgi import call, http_scope

litestar = pytest.importorskip("litestar")
quart = pytest.importorskip("quart")
falcon = pytest.importorskip("falcon")
falcon_asgi = pytest.importorskip("falcon.asgi")
falcon_testing = pytest.importorskip("falcon.testing")

Counted = dict[tuple[str, str], int]


def counted(memory: MemoryMeter) -> Counted:
    """Return how many requests were counted: (route, status) -> how many."""
    found: Counted = {}
    for event in memory.events:
        labels = dict(parse_name(event.series).labels)
        if event.amount and "status" in labels:
            key = labels["route"], labels["status"]
            found[key] = found.get(key, 0) + event.amount
    return found


def ask(app: Any, *paths: str, method: str = "GET") -> None:
    """Ask an ASGI application for paths, one after the other."""

    async def serve() -> None:
        for path in paths:
            await call(app, http_scope(method, path), [{"type": "http.request", "body": b""}])

    asyncio.run(serve())


def litestar_app() -> Any:
    """Return an application with a parameter, a router, a mount, and a handler that fails."""

    async def user() -> str:
        return "seven"

    async def fail() -> str:
        raise ValueError("no such plan")

    async def files(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": scope["path"].encode()})

    shop = litestar.Router("/shop/{tenant:str}", route_handlers=[litestar.get("/fail")(fail)])
    handlers = [
        litestar.get("/users/{user_id:int}")(user),
        litestar.asgi("/files", is_mount=True, copy_scope=False)(files),
        shop,
    ]
    return litestar.Litestar(handlers, openapi_config=None, logging_config=None)


def test_litestar_tells_its_templates(memory: MemoryMeter) -> None:
    """With routers and mounts; a path without a handler is unmatched."""
    app = asgi.RedmeterMiddleware(litestar_app(), memory)
    ask(app, "/users/7", "/users/8", "/files/a/b.css", "/shop/a/fail", "/none", "/users/x")
    assert counted(memory) == {
        ("/users/{user_id}", "2xx"): 2,
        ("/files/{path}", "2xx"): 1,
        ("/shop/{tenant}/fail", "5xx"): 1,
        ("(unmatched)", "4xx"): 2,
    }
    (pattern,) = (each.pattern for each in memory.log_frequencies("http"))
    assert pattern.startswith("GET /shop/{tenant}/fail [ValueError at test_frameworks.py:")


@pytest.mark.parametrize("framework", ["litestar", "quart"])
def test_a_method_that_is_not_allowed_has_the_route_of_its_path(
    memory: MemoryMeter, framework: str
) -> None:
    """Whatever methods the path has; a path that no route has stays unmatched."""
    app = asgi.RedmeterMiddleware(
        {"litestar": litestar_app, "quart": quart_app}[framework](), memory
    )
    ask(app, "/users/7", "/shop/a/fail", "/none", method="DELETE")
    assert counted(memory) == {
        ("/users/{user_id}", "4xx"): 1,
        ("/shop/{tenant}/fail", "4xx"): 1,
        ("(unmatched)", "4xx"): 1,
    }


@pytest.mark.parametrize("status", [409, 503])
def test_an_exception_that_litestar_converts_counts_by_its_status(
    memory: MemoryMeter, status: int
) -> None:
    """A handler of the application may turn it into an answer that is no failure."""

    async def fail() -> str:
        raise ValueError("no such plan")

    def converted(_request: Any, _error: Exception) -> Any:
        return litestar.Response("sorry", status_code=status)

    handlers = {ValueError: converted}
    app = litestar.Litestar(
        [litestar.get("/fail")(fail)],
        exception_handlers=handlers,
        openapi_config=None,
        logging_config=None,
    )
    ask(asgi.RedmeterMiddleware(app, memory), "/fail")
    assert counted(memory) == {("/fail", f"{status // 100}xx"): 1}
    assert len(memory.messages) == (status >= 500)


def quart_app() -> Any:
    """Return an application with a parameter, a blueprint, and a view that fails."""
    app = quart.Quart("shop")
    app.logger.disabled = True
    shop = quart.Blueprint("shop", "shop", url_prefix="/shop/<tenant>")

    async def user(user_id: int) -> str:
        return str(user_id)

    async def fail(tenant: str) -> str:
        raise ValueError("no such plan")

    app.add_url_rule("/users/<int:user_id>", view_func=user)
    shop.add_url_rule("/fail", view_func=fail)
    app.register_blueprint(shop)
    return app


def around(app: Any, memory: MemoryMeter) -> Any:
    """Return a middleware around an application."""
    return asgi.RedmeterMiddleware(app, memory)


def within(app: Any, memory: MemoryMeter) -> Any:
    """Return an application with the middleware in the place that Quart's documentation names."""
    app.asgi_app = asgi.RedmeterMiddleware(app.asgi_app, memory)
    return app


@pytest.mark.parametrize("placed", [around, within])
def test_quart_tells_its_rules(
    memory: MemoryMeter, placed: Callable[[Any, MemoryMeter], Callable[..., Awaitable[None]]]
) -> None:
    """With blueprints; an exception is a message with its place."""
    ask(placed(quart_app(), memory), "/users/7", "/users/8", "/shop/a/fail", "/none")
    assert counted(memory) == {
        ("/users/{user_id}", "2xx"): 2,
        ("/shop/{tenant}/fail", "5xx"): 1,
        ("(unmatched)", "4xx"): 1,
    }
    (pattern,) = (each.pattern for each in memory.log_frequencies("http"))
    assert pattern.startswith("GET /shop/{tenant}/fail [ValueError at test_frameworks.py:")


class User:
    """A resource of Falcon's."""

    def on_get(self, _req: Any, resp: Any, user_id: int) -> None:
        """Answer."""
        resp.text = str(user_id)


class AsyncUser:
    """The same for ASGI."""

    async def on_get(self, _req: Any, resp: Any, user_id: int) -> None:
        """Answer."""
        resp.text = str(user_id)


OF_FALCON = {
    ("/users/{user_id}", "2xx"): 2,
    ("/users/{user_id}", "4xx"): 1,
    ("(unmatched)", "4xx"): 1,
}


def test_falcon_tells_its_templates(memory: MemoryMeter) -> None:
    """Also of a method that a resource does not have."""
    app = falcon.App()
    app.add_route("/users/{user_id:int}", User())
    client = falcon_testing.TestClient(wsgi.RedmeterMiddleware(app, memory))
    for path in ("/users/7", "/users/8", "/none"):
        client.simulate_get(path)
    client.simulate_post("/users/7")
    assert counted(memory) == OF_FALCON


def test_falcon_tells_its_templates_under_asgi(memory: MemoryMeter) -> None:
    """As under WSGI."""
    app = falcon_asgi.App()
    app.add_route("/users/{user_id:int}", AsyncUser())
    counted_app = asgi.RedmeterMiddleware(app, memory)
    ask(counted_app, "/users/7", "/users/8", "/none")
    ask(counted_app, "/users/7", method="POST")
    assert counted(memory) == OF_FALCON
