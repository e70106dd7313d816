"""Tests of a percentile: is p95 higher after a deploy than before it?

Problem: percentiles of windows have no simple distribution, response times of a minute are alike,
and the stored buckets are 4.4 % wide.

Idea: turn it into a test of a share. Take the slowest 5 % of all values of both windows: if p95 did
not rise, their part is the same before and after. So the values at or above one bucket are counted
by interval, and tested by `rates.rise()` with the dispersion of blocks of intervals. To test for a
rise by more than some buckets, one window is shifted by these (as Mood's median test is for the
median and a shift). The confidence interval is found the same way: shares around 95 % are turned
into values (Woodruff, "Confidence intervals for medians and other position measures", 1952), and
those of both windows are combined (Zou and Donner, 2008).

Bound: some 300 us for two windows of 60 intervals; half of it is to merge them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from redmeter.analysis.comparing.rates import CONFIDENCE, Counts, Dispersion, student_quantile

#: The quantile that is compared.
QUANTILE: Final = 0.95
#: Buckets of a power of two, of a base-2 exponential histogram of scale 4.
PER_DOUBLING: Final = 16

#: The values of an interval: bucket -> number.
Buckets = Mapping[int, int]


class Slowest(NamedTuple):
    """The slowest values of both windows, counted by interval."""

    after: list[Counts]
    before: list[Counts]


def merged(intervals: Iterable[Buckets]) -> dict[int, int]:
    """Return the values of several intervals."""
    numbers: dict[int, int] = {}
    for buckets in intervals:
        for bucket, number in buckets.items():
            numbers[bucket] = numbers.get(bucket, 0) + number
    return numbers


def slowest(
    after: Sequence[Buckets],
    before: Sequence[Buckets],
    shift: int = 0,
    wholes: tuple[Buckets, Buckets] | None = None,
) -> Slowest:
    """Return how many values of each interval are among the slowest 5 % of both windows.

    Args:
        shift: buckets by which the values after the deploy are lowered before.
        wholes: the values of each window, if they are merged already.
    """
    whole_after, whole_before = wholes or (merged(after), merged(before))
    pooled = dict(whole_before)
    for bucket, number in whole_after.items():
        pooled[bucket - shift] = pooled.get(bucket - shift, 0) + number
    share = (1 - QUANTILE) * sum(pooled.values())
    edge, passed = 0, 0
    for edge in sorted(pooled, reverse=True):
        passed += pooled[edge]
        if passed >= share:
            break
    return Slowest(_above(after, edge + shift), _above(before, edge))


def _above(intervals: Iterable[Buckets], edge: int) -> list[Counts]:
    return [
        Counts(
            sum([buckets[bucket] for bucket in buckets if bucket >= edge]),
            sum(buckets.values()),
        )
        for buckets in intervals
    ]


def ratio_interval(
    after: Mapping[int, int], before: Mapping[int, int], dispersion: Dispersion
) -> tuple[float, float] | None:
    """Return the confidence interval of the ratio of p95; None if there are too few values.

    Args:
        after, before: the values of both windows.
    """
    if not after or not before or dispersion.freedom < 1:
        return None
    t = student_quantile((1 - CONFIDENCE) / 2, dispersion.freedom)
    ends = [_ends(after, dispersion.after, t), _ends(before, dispersion.before, t)]
    if None in ends:
        return None
    (low, middle, high), (low_before, middle_before, high_before) = ends  # type: ignore[misc]
    ratio = middle - middle_before
    below = math.hypot(middle - low, high_before - middle_before)
    above = math.hypot(high - middle, middle_before - low_before)
    return _factor(ratio - below), _factor(ratio + above)


def _ends(values: Mapping[int, int], spread: float, t: float) -> tuple[int, int, int] | None:
    """Return the buckets of the lower end, of p95 and of the upper end; None if there is no end."""
    number = sum(values.values())
    half = t * math.sqrt(QUANTILE * (1 - QUANTILE) * spread / number)
    shares = [QUANTILE - half, QUANTILE, QUANTILE + half]
    if shares[2] >= 1 or shares[0] <= 0:
        return None
    ends: list[int] = []
    passed = 0
    for bucket in sorted(values):
        passed += values[bucket]
        while len(ends) < 3 and passed >= shares[len(ends)] * number:
            ends.append(bucket)
    return ends[0], ends[1], ends[2]


def _factor(buckets: float) -> float:
    return float(2.0 ** (buckets / PER_DOUBLING))
