r"""Requests in logs: their times, targets, and the line that most servers write.

Problem: every web server writes its log a little differently, strangers choose half of it,
and a replay parses millions of lines.

Idea: look for the parts that all formats share, wherever they are in the line:

    [17/May/2015:10:05:03 +0000] "GET /search?q=tea HTTP/1.1" 200 203023

The text before it (a virtual host, addresses, a user's name) and after it (referrer, browser) is
ignored. Servers write a quote inside a field as \" or \x22, so no stranger can forge the part with
a field of his own. A line in which the parts are apart is searched for each of them: a quoted
request, the status that follows it, and a time outside of all quotes.

Fast, because log lines resemble each other: the minute and the request are each looked up in a
bounded cache before anything is computed.

Bound: one pass over at most LINE_LIMIT characters; the pattern never goes back (its quantifiers
are possessive). Caches hold at most 1,024 minutes and times and 4,096 requests of at most 512
characters.

A request that makes no sense is still a hit, with the method _OTHER or the path (invalid):
somebody asked, and the server answered. Only a line without a time, a request or a status is
refused. The query string is dropped here, at the entrance: it may hold passwords.

A time without a zone is UTC. Durations are read by formats that have one: see formats.py.

Source: Apache's mod_log_config, "Custom Log Formats" and its note on escaping; nginx's
ngx_http_log_module; RFC 9112, section 3.2 (forms of the request target).
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
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

#: The reason for refusing a line that is not in the format of the log.
OTHER_FORMAT: Final = "other format"
#: The reason for refusing a request in a format without times.
NEEDS_FOLLOW: Final = "no time: needs --follow"
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
    OTHER_FORMAT,
    NEEDS_FOLLOW,
)


class Hit(NamedTuple):
    """One request that a server answered.

    Attributes:
        time: Unix seconds, UTC; NaN if the format has no times.
        method: one of METHODS, or _OTHER.
        path: as asked for, without query string and fragment; (invalid) if there is none.
        status: 100 to 599.
        size: bytes of the answer's body; None if the line lacks it.
        seconds: how long the answer took; None if the line lacks it.
    """

    time: float
    method: str
    path: str
    status: int
    size: int | None
    seconds: float | None = None


#: Makes a Hit of a tuple, in half of the time that Hit() takes.
_hit: Callable[[tuple[float, str, str, int, int | None, float | None]], Hit] = partial(
    tuple.__new__, Hit
)


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
    if match is None:
        return parse_hit(line).time
    minute, second, zone = match.groups()
    return _minute(minute + zone) + int(second)


def parse_hit(line: str) -> Hit:
    """Read one line of an access log in the common or combined format, or one with their parts.

    Args:
        line: with or without its line end.

    Returns:
        The request.

    Raises:
        MalformedLine: it has no time, no request or no status, and never anything else.
    """
    if len(line) > LINE_LIMIT:
        line = line[:LINE_LIMIT]
    match = _COMMON.search(line)
    if match is None:
        return _parse_parts(line.strip("\ufeff \t\r\n\x00"))
    minute, second, zone, request, status, size = match.groups()
    method, path = _request(request) if len(request) <= 512 else _request.__wrapped__(request)
    time = _minute(minute + zone) + int(second)
    return _hit((time, method, path, int(status), None if size is None else int(size), None))


#: A text in quotes; without its end, all that follows, or each quote would be searched to the end.
QUOTED: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_QUOTED = re.compile(QUOTED, re.DOTALL)
_REQUEST_LINE = re.compile(r'"[A-Za-z_-]{1,32} \S.{0,65536} HTTP/\d(?:\.\d)?"', re.DOTALL)
_BRACKET = re.compile(r"\[([^][\"]{0,24}\d:\d\d[^][\"]{0,24})\]", re.ASCII)
_TIME_ANYWHERE = re.compile(
    r"""(?<![\w:.]) (?: \d\d/\w{3}/\d{4}[: ] | \d{4}[-/]\d\d[-/]\d\d[T ] ) \d\d:\d\d:\d\d
    (?: [.,]\d{1,9} )? (?: Z | \ ?[+-]\d\d:?\d\d )? (?![\w:])""",
    re.ASCII | re.VERBOSE,
)
# Between a request and its status: texts in quotes, and words that are no number.
_STATUS = re.compile(
    rf"(?:\s+(?:{QUOTED}|(?=[^\s\"]*[A-Za-z.])[^\s\"]++))*+[\s|,;]+(\d++)(?!\S)(?:\s+(\d{{1,18}})(?!\S))?",
    re.ASCII | re.DOTALL,
)


def _parse_parts(text: str) -> Hit:
    """Find the parts of a request that are not next to each other, or name the missing one."""
    if not text:
        raise MalformedLine("empty")
    time, end = _find_time(text)
    quoted = [each for each in _QUOTED.finditer(text) if each[0][1:].endswith('"')]
    request = next((each for each in quoted if _REQUEST_LINE.fullmatch(each[0])), None)
    if request is None:  # "-", or the bytes of another protocol
        request = next(
            (e for e in quoted if e.start() >= end and not text[end : e.start()].strip("] ")), None
        )
    if request is None:
        raise MalformedLine("no request")
    status = _STATUS.match(text, request.end())
    if status is None:
        rest = text[request.end() :].split(maxsplit=1)
        raise MalformedLine("no status" if not rest or rest[0] == "-" else "bad status")
    if not re.fullmatch(r"[1-5]\d\d", status[1]):
        raise MalformedLine("bad status")
    method, path = _request.__wrapped__(request[0][1:-1])
    return Hit(time, method, path, int(status[1]), int(status[2]) if status[2] else None)


def _find_time(text: str) -> tuple[float, int]:
    """Return the first time outside of quotes, and where it ends."""
    plain = _QUOTED.sub(lambda match: " " * len(match[0]), text)
    bracketed = [match for match, _ in zip(_BRACKET.finditer(plain), range(5), strict=False)]
    for match in bracketed:
        try:
            return log_time(match[1]), match.end()
        except MalformedLine:
            pass
    if bracketed:
        raise MalformedLine("bad time")
    anywhere = _TIME_ANYWHERE.search(plain)
    if anywhere is None:
        raise MalformedLine("no time")
    return log_time(anywhere[0]), anywhere.end()


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


_CLF = re.compile(
    r"(.{11})[: ](\d\d:\d\d):([0-5]\d|60)(?:[.,](\d{1,9}))?(?: ?([+-]\d{4}))?", re.ASCII
)


def log_time(value: object) -> float:
    """Return the Unix seconds of a time as logs write it.

    Args:
        value: 17/May/2015:10:05:03 +0000, also with a space before the hour or with a fraction;
            2015-05-17T10:05:03.5Z; 2015/05/17 10:05:03; or a number, Unix seconds, milliseconds,
            microseconds or nanoseconds. A time without a zone is UTC.

    Raises:
        MalformedLine: it is none of these.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise MalformedLine("bad time")
    if not isinstance(value, str):
        return _unix(value)
    if len(value) > _TIME_LIMIT:
        raise MalformedLine("bad time")
    return _time(value)


