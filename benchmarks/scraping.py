"""What a scrape costs, compared with prometheus_client; and grand totals of histograms. For run.py.

Both sides export the same counters. Ours include reading the store and listing its series anew;
prometheus_client has its values in the memory of the process. Times are processor times of this
process; the server's are in the note.
"""

import random
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from filling import observed
from table import Row, milli, sized

if TYPE_CHECKING:
    import redis

    from redmeter.store import Store

#: Counters that are scraped.
COUNTERS = sized((1_000, 10_000), (10, 20))
#: Histograms of a flush, and values of each.
HISTOGRAMS, VALUES = sized(200, 3), 20


def scrapes(conn: "redis.Redis", url: str) -> Iterator[Row]:
    """Scrape counters; at each number of them in both formats."""
    from prometheus_client import CollectorRegistry, Counter, openmetrics
    from prometheus_client.exposition import generate_latest

    from redmeter.formats.exposition import Format
    from redmeter.reading.scrape import Scraper
    from redmeter.store import open as open_store
    from support.stores import store_all

    for number in COUNTERS:
        conn.flushall()
        store = open_store(url)
        assert store is not None
        registry = CollectorRegistry()
        counter = Counter("requests", "requests", ["route", "status"], registry=registry)
        now, chance = int(time.time()), random.Random(1)
        counts = {}
        for n in range(number):
            route, status, amount = f"/shop/part{n // 5}", f"{n % 5 + 1}xx", chance.randrange(10**6)
            counts[f'requests{{route="{route}",status="{status}"}}'] = {now: amount}
            counter.labels(route, status).inc(amount)
        store_all(store, counts)
        scraper = Scraper(store)
        scraper._exports._seconds = 0
        sides: dict[str, tuple[Format, Callable[[CollectorRegistry], object]]] = {
            "text": (Format(), generate_latest),
            "OpenMetrics": (Format(openmetrics=True), openmetrics.exposition.generate_latest),
        }
        for name, (form, generate) in sides.items():
            ours, other = partial(scraper.scrape, form), partial(generate, registry)
            assert ours().count(b"\n") > number
            rounds = [(_cpu(conn, ours), _cpu(conn, other)) for _ in range(sized(15, 1))]
            mine, theirs = (statistics.median(one[side][0] for one in rounds) for side in (0, 1))
            ratio = statistics.median(a[0] / b[0] for a, b in rounds if b[0])
            server = statistics.median(a[1] for a, _ in rounds)
            what = f"/metrics, {number:,} counters, {name}"
            yield Row(what, milli(mine), milli(theirs), ratio, "<= 0.1", f"server {milli(server)}")
        store.close()


def totals(conn: "redis.Redis", url: str) -> Iterator[Row]:
    """Write a flush of histograms with grand totals, and without."""
    from redmeter.format import histogram
    from redmeter.keys import Kept
    from redmeter.store import open as open_store
    from redmeter.types import Operations

    names = [f'took_seconds{{route="/{n}"}}' for n in range(HISTOGRAMS)]
    stores = [open_store(url, prefix=prefix) for prefix in ("with:", "without:")]

    def flush(store: "Store", second: int, *, with_totals: bool) -> Callable[[], object]:
        values = {name: {second: observed(VALUES, n + second)} for n, name in enumerate(names)}

        def build(kept: Kept) -> Operations:
            every = histogram.operations(store.keys, kept.histograms, values)
            return tuple(one for one in every if with_totals or one.code != "sums")

        return lambda: store.shard("").write(build)

    now = int(time.time())
    rounds = [
        [
            _cpu(conn, flush(store, second, with_totals=store is stores[0]))
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


def _cpu(conn: "redis.Redis", function: Callable[[], object]) -> tuple[float, float]:
    """Return the processor time of a call, of this process and of the server, seconds."""
    server, here = _server_cpu(conn), time.process_time()
    function()
    here = time.process_time() - here
    return here, _server_cpu(conn) - server


def _server_cpu(conn: "redis.Redis") -> float:
    found = conn.info("cpu")
    return float(found["used_cpu_user"]) + float(found["used_cpu_sys"])


ROWS = {"scrape": scrapes, "histogram totals": totals}
