"""export: all finished intervals, in three formats; complete files or none."""

import csv
import io
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from redmeter import Meter
from support.servers import Server
from support.waiting import eventually

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


def test_an_interrupted_export_leaves_no_file(server: Server, start: int, tmp_path: Path) -> None:
    """Nor a part of it; an earlier file stays as it is."""
    path = tmp_path / "x.csv"
    path.write_text("before")
    code = (
        "import sys, time; from redmeter.cli import export\n"
        "def rows(*_):\n"
        "    yield []\n"
        "    print('begun', flush=True); time.sleep(60)\n"
        "export.export_rows = rows\n"
        "from redmeter.cli.app import run_command; sys.exit(run_command())"
    )
    command = [sys.executable, "-c", code, "export", "--to", str(path), "--url", server.url]
    with subprocess.Popen(command, stdout=-1, stderr=-1, cwd=tmp_path) as process:
        assert process.stdout is not None
        eventually(lambda: (tmp_path / "x.csv.part").exists())
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(2)
        assert process.wait(30) == 130
    assert [one.name for one in tmp_path.iterdir()] == ["x.csv"]
    assert path.read_text() == "before"
