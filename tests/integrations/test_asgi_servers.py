"""Applications that uvicorn serves, in processes of their own: what is stored is what was answered.

Flush intervals are long, so what is stored was stored because a process ended, in good order.
"""

import os
import signal
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redmeter.names import parse_name
from support.load import Load, end
from support.programs import Program, Programs
from support.proxy import Proxy
from support.servers import Server, free_port
from support.waiting import eventually

pytestmark = pytest.mark.slow

SHOP = """
import os
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Mount, Route
from redmeter.integrations.asgi import RedmeterMiddleware

async def user(request):
    return PlainTextResponse(str(os.getpid()))

async def stream(request):
    async def parts():
        for digit in str(os.getpid()):
            yield digit
    return StreamingResponse(parts())

async def fail(request):
    raise ValueError("no such plan")

def shop():
    items = [Route("/items/{id:int}", user), Route("/stream", stream), Route("/fail", fail)]
    return Starlette(routes=[Route("/users/{id}", user), Mount("/shop/{tenant}", routes=items)])
"""

COUNTED = f"""{SHOP}
app = shop()
app.add_middleware(RedmeterMiddleware)
"""

ROUTES = {
    "/users/7": "/users/{id}",
    "/shop/a/items/3": "/shop/{tenant}/items/{id}",
    "/shop/b/stream": "/shop/{tenant}/stream",
    "/shop/c/fail": "/shop/{tenant}/fail",
    "/none": "(unmatched)",
}


@pytest.fixture
def programs(server: Server, tmp_path: Path) -> Iterator[Programs]:
    """Starts programs."""
    with Programs(tmp_path, server.url) as programs:
        yield programs


def uvicorn(programs: Programs, code: str, port: int, workers: int, **env: str) -> Program:
    """Start a server."""
    programs.write("application.py", code)
    return programs.command(
        *(sys.executable, "-m", "uvicorn", "application:app", "--port", str(port)),
        *("--workers", str(workers), "--log-level", "critical"),
        env={"REDMETER_URL": programs.url, "REDMETER_FLUSH_INTERVAL": "60", **env},
    )


def stored(conn: Any) -> Counter[tuple[str, str]]:
    """Return what is stored: (route, status) -> how many."""
    found: Counter[tuple[str, str]] = Counter()
    for name, count in conn.hgetall("redmeter:total:").items():
        parsed = parse_name(name.decode())
        if parsed.base == "http_requests":
            assert parsed.label("method") == "GET"
            found[str(parsed.label("route")), str(parsed.label("status"))] += int(count)
    return found


def answered(load: Load) -> Counter[tuple[str, str]]:
    """Return what the client saw: (route, status) -> how many."""
    return Counter((ROUTES[each.path], f"{each.status // 100}xx") for each in load.answered)


@pytest.mark.parametrize("workers", [1, 2])
def test_uvicorn_stores_every_request_that_it_answered(
    programs: Programs, conn: Any, workers: int
) -> None:
    """By route and status, over all workers, though it is ended while requests come in."""
    port = free_port()
    program = uvicorn(programs, COUNTED, port, workers)
    with Load(port, list(ROUTES)) as load:
        load.until(program, 150, workers)
        end(program, load)
    assert stored(conn) == answered(load)
    assert int(conn.hget("redmeter:total:", "hits")) == len(load.answered)
    assert len(stored(conn)) == len(ROUTES)


def test_workers_that_are_replaced_store_what_they_answered(programs: Programs, conn: Any) -> None:
    """By SIGHUP, one after the other, while requests come in."""
    port = free_port()
    program = uvicorn(programs, COUNTED, port, 2)
    with Load(port, list(ROUTES)) as load:
        load.until(program, 60, 2)
        program.send(signal.SIGHUP)
        load.until(program, 60, 4)
        end(program, load)
    assert len(load.bodies()) == 4
    assert stored(conn) == answered(load)


