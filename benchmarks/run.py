"""Measure against the listings of the book and prometheus_client, and print one table.

    python benchmarks/run.py [WORD …] [--server valkey-9.1]
    REDMETER_BENCH_SMOKE=1 python benchmarks/run.py         each row once, at tiny sizes

Each row is our figure, the other side's from the same run on the same private server, their ratio,
what it is meant to be, and the floor: what the same exchange costs when it does nothing. The two
sides take turns, and a ratio is the median of the turns', so that it holds when the machine's
speed drifts. WORDs choose rows by a part of their name. Exits with 1 and names the rows if ratios
miss their targets, except in the smoke run.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

sys.path[:0] = [str(Path(__file__).parents[1] / "tests"), str(Path(__file__).parent)]

import clustering  # noqa: E402
import dashboard  # noqa: E402
import exceptions  # noqa: E402
import forecasting  # noqa: E402
import goaccess  # noqa: E402
import measures  # noqa: E402
import messages  # noqa: E402
import migrate  # noqa: E402
import observing  # noqa: E402
import querying  # noqa: E402
import recording  # noqa: E402
import scraping  # noqa: E402
import status  # noqa: E402
import totals  # noqa: E402
import verdict  # noqa: E402
import web  # noqa: E402
import web_memory  # noqa: E402
import web_wsgi  # noqa: E402
from support.servers import Server  # noqa: E402
from table import SMOKE, Row, micro, milli, seconds, sized, turns  # noqa: E402

#: Counters of a cleaning pass, half of them stale, and series that are read.
CLEANED, READ = sized(3_000, 30), sized(1_000, 20)


def update(conn: redis.Redis, url: str) -> Iterator[Row]:
    """One synchronous update of a counter at seven precisions, acknowledged."""
    floor = f"PING {micro(seconds(conn.ping, 2_000))}"
    for name, ours in measures.updates(conn, url).items():
        mine, theirs, ratio = turns(ours, measures.listing_update(conn), rounds=25, calls=200)
        yield Row(f"one update, {name}", micro(mine), micro(theirs), ratio, "<= 0.7", floor)


def clean(conn: redis.Redis, url: str) -> Iterator[Row]:
    """A cleaning pass over 3,000 counters at seven precisions, half of them stale."""
    for samples, target in ((2, "<= 0.025"), (12, "<= 0.025"), (120, "none")):
        rounds = []
        waits: list[float] = []
        calls: list[float] = []
        for _ in range(sized(3, 1)):
            measures.fill_for_cleaning(conn, CLEANED, samples)
            mine = seconds(measures.our_pass(conn), 1)
            measures.fill_for_cleaning(conn, CLEANED, samples)
            with measures.pinging(url) as longest_wait, measures.slowest_call(conn) as longest_call:
                measures.our_pass(conn)()
            waits += longest_wait
            calls += longest_call
            measures.fill_for_cleaning(conn, CLEANED, samples)
            rounds.append((mine, seconds(measures.listing_pass(conn), 1)))
        mine, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
        ratio = statistics.median(a / b for a, b in rounds)
        with measures.pinging(url) as alone:
            time.sleep(3 * mine)
        floor = f"longest call {max(calls) * 1e3:.1f} ms, PING beside it {max(waits) * 1e3:.1f} ms"
        floor += f" (alone {max(alone) * 1e3:.1f} ms)"
        what = f"cleaning {CLEANED:,} x 7, {samples} samples each"
        yield Row(what, milli(mine), milli(theirs), ratio, target, floor)


def read(conn: redis.Redis, url: str) -> Iterator[Row]:
    """Read 1,000 series of 120 samples."""
    ours, theirs, floor = measures.readings(conn, url, READ)
    mine, other, ratio = turns(ours, theirs, rounds=7, calls=1)
    yield Row(
        f"reading {READ:,} series of 120 samples",
        milli(mine),
        milli(other),
        ratio,
        "<= 0.333",
        f"the replies alone {milli(seconds(floor, 3))}",
    )


def replay(conn: redis.Redis, url: str) -> Iterator[Row]:
    """Replay the real log, a line, against two updates a line."""
    if not measures.LOG.exists():
        print(f"left out: replay ({measures.LOG} is not there)", file=sys.stderr)
        return
    rounds = []
    for _ in range(sized(5, 1)):
        conn.flushall()
        lines, taken = measures.replay(url)
        rounds.append((taken / lines, 2 * seconds(measures.listing_update(conn), 1_000)))
    mine, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
    ratio = statistics.median(a / b for a, b in rounds)
    floor = f"parsing alone {micro(measures.parse_only())}"
    yield Row("replay of the real log, a line", micro(mine), micro(theirs), ratio, "<= 0.05", floor)


def memory(conn: redis.Redis, url: str) -> Iterator[Row]:
    """What a full counter takes."""
    ours, theirs = measures.memory_full(conn, url, sized(150, 3))
    yield Row(
        "memory, a full counter (7 x 120)",
        f"{ours:,.0f} B",
        f"{theirs:,.0f} B",
        ours / theirs,
        "<= 1.05",
    )
    ours, theirs = measures.memory_week(conn, url)
    what = "memory, after a week of writing"
    yield Row(what, f"{ours:,.0f} B", f"{theirs:,.0f} B", ours / theirs, "<= 1.05")


def importing(_conn: redis.Redis, _url: str) -> Iterator[Row]:
    """`from redmeter import Meter` against `import redis`."""

    def load(module: str) -> float:
        line = "from redmeter import Meter" if module == "redmeter" else f"import {module}"
        code = f"import time; t = time.perf_counter(); {line}; print(time.perf_counter() - t)"
        command = [sys.executable, "-c", code]
        return float(subprocess.run(command, check=True, stdout=-1).stdout)

    load("redmeter")  # compiles what is not
    rounds = [(load("redmeter"), load("redis")) for _ in range(sized(15, 1))]
    mine, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
    ratio = statistics.median(a / b for a, b in rounds)
    yield Row("import redmeter / import redis", milli(mine), milli(theirs), ratio, "<= 1.3")


ROWS = {
    "update": update,
    "clean": clean,
    "read": read,
    "replay": replay,
    "memory": memory,
    "import": importing,
    **recording.ROWS,
    **messages.ROWS,
    **exceptions.ROWS,
    **observing.ROWS,
    **scraping.ROWS,
    **web.ROWS,
    **web_wsgi.ROWS,
    **web_memory.ROWS,
    **totals.ROWS,
    **forecasting.ROWS,
    **goaccess.ROWS,
    **dashboard.ROWS,
    **querying.ROWS,
    **clustering.ROWS,
    **migrate.ROWS,
    **status.ROWS,
    **verdict.ROWS,
}


@contextmanager
def private_server(name: str) -> Iterator[tuple[redis.Redis, str]]:
    """Start a server of our own, on a unix socket."""
    with Server(name) as server:
        conn = redis.Redis(unix_socket_path=str(server.socket))
        python = sys.version.split()[0]
        print(f"{name} ({server.version}), Python {python}, redis-py {redis.__version__}")
        try:
            yield conn, server.unix_url
        finally:
            conn.close()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("words", nargs="*", help=f"rows to measure: {' '.join(ROWS)}")
    parser.add_argument("--server", default="valkey-9.1", help="as in tests/support/binaries.py")
    options = parser.parse_args()
    if SMOKE:
        print("a smoke run: its figures mean nothing")
    # What is started here imports compiled modules, as pip installs them: it has to keep them.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    missed: list[Row] = []
    line = "{:<38} {:>10} {:>14} {:>8} {:>9}   {}"
    with private_server(options.server) as (conn, url):
        print(line.format("", "ours", "other", "ratio", "target", "floor"))
        for name, measure in ROWS.items():
            if options.words and not any(word in name for word in options.words):
                continue
            conn.flushall()
            for row in measure(conn, url):
                ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
                print(
                    line.format(row.what, row.ours, row.other, ratio, row.target, row.floor),
                    flush=True,
                )
                if not SMOKE and row.is_missed():
                    missed.append(row)
    for row in missed:
        print(f"missed: {row.what}: {row.ratio:.3f}, target {row.target}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
