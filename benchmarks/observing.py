"""What observed values cost: the application, the server, memory, reading. Rows for run.py."""

import copy
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator

import prometheus_client
import pytest
import redis

from measures import _empty, _store, _used, memory_full
from recording import CALLS, repeated
from redmeter import Meter
from redmeter.reading.distributions import read_summaries
from redmeter.reading.top import read_top
from redmeter.recording.bulk_writer import BulkWriter
from redmeter.recording.pending import PendingHistogram
from redmeter.stored.exponential_histogram import RELATIVE_ERROR, Distribution
from redmeter.stored.histogram import STATISTICS_LIFE
from redmeter.stored.keys import DEFAULT_HISTOGRAMS, Keys, entry
from redmeter.stored.packed_text import buckets_text, moments_text
from redmeter.types import Top, Window
from support.stores import exchanges
from table import Row, milli, nano, seconds, sized, turns

#: Values a second of the series whose memory is measured.
RATES = sized((0.1, 1.0, 10.0), (0.1,))
#: Values of each kind of hard data, routes that are ranked, and series whose memory is measured.
HARD, ROUTES, SERIES = sized(20_000, 200), sized(1_000, 50), sized(50, 2)
#: Seconds whose writing is measured.
WRITTEN = sized(90, 3)


def observing(_conn: redis.Redis, url: str) -> Iterator[Row]:
    """Observing in the application, next to prometheus_client."""
    registry = prometheus_client.CollectorRegistry()
    theirs = prometheus_client.Histogram("took", "took", registry=registry)
    clock = turns(repeated("now()", now=time.time), lambda: None, rounds=5, calls=1)[0] / CALLS
    with Meter(url) as meter:
        ours = meter.histogram("took_seconds")
        mine, other, ratio = turns(
            repeated("h.observe(0.0123)", h=ours),
            repeated("h.observe(0.0123)", h=theirs),
            rounds=15,
            calls=1,
        )
        floor = f"time.time() {nano(clock)}"
        yield Row(
            "observe(), bound", nano(mine / CALLS), nano(other / CALLS), ratio, "<= 0.5", floor
        )
    worst = max(map(_worst_quantile, _hard().values()))
    yield Row(
        "largest error of a percentile",
        f"{worst:.3%}",
        f"{RELATIVE_ERROR:.3%}",
        worst / RELATIVE_ERROR,
        "<= 1",
        "hard data: heavy tails, two humps, constants, 10^-9 to 10^9, edges",
    )


def _hard() -> dict[str, list[float]]:
    rng = random.Random(8)
    kinds: dict[str, Callable[[], float]] = {
        "pareto": lambda: rng.paretovariate(0.5),
        "humps": lambda: rng.choice([rng.gauss(0.01, 0.002), rng.gauss(30, 1)]),
        "constant": lambda: 0.1,
        "wide": lambda: 10 ** rng.uniform(-9, 9),
        "negative": lambda: rng.gauss(0, 100),
        "edges": lambda: math.nextafter(
            2 ** (rng.randint(-99, 99) / 16), rng.choice([0, math.inf])
        ),
        "powers": lambda: 2.0 ** rng.randint(-300, 300),
    }
    return {name: [make() for _ in range(HARD)] for name, make in kinds.items()}


def _worst_quantile(values: list[float]) -> float:
    one, ordered = Distribution(), sorted(values)
    one.add_all(values)
    worst = 0.0
    for per_mille in range(1, 1000):
        exact = ordered[math.ceil(per_mille * len(ordered) / 1000) - 1]
        found = one.quantile(per_mille / 1000)
        worst = max(worst, abs(found - exact) / abs(exact) if exact else abs(found))
    return worst


def timers(conn: redis.Redis, url: str) -> Iterator[Row]:
    """What a series takes, and what writing costs the server."""
    counter, _ = memory_full(conn, url, sized(150, 3))
    rng = random.Random(1)
    for rate in RATES:
        taken = _memory_of_series(conn, rng, rate)
        yield Row(
            f"memory, a series of {rate:g} values/s",
            f"{taken:,.0f} B",
            f"{counter:,.0f} B",
            taken / counter,
            "<= 32",
            "a full counter",
        )
    share = statistics.median(_share_of_core(conn, url, rng) for _ in range(sized(3, 1)))
    yield Row("writing 50 timers x 100 values/s", f"{share:.2%}", "a core", share, "<= 0.015")


