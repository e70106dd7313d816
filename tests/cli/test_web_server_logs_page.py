"""The how-to page on logs of web servers: followed word by word; its table has the formats."""

import json
import re
from pathlib import Path

import pytest

from support.commands import Home

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "web-server-logs.md"
TEXT = PAGE.read_text(encoding="utf-8")
#: The file's name in the line before a log.
_LOG = re.compile(r"^`([\w.]+)`:\n\n```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_ROW = re.compile(r"^\| `([\w-]+)` \| [^|]+ \| (`.*`) \| (.+) \|$", re.MULTILINE)
ROWS = [match.groups() for match in _ROW.finditer(TEXT)]


def test_the_page_is_true_word_by_word(home: Home) -> None:
    """Its logs are saved, its commands run in their order, and print the lines shown."""
    for name, log in _LOG.findall(TEXT):
        (home.work / name).write_text(log)
    seen = 0
    for block in _CONSOLE.findall(TEXT):
        _, *parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
        for part in parts:
            command, _, shown = part.partition("\n")
            done = home.shell(command)
            assert (done.code, done.out) == (0, shown), command
            seen += 1
    assert seen == 4


def test_the_table_has_each_format() -> None:
    """As tools/docs.py makes it."""
    assert len(ROWS) == len({name for name, _, _ in ROWS}) >= 35


@pytest.mark.parametrize(
    ("named", "rows"), [(False, ROWS), (True, ROWS[::7])], ids=["recognized", "named"]
)
def test_each_line_of_the_table_is_understood_as_it_says(
    home: Home, named: bool, rows: list[tuple[str, str, str]]
) -> None:
    """By the command, without the format and with it."""
    for name, cell, understood in rows if named else rows[::4]:
        example = cell.strip("`").replace("`<br>`", "\n").replace("\\|", "|")
        (home.work / "log").write_text(example + "\n")
        option = f"--format {name}" if named else ""
        (shown,) = json.loads(home.shell(f"redmeter replay log --dry-run --json {option}").out)[
            "sample"
        ]
        words = f"{shown['method']} {shown['path']}, {shown['status']}"
        if shown["seconds"] is not None:
            words += f", {shown['seconds']:g} s"
        assert (shown["format"], words) == (name, understood)
