"""The answers of the API, one per endpoint: frozen dataclasses.

A shape is declared once: as a result of a query, in rows.py, or here. serialize.py derives its
JSON, tools/openapi.py its schema in openapi.json, and the page's TypeScript types are derived from
that file.
"""

from dataclasses import dataclass
from typing import Literal

from redmeter import results
from redmeter.alerting.status import AlertsStatus
from redmeter.dashboard.api.rows import (
    ChangeRow,
    Cleaner,
    Curve,
    FrequencyRow,
    GroupedSeries,
    GroupedSummary,
    Label,
    MetricRow,
    Numbers,
    Problem,
    Sibling,
    StoreInfo,
    Summary,
    Writer,
)
from redmeter.health.check import Finding, Level
from redmeter.reading.page.http import Route
from redmeter.reading.page.views import Views
from redmeter.reading.page.workloads import Statements, Tasks
from redmeter.reading.windows import Span
from redmeter.results.exceptions import ExceptionSummaries, ExceptionSummary
from redmeter.results.explanation import Explanation, Status
from redmeter.results.forecasts import Forecast
from redmeter.results.logs import LogSource, Message
from redmeter.results.verdict import Verdict
from redmeter.stored.families import SeriesKindName
from redmeter.types import Mark


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The fields of every answer."""

    now: float
    #: Why a part is missing, as sentences: "127.0.0.1:7003 does not answer".
    missing: list[str]


@dataclass(frozen=True, kw_only=True)
class SeriesAnswer(Answer):
    """/api/series."""

    precision: int
    #: The window: [start, end).
    start: int
    end: int
    series: list[GroupedSeries]
    #: How many series there are, of which these are the busiest.
    of: int


@dataclass(frozen=True, kw_only=True)
class NamesAnswer(Answer):
    """/api/names."""

    names: list[str]
    #: How many match, of which these are the first.
    total: int


@dataclass(frozen=True, kw_only=True)
class TopAnswer(results.Ranking, Answer):
    """/api/top."""


@dataclass(frozen=True, kw_only=True)
class SummaryAnswer(Answer):
    """/api/summary."""

    precision: int
    start: int
    end: int
    summaries: list[GroupedSummary]
    #: How many there are; with `by`, the first 50 are listed.
    of: int


@dataclass(frozen=True, kw_only=True)
class MessagesAnswer(Answer):
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
class ExceptionsAnswer(ExceptionSummaries, Answer):
    """/api/exceptions."""


@dataclass(frozen=True, kw_only=True)
class ExceptionAnswer(Answer):
    """/api/exception."""

    precision: int
    start: int
    end: int
    kept_since: int
    #: null if the group is not kept.
    exception: ExceptionSummary | None


@dataclass(frozen=True, kw_only=True)
class MarksAnswer(Answer):
    """/api/marks."""

    marks: list[Mark]


@dataclass(frozen=True, kw_only=True)
class VerdictAnswer(Verdict, Answer):
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
    values_start: int
    values_precision: int


@dataclass(frozen=True, kw_only=True)
class RoutesAnswer(OverviewRoutes, Answer):
    """/api/routes."""

    window: Span
    #: Number of series of durations, and of those with percentiles.
    timed: int
    timed_read: int


@dataclass(frozen=True, kw_only=True)
class StatementsAnswer(Statements, Answer):
    """/api/statements."""


@dataclass(frozen=True, kw_only=True)
class JobsAnswer(Tasks, Answer):
    """/api/jobs."""


@dataclass(frozen=True, kw_only=True)
class ViewsAnswer(Views, Answer):
    """/api/views."""


@dataclass(frozen=True, kw_only=True)
class MetricsAnswer(Answer):
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
class ForecastAnswer(Forecast, Answer):
    """/api/forecast."""


@dataclass(frozen=True, kw_only=True)
class DetailAnswer(Answer):
    """/api/detail."""

    name: str
    #: "" if nothing is stored under this name yet.
    kind: Literal[SeriesKindName, ""]
    #: Unit of the values, by the end of the name: seconds, bytes …; "" if unknown.
    unit: str
    #: All-time total; null if that is not kept.
    total: float | None
    window: Span
    precisions: list[Curve]
    labels: list[Label]
    #: The label sets of its name, the busiest first; how many there are, how many were looked at.
    siblings: list[Sibling]
    siblings_of: int
    siblings_examined: int
    #: For a sum of label sets: how many were summed; else 0.
    added: int
    summary: Summary | None
    marks: list[Mark]
    forecast: Forecast | None
    #: Hourly samples, for the matrix of days and hours.
    hours: Curve | None


@dataclass(frozen=True, kw_only=True)
class ExplainAnswer(Explanation, Answer):
    """/api/explain."""


@dataclass(frozen=True, kw_only=True)
class StatusAnswer(Status, Answer):
    """/api/status."""


@dataclass(frozen=True, kw_only=True)
class AlertsAnswer(AlertsStatus, Answer):
    """/api/alerts."""


@dataclass(frozen=True, kw_only=True)
class DoctorAnswer(Answer):
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
    writers: list[Writer]
    findings: list[Finding]
    cleaner: Cleaner


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
class OverviewHealth:
    """Health of the store."""

    level: Level
    findings: list[Finding]
    #: Number of writing processes.
    writers: int


@dataclass(frozen=True, kw_only=True)
class OverviewAnswer(Answer):
    """/api/overview."""

    store: StoreInfo
    window: Span
    numbers: Numbers
    chart: list[Curve]
    #: The expected range of the first curve of the chart, if that is a counter.
    expected: Forecast | None
    marks: list[Mark]
    routes: OverviewRoutes
    messages: OverviewMessages
    counters: OverviewCounters
    health: OverviewHealth


@dataclass(frozen=True, kw_only=True)
class ErrorAnswer:
    """Every answer other than 2xx."""

    error: Problem


@dataclass(frozen=True, kw_only=True)
class LivenessAnswer:
    """/healthz."""

    status: Literal["ok", "unavailable"]
