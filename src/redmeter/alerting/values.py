"""Readers of the values in a file of alerts, by their keys. Pure: no I/O.

Each reads a value as TOML gives it. It notes mistakes at the value's place, and then returns None.
"""

import re
import string
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any, Final, cast
from urllib.parse import urlsplit

from redmeter.alerting.mistakes import FilePlace
from redmeter.alerting.rules import BASELINE_NAMES, DIRECTIONS, VALUES, Rule, percentile_of
from redmeter.analysis.comparing.changes import KNOWN_SEVERITIES
from redmeter.clock import seconds_of
from redmeter.errors import RedmeterError, shown
from redmeter.names import parse_name

#: The longest duration, seconds: no store keeps intervals for longer.
MAX_DURATION = 366 * 86400
#: The largest number, above what any metric has: rules are published as JSON.
_LARGEST = 1e300
#: The fields of a message template.
TEMPLATE_FIELDS = ("name", "status", "severity", "value", "detail", "window", "labels")
DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_FORMAT = re.compile(r",?(\.[0-9]{1,2})?[efg%]?")
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
#: A name, or an IPv6 address.
_HOST = re.compile(r"[^\s/@:]+|[0-9A-Fa-f.]*(:[0-9A-Fa-f.]*){2,}")
#: Expressions of PromQL: a call of a function, an aggregation, and a range.
_PROMQL = re.compile(
    r"(abs|absent|avg|ceil|clamp|clamp_max|clamp_min|count|delta|deriv|floor|histogram_\w+|idelta"
    r"|increase|irate|label_\w+|max|min|quantile|rate|resets|round|sum|topk|bottomk|\w+_over_time)"
    r"\s*(by|without)?\s*\(.*"
    r"|.*\[[0-9]+(ms|[smhdwy])[^\]]*\].*",
    re.DOTALL,
)


def _message(place: FilePlace, given: Any) -> str | None:
    message = read_text(place, given)
    if message is None:
        return None
    known = ", ".join(TEMPLATE_FIELDS)
    try:
        for _, key, spec, conversion in string.Formatter().parse(message):
            wrong = ""
            if key is not None and key not in TEMPLATE_FIELDS:
                wrong = f"{{{key[:40]}}} is unknown; known: {known}"
            elif conversion:
                wrong = f"{{{key}!{conversion}}}: leave out !{conversion}"
            elif spec and (key != "value" or not _FORMAT.fullmatch(spec)):
                wrong = f"{{{key}:{spec[:40]}}}: only {{value}} has a format, such as .1f or .1%"
            if wrong:
                place.wrong(wrong)
    except ValueError as error:
        place.wrong(f"{error}; write {{{{ for a brace")
    return message


def read_table(place: FilePlace, given: Any) -> dict[str, Any] | None:
    """Read a table."""
    return given if isinstance(given, dict) else place.wrong(f"a table, not {shown(given, 40)}")


def check_keys(place: FilePlace, given: Mapping[str, Any], known: Collection[str]) -> None:
    """Check that a table has only keys that are known."""
    for name in given:
        if name not in known:
            place.at(name).wrong(f"unknown key; known: {', '.join(sorted(known))}")


def read_text(place: FilePlace, given: Any) -> str | None:
    """Read a text that is not empty."""
    if not isinstance(given, str) or not given.strip() or "\0" in given:
        return place.wrong(f"text, not {shown(given, 40)}")
    return given


def _metric(place: FilePlace, given: Any) -> str | None:
    text = read_text(place, given)
    if text is None:
        return None
    if _PROMQL.fullmatch(text.strip()):
        reason = "is PromQL: give the name of a metric, such as http_requests"
        return place.wrong(f"{shown(text, 60)} {reason}, and say the rest by value and window")
    try:
        parse_name(text)
    except RedmeterError as error:
        return place.wrong(str(error))
    return text


def _label(place: FilePlace, given: Any) -> str | None:
    text = read_text(place, given)
    if text is not None and not _LABEL.fullmatch(text):
        return place.wrong(f"the name of a label, such as route, not {shown(text, 40)}")
    return text


def _number(place: FilePlace, given: Any) -> float | None:
    number = not isinstance(given, bool) and isinstance(given, int | float)
    if not number or not -_LARGEST <= given <= _LARGEST:
        return place.wrong(f"a number, not {shown(given, 40)}")
    return float(given)


def _duration(place: FilePlace, given: Any) -> int | None:
    seconds = seconds_of(given) if isinstance(given, str) else given
    if isinstance(given, str) and given.strip().isdecimal():
        return place.wrong(f'{shown(given, 40)} has no unit: write "5s", "5m", "5h" or "5d"')
    if isinstance(seconds, bool) or not isinstance(seconds, int) or seconds < 1:
        return place.wrong(f'a duration such as "5m", not {shown(given, 40)}')
    if seconds > MAX_DURATION:
        return place.wrong(f"at most {MAX_DURATION // 86400}d, not {shown(given, 40)}")
    return seconds


