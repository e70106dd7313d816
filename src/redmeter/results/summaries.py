"""Summaries of histograms: count, mean, percentiles. Values, no I/O.

They are computed from a Distribution, see stored/exponential_histogram.py. The count, the lowest
and the highest value are exact. Total, mean and stddev are exact up to the rounding of doubles. A
quantile is within 2.17 % of the exact one, no matter how many intervals, processes and label sets
were merged.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redmeter.results.series import CoveredWindow, Series
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.packed_text import merge_distributions, parse_distribution


@dataclass(frozen=True, slots=True)
class HourlyStats:
    """Count, extremes, mean and spread of the values observed within an hour of UTC."""

    #: Start of the hour, Unix seconds.
    start: int
    #: The number of values.
    count: int
    #: The lowest value.
    low: float
    #: The highest value.
    high: float
    #: The sum; None where the count times the largest magnitude reaches 1.8e308.
    total: float | None
    #: None where the total is None, unless all values are equal.
    mean: float | None
    #: Sample standard deviation; 0 of a single value, None above about 1e154, and of values that
    #: differ by less than about 1e-154.
    stddev: float | None


@dataclass(frozen=True, slots=True)
class Statistics:
    """The hourly statistics of a series."""

    #: The name of the histogram.
    name: str
    #: The current hour; None if no value was observed in it.
    this: HourlyStats | None
    #: The last hour before it with a value; None if none is known.
    before: HourlyStats | None


#: Buckets and moments of an interval, as they are stored; None if there is none.
Texts = tuple[bytes | None, bytes | None]
#: Returns the distribution of each interval, from the oldest with a value on; None for a gap.
OverTime = Callable[[], Sequence[Distribution | None]]

_PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of a histogram that holds values."""

    #: Its lower edge. A value is in the bucket if it is the edge farther from zero; zeros
    #: are in a bucket whose edges are both 0.
    low: float
    #: Its upper edge; farther from zero, it is 2^(1/16) = 1.044 times the other one.
    high: float
    #: The number of values in it.
    count: int


@dataclass(frozen=True)
class Spread:
    """Count, mean, percentiles … of the values of a histogram; None if there are no values."""

    #: The number of values.
    count: int
    #: Their sum; None where the count times the largest magnitude reaches 1.8e308.
    total: float | None
    #: Their mean; None where the total is None, unless all values are equal.
    mean: float | None
    #: Their sample standard deviation; 0 of a single value, None above about 1e154, and of values
    #: that differ by less than about 1e-154.
    stddev: float | None
    #: The lowest value.
    low: float | None
    #: The highest value.
    high: float | None
    #: The median, by nearest rank, within 2.17 % of the exact one.
    p50: float | None
    #: The 90th percentile, within 2.17 % of the exact one.
    p90: float | None
    #: The 95th percentile, within 2.17 % of the exact one.
    p95: float | None
    #: The 99th percentile, within 2.17 % of the exact one.
    p99: float | None
    #: The buckets that hold values, ascending.
    buckets: tuple[Bucket, ...]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.count}: mean {self.mean}, p95 {self.p95}>"

    def quantile(self, q: float) -> float | None:
        """Return the value that a share q of all values does not exceed, by nearest rank.

        It is within 2.17 % of the exact one; those of 0 and 1 are exact. None without values.

        Raises:
            InvalidValue: q is not 0 to 1.
        """
        return self.quantiles((q,))[0]

    def quantiles(self, qs: Iterable[float]) -> list[float | None]:
        """Return several quantiles at once, which is cheaper than quantile() for each.

        Args:
            qs: from 0 (the lowest value) to 1 (the highest); 0.95 is the 95th percentile.

        Returns:
            The quantiles in this order, each within 2.17 % of the exact one; None without values.

        Raises:
            InvalidValue: one of `qs` is not 0 to 1.
        """
        if not self.count:
            return [None for _ in qs]
        return [*self._distribution().quantiles(qs)]

    def share_above(self, threshold: float) -> float | None:
        """Return the share of values above a threshold, 0 to 1; None without values.

        The error is below the share of the threshold's bucket, whose values differ from the
        threshold by less than 4.5 %.
        """
        return self._distribution().share_above(threshold) if self.count else None

    def _distribution(self) -> Distribution:
        assert self.low is not None, "there are values"
        assert self.high is not None, "there are values"
        buckets = ((bucket.low, bucket.high, bucket.count) for bucket in self.buckets)
        return Distribution.of_buckets(buckets, self.low, self.high)


