"""The results of explain() and status(): frozen dataclasses, as the API returns them."""

from dataclasses import dataclass, field
from typing import Literal

from redmeter.results import Mark

#: The number of events, the share of them that failed, or a percentile.
Measure = Literal["count", "error rate", "p95"]


@dataclass(frozen=True, kw_only=True)
class Part:
    """A piece of a sentence. The texts of all pieces, joined, are the sentence."""

    kind: Literal["text", "metric", "value", "usual", "group", "mark", "time", "baseline"]
    text: str
    #: The metric, for `metric` and `group`.
    name: str | None = None
    #: The label and its value, for `group`; a value of None means "without this label".
    label: str | None = None
    value: str | None = None
    #: Unix seconds, for `mark` and `time`.
    time: float | None = None


@dataclass(frozen=True, kw_only=True)
class ChangedGroup:
    """The series that have one value of a label, before and after."""

    label: str
    #: None: without this label.
    value: str | None
    #: Its count, error rate or p95. `before` is that of the baseline, a count scaled to the length
    #: of the window. None if there were no events.
    before: float | None
    after: float | None
    #: Its part of the total's change: for counts `after - before`; for an error rate the sum of
    #: both effects; for a p95 the total's p95 less the same with this group as in the baseline.
    change: float
    #: The same as a share of the total's change; None where that is 0, and of a p95.
    share: float | None = None
    #: For an error rate: the effect of the group's own error rate, and of its share of requests.
    rate_effect: float | None = None
    mix_effect: float | None = None
    #: Events (requests of an error rate, values of a p95) in the baseline, unscaled, and in the
    #: window.
    count_before: int = 0
    count: int = 0
    #: Whether the change is beyond noise, and not that of another named group.
    named: bool = False


@dataclass(frozen=True, kw_only=True)
class ChangedLabel:
    """The groups of one label. Changes of different labels must not be added."""

    label: str
    #: The largest changes first, named ones before all others.
    groups: list[ChangedGroup]
    #: How many groups there are, and the summed change of those that are not listed; None of a p95.
    of: int
    rest: float | None = None


@dataclass(frozen=True, kw_only=True)
class LogPattern:
    """A pattern of log messages that is new, or has vanished."""

    logger: str
    severity: str
    pattern: str
    sample: str
    #: When it was seen first and last, Unix seconds.
    first: float
    last: float
    #: Messages in the window if it is new, in the baseline if it has vanished; None if unknown.
    count: int | None = None


@dataclass(frozen=True, kw_only=True)
class PatternChanges:
    """Log patterns of the window that the baseline lacks, and the reverse."""

    new: list[LogPattern] = field(default_factory=list)
    vanished: list[LogPattern] = field(default_factory=list)
    #: Why they were not compared; "" if they were.
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class ExceptionChange:
    """A group of exceptions that is new, has vanished, or comes at another rate."""

    #: As in Meter.exceptions().
    id: str
    type: str
    message: str
    place: str
    kind: Literal["new", "more", "fewer", "vanished"]
    #: Exceptions in the baseline, scaled to the length of the window, and in the window.
    before: float
    count: int
    #: Times of the first and of the last one, ever, Unix seconds.
    first: float
    last: float


@dataclass(frozen=True, kw_only=True)
class ExceptionChanges:
    """Groups of exceptions whose rate changed, new ones first, then the largest changes."""

    groups: list[ExceptionChange] = field(default_factory=list)
    #: Interval width of their counts, which may be wider than that of the windows. All intervals
    #: that touch the window count as part of it.
    precision: int | None = None
    #: Why they were not compared; "" if they were.
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class DatabaseTime:
    """Mean time per request that is spent in the database, seconds."""

    name: str
    before: float | None
    after: float | None
    change: float | None
    #: As a share of the response time, 0 to 1.
    share_before: float | None
    share: float | None


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """A precision that keeps both the window and its baseline."""

    precision: int
    #: Start of the oldest interval that it keeps, Unix seconds.
    reaches: float


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What accounts for a rise or a fall: see Meter.explain()."""

    name: str
    labels: dict[str, str] = field(default_factory=dict)
    measure: Measure = "count"
    unit: str = ""
    #: `not kept`: no precision keeps both windows; `no data`: there are no events to compare.
    state: Literal["compared", "not kept", "no data"] = "no data"
    reason: str = ""
    sentence: str = ""
    parts: list[Part] = field(default_factory=list)
    #: Interval width of both windows, and the start of the oldest interval that is kept.
    precision: int | None = None
    reaches: float | None = None
    #: The windows that were compared, [since, until), on the edges of intervals.
    since: float = 0.0
    until: float = 0.0
    asked_since: float = 0.0
    asked_until: float = 0.0
    baseline: Literal["before", "yesterday", "week", "custom"] = "before"
    baseline_since: float = 0.0
    baseline_until: float = 0.0
    #: If `not kept`: precisions that keep both windows, with edges rounded to their intervals.
    alternatives: list[Alternative] = field(default_factory=list)
    #: The total; of counts the baseline's is scaled to the length of the window.
    before: float | None = None
    after: float | None = None
    change: float | None = None
    count_before: int = 0
    count: int = 0
    #: Whether the total changed and no group is named.
    even: bool = False
    #: Whether there were enough intervals to estimate noise; if not, there are no causes.
    judged: bool = False
    judged_reason: str = ""
    #: Groups whose change is beyond noise, the main one first. Each change is named once, by the
    #: label that fits it best.
    causes: list[ChangedGroup] = field(default_factory=list)
    dimensions: list[ChangedLabel] = field(default_factory=list)
    messages: PatternChanges = field(default_factory=PatternChanges)
    exceptions: ExceptionChanges = field(default_factory=ExceptionChanges)
    marks: list[Mark] = field(default_factory=list)
    database: DatabaseTime | None = None
    not_compared: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ExplainLink:
    """The arguments of explain() that explain a check's value."""

    name: str
    failing: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Check:
    """One measure of the last five complete minutes, and its expected range."""

    measure: Literal["requests", "error rate", "p95", "count"]
    name: str
    explain: ExplainLink
    unit: str = ""
    state: Literal["usual", "high", "low", "unknown"] = "unknown"
    #: Why it is unknown.
    reason: str = ""
    value: float | None = None
    #: The expected range, and the usual value.
    low: float | None = None
    mid: float | None = None
    high: float | None = None
    #: Events within the window.
    count: int = 0
    #: The baseline: its interval width, its window, and how many intervals it has.
    precision: int = 0
    baseline_since: float = 0.0
    baseline_until: float = 0.0
    intervals: int = 0
    #: Since when the value has been out of its range, Unix seconds.
    began: float | None = None
    #: The newest mark from five minutes before that moment on.
    mark: Mark | None = None
    #: The groups that account for it: see Explanation.causes.
    causes: list[ChangedGroup] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Status:
    """Whether the last five complete minutes are as usual: see Meter.status()."""

    state: Literal["usual", "unusual", "unknown"] = "unknown"
    sentence: str = ""
    parts: list[Part] = field(default_factory=list)
    since: float = 0.0
    until: float = 0.0
    checks: list[Check] = field(default_factory=list)
