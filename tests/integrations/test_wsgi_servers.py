"""Applications under gunicorn and waitress, in processes: what is stored is what was answered.

Flush intervals are long, so what is stored was stored because a process ended, in good order.
"""

import os
import signal
import sys
import time
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

FLASK = """
import os
from flask import Blueprint, Flask, Response
from redmeter.integrations.flask import Redmeter

app = Flask(__name__)
app.logger.disabled = True
shop = Blueprint("shop", __name__, url_prefix="/shop/<tenant>")

@app.get("/users/<int:user_id>")
def user(user_id):
    return str(os.getpid())

@shop.get("/stream")
def stream(tenant):
    return Response(digit for digit in str(os.getpid()))

@shop.get("/fail")
def fail(tenant):
    raise ValueError("no such plan")

app.register_blueprint(shop)
redmeter = Redmeter(app)
"""

DJANGO = """
import os
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse, StreamingHttpResponse
from django.urls import include, path, re_path

settings.configure(
    ROOT_URLCONF=__name__,
    SECRET_KEY="x",
    ALLOWED_HOSTS=["*"],
    LOGGING={"version": 1, "loggers": {"django": {"level": "CRITICAL"}}},
    INSTALLED_APPS=["redmeter.integrations.django"],
    MIDDLEWARE=["redmeter.integrations.django.RedmeterMiddleware"],
)

def user(request, user_id):
    return HttpResponse(str(os.getpid()))

def stream(request, tenant):
    return StreamingHttpResponse(digit for digit in str(os.getpid()))

async def astream(request, tenant):
    async def digits():
        for digit in str(os.getpid()):
            yield digit
    return StreamingHttpResponse(digits())

def fail(request, tenant):
    raise ValueError("no such plan")

urlpatterns = [
    path("users/<int:user_id>", user),
    re_path("^shop/(?P<tenant>[a-z]+)/", include(
        [path("stream", astream if "ASGI" in os.environ else stream), path("fail", fail)]
    )),
]
app = get_asgi_application() if "ASGI" in os.environ else get_wsgi_application()
"""

ROUTES = {
    "/users/7": "/users/{user_id}",
    "/shop/a/stream": "/shop/{tenant}/stream",
    "/shop/b/fail": "/shop/{tenant}/fail",
    "/none": "(unmatched)",
}


@pytest.fixture
def programs(server: Server, tmp_path: Path) -> Iterator[Programs]:
    """Starts programs."""
    with Programs(tmp_path, server.url) as programs:
        yield programs


def serve(programs: Programs, code: str, *command: str, **env: str) -> Program:
    """Start a server of an application, as a module of Python."""
    programs.write("application.py", code)
    store = {"REDMETER_URL": programs.url, "REDMETER_FLUSH_INTERVAL": "60"}
    return programs.command(sys.executable, "-m", *command, env=store | env)


def gunicorn(programs: Programs, code: str, port: int, *options: str, **env: str) -> Program:
    """Start gunicorn with two workers."""
    places = ("--bind", f"127.0.0.1:{port}", "--worker-tmp-dir", str(programs.folder))
    command = ("gunicorn", "application:app", "--workers", "2", "--log-level", "critical")
    return serve(programs, code, *command, *places, *options, **env)


def stored(conn: Any) -> Counter[tuple[str, str]]:
    """Return what is stored: (route, status) -> how many."""
    found: Counter[tuple[str, str]] = Counter()
    for name, count in conn.hgetall("redmeter:total:").items():
        parsed = parse_name(name.decode())
        if parsed.base == "http_requests":
            found[str(parsed.label("route")), str(parsed.label("status"))] += int(count)
    return found


