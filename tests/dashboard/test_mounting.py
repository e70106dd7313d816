"""Mounted in applications of all kinds, below any path."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from wsgiref.util import setup_testing_defaults

import flask
import httpx
import pytest
from fastapi import FastAPI
from flask import Flask, session
from starlette.applications import Starlette
from starlette.responses import RedirectResponse
from starlette.routing import Mount
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.test import Client

from dashboard.conftest import error_of
from redmeter import Meter
from redmeter.dashboard import Dashboard
from redmeter.dashboard.login import Login
from redmeter.errors import InvalidSetting
from support import django_project  # noqa: F401  configures Django
from support.asking import asking
from support.programs import Programs
from support.servers import Server, free_port
from support.serving import gunicorn
from support.waiting import eventually


def check(client: Any, root: str) -> None:
    """Check that all is there below a path, and that the mount's slash is asked for."""
    answer = client.get(f"{root}/api/series?name=hits")
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert sum(json.loads(answer.text)["series"][0]["values"]) == 12
    assert client.get(f"{root}/healthz").status_code == 200
    assert client.get(f"{root}/api/nothing").status_code == 404
    assert client.get(f"{root}/").status_code in (200, 503)  # built or not
    assert client.post(f"{root}/api/marks").status_code == 405
    bare = client.get(f"{root}?view=routes")
    assert bare.status_code in (301, 307, 308)
    assert bare.headers["location"].endswith(f"{root}/?view=routes")


@pytest.mark.parametrize("root", ["/metrics", "/a/b", "/ä ö"])
def test_in_a_starlette_application(root: str, dashboard: Dashboard, filled: Meter) -> None:
    """By Mount; a mount within a mount too."""
    inner = Starlette(routes=[Mount(root, dashboard)])
    outer = Starlette(routes=[Mount("/out", inner)])
    for app, below in ((inner, root), (outer, f"/out{root}")):
        with asking(app) as client:
            assert client.get(f"{below}/api/series?name=hits").status_code == 200
            assert client.get(f"{below}/healthz").status_code == 200
    with asking(Starlette(routes=[Mount("/metrics", dashboard)])) as client:
        check(client, "/metrics")


def test_in_a_fastapi_application(dashboard: Dashboard, filled: Meter) -> None:
    """By mount(); behind a proxy that takes a part of the path off."""
    app = FastAPI()
    app.mount("/metrics", dashboard)
    with asking(app) as client:
        check(client, "/metrics")
    with asking(dashboard, root_path="/outside") as client:
        check(client, "/outside")


def test_a_server_that_leaves_the_mount_out_of_the_path_is_understood(
    dashboard: Dashboard, filled: Meter
) -> None:
    """As some do: then the path is what lies below."""
    with asking(dashboard, root_path="/elsewhere") as client:
        assert client.get("/api/series?name=hits").status_code == 200


def test_a_root_may_end_with_a_slash(server: Server, filled: Meter) -> None:
    """As some give it to their server, which then doubles it."""
    dashboard = Dashboard(server.url, access=Login(["a-token-of-mine"]))
    with asking(dashboard, root_path="/m/") as client:
        assert client.get("/m//healthz").status_code == 200
        bare = client.get("/m/?token=a-token-of-mine")
        assert (bare.status_code, bare.headers["location"]) == (303, "/m/")
        assert "Path=/m/;" in bare.headers["set-cookie"]
        answer = client.get("/m//api/series?name=hits")
        assert sum(answer.json()["series"][0]["values"]) == 12
    dashboard.close()


