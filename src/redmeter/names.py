"""Names of series: their syntax, and the canonical form in which each is stored.

A name is 1 to 200 bytes of UTF-8, with its labels up to 500. It may carry labels in the form that
Prometheus made familiar (exposition format 0.0.4):

    signups
    点击量
    http_requests{method="GET",route="/a",status="2xx"}

Two spellings of one label set are one series: labels are sorted by key, without spaces, and in
values a backslash, a double quote and a newline are written \\\\ \\" and \\n. Refused are control
characters, line and paragraph separators and the characters that turn the direction of text
around (they make one name look like another), and braces outside the label part. Everything
else is a name: colons, stars, brackets, quotes, any script.

Pure functions over text. What a key looks like is keys.py's business.
"""

import contextlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from redmeter.errors import InvalidName, shown
from redmeter.lazy_regex import late

#: Longest name, in bytes of UTF-8: without labels, and with them.
MAX_BYTES, MAX_SERIES_BYTES = 200, 500
#: Longest value of a label that is recorded, as it is written in a name, in bytes of UTF-8. Each
#: value is cut alone, so that a route has the same label in all series, which joins need.
LABEL_BYTES = 120
#: The end of a label's value that is cut.
ELLIPSIS = "…"

#: Series of web requests, written by the web integrations and by `redmeter replay`. By label set:
#: requests by method, route and status; their durations by method and route.
REQUESTS, SECONDS = "http_requests", "http_request_seconds"
#: Their waits for databases, if an integration reports it: seconds, and as a part of the duration.
REQUEST_DB_SECONDS, REQUEST_DB_RATIO = "http_request_db_seconds", "http_request_db_ratio"
#: The label `method` of requests whose method is not one of the known ones.
OTHER_METHOD = "_OTHER"
#: Totals without a route: requests, failed requests, durations. They have separate names, since an
#: unlabeled series of the same name would count requests twice in sums over all label sets.
HITS, HITS_FAILED, HITS_SECONDS = "hits", "hits_failed", "hits_seconds"
#: Time in the database by request.
REQUEST_DB_SECONDS = "http_request_db_seconds"
#: How long connections of WebSockets and streams of server-sent events lasted, by route.
WEBSOCKET_SECONDS, EVENT_STREAM_SECONDS = "websocket_seconds", "event_stream_seconds"
#: Series of database statements: durations by statement, failures by statement and error, and
#: executions by route or task and statement.
DB_QUERY_SECONDS, DB_ERRORS, DB_QUERIES = "db_query_seconds", "db_errors", "db_queries"
#: Series of background tasks: runs by task and state; and durations by task: of a run, of its wait
#: in the queue, and of its database statements.
TASK_RUNS, TASK_SECONDS = "task_runs", "task_seconds"
TASK_QUEUE_SECONDS, TASK_DB_SECONDS = "task_queue_seconds", "task_db_seconds"

#: The label of the part of a gauge that belongs to one process: its instance number. A process
#: that lives reports its parts at least every PART_SECONDS, so an older one is of a process that
#: has ended, unless the store knows that it lives.
INSTANCE, PART_SECONDS = "instance", 60

