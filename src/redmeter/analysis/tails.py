"""Tails of distributions: how likely a count is by chance.

Source: Abramowitz and Stegun, 26.5.8; the continued fraction is evaluated by Lentz's method, as in
Press et al., "Numerical Recipes", 6.4.
"""

import math
from typing import Final

#: Terms of the continued fraction at most, and the relative change at which it ends.
_TERMS: Final = 10_000
_PRECISION: Final = 1e-14
_TINY: Final = 1e-300


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
    d = 1.0 / _nonzero(1.0 - (a + b) * x / (a + 1.0))
    fraction = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        d = 1.0 / _nonzero(1.0 + even * d)
        c = _nonzero(1.0 + even / c)
        fraction *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        d = 1.0 / _nonzero(1.0 + odd * d)
        c = _nonzero(1.0 + odd / c)
        change = d * c
        fraction *= change
        if abs(change - 1.0) < _PRECISION:
            break
    return fraction


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


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
