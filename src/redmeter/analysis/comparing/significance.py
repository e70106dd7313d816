"""Tests of a share and of a percentile: are they higher after a deploy than before it?

Problem: requests do not fail independently of each other. A dependency is slow for three minutes,
one client repeats a bad request; so failures come in clusters, and a plain binomial test raises
false alarms to some 40 %. How clustered they are is estimated from the intervals themselves.

Idea: given all failures of both windows, those after the deploy are binomial under the hypothesis
that the share did not rise by more than a margin: `binomial_tail()`, exact for any number. Clusters
make a number of failures worth fewer independent ones: it is divided by the dispersion. That is
estimated, so the result is judged by Student's t instead of the normal distribution.

    dispersion   of blocks of intervals: by how much more their shares vary than binomial ones do;
                 beta-binomial, by moments (Williams, "Extra-binomial variation in logistic linear
                 models", 1982), so blocks and windows may have different numbers of requests
    blocks       of several lengths, since clusters may be longer than an interval; the length that
                 is least in favor of a change counts
    pairs        where windows are a day or a week apart, by how much more the intervals before the
                 deploy differ from theirs than binomial ones do; days differ, and that counts as
                 dispersion
    percentile   percentiles of windows have no simple distribution, response times of a minute are
                 alike, and the stored buckets are 4.4 % wide. So a p95 is tested as a share. Take
                 the slowest 5 % of all values of both windows: if p95 did not rise, their part is
                 the same before and after. The values at or above one bucket are counted by
                 interval, and tested by `rise()`. To test for a rise by more than some buckets, one
                 window is shifted by these (as Mood's median test is for the median and a shift)
    interval     of the ratio of p95: shares around 95 % are turned into values (Woodruff,
                 "Confidence intervals for medians and other position measures", 1952), and those of
                 both windows are combined (Zou and Donner, 2008)

Bound: some 100 us for each block length; for percentiles some 300 us for two windows of 60
intervals, half of it to merge them.

Source of the tails and quantiles: Abramowitz and Stegun, 26.5.8; the continued fraction is
evaluated by Lentz's method, as in Press et al., "Numerical Recipes", 6.4.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Final, NamedTuple, TypeVar

#: Confidence of intervals, two-sided.
CONFIDENCE: Final = 0.95
#: The quantile that is compared.
QUANTILE: Final = 0.95
#: Buckets of a power of two, of a base-2 exponential histogram of scale 4.
PER_DOUBLING: Final = 16
#: The weight of the dispersion of other routes at most, in degrees of freedom.
_USUAL: Final = 30.0
#: Standard errors up to which a dispersion is not distinguished from 1.
_LIKE_ONE: Final = 1.28
#: Terms of the continued fraction at most, and the relative change at which it ends.
_TERMS: Final = 10_000
_PRECISION: Final = 1e-14
_TINY: Final = 1e-300
#: Lower probabilities count as this.
_LEAST: Final = 1e-290
_NORMAL: Final = NormalDist()

#: The values of an interval: bucket -> number.
BucketCounts = Mapping[int, float]
K = TypeVar("K")
N = TypeVar("N", int, float)


class Counts(NamedTuple):
    """Events of an interval, of so many requests."""

    #: Whole numbers, unless they are weighted.
    events: float
    of: float


class Dispersion(NamedTuple):
    """How much more numbers of events vary than binomial ones, 1 for equal."""

    after: float
    before: float
    #: Degrees of freedom of the estimate.
    freedom: float
    #: Intervals of a block; 0 for pairs.
    block: int


class RateTest(NamedTuple):
    """The result of a test."""

    #: The probability of at least such a rise, if the share rose by the margin at most.
    p: float
    dispersion: Dispersion


def total_counts(intervals: Iterable[Counts]) -> Counts:
    """Return the sums of intervals."""
    columns = [*zip(*intervals, strict=True)]
    return Counts(sum(columns[0]), sum(columns[1])) if columns else Counts(0, 0)


class Variation(NamedTuple):
    """By how much blocks of intervals vary more than binomial ones do."""

    #: The sum of squares beyond its expectation; by so much it grows with the dispersion.
    excess: float
    weight: float
    #: Degrees of freedom.
    freedom: float
    #: The requests of a typical block, after and before.
    squares: tuple[float, float]
    #: Intervals of a block.
    block: int

    def dispersion(self, usual: "Usual") -> Dispersion:
        """Return the dispersion, shrunk toward that of other routes.

        If it cannot be distinguished from 1, it is 1.
        """
        more = min(_USUAL, max(usual.freedom - self.freedom, 0.0))
        freedom = self.freedom + more
        if self.weight <= 0 or not self.freedom:  # Nothing failed.
            return self._grown(usual.within, usual.freedom if usual.within else math.inf)
        excess = self.excess + more / self.freedom * usual.within * self.weight
        excess *= self.freedom / freedom
        if _is_like_one(excess / self.freedom, freedom):
            return self._grown(0.0, math.inf)
        return self._grown(max(excess / self.weight, 0.0), freedom)

    def _grown(self, within: float, freedom: float) -> Dispersion:
        after, before = (1 + within * max(square - 1, 0.0) for square in self.squares)
        return Dispersion(after, before, freedom, self.block)


class Usual(NamedTuple):
    """The dispersion of all routes together."""

    #: The correlation within a block.
    within: float = 0.0
    freedom: float = 0.0


def usual(parts: Iterable[Variation]) -> Usual:
    """Return the dispersion of several routes together; 0 if it cannot be distinguished from 1."""
    excess = weight = freedom = 0.0
    for one in parts:
        if one.weight > 0:
            excess, weight = excess + one.excess, weight + one.weight
            freedom += one.freedom
    if not weight or _is_like_one(excess / freedom, freedom):
        return Usual(0.0, freedom)
    return Usual(max(excess / weight, 0.0), freedom)


def _is_like_one(excess: float, freedom: float) -> bool:
    """Return whether a dispersion of 1 + excess is usual for 1 (Wilson and Hilferty, 1931)."""
    error = math.sqrt(2 / (9 * freedom))
    root = math.cbrt(max(1 + excess, 0.0))
    return (root - 1 + error * error) / error <= _LIKE_ONE


def excess_of(after: Sequence[Counts], before: Sequence[Counts], length: int) -> Variation:
    """Return by how much the blocks of adjacent windows vary.

    Args:
        after, before: intervals, oldest first.
        length: of blocks, in intervals.
    """
    windows = _blocks(after, length), _blocks(before[::-1], length)
    excess = weight = freedom = 0.0
    squares = []
    for blocks in windows:
        events, of = total_counts(blocks)
        squares.append(sum([one[1] * one[1] for one in blocks]) / of if of else 1.0)
        if len(blocks) < 2:
            continue
        freedom += len(blocks) - 1
        share = events / of
        variance = share * (1 - share)
        if not variance:
            continue
        errors = [(found - share * size) ** 2 / size for found, size in blocks]
        excess += sum(errors) / variance - (len(blocks) - 1)
        # The sum of (size - 1) (1 - size / of).
        weight += of - squares[-1] - (len(blocks) - 1)
    return Variation(excess, weight, freedom, (squares[0], squares[1]), length)


def _blocks(intervals: Sequence[Counts], length: int) -> list[Counts]:
    if length == 1:
        return [one for one in intervals if one[1]]
    events, of = [one[0] for one in intervals], [one[1] for one in intervals]
    return [
        Counts(sum(events[at : at + length]), size)
        for at in range(0, len(intervals), length)
        if (size := sum(of[at : at + length]))
    ]


def paired_dispersion(
    pairs: Sequence[tuple[Counts, Counts]], after: Counts, before: Counts
) -> Dispersion:
    """Return the dispersion of windows that are a day or a week apart.

    Args:
        pairs: intervals before the deploy, each with the one a day or a week earlier.
        after, before: the windows to compare.
    """
    excess = weight = 0.0
    freedom = 0
    for now, then in pairs:
        events = now.events + then.events
        if not events or not now.of or not then.of:
            continue
        part = now.of / (now.of + then.of)
        variance = events * part * (1 - part)
        excess += (now.events - part * events) ** 2 / variance - 1
        weight += variance
        freedom += 1
    between = max(excess / weight, 0.0) if weight else 0.0
    part = after.of / (after.of + before.of) if after.of else 0.5
    variance = (after.events + before.events) * part * (1 - part)
    grown = 1 + between * variance
    return Dispersion(grown, grown, freedom, 0)


def rise(
    after: Counts, before: Counts, candidates: Sequence[Dispersion], margin: float = 1.0
) -> RateTest:
    """Test whether a share rose by more than a factor.

    Args:
        candidates: estimates of the dispersion; the one that is least in favor of a rise counts.
        margin: the factor.
    """
    part = margin * after.of / (margin * after.of + before.of) if after.of or before.of else 0.5
    events = after.events + before.events
    tests = [RateTest(_tail(after.events, events, part, one), one) for one in candidates]
    return max(tests, key=lambda test: test.p)


def _tail(events: float, of: float, part: float, dispersion: Dispersion) -> float:
    if not events or dispersion.freedom < 1:
        return 1.0
    spread = (1 - part) * dispersion.after + part * dispersion.before
    tail = binomial_tail(events / spread, of / spread, part)
    return student_tail(normal_quantile(tail), dispersion.freedom)


def ratio_interval(
    after: Counts, before: Counts, dispersion: Dispersion
) -> tuple[float, float] | None:
    """Return the confidence interval of the ratio of two shares; None without any data."""
    if not after.of or not before.of or dispersion.freedom < 1:
        return None
    t = student_quantile((1 - CONFIDENCE) / 2, dispersion.freedom)
    a, b = after.events + 0.5, before.events + 0.5
    half = t * math.sqrt(dispersion.after / a + dispersion.before / b)
    middle = math.log(a / after.of) - math.log(b / before.of)
    return math.exp(max(middle - half, -700)), math.exp(min(middle + half, 700))


def upper_share(counts: Counts, spread: float, freedom: float) -> float:
    """Return the upper end of the confidence interval of a share.

    By the square root of the number, where its noise is the same at any height.
    """
    if not counts.of or freedom < 1:
        return 1.0
    t = student_quantile((1 - CONFIDENCE) / 2, freedom)
    return min(1.0, (math.sqrt(counts.events / spread + 1) + t / 2) ** 2 * spread / counts.of)


def holm(tails: Sequence[float | None]) -> list[float | None]:
    """Return probabilities adjusted for their number (Holm, 1979); None is no test."""
    tested = sorted((p, at) for at, p in enumerate(tails) if p is not None)
    adjusted: list[float | None] = [None] * len(tails)
    highest = 0.0
    for rank, (p, at) in enumerate(tested):
        highest = max(highest, min(1.0, p * (len(tested) - rank)))
        adjusted[at] = highest
    return adjusted


# Percentiles


class Slowest(NamedTuple):
    """The slowest values of both windows, counted by interval."""

    after: list[Counts]
    before: list[Counts]


def sum_counts(parts: Iterable[Mapping[K, N]]) -> dict[K, N]:
    """Return the sums of several counts by key, such as the bucket of a histogram or a start."""
    numbers: dict[K, N] = {}
    for counts in parts:
        for key, number in counts.items():
            numbers[key] = numbers.get(key, 0) + number
    return numbers


def slowest(
    after: Sequence[BucketCounts],
    before: Sequence[BucketCounts],
    shift: int = 0,
    wholes: tuple[BucketCounts, BucketCounts] | None = None,
) -> Slowest:
    """Return how many values of each interval are among the slowest 5 % of both windows.

    Args:
        shift: buckets by which the values after the deploy are lowered before.
        wholes: the values of each window, if they are merged already.
    """
    edge = slow_edge(*(wholes or (sum_counts(after), sum_counts(before))), shift)
    return Slowest(count_slow(after, edge + shift), count_slow(before, edge))


def slow_edge(after: BucketCounts, before: BucketCounts, shift: int = 0) -> int:
    """Return the lowest bucket of the slowest 5 % of both windows.

    Args:
        shift: buckets by which the values after the deploy are lowered before.
    """
    pooled = dict(before)
    for bucket, number in after.items():
        pooled[bucket - shift] = pooled.get(bucket - shift, 0) + number
    share = (1 - QUANTILE) * sum(pooled.values())
    edge, passed = 0, 0.0
    for edge in sorted(pooled, reverse=True):
        passed += pooled[edge]
        if passed >= share:
            break
    return edge


def count_slow(intervals: Iterable[BucketCounts], edge: int) -> list[Counts]:
    """Return how many values of each interval are in a bucket or above it."""
    return [
        Counts(
            sum([buckets[bucket] for bucket in buckets if bucket >= edge]),
            sum(buckets.values()),
        )
        for buckets in intervals
    ]


def p95_ratio_interval(
    after: BucketCounts, before: BucketCounts, dispersion: Dispersion
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


def _ends(values: BucketCounts, spread: float, t: float) -> tuple[int, int, int] | None:
    """Return the buckets of the lower end, of p95 and of the upper end; None if there is no end."""
    number = sum(values.values())
    half = t * math.sqrt(QUANTILE * (1 - QUANTILE) * spread / number)
    shares = [QUANTILE - half, QUANTILE, QUANTILE + half]
    if shares[2] >= 1 or shares[0] <= 0:
        return None
    ends: list[int] = []
    passed = 0.0
    for bucket in sorted(values):
        passed += values[bucket]
        while len(ends) < 3 and passed >= shares[len(ends)] * number:
            ends.append(bucket)
    return ends[0], ends[1], ends[2]


def _factor(buckets: float) -> float:
    return float(2.0 ** (buckets / PER_DOUBLING))


# Tails of distributions


def incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function I_x(a, b).

    Of n events of which each is in a group with probability x, at least k are in the group with
    probability I_x(k, n - k + 1). `a` and `b` may be any positive numbers.
    """
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    logarithm += a * math.log(x) + b * math.log1p(-x)
    if x < (a + 1.0) / (a + b + 2.0):
        return min(1.0, math.exp(logarithm) * _fraction(x, a, b) / a)
    return max(0.0, 1.0 - math.exp(logarithm) * _fraction(1.0 - x, b, a) / b)


