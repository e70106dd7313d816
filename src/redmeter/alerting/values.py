"""Readers of the values in a file of alerts, by their keys. Pure: no I/O.

Each reads a value as TOML gives it. It notes mistakes at the value's place, and then returns None.
"""

import re
import string
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any, Final, cast

from redmeter.alerting.addresses import is_host, is_mail_address
from redmeter.alerting.addresses import url_mistake as url_mistake
from redmeter.alerting.mistakes import FilePlace, noun_of, shown_value
from redmeter.alerting.rules import BASELINE_NAMES, DIRECTIONS, VALUES, Rule, percentile_of
from redmeter.analysis.comparing.changes import KNOWN_SEVERITIES
from redmeter.clock import seconds_of
from redmeter.errors import RedmeterError
from redmeter.names import parse_name

#: The longest duration, seconds: no store keeps intervals for longer.
MAX_DURATION = 366 * 86400
#: The largest number, above what any metric has: rules are published as JSON.
_LARGEST = 1e300
#: Most events that `at_least` asks for; and the longest text, characters.
_MOST_EVENTS, _LONGEST = 10**12, 10_000
#: Longest name of an alert or a notifier, bytes.
MAX_NAME = 100
#: The fields of a message template.
TEMPLATE_FIELDS = ("name", "status", "severity", "value", "detail", "window", "labels")
DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_FORMAT = re.compile(r",?(\.[0-9]{1,2})?[efg%]?")
#: Labels that an alert has by itself -> the key that sets them.
_RESERVED = {"alertname": "name", "severity": "severity"}
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
#: A field between two pairs of braces, which stays as it is; as in templates of Prometheus.
_ESCAPED_FIELD = re.compile(
    rf"\{{\{{\s*[$.]?\s*({'|'.join(TEMPLATE_FIELDS)})\b[^}}]*\}}\}}", re.IGNORECASE
)
#: Expressions of PromQL, without the values of labels: a call, an aggregation, an operator between
#: two operands, a range, an offset, and a label that is not equal.
_PROMQL = re.compile(
    r"[-+(\s]*[a-z_][a-z0-9_:]*\(.*"
    r"|[-+(\s]*(avg|count|max|min|quantile|sum|topk|bottomk)\s+(by|without)?\s*\(.*"
    r"|.*[\w)}\]]\s+([-+*/%^<>]|[=!<>]=)\s+[\w({].*"
    r"|.*\[[0-9]+(ms|[smhdwy])[^\]]*\].*"
    r"|.*\soffset\s+-?[0-9]+(ms|[smhdwy]).*"
    r"|.*\{.*(=~|!=|!~).*",
    re.DOTALL | re.IGNORECASE,
)
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"', re.DOTALL)


def _message(place: FilePlace, given: Any) -> str | None:
    message = read_text(place, given)
    if message is None:
        return None
    known = ", ".join(TEMPLATE_FIELDS)
    wrong = False
    for escaped in _ESCAPED_FIELD.finditer(message):
        wrong = True
        place.wrong(f"{escaped[0]:.40} is no field: write {{{escaped[1].lower()}}}")
    try:
        for _, key, spec, conversion in string.Formatter().parse(message):
            if key is not None and key not in TEMPLATE_FIELDS:
                place.unknown(f"{{{key[:40]}}} is unknown; known: {known}", key, TEMPLATE_FIELDS)
            elif conversion:
                place.wrong(f"{{{key}!{conversion}}}: leave out !{conversion}")
            elif spec and key != "value":
                place.wrong(f"{{{key}:{spec[:40]}}}: only {{value}} has a format: write {{{key}}}")
            elif spec and not _FORMAT.fullmatch(spec):
                place.wrong(f"{{{key}:{spec[:40]}}}: no format of a number, such as .1f or .1%")
            else:
                continue
            wrong = True
    except ValueError as error:
        return place.wrong(f"{error}; write {{{{ and }}}} for braces")
    return None if wrong else message


def read_table(place: FilePlace, given: Any, which: str = "a table") -> dict[str, Any] | None:
    """Read a table."""
    return given if isinstance(given, dict) else place.wrong(f"{which}, not {noun_of(given)}")


def check_keys(
    place: FilePlace, given: Mapping[str, Any], known: Collection[str]
) -> frozenset[str]:
    """Check that a table has only keys that are known; return those that others resemble."""
    names = sorted(known)
    near = {place.nearest(name, names) for name in given if name not in known}
    for name in given:
        if name not in known:
            place.at(name).unknown(f"unknown key; known: {', '.join(names)}", name, names)
    return frozenset(name for name in near if name is not None)


def read_text(place: FilePlace, given: Any) -> str | None:
    """Read a text that is not empty."""
    if not isinstance(given, str) or not given.strip() or "\0" in given:
        return place.wrong(f"text, not {shown_value(given)}")
    if len(given) > _LONGEST:
        return place.wrong(f"at most {_LONGEST:,} characters, not {len(given):,}")
    return given


