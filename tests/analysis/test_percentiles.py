"""Tests of p95 as a share: shifts are found, equal windows are equal."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.analysis.comparing.significance import (
    PER_DOUBLING,
    Counts,
    Dispersion,
    Usual,
    excess_of,
    p95_ratio_interval,
    rise,
    slowest,
    sum_counts,
    total_counts,
)

PLAIN = Dispersion(1.0, 1.0, 1e9, 1)
windows = st.lists(
    st.dictionaries(st.integers(-80, 40), st.integers(1, 50), max_size=6), min_size=1, max_size=6
)


def minute(rng: random.Random, shift: int = 0, number: int = 200) -> dict[int, int]:
    """Return log-normal values of a minute, by bucket."""
    found: dict[int, int] = {}
    for _ in range(number):
        bucket = round(rng.gauss(0, 12)) + shift
        found[bucket] = found.get(bucket, 0) + 1
    return found


def p_of(after: list[dict[int, int]], before: list[dict[int, int]], shift: int = 0) -> float:
    """Return the probability of a rise."""
    slow = slowest(after, before, shift)
    found = [excess_of(slow.after, slow.before, 1).dispersion(Usual())]
    return rise(total_counts(slow.after), total_counts(slow.before), found).p


@given(windows, windows)
def test_at_least_a_twentieth_of_all_values_counts(
    after: list[dict[int, int]], before: list[dict[int, int]]
) -> None:
    """And each interval has all its values."""
    slow = slowest(after, before)
    counts = total_counts([*slow.after, *slow.before])
    assert counts.of == sum(sum_counts([*after, *before]).values())
    assert counts.events >= 0.05 * counts.of


@given(windows, windows, st.integers(-30, 30), st.integers(-9, 9))
def test_only_the_difference_of_buckets_matters(
    after: list[dict[int, int]], before: list[dict[int, int]], by: int, shift: int
) -> None:
    """Windows that are moved together have the same slowest values; and a shift is one of them."""

    def moved(intervals: list[dict[int, int]], buckets: int) -> list[dict[int, int]]:
        return [{at + buckets: number for at, number in one.items()} for one in intervals]

    assert slowest(moved(after, by), moved(before, by), shift) == slowest(after, before, shift)
    assert slowest(moved(after, shift), before, shift) == slowest(after, before)


def test_twice_the_p95_is_found_and_the_same_is_not() -> None:
    """Of 1,000 values a window."""
    rng = random.Random(1)
    before = [minute(rng) for _ in range(5)]
    assert p_of([minute(rng) for _ in range(5)], before) > 0.01
    assert p_of([minute(rng, PER_DOUBLING) for _ in range(5)], before, 2) < 1e-3


def test_a_constant_time_that_doubles_is_found() -> None:
    """All values after the deploy are slower than all before; within a margin it is no rise."""
    before, after = [{0: 100}] * 12, [{PER_DOUBLING: 100}] * 5
    assert slowest(after, before, 2).after == [Counts(100, 100)] * 5
    assert total_counts(slowest(after, before, 2).before).events == 0
    assert p_of(after, before, 2) < 1e-6
    assert p_of([{2: 100}] * 5, before, 2) > 0.4


def test_the_interval_of_the_ratio_contains_it_and_narrows() -> None:
    """With more values; with too few there is none."""
    rng = random.Random(2)
    widths = []
    for number in (400, 40_000):
        after, before = minute(rng, PER_DOUBLING, number), minute(rng, 0, number)
        interval = p95_ratio_interval(after, before, PLAIN)
        assert interval is not None
        assert interval[0] <= 2.1
        assert interval[1] >= 1.9
        widths.append(interval[1] / interval[0])
    assert widths[1] < widths[0]
    assert p95_ratio_interval(minute(rng, 0, 20), minute(rng), PLAIN) is None
    assert p95_ratio_interval({}, minute(rng), PLAIN) is None


@pytest.mark.parametrize("shift", [0, 2, -2])
def test_windows_without_values_are_no_rise(shift: int) -> None:
    """No error of arithmetic."""
    assert p_of([{}], [{}], shift) == 1.0
