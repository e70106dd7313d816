"""The rows of the API's answers that differ from the results of queries: frozen dataclasses.

JSON and its schema are derived from them, and from the results that schemas.py names.

Times are Unix seconds by the clock of the store, durations are seconds, shares are 0 to 1. null is
unknown, because JSON has no NaN.
"""

from dataclasses import dataclass
from typing import Literal

from redmeter.results.logs import Change, Frequency
from redmeter.stored.families import SeriesKindName


@dataclass(frozen=True, kw_only=True)
class Series:
    """Samples, the oldest first, without holes: null where a gauge was not set."""

    name: str
    kind: SeriesKindName
    #: Width of an interval, seconds.
    precision: int
    #: Start of the interval of the first value; the end of the window if there are no values.
    start: int
    values: list[float | None]
    #: Whether the newest interval is still running.
    partial: bool


@dataclass(frozen=True, kw_only=True)
class Curve(Series):
    """A series as a chart draws it; the p95 of a histogram."""

    #: For a sum of several series: how many were summed, and how many there are.
    examined: int
    of: int


@dataclass(frozen=True, kw_only=True)
class GroupedSeries(Series):
    """Series that have the same values of some labels, aggregated."""

    #: The labels of `by`; null for series without the label.
    labels: dict[str, str | None]


@dataclass(frozen=True, kw_only=True)
class OverTime:
    """A summary per interval; null for intervals without values."""

    start: int
    partial: bool
    count: list[int]
    mean: list[float | None]
    quantiles: dict[str, list[float | None]]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The distribution of a histogram within a window."""

    name: str
    count: int
    total: float | None
    mean: float | None
    stddev: float | None
    low: float | None
    high: float | None
    #: "0.95" -> the 95th percentile.
    quantiles: dict[str, float | None]
    share_above: float | None
    #: Lower edge, upper edge, count; ascending.
    buckets: list[tuple[float, float, int]]
    over_time: OverTime | None


@dataclass(frozen=True, kw_only=True)
class GroupedSummary(Summary):
    """The summary of histograms that have the same values of some labels."""

    #: The labels of `by`; null for series without the label.
    labels: dict[str, str | None]


@dataclass(frozen=True, kw_only=True)
class FrequencyRow(Frequency):
    """The frequency of a log pattern in the last hour, and in the hour before."""

    #: The count of the last hour by now at the rate of the hour before.
    expected: float


@dataclass(frozen=True, kw_only=True)
class ChangeRow(Change):
    """A log pattern that is new, comes far more often than before, or stopped."""

    #: The count of the last hour by now at the rate of the hour before.
    expected: float


@dataclass(frozen=True, kw_only=True)
class MetricRow:
    """A series, or all label sets of a name, within the window."""

    name: str
    kind: SeriesKindName
    #: Number of label sets.
    series: int
    #: False if there are more series of the last name than the response holds.
    complete: bool
    #: Events within the window, and within the preceding one of the same length; for a gauge,
    #: the number of samples. null if the preceding window is no longer stored.
    count: int
    before: int | None
    #: The mean of a histogram, the newest sample of a gauge.
    value: float | None
    #: The 95th percentile of a histogram within the window, and within as long a time before; null
    #: for others, and where it was not read: a list reads 50 series at most, those rows first that
    #: have the fewest.
    p95: float | None
    p95_before: float | None
    #: By intervals: counts, samples of a gauge, or the 95th percentiles of a histogram, at most 24;
    #: null for gaps.
    values: list[float | None]
    #: Start of the first interval, and the width of each, seconds.
    start: int
    precision: int
    partial: bool


@dataclass(frozen=True, kw_only=True)
class LabelValue:
    """A value of a label, and its count within the window."""

    value: str
    count: int
    share: float


@dataclass(frozen=True, kw_only=True)
class Label:
    """A label, and its most frequent values."""

    label: str
    values: list[LabelValue]
    #: How many values there are.
    of: int


@dataclass(frozen=True, kw_only=True)
class Sibling:
    """A label set of the same name."""

    name: str
    count: int
    share: float


@dataclass(frozen=True, kw_only=True)
class Writer:
    """A writing process and its last report."""

    host: str
    pid: int
    seen: float
    alive: bool
    instance: int | None
    last_flush: float | None
    stored: int
    buffered: int
    dropped: int
    #: Reason -> precision -> events.
    lost: dict[str, dict[str, int]]
    troubles: dict[str, int]
    last_trouble: str


@dataclass(frozen=True, kw_only=True)
class Cleaner:
    """The cleaner."""

    #: When its last pass ended.
    ended: float | None


@dataclass(frozen=True, kw_only=True)
class StoreInfo:
    """The store and its retention."""

    location: str
    #: The server that is read; a replica may lag.
    read_from: Literal["primary", "replica"]
    prefix: str
    version: str
    retention: dict[str, int]
    histograms: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Hits:
    """Requests or events per second."""

    value: float | None
    before: float | None
    #: Events of the rate, and of the one before.
    count: int
    count_before: int | None
    #: The counter.
    name: str | None
    sampled: bool


@dataclass(frozen=True, kw_only=True)
class Share:
    """The share of requests that failed."""

    value: float | None
    before: float | None
    #: Requests that failed, and before.
    count: int
    count_before: int | None
    #: Since when failures are known, Unix seconds; null: throughout the window.
    since: int | None


@dataclass(frozen=True, kw_only=True)
class Percentile:
    """The p95 response time of all requests."""

    value: float | None
    before: float | None
    #: Since when durations are known, Unix seconds; null: throughout the window.
    since: int | None
    #: Whether only some requests were timed.
    sampled: bool


@dataclass(frozen=True, kw_only=True)
class Slowest:
    """The slowest route."""

    value: float | None
    before: float | None
    route: str | None


@dataclass(frozen=True, kw_only=True)
class Logged:
    """Errors of the last hour, and of the hour before; of how many loggers, of how many."""

    value: int | None
    before: int | None
    #: The count of the last hour by now at the rate of the hour before.
    expected: float | None
    #: Whether the hours are the last 60 minutes and the 60 before; else clock hours, UTC.
    sliding: bool
    examined: int
    of: int


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """The five numbers, each against the window before."""

    hits: Hits
    errors: Share
    p95: Percentile
    slowest: Slowest
    logged: Logged


@dataclass(frozen=True, kw_only=True)
class Problem:
    """An error and its fix."""

    code: str
    message: str
    fix: str
