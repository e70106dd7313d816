"""The answers of deploy verdicts: see analysis/verdict.py, which makes them."""

from dataclasses import dataclass
from typing import Final, Literal

from redmeter.results import Frequency, Mark

Judgment = Literal["worse", "better", "same", "too little data", "not kept"]
#: The period that a deploy is compared with.
Against = Literal["previous", "yesterday", "last-week"]
WORSE: Final = "worse"
BETTER: Final = "better"
SAME: Final = "same"
TOO_LITTLE: Final = "too little data"
NOT_KEPT: Final = "not kept"

#: The probability that a deploy without effect is called worse, over all looks and routes.
LEVEL: Final = 0.05
#: Seconds after the interval of the mark.
LOOKS: Final = (300, 900, 3600)


@dataclass(frozen=True, slots=True)
class VerdictMetric:
    """A metric after a deploy, compared with before."""

    verdict: Judgment
    #: Error rate, 0 to 1, or p95, seconds; None if unknown.
    after: float | None = None
    before: float | None = None
    #: The ratio, None if unknown or if it was 0 before; and the difference, None if unknown.
    ratio: float | None = None
    difference: float | None = None
    #: 95 % confidence interval of the ratio; None if unknown.
    low: float | None = None
    high: float | None = None
    #: The probability of such a change without a deploy, one-sided, in the direction of the change;
    #: and the same, adjusted for the number of tests. None if it was not tested.
    p: float | None = None
    p_adjusted: float | None = None
    #: The test, in words; "" if there was none.
    test: str = ""
    #: Why there is no judgment, or why a significant change is called the same; "" otherwise.
    reason: str = ""


@dataclass(frozen=True, slots=True)
class VerdictTraffic:
    """Requests after a deploy and before; reported, never judged."""

    after: int
    before: int
    after_per_second: float
    before_per_second: float
    #: The ratio of the rates; None if there were none before.
    ratio: float | None


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """A route after a deploy, compared with before."""

    #: None for all requests.
    route: str | None
    verdict: Judgment
    requests: VerdictTraffic
    error_rate: VerdictMetric
    p95: VerdictMetric


@dataclass(frozen=True, slots=True)
class VerdictPatterns:
    """Log patterns that are new since a deploy, and those that are gone."""

    #: False if the deploy is longer ago than counts by five minutes are kept.
    kept: bool = False
    new: tuple[Frequency, ...] = ()
    vanished: tuple[Frequency, ...] = ()


@dataclass(frozen=True, slots=True)
class NotKept:
    """A baseline that is not kept."""

    of: Literal["counters", "histograms"]
    #: Start of the baseline, and of the oldest interval that is kept, Unix seconds.
    since: int
    oldest: int
    #: The command that keeps as much from now on; "" if no retention does.
    command: str


@dataclass(frozen=True, slots=True)
class VerdictWindow:
    """A window of time, Unix seconds: [since, until)."""

    since: int
    until: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a deploy made requests fail more often, or slower."""

    verdict: Judgment
    #: One sentence that explains the verdict.
    reason: str
    #: The mark; None if a time was given.
    mark: Mark | None
    #: The moment of the deploy, Unix seconds.
    since: float
    against: Against
    #: Interval width of everything that was compared, seconds.
    precision: int
    #: Fixed looks, the newest one that is complete, seconds after the interval of the mark; and
    #: when the next one is complete, Unix seconds.
    looks: tuple[int, ...] = LOOKS
    look: int | None = None
    next_look: int | None = None
    after: VerdictWindow | None = None
    before: VerdictWindow | None = None
    not_kept: NotKept | None = None
    #: The error budget of all looks, and the number of tests of this one.
    level: float = LEVEL
    tests: int = 0
    overall: VerdictRow | None = None
    #: Worse ones first, then better ones, then by requests.
    routes: tuple[VerdictRow, ...] = ()
    #: Routes that there are.
    routes_of: int = 0
    patterns: VerdictPatterns = VerdictPatterns()
    #: Other marks within both windows.
    marks: tuple[Mark, ...] = ()
