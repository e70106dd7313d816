"""The Flask extension: routes of all kinds, errors handled and not, settings."""

import io
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import flask
import pytest
from flask import Blueprint, Flask, Response, abort, request, send_file, stream_with_context
from flask.testing import FlaskClient
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.test import Client, create_environ, run_wsgi_app

from redmeter import Meter
from redmeter.integrations import wsgi
from redmeter.integrations.flask import Redmeter
from redmeter.names import parse_name
from redmeter.testing import MemoryMeter


class Timeout(BaseException):
    """As that of gevent."""


def shop() -> Flask:
    """A small shop."""
    app = Flask("shop", static_folder=None)
    orders = Blueprint("orders", __name__, url_prefix="/orders")
    lines = Blueprint("lines", __name__, url_prefix="/<int:order>/lines")

    @app.get("/")
    def index() -> str:
        return "welcome"

    @app.get("/users/<int:user_id>")
    def user(user_id: int) -> str:
        return f"user {user_id}"

    @app.get("/files/<any(a, b):kind>/<path:name>")
    def file(kind: str, name: str) -> str:
        return f"{kind} {name}"

    @app.route("/slash/", methods=["POST"])
    def slash() -> str:
        return "slash"

    @app.get("/teapot")
    def teapot() -> str:
        abort(418)

    @app.get("/broken")
    def broken() -> str:
        raise LookupError("no such plate")

    @app.get("/timeout/<kind>")
    def timeout(kind: str) -> str:
        raise {"exit": SystemExit(1), "gevent": Timeout()}[kind]

    @app.get("/odd")
    def odd() -> str:
        raise KeyError("handled")

    @app.errorhandler(KeyError)
    def handle(error: KeyError) -> tuple[str, int]:
        return "that was handled", 409

    @app.get("/stream")
    def stream() -> Response:
        def pieces() -> Iterator[str]:
            yield request.path
            if "fail" in request.args:
                raise ValueError("half way")
            yield "!"

        return Response(stream_with_context(pieces()))

    @app.get("/download")
    def download() -> Response:
        return send_file(io.BytesIO(b"x" * 9000), mimetype="text/plain")

    @orders.get("/")
    def listing() -> str:
        return "orders"

    @lines.get("/<uuid:line>")
    def line(order: int, line: object) -> str:
        return "line"

    orders.register_blueprint(lines)
    app.register_blueprint(orders)
    return app


@pytest.fixture
def app(memory: MemoryMeter) -> Flask:
    """The shop, counted."""
    app = shop()
    Redmeter(app, memory)
    return app


def counted(memory: MemoryMeter) -> list[tuple[str, str]]:
    """Return route and status of each request, in their order."""
    found = [parse_name(one.series) for one in memory.events]
    labels = [dict(pairs) for name, pairs in found if name == "http_requests"]
    return [(one["route"], one["status"]) for one in labels]


def client_of(app: Flask) -> FlaskClient:
    """Return a client that reads all of a response, and closes it, as servers do."""

    class Client(FlaskClient):
        def open(self, *arguments: Any, buffered: bool = True, **more: Any) -> Any:
            return super().open(*arguments, buffered=buffered, **more)

    return Client(app, app.response_class)


UUID = "00000000-0000-0000-0000-000000000001"


@pytest.mark.parametrize(
    ("method", "path", "route", "status"),
    [
        ("GET", "/", "/", "2xx"),
        ("HEAD", "/", "/", "2xx"),
        ("OPTIONS", "/users/1", "/users/{user_id}", "2xx"),
        ("GET", "/users/4711", "/users/{user_id}", "2xx"),
        ("GET", "/files/a/b/c.txt", "/files/{kind}/{name}", "2xx"),
        ("GET", "/orders/", "/orders/", "2xx"),
        ("GET", f"/orders/7/lines/{UUID}", "/orders/{order}/lines/{line}", "2xx"),
        ("GET", "/orders/7/lines/x", "(unmatched)", "4xx"),
        ("GET", "/orders", "(unmatched)", "3xx"),
        ("GET", "/users/x", "(unmatched)", "4xx"),
        ("GET", "/nothing", "(unmatched)", "4xx"),
        ("POST", "/users/1", "/users/{user_id}", "4xx"),
        ("GET", "/slash/", "/slash/", "4xx"),
        ("GET", "/teapot", "/teapot", "4xx"),
        ("GET", "/odd", "/odd", "4xx"),
        ("GET", "/broken", "/broken", "5xx"),
        ("GET", "/stream", "/stream", "2xx"),
        ("GET", "/download", "/download", "2xx"),
    ],
)
def test_the_route_is_the_rule(
    app: Flask, memory: MemoryMeter, method: str, path: str, route: str, status: str
) -> None:
    """With the prefixes of blueprints; without a rule it is (unmatched)."""
    plain = client_of(shop()).open(path, method=method)
    answer = client_of(app).open(path, method=method)
    assert (answer.status, answer.data) == (plain.status, plain.data)
    for each in (plain, answer):  # a file's answer has the time, which may go on between the two
        each.headers.pop("Date", None)
    assert dict(answer.headers) == dict(plain.headers)
    answer.close()
    assert counted(memory) == [(route, status)]
    assert memory.recorded("hits") == 1


