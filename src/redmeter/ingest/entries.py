"""Lines whose values have names: JSON objects, columns of W3C logs, key=value pairs.

A row of formats.py names the values of a request in EntryFields. A name with dots is looked up in
nested objects, and as it is. The unit of a duration is a fact of the format, never a guess by its
size: a number whose unit is unknown is left out. A text can bring its own unit (1.5ms, 0.2s).
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from redmeter.ingest.access_log import (
    LINE_LIMIT,
    OTHER_FORMAT,
    QUOTED,
    Hit,
    MalformedLine,
    log_time,
    method_of,
    path_of,
    request_of,
)
from redmeter.names import OTHER_METHOD

#: Reads one line of a log; None if it is about the log, and no request. Raises MalformedLine.
Parse = Callable[[str], Hit | None]

#: Unit -> seconds.
DURATION_UNITS: Final = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0,
}  # fmt: skip
#: Decimal places that are meant: none below a nanosecond, or 0.1 + 0.2 would have 17.
_PLACES = 9
_NUMBER = re.compile(r"\d{1,15}(\.\d{0,12})?", re.ASCII)
_STATUS = re.compile(r"[1-5]\d\d", re.ASCII)
_DIGITS = re.compile(r"\d{1,18}", re.ASCII)
_AMOUNT = re.compile(r"(\d{1,15}(?:\.\d{1,12})?)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)


class EntryFields(NamedTuple):
    """The names of a request's values: of several, the first that is there counts."""

    time: tuple[str, ...] = ()
    #: A request line, GET /a HTTP/1.1; or method and path, which may be a URL.
    request: tuple[str, ...] = ()
    method: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    size: tuple[str, ...] = ()
    #: Name of a duration -> unit of a number there: one of DURATION_UNITS.
    seconds: Mapping[str, str] = {}


def duration_of(value: object, unit: str) -> float | None:
    """Return a duration in seconds; None if it is none, such as - and -1.

    Args:
        value: a number, also as text; or a text with units, such as 1m2.5s.
        unit: of a number: one of DURATION_UNITS.
    """
    if isinstance(value, str):
        number = value.strip().removeprefix("+").replace(",", ".", 1)
        if not _NUMBER.fullmatch(number):
            return _with_units(number)
        value = float(number)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value < 1e15:
        return None
    return round(value * DURATION_UNITS[unit], _PLACES)


def _with_units(text: str) -> float | None:
    amounts = _AMOUNT.findall(text)
    if not amounts or "".join(map("".join, amounts)) != text:
        return None
    return round(
        math.fsum(float(number) * DURATION_UNITS[unit] for number, unit in amounts), _PLACES
    )


def http_status(value: object) -> int:
    """Return a status, from 200 and from "200".

    Raises:
        MalformedLine: it is none.
    """
    code = digits(value)
    if not _STATUS.fullmatch(code):
        raise MalformedLine("bad status")
    return int(code)


