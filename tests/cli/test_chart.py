"""Charts: series as columns of blocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.cli import chart
from redmeter.results import Series


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


def gauge_lines(values: tuple[float | None, ...], columns: int = 80) -> list[str]:
    """Draw a finished gauge and return its lines."""
    series = Series[float | None]("queue", 60, 0, values, partial=False)
    return chart.draw_gauge(series, columns).plain.splitlines()


def test_a_gauge_is_drawn_from_zero_with_its_gaps() -> None:
    """What was measured is at least a line, also a zero; what was not is empty."""
    drawn = gauge_lines((0.0, None, 32.5, 65.0, None))
    assert drawn[0] == "65 ┤   █ "
    assert drawn[4] == "   ┤  ██ "
    assert drawn[7] == " 0 ┤▁ ██ "


def test_a_gauge_below_zero_is_drawn_from_its_lowest_value() -> None:
    """Up to zero, where nothing is above it."""
    drawn = gauge_lines((-8.0, -4.0, 0.0))
    assert (drawn[0][-4:], drawn[7][-4:]) == ("┤  █", "┤▁██")
    assert [line[:2] for line in drawn[:8]] == [" 0", *["  "] * 6, "-8"]
    assert gauge_lines((4.0, -4.0))[7] == "-4 ┤█▁"


@given(
    st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=254),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(40, 200),
)
def test_any_gauge_fits_and_shows_each_column_that_has_a_value(
    some: list[float | None], last: float, columns: int
) -> None:
    """However large, small or apart the values are; a column shows the last of its slices."""
    values = (*some, last)
    drawn = gauge_lines(values, columns)
    assert max(map(len, drawn)) <= columns
    lowest = drawn[7].partition("┤")[2]
    group = -(-len(values) // len(lowest))
    parts = chart._parts(values, group)
    assert len(parts) == len(lowest)
    assert [cell != " " for cell in lowest] == [any(v is not None for v in p) for p in parts]


def test_neighbours_of_a_gauge_are_shown_by_the_last_of_them() -> None:
    """They cannot be added up."""
    drawn = gauge_lines((*[0.0] * 60, 64.0, 8.0, 64.0, None), 40)
    assert "each column is 2 intervals" in drawn[-1]
    assert drawn[7].endswith("▁▁██")
    assert drawn[6].endswith("  █")


def test_a_bar_is_a_part_of_its_width() -> None:
    """To an eighth of a column."""
    assert chart.bar(1.0, 4).plain == "████"
    assert chart.bar(0.5, 4).plain == "██"
    assert chart.bar(0.53125, 4).plain == "██▏"
    assert chart.bar(0.0, 4).plain == ""
