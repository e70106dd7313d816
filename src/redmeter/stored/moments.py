"""How many values there were, their ends, their sum and their spread.

The textbook's way to the spread, sumsq - total^2 / n, subtracts two large numbers that are nearly
equal: of values around 10^9 that differ by 1 nothing is left. The idea: keep m2, the sum of the
squares of the distances from the mean. A batch of values is looked at twice, first for the mean;
and two sets of values merge by the distance of their means:

    m2 = m2_a + m2_b + (mean_b - mean_a)^2 * n_a * n_b / (n_a + n_b)

The bound: with k = |mean| / stddev and u = 2^-53, m2 is right to about k u of itself, where the
textbook's way has k^2 u. At 10^9 with a spread of 1 that is 10^-7 against no digit at all. `total`,
`sumsq` and `m2` are clamped to the largest double, since infinities cannot be stored.
A reader gets None instead of a sum or a spread that was cut or lost: see `exact_total`,
`exact_mean` and `exact_stddev`. No merge can have cut a sum while the count times the largest
magnitude is below 1.8e308, nor the squares as long as the spread is below about 1e154. Squares
below 10^-308 lose digits, and below 10^-324 all: the spread of values that differ, but so little,
is unknown.

Not done: the mean is the sum by the count, not kept apart, since it is stored as these two.

Applications record numbers of Python, decimal, fractions, numpy, and others: see to_float().

Source: Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample
Variances", 1979.
"""

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

#: The largest double, and the smallest that has all digits.
MAX_DOUBLE, LEAST_SQUARE = sys.float_info.max, sys.float_info.min


class Mergeable(Protocol):
    """Values of which several are merged into one: moments, sums, distributions."""

    def merge(self, other: Any, /) -> None:
        """Take in another one, which stays as it is."""


M = TypeVar("M", bound=Mergeable)


def merge_all(whole: M, parts: Iterable[M]) -> M:
    """Merge parts into a whole, and return it."""
    for part in parts:
        whole.merge(part)
    return whole


@dataclass(slots=True)
class Moments:
    """Count, ends, sum and spread of values; empty as it is made."""

    count: int = 0
    #: The lowest value and the highest; inf and -inf where there is none.
    low: float = math.inf
    high: float = -math.inf
    #: The sum of the values, at most the largest double.
    total: float = 0.0
    #: The sum of the squares of the distances from the mean, at most the largest double.
    m2: float = 0.0

    @property
    def mean(self) -> float:
        """The sum by the count, within [low, high]; 0 where there is no value."""
        if not self.count:
            return 0.0
        # The sum of three times 0.1 by 3 is above 0.1; and a sum may have been clamped.
        return min(max(self.total / self.count, self.low), self.high)

    @property
    def sumsq(self) -> float:
        """The sum of the squares of the values, at most the largest double."""
        return min(self.m2 + self.total * self.mean, MAX_DOUBLE)

    @property
    def exact_total(self) -> float | None:
        """The sum, or None where it may have been cut at the largest double."""
        largest = max(abs(self.low), abs(self.high)) if self.count else 0.0
        return self.total if self.count <= 1 or self.count * largest < MAX_DOUBLE else None

    @property
    def exact_mean(self) -> float | None:
        """The mean, or None where there is no value, or where the sum may have been cut."""
        if self.count and self.low == self.high:
            return self.low
        return self.mean if self.count and self.exact_total is not None else None

    @property
    def exact_stddev(self) -> float | None:
        """The standard deviation, or None where there is no value, or m2 was cut or lost."""
        if self.count and self.low == self.high:
            return 0.0
        return self.stddev() if self.count and LEAST_SQUARE <= self.m2 < MAX_DOUBLE else None

    def stddev(self) -> float:
        """Return the sample standard deviation: m2 by count - 1; of one value it is 0."""
        return math.sqrt(self.m2 / (self.count - 1 or 1))

    def add(self, count: int, low: float, high: float, total: float, m2: float) -> None:
        """Take in so many values, of which there is at least one, by their own moments."""
        if not self.count:
            self.count, self.low, self.high, self.total, self.m2 = count, low, high, total, m2
            return
        both = self.count + count
        apart = min(max(total / count, low), high) - self.mean
        m2 = self.m2 + m2 + apart * apart * (self.count * count / both)
        self.m2 = min(m2, MAX_DOUBLE)
        self.total = clamped(self.total + total)
        self.count = both
        if low < self.low:
            self.low = low
        if high > self.high:
            self.high = high

    def merge(self, other: "Moments") -> None:
        """Take in the values of another."""
        if other.count:
            self.add(other.count, other.low, other.high, other.total, other.m2)

    def add_sorted(self, values: Sequence[float]) -> None:
        """Take in values, ascending, of which there is at least one.

        Raises:
            ValueError: one is not finite; nothing was taken in.
        """
        count = len(values)
        low, high = values[0] + 0.0, values[-1] + 0.0  # not -0.0
        total = _sum(values)
        if not math.isfinite(total):
            raise ValueError("only finite values have moments")
        mean = min(max(total / count, low), high)
        # math.dist() is compensated, scaled against overflow, and written in C.
        distance = math.dist(values, (mean,) * count)
        self.add(count, low, high, clamped(total), min(distance * distance, MAX_DOUBLE))


@dataclass(slots=True)
class Sums(Moments):
    """Moments of values whose ends are unknown."""

    low: float = -math.inf
    high: float = math.inf

    @property
    def exact_total(self) -> float | None:
        """The sum, or None where it may have been cut.

        A sum that was cut stays at the largest double, unless values of the other sign follow: then
        the squares of their distances are cut.
        """
        return None if self.m2 >= MAX_DOUBLE or abs(self.total) >= MAX_DOUBLE else self.total


def to_float(value: object, call: str) -> float:
    """Return a number as a float, which may be infinite or NaN: callers must reject these.

    A number that is too large for a float becomes infinite.

    Args:
        value: an int, a float, or an object with `__float__()`, such as a Decimal.
        call: what takes the number, for the error: "observe()".

    Raises:
        TypeError: not a number.
    """
    if type(value) is float:
        return value
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise TypeError(
            f"{call} takes a number, not {type(value).__name__}: convert it, "
            "e.g. with float(value), or with value.total_seconds() for a timedelta"
        )
    try:
        return float(value)
    except ValueError:  # a signaling NaN of decimal
        return math.nan
    except OverflowError:  # of integers and fractions, which can be compared
        return -math.inf if value < 0 else math.inf  # type: ignore[operator]


def clamped(number: float) -> float:
    """Return a number, or the largest double of its sign where it is infinite."""
    return min(max(number, -MAX_DOUBLE), MAX_DOUBLE)


def _sum(values: Sequence[float]) -> float:
    """Sum values without rounding between; not finite where one is not. May be past a double."""
    try:
        return math.fsum(values)
    except OverflowError:  # on the way, or at the end: try again with smaller numbers
        total = math.fsum([value * 2.0**-64 for value in values])
        return clamped(total * 2.0**64) if math.isfinite(total) else total