def read_line(place: FilePlace, given: Any) -> str | None:
    """Read a text of one line, without spaces at its ends."""
    text = read_text(place, given)
    if text is not None and not text.isprintable():
        return place.wrong(f"text without line breaks, not {shown_value(text)}")
    if text is not None and text != text.strip():
        return place.wrong(f"text without a space at its ends, not {shown_value(text)}")
    return text


def read_name(place: FilePlace, given: Any) -> str | None:
    """Read the name of an alert or a notifier."""
    name = read_line(place, given)
    if name is not None and (len(name.encode()) > MAX_NAME or "{" in name or "}" in name):
        return place.wrong(f"printable text of at most {MAX_NAME} bytes, without braces")
    return name


def _command(place: FilePlace, given: Any) -> tuple[str, ...] | None:
    arguments = _list_of(_argument, '["notify-send", "alert"]', once=False)(place, given)
    if arguments is not None and not arguments[0].strip():
        return place.at(0).wrong("the name of a program, not an empty text")
    return arguments


def _argument(place: FilePlace, given: Any) -> str | None:
    if not isinstance(given, str):
        return place.wrong(f"text, not {noun_of(given)}")
    return place.wrong("has the character U+0000, which ends texts") if "\0" in given else given


def _metric(place: FilePlace, given: Any) -> str | None:
    text = read_line(place, given)
    if text is None:
        return None
    if _PROMQL.fullmatch(_QUOTED.sub("", text)):
        reason = "is PromQL: give the name of a metric, such as http_requests"
        return place.wrong(f"{shown_value(text)} {reason}, and say the rest by value and window")
    try:
        parse_name(text)
    except RedmeterError as error:
        return place.wrong(str(error))
    return text


def _label(place: FilePlace, given: Any) -> str | None:
    text = read_text(place, given)
    if text is not None and not _LABEL.fullmatch(text):
        return place.wrong(f"the name of a label, such as route, not {shown_value(text)}")
    return text


def _number(place: FilePlace, given: Any) -> float | None:
    number = not isinstance(given, bool) and isinstance(given, int | float)
    if not number or not -_LARGEST <= given <= _LARGEST:
        return place.wrong(f"a number, not {shown_value(given)}")
    return float(given)


def _duration(place: FilePlace, given: Any) -> int | None:
    seconds = seconds_of(given) if isinstance(given, str) else given
    if isinstance(given, str) and given.strip().isdecimal():
        return place.wrong(f'{shown_value(given)} has no unit: write "5s", "5m", "5h" or "5d"')
    if isinstance(seconds, bool) or not isinstance(seconds, int):
        return place.wrong(f'a duration such as "30s", "5m", "2h", "7d", not {shown_value(given)}')
    if seconds < 1:
        return place.wrong(f'a duration of at least "1s", not {shown_value(given)}')
    if seconds > MAX_DURATION:
        return place.wrong(f"at most {MAX_DURATION // 86400}d, not {shown_value(given)}")
    return seconds


def _value(place: FilePlace, given: Any) -> str | None:
    if isinstance(given, str) and (given in VALUES or percentile_of(given) is not None):
        return given
    reason = f"one of {', '.join(VALUES)}, or a percentile from p1 to p100"
    return place.unknown(f"{reason}, not {shown_value(given)}", given, VALUES)


def _one_of(words: Collection[str]) -> Callable[[FilePlace, Any], str | None]:
    def read(place: FilePlace, given: Any) -> str | None:
        if isinstance(given, str) and given in words:
            return given
        return place.unknown(f"one of {', '.join(words)}, not {shown_value(given)}", given, words)

    return read


def _objective(place: FilePlace, given: Any) -> float | None:
    number = _number(place, given)
    if number is not None and not 0 < number < 1:
        return place.wrong(f"a share between 0 and 1, such as 0.999, not {shown_value(given)}")
    return number


def _whole(place: FilePlace, given: Any) -> int | None:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        return place.wrong(f"a whole number of at least 1, not {shown_value(given)}")
    return given if given <= _MOST_EVENTS else place.wrong(f"at most {_MOST_EVENTS:,}")


def _list_of(
    read: Callable[[FilePlace, Any], Any], example: str, *, once: bool = True
) -> Callable[[FilePlace, Any], tuple[Any, ...] | None]:
    def read_list(place: FilePlace, given: Any) -> tuple[Any, ...] | None:
        if not isinstance(given, list) or not given:
            empty = "an empty one" if given == [] else noun_of(given)
            return place.wrong(f"a list such as {example}, not {empty}")
        values = tuple(read(place.at(number), each) for number, each in enumerate(given))
        for number, value in enumerate(values if once else ()):
            if value is not None and value in values[:number]:
                return place.at(number).wrong("is in the list twice")
        return None if None in values else values

    return read_list