def test_an_exception_is_logged_where_no_handler_takes_it(app: Flask, memory: MemoryMeter) -> None:
    """With its route and its place; what a handler takes is no failure."""
    client = client_of(app)
    for path in ("/odd", "/teapot", "/nothing", "/broken"):
        client.get(path)
    (logged,) = memory.messages
    assert logged.message.severity == "error"
    assert logged.pattern.startswith("GET /broken [LookupError at test_flask.py:")


def test_an_exception_counts_once_though_flask_passes_it_on(
    app: Flask, memory: MemoryMeter
) -> None:
    """As it does in tests and while debugging."""
    app.config["PROPAGATE_EXCEPTIONS"] = True
    with pytest.raises(LookupError):
        client_of(app).get("/broken")
    assert counted(memory) == [("/broken", "5xx")]
    assert len(memory.messages) == 1


@pytest.mark.parametrize("kind", ["exit", "gevent"])
@pytest.mark.parametrize("around", [False, True])
def test_what_ends_a_worker_is_recorded_with_its_route(
    app: Flask, memory: MemoryMeter, kind: str, around: bool
) -> None:
    """By the extension, and by a middleware around it."""
    outer = MemoryMeter() if around else memory
    served = wsgi.RedmeterMiddleware(app, outer) if around else app
    with pytest.raises((SystemExit, Timeout)):
        Client(served).get(f"/timeout/{kind}")
    assert counted(outer) == [("/timeout/{kind}", "5xx")]
    (logged,) = outer.messages
    assert logged.pattern.startswith("GET /timeout/{kind} [")
    assert memory.events == ([] if around else outer.events)


def test_a_stream_that_is_left_is_no_failure(app: Flask, memory: MemoryMeter) -> None:
    """Though the request's context ends with it."""
    result = run_wsgi_app(app, create_environ("/stream"))[0]
    next(iter(result))
    result.close()  # type: ignore[attr-defined]
    assert counted(memory) == [("/stream", "disconnected")]
    assert memory.messages == []


def test_a_page_of_ones_own_for_failures_is_still_a_failure(memory: MemoryMeter) -> None:
    """The exception is logged, and the status is a server's error, whatever the page says."""
    app = shop()
    app.register_error_handler(500, lambda _: ("sorry", 200))
    Redmeter(app, memory)
    assert client_of(app).get("/broken").status_code == 200
    assert counted(memory) == [("/broken", "5xx")]
    assert len(memory.messages) == 1


def test_an_exception_in_a_stream_is_counted(app: Flask, memory: MemoryMeter) -> None:
    """Which Flask itself never sees."""
    with pytest.raises(ValueError, match="half way"):
        client_of(app).get("/stream?fail")
    assert counted(memory) == [("/stream", "5xx")]
    assert memory.messages[0].pattern.startswith("GET /stream [ValueError")


def test_a_stream_is_timed_until_it_is_closed(app: Flask, memory: MemoryMeter) -> None:
    """And has its request at hand."""
    answer = client_of(app).get("/stream", buffered=False)
    pieces = iter(answer.response)
    assert next(pieces) == b"/stream"
    assert memory.events == []
    memory.clock.advance(3.0)
    answer.close()
    labels = {"method": "GET", "route": "/stream"}
    assert memory.observed("http_request_seconds", labels=labels) == [3.0]
    assert counted(memory) == [("/stream", "disconnected")]


def test_a_signal_that_somebody_else_sends_is_no_trouble(app: Flask, memory: MemoryMeter) -> None:
    """With a request or without one."""
    flask.got_request_exception.send(app, exception=ValueError("nowhere"))
    with app.test_request_context("/"):
        flask.got_request_exception.send(app, exception=ValueError("uncounted"))
    assert memory.messages == []


def test_errors_outside_of_views_are_seen(memory: MemoryMeter) -> None:
    """In hooks, and of functions that answer before any view."""
    app = shop()

    @app.before_request
    def guard() -> Any:
        if request.path == "/users/1":
            return "not you", 403
        if request.path == "/users/2":
            raise RuntimeError("guard asleep")
        return None

    Redmeter(app, memory)
    client = client_of(app)
    for number in (1, 2, 3):
        client.get(f"/users/{number}")
    assert [status for _, status in counted(memory)] == ["4xx", "5xx", "2xx"]
    assert {route for route, _ in counted(memory)} == {"/users/{user_id}"}