def answered(load: Load) -> Counter[tuple[str, str]]:
    """Return what the client saw: (route, status) -> how many."""
    return Counter((ROUTES[each.path], f"{each.status // 100}xx") for each in load.answered)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--preload",),
        ("--threads", "4"),
        ("--worker-class", "gevent"),
    ],
    ids=" ".join,
)
def test_gunicorn_stores_every_request_that_it_answered(
    programs: Programs, conn: Any, options: tuple[str, ...]
) -> None:
    """Over all workers, which come and go by --max-requests, and end while requests come in."""
    port = free_port()
    program = gunicorn(programs, FLASK, port, *options, "--max-requests", "40")
    with Load(port, list(ROUTES)) as load:
        load.until(program, 60, 3)
        end(program, load)
    assert stored(conn) == answered(load)
    assert int(conn.hget("redmeter:total:", "hits")) == len(load.answered)
    assert len(stored(conn)) == len(ROUTES)


@pytest.mark.parametrize("options", [(), ("--worker-class", "gevent", "--preload")], ids=" ".join)
def test_workers_that_are_replaced_store_what_they_answered(
    programs: Programs, conn: Any, options: tuple[str, ...]
) -> None:
    """By SIGHUP, all at once, while requests come in."""
    port = free_port()
    program = gunicorn(programs, FLASK, port, *options)
    with Load(port, list(ROUTES)) as load:
        load.until(program, 30, 2)
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
    program = gunicorn(programs, FLASK, port, REDMETER_FLUSH_INTERVAL=str(interval))
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


def test_waitress_stores_every_request_that_it_answered(programs: Programs, conn: Any) -> None:
    """It knows nothing of SIGTERM, so the application asks for a flush then."""
    port = free_port()
    code = f"{FLASK}\nredmeter.meter.flush_on_sigterm()"
    program = serve(programs, code, "waitress", "--listen", f"127.0.0.1:{port}", "application:app")
    with Load(port, list(ROUTES)) as load:
        load.until(program, 60)
        load.stop()
        time.sleep(0.2)  # a response is recorded when it is closed, which is after it was sent
        end(program, load)
    assert stored(conn) == answered(load)


def test_gunicorn_stores_every_request_that_django_answered(programs: Programs, conn: Any) -> None:
    """Under WSGI."""
    port = free_port()
    program = gunicorn(programs, DJANGO, port, "--threads", "4", "--max-requests", "40")
    with Load(port, list(ROUTES)) as load:
        load.until(program, 60, 3)
        end(program, load)
    assert stored(conn) == answered(load)
    assert len(stored(conn)) == len(ROUTES)


def test_uvicorn_stores_every_request_that_django_answered(programs: Programs, conn: Any) -> None:
    """Under ASGI."""
    port = free_port()
    command = ("uvicorn", "application:app", "--port", str(port), "--workers", "2")
    program = serve(programs, DJANGO, *command, "--log-level", "critical", ASGI="1")
    with Load(port, list(ROUTES)) as load:
        load.until(program, 60, 2)
        end(program, load)
    assert stored(conn) == answered(load)
    assert len(stored(conn)) == len(ROUTES)


# Never in the way

