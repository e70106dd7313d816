"""An application that uvicorn serves, in a process of its own: nothing gets in its way."""

import socket
import sys

import pytest

from support.applications import STARLETTE, STARLETTE_ROUTES
from support.programs import Programs
from support.proxy import Proxy
from support.servers import Server, free_port
from support.waiting import eventually

pytestmark = pytest.mark.slow

TRACED = f"""{STARLETTE}
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
        for path in STARLETTE_ROUTES:
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
