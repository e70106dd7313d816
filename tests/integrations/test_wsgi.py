"""The WSGI middleware: what it records, and that nobody sees it."""

import contextlib
import io
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any
from wsgiref.handlers import SimpleHandler
from wsgiref.util import FileWrapper, setup_testing_defaults
from wsgiref.validate import validator

import pytest

from redmeter import Meter
from redmeter.integrations.shared.databases import spend
from redmeter.integrations.shared.web import ROUTE
from redmeter.integrations.wsgi import RedmeterMiddleware
from redmeter.testing import ManualClock, MemoryMeter
from support.servers import Server as RedisServer
from support.waiting import eventually

PLAIN = [("Content-Type", "text/plain")]


def environ(path: str = "/", method: str = "GET", **more: Any) -> dict[str, Any]:
    """Return what a server would hand over."""
    found: dict[str, Any] = {"PATH_INFO": path, "REQUEST_METHOD": method, "QUERY_STRING": ""}
    found["SCRIPT_NAME"] = ""
    setup_testing_defaults(found)
    return found | more


class Server:
    """Calls an application as a server does, and notes what it sees."""

    def __init__(self) -> None:
        self.started: list[tuple[Any, ...]] = []
        self.written: list[bytes] = []
        self.write_fails: BaseException | None = None

    def start_response(self, *arguments: Any) -> Callable[[bytes], None]:
        self.started.append(arguments)
        return self.write

    def write(self, data: bytes) -> None:
        if self.write_fails is not None:
            raise self.write_fails
        self.written.append(data)

    def ask(self, app: Any, env: dict[str, Any] | None = None, pieces: int = 1000) -> list[bytes]:
        """Ask, read so many pieces, and close."""
        result = app(env or environ(), self.start_response)
        got: list[bytes] = []
        try:
            for number, piece in enumerate(result):
                got.append(piece)
                if number + 1 == pieces:
                    break
        finally:
            if hasattr(result, "close"):
                result.close()
        return got


class ClientDisconnected(Exception):
    """As waitress has it."""


def served(app: Any, env: dict[str, Any] | None = None) -> bytes:
    """Return what wsgiref's server sends, byte for byte."""
    out = io.BytesIO()
    handler = SimpleHandler(io.BytesIO(), out, io.StringIO(), env or environ())
    handler.run(app)
    return out.getvalue()


def statuses(memory: MemoryMeter) -> dict[str, int]:
    """Return status -> how many requests."""
    found = memory.top("http_requests", by="status", precision=60, last="5m")
    return {str(row.key): int(row.value) for row in found}


def routes(memory: MemoryMeter) -> dict[str, int]:
    """Return route -> how many requests."""
    found = memory.top("http_requests", by="route", precision=60, last="5m")
    return {str(row.key): int(row.value) for row in found}


def hello(env: dict[str, Any], start_response: Any) -> list[bytes]:
    """A whole response."""
    start_response("200 OK", PLAIN)
    return [b"hello"]


def numbers(env: dict[str, Any], start_response: Any) -> Iterator[bytes]:
    """A response in pieces, started with the first."""
    start_response("200 OK", PLAIN)
    for number in range(3):
        yield str(number).encode()


class Body:
    """A body that knows whether it was closed."""

    def __init__(self, *pieces: bytes | BaseException, fails: BaseException | None = None) -> None:
        self.pieces = pieces
        self.closed = 0
        self.fails = fails

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, BaseException):
                raise piece
            yield piece

    def close(self) -> None:
        self.closed += 1
        if self.fails is not None:
            raise self.fails


def answering(body: Any, status: str = "200 OK") -> Any:
    """Return an application that answers with a body."""

    def app(env: dict[str, Any], start_response: Any) -> Any:
        start_response(status, PLAIN)
        return body

    return app


