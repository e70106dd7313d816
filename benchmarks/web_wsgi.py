"""What counting requests adds to them under WSGI, beside exporters for Prometheus. Rows for run.py.

As in web.py; each side is called as a server calls it, its body read, and closed.
"""

import importlib
import io
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from table import Row
from web import PATH, ROUTES, Timed, compared, missing

if TYPE_CHECKING:
    import redis

    from redmeter import Meter

ENVIRON = {
    "REQUEST_METHOD": "GET",
    "SCRIPT_NAME": "",
    "PATH_INFO": PATH,
    "QUERY_STRING": "",
    "SERVER_NAME": "shop.example",
    "SERVER_PORT": "80",
    "SERVER_PROTOCOL": "HTTP/1.1",
    "HTTP_HOST": "shop.example",
    "HTTP_USER_AGENT": "bench",
    "REMOTE_ADDR": "127.0.0.1",
    "wsgi.version": (1, 0),
    "wsgi.url_scheme": "http",
    "wsgi.multithread": True,
    "wsgi.multiprocess": True,
    "wsgi.run_once": False,
}


def wsgi(app: Any) -> Timed:
    """Return what times a WSGI application."""
    fixed = {**ENVIRON, "wsgi.input": io.BytesIO(), "wsgi.errors": sys.stderr}

    def start_response(*_: object) -> Callable[[bytes], None]:
        return lambda _: None

    def ask(calls: int) -> float:
        started = time.perf_counter()
        for _ in range(calls):
            body = app({**fixed}, start_response)
            for _piece in body:
                pass
            if hasattr(body, "close"):
                body.close()
        return (time.perf_counter() - started) / calls

    return ask


def plain_app(_environ: object, start_response: Any) -> list[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]


def plain_in_parts(environ: object, start_response: Any) -> Iterator[bytes]:
    return iter(plain_app(environ, start_response))


def flask_app() -> Any:
    from flask import Flask

    app = Flask("shop")
    for number, route in enumerate(ROUTES):
        rule = route.replace("{id}", "<int:id>")
        app.add_url_rule(rule, f"part{number}", lambda id: f"hello {id}")
    return app


def flask_with_ours(meter: "Meter") -> Any:
    from redmeter.integrations.flask import Redmeter

    app = flask_app()
    Redmeter(app, meter)
    return app


def flask_with_exporter() -> Any:
    import prometheus_client

    exporter = importlib.import_module("prometheus_flask_exporter")
    app = flask_app()
    registry = prometheus_client.CollectorRegistry()
    exporter.PrometheusMetrics(app, path=None, group_by="url_rule", registry=registry)
    return app


def flask_rows(_conn: "redis.Redis", url: str) -> Iterator[Row]:
    """What a request of a Flask application takes longer."""
    from redmeter import Meter

    if missing("prometheus_flask_exporter"):
        return
    with Meter(url) as meter:
        sides = {
            "bare": wsgi(flask_app()),
            "ours": wsgi(flask_with_ours(meter)),
            "prometheus-flask-exporter": wsgi(flask_with_exporter()),
        }
        yield compared("added to a request, Flask", sides)


def django_handler(**settings: Any) -> Any:
    """Return a project's handler, with settings of its own."""
    from django.conf import settings as configured  # type: ignore[import-untyped]
    from django.core.handlers.wsgi import WSGIHandler  # type: ignore[import-untyped]
    from django.http import HttpResponse  # type: ignore[import-untyped]
    from django.test import override_settings  # type: ignore[import-untyped]
    from django.urls import path  # type: ignore[import-untyped]

    if not configured.configured:
        import django  # type: ignore[import-untyped]

        configured.configure(
            ROOT_URLCONF=tuple(
                path(
                    route.replace("{id}", "<int:id>")[1:],
                    lambda _, id: HttpResponse(f"hello {id}"),
                )
                for route in ROUTES
            ),
            ALLOWED_HOSTS=["*"],
            LOGGING_CONFIG=None,
            SECRET_KEY="bench",  # noqa: S106 - guards nothing
        )
        django.setup()
    with override_settings(**settings):
        return WSGIHandler()


def django_with_ours(meter: "Meter") -> Any:
    ours = ["redmeter.integrations.django.RedmeterMiddleware"]
    return django_handler(MIDDLEWARE=ours, REDMETER_METER=meter)


def django_with_exporter() -> Any:
    theirs = "django_prometheus.middleware.Prometheus{}Middleware"
    return django_handler(MIDDLEWARE=[theirs.format("Before"), theirs.format("After")])


def django_rows(_conn: "redis.Redis", url: str) -> Iterator[Row]:
    """What a request of a Django project takes longer."""
    from redmeter import Meter

    if missing("django_prometheus"):
        return
    with Meter(url) as meter:
        sides = {
            "bare": wsgi(django_handler(MIDDLEWARE=[])),
            "ours": wsgi(django_with_ours(meter)),
            "django-prometheus": wsgi(django_with_exporter()),
        }
        yield compared("added to a request, Django", sides)


def wsgi_rows(_conn: "redis.Redis", url: str) -> Iterator[Row]:
    """What the WSGI middleware adds by itself: to a body in parts, and to a list."""
    from redmeter.integrations.wsgi import RedmeterMiddleware

    for name, app in (("a list", plain_app), ("a stream", plain_in_parts)):
        counted = RedmeterMiddleware(app, url=url)
        meter = counted.meter
        hits, took = meter.counter("hits"), meter.histogram("took_seconds")

        def floor(environ: Any, start_response: Any, app: Any = app) -> Any:
            meter._monotonic()  # noqa: B023 - called before the next one
            answer = app(environ, start_response)
            hits.inc()  # noqa: B023
            hits.inc()  # noqa: B023
            took.observe(meter._monotonic())  # noqa: B023
            return answer

        sides = {"bare": wsgi(app), "ours": wsgi(counted), "two counts and a duration": wsgi(floor)}
        yield compared(f"added to a request, WSGI, {name}", sides, "none")
        meter.close()


ROWS = {
    "flask": flask_rows,
    "django": django_rows,
    "wsgi": wsgi_rows,
}
