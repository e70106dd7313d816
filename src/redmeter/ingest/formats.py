"""Formats of access logs: a table, name -> how its lines are read.

A reader is made for each log and gets its lines in order, so it may remember some: a line of a W3C
log names the columns of those that follow. The first line decides which reader a log has.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol

from redmeter.ingest import access_log
from redmeter.ingest.access_log import Hit, MalformedLine, hit_of


class LineReader(Protocol):
    """Reads the lines of one log."""

    def parse_hit(self, line: str) -> Hit | None:
        """Read one line; None if it is about the log, and no request.

        Raises:
            MalformedLine: it is neither.
        """

    def parse_hit_time(self, line: str) -> float | None:
        """Read the time of one line alone, Unix seconds, at a lower cost.

        Raises as parse_hit() does. A line that has a time may be malformed otherwise.
        """


_W3C_DIRECTIVES = ("#Software:", "#Version:", "#Date:", "#Fields:")
#: Column -> key of a JSON line, which has the same values.
_W3C_KEYS = {
    "cs-method": "method",
    "cs-uri-stem": "path",
    "cs-uri": "path",
    "sc-status": "status",
    "sc-bytes": "size",
}


def _is_w3c(line: str) -> bool:
    return line.removeprefix("\ufeff").startswith(_W3C_DIRECTIVES)


class W3CReader:
    """Reads a W3C extended log, of IIS and CloudFront: a line `#Fields: date time …` names columns.

    Times are UTC. Columns are separated by spaces or tabs; in values, servers write + or %20 for
    them. Not handled: quoted values with spaces. Source: https://www.w3.org/TR/WD-logfile.html.
    """

    def __init__(self) -> None:
        self._columns: list[str] = []
        self._date = ""  # of the lines that follow, if there is no such column

    def parse_hit(self, line: str) -> Hit | None:
        """Read one line: a directive, or the values of a request."""
        values = line.split()
        if line.removeprefix("\ufeff").startswith("#"):
            if line.startswith("#Fields:"):
                self._columns = values[1:]
            elif line.startswith("#Date:"):
                self._date = "".join(values[1:2])
            return None
        if len(values) != len(self._columns):
            raise MalformedLine("wrong columns" if values else "empty")
        named = {
            name: each for name, each in zip(self._columns, values, strict=True) if each != "-"
        }
        entry = {_W3C_KEYS[name]: named[name] for name in _W3C_KEYS.keys() & named}
        if "time" in named:
            entry["time"] = f"{named.get('date', self._date)}T{named['time']}"
        return hit_of(entry)

    def parse_hit_time(self, line: str) -> float | None:
        """Read the time of one line alone, Unix seconds."""
        hit = self.parse_hit(line)
        return None if hit is None else hit.time


class LogFormat(NamedTuple):
    """How a log is recognized and read."""

    #: Whether a log with this first line has the format.
    begins: Callable[[str], bool]
    #: Makes the reader of one log.
    reader: Callable[[], LineReader]


#: Name -> format. A log has the first one that its first line begins.
FORMATS: Final[Mapping[str, LogFormat]] = {
    "w3c": LogFormat(_is_w3c, W3CReader),
    "access log": LogFormat(lambda _: True, lambda: access_log),
}


def with_reader(source: Iterable[list[str]]) -> Iterator[tuple[LineReader, list[str]]]:
    """Yield the batches of lines of one log, each with the reader of its lines."""
    reader: LineReader | None = None
    for batch in source:
        if reader is None and (first := next(filter(str.strip, batch), "")):
            reader = next(each.reader() for each in FORMATS.values() if each.begins(first))
        yield reader or access_log, batch
