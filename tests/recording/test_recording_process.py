"""Lifecycle: the server that an application runs in flushes at its end, and no other is changed."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from uvicorn.server import Server as UvicornServer

from redmeter import Meter
from redmeter.integrations.asgi import RedmeterMiddleware
from redmeter.recording import process
from support.servers import Server
from support.stores import total_on


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has all of its time to flush, and no meters of earlier tests."""
    monkeypatch.setattr(process, "_left", {})
    monkeypatch.setattr(process, "_living", {})


@pytest.fixture
def meter(server: Server) -> Iterator[Meter]:
    """One that flushes once an hour."""
    with Meter(server.url, flush_interval=3600) as meter:
        yield meter


def serving(meter: Meter, *, replaces_handler: bool = False) -> UvicornServer:
    """Return a server of an application that counts, and stops the server.

    Args:
        replaces_handler: the application replaces uvicorn's handler of SIGTERM first.
    """

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if replaces_handler:
            signal.signal(signal.SIGTERM, lambda *_: None)
        meter.count("hits")
        found.handle_exit(signal.SIGTERM, None)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    found = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="critical"))
    return found


def run(server: UvicornServer) -> None:
    """Serve one request."""

    async def main() -> None:
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            serves = asyncio.create_task(server.serve(sockets=[listening]))
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            writer.write(b"GET / HTTP/1.0\r\n\r\n")
            await reader.read()
            writer.close()
            await serves

    asyncio.run(main())


@pytest.mark.parametrize("before", [0, 1], ids=["first event in a request", "events before"])
def test_a_uvicorn_server_stores_what_was_counted_before_it_ends_the_process(
    server: Server, meter: Meter, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """By a signal to itself. Also where the first event came before the server was there."""
    if before:
        meter.count("hits")
    stored: list[int] = []
    monkeypatch.setattr(signal, "raise_signal", lambda _: stored.append(total_on(server)))
    run(serving(meter))
    assert stored == [1 + before]


def test_a_uvicorn_server_stores_its_counts_where_the_application_replaced_a_signal_handler(
    server: Server, meter: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As flush_on_sigterm() does when the application calls it while uvicorn runs."""
    stored: list[int] = []
    monkeypatch.setattr(signal, "raise_signal", lambda _: stored.append(total_on(server)))
    run(serving(meter, replaces_handler=True))
    assert stored == [1]


def test_a_uvicorn_server_stores_requests_that_it_cancels_at_its_end(
    server: Server, meter: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They outlast timeout_graceful_shutdown, and end after the server's shutdown."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        meter.count("begun")
        found.handle_exit(signal.SIGTERM, None)
        try:
            await asyncio.Event().wait()
        finally:
            meter.count("hits")

    config = uvicorn.Config(app, lifespan="off", log_level="critical", timeout_graceful_shutdown=0)
    found = uvicorn.Server(config)
    stored: list[int] = []
    monkeypatch.setattr(signal, "raise_signal", lambda _: stored.append(total_on(server)))
    run(found)
    assert stored == [1]


@pytest.mark.parametrize("streams", [False, True])
def test_a_uvicorn_server_stores_cancelled_requests_that_end_late(
    server: Server, meter: Meter, monkeypatch: pytest.MonkeyPatch, streams: bool
) -> None:
    """Those within the task group of a BaseHTTPMiddleware take several turns of the loop to end."""

    async def around(request: Request, call_next: Any) -> Response:
        answer: Response = await call_next(request)
        return answer

    async def pieces() -> AsyncIterator[bytes]:
        yield b"begun"
        await stuck()

    async def stuck() -> None:
        found.handle_exit(signal.SIGTERM, None)
        await asyncio.Event().wait()

    async def view(request: Request) -> Response:
        if not streams:
            await stuck()
        return StreamingResponse(pieces())

    app = Starlette(routes=[Route("/", view)])
    app.add_middleware(RedmeterMiddleware, meter=meter)
    for _ in range(3):
        app.add_middleware(BaseHTTPMiddleware, dispatch=around)
    config = uvicorn.Config(app, lifespan="on", log_level="critical", timeout_graceful_shutdown=0)
    found = uvicorn.Server(config)
    stored: list[int] = []
    monkeypatch.setattr(signal, "raise_signal", lambda _: stored.append(total_on(server)))
    run(found)
    assert stored == [1]


def test_no_class_of_uvicorns_is_changed(meter: Meter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server in the same process is as uvicorn made it."""
    monkeypatch.setattr(signal, "raise_signal", lambda _: None)
    shutdown, other = vars(UvicornServer)["shutdown"], serving(meter)
    first = serving(meter)
    run(first)
    assert vars(UvicornServer)["shutdown"] is shutdown
    assert "shutdown" in vars(first)
    assert "shutdown" not in vars(other)
