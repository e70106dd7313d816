"""The fault table: a few of its rows, and what makes one wrong."""

from collections import Counter
from pathlib import Path

import pytest

from fault_table import main
from fault_table.main import BEGIN, END, PLACES, Result
from fault_table.rows import Row, stop_a_while
from fault_table.writers import Numbers

PAGE = Path(__file__).parents[2] / "docs" / "fault-table.md"


def result(numbers: Numbers, there: int, *, doubled: int = 0, unknown: bool = False) -> Result:
    """Return what became of a row."""
    row = Row("a row", stop_a_while, unknown=unknown)
    return Result("server", row, "buffered", numbers, there, doubled, 1.0)


@pytest.mark.slow
def test_rows_are_run_and_written_to_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """FLUSHDB costs nothing; what is older than the kept batches is reported; an end costs all."""
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    words = ["FLUSHDB", "ended", "--places", "server", "--writers", "buffered"]
    assert main.main([*words, "--write", str(page)]) == main.OK, capsys.readouterr().err
    rows = [line.split("|")[1:-1] for line in page.read_text().splitlines() if "buffered" in line]
    flushed, old, ended = ([cell.strip() for cell in row[2:]] for row in rows)
    assert flushed[0] == flushed[1]
    assert int(flushed[2]) >= 20
    assert flushed[3:] == ["0", "0", "0"]
    assert old[4].startswith("emptied ")
    assert int(old[1]) + int(old[4].split()[1]) == int(old[0])
    assert ended == [ended[0], "0", "0", "0", "0", ended[0]]
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("after\n")


def test_an_event_that_is_gone_and_not_reported_makes_a_row_wrong() -> None:
    """Unless nobody can know."""
    numbers = Numbers(10, 6, uncertain=1, dropped=Counter(emptied=3))
    assert result(numbers, 6).wrong == []
    assert result(numbers, 7).wrong == []
    assert result(numbers, 5).wrong == ["1 lost and not reported"]
    assert result(numbers, 5, unknown=True).wrong == []


def test_what_is_counted_twice_or_reported_and_there_makes_a_row_wrong() -> None:
    """Whoever writes it."""
    numbers = Numbers(10, 8, dropped=Counter(emptied=2))
    assert result(numbers, 8, doubled=1).wrong == ["1 counted twice"]
    assert result(numbers, 9).wrong == ["1 reported as dropped, and stored"]
    assert "3 still buffered" in result(Numbers(10, 7, buffered=3), 7).wrong
    assert result(Numbers(10, 9), 10).wrong[0].startswith("books don't balance")


def test_the_page_has_all_rows() -> None:
    """As of the last run."""
    text = PAGE.read_text(encoding="utf-8")
    rows = {row.name for _, rows in PLACES.values() for row in rows}
    assert {name for name in rows if f"| {name} | buffered |" not in text} == set()