#: Characters of a time.
_TIME_LIMIT = 64


@lru_cache(maxsize=1024)
def _time(value: str) -> float:
    if re.fullmatch(r"\d{1,20}(\.\d{1,12})?", value, re.ASCII):
        return _unix(float(value))
    match = _CLF.fullmatch(value)
    if match is None or value[2] != "/":
        return _iso(value.replace("/", "-"))
    day, minute, second, fraction, zone = match.groups()
    return _minute(f"{day}:{minute}{zone or '+0000'}") + float(f"{second}.{fraction or 0}")


def _iso(text: str) -> float:
    """Return the Unix seconds of 2015-05-17T10:05:03.5Z."""
    text = re.sub(r"([.,]\d{6})\d+", r"\1", re.sub(r" (?=[+-]\d\d:?\d\d$)", "", text))
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


#: Protocols as hypercorn writes them.
_VERSIONS: Final = ("1.0", "1.1", "2", "3")


@lru_cache(maxsize=4096)
def _request(text: str) -> tuple[str, str]:
    """Return method and path of a request line such as GET /a?b=c HTTP/1.1, never failing."""
    method, _, rest = text.partition(" ")
    target, _, protocol = rest.rpartition(" ")
    if not protocol.startswith("HTTP/") and protocol not in _VERSIONS:  # HTTP/0.9, or cut off
        target = rest
    if not target and method.startswith("/"):  # a path alone
        method, target = "", method
    return method_of(method), path_of(target.strip(" "))


def request_of(line: str) -> tuple[str, str]:
    """Return method and path of a request line of any length."""
    return _request(line) if len(line) <= 512 else _request.__wrapped__(line)


def method_of(text: str) -> str:
    """Return a method that is counted separately, or _OTHER."""
    upper = text.upper()
    return upper if upper in METHODS else OTHER_METHOD


_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")


def path_of(target: str) -> str:
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
