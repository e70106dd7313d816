"""ASGI: messages pass unchanged and at once, and a request is counted as what became of it."""

import asyncio
import contextvars
import logging
import sys
import threading
from typing import Any

import anyio
import pytest

from redmeter import Meter
from redmeter.integrations.asgi import RedmeterMiddleware
from redmeter.integrations.shared import databases
from redmeter.names import parse_name
from redmeter.testing import MemoryMeter
from support.asgi import Message, ask, call, connect, http_scope, live
from support.servers import Server
from support.waiting import eventually

START: dict[str, Any] = {"type": "http.response.start", "status": 200, "headers": []}


WEBSOCKET = {k: v for k, v in http_scope("", "/", type="websocket").items() if k != "method"}
GET_UNMATCHED = {"method": "GET", "route": "(unmatched)"}


class ClientDisconnect(Exception):
    """As Starlette calls it."""


class WebSocketDisconnect(Exception):
    """As Starlette calls it."""


def sending(*messages: Message, error: BaseException | None = None) -> Any:
    """Return an application that sends some messages, then raises, if told to."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        for message in messages:
            await send(message)
        if error is not None:
            raise error

    return app


def body(content: bytes, *, more: bool = False) -> Message:
    """Return a part of a body."""
    return {"type": "http.response.body", "body": content, "more_body": more}


def outcomes(meter: MemoryMeter) -> list[tuple[str | None, ...]]:
    """Return method, route and status of all requests that were counted."""
    parsed = (parse_name(event.series) for event in meter.events if event.amount)
    return [
        tuple(each.label(key) for key in ("method", "route", "status"))
        for each in parsed
        if each.base == "http_requests"
    ]


# What passes


def test_messages_pass_unchanged_and_one_by_one(memory: MemoryMeter) -> None:
    """The very same objects, in both directions, those of extensions too."""
    messages = [
        {"type": "http.response.debug", "info": {}},
        {"type": "http.response.push", "path": "/a", "headers": []},
        START | {"trailers": True},
        body(b"a", more=True),
        body(b""),
        {"type": "http.response.trailers", "headers": []},
    ]
    incoming: list[Message] = [
        {"type": "http.request", "body": b"1", "more_body": True},
        {"type": "http.request", "body": b"2"},
    ]
    received = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        received.extend([await receive(), await receive()])
        for message in messages:
            await send(message)

    scope = http_scope("PUT", "/")
    answered = asyncio.run(call(RedmeterMiddleware(app, memory), scope, list(incoming)))
    assert all(a is b for a, b in zip(answered.messages, messages, strict=True))
    assert all(a is b for a, b in zip(received, incoming, strict=True))
    assert answered.error is None
    assert outcomes(memory) == [("PUT", "(unmatched)", "2xx")]


def test_a_part_is_sent_before_the_next_is_made(memory: MemoryMeter) -> None:
    """Nothing is held back, and the duration lasts until the last part was taken."""
    sent = 0

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(START)
        for number in range(5):
            assert sent == number + 1
            await send(body(b"x", more=number < 4))

    def after(count: int) -> None:
        nonlocal sent
        sent = count
        memory.clock.advance(1)

    answered = ask(RedmeterMiddleware(app, memory), after=after)
    assert answered.error is None
    assert memory.observed('http_request_seconds{method="GET",route="(unmatched)"}') == [6]


def test_it_is_counted_once_the_last_byte_is_sent(memory: MemoryMeter) -> None:
    """Not when the application returns: it may have work for hours."""
    seen = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(START)
        await send(body(b"x"))
        seen.append(len(outcomes(memory)))
        memory.clock.advance(3600)

    ask(RedmeterMiddleware(app, memory))
    assert seen == [1]
    assert memory.recorded("hits") == 1


@pytest.mark.parametrize("kind", ["http.response.pathsend", "http.response.zerocopysend"])
def test_a_file_that_the_server_sends_is_the_end(memory: MemoryMeter, kind: str) -> None:
    """As extensions of servers have it."""
    ask(RedmeterMiddleware(sending(START, {"type": kind, "path": "/a"}), memory))
    assert outcomes(memory) == [("GET", "(unmatched)", "2xx")]


def test_what_is_neither_http_nor_websocket_passes(memory: MemoryMeter) -> None:
    """A protocol that comes later, for instance."""
    seen = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope, receive, send))

    async def receive() -> Message:
        return {}

    async def send(message: Message) -> None:
        """Take it."""

    scope = {"type": "webtransport"}
    asyncio.run(RedmeterMiddleware(app, memory)(scope, receive, send))
    assert seen == [(scope, receive, send)]
    assert memory.events == []


# What became of it


@pytest.mark.parametrize(
    ("app", "status"),
    [
        (sending(START, body(b"")), "2xx"),
        (sending(START | {"status": 404}, body(b"")), "4xx"),
        (sending(), "5xx"),
        (sending(START), "2xx"),
        (sending(START, body(b"a", more=True)), "2xx"),
        (sending(error=ValueError()), "5xx"),
        (sending(START, body(b"a", more=True), error=ValueError()), "5xx"),
        (sending(START, body(b""), error=ValueError()), "2xx"),
        (sending(error=ClientDisconnect()), "disconnected"),
        (sending(START, body(b"a", more=True), error=ClientDisconnect()), "disconnected"),
        (sending(error=ExceptionGroup("", [ClientDisconnect()])), "disconnected"),
        (sending(error=ExceptionGroup("", [ClientDisconnect(), ValueError()])), "5xx"),
        (sending(error=OSError("of a file")), "5xx"),
        (sending(error=ConnectionResetError("of a database")), "5xx"),
    ],
)
def test_a_request_is_counted_once_as_what_became_of_it(
    memory: MemoryMeter, app: Any, status: str
) -> None:
    """An exception passes on, and is a message, unless it says that the client left."""
    bare = ask(app)
    answered = ask(RedmeterMiddleware(app, memory))
    assert answered.messages == bare.messages
    assert answered.error is bare.error
    assert outcomes(memory) == [("GET", "(unmatched)", status)]
    logged = type(bare.error) in (ValueError, OSError, ConnectionResetError)
    logged |= isinstance(bare.error, ExceptionGroup) and status == "5xx"
    assert len(memory.logged("http", "error")) == logged


def test_a_client_that_leaves_before_its_answer_is_disconnected(memory: MemoryMeter) -> None:
    """Also where the application goes on to answer; after the last byte, everybody leaves."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/early":
            while (await receive())["type"] != "http.disconnect":
                pass
        await send(START)
        await send(body(b"x"))
        if scope["path"] == "/late":
            while (await receive())["type"] != "http.disconnect":
                pass

    for path in ("/early", "/late"):
        ask(RedmeterMiddleware(app, memory), path, leaves=True)
    assert [status for *_, status in outcomes(memory)] == ["disconnected", "2xx"]


