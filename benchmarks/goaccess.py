"""`redmeter replay` of a gigabyte of log, compared with GoAccess: lines per second, and memory.

GoAccess is a log analyzer in C that keeps its counts in memory and writes one report; it comes from
Debian's package `goaccess`. Both programs run alone, one after the other, as a person starts them,
and read the real log again and again up to that size. Memory is the most that the process had
resident; ours is without the server's, whose store has the same size however often it is repeated.
"""

import re
import resource
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


def _run(command: list[str]) -> tuple[float, float, int]:
    """Run a program; return its seconds, those of processor time, and its most memory in bytes."""
    started, used, most = time.perf_counter(), _used(), 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        # Not ru_maxrss: that counts this process, as it was when it forked, too.
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            if found := re.search(r"VmHWM:\s+(\d+) kB", status.read_text()):
                most = int(found[1]) * 1024
            time.sleep(0.02)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return time.perf_counter() - started, _used() - used, most


def _used() -> float:
    """Return the processor seconds of all processes that this one has started and that ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


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
    columns = [statistics.median(column) for column in zip(*rounds, strict=True)]
    ours_took, ours_used, ours_held, took, used_by_it, held = columns
    what = f"replay of {copies * len(text) / 1e9:.2g} GB, compared with GoAccess"
    rates = [f"{lines / seconds:,.0f}" for seconds in (ours_took, took)]
    ratio = statistics.median(each[3] / each[0] for each in rounds)
    floor = f"processor time {ours_used:.1f} s, {used_by_it:.1f} s"
    yield Row(f"{what}: lines/s", rates[0], rates[1], ratio, "none", floor)
    sizes = [f"{size / 2**20:.0f} MiB" for size in (ours_held, held)]
    ratio = statistics.median(each[2] / each[5] for each in rounds)
    yield Row(f"{what}: memory", sizes[0], sizes[1], ratio, "none")


ROWS = {"goaccess": goaccess}