TRACED = """
import contextlib, io, socket, sys, threading, time
import flask_project, django_project
from wsgiref.handlers import SimpleHandler
from wsgiref.util import setup_testing_defaults
from django.core.handlers.wsgi import WSGIHandler
from django.test import override_settings
from redmeter.integrations.django import meter
from redmeter.integrations.wsgi import RedmeterMiddleware

main = threading.main_thread().ident
waits, others, counting = [], set(), False

def seen(what):
    if threading.get_ident() == main:
        waits.append(what)
    else:
        others.add(what)

def audit(event, args):
    if counting and event in ("socket.connect", "socket.getaddrinfo", "time.sleep"):
        seen(event)

for name in ("sendall", "recv_into", "connect"):
    def traced(self, *args, _name=name, _call=getattr(socket.socket, name)):
        if counting:
            seen(_name)
        return _call(self, *args)
    setattr(socket.socket, name, traced)
sys.addaudithook(audit)

def answer(app, path):
    env = {"PATH_INFO": path, "REQUEST_METHOD": "GET", "SCRIPT_NAME": "", "QUERY_STRING": ""}
    setup_testing_defaults(env)
    out = io.BytesIO()
    SimpleHandler(io.BytesIO(), out, io.StringIO(), env).run(app)
    lines = out.getvalue().split(b"\\r\\n")
    return b"\\r\\n".join(line for line in lines if not line.startswith(b"Date: "))

def plain(env, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"plain"] if env["PATH_INFO"] == "/users/7" else iter([b"st", b"ream"])

def flask_app(**config):
    return flask_project.made(REDMETER_TIMEOUT=0.2, REDMETER_FLUSH_INTERVAL=0.05, **config)

PATHS = ["/users/7", "/shop/a/stream", "/shop/b/fail", "/none"]
bare = {"plain": plain, "flask": flask_project.bare()}
wanted = {(name, path): answer(app, path) for name, app in bare.items() for path in PATHS}
with override_settings(MIDDLEWARE=[]):
    handler = WSGIHandler()
    wanted |= {("django", path): answer(handler, path) for path in PATHS}
apps, meters = {}, []
for place in sys.argv[1:]:
    options = {"url": place, "timeout": 0.2, "flush_interval": 0.05}
    apps[place, "plain"] = RedmeterMiddleware(plain, **options)
    apps[place, "flask"] = flask_app(REDMETER_URL=place)
    with override_settings(
        REDMETER_URL=place, REDMETER_TIMEOUT=0.2, REDMETER_FLUSH_INTERVAL=0.05
    ):
        apps[place, "django"] = WSGIHandler()
        meters += [apps[place, "plain"].meter, apps[place, "flask"].extensions["redmeter"], meter()]
started = time.monotonic()
while time.monotonic() < started + 20:
    for (place, name), app in apps.items():
        for path in PATHS:
            counting = True
            got = answer(app, path)
            if got != wanted[name, path]:
                sys.exit(f"{place} {name} {path}: {got!r} not {wanted[name, path]!r}")
    if waits:
        sys.exit(f"on the way of a request: {set(waits)}")
    known = {"connect", "recv_into", "sendall", "socket.getaddrinfo"} <= others
    if known and time.monotonic() > started + 1.5:  # a few timeouts long
        counting = False
        print("well" if all([one.flush(10) for one in meters[:3]]) else "not stored")
        break
import os
os._exit(0)
"""

MADE = """
def made(**config):
    app = bare()
    app.config.update(config)
    Redmeter(app)
    return app

def bare():
    app = Flask(__name__)
    app.logger.disabled = True
    app.add_url_rule("/users/<int:user_id>", view_func=user)
    app.register_blueprint(shop)
    return app
"""


@pytest.fixture
def full() -> Iterator[Server]:
    """A server whose memory is full."""
    with Server(config={"maxmemory": "1", "maxmemory-policy": "noeviction"}) as server:
        yield server


def test_no_state_of_the_store_changes_an_answer_or_lets_it_wait(
    programs: Programs, conn: Any, full: Server, proxy: Proxy
) -> None:
    """Byte for byte; no address is looked up, nothing sent and nothing waited for on its way."""
    proxy.delay(1.0)
    places = [
        programs.url,
        f"redis://127.0.0.1:{free_port()}",
        proxy.url,
        full.url,
        programs.url.replace("redis://", "redis://:wrong@"),
        "redis://no-such-host.invalid",
        "http://wrong",
        "::",
        "off",
    ]
    programs.write("flask_project.py", FLASK.replace("redmeter = Redmeter(app)", "") + MADE)
    programs.write("django_project.py", DJANGO)
    programs.write("traced.py", TRACED)
    done = programs.command(
        sys.executable, "traced.py", *places, env={"REDMETER_URL": "off"}
    ).finish(40.0)
    assert (done.code, done.out.strip()) == (0, "well"), done
    assert set(stored(conn)) == {
        *(
            (ROUTES[path], status)
            for path, status in zip(ROUTES, ("2xx", "2xx", "5xx", "4xx"), strict=True)
        ),
        ("(unmatched)", "2xx"),
    }
