"""The results of explain() and status(): frozen dataclasses, as the API returns them."""

from dataclasses import dataclass, field
from typing import Literal

from redmeter.types import Mark

#: The number of events, the share of them that failed, or a percentile.
Measure = Literal["count", "error rate", "p95"]


@dataclass(frozen=True, kw_only=True)
class Part:
    """A piece of a sentence. The texts of all pieces, joined, are the sentence."""

    #: What the piece is about, so that a page can link or highlight it.
    kind: Literal[
        "text", "metric", "value", "usual", "group", "mark", "time", "baseline", "alert",
        "exception", "messages",
    ]  # fmt: skip
    #: Its text.
    text: str
    #: The metric, for `metric` and `group`; the ID of an `exception`; the logger of `messages`.
    name: str | None = None
    #: The label and its value, for `group`; a value of None means "without this label". The
    #: severity of `messages`.
    label: str | None = None
    #: The value of the label.
    value: str | None = None
    #: Unix seconds, for `mark` and `time`.
    time: float | None = None


@dataclass(frozen=True, kw_only=True)
class ChangedGroup:
    """The series that have one value of a label, before and after."""

    #: The name of the label.
    label: str
    #: None: without this label.
    value: str | None
    #: Its count, error rate or p95 in the baseline, a count scaled to the length of the
    #: window. None if there were no events.
    before: float | None
    #: The same in the window.
    after: float | None
    #: Its part of the total's change: for counts `after - before`; for an error rate the sum of
    #: both effects; for a p95 the total's p95 less the same with this group as in the baseline.
    change: float
    #: The same as a share of the total's change; None where that is 0, and of a p95.
    share: float | None = None
    #: For an error rate: the effect of the group's own error rate on the total.
    rate_effect: float | None = None
    #: For an error rate: the effect of the group's share of requests on the total.
    mix_effect: float | None = None
    #: Events in the baseline, unscaled: requests of an error rate, values of a p95.
    count_before: int = 0
    #: The same in the window.
    count: int = 0
    #: Whether the change is beyond noise, and not that of another named group.
    named: bool = False


@dataclass(frozen=True, kw_only=True)
class ChangedLabel:
    """The groups of one label. Changes of different labels must not be added."""

    #: The name of the label.
    label: str
    #: The largest changes first, named ones before all others.
    groups: tuple[ChangedGroup, ...]
    #: How many groups there are.
    of: int
    #: The summed change of the groups that are not listed; None of a p95.
    rest: float | None = None


@dataclass(frozen=True, kw_only=True)
class LogPattern:
    """A pattern of log messages that is new, or has vanished."""

    #: The name of the logger.
    logger: str
    #: The severity in stored form, e.g. "error".
    severity: str
    #: The part that the messages have in common.
    pattern: str
    #: One of the messages, or its beginning; "" if unknown.
    sample: str
    #: When it was first seen, Unix seconds.
    first: float
    #: When it was last seen, Unix seconds.
    last: float
    #: Messages in the window if it is new, in the baseline if it has vanished; None if unknown.
    count: int | None = None


@dataclass(frozen=True, kw_only=True)
class PatternChanges:
    """Log patterns of the window that the baseline lacks, and the reverse."""

    #: Patterns that are new in the window.
    new: tuple[LogPattern, ...] = ()
    #: Patterns of the baseline that have vanished.
    vanished: tuple[LogPattern, ...] = ()
    #: Why they were not compared; "" if they were.
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class ExceptionChange:
    """A group of exceptions that is new, has vanished, or comes at another rate."""

    #: As in Meter.exceptions().
    id: str
    #: Module and qualified name of the exception's class; built-in types without a module.
    type: str
    #: Text of the newest exception, without secrets.
    message: str
    #: Innermost frame of the application, `pay.py:42 in charge`; "" without a traceback.
    place: str
    #: How its rate changed.
    kind: Literal["new", "more", "fewer", "vanished"]
    #: Exceptions in the baseline, scaled to the length of the window.
    before: float
    #: Exceptions in the window.
    count: int
    #: Time of the first one ever, Unix seconds.
    first: float
    #: Time of the last one ever, Unix seconds.
    last: float


