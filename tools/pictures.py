"""Make the pictures of the docs again, in docs/images: all of them, or one kind.

    python tools/pictures.py                 all; minutes, most of them for the benchmark
    python tools/pictures.py pages           screenshots of the page, and the modules' structure
    python tools/pictures.py terminal        commands on a terminal, as SVG
    python tools/pictures.py benchmark       runs the benchmark of recording, then draws it
    python tools/pictures.py draw            the drawings, with what the last benchmark has left

The pages and commands show the past of the demo; its times are of today.
"""
# ruff: noqa: INP001, T201

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "tools")]

import drawings  # noqa: E402
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
    if not [*drawings.bars(done.stdout)]:
        sys.exit(f"no rows in the output of benchmarks/run.py: {done.stdout}")
    MEASURED.write_text(done.stdout, encoding="utf-8")
    draw()


def drawn() -> dict[str, str]:
    """Return each drawing by its name."""
    return {
        "flow": drawings.flow(),
        "recording": drawings.ratios(MEASURED.read_text(encoding="utf-8")),
        "retention": drawings.retention(),
    }


def draw() -> None:
    """Write the drawings."""
    for name, text in drawn().items():
        (IMAGES / f"{name}.svg").write_text(text, encoding="utf-8")
        print(f"docs/images/{name}.svg")


def pages() -> None:
    """Take the screenshots, and draw the structure."""
    subprocess.run([sys.executable, ROOT / "tools" / "structure.py"], check=True)
    with screenshots.served() as address:
        screenshots.take(address, IMAGES, screenshots.README)


STEPS = {"pages": pages, "terminal": terminal, "benchmark": benchmark, "draw": draw}


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