@dataclass(frozen=True, repr=False)
class Summary(Spread):
    """The distribution of the values of a series over a window, and by interval."""

    #: The name of the histogram.
    name: str
    #: Interval width, seconds.
    precision: int
    #: Start of the window, Unix seconds, included.
    start: int
    #: End of the window, Unix seconds, excluded.
    end: int
    #: Whether its newest interval is the current one, so that more values may come.
    partial: bool
    #: The window that was read. None of a summary that no query made.
    window: CoveredWindow | None = field(default=None, compare=False)

    def over_time(self) -> Series[Spread | None]:
        """Return the same by interval, from the oldest with a value on; None for a gap.

        Each call reads the intervals anew: keep the result. A Summary that was made of its fields,
        for example from JSON, has none.
        """
        series = distributions(self)
        spreads = tuple(None if one is None else spread_of(one) for one in series.values)
        return Series(series.name, series.precision, series.start, spreads, partial=series.partial)


@dataclass(frozen=True, slots=True)
class SummaryGroup:
    """The summary of histograms of one name that have the same values of some labels."""

    #: The labels that the query split by; None for series without the label.
    labels: Mapping[str, str | None]
    #: The summary of their values.
    summary: Summary


def spread_of(distribution: Distribution) -> Spread:
    """Return the numbers of a distribution."""
    return Spread(**_numbers(distribution))


def summary_of(
    distribution: Distribution,
    name: str,
    window: CoveredWindow,
    over_time: OverTime = tuple,
) -> Summary:
    """Return the summary of a distribution.

    Args:
        name, window: see Summary.
        over_time: reads the distributions of its intervals.
    """
    made = Summary(
        **_numbers(distribution),
        name=name,
        precision=window.precision,
        start=window.since,
        end=window.until,
        partial=window.running,
        window=window,
    )
    # No field: it is called on demand, and no serializer needs it.
    object.__setattr__(made, "_over_time", over_time)
    return made


def distributions(summary: Summary) -> Series[Distribution | None]:
    """Return the distribution of each interval; see Summary.over_time()."""
    read: OverTime = getattr(summary, "_over_time", tuple)
    distributions_read = tuple(read())
    start = summary.end - len(distributions_read) * summary.precision
    partial = bool(distributions_read) and summary.partial
    return Series(summary.name, summary.precision, start, distributions_read, partial=partial)


def _numbers(distribution: Distribution) -> dict[str, Any]:
    count, moments = distribution.count, distribution.moments
    percentiles: dict[str, float | None] = dict.fromkeys(_PERCENTILES)
    if count:
        values = distribution.quantiles(_PERCENTILES.values())
        percentiles = dict(zip(percentiles, values, strict=True))
    return {
        "count": count,
        "total": moments.exact_total,
        "mean": moments.exact_mean,
        "stddev": moments.exact_stddev,
        "low": moments.low if count else None,
        "high": moments.high if count else None,
        **percentiles,
        "buckets": tuple(Bucket(*bucket) for bucket in distribution.buckets()),
    }


def distribution_of(texts: Sequence[Texts]) -> Distribution | None:
    """Parse an interval of some series, merged; None if it holds no values."""
    one = parse_distribution(*texts[0]) if len(texts) == 1 else merge_distributions(texts)
    return one if one is not None and one.count else None
