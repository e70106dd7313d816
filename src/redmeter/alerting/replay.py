"""Replay: when the rules of a file would have fired, over the data that are kept."""

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass

from redmeter.alerting.conditions import Conditions
from redmeter.alerting.rules import Rule
from redmeter.alerting.state import FIRED, OK, RESOLVED, AlertState, advance, alert_name

#: Most evaluations of a rule.
MAX_STEPS = 1440


@dataclass(frozen=True, slots=True)
class Firing:
    """A time in which an alert would have fired."""

    #: The alert: the rule's name, with `by` also the label's value.
    name: str
    #: Unix seconds.
    since: float
    #: None if it would still fire.
    until: float | None
    value: float | None
    detail: str


@dataclass(frozen=True, slots=True)
class Replay:
    """The result for one rule."""

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
    states: dict[str | None, AlertState] = {} if rule.by else {None: AlertState()}
    opened: dict[str | None, Firing] = {}
    firings: list[Firing] = []
    evaluated = unknown = 0
    reason, first = "", None
    for at in _times(since, now):
        readings = conditions.read(rule, at, now)
        evaluated += 1
        chosen, _ = readings.chosen(states)
        missing = [each for each in (*chosen.values(), readings.others) if each.holds is None]
        if missing:
            unknown, reason = unknown + 1, missing[-1].detail
            continue
        first = at if first is None else first
        for value, reading in chosen.items():
            step = advance(rule, states.get(value, AlertState()), reading, at)
            states[value] = step.state
            if step.transition == FIRED:
                name = alert_name(rule, value)
                opened[value] = Firing(name, at, None, reading.value, reading.detail)
            elif step.transition == RESOLVED and value in opened:
                firings.append(dataclasses.replace(opened.pop(value), until=at))
            if rule.by and step.state.status == OK:
                del states[value]
    firings += opened.values()
    firings.sort(key=lambda firing: firing.since)
    return Replay(rule.name, tuple(firings), evaluated, unknown, reason, first)


def _times(since: float, now: float) -> Iterator[float]:
    step = max(60, math.ceil((now - since) / MAX_STEPS / 60) * 60)
    count = int((now - since) // step)
    return (now - number * step for number in range(count, -1, -1))
