"""Summaries of observed values: count, mean, percentiles. Values, no I/O.

They are computed from a Distribution, see format/exponential_histogram.py. The count, the lowest
and the highest value are exact. Total, mean and stddev are exact up to the rounding of doubles. A
quantile is within 2.17 % of the exact one, no matter how many intervals, processes and label sets
were merged.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from redmeter.format.exponential_histogram import Distribution
from redmeter.format.packed_text import merged, parse
from redmeter.types import Series

#: Buckets and moments of a slice, as they are stored; None where there is none.
Texts = tuple[bytes | None, bytes | None]


@dataclass(frozen=True)
class Spread:
    """Count, mean, percentiles … of some observed values; None where there are no values."""

    distribution: Distribution = field(repr=False)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.count}: mean {self.mean}, p95 {self.p95}>"

    @property
    def count(self) -> int:
        """How many values."""
        return self.distribution.count

    @property
    def total(self) -> float | None:
        """Their sum; None where the count times the largest magnitude reaches 1.8e308."""
        return self.distribution.moments.exact_total

    @property
    def mean(self) -> float | None:
        """Their mean; None where the total is None, unless all values are equal."""
        return self.distribution.moments.exact_mean

    @property
    def stddev(self) -> float | None:
        """Their sample standard deviation; 0 of a single value, None above about 1e154."""
        return self.distribution.moments.exact_stddev

    @property
    def low(self) -> float | None:
        """The lowest of them."""
        return self.distribution.moments.low if self.count else None

    @property
    def high(self) -> float | None:
        """The highest of them."""
        return self.distribution.moments.high if self.count else None

    @property
    def p50(self) -> float | None:
        """The median, within 2.17 % of itself."""
        return self.quantile(0.5)

    @property
    def p90(self) -> float | None:
        """What nine of ten do not exceed, within 2.17 % of itself."""
        return self.quantile(0.9)

    @property
    def p95(self) -> float | None:
        """What 19 of 20 do not exceed, within 2.17 % of itself."""
        return self.quantile(0.95)

    @property
    def p99(self) -> float | None:
        """What 99 of 100 do not exceed, within 2.17 % of itself."""
        return self.quantile(0.99)

    def quantile(self, q: float) -> float | None:
        """Return the value that a part q of all does not exceed, by nearest rank.

        It is within 2.17 % of the exact one; those of 0 and 1 are exact.

        Raises:
            InvalidValue: q is not 0 to 1.
        """
        return self.quantiles((q,))[0]

    def quantiles(self, qs: Iterable[float]) -> list[float | None]:
        """Return several quantiles at once, which is cheaper. See quantile()."""
        wanted = list(qs)
        return [*self.distribution.quantiles(wanted)] if self.count else [None] * len(wanted)

    def share_above(self, threshold: float) -> float | None:
        """Return which part of the values is above a threshold, 0 to 1.

        It is off by less than the share of the bucket that the threshold lies in: those that
        differ from it by less than 4.5 %.
        """
        return self.distribution.share_above(threshold) if self.count else None

    def buckets(self) -> list[tuple[float, float, int]]:
        """Return the buckets that hold values, ascending: lower edge, upper edge, how many.

        An edge is 2^(1/16) = 1.044 times the one before. Zeros are in (0.0, 0.0, how many).
        """
        return self.distribution.buckets()


@dataclass(frozen=True, repr=False)
class Summary(Spread):
    """How the values of a series were spread, over a window and slice by slice."""

    name: str
    #: Width of a slice, seconds.
    precision: int
    #: The window, Unix seconds: [start, end).
    start: int
    end: int
    #: Whether its newest slice is still running, so that more may come.
    partial: bool
    # Returns a spread, or None, for each slice from the oldest that holds something on.
    _over_time: Callable[[], Sequence[Spread | None]] = field(
        default=tuple, repr=False, compare=False
    )

    def over_time(self) -> Series[Spread | None]:
        """Return the same slice by slice, from the oldest with a value on; None for a gap.

        Each call reads the slices anew: keep what it returns.
        """
        found = tuple(self._over_time())
        start = self.end - len(found) * self.precision
        partial = bool(found) and self.partial
        return Series(self.name, self.precision, start, found, partial=partial)


@dataclass(frozen=True, slots=True)
class SummaryGroup:
    """The summary of histograms of one name that have the same values of some labels."""

    #: The labels that the query split by; None for series without the label.
    labels: Mapping[str, str | None]
    summary: Summary


def spread_of(texts: Sequence[Texts]) -> Spread | None:
    """Read a slice of some series; None where nothing is in it."""
    one = parse(*texts[0]) if len(texts) == 1 else merged(texts)
    return Spread(one) if one is not None and one.count else None
