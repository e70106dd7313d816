"""The first page of the docs leads to a chart, by nothing but its own commands."""

from pathlib import Path
from types import ModuleType

import pytest

from support.tools import loaded

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """tools/newcomer.py, as a module."""
    return loaded("tools/newcomer.py")


def test_a_page_without_a_step_is_an_error(tool: ModuleType, tmp_path: Path) -> None:
    """Which names it; nothing has been started before."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for step in ('install ".[standard]"', 'meter.count("signups"', "redmeter up "):
        (tmp_path / "README.md").write_text(text.replace(step, "…"), encoding="utf-8")
        with pytest.raises(tool.StepFailed, match="has no "):
            next(tool.follow(tmp_path, tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


@pytest.mark.nightly
def test_the_first_page_leads_to_a_chart(
    tool: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a terminal and in a browser, from an empty environment."""
    assert tool.main([]) == 0
    shown = capsys.readouterr().out
    assert "| signups · every 1m · 1 in " in shown
    assert "| `the page` | signups · Redmeter |" in shown
