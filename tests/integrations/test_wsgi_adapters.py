"""Adapters that serve WSGI applications by ASGI: most of them never close the body."""

import asyncio
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import a2wsgi
import django  # type: ignore[import-untyped]
import flask
import httpx
import pytest
from asgiref.wsgi import WsgiToAsgi
from django.core.handlers.wsgi import WSGIHandler  # type: ignore[import-untyped]
from django.test import override_settings  # type: ignore[import-untyped]

from redmeter.integrations.flask import Redmeter
from redmeter.integrations.wsgi import RedmeterMiddleware
from redmeter.names import parse_name
from redmeter.testing import MemoryMeter
from support import django_project  # noqa: F401  its settings

django.setup()


def starlette_adapter(app: Any) -> Any:
    """Return Starlette's own adapter, which it has deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from starlette.middleware.wsgi import WSGIMiddleware
    return WSGIMiddleware(app)


ADAPTERS: dict[str, Callable[[Any], Any]] = {
    "asgiref": WsgiToAsgi,
    "starlette": starlette_adapter,
    "a2wsgi": a2wsgi.WSGIMiddleware,
}


def of_flask(memory: MemoryMeter) -> Any:
    """Return a Flask application with a page and a stream."""
    app = flask.Flask(__name__)
    Redmeter(app, memory)
    app.add_url_rule("/stream", view_func=lambda: (piece for piece in ("a", "b")))
    app.add_url_rule("/", endpoint="page", view_func=lambda: "page")
    return app


def of_django(_: MemoryMeter) -> Any:
    """Return a Django project with a page and a stream."""
    return WSGIHandler()


def plain(memory: MemoryMeter) -> Any:
    """Return an application without a framework."""

    def app(env: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain")])
        env["redmeter.route"] = env["PATH_INFO"]
        yield b"a"
        yield b"b"

    return RedmeterMiddleware(app, memory)


@pytest.mark.parametrize("path", ["/", "/stream"])
@pytest.mark.parametrize("application", [of_flask, of_django, plain])
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_every_request_is_recorded_once(
    memory: MemoryMeter, adapter: str, application: Callable[[MemoryMeter], Any], path: str
) -> None:
    """With its route and its status."""

    async def ask(app: Any) -> None:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for _ in range(3):
                answer = await client.get(path)
                assert answer.status_code == 200
                assert answer.text

    with override_settings(REDMETER_METER=memory):
        asyncio.run(ask(ADAPTERS[adapter](application(memory))))
    names = [parse_name(event.series) for event in memory.events]
    requests = [dict(labels) for name, labels in names if name == "http_requests"]
    assert requests == [{"method": "GET", "route": path, "status": "2xx"}] * 3
