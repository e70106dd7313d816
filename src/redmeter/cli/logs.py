"""logs: messages, the frequency of their patterns, and its changes."""

import contextlib
import difflib
import math
import shlex
import time
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.text import Text

from redmeter.analysis.comparing.changes import find_changes
from redmeter.cli import output
from redmeter.cli.app import (
    NOT_FOUND,
    AsJson,
    BestEffort,
    Prefix,
    Url,
    command,
    fail,
    fail_where_left_out,
    opened_store,
)
from redmeter.cli.selectors import Last, Since, Until, length_of, window_options
from redmeter.errors import InvalidSetting
from redmeter.queries.arguments import check_limit
from redmeter.reading.logs import recent as reading
from redmeter.reading.logs.window import LogQuery, LogWindow, log_window
from redmeter.results.logs import Change, Frequency, LogSource, Message
from redmeter.store import Store
from redmeter.store.query import run_query
from redmeter.stored.message import SEVERITY_OF_LEVEL, check_logger, severity_of

_HOW_TO_LOG = "redmeter.integrations.logging records what an application logs"
#: Messages that are shown by default.
_RECENT = 20
#: Loggers suggested for one that is not there.
_SUGGESTED = 5
#: What stands for a line break where a message has to be on one line.
_BREAK = " ⏎ "
#: Columns that a pattern, or a logger, has room in, if others can be left out for it: these.
_ROOM = 24
_DROPPED = ("LAST", "FIRST", "BEFORE", "SEVERITY", "LOGGER")

#: Titles of changed and of common patterns: without a window, and with one.
_TITLES = (
    ("changed since the hour before", "most common in the last hour"),
    ("first seen in the window", "most common in the window"),
)

_STYLES = {"critical": "bold red", "error": "red", "warning": "yellow"}
_KINDS = {"new": "green", "spiking": "bold red", "gone": "dim"}


