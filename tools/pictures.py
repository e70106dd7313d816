"""Make the pictures of the docs again, in docs/images: all of them, or one kind.

    python tools/pictures.py                 all; minutes, most of them for the benchmark
    python tools/pictures.py pages           screenshots of the page, and the modules' structure
    python tools/pictures.py terminal        commands on a terminal, as SVG
    python tools/pictures.py benchmark       runs the benchmark of recording, then draws it
    python tools/pictures.py chart           draws the output that the last run has left

The pages and commands show the past of the demo; its times are of today.
"""
# ruff: noqa: INP001, T201

import argparse
import html
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "tools")]

import screenshots  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.text import Text  # noqa: E402

from support.commands import Terminal  # noqa: E402

IMAGES = ROOT / "docs" / "images"
#: Name of the picture -> the command on it, and its lines that are shown at most.
COMMANDS = {
    "terminal-series": ("redmeter series http_requests -p 1m", 12),
    "terminal-top": ("redmeter top http_request_seconds --by route --order p95 --last 2h", 10),
    "terminal-verdict": ("redmeter verdict", 14),
    "terminal-logs": ("redmeter logs shop.payment", 14),
}
#: Columns of the terminal.
COLUMNS = 100
#: Rich's picture of a terminal, without its font, which is on another host.
_TERMINAL = """\
<svg class="rich-terminal" viewBox="0 0 {terminal_width} {terminal_height}" \
xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" \
height="{terminal_height}"/></clipPath>
{lines}
</defs>
<rect fill="#161b22" width="{terminal_width}" height="{terminal_height}" rx="8"/>
<g transform="translate(9, 9)" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
#: The output of the benchmark that the chart shows, and the rows of it that are measured.
MEASURED = ROOT / "benchmarks" / "recording.txt"
_ROWS = ("counting", "observing")
_LINE = re.compile(r"(.+?)  +([\d.]+ (?:ns|us)) +([\d.]+ (?:ns|us)) +([\d.]+) ")


class Bar(NamedTuple):
    """One operation: its times with Redmeter and with the alternative, and their ratio."""

    operation: str
    ours: str
    other: str
    ratio: float


def terminal() -> None:
    """Run each command on a terminal, over the past of the demo, and draw it."""
    with screenshots.stored() as url, tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "COLORTERM": "truecolor",
            "PYTHONPATH": str(ROOT / "src"),
            "REDMETER_PREFIX": screenshots.PREFIX,
            "REDMETER_URL": url,
            "TERM": "xterm-256color",
        }
        for name, (command, lines) in COMMANDS.items():
            program = [sys.executable, "-m", *shlex.split(command)]
            shown = Terminal(program, COLUMNS, Path(folder), environment).finish().out
            (IMAGES / f"{name}.svg").write_text(screen(name, command, shown, lines), "utf-8")
            print(f"docs/images/{name}.svg")


def screen(name: str, command: str, shown: str, lines: int) -> str:
    """Return the picture of a command and the first lines that it has shown."""
    rows = shown.rstrip("\n").split("\n")
    rows = [*rows[:lines], "…"] if len(rows) > lines else rows
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(file=nowhere, record=True, width=COLUMNS, color_system="truecolor")
        console.print(Text.from_ansi("\n".join([f"\x1b[1m$ {command}\x1b[0m", *rows, ""])))
        return console.export_svg(title=command, code_format=_TERMINAL, unique_id=name)


def benchmark() -> None:
    """Measure, keep the output, and draw it."""
    done = subprocess.run(
        [sys.executable, "benchmarks/run.py", *_ROWS], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    if not [*bars(done.stdout)]:
        sys.exit(f"no rows in the output of benchmarks/run.py: {done.stdout}")
    MEASURED.write_text(done.stdout, encoding="utf-8")
    chart()


def chart() -> None:
    """Draw the output of the benchmark."""
    (IMAGES / "recording.svg").write_text(drawn(MEASURED.read_text("utf-8")), "utf-8")
    print("docs/images/recording.svg")


def bars(output: str) -> Iterator[Bar]:
    """Yield the rows that have a time on both sides."""
    for line in output.splitlines():
        if row := _LINE.match(line):
            yield Bar(row[1], row[2].replace("us", "µs"), row[3].replace("us", "µs"), float(row[4]))


def drawn(output: str) -> str:
    """Return a chart of the ratios in the output of a benchmark: a bar for each row."""
    rows = [*bars(output)]
    full, left, height = 420, 240, 30
    shapes = []
    for at, row in enumerate(rows):
        y = 40 + at * height
        shapes += [
            f'<text x="{left - 10}" y="{y + 14}" class="name">{html.escape(row.operation)}</text>',
            f'<rect x="{left}" y="{y}" width="{full}" height="20" class="other"/>',
            f'<rect x="{left}" y="{y}" width="{row.ratio * full:.0f}" height="20" class="ours"/>',
            f'<text x="{left + 6 + row.ratio * full:.0f}" y="{y + 14}">{row.ours}</text>',
            f'<text x="{left + full + 8}" y="{y + 14}">{row.other}</text>',
        ]
    tall = 56 + len(rows) * height
    inside = "\n".join(shapes)
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {tall}">
<title>Time per call with Redmeter, as a part of prometheus_client's</title>
<style>text{{font:13px sans-serif;fill:#1f2328}}.name{{text-anchor:end}}.paper{{fill:#fff}}
.ours{{fill:#0969da}}.other{{fill:#d8dee4}}.title{{font-weight:bold}}
@media(prefers-color-scheme:dark){{text{{fill:#e6edf3}}.paper{{fill:#161b22}}
.ours{{fill:#1f6feb}}.other{{fill:#373e47}}}}</style>
<rect width="760" height="{tall}" rx="8" class="paper"/>
<text x="{left}" y="24" class="title">Redmeter</text>
<text x="{left + full}" y="24" class="name">prometheus_client</text>
{inside}
</svg>
"""


def pages() -> None:
    """Take the screenshots, and draw the structure."""
    subprocess.run([sys.executable, ROOT / "tools" / "structure.py"], check=True)
    with screenshots.served() as address:
        screenshots.take(address, IMAGES, screenshots.README)


STEPS = {"pages": pages, "terminal": terminal, "benchmark": benchmark, "chart": chart}


def main(arguments: list[str]) -> int:
    """Run the steps; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("step", nargs="?", choices=STEPS, help="all of them, if none")
    step = parser.parse_args(arguments).step
    for make in [STEPS[step]] if step else (pages, terminal, benchmark):
        make()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
