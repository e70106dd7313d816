"""Formats of access logs: a table, name -> how its lines are read.

A reader is made for each log and gets its lines in order, so it may remember some: a line of a W3C
log names the columns of those that follow. The first line decides which reader a log has.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol

from redmeter.ingest import access_log, w3c
from redmeter.ingest.access_log import Hit


class Reader(Protocol):
    """Reads the lines of one log."""

    def parse(self, line: str) -> Hit | None:
        """Read one line; None if it is about the log, and no request.

        Raises:
            MalformedLine: it is neither.
        """

    def parse_time(self, line: str) -> float | None:
        """Read the time of one line alone, Unix seconds, at a lower cost. Raises as parse() does.

        A line that has one may be malformed otherwise.
        """


class Format(NamedTuple):
    """How a log is recognized and read."""

    #: Whether a log with this first line has the format.
    begins: Callable[[str], bool]
    #: Makes the reader of one log.
    reader: Callable[[], Reader]


#: Name -> format. A log has the first one that its first line begins.
FORMATS: Final[Mapping[str, Format]] = {
    "w3c": Format(w3c.begins, w3c.Reader),
    "access log": Format(lambda _: True, lambda: access_log),
}


def with_reader(source: Iterable[list[str]]) -> Iterator[tuple[Reader, list[str]]]:
    """Yield the batches of lines of one log, each with the reader of its lines."""
    reader: Reader | None = None
    for batch in source:
        if reader is None and (first := next(filter(str.strip, batch), "")):
            reader = next(each.reader() for each in FORMATS.values() if each.begins(first))
        yield reader or access_log, batch
