"""The drawings of the docs, as SVG in light and dark: tools/pictures.py writes them."""
# ruff: noqa: INP001

import html
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from redmeter.stored.keys import DEFAULT_HISTOGRAMS, DEFAULT_RETENTION, span

_STYLE = """\
text{font:13px sans-serif;fill:#1f2328}.paper{fill:#fff}.end{text-anchor:end}
.strong{font-weight:bold}.middle{text-anchor:middle}.ours{fill:#0969da}.other{fill:#d8dee4}
.box{fill:#f6f8fa;stroke:#57606a}.way{fill:none;stroke:#57606a;stroke-width:1.5}.faint{fill:#57606a;font-size:12px}.tip{fill:#57606a}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.paper{fill:#161b22}.ours{fill:#1f6feb}
.other{fill:#373e47}.box{fill:#0d1117;stroke:#9198a1}.way{stroke:#9198a1}.faint,.tip{fill:#9198a1}}"""
_WIDTH = 760
_LINE = re.compile(r"(.+?)  +([\d.]+ (?:ns|us)) +([\d.]+ (?:ns|us)) +([\d.]+) ")


class Bar(NamedTuple):
    """One operation: its times with Redmeter and with the alternative, and their ratio."""

    operation: str
    ours: str
    other: str
    ratio: float


def bars(output: str) -> Iterator[Bar]:
    """Yield the rows of a benchmark's output that have a time on both sides."""
    for line in output.splitlines():
        if row := _LINE.match(line):
            yield Bar(row[1], row[2].replace("us", "µs"), row[3].replace("us", "µs"), float(row[4]))


def ratios(output: str) -> str:
    """Return a chart of the ratios in the output of a benchmark: a bar for each row."""
    full, left, height = 420, 240, 30
    shapes = [
        _text(left, 24, "Redmeter", "strong"),
        _text(left + full, 24, "prometheus_client", "end"),
    ]
    rows = [*bars(output)]
    for at, row in enumerate(rows):
        y, wide = 40 + at * height, round(row.ratio * full)
        shapes += [
            _text(left - 10, y + 14, row.operation, "end"),
            _rect(left, y, full, 20, "other"),
            _rect(left, y, wide, 20, "ours"),
            _text(left + 6 + wide, y + 14, row.ours),
            _text(left + full + 8, y + 14, row.other),
        ]
    title = "Time per call with Redmeter, as a part of prometheus_client's"
    return _drawing(title, 56 + len(rows) * height, shapes)


def retention() -> str:
    """Return a chart of how far each precision reaches back by default, on a logarithmic axis."""
    left, full, height = 60, 540, 30
    first, last = math.log(60), math.log(365 * 86400)
    shapes = []
    y = 24
    for kind, kept in (
        ("Counters and gauges", DEFAULT_RETENTION),
        ("Histograms", DEFAULT_HISTOGRAMS),
    ):
        shapes.append(_text(left, y, kind, "strong"))
        y += 14
        for precision, samples in kept.items():
            reach = precision * samples
            wide = round((math.log(reach) - first) / (last - first) * full)
            shapes += [
                _text(left - 10, y + 14, span(precision), "end"),
                _rect(left, y, wide, 20, "ours"),
                _text(left + wide + 8, y + 14, f"{span(reach)}: {samples} intervals"),
            ]
            y += height
        y += height
    return _drawing("How far each precision reaches back", y - height + 6, shapes)


def flow() -> str:
    """Return a drawing of the way of an event: into memory, into Redis, and back to a reader."""
    columns = {
        "Your application": ("counter.inc(), observe()", "middleware, logging", "no network"),
        "Memory": ("events by series and second", "bounded; kept while Redis", "is unreachable"),
        "Redis or Valkey": (
            "one hash for each series",
            "and precision; patterns;",
            "exceptions; totals",
        ),
    }
    shapes = []
    for x, (name, lines) in zip((10, 275, 540), columns.items(), strict=True):
        shapes += [_rect(x, 20, 200, 100, "box"), _text(x + 100, 44, name, "middle strong")]
        shapes += [_text(x + 100, 66 + 18 * at, line, "middle") for at, line in enumerate(lines)]
    shapes += [_arrow(210, 70, 275, 70), _arrow(475, 70, 540, 70)]
    note = "once a second, a numbered batch, applied exactly once"
    shapes.append(_text(507, 14, note, "middle faint"))
    readers = ["Meter", "redmeter …", "the page", "PromQL, Grafana", "/metrics", "alerts"]
    shapes += [_arrow(640, 120, 640, 162), '<path class="way" d="M70,162H690"/>']
    for at, reader in enumerate(readers):
        x = 10 + at * 124
        shapes += [_arrow(x + 60, 162, x + 60, 190), _rect(x, 190, 120, 34, "box")]
        shapes.append(_text(x + 60, 212, reader, "middle"))
    return _drawing("From an event to its readers", 244, shapes)


def _drawing(title: str, height: int, shapes: list[str]) -> str:
    inside = "\n".join(shapes)
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}">
<title>{html.escape(title)}</title>
<style>{_STYLE}</style>
<rect width="{_WIDTH}" height="{height}" rx="8" class="paper"/>
{inside}
</svg>
"""


def _text(x: int, y: int, text: str, style: str = "") -> str:
    return f'<text x="{x}" y="{y}" class="{style}">{html.escape(text)}</text>'


def _rect(x: int, y: int, width: int, height: int, style: str) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" class="{style}"/>'


def _arrow(x: int, y: int, to_x: int, to_y: int) -> str:
    """Return a line to the right, or down, with a tip."""
    tip = f"M{to_x},{to_y}" + ("l-8,-4v8z" if y == to_y else "l-4,-8h8z")
    return f'<path class="way" d="M{x},{y}L{to_x},{to_y}"/><path class="tip" d="{tip}"/>'
