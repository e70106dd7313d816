"""What PromQL queries cost, the reading of the store included. Rows for run.py."""

import http.client
import itertools
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
from redmeter.promql.semantics import SampledSeries
from redmeter.reading.export.listing import ExportList
from redmeter.reading.promql import query as promql
from table import Row, milli, seconds, sized, turns

#: Counters and histograms that are read, steps of 15 s, panels, and how often all are asked for.
COUNTERS, HISTOGRAMS, STEPS, PANELS = sized(100, 3), sized(20, 2), sized(241, 5), sized(20, 3)
ROUNDS = sized(5, 1)
RATE = "rate(bench_total[1m])"
HEAT_MAP = "sum by (le) (increase(bench_seconds_bucket[1m]))"
P95 = "histogram_quantile(0.95, sum by (le, route) (rate(bench_seconds_bucket[5m])))"


#: Counters of twelve(), a quarter as many gauges; the bounds of Prometheus' buckets.
MANY = sized(1_000, 8)
BOUNDS = ("0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0")
TWELVE = (
    *("rate(many_total[1m])", "sum(rate(many_total[5m]))", "sum by (route) (rate(many_total[5m]))"),
    *("topk(10, sum by (host, route) (rate(many_total[5m])))", "increase(many_total[5m]) > 100"),
    *("avg_over_time(level[5m])", "sum by (host) (level)", "max_over_time(level[1m])"),
    "histogram_quantile(0.95, sum by (le, route) (rate(took_bucket[5m])))",
    "histogram_quantile(0.5, sum by (le) (rate(took_bucket[1m])))",
    "sum(rate(many_total[1m])) / sum(rate(many_total[5m]))",
    'sum(rate(many_total{route=~"/1.*"}[5m])) by (host)',
)


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


def twelve(_conn: redis.Redis, url: str) -> Iterator[Row]:
    """TWELVE queries over time and one instant, by HTTP, of the page and of a real Prometheus."""
    now = time.time()
    start, end, step = _range(now)
    ago = range(0, STEPS * 15 + 600, 15)
    with Meter(url) as meter:
        for before in reversed(ago):
            for number in range(MANY):
                labels = {"route": f"/{number % 50}", "host": f"h{number // 50}"}
                amount = 1 + (before // 15 + number) % 9
                meter.count("many", amount, labels=labels, at=now - before)
                if number < MANY // 4:
                    gauge = meter.gauge("level", labels=labels)
                    gauge.set(float(amount), at=now - before)
                if number < HISTOGRAMS:
                    value = 0.01 * (1 + number) * (1 + before % 7)
                    meter.observe("took", value, labels={"route": f"/{number}"}, at=now - before)
            if before % 300 == 0:
                meter.flush()
        meter.flush()
    with _served(url) as address, PrometheusServer(_like_those(now, ago)) as server:
        asked = itertools.count(1)
        span = {"start": start, "end": end, "step": step}
        for endpoint, times in (("query_range", span), ("query", {"time": end})):
            sums = [0.0, 0.0]
            for query in TWELVE:

                def ours(
                    query: str = query, endpoint: str = endpoint, times: dict[str, float] = times
                ) -> bytes:
                    # Spaces make each a query of its own: equal ones share an answer.
                    form = urlencode({"query": query + " " * next(asked), **times})
                    return _get(address, f"/api/v1/{endpoint}?{form}")

                def other(
                    query: str = query, endpoint: str = endpoint, times: dict[str, float] = times
                ) -> object:
                    return server.request(endpoint, {"query": query, **times})

                ours()
                what = f"{query}, {endpoint}"
                if not found():
                    yield Row(what, milli(seconds(ours, ROUNDS)), "", None, "none", "")
                    continue
                mine, theirs, ratio = turns(ours, other, rounds=ROUNDS, calls=1)
                sums = [sums[0] + mine, sums[1] + theirs]
                yield Row(what, milli(mine), milli(theirs), ratio, "none", "")
            if found():
                ratio, target = sums[0] / sums[1], "<= 3" if endpoint == "query_range" else "none"
                what = f"all of these, {endpoint}"
                yield Row(what, milli(sums[0]), milli(sums[1]), ratio, target, "Prometheus")


def _like_those(now: float, ago: range) -> Iterator[SampledSeries]:
    """Yield the series of twelve() as scrapes have them."""
    times = np.array([round((now - before) * 1000) for before in reversed(ago)], np.int64)
    steps = np.arange(len(times), dtype=np.float64)
    for number in range(MANY):
        pairs = (("host", f"h{number // 50}"), ("route", f"/{number % 50}"))
        yield SampledSeries((("__name__", "many_total"), *pairs), times, steps * (1 + number % 9))
        if number < MANY // 4:
            yield SampledSeries((("__name__", "level"), *pairs), times, (steps + number) % 9)
    for number in range(HISTOGRAMS):
        for place, bound in enumerate((*BOUNDS, "+Inf")):
            labels = (("__name__", "took_bucket"), ("le", bound), ("route", f"/{number}"))
            yield SampledSeries(labels, times, steps * min(place + 1, 8))


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


ROWS = {"twelve": twelve, "histograms": histograms, "panels": panels}