def _fraction(x: float, a: float, b: float) -> float:
    c = 1.0
    d = 1.0 / (1.0 - (a + b) * x / (a + 1.0) or _TINY)
    fraction = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        d = 1.0 / (1.0 + even * d or _TINY)
        c = 1.0 + even / c or _TINY
        fraction *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        d = 1.0 / (1.0 + odd * d or _TINY)
        c = 1.0 + odd / c or _TINY
        change = d * c
        fraction *= change
        if abs(change - 1.0) < _PRECISION:
            break
    return fraction


def split_probability(after: float, before: float, share: float) -> float:
    """Return the probability of a split of events at least as uneven as this one, on either side.

    Args:
        after, before: events in either part; they need not be whole numbers, as where counts are
            divided by their dispersion.
        share: the expected share of the first part, 0 to 1.
    """
    more = incomplete_beta(share, after, before + 1.0) if after > 0 else 1.0
    fewer = incomplete_beta(1.0 - share, before, after + 1.0) if before > 0 else 1.0
    return min(1.0, 2.0 * min(more, fewer))


def binomial_tail(count: float, of: float, share: float) -> float:
    """Return the probability of at least `count` of `of` events, each with probability `share`.

    The numbers need not be whole.
    """
    return incomplete_beta(share, count, max(of - count, 0.0) + 1.0) if count > 0 else 1.0


