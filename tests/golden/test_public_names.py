"""The public API changes with an entry of the changelog, and never in silence."""

from pathlib import Path
from types import ModuleType

import pytest

import redmeter
from redmeter.settings import SETTINGS
from support.tools import loaded

ROOT = Path(__file__).parents[2]
RECORDED = ["command redmeter top --last: ", "json Series.unit: string", "python Meter.top: top(a)"]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """tools/api.py, as a module."""
    return loaded("tools/api.py")


def test_what_changed_since_the_last_release_is_in_the_changelog(tool: ModuleType) -> None:
    """Otherwise: add an entry under "Unreleased" that names it; `make release` records the rest."""
    recorded = (ROOT / tool.RECORDED).read_text(encoding="utf-8").splitlines()
    unreleased = tool.unreleased_section((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert tool.undeclared(recorded, tool.lines(), unreleased) == []


def test_the_list_has_every_public_name(tool: ModuleType) -> None:
    """Exports, methods, settings, commands, fields and metrics."""
    names = {line.partition(": ")[0] for line in tool.lines()}
    exports = {name for name in redmeter.__all__ if name[0] != "_"}
    assert {f"python {name}" for name in exports} <= names
    methods = {name for name in vars(redmeter.Meter) if name[0] != "_"}
    assert {f"python Meter.{name}" for name in methods} <= names
    assert {f"setting {setting.name}" for setting in SETTINGS} <= names
    fields = ("json Series.window", "http GET /api/top?by", "metric http_requests")
    more = ("command redmeter top --by", "json redmeter top --json groups", "python Series.values")
    assert {*fields, *more} - names == set()


@pytest.mark.parametrize(
    ("current", "unreleased", "undeclared"),
    [
        (RECORDED, "", []),
        ([*RECORDED, "setting zone: x"], "", ["+ setting zone: x"]),
        ([*RECORDED, "setting zone: x"], "### Added\n- `zone`: where.\n", []),
        ([*RECORDED, "setting zone: x"], "### Added\n- `zones`: where.\n", ["+ setting zone: x"]),
        (RECORDED[1:], "### Added\n- `--last`.\n", ["- command redmeter top --last: "]),
        (RECORDED[1:], "### Removed\n- `--last`.\n", []),
        ([*RECORDED[:2], "python Meter.top: top(b)"], "### Changed\n- `top(b)` instead.\n", []),
        (
            [*RECORDED[:2], "python Meter.top: top(b)"],
            "### Added\n- `top(b)` instead.\n",
            ["- python Meter.top: top(a)", "+ python Meter.top: top(b)"],
        ),
    ],
)
def test_an_addition_needs_an_entry_and_a_break_one_under_changed_or_removed(
    tool: ModuleType, current: list[str], unreleased: str, undeclared: list[str]
) -> None:
    """A part of another word is no entry."""
    assert tool.undeclared(RECORDED, current, unreleased) == undeclared
