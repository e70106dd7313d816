"""export: all finished intervals, in three formats; complete files or none."""

import csv
import io
import json
import os
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from redmeter import Meter
from support.servers import Server

Run = Any


@pytest.fixture
def start(server: Server) -> int:
    """Store series of all kinds; return the start of the minute that most are in."""
    now = int(time.time()) // 60 * 60 - 600
    with Meter(server.url, sync=True) as meter:
        for plan, amount in (("pro", 3), ('f"ree', 2)):
            meter.count("orders", amount, labels={"plan": plan}, at=now)
        meter.count("orders_failed", at=now)
        meter.count("orders", 7)  # in the running interval
        meter.gauge("queue").set(4.5, at=now + 60)
        for value in (0.0, 1.0, 3.0):
            meter.observe("took_seconds", value, at=now)
    return now


def rows_of(text: str) -> list[dict[str, str]]:
    """Return the rows of CSV with their columns' names."""
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_has_all_finished_intervals(redmeter: Run, start: int) -> None:
    """A row for each; counters have zeros, the running interval is left out."""
    done = redmeter("export", "--to", "-")
    assert done.code == 0
    rows = rows_of(done.out)
    assert {row["name"] for row in rows} == {"orders", "orders_failed", "queue", "took_seconds"}
    moment = time.strftime("%Y-%m-%dT%H:%M:00Z", time.gmtime(start))
    counts = {
        json.loads(row["labels"] or "{}").get("plan"): row["value"]
        for row in rows
        if (row["name"], row["time"]) == ("orders", moment)
    }
    assert counts == {"pro": "3", 'f"ree': "2"}
    assert sum(float(row["value"]) for row in rows if row["name"] == "orders") == 5
    (gauge,) = (row for row in rows if row["kind"] == "gauge")
    assert (gauge["value"], gauge["count"]) == ("4.5", "")
    (histogram,) = (row for row in rows if row["kind"] == "histogram")
    numbers = [histogram[name] for name in ("value", "count", "sum", "min", "max")]
    assert numbers == ["", "3", "4.0", "0.0", "3.0"]
    assert float(histogram["p50"]) == pytest.approx(1.0, rel=0.0218)


def test_json_lines_and_parquet_have_the_same_rows(
    redmeter: Run, start: int, tmp_path: Path
) -> None:
    """In the types of their formats."""
    from pyarrow import parquet

    for name in ("all.jsonl", "all.parquet"):
        assert redmeter("export", "--to", str(tmp_path / name)).code == 0
    lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    table = parquet.read_table(tmp_path / "all.parquet").to_pylist()
    assert len(table) == len(lines) > 20
    for row, line in zip(table, lines, strict=True):
        fields = {key: value for key, value in row.items() if value is not None}
        fields |= {"time": int(row["time"].timestamp()), "labels": dict(row["labels"])}
        assert fields == line
    assert {path.name for path in tmp_path.iterdir()} == {"all.jsonl", "all.parquet"}


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["orders"], {"orders"}),
        (["orders*"], {"orders", "orders_failed"}),
        (["--label", "plan=pro"], {"orders"}),
        (["--kind", "gauge", "--kind", "histogram"], {"queue", "took_seconds"}),
        (["-p", "5m", "--kind", "counter"], {"orders", "orders_failed"}),
        (["-p", "5m"], {"orders", "orders_failed", "queue"}),  # histograms have no 5 minutes
        (["*s", "--since", "1h"], {"orders", "took_seconds"}),
    ],
)
def test_names_labels_and_kinds_choose_series(
    redmeter: Run, start: int, options: list[str], names: set[str]
) -> None:
    """A name is all its label sets."""
    done = redmeter("export", *options)
    assert done.code == 0
    assert {row["name"] for row in rows_of(done.out)} == names


def test_a_window_chooses_intervals(redmeter: Run, start: int) -> None:
    """Those that overlap it."""
    done = redmeter(
        *("export", "orders_failed", "--format", "jsonl"),
        *("--since", str(start), "--until", str(start + 119)),
    )
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [(row["time"], row["value"]) for row in rows] == [(start, 1), (start + 60, 0)]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--to", "x.xls"], "csv, jsonl and parquet"),
        (["--format", "xls"], "csv, jsonl and parquet"),
        (["--format", "parquet"], "metrics.parquet"),
        (["--kind", "counters"], "counter, gauge, histogram"),
        (["--label", "plan"], "LABEL=VALUE"),
        (["--to", "/nowhere/x.csv"], "No such file"),
        (["-p", "7"], "7"),
    ],
)
def test_wrong_options_are_explained(
    redmeter: Run, start: int, options: list[str], text: str
) -> None:
    """And nothing is written."""
    done = redmeter("export", *options)
    assert done.code == 2
    assert text in done.err
    assert not done.out


def test_an_export_of_nothing_is_not_found(redmeter: Run, start: int, tmp_path: Path) -> None:
    """Exit code 1, as of other commands, and no file."""
    done = redmeter("export", "nothing*", "--to", str(tmp_path / "x.csv"))
    assert done.code == 1
    assert not list(tmp_path.iterdir())
    assert "redmeter names" in done.err