@pytest.mark.parametrize("first", [True, False])
def test_an_application_within_another_is_counted_once_with_its_place(
    memory: MemoryMeter, first: bool
) -> None:
    """Wherever the middleware is, of one of them or of both; its place it tells itself."""
    inner, outer = shop(), shop()
    inner.config["APPLICATION_ROOT"] = "/branch"
    Redmeter(inner, memory)
    outer.wsgi_app = DispatcherMiddleware(  # type: ignore[method-assign]
        outer.wsgi_app, {"/branch": inner}
    )
    if not first:
        Redmeter(outer, memory)
    client = client_of(outer)
    for path in ("/branch/users/1", "/branch/nothing", "/branch/broken", "/users/1"):
        client.get(path)
    wanted = [
        ("/branch/users/{user_id}", "2xx"),
        ("(unmatched)", "4xx"),
        ("/branch/broken", "5xx"),
    ]
    assert counted(memory) == wanted + ([] if first else [("/users/{user_id}", "2xx")])
    assert len(memory.messages) == 1


def test_what_is_before_a_path_is_no_part_of_its_route(memory: MemoryMeter) -> None:
    """Servers and proxies take it from headers, which whoever asks may send."""
    app = shop()
    Redmeter(app, memory)
    for number in range(3):
        client_of(app).get("/users/1", environ_overrides={"SCRIPT_NAME": f"/secret{number}"})
    assert counted(memory) == [("/users/{user_id}", "2xx")] * 3


def test_patterns_are_compared_with_the_path_within_the_application(memory: MemoryMeter) -> None:
    """Behind a proxy that names a prefix; with the root that the application names itself."""
    for root in ("/", "/branch"):
        app = shop()
        app.config["APPLICATION_ROOT"] = root
        app.wsgi_app = ProxyFix(app.wsgi_app, x_prefix=1)  # type: ignore[method-assign]
        prefix = root.rstrip("/")
        patterns = {"ignore_paths": f"{prefix}/teapot", "count_paths": f"{prefix}/users/*=users"}
        Redmeter(app, memory, **patterns)  # type: ignore[arg-type]
        app.wsgi_app = ProxyFix(app.wsgi_app, x_prefix=1)  # type: ignore[method-assign]
        for path in ("/teapot", "/users/1"):
            client_of(app).get(path, headers={"X-Forwarded-Prefix": "/proxy"})
    assert memory.recorded("hits") == memory.recorded("users") == 2


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_within_another_middleware_it_tells_its_route(
    memory: MemoryMeter, copied: bool, named: bool
) -> None:
    """The outermost one counts; what the application itself says of routes goes first."""
    app, none = shop(), MemoryMeter()
    Redmeter(app, none)
    inner = app.wsgi_app

    def between(environ: Any, start_response: Any) -> Any:
        return inner(dict(environ) if copied else environ, start_response)

    def route(environ: Any) -> str | None:
        return "/mine" if environ["PATH_INFO"] == "/" else None

    outer = wsgi.RedmeterMiddleware(between, memory, route=route if named else None)
    client = Client(outer)
    for path in ("/", "/users/1", "/nothing", "/broken"):
        client.get(path, buffered=True)
    assert none.events == []
    assert counted(memory) == [
        ("/mine" if named else "/", "2xx"),
        ("/users/{user_id}", "2xx"),
        ("(unmatched)", "4xx"),
        ("/broken", "5xx"),
    ]
    (found,) = memory.log_frequencies("http")
    assert found.pattern.startswith("GET /broken [LookupError")


def test_names_that_are_no_settings_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """And those that are, hold, a cleaner too."""
    app = Flask("shop")
    app.config.update(REDMETER_URL="off", REDMETER_SLOW_REQUESTS=1, REDMETER_CLEANER="on")
    Redmeter(app)
    assert [record.message for record in caplog.records] == [
        "redmeter ignores a setting: REDMETER_SLOW_REQUESTS is not a setting of Redmeter"
    ]
    assert app.wsgi_app.requests.cleaner is not None  # type: ignore[attr-defined]


def test_static_files_have_one_route(memory: MemoryMeter, tmp_path: Any) -> None:
    """However many there are."""
    (tmp_path / "a.css").write_text("a {}")
    app = Flask("shop", static_folder=str(tmp_path), static_url_path="/static")
    Redmeter(app, memory)
    client = client_of(app)
    assert client.get("/static/a.css").data == b"a {}"
    client.get("/static/none.css")
    assert counted(memory) == [("/static/{filename}", "2xx"), ("/static/{filename}", "4xx")]