def student_tail(t: float, freedom: float) -> float:
    """Return the probability that Student's t is at least `t`."""
    if math.isinf(t):
        return float(t < 0)
    if math.isinf(freedom):
        return math.erfc(t / math.sqrt(2)) / 2
    half = incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2
    return half if t >= 0 else 1.0 - half


@lru_cache(1024)
def student_quantile(tail: float, freedom: float) -> float:
    """Return the t that Student's t reaches with the probability `tail`, 0 < tail <= 0.5."""
    low, high = 0.0, 2.0
    while student_tail(high, freedom) > tail:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if student_tail(middle, freedom) > tail else (low, middle)
    return (low + high) / 2


def normal_quantile(tail: float) -> float:
    """Return the z that a standard normal value reaches with the probability `tail`."""
    if tail >= 1.0:
        return -math.inf
    if tail > 1e-15:
        return -_NORMAL.inv_cdf(tail)
    # By the expansion of the tail (Abramowitz and Stegun, 26.2.12), with Newton's method.
    logarithm = math.log(max(tail, _LEAST))
    z = math.sqrt(-2.0 * logarithm)
    for _ in range(5):
        excess = z * z / 2 + math.log(z * math.sqrt(2 * math.pi)) + math.log1p(1 / (z * z))
        z -= (excess + logarithm) / (z + 1 / z)
    return z
