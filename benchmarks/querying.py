"""What PromQL queries cost, the reading of the store included. Rows for run.py."""

import http.client
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import urlencode, urlsplit

import numpy as np
import redis

from dashboard import _cpu, _opened, _served
from prometheus_server import PrometheusServer, found
from redmeter import Meter
from redmeter.promql.errors import Limits
from redmeter.promql.parser import parse_query
from redmeter.promql.semantics import SampledSeries
from redmeter.reading.export.listing import ExportList
from redmeter.reading.promql import query as promql
from redmeter.reading.promql.source import StoreSource
from table import Row, milli, seconds, sized, turns

#: Counters and histograms that are read, steps of 15 s, panels, and how often all are asked for.
COUNTERS, HISTOGRAMS, STEPS, PANELS = sized(100, 3), sized(20, 2), sized(241, 5), sized(20, 3)
ROUNDS = sized(5, 1)
RATE = "rate(bench_total[1m])"
HEAT_MAP = "sum by (le) (increase(bench_seconds_bucket[1m]))"
P95 = "histogram_quantile(0.95, sum by (le, route) (rate(bench_seconds_bucket[5m])))"


def _fill(url: str) -> float:
    """Record an hour of events; return its end."""
    now = time.time()
    with Meter(url) as meter:
        for ago in range(0, STEPS * 15 + 600, 15):
            for number in range(COUNTERS):
                amount = 1 + (ago // 15 + number) % 9
                meter.count("bench", amount, labels={"route": f"/{number}"}, at=now - ago)
            for number in range(HISTOGRAMS):
                value = 0.01 * (1 + number) * (1 + ago % 7)
                meter.observe("bench_seconds", value, labels={"route": f"/{number}"}, at=now - ago)
            if ago % 600 == 0:
                meter.flush()
        meter.flush()
    return now


def _range(end: float) -> tuple[float, float, float]:
    last = int(end - 3) // 15 * 15
    return last - (STEPS - 1) * 15.0, float(last), 15.0


def rates(conn: redis.Redis, url: str) -> Iterator[Row]:
    """Rates of counters at each step, by the evaluator, and by a real Prometheus with HTTP."""
    window = _range(_fill(url))
    with _opened(url) as store:
        exports = ExportList(store, seconds=3600)
        exports.read()
        matchers = parse_query(RATE.removeprefix("rate(").partition("[")[0]).matchers  # type: ignore[attr-defined]
        source = StoreSource(store, exports.read())
        limits = Limits()
        ours = _asking(exports, RATE, window)

        def read() -> object:
            return source.read(matchers, round(window[0] * 1000) - 60_000, limits)

        taken, reading, _ = turns(ours, read, rounds=ROUNDS, calls=3)
        before, began = _cpu(conn), time.process_time()
        seconds(ours, 5)
        calls = sized(5, 5)
        note = (
            f"reading alone {milli(reading)}, CPU {milli((time.process_time() - began) / calls)},"
            f" server {milli((_cpu(conn) - before) / calls)}"
        )
        what = f"rate of {COUNTERS} series, {STEPS} steps"
        if not found():
            yield Row(what, milli(taken), "", None, "none", note)
            return
        times = np.arange(window[0] - 60, window[1] + 1, 15, dtype=np.int64) * 1000
        rise = np.arange(len(times), dtype=np.float64)
        series = [
            SampledSeries(
                (("__name__", "bench_total"), ("route", f"/{number}")), times, (number + 1) * rise
            )
            for number in range(COUNTERS)
        ]
        asked = (round(window[0] * 1000), round(window[1] * 1000), 15_000)
        with PrometheusServer(series) as server:
            mine, other, ratio = turns(
                ours, lambda: server.range(RATE, *asked), rounds=ROUNDS, calls=3
            )
        yield Row(
            what, milli(mine), milli(other), ratio, "none", f"{note}; other: Prometheus, HTTP"
        )


def histograms(conn: redis.Redis, url: str) -> Iterator[Row]:
    """A heat map of classic buckets, and a p95 for each route at full resolution."""
    window = _range(_fill(url))
    with _opened(url) as store:
        exports = ExportList(store, seconds=3600)
        exports.read()
        for what, query in (("heat map", HEAT_MAP), ("p95 by route", P95)):
            ask = _asking(exports, query, window)
            ask()
            before, began = _cpu(conn), time.process_time()
            taken = statistics.median(seconds(ask, 1) for _ in range(ROUNDS))
            used = (time.process_time() - began) / ROUNDS
            note = f"CPU {milli(used)}, server {milli((_cpu(conn) - before) / ROUNDS)}"
            name = f"{what} of {HISTOGRAMS} histograms, {STEPS} steps"
            yield Row(name, milli(taken), "", None, "none", note)


def panels(_conn: redis.Redis, url: str) -> Iterator[Row]:
    """PANELS range queries at once by HTTP, while the page's overview is asked for."""
    start, end, step = _range(_fill(url))
    counters = 'sum(rate(bench_total{route=~"/%d.*"}[1m]))'
    p95 = 'histogram_quantile(0.95, sum by (le) (rate(bench_seconds_bucket{route="/%d"}[5m])))'
    queries = [(p95, counters)[number % 2] % number for number in range(PANELS)]
    paths = [
        "/api/v1/query_range?"
        + urlencode({"query": query, "start": start, "end": end, "step": step})
        for query in queries
    ]
    with _served(url) as address, ThreadPoolExecutor(PANELS) as pool:
        _get(address, paths[0])
        alone = [_watched(address) for _ in range(sized(10, 2))]
        taken, busy = [], []
        for _ in range(ROUNDS):
            with _watching(address) as watched:
                began = time.perf_counter()
                list(pool.map(lambda path: _get(address, path), paths))
                taken.append(time.perf_counter() - began)
            busy += watched
            time.sleep(1.1)  # answers are shared for a second
    note = f"the overview meanwhile {milli(max(busy))} at most, alone {milli(max(alone))}"
    what = f"{PANELS} panels at once, page watched"
    yield Row(what, milli(statistics.median(taken)), "", None, "none", note)


def _asking(
    exports: ExportList, query: str, window: tuple[float, float, float]
) -> Callable[[], object]:
    def ask() -> object:
        return promql.answer(exports.store, exports.read(), query, None, window)

    return ask


def _get(address: str, path: str) -> bytes:
    host = urlsplit(address)
    connection = http.client.HTTPConnection(str(host.hostname), host.port, timeout=60)
    try:
        connection.request("GET", path)
        with connection.getresponse() as answer:
            body = answer.read()
            assert answer.status == 200, body
            return body
    finally:
        connection.close()


def _watched(address: str) -> float:
    """Return how long an overview takes."""
    began = time.perf_counter()
    _get(address, "/api/overview?precision=60")
    return time.perf_counter() - began


@contextmanager
def _watching(address: str) -> Iterator[list[float]]:
    """Ask for the overview again and again; yield how long each took."""
    taken: list[float] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.is_set():
            taken.append(_watched(address))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield taken
    finally:
        ended.set()
        thread.join()


ROWS = {"rates": rates, "histograms": histograms, "panels": panels}
