"""The log of Rails: a request's first and last line, with lines of other requests in between.

    Started GET "/items/9" for 192.0.2.10 at 2026-10-10 13:55:36 +0000
    Processing by ItemsController#show as HTML
    Completed 200 OK in 15ms (Views: 8.1ms | ActiveRecord: 2.3ms)

With the tag :request_id, each line has the request's id, which keeps them apart; without, those of
one process belong together. The path is in the first line, the status in the last one.

Bound: RUNNING requests that have no last line yet; the oldest is forgotten.
"""

import re
from typing import Final

from redmeter.ingest.access_log import (
    OTHER_FORMAT,
    Hit,
    MalformedLine,
    log_time,
    method_of,
    path_of,
)
from redmeter.ingest.entries import duration_of

#: Requests of which only the first line was read.
RUNNING: Final = 1000

_PREFIX = r"(?:\w,\s\[\S+\s(?P<process>\#\d+)\]\s+\w+\s--\s[^:]*:\s)?(?P<tag>(?:\[[\w.:-]+\]\s)*)"
_STARTED = re.compile(
    rf'^{_PREFIX}Started\ (?P<method>[A-Z]+)\ "(?P<path>[^"]*)"\ for\ \S+\ at\ '
    r"(?P<time>.{10,40})$",
    re.ASCII | re.VERBOSE,
)
_COMPLETED = re.compile(
    rf"^{_PREFIX}Completed\ (?P<status>[1-5]\d\d)\ .{{0,40}}?in\ (?P<ms>\d+(?:\.\d+)?)ms",
    re.ASCII | re.VERBOSE,
)
_BETWEEN = re.compile(
    rf"^{_PREFIX}\s*(?:Processing\ by|Parameters:|Render|Redirected\ to|Sent|↳|$)|^[DIWEF],\ \[",
    re.ASCII | re.VERBOSE,
)


class RailsReader:
    """Reads the log of one Rails application."""

    def __init__(self) -> None:
        self._started: dict[tuple[str | None, str], tuple[str, str, float]] = {}

    def parse_hit(self, line: str) -> Hit | None:
        """Read one line; only the last one of a request is a hit, at the time of the first.

        Raises:
            MalformedLine: it is not of Rails, or of a request whose first line is missing.
        """
        line = line[:8192].rstrip("\r\n")
        if match := _COMPLETED.match(line):
            begun = self._started.pop((match["process"], match["tag"]), None)
            if begun is None:
                raise MalformedLine("no request")
            method, path, time = begun
            return Hit(
                time, method, path, int(match["status"]), None, duration_of(match["ms"], "ms")
            )
        if match := _STARTED.match(line):
            if len(self._started) >= RUNNING:
                del self._started[next(iter(self._started))]
            begun = method_of(match["method"]), path_of(match["path"]), log_time(match["time"])
            self._started[match["process"], match["tag"]] = begun
        elif not (self._started and _BETWEEN.match(line)):
            raise MalformedLine(OTHER_FORMAT)
        return None
