r"""Access logs: one line of text in, one Hit out.

Problem: every web server writes its log a little differently, strangers choose half of it,
and a replay parses millions of lines.

Idea: look for the one part that all formats share, wherever it is in the line:

    [17/May/2015:10:05:03 +0000] "GET /search?q=tea HTTP/1.1" 200 203023

The text before it (a virtual host, addresses, a user's name) and after it (referrer, browser,
nginx's request time) is ignored. Servers write a quote inside a field as \" or \x22, so no
stranger can forge the part with a field of his own. A line that begins with { is JSON.

Fast, because log lines resemble each other: the minute and the request are each looked up in a
bounded cache before anything is computed.

Bound: one pass over at most LINE_LIMIT characters; the pattern never goes back (its quantifiers
are possessive). Caches hold at most 1,024 minutes and 4,096 requests of at most 512 characters.

A request that makes no sense is still a hit, with the method _OTHER or the path (invalid):
somebody asked, and the server answered. Only a line without a time, a request or a status is
refused. The query string is dropped here, at the entrance: it may hold passwords.

Source: Apache's mod_log_config, "Custom Log Formats" and its note on escaping; nginx's
ngx_http_log_module; RFC 9112, section 3.2 (forms of the request target).
"""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from redmeter.errors import RedmeterError
from redmeter.names import OTHER_METHOD

#: Characters of a line that are looked at. A request line of 8 KiB, the most that servers take,
#: needs 32 KiB when every byte of it is escaped.
LINE_LIMIT: Final = 65_536

#: The methods that are counted separately; all others are _OTHER, or strangers could invent series.
METHODS: Final = frozenset(
    ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]
)
INVALID_PATH: Final = "(invalid)"

#: Every reason there is for refusing a line, so that refusals can be counted by reason.
REASONS: Final = (
    "empty",
    "too long",
    "no time",
    "no request",
    "no status",
    "bad time",
    "bad status",
    "bad JSON",
    "wrong columns",
)


class Hit(NamedTuple):
    """One request that a server answered.

    Attributes:
        time: Unix seconds, UTC.
        method: one of METHODS, or _OTHER.
        path: as asked for, without query string and fragment; (invalid) if there is none.
        status: 100 to 599.
        size: bytes of the answer's body; None if the line lacks it.
    """

    time: float
    method: str
    path: str
    status: int
    size: int | None