def test_a_request_is_counted_and_timed(memory: MemoryMeter) -> None:
    """By method, route and status; and among the hits."""

    def app(env: dict[str, Any], start_response: Any) -> list[bytes]:
        memory.clock.advance(0.25)
        return hello(env, start_response)

    assert Server().ask(RedmeterMiddleware(app, memory)) == [b"hello"]
    labels = {"method": "GET", "route": "(unmatched)"}
    assert memory.recorded("hits") == 1
    assert memory.recorded("http_requests", labels=labels | {"status": "2xx"}) == 1
    assert memory.observed("http_request_seconds", labels=labels) == [0.25]


@pytest.mark.parametrize("app", [hello, numbers])
def test_the_rules_of_wsgi_are_kept_on_both_sides(memory: MemoryMeter, app: Any) -> None:
    """As wsgiref's validator sees it, towards the server and towards the application."""
    checked = validator(RedmeterMiddleware(validator(app), memory))
    result: Any = checked(environ(), Server().start_response)
    assert b"".join(result)
    result.close()
    assert statuses(memory) == {"2xx": 1}


@pytest.mark.parametrize(
    "body",
    [
        [b"one"],
        [b"one", b"two"],
        [],
        (b"one",),
        {b"k": 1},
        io.BytesIO(b"lines\nof it"),
        FileWrapper(io.BytesIO(b"x" * 20_000)),
    ],
    ids=["list", "two", "empty", "tuple", "dict", "file", "wrapped file"],
)
def test_what_the_server_sends_is_the_same_byte_for_byte(memory: MemoryMeter, body: Any) -> None:
    """Headers included, which servers add by the kind of what is returned."""

    def make() -> Any:
        if isinstance(body, FileWrapper):
            return FileWrapper(io.BytesIO(b"x" * 20_000))
        return io.BytesIO(body.getvalue()) if isinstance(body, io.BytesIO) else body

    without = served(answering(make()))
    assert served(RedmeterMiddleware(answering(make()), memory)) == without
    assert statuses(memory) == {"2xx": 1}


def test_a_list_and_a_file_of_the_servers_are_handed_on_themselves(memory: MemoryMeter) -> None:
    """By the first, servers find a length; the second, they send by the kernel."""
    for body in ([b"x"], (b"x",), FileWrapper(io.BytesIO(b"x"))):
        env = environ() | {"wsgi.file_wrapper": FileWrapper}
        app = RedmeterMiddleware(answering(body), memory)
        assert app(env, Server().start_response) is body


def test_a_file_is_timed_until_the_server_closes_it(memory: MemoryMeter) -> None:
    """And the file below it is closed."""
    below = io.BytesIO(b"x")
    app = RedmeterMiddleware(answering(FileWrapper(below)), memory)
    file: Any = app(environ() | {"wsgi.file_wrapper": FileWrapper}, Server().start_response)
    assert statuses(memory) == {}
    memory.clock.advance(5.0)
    file.close()
    assert below.closed
    labels = {"method": "GET", "route": "(unmatched)"}
    assert memory.observed("http_request_seconds", labels=labels) == [5.0]


def test_a_file_whose_end_cannot_be_seen_is_recorded_at_once(memory: MemoryMeter) -> None:
    """As those of servers that are written in C."""

    class Fixed:
        __slots__ = ()

        def close(self) -> None:
            """Close it."""

    body: Any = Fixed()
    app = RedmeterMiddleware(answering(body), memory)
    env = environ() | {"wsgi.file_wrapper": Fixed}
    assert app(env, Server().start_response) is body
    assert statuses(memory) == {"2xx": 1}


def test_the_length_of_a_body_is_still_known(memory: MemoryMeter) -> None:
    """Where it has one, for a body of one piece some servers tell it in a header."""

    class Sized(Body):
        def __len__(self) -> int:
            return len(self.pieces)

    body = Sized(b"a", b"b")
    result: Any = RedmeterMiddleware(answering(body), memory)(environ(), Server().start_response)
    assert len(result) == 2
    assert list(result) == [b"a", b"b"]
    result.close()
    assert body.closed == 1
    unsized: Any = RedmeterMiddleware(answering(Body(b"a")), memory)
    assert not hasattr(unsized(environ(), Server().start_response), "__len__")


