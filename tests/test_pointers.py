"""What the installed package says to its users can be followed there."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "redmeter"

#: Files that no wheel has, and the package without the extra that something needs.
DEAD_END = re.compile(
    r"(?<!prometheus\.io/)\bdocs/|\b[\w-]+\.md\b|pip install[^;,]*\bredmeter\b(?!\[)"
)
#: An extra that is named. Most texts take theirs from redmeter.extras.
EXTRA = re.compile(r"\bredmeter\[([\w,-]*)\]")


def documented(tree: ast.AST) -> set[ast.AST]:
    """Return the docstrings of a module: of its own, its classes and functions."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, kinds)]
    return {b[0].value for b in bodies if b and isinstance(b[0], ast.Expr)}


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of each literal that is no docstring; an f-string as one text."""
    passed = documented(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            passed.update(node.values)
            parts = [p.value if isinstance(p, ast.Constant) else "…" for p in node.values]
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in passed:
            yield node.lineno, node.value


def test_no_text_points_at_what_an_installed_package_lacks() -> None:
    """Errors, hints, help and log lines name a command, a setting, or the fix itself."""
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {text}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, text in texts(ast.parse(path.read_text(encoding="utf-8")))
        if DEAD_END.search(text)
    ]
    assert found == []


def test_no_help_of_a_command_points_there_either() -> None:
    """It is made of docstrings."""
    for path in sorted((PACKAGE / "cli").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                assert not DEAD_END.search(ast.get_docstring(node) or ""), path.name


@pytest.mark.parametrize(
    "code",
    [
        'fail("see docs/faults.md")',
        'x = f"{a}: see SECURITY.md"',
        'x = "pip install redmeter"',
    ],
)
def test_a_dead_end_is_found(code: str) -> None:
    """Or the tests above could not fail."""
    assert any(DEAD_END.search(text) for _, text in texts(ast.parse(code)))
    assert not DEAD_END.search("pip install psutil sqlalchemy")


def test_every_extra_that_is_named_exists() -> None:
    """In texts and docstrings of the package, and in the docs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *PACKAGE.rglob("*.py")]
    named = {
        extra
        for page in pages
        for found in EXTRA.findall(page.read_text(encoding="utf-8"))
        for extra in found.split(",")
    }
    assert named <= {*project["optional-dependencies"], ""}
    assert {"standard", "page"} <= named