@pytest.mark.parametrize("number", [1, 2, 3, 9, 15])
def test_an_interrupted_export_leaves_no_file(
    server: Server, start: int, tmp_path: Path, number: int
) -> None:
    """By no signal, nor a part of it; an earlier file stays as it is."""
    code_of = {2: 130}
    path = tmp_path / "x.csv"
    path.write_text("before")
    code = (
        "import signal, sys, time; from redmeter.cli import export\n"
        # A shell starts jobs in the background with this one ignored.
        "signal.signal(signal.SIGQUIT, signal.SIG_DFL)\n"
        "def rows(*_):\n"
        "    yield []\n"
        "    print('begun', flush=True); time.sleep(60)\n"
        "export.export_rows = rows\n"
        "from redmeter.cli.app import run_command; sys.exit(run_command())"
    )
    command = [sys.executable, "-c", code, "export", "--to", str(path), "--url", server.url]
    with subprocess.Popen(command, stdout=-1, stderr=-1, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(number)
        assert process.wait(30) == code_of.get(number, -number)
    assert [one.name for one in tmp_path.iterdir()] == ["x.csv"]
    assert path.read_text() == "before"


def test_a_file_keeps_its_permissions_and_links_are_followed(
    redmeter: Run, start: int, tmp_path: Path
) -> None:
    """A new one has those of the umask; a file with a similar name is left alone."""
    path, other = tmp_path / "x.csv", tmp_path / "x.csv.part"
    path.write_text("before")
    path.chmod(0o604)
    other.write_text("someone else's")
    link = tmp_path / "link.csv"
    link.symlink_to("x.csv")
    assert redmeter("export", "--to", str(link)).code == 0
    assert link.is_symlink()
    assert path.read_text().startswith("time,kind,name")
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert other.read_text() == "someone else's"
    umask = os.umask(0o027)
    try:
        assert redmeter("export", "--to", str(tmp_path / "new.parquet")).code == 0
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "new.parquet").stat().st_mode) == 0o640
    assert {one.name for one in tmp_path.iterdir()} == {
        *("x.csv", "x.csv.part", "link.csv", "new.parquet")
    }


def test_without_nameless_files_one_has_a_random_name(
    redmeter: Run, start: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is gone after an error, and after SIGTERM."""
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]
    try:
        assert redmeter("export", "--to", str(tmp_path / "x.csv")).code == 0
        assert redmeter("export", "nothing*", "--to", str(tmp_path / "y.csv")).code == 1
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    finally:
        for number, handler in zip((signal.SIGTERM, signal.SIGHUP), before, strict=True):
            signal.signal(number, handler)
    assert [one.name for one in tmp_path.iterdir()] == ["x.csv"]


def test_devices_and_pipes_are_written_to_directly(
    redmeter: Run, start: int, tmp_path: Path
) -> None:
    """They stay what they are, and their errors are named."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        text = pool.submit(pipe.read_text)
        assert redmeter("export", "--to", str(pipe), "--format", "csv").code == 0
        assert {row["name"] for row in rows_of(text.result(30))} > {"orders"}
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    done = redmeter("export", "--to", "/dev/full", "--format", "csv")
    assert (done.code, "/dev/full: No space left on device" in done.err) == (2, True)
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)
    done = redmeter("export", "--to", str(pipe), "--format", "parquet")
    assert (done.code, "regular file" in done.err) == (2, True)
    done = redmeter("export", "--to", str(tmp_path), "--format", "csv")
    assert (done.code, "Is a directory" in done.err) == (2, True)


def test_large_counts_are_exact_in_every_format(
    redmeter: Run, server: Server, tmp_path: Path
) -> None:
    """A number above 2^53 is no float64."""
    from pyarrow import parquet

    large = 2**53 + 1
    with Meter(server.url, sync=True) as meter:
        meter.count("large", large, at=int(time.time()) // 60 * 60 - 60)
    for name in ("x.csv", "x.jsonl", "x.parquet"):
        assert (
            redmeter(
                "export", "large", "-p", "1m", "--last", "2", "--to", str(tmp_path / name)
            ).code
            == 0
        )
    assert [row["count"] for row in rows_of((tmp_path / "x.csv").read_text())] == [str(large)]
    (line,) = (tmp_path / "x.jsonl").read_text().splitlines()
    assert json.loads(line)["count"] == json.loads(line)["value"] == large
    assert parquet.read_table(tmp_path / "x.parquet")["count"].to_pylist() == [large]


def test_names_that_look_like_formulas_are_escaped_for_spreadsheets(
    redmeter: Run, server: Server, tmp_path: Path
) -> None:
    """With an option; other text is as it is."""
    at = int(time.time()) // 60 * 60 - 60
    with Meter(server.url, sync=True) as meter:
        for name in ("=cmd|' /C calc'!A0", "@x", "plain"):
            meter.count(name, at=at)
    names = {row["name"] for row in rows_of(redmeter("export", "--excel").out)}
    assert names == {"'=cmd|' /C calc'!A0", "'@x", "plain"}
    names = {row["name"] for row in rows_of(redmeter("export").out)}
    assert names == {"=cmd|' /C calc'!A0", "@x", "plain"}
    assert redmeter("export", "--excel", "--format", "jsonl").code == 2
