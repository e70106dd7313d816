"""What the commands print: a table for people, plain columns for pipes, JSON for programs.

Names come from whoever writes to the store: nothing in them may move the cursor, change colours or
be taken for markup, so what cannot be printed is shown as an escape.
"""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

_stdout = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
_stderr = Console(highlight=False, markup=False, emoji=False, soft_wrap=True, stderr=True)

#: A cell: text, or a number, which is set to the right.
Cell = str | int | float | Text


def is_terminal() -> bool:
    """Whether people are looking."""
    return sys.stdout.isatty()


def width() -> int:
    """Columns of the terminal."""
    return _stdout.width


def safe(text: str) -> str:
    """Return a text in which every character that cannot be printed is an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def line(text: str | Text = "") -> None:
    """Print a line."""
    _stdout.print(safe(text) if isinstance(text, str) else text)


def block(text: Text) -> None:
    """Print lines that are drawn already."""
    _stdout.print(text, no_wrap=True, overflow="crop", crop=False)


def note(text: str) -> None:
    """Print a line to standard error: for people, whoever reads the output."""
    _stderr.print(safe(text), style="dim" if _stderr.is_terminal else None)


def error(text: str) -> None:
    """Print an error."""
    _stderr.print(Text("error: ", style="bold red") + Text(safe(text)))


def as_json(value: Any) -> None:
    """Print a value as JSON, one document."""
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    print(json.dumps(value, ensure_ascii=plain, indent=2 if is_terminal() else None))  # noqa: T201


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Print rows: a table on a terminal, else tab-separated columns under a line of names."""
    if not is_terminal():
        print("\t".join(columns))  # noqa: T201
        for row in rows:
            print("\t".join(safe(str(cell)) for cell in row))  # noqa: T201
        return
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    lines = [list(row) for row in rows]
    for at, column in enumerate(columns):
        numbers = bool(lines) and all(isinstance(row[at], int | float) for row in lines)
        drawn.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in lines:
        drawn.add_row(*[cell if isinstance(cell, Text) else _shown(cell) for cell in row])
    _stdout.print(drawn)


def _shown(cell: str | float) -> str:
    return safe(cell) if isinstance(cell, str) else f"{cell:,}"


def progress(total: int | None, text: str) -> "Callable[[int], None]":
    """Show progress on a terminal. Returns what to call with how far it is; -1 ends it."""
    if not _stderr.is_terminal:
        return lambda _: None
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
    ]
    bar = Progress(*columns, TimeRemainingColumn(), console=_stderr, transient=True)
    task = bar.add_task(text, total=total)
    bar.start()

    def show(done: int) -> None:
        if done < 0:
            bar.stop()
        else:
            bar.update(task, completed=done)

    return show


def moment(start: float, precision: int = 1) -> str:
    """Return a time in UTC, as exact as a precision needs."""
    form = "%Y-%m-%d" if precision % 86400 == 0 else "%Y-%m-%d %H:%M"
    if precision % 60:
        form += ":%S"
    try:
        return datetime.fromtimestamp(start, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):
        return str(start)


def span(seconds: int) -> str:
    """Return a width in words: 300 is 5min."""
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds % unit == 0:
            return f"{seconds // unit}{name}"
    return f"{seconds}s"


def clear() -> None:
    """Empty the terminal."""
    _stdout.clear()
