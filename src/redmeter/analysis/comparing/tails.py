"""Tails of distributions: how likely a count is by chance, and quantiles of Student's t.

Source: Abramowitz and Stegun, 26.5.8; the continued fraction is evaluated by Lentz's method, as in
Press et al., "Numerical Recipes", 6.4.
"""

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Final

#: Terms of the continued fraction at most, and the relative change at which it ends.
_TERMS: Final = 10_000
_PRECISION: Final = 1e-14
_TINY: Final = 1e-300
#: Lower probabilities count as this.
_LEAST: Final = 1e-290
_NORMAL: Final = NormalDist()


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
