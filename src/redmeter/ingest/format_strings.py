r"""Formats that a user gives: nginx's log_format, Apache's LogFormat, or a name of the table.

Both are a text with variables. Each variable becomes a group of an expression that takes all up to
the text that follows it, and the text becomes itself:

    $remote_addr|$time_local|$request|$status         nginx
    %h %l %u %t "%r" %>s %b %D                         Apache

A variable in quotes may hold escaped quotes. The variables of a request are named; all others are
only skipped. A log_format that is a JSON object names the values of JSON lines instead.

Bound: an expression never goes back over a variable, so a line takes time by its length. Two
variables with nothing between them could be separated only by guessing, and are an error.

Source: nginx's ngx_http_log_module and ngx_http_core_module (variables); Apache's mod_log_config
("Custom Log Formats").
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple

from redmeter.errors import InvalidSetting
from redmeter.ingest.access_log import MalformedLine, log_time
from redmeter.ingest.entries import EntryFields, json_lines
from redmeter.ingest.formats import FORMATS, LogFormat, text_lines

_OPTION: Final = "--format"

#: Variable of nginx -> group of the expression, which has the unit of a duration.
_NGINX: Final = {
    "time_local": "time", "time_iso8601": "time", "msec": "time", "request": "request",
    "request_method": "method", "request_uri": "path", "uri": "path", "document_uri": "path",
    "status": "status", "body_bytes_sent": "size", "bytes_sent": "size", "request_time": "s",
}  # fmt: skip
#: Directive of Apache -> group. %t has its brackets, and %T can have a unit.
_APACHE: Final = {
    "r": "request", "s": "status", "m": "method", "U": "path", "b": "size", "B": "size",
    "O": "size", "D": "us", "T": "s", "t": "time",
}  # fmt: skip
_APACHE_TIMES: Final = {"sec": "", "msec": "", "usec": ""}
_APACHE_FRACTIONS: Final = ("msec_frac", "usec_frac")


class _Part(NamedTuple):
    """A variable, and the text that follows it."""

    #: Its group; "" if it is only skipped.
    group: str
    #: How it is written in the format.
    name: str
    #: What strptime() reads it by, if it is a part of the time in a form of the user's own.
    time: str = ""


def format_of(text: str) -> Mapping[str, LogFormat]:
    """Return the format that a user names or describes, as a table of one row.

    Args:
        text: a name of FORMATS, a log_format of nginx or a LogFormat of Apache; a whole directive
            of a configuration file is taken, too.

    Raises:
        InvalidSetting: it is none of these, or lacks a time, a request or a status.
    """
    name = text.strip().lower()
    if name in FORMATS:
        return {name: FORMATS[name]}
    text = _without_directive(text.strip())
    if "$" not in text and "%" not in text:
        raise InvalidSetting(
            _OPTION,
            f"no format is called {text!r}; give nginx's log_format, Apache's LogFormat, or one of "
            + ", ".join(FORMATS),
        )
    nginx = re.search(r"\$\{?[a-z]", text) is not None
    if nginx and text.startswith("{"):
        fields = _json_fields(text)
        _check({group for group in EntryFields._fields if getattr(fields, group)}, "$")
        return {"log_format": LogFormat("nginx", lambda: json_lines(fields), "")}
    texts, parts = _split(text, nginx=nginx)
    pattern, when = _expression(texts, parts)
    _check({part.group for part in parts}, "$" if nginx else "%")
    row = LogFormat("", lambda: text_lines(pattern, when), "")
    return {"log_format" if nginx else "LogFormat": row}


def _without_directive(text: str) -> str:
    """Return the format of log_format main '…' '…'; and of LogFormat "…" name."""
    if not re.match(r"(log_format|LogFormat|CustomLog)\s", text):
        return text.replace('\\"', '"')
    pieces = re.findall(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", text)
    return re.sub(r"\\(.)", r"\1", "".join(single or double for single, double in pieces))


def _check(groups: set[str], sign: str) -> None:
    """Fail if a format lacks what a request needs."""
    names = {
        "$": ("$time_local, $time_iso8601 or $msec", "$request, $request_uri or $uri", "$status"),
        "%": ("%t", "%r or %U", "%>s"),
    }[sign]
    parts = zip(names, ({"time"}, {"request", "path"}, {"status"}), strict=True)
    if missing := [name for name, some in parts if not some & groups]:
        raise InvalidSetting(_OPTION, f"the format lacks {', and '.join(missing)}")


def _split(text: str, *, nginx: bool) -> tuple[list[str], list[_Part]]:
    """Return the texts of a format, and the variables between them: one less."""
    texts, parts, at = [""], [], 0
    for match in (re.compile(r"\$(?:(\w+)|\{(\w+)\})") if nginx else _DIRECTIVE).finditer(text):
        texts[-1] += text[at : match.start()]
        at = match.end()
        if nginx:
            name = match[1] or match[2]
            added = [_Part(_NGINX.get(name, ""), match[0])]
        elif match[0] == "%%":
            texts[-1] += "%"
            continue
        else:
            added = list(_apache(match))
        for part in added:
            parts.append(part)
            texts.append("")
        if not nginx and match["letter"] == "t" and not match["argument"]:
            texts[-2] += "["
            texts[-1] += "]"
    texts[-1] += text[at:]
    return texts, parts


_DIRECTIVE = re.compile(
    r"%(?:%|(?P<codes>!?[\d,]*)[<>]?(?:\{(?P<argument>[^}]*)\})?(?P<letter>\^[A-Z]{2}|[A-Za-z]))",
    re.ASCII,
)


def _apache(match: re.Match[str]) -> Iterator[_Part]:
    letter, argument = match["letter"], match["argument"] or ""
    group = _APACHE.get(letter, "")
    if letter == "T" and argument in ("ms", "us", "s"):
        group = argument
    elif letter == "t" and argument:
        form = argument.removeprefix("begin:").removeprefix("end:")
        if form in _APACHE_FRACTIONS:
            group = ""
        elif form not in _APACHE_TIMES:
            yield _Part("time", match[0], form)
            return
    elif argument:  # %{Referer}i
        group = ""
    yield _Part(group, match[0])


# What a variable can hold that is followed by a space, and may have some itself.
_REQUEST_LINE = r"(?:[^\s\"]++\ )?[^\s\"]*+(?:\ HTTP/[\d.]++)?"
_SPACED: Final = {
    "time_local": r"\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d\ [+-]\d{4}",
    "request": _REQUEST_LINE,
    "%r": _REQUEST_LINE,
    "upstream_": r"[^\s\",]++(?:(?:,|\ :)\ [^\s\",]++)*+",
}
#: Short form of strftime() -> long form; and what a part of it looks like.
_TIME_FORMS: Final = {"%T": "%H:%M:%S", "%F": "%Y-%m-%d", "%D": "%m/%d/%y", "%R": "%H:%M"}
_TIME_PARTS: Final = {"%Y": r"\d{4}", "%z": r"(?:Z|[+-]\d\d:?\d\d)", "%f": r"\d{1,6}"}
#: Units of durations, the finest first: of several durations, it is the one that counts.
_UNITS: Final = ("us", "ms", "s")


def _expression(texts: list[str], parts: list[_Part]) -> tuple[str, Callable[[str], float]]:
    """Return an expression, and what reads its time."""
    pattern, forms = ["^", _literal(texts[0])], list[str]()
    groups = [part.group for part in parts]
    used = set(_UNITS) - {next((unit for unit in _UNITS if unit in groups), "")}
    for at, part in enumerate(parts):
        after = texts[at + 1]
        if after or at + 1 == len(parts):
            value = _value(part, texts[at], after)
        elif parts[at + 1].group == "path":  # $host$request_uri
            value = r"[^/\s\"|]*+"
        else:
            names = f"{part.name} and {parts[at + 1].name}"
            raise InvalidSetting(
                _OPTION, f"nothing is between {names}, so where one ends is unknown"
            )
        group = "" if part.group in used else part.group
        if part.time:
            group = ("date", "clock", "")[min(len(forms), 2)]
            forms += [part.time] if group else []
        used.add(group)
        pattern.append(f"(?P<{group}>{value})" if group else f"(?:{value})")
        pattern.append(_literal(after))
    return "".join(pattern), _reader_of_times(forms) if forms else log_time


def _literal(text: str) -> str:
    """Return an expression of a text in which any run of spaces may be longer."""
    return re.sub(r"(?:\\[ \t])+", r"\\s+", re.escape(text))


def _value(part: _Part, before: str, after: str) -> str:
    """Return an expression of all that a variable can hold."""
    if part.time:
        return re.sub(r"%\w", _part_of_time, re.escape(_long_form(part.time)).replace(r"\%", "%"))
    if before.endswith('"') and after.startswith('"'):
        return r'[^"\\]*+(?:\\.[^"\\]*+)*+'
    if not after.strip():
        name = part.name.strip("${}")
        return next((value for start, value in _SPACED.items() if _is(name, start)), r"\S*+")
    return rf"(?:(?!{_literal(after)}).)*+"


def _is(name: str, start: str) -> bool:
    return name.startswith(start) if start.endswith("_") else name == start


def _part_of_time(match: re.Match[str]) -> str:
    return _TIME_PARTS.get(match[0], r"\w+")


def _long_form(form: str) -> str:
    for short, long in _TIME_FORMS.items():
        form = form.replace(short, long)
    return form.replace("%e", "%d")


def _reader_of_times(forms: list[str]) -> Callable[[str], float]:
    form = " ".join(map(_long_form, forms))

    @lru_cache(maxsize=1024)
    def read(text: str) -> float:
        try:
            time = datetime.strptime(text, form)  # noqa: DTZ007 - without a zone, it is UTC
        except ValueError:
            raise MalformedLine("bad time") from None
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()

    return read


def _json_fields(text: str) -> EntryFields:
    """Return the names that a log_format in JSON gives to its variables."""
    quoted = re.sub(r"(:\s*)(\$\w+|\$\{\w+\})(?=\s*[,}])", r'\1"\2"', text)
    try:
        template = json.loads(quoted)
    except ValueError as exc:
        raise InvalidSetting(_OPTION, f"the format is no JSON object: {exc}") from None
    names: dict[str, tuple[str, ...]] = {}
    seconds = {}
    for name, value in template.items():
        group = _NGINX.get(value.strip("${}"), "") if isinstance(value, str) else ""
        if group == "s":
            seconds[name] = "s"
        elif group:
            names[group] = (*names.get(group, ()), name)
    return EntryFields(**names, seconds=seconds)
