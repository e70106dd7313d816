"""What scrapes cost, compared with prometheus_client; grand totals of histograms; exports.

Rows for run.py. Both sides of a scrape have the same counters, or the same histograms: ours with
two buckets for each power of two, prometheus_client's with its 15. Ours include reading the store
and listing its series; prometheus_client has its values in the memory of the process. Times are
processor times of this process; the server's are in the note.
"""

import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from filling import copy, fill, observed
from table import Row, milli, sized

if TYPE_CHECKING:
    import redis
    from prometheus_client import CollectorRegistry

    from redmeter.store import Store

#: Counters that are scraped.
COUNTERS = sized((1_000, 10_000), (10, 20))
#: Histograms of a flush, and values of each.
HISTOGRAMS, VALUES = sized(200, 3), 20
#: Histograms that are scraped.
SCRAPED = sized(1_000, 3)
#: Counters that are exported, few and many; minutes of each.
EXPORTED, MINUTES = sized((100, 10_000), (2, 4)), 120


def scrapes(conn: "redis.Redis", url: str) -> Iterator[Row]:
    """Scrape counters, at each number of them, and histograms."""
    from prometheus_client import CollectorRegistry, Counter, Histogram

    from support.stores import store_all

    for number in COUNTERS:
        registry = CollectorRegistry()
        counter = Counter("requests", "requests", ["route", "status"], registry=registry)
        now, chance = int(time.time()), random.Random(1)
        counts = {}
        for n in range(number):
            route, status, amount = f"/shop/part{n // 5}", f"{n % 5 + 1}xx", chance.randrange(10**6)
            counts[f'requests{{route="{route}",status="{status}"}}'] = {now: amount}
            counter.labels(route, status).inc(amount)
        with _emptied(conn, url) as store:
            store_all(store, counts)
            yield from _scraped(conn, store, registry, f"{number:,} counters")
    registry, now = CollectorRegistry(), int(time.time())
    timer = Histogram("took_seconds", "took", ["route"], registry=registry)
    for n in range(SCRAPED):
        for low, high, amount in observed(VALUES, n + now).buckets():
            for _ in range(amount):
                timer.labels(f"/{n}").observe((low + high) / 2)
    with _emptied(conn, url) as store:
        _observe(store, SCRAPED, now)
        yield from _scraped(conn, store, registry, f"{SCRAPED:,} histograms")


@contextmanager
def _emptied(conn: "redis.Redis", url: str) -> Iterator["Store"]:
    """Empty the server, and open its store."""
    from redmeter.store import open as open_store

    conn.flushall()
    store = open_store(url)
    assert store is not None, "the URL is not off"
    with closing(store):
        yield store


def _scraped(
    conn: "redis.Redis", store: "Store", registry: "CollectorRegistry", what: str
) -> Iterator[Row]:
    """Scrape a store and a registry in both formats."""
    from prometheus_client import openmetrics
    from prometheus_client.exposition import generate_latest

    from redmeter.export.exposition import Format
    from redmeter.reading.export.scrape import Scraper

    scraper = Scraper(store)
    scraper._exports._seconds = 0
    sides: dict[str, tuple[Format, Callable[[CollectorRegistry], object]]] = {
        "text": (Format(), generate_latest),
        "OpenMetrics": (Format(openmetrics=True), openmetrics.exposition.generate_latest),
    }
    for name, (form, generate) in sides.items():
        ours, other = partial(scraper.scrape, form), partial(generate, registry)
        rounds = [(_cpu(conn, ours), _cpu(conn, other)) for _ in range(sized(15, 1))]
        mine, theirs = (statistics.median(one[side][0] for one in rounds) for side in (0, 1))
        ratio = statistics.median(a[0] / b[0] for a, b in rounds if b[0])
        server = statistics.median(a[1] for a, _ in rounds)
        note = f"server {milli(server)}, {len(ours()) / 1e6:.2f} MB"
        target = "<= 0.1" if "counters" in what else "<= 0.5"
        yield Row(f"/metrics, {what}, {name}", milli(mine), milli(theirs), ratio, target, note)


