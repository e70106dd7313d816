"""The answers of deploy verdicts: see analysis/comparing/verdict.py, which makes them."""

from dataclasses import dataclass
from typing import Final, Literal

from redmeter.results.logs import Frequency
from redmeter.types import Mark

Judgment = Literal["worse", "watching", "better", "same", "too little data", "not kept"]
#: The period that a deploy is compared with.
Against = Literal["previous", "yesterday", "last-week"]

WORSE: Final = "worse"
#: Worse so far, but by no more than a storm of some minutes could be.
WATCHING: Final = "watching"
BETTER: Final = "better"
SAME: Final = "same"
TOO_LITTLE: Final = "too little data"
NOT_KEPT: Final = "not kept"

#: The probability that a deploy without effect is called worse, over all looks and routes.
LEVEL: Final = 0.05
#: Seconds after the interval of the mark.
LOOKS: Final = (300, 900, 3600)
#: The parts of the level that each look has; the last one, which has most data, has most.
_PARTS: Final = {300: 0.1, 900: 0.2, 3600: 0.7}


def level_of(look: int, looks: tuple[int, ...] = LOOKS) -> float:
    """Return the part of the error budget that a look has.

    Args:
        look: seconds; one of `looks`.
    """
    return LEVEL * _PARTS.get(look, 1.0) / sum(_PARTS.get(one, 1.0) for one in looks)


@dataclass(frozen=True, slots=True)
class VerdictMetric:
    """A metric after a deploy, compared with before."""

    #: The judgment of this metric.
    verdict: Judgment
    #: Error rate, 0 to 1, or p95, seconds, after the deploy; None if unknown.
    after: float | None = None
    #: The same in the baseline; None if unknown.
    before: float | None = None
    #: `after / before`; None if unknown or if it was 0 before.
    ratio: float | None = None
    #: `after - before`; None if unknown.
    difference: float | None = None
    #: Lower end of the 95 % confidence interval of the ratio, at the same mix of routes; None if
    #: unknown.
    low: float | None = None
    #: Upper end of the same; None if unknown.
    high: float | None = None
    #: The probability of such a change without a deploy, one-sided, in the direction of the
    #: change. None if it was not tested.
    p: float | None = None
    #: The same, adjusted for the number of tests.
    p_adjusted: float | None = None
    #: The test, in words; "" if there was none.
    test: str = ""
    #: The part of `difference` of all requests that a changed mix of routes makes, which is not
    #: judged; the rest is within the routes. None if unknown.
    mix: float | None = None
    #: Whether the mix of routes made all requests "worse" or "better", or left them the "same".
    #: None if unknown.
    mix_verdict: Judgment | None = None
    #: Why there is no judgment, why a significant change is called the same, or by which evidence a
    #: worse metric is no storm; "" otherwise.
    reason: str = ""


@dataclass(frozen=True, slots=True)
class VerdictTraffic:
    """Requests after a deploy and before; reported, never judged."""

    #: Requests after the deploy.
    after: int
    #: Requests in the baseline.
    before: int
    #: Requests per second after the deploy.
    after_per_second: float
    #: Requests per second in the baseline.
    before_per_second: float
    #: The ratio of the rates; None if there were none before.
    ratio: float | None


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """A route after a deploy, compared with before."""

    #: None for all requests.
    route: str | None
    #: The judgment of the route, by both metrics: worse, watching, unknown, better, same.
    verdict: Judgment
    #: Its requests.
    requests: VerdictTraffic
    #: Its error rate, 0 to 1.
    error_rate: VerdictMetric
    #: Its p95, seconds.
    p95: VerdictMetric


@dataclass(frozen=True, slots=True)
class VerdictPatterns:
    """Log patterns that are new since a deploy, and those that are gone."""

    #: False if the deploy is longer ago than counts by five minutes are kept.
    kept: bool = False
    #: Patterns that are new since the deploy.
    new: tuple[Frequency, ...] = ()
    #: Patterns that are gone since the deploy.
    vanished: tuple[Frequency, ...] = ()


@dataclass(frozen=True, slots=True)
class VerdictMix:
    """The effect of a changed mix of routes on all requests; reported, not judged."""

    #: "worse" if more requests to routes that fail more often or are slower raised the error rate
    #: or the p95 of all requests; "better", or "same".
    verdict: Judgment = SAME
    #: The effect in words; "" if there is none.
    reason: str = ""


@dataclass(frozen=True, slots=True)
class NotKept:
    """A baseline that is not kept."""

    #: Whose retention is too short.
    of: Literal["counters", "histograms"]
    #: Start of the baseline, Unix seconds.
    since: int
    #: Start of the oldest interval that is kept, Unix seconds.
    oldest: int
    #: The command that keeps as much from now on; "" if no retention does.
    command: str


@dataclass(frozen=True, slots=True)
class VerdictWindow:
    """A window of time, Unix seconds: [since, until)."""

    #: Its start, included.
    since: int
    #: Its end, excluded.
    until: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a deploy made requests fail more often, or slower."""

    #: The judgment of the deploy as a whole.
    verdict: Judgment
    #: One sentence that explains the verdict.
    reason: str
    #: The mark; None if a time was given.
    mark: Mark | None
    #: The moment of the deploy, Unix seconds.
    since: float
    #: What the time after the deploy was compared with.
    against: Against
    #: Interval width of everything that was compared, seconds.
    precision: int
    #: Fixed times at which the deploy is judged, seconds after the interval of the mark.
    looks: tuple[int, ...] = LOOKS
    #: The newest look that is complete; None if none is.
    look: int | None = None
    #: When the next look is complete, Unix seconds; None if this was the last.
    next_look: int | None = None
    #: The window after the deploy; None if there is none yet.
    after: VerdictWindow | None = None
    #: The baseline; None if it is unknown.
    before: VerdictWindow | None = None
    #: The baseline that is not kept, if that is why there is no judgment.
    not_kept: NotKept | None = None
    #: The error budget of all looks: the probability of a false alarm.
    level: float = LEVEL
    #: The 5-minute sums before the deploy from which the noise of error rates was learned; None if
    #: fewer than six hours are kept.
    noise: VerdictWindow | None = None
    #: The number of tests of this look.
    tests: int = 0
    #: All requests together; None if nothing was compared.
    overall: VerdictRow | None = None
    #: The effect of a changed mix of routes on all requests.
    mix: VerdictMix = VerdictMix()
    #: Worse ones first, then better ones, then by requests.
    routes: tuple[VerdictRow, ...] = ()
    #: Routes that there are.
    routes_of: int = 0
    #: The log patterns that changed.
    patterns: VerdictPatterns = VerdictPatterns()
    #: Other marks within both windows.
    marks: tuple[Mark, ...] = ()
