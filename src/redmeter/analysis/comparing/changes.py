"""Changes in a log: patterns that are new, far more frequent than before, or gone.

The last hour is compared with the hour before it. Usually these are sliding hours: the last 60
minutes plus the elapsed part of the current five minutes, and the 60 minutes before. Then the
result does not depend on the minute at which it is read. If only clock hours are known, the last
hour is the current, incomplete one.

    new         seen for the first time within the last hour; or within the hour before, and since
                then neither spiking nor gone
    spiking     at least SPIKE_MESSAGES in the last hour, at SPIKE_FACTOR times the rate of the hour
                before, and more than chance explains: see rises()
    gone        none in the last hour, and fewer than chance explains: see stopped()

Rates are per second of the last hour's elapsed time, at least SETTLED seconds, so that a burst at
the beginning of a clock hour does not stand for all of it. The earlier rate of a pattern that was
first seen within the hour before is its rate since then: a pattern that occurred once at 11:59 and
1,000 times by 12:30 is spiking; one that occurs once a minute since 11:50 is new, not spiking. To
be gone, it is compared with the rate of the whole hour before, so that a few messages just before
its end are not reported as missing. A pattern has one change at most.

Chance: the count of the hour before is as random as that of the last hour, so neither is taken for
exact. Given the messages of both, those of the last hour are binomial if the rate stayed the same,
by the lengths of the two. A change has a probability below CHANCE then, a one-sided test for either
direction. So of stationary patterns (Poisson) at most 0.01 % are spiking in a reading, and as many
gone; a fivefold rise of a pattern with 8 messages an hour is found in 85 %, of one with 15 in 98 %
of all cases (tests/analysis/test_changes.py). Without messages before, 14 in an hour are enough; to
be gone takes 14 in the hour before.

Changes are sorted by severity, then kind, then count: a deploy that brings eight new info patterns
does not push a critical one off a short list. severity_rank() ranks well-known severities; every
other name is a custom severity, below error and above warning, since it was worth its own name.

Not done: longer memory. Patterns that occur only at night spike each night. Forgotten ones
(patterns of a logger that was silent for 30 days, and all but its 1,000 newest) are new. "(other)"
stands for many patterns, and is left out. Where a store is two hours young, all is new.
"""

import math
from collections.abc import Iterable
from typing import Final

from redmeter.analysis.comparing.significance import binomial_tail
from redmeter.results.logs import Change, ChangeKind, Frequency
from redmeter.stored.keys import HOUR, STEP

NEW: Final = "new"
SPIKING: Final = "spiking"
GONE: Final = "gone"
#: Every kind of change, in the order in which they are looked for.
KINDS: Final = (NEW, SPIKING, GONE)

#: Messages of the last hour, at least.
SPIKE_MESSAGES: Final = 10
#: Times the rate of the hour before.
SPIKE_FACTOR: Final = 3.0
#: The probability below which a change is more than chance.
CHANCE: Final = 1e-4
#: How much of the last hour counts as passed at least, seconds.
SETTLED: Final = 300.0

#: Severities, the most urgent first: groups of equal rank. Custom ones are at None.
_URGENCY: Final[tuple[tuple[str | None, ...], ...]] = (
    ("emergency", "emerg", "panic", "alert", "critical"),
    ("error", "err"),
    (None,),
    ("warning",),
    ("notice",),
    ("info", "success"),
    ("debug",),
    ("trace", "verbose", "notset"),
)
_RANKS: Final = {name: rank for rank, names in enumerate(_URGENCY) for name in names}

#: The severities that are not custom ones, the most urgent first.
KNOWN_SEVERITIES: Final = tuple(name for name in _RANKS if name is not None)

_OTHER: Final = "(other)"


def severity_rank(severity: str) -> int:
    """Return where a severity is sorted: the lower, the more urgent."""
    return _RANKS.get(severity, _RANKS[None])


def find_changes(frequencies: Iterable[Frequency], now: float) -> list[Change]:
    """Return the patterns that are new, spiking or gone, sorted by severity, kind and count.

    Args:
        frequencies: of the last hour and the hour before.
        now: Unix seconds.
    """
    results = []
    for frequency in frequencies:
        kind = _change(frequency, now)
        if kind is not None:
            results.append(as_change(frequency, kind))
    return sorted(results, key=_order)


def as_change(f: Frequency, kind: ChangeKind) -> Change:
    """Return a frequency as a change."""
    return Change(
        *(f.logger, f.severity, f.pattern, f.count, f.before, f.first, f.last, f.sample, f.sliding),
        variants=f.variants,
        kind=kind,
    )


def rises(count: int, before: int, ratio: float) -> bool:
    """Return whether a count is higher than before by more than chance explains.

    Args:
        count: of the window.
        before: of the window before it.
        ratio: the length of the window, by that of the window before.
    """
    return binomial_tail(count, count + before, ratio / (1.0 + ratio)) < CHANCE


def stopped(before: int, ratio: float) -> bool:
    """Return whether it is more than chance that none followed so many: see rises()."""
    return (1.0 + ratio) ** -before < CHANCE


def passed_of(frequency: Frequency, now: float) -> float:
    """Return how many seconds the last hour of a frequency has had by now."""
    return HOUR + now % STEP if frequency.sliding else now % HOUR


def _change(frequency: Frequency, now: float) -> ChangeKind | None:
    if frequency.pattern == _OTHER:
        return None
    passed, first = passed_of(frequency, now), frequency.first
    age = math.inf if first is None else now - passed - first  # when the last hour began
    if age <= 0:
        return NEW
    known = min(max(age, SETTLED), HOUR)
    count, before, ratio = frequency.count, frequency.before, max(passed, SETTLED) / known
    if count >= max(SPIKE_MESSAGES, SPIKE_FACTOR * before * ratio) and rises(count, before, ratio):
        return SPIKING
    if not count and stopped(before, passed / HOUR):
        return GONE
    return NEW if age <= HOUR else None


def _order(change: Change) -> tuple[int, int, int, str, str, str]:
    kind, count = KINDS.index(change.kind), change.count + change.before
    rank = severity_rank(change.severity)
    return rank, kind, -count, change.logger, change.severity, change.pattern
