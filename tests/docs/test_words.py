"""The check of words: it finds those to avoid, and allowances only fall."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.tools import loaded


@pytest.fixture(scope="module")
def words() -> ModuleType:
    """Return the tool."""
    return loaded("tools/words.py")


@pytest.mark.parametrize(
    "text",
    [
        "doctor tells what is wrong",
        "it is told by the page",
        "The log says why.",
        "# Of a gauge, the last value.",
        "It is kept. Of each interval, the sum.",
        "what was recorded is stored",
        "Compared are two hours.",
        "where the key lies",
        "what stands there",
        "beside the total",
        "a key is to be removed",
        "it expires by itself",
        "the server is asked again",
        "a value that nobody reads",
        "whatever its status",
        "the index is written anew",
        "the store is away",
        '    """See Store.read()."""',
        "the width of a slice",
        "observed values",
        "outside the band",
        "Hits a second",
        "add up all label sets",
        "a parcel",
        "partitions of a store",
        "three masters",
        "    found = read(store)",
        "    found: dict[str, int] = {}",
        "for one in found\nfor some in those:\n",
        "  const found = rows.filter(keep);",
        "(who asks is not known)",
    ],
)
def test_a_word_to_avoid_is_found(words: ModuleType, text: str) -> None:
    """Each with its line and a better one."""
    assert [line for line, _, better in words.faults(text) if better]


@pytest.mark.parametrize(
    "text",
    [
        "What is stored in Redis?",
        "`doctor` reports unreachable nodes.",
        "The letter p stands for a percentile.",
        "Of course.",
        "the sum of all series",
        "users who look at the page",
        "name, _, rest = text.partition(':')",
        "series = read(store)",
        "husband and wife",
        "everything is as it should be",
        "p95 response time; requests per second",
    ],
)
def test_plain_text_is_accepted(words: ModuleType, text: str) -> None:
    """Terms, questions, and words that only contain one to avoid."""
    assert list(words.faults(text)) == []


@pytest.mark.parametrize(
    ("allowances", "counts", "expected"),
    [
        ({"a": 3}, {"a": 2}, {"a": 2}),  # falls
        ({"a": 3}, {"a": 4}, {"a": 3}),  # never rises
        ({"a": 3}, {}, {}),  # done
        ({}, {"a": 1}, {}),  # none for a new file
        ({"a": 3}, {"b": 3}, {"b": 3}),  # renamed
        ({"a": 3}, {"a": 1, "b": 3}, {"a": 1, "b": 2}),  # split, with one more
        ({"a": 3, "b": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 1}),  # a file with its own keeps that
    ],
)
def test_allowances_only_fall(
    words: ModuleType, allowances: Any, counts: Any, expected: Any
) -> None:
    """Whatever the files have become; the sum never rises."""
    assert words.lowered(allowances, counts) == expected


def test_a_file_over_its_allowance_is_refused_and_its_lines_are_named(
    words: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The check changes nothing; without it the allowances are lowered."""
    (tmp_path / ".ci").mkdir()
    allowances = tmp_path / ".ci" / "words.json"
    page = tmp_path / "README.md"
    allowances.write_text('{"README.md": 2}')
    page.write_text("Redmeter counts.\nIt tells how many.\n")
    assert words.main(["--check"], tmp_path) == 0
    assert json.loads(allowances.read_text()) == {"README.md": 2}
    assert words.main([], tmp_path) == 0
    assert json.loads(allowances.read_text()) == {"README.md": 1}
    page.write_text("Redmeter counts.\nIt tells how many.\nIt says so.\n")
    assert words.main(["--check"], tmp_path) == 1
    message = capsys.readouterr().err
    assert "README.md: 2 words to avoid, 1 allowed" in message
    assert "README.md:2: 'tells'" in message
    assert "README.md:3: 'says'" in message
