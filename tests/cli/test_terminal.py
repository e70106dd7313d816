"""What people see: the commands on a terminal, a real one where that matters."""

import re
import time
from typing import Any

import pytest
from rich.cells import cell_len

from redmeter import Meter
from redmeter.stored.keys import slice_start
from support.commands import Home, Terminal, is_clean, plain

Run = Any

#: Columns of a narrow, a usual and a wide terminal.
WIDTHS = [40, 80, 160]

LONG = {"method": "GET", "route": "/a/rather/long/route/with/many/parts", "status": "2xx"}


@pytest.fixture
def counted(meter: Meter) -> Meter:
    """A store with names of all kinds."""
    now = time.time()
    for back in range(90):
        meter.count("hits", 900_000 + 1_000 * back, at=now - 3600 * back)
    meter.count("点击量", 1234)
    meter.count("[red]x[/red]", 5)
    meter.count("http_requests", 7, labels=LONG)
    return meter


def widest(out: str) -> int:
    """Return the cells of the longest line."""
    return max(map(cell_len, plain(out).splitlines()))


@pytest.mark.parametrize("columns", WIDTHS)
def test_tables_fit_their_terminal(screen: Run, counted: Meter, columns: int) -> None:
    """Names are folded where they must be, numbers never; no line is longer than the terminal."""
    for words in (["names"], ["top", "-p", "1d"], ["retention"], ["doctor"]):
        done = screen(*words, columns=columns)
        assert done.code == 0
        assert is_clean(plain(done.out))
        # The first line of doctor is the address, which one may want to copy.
        assert widest(done.out.partition("\n")[2]) <= columns
    rows = plain(screen("names", columns=columns).out).splitlines()
    assert any(row.rstrip().endswith(" 1,234") for row in rows)


def test_wide_characters_are_aligned(home: Home, counted: Meter) -> None:
    """The right edges of the numbers stand below each other, on a real terminal."""
    out = plain(home.terminal("names").finish().out)
    rows = [row for row in out.splitlines() if row.rstrip()[-1:].isdigit()]
    assert len(rows) == 4
    assert len({cell_len(row.rstrip()) for row in rows}) == 1
    assert any(row.startswith("点击量 ") for row in rows)
    assert any(row.startswith("[red]x[/red] ") for row in rows)


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_series_is_drawn_as_wide_as_the_terminal(
    screen: Run, counted: Meter, columns: int
) -> None:
    """Chart, axis and the newest samples; what is left out is told; the running slice is dim."""
    out = screen("series", "hits", "-p", "1h", columns=columns).out
    first, *lines = plain(out).splitlines()
    assert first.startswith("hits · every 1h · ")
    assert "in 90 intervals · newest 900,000 (running) · total " in first
    chart = [line for line in lines if "┤" in line or "└" in line]
    assert len(chart) == 9
    assert len({cell_len(line) for line in chart}) == 1
    assert max(map(cell_len, lines)) <= columns
    grouped = {40: "each column is 4 intervals", 80: "each column is 2 intervals", 160: None}[
        columns
    ]
    assert (grouped is None) == ("each column is" not in out)
    assert grouped is None or grouped in out
    assert "… (80 more)" in out
    last = time.strftime("%Y-%m-%d %H:00", time.gmtime(slice_start(time.time(), 3600)))
    assert any(re.fullmatch(rf"{last} +900,000 *", line) for line in lines)
    assert "\x1b[2;36m" in out


def test_several_series_are_drawn_one_below_the_other(screen: Run, counted: Meter) -> None:
    """A name that is not there is an error after those that are."""
    done = screen("series", "点击量", "[red]x[/red]", "nothing", "-p", "1d")
    out = plain(done.out)
    assert done.code == 1
    assert "点击量 · every 1d · 1,234 in 1 interval · newest 1,234 (running) · total 1,234" in out
    assert "[red]x[/red] · every 1d" in out
    assert out.index("error: nothing is stored under nothing") > out.index("[red]")
    assert "nothing · every" not in out


def test_a_ranking_prints_its_window(screen: Run, counted: Meter) -> None:
    """On a terminal, above the rows: how many slices of which width, and the ends if given."""
    assert screen("top", "-p", "1d").out.startswith("* · 60 intervals of 1d from 20")
    out = screen("top", "-p", "1d", "--since", "2001-01-01", "--until", "2100-01-01").out
    assert re.match(r"\* · 120 intervals of 1d from 20\d\d-\d\d-\d\d\n", out)
    assert "not since 2001-01-01" in screen("top", "-p", "1d", "--since", "2001-01-01").out


