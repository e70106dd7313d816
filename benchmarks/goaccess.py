"""`redmeter replay` of a gigabyte of log, compared with GoAccess: lines per second, and memory.

GoAccess is a log analyzer in C that keeps its counts in memory and writes one report; it comes from
Debian's package `goaccess`. Both programs run alone, one after the other, as a person starts them,
and read the real log again and again up to that size. Memory is the most that the process had
resident; ours is without the server's, whose store has the same size however often it is repeated.
"""

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import redis

import measures
from table import Row, sized

#: Bytes of the log, and rounds.
SIZE, ROUNDS = sized(1_000_000_000, 1_000_000), sized(3, 1)


def _run(command: list[str]) -> tuple[float, int]:
    """Run a program; return its seconds, and its most resident memory in bytes."""
    started, most = time.perf_counter(), 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        # Not ru_maxrss: that counts this process, as it was when it forked, too.
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            if found := re.search(r"VmHWM:\s+(\d+) kB", status.read_text()):
                most = int(found[1]) * 1024
            time.sleep(0.02)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return time.perf_counter() - started, most


def goaccess(conn: redis.Redis, url: str) -> Iterator[Row]:
    """Replay a gigabyte, and have GoAccess read it."""
    program = shutil.which("goaccess")
    if program is None or not measures.LOG.exists():
        missing = (
            f"{measures.LOG} is not there" if program else "apt-get install goaccess brings it"
        )
        print(f"left out: replay compared with GoAccess ({missing})", file=sys.stderr)
        return
    text = measures.LOG.read_bytes()
    rounds = []
    with tempfile.TemporaryDirectory(prefix="redmeter-bench-") as folder:
        log = Path(folder) / "access.log"
        copies = -(-SIZE // len(text))
        with log.open("wb") as to:
            for _ in range(copies):
                to.write(text)
        lines = copies * text.count(b"\n")
        redmeter = [sys.executable, "-m", "redmeter", "replay", str(log)]
        other = [program, "--log-format=COMBINED", "--no-progress"]
        report = str(Path(folder) / "report.json")
        for _ in range(ROUNDS):
            conn.flushall()
            ours = _run([*redmeter, "--shift-to-now", "--url", url])
            theirs = _run([*other, str(log), "-o", report])
            rounds.append((*ours, *theirs))
    mine, memory, its, its_memory = (statistics.median(each) for each in zip(*rounds, strict=True))
    what = f"replay of {copies * len(text) / 1e9:.2g} GB, compared with GoAccess"
    rate = statistics.median(b / a for a, _, b, _ in rounds)
    yield Row(f"{what}: lines/s", f"{lines / mine:,.0f}", f"{lines / its:,.0f}", rate, "none")
    held = statistics.median(b / d for _, b, _, d in rounds)
    ours_held, other_held = (f"{size / 2**20:.0f} MiB" for size in (memory, its_memory))
    yield Row(f"{what}: memory", ours_held, other_held, held, "none")


ROWS = {"goaccess": goaccess}
