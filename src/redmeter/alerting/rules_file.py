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
import string
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from redmeter.alerting.conditions import DELAY, WindowNotKept, kept_period, retention_of
from redmeter.alerting.mistakes import (
    FilePlace,
    InvalidRules,
    Mistake,
    names_text,
    printable,
    shown_key,
    shown_value,
)
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
    read_lines,
    read_minute,
    read_name,
    read_table,
)
from redmeter.names import parse_name
from redmeter.stored.keys import Kept

#: Most alerts of a file.
MAX_ALERTS = 500
#: Shortest window for what is new, seconds: longer than the time between two evaluations.
_LEAST_NEW = 60


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
#: The fields that every alert needs, and those that it may have; and every notifier.
COMMON = _fields("name when", "for keep severity labels message notify remind")
COMMON_OF_NOTIFIERS = _fields("type")
_NOTIFIER = "a table such as [notify.ops]"
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
#: Where a text begins that tomllib reports without a place or at the end of the file: a number of
#: too many digits, lists in lists, or a string of several lines without an end.
_GIVEN_UP = re.compile(r"[0-9][0-9_]{4000}|(?:[\[{]\s*){50}")
_LONG = re.compile(r'"""|\'\'\'')
#: A reason and the line that it is about -> what to do.
_HINTS = {
    re.compile("Cannot (overwrite a value|declare .* twice)"): "it is in the file twice",
    re.compile(
        r"[^\n]*\n\s*[\w.\"'-]+\s*=\s*(?!(true|false)\b)([^\W\d]|[%$/<@“„‘]|[\d.]+\s*[a-z%])"
    ): 'text has quotes, such as "5m"; true and false have none, and small letters',
}


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
    except (RecursionError, ValueError) as error:
        raise InvalidRules(file, [_syntax_mistake(error, text, file)]) from None
    mistakes: list[Mistake] = []
    top = FilePlace(file, lines, mistakes)
    check_keys(top, document, ("alert", "maintenance", "notify"))
    tables = read_table(top.at("notify"), document.get("notify", {}), _NOTIFIER) or {}
    notifiers = {
        name: _notifier(top.at("notify", name).named(f"notify.{shown_key(name)}"), name, entry)
        for name, entry in tables.items()
    }
    alerts: dict[str, Rule] = {}
    for number, entry in enumerate(_tables(top, "alert", document)):
        place = top.at("alert", number).named(f"alert {number + 1}")
        if read_table(place, entry) is None:
            continue
        name = read_name(place.at("name"), entry["name"]) if "name" in entry else None
        if name in alerts:
            name = place.at("name").wrong(f'"{name}" is used twice; choose another one')
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


def _syntax_mistake(error: Exception, text: str, file: str) -> Mistake:
    """Return the only mistake of a text that is not TOML: no other one can be found."""
    nested = isinstance(error, RecursionError)
    reason = "tables or lists are nested too deeply" if nested else str(error)
    match = _SYNTAX.fullmatch(reason)
    if match is not None and match[2]:
        line, reason = int(match[2]), f"{match[1]} ({match[3]})"
    else:
        reason = match[1] if match else reason
        long = _LONG if reason == "Unterminated string" else _GIVEN_UP
        begins = [begin.start() for begin in long.finditer(text)]
        line = text.count("\n", 0, begins[-1] if begins else len(text)) + 1
    written = f"{reason}\n{text.split(chr(10))[line - 1]}"
    hints = [hint for pattern, hint in _HINTS.items() if pattern.match(written)]
    reason = "; ".join([f"not TOML: {reason}", *hints[:1], "nothing else is checked yet"])
    return Mistake(file, line, "", "", printable(reason))


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
    common: tuple[frozenset[str], frozenset[str]],
) -> tuple[str, dict[str, Any], frozenset[str]]:
    """Check the keys of a table by its kind.

    Args:
        key: the key that names the kind.
        common: the keys that every kind needs, and those that it may have.

    Returns:
        The kind, "" if there is no such; the entries that it may have; and the keys that it lacks.
    """
    kind = entry.get(key)
    choices = f"one of {', '.join(kinds)}"
    if isinstance(kind, str) and kind in kinds:
        fields = kinds[kind]
    else:
        if key in entry:
            place.at(key).unknown(f"{choices}, not {shown_value(kind)}", kind, kinds)
        kind, fields = "", (frozenset(), frozenset().union(*(a | b for a, b in kinds.values())))
    needed = fields[0] | common[0]
    known = needed | fields[1] | common[1]
    misspelled = check_keys(place, entry, known)
    for missing in sorted(needed - entry.keys() - misspelled):
        reason = choices if missing == key else f'{key} = "{kind}" needs it' if kind else ""
        place.at(missing).wrong(f"is missing: {reason}" if reason else "is missing")
    usable = {name: given for name, given in entry.items() if name in known and name != key}
    return kind, usable, (needed | misspelled) - entry.keys()


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
    for number, name in enumerate(rule.notify):
        if name not in notifiers:
            reason = f"there is no [notify.{shown_key(name)}]; known: {names_text(notifiers)}"
            place.at("notify", number).unknown(reason, name, notifiers)
    _check_message(place, rule)
    if failed.isdisjoint({"above", "below", "clear"}):
        _check_limits(place, rule)
    if failed.isdisjoint({"objective", "windows"}):
        _check_burn_rates(place, rule)
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
    for key in ("above", "below", "clear"):
        number = getattr(rule, key)
        if number is None:
            continue
        if rule.when == "ratio" and not 0 <= number <= 1:
            place.at(key).wrong(f"a share from 0 to 1, such as 0.05 for 5 %, not {number:g}")
        elif rule.when == "ratio" or rule.value in ("rate", "count"):
            if number < 0:
                place.at(key).wrong(f"at least 0: a {rule.value} is never negative")
            elif key == "below" and number == 0:
                place.at(key).wrong('above 0: nothing is below 0; when = "absent" is for no events')


