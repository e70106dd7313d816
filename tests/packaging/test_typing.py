"""Types for users: pyright agrees with mypy about a program, and about each mistake in another.

`make check` runs mypy on both, as on all tests.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).parents[1] / "typing"
SOURCES = Path(__file__).parents[2] / "src"

pytestmark = pytest.mark.slow


def diagnostics(folder: Path) -> list[dict[str, Any]]:
    """Return the reports of pyright about the programs of a folder, in its strict mode."""
    program = Path(sys.executable).with_name("pyright")
    done = subprocess.run(
        [program, "--outputjson", "--pythonpath", sys.executable, "-p", folder],
        env=os.environ | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1", "PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
    )
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == len([*folder.glob("*.py")])
    reports: list[dict[str, Any]] = report["generalDiagnostics"]
    return reports


def test_pyright_finds_no_error_in_a_program_and_each_mistake_in_another() -> None:
    """A mark of an expected error that is none would be reported."""
    assert [(one["file"], one["message"]) for one in diagnostics(PROGRAMS)] == []


def test_an_unmarked_mistake_is_found(tmp_path: Path) -> None:
    """The test above can fail."""
    shutil.copy(PROGRAMS / "pyrightconfig.json", tmp_path)
    text = (PROGRAMS / "mistakes.py").read_text(encoding="utf-8")
    (tmp_path / "mistakes.py").write_text(text.replace("# type: ignore", "# "))
    lines = {one["range"]["start"]["line"] for one in diagnostics(tmp_path)}
    marked = {at for at, line in enumerate(text.splitlines()) if "# type: ignore" in line}
    assert lines == marked
