"""Rules of alerts: conditions, notifiers and maintenance windows. Pure: no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

#: What a threshold is compared with.
VALUES = ("rate", "count", "last", "min", "max", "mean", "sum")
DIRECTIONS = ("above", "below", "both")
#: Baselines of a verdict, and their names in sentences.
BASELINES = {
    "previous": "the time right before",
    "yesterday": "yesterday",
    "last-week": "last week",
}

#: (long window, short window, burn rate): the three alerts of Google's SRE workbook, chapter 5,
#: for an objective over 30 days: 2 % of the budget in 1 h, 5 % in 6 h, 10 % in 3 d.
BURN_WINDOWS = ((3600, 300, 14.4), (21600, 1800, 6.0), (259200, 21600, 1.0))


@dataclass(frozen=True, slots=True)
class Rule:
    """One alert."""

    name: str
    #: The condition, a key of CONDITIONS in rules_file.py.
    when: str
    #: A counter, gauge or histogram; labels in braces filter.
    metric: str = ""
    #: For a ratio or a burn rate: the counter of all events.
    of: str = ""
    #: A label: each of its values is an alert of its own. "" for one alert.
    by: str = ""
    #: For a threshold: one of VALUES, or a percentile such as "p95".
    value: str = "rate"
    above: float | None = None
    below: float | None = None
    #: A firing alert resolves only beyond this, instead of at `above` or `below`.
    clear: float | None = None
    #: Seconds.
    window: int = 300
    #: For `expected`: interval width, seconds.
    precision: int = 300
    direction: str = "both"
    #: For a ratio or a burn rate: the least number of events in the window.
    at_least: int = 100
    #: For a burn rate: the share of events that succeed, such as 0.999.
    objective: float = 0.0
    windows: tuple[tuple[int, int, float], ...] = BURN_WINDOWS
    #: For a new pattern.
    severities: tuple[str, ...] = ("error", "critical")
    logger: str = ""
    #: For a new exception: its types; all of them if empty.
    types: tuple[str, ...] = ()
    #: For a verdict: the baseline.
    against: str = "previous"
    #: Seconds for which the condition must hold before the alert fires, and must not hold before
    #: it resolves.
    for_seconds: int = 0
    keep: int = 0
    severity: str = "warning"
    labels: Mapping[str, str] = field(default_factory=dict)
    message: str = ""
    #: Names of notifiers.
    notify: tuple[str, ...] = ()
    #: Seconds after which a firing alert is sent again; 0: never.
    remind: int = 0


@dataclass(frozen=True, slots=True)
class Notifier:
    """Where notifications go."""

    name: str
    type: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A time in which alerts fire but nobody is notified."""

    #: Names of alerts, with * and ?.
    alerts: tuple[str, ...]
    #: Days of the week, 0 is Monday, and minutes of the day, UTC; the end may be on the next day.
    days: tuple[int, ...]
    begin: int
    end: int

    def covers(self, name: str, now: float) -> bool:
        """Return whether it applies to an alert now.

        Args:
            now: Unix seconds.
        """
        return any(matches(name, pattern) for pattern in self.alerts) and self.applies(now)

    def applies(self, now: float) -> bool:
        """Return whether it is within the window now (Unix seconds)."""
        moment = datetime.fromtimestamp(now, UTC)
        minute, day = moment.hour * 60 + moment.minute, moment.weekday()
        if self.begin < self.end:
            return day in self.days and self.begin <= minute < self.end
        return (day in self.days and minute >= self.begin) or (
            (day - 1) % 7 in self.days and minute < self.end
        )


@dataclass(frozen=True, slots=True)
class Rules:
    """The contents of a file of alerts."""

    alerts: tuple[Rule, ...]
    notifiers: Mapping[str, Notifier]
    maintenance: tuple[Maintenance, ...] = ()

    def muted(self, name: str, now: float) -> bool:
        """Return whether maintenance applies to an alert now (Unix seconds)."""
        return any(window.covers(name, now) for window in self.maintenance)


def matches(name: str, pattern: str) -> bool:
    """Return whether a pattern matches an alert, or its rule without the value of the label."""
    return fnmatchcase(name, pattern) or fnmatchcase(name.partition("{")[0], pattern)


def percentile_of(value: str) -> float | None:
    """Return the percentile that "p95" names, above 0 to 100; None if it names none."""
    head, _, digits = value.partition("p")
    try:
        number = float(digits) if not head else -1.0
    except ValueError:
        return None
    return number if 0 < number <= 100 else None


def describe_duration(seconds: float) -> str:
    """Return a duration in words, such as "5 min"."""
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit and seconds % unit == 0:
            return f"{seconds // unit:g} {name}"
    return f"{seconds:g} s"