def _check_message(place: FilePlace, rule: Rule) -> None:
    """Check that the fields of the message are about the condition."""
    used = {key for _, key, _, _ in string.Formatter().parse(rule.message)}
    if "window" in used and rule.when and "window" not in CONDITIONS[rule.when][1]:
        place.at("message").wrong(f'{{window}}: when = "{rule.when}" has no window')
    if "value" in used and rule.when == "verdict":
        place.at("message").wrong("{value}: a verdict has no value; write {detail}")


def _check_burn_rates(place: FilePlace, rule: Rule) -> None:
    if rule.when != "burn" or rule.windows == BURN_WINDOWS:  # some of which may be out of reach
        return
    most = 1 / (1 - rule.objective)
    for number, (_, _, rate) in enumerate(rule.windows):
        if rate >= most:
            reason = f"below {most:.6g}, the burn rate if all events fail, not {rate:g}"
            place.at("windows", number, "rate").wrong(reason)


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
    if rule.by in rule.labels:
        place.at("labels", rule.by).wrong(f'by = "{rule.by}" sets this label')
    if rule.when == "new_exception" and rule.window < _LEAST_NEW:
        reason = f"at least {_LEAST_NEW}s, to miss nothing between two evaluations"
        place.at("window").wrong(f"{reason}, not {rule.window}s")


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
    entry = read_table(place, given, _NOTIFIER)
    if entry is None:
        return None
    read_name(place, name)
    kind, usable, lacking = _check_fields(place, entry, "type", NOTIFIERS, COMMON_OF_NOTIFIERS)
    options = {key: NOTIFIER_READERS[key](place.at(key), value) for key, value in usable.items()}
    given_keys = entry.keys() | lacking
    if kind == "slack" and ("url" in given_keys) == ("url_env" in given_keys):
        place.at("url").wrong("give either url or url_env")
    for key, other in (("user", "password_env"), ("password_env", "user")):
        if kind == "smtp" and key in entry and other not in given_keys:
            place.at(other).wrong(f"is missing: {key} needs it")
    return Notifier(name, kind, options)


def _maintenance(place: FilePlace, given: Any, alerts: Mapping[str, Rule]) -> Maintenance | None:
    entry = read_table(place, given)
    if entry is None:
        return None
    misspelled = check_keys(place, entry, ("alerts", "days", "from", "to"))
    for missing in sorted({"from", "to"} - entry.keys() - misspelled):
        place.at(missing).wrong('is missing: a time of day such as "02:00", UTC')
    days = read_days(place.at("days"), entry.get("days", [*DAYS]))
    patterns = read_lines(place.at("alerts"), entry.get("alerts", ["*"]))
    for number, pattern in enumerate(patterns or ()):
        if pattern != "*" and not names_alert(pattern, alerts.values()):
            reason = f"there is no alert {shown_value(pattern)}; known: {names_text(alerts)}"
            place.at("alerts", number).unknown(reason, pattern, alerts)
    begin, end = (
        read_minute(place.at(key), entry[key]) if key in entry else None for key in ("from", "to")
    )
    if begin is not None and begin == end:
        place.at("to").wrong("from and to are the same")
    if days is None or patterns is None or begin is None or end is None:
        return None
    return Maintenance(patterns, tuple(DAYS.index(day) for day in days), begin, end)
