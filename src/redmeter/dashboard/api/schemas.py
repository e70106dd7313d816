"""The shapes of the API's answers, one per endpoint, and their rows: frozen dataclasses.

A shape is declared once: as a result of a query, or here. serialize.py derives its JSON,
tools/openapi.py its schema in openapi.json, and the page's TypeScript types are derived from that
file.

Times are Unix seconds by the clock of the store, durations are seconds, shares are 0 to 1. null is
unknown, because JSON has no NaN.
"""

from dataclasses import dataclass
from typing import Literal

from redmeter import results
from redmeter.alerting.status import AlertsStatus, RuleStatus
from redmeter.alerting.store import Transition
from redmeter.health.check import Finding, Level
from redmeter.reading.page.http import Route
from redmeter.reading.page.views import Views
from redmeter.reading.page.workloads import Statements, Tasks
from redmeter.reading.windows import Span
from redmeter.results.exceptions import ExceptionSummaries, ExceptionSummary
from redmeter.results.explanation import Explanation, Status
from redmeter.results.forecasts import Forecast
from redmeter.results.logs import Change, Frequency, LogSource, Message
from redmeter.results.verdict import Verdict
from redmeter.stored.families import SeriesKindName
from redmeter.types import Mark

# --- Rows: what differs from the results of queries ----------------------------------------------


@dataclass(frozen=True, kw_only=True)
class SampledSeries:
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
class ChartCurve(SampledSeries):
    """A series as a chart draws it; the p95 of a histogram."""

    #: For a sum of several series: how many were summed, and how many there are.
    examined: int
    of: int


@dataclass(frozen=True, kw_only=True)
class GroupedSeries(SampledSeries):
    """Series that have the same values of some labels, aggregated."""

    #: The labels of `by`; null for series without the label.
    labels: dict[str, str | None]


@dataclass(frozen=True, kw_only=True)
class SummaryOverTime:
    """A summary per interval; null for intervals without values."""

    start: int
    partial: bool
    count: list[int]
    mean: list[float | None]
    quantiles: dict[str, list[float | None]]


@dataclass(frozen=True, kw_only=True)
class SummaryRow:
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
    over_time: SummaryOverTime | None


@dataclass(frozen=True, kw_only=True)
class GroupedSummary(SummaryRow):
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
class LabelRow:
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
class WriterRow:
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
    #: Whether a finding reports these losses; events recorded with an old time are expected.
    unexpected: bool
    troubles: dict[str, int]
    last_trouble: str


@dataclass(frozen=True, kw_only=True)
class CleanerInfo:
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
    #: The same of the last five complete minutes; null where the window does not end now.
    recent: float | None
    before: float | None
    #: Events of the rate, and of the one before.
    count: int
    count_before: int | None
    #: The counter.
    name: str | None
    sampled: bool


@dataclass(frozen=True, kw_only=True)
class FailedShare:
    """The share of requests that failed."""

    value: float | None
    #: The same of the last five complete minutes; null where the window does not end now.
    recent: float | None
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
    #: The same of the last five complete minutes; null where the window does not end now.
    recent: float | None
    before: float | None
    #: Since when durations are known, Unix seconds; null: throughout the window.
    since: int | None
    #: Whether only some requests were timed.
    sampled: bool


@dataclass(frozen=True, kw_only=True)
class SlowestRoute:
    """The slowest route."""

    value: float | None
    before: float | None
    route: str | None


@dataclass(frozen=True, kw_only=True)
class LoggedErrors:
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
class OverviewNumbers:
    """The five numbers, each against the window before."""

    hits: Hits
    errors: FailedShare
    p95: Percentile
    slowest: SlowestRoute
    logged: LoggedErrors


@dataclass(frozen=True, kw_only=True)
class Problem:
    """An error and its fix."""

    code: str
    message: str
    fix: str


# --- Answers -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class EndpointAnswer:
    """The fields of every answer."""

    now: float
    #: Why a part is missing, as sentences: "127.0.0.1:7003 does not answer".
    missing: list[str]


