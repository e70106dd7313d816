"""A real Prometheus scrapes /metrics while load runs; its rate() and ours, compared with the truth.

    python benchmarks/prometheus.py [SECONDS]
    REDMETER_BENCH_SMOKE=1 python benchmarks/prometheus.py      for a few seconds

Needs the programs prometheus and promtool (Debian's package prometheus). Everything is on the
loopback interface, and ends by itself. Load is recorded by one Meter, which flushes once a second.
Meanwhile promtool checks the text of /metrics; what it prints is counted.
"""

import random
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx

sys.path[:0] = [str(Path(__file__).parents[1] / "tests"), str(Path(__file__).parent)]

from dashboard import _served  # noqa: E402
from redmeter import Meter  # noqa: E402
from support.servers import Server, free_port  # noqa: E402
from table import sized  # noqa: E402

#: How often Prometheus scrapes, the window and the step of queries, seconds.
SCRAPE, WINDOW, STEP = sized((5, 20, 5), (1, 4, 1))
#: How long the load runs, seconds, unless another number is given.
LENGTH = sized(240, 12)
#: Seconds between two rounds of the load.
TICK = 0.05


class Error(NamedTuple):
    """How far answers are from the truth, as parts of it."""

    mean: float
    sum: float

    def __str__(self) -> str:
        return f"{self.mean * 100:.2f} % | {self.sum * 100:+.1f} %"


def error_of(answers: dict[int, float], times: Sequence[float], steps: range, window: int) -> Error:
    """Return the error of rates.

    Args:
        answers: Unix seconds -> rate.
        times: of the events, sorted.
        steps: Unix seconds.
    """
    truth = {
        at: (bisect_right(times, at) - bisect_right(times, at - window)) / window for at in steps
    }
    whole = sum(truth.values()) or 1.0
    apart = sum(abs(answers.get(at, 0.0) - rate) for at, rate in truth.items())
    return Error(apart / whole, sum(answers.get(at, 0.0) for at in steps) / whole - 1)


def expected(name: str, age: float, length: float) -> float:
    """Return the events per second of a series at a time after the start."""
    if name == "steady":
        return 5.0
    if name == "bursts":
        return 20.0 if age % 60 < 8 else 0.0
    if name == "rare":
        return 1 / 40
    return 1.0 if age > length / 2 else 0.0


def load(meter: Meter, length: float, address: str) -> tuple[dict[str, list[float]], int, int]:
    """Record events for a time.

    Returns:
        The times of the events; how often promtool checked /metrics, and how often it complained.
    """
    rng, begun, checked = random.Random(1), time.time(), time.time()
    times: dict[str, list[float]] = {name: [] for name in ("steady", "bursts", "rare", "new")}
    checks = complaints = 0
    while (now := time.time()) < begun + length:
        for name, own in times.items():
            if rng.random() < expected(name, now - begun, length) * TICK:
                meter.count(f"events_{name}")
                own.append(now)
        meter.observe("took_seconds", rng.lognormvariate(-3, 1), labels={"route": "/"})
        meter.gauge("queue_length").set(rng.random())
        if now > checked + 10:
            checked, checks = now, checks + 1
            text = httpx.get(f"{address}metrics").content
            done = subprocess.run(
                ["promtool", "check", "metrics"], input=text, capture_output=True, check=False
            )
            complaints += bool(done.returncode or done.stdout or done.stderr)
            if done.stdout or done.stderr:
                print(done.stdout.decode(), done.stderr.decode(), file=sys.stderr)
        time.sleep(max(0.0, TICK - (time.time() - now)))
    return times, checks, complaints


def scraped(address: str, query: str, steps: range) -> dict[int, float]:
    """Return Prometheus' answer: Unix seconds -> value."""
    window: dict[str, str | int] = {
        "query": query,
        "start": steps[0],
        "end": steps[-1],
        "step": steps.step,
    }
    answer = httpx.get(f"{address}/api/v1/query_range", params=window, timeout=10)
    result: Any = answer.json()["data"]["result"]
    return {int(at): float(value) for at, value in result[0]["values"]} if result else {}


def until_scraped(address: str) -> None:
    """Wait until Prometheus answers and has scraped its target once."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with suppress(httpx.TransportError):
            answer = httpx.get(f"{address}/api/v1/query", params={"query": "up"}, timeout=10)
            if answer.is_success and answer.json()["data"]["result"]:
                return
        time.sleep(0.2)
    raise RuntimeError("Prometheus scrapes nothing")


def main(arguments: list[str]) -> None:
    """Run the load, and print the table."""
    missing = [name for name in ("prometheus", "promtool") if shutil.which(name) is None]
    if missing:
        print(f"left out: {' and '.join(missing)} not found", file=sys.stderr)
        return
    length = float(arguments[0]) if arguments else LENGTH
    with (
        Server("valkey-9.1") as server,
        _served(server.url) as page,
        tempfile.TemporaryDirectory() as home,
        Meter(server.url, flush_interval=1) as meter,
    ):
        target = urllib.parse.urlsplit(page).netloc
        config = Path(home) / "prometheus.yml"
        config.write_text(
            f"global: {{scrape_interval: {SCRAPE}s}}\n"
            f"scrape_configs: [{{job_name: r, static_configs: [{{targets: ['{target}']}}]}}]\n"
        )
        listen = f"127.0.0.1:{free_port()}"
        command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={home}/data"]
        command += [f"--web.listen-address={listen}", "--log.level=error"]
        with subprocess.Popen(command) as prometheus:
            try:
                until_scraped(f"http://{listen}")
                times, checks, complaints = load(meter, length, page)
                meter.flush()
                time.sleep(3)
                end = int(time.time()) - 5
                end -= end % STEP
                begin = int(times["steady"][0]) + WINDOW + SCRAPE
                steps = range(begin - begin % STEP, end - 2 * SCRAPE, STEP)
                print(f"promtool check metrics: {checks} times, {complaints} complaints")
                print("| series | Redmeter | sum | Prometheus | sum |\n|---|---|---|---|---|")
                for name, own in times.items():
                    query = f"rate(events_{name}_total[{WINDOW}s])"
                    found = meter.query(query, since=steps[0], until=steps[-1], step=STEP)
                    ours = {
                        int(sample.time): float(sample.value)  # type: ignore[arg-type]
                        for one in found.series
                        for sample in one.samples
                    }
                    theirs = scraped(f"http://{listen}", query, steps)
                    errors = [error_of(one, own, steps, WINDOW) for one in (ours, theirs)]
                    print(f"| {name} | {errors[0]} | {errors[1]} |")
            finally:
                prometheus.terminate()


if __name__ == "__main__":
    main(sys.argv[1:])