def test_a_client_that_leaves_while_it_gets_the_last_byte_had_its_answer(
    memory: MemoryMeter,
) -> None:
    """A server may say so before it says that the byte is sent."""
    told = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(START)
        watching = asyncio.create_task(receive())
        await send(body(b"x"))
        await watching

    async def receive() -> Message:
        told.set()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message is not START:
            await told.wait()
            await asyncio.sleep(0)

    asyncio.run(RedmeterMiddleware(app, memory)(http_scope("GET", "/"), receive, send))
    assert outcomes(memory) == [("GET", "(unmatched)", "2xx")]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_message_that_the_server_refuses_is_a_client_that_left(
    memory: MemoryMeter, count: int
) -> None:
    """By OSError, which passes on; another one than the server's is an error."""

    def after(sent: int) -> None:
        if sent == count:
            raise BrokenPipeError

    app = RedmeterMiddleware(sending(START, body(b"a", more=True), body(b"b")), memory)
    answered = ask(app, after=after)
    assert isinstance(answered.error, BrokenPipeError)
    assert len(answered.messages) == count
    assert outcomes(memory) == [("GET", "(unmatched)", "disconnected")]
    assert memory.messages == []


def test_a_call_that_is_cancelled_is_disconnected(memory: MemoryMeter) -> None:
    """As some servers do when the client leaves, and all when they end."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.Event().wait()

    async def cancel() -> None:
        serving = asyncio.create_task(
            call(RedmeterMiddleware(app, memory), http_scope("GET", "/"), [])
        )
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving

    asyncio.run(cancel())
    assert outcomes(memory) == [("GET", "(unmatched)", "disconnected")]
    assert memory.messages == []


@pytest.mark.parametrize("scope", [http_scope("GET", "/"), WEBSOCKET])
def test_a_task_of_its_own_that_was_cancelled_is_the_failure_of_the_application(
    memory: MemoryMeter, scope: Any
) -> None:
    """The client is still there, and gets a 500; also where the task is one of a group."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        task = asyncio.create_task(asyncio.Event().wait())
        await asyncio.sleep(0)
        task.cancel()
        if scope["path"] == "/":
            await task
        try:
            await task
        except asyncio.CancelledError as error:
            raise BaseExceptionGroup("two", [error]) from None

    for path in ("/", "/group"):
        with pytest.raises((asyncio.CancelledError, BaseExceptionGroup)):
            asyncio.run(call(RedmeterMiddleware(app, memory), {**scope, "path": path}, []))
    method = scope.get("method", "WEBSOCKET")
    assert outcomes(memory) == [(method, "(unmatched)", "5xx")] * 2
    assert len(memory.logged("http", "error")) == 2


