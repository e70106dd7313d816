"""The shapes of what the API answers, one per endpoint. Types alone.

tools/openapi.py makes the schemas of openapi.json from them, and the page its own types from that
file, so that neither can say something else than this one. Times are Unix seconds by the store's
clock, durations seconds, shares 0 to 1; null stands for what is not known, since JSON has no NaN.
"""

import sys
from typing import Literal

if sys.version_info >= (3, 12):
    from typing import TypedDict
else:  # of which the tool can make a schema there
    from typing_extensions import TypedDict


class Answer(TypedDict):
    """What every answer has."""

    now: float
    #: What it was made without, as sentences: "127.0.0.1:7003 does not answer".
    missing: list[str]


class Series(TypedDict):
    """Samples, the oldest first, without holes: null where a gauge was not set."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    #: Width of a slice, seconds.
    precision: int
    #: Start of the slice of the first value; the end of the window where there are no values.
    start: int
    values: list[float | None]
    #: Whether the newest value is of a slice that is still running.
    partial: bool


class Curve(Series):
    """A series as a chart draws it: of observed values the p95."""

    #: Of several series that were added up: how many were, and how many there are.
    looked_at: int
    of: int


class LabelledSeries(Series):
    """A series that may stand for a value of a label."""

    #: The value; null for those without the label, and where no label was asked for.
    label: str | None


class SeriesAnswer(Answer):
    """/api/series."""

    precision: int
    #: The window: [start, end).
    start: int
    end: int
    series: list[LabelledSeries]
    #: How many series there are, of which these are the busiest.
    of: int


class NamesAnswer(Answer):
    """/api/names."""

    names: list[str]
    #: How many match, of which these are the first.
    total: int


class RankedRow(TypedDict):
    """A row of a ranking."""

    #: A label's value, or a name; null: without this label.
    key: str | None
    count: int
    share: float
    value: float


class TopAnswer(Answer):
    """/api/top."""

    rows: list[RankedRow]
    groups: int
    looked_at: int
    complete: bool
    left_out: list[str | None]
    intervals: int


class OverTime(TypedDict):
    """A summary slice by slice; null where nothing was observed."""

    start: int
    partial: bool
    count: list[int]
    mean: list[float | None]
    quantiles: dict[str, list[float | None]]


class Summary(TypedDict):
    """How observed values were spread within a window."""

    name: str
    count: int
    total: float | None
    mean: float | None
    stddev: float | None
    low: float | None
    high: float | None
    #: "0.95" -> what 95 % do not exceed.
    quantiles: dict[str, float | None]
    share_above: float | None
    #: Lower edge, upper edge, how many: ascending.
    buckets: list[tuple[float, float, int]]
    over_time: OverTime | None


class SummaryAnswer(Answer):
    """/api/summary."""

    precision: int
    start: int
    end: int
    summaries: list[Summary]


class Frequency(TypedDict):
    """How often the messages of one pattern come: in the last hour, and in the hour before."""

    logger: str
    severity: str
    pattern: str
    count: int
    before: int
    #: As many as the last hour would have by now at the rate of the hour before.
    expected: float
    #: Whether the hours are the last 60 minutes and the 60 before; else clock hours, UTC.
    sliding: bool
    first: float | None
    last: float | None
    sample: str


class Change(Frequency):
    """A pattern that is new, comes far more often than before, or stopped."""

    what: Literal["new", "spiking", "gone"]


class Message(TypedDict):
    """One message."""

    logger: str
    severity: str
    time: float | None
    text: str


class Logger(TypedDict):
    """A logger and a severity that messages came with."""

    logger: str
    severity: str
    last: float


class MessagesAnswer(Answer):
    """/api/messages."""

    changes: list[Change]
    frequent: list[Frequency]
    recent: list[Message]
    loggers: list[Logger]
    #: How many loggers and severities there are, how many of them these are of, and how many of
    #: these are compared by clock hours.
    sources: int
    compared: int
    clock_hours: int


class Mark(TypedDict):
    """A moment that explains what is seen elsewhere."""

    time: float
    label: str


class MarksAnswer(Answer):
    """/api/marks."""

    marks: list[Mark]


class Window(TypedDict):
    """What an answer is about: [start, end)."""

    precision: int
    start: int
    end: int
    #: Whether the time before this window is kept as well, to be compared with.
    before: bool
    #: The precision that observed values are read at, and where their window starts.
    histograms: int
    histograms_start: int


class Page(TypedDict):
    """A route, and how its requests went."""

    #: "" for requests without a route.
    route: str
    count: int
    #: Within as long a time before; null where nothing keeps it.
    before: int | None
    per_second: float
    #: Of all requests.
    share: float
    failed: int
    #: Of the requests of this route.
    failing: float
    mean: float | None
    p95: float | None
    #: Count x mean, seconds; and its share of that of all routes.
    total: float | None
    total_share: float | None
    #: Requests slice by slice, the newest last: of values_precision, from values_start on.
    values: list[float | None]


class PagesAnswer(Answer):
    """/api/pages."""

    window: Window
    rows: list[Page]
    #: Pages that there are, of those label sets that were looked at.
    found: int
    #: Label sets of requests that there are, and that were looked at.
    of: int
    looked_at: int
    #: Series of durations, and those of which percentiles were read.
    timed: int
    timed_read: int
    #: Whether durations are of a part of the requests.
    sampled: bool
    values_start: int
    values_precision: int


class CounterRow(TypedDict):
    """A series, or all label sets of a name, and what it did within the window."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    #: How many label sets it stands for.
    series: int
    #: Whether these are all: of a great many series, those of the last name may go on.
    complete: bool
    #: How often it happened within the window, and within as long a time before; of a gauge, how
    #: many samples there are. null where nothing keeps what was before.
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


