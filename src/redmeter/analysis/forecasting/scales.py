"""The scales on which values are smoothed: square roots of counts, and gauges as they are.

Counts become sqrt(x + 3/8), which makes the noise of counting one half at any level (Anscombe, "The
transformation of Poisson, binomial and negative-binomial data", 1948). The mean count of a mean
root is the closed form of Makitalo and Foi ("A closed-form approximation of the exact unbiased
inverse of the Anscombe variance-stabilizing transformation", 2011).

The range of counts that vary by chance alone is Poisson's, whose quantiles are about the squares of
sqrt(mean) -+ 0.98, rounded down: of means up to 30, nine in ten ranges are exact, and the others
one too wide or too narrow. Whether counts vary by chance is judged by how far the squares of their
errors exceed what Poisson expects.
"""

import math
import sys
from collections.abc import Sequence
from typing import Final, Protocol

#: Half the range of counts that vary by chance alone, of their square roots: 1.96 / 2.
HALF_POISSON: Final = 0.98
#: What the squares of the limits lack of the quantiles, at any mean.
_LACKS: Final = 0.1
#: Relative variation of a count, in addition to Poisson noise.
_VARIES: Final = 0.05
#: Anscombe's addition to a count.
_ANSCOMBE: Final = 0.375
#: Maximum excess of one error, so that an outlier alone does not change the range.
_MOST_EXCESS: Final = 8.0


#: How far the square of an error exceeds the one that Poisson expects, as a part of the mean; and
#: the variance of that if counts vary by chance alone.
ErrorExcess = tuple[float, float]


def unlike_chance(sizes: Sequence[float], mean: float) -> float:
    """Return how far counts are from those of chance around their mean, in standard deviations."""
    excess = sum(size * size for size in sizes) - len(sizes) * mean * (mean + 1)
    return abs(excess) / math.sqrt(len(sizes) * mean * (2 * mean + 1) or 1.0)


def highest_count(root: float) -> int:
    """Return the highest count of a range that ends at a root."""
    return math.floor(max(0.0, root * abs(root) - _LACKS))


class Scale(Protocol):
    """How values are transformed before they are smoothed, and their ranges transformed back."""

    #: Minimum of the robust standard deviation of errors, absolute and relative to the mean error.
    least: tuple[float, float]
    #: Maximum of the factor that adapts the range.
    widest: float
    #: How far beyond its range a value is inside.
    rounding: float

    def into(self, value: float) -> float:
        """Return a value on the scale."""

    def noise(self, middle: float) -> float:
        """Return the expected size of an error at a forecast, up to a factor."""

    def chance(self, middle: float) -> float:
        """Return half the width of the range of a forecast if values vary by chance alone."""

    def center(self, middle: float) -> float:
        """Return the center of the range of a forecast."""

    def excess(self, middle: float, scaled: float) -> ErrorExcess:
        """Return the excess of the error of a forecast."""

    def out(self, low: float, middle: float, high: float) -> tuple[float, float, float]:
        """Return the lowest, middle and highest value."""


class RootScale:
    """Counts as square roots: their noise is one half at any level, plus a relative part."""

    least, widest, rounding = (0.1, 0.0), 3.0, 0.0

    def into(self, value: float) -> float:
        return math.sqrt(max(value, 0) + _ANSCOMBE)

    def noise(self, middle: float) -> float:
        return math.sqrt(1.0 + (2 * _VARIES * middle) ** 2)

    def chance(self, middle: float) -> float:
        return HALF_POISSON * math.sqrt(1.0 + (_VARIES * middle) ** 2)

    def center(self, middle: float) -> float:
        return math.sqrt(self._mean(middle))

    def excess(self, middle: float, scaled: float) -> ErrorExcess:
        mean = self._mean(middle)
        size = (scaled * scaled - _ANSCOMBE - mean) ** 2 - mean
        part = 1 / (1 + mean)
        return min(size * part, _MOST_EXCESS), mean * (2 * mean + 1) * part * part

    def out(self, low: float, middle: float, high: float) -> tuple[float, float, float]:
        """Return the lowest, middle and highest count; the range ends at whole numbers."""
        middle = max(0.0, middle * abs(middle) - _ANSCOMBE)
        least, most = math.floor(max(0.0, low) ** 2 + _LACKS), highest_count(high)
        if least >= most:
            least = most = round(middle)
        return least, max(least, min(middle, most)), most

    def _mean(self, middle: float) -> float:
        x = 2 * max(middle, math.sqrt(_ANSCOMBE))
        part = math.sqrt(1.5) / x
        return max(0.0, (x * x + part - 5.5 / x**2 + 2.5 * part / x**2 - 0.5) / 4)


class GaugeScale:
    """Values of a gauge, scaled to about 1 so that no square exceeds the range of a float."""

    least, widest = (0.0, 0.15), 20.0

    def __init__(self, values: Sequence[float | None]) -> None:
        known = [value for value in values if value is not None]
        self._size = max(map(abs, known)) or 1.0
        self._first = known[0] / self._size
        # A constant is not always computed alike.
        self.rounding = 1e-9 * self._size

    def into(self, value: float) -> float:
        return value / self._size - self._first

    def noise(self, middle: float) -> float:  # noqa: ARG002
        return 1.0

    def chance(self, middle: float) -> float:  # noqa: ARG002
        return 0.0

    def center(self, middle: float) -> float:
        return middle

    def excess(self, middle: float, scaled: float) -> ErrorExcess:  # noqa: ARG002
        """Return an infinite one: how a gauge varies by chance is unknown."""
        return math.inf, 1.0

    def out(self, low: float, middle: float, high: float) -> tuple[float, float, float]:
        return self._value(low), self._value(middle), self._value(high)

    def _value(self, scaled: float) -> float:
        most = sys.float_info.max
        return max(-most, min(most, (scaled + self._first) * self._size))
