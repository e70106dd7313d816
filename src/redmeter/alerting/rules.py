"""Rules: the TOML file of alerts, read and checked. No code in it is executed.

    [[alert]]
    name = "checkout-errors"
    when = "ratio"                                       # see CONDITIONS
    metric = 'http_requests{route="/checkout",status="5xx"}'
    of = 'http_requests{route="/checkout"}'
    above = 0.05
    window = "5m"
    for = "5m"                                           # how long before it fires
    keep = "10m"                                         # how long it must be fine to resolve
    severity = "page"
    message = "{value:.1%} of checkouts fail"
    notify = ["ops"]

    [notify.ops]
    type = "webhook"
    url = "https://example.com/hook"
    secret_env = "HOOK_SECRET"

    [[maintenance]]
    alerts = ["checkout-*"]
    days = ["sat"]
    from = "02:00"
    to = "04:00"                                         # UTC

Pure: no I/O.
"""

import re
import string
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from redmeter.clock import seconds_of
from redmeter.errors import InvalidSetting, RedmeterError, shown
from redmeter.names import parse_name

#: Most alerts of a file, and longest name, bytes.
MAX_ALERTS, MAX_NAME = 500, 100

#: A condition -> the fields that it needs, and those that it may have.
CONDITIONS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "threshold": (frozenset({"metric"}), frozenset({"value", "above", "below", "window", "clear"})),
    "ratio": (
        frozenset({"metric", "of"}),
        frozenset({"above", "below", "window", "at_least", "clear"}),
    ),
    "absent": (frozenset({"metric"}), frozenset({"window"})),
    "expected": (frozenset({"metric"}), frozenset({"precision", "direction"})),
    "burn": (frozenset({"metric", "of", "objective"}), frozenset({"windows", "at_least"})),
    "new_pattern": (frozenset(), frozenset({"severities", "logger"})),
    "new_exception": (frozenset(), frozenset({"types", "window"})),
    "verdict": (frozenset(), frozenset({"against"})),
}
#: Fields that every alert may have.
COMMON = frozenset(
    {"name", "when", "for", "keep", "severity", "labels", "message", "notify", "remind"}
)
#: What a threshold is compared with.
VALUES = ("rate", "count", "last", "min", "max", "mean", "sum")
DIRECTIONS = ("above", "below", "both")
#: Baselines of a verdict.
BASELINES = ("previous", "yesterday", "last-week")

#: (long window, short window, burn rate): the three alerts of Google's SRE workbook, chapter 5,
#: for an objective over 30 days: 2 % of the budget in 1 h, 5 % in 6 h, 10 % in 3 d.
BURN_WINDOWS = ((3600, 300, 14.4), (21600, 1800, 6.0), (259200, 21600, 1.0))

#: A type of notifier -> the fields that it needs, and those that it may have.
NOTIFIERS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "webhook": (frozenset({"url"}), frozenset({"secret_env"})),
    "slack": (frozenset(), frozenset({"url", "url_env"})),
    "pagerduty": (frozenset({"key_env"}), frozenset({"url"})),
    "smtp": (
        frozenset({"host", "to", "sender"}),
        frozenset({"port", "user", "password_env", "tls"}),
    ),
    "command": (frozenset({"command"}), frozenset()),
}

_FORMAT = re.compile(r",?(\.[0-9]{1,2})?[efg%]?")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
#: What a message template may contain.
TEMPLATE_FIELDS = ("name", "status", "severity", "value", "detail", "window", "labels")


class InvalidRules(InvalidSetting):
    """The file of alerts cannot be used; the message names the alert and the field.

    Args:
        where: such as `alert "checkout-errors"`.
        reason: the mistake and its correction.
    """

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(where, reason)


@dataclass(frozen=True, slots=True)
class Rule:
    """One alert."""

    name: str
    #: The condition, a key of CONDITIONS.
    when: str
    #: A counter, gauge or histogram; labels in braces filter.
    metric: str = ""
    #: For a ratio or a burn rate: the counter of all events.
    of: str = ""
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
        if not any(fnmatchcase(name, pattern) for pattern in self.alerts):
            return False
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