def test_a_worker_that_is_killed_loses_an_interval_of_its_own(
    programs: Programs, conn: Any
) -> None:
    """All that it had answered before is stored, and all of the other worker."""
    port, interval = free_port(), 0.3
    program = uvicorn(programs, COUNTED, port, 2, REDMETER_FLUSH_INTERVAL=str(interval))
    with Load(port, ["/users/7"]) as load:
        load.until(program, 100, 2)
        eventually(lambda: stored(conn).total() > 0, 5.0, "a flush")
        victim = load.answered[-1].body
        os.kill(int(victim), signal.SIGKILL)
        load.until(program, len(load.answered) + 50)
        end(program, load)
    own = [each.time for each in load.answered if each.body == victim]
    # A flush takes a moment, and the machine may be busy.
    risked = sum(time > own[-1] - interval - 0.5 for time in own)
    lost = len(load.answered) - stored(conn).total()
    # Three at most were counted whose answers never came.
    assert -3 <= lost <= risked


# Never in the way

TRACED = f"""{SHOP}
import socket, sys, threading, time
from redmeter import Meter

main = threading.main_thread().ident
waits, others = [], set()

def seen(what):
    if threading.get_ident() == main:
        waits.append(what)
    else:
        others.add(what)

def audit(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "time.sleep"):
        seen(event)

for name in ("sendall", "recv_into", "connect"):
    def traced(self, *args, _name=name, _call=getattr(socket.socket, name)):
        seen(_name)
        return _call(self, *args)
    setattr(socket.socket, name, traced)
sys.addaudithook(audit)

def serving(**settings):
    return RedmeterMiddleware(shop(), timeout=0.2, flush_interval=0.05, **settings)

apps = {{name: serving(url=url) for name, url in (pair.split("=", 1) for pair in sys.argv[2:])}}
apps["bare"] = shop()

async def app(scope, receive, send):
    if scope["type"] == "http":
        _, name, rest = scope["path"].split("/", 2)
        if name == "traced":
            told = ",".join(sorted(set(waits))) + ";" + ",".join(sorted(others))
            await PlainTextResponse(told)(scope, receive, send)
            return
        await apps[name]({{**scope, "path": "/" + rest}}, receive, send)

import uvicorn
uvicorn.run(app, port=int(sys.argv[1]), log_level="critical", lifespan="off")
"""


@pytest.fixture
def full(fleet: Any) -> Iterator[Server]:
    """A server whose memory is full."""
    with Server(config={"maxmemory": "1", "maxmemory-policy": "noeviction"}) as server:
        yield server


def raw_answer(port: int, path: str) -> bytes:
    """Return all bytes that come back for a request, but for the date."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        request = f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        client.sendall(request.encode())
        parts = []
        while part := client.recv(65536):
            parts.append(part)
    lines = b"".join(parts).split(b"\r\n")
    return b"\r\n".join(line for line in lines if not line.startswith(b"date:"))


def test_no_state_of_the_store_changes_an_answer_or_lets_it_wait(
    programs: Programs, full: Server, proxy: Proxy
) -> None:
    """Byte for byte; no address is looked up, nothing sent and nothing waited for on its way."""
    proxy.delay(1.0)
    places = {
        "well": programs.url,
        "down": f"redis://127.0.0.1:{free_port()}",
        "slow": proxy.url,
        "full": full.url,
        "password": programs.url.replace("redis://", "redis://:wrong@"),
        "host": "redis://no-such-host.invalid",
        "wrong": "http://wrong",
        "nonsense": "::",
        "off": "off",
    }
    port = free_port()
    programs.write("application.py", TRACED)
    program = programs.command(
        *(sys.executable, "application.py", str(port)),
        *(f"{name}={url}" for name, url in places.items()),
    )

    def up() -> bool:
        assert program.running, program.err
        try:
            return raw_answer(port, "/traced/") != b""
        except OSError:
            return False

    eventually(up, 20.0, "the server answers")
    for _ in range(3):
        for path in ROUTES:
            bare = raw_answer(port, f"/bare{path}")
            assert bare.startswith(b"HTTP/1.1 ")
            for name in places:
                assert raw_answer(port, f"/{name}{path}") == bare, (name, path)

    def traced() -> bool:
        told = raw_answer(port, "/traced/").decode().rpartition("\r\n")[2]
        in_requests, _, in_background = told.partition(";")
        assert in_requests == ""
        return {"connect", "recv_into", "sendall", "socket.getaddrinfo"} <= set(
            in_background.split(",")
        )

    eventually(traced, 10.0, "the background is seen")
