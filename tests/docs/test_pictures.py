"""The pictures of the docs: shown somewhere, of the command they name, of the output they draw."""

import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

from support.tools import loaded

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """tools/pictures.py, as a module."""
    return loaded("tools/pictures.py")


def test_each_picture_is_made_by_the_tool_and_shown_on_a_page(tool: ModuleType) -> None:
    """And none is left that no tool makes again."""
    made = {f"{name}.png" for name in tool.screenshots.README}
    made |= {f"{name}.svg" for name in (*tool.COMMANDS, *tool.drawn(), "structure")}
    assert {path.name for path in IMAGES.iterdir()} == made
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    shown = {
        name
        for page in pages
        for name in re.findall(r"images/([\w.-]+)[\")]", page.read_text(encoding="utf-8"))
    }
    assert made == shown


def test_a_picture_of_a_terminal_begins_with_its_command(tool: ModuleType) -> None:
    """And loads no font from elsewhere."""
    for name, (command, lines) in tool.COMMANDS.items():
        text = (IMAGES / f"{name}.svg").read_text(encoding="utf-8")
        assert re.findall(r"https?://(?!www\.w3\.org/)", text) == [], name
        rows: dict[float, str] = {}
        for part in ET.fromstring(text).iter(f"{SVG}text"):  # noqa: S314
            rows.setdefault(float(part.get("y", "")), "")
            rows[float(part.get("y", ""))] += part.text or ""
        first, *others = (row.replace("\xa0", " ").strip() for _, row in sorted(rows.items()))
        assert first == f"$ {command}"
        assert 3 <= len([row for row in others if row]) <= lines + 1, name


def test_the_drawings_are_of_todays_code_and_of_the_benchmarks_output(tool: ModuleType) -> None:
    """`make pictures` keeps that output, and `tools/pictures.py draw` writes them."""
    for name, text in tool.drawn().items():
        assert text == (IMAGES / f"{name}.svg").read_text(encoding="utf-8"), name
    bars = [*tool.drawings.bars(tool.MEASURED.read_text(encoding="utf-8"))]
    assert [bar.operation for bar in bars][:2] == ["counter.inc(), bound", "meter.count(name)"]
    assert len(bars) == 7


def test_a_bar_is_as_long_as_the_ratio(tool: ModuleType) -> None:
    """Rows without two times have none."""
    head = "  ours  other  ratio  target  floor"
    row = "counter.inc(), bound       1044 ns        2.9 us    0.360    <= 0.4   "
    other = "largest error      2.166%     2.166%    1.000      <= 1   "
    assert [*tool.drawings.bars("\n".join([head, row, other]))] == [
        tool.drawings.Bar("counter.inc(), bound", "1044 ns", "2.9 µs", 0.36)
    ]
    lengths = [
        (shape.get("class"), shape.get("width"))
        for shape in ET.fromstring(tool.drawings.ratios(row)).iter(f"{SVG}rect")  # noqa: S314
    ]
    assert lengths[1:] == [("other", "420"), ("ours", "151")]