def _memory_of_series(conn: redis.Redis, rng: random.Random, rate: float) -> float:
    """Bytes of a series of log-normal values (sigma 1), its retention full."""
    keys, now = Keys(), int(time.time())
    slices = {
        precision: [
            (str(now // precision * precision - age * precision), one)
            for age in range(samples)
            if (one := _drawn(rng, _times(rng, rate * precision))).count
        ]
        for precision, samples in DEFAULT_HISTOGRAMS.items()
    }
    hour = slices[3600][0][1].moments
    members = {"count": hour.count, "min": hour.low, "max": hour.high, "sum": hour.total}
    members |= {"sumsq": hour.sumsq, "n": hour.count, "mean": hour.mean, "m2": hour.m2}
    _empty(conn)
    before = _used(conn)
    for number in range(SERIES):
        name, pipe = f"took_seconds:{number}", conn.pipeline(transaction=False)
        for precision, some in slices.items():
            hashes = (
                (keys.hist(precision, name), buckets_text),
                (keys.moments(precision, name), moments_text),
            )
            for key, text in hashes:
                for start, one in some:  # one by one, as they come
                    pipe.hset(key, start, text(one))
                pipe.expire(key, DEFAULT_HISTOGRAMS[precision] * precision)
            pipe.zadd(keys.hists, {entry(precision, name): 0})
        this, start_key, last, pstart = keys.stats(name)
        for key in (this, last):
            pipe.zadd(key, members)
            pipe.expire(key, STATISTICS_LIFE)
        for key in (start_key, pstart):
            pipe.set(key, now, ex=STATISTICS_LIFE)
        pipe.execute()
    return (_used(conn) - before) / SERIES


def _times(rng: random.Random, expected: float) -> int:
    """Return how many events an interval has, about as a Poisson process would make them."""
    return max(0, round(rng.gauss(expected, math.sqrt(expected))))


def _drawn(rng: random.Random, count: int) -> Distribution:
    one = Distribution()
    one.add_all([rng.lognormvariate(-3, 1) for _ in range(count)])
    return one


def _share_of_core(conn: redis.Redis, url: str, rng: random.Random) -> float:
    """Return the server's processor time by the time of which there were values.

    WRITTEN seconds, one one after the other as fast as it goes, with a flush for each. The hour
    has been running before, so that its interval is full.
    """
    _empty(conn)
    store = _store(url)
    names = [f"took_seconds:{number}" for number in range(50)]
    now = int(store.read()[0].now)
    bulk = BulkWriter(store)

    def write(second: int, ready: Distribution | None = None) -> None:
        for name in names:
            one = copy.deepcopy(ready) or _drawn(rng, 100)
            bulk._stats.recorded += one.count
            bulk._buffer.add(PendingHistogram, name, second, one, second)
        bulk.write(10.0, second)

    write(now - WRITTEN - 15, _drawn(rng, 10 * HARD))
    for second in range(now - WRITTEN - 14, now - WRITTEN):
        write(second)
    started = _processor_time(conn)
    for second in range(now - WRITTEN, now):
        write(second)
    used = _processor_time(conn) - started
    assert not bulk.health().losses, "everything was stored"
    store.close()
    return used / WRITTEN


def _processor_time(conn: redis.Redis) -> float:
    told = conn.info("cpu")
    return float(told["used_cpu_user"]) + float(told["used_cpu_sys"])


def summary(conn: redis.Redis, url: str) -> Iterator[Row]:
    """Fifty series of 120 intervals, of a hundred values each."""
    names = _observed(conn, [f"took_seconds:{number}" for number in range(50)], 60, 100)
    store = _store(url)
    store.load_config()  # as the first write does
    trips = _round_trips(lambda: read_summaries(store, names, Window(60)))
    whole = seconds(lambda: read_summaries(store, names, Window(60)), 3)
    each = seconds(
        lambda: [one.over_time() for one in read_summaries(store, names, Window(60)).values()], 3
    )
    pipe = conn.pipeline(transaction=False)
    keys = Keys()
    for name in names:
        pipe.hgetall(keys.hist(60, name))
        pipe.hgetall(keys.moments(60, name))
    floor = f"the replies alone {milli(seconds(lambda: pipe.execute(), 1))}"
    yield Row(
        "summary, 120 slices x 50 series",
        milli(whole),
        f"round trips: {trips}",
        None,
        "none",
        floor,
    )
    yield Row(
        "the same, and slice by slice", milli(each), f"round trips: {trips}", None, "none", floor
    )
    store.close()


def ranking(conn: redis.Redis, url: str) -> Iterator[Row]:
    """The slowest 20 of 1,000 routes over the last two hours."""
    names = [f'http_seconds{{route="/page/{number}"}}' for number in range(ROUTES)]
    _observed(conn, names, 60, 20)
    store = _store(url)
    store.load_config()
    for order in ("p95", "total", "count"):

        def run(order: str = order) -> object:
            return read_top(
                store,
                Top("http_seconds", Window(60, last=7200), by="route", limit=20, order=order),
            )

        trips = _round_trips(run)
        what = f"20 of {ROUTES:,} routes by {order}, 2 h"
        yield Row(what, milli(seconds(run, 3)), f"round trips: {trips}", None, "none")
    store.close()


def _observed(conn: redis.Redis, names: list[str], precision: int, count: int) -> list[str]:
    """Fill minutes and hours of series with values, which are the same ones in another order."""
    rng, keys, now = random.Random(3), Keys(), int(time.time())
    drawn = [_drawn(rng, _times(rng, count)) for _ in range(400)]
    texts = [(buckets_text(one), moments_text(one)) for one in drawn]
    for number, name in enumerate(names):
        pipe = conn.pipeline(transaction=False)
        for width, samples in ((precision, 120), (3600, 4)):
            newest = now // width * width
            some = [rng.choice(texts) for _ in range(samples)]
            if width == 3600:
                some = [_hour(drawn, number + at, count * 60) for at in range(samples)]
            starts = [str(newest - width * age) for age in range(samples)]
            for key, at in ((keys.hist, 0), (keys.moments, 1)):
                fields = {start: text[at] for start, text in zip(starts, some, strict=True)}
                pipe.hset(key(width, name), mapping=fields)  # type: ignore[arg-type]
            pipe.zadd(keys.hists, {entry(width, name): 0})
        pipe.execute()
    return names


def _hour(drawn: list[Distribution], first: int, count: int) -> tuple[str, str]:
    whole = Distribution()
    while whole.count < count:
        whole.merge(drawn[first % len(drawn)])
        first += 7
    return buckets_text(whole), moments_text(whole)


def _round_trips(function: Callable[[], object]) -> int:
    """Return how many exchanges with the server a function takes."""
    with pytest.MonkeyPatch.context() as patch, exchanges(patch) as seen:
        function()
    return len(seen)


ROWS = {"observing": observing, "timers": timers, "summary": summary, "ranking": ranking}
