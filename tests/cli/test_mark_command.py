"""mark: noting and listing marks, and their signs above charts."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from redmeter import Mark, Meter
from redmeter.cli import chart, marks
from redmeter.results import Series
from support.commands import Done, Home, is_clean, plain

Run = Any


def test_a_mark_is_stored_when_the_command_returns(redmeter: Run, meter: Meter) -> None:
    """And said to be one already where it was noted just now."""
    assert redmeter("mark", "v1.4.2") == Done(0, "marked: v1.4.2\n", "")
    again = redmeter("mark", "v1.4.2")
    assert again == Done(0, "marked already, within 10 minutes: v1.4.2\n", "")
    (mark,) = meter.marks()
    assert mark.label == "v1.4.2"
    assert abs(mark.time - time.time()) < 60
    found = json.loads(redmeter("mark", "v1.5", "--json").out)
    assert (found["label"], found["new"]) == ("v1.5", True)
    assert json.loads(redmeter("mark", "v1.5", "--json").out)["new"] is False


def test_marks_are_listed_the_newest_first(redmeter: Run, meter: Meter) -> None:
    """As columns and as JSON."""
    for at, label in ((1_795_000_000.0, "old"), (1_795_100_000.5, "new one")):
        meter.mark(label, at=at)
    assert redmeter("mark", "--list").out == (
        "TIME (UTC)\tLABEL\n2026-11-19T14:53:20.500000Z\tnew one\n2026-11-18T11:06:40Z\told\n"
    )
    assert json.loads(redmeter("mark", "--list", "--json").out)["marks"] == [
        {"time": 1_795_100_000.5, "label": "new one"},
        {"time": 1_795_000_000.0, "label": "old"},
    ]


def test_no_marks_are_exit_code_1(redmeter: Run) -> None:
    """With a hint; in JSON an empty list."""
    done = redmeter("mark", "--list")
    assert (done.code, done.out) == (1, "")
    assert "redmeter mark LABEL sets one" in done.err
    assert json.loads(redmeter("mark", "--list", "--json").out)["marks"] == []
    assert redmeter("mark", "v1", "--list").code == 2


def test_without_a_label_the_release_is_noted(redmeter: Run, meter: Meter) -> None:
    """Which the environment says."""
    assert redmeter("mark", REDMETER_RELEASE="2026.11").out == "marked: 2026.11\n"


def test_without_a_label_git_is_asked(home: Home) -> None:
    """The tag, the commit, and whether something was changed; where there is none, an error."""
    done = home.run("mark")
    assert done.code == 2
    assert done.err.startswith("error: LABEL: git: fatal: not a git repository: give one")
    assert "give one, e.g. redmeter mark v1.4.2" in done.err
    for words in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty", "-m", "x"],
        ["tag", "v7"],
    ):
        subprocess.run(["git", *words], cwd=home.work, env=home.env, check=True)
    assert home.run("mark").out == "marked: v7\n"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("sleep 60", "git gave no answer within 0 s"),
        ("exit 3", "git failed"),
        ("true", "git describes nothing"),
        ("printf 'a\\033[2Jb' >&2; exit 1", "git: a\\x1b[2Jb"),
    ],
)
def test_a_git_that_fails_is_told_with_what_to_do(
    redmeter: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, told: str
) -> None:
    """It is not waited for long, and what it says cannot harm a terminal."""
    git = tmp_path / "git"
    git.write_text(f"#!/bin/sh\nexec 3>&1\n{script}\n")
    git.chmod(0o755)
    monkeypatch.setattr(marks, "_GIT_SECONDS", 0.2)
    done = redmeter("mark", PATH=f"{tmp_path}:/usr/bin:/bin")
    assert (done.code, done.err) == (
        *(2, f"error: LABEL: {told}: give one, e.g. redmeter mark v1.4.2\n"),
    )
    assert redmeter("mark", PATH="/nowhere").err.startswith("error: LABEL: there is no git: give")


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_a_mark_is_removed_by_its_label(
    redmeter: Run, meter: Meter, option: tuple[str, ...]
) -> None:
    """All marks of it, and no others."""
    now = time.time()
    for label, at in (("v1 x", now - 7200), ("v1 x", now), ("v1", now)):
        meter.mark(label, at=at)
    done = redmeter("mark", "--remove", " v1  x", *option)
    assert (done.code, done.err) == (0, "")
    told = '{"label": "v1 x", "removed": 2}\n' if option else "removed: v1 x (2 marks)\n"
    assert done.out == told
    assert [one.label for one in meter.marks()] == ["v1"]
    done = redmeter("mark", "--remove", "v1 x", *option)
    assert done.code == 1
    assert done.err == "error: there is no mark v1 x; redmeter mark --list lists all\n"
    assert redmeter("mark", "--remove").code == 2
    assert redmeter("mark", "--remove", "--list").code == 2


def test_a_mark_of_no_time_is_not_shown(
    redmeter: Run, screen: Run, meter: Meter, client: Any
) -> None:
    """Neither in a list nor above a chart."""
    client.zadd("redmeter:marks:", {"nan x": time.time(), "inf y": "inf"})
    meter.count("hits")
    meter.mark("v1")
    listed = json.loads(redmeter("mark", "--list", "--json").out)["marks"]
    assert [one["label"] for one in listed] == ["v1"]
    assert screen("series", "hits").code == 0


def test_a_label_of_nothing_is_refused(redmeter: Run) -> None:
    """Before anything is sent."""
    for label in ("\x1b\x07", "", " "):
        done = redmeter("mark", label, REDMETER_RELEASE="v1")
        assert (done.code, done.out) == (2, "")
        assert "a mark needs a label" in done.err


def test_marks_stand_above_the_charts_of_series(screen: Run, meter: Meter) -> None:
    """Of counters and gauges; a hostile label cannot harm the terminal."""
    now = time.time()
    meter.count("hits", at=now - 3000)
    meter.count("hits")
    meter.gauge("queue").set(3)
    meter.mark("v\x1b[31m2", at=now - 1500)
    shown = plain(screen("series", "hits").out)
    assert is_clean(shown)
    row, legend = [line for line in shown.splitlines() if "▼" in line]
    assert row.strip() == "▼"
    assert legend.startswith("▼ ")
    assert legend.endswith(" v2")
    assert "▼" not in plain(screen("series", "queue").out)


# --- The row and its legend ----------------------------------------------------------------


def lines(count: int, columns: int, *marks: Mark, precision: int = 60) -> list[str]:
    """Draw a series from 1970 on, with marks."""
    series = Series("hits", precision, 0, (1,) * count, partial=False)
    return chart.draw(series, columns, marks).plain.splitlines()


def test_a_mark_stands_above_the_column_of_its_time() -> None:
    """Those outside are left out; two of one column are one sign, and both are named."""
    drawn = lines(5, 80, Mark(60.0, "b"), Mark(0.0, "a"), Mark(119.9, "c"), Mark(299.0, "d"))
    assert drawn[0] == "   ▼▼  ▼"
    assert drawn[1] == "1 ┤█████"
    assert drawn[-1] == "▼ 1970-01-01 00:04 d · 00:01 c · 00:01 b · 00:00 a"
    assert "▼" not in "".join(lines(5, 80, Mark(-1.0, "x"), Mark(300.0, "y")))


def test_a_mark_stands_above_the_column_that_its_slice_is_added_to() -> None:
    """The oldest column may stand for fewer slices."""
    # 25 slices in 13 columns: the first of one, the others of two.
    for at in range(25):
        drawn = lines(25, 20, Mark(60.0 * at, "x"))
        assert "each column is 2 intervals" in drawn[-2]
        assert drawn[0].index("▼") - 3 == (at + 1) // 2


def test_a_legend_is_cut_where_it_says_so() -> None:
    """The newest are named; a single one that is too long ends with dots."""
    marks = [Mark(60.0 * n, f"version {n}") for n in range(20)]
    last = lines(30, 65, *marks)[-1]
    assert last == "▼ 1970-01-01 00:19 version 19 · 00:18 version 18 · … (18 more)"
    assert lines(30, 61, *marks)[-1] == "▼ 1970-01-01 00:19 version 19 · … (19 more)"
    long = lines(30, 40, Mark(0.0, "x" * 100))[-1]
    assert (len(long), long[-1]) == (40, "…")
    wide = lines(30, 40, Mark(0.0, "点" * 100))[-1]
    assert wide.endswith("…")
