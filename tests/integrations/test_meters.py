"""Which meter integrations record with: as settings say, one for all; and none ends anything."""

import asyncio
import gc
import logging
import re
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults

import django  # type: ignore[import-untyped]
import httpx
import pytest
from django.core.handlers.wsgi import WSGIHandler  # type: ignore[import-untyped]
from django.test import override_settings  # type: ignore[import-untyped]
from flask import Flask

from redmeter import InvalidSetting, Meter, settings
from redmeter.integrations import asgi, wsgi
from redmeter.integrations import logging as of_logging
from redmeter.integrations.django import meter as project_meter
from redmeter.integrations.flask import Redmeter
from redmeter.integrations.shared import interface
from redmeter.integrations.shared.interface import Intake
from redmeter.integrations.shared.meters import (
    meter_for,
    meter_of,
    setting_problems,
    shared_meter,
    unknown_settings,
)
from redmeter.integrations.shared.web import Requests, requests_of
from support import django_project
from support.servers import Server

assert django_project
django.setup()

#: What is no value of a setting, where "2s" is one.
WRONG = {"url": "nonsense://x", "prefix": "a{b"}


def ask(app: Any, path: str = "/") -> str:
    """Ask a WSGI application; return the status."""
    started: list[str] = []
    environ: dict[str, Any] = {"PATH_INFO": path, "SCRIPT_NAME": ""}
    setup_testing_defaults(environ)
    result = app(environ, lambda status, *_: started.append(status))
    list(result)
    getattr(result, "close", lambda: None)()
    return started[0]


