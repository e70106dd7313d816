"""Draws a series as columns of blocks, eight steps per line; in ASCII if blocks are unavailable."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from redmeter.cli import output
from redmeter.results.series import Series
from redmeter.results.summaries import Bucket
from redmeter.stored.exponential_histogram import Distribution, upper_edge
from redmeter.types import Mark

V = TypeVar("V")

_BLOCKS = " ▁▂▃▄▅▆▇█"
#: Lines that the columns take.
HEIGHT = 8
#: Columns that are drawn at least, however narrow the terminal.
_NARROWEST = 10


def draw(series: Series[int], columns: int, marks: Sequence[Mark] = ()) -> Text:
    """Draw a counter's series.

    Args:
        series: with at least one sample.
        columns: width of the terminal; if there are more samples, neighbors are summed.
        marks: shown above the columns, if they are within the time range.

    Returns:
        HEIGHT lines of columns between an axis of counts and one of time (UTC). The running
        interval is dim.
    """
    sums, group = _fit(series.values, columns)
    top = max(sums)
    steps = [_steps(value, top) for value in sums]
    return _frame(series, steps, (f"{top:,}", "0"), group, columns, marks)


def draw_gauge(
    series: Series[float | None],
    columns: int,
    marks: Sequence[Mark] = (),
    *,
    write: Callable[[float], str] = output.number_text,
    highest: bool = False,
) -> Text:
    """Draw a gauge's series, from 0 or the lowest value below it to 0 or the highest above it.

    A gap is empty; whatever was measured is at least a line.

    Args:
        series: with at least one sample.
        columns: width of the terminal; if there are more samples, one column shows several of them:
            the last or the highest.
        marks: see draw().
        write: writes the values at the axis.
        highest: the highest of neighbours stands for them, instead of the last.
    """
    values = [value for value in series.values if value is not None]
    low, high = min(0.0, *values), max(0.0, *values)
    labels = write(high), write(low)
    room = max(_NARROWEST, columns - max(map(len, labels)) - 2)
    group = -(-len(series) // room)
    one_of = _highest if highest else _last
    drawn = [one_of(part) for part in _parts(series.values, group)]
    # Scaled before subtracting, since the difference of the largest numbers would be infinite.
    scale = max(high, -low) or 1.0
    span = high / scale - low / scale or 1.0
    steps = [
        0 if value is None else max(1, int((value / scale - low / scale) / span * HEIGHT * 8))
        for value in drawn
    ]
    return _frame(series, steps, labels, group, columns, marks)


def _frame(
    series: Series[int] | Series[float | None],
    steps: Sequence[int],
    labels: tuple[str, str],
    group: int,
    columns: int,
    marks: Sequence[Mark],
) -> Text:
    """Draw columns of so many steps, between the axes.

    Args:
        labels: of the highest and the lowest line.
        group: how many intervals a column stands for.
        columns: width of the terminal.
    """
    width = max(map(len, labels))
    blocks, side, corner, line = map(output.signs, (_BLOCKS, "┤", "└", "─"))
    drawn = Text(no_wrap=True)
    shown, row_of_marks = _marked(series, len(steps), group, marks)
    if shown:
        drawn.append(" " * (width + 2) + row_of_marks + "\n", style="yellow")
    for row in range(HEIGHT, 0, -1):
        label = labels[0] if row == HEIGHT else labels[1] if row == 1 else ""
        drawn.append(f"{label:>{width}} {side}", style="dim")
        cells = "".join(blocks[max(0, min(8, step - (row - 1) * 8))] for step in steps)
        finished = len(cells) - series.partial
        drawn.append(cells[:finished], style="cyan")
        drawn.append(cells[finished:] + "\n", style="dim cyan")
    drawn.append(" " * (width + 1) + corner + line * len(steps) + "\n", style="dim")
    notes = [_axis(series, len(steps), columns - width - 2)]
    if group > 1:
        notes.append(f"each column is {group} intervals")
    indents = (min(width + 2, columns - len(note)) for note in notes)
    lines = (" " * indent + note for indent, note in zip(indents, notes, strict=True))
    drawn.append("\n".join(lines), style="dim")
    if shown:
        drawn.append("\n" + _legend(shown, series.precision, columns), style="yellow")
    return drawn


def _marked(
    series: Series[int] | Series[float | None], drawn: int, group: int, marks: Sequence[Mark]
) -> tuple[list[Mark], str]:
    """Return the marks within a series, the oldest first, and a line with a sign for each."""
    line, shown, longer = [" "] * drawn, [], len(series) % group
    sign = output.signs("▼")
    for mark in sorted(marks, key=lambda mark: mark.time):
        at = int((mark.time - series.start) // series.precision)
        if 0 <= at < len(series):  # only the oldest column may stand for fewer intervals
            column = at // group if not longer else (at - longer) // group + 1
            line[column] = sign
            shown.append(mark)
    return shown, "".join(line).rstrip()


def _legend(marks: Sequence[Mark], precision: int, columns: int) -> str:
    """Name marks, the newest first, as many as there is room for; each day once."""
    texts, last = [], ""
    for mark in reversed(marks):
        day, _, time = output.moment(mark.time, min(precision, 60)).partition(" ")
        texts.append(f"{time if day == last else f'{day} {time}'} {output.safe(mark.label)}")
        last = day
    kept, sign, dot, dots = len(texts), *map(output.signs, ("▼ ", " · ", "…"))
    while True:
        cut = f"{dot}{dots} ({len(texts) - kept} more)" if kept < len(texts) else ""
        line = sign + dot.join(texts[:kept]) + cut
        if cell_len(line) <= columns:
            return line
        if kept == 1:
            return set_cell_size(line, max(1, columns - len(dots))).rstrip() + dots
        kept -= 1


def _fit(values: Sequence[int], columns: int) -> tuple[list[int], int]:
    """Sum neighbors until they fit; return the columns, and the number of samples in each."""
    group = 0
    while True:
        group += 1
        sums = [sum(part) for part in _parts(values, group)]
        if len(sums) <= max(_NARROWEST, columns - len(f"{max(sums):,}") - 2):
            return sums, group


def _parts(values: Sequence[V], group: int) -> list[Sequence[V]]:
    """Cut into parts of a length, from the newest backwards: only the oldest may be shorter."""
    first = len(values) % group
    parts = [values[:first]] if first else []
    return parts + [values[at : at + group] for at in range(first, len(values), group)]


def _highest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _last(values: Sequence[float | None]) -> float | None:
    return next((value for value in reversed(values) if value is not None), None)


def _axis(series: Series[int] | Series[float | None], drawn: int, room: int) -> str:
    """Return where the columns begin and end, as long as there is room for it."""
    start = output.moment(series.start, series.precision)
    end = output.moment(series[-1].start, series.precision)
    if len(series) == 1:
        return end
    gap = drawn - len(start) - len(end)
    if gap > 1:
        return f"{start}{' ' * gap}{end}"
    day, _, time = end.partition(" ")
    to = output.signs("…")
    forms = [f"{start} {to} {end}", f"{start} {to} {time}", f"{start} {to}"]
    if not start.startswith(day):
        del forms[1]
    return next((form for form in forms if len(form) <= room), start)


def _steps(value: int, top: int) -> int:
    """Return how many of HEIGHT * 8 steps high a count is."""
    if top <= 0:
        return 0
    return value * HEIGHT * 8 // top or int(value > 0)  # something is not nothing


def bar(share: float, width: int = 20) -> Text:
    """Draw a part of a whole as a horizontal bar."""
    eighths = round(share * width * 8)
    full, rest = divmod(eighths, 8)
    drawn = "█" * full + ("" if not rest else " ▏▎▍▌▋▊▉"[rest])
    return Text(output.signs(drawn), style="cyan")


def rows(
    buckets: Iterable[Bucket], write: Callable[[float], str], most: int = 20
) -> list[tuple[str, int]]:
    """Merge buckets into rows of equal width on a scale of powers of two, ascending.

    Args:
        buckets: those of a histogram with at least one value.
        most: how many rows, about; those between two others that are empty are among them.

    Returns:
        The edges of each row, and how many values are in it.
    """
    whole = Distribution.of_buckets(((one.low, one.high, one.count) for one in buckets), 0, 0)
    sides = [(whole.negative, True), (whole.positive, False)]
    width = 1
    while sum(_span(side, width) for side, _ in sides) > most:
        width *= 2
    result: list[tuple[str, int]] = []
    for side, negative in sides:
        lines = []
        for first in range(*_ends(side, width), width):
            count = sum(side.get(index, 0) for index in range(first, first + width))
            low, high = upper_edge(first - 1), upper_edge(first + width - 1)
            ends = (-high, -low) if negative else (low, high)
            lines.append((f" {output.signs('…')} ".join(map(write, ends)), count))
        result += lines[::-1] if negative else lines
        if negative and whole.zeros:
            result.append((write(0.0), whole.zeros))
    return result


def _ends(buckets: Mapping[int, int], width: int) -> tuple[int, int]:
    """Return the first bucket of the lowest row and the first after the highest."""
    if not buckets:
        return 0, 0
    return min(buckets) // width * width, (max(buckets) // width + 1) * width


def _span(buckets: Mapping[int, int], width: int) -> int:
    first, end = _ends(buckets, width)
    return (end - first) // width
