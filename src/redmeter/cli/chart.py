"""A series as columns of blocks, eight steps to a line.

A chart library was looked for; docs/design.md says why none is used.
"""

from rich.text import Text

from redmeter.cli import output
from redmeter.model import Series

_BLOCKS = " ▁▂▃▄▅▆▇█"
#: Lines that the columns take.
HEIGHT = 8


def draw(series: Series, columns: int) -> Text:
    """Draw a series.

    Args:
        series: with at least one sample.
        columns: width of the terminal; where there are more samples, neighbours are added up.

    Returns:
        HEIGHT lines of columns between an axis of counts and one of time (UTC). The running
        slice is dim.
    """
    values = list(series.values)
    top_width = len(f"{max(values):,}")
    room = max(10, columns - top_width - 3)
    group = -(-len(values) // room)
    # Grouped from the newest backwards, so that only the oldest column may cover less.
    first = len(values) % group
    groups = ([values[:first]] if first else []) + [
        values[at : at + group] for at in range(first, len(values), group)
    ]
    sums = [sum(some) for some in groups]
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
    start = output.moment(series.start, series.precision)
    end = output.moment(series.start + (len(values) - 1) * series.precision, series.precision)
    gap = len(sums) - len(start) - len(end)
    axis = (
        f"{start}{' ' * gap}{end}" if gap > 1 else end if len(values) == 1 else f"{start} … {end}"
    )
    drawn.append(" " * (top_width + 2) + axis, style="dim")
    if group > 1:
        note = f"\n{' ' * (top_width + 2)}a column is {group} slices"
        drawn.append(note, style="dim")
    return drawn


def _cell(value: int, top: int, row: int) -> str:
    """Return the block of one column in one line, 1 being the lowest."""
    if top == 0:
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
