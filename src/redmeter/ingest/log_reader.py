"""The reader of one log: recognizes its format, and reads its lines.

The format is that of the first lines that are requests. A log in which several are mixed, such as
the console of a container, is read line by line in each of them, at most MOST; which they are, and
how many requests each had, is reported. A format that has been recognized is tried first, so a log
of one format costs no more than that.

Lines can be wrapped: by Docker's and Kubernetes' drivers, by syslog, by a shipper that writes JSON.
The text within is read as a line of a log of its own, and has the wrapper's time if it has none.
"""

import contextlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from redmeter.ingest.access_log import (
    LINE_LIMIT,
    NEEDS_FOLLOW,
    OTHER_FORMAT,
    Hit,
    MalformedLine,
    log_time,
    parse_hit,
    parse_hit_time,
)
from redmeter.ingest.entries import Parse, json_object
from redmeter.ingest.formats import FORMATS, LogFormat

#: Formats of one log.
MOST: Final = 4
#: Requests of a log that are tried in the order of the table, before those of its formats only.
FIRST: Final = 20

#: Lines without a request that are tried in every format, before those only that may be one.
TRIES: Final = 200
#: Formats that are tried then, for the reason.
_GENERAL: Final = ("json", "common")
#: What each line has that is a request, is the last line of one, or names the columns of others.
_MAY_BE_REQUEST = re.compile(
    r"\b(?:GET|HEAD|POST|PUT|DELETE|PATCH|OPTIONS|CONNECT|TRACE)\b|Completed |^\ufeff?#"
)

#: Lines of servers about themselves, such as gunicorn's and uvicorn's.
_NOTICE = re.compile(
    r"\s*(?:\x1b\[\d+m)*(?:\[[\d-]{10} [\d:]{8} [+-]\d{4}\] \[\d+\] \[[A-Z]+\] "
    r"|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)(?:\x1b\[0m)?:\s)",
    re.ASCII,
)

#: Wrapper -> finds the line, and the time, in a wrapped one.
_WRAPPED: Final = {
    "kubernetes": re.compile(r"(?P<time>\d{4}-\S+) (?:stdout|stderr) [FP] (?P<line>.*)", re.DOTALL),
    "syslog": re.compile(
        r"(?:<\d+>(?:1 )?)?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|(?P<time>\d{4}-\d\d-\d\dT\S+))"
        r" \S+ [^\s:]+(?:\[\d+\])?(?::| \S+ \S+ (?:-|\[.*?\])) (?P<line>.*)",
        re.DOTALL | re.ASCII,
    ),
    "compose": re.compile(r"(?P<time>)[\w.-]+ +\| (?P<line>.*)", re.DOTALL | re.ASCII),
}
#: Names of the line and the time in JSON, of Docker, journald, Filebeat and CloudWatch.
_LINE_NAMES = ("log", "message", "MESSAGE", "textPayload", "msg")
_TIME_NAMES = ("time", "@timestamp", "timestamp", "__REALTIME_TIMESTAMP")


def _unwrapped(line: str) -> tuple[str, str, object]:
    """Return wrapper, line and time; no wrapper, if it is not wrapped."""
    if line.startswith("{"):
        entry = json_object(line)
        for name in _LINE_NAMES:
            if isinstance(entry.get(name), str):
                time = next((entry[each] for each in _TIME_NAMES if entry.get(each)), None)
                return "docker" if "stream" in entry else "json", entry[name], time
        return "", "", None
    for wrapper, expression in _WRAPPED.items():
        if match := expression.match(line, 0, LINE_LIMIT):
            return wrapper, match["line"], match["time"] or None
    return "", "", None


#: The name under which wrapped lines are read.
_IN_WRAPPER: Final = "wrapped"


def first_lines_first(source: Iterable[list[str]]) -> Iterator[list[str]]:
    """Split the first batch of a log, so that most of it can be read by the log's `main` reader."""
    batches = iter(source)
    for first in batches:
        yield first[: 2 * FIRST]
        yield first[2 * FIRST :]
        if first:
            break
    yield from batches


