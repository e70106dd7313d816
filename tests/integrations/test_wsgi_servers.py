"""Applications of WSGI, Flask and Django in a process of their own: nothing gets in their way."""

import sys
from typing import Any

import pytest

from support.applications import DJANGO, FLASK, ROUTES
from support.programs import Programs
from support.proxy import Proxy
from support.servers import Server, free_port
from support.serving import stored

pytestmark = pytest.mark.slow

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
