"""Groups of exceptions whose rate changed: which are listed, and by which intervals."""

from dataclasses import replace

import pytest

from redmeter.reading.diagnosis.context import changes_of, not_kept, windows_of
from redmeter.reading.diagnosis.windows import Comparison, ExplainRequest, compare
from redmeter.reading.exceptions import StoredGroup
from redmeter.stored.keys import DEFAULT_RETENTION, Retention

NOW = 1_700_000_400.0
END = 1_700_000_400 // 300 * 300


def comparison(baseline: str = "previous") -> Comparison:
    """Return the comparison of the last 30 minutes with those before, or with yesterday's."""
    request = ExplainRequest("x", END - 1_800, END, baseline, precision=300)  # type: ignore[arg-type]
    return compare(request, Retention(DEFAULT_RETENTION), NOW)


def group(name: str, before: int, after: int, first: float = NOW - 86_400) -> StoredGroup:
    """Return a group with so many exceptions in each of six intervals."""
    counts = [before] * 6 + [after] * 6
    return StoredGroup(name, (name, "text", "pay.py:4"), 0, first, NOW, (), (), counts)


def test_new_rising_falling_and_vanished_groups_are_listed() -> None:
    """New ones first, then by the size of the change; what is as before or rare is left out."""
    windows = windows_of(comparison(), NOW)
    assert windows is not None
    groups = [
        group("same", 10, 11),
        group("rare", 1, 0),
        group("more", 5, 20),
        group("fewer", 40, 10),
        group("gone", 4, 0),
        group("new", 0, 1, first=END - 600),
    ]
    found = changes_of(groups, windows, comparison())
    assert found.precision == 300
    assert [(one.id, one.kind) for one in found.groups] == [
        ("new", "new"),
        ("fewer", "fewer"),
        ("more", "more"),
        ("gone", "vanished"),
    ]
    assert (found.groups[2].before, found.groups[2].count) == (30, 120)


def test_all_intervals_that_touch_the_window_are_part_of_it() -> None:
    """The edges of minutes are not those of five minutes; no interval counts twice."""
    one = comparison()
    one = replace(one, window=range(END - 420, END, 60), baseline=range(END - 840, END - 420, 60))
    windows = windows_of(one, NOW)
    assert windows is not None
    assert windows.window == range(END - 600, END, 300)
    assert windows.baseline == range(END - 900, END - 600, 300)
    assert windows.split([1, 10, 100]) == (1, 110)


@pytest.mark.parametrize(("days", "width"), [(0, 300), (3, 3_600), (30, 86_400)])
def test_the_finest_width_that_reaches_back_is_used(days: int, width: int) -> None:
    """A day by five minutes, ten days by the hour, 90 by the day; beyond it is not kept."""
    one, shift = comparison(), days * 86_400
    one = replace(one, baseline=range(one.baseline.start - shift, one.baseline.stop - shift, 300))
    windows = windows_of(one, NOW)
    assert windows is not None
    assert windows.width == width
    one = replace(one, baseline=range(END - 100 * 86_400, END - 99 * 86_400, 300))
    assert windows_of(one, NOW) is None
    assert not_kept(one, NOW).reason.startswith("not kept: exceptions reach back to 2023-08-")
