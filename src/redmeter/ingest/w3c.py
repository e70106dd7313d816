"""W3C extended logs, of IIS and CloudFront: a line `#Fields: date time cs-method …` names columns.

Times are UTC. Columns are separated by spaces or tabs; in values, servers write + or %20 for them.
Not handled: quoted values with spaces.

Source: https://www.w3.org/TR/WD-logfile.html.
"""

from redmeter.ingest.access_log import Hit, MalformedLine, hit_of

_DIRECTIVES = ("#Software:", "#Version:", "#Date:", "#Fields:")
#: Column -> key of a JSON line, which has the same values.
_KEYS = {
    "cs-method": "method",
    "cs-uri-stem": "path",
    "cs-uri": "path",
    "sc-status": "status",
    "sc-bytes": "size",
}


def begins(line: str) -> bool:
    """Return whether a log with this first line is in the format."""
    return line.removeprefix("\ufeff").startswith(_DIRECTIVES)


class Reader:
    """Reads the lines of one log."""

    def __init__(self) -> None:
        self._columns: list[str] = []
        self._date = ""  # of the lines that follow, if there is no such column

    def parse(self, line: str) -> Hit | None:
        """Read one line; see formats.py."""
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
        entry = {_KEYS[name]: named[name] for name in _KEYS.keys() & named}
        if "time" in named:
            entry["time"] = f"{named.get('date', self._date)}T{named['time']}"
        return hit_of(entry)

    def parse_time(self, line: str) -> float | None:
        """Read the time of one line; see formats.py."""
        hit = self.parse(line)
        return None if hit is None else hit.time