class CountersAnswer(Answer):
    """/api/counters."""

    window: Window
    rows: list[CounterRow]
    #: Series that begin as the pattern does; how many were looked at; and rows there are of those.
    total: int
    looked_at: int
    found: int
    #: When the series were ranked, of which there are over 1,000: the first 1,000 rows are there,
    #: with figures of now. null where all were read for this answer; and where looked_at is less
    #: than total, until they have been ranked.
    ranked_at: float | None


class LabelValue(TypedDict):
    """A value of a label, and how often it came within the window."""

    value: str
    count: int
    share: float


class Label(TypedDict):
    """A label, and its most frequent values."""

    label: str
    values: list[LabelValue]
    #: How many values there are.
    of: int


class Sibling(TypedDict):
    """A label set of the same name."""

    name: str
    count: int
    share: float


class ForecastPast(TypedDict):
    """A slice that was, and what had been expected."""

    start: int
    value: float
    low: float
    mid: float
    high: float
    outside: bool


class ForecastAhead(TypedDict):
    """A slice to come."""

    start: int
    low: float
    mid: float
    high: float


class Forecast(TypedDict):
    """What is expected of a series."""

    precision: int
    method: str
    #: Which part of the values the band is made to hold.
    level: float
    #: What the running slice holds so far, which is not judged.
    running: float | None
    past: list[ForecastPast]
    ahead: list[ForecastAhead]
    #: Why there is none; "" where there is.
    reason: str


class ForecastAnswer(Forecast, Answer):
    """/api/forecast."""

    name: str


class DetailAnswer(Answer):
    """/api/detail."""

    name: str
    #: "" where nothing is kept under this name; it may come yet.
    kind: Literal["counter", "gauge", "histogram", ""]
    #: What its values are in, by its name: seconds, bytes …; "" where that does not say.
    unit: str
    #: Everything ever counted; null where that is not kept.
    total: float | None
    window: Window
    precisions: list[Curve]
    labels: list[Label]
    #: The label sets of its name, the busiest first; how many there are, how many were looked at.
    siblings: list[Sibling]
    siblings_of: int
    siblings_looked_at: int
    #: Where the name stands for its label sets: how many were added up; else 0.
    added: int
    summary: Summary | None
    marks: list[Mark]
    forecast: Forecast | None
    #: The samples of an hour each, for days and hours.
    hours: Curve | None


class Writer(TypedDict):
    """A process that writes, and what it last told of itself."""

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