def _observe(store: "Store", number: int, second: int, *, totals: bool = True) -> None:
    """Write a flush of histograms."""
    from redmeter.stored.histogram import histogram_operations
    from redmeter.stored.keys import Kept
    from redmeter.types import Operations

    values = {
        f'took_seconds{{route="/{n}"}}': {second: observed(VALUES, n + second)}
        for n in range(number)
    }

    def build(kept: Kept) -> Operations:
        every = histogram_operations(store.keys, kept.histograms, values)
        return tuple(one for one in every if totals or one.code != "sums")

    store.shard("").write(build)


def totals(conn: "redis.Redis", url: str) -> Iterator[Row]:
    """Write a flush of histograms with grand totals, and without."""
    from redmeter.store import open as open_store

    stores = [open_store(url, prefix=prefix) for prefix in ("with:", "without:")]
    now = int(time.time())
    rounds = [
        [
            _cpu(conn, partial(_observe, store, HISTOGRAMS, second, totals=store is stores[0]))
            for store in stores
            if store is not None
        ]
        for second in range(now - sized(100, 2), now)
    ]
    for side, what in enumerate(("this process", "server")):
        mine, other = (statistics.fmean(one[n][side] for one in rounds) for n in (0, 1))
        text = f"a flush of {HISTOGRAMS} histograms, totals, {what}"
        yield Row(text, milli(mine), milli(other), mine / other if other else None, "none")
    used = [int(conn.memory_usage(f"with:{key}:", samples=0) or 0) for key in ("sums", "spreads")]
    text = "memory, grand totals of a histogram"
    yield Row(text, f"{sum(used) / HISTOGRAMS:,.0f} B", "", None, "none")


def exports(conn: "redis.Redis", url: str) -> Iterator[Row]:
    """Export all minutes of counters as CSV: the largest resident memory of the process."""
    from redmeter.stored.keys import Kept

    with _emptied(conn, url) as store:
        part, kept, now = store.shard(""), Kept({60: MINUTES}, {}), int(time.time())
        fill(part, kept, "counter", ["few"], now)
        peaks = []
        for number in EXPORTED:
            names = [(part.keys, f"many{n}") for n in range(number)]
            copy(conn, part.keys, kept, "counter", "few", names)
            peaks.append((number * MINUTES, *_exported(url)))
    (few, _, least), (many, took, most) = peaks
    what = f"export of {many:,} rows, peak memory"
    other, note = f"{least / 1e6:.1f} MB", f"other: {few:,} rows; {took:.1f} s of CPU"
    yield Row(what, f"{most / 1e6:.1f} MB", other, most / least, "<= 1.2", note)


#: Runs a command, and prints its processor time and peak memory to its errors. `ru_maxrss` would be
#: that of the process that starts it, where that is larger.
_MEASURED = """
import atexit, re, runpy, sys, time
from pathlib import Path
def report():
    peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())
    print(time.process_time(), peak[1], file=sys.stderr)
atexit.register(report)
runpy.run_module("redmeter", run_name="__main__")
"""


def _exported(url: str) -> tuple[float, int]:
    """Export everything; return seconds of processor time, and the peak memory, bytes."""
    command = [sys.executable, "-c", _MEASURED, "export", "many*", "--url", url]
    done = subprocess.run(command, stdout=-3, stderr=-1, check=True, text=True)
    seconds, kilobytes = done.stderr.splitlines()[-1].split()
    return float(seconds), int(kilobytes) * 1024


def _cpu(conn: "redis.Redis", function: Callable[[], object]) -> tuple[float, float]:
    """Return the processor time of a call, of this process and of the server, seconds."""
    server, here = _server_cpu(conn), time.process_time()
    function()
    here = time.process_time() - here
    return here, _server_cpu(conn) - server


def _server_cpu(conn: "redis.Redis") -> float:
    found = conn.info("cpu")
    return float(found["used_cpu_user"]) + float(found["used_cpu_sys"])


ROWS = {"scrape": scrapes, "histogram totals": totals, "export": exports}