def parse_rules(text: str) -> Rules:
    """Read a file of alerts.

    Raises:
        InvalidRules: it is not TOML, or an entry cannot be used.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidRules("the file of alerts", f"not TOML: {error}") from None
    _check_fields("the file of alerts", document, {"alert", "notify", "maintenance"})
    notifiers = {
        name: _notifier(name, entry)
        for name, entry in _table("notify", document.get("notify", {})).items()
    }
    entries = _tables("alert", document.get("alert", []))
    if len(entries) > MAX_ALERTS:
        raise InvalidRules("alert", f"at most {MAX_ALERTS} alerts, not {len(entries)}")
    alerts = tuple(_rule(number, entry, notifiers) for number, entry in enumerate(entries, 1))
    names = [rule.name for rule in alerts]
    for name in names:
        if names.count(name) > 1:
            raise InvalidRules(f'alert "{name}"', "the name is used twice")
    windows = _tables("maintenance", document.get("maintenance", []))
    return Rules(alerts, notifiers, tuple(map(_maintenance, windows)))


def _table(where: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise InvalidRules(where, f"a table, not {shown(given, 40)}")
    return given


def _tables(where: str, given: Any) -> list[dict[str, Any]]:
    if not isinstance(given, list):
        raise InvalidRules(where, f"write [[{where}]], with two brackets")
    return [_table(where, entry) for entry in given]


def _check_fields(where: str, given: Mapping[str, Any], known: "set[str] | frozenset[str]") -> None:
    for name in given:
        if name not in known:
            raise InvalidRules(where, f"unknown field {name!r}; known: {', '.join(sorted(known))}")


def _rule(number: int, entry: dict[str, Any], notifiers: Mapping[str, Notifier]) -> Rule:
    where = f"alert {number}"
    name = _text(where, "name", entry.get("name"))
    if len(name.encode()) > MAX_NAME or not name.isprintable():
        raise InvalidRules(where, f"name: printable text of at most {MAX_NAME} bytes")
    where = f'alert "{name}"'
    when = entry.get("when")
    if when not in CONDITIONS:
        raise InvalidRules(where, f"when: one of {', '.join(CONDITIONS)}, not {shown(when, 40)}")
    needed, optional = CONDITIONS[when]
    _check_fields(where, entry, needed | optional | COMMON)
    for missing in sorted(needed - entry.keys()):
        raise InvalidRules(where, f'{missing} is missing; when = "{when}" needs it')
    read: dict[str, Any] = {}
    for key, given in entry.items():
        read["for_seconds" if key == "for" else key] = _READERS[key](where, key, given)
    if "labels" in read:
        read["labels"] = dict(read["labels"])
    rule = Rule(**read)
    _check_rule(where, rule, notifiers)
    return rule


def _check_rule(where: str, rule: Rule, notifiers: Mapping[str, Notifier]) -> None:
    if rule.when in ("threshold", "ratio") and (rule.above is None) == (rule.below is None):
        raise InvalidRules(where, "give either above or below")
    if rule.clear is not None:
        limit = rule.above if rule.above is not None else rule.below
        assert limit is not None
        if (rule.clear > limit) == (rule.above is not None) and rule.clear != limit:
            raise InvalidRules(where, "clear is on the other side of above or below")
    for name in rule.notify:
        if name not in notifiers:
            raise InvalidRules(where, f"notify: there is no [notify.{name}]")
    try:
        for _, key, spec, _ in string.Formatter().parse(rule.message):
            if key is not None and key not in TEMPLATE_FIELDS:
                raise InvalidRules(
                    where, f"message: {{{key}}} is unknown; known: {', '.join(TEMPLATE_FIELDS)}"
                )
            if spec and (key != "value" or not _FORMAT.fullmatch(spec)):
                raise InvalidRules(
                    where,
                    f"message: {{{key}:{spec}}}: only {{value}} has a format, such as .1f or .1%",
                )
    except ValueError as error:
        raise InvalidRules(where, f"message: {error}") from None


def _text(where: str, key: str, given: Any) -> str:
    if not isinstance(given, str) or not given.strip():
        raise InvalidRules(where, f"{key}: text, not {shown(given, 40)}")
    return given


def _metric(where: str, key: str, given: Any) -> str:
    text = _text(where, key, given)
    try:
        parse_name(text)
    except RedmeterError as error:
        raise InvalidRules(where, f"{key}: {error}") from None
    return text


def _number(where: str, key: str, given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or given != given:
        raise InvalidRules(where, f"{key}: a number, not {shown(given, 40)}")
    return float(given)


def _seconds(where: str, key: str, given: Any) -> int:
    seconds = seconds_of(given) if isinstance(given, str) else given
    if isinstance(seconds, bool) or not isinstance(seconds, int) or seconds < 1:
        raise InvalidRules(where, f'{key}: a duration such as "5m", not {shown(given, 40)}')
    return seconds


def _value(where: str, key: str, given: Any) -> str:
    text = _text(where, key, given)
    if text not in VALUES and percentile_of(text) is None:
        raise InvalidRules(where, f"{key}: one of {', '.join(VALUES)}, or a percentile as p95")
    return text


def percentile_of(value: str) -> float | None:
    """Return the percentile that "p95" names, above 0 to 100; None if it names none."""
    head, _, digits = value.partition("p")
    try:
        number = float(digits) if not head else -1.0
    except ValueError:
        return None
    return number if 0 < number <= 100 else None


def _choice(where: str, key: str, given: Any) -> str:
    words = DIRECTIONS if key == "direction" else BASELINES
    if given not in words:
        raise InvalidRules(where, f"{key}: one of {', '.join(words)}")
    return str(given)


def _objective(where: str, key: str, given: Any) -> float:
    number = _number(where, key, given)
    if not 0 < number < 1:
        raise InvalidRules(where, f"{key}: a share between 0 and 1, such as 0.999")
    return number


def _whole(where: str, key: str, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise InvalidRules(where, f"{key}: a whole number of at least 1, not {shown(given, 40)}")
    return given


def _texts(where: str, key: str, given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not given:
        raise InvalidRules(where, f'{key}: a list of text such as ["ops"]')
    return tuple(_text(where, key, each) for each in given)


def _labels(where: str, key: str, given: Any) -> dict[str, str]:
    table = _table(f"{where}: {key}", given)
    return {name: _text(where, f"{key}.{name}", value) for name, value in table.items()}


def _windows(where: str, key: str, given: Any) -> tuple[tuple[int, int, float], ...]:
    example = 'a list such as [{long = "1h", short = "5m", rate = 14.4}]'
    if not isinstance(given, list) or not given:
        raise InvalidRules(where, f"{key}: {example}")
    windows = []
    for entry in given:
        if not isinstance(entry, dict) or set(entry) != {"long", "short", "rate"}:
            raise InvalidRules(where, f"{key}: {example}")
        long, short = (_seconds(where, f"{key}.{name}", entry[name]) for name in ("long", "short"))
        if short >= long:
            raise InvalidRules(where, f"{key}: short is not shorter than long")
        windows.append((long, short, _number(where, f"{key}.rate", entry["rate"])))
    return tuple(windows)


#: A field -> its reader.
_READERS = {
    "name": _text,
    "when": _text,
    "metric": _metric,
    "of": _metric,
    "value": _value,
    "above": _number,
    "below": _number,
    "clear": _number,
    "window": _seconds,
    "precision": _seconds,
    "direction": _choice,
    "at_least": _whole,
    "objective": _objective,
    "windows": _windows,
    "severities": _texts,
    "logger": _text,
    "types": _texts,
    "against": _choice,
    "for": _seconds,
    "keep": _seconds,
    "severity": _text,
    "labels": _labels,
    "message": _text,
    "notify": _texts,
    "remind": _seconds,
}
assert _READERS.keys() - {"for"} <= {each.name for each in fields(Rule)}


def _notifier(name: str, given: Any) -> Notifier:
    where = f"notify.{name}"
    entry = _table(where, given)
    type_ = entry.get("type")
    if type_ not in NOTIFIERS:
        raise InvalidRules(where, f"type: one of {', '.join(NOTIFIERS)}, not {shown(type_, 40)}")
    needed, optional = NOTIFIERS[type_]
    _check_fields(where, entry, needed | optional | {"type"})
    for missing in sorted(needed - entry.keys()):
        raise InvalidRules(where, f'{missing} is missing; type = "{type_}" needs it')
    if type_ == "slack" and ("url" in entry) == ("url_env" in entry):
        raise InvalidRules(where, "give either url or url_env")
    options = {key: given for key, given in entry.items() if key != "type"}
    for key, value in options.items():
        if key in ("command", "to"):
            options[key] = _texts(where, key, value)
        elif key == "port":
            options[key] = _whole(where, key, value)
        elif key == "tls":
            if not isinstance(value, bool):
                raise InvalidRules(where, "tls: true or false")
        else:
            _text(where, key, value)
    url = options.get("url", "https://")
    if not url.startswith(("https://", "http://")):
        raise InvalidRules(where, "url: begins with https:// or http://")
    return Notifier(name, type_, options)


def _maintenance(entry: dict[str, Any]) -> Maintenance:
    where = "maintenance"
    _check_fields(where, entry, {"alerts", "days", "from", "to"})
    days = _texts(where, "days", entry["days"]) if "days" in entry else _DAYS
    for day in days:
        if day not in _DAYS:
            raise InvalidRules(where, f"days: {', '.join(_DAYS)}, not {shown(day, 40)}")
    alerts = _texts(where, "alerts", entry.get("alerts", ["*"]))
    begin, end = (_minute(where, key, entry.get(key)) for key in ("from", "to"))
    if begin == end:
        raise InvalidRules(where, "from and to are the same")
    return Maintenance(alerts, tuple(_DAYS.index(day) for day in days), begin, end)


def _minute(where: str, key: str, given: Any) -> int:
    try:
        moment = datetime.strptime(given, "%H:%M")  # noqa: DTZ007 - a time of day, UTC
    except (TypeError, ValueError):
        raise InvalidRules(where, f'{key}: a time of day such as "02:00", UTC') from None
    return moment.hour * 60 + moment.minute