def of_asgi() -> tuple[Meter, Callable[[], str]]:
    """An ASGI application, and what asks it."""

    async def hello(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    app = asgi.RedmeterMiddleware(hello)

    async def get() -> str:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
            return f"{(await client.get('/')).status_code} OK"

    return app.meter, lambda: asyncio.run(get())


def of_wsgi() -> tuple[Meter, Callable[[], str]]:
    """A WSGI application, and what asks it."""

    def hello(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return []

    app = wsgi.RedmeterMiddleware(hello)
    return app.meter, lambda: ask(app)


def of_flask() -> tuple[Meter, Callable[[], str]]:
    """A Flask application, and what asks it."""
    app = Flask("shop")
    app.add_url_rule("/", view_func=lambda: "hello")
    return Redmeter(app).meter, lambda: ask(app)


def of_django() -> tuple[Meter, Callable[[], str]]:
    """The Django project, and what asks it."""
    return project_meter(), lambda: ask(WSGIHandler())


@pytest.fixture
def project() -> Iterator[None]:
    """The Django project as the environment says."""
    with override_settings(REDMETER_IGNORE_PATHS=None):
        yield


@pytest.mark.parametrize("value", ["2s", ""])
@pytest.mark.parametrize("name", [setting.name for setting in settings.SETTINGS])
def test_no_environment_keeps_an_application_from_running(
    server: Server, project: None, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """Whatever any variable holds; only a wrong URL or prefix switches counting off."""
    wrong = value and WRONG.get(name, value)
    monkeypatch.setenv("REDMETER_URL", server.url)
    monkeypatch.setenv(f"REDMETER_{name.upper()}", wrong)
    made = [make() for make in (of_asgi, of_wsgi, of_flask, of_django)]
    if (name, wrong) != ("url", ""):  # which is the embedded server of whoever tests
        assert [get() for _, get in made] == ["200 OK"] * 4
    off = {repr(meter) == "<Meter off>" for meter, _ in made}
    assert off == {name in WRONG and wrong != ""}
    if not off.pop():
        assert len({id(meter) for meter, _ in made}) == 1, "the same settings, one meter"


def test_the_django_check_looks_at_the_environment(
    project: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says which variable it is."""
    monkeypatch.setenv("REDMETER_URL", "nonsense://x")
    monkeypatch.setenv("REDMETER_TIMEOUT", "2s")
    assert [text.partition(":")[0] for text in setting_problems({})] == [
        "REDMETER_URL",
        "REDMETER_TIMEOUT",
    ]
    assert list(setting_problems({"REDMETER_URL": "off", "REDMETER_TIMEOUT": 2})) == []


def test_hooks_and_handlers_have_the_same_meter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none is given, there is one for the process; other settings make another."""
    monkeypatch.setenv("REDMETER_URL", "off")
    found = meter_for(None, "")
    assert found is not None
    intake = Intake(None)
    intake.put("shop", "info", None, "hello", None)
    log = logging.Logger("shop")
    handler = of_logging.install(logger=log)
    assert of_logging.install(logger=log) is handler
    assert requests_of(None, {}).meter is intake.meter is handler.meter is found
    assert requests_of(None, {"flush_interval": None}).meter is found
    assert requests_of(None, {"flush_interval": 7}).meter is not found


def test_a_handler_without_a_meter_that_could_be_made_counts_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is installed all the same."""
    monkeypatch.setenv("REDMETER_URL", "nonsense://x")
    log = logging.Logger("shop")
    handler = of_logging.install(logger=log)
    log.error("hello")
    assert repr(handler.meter) == "<Meter off>"
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_a_meter_that_nobody_holds_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a process that tries many settings has no meter for each of them."""
    monkeypatch.setenv("REDMETER_URL", "off")
    held = shared_meter({"release": "a"})
    assert shared_meter({"release": "a"}) is held
    assert shared_meter({"release": "b"}) is not held
    known = weakref.ref(held)
    del held
    gc.collect()
    assert known() is None


def test_a_meter_that_cannot_be_made_records_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """The application starts all the same."""
    made = meter_of({"url": "http://wrong"})
    assert repr(made) == "<Meter off>"
    assert "redmeter does not count requests" in caplog.text
    assert not Requests(made).watched("/")
    assert not Requests(Meter("off")).watched("/")


def test_a_meter_is_made_as_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of code, then of the framework, then of the environment."""
    monkeypatch.setenv("REDMETER_URL", "redis://environment")
    for in_code, framework, wanted in (
        ({"url": "redis://code"}, {"REDMETER_URL": "redis://framework"}, "code"),
        ({}, {"REDMETER_URL": "redis://framework", "OTHER": 1}, "framework"),
        ({"url": None}, {}, "environment"),
    ):
        assert f"//{wanted}:6379" in repr(meter_of(in_code, framework))


@pytest.mark.parametrize(
    ("meter", "options"),
    [("redis://localhost", {}), (7, {}), (Meter("off"), {"url": "off"})],
    ids=str,
)
def test_what_is_no_meter_is_a_mistake_in_code(meter: Any, options: dict[str, Any]) -> None:
    """And so are settings of a meter beside one that is given; None is as good as nothing."""
    with pytest.raises(TypeError, match="meter"):
        requests_of(meter, options)
    assert requests_of(Meter("off"), {"url": None}).options.cleaner is False


def test_a_meter_takes_the_whole_table() -> None:
    """What is of the embedded server alone, too."""
    with pytest.raises(InvalidSetting, match="embedded_idle"):
        Meter("embedded:///nowhere", embedded_idle=-1)


def test_names_that_look_like_settings_are_told() -> None:
    """Those of others are not."""
    framework = {"REDMETER_URL": "off", "REDMETER_URLS": "off", "DEBUG": True, "REDMETER_X": 1}
    assert list(unknown_settings(framework, ("REDMETER_X",))) == [
        "REDMETER_URLS is not a setting of Redmeter"
    ]


def test_integrations_use_no_private_attribute_of_a_meter() -> None:
    """But for the one module that is the interface."""
    folder = Path(interface.__file__).parents[1]
    files = [file for file in folder.rglob("*.py") if file.name != "interface.py"]
    assert len(files) > 20
    for file in files:
        found = re.findall(r"(?:meter|chosen)\._\w+", file.read_text(encoding="utf-8"))
        assert not found, file