@dataclass(frozen=True, kw_only=True)
class SeriesAnswer(EndpointAnswer):
    """/api/series."""

    window: results.CoveredWindow
    series: list[GroupedSeries]
    #: How many series there are, of which these are the busiest.
    of: int


@dataclass(frozen=True, kw_only=True)
class NamesAnswer(EndpointAnswer):
    """/api/names."""

    names: list[str]
    #: How many match, of which these are the first.
    total: int


@dataclass(frozen=True, kw_only=True)
class TopAnswer(results.Ranking, EndpointAnswer):
    """/api/top."""


@dataclass(frozen=True, kw_only=True)
class SummaryAnswer(EndpointAnswer):
    """/api/summary."""

    window: results.CoveredWindow
    summaries: list[GroupedSummary]
    #: How many there are; with `by`, the first 50 are listed.
    of: int


@dataclass(frozen=True, kw_only=True)
class MessagesAnswer(EndpointAnswer):
    """/api/messages."""

    changes: list[ChangeRow]
    frequent: list[FrequencyRow]
    recent: list[Message]
    loggers: list[LogSource]
    #: How many loggers and severities there are, how many of them these are of, and how many of
    #: these are compared by clock hours.
    sources: int
    compared: int
    clock_hours: int
    #: With since, until or filter: the window, by default the last hour, which is compared with as
    #: long a time before it; and the time from which patterns are counted. Changes are patterns
    #: that were first seen in the window. null: the last hour is compared with the one before.
    since: float | None
    until: float | None
    counted_since: float | None


@dataclass(frozen=True, kw_only=True)
class ExceptionsAnswer(ExceptionSummaries, EndpointAnswer):
    """/api/exceptions."""


@dataclass(frozen=True, kw_only=True)
class ExceptionAnswer(EndpointAnswer):
    """/api/exception."""

    precision: int
    start: int
    end: int
    kept_since: int
    #: null if the group is not kept.
    exception: ExceptionSummary | None


@dataclass(frozen=True, kw_only=True)
class MarksAnswer(EndpointAnswer):
    """/api/marks."""

    marks: list[Mark]


@dataclass(frozen=True, kw_only=True)
class VerdictAnswer(Verdict, EndpointAnswer):
    """/api/verdict."""


@dataclass(frozen=True, kw_only=True)
class OverviewRoutes:
    """The busiest routes."""

    rows: list[Route]
    #: Number of routes among the label sets that were read.
    found: int
    #: Number of label sets of requests, and of those that were read.
    of: int
    examined: int
    sampled: bool
    #: When they were read, if they are of very many label sets, which are kept for a while.
    ranked_at: float | None
    values_start: int
    values_precision: int


@dataclass(frozen=True, kw_only=True)
class RoutesAnswer(OverviewRoutes, EndpointAnswer):
    """/api/routes."""

    window: Span
    #: Number of series of durations, and of those with percentiles.
    timed: int
    timed_read: int


@dataclass(frozen=True, kw_only=True)
class StatementsAnswer(Statements, EndpointAnswer):
    """/api/statements."""


@dataclass(frozen=True, kw_only=True)
class JobsAnswer(Tasks, EndpointAnswer):
    """/api/jobs."""


@dataclass(frozen=True, kw_only=True)
class ViewsAnswer(Views, EndpointAnswer):
    """/api/views."""


@dataclass(frozen=True, kw_only=True)
class MetricsAnswer(EndpointAnswer):
    """/api/metrics."""

    window: Span
    rows: list[MetricRow]
    #: Series that begin as the pattern does; how many were looked at; and rows there are of those.
    total: int
    examined: int
    found: int
    #: When the series were ranked, of which there are over 1,000: the first 1,000 rows are there,
    #: with figures of now. null where all were read for this answer; and where examined is less
    #: than total, until they have been ranked.
    ranked_at: float | None


@dataclass(frozen=True, kw_only=True)
class ForecastAnswer(Forecast, EndpointAnswer):
    """/api/forecast."""