class LogReader:
    """Reads the lines of one log, in order.

    Args:
        formats: those that it may have, by name. If it is only one, lines in others are refused.
        now: returns the time of reading, Unix seconds, at which requests in a format without times
            count. None: they are refused.
        wrapped: whether the lines are those within other lines.

    Attributes:
        requests: format -> requests that parse_hit() has read.
    """

    def __init__(
        self,
        formats: Mapping[str, LogFormat] = FORMATS,
        now: Callable[[], float] | None = None,
        *,
        wrapped: bool = False,
    ) -> None:
        self.requests: Counter[str] = Counter()
        self._now = now
        self._readers: dict[str, Parse] = {name: row.reader() for name, row in formats.items()}
        self._marks = {name: row.mark for name, row in formats.items() if row.mark}
        one = len(formats) == 1
        #: The formats that the log has, in the order of the table: narrower ones are first.
        self._known = dict(self._readers) if one else {}
        self._first = 0 if one else FIRST
        self._untimed = False
        self._tries = TRIES
        self._inner: LogReader | None = None
        if not wrapped:
            self._inner = LogReader(formats, lambda: math.nan, wrapped=True)
            self._readers[_IN_WRAPPER] = self._parse_wrapped
        self._most = 1 if one else MOST

    @property
    def main(self) -> tuple[str, Parse] | None:
        """Name and reader of the one format that the log has; None if parse_hit() must read it.

        It is faster than parse_hit(); parse_refused() must then read each line that it refuses.
        """
        if self._first or len(self._known) != 1 or self._untimed or _IN_WRAPPER in self._known:
            return None
        return next(iter(self._known.items()))

    def parse_time(self, line: str) -> float | None:
        """Read the time of one line alone, Unix seconds.

        Raises:
            MalformedLine: see parse_hit().
        """
        hit = self.parse_hit(line)
        return None if hit is None else hit.time

    def parse_times(self, batch: list[str]) -> list[float]:
        """Read the times of those lines that have one, Unix seconds."""
        main = self.main
        fast = parse_hit_time if main and main[1] is parse_hit else self.parse_time
        if fast is parse_hit_time:
            with contextlib.suppress(MalformedLine):  # as long as all lines are requests
                return [parse_hit_time(line) for line in batch]
        times = []
        for line in batch:
            try:
                time = fast(line)
            except MalformedLine as refused:
                if fast is not parse_hit_time:
                    continue
                try:
                    hit = self.parse_refused(line, refused.reason)
                except MalformedLine:
                    continue
                time = None if hit is None else hit.time
            if time is not None:
                times.append(time)
        return times

    def parse_hit(self, line: str) -> Hit | None:
        """Read one line; None if it is about the log or the server, and no request.

        Raises:
            MalformedLine: it is neither.
        """
        reason = ""
        if not self._first:
            for name, parse in self._known.items():
                try:
                    return self._read(name, parse(line))
                except MalformedLine as error:
                    reason = reason or error.reason
        return self.parse_refused(line, reason)

    def parse_refused(self, line: str, reason: str) -> Hit | None:
        """Read a line that the formats of the log have refused for a reason.

        Raises:
            MalformedLine: see parse_hit().
        """
        return self._recognize(line, "" if reason == OTHER_FORMAT else reason)

    def _recognize(self, line: str, reason: str) -> Hit | None:
        """Read a line in any format that the log may have, and remember the format."""
        if " HTTP/" not in line and _NOTICE.match(line):
            return None
        about = False
        for name, parse in self._candidates(line, reason):
            mark = self._marks.get(name)
            if len(self._known) >= self._most and name not in (*self._known, _IN_WRAPPER):
                continue
            if mark and self._most > 1 and not mark.search(line, 0, LINE_LIMIT):
                continue
            try:
                hit = parse(line)
                if hit is None:  # the readers after this one may have to remember it, too
                    about = True
                    continue
                hit = self._read(name, hit)
            except MalformedLine as error:
                if error.reason == NEEDS_FOLLOW or (not reason and error.reason != OTHER_FORMAT):
                    reason = error.reason
                continue
            self._remember(name, parse)
            return hit
        if about:
            return None
        self._tries = max(0, self._tries - 1)
        raise MalformedLine(reason or OTHER_FORMAT)

    def _candidates(self, line: str, reason: str) -> Iterable[tuple[str, Parse]]:
        """Return the readers to try on a line that no known format reads."""
        if self._tries or _MAY_BE_REQUEST.search(line, 0, LINE_LIMIT):
            return self._readers.items()
        return [
            (name, self._readers[name]) for name in _GENERAL if name in self._readers and not reason
        ]

    def _remember(self, name: str, parse: Parse) -> None:
        self._first = max(0, self._first - 1)
        if parse not in self._known.values():
            known = {**self._known, name: parse}
            self._known = {each: known[each] for each in self._readers if each in known}

    def _read(self, name: str, hit: Hit | None) -> Hit | None:
        """Count a request, and give it a time if its format has none."""
        if hit is None:
            return None
        if hit.time != hit.time:  # NaN
            self._untimed = True
            if self._now is None:
                raise MalformedLine(NEEDS_FOLLOW)
            hit = hit._replace(time=self._now())
        if name != _IN_WRAPPER:
            self.requests[name] += 1
        return hit

    def _parse_wrapped(self, line: str) -> Hit | None:
        assert self._inner is not None, "only whole lines are unwrapped"
        wrapper, text, time = _unwrapped(line)
        if not wrapper:
            raise MalformedLine(OTHER_FORMAT)
        before = self._inner.requests.copy()
        hit = self._inner.parse_hit(text.rstrip("\r\n"))
        if hit is None:
            return None
        if hit.time != hit.time and time is not None:
            hit = hit._replace(time=log_time(time))
        (name,) = self._inner.requests - before
        self.requests[f"{name} in {wrapper}"] += 1
        return hit
