"""The file of alerts: TOML, read and checked. No code in it is executed.

    [[alert]]
    name = "checkout-errors"
    when = "ratio"                                       # see CONDITIONS
    metric = 'http_requests{status="5xx"}'
    of = "http_requests"
    by = "route"                                         # one alert for each route
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

Pure: no I/O. An error names the file, the line, the alert, the key and the allowed values. tomllib
keeps no lines of entries, so line_of() searches for them in the text.
"""

import re
import string
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any, TypeVar

from redmeter.alerting.rules import (
    BASELINE_NAMES,
    DIRECTIONS,
    VALUES,
    Maintenance,
    Notifier,
    Rule,
    Rules,
    percentile_of,
)
from redmeter.clock import seconds_of
from redmeter.errors import InvalidSetting, RedmeterError, shown
from redmeter.names import parse_name

#: Most alerts of a file, and longest name, bytes.
MAX_ALERTS, MAX_NAME = 500, 100


def _fields(needed: str, optional: str = "") -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(needed.split()), frozenset(optional.split())


#: A condition -> the fields that it needs, and those that it may have.
CONDITIONS = {
    "threshold": _fields("metric", "value above below window clear by"),
    "ratio": _fields("metric of", "above below window at_least clear by"),
    "absent": _fields("metric", "window by"),
    "expected": _fields("metric", "precision direction by"),
    "burn": _fields("metric of objective", "windows at_least by"),
    "new_pattern": _fields("", "severities logger by"),
    "new_exception": _fields("", "types window by"),
    "verdict": _fields("", "against by"),
}
#: A condition without a metric -> the only label that it has an alert for each value of.
LABELS = {"new_pattern": "logger", "new_exception": "type", "verdict": "route"}
#: Fields that every alert may have.
COMMON, _ = _fields("name when for keep severity labels message notify remind")
#: A type of notifier -> the fields that it needs, and those that it may have.
NOTIFIERS = {
    "webhook": _fields("url", "secret_env"),
    "slack": _fields("", "url url_env"),
    "pagerduty": _fields("key_env", "url"),
    "smtp": _fields("host to sender", "port user password_env tls"),
    "command": _fields("command"),
}
#: What a message template may contain.
TEMPLATE_FIELDS = ("name", "status", "severity", "value", "detail", "window", "labels")

_FORMAT = re.compile(r",?(\.[0-9]{1,2})?[efg%]?")
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

T = TypeVar("T")


class InvalidRules(InvalidSetting):
    """The file of alerts cannot be used; the message names the place and the correction.

    Attributes:
        file: its name; "" if it has none.
        line: the line of the key, or of its table; None if it was not found.
        where: such as `alert "checkout-errors"`.
        key: the key; "" if the mistake is not about one.
    """

    def __init__(self, reason: str, *, file: str, line: int | None, where: str, key: str) -> None:
        self.file, self.line, self.where, self.key = file, line, where, key
        place = f"{file or 'the file of alerts'}{f', line {line}' if line else ''}"
        super().__init__(f"{place}: {where}" if where else place, reason)


class _Mistake(Exception):
    """A mistake in a table of the file.

    Args:
        key: where the mistake is; "" for the whole table.
        reason: the mistake and its correction.
    """

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key, self.reason = key, reason


def parse_rules(text: str, file: str = "") -> Rules:
    """Read a file of alerts.

    Args:
        text: its contents.
        file: its name, for errors.

    Raises:
        InvalidRules: it is not TOML, or an entry cannot be used.
    """

    def read(header: str, number: int, where: str, function: Callable[..., T], *args: Any) -> T:
        try:
            return function(*args)
        except _Mistake as mistake:
            line = line_of(text, header, number, mistake.key.partition(".")[0])
            raise InvalidRules(
                mistake.reason, file=file, line=line, where=where, key=mistake.key
            ) from None

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidRules(f"not TOML: {error}", file=file, line=None, where="", key="") from None
    read("", 1, "", _check_keys, document, {"alert", "notify", "maintenance"})
    tables = read("", 1, "", _table, "notify", document.get("notify", {}))
    notifiers = {
        name: read(f"notify.{name}", 1, f"notify.{name}", _notifier, name, entry)
        for name, entry in tables.items()
    }
    entries = read("", 1, "", _tables, "alert", document.get("alert", []), MAX_ALERTS)
    alerts: dict[str, Rule] = {}
    for number, entry in enumerate(entries, 1):
        name = read("[alert]", number, f"alert {number}", _name, entry, alerts)
        where = f'alert "{name}"'
        alerts[name] = read("[alert]", number, where, _rule, entry, notifiers)
    windows = read("", 1, "", _tables, "maintenance", document.get("maintenance", []), MAX_ALERTS)
    maintenance = [
        read("[maintenance]", number, f"maintenance {number}", _maintenance, entry)
        for number, entry in enumerate(windows, 1)
    ]
    return Rules(tuple(alerts.values()), notifiers, tuple(maintenance))


