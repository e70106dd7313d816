"""A series as columns of blocks, eight steps to a line.

A chart library was looked for; docs/design.md says why none is used.
"""

from collections.abc import Sequence

from rich.text import Text

from redmeter.cli import output
from redmeter.model import Series

_BLOCKS = " ▁▂▃▄▅▆▇█"
#: Lines that the columns take.
HEIGHT = 8
#: Columns that are drawn at least, however narrow the terminal.
_NARROWEST = 10


def draw(series: Series, columns: int) -> Text:
    """Draw a series.

    Args:
        series: with at least one sample.
        columns: width of the terminal; where there are more samples, neighbours are added up.

    Returns:
        HEIGHT lines of columns between an axis of counts and one of time (UTC). The running
        slice is dim.
    """
    sums, group = _fit(series.values, columns)
    top = max(sums)
    top_width = len(f"{top:,}")
    drawn = Text(no_wrap=True)
    for row in range(HEIGHT, 0, -1):
        label = f"{top:,}" if row == HEIGHT else "0" if row == 1 else ""
        drawn.append(f"{label:>{top_width}} ┤", style="dim")
        cells = "".join(_cell(value, top, row) for value in sums)
        finished = len(cells) - series.partial
        drawn.append(cells[:finished], style="cyan")
        drawn.append(cells[finished:] + "\n", style="dim cyan")
    drawn.append(" " * (top_width + 1) + "└" + "─" * len(sums) + "\n", style="dim")
    notes = [_axis(series, len(sums), columns - top_width - 2)]
    if group > 1:
        notes.append(f"each column is {group} slices")
    indents = (min(top_width + 2, columns - len(note)) for note in notes)
    lines = (" " * indent + note for indent, note in zip(indents, notes, strict=True))
    drawn.append("\n".join(lines), style="dim")
    return drawn


def _fit(values: Sequence[int], columns: int) -> tuple[list[int], int]:
    """Add up neighbours until what is drawn fits; return the columns and how many are in each."""
    group = 0
    while True:
        group += 1
        # From the newest backwards, so that only the oldest column may cover less.
        first = len(values) % group
        starts = range(first, len(values), group)
        sums = [sum(values[:first])] if first else []
        sums += [sum(values[at : at + group]) for at in starts]
        if len(sums) <= max(_NARROWEST, columns - len(f"{max(sums):,}") - 2):
            return sums, group


def _axis(series: Series, drawn: int, room: int) -> str:
    """Return where the columns begin and end, as long as there is room for it."""
    start = output.moment(series.start, series.precision)
    end = output.moment(series[-1].start, series.precision)
    if len(series) == 1:
        return end
    gap = drawn - len(start) - len(end)
    if gap > 1:
        return f"{start}{' ' * gap}{end}"
    day, _, time = end.partition(" ")
    forms = [f"{start} … {end}", f"{start} … {time}" if start.startswith(day) else "", f"{start} …"]
    return next((form for form in forms if form and len(form) <= room), start)


def _cell(value: int, top: int, row: int) -> str:
    """Return the block of one column in one line, 1 being the lowest."""
    if top <= 0:
        return " "
    steps = value * HEIGHT * 8 // top
    if value and not steps:
        steps = 1  # something is not nothing
    return _BLOCKS[max(0, min(8, steps - (row - 1) * 8))]


def bar(share: float, width: int = 20) -> Text:
    """Draw a part of a whole as a horizontal bar."""
    eighths = round(share * width * 8)
    full, rest = divmod(eighths, 8)
    return Text("█" * full + ("" if not rest else " ▏▎▍▌▋▊▉"[rest]), style="cyan")
