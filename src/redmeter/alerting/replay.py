"""Replay: when the rules of a file would have fired, over the data that are kept."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from redmeter.alerting.conditions import Conditions
from redmeter.alerting.rules import Rule
from redmeter.alerting.state import FIRED, RESOLVED, AlertState, advance

#: Most evaluations of a rule.
MAX_STEPS = 1440


@dataclass(frozen=True, slots=True)
class Firing:
    """A time in which an alert would have fired."""

    #: Unix seconds.
    since: float
    #: None if it would still fire.
    until: float | None
    value: float | None
    detail: str


@dataclass(frozen=True, slots=True)
class Replay:
    """The result for one alert."""

    name: str
    firings: tuple[Firing, ...]
    #: Evaluations, and those of which the data are not kept or the condition is only known for now.
    evaluated: int
    unknown: int
    #: Why, of the last of these.
    reason: str
    #: The first time that could be evaluated; None if none could.
    since: float | None


def replay(rule: Rule, conditions: Conditions, since: float, now: float) -> Replay:
    """Evaluate a rule at regular times from `since` until now.

    Args:
        since: Unix seconds.
        now: the server's clock.

    Raises:
        StoreError: the store is unreachable or refuses.
    """
    state, firings = AlertState(), list[Firing]()
    open_firing: Firing | None = None
    evaluated = unknown = 0
    reason, first = "", None
    for at in _times(since, now):
        reading = conditions.read(rule, at, now)
        evaluated += 1
        if reading.holds is None:
            unknown, reason = unknown + 1, reading.detail
            continue
        first = at if first is None else first
        step = advance(rule, state, reading, at)
        state = step.state
        if step.transition == FIRED:
            open_firing = Firing(at, None, reading.value, reading.detail)
        elif step.transition == RESOLVED and open_firing is not None:
            firings.append(Firing(open_firing.since, at, open_firing.value, open_firing.detail))
            open_firing = None
    if open_firing is not None:
        firings.append(open_firing)
    return Replay(rule.name, tuple(firings), evaluated, unknown, reason, first)


def _times(since: float, now: float) -> Iterator[float]:
    step = max(60, math.ceil((now - since) / MAX_STEPS / 60) * 60)
    count = int((now - since) // step)
    return (now - number * step for number in range(count, -1, -1))
