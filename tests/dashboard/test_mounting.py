"""Mounted in applications of all kinds, below any path."""

import json
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any
from wsgiref.util import setup_testing_defaults

import httpx
import pytest
from fastapi import FastAPI
from flask import Flask, session
from starlette.applications import Starlette
from starlette.routing import Mount
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.test import Client

from dashboard.conftest import error_of
from redmeter import Meter
from redmeter.dashboard import Dashboard
from redmeter.errors import InvalidSetting
from support import django_project  # noqa: F401  configures Django
from support.asking import asking
from support.servers import Server


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
    bare = client.get(f"{root}?view=pages")
    assert bare.status_code in (301, 307, 308)
    assert bare.headers["location"].endswith(f"{root}/?view=pages")


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
    server: Server, filled: Meter, django_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By include(); the project's function is given Django's request."""
    import django  # type: ignore[import-untyped]
    from django.conf import settings  # type: ignore[import-untyped]
    from django.http import HttpResponseRedirect  # type: ignore[import-untyped]
    from django.urls import include, path

    from redmeter.dashboard.django import dashboard_urls

    django.setup()
    only = "django.middleware.common.CommonMiddleware"

    async def later(request: Any) -> bool:
        return "ada" in request.GET

    def fails(request: Any) -> bool:
        raise LookupError("no session")

    away = HttpResponseRedirect("/l")
    conf = urls(
        path("metrics/", include(dashboard_urls(server.url, access="open"))),
        path("ada/", include(dashboard_urls(server.url, access=lambda r: "ada" in r.GET))),
        path("later/", include(dashboard_urls(server.url, access=later))),
        path("fails/", include(dashboard_urls(server.url, access=fails))),
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
    assert client.get("/fails/").status_code == 403
    assert client.get("/away/").headers["location"] == "/l"
    clear_url_caches()


def test_django_is_not_given_it_without_access() -> None:
    """The same rule."""
    from redmeter.dashboard.django import dashboard_urls

    with pytest.raises(InvalidSetting, match="say who may look"):
        dashboard_urls("redis://localhost")