def test_a_cancel_scope_around_the_call_disconnects_it(memory: MemoryMeter) -> None:
    """As a server, or a middleware that runs the application in a task group, has one."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        with anyio.CancelScope() as own:
            own.cancel()
            await anyio.sleep_forever()
        await anyio.sleep_forever()

    async def cancel() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(call, RedmeterMiddleware(app, memory), http_scope("GET", "/"), [])
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()

    anyio.run(cancel)
    assert outcomes(memory) == [("GET", "(unmatched)", "disconnected")]
    assert memory.messages == []


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize("root", ["/shop", "/shop/tea"])
def test_patterns_are_compared_with_the_path_within_the_application(
    memory: MemoryMeter, kind: str, root: str
) -> None:
    """Whatever the server puts before it: uvicorn --root-path, for instance."""
    app = RedmeterMiddleware(
        sending(),
        memory,
        include_paths=["/a*", "/", "/shop/a"],
        ignore_paths="/a/health",
        count_paths="/a/b=b /=home",
    )
    for path in (f"{root}/a/health", f"{root}/a/b", f"{root}/c", root, f"{root}s/a", "/a/b"):
        scope = {**http_scope("GET", path, root_path=root), "type": kind}
        asyncio.run(call(app, scope, []))
    assert memory.recorded("hits") == 3
    assert memory.recorded("b") == 2
    assert memory.recorded("home") == 1


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_what_ends_the_process_is_no_client_that_left(
    memory: MemoryMeter, error: BaseException
) -> None:
    """It is an exception that nobody handled, and passes on."""
    app = RedmeterMiddleware(sending(error=error), memory)
    with pytest.raises(type(error)) as raised:
        ask(app)
    assert raised.value is error
    assert outcomes(memory) == [("GET", "(unmatched)", "5xx")]
    assert len(memory.logged("http", "error")) == 1


def test_a_group_is_as_bad_as_the_worst_in_it(memory: MemoryMeter) -> None:
    """As task groups raise it."""
    app = RedmeterMiddleware(
        sending(error=BaseExceptionGroup("two", [asyncio.CancelledError(), SystemExit(3)])), memory
    )
    with pytest.raises(BaseExceptionGroup):
        ask(app)
    assert outcomes(memory) == [("GET", "(unmatched)", "5xx")]


def test_a_stream_is_slow_by_when_it_began(memory: MemoryMeter) -> None:
    """Not by how long it lasts."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        memory.clock.advance(float(scope["query_string"]))
        await send(START)
        memory.clock.advance(30)
        await send(body(b"a", more=True))
        memory.clock.advance(30)
        await send(body(b"b"))

    for before in (0.5, 2.0):
        ask(RedmeterMiddleware(app, memory), f"/?{before}")
    assert memory.observed("http_request_seconds", labels=GET_UNMATCHED) == [60.5, 62]
    assert memory.logged("http", "warning") == ["slow request GET (unmatched): 2.000 s, path /"]