@dataclass(frozen=True, kw_only=True)
class DetailAnswer(EndpointAnswer):
    """/api/detail."""

    name: str
    #: "" if nothing is stored under this name yet.
    kind: Literal[SeriesKindName, ""]
    #: Unit of the values, by the end of the name: seconds, bytes …; "" if unknown.
    unit: str
    #: All-time total; null if that is not kept.
    total: float | None
    window: Span
    precisions: list[ChartCurve]
    labels: list[LabelRow]
    #: The label sets of its name, the busiest first; how many there are, how many were looked at.
    siblings: list[Sibling]
    siblings_of: int
    siblings_examined: int
    #: For a sum of label sets: how many were summed; else 0.
    added: int
    summary: SummaryRow | None
    marks: list[Mark]
    forecast: Forecast | None
    #: Hourly samples, for the matrix of days and hours.
    hours: ChartCurve | None


@dataclass(frozen=True, kw_only=True)
class ExplainAnswer(Explanation, EndpointAnswer):
    """/api/explain."""


@dataclass(frozen=True, kw_only=True)
class StatusAnswer(Status, EndpointAnswer):
    """/api/status."""


@dataclass(frozen=True, kw_only=True)
class AlertsAnswer(AlertsStatus, EndpointAnswer):
    """/api/alerts."""


@dataclass(frozen=True, kw_only=True)
class AlertLine:
    """What a rule compares, for one value of its label."""

    #: The value of the rule's label; null for a rule without `by`.
    label_value: str | None
    #: The values at the end of each interval, the last of which may be running; null: none.
    values: list[float | None]


@dataclass(frozen=True, kw_only=True)
class AlertAnswer(EndpointAnswer):
    """/api/alert."""

    #: The rule; null: no evaluator has published it.
    rule: RuleStatus | None
    window: Span
    #: Those with the largest values, if the alert is of no single value of the label.
    lines: list[AlertLine]
    #: How many there are.
    of: int
    #: Changes of the alert, or of all alerts of the rule, the newest first.
    transitions: list[Transition]


@dataclass(frozen=True, kw_only=True)
class DoctorAnswer(EndpointAnswer):
    """/api/doctor."""

    level: Level
    location: str
    #: The server that is read; a replica may lag.
    read_from: Literal["primary", "replica"]
    prefix: str
    server: str
    version: str
    clock_difference: float
    #: Precision -> samples.
    retention: dict[str, int]
    histogram_retention: dict[str, int]
    #: Precision -> counters.
    series: dict[str, int]
    #: Index entries of gauges and histograms, and loggers.
    others: dict[str, int]
    #: By kind; null if the server does not report it.
    bytes: dict[str, int | None]
    estimated: bool
    writers: list[WriterRow]
    findings: list[Finding]
    cleaner: CleanerInfo


@dataclass(frozen=True, kw_only=True)
class OverviewMessages:
    """Changes in the log, and the most frequent patterns."""

    changes: list[ChangeRow]
    frequent: list[FrequencyRow]
    sources: int
    compared: int
    #: How many of these are compared by clock hours; the others by sliding hours.
    clock_hours: int


@dataclass(frozen=True, kw_only=True)
class OverviewCounters:
    """The busiest counters, all label sets of a name in one."""

    rows: list[MetricRow]
    #: Names that there are, of those series that were looked at; and series that there are.
    found: int
    total: int
    examined: int
    #: When the series were ranked, of which there are over 1,000. null where all were read for this
    #: answer; and where examined is less than total, until they have been ranked.
    ranked_at: float | None


@dataclass(frozen=True, kw_only=True)
class OverviewAnswer(EndpointAnswer):
    """/api/overview."""

    store: StoreInfo
    window: Span
    numbers: OverviewNumbers
    chart: list[ChartCurve]
    #: The expected range of the first curve of the chart, if that is a counter.
    expected: Forecast | None
    marks: list[Mark]
    routes: OverviewRoutes
    messages: OverviewMessages
    counters: OverviewCounters


@dataclass(frozen=True, kw_only=True)
class ErrorAnswer:
    """Every answer other than 2xx."""

    error: Problem


@dataclass(frozen=True, kw_only=True)
class LivenessAnswer:
    """/healthz, /-/ready and /-/healthy."""

    status: Literal["ok", "unavailable"]
