"""The rows of /api/verdict: see rows.py."""

from dataclasses import dataclass
from typing import Literal

from redmeter.dashboard.rows import Mark

Judgment = Literal["worse", "better", "same", "too little data", "not kept"]


@dataclass(frozen=True, kw_only=True)
class VerdictMetric:
    """The error rate or p95 after a deploy, compared with before."""

    verdict: Judgment
    #: Error rate, 0 to 1, or p95, seconds.
    after: float | None
    before: float | None
    #: null if it was 0 before.
    ratio: float | None
    difference: float | None
    #: 95 % confidence interval of the ratio.
    low: float | None
    high: float | None
    #: One-sided, in the direction of the change; and adjusted for the number of tests. null if it
    #: was not tested.
    p: float | None
    p_adjusted: float | None
    #: The test, in words.
    test: str
    #: Why there is no judgment, or why a significant change is called the same.
    reason: str


@dataclass(frozen=True, kw_only=True)
class VerdictTraffic:
    """Requests after a deploy and before; never judged."""

    after: int
    before: int
    after_per_second: float
    before_per_second: float
    #: The ratio of the rates; null if there were none before.
    ratio: float | None


@dataclass(frozen=True, kw_only=True)
class VerdictRow:
    """A route after a deploy, compared with before."""

    #: null for all requests.
    route: str | None
    verdict: Judgment
    requests: VerdictTraffic
    error_rate: VerdictMetric
    p95: VerdictMetric


@dataclass(frozen=True, kw_only=True)
class VerdictPattern:
    """A log pattern that is new or vanished."""

    logger: str
    severity: str
    pattern: str
    #: Messages in the last two hours.
    count: int
    first: float | None
    last: float | None
    sample: str


@dataclass(frozen=True, kw_only=True)
class VerdictPatterns:
    """Changes of log patterns."""

    #: false if the deploy is more than two hours ago.
    kept: bool
    new: list[VerdictPattern]
    vanished: list[VerdictPattern]


@dataclass(frozen=True, kw_only=True)
class VerdictWindow:
    """A window of time: [since, until)."""

    since: int
    until: int


@dataclass(frozen=True, kw_only=True)
class NotKept:
    """A baseline that is not kept at this precision."""

    of: Literal["counters", "histograms"]
    #: Start of the least baseline, and of the oldest interval that is kept.
    since: int
    oldest: int
    #: The command that keeps as much from now on; "" if no retention does.
    command: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The fields of /api/verdict."""

    verdict: Judgment
    #: One sentence.
    reason: str
    mark: Mark | None
    #: The moment of the deploy.
    since: float
    against: Literal["previous", "yesterday", "last-week"]
    #: Width of the intervals that were compared, seconds.
    precision: int
    #: Fixed looks, seconds after the interval of the mark; the newest complete one; and when the
    #: next one is complete.
    looks: list[int]
    look: int | None
    next_look: int | None
    after: VerdictWindow | None
    before: VerdictWindow | None
    not_kept: NotKept | None
    #: The error budget of all looks, and the number of tests of this one.
    level: float
    tests: int
    overall: VerdictRow | None
    routes: list[VerdictRow]
    #: How many routes there are, of which these are the busiest.
    routes_of: int
    patterns: VerdictPatterns
    #: Other marks within both windows.
    marks: list[Mark]