def test_many_requests_at_once_are_told_apart(memory: MemoryMeter) -> None:
    """Each has its own status, duration and end."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        number = int(scope["path"][1:])
        for _ in range(number % 7):
            await asyncio.sleep(0)
        await send(START | {"status": 200 + number})
        await send(body(b""))

    around = RedmeterMiddleware(app, memory, exact_status=True)

    async def all_at_once() -> None:
        scopes = [http_scope("GET", f"/{number}") for number in range(50)]
        await asyncio.gather(*(call(around, scope, []) for scope in scopes))

    asyncio.run(all_at_once())
    assert sorted(str(status) for *_, status in outcomes(memory)) == [
        str(200 + number) for number in range(50)
    ]


# Websockets

ACCEPT: Message = {"type": "websocket.accept"}
CLOSE: Message = {"type": "websocket.close"}


def talking(*messages: Message, receives: int = 1, error: BaseException | None = None) -> Any:
    """Return an application that receives some messages, sends some, then raises, if told to."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        for message in messages:
            await send(message)
        for _ in range(receives):
            await receive()
        if error is not None:
            raise error

    return app


def left(code: int) -> Message:
    """Return what the server says when the client left."""
    return {"type": "websocket.disconnect", "code": code}


@pytest.mark.parametrize(
    ("app", "incoming", "status"),
    [
        (talking(ACCEPT, CLOSE), [], "101"),
        (talking(CLOSE), [], "403"),
        (talking({"type": "websocket.http.response.start", "status": 404}), [], "404"),
        (talking(), [], "500"),
        (talking(ACCEPT, receives=2), [left(1000)], "101"),
        (talking(ACCEPT, receives=2), [left(1001)], "101"),
        *[(talking(ACCEPT, receives=2), [left(code)], "101") for code in (1005, 1011, 3000, 4999)],
        (talking(ACCEPT, receives=2), [left(1006)], "disconnected"),
        (talking(receives=2), [left(1000)], "disconnected"),
        (talking(receives=2), [left(1005)], "disconnected"),
        (talking(receives=2), [left(1006)], "disconnected"),
        (talking(ACCEPT, receives=2, error=WebSocketDisconnect()), [left(1000)], "101"),
        (talking(ACCEPT, receives=2, error=WebSocketDisconnect()), [left(1006)], "disconnected"),
        (talking(ACCEPT, CLOSE, receives=2), [left(1006)], "101"),
        (talking(ACCEPT, error=WebSocketDisconnect()), [], "disconnected"),
        (talking(ACCEPT, error=ValueError()), [], "500"),
        (talking(error=ValueError()), [], "500"),
    ],
)
def test_a_connection_is_counted_when_it_ends(
    memory: MemoryMeter, app: Any, incoming: list[Message], status: str
) -> None:
    """With the status by which it began; exceptions are messages, except that the client left."""
    bare = connect(app, "/talk", *incoming)
    answered = connect(RedmeterMiddleware(app, memory, exact_status=True), "/talk", *incoming)
    assert answered.messages == bare.messages
    assert answered.error is bare.error
    assert outcomes(memory) == [("WEBSOCKET", "(unmatched)", status)]
    assert len(memory.logged("http", "error")) == isinstance(bare.error, ValueError)


