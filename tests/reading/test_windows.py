"""Windows: what is read for one is the window, no more and no less."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter import UnknownPrecision
from redmeter.reading.windows import Coverage, histogram_window, whole_window, window_of
from redmeter.stored.keys import DEFAULT_HISTOGRAMS, DEFAULT_RETENTION, Retention, slice_start

KEPT = Retention(DEFAULT_RETENTION)
times = st.integers(0, 2**36).map(float)
retentions = st.dictionaries(st.integers(1, 100_000), st.integers(1, 254), min_size=1, max_size=8)


def seconds_of(slices: dict[int, list[int]]) -> list[tuple[int, int]]:
    """Return the times that slices cover, sorted."""
    return sorted((start, start + width) for width, some in slices.items() for start in some)


@given(retentions, times, st.data())
def test_what_is_read_begins_with_the_window_and_has_neither_hole_nor_overlap(
    kept: dict[int, int], now: float, data: st.DataObject
) -> None:
    """Up to now, whatever is kept."""
    precision = data.draw(st.sampled_from(sorted(kept)))
    window = whole_window(Retention(kept), precision)
    covered = seconds_of(window.slices(now))
    assert covered[0][0] == window.start(now)
    assert covered[-1][0] <= now < covered[-1][1]
    assert all(one[1] == other[0] for one, other in pairwise(covered))


@given(retentions, times, st.data())
def test_only_samples_that_are_kept_are_read(
    kept: dict[int, int], now: float, data: st.DataObject
) -> None:
    """Also those of the time before."""
    precision = data.draw(st.sampled_from(sorted(kept)))
    retention = Retention(kept)
    window = whole_window(retention, precision)
    for slices in (window.slices(now), window.slices_before(now)):
        for width, starts in slices.items():
            assert all(start >= retention.oldest(width, now) for start in starts)


@given(times, st.sampled_from(sorted(DEFAULT_RETENTION)))
def test_what_was_before_ends_where_the_window_begins_or_up_to_one_slice_earlier(
    now: float, precision: int
) -> None:
    """And it is as long."""
    window = whole_window(KEPT, precision)
    covered = seconds_of(window.slices_before(now))
    if not covered:
        assert not window.earlier
        return
    assert 0 <= window.start(now) - covered[-1][1] < window.earlier[0]
    assert covered[-1][1] - covered[0][0] == window.before <= window.length
    assert all(one[1] == other[0] for one, other in pairwise(covered))


@pytest.mark.parametrize(
    ("precision", "widths", "drawn", "earlier", "before"),
    [
        (1, (1, 5, 60), 5, (5, 60), 120),
        (5, (5, 60, 300), 60, (60, 300), 600),
        (60, (60, 300, 3600), 300, (300, 3600), 7200),
        (300, (300, 3600, 18000), 3600, (3600, 18000), 36000),
        (3600, (3600, 18000), 18000, (18000,), 864000),
        (18000, (18000,), 18000, (86400,), 2160000),
        (86400, (86400,), 86400, (), 0),
    ],
)
def test_a_window_is_read_from_the_coarsest_slices_that_fit(
    precision: int, widths: tuple[int, ...], drawn: int, earlier: tuple[int, ...], before: int
) -> None:
    """With the retention that nobody has changed."""
    window = whole_window(KEPT, precision)
    assert window == Coverage(precision, KEPT[precision], widths, earlier, before)
    assert window.drawn() == drawn


@given(times, st.sampled_from(sorted(DEFAULT_RETENTION)))
def test_a_window_takes_few_slices(now: float, precision: int) -> None:
    """Of those that nobody has changed: 240 would be read one by one, and the hash for each."""
    window = whole_window(KEPT, precision)
    number = sum(map(len, window.slices(now).values()))
    assert number <= (120 if len(window.widths) == 1 else 52)


@pytest.mark.parametrize(
    ("precision", "fine", "count"),
    [
        (1, 5, 24),
        (5, 60, 10),
        (60, 60, 120),
        (300, 3600, 10),
        (3600, 3600, 240),
        (86400, 3600, 240),
    ],
)
def test_histograms_are_read_at_the_finest_precision_that_reaches_as_far(
    precision: int, fine: int, count: int
) -> None:
    """Or else at the one that reaches farthest."""
    window = histogram_window(DEFAULT_HISTOGRAMS, whole_window(KEPT, precision))
    assert (window.fine, window.count) == (fine, count)


def test_a_precision_that_is_not_kept_is_an_error() -> None:
    """Which lists those that are."""
    with pytest.raises(UnknownPrecision, match="86400"):
        whole_window(KEPT, 2)


def test_how_much_of_a_window_has_passed() -> None:
    """At noon and 30 seconds, the newest minute is half over."""
    window = window_of(KEPT, 60, 2)
    assert window.seconds(1_700_000_000 // 60 * 60 + 30.0) == 90
    assert window.start(1_700_000_000.0) == slice_start(1_700_000_000, 60) - 60