def test_a_stream_is_timed_until_its_end(memory: MemoryMeter) -> None:
    """And each piece is passed on before the next is asked for."""
    asked: list[int] = []

    def app(env: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", PLAIN)
        for number in range(3):
            asked.append(number)
            memory.clock.advance(1.0)
            yield b"x"

    result: Any = RedmeterMiddleware(app, memory)(environ(), Server().start_response)
    pieces = iter(result)
    assert asked == []
    next(pieces)
    assert asked == [0]
    next(pieces)
    assert statuses(memory) == {}
    assert len(list(pieces)) == 1
    assert statuses(memory) == {"2xx": 1}
    memory.clock.advance(1.0)
    result.close()
    labels = {"method": "GET", "route": "(unmatched)"}
    assert memory.observed("http_request_seconds", labels=labels) == [3.0]


def test_a_stream_of_events_took_as_long_as_its_start(memory: MemoryMeter) -> None:
    """How long it lived is no response time."""

    def app(env: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", [("Content-Type", "text/event-stream; charset=utf-8")])
        for _ in range(3):
            memory.clock.advance(2.0)
            yield b"data: 1"

    assert len(list(RedmeterMiddleware(app, memory)(environ(), Server().start_response))) == 3
    labels = {"method": "GET", "route": "(unmatched)"}
    assert memory.observed("http_request_seconds", labels=labels) == [2.0]
    assert memory.observed('event_stream_seconds{route="(unmatched)"}') == [6.0]


@pytest.mark.parametrize("written", [False, True])
def test_a_stream_is_slow_by_when_it_began(memory: MemoryMeter, written: bool) -> None:
    """Not by how long it lasts."""

    def app(env: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        memory.clock.advance(float(env["QUERY_STRING"]))
        write = start_response("200 OK", PLAIN)
        if written:
            write(b"x")
        else:
            yield b"x"
        memory.clock.advance(30.0)
        yield b"x"

    for before in ("0.5", "2.0"):
        env = environ() | {"QUERY_STRING": before}
        result: Any = RedmeterMiddleware(app, memory)(env, Server().start_response)
        list(result)
        result.close()
    assert memory.logged("http", "warning") == ["slow request GET (unmatched): 2.000 s, path /"]


@pytest.mark.parametrize("pieces", [0, 1, 2, 5])
def test_a_body_is_closed_once_however_far_it_was_read(memory: MemoryMeter, pieces: int) -> None:
    """Also where the server closes it again."""
    body = Body(b"a", b"b")
    result: Any = RedmeterMiddleware(answering(body), memory)(environ(), Server().start_response)
    for _, _ in zip(range(pieces), result, strict=False):
        pass
    result.close()
    result.close()
    assert body.closed == 1
    assert memory.recorded("hits") == 1
    assert list(result) == []


@pytest.mark.parametrize("end", ["closes", "drops"])
@pytest.mark.parametrize(
    ("method", "pieces", "status"),
    [
        ("GET", 5, "2xx"),
        ("GET", 1, "disconnected"),
        ("HEAD", 5, "2xx"),
        ("HEAD", 1, "2xx"),
        ("HEAD", 0, "2xx"),
        ("GET", 0, None),
    ],
)
@pytest.mark.parametrize("kind", ["body", "sized", "generator"])
def test_a_request_is_recorded_once_whether_its_body_is_closed_or_dropped(
    memory: MemoryMeter, kind: str, method: str, pieces: int, status: str | None, end: str
) -> None:
    """Dropped unread, it failed: nobody wanted its body, and nobody closed it for another."""

    class Sized(Body):
        def __len__(self) -> int:
            return 2

    bodies = {"body": answering(Body(b"a", b"b")), "sized": answering(Sized(b"a", b"b"))}
    app = RedmeterMiddleware(bodies.get(kind, numbers), memory)
    result: Any = app(environ(method=method), Server().start_response)
    for _ in zip(range(pieces), result, strict=False):
        pass
    if end == "closes":
        result.close()
    del result
    if kind == "generator" and pieces == 0:  # it has not called start_response()
        status = "other" if end == "closes" or method == "HEAD" else "5xx"
    assert statuses(memory) == {status or ("2xx" if end == "closes" else "5xx"): 1}
    assert memory.recorded("hits") == 1


def test_a_request_whose_outer_middleware_raises_is_recorded(memory: MemoryMeter) -> None:
    """The middleware does not close the body, and the server sends a 500."""

    def outer(env: dict[str, Any], start_response: Any) -> Any:
        body = RedmeterMiddleware(answering(Body(b"a")), memory)(env, start_response)
        raise LookupError(f"no plate for {type(body)}")

    with pytest.raises(LookupError):
        Server().ask(outer)
    assert statuses(memory) == {"5xx": 1}


def test_a_file_that_is_never_closed_is_recorded_once_it_is_deleted(memory: MemoryMeter) -> None:
    """By the garbage collector, since the file refers to its close()."""
    import gc

    env = environ() | {"wsgi.file_wrapper": FileWrapper}
    app = RedmeterMiddleware(answering(FileWrapper(io.BytesIO(b"x"))), memory)
    app(env, Server().start_response)
    del app
    gc.collect()
    assert statuses(memory) == {"2xx": 1}


def test_a_body_without_close_gets_none_of_its_own(memory: MemoryMeter) -> None:
    """The server may close what it gets all the same."""
    result: Any = RedmeterMiddleware(answering(iter([b"a"])), memory)(
        environ(), Server().start_response
    )
    assert list(result) == [b"a"]
    result.close()
    assert statuses(memory) == {"2xx": 1}


def test_a_client_that_left_is_told_from_an_error(memory: MemoryMeter) -> None:
    """The server closes before the end, without an error of the application's."""
    body = Body(b"a", b"b")
    Server().ask(RedmeterMiddleware(answering(body), memory), pieces=1)
    assert body.closed == 1
    assert statuses(memory) == {"disconnected": 1}
    assert memory.messages == []


@pytest.mark.parametrize(("method", "pieces"), [("HEAD", 1), ("GET", 0)])
def test_a_body_that_nobody_wanted_is_no_client_that_left(
    memory: MemoryMeter, method: str, pieces: int
) -> None:
    """Servers need not read it for a HEAD, nor a middleware that answers 304 instead."""
    app = RedmeterMiddleware(answering(Body(b"a", b"b")), memory)
    result: Any = app(environ(method=method), Server().start_response)
    for _ in zip(range(pieces), result, strict=False):
        pass
    result.close()
    assert statuses(memory) == {"2xx": 1}


def test_an_exception_of_the_application_is_counted_and_passed_on(memory: MemoryMeter) -> None:
    """Itself, not another one; it is a message, by its type and place."""
    error = LookupError("no such plate")

    def app(env: dict[str, Any], start_response: Any) -> list[bytes]:
        raise error

    with pytest.raises(LookupError) as caught:
        Server().ask(RedmeterMiddleware(app, memory))
    assert caught.value is error
    assert statuses(memory) == {"5xx": 1}
    (logged,) = memory.messages
    assert logged.pattern.startswith("GET (unmatched) [LookupError at test_wsgi.py:")
    assert "no such plate" in logged.message.text


@pytest.mark.parametrize("error", [ValueError("half"), FileNotFoundError("half")])
def test_an_exception_on_the_way_is_counted_and_the_body_closed(
    memory: MemoryMeter, error: Exception
) -> None:
    """Though the status was sent already: the response is broken."""
    body = Body(b"a", error)
    with pytest.raises(type(error), match="half"):
        Server().ask(RedmeterMiddleware(answering(body), memory))
    assert body.closed == 1
    assert statuses(memory) == {"5xx": 1}
    assert len(memory.messages) == 1


@pytest.mark.parametrize(("pieces", "status"), [(5, "2xx"), (1, "5xx")])
def test_an_exception_in_close_is_counted_and_passed_on(
    memory: MemoryMeter, pieces: int, status: str
) -> None:
    """A complete response keeps its status; one that was cut short failed."""
    body = Body(b"a", fails=ValueError("not closed"))
    with pytest.raises(ValueError, match="not closed"):
        Server().ask(RedmeterMiddleware(answering(body), memory), pieces=pieces)
    assert statuses(memory) == {status: 1}
    (logged,) = memory.messages
    assert "not closed" in logged.message.text


def test_what_is_no_body_fails_as_it_would_have(memory: MemoryMeter) -> None:
    """With the server's own error, and counted."""
    with pytest.raises(TypeError, match="'NoneType' object is not iterable"):
        for _ in RedmeterMiddleware(answering(None), memory)(environ(), Server().start_response):
            pass
    result: Any = RedmeterMiddleware(answering(None), memory)(environ(), Server().start_response)
    with pytest.raises(TypeError):
        iter(result)
    result.close()
    assert statuses(memory) == {"5xx": 2}


def test_a_status_that_was_replaced_is_the_one_that_counts(memory: MemoryMeter) -> None:
    """exc_info goes to the server as it came."""
    server = Server()

    def app(env: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", PLAIN)
        try:
            raise ValueError("late")
        except ValueError:
            start_response("503 Later", PLAIN, sys.exc_info())
        return [b"sorry"]

    server.ask(RedmeterMiddleware(app, memory))
    assert [one[0] for one in server.started] == ["200 OK", "503 Later"]
    assert len(server.started[0]) == 2
    assert server.started[1][2][0] is ValueError
    assert statuses(memory) == {"5xx": 1}


def test_a_status_that_the_server_refused_does_not_count(memory: MemoryMeter) -> None:
    """It raises what it was given, as the headers were sent before."""

    class Strict(Server):
        def start_response(self, *arguments: Any) -> Callable[[bytes], None]:
            if len(arguments) == 3:
                raise arguments[2][1]
            return super().start_response(*arguments)

    def app(env: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", PLAIN)
        try:
            raise ValueError("late")
        except ValueError:
            try:
                start_response("404 Gone", PLAIN, sys.exc_info())
            except ValueError:
                return [b"fine then"]
        return []

    Strict().ask(RedmeterMiddleware(app, memory))
    assert statuses(memory) == {"2xx": 1}


def test_write_passes_data_on(memory: MemoryMeter) -> None:
    """The old way of sending."""

    def app(env: dict[str, Any], start_response: Any) -> list[bytes]:
        write = start_response("201 Created", PLAIN)
        write(b"a")
        write(b"b")
        return [b"c"]

    server = Server()
    assert server.ask(RedmeterMiddleware(app, memory)) == [b"c"]
    assert server.written == [b"a", b"b"]
    assert statuses(memory) == {"2xx": 1}


@pytest.mark.parametrize("fails", [BrokenPipeError(), ClientDisconnected()])
def test_a_write_that_fails_is_a_client_that_left(memory: MemoryMeter, fails: Exception) -> None:
    """Though the exception comes through the application."""

    def app(env: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", PLAIN)(b"a")
        return []

    server = Server()
    server.write_fails = fails
    with pytest.raises(type(fails)):
        server.ask(RedmeterMiddleware(app, memory))
    assert statuses(memory) == {"disconnected": 1}


@pytest.mark.parametrize("later", [ValueError("of the clean-up"), FileNotFoundError("of a file")])
def test_another_error_after_a_write_that_failed_is_the_applications(
    memory: MemoryMeter, later: Exception
) -> None:
    """Its own OSError as well."""

    def app(env: dict[str, Any], start_response: Any) -> list[bytes]:
        write = start_response("200 OK", PLAIN)
        with contextlib.suppress(OSError):
            write(b"a")
        raise later

    server = Server()
    server.write_fails = BrokenPipeError()
    with pytest.raises(type(later)):
        server.ask(RedmeterMiddleware(app, memory))
    assert statuses(memory) == {"5xx": 1}


def test_a_write_of_what_is_no_bytes_is_the_applications_error(memory: MemoryMeter) -> None:
    """The server's exception says so."""

    def app(env: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", PLAIN)(None)
        return []

    server = Server()
    server.write_fails = TypeError("bytes expected, not None")
    with pytest.raises(TypeError):
        server.ask(RedmeterMiddleware(app, memory))
    assert statuses(memory) == {"5xx": 1}
    assert len(memory.logged("http", "error")) == 1


@pytest.mark.parametrize("piece", ["text", None, 7])
def test_a_piece_that_is_no_bytes_is_the_applications_error(
    memory: MemoryMeter, piece: Any
) -> None:
    """With a server that raises in Python, and one that closes without a word."""
    app = RedmeterMiddleware(answering(iter([b"a", piece, b"b"])), memory)
    served(app)
    Server().ask(RedmeterMiddleware(answering(iter([piece, b"b"])), memory), pieces=1)
    assert statuses(memory) == {"5xx": 2}
    for told in memory.logged("http", "error"):
        assert f"TypeError: a body consists of bytes, not {type(piece).__name__}" in told


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ConnectionResetError(), "disconnected"),
        (TimeoutError(), "disconnected"),
        (ClientDisconnected(), "disconnected"),
        (SystemExit(1), "disconnected"),
        (ValueError("more than Content-Length"), "5xx"),
    ],
)
def test_a_piece_that_the_server_cannot_send_is_a_client_that_left_or_an_error(
    memory: MemoryMeter, error: BaseException, status: str
) -> None:
    """By the exception with which the server closes the body."""
    body: Any = RedmeterMiddleware(numbers, memory)(environ(), Server().start_response)

    def send() -> None:
        try:
            for _ in body:
                raise error
        finally:
            body.close()

    with pytest.raises(type(error)):
        send()
    body.close()
    assert statuses(memory) == {status: 1}
    assert len(memory.logged("http", "error")) == (status == "5xx")


@pytest.mark.parametrize("status", ["", "abc", "099 No", "2", None, 200])
def test_a_status_that_is_none_is_other(memory: MemoryMeter, status: Any) -> None:
    """The server may do with it what it likes."""
    Server().ask(RedmeterMiddleware(answering([b""], status), memory))
    assert statuses(memory) == {"other": 1}


def test_a_response_that_was_never_started_is_other(memory: MemoryMeter) -> None:
    """The server fails by it."""
    assert Server().ask(RedmeterMiddleware(lambda *_: [b"x"], memory)) == [b"x"]
    assert statuses(memory) == {"other": 1}


def test_the_route_is_what_the_application_writes_into_the_environ(memory: MemoryMeter) -> None:
    """Or what a function says; or there is none."""

    def app(env: dict[str, Any], start_response: Any) -> list[bytes]:
        if env["PATH_INFO"].startswith("/users/"):
            env[ROUTE] = "/users/{id}"
        return hello(env, start_response)

    told = RedmeterMiddleware(
        app, memory, route=lambda env: "/old" if env["PATH_INFO"] == "/o" else None
    )
    for path in ("/users/1", "/users/2", "/o", "/else"):
        Server().ask(told, environ(path))
    assert routes(memory) == {"/users/{id}": 2, "/old": 1, "(unmatched)": 1}


def test_a_function_that_fails_costs_its_label_and_nothing_else(memory: MemoryMeter) -> None:
    """It is counted as trouble."""

    def broken(env: object) -> Any:
        raise KeyError("no")

    app = RedmeterMiddleware(numbers, memory, route=broken, labels=broken)
    assert Server().ask(app) == [b"0", b"1", b"2"]
    assert routes(memory) == {"(unmatched)": 1}


@pytest.mark.parametrize("strange", [7, [], b"/x", object()])
def test_a_route_that_is_no_text_is_none(memory: MemoryMeter, strange: Any) -> None:
    """Whoever tells it."""

    def app(env: dict[str, Any], start_response: Any) -> list[bytes]:
        env[ROUTE] = strange
        return hello(env, start_response)

    Server().ask(RedmeterMiddleware(app, memory))
    Server().ask(RedmeterMiddleware(hello, memory, route=lambda _: strange))
    assert routes(memory) == {"(unmatched)": 2}


def test_an_environ_that_is_not_as_it_should_be_is_no_error_of_ours(memory: MemoryMeter) -> None:
    """The application sees it as it is."""
    strange = environ() | {"SCRIPT_NAME": None, "PATH_INFO": "/\udcff", "REQUEST_METHOD": None}
    assert Server().ask(RedmeterMiddleware(hello, memory), strange) == [b"hello"]
    assert Server().ask(RedmeterMiddleware(hello, memory), {}) == [b"hello"]


def test_labels_come_from_the_environ(memory: MemoryMeter) -> None:
    """A function is given the server's environ."""
    app = RedmeterMiddleware(hello, memory, labels=lambda env: {"host": env["HTTP_HOST"]})
    Server().ask(app)
    labels = {"method": "GET", "route": "(unmatched)", "status": "2xx", "host": "127.0.0.1"}
    assert memory.recorded("http_requests", labels=labels) == 1


def test_paths_are_compared_as_they_were_meant(memory: MemoryMeter) -> None:
    """Within the application, wherever it is mounted, and in UTF-8, not as WSGI spells them."""
    app = RedmeterMiddleware(hello, memory, ignore_paths=["/health", "/café", "/"])
    Server().ask(app, environ("/health", SCRIPT_NAME="/shop"))
    Server().ask(app, environ("", SCRIPT_NAME="/shop"))
    Server().ask(app, environ("/café".encode().decode("latin-1")))
    assert memory.events == []
    Server().ask(app, environ("/shop/health"))
    Server().ask(app, environ("/\xff\u20ac"))
    assert memory.recorded("hits") == 2


def test_a_request_is_counted_once_however_many_stand_around_it(memory: MemoryMeter) -> None:
    """By the outermost."""
    inner = RedmeterMiddleware(hello, MemoryMeter())
    Server().ask(RedmeterMiddleware(inner, memory))
    assert memory.recorded("hits") == 1
    assert isinstance(inner.meter, MemoryMeter)
    assert inner.meter.events == []


def test_a_server_may_leave_out_iter(memory: MemoryMeter) -> None:
    """As some that take the body for an iterator do."""
    result: Any = RedmeterMiddleware(numbers, memory)(environ(), Server().start_response)
    assert [next(result), next(result), next(result)] == [b"0", b"1", b"2"]
    with pytest.raises(StopIteration):
        next(result)
    result.close()
    assert statuses(memory) == {"2xx": 1}


def test_nothing_of_a_request_is_held_when_it_has_ended(memory: MemoryMeter) -> None:
    """Nor does it wait for the garbage collector, which costs the application time."""
    import gc
    import weakref

    class Held:
        """What an environ holds."""

    gc.collect()
    gc.disable()
    try:
        for app in (hello, numbers, answering(Body(b"a"))):
            held = Held()
            seen = weakref.ref(held)
            Server().ask(RedmeterMiddleware(app, memory), environ() | {"x.held": held})
            del held
            assert seen() is None
    finally:
        gc.enable()


def test_time_in_a_database_is_told_of_the_request(memory: MemoryMeter) -> None:
    """Where a hook tells of it."""
    from redmeter.integrations.shared import databases

    told = databases._enabled
    databases.enable()
    try:

        def app(env: dict[str, Any], start_response: Any) -> Iterator[bytes]:
            spend(0.5)
            memory.clock.advance(1.0)
            yield from numbers(env, start_response)

        Server().ask(RedmeterMiddleware(app, memory))
        file = FileWrapper(io.BytesIO(b"x"))
        env = environ() | {"wsgi.file_wrapper": FileWrapper}
        RedmeterMiddleware(answering(file), memory)(env, Server().start_response)
        spend(9.0)  # of something else in this thread, while the server sends the file
        file.close()
    finally:
        databases._enabled = told
    labels = {"method": "GET", "route": "(unmatched)"}
    assert memory.observed("http_request_db_seconds", labels=labels) == [0.5]


def test_options_are_those_of_web_requests_or_of_a_meter() -> None:
    """What there is no option of is a mistake that shows at once."""
    with pytest.raises(TypeError, match="no such option: ignore"):
        RedmeterMiddleware(hello, MemoryMeter(), ignore="/health")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="url"):
        RedmeterMiddleware(hello, MemoryMeter(), url="off")
    made = RedmeterMiddleware(hello, url="redis://127.0.0.1:1", prefix="p:")
    assert "127.0.0.1:1" in repr(made)
    made.meter.close()


@pytest.mark.parametrize("url", ["off", "nonsense://x", "redis://127.0.0.1:notaport"])
def test_an_application_runs_without_a_store(url: str) -> None:
    """Switched off, or by mistake."""
    app = RedmeterMiddleware(numbers, url=url)
    assert Server().ask(app) == [b"0", b"1", b"2"]
    app.meter.count("mine")
    app.meter.close()


def test_a_meter_of_its_own_is_made_as_the_environment_says(monkeypatch: Any) -> None:
    """By the same names."""
    monkeypatch.setenv("REDMETER_URL", "off")
    app = RedmeterMiddleware(hello)
    assert repr(app.meter) == "<Meter off>"


@pytest.mark.parametrize("answer", [hello, numbers])
def test_stored_is_what_was_answered(meter: Meter, answer: Any) -> None:
    """On a server, not in memory."""
    app = RedmeterMiddleware(answer, meter)
    for _ in range(50):
        Server().ask(app)
    assert meter.flush()
    assert meter.total("hits") == 50
    labels = {"method": "GET", "route": "(unmatched)"}
    assert meter.total("http_requests", labels=labels | {"status": "2xx"}) == 50
    assert meter.summary("http_request_seconds", labels=labels, precision=60).count == 50


AT_FIRST = """
import sys
from redmeter.integrations.wsgi import RedmeterMiddleware

def hello(environ, start_response):
    start_response("200 OK", [])
    return []

app = RedmeterMiddleware(hello, url="redis://127.0.0.1:1", flush_interval=60)
before = set(sys.modules)
app({"REQUEST_METHOD": "GET", "PATH_INFO": "/"}, lambda *_: None)
print(sorted(set(sys.modules) - before))
app.meter.close()
"""


def test_the_first_request_waits_for_no_import() -> None:
    """What the client library imports late is there when the middleware is made."""
    done = subprocess.run(
        [sys.executable, "-c", AT_FIRST], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "[]\n"


def test_clocks_are_those_of_the_meter() -> None:
    """So that tests of applications can move them."""
    memory = MemoryMeter(clock=ManualClock(1_700_000_000.0))
    Server().ask(RedmeterMiddleware(hello, memory))
    assert memory.events[0].time == 1_700_000_000.0


def test_a_cleaner_runs_where_it_is_asked_for(server: RedisServer, conn: Any) -> None:
    """From the first request on, in each process that serves."""
    conn.zadd("redmeter:known:", {"60:old": 0})
    conn.hset("redmeter:count:60:old", mapping={"60": 1})
    app = RedmeterMiddleware(hello, url=server.url, cleaner=True)
    assert conn.zscore("redmeter:known:", "60:old") is not None
    Server().ask(app)
    eventually(lambda: conn.zscore("redmeter:known:", "60:old") is None, 5.0, "it has cleaned")
    Server().ask(app)
    names = [one.name for one in threading.enumerate()]
    assert names.count("redmeter-cleaner") == 1
    app.meter.close()
    for one in threading.enumerate():
        if one.name == "redmeter-cleaner":
            cleaner = one._target.__self__  # type: ignore[attr-defined]
            cleaner.stop(5.0)
