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

Pure: no I/O. All mistakes of a file are found at once; each names the file, the line, the alert,
the key and the allowed values.
"""

import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from redmeter.alerting.conditions import DELAY, WindowNotKept, kept_period, retention_of
from redmeter.alerting.mistakes import FilePlace, InvalidRules, Mistake, names_text, shown_key
from redmeter.alerting.rules import (
    BURN_WINDOWS,
    Maintenance,
    Notifier,
    Rule,
    Rules,
    names_alert,
)
from redmeter.alerting.toml_lines import toml_lines
from redmeter.alerting.values import (
    ALERT_READERS,
    DAYS,
    NOTIFIER_READERS,
    check_keys,
    read_days,
    read_minute,
    read_table,
    read_text,
    read_texts,
)
from redmeter.errors import shown
from redmeter.names import parse_name
from redmeter.stored.keys import Kept

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

#: The place in an error of tomllib.
_SYNTAX = re.compile(r"(?s)(.*) \(at (?:line ([0-9]+), (column [0-9]+)|end of document)\)")


def parse_rules(text: str, file: str = "", *, kept: Kept | None = None) -> Rules:
    """Read a file of alerts.

    Args:
        text: its contents.
        file: its name, for errors.
        kept: the retention of the store, to check that it keeps what the rules read.

    Raises:
        InvalidRules: it is not TOML, or entries cannot be used.
    """
    try:
        document = tomllib.loads(text)
        lines = toml_lines(text)
    except RecursionError:
        reason = "tables or lists are nested too deeply"
        raise InvalidRules(file, [Mistake(file, None, "", "", reason)]) from None
    except ValueError as error:
        raise InvalidRules(file, [_syntax_mistake(error, text, file)]) from None
    mistakes: list[Mistake] = []
    top = FilePlace(file, lines, mistakes)
    check_keys(top, document, ("alert", "maintenance", "notify"))
    tables = read_table(top.at("notify"), document.get("notify", {})) or {}
    notifiers = {
        name: _notifier(top.at("notify", name).named(f"notify.{shown_key(name)}"), name, entry)
        for name, entry in tables.items()
    }
    alerts: dict[str, Rule] = {}
    for number, entry in enumerate(_tables(top, "alert", document)):
        place = top.at("alert", number).named(f"alert {number + 1}")
        if read_table(place, entry) is None:
            continue
        name = _name(place.at("name"), entry, alerts)
        if name is not None:
            place = place.named(f'alert "{name}"')
        rule = _rule(place, entry, notifiers, kept)
        if name is not None:
            alerts[name] = replace(rule, name=name)
    maintenance = [
        _maintenance(
            top.at("maintenance", number).named(f"maintenance {number + 1}"), entry, alerts
        )
        for number, entry in enumerate(_tables(top, "maintenance", document))
    ]
    if mistakes:
        mistakes.sort(key=lambda mistake: mistake.line or 0)
        raise InvalidRules(file, mistakes)
    return Rules(
        tuple(alerts.values()),
        {name: each for name, each in notifiers.items() if each is not None},
        tuple(window for window in maintenance if window is not None),
    )


def _syntax_mistake(error: ValueError, text: str, file: str) -> Mistake:
    match = _SYNTAX.fullmatch(str(error))
    if match is None:  # such as a number of too many digits
        return Mistake(file, None, "", "", f"not TOML: {error}")
    line = int(match[2]) if match[2] else text.count("\n") + 1
    column = f" ({match[3]})" if match[3] else ""
    return Mistake(file, line, "", "", f"not TOML: {match[1]}{column}")


def _tables(top: FilePlace, key: str, document: Mapping[str, Any]) -> list[Any]:
    given = document.get(key, [])
    if not isinstance(given, list):
        top.at(key).wrong(f"write [[{key}]], with two brackets")
        return []
    if len(given) > MAX_ALERTS:
        top.at(key).wrong(f"at most {MAX_ALERTS} of [[{key}]], not {len(given)}")
    return given[:MAX_ALERTS]


def _check_fields(
    place: FilePlace,
    entry: Mapping[str, Any],
    key: str,
    kinds: Mapping[str, tuple[frozenset[str], frozenset[str]]],
    common: frozenset[str],
) -> tuple[str, dict[str, Any], frozenset[str]]:
    """Check the keys of a table by its kind.

    Args:
        key: the key that names the kind.
        common: the keys that every kind may have.

    Returns:
        The kind, "" if there is no such; the entries that it may have; and the keys that it needs
        and lacks.
    """
    kind = entry.get(key)
    if not isinstance(kind, str) or kind not in kinds:
        given = f", not {shown(kind, 40)}" if key in entry else ""
        place.at(key).wrong(f"{'' if given else 'is missing: '}one of {', '.join(kinds)}{given}")
        kind, needed = "", frozenset[str]()
        known = common.union(*(each | more for each, more in kinds.values()))
    else:
        needed, optional = kinds[kind]
        known = needed | optional | common
    check_keys(place, entry, known)
    for missing in sorted(needed - entry.keys()):
        place.at(missing).wrong(f'is missing; {key} = "{kind}" needs it')
    usable = {name: given for name, given in entry.items() if name in known and name != key}
    return kind, usable, needed - entry.keys()


def _name(place: FilePlace, entry: dict[str, Any], others: Collection[str]) -> str | None:
    if "name" not in entry:
        return place.wrong("is missing: every alert has one")
    name = read_text(place, entry["name"])
    if name is None:
        return None
    if len(name.encode()) > MAX_NAME or not name.isprintable() or "{" in name or "}" in name:
        return place.wrong(f"printable text of at most {MAX_NAME} bytes, without braces")
    if name in others:
        return place.wrong(f'"{name}" is used twice; choose another one')
    return name


def _rule(
    place: FilePlace, entry: dict[str, Any], notifiers: Collection[str], kept: Kept | None
) -> Rule:
    when, usable, failed = _check_fields(place, entry, "when", CONDITIONS, COMMON)
    usable.pop("name", None)  # it is read first
    read: dict[str, Any] = {}
    for key, given in usable.items():
        value = ALERT_READERS[key](place.at(key), given)
        if value is None:
            failed |= {key}
        else:
            read["for_seconds" if key == "for" else key] = value
    rule = Rule(name="", when=when, **read)
    for name in rule.notify:
        if name not in notifiers:
            place.at("notify").wrong(
                f"there is no [notify.{shown_key(name)}]; known: {names_text(notifiers)}"
            )
    if failed.isdisjoint({"above", "below", "clear"}):
        _check_limits(place, rule)
    if failed.isdisjoint({"metric", "of", "by"}):
        _check_labels(place, rule)
    if kept is not None and failed.isdisjoint({"window", "windows", "precision", "value"}):
        _check_kept(place, rule, kept)
    return rule


def _check_limits(place: FilePlace, rule: Rule) -> None:
    if rule.when not in ("threshold", "ratio"):
        return
    limit = rule.limit
    if limit is None or None not in (rule.above, rule.below):
        place.at("above" if limit is None else "below").wrong("give either above or below")
        return
    clear = limit if rule.clear is None else rule.clear
    if clear != limit and (clear > limit) == (rule.above is not None):
        place.at("clear").wrong("is on the other side of above or below")
    if rule.when == "ratio":
        for key in ("above", "below", "clear"):
            number = getattr(rule, key)
            if number is not None and not 0 <= number <= 1:
                place.at(key).wrong(f"a share from 0 to 1, such as 0.05 for 5 %, not {number:g}")


def _check_labels(place: FilePlace, rule: Rule) -> None:
    for key in ("metric", "of"):
        text = getattr(rule, key)
        if rule.by and text and parse_name(text).label(rule.by) is not None:
            place.at("by").wrong(f"{key} selects one value of {rule.by}; leave out one of them")
    label = LABELS.get(rule.when, rule.by)
    if rule.by and rule.by != label:
        place.at("by").wrong(f'when = "{rule.when}" accepts only "{label}"')
    if rule.of and rule.of == rule.metric:
        place.at("of").wrong("is the same as metric: name the counter of all events")


def _check_kept(place: FilePlace, rule: Rule, kept: Kept) -> None:
    """Check that a store keeps the intervals that a rule reads."""
    if rule.when == "expected" and rule.precision not in kept.series:
        widths = ", ".join(f"{each}s" for each in sorted(kept.series))
        place.at("precision").wrong(f"{rule.precision}s is not kept; kept are {widths}")
    windows = [(place.at("window"), rule.window)]
    if rule.when == "burn":
        windows = [
            (place.at("windows", number, key), length)
            for number, pair in enumerate(rule.windows)
            for key, length in (("long", pair[0]), ("short", pair[1]))
        ]
        if rule.windows == BURN_WINDOWS:  # those that are not kept are left out
            windows = []
    elif rule.when not in ("threshold", "ratio", "absent"):
        return
    for where, window in windows:
        try:
            kept_period(retention_of(rule, kept), window, DELAY, DELAY)
        except WindowNotKept as error:
            where.wrong(str(error))


def _notifier(place: FilePlace, name: str, given: Any) -> Notifier | None:
    entry = read_table(place, given)
    if entry is None:
        return None
    kind, usable, _ = _check_fields(place, entry, "type", NOTIFIERS, frozenset({"type"}))
    options = {key: NOTIFIER_READERS[key](place.at(key), value) for key, value in usable.items()}
    if kind == "slack" and ("url" in entry) == ("url_env" in entry):
        place.at("url").wrong("give either url or url_env")
    if kind == "smtp" and ("user" in entry) != ("password_env" in entry):
        missing, other = ("password_env", "user") if "user" in entry else ("user", "password_env")
        place.at(missing).wrong(f"is missing; {other} needs it")
    return Notifier(name, kind, options)


def _maintenance(place: FilePlace, given: Any, alerts: Mapping[str, Rule]) -> Maintenance | None:
    entry = read_table(place, given)
    if entry is None:
        return None
    check_keys(place, entry, ("alerts", "days", "from", "to"))
    days = read_days(place.at("days"), entry.get("days", [*DAYS]))
    patterns = read_texts(place.at("alerts"), entry.get("alerts", ["*"]))
    for number, pattern in enumerate(patterns or ()):
        if pattern != "*" and not names_alert(pattern, alerts.values()):
            place.at("alerts", number).wrong(
                f"there is no alert {shown(pattern, 40)}; known: {names_text(alerts)}"
            )
    begin, end = (read_minute(place.at(key), entry.get(key)) for key in ("from", "to"))
    if begin is not None and begin == end:
        place.at("to").wrong("from and to are the same")
    if days is None or patterns is None or begin is None or end is None:
        return None
    return Maintenance(patterns, tuple(DAYS.index(day) for day in days), begin, end)
