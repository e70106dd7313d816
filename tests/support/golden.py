"""Golden files: a text that must not change unless somebody approves it.

`REDMETER_TEST_APPROVE=1 make test` (or a single test file) writes the files instead of comparing.
CI ignores the variable.
"""

import difflib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

APPROVE = "REDMETER_TEST_APPROVE"
#: Lines of a difference that are shown.
SHOWN = 80


def check_golden(file: Path, text: str) -> None:
    """Compare a text with its golden file; write the file if the developer approves.

    Raises:
        AssertionError: they differ. The message is a diff, and says how to approve.
    """
    if os.environ.get(APPROVE) == "1" and not os.environ.get("CI"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return
    expected = file.read_text(encoding="utf-8") if file.exists() else ""
    if text == expected:
        return
    lines = list(
        difflib.unified_diff(
            expected.splitlines(),
            text.splitlines(),
            f"{file.name} as approved",
            f"{file.name} now",
            lineterm="",
            n=2,
        )
    )
    more = [f"… ({len(lines) - SHOWN} more lines)"] if len(lines) > SHOWN else []
    fix = f"If this change is intended: {APPROVE}=1 .venv/bin/python -m pytest -n 0 tests/golden"
    raise AssertionError("\n".join([f"{file.name} differs", *lines[:SHOWN], *more, fix]))


def canonical_json(value: Any) -> str:
    """Return JSON for golden files: a line for each member, lists of plain values on one line."""
    return "\n".join(_lines(value, "")) + "\n"


def _lines(value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, dict) and value:
        yield "{"
        for key in sorted(value):
            first, *rest = _lines(value[key], indent + " ")
            yield f"{indent} {json.dumps(key, ensure_ascii=False)}: {first}"
            yield from rest
        yield f"{indent}}}"
    elif isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        yield "["
        for one in value:
            first, *rest = _lines(one, indent + " ")
            yield f"{indent} {first}"
            yield from rest
        yield f"{indent}]"
    else:
        yield json.dumps(value, ensure_ascii=False)