@command(
    name="logs",
    epilog="Examples: redmeter logs · redmeter logs worker · redmeter logs worker -s error · "
    "redmeter logs --changes --json · redmeter logs --recent 50 · "
    "redmeter logs --since 30m --until 20m",
)
def logs(
    logger: Annotated[
        str | None, typer.Argument(help="Full name of a logger; default: all.")
    ] = None,
    severity: Annotated[
        str | None, typer.Option("--severity", "-s", help="Only this severity: error, warning, …")
    ] = None,
    recent: Annotated[
        int | None, typer.Option("--recent", "-r", help="Only this many of the newest messages.")
    ] = None,
    common: Annotated[
        bool, typer.Option("--common", "-c", help="Only the most common patterns.")
    ] = False,
    changes: Annotated[
        bool, typer.Option("--changes", help="Only patterns that are new, spiking or gone.")
    ] = False,
    since: Since = None,
    until: Until = None,
    last: Last = None,
    limit: Annotated[
        int, typer.Option("--limit", "-l", min=1, help="Number of patterns and changes.")
    ] = 10,
    best_effort: BestEffort = False,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Show logged messages: new, spiking, common and newest ones.

    Without a logger, an overview of all of them: changes since the previous hour, the most common
    patterns of the last hour, and the loggers. With a logger, its patterns and its newest messages,
    oldest first. The hours are the last 60 minutes and the 60 before; for messages not counted in
    5-minute intervals, the current clock hour and the previous one, in UTC. With a window, the
    messages in it, and its patterns with those first seen in it, compared with as long a time
    before; patterns are counted for two hours. Exits with 0 if nothing was logged.
    """
    sections = {"recent": recent is not None, "common": common, "changes": changes}
    if not any(sections.values()):
        sections = {"recent": logger is not None, "common": True, "changes": True}
    if recent is not None:
        check_limit(recent, reading.MAX_MESSAGES, "messages")
    if severity is not None:
        severity = _severity(severity)
    if logger is not None:
        logger = check_logger(logger)
    length = length_of(last, since, until)
    with opened_store(url, prefix, reading=True, best_effort=best_effort) as store:
        window = None
        if (last, since, until) != (None, None, None):
            now = store.clock.wall()
            limits = window_options(last, since, until, None, now)
            start = limits["since"] or 0.0 if length is None else now - length
            end = math.inf if limits["until"] is None else limits["until"]
            severities = () if severity is None else (severity,)
            most = max(limit, recent or _RECENT)
            window = LogQuery(start, end, logger, severities, limit=most)
        result = _Found(store, logger, severity, sections, recent or _RECENT, limit, window)
        if json:
            output.print_json(result.as_dict() | {"missing": store.skipped()})
        else:
            result.show()
        if not result.there:
            fail_where_left_out(store)
            output.note(_nothing(store, logger, severity))


def _place(one: Frequency) -> tuple[str, str, str]:
    return one.logger, one.severity, one.pattern


def _severity(text: str) -> str:
    """Read a severity: its name, in any case, or a level of logging."""
    if not text.strip():
        raise InvalidSetting("--severity", "give a name, e.g. error, or a level as in logging")
    return severity_of(int(text) if text.isascii() and text.isdigit() and len(text) < 5 else text)


class _Found:
    """The requested parts of the result."""

    def __init__(
        self,
        store: Store,
        logger: str | None,
        severity: str | None,
        asked: dict[str, bool],
        recent: int,
        limit: int,
        window: LogQuery | None = None,
    ) -> None:
        self._window: LogWindow | None = None
        self._one = logger is not None
        self._asked = asked
        self.recent: list[Message] = []
        self.common: list[Frequency] = []
        self.changes: list[Change] = []
        self.loggers: list[LogSource] = []
        self._more = {"common": 0, "changes": 0, "loggers": 0}
        #: Loggers and severities that there are, those whose messages were compared, and how many
        #: of these by clock hours.
        self._sources = self._compared = self._clock_hours = 0
        self._now = time.time()
        #: Whether there is anything, be it unchanged.
        self.there = False
        #: Whether an overview is asked for.
        self._overview = not self._one and asked["common"] and asked["changes"]

        if window is not None:
            self._read_window(store, window, recent, limit)
            return
        if asked["recent"]:
            self.recent = reading.read_recent(store, logger, severity=severity, limit=recent)[::-1]
        if asked["common"] or asked["changes"]:
            # Changes need the history of every pattern; otherwise only of those that are shown.
            known = None if asked["changes"] else limit
            read, self._now, self._sources, self._compared, self._clock_hours = (
                reading.read_frequencies(store, logger, severity=severity, known=known)
            )
            changes = find_changes(read, self._now) if asked["changes"] else []
            self._more |= {"common": len(read) - limit, "changes": len(changes) - limit}
            self.common = read[:limit] if asked["common"] else []
            self.changes = changes[:limit] if asked["changes"] else []
            self.there = bool(read)
        if self._overview:
            loggers = [s for s in reading.read_loggers(store) if severity in (None, s.severity)]
            self.loggers = loggers[:limit]
            self._more["loggers"] = len(loggers) - limit
        self.there |= bool(self.recent or self.loggers)

    def _read_window(self, store: Store, window: LogQuery, recent: int, limit: int) -> None:
        """Read the parts within a window."""
        view, read = run_query(store, lambda _: log_window(store.keys, window))
        self._window, self._now = read, view.now
        self._sources, self._compared = read.sources, read.compared
        self.there = bool(read.recent or read.frequent)
        self.recent = read.recent[:recent][::-1] if self._asked["recent"] else []
        self.common = read.frequent[:limit] if self._asked["common"] else []
        self.changes = read.changes[:limit] if self._asked["changes"] else []
        if self._overview:
            self.loggers = [one for one in read.loggers if one.last >= window.since - 1.0][:limit]

    def as_dict(self) -> dict[str, Any]:
        """Return the parts that were asked for, in types that JSON has."""
        made: dict[str, Any] = {}
        if self._window is not None:
            names = ("since", "until", "counted_since")
            made["window"] = {name: getattr(self._window, name) for name in names}
        if self._asked["changes"]:
            made["changes"] = [asdict(change) for change in self.changes]
        if self._asked["common"]:
            made["common"] = [asdict(f) for f in self.common]
        if self._overview:
            made["loggers"] = [asdict(s) for s in self.loggers]
        if self._asked["recent"]:
            made["recent"] = [asdict(m) for m in self.recent]
        if self._asked["common"] or self._asked["changes"]:
            made |= {"sources": self._sources, "compared": self._compared}
            made["clock_hours"] = self._clock_hours
        return made

    def show(self) -> None:
        """Print the parts: with titles on a terminal, else separated by empty lines."""
        windowed = self._window is not None
        parts = [
            (self.changes, _TITLES[windowed][0], self._show_changes),
            (self.common, _TITLES[windowed][1], self._show_common),
            (self.loggers, "loggers", self._show_loggers),
            (self.recent, "newest messages", self._show_recent),
        ]
        shown = [part for part in parts if part[0]]
        if self._asked["changes"] and not self.changes and self.there:
            output.note("nothing is new" if windowed else "nothing is new, spiking or gone")
        if self._window is not None and self._window.counted_since > self._window.since:
            counted = output.moment(self._window.counted_since)
            output.note(f"patterns are counted since {counted} UTC")
        for at, (_, title, show) in enumerate(shown):
            if at:
                output.line()
            if output.is_terminal() and len(shown) > 1:
                output.line(title)
            show()
        if self._compared < self._sources:
            output.note(
                f"compared: {self._compared:,} of {self._sources:,} loggers and severities, those "
                "that logged last; name a logger to compare it"
            )
        if any(not f.sliding for f in (*self.common, *self.changes)):
            output.note(
                f"compared by clock hours: {self._clock_hours:,} loggers and severities, not "
                "counted by five minutes yet or counted by another program"
            )

    def _show_changes(self) -> None:
        rows: list[list[output.Cell]] = []
        for change in self.changes:
            kind = Text(change.kind, style=_KINDS.get(change.kind, ""))
            first: output.Cell = kind if output.is_terminal() else change.kind
            rows.append([first, change.count, change.before, *self._source(change)])
        columns = ["CHANGE", "COUNT", "BEFORE", *self._source_columns()]
        _with_patterns(columns, rows, [(change, True) for change in self.changes])
        self._tell_more("changes")

    def _show_common(self) -> None:
        changed = {_place(change) for change in self.changes}
        rows: list[list[output.Cell]] = [
            [f.count, f.before, self._moment(f.first), self._moment(f.last), *self._source(f)]
            for f in self.common
        ]
        columns = ["COUNT", "BEFORE", "FIRST", "LAST", *self._source_columns()]
        sampled = [(f, self._one and _place(f) not in changed) for f in self.common]
        _with_patterns(columns, rows, sampled)
        self._tell_more("common")

    def _show_loggers(self) -> None:
        rows: list[list[output.Cell]] = [[s.severity, self._moment(s.last)] for s in self.loggers]
        columns, rows, _ = _fitting(["SEVERITY", "LAST"], rows)
        rows = [[s.logger, *row] for s, row in zip(self.loggers, rows, strict=True)]
        output.table(["LOGGER", *columns], rows, whole=range(1, 1 + len(columns)))
        self._tell_more("loggers")

    def _show_recent(self) -> None:
        if not output.is_terminal():
            rows = [
                [output.time_text(m.time), *self._source(m), _one_line(m.text)] for m in self.recent
            ]
            output.table(["TIME", *self._source_columns(), "MESSAGE"], rows)
            return
        for message in self.recent:
            first, *more = message.text.splitlines() or [""]
            when = "no time" if message.time is None else output.moment(message.time)
            style = _STYLES.get(message.severity, "")
            line = Text.assemble((f"{when:<19}", "dim"), "  ")
            line.append(output.safe(message.severity), style)
            line.append(f"  {output.safe(message.logger)}" if not self._one else "", "dim")
            line.append(f"  {_plain(first)}")
            output.line(line)
            for each in more:
                output.line(Text(f"    {_plain(each)}"))

    def _tell_more(self, part: str) -> None:
        if self._more[part] > 0:
            output.note(f"… ({self._more[part]:,} more; --limit shows them)")

    def _source_columns(self) -> list[str]:
        return ["SEVERITY"] if self._one else ["LOGGER", "SEVERITY"]

    def _source(self, found: Frequency | Message) -> list[str]:
        logger = found.logger
        if output.is_terminal():
            logger = _short(logger, output.width() // 4)
        return [found.severity] if self._one else [logger, found.severity]

    def _moment(self, moment: float | None) -> str:
        """Return a time: for people the time of day, or the day."""
        if moment is None or not output.is_terminal():
            return output.time_text(moment)
        with contextlib.suppress(ValueError, OverflowError, OSError):
            then, today = (datetime.fromtimestamp(t, UTC) for t in (moment, self._now))
            return then.strftime("%H:%M:%S" if then.date() == today.date() else "%Y-%m-%d")
        return str(moment)


def _with_patterns(
    columns: list[str], rows: list[list[output.Cell]], found: Iterable[tuple[Frequency, bool]]
) -> None:
    """Print a table whose last column has patterns, on a terminal in one or two lines each.

    Args:
        found: for each row its pattern's frequency, and whether to print the newest sample below
            the pattern if it differs.
    """
    columns, rows, room = _fitting(columns, rows)
    for row, (frequency, sampled) in zip(rows, found, strict=True):
        pattern = _one_line(frequency.pattern)
        if not output.is_terminal():
            row.append(pattern)
            continue
        text = Text(_short(pattern, 2 * room - room // 4))
        sample = _short(_plain(next(iter(frequency.sample.splitlines()), "")), room)
        if sampled and not pattern.startswith(sample.removesuffix("…")):
            text.append(f"\n{sample}", "dim")
        row.append(text)
    output.table([*columns, "PATTERN"], rows, whole=range(len(columns)))


def _fitting(
    columns: list[str], rows: list[list[output.Cell]]
) -> tuple[list[str], list[list[output.Cell]], int]:
    """Leave out columns on a narrow terminal, until one more has room; return how much it has."""
    while True:
        cells = [[column, *(row[at] for row in rows)] for at, column in enumerate(columns)]
        widths = [
            max(len(output.cell_text(cell)) for cell in column_cells) for column_cells in cells
        ]
        room = output.width() - sum(widths) - len(widths)
        droppable = [column for column in _DROPPED if column in columns]
        if not output.is_terminal() or room >= min(_ROOM, output.width() // 2) or not droppable:
            return columns, rows, max(room, 5)
        at = columns.index(droppable[0])
        columns = columns[:at] + columns[at + 1 :]
        rows = [row[:at] + row[at + 1 :] for row in rows]


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _plain(text: str) -> str:
    """Return a line of a message, inert."""
    return output.safe(text.expandtabs(4))


def _one_line(text: str) -> str:
    """Return a message on one line, inert."""
    return _plain(_BREAK.join(text.splitlines()))


def _nothing(store: Store, logger: str | None, severity: str | None) -> str:
    """Return that nothing is logged, which is good news; fail where a name is mistyped."""
    sources = reading.read_loggers(store)
    under = f" under {shlex.quote(logger)}" if logger is not None else ""
    matching = [source for source in sources if logger in (None, source.logger)]
    if logger is not None and not matching:
        names = list(dict.fromkeys(source.logger for source in sources))
        alike = [name for name in names if name.startswith(logger[:4])]
        alike = alike or difflib.get_close_matches(logger, names) or names
        fix = f"available: {_some(alike)}" if alike else _HOW_TO_LOG
        fail(f"nothing is logged{under}", NOT_FOUND, fix)
    if not matching:
        return f"nothing is logged yet; {_HOW_TO_LOG}"
    severities = [source.severity for source in matching]
    if severity is None or severity in severities:
        return f"nothing is logged{under} in this hour or the one before"
    text = f"nothing is logged{under} with the severity {severity}"
    available = f"available: {_some(severities)}"
    if severity not in SEVERITY_OF_LEVEL.values():
        fail(text, NOT_FOUND, available)
    return f"{text}; {available}"


def _some(names: Iterable[str]) -> str:
    return ", ".join(list(dict.fromkeys(names))[:_SUGGESTED])