def line_of(text: str, header: str, number: int, key: str) -> int | None:
    """Return the line of a key in a table of a TOML text, or the line of the table's header.

    Args:
        header: the table, without the outer brackets: `[alert]`, `notify.ops`; "" for the top.
        number: of the table, among those of this header.
        key: "" for the header.

    Returns:
        The line, from 1; None if the file writes the table in another form.
    """
    heading = re.compile(r"\s*\[" + r"\s*".join(map(re.escape, header)) + r"\s*\]\s*(#.*)?")
    assignment = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*[.=]""") if key else None
    within = None if header else 0
    for at, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*\[", line):
            if within:
                break
            if header and heading.fullmatch(line):
                number -= 1
                within = at if number == 0 else None
            if not header and key and re.match(rf"\s*\[+\s*{re.escape(key)}\b", line):
                return at
        elif within is not None and assignment and assignment.match(line):
            return at
    return within or None


def _table(key: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise _Mistake(key, f"{key}: a table, not {shown(given, 40)}")
    return given


def _tables(key: str, given: Any, most: int) -> list[dict[str, Any]]:
    if not isinstance(given, list):
        raise _Mistake(key, f"write [[{key}]], with two brackets")
    if len(given) > most:
        raise _Mistake("", f"at most {most} of [[{key}]], not {len(given)}")
    return [_table(key, entry) for entry in given]


def _check_keys(given: Mapping[str, Any], known: "set[str] | frozenset[str]") -> None:
    for name in given:
        if name not in known:
            raise _Mistake(
                name, f"unknown key {shown(name, 40)}; known: {', '.join(sorted(known))}"
            )


def _check_fields(
    entry: Mapping[str, Any],
    key: str,
    kinds: Mapping[str, tuple[frozenset[str], frozenset[str]]],
    common: frozenset[str],
) -> Any:
    """Check the keys of a table by its kind, and return that.

    Args:
        key: the key that names the kind.
        common: the keys that every kind may have.
    """
    kind: Any = entry.get(key)
    if kind not in kinds:
        raise _Mistake(key, f"{key}: one of {', '.join(kinds)}, not {shown(kind, 40)}")
    needed, optional = kinds[kind]
    _check_keys(entry, needed | optional | common)
    for missing in sorted(needed - entry.keys()):
        raise _Mistake("", f'{missing} is missing; {key} = "{kind}" needs it')
    return kind


def _name(entry: dict[str, Any], others: Mapping[str, Rule]) -> str:
    name = _text("name", entry.get("name"))
    if len(name.encode()) > MAX_NAME or not name.isprintable() or "{" in name or "}" in name:
        raise _Mistake("name", f"name: printable text of at most {MAX_NAME} bytes, without braces")
    if name in others:
        raise _Mistake("name", f'name: "{name}" is used twice; choose another one')
    return name


def _rule(entry: dict[str, Any], notifiers: Mapping[str, Notifier]) -> Rule:
    _check_fields(entry, "when", CONDITIONS, COMMON)
    read: dict[str, Any] = {}
    for key, given in entry.items():
        read["for_seconds" if key == "for" else key] = _READERS[key](key, given)
    rule = Rule(**read)
    _check_rule(rule, notifiers)
    return rule


def _check_rule(rule: Rule, notifiers: Mapping[str, Notifier]) -> None:
    if rule.when in ("threshold", "ratio") and (rule.above is None) == (rule.below is None):
        raise _Mistake("" if rule.above is None else "below", "give either above or below")
    if rule.clear is not None:
        assert rule.limit is not None
        if (rule.clear > rule.limit) == (rule.above is not None) and rule.clear != rule.limit:
            raise _Mistake("clear", "clear is on the other side of above or below")
    for key in ("metric", "of"):
        text = getattr(rule, key)
        if rule.by and text and parse_name(text).label(rule.by) is not None:
            raise _Mistake("by", f"by: {key} selects one value of {rule.by}; leave out one of them")
    label = LABELS.get(rule.when, rule.by)
    if rule.by and rule.by != label:
        raise _Mistake("by", f'by: when = "{rule.when}" accepts only "{label}"')
    for name in rule.notify:
        if name not in notifiers:
            known = ", ".join(notifiers) or "none"
            raise _Mistake("notify", f"notify: there is no [notify.{name}]; known: {known}")
    _check_message(rule.message)


def _check_message(message: str) -> None:
    try:
        for _, key, spec, _ in string.Formatter().parse(message):
            if key is not None and key not in TEMPLATE_FIELDS:
                known = ", ".join(TEMPLATE_FIELDS)
                raise _Mistake("message", f"message: {{{key}}} is unknown; known: {known}")
            if spec and (key != "value" or not _FORMAT.fullmatch(spec)):
                only = "only {value} has a format, such as .1f or .1%"
                raise _Mistake("message", f"message: {{{key}:{spec}}}: {only}")
    except ValueError as error:
        raise _Mistake("message", f"message: {error}; write {{{{ for a brace") from None


def _text(key: str, given: Any) -> str:
    if not isinstance(given, str) or not given.strip():
        raise _Mistake(key, f"{key}: text, not {shown(given, 40)}")
    return given


def _metric(key: str, given: Any) -> str:
    text = _text(key, given)
    try:
        parse_name(text)
    except RedmeterError as error:
        raise _Mistake(key, f"{key}: {error}") from None
    return text


def _label(key: str, given: Any) -> str:
    text = _text(key, given)
    if not _LABEL.fullmatch(text):
        raise _Mistake(key, f"{key}: the name of a label, such as route, not {shown(text, 40)}")
    return text


def _number(key: str, given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or given != given:
        raise _Mistake(key, f"{key}: a number, not {shown(given, 40)}")
    return float(given)


def _seconds(key: str, given: Any) -> int:
    seconds = seconds_of(given) if isinstance(given, str) else given
    if isinstance(seconds, bool) or not isinstance(seconds, int) or seconds < 1:
        raise _Mistake(key, f'{key}: a duration such as "5m", not {shown(given, 40)}')
    return seconds


def _value(key: str, given: Any) -> str:
    text = _text(key, given)
    if text not in VALUES and percentile_of(text) is None:
        raise _Mistake(key, f"{key}: one of {', '.join(VALUES)}, or a percentile as p95")
    return text


def _choice(key: str, given: Any) -> str:
    words = DIRECTIONS if key == "direction" else tuple(BASELINE_NAMES)
    if given not in words:
        raise _Mistake(key, f"{key}: one of {', '.join(words)}, not {shown(given, 40)}")
    return str(given)


def _objective(key: str, given: Any) -> float:
    number = _number(key, given)
    if not 0 < number < 1:
        raise _Mistake(key, f"{key}: a share between 0 and 1, such as 0.999")
    return number


def _whole(key: str, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise _Mistake(key, f"{key}: a whole number of at least 1, not {shown(given, 40)}")
    return given


def _texts(key: str, given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not given:
        raise _Mistake(key, f'{key}: a list of text such as ["ops"]')
    return tuple(_text(key, each) for each in given)


def _labels(key: str, given: Any) -> dict[str, str]:
    return {name: _text(f"{key}.{name}", value) for name, value in _table(key, given).items()}


def _windows(key: str, given: Any) -> tuple[tuple[int, int, float], ...]:
    example = 'a list such as [{long = "1h", short = "5m", rate = 14.4}]'
    if not isinstance(given, list) or not given:
        raise _Mistake(key, f"{key}: {example}")
    windows = []
    for entry in given:
        if not isinstance(entry, dict) or set(entry) != {"long", "short", "rate"}:
            raise _Mistake(key, f"{key}: {example}")
        long, short = (_seconds(f"{key}.{name}", entry[name]) for name in ("long", "short"))
        if short >= long:
            raise _Mistake(key, f"{key}: short is not shorter than long")
        windows.append((long, short, _number(f"{key}.rate", entry["rate"])))
    return tuple(windows)


#: A key -> its reader.
_READERS: dict[str, Callable[[str, Any], Any]] = {
    "name": _text,
    "when": _text,
    "metric": _metric,
    "of": _metric,
    "by": _label,
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
    entry = _table(name, given)
    type_ = _check_fields(entry, "type", NOTIFIERS, frozenset({"type"}))
    if type_ == "slack" and ("url" in entry) == ("url_env" in entry):
        raise _Mistake("", "give either url or url_env")
    options = {key: given for key, given in entry.items() if key != "type"}
    for key, value in options.items():
        if key in ("command", "to"):
            options[key] = _texts(key, value)
        elif key == "port":
            options[key] = _whole(key, value)
        elif key == "tls":
            if not isinstance(value, bool):
                raise _Mistake(key, "tls: true or false")
        else:
            _text(key, value)
    url = options.get("url", "https://")
    if not url.startswith(("https://", "http://")):
        raise _Mistake("url", "url: begins with https:// or http://")
    return Notifier(name, type_, options)


def _maintenance(entry: dict[str, Any]) -> Maintenance:
    _check_keys(entry, {"alerts", "days", "from", "to"})
    days = _texts("days", entry["days"]) if "days" in entry else _DAYS
    for day in days:
        if day not in _DAYS:
            raise _Mistake("days", f"days: {', '.join(_DAYS)}, not {shown(day, 40)}")
    alerts = _texts("alerts", entry.get("alerts", ["*"]))
    begin, end = (_minute(key, entry.get(key)) for key in ("from", "to"))
    if begin == end:
        raise _Mistake("to", "from and to are the same")
    return Maintenance(alerts, tuple(_DAYS.index(day) for day in days), begin, end)


def _minute(key: str, given: Any) -> int:
    try:
        moment = datetime.strptime(given, "%H:%M")  # noqa: DTZ007 - a time of day, UTC
    except (TypeError, ValueError):
        raise _Mistake(key, f'{key}: a time of day such as "02:00", UTC') from None
    return moment.hour * 60 + moment.minute
