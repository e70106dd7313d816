"""Applications that servers load through Redmeter: what REDMETER_APP may name, and what not."""

import asyncio
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from redmeter.errors import InvalidSetting
from redmeter.integrations import asgi, wsgi
from support.applications import FLASK, ROUTES, STARLETTE, STARLETTE_ROUTES
from support.asgi import call, http_scope
from support.load import Load, end
from support.programs import Programs
from support.servers import free_port
from support.serving import Served, stored

#: One application of each kind, a factory of each, and what is none.
SHOP = """
def site(environ, start_response):
    start_response("200 OK", [])
    return [b"site"]

async def live(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"live"})

def create_site():
    return site

def create_live():
    return live

def fail():
    raise LookupError("no plan")

class config:
    site = site
    number = 7
"""

Write = Callable[[str, str], None]


@pytest.fixture
def write(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Write]:
    """Writes modules that can be imported during the test; `redshop` is SHOP."""
    before = set(sys.modules)

    def written(path: str, code: str) -> None:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(code, encoding="utf-8")
        importlib.invalidate_caches()

    written("redshop.py", SHOP)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("REDMETER_URL", "off")
    yield written
    for name in set(sys.modules) - before:
        if name.startswith("redshop"):
            del sys.modules[name]


@pytest.mark.parametrize("target", ["redshop:site", "redshop:create_site()", "redshop:config.site"])
def test_a_wsgi_application_is_loaded_and_counted(
    write: Write, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """An object, what a function returns, or an attribute of an object."""
    monkeypatch.setenv("REDMETER_APP", target)
    app = wsgi.from_env()
    assert type(app) is wsgi.RedmeterMiddleware
    assert list(app({"PATH_INFO": "/"}, lambda *_: lambda _: None)) == [b"site"]


@pytest.mark.parametrize("target", ["redshop:live", "redshop:create_live()"])
def test_an_asgi_application_is_loaded_and_counted(
    write: Write, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """An object, or what a function returns."""
    monkeypatch.setenv("REDMETER_APP", target)
    app = asgi.from_env()
    assert asyncio.run(call(app, http_scope("GET", "/"), [])).body == b"live"


def test_all_settings_come_from_the_environment(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the store and those of requests."""
    monkeypatch.setenv("REDMETER_APP", "redshop:site")
    monkeypatch.setenv("REDMETER_URL", "redis://nowhere.invalid:1/3")
    monkeypatch.setenv("REDMETER_IGNORE_PATHS", "/health")
    monkeypatch.setenv("REDMETER_CLEANER", "on")
    app = wsgi.from_env()
    assert isinstance(app, wsgi.RedmeterMiddleware)
    assert "nowhere.invalid:1/3" in repr(app.meter)
    assert app.requests.options.ignore_paths == "/health"
    assert app.requests.cleaner is not None


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (None, "not set; name the application to serve, e.g. REDMETER_APP=shop:app"),
        ("  ", "not set; name"),
        ("redshop", "'redshop' is not MODULE:NAME"),
        ("redshop:site(7)", "'redshop:site(7)' is not MODULE:NAME"),
        ("redshop_gone:site", "there is no module 'redshop_gone' on sys.path; the working"),
        ("redshop.web:site", "there is no module 'redshop.web' on sys.path"),
        ("redshop:gone", "'redshop' has no attribute 'gone'"),
        ("redshop:config.gone", "'redshop.config' has no attribute 'gone'"),
        ("redshop:config.number", "'redshop:config.number' is of type int, which is no applic"),
        ("redshop:config.number()", "'redshop.config.number' cannot be called, it is of type int"),
        ("redshop:create_site", "if it returns the application, write redshop:create_site()"),
        ("redshop:fail()", "calling redshop.fail() raised LookupError: no plan"),
        ("redshop:live", "serve redmeter.integrations.asgi:from_env instead"),
    ],
)
def test_what_names_no_application_is_an_error_that_says_why(
    write: Write, monkeypatch: pytest.MonkeyPatch, target: str | None, reason: str
) -> None:
    """With the variable, and what would be right."""
    if target is None:
        monkeypatch.delenv("REDMETER_APP", raising=False)
    else:
        monkeypatch.setenv("REDMETER_APP", target)
    with pytest.raises(InvalidSetting) as caught:
        wsgi.from_env()
    assert str(caught.value).startswith("REDMETER_APP: ")
    assert reason in str(caught.value)


def test_an_application_of_the_other_kind_is_told_in_asgi_too(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the factory that fits."""
    monkeypatch.setenv("REDMETER_APP", "redshop:site")
    with pytest.raises(InvalidSetting, match=r"serve redmeter\.integrations\.wsgi:from_env\(\)"):
        asgi.from_env()


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("import redshop_of_theirs", ModuleNotFoundError),
        ("import redshop_broken.gone", ModuleNotFoundError),
        ("from redshop import gone", ImportError),
        ("1 / 0", ZeroDivisionError),
        ("def", SyntaxError),
    ],
)
def test_a_module_that_raises_is_told_from_one_that_does_not_exist(
    write: Write, monkeypatch: pytest.MonkeyPatch, code: str, cause: type[Exception]
) -> None:
    """The exception is the cause, so its traceback is shown."""
    write("redshop_broken/__init__.py", "")
    write("redshop_broken/web.py", code)
    monkeypatch.setenv("REDMETER_APP", "redshop_broken.web:app")
    with pytest.raises(InvalidSetting) as caught:
        wsgi.from_env()
    start = f"REDMETER_APP: importing 'redshop_broken.web' raised {cause.__name__}: "
    assert str(caught.value).startswith(start)
    assert type(caught.value.__cause__) is cause


@pytest.mark.slow
@pytest.mark.parametrize(
    "served",
    [
        pytest.param(
            Served(
                FLASK.replace("redmeter = Redmeter(app)", ""),
                ROUTES,
                ("gunicorn", "--log-level", "critical"),
                {"REDMETER_APP": "application:app"},
                "redmeter.integrations.wsgi:from_env()",
            ),
            id="gunicorn",
        ),
        pytest.param(
            Served(
                STARLETTE,
                STARLETTE_ROUTES,
                ("uvicorn", "--log-level", "critical", "--factory"),
                {"REDMETER_APP": "application:shop()"},
                "redmeter.integrations.asgi:from_env",
            ),
            id="uvicorn",
        ),
    ],
)
def test_a_server_counts_an_application_whose_code_knows_nothing_of_it(
    programs: Programs, conn: Any, served: Served
) -> None:
    """By route, and all of it, though the server is ended while requests come in."""
    port = free_port()
    program = served.start(programs, port)
    with Load(port, list(served.routes)) as load:
        load.until(program, 20)
        end(program, load)
    assert stored(conn) == served.answered(load)
    assert {route for route, _ in stored(conn)} == set(served.routes.values())