def _value(place: FilePlace, given: Any) -> str | None:
    if isinstance(given, str) and (given in VALUES or percentile_of(given) is not None):
        return given
    return place.wrong(
        f"one of {', '.join(VALUES)}, or a percentile as p95, not {shown(given, 40)}"
    )


def _one_of(words: Collection[str]) -> Callable[[FilePlace, Any], str | None]:
    def read(place: FilePlace, given: Any) -> str | None:
        if isinstance(given, str) and given in words:
            return given
        return place.wrong(f"one of {', '.join(words)}, not {shown(given, 40)}")

    return read


def _objective(place: FilePlace, given: Any) -> float | None:
    number = _number(place, given)
    if number is not None and not 0 < number < 1:
        return place.wrong(f"a share between 0 and 1, such as 0.999, not {number:g}")
    return number


def _whole(place: FilePlace, given: Any) -> int | None:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        return place.wrong(f"a whole number of at least 1, not {shown(given, 40)}")
    return given


def _list_of(
    read: Callable[[FilePlace, Any], Any], example: str
) -> Callable[[FilePlace, Any], tuple[Any, ...] | None]:
    def read_list(place: FilePlace, given: Any) -> tuple[Any, ...] | None:
        if not isinstance(given, list) or not given:
            return place.wrong(f"a list such as {example}, not {shown(given, 40)}")
        values = tuple(read(place.at(number), each) for number, each in enumerate(given))
        return None if None in values else values

    return read_list


def _labels(place: FilePlace, given: Any) -> dict[str, str] | None:
    entry = read_table(place, given)
    if entry is None:
        return None
    labels = {name: read_text(place.at(name), value) for name, value in entry.items()}
    return None if None in labels.values() else cast("dict[str, str]", labels)


def _burn_windows(place: FilePlace, given: Any) -> tuple[int, int, float] | None:
    entry = read_table(place, given)
    if entry is None:
        return None
    readers = {"long": _duration, "short": _duration, "rate": _number}
    check_keys(place, entry, readers)
    for missing in (key for key in readers if key not in entry):
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


def _one_line(place: FilePlace, given: Any) -> str | None:
    text = read_text(place, given)
    if text is not None and not text.isprintable():
        return place.wrong(f"text without line breaks, not {shown(text, 40)}")
    return text


def _url(place: FilePlace, given: Any) -> str | None:
    text = read_text(place, given)
    return text if text is None or not (reason := url_mistake(text)) else place.wrong(reason)


def url_mistake(url: str) -> str:
    """Return why no notice can be sent to a URL; "" if one can."""
    if not url.startswith(("https://", "http://")):
        return "begins with https:// or http://"
    if not url.isascii() or not url.isprintable() or " " in url:
        return "has a space or another character that URLs write as %20"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "has no valid host or port, such as https://example.com:8443/hook"
    if not host or port == 0:
        return "has no host, such as https://example.com/hook"
    return "has a user or password, which are not sent" if "@" in parts.netloc else ""


def _variable(place: FilePlace, given: Any) -> str | None:
    text = read_text(place, given)
    if text is not None and not _VARIABLE.fullmatch(text):
        reason = "the name of an environment variable, such as SLACK_URL"
        return place.wrong(f"{reason}, not {shown(text, 12)}")
    return text


def _host(place: FilePlace, given: Any) -> str | None:
    text = read_text(place, given)
    if text is not None and not _HOST.fullmatch(text):
        return place.wrong(f"a host name, such as mail.example.com, not {shown(text, 40)}")
    return text


def _port(place: FilePlace, given: Any) -> int | None:
    port = _whole(place, given)
    if port is not None and port > 65535:
        return place.wrong(f"a port from 1 to 65535, not {port}")
    return port


def _switch(place: FilePlace, given: Any) -> bool | None:
    return given if isinstance(given, bool) else place.wrong("true or false")


def read_minute(place: FilePlace, given: Any) -> int | None:
    """Read a time of day, in minutes."""
    try:
        moment = datetime.strptime(given, "%H:%M")  # noqa: DTZ007 - a time of day, UTC
    except (TypeError, ValueError):
        given = f", not {shown(given, 40)}" if given is not None else ""
        return place.wrong(f'a time of day such as "02:00", UTC{given}')
    return moment.hour * 60 + moment.minute


_WINDOWS_EXAMPLE = '[{long = "1h", short = "5m", rate = 14.4}]'
read_texts = _list_of(read_text, '["ops"]')

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
    "logger": read_text,
    "types": read_texts,
    "against": _one_of(BASELINE_NAMES),
    "for": _duration,
    "keep": _duration,
    "severity": read_text,
    "labels": _labels,
    "message": _message,
    "notify": read_texts,
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
    "sender": _one_line,
    "to": _list_of(_one_line, '["ops@example.com"]'),
    "user": _one_line,
    "tls": _switch,
    "command": _list_of(read_text, '["notify-send", "alert"]'),
}

read_days = _list_of(_one_of(DAYS), '["sat", "sun"]')