def test_a_connection_lasts_from_its_request_to_its_end(memory: MemoryMeter) -> None:
    """However long: it is no slow request."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(ACCEPT)
        memory.clock.advance(3600)
        await send(CLOSE)

    connect(RedmeterMiddleware(app, memory), "/talk")
    assert memory.observed('websocket_seconds{route="(unmatched)"}') == [3600]
    assert memory.observed('http_request_seconds{method="WEBSOCKET",route="(unmatched)"}') == []
    assert memory.observed("hits_seconds") == []
    assert memory.messages == []


@pytest.mark.parametrize(
    "kind", [b"text/event-stream", b"Text/Event-Stream; charset=utf-8", b"text/html"]
)
def test_a_stream_of_events_took_as_long_as_its_start(memory: MemoryMeter, kind: bytes) -> None:
    """How long it lived is no response time; of any other response it is."""
    headers = [(b"x", b"y"), (b"Content-Type", kind)]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        memory.clock.advance(2)
        await send({**START, "headers": headers})
        memory.clock.advance(3600)
        await send(body(b"data: 1", more=True))
        await send(body(b""))

    ask(RedmeterMiddleware(app, memory, slow_request=9), "/feed")
    is_feed = b"html" not in kind
    took = memory.observed('http_request_seconds{method="GET",route="(unmatched)"}')
    assert took == memory.observed("hits_seconds") == [2 if is_feed else 3602]
    lived = memory.observed('event_stream_seconds{route="(unmatched)"}')
    assert lived == ([3602] if is_feed else [])
    assert memory.messages == []


# Routes, paths, options


def test_an_application_may_name_its_routes(memory: MemoryMeter) -> None:
    """By a function that is given the scope, as the application left it."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        scope["my.route"] = "/items/{id}"
        await send(START)
        await send(body(b""))

    ask(RedmeterMiddleware(app, memory, route=lambda scope: scope["my.route"]), "/items/7")
    assert outcomes(memory) == [("GET", "/items/{id}", "2xx")]


def test_a_function_for_routes_that_fails_changes_nothing(
    memory: MemoryMeter, caplog: pytest.LogCaptureFixture
) -> None:
    """It is counted as a trouble, and the request as unmatched."""
    app = RedmeterMiddleware(sending(START, body(b"")), memory, route=lambda scope: scope["no"])
    assert ask(app).error is None
    assert outcomes(memory) == [("GET", "(unmatched)", "2xx")]
    assert memory.recorder_health().troubles == {"web": 1}
    assert "finding the route" in caplog.text


def test_labels_are_made_of_the_scope(memory: MemoryMeter) -> None:
    """Once the request was answered."""
    app = RedmeterMiddleware(
        sending(START, body(b"")), memory, labels=lambda scope: {"plan": scope["plan"]}
    )
    ask(app, plan="pro")
    connect(RedmeterMiddleware(talking(), memory, labels=lambda _: {"plan": "ws"}), "/")
    labels = (parse_name(event.series).label("plan") for event in memory.events)
    assert [each for each in labels if each] == ["pro", "pro", "ws"]


def test_ignored_paths_are_served_by_the_application_itself(memory: MemoryMeter) -> None:
    """Nothing stands between it and the server."""
    seen = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(send)
        await send(START)

    around = RedmeterMiddleware(app, memory, ignore_paths="/health")
    ask(around, "/health")
    connect(around, "/health")
    assert memory.events == []
    assert [each.__name__ for each in seen] == ["send", "send"]


def test_a_request_is_counted_by_the_outermost_middleware_alone(memory: MemoryMeter) -> None:
    """Should an application and one that it mounts both have one."""
    app = RedmeterMiddleware(RedmeterMiddleware(sending(START, body(b"")), memory), memory)
    ask(app)
    assert memory.recorded("hits") == 1