class MalformedLine(RedmeterError, ValueError):
    """A line is no hit.

    Attributes:
        reason: one of REASONS.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"malformed access-log line: {reason}")


_COMMON = re.compile(
    r"""
    \[ ([^]["\ ]{17}) : ([0-5]\d|60) \ ([+-]\d{4}) \]   # [17/May/2015:10:05 :03 +0000]
    \ " ([^"\\]*+ (?: \\. [^"\\]*+ )*+ ) "              # "GET / HTTP/1.1"
    \ ([1-5]\d\d) (?!\S)                                # 200
    (?: \ (\d{1,18}) (?!\S) )?                          # 203023, or - and anything else
    """,
    re.ASCII | re.VERBOSE | re.DOTALL,
)


_TIME = re.compile(r'\[([^]["\\ ]{17}):([0-5]\d|60) ([+-]\d{4})\] "', re.ASCII)


def parse_hit_time(line: str) -> float:
    """Read the time of one line alone, at a third of the cost of parse_hit().

    Returns:
        Unix seconds, UTC.

    Raises:
        MalformedLine: it has none. Whether the line is a hit otherwise is not looked at.
    """
    match = _TIME.search(line, 0, LINE_LIMIT)
    if match is None or line[0] == "{":
        return parse_hit(line).time
    minute, second, zone = match.groups()
    return _minute(minute + zone) + int(second)


def parse_hit(line: str) -> Hit:
    """Read one line of an access log.

    Args:
        line: in the common or combined format, or JSON; with or without its line end.

    Returns:
        The request.

    Raises:
        MalformedLine: it has no time, no request or no status, and never anything else.
    """
    if len(line) > LINE_LIMIT:
        if line.startswith("{"):
            raise MalformedLine("too long")  # half of a JSON object has no meaning
        line = line[:LINE_LIMIT]
    match = _COMMON.search(line)
    if match is None or line[0] == "{":
        return _parse_other(line)
    minute, second, zone, request, status, size = match.groups()
    method, path = _request(request) if len(request) <= 512 else _request.__wrapped__(request)
    return Hit(
        _minute(minute + zone) + int(second),
        method,
        path,
        int(status),
        None if size is None else int(size),
    )


def _parse_other(line: str) -> Hit:
    """Parse a JSON line; for other lines, raise an error that names the missing part."""
    text = line.strip("\ufeff \t\r\n\x00")
    if text.startswith("{"):
        return _parse_json(text)
    if not text:
        raise MalformedLine("empty")
    time = re.search(r"\[([^][]{10,40})\]", text)
    if time is None:
        raise MalformedLine("no time")
    _clf_time(time[1])
    rest = text[time.end() :]
    request = re.match(r' "[^"\\]*+(?:\\.[^"\\]*+)*+"', rest, re.DOTALL)
    if request is None:
        raise MalformedLine("no request")
    words = rest[request.end() :].split(maxsplit=1)
    raise MalformedLine("no status" if not words or words[0] == "-" else "bad status")


# ---------------------------------------------------------------- times

_MONTHS = {
    name: number
    for number, name in enumerate(
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], 1
    )
}
_DAY_AND_MINUTE = re.compile(r"(\d\d)/(\w{3})/(\d{4}):(\d\d):(\d\d)([+-]\d\d)([0-5]\d)", re.ASCII)


@lru_cache(maxsize=1024)
def _minute(text: str) -> float:
    """Return the Unix seconds at which a minute like 17/May/2015:10:05+0000 begins."""
    match = _DAY_AND_MINUTE.fullmatch(text)
    if match is None:
        raise MalformedLine("bad time")
    day, month, year, hour, minute, zone_hours, zone_minutes = match.groups()
    try:
        local = datetime(
            int(year), _MONTHS[month], int(day), int(hour), int(minute), tzinfo=UTC
        ).timestamp()
    except (KeyError, ValueError):
        raise MalformedLine("bad time") from None
    east = abs(int(zone_hours)) * 3600 + int(zone_minutes) * 60
    return local + east if zone_hours[0] == "-" else local - east


def _clf_time(text: str) -> float:
    """Return the Unix seconds of 17/May/2015:10:05:03 +0000."""
    match = re.fullmatch(r"(.{17}):([0-5]\d|60) ([+-]\d{4})", text, re.ASCII)
    if match is None:
        raise MalformedLine("bad time")
    return _minute(match[1] + match[3]) + int(match[2])


def _json_time(value: object) -> float:
    """Return the Unix seconds of a time as JSON logs write them."""
    if isinstance(value, str):
        if re.fullmatch(r"\d{1,20}(\.\d{1,12})?", value, re.ASCII):
            return _unix(float(value))
        return _clf_time(value) if "/" in value else _iso(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MalformedLine("bad time")
    return _unix(value)


def _iso(text: str) -> float:
    """Return the Unix seconds of 2015-05-17T10:05:03.5Z; a time without a zone is UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise MalformedLine("bad time") from None
    offset = time.utcoffset() or timedelta()
    return time.replace(tzinfo=UTC).timestamp() - offset.total_seconds()


def _unix(number: float) -> float:
    """Return Unix seconds from seconds, milliseconds, microseconds or nanoseconds.

    1e11 seconds are the year 5138, 1e11 milliseconds the year 1973: between these two, the unit
    of a number follows from its size.
    """
    for unit in (1, 1e3, 1e6, 1e9):
        if 0 <= number < 1e11 * unit:
            return number / unit
    raise MalformedLine("bad time")


# ---------------------------------------------------------------- requests


@lru_cache(maxsize=4096)
def _request(text: str) -> tuple[str, str]:
    """Return method and path of a request line such as GET /a?b=c HTTP/1.1, never failing."""
    method, _, rest = text.partition(" ")
    target, _, protocol = rest.rpartition(" ")
    if not protocol.startswith("HTTP/"):  # HTTP/0.9, or cut off: GET /a
        target = rest
    if not target and method.startswith("/"):  # a path alone
        method, target = "", method
    return _method(method), _path(target.strip(" "))


def _method(text: str) -> str:
    upper = text.upper()
    return upper if upper in METHODS else OTHER_METHOD


_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")


def _path(target: str) -> str:
    """Return the path of a request target: /a of /a?b, of /a#c and of http://host/a alike."""
    if "\\" in target:
        target = _unescape(target)
    if not target.startswith("/") and (authority := _AUTHORITY.match(target)):
        target = "/" + target[authority.end() :].removeprefix("/")
    path = target.partition("?")[0].partition("#")[0]
    return path if path.startswith("/") or path == "*" else INVALID_PATH


_ESCAPE = re.compile(r'((?:\\x[0-9A-Fa-f]{2})+)|\\([\\"bnrtv])')
_LETTERS = {"b": "\b", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def _unescape(text: str) -> str:
    r"""Undo the escapes of Apache and nginx; \xhh are bytes, in UTF-8 if they can be."""

    def plain(match: re.Match[str]) -> str:
        if match[1]:
            return bytes.fromhex(match[1].replace("\\x", "")).decode("utf-8", "replace")
        return _LETTERS.get(match[2], match[2])

    return _ESCAPE.sub(plain, text)


# ---------------------------------------------------------------- JSON

_TIME_KEYS = ("time", "timestamp", "@timestamp", "time_iso8601", "time_local", "ts")
_METHOD_KEYS = ("method", "request_method")
_PATH_KEYS = ("request_uri", "path", "uri", "url")
_STATUS_KEYS = ("status", "status_code")
_SIZE_KEYS = ("size", "bytes", "body_bytes_sent", "bytes_sent")


def _parse_json(text: str) -> Hit:
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):  # RecursionError: brackets nested a thousand deep
        raise MalformedLine("bad JSON") from None
    return hit_of(entry)


def hit_of(entry: Mapping[str, object]) -> Hit:
    """Return the request that the keys of a JSON line describe.

    Raises:
        MalformedLine: it has no time, no request or no status.
    """
    time = _first(entry, _TIME_KEYS)
    if time is None:
        raise MalformedLine("no time")
    status = _first(entry, _STATUS_KEYS)
    if status is None:
        raise MalformedLine("no status")
    code = _digits(status)
    if not re.fullmatch(r"[1-5]\d\d", code):
        raise MalformedLine("bad status")
    method, path = _json_request(entry)
    size = _digits(_first(entry, _SIZE_KEYS))
    return Hit(_json_time(time), method, path, int(code), int(size) if size else None)


def _digits(value: object) -> str:
    """Return a number of at most 18 digits as text, from 200 and from "200"; else nothing."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return ""
    text = str(value)
    return text if re.fullmatch(r"\d{1,18}", text, re.ASCII) else ""


def _json_request(entry: Mapping[str, object]) -> tuple[str, str]:
    """Return method and path: of a request line, or of keys of their own, also nested (Caddy)."""
    request = entry.get("request")
    if isinstance(request, str) and " " in request:
        return _request.__wrapped__(request)
    if isinstance(request, dict):
        entry = {**entry, **request}
        request = None
    target = _first(entry, _PATH_KEYS)
    if target is None:
        target = request
    if not isinstance(target, str):
        raise MalformedLine("no request")
    method = _first(entry, _METHOD_KEYS)
    return _method(method) if isinstance(method, str) else OTHER_METHOD, _path(target)


def _first(entry: Mapping[str, object], keys: Iterable[str]) -> object:
    """Return the first value that is there and not null."""
    return next((entry[key] for key in keys if entry.get(key) is not None), None)