class Finding(TypedDict):
    """One thing that was looked at."""

    level: Literal["ok", "warn", "fail"]
    topic: str
    text: str
    fix: str


class Cleaner(TypedDict):
    """The cleaner."""

    #: When its last pass ended.
    ended: float | None


class HealthAnswer(Answer):
    """/api/health."""

    level: Literal["ok", "warn", "fail"]
    location: str
    #: What the page asks; a replica may be some moments behind.
    read_from: Literal["master", "replica"]
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
    #: By kind; null where the server does not tell.
    bytes: dict[str, int | None]
    estimated: bool
    writers: list[Writer]
    findings: list[Finding]
    cleaner: Cleaner


class StoreInfo(TypedDict):
    """Which store this is, and what it keeps."""

    location: str
    #: What the page asks; a replica may be some moments behind.
    read_from: Literal["master", "replica"]
    prefix: str
    version: str
    retention: dict[str, int]
    histograms: dict[str, int]


class Hits(TypedDict):
    """Requests or events a second."""

    value: float | None
    before: float | None
    #: Events behind it, and behind what was before.
    count: int
    count_before: int | None
    #: The counter that it is of.
    name: str | None
    sampled: bool


class Share(TypedDict):
    """The share of requests that failed."""

    value: float | None
    before: float | None
    #: Requests that failed, and before.
    count: int
    count_before: int | None
    #: Since when failures are known, Unix seconds; null: throughout the window.
    since: int | None


class Percentile(TypedDict):
    """The p95 response time of all requests."""

    value: float | None
    before: float | None
    #: Since when durations are known, Unix seconds; null: throughout the window.
    since: int | None
    #: Whether only some requests were timed.
    sampled: bool


class Slowest(TypedDict):
    """The slowest page."""

    value: float | None
    before: float | None
    route: str | None


class Logged(TypedDict):
    """Errors of the last hour, and of the hour before; of how many loggers, of how many."""

    value: int | None
    before: int | None
    #: As many as the last hour would have by now at the rate of the hour before.
    expected: float | None
    #: Whether the hours are the last 60 minutes and the 60 before; else clock hours, UTC.
    sliding: bool
    looked_at: int
    of: int


class Numbers(TypedDict):
    """The five numbers, each against the window before."""

    hits: Hits
    errors: Share
    p95: Percentile
    slowest: Slowest
    logged: Logged


class OverviewPages(TypedDict):
    """The busiest pages."""

    rows: list[Page]
    #: Pages that there are, of those label sets that were looked at.
    found: int
    #: Label sets of requests that there are, and that were looked at.
    of: int
    looked_at: int
    sampled: bool
    values_start: int
    values_precision: int


class OverviewMessages(TypedDict):
    """What changed in the log, and what comes most often."""

    changes: list[Change]
    frequent: list[Frequency]
    sources: int
    compared: int
    #: How many of these are compared by clock hours; the others by sliding hours.
    clock_hours: int


class OverviewCounters(TypedDict):
    """The busiest counters, all label sets of a name in one."""

    rows: list[CounterRow]
    #: Names that there are, of those series that were looked at; and series that there are.
    found: int
    total: int
    looked_at: int
    #: When the series were ranked, of which there are over 1,000. null where all were read for this
    #: answer; and where looked_at is less than total, until they have been ranked.
    ranked_at: float | None


class OverviewHealth(TypedDict):
    """Whether the store is well."""

    level: Literal["ok", "warn", "fail"]
    findings: list[Finding]
    #: How many processes write.
    writers: int


class OverviewAnswer(Answer):
    """/api/overview."""

    store: StoreInfo
    window: Window
    numbers: Numbers
    chart: list[Curve]
    #: What is expected of the first curve of the chart, where that is a counter.
    expected: Forecast | None
    marks: list[Mark]
    pages: OverviewPages
    messages: OverviewMessages
    counters: OverviewCounters
    health: OverviewHealth


class Problem(TypedDict):
    """What was wrong, and what mends it."""

    code: str
    message: str
    fix: str


class ErrorAnswer(TypedDict):
    """Any answer that is no 2xx."""

    error: Problem


class LivenessAnswer(TypedDict):
    """/healthz."""

    status: Literal["ok", "unavailable"]
