"""Tests of a share: did more of the requests fail after a deploy than before it?

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

Bound: some 100 us for each block length.

Source of the tails and quantiles: Abramowitz and Stegun, 26.5.8; the continued fraction is
evaluated by Lentz's method, as in Press et al., "Numerical Recipes", 6.4.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Final, NamedTuple

#: Confidence of intervals, two-sided.
CONFIDENCE: Final = 0.95
#: Terms of the continued fraction at most, and the relative change at which it ends.
_TERMS: Final = 10_000
_PRECISION: Final = 1e-14
_TINY: Final = 1e-300
#: Lower probabilities count as this.
_LEAST: Final = 1e-290
_NORMAL: Final = NormalDist()


class Counts(NamedTuple):
    """Events of an interval, of so many requests."""

    events: int
    of: int


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


def total(intervals: Iterable[Counts]) -> Counts:
    """Return the sums of intervals."""
    columns = [*zip(*intervals, strict=True)]
    return Counts(sum(columns[0]), sum(columns[1])) if columns else Counts(0, 0)


def dispersions(
    after: Sequence[Counts], before: Sequence[Counts], lengths: Iterable[int]
) -> list[Dispersion]:
    """Return the dispersion of adjacent windows, by the length of blocks.

    Args:
        after, before: intervals, oldest first.
        lengths: of blocks, in intervals.
    """
    return [_of_blocks(_blocks(after, n), _blocks(before[::-1], n), n) for n in lengths]


def _blocks(intervals: Sequence[Counts], length: int) -> list[Counts]:
    if length == 1:
        return [one for one in intervals if one[1]]
    blocks = (total(intervals[at : at + length]) for at in range(0, len(intervals), length))
    return [one for one in blocks if one.of]


def _of_blocks(after: Sequence[Counts], before: Sequence[Counts], length: int) -> Dispersion:
    excess = weight = freedom = 0.0
    squares = []
    for blocks in (after, before):
        events, of = total(blocks)
        squares.append(sum(one[1] * one[1] for one in blocks) / of if of else 1.0)
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
    within = max(excess / weight, 0.0) if weight else 0.0
    grown = [1 + within * max(square - 1, 0.0) for square in squares]
    return Dispersion(grown[0], grown[1], freedom, length)


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


def _tail(events: int, of: int, part: float, dispersion: Dispersion) -> float:
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


def chance(after: float, before: float, share: float) -> float:
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