def test_a_ranking_has_bars_where_there_is_room(screen: Run, counted: Meter) -> None:
    """The highest takes the whole bar."""
    assert "█" * 20 in screen("top", "-p", "1d", columns=80).out
    assert "█" not in screen("top", "-p", "1d", columns=40).out


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_drawings_are_ascii_where_the_output_has_no_blocks(
    screen: Run, counted: Meter, encoding: str
) -> None:
    """Columns, axes, bars, marks and bands: as wide as with blocks, and without a single escape."""
    counted.mark("v" * 200, at=time.time() - 9_000)
    for second in range(200):
        counted.observe("seconds", second)
    for words in (
        ["series", "hits", "-p", "1h"],
        ["top", "-p", "1d"],
        ["summary", "seconds", "-p", "1h"],
        ["forecast", "hits", "-p", "1h"],
    ):
        done = screen(*words, encoding=encoding)
        assert done.code == 0
        assert not re.search(r"\\(u2[0-9a-f]{3}|x[0-9a-f]{2})", done.out), done.out
        blocks = plain(screen(*words).out).splitlines()
        lines = plain(done.out).splitlines()
        drawn = [at for at, line in enumerate(blocks) if re.search("[┤└█]", line)]
        assert drawn
        assert all(cell_len(lines[at]) >= cell_len(blocks[at].rstrip()) for at in drawn)
        assert max(cell_len(lines[at]) for at in drawn) <= 80
    out = plain(screen("series", "hits", "-p", "1h", encoding=encoding).out)
    assert re.search(r"^ *\d[\d,]* \|.*#", out, re.MULTILINE)
    assert re.search(r"^ +\+-+$", out, re.MULTILINE)
    assert re.search(r"^ +v$", out, re.MULTILINE)
    assert "#" * 20 in screen("top", "-p", "1d", encoding=encoding).out


def test_words_are_ascii_too_where_the_terminal_has_no_more(screen: Run, meter: Meter) -> None:
    """Titles, what is left out, units, errors; a name is an escape."""
    now = time.time()
    for back in range(90):
        meter.count("hits", at=now - 3600 * back)
    meter.observe("seen_seconds", 0.000_012)
    meter.count("点·", 3)

    def seen(*words: str) -> str:
        return plain(screen(*words, encoding="ascii").out)

    series = seen("series", "hits", "-p", "1h")
    assert "hits - every 1h - 90 in 90 intervals - newest 1" in series
    assert "... (80 more)" in series
    summary = seen("summary", "seen_seconds", "-p", "1h")
    assert " us" in summary
    missing = seen("names", "x" * 100 + "*")
    assert "... (41 more)" in missing
    assert "\\" not in series + summary + missing
    assert "\\u70b9- " in seen("names")


def test_no_color_and_a_dumb_terminal_get_none(screen: Run, counted: Meter) -> None:
    """NO_COLOR: no colours; TERM=dumb: no escape sequences at all."""
    for words in (["series", "hits", "-p", "1h"], ["top", "-p", "1d"], ["doctor"], ["names", "zz"]):
        coloured = screen(*words).out
        assert re.search(r"\x1b\[[\d;]*3[0-7]", coloured)
        out = screen(*words, NO_COLOR="1").out
        assert not re.search(r"\x1b\[[\d;]*(3[0-7]|9[0-7])", out)
        assert "\x1b" not in screen(*words, TERM="dumb").out


def test_json_on_a_terminal_is_indented(screen: Run, counted: Meter) -> None:
    """For people who look at it."""
    out = screen("retention", "--json").out
    assert out.startswith('{\n  "retention": {\n    "1": 120,\n')


def test_progress_is_shown_and_leaves_nothing_behind(
    home: Home, screen: Run, counted: Meter
) -> None:
    """A bar on the terminal while there is work; afterwards the report alone stands there."""
    log = home.work / "log"
    stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime())
    log.write_text(f'h - - [{stamp}] "GET / HTTP/1.1" 200 5\n' * 30_000)
    out = home.terminal("replay", "log", "--shift-to-now").finish().out
    assert "looking for the newest line" in out
    assert "replaying" in out
    assert "100%" in out
    last = out.rpartition("\x1b[2K")[2]
    assert plain(last).splitlines() == [
        "30,000 lines: 30,000 requests, 30,000 within the retention",
        "format: common",
        "next: redmeter series hits -p 1h · redmeter top http_requests --by route -p 1d",
    ]
    assert "\x1b" not in screen("replay", str(log), TERM="dumb").out
    assert "cleaning" in screen("clean").out


def test_watching_draws_again_until_ctrl_c(home: Home, counted: Meter) -> None:
    """What is counted meanwhile is there; Ctrl-C is the way to end it, so the exit code is 0."""
    terminal = home.terminal("series", "点击量", "-p", "1d", "--watch")
    terminal.until("newest 1,234 ")
    counted.count("点击量", 1)
    terminal.until("newest 1,235 ")
    terminal.interrupt()
    done = terminal.finish()
    assert done.code == 0
    assert "error" not in done.out
    assert "Traceback" not in done.out


def test_ctrl_c_elsewhere_is_exit_code_130(home: Home, server: Any) -> None:
    """One line, no traceback, and the cursor is back."""
    terminal: Terminal = home.terminal("replay", "-")
    terminal.until("replaying")
    terminal.interrupt()
    done = terminal.finish()
    assert done.code == 130
    assert plain(done.out).endswith("error: interrupted\n")
    assert done.out.count("\x1b[?25l") == done.out.count("\x1b[?25h")
    assert "Traceback" not in done.out


def test_the_state_of_each_finding_alone_is_coloured(screen: Run, counted: Meter) -> None:
    """The words of doctor stay readable on every background; long ones go on below themselves."""
    out = screen("doctor", columns=60).out
    assert "\x1b[32mok  \x1b[0m  server" in out
    assert "\x1b[33mwarn\x1b[0m  persistence" in out
    lines = plain(screen("doctor", columns=40).out).splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("warn  persistence"))
    assert lines[at + 1].startswith(" " * 19)
