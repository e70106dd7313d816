"""Charts: series as columns of blocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.cli import chart
from redmeter.model import Series


def lines(values: tuple[int, ...], columns: int, precision: int = 60, start: int = 0) -> list[str]:
    """Draw a finished series and return its lines."""
    series = Series("hits", precision, start, values, partial=False)
    return chart.draw(series, columns).plain.splitlines()


def test_columns_are_as_high_as_their_counts() -> None:
    """Eight steps to a line; the axis runs from 0 to the highest."""
    drawn = lines((0, 8, 32, 64, 1), 80)
    assert drawn[0] == "64 ┤   █ "
    assert drawn[3] == "   ┤   █ "
    assert drawn[4] == "   ┤  ██ "
    assert drawn[7] == " 0 ┤ ███▁"
    assert drawn[8] == "   └─────"


def test_something_is_never_drawn_as_nothing() -> None:
    """One in a million is still a line; none is none."""
    assert lines((1, 0, 1_000_000), 80)[7].endswith("┤▁ █")


@given(
    count=st.integers(1, 254),
    top=st.integers(0, 10**15),
    columns=st.integers(40, 200),
    precision=st.sampled_from([1, 60, 3600, 86400]),
)
def test_a_chart_fits_and_loses_nothing(count: int, top: int, columns: int, precision: int) -> None:
    """No line is wider than the terminal, and all columns add up to all samples."""
    values = tuple(top * number // count for number in range(count))
    drawn = lines(values, columns, precision, 1_700_006_400)
    assert max(map(len, drawn)) <= columns
    sums, group = chart._fit(values, columns)
    assert sum(sums) == sum(values)
    assert len(sums) == -(-count // group)


@pytest.mark.parametrize(
    ("count", "columns", "precision", "axis"),
    [
        (1, 80, 60, "2023-11-15 00:00"),
        (60, 80, 60, "2023-11-15 00:00" + " " * 28 + "2023-11-15 00:59"),
        (20, 60, 60, "2023-11-15 00:00 … 2023-11-15 00:19"),
        (20, 35, 60, "2023-11-15 00:00 … 00:19"),
        (20, 25, 60, "2023-11-15 00:00 …"),
        (20, 35, 86400, "2023-11-15 … 2023-12-04"),
    ],
)
def test_the_axis_says_as_much_as_there_is_room_for(
    count: int, columns: int, precision: int, axis: str
) -> None:
    """Both ends, the second one shortened, or only the first."""
    drawn = lines((1,) * count, columns, precision, 1_700_006_400)
    assert drawn[9].strip() == axis


def test_counts_below_zero_are_no_crash() -> None:
    """Other programs may subtract."""
    assert lines((-5, -1), 80)[7].endswith("┤  ")
    assert lines((-5, 8), 80)[7].endswith("┤ █")


def test_a_bar_is_a_part_of_its_width() -> None:
    """To an eighth of a column."""
    assert chart.bar(1.0, 4).plain == "████"
    assert chart.bar(0.5, 4).plain == "██"
    assert chart.bar(0.53125, 4).plain == "██▏"
    assert chart.bar(0.0, 4).plain == ""
