"""The structure of the sources: what is listed here only shrinks.

A figure that falls, or an exception that is gone, fails too: remove it here, so that it stays gone.
"""

import ast
import re
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.tools import loaded

ROOT = Path(__file__).parents[1]

#: Circles of imports: modules that all import each other, directly or not.
AT_RUN_TIME: list[str] = []
WITH_TYPES: list[str] = []
IN_THE_PAGE: list[str] = []

#: Public names that two or more modules define.
SHARED_NAMES = 23

#: Files of a folder at most, without its subfolders; the command has one for each group.
MOST_FILES = 15
#: Folders that have more, and how many.
CROWDED: dict[str, int] = {}


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """tools/structure.py."""
    return loaded("tools/structure.py")


@pytest.fixture(scope="module")
def trees(tool: ModuleType) -> Any:
    """The syntax tree of each module."""
    return tool.modules()


def listed(circles: Iterable[Iterable[str]]) -> list[str]:
    """Return circles in the notation of the lists above."""
    return sorted(
        " ".join(sorted(module.removeprefix("redmeter.") for module in circle))
        for circle in circles
    )


def test_circles_of_imports_at_run_time_are_those_listed(tool: ModuleType, trees: Any) -> None:
    """Also those of imports within functions."""
    assert listed(tool.circles(tool.imports(trees, types=False))) == AT_RUN_TIME


def test_circles_of_imports_with_those_of_types_are_those_listed(
    tool: ModuleType, trees: Any
) -> None:
    """A type that two modules share belongs below both."""
    assert listed(tool.circles(tool.imports(trees, types=True))) == WITH_TYPES


def test_circles_of_imports_in_the_page_are_those_listed(tool: ModuleType) -> None:
    """Imports of types included."""
    graph = tool.frontend_imports()
    assert "lib/units.ts" in graph["chart/chart.tsx"]
    assert listed(tool.circles(graph)) == IN_THE_PAGE


def test_no_more_names_have_two_meanings(tool: ModuleType, trees: Any) -> None:
    """Functions, classes and constants without an underscore: a reader who searches finds one."""
    names = tool.shared_names(trees)
    assert len(names) == SHARED_NAMES, "\n".join(f"{name}: {names[name]}" for name in names)


def test_folders_have_few_files(tool: ModuleType) -> None:
    """Beside its subfolders; a larger one has subfolders, named after the question they answer."""
    counts = tool.folders()
    assert counts.pop("redmeter/cli") > MOST_FILES
    assert {folder: count for folder, count in counts.items() if count > MOST_FILES} == CROWDED


def test_the_tool_sees_every_form_of_import(tool: ModuleType, tmp_path: Path) -> None:
    """Of a module, of a name of one, in a function, for type checkers; and in TypeScript."""
    texts = {
        "redmeter.a": "def f():\n    import redmeter.b",
        "redmeter.b": "import typing\nif typing.TYPE_CHECKING:\n    from redmeter.c import X",
        "redmeter.c": "from redmeter import a\nfrom redmeter.d import X, Y",
        "redmeter.d": "import json",
    }
    trees = {module: ast.parse(text) for module, text in texts.items()}
    graph = tool.imports(trees, types=True)
    assert graph["redmeter.c"] == {"redmeter.a", "redmeter.d"}
    assert listed(tool.circles(graph)) == ["a b c"]
    assert listed(tool.circles(tool.imports(trees, types=False))) == []

    (tmp_path / "parts").mkdir()
    (tmp_path / "app.tsx").write_text('import u from "uplot";\nimport {\n  a,\n} from "./parts/a";')
    (tmp_path / "parts" / "a.ts").write_text('import type { B } from "../app";\nimport "./b";')
    (tmp_path / "parts" / "b.ts").write_text('const app = await import("../app");')
    found = tool.circles(tool.frontend_imports(tmp_path))
    assert listed(found) == ["app.tsx parts/a.ts parts/b.ts"]


def test_the_tool_sees_every_form_of_definition(tool: ModuleType) -> None:
    """A function, a class, a constant, one with a type, several at once; nothing private."""
    one = "def f1(): x1 = 1\nclass C1: y1 = 1\nA1 = B1 = 1\nD1: int = 2\nE1, F1 = _g = T = 1, 2"
    other = "async def f1(): ...\nA1 = B1 = C1 = D1 = E1 = F1 = _g = T = x1 = y1 = 0"
    names = tool.shared_names({"one": ast.parse(one), "other": ast.parse(other)})
    assert names == {name: ["one", "other"] for name in ("A1", "B1", "C1", "D1", "E1", "F1", "f1")}


def test_the_figures_of_the_structure_are_a_table(tool: ModuleType, trees: Any) -> None:
    """One for each of the limits, and for sizes."""
    table = tool.figures(trees)
    assert f"| Python files | {len(trees)} |" in table
    assert f"| public names that several modules define | {SHARED_NAMES} |" in table
    assert re.findall(r"^\| circles .* \| (\d+) \|$", table, re.MULTILINE) == [
        str(len(circles)) for circles in (AT_RUN_TIME, WITH_TYPES, IN_THE_PAGE)
    ]


def test_the_picture_of_the_structure_is_current(tool: ModuleType, trees: Any) -> None:
    """`python tools/structure.py` draws it; every unit is in it, and imports lead downwards."""
    drawn = tool.picture(tool.units(tool.imports(trees, types=True)))
    assert (ROOT / "docs/images/structure.svg").read_text() == drawn, "python tools/structure.py"
    at = {unit: int(y) for y, unit in re.findall(r'<text [^>]*y="(\d+)">(\w+)</text>', drawn)}
    assert {"cli", "store", "errors"} < at.keys()
    assert at["cli"] < at["meter"] < at["store"] < at["names"] < at["errors"]
