"""The output of commands: a table on a terminal, plain columns for pipes, JSON for programs.

Names are untrusted: they must not move the cursor, change colors or be read as markup, so
unprintable characters are shown as escapes.
"""

import codecs
import contextlib
import functools
import json
import logging
import sys
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, TextIO, TypeAlias

from redmeter.analysis.comparing.sentences import unit_of
from redmeter.cli.failure import Failure
from redmeter.stored.keys import span as span

if TYPE_CHECKING:  # loaded to draw, see _console()
    from rich.console import Console
    from rich.text import Text

    from redmeter.results.series import CoveredWindow

#: The signs that drawings are made of, and what stands for each where the output has no such signs.
_SIGNS = "▁▂▃▄▅▆▇█▏▎▍▌▋▊▉┤└─│░•◦▲▼·"
_ASCII = str.maketrans(_SIGNS, "..:-=+*#..:-=+*|+-|:o.^v-", "") | {ord("…"): "..."}
#: The same within words, a few of which most encodings have.
_IN_WORDS = {"·": "-", "…": "...", "⏎": "|", "µ": "u", "−": "-"}

#: Measured values: how many of the first unit make one of these, and its name; ascending.
_SECONDS = [(1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")]
#: Units for durations of two or more of them, seconds.
_LONG = [(60.0, "min"), (3600.0, "h"), (86400.0, "d")]
_BYTES = [(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"), (1e15, "PB")]
#: Writes a value for people.
ValueWriter = Callable[[float], str]

#: A cell: text, or a number, which is set to the right.
Cell: TypeAlias = "str | int | float | Text"
#: Seconds between two lines about a wait, where nobody sees a bar.
NOTED = 2.0


class Show(Protocol):
    """Called with how far something is, and of how much; None where nobody knows."""

    def __call__(self, done: int, total: int | None, /, waiting: str = "") -> None:
        """Show it, or a text about a wait."""


def _instead(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError), "only for writing"
    lacking = error.object[error.start : error.end]
    shown = (_IN_WORDS.get(c) or c.encode("ascii", "backslashreplace").decode() for c in lacking)
    return "".join(shown), error.end


codecs.register_error("redmeter", _instead)


def take_any(stream: TextIO) -> None:
    """Have a stream take any text: what its encoding lacks is an escape.

    For people our own signs are what comes near; a program may want to read a name that has one.
    """
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure:
        people = stream is sys.stderr or stream.isatty()
        reconfigure(errors="redmeter" if people else "backslashreplace")


@functools.cache
def _console(*, stderr: bool = False) -> "Console":
    """Return what draws on a terminal. Loading it takes longer than a short command runs."""
    from rich.console import Console

    class Screen(Console):
        def on_broken_pipe(self) -> None:
            """Raise the error that Rich is handling, where it would end the process: see app.py."""
            raise

    return Screen(highlight=False, markup=False, emoji=False, soft_wrap=True, stderr=stderr)


def is_terminal() -> bool:
    """Whether people are looking."""
    return sys.stdout.isatty()


def width() -> int:
    """Columns of the terminal."""
    return _console().width


def safe(text: str) -> str:
    """Return a text in which every character that cannot be printed is an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def line(text: "str | Text" = "") -> None:
    """Print a line."""
    if isinstance(text, str):
        print(safe(text), flush=True)  # noqa: T201
    else:
        _console().print(text)


def signs(text: str) -> str:
    """Return a text of drawing characters, in ASCII if the output's encoding lacks them."""
    try:
        _SIGNS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return text.translate(_ASCII)
    return text


def block(text: "Text") -> None:
    """Print lines that are drawn already."""
    _console().print(text, no_wrap=True, overflow="crop", crop=False)


def note(text: str) -> None:
    """Print a line for people to standard error."""
    if sys.stderr.isatty():
        _console(stderr=True).print(safe(text), style="dim")
    else:
        print(safe(text), file=sys.stderr)  # noqa: T201


def note_missing(windows: "Iterable[CoveredWindow | None]") -> None:
    """Print a line if a window was read only in part, with the precision that keeps all of it."""
    short = [one for one in windows if one is not None and one.requested is not None]
    if short:
        one = min(short, key=lambda one: one.requested or 0)
        fix = f": -p {span(one.reaching)} reaches back to the start" if one.reaching else ""
        since, requested = (
            moment(start, one.precision) for start in (one.since, one.requested or 0)
        )
        width = span(one.precision)
        note(f"intervals of {width} are kept since {since} UTC, not since {requested} UTC{fix}")


def window_text(window: "CoveredWindow") -> str:
    """Return what a window covers, e.g. "60 intervals of 1m from 2026-11-24 10:00"."""
    intervals = many(len(window.starts), "interval")
    text = f"{intervals} of {span(window.precision)} from {moment(window.since, window.precision)}"
    return text if window.running else f"{text} to {moment(window.until, window.precision)}"


def error(text: str, *, lines: bool = False) -> None:
    """Print an error.

    Args:
        lines: it quotes a log, so its lines stay lines. Elsewhere a line end is part of a name, and
            must not pretend to be ours.
    """
    shown = "\n".join(map(safe, text.split("\n"))) if lines else safe(text)
    if sys.stderr.isatty():
        from rich.text import Text

        _console(stderr=True).print(Text.assemble(("error: ", "bold red"), shown))
    else:
        print(f"error: {shown}", file=sys.stderr)  # noqa: T201


def log_warnings() -> None:
    """Show the library's warnings: for commands that run for as long as one lets them."""
    logger = logging.getLogger("redmeter")
    logger.setLevel(logging.WARNING)
    logger.addHandler(_Notes())


@contextlib.contextmanager
def left_out() -> Iterator[None]:
    """Show what readings had to leave out, see reading/foreign_keys.py; each of it once."""
    from redmeter.reading import foreign_keys  # loads the Redis client

    handler = _LeftOut()
    foreign_keys.logger.addHandler(handler)
    before = foreign_keys.logger.level
    foreign_keys.logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        foreign_keys.logger.setLevel(before)
        foreign_keys.logger.removeHandler(handler)


class _LeftOut(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self._told: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text not in self._told:
            self._told.add(text)
            note(f"warning: {text}")


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        note(f"{moment(record.created)} UTC {record.levelname.lower()}: {record.getMessage()}")
        if record.exc_info and record.levelno >= logging.ERROR:  # a fault of ours
            for text in "".join(traceback.format_exception(*record.exc_info)).splitlines():
                note(text)


class _Documents:
    """The JSON document of a command: printed as it ends, so that an error can be part of it."""

    #: Whether the command line has --json.
    requested = False
    pending: dict[str, Any] | None = None


def begin_output(*, json: bool) -> None:
    """Begin the output of a command.

    Args:
        json: the command line has --json, so that errors are JSON too.
    """
    _Documents.requested, _Documents.pending = json, None


def plain(value: Any) -> Any:
    """Return a value as JSON has it: named tuples and dataclasses are mappings."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif hasattr(value, "__dataclass_fields__"):
        value = {name: getattr(value, name) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def print_json(document: Mapping[str, Any], *, now: bool = False) -> None:
    """Print a JSON object as the output of a command.

    Args:
        now: at once, since others follow; else when the command ends, with its error if it fails.
    """
    if now:
        _print_json(document)
    else:
        _Documents.pending = dict(document)


def failed(failure: Failure) -> None:
    """Print an error, and make it the field `error` of the JSON."""
    error(failure.text(), lines=failure.lines)
    if _Documents.requested:
        _Documents.pending = (_Documents.pending or {}) | {"error": failure.as_dict()}


def finish() -> None:
    """Print the JSON object of a command, if there is one."""
    document, _Documents.pending = _Documents.pending, None
    if document is not None:
        _print_json(document)


def _print_json(value: Any) -> None:
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    indent = 2 if is_terminal() else None
    text = json.dumps(value, ensure_ascii=plain, allow_nan=False, indent=indent)
    if not text.isprintable():  # JSON itself lets pass what turns the direction of text around
        text = "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
    print(text, flush=True)  # noqa: T201


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    right: Collection[int] = (),
    whole: Collection[int] = (),
) -> None:
    """Print rows: a table on a terminal, else tab-separated columns under a line of names.

    Args:
        right: columns of texts that are set to the right, as those of numbers are.
        whole: columns whose cells stay on one line, as those of numbers do.
    """
    if not is_terminal():
        print("\t".join(columns))  # noqa: T201
        for row in rows:
            print("\t".join(safe(str(cell)) for cell in row))  # noqa: T201
        return
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, header_style="bold")
    lines = [list(row) for row in rows]
    for at, column in enumerate(columns):
        numbers = bool(lines) and all(isinstance(row[at], int | float) for row in lines)
        justify: Literal["left", "right"] = "right" if numbers or at in right else "left"
        if justify == "right" or at in whole:  # 1,0 above 00 would be two numbers
            drawn.add_column(column, justify=justify, no_wrap=True, overflow="ellipsis")
        else:
            drawn.add_column(column, justify=justify, overflow="fold")
    for row in lines:
        drawn.add_row(*[cell if isinstance(cell, Text) else cell_text(cell) for cell in row])
    _console().print(drawn)


def print_grid(rows: "Sequence[Sequence[Text]]") -> None:
    """Print columns without names; on a terminal a text that is too long goes on below itself."""
    if not is_terminal():
        widths = [max(cell.cell_len for cell in column) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = [c.plain + " " * (w - c.cell_len) for c, w in zip(row, widths, strict=True)]
            print("  ".join(cells).rstrip())  # noqa: T201
        return
    from rich.table import Table

    drawn = Table.grid(padding=(0, 2), pad_edge=False)
    for row in rows:
        drawn.add_row(*row)
    _console().print(drawn)


def cell_text(cell: Cell) -> str:
    """Return the text of a cell in a table on a terminal."""
    return f"{cell:,}" if isinstance(cell, int | float) else safe(str(cell))


def many(count: int, one: str, more: str = "") -> str:
    """Return a number and what there are so many of: 1 line, 2 lines."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def number_text(value: float) -> str:
    """Return a measured value for people: a whole number in full, else six digits of it."""
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:,.6g}"


def writer_for(name: str) -> ValueWriter:
    """Return what writes the values of a series, by the unit in its name: 12.3 ms, 4.5 MB, 12 %."""
    writers: Mapping[str, ValueWriter] = {
        "seconds": _seconds,
        "bytes": lambda value: _scaled(value, _BYTES),
        "ratio": lambda value: f"{_short(value * 100)} %",
    }
    return writers.get(unit_of(name), number_text)


def _seconds(value: float) -> str:
    for size, unit in reversed(_LONG):
        if abs(value) >= 2 * size:
            return f"{_short(value / size)} {unit}"
    return _scaled(value, _SECONDS)


def _scaled(value: float, units: Sequence[tuple[float, str]]) -> str:
    """Write three digits in the unit in which there are the fewest before the point."""
    if not value:
        return f"0 {units[-1][1] if units is _SECONDS else units[0][1]}"
    rounded = abs(float(f"{value:.3g}"))
    size, unit = next((u for u in reversed(units) if rounded >= u[0] * (1 - 1e-9)), units[0])
    return f"{_short(value / size)} {unit}"


def _short(value: float) -> str:
    """Write three digits, or all that stand before the point."""
    if 999.5 <= abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.3g}"


@contextlib.contextmanager
def progress(text: str) -> Iterator[Show]:
    """Show progress, on a terminal; elsewhere only lines about waits."""
    if not sys.stderr.isatty():
        noted = -NOTED

        def note_wait(_done: int, _total: int | None, /, waiting: str = "") -> None:
            nonlocal noted
            if waiting and time.monotonic() >= noted + NOTED:
                noted = time.monotonic()
                note(waiting)

        yield note_wait
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = [TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()]
    with Progress(
        *columns, TimeRemainingColumn(), console=_console(stderr=True), transient=True
    ) as bar:
        task = bar.add_task(text, total=None)

        def update(done: int, total: int | None, /, waiting: str = "") -> None:
            bar.update(task, completed=done, total=total, description=safe(waiting or text))

        yield update


def iso_time(time: float) -> str:
    """Return a time in ISO 8601, in UTC, to the second or microsecond: the form of pipes."""
    try:
        return datetime.fromtimestamp(time, UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return str(time)


def time_text(time: float | None, precision: int = 1, *, zone: bool = False) -> str:
    """Return a time on standard output: for people as exact as a precision needs, else in ISO 8601.

    Args:
        time: Unix seconds; None where there is none, which is "".
        zone: people read "UTC" behind it; columns have that in their names.
    """
    if time is None:
        return ""
    if not is_terminal():
        return iso_time(time)
    return moment(time, precision) + (" UTC" if zone else "")


def moment(start: float, precision: int = 1) -> str:
    """Return a time in UTC, as exact as a precision needs."""
    form = "%Y-%m-%d" if precision % 86400 == 0 else "%Y-%m-%d %H:%M"
    if precision % 60:
        form += ":%S"
    try:
        return datetime.fromtimestamp(start, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):
        return str(start)


def clear() -> None:
    """Empty the terminal."""
    _console().clear()