def digits(value: object) -> str:
    """Return a number of at most 18 digits as text, from 200 and from "200"; else nothing."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return ""
    if isinstance(value, int):
        return str(value) if 0 <= value < 10**18 else ""
    return value if _DIGITS.fullmatch(value) else ""


def hit_of(entry: Mapping[str, Any], fields: EntryFields) -> Hit:
    """Return the request that named values describe.

    Raises:
        MalformedLine: it has no time, no request or no status.
    """
    time = _first(entry, fields.time)
    if time is None and fields.time:
        raise MalformedLine("no time")
    status = _first(entry, fields.status)
    if status is None:
        raise MalformedLine("no status")
    code = http_status(status)
    method, path = _request(entry, fields)
    size = digits(_first(entry, fields.size))
    seconds = None
    for name, unit in fields.seconds.items():
        value = _value(entry, name)
        if value is not None and (seconds := duration_of(value, unit)) is not None:
            break
    when = math.nan if time is None else log_time(time)
    return Hit(when, method, path, code, int(size) if size else None, seconds)


def _request(entry: Mapping[str, Any], fields: EntryFields) -> tuple[str, str]:
    line = _first(entry, fields.request)
    if isinstance(line, str) and " " in line:
        return request_of(line)
    target = _first(entry, fields.path)
    if target is None:
        target = line
    if not isinstance(target, str):
        raise MalformedLine("no request")
    if " /" in target and not target.startswith("/"):  # GET /a, of an API gateway
        return request_of(target)
    method = _first(entry, fields.method)
    return method_of(method) if isinstance(method, str) else OTHER_METHOD, path_of(target)


def _first(entry: Mapping[str, Any], names: Iterable[str]) -> Any:
    """Return the first value that is there and not null."""
    for name in names:
        value = _value(entry, name)
        if value is not None:
            return value
    return None


def _value(entry: Mapping[str, Any], name: str) -> Any:
    value = entry.get(name)
    if value is None and "." in name:
        outer, _, inner = name.partition(".")
        nested = entry.get(outer)
        if isinstance(nested, str) and nested.startswith("{"):  # an object as text
            nested = _loaded(nested)
        return _value(nested, inner) if isinstance(nested, Mapping) else None
    return value


# ---------------------------------------------------------------- JSON


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # RecursionError: brackets nested a thousand deep
        raise MalformedLine("bad JSON") from None


@lru_cache(maxsize=1)
def json_object(line: str) -> Mapping[str, Any]:
    """Return the object of a line: the same one to all readers that try it.

    Raises:
        MalformedLine: it has none.
    """
    start = line.find("{")
    if start < 0:
        raise MalformedLine(OTHER_FORMAT)
    if len(line) > LINE_LIMIT:  # half of an object has no meaning
        raise MalformedLine("too long")
    columns = line[:start].strip("\ufeff \t\x00").split("\t")
    if columns[0] and (len(columns) == 1 or not columns[0][0].isdigit()):
        raise MalformedLine(OTHER_FORMAT)
    entry = _loaded(line[start:].rstrip("\x00"))
    if not isinstance(entry, dict):
        raise MalformedLine("bad JSON")
    if columns[0]:  # Caddy's console has columns before the object, the first of which is the time
        entry.setdefault("ts", columns[0])
    return entry


def json_lines(fields: EntryFields, *required: str) -> Parse:
    """Return a reader of JSON lines that have all required names; a|b is either."""
    alternatives = [names.split("|") for names in required]

    def parse(line: str) -> Hit | None:
        entry = json_object(line)
        for names in alternatives:
            if _first(entry, names) is None:
                raise MalformedLine(OTHER_FORMAT)
        return hit_of(entry, fields)

    return parse


# ---------------------------------------------------------------- key=value

_PAIR = re.compile(rf"(?<!\S)([A-Za-z_][\w.-]*)=({QUOTED}|\S*)", re.ASCII | re.DOTALL)


def key_value_lines(
    fields: EntryFields, *required: str, before: re.Pattern[str] | None = None
) -> Parse:
    """Return a reader of lines of key=value pairs that have all required names.

    Args:
        before: finds the time in the line, unless it is a pair.
    """

    def parse(line: str) -> Hit | None:
        if line.startswith("{"):  # pairs in a text of JSON
            raise MalformedLine(OTHER_FORMAT)
        entry = {key: value.strip('"') for key, value in _PAIR.findall(line[:LINE_LIMIT])}
        if not all(name in entry for name in required):
            raise MalformedLine(OTHER_FORMAT)
        if before and (match := before.search(line)):
            entry["time"] = match[1]
        return hit_of(entry, fields)

    return parse


# ---------------------------------------------------------------- W3C


_DIRECTIVES: Final = ("#Version", "#Software", "#Date", "#Start-Date", "#End-Date", "#Remark")


class W3CReader:
    """Reads a W3C extended log: a line `#Fields: date time …` names columns, until the next one.

    Times are UTC. Columns are separated by spaces or tabs; values with spaces are in quotes, or
    have + or %20 for them. Source: https://www.w3.org/TR/WD-logfile.html.

    Args:
        unit: of the column time-taken.
        marks: beginnings of columns, one of which the log must have; or a word of its #Software.
    """

    def __init__(self, unit: str, marks: tuple[str, ...] = ("",)) -> None:
        self._marks = marks
        self._fields = EntryFields(
            time=("moment",),
            method=("cs-method",),
            path=("cs-uri-stem", "cs-uri"),
            status=("sc-status",),
            size=("sc-bytes",),
            seconds={"time-taken": unit},
        )
        self._columns: list[str] = []
        self._software = ""
        self._date = ""  # of the lines that follow, if there is no such column

    def parse_hit(self, line: str) -> Hit | None:
        """Read one line: a directive, or the values of a request.

        Raises:
            MalformedLine: it is neither.
        """
        line = line.removeprefix("\ufeff")
        if line.startswith("#"):
            self._direct(line)
            return None
        if not self._columns:
            raise MalformedLine(OTHER_FORMAT)
        if "\t" in line:
            values = line.strip("\r\n").split("\t")
        else:
            values = line.split() if '"' not in line else re.findall(r'"[^"]*"|\S+', line)
        if len(values) != len(self._columns):
            raise MalformedLine("wrong columns" if "".join(values).strip() else "empty")
        entry = {
            name: each.strip('"')
            for name, each in zip(self._columns, values, strict=True)
            if each != "-"
        }
        if "time" in entry:
            entry["moment"] = f"{entry.get('date', self._date)}T{entry['time']}"
        return hit_of(entry, self._fields)

    def _direct(self, line: str) -> None:
        name, _, value = line.partition(":")
        if name == "#Software":
            self._software = value
        elif name == "#Date":
            self._date = "".join(value.split()[:1])
        elif name == "#Fields":
            names = (*value.split(), self._software.strip())
            known = any(each.startswith(self._marks) for each in names)
            self._columns = value.split() if known else []
            if not known:
                raise MalformedLine(OTHER_FORMAT)
        elif not self._columns and name not in _DIRECTIVES:
            raise MalformedLine(OTHER_FORMAT)