def _labels(place: FilePlace, given: Any) -> dict[str, str] | None:
    entry = read_table(place, given)
    if entry is None:
        return None
    labels = {name: read_text(place.at(name), value) for name, value in entry.items()}
    for name in labels:
        if not _LABEL.fullmatch(name):
            labels[name] = place.at(name).wrong("the name of a label, such as team")
        elif name in _RESERVED:
            labels[name] = place.at(name).wrong(f"is set by the alert's {_RESERVED[name]}")
    return None if None in labels.values() else cast("dict[str, str]", labels)


def _burn_windows(place: FilePlace, given: Any) -> tuple[int, int, float] | None:
    entry = read_table(place, given)
    if entry is None:
        return None
    readers = {"long": _duration, "short": _duration, "rate": _number}
    misspelled = check_keys(place, entry, readers)
    for missing in (key for key in readers if key not in entry and key not in misspelled):
        place.at(missing).wrong(f"is missing; for example {_WINDOWS_EXAMPLE}")
    read = {
        key: readers[key](place.at(key), given) for key, given in entry.items() if key in readers
    }
    long, short, rate = (read.get(key) for key in readers)
    if long is not None and short is not None and short >= long:
        return place.at("short").wrong("is not shorter than long")
    if rate is not None and rate <= 0:
        return place.at("rate").wrong(f"a number above 0, not {rate:g}")
    if long is None or short is None or rate is None:
        return None
    return int(long), int(short), float(rate)


def _mail_address(place: FilePlace, given: Any) -> str | None:
    text = read_line(place, given)
    if text is not None and not is_mail_address(text):
        return place.wrong(f"a mail address, such as ops@example.com, not {shown_value(text)}")
    return text


def _user(place: FilePlace, given: Any) -> str | None:
    text = read_line(place, given)
    if text is not None and not text.isascii():
        return place.wrong(f"text of ASCII characters, not {shown_value(text)}")
    return text


def _url(place: FilePlace, given: Any) -> str | None:
    if not isinstance(given, str):
        return place.wrong(f"text, not {noun_of(given)}")
    if len(given) > _LONGEST:
        return place.wrong(f"at most {_LONGEST:,} characters, not {len(given):,}")
    return place.wrong(reason) if (reason := url_mistake(given)) else given


def _variable(place: FilePlace, given: Any) -> str | None:
    if not isinstance(given, str) or not _VARIABLE.fullmatch(given):
        return place.wrong("the name of an environment variable, such as SLACK_URL, not its value")
    return given


def _host(place: FilePlace, given: Any) -> str | None:
    text = read_text(place, given)
    if text is not None and not is_host(text):
        return place.wrong(f"a host name, such as mail.example.com, not {shown_value(text)}")
    return text


def _port(place: FilePlace, given: Any) -> int | None:
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= 65535:
        return place.wrong(f"a port from 1 to 65535, not {shown_value(given)}")
    return given


def _switch(place: FilePlace, given: Any) -> bool | None:
    if not isinstance(given, bool):
        return place.wrong(f"true or false, not {shown_value(given)}")
    return given


def read_minute(place: FilePlace, given: Any) -> int | None:
    """Read a time of day, in minutes."""
    try:
        moment = datetime.strptime(given, "%H:%M")  # noqa: DTZ007 - a time of day, UTC
    except (TypeError, ValueError):
        reason = 'a time of day such as "02:00", at most "23:59", UTC'
        return place.wrong(f"{reason}, not {shown_value(given)}")
    return moment.hour * 60 + moment.minute


_WINDOWS_EXAMPLE = '[{long = "1h", short = "5m", rate = 14.4}]'
read_lines = _list_of(read_line, '["ops"]')

#: A key -> its reader. The keys `name` and `when` are read first.
ALERT_READERS: Final[Mapping[str, Callable[[FilePlace, Any], Any]]] = {
    "metric": _metric,
    "of": _metric,
    "by": _label,
    "value": _value,
    "above": _number,
    "below": _number,
    "clear": _number,
    "window": _duration,
    "precision": _duration,
    "direction": _one_of(DIRECTIONS),
    "at_least": _whole,
    "objective": _objective,
    "windows": _list_of(_burn_windows, _WINDOWS_EXAMPLE),
    "severities": _list_of(_one_of(KNOWN_SEVERITIES), '["error"]'),
    "logger": read_line,
    "types": read_lines,
    "against": _one_of(BASELINE_NAMES),
    "for": _duration,
    "keep": _duration,
    "severity": read_line,
    "labels": _labels,
    "message": _message,
    "notify": read_lines,
    "remind": _duration,
}
assert ALERT_READERS.keys() - {"for"} <= {each.name for each in fields(Rule)}

#: A key of a notifier -> its reader.
NOTIFIER_READERS: Final[Mapping[str, Callable[[FilePlace, Any], Any]]] = {
    "url": _url,
    "url_env": _variable,
    "secret_env": _variable,
    "key_env": _variable,
    "password_env": _variable,
    "host": _host,
    "port": _port,
    "sender": _mail_address,
    "to": _list_of(_mail_address, '["ops@example.com"]'),
    "user": _user,
    "tls": _switch,
    "command": _command,
}

read_days = _list_of(_one_of(DAYS), '["sat", "sun"]')
