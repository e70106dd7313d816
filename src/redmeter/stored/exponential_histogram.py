"""Distributions: exponential histograms, for percentiles that can be merged.

Percentiles of parts cannot be combined, and storing all values would take too much. The idea: count
values in buckets whose width grows with the value, the same ones everywhere. Then distributions
merge exactly by summing their buckets, in any order: of intervals, windows, processes and machines.

Buckets are base-2 exponential at a fixed scale: bucket i holds (2^(i/16), 2^((i+1)/16)], so

    index = ceil(log2(x) * 16) - 1

    x        1       1.02    1.0443   2       1000    0.001
    index    -1      0       0 or 1   15      159     -160

Negative values have their own buckets of |x|; zeros have a count.

The bound: a bucket is represented by 2 lo hi / (lo + hi), from which each of its values differs by
at most (b - 1) / (b + 1) = 2.17 % of itself, b = 2^(1/16). Below 2^-1022, where doubles are evenly
spaced, half of that space, 2^-1075, is added. The lowest and the highest value are exact. Values
between 1 ms and 10 s share 213 buckets; all doubles share 33,569 of either sign.

The logarithm is not used: it is rounded, and would put values near an edge into the wrong bucket.
The exponent of a double gives the power of two, and a table of 16 edges does the rest.

Not done: a scale that adapts to the range of values. It would save buckets, but distributions of
different scales merge at the coarser one, so the error bound would be unknown.

Source: OpenTelemetry, metrics data model, exponential histogram (mapping function, scale 4).
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate

from redmeter.errors import InvalidValue
from redmeter.stored.moments import MAX_DOUBLE, Moments

#: Each power of two is divided into 2^SCALE buckets.
SCALE = 4
_PARTS = 1 << SCALE

#: The lowest bucket and the highest: of the least positive double, 2^-1074, and of the largest.
LOWEST, HIGHEST = -1074 * _PARTS - 1, 1024 * _PARTS - 1

#: A bucket's value differs from any value in it by at most this part of that value.
RELATIVE_ERROR = (2 ** (1 / _PARTS) - 1) / (2 ** (1 / _PARTS) + 1)


def _root(number: int) -> int:
    """Return the whole part of the sixteenth root: of the square root, SCALE times."""
    for _ in range(SCALE):
        number = math.isqrt(number)
    return number


# 2^(k/16) / 2 for k = 0 … 15, rounded down to a double: a double is above the edge if and only if
# it is above this number. Rounding to the nearest could move it to the other side of the edge.
_EDGES = [_root(1 << 53 * _PARTS + k - _PARTS) / 2**53 for k in range(_PARTS)]

# The representative values of the buckets in (1, 2].
_MIDDLES = [2 ** (k / _PARTS) * (1 + RELATIVE_ERROR) for k in range(_PARTS)]


def bucket_of(value: float) -> int:
    """Return the index of the bucket that a positive finite value is in."""
    part, exponent = math.frexp(value)  # part * 2^exponent, part in [0.5, 1)
    return _PARTS * exponent + bisect_left(_EDGES, part) - _PARTS - 1


@lru_cache(4096)
def upper_edge(index: int) -> float:
    """Return the highest double that is in a bucket or below it; 0 below the lowest bucket."""
    if index >= HIGHEST:
        return MAX_DOUBLE
    exponent, k = divmod(index + 1, _PARTS)
    if exponent >= -1022:
        return math.ldexp(_EDGES[k], exponent + 1)
    steps = math.ldexp(_EDGES[k], exponent + 1075)  # of 2^-1074; ldexp() would round them
    return math.ldexp(math.floor(steps), -1074)


def middle(index: int) -> float:
    """Return what a bucket stands for."""
    exponent, k = divmod(index, _PARTS)
    return math.ldexp(_MIDDLES[k], exponent)


class Distribution:
    """How many values were in each bucket, and their moments; empty as it is made."""

    __slots__ = ("moments", "negative", "positive", "zeros")

    def __init__(self) -> None:
        self.moments = Moments()
        self.zeros = 0
        #: Index of a bucket -> how many; no zeros. Those of negative values are buckets of |value|.
        self.positive: dict[int, int] = {}
        self.negative: dict[int, int] = {}

    @classmethod
    def of_buckets(
        cls, buckets: Iterable[tuple[float, float, int]], low: float, high: float
    ) -> "Distribution":
        """Return a distribution of which buckets() is known; of the moments, count and extremes."""
        made = cls()
        for start, end, count in buckets:
            made.moments.count += count
            if end > 0:
                made.positive[bucket_of(end)] = count
            elif start < 0:
                made.negative[bucket_of(-start)] = count
            else:
                made.zeros += count
        made.moments.low, made.moments.high = low, high
        return made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Distribution):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        return f"<Distribution of {self.count}: {self.moments}, buckets {self.buckets()}>"

    @property
    def count(self) -> int:
        """How many values."""
        return self.moments.count

    def add_all(self, values: Sequence[float]) -> None:
        """Add many values at once, in any order.

        They are sorted first, so that the work grows with the buckets rather than the values.

        Raises:
            ValueError: a value is not finite; none was added.
        """
        if not values:
            return
        ordered = sorted(values)
        self.moments.add_sorted(ordered)
        if ordered[0] > 0:
            _count(self.positive, ordered, 0)
            return
        above = bisect_right(ordered, 0.0)
        below = bisect_left(ordered, 0.0)
        self.zeros += above - below
        _count(self.positive, ordered, above)
        _count(self.negative, [-value for value in reversed(ordered[:below])], 0)

    def merge(self, other: "Distribution") -> None:
        """Add the values of another distribution, which is not changed."""
        self.moments.merge(other.moments)
        self.zeros += other.zeros
        for mine, theirs in (self.positive, other.positive), (self.negative, other.negative):
            for index, count in theirs.items():
                mine[index] = mine.get(index, 0) + count

    def quantile(self, q: float) -> float:
        """Return the quantile q, from 0 to 1, by nearest rank: see quantiles()."""
        return self.quantiles((q,))[0]

    def quantiles(self, qs: Iterable[float]) -> list[float]:
        """Return quantiles by nearest rank: of n values the ceil(q n)-th lowest, by its bucket.

        Each is right to 2.17 % of itself; that of 0 is the lowest value, that of 1 the highest.

        Args:
            qs: parts of 1. They are taken as the decimals they were written as: 0.07 of 100
                values is the 7th, though the nearest double is a little above 0.07.

        Raises:
            InvalidValue: not 0 to 1.
            ValueError: there is no value.
        """
        low, high, n = self.moments.low, self.moments.high, self.count
        if not n:
            raise ValueError("no quantile of no values")
        negative, positive = sorted(self.negative, reverse=True), sorted(self.positive)
        counts = [self.negative[index] for index in negative]
        counts.append(self.zeros)
        counts += [self.positive[index] for index in positive]
        ranks = list(accumulate(counts))
        results = []
        for q in qs:
            if not 0 <= q <= 1:
                raise InvalidValue(q, "a quantile is a number from 0 to 1, e.g. 0.99 for p99")
            if q == 0 or q == 1:
                results.append(high if q else low)
                continue
            # A decimal as a double has a relative error of 2^-53, and so has the product.
            at = bisect_left(ranks, max(math.ceil(q * n * (1 - 2**-51)), 1)) - len(negative)
            value = 0.0
            if at:
                value = middle(positive[at - 1]) if at > 0 else -middle(negative[at])
            results.append(min(max(value, low), high))
        return results

    def share_above(self, threshold: float) -> float:
        """Return the share of values above a threshold, 0 to 1.

        Values are assumed to be evenly spread within the threshold's bucket, so the error is below
        the share of that bucket. The result is exact below the lowest value, from the highest on,
        at zero, and at a positive power of two.

        Raises:
            ValueError: there are no values, or the threshold is NaN.
        """
        low, high, n = self.moments.low, self.moments.high, self.count
        if not n or math.isnan(threshold):
            raise ValueError("no values, or no threshold, to compare")
        if threshold < low or threshold >= high:
            return 1.0 if threshold < low else 0.0
        if not threshold:
            return sum(self.positive.values()) / n
        index = bucket_of(abs(threshold))
        least, most = upper_edge(index - 1), upper_edge(index)
        if threshold > 0:
            above = sum([c for i, c in self.positive.items() if i > index])
            first, last = max(least, low), min(most, high)
            part = self.positive.get(index, 0) * (last - threshold)
        else:
            above = n - sum([c for i, c in self.negative.items() if i >= index])
            first, last = max(-most, low), min(-least, high)
            part = self.negative.get(index, 0) * (last - threshold)
        return (above + (part / (last - first) if last > first else 0)) / n

    def buckets(self) -> list[tuple[float, float, int]]:
        """Return the buckets that hold values, ascending: lower edge, upper edge, how many.

        The value itself is in the bucket at the edge that is farther from zero; zeros are in
        (0.0, 0.0, how many).
        """
        buckets = [
            (-upper_edge(index), -upper_edge(index - 1) + 0.0, self.negative[index])
            for index in sorted(self.negative, reverse=True)
        ]
        if self.zeros:
            buckets.append((0.0, 0.0, self.zeros))
        buckets += [
            (upper_edge(index - 1), upper_edge(index), self.positive[index])
            for index in sorted(self.positive)
        ]
        return buckets


def _count(buckets: dict[int, int], ordered: Sequence[float], at: int) -> None:
    """Count values from a position on, positive and ascending, in buckets."""
    edges, frexp, bisect, upper = _EDGES, math.frexp, bisect_left, upper_edge
    size = len(ordered)
    while at < size:
        part, exponent = frexp(ordered[at])
        index = _PARTS * exponent + bisect(edges, part) - _PARTS - 1
        after, edge = at + 1, upper(index)
        if after < size and ordered[after] <= edge:
            after = bisect_right(ordered, edge, after + 1)
        buckets[index] = buckets.get(index, 0) + after - at
        at = after
