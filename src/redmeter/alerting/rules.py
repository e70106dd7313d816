"""Rules of alerts: conditions, notifiers and maintenance windows. Pure: no I/O."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from redmeter.analysis.comparing.sentences import unit_of, value_text
from redmeter.export.prometheus_names import counter_name, label_name, metric_name
from redmeter.names import parse_name
from redmeter.stored.keys import span

_PERCENTILE = re.compile(r"p([1-9][0-9]?(?:\.[0-9]{1,6})?|100)")

#: What a threshold is compared with.
VALUES = ("rate", "count", "last", "min", "max", "mean", "sum")
DIRECTIONS = ("above", "below", "both")
#: Baselines of a verdict, and their names in sentences.
BASELINE_NAMES = {
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

    @property
    def limit(self) -> float | None:
        """The one of `above` and `below` that is given; None if the condition has none."""
        return self.below if self.above is None else self.above


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
        return any(matches_alert(name, pattern) for pattern in self.alerts) and self.applies(now)

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


def matches_alert(name: str, pattern: str) -> bool:
    """Return whether a pattern matches an alert, or its rule without the value of the label."""
    return _matches(name, pattern) or _matches(name.partition("{")[0], pattern)


def names_alert(pattern: str, rules: Iterable[Rule]) -> bool:
    """Return whether a pattern matches an alert of a rule; with `by`, of any value of the label."""
    name, brace, rest = pattern.partition("{")
    label = rest.partition("=")[0]
    ends = rest.endswith(("}", "*", "?"))  # as the name of an alert with a value does
    return any(
        _matches(rule.name, name)
        and (not brace or bool(ends and rule.by and _matches(rule.by, label)))
        for rule in rules
    )


def _matches(text: str, pattern: str) -> bool:
    return fnmatchcase(text, pattern.replace("[", "[[]"))  # only * and ? are special


def percentile_of(value: str) -> float | None:
    """Return the percentile that "p95" names, from 1 to 100; None if it names none."""
    match = _PERCENTILE.fullmatch(value)
    return float(match[1]) if match else None


def describe_duration(seconds: float) -> str:
    """Return a duration in words, such as "5 min"."""
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit and seconds % unit == 0:
            return f"{seconds // unit:g} {name}"
    return f"{seconds:g} s"


# --- Descriptions: the condition in words, and as a PromQL expression ----------------------------

#: Value of a threshold on a gauge -> function over time.
_OVER_TIME = {
    "last": "last_over_time",
    "min": "min_over_time",
    "max": "max_over_time",
    "mean": "avg_over_time",
    "sum": "sum_over_time",
}


def describe_condition(rule: Rule) -> str:
    """Return the condition in words: "p95 of checkout_seconds over 5 min is above 1.5"."""
    over = describe_duration(rule.window)
    match rule.when:
        case "threshold":
            text = f"{rule.value} of {rule.metric} over {over} is {_limit(rule)}{per_second(rule)}"
        case "ratio":
            text = f"{rule.metric} / {rule.of} over {over} is {_limit(rule)}"
        case "absent":
            text = f"{rule.metric} has no events in {over}"
        case "expected":
            side = {"both": "outside", "above": "above", "below": "below"}[rule.direction]
            width = describe_duration(rule.precision)
            text = f"{rule.metric} is {side} its expected range (intervals of {width})"
        case "burn":
            rates = ", or at ".join(
                f"{times_its_rate(rate)} over {describe_duration(long)} and "
                f"{describe_duration(short)}"
                for long, short, rate in rule.windows
            )
            share = value_text(rule.objective, "ratio", exact=True)
            text = f"{rule.metric} / {rule.of} burns the error budget of {share} at {rates}"
        case "new_pattern":
            source = f" of {rule.logger}" if rule.logger else ""
            text = f"a log pattern{source} is new, with severity {' or '.join(rule.severities)}"
        case "new_exception":
            types = f" of type {' or '.join(rule.types)}" if rule.types else ""
            text = f"an exception{types} is first seen within {over}"
        case "verdict":
            baseline = BASELINE_NAMES.get(rule.against, rule.against)
            text = f"the verdict on the newest mark, against {baseline}, is worse"
        case _:
            text = rule.when
    text += f", by {rule.by}" if rule.by else ""
    return f"{text}, for {describe_duration(rule.for_seconds)}" if rule.for_seconds else text


def describe_query(rule: Rule) -> str:
    """Return the condition as PromQL; in words where there is no such expression."""
    match rule.when:
        case "threshold" | "ratio":
            return f"{expression_of(rule)} {_comparison(rule)}"
        case "absent":
            return f"{expression_of(rule)} == 0"
        case "burn":
            budget = f"(1 - {rule.objective:g})"
            pairs = [
                " and ".join(
                    f"{_share(rule, window)} > {rate:g} * {budget}" for window in (long, short)
                )
                for long, short, rate in rule.windows
            ]
            return pairs[0] if len(pairs) == 1 else " or ".join(f"({pair})" for pair in pairs)
        case _:
            return describe_condition(rule)


def expression_of(rule: Rule) -> str:
    """Return what a rule compares with its limit, as PromQL; "" where there is no such expression.

    Of a burn rate, the share over its longest window.
    """
    match rule.when:
        case "threshold":
            percentile = percentile_of(rule.value)
            if rule.value in ("rate", "count"):
                function = "rate" if rule.value == "rate" else "increase"
                return _events(rule, rule.metric, rule.window, function)
            if percentile is not None:
                inner = f"rate({_selector(rule.metric, 'histogram')}[{span(rule.window)}])"
                return f"histogram_quantile({percentile / 100:g}, {_sum(rule)}({inner}))"
            inner = f"{_selector(rule.metric, 'gauge')}[{span(rule.window)}]"
            return f"{_sum(rule)}({_OVER_TIME[rule.value]}({inner}))"
        case "ratio":
            return _share(rule, rule.window)
        case "absent":
            return _events(rule, rule.metric, rule.window)
        case "burn":
            return _share(rule, rule.windows[0][0])
        case _:
            return ""


def compared_limit(rule: Rule) -> float | None:
    """Return the number that expression_of() is compared with; None if there is none."""
    match rule.when:
        case "absent":
            return 0.0
        case "burn":
            return rule.windows[0][2] * (1 - rule.objective)
        case _:
            return rule.limit


def _limit(rule: Rule) -> str:
    if rule.limit is None:
        return "?"
    word = "below" if rule.above is None else "above"
    return f"{word} {value_text(rule.limit, unit_of_values(rule), exact=True)}"


def unit_of_values(rule: Rule) -> str:
    """Return the unit of what a rule compares: a share, values of its metric, or a number.

    That of a rate is per second.
    """
    if rule.when == "ratio":
        return "ratio"
    return unit_of(rule.metric) if rule.when in ("threshold", "expected") else ""


def per_second(rule: Rule) -> str:
    """Return what follows a figure of a rule: " per second" if it is a rate."""
    return " per second" if rule.when == "threshold" and rule.value == "rate" else ""


def times_its_rate(rate: float) -> str:
    """Return how fast an error budget burns: "14.4 times its rate"."""
    return "its rate" if rate == 1 else f"{rate:.3g} times its rate"


def _comparison(rule: Rule) -> str:
    sign = "<" if rule.above is None else ">"
    return "" if rule.limit is None else f"{sign} {rule.limit:.15g}"


def _share(rule: Rule, window: int) -> str:
    return f"{_events(rule, rule.metric, window)} / {_events(rule, rule.of, window)}"


def _events(rule: Rule, metric: str, window: int, function: str = "increase") -> str:
    return f"{_sum(rule)}({function}({_selector(metric, 'counter')}[{span(window)}]))"


def _sum(rule: Rule) -> str:
    return f"sum by ({rule.by}) " if rule.by else "sum"


def _selector(metric: str, kind: str) -> str:
    base, labels = parse_name(metric)
    name = counter_name(base) if kind == "counter" else metric_name(base)
    matchers = ",".join(f"{label_name(key, kind)}={_quoted(value)}" for key, value in labels)
    return f"{name}{{{matchers}}}" if matchers else name


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