#: Control characters, surrogates, line and paragraph separators, direction marks and overrides.
_FORBIDDEN = late(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
#: Terminal sequences (ECMA-48, sections 5.3 to 5.6), as part of a verbose expression. Every ESC and
#: every C1 control is matched by something here.
SEQUENCE = r"""
    (?: \x1b[PX\]^_] | [\x90\x98\x9d-\x9f] )                          # a string, and its end
    [^\x07\x1b\x9c\r\n\x85\u2028\u2029]*+ (?: \x07 | \x1b\\ | \x9c )?
  | (?: \x1b\[ | \x9b ) [0-?]*+ [ -/]*+ [@-~]?                        # CSI
  | \x1b [ -/]*+ [0-~]?                                               # the others of ESC
"""
_SEQUENCE = late(SEQUENCE, re.VERBOSE)
_LABEL_KEY = late(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL = late(r'\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(,|$)', re.DOTALL)
_ESCAPE = late(r"\\(.)", re.DOTALL)
_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}
_UNESCAPED = {"\\": "\\", '"': '"', "n": "\n"}


class SeriesName(NamedTuple):
    """A name taken apart: `http_requests` and (("method", "GET"), …), sorted by key."""

    base: str
    labels: tuple[tuple[str, str], ...] = ()

    def label(self, key: str) -> str | None:
        """Return the value of a label, or None where the series has no such label."""
        return next((value for found, value in self.labels if found == key), None)

    def __str__(self) -> str:
        return format_name(self.base, dict(self.labels))


def check_text(name: object, what: str = "series name") -> str:
    """Check what holds for every name, whatever its form: text, length, characters.

    Args:
        what: it is the name of, for the error.

    Returns:
        The name, unchanged, as plain text: a `str, Enum` member writes itself otherwise.

    Raises:
        InvalidName: not text, empty, over 200 bytes (500 with labels), or holding a forbidden
            character.
    """
    if not isinstance(name, str):
        reason = f"a name is text (str), not {type(name).__name__}"
        raise InvalidName(name, reason, what=what)
    if not name:
        reason = f"a name has 1 to {MAX_BYTES} bytes, this one is empty"
        raise InvalidName(name, reason, what=what)
    most = MAX_SERIES_BYTES if "{" in name and what == "series name" else MAX_BYTES
    forbidden = _FORBIDDEN.search(name[: most + 1])
    if forbidden:
        raise InvalidName(
            name,
            f"U+{ord(forbidden.group()):04X} at character {forbidden.start()} is a control, "
            "separator, direction or surrogate character; any other character is allowed",
            what=what,
        )
    size = len(name) if name.isascii() else len(name[: most + 1].encode())
    if size > most:
        series = " or its labels" if what == "series name" else ""
        reason = f"over {most} bytes of UTF-8: shorten it{series}"
        raise InvalidName(name, reason, what=what)
    return str.__str__(name)


def cleaned(text: str, most: int = MAX_BYTES) -> str:
    """Return a text without characters that a name must not have, where raising is no option.

    Args:
        most: bytes that are left; more are cut off.
    """
    seen = _FORBIDDEN.sub("", without_sequences(text[: 4 * most]))
    return seen.encode()[:most].decode(errors="ignore")


def without_sequences(text: str) -> str:
    """Return a text without terminal sequences; each goes as a whole, colours for instance."""
    return text if text.isprintable() else _SEQUENCE.sub("", text)


def is_failure(status: str | None) -> bool:
    """Return whether requests with this `status` label failed: those with status 5xx did.

    Args:
        status: a class (`5xx`), an exact status (`503`), or None for a series without the label.
    """
    return status is not None and status.startswith("5")


def parse_name(name: str) -> SeriesName:
    """Take a name apart.

    Args:
        name: any spelling; spaces around labels and a trailing comma are accepted.

    Raises:
        InvalidName: the grammar above does not allow it.
    """
    base, brace, rest = check_text(name).partition("{")
    if not brace:
        if "}" in base:
            raise InvalidName(name, _BRACES)
        return SeriesName(base)
    if not base or "}" in base or not rest.endswith("}"):
        raise InvalidName(name, _BRACES)
    labels: dict[str, str] = {}
    rest = rest[:-1]
    at = 0
    while at < len(rest):
        label = _LABEL.match(rest, at)
        if label is None:
            if not rest[at:].strip():
                break
            raise InvalidName(name, _BRACES)
        key, value = label[1], _ESCAPE.sub(_unescape, label[2])
        if key in labels:
            raise InvalidName(name, f"the label {key!r} is given twice")
        labels[key] = value
        at = label.end()
    return SeriesName(base, tuple(sorted(labels.items())))


def format_name(base: str, labels: Mapping[str, str] | None = None) -> str:
    """Write a name in its one stored spelling. The inverse of parse_name.

    Args:
        base: the name without labels.
        labels: keys as in Prometheus (`[A-Za-z_][A-Za-z0-9_]*`), values any text.

    Raises:
        InvalidName: base, a key or a value is not allowed, or the whole exceeds 500 bytes.
    """
    base = check_text(base)
    if "{" in base or "}" in base:
        raise InvalidName(base, _BRACES)
    if not labels:
        return base
    parts = []
    for key in labels:
        if not isinstance(key, str) or not _LABEL_KEY.fullmatch(key):
            raise InvalidName(
                base, f"label key {shown(key, 40)} does not match [A-Za-z_][A-Za-z0-9_]*"
            )
    for key in sorted(labels):
        value = labels[key]
        if not isinstance(value, str):
            raise InvalidName(
                base, f"label {key} has a value of type {type(value).__name__}; use text: str(…)"
            )
        parts.append(key + '="' + re.sub(r'[\\"\n]', _escape, value[: MAX_SERIES_BYTES + 1]) + '"')
    return check_text(base + "{" + ",".join(parts) + "}")


@lru_cache(maxsize=8192)
def _canonical(name: str) -> str:
    parsed = parse_name(name)
    return format_name(parsed.base, dict(parsed.labels))


def canonical(name: str, labels: Mapping[str, str] | None = None) -> str:
    """Return the canonical form of a name and labels.

    Args:
        name: in any valid form, with or without labels.
        labels: further labels; none may repeat one of the name's.

    Raises:
        InvalidName: see parse_name and format_name.
    """
    if not labels:
        # An unhashable name would be the cache's TypeError instead of ours.
        return _canonical(name) if isinstance(name, str) else check_text(name)
    parsed = parse_name(name)
    if not isinstance(labels, Mapping):
        kind = type(labels).__name__
        raise InvalidName(
            name, f'labels and their values are a mapping, e.g. {{"a": "1"}}, not {kind}'
        )
    both = dict(parsed.labels)
    for key in labels:
        if key in both:
            raise InvalidName(name, f"the label {key!r} is given twice")
    return format_name(parsed.base, both | dict(labels))


def recorded_name(name: str, labels: object = None, *, reserve: int = 0) -> tuple[str, str]:
    """Return the stored spelling of a name and labels whose values may be anything.

    A value is data, so it never makes recording fail: it is converted with str(); characters that
    are not allowed become `\N{REPLACEMENT CHARACTER}`; a value over LABEL_BYTES is cut and ends
    with `…`. That depends on the value alone. Only where the whole is still too long, with many
    long labels, the longest values are cut further.

    Args:
        name: any spelling, with or without labels of its own.
        labels: more labels, a mapping.
        reserve: bytes to leave free, for a label that is added later.

    Returns:
        The name, and a note on the changes; "" if every value is complete.

    Raises:
        InvalidName: the name, a label's key or its type is not allowed: see canonical().
    """
    if not labels or not isinstance(labels, Mapping):
        return canonical(name, labels), ""  # type: ignore[arg-type]  # it raises
    if all(isinstance(v, str) and _written_bytes(v) <= LABEL_BYTES for v in labels.values()):
        with contextlib.suppress(InvalidName):
            series = canonical(name, labels)
            if not reserve or len(series.encode()) + reserve <= MAX_SERIES_BYTES:
                return series, ""
    bare = canonical(name, dict.fromkeys(labels, ""))
    values, changed = dict[str, str](), list[str]()
    for key, value in labels.items():
        values[key], is_whole = _label_text(value)
        if not is_whole:
            changed.append(f"label {key} has characters that are not allowed, or no text")
    room = MAX_SERIES_BYTES - reserve - len(bare.encode())
    sizes = sorted(min(_written_bytes(value), LABEL_BYTES) for value in values.values())
    limit = min(_limit(sizes, room), LABEL_BYTES)
    for key, value in values.items():
        if _written_bytes(value) > limit:
            values[key] = _cut(value, limit)
            changed.append(f"label {key} was cut, as a value has {limit} bytes at most")
    return canonical(name, values), "; ".join(changed)


def _label_text(value: object) -> tuple[str, bool]:
    """Return a label's value as text, and whether it is all of it."""
    try:
        text = str.__str__(value if isinstance(value, str) else str(value))
    except Exception:  # noqa: BLE001 - whatever an application's __str__ raises
        return f"({type(value).__name__})", False
    short = text[: 2 * LABEL_BYTES]
    lines = (_FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", line) for line in short.split("\n"))
    clean = "\n".join(lines)
    return clean, clean == short


def _limit(sizes: list[int], room: int) -> int:
    """Return the size to which the longest texts have to be cut, so that all of them have room.

    Args:
        sizes: in ascending order.
    """
    for at, size in enumerate(sizes):
        if size * (len(sizes) - at) > room:
            return max(0, room // (len(sizes) - at))
        room -= size
    return LABEL_BYTES


def _written_bytes(text: str) -> int:
    """Return the bytes that a label's value takes in a name."""
    return len(text.encode()) + sum(map(text.count, _ESCAPED))


def label_value(text: str, limit: int = LABEL_BYTES) -> str:
    """Return a label's value as it is recorded: without forbidden characters, and cut by one rule.

    Args:
        limit: bytes that it has at most as it is written in a name.
    """
    clean = cleaned(text, 2 * LABEL_BYTES)
    return clean if _written_bytes(clean) <= limit else _cut(clean, limit)


def _cut(text: str, limit: int) -> str:
    """Shorten a label's value to so many bytes, the mark of the cut included."""
    limit -= len(ELLIPSIS.encode())
    if limit < 0:
        return ""
    text = text.encode()[:limit].decode(errors="ignore")
    while _written_bytes(text) > limit:
        text = text[:-1]
    return text + ELLIPSIS


def _escape(found: re.Match[str]) -> str:
    return _ESCAPED[found.group()]


def _unescape(found: re.Match[str]) -> str:
    return _UNESCAPED.get(found[1], found.group())


_BRACES = (
    'braces hold labels only, at the end: name{key="value",…} with \\\\, \\" and \\n '
    "for a backslash, a quote and a newline in a value"
)