@dataclass(frozen=True, kw_only=True)
class ExceptionChanges:
    """Groups of exceptions whose rate changed, new ones first, then the largest changes."""

    #: The groups whose rate changed.
    groups: tuple[ExceptionChange, ...] = ()
    #: Interval width of their counts, which may be wider than that of the windows. All intervals
    #: that touch the window count as part of it.
    precision: int | None = None
    #: Why they were not compared; "" if they were.
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class DatabaseTime:
    """Mean time per request that is spent in the database, seconds."""

    #: The series: `http_request_db_seconds`.
    name: str
    #: Mean seconds in the baseline; None if there were no requests.
    before: float | None
    #: Mean seconds in the window; None if there were no requests.
    after: float | None
    #: `after - before`, seconds; None if one of them is.
    change: float | None
    #: As a share of the response time in the baseline, 0 to 1.
    share_before: float | None
    #: As a share of the response time in the window, 0 to 1.
    share: float | None


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """A precision that keeps both the window and its baseline."""

    #: Interval width, seconds.
    precision: int
    #: Start of the oldest interval that it keeps, Unix seconds.
    reaches: float


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The labels, log patterns and other changes that account for a rise or a fall."""

    #: The name of the series.
    name: str
    #: The labels that the series were selected by.
    labels: dict[str, str] = field(default_factory=dict)
    #: The measure that was compared.
    measure: Measure = "count"
    #: The unit of `before`, `after` and `change`.
    unit: str = ""
    #: `not kept`: no precision keeps both windows; `no data`: there are no events to compare.
    state: Literal["compared", "not kept", "no data"] = "no data"
    #: Why nothing was compared; "" if it was.
    reason: str = ""
    #: The result in one sentence.
    sentence: str = ""
    #: The pieces of the sentence.
    parts: tuple[Part, ...] = ()
    #: Interval width of both windows, seconds; None if no precision keeps them.
    precision: int | None = None
    #: Start of the oldest interval that this precision keeps, Unix seconds.
    reaches: float | None = None
    #: Start of the compared window, on the edge of an interval, Unix seconds, included.
    since: float = 0.0
    #: End of the same, excluded.
    until: float = 0.0
    #: Start of the requested window, Unix seconds.
    asked_since: float = 0.0
    #: End of the requested window, Unix seconds.
    asked_until: float = 0.0
    #: How the baseline was chosen.
    against: Literal["previous", "yesterday", "last-week", "custom"] = "previous"
    #: Start of the compared baseline, Unix seconds, included.
    against_since: float = 0.0
    #: End of the same, excluded.
    against_until: float = 0.0
    #: If `not kept`: precisions that keep both windows, with edges rounded to their intervals.
    alternatives: tuple[Alternative, ...] = ()
    #: The total in the baseline; a count is scaled to the length of the window. None if
    #: there were no events.
    before: float | None = None
    #: The total in the window; None if there were no events.
    after: float | None = None
    #: `after - before`; None if one of them is.
    change: float | None = None
    #: Events in the baseline, unscaled: requests of an error rate, values of a p95.
    count_before: int = 0
    #: The same in the window.
    count: int = 0
    #: Whether the total changed beyond noise.
    changed: bool = False
    #: Whether it did, and all groups alike: no label separates them.
    even: bool = False
    #: Whether it did, some groups otherwise than the others, and none is a cause: one of them
    #: stayed while all others changed.
    uneven: bool = False
    #: Whether there were enough intervals to estimate noise; if not, there are no causes.
    judged: bool = False
    #: Why noise could not be estimated; "" if it was.
    judged_reason: str = ""
    #: Groups whose change is beyond noise, the main one first. Each change is named once, by the
    #: label that fits it best.
    causes: tuple[ChangedGroup, ...] = ()
    #: The labels, with the groups of each.
    dimensions: tuple[ChangedLabel, ...] = ()
    #: Log patterns that are new, or have vanished.
    messages: PatternChanges = field(default_factory=PatternChanges)
    #: Groups of exceptions whose rate changed.
    exceptions: ExceptionChanges = field(default_factory=ExceptionChanges)
    #: Marks within the window, and within the baseline if it ends where the window begins.
    marks: tuple[Mark, ...] = ()
    #: Time that was spent in the database; None if it is not recorded.
    database: DatabaseTime | None = None
    #: Data that was skipped, and why, in words.
    not_compared: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ExplainLink:
    """The arguments of explain() that explain a check's value."""

    #: The series.
    name: str
    #: The failing label values, LABEL=VALUE, if the measure is an error rate.
    failing: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Check:
    """One measure of the last five complete minutes, and its expected range."""

    #: The measure. `client errors` are the share of requests with status 4xx, `failures` that of a
    #: task's runs.
    measure: Literal["requests", "error rate", "p95", "count", "client errors", "failures"]
    #: The series that it is made of.
    name: str
    #: Explains the value.
    explain: ExplainLink
    #: The labels of the events; empty for all. Routes and tasks are listed if they stand out.
    labels: dict[str, str] = field(default_factory=dict)
    #: The unit of `value` and of the range.
    unit: str = ""
    #: Whether the value is within, above or below the expected range.
    state: Literal["usual", "high", "low", "unknown"] = "unknown"
    #: Why it is unknown.
    reason: str = ""
    #: Its value; None if there were no events.
    value: float | None = None
    #: Lower end of the expected range; None if unknown.
    low: float | None = None
    #: The usual value; None if unknown.
    mid: float | None = None
    #: Upper end of the expected range; None if unknown.
    high: float | None = None
    #: Events within the window.
    count: int = 0
    #: Interval width of the baseline, seconds.
    precision: int = 0
    #: Start of the baseline, Unix seconds, included.
    against_since: float = 0.0
    #: End of the baseline, Unix seconds, excluded.
    against_until: float = 0.0
    #: How many intervals the baseline has.
    intervals: int = 0
    #: Start of the minutes that the value is of, Unix seconds, if these are not all five: those
    #: since the change began, up to the end of the five minutes; or the whole of a change that is
    #: over, up to `ended`.
    since: float | None = None
    #: When the change began, Unix seconds; None if there is none.
    began: float | None = None
    #: When it was over, Unix seconds; None if it is not.
    ended: float | None = None
    #: Since when there are too few events to judge whether it is over, Unix seconds.
    unsure_since: float | None = None
    #: The mark that it began with.
    mark: Mark | None = None
    #: The groups that account for most of it, the main one first; `change` is in events.
    causes: tuple[ChangedGroup, ...] = ()
    #: Whether all groups changed alike.
    everywhere: bool = False


@dataclass(frozen=True, kw_only=True)
class Status:
    """Whether the last five complete minutes are as usual, by measure."""

    #: `unusual` if a check is out of its range, an alert fires, a deploy made it worse, or there
    #: are new exceptions or errors; `unknown` if no check could be made.
    state: Literal["usual", "unusual", "unknown"] = "unknown"
    #: The result in one sentence.
    sentence: str = ""
    #: The pieces of the sentence.
    parts: tuple[Part, ...] = ()
    #: Start of the five minutes, Unix seconds, included.
    since: float = 0.0
    #: End of the five minutes, Unix seconds, excluded.
    until: float = 0.0
    #: The measures that were checked: of all requests, and of routes and tasks that stand out.
    checks: tuple[Check, ...] = ()
    #: Groups of exceptions that were seen first within the last half hour.
    exceptions: tuple[ExceptionChange, ...] = ()
    #: Patterns of errors in the log that were seen first within the last half hour.
    messages: tuple[LogPattern, ...] = ()
    #: Names of the alerts that fire.
    firing: tuple[str, ...] = ()
