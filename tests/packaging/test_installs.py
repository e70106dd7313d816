"""The tool that installs into empty environments knows each extra, each dependency, each Python."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from redmeter.extras import PACKAGES
from support.tools import loaded


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """tools/installs.py, as a module."""
    return loaded("tools/installs.py")


def test_each_extra_for_users_has_a_check_that_passes_with_its_packages(tool: ModuleType) -> None:
    """Here they are all installed."""
    assert set(tool.CHECKS) == {"", *PACKAGES}
    for check in tool.CHECKS.values():
        exec(check, {})  # noqa: S102


def test_the_oldest_versions_are_those_of_pyproject(tool: ModuleType) -> None:
    """Each direct dependency has one, and a pin."""
    oldest = tool.lowest()
    assert "redis==6.0" in oldest
    names = {line.partition("==")[0].lower() for line in oldest}
    pinned = {line.partition("==")[0].lower() for line in tool.packages()}
    assert pinned == names | {"hiredis"}


@pytest.mark.slow
def test_an_install_that_fails_has_its_last_error(tool: ModuleType, tmp_path: Path) -> None:
    """On one line, for a table."""
    missing = tmp_path / "redmeter-9.9.9-py3-none-any.whl"
    error = tool.install(sys.executable, "", missing, None)
    assert error.startswith("ERROR: ")
    assert "\n" not in error