def test_a_websocket_is_turned_away(dashboard: Dashboard) -> None:
    """There is none."""
    import asyncio

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    scope = {"type": "websocket", "path": "/", "headers": [], "query_string": b""}
    asyncio.run(dashboard(scope, receive, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


# --- WSGI ----------------------------------------------------------------------------------


class ByWerkzeug:
    """A client of a WSGI application that looks like one of httpx."""

    def __init__(self, app: Any) -> None:
        self._client = Client(app)

    def request(self, method: str, path: str, **options: Any) -> Any:
        """Ask."""
        answer = self._client.open(path, method=method, **options)
        headers = {name.lower(): text for name, text in answer.headers}
        return httpx.Response(answer.status_code, headers=headers, content=answer.data)

    def get(self, path: str, **options: Any) -> Any:
        """Ask by GET."""
        return self.request("GET", path, **options)

    def post(self, path: str) -> Any:
        """Ask by POST, with a body."""
        return self.request("POST", path, data=b"x" * 100)


def test_in_a_wsgi_application(dashboard: Dashboard, filled: Meter) -> None:
    """As Flask's; in several threads at once."""
    app = Flask(__name__)
    app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/metrics": dashboard.wsgi})  # type: ignore[method-assign]
    client = ByWerkzeug(app)
    check(client, "/metrics")
    got: list[int] = []

    def ask() -> None:
        got.extend(client.get("/metrics/api/overview").status_code for _ in range(5))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [200] * 20


def test_a_flask_session_says_who_may_look(server: Server) -> None:
    """The function finds the environ in the scope of the request."""
    app = Flask(__name__)
    app.secret_key = "not one"

    @app.get("/login")
    def login() -> str:
        session["user"] = "ada"
        return "hello"

    def may_look(request: Any) -> bool:
        with app.request_context(request.scope["wsgi_environ"]):
            return session.get("user") == "ada"

    dashboard = Dashboard(server.url, access=may_look)
    app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/metrics": dashboard.wsgi})  # type: ignore[method-assign]
    client = ByWerkzeug(app)
    assert client.get("/metrics/api/marks").status_code == 403
    assert client.get("/login").status_code == 200
    assert client.get("/metrics/api/marks").status_code == 200
    dashboard.close()


@pytest.mark.parametrize(
    ("says", "status", "sent"),
    [
        (lambda: flask.redirect("/login"), 302, ("location", "/login")),
        (lambda: flask.Response("no", 403, {"X-Why": "no session"}), 403, ("x-why", "no session")),
        (lambda: flask.abort(401), 401, ("content-type", "text/html; charset=utf-8")),
        (lambda: flask.abort(flask.redirect("/l")), 302, ("location", "/l")),
        (lambda: ("no", 403), 403, ("content-type", "application/json")),
    ],
)
def test_flask_refuses_in_its_own_words(
    says: Any, status: int, sent: tuple[str, str], server: Server, filled: Meter
) -> None:
    """By a response or by abort(); what it would make a response of is none yet."""
    app = Flask(__name__)

    def may_look(request: Any) -> Any:
        with app.request_context(request.scope["wsgi_environ"]):
            return says()

    dashboard = Dashboard(server.url, access=may_look)
    app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/metrics": dashboard.wsgi})  # type: ignore[method-assign]
    answer = ByWerkzeug(app).get("/metrics/api/series?name=hits")
    assert (answer.status_code, answer.headers[sent[0]]) == (status, sent[1])
    assert "values" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    dashboard.close()


PRELOADED = """
import os
from wsgiref.util import setup_testing_defaults
from flask import Flask
from redmeter.dashboard import Dashboard
from werkzeug.middleware.dispatcher import DispatcherMiddleware

app = Flask(__name__)
app.add_url_rule("/pid", view_func=lambda: str(os.getpid()))
dashboard = Dashboard(access="open")
mounted = dashboard.wsgi
if os.environ.get("ASKED"):  # the parent asked something itself, before it forked
    environ = {"PATH_INFO": "/healthz"}
    setup_testing_defaults(environ)
    assert b"ok" in b"".join(mounted(environ, lambda *_: None))
app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/metrics": mounted})
"""


@pytest.mark.parametrize("asked", ["", "1"])
def test_in_a_server_that_loads_the_application_before_it_forks(
    asked: str, server: Server, meter: Meter, tmp_path: Path
) -> None:
    """Each worker answers, though the application was made in their parent."""
    meter.count("hits", 12)
    port = free_port()
    served = gunicorn("--preload", "--threads", "2", code=PRELOADED)
    with Programs(tmp_path, server.url) as programs:
        program = served.start(programs, port, ASKED=asked)
        base = f"http://127.0.0.1:{port}"

        def pid() -> str:
            try:
                return httpx.get(f"{base}/pid", timeout=5).text
            except httpx.TransportError:
                assert program.running, program.err
                return ""

        eventually(lambda: pid() != "", 20.0)
        found = set()
        for _ in range(20):
            answer = httpx.get(f"{base}/metrics/api/series?name=hits", timeout=10)
            assert sum(answer.json()["series"][0]["values"]) == 12
            found.add(pid())
        assert str(program.pid) not in found


@pytest.mark.parametrize(
    "odd", [{"QUERY_STRING": "name=\xff"}, {"PATH_INFO": "/\xff"}, {"SCRIPT_NAME": "/\xff"}]
)
def test_what_wsgi_cannot_hand_over_is_refused(odd: dict[str, str], dashboard: Dashboard) -> None:
    """JSON here too, with all headers."""
    environ: dict[str, Any] = {}
    setup_testing_defaults(environ)
    told: list[Any] = []
    body = b"".join(dashboard.wsgi(environ | odd, lambda *given: told.extend(given)))
    assert told[0] == "400 Bad Request"
    assert json.loads(body)["error"]["code"] == "not-utf-8"
    assert dict(told[1])["X-Content-Type-Options"] == "nosniff"


# --- Django --------------------------------------------------------------------------------


@pytest.fixture
def django_client() -> Iterator[Any]:
    """A client of a Django project whose urls are set by a test."""
    from django.core.handlers.wsgi import WSGIHandler  # type: ignore[import-untyped]
    from django.urls import set_urlconf  # type: ignore[import-untyped]

    yield lambda: ByWerkzeug(WSGIHandler())
    set_urlconf(None)


def urls(*patterns: Any) -> Any:
    """Return a module of urls."""
    module = ModuleType("urls")
    module.urlpatterns = list(patterns)  # type: ignore[attr-defined]
    return module


def test_in_the_urls_of_a_django_project(
    server: Server,
    filled: Meter,
    django_client: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """By include(); the project's function is given Django's request."""
    import django  # type: ignore[import-untyped]
    from django.conf import settings  # type: ignore[import-untyped]
    from django.core.exceptions import PermissionDenied  # type: ignore[import-untyped]
    from django.http import Http404, HttpResponseRedirect  # type: ignore[import-untyped]
    from django.urls import include, path

    from redmeter.dashboard.django import dashboard_urls

    django.setup()
    only = "django.middleware.common.CommonMiddleware"

    async def later(request: Any) -> bool:
        return "ada" in request.GET

    def fails(request: Any) -> bool:
        raise LookupError("no session")

    texts: Any = lambda _: "no"  # noqa: E731  as an application may have it wrong

    def denies(request: Any) -> bool:
        raise PermissionDenied

    def hides(request: Any) -> bool:
        raise Http404

    away = HttpResponseRedirect("/l")
    conf = urls(
        path("metrics/", include(dashboard_urls(server.url, access="open"))),
        path("ada/", include(dashboard_urls(server.url, access=lambda r: "ada" in r.GET))),
        path("later/", include(dashboard_urls(server.url, access=later))),
        path("fails/", include(dashboard_urls(server.url, access=fails))),
        path("denies/", include(dashboard_urls(server.url, access=denies))),
        path("hides/", include(dashboard_urls(server.url, access=hides))),
        path("texts/", include(dashboard_urls(server.url, access=texts))),
        path(
            "others/", include(dashboard_urls(server.url, access=lambda _: RedirectResponse("/")))
        ),
        path(
            "away/",
            include(dashboard_urls(server.url, access=lambda _: away)),
        ),
    )
    monkeypatch.setattr(settings, "ROOT_URLCONF", conf)
    monkeypatch.setattr(settings, "MIDDLEWARE", [only])
    from django.urls import clear_url_caches

    clear_url_caches()
    client = django_client()
    check(client, "/metrics")
    for name in ("ada", "later"):
        refused = client.get(f"/{name}/")
        assert (refused.status_code, error_of(refused)["code"]) == (403, "forbidden")
        passed = client.get(f"/{name}/api/marks?ada")
        assert (passed.status_code, error_of(passed)["code"]) == (400, "unknown-parameter")
        assert client.get(f"/{name}/healthz").status_code == 200
    caplog.clear()
    assert client.get("/denies/api/marks").status_code == 403
    assert client.get("/hides/api/marks").status_code == 404
    assert "access= of the dashboard" not in caplog.text
    for name, kind in (("texts", "str"), ("others", "RedirectResponse")):
        refused = client.get(f"/{name}/api/marks")
        assert (refused.status_code, error_of(refused)["code"]) == (403, "forbidden")
        assert f"returned {kind}, which is neither" in caplog.text
    assert client.get("/fails/").status_code == 403
    assert client.get("/away/").headers["location"] == "/l"
    clear_url_caches()


def test_django_is_not_given_it_without_access() -> None:
    """The same rule."""
    from redmeter.dashboard.django import dashboard_urls

    with pytest.raises(InvalidSetting, match="decide who has access"):
        dashboard_urls("redis://localhost")
