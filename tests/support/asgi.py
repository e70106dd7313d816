"""A server of ASGI applications within the test: one call, and what was sent."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

Message = Any
App = Callable[..., Awaitable[None]]


@dataclass
class Answer:
    """What an application did with a request."""

    messages: list[Message] = field(default_factory=list)
    scope: MutableMapping[str, Any] = field(default_factory=dict)
    #: What it raised.
    error: BaseException | None = None

    @property
    def status(self) -> int | None:
        """The status that was sent."""
        return next((m["status"] for m in self.messages if "status" in m), None)

    @property
    def body(self) -> bytes:
        """All parts of the body."""
        return b"".join(m.get("body", b"") for m in self.messages)


def http_scope(method: str, path: str, **more: Any) -> dict[str, Any]:
    """Return the scope of a request, as uvicorn makes it."""
    path, _, query = path.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"shop.example")],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 80),
        "state": {},
        **more,
    }


async def call(
    app: App,
    scope: MutableMapping[str, Any],
    incoming: list[Message],
    *,
    after: Callable[[int], None] = lambda _: None,
) -> Answer:
    """Call an application.

    Args:
        incoming: what it receives, one after the other; then it waits for ever.
        after: called with the number of messages sent so far, after each; may raise.
    """
    answer = Answer(scope=scope)
    waiting = list(incoming)

    async def receive() -> Message:
        if waiting:
            return waiting.pop(0)
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    async def send(message: Message) -> None:
        answer.messages.append(message)
        after(len(answer.messages))

    try:
        await app(scope, receive, send)
    except Exception as error:  # noqa: BLE001 - it is what is looked at
        answer.error = error
    return answer


def ask(
    app: App,
    path: str = "/",
    method: str = "GET",
    *,
    body: bytes = b"",
    leaves: bool = False,
    after: Callable[[int], None] = lambda _: None,
    **scope: Any,
) -> Answer:
    """Make one request, in an event loop of its own.

    Args:
        leaves: the client goes away right after it asked.
        after: see call().
        scope: what differs in the scope.
    """
    request: Message = {"type": "http.request", "body": body, "more_body": False}
    incoming = [request, {"type": "http.disconnect"}] if leaves else [request]
    return asyncio.run(call(app, http_scope(method, path, **scope), incoming, after=after))


def connect(app: App, path: str, *incoming: Message) -> Answer:
    """Make one connection of a websocket, in an event loop of its own.

    Args:
        incoming: what comes after `websocket.connect`.
    """
    scope = http_scope("GET", path, type="websocket", scheme="ws", subprotocols=[])
    del scope["method"]
    return asyncio.run(call(app, scope, [{"type": "websocket.connect"}, *incoming]))


def live(app: App) -> Answer:
    """Start an application, and shut it down."""
    incoming: list[Message] = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    return asyncio.run(call(app, {"type": "lifespan", "state": {}}, incoming))