def test_what_is_spent_within_is_recorded(
    memory: MemoryMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the next request in the same task starts from zero."""
    monkeypatch.setattr(databases, "_enabled", True)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/db":
            databases.spend(0.5)
        memory.clock.advance(2)
        await send(START)
        await asyncio.create_task(send(body(b"")))  # in a context of its own

    around = RedmeterMiddleware(app, memory)

    async def both() -> None:
        for path in ("/db", "/none"):
            await call(around, http_scope("GET", path), [])
        assert databases._current.get() is None

    contextvars.Context().run(asyncio.run, both())  # whatever other tests left in theirs
    name = 'http_request_db_ratio{method="GET",route="(unmatched)"}'
    assert memory.observed(name) == [0.25]


def test_a_wrong_argument_is_an_error_in_code(memory: MemoryMeter) -> None:
    """As any wrong argument is; settings that cannot be used are not."""
    app = sending(START, body(b""))
    for options in ({"slow": 1}, {"url": "redis://h", "meter": memory}):
        with pytest.raises(TypeError):
            RedmeterMiddleware(app, **options)


@pytest.mark.parametrize("url", ["http://wrong", "redis://h:port", "off", "nonsense"])
def test_without_a_meter_requests_are_served(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """An address that is wrong is an error in the log, once."""
    monkeypatch.setenv("REDMETER_URL", url)
    app = RedmeterMiddleware(sending(START, body(b"x")), cleaner=True)
    for _ in range(3):
        assert ask(app).body == b"x"
    assert live(app).error is None
    assert len(caplog.records) == (url != "off")


# Lifespan


def lifespan(*ends: str, error: BaseException | None = None) -> Any:
    """Return an application that starts and ends."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "lifespan"
        if error is not None:
            raise error
        for end in ends:
            await receive()
            await send({"type": f"lifespan.{end}"})

    return app


def test_a_meter_that_it_made_is_closed_when_the_server_ends(server: Server, conn: Any) -> None:
    """All is stored, and no thread is left; yours is flushed and goes on."""
    before = len(sys._current_frames())
    ends = ("startup.complete", "shutdown.complete")
    app = RedmeterMiddleware(lifespan(*ends), url=server.url, flush_interval=3600, cleaner=True)
    app.requests.record("GET", "/", "/", 200, 0.1)
    answered = live(app)
    assert [m["type"] for m in answered.messages] == [f"lifespan.{end}" for end in ends]
    assert conn.hget("redmeter:total:", "hits") == b"1"
    eventually(lambda: len(sys._current_frames()) == before, 5, "our threads end")
    with Meter(server.url, flush_interval=3600) as yours:
        app = RedmeterMiddleware(lifespan(*ends), yours)
        app.requests.record("GET", "/", "/", 200, 0.1)
        live(app)
        assert conn.hget("redmeter:total:", "hits") == b"2"


def cleaners() -> list[threading.Thread]:
    """Return the threads that clean a store."""
    return [each for each in threading.enumerate() if each.name == "redmeter-cleaner"]


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_a_cleaner_starts_where_there_is_no_lifespan(server: Server, kind: str) -> None:
    """With the first request: a server may know none, and a mounted application hears of none."""
    with Meter(server.url, flush_interval=3600) as meter:
        app = RedmeterMiddleware(sending(START, body(b"x")), meter, cleaner=True)
        assert cleaners() == []
        for _ in range(2):
            ask(app) if kind == "http" else connect(app, "/")
            assert len(cleaners()) == 1
        live(RedmeterMiddleware(lifespan("startup.complete", "shutdown.complete"), meter))
        assert len(cleaners()) == 1
        app._end()
        assert cleaners() == []


@pytest.mark.parametrize("ends", [("startup.failed",), ("startup.complete", "shutdown.failed")])
def test_what_was_recorded_is_stored_however_it_ends(
    server: Server, conn: Any, ends: tuple[str, ...]
) -> None:
    """Also where the application did not start, or not end, in good order."""
    with Meter(server.url, flush_interval=3600) as meter:
        meter.count("x")
        live(RedmeterMiddleware(lifespan(*ends), meter))
        assert conn.hget("redmeter:total:", "x") == b"1"


def test_an_application_without_a_lifespan_is_told_apart_as_before(memory: MemoryMeter) -> None:
    """By the exception, which passes on to the server."""
    error = AssertionError("no lifespan here")
    assert live(RedmeterMiddleware(lifespan(error=error), memory)).error is error


def test_a_store_that_is_away_keeps_no_server_from_ending(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It waits for a moment."""
    caplog.set_level(logging.CRITICAL, "redmeter")
    ends = ("startup.complete", "shutdown.complete")
    app = RedmeterMiddleware(lifespan(*ends), url="redis://127.0.0.1:1", cleaner=True, timeout=0.1)
    app.requests.record("GET", "/", "/", 200, 0.1)
    answered = live(app)
    assert (len(answered.messages), answered.error) == (2, None)
