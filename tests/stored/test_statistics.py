"""Statistics: what a sorted set of an hour is sent, and what its members say together."""

import math
import statistics as exact
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.histogram import STATISTICS, statistics_moments, statistics_operations
from redmeter.stored.keys import HOUR, Keys
from redmeter.stored.moments import MAX_DOUBLE, Moments

KEYS = Keys()

numbers = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=20)


def moments_of(values: list[float]) -> Moments:
    """Return the moments of some values."""
    found = Distribution()
    found.add_all(values)
    return found.moments


def members(ours: list[float], others: list[float]) -> dict[str, float]:
    """Return what is in a sorted set after these were written by us, and those by others."""
    both = ours + others
    found = {
        "min": min(both),
        "max": max(both),
        "count": float(len(both)),
        "sum": math.fsum(both),
        "sumsq": math.fsum([value * value for value in both]),
    }
    if ours:
        own = moments_of(ours)
        found |= {"n": float(own.count), "mean": own.mean, "m2": own.m2}
    return found


def test_hours_go_in_their_order_with_all_that_is_known_of_them() -> None:
    """Four keys each; numbers in seventeen digits, which are exact."""
    hours = {HOUR: moments_of([1.0, 2.5]), 0: moments_of([0.1])}
    (made,) = statistics_operations(KEYS, {"a": hours}, return_totals=True)
    assert made.code == "stat"
    assert made.keys == KEYS.stats("a") * 2
    assert made.args[:3] == ("604800", "1", "4")
    assert made.args[3:12] == ("a", "0", "1", *["0.10000000000000001"] * 3, *made.args[9:12])
    assert made.args[12:17] == ("a", str(HOUR), "2", "1", "2.5")
    assert [float(text) for text in made.args[17:]] == pytest.approx([3.5, 7.25, 1.75, 1.125])
    assert statistics_operations(KEYS, {}) == statistics_operations(KEYS, {"a": {}}) == ()
    assert statistics_operations(KEYS, {"a": hours})[0].args[1] == "0"


@given(numbers)
def test_what_was_written_here_is_read_as_it_was(ours: list[float]) -> None:
    """To the last digits of the spread."""
    found = statistics_moments(members(ours, []))
    own = moments_of(ours)
    assert (found.count, found.low, found.high, found.m2) == (
        own.count,
        own.low,
        own.high,
        own.m2,
    )
    assert found.total == math.fsum(ours)


@given(numbers, st.lists(st.integers(-1000, 1000).map(float), min_size=1, max_size=20))
def test_what_others_wrote_is_merged_into_it(ours: list[float], others: list[float]) -> None:
    """Their spread is the textbook's, so it is right where values are not large and close."""
    ours = [value / 1e6 for value in ours]
    found = statistics_moments(members(ours, others))
    assert found.count == len(ours + others)
    expected = float(exact.pstdev([Fraction(value) for value in ours + others]))
    assert math.sqrt(found.m2 / found.count) == pytest.approx(expected, rel=1e-6, abs=1e-4)
    assert statistics_moments(members([], others)).mean == pytest.approx(exact.fmean(others))


@pytest.mark.parametrize("digits", range(1, 7))
def test_values_around_a_billion_keep_their_spread(digits: int) -> None:
    """Where the sums of squares have lost all of it, and say that it is below zero."""
    spread = 10.0 ** (digits - 1)
    values = [1e9 + spread * (n % 10) / 9 for n in range(1000)]
    expected = exact.stdev(map(Fraction, values))
    found = statistics_moments(members(values, []))
    assert found.stddev() == pytest.approx(float(expected), rel=1e-6)
    lost = statistics_moments(members([], values))
    assert lost.m2 >= 0


def test_one_value_has_no_spread_and_nothing_has_no_count() -> None:
    """Whoever wrote it."""
    for found in (members([1e9 + 0.1], []), members([], [1e9 + 0.1])):
        assert statistics_moments(found).stddev() == 0
        assert statistics_moments(found).mean == 1e9 + 0.1
    assert statistics_moments({}) == Moments()
    assert statistics_moments({"start": 5.0, "n": 3.0}).count == 0


def test_members_that_do_not_fit_together_raise_nothing() -> None:
    """Somebody may have set any of them to anything that a sorted set holds."""
    for odd in (math.inf, -math.inf, 0.0, -5.0, MAX_DOUBLE, 0.5):
        for name in STATISTICS:
            given_ = members([1.0, 2.0], [3.0]) | {name: odd}
            found = statistics_moments(given_)
            assert math.isfinite(found.mean) or not found.count
            assert found.m2 >= 0