def test_a_method_view_has_its_route(memory: MemoryMeter) -> None:
    """Rules need no function."""
    from flask.views import MethodView

    class Items(MethodView):
        def get(self, item: str) -> str:
            return item

    app = Flask("shop")
    app.add_url_rule("/items/<item>", view_func=Items.as_view("items"))
    Redmeter(app, memory)
    client_of(app).get("/items/tea")
    client_of(app).delete("/items/tea")
    assert counted(memory) == [("/items/{item}", "2xx"), ("/items/{item}", "4xx")]


def test_a_route_of_ones_own_wins(memory: MemoryMeter) -> None:
    """Where it knows none, the rule holds."""
    app = shop()
    Redmeter(app, memory, route=lambda env: "/home" if env["PATH_INFO"] == "/" else None)
    client_of(app).get("/")
    client_of(app).get("/users/1")
    assert counted(memory) == [("/home", "2xx"), ("/users/{user_id}", "2xx")]


def test_an_application_made_by_a_function_is_counted(memory: MemoryMeter) -> None:
    """init_app() takes several, and the same one twice."""
    redmeter = Redmeter(meter=memory, ignore_paths="/")
    for _ in range(2):
        app = shop()
        redmeter.init_app(app)
        once = app.wsgi_app
        redmeter.init_app(app)
        assert app.wsgi_app is once
        client_of(app).get("/users/1")
        client_of(app).get("/")
    assert memory.recorded("hits") == 2
    assert redmeter.meter is memory


def test_the_meter_is_that_of_the_application_at_hand() -> None:
    """Each application may have settings of its own, in app.config, by the names of the table."""
    redmeter = Redmeter()
    with pytest.raises(RuntimeError, match="init_app"):
        _ = redmeter.meter
    apps = [shop(), shop()]
    for number, app in enumerate(apps):
        app.config["REDMETER_URL"] = f"redis://127.0.0.1:1/{number}"
        app.config["REDMETER_IGNORE_PATHS"] = ["/health"]
        redmeter.init_app(app)
    for number, app in enumerate(apps):
        with app.app_context():
            assert f"127.0.0.1:1/{number}" in repr(redmeter.meter)
    assert "127.0.0.1:1/1" in repr(redmeter.meter)
    middleware: Any = apps[0].wsgi_app
    assert not middleware.requests.watched("/health")
    assert middleware.requests.watched("/")


def test_what_is_given_wins_over_the_configuration(monkeypatch: Any) -> None:
    """Which wins over the environment."""
    monkeypatch.setenv("REDMETER_URL", "redis://127.0.0.1:1/1")
    monkeypatch.setenv("REDMETER_SLOW_REQUEST", "7")
    app = shop()
    app.config["REDMETER_URL"] = "redis://127.0.0.1:1/2"
    redmeter = Redmeter(app)
    assert "127.0.0.1:1/2" in repr(redmeter.meter)
    middleware: Any = app.wsgi_app
    assert middleware.requests.options.slow_request == 7.0
    assert "127.0.0.1:1/3" in repr(Redmeter(shop(), url="redis://127.0.0.1:1/3").meter)


def test_a_cleaner_may_be_had(memory: MemoryMeter) -> None:
    """It has nothing to do for a meter that is in memory."""
    app = shop()
    Redmeter(app, memory, cleaner=True)
    assert client_of(app).get("/users/1").data == b"user 1"
    middleware: Any = app.wsgi_app
    assert middleware.requests.cleaner is not None


@pytest.mark.parametrize("url", ["off", "nonsense://x"])
def test_an_application_runs_without_a_store(url: str) -> None:
    """Counters of its own do nothing then."""
    app = shop()
    app.config["REDMETER_URL"] = url
    redmeter = Redmeter(app)
    assert client_of(app).get("/users/1").data == b"user 1"
    redmeter.meter.count("mine")


def test_stored_is_what_was_answered(meter: Meter) -> None:
    """On a server."""
    app = shop()
    Redmeter(app, meter)
    client = client_of(app)
    for number in range(20):
        client.get(f"/users/{number}")
    client.get("/broken")
    assert meter.flush()
    labels = {"method": "GET", "route": "/users/{user_id}"}
    assert meter.total("http_requests", labels=labels | {"status": "2xx"}) == 20
    assert meter.summary("http_request_seconds", labels=labels, precision=60).count == 20
    assert "LookupError" in meter.log_frequencies("http", severity="error")[0].pattern


def test_flask_is_not_needed_for_anything_else() -> None:
    """Nor does it come with the WSGI middleware."""
    code = "import sys, redmeter.integrations.wsgi; assert 'flask' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})
    assert flask.Flask is Flask
