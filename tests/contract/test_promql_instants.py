"""PromQL: a query has one value at a time, however much of the store it reads."""

import math
import random
import re
import time
from collections.abc import Sequence
from typing import Any

import pytest

from redmeter import Meter
from redmeter.clock import ManualClock
from redmeter.results import QueryHistogram, QueryResult
from redmeter.testing import MemoryMeter
from support.stores import OpenMeter

DAY = 86_400
#: What other programs write, as the listings do: intervals and the index, and no grand total.
LISTED = (1, 5, 60, 300, 3600, 18_000, 86_400)

COUNTS = (
    "hits_total",
    "foreign_total",
    "lat_count",
    "lat_sum",
    "idle_total",
    "old_count",
    "mixed_total",
)
SHAPES = (
    *(f"{name}{offset}" for name in (*COUNTS, "queue") for offset in ("", " offset 1d")),
    *(
        f"{function}({name}[{window}])"
        for name in COUNTS
        for function, window in (("increase", "5m"), ("rate", "1d"), ("irate", "10m"))
    ),
    *("lat_bucket", 'lat_bucket{le="0.3"}', "lat", "old", "sum by (le) (lat_bucket)"),
    *("lat_count - lat_count offset 1d", "lat_count > 1000", "hits_total > 100"),
    *("rate(lat[5m])", "increase(old[3d])", "increase(lat_bucket[1h])"),
    *("histogram_quantile(0.9, rate(lat_bucket[1h]))", "histogram_quantile(0.5, lat)"),
    *("histogram_fraction(0, 0.3, increase(lat[6h]))", "histogram_count(lat)"),
    *(
        f"{name}_over_time(queue[{window}])"
        for name in ("max", "avg", "last")
        for window in ("5m", "1d")
    ),
    *("deriv(queue[1h])", "delta(queue[6h])", "changes(hits_total[1h])", "timestamp(queue)"),
    *("max_over_time(lat_count[1h])", "last_over_time(foreign_total[5m])"),
    *("resets(lat_count[1d])", "absent(foreign_total)", "predict_linear(queue[1h], 60)"),
    "sum(rate(hits_total[5m])) / sum(rate(hits_total[1h]))",
)


def moments_until(now: int) -> list[int]:
    """Return three days' moments of events, denser towards now; none in the last seconds."""
    return [
        *range(now - 3 * DAY, now - 7200, 2_311),
        *range(now - 7200, now - 600, 97),
        *range(now - 600, now - 10, 7),
    ]


def record(meter: Meter, client: Any, now: int) -> None:
    """Record three days: counters, gauges and histograms, also as other writers store them."""
    for number, at in enumerate(moments_until(now)):
        meter.count("hits", 1 + number % 3, at=at)
        meter.observe("lat", (number % 90) / 100, at=at)
        for width in LISTED:
            start, value = at // width * width, f"{float(number % 50)!r} {float(at)!r}"
            client.hset(f"redmeter:gauge:{width}:queue", str(start), value)
            for name in ("foreign", "mixed"):
                client.hincrby(f"redmeter:count:{width}:{name}", at // width * width, 2)
    for at in range(now - 30, now - 10):
        meter.observe("old", 1.5, at=at)
    meter.observe("old", 2.5, at=now - 2 * DAY)
    for key in ("sums", "spreads"):  # as before there were grand totals
        client.hdel(f"redmeter:{key}:", "old")
    meter.count("mixed", 1000, at=now - 2 * DAY)
    meter.count("idle", 0, at=now - 2 * DAY)
    meter.count("idle", 4, at=now - 45)
    for index, name in (("known", "foreign"), ("known", "mixed"), ("gauges", "queue")):
        client.zadd(f"redmeter:{index}:", {f"{width}:{name}": 0 for width in LISTED})


def at_once(meter: Meter, shape: str, at: int, ranges: Sequence[range]) -> list[QueryResult]:
    """Return results of an instant and of ranges, read within one second of the server's clock."""
    while True:
        while time.time() % 1 > 0.6:
            time.sleep(0.05)
        second = int(time.time())
        results = [meter.query(shape, at=at)]
        results += [
            meter.query(shape, since=one.start, until=one[-1], step=one.step) for one in ranges
        ]
        if int(time.time()) == second:
            return results


def points(result: QueryResult, at: float) -> dict[tuple[tuple[str, str], ...], Any]:
    """Return the values at a time, by labels."""
    return {
        tuple(sorted(one.labels.items())): numbers(sample.value)
        for one in result.series
        for sample in one.samples
        if sample.time == at
    }


def numbers(value: float | QueryHistogram) -> Any:
    """Return a value as numbers to compare."""
    if isinstance(value, QueryHistogram):
        buckets = {(one.lower, one.upper): pytest.approx(one.count) for one in value.buckets}
        return pytest.approx(value.count), pytest.approx(value.sum), buckets
    return pytest.approx(value, rel=1e-9, abs=1e-9, nan_ok=True)


@pytest.mark.slow
def test_a_time_has_one_value_in_every_query(open_meter: OpenMeter, client: Any) -> None:
    """Alone, and as a point of ranges of any length, near and past each border of the retention.

    In particular of counts that other programs store, and histograms without grand totals.
    """
    meter = open_meter()
    now = int(time.time())
    record(meter, client, now)
    kept = {1: 120, 5: 120, 60: 120, 300: 120, 3600: 240, 18_000: 120, 86_400: 120}
    borders = [now - width * number for width, number in kept.items()]
    borders += [now - 30, now - 3 * DAY, now - 5 * DAY]
    moments = [at + near for at in borders for near in (-40, -3, 0, 3, 40) if at + near < now - 3]
    chance = random.Random(7)
    assert len(SHAPES) >= 50
    for shape in SHAPES:
        for at in chance.sample(moments, 5):
            step = chance.choice((1, 15, 60, 3600))
            before, after = chance.choice((1, 3, 200)), chance.choice((0, 1, 5))
            ranges = [
                range(at - before * step, at + after * step + 1, step),
                range(at - 6 * DAY, at + 2 * DAY + 1, DAY),
            ]
            alone, *over_time = at_once(meter, shape, at, ranges)
            expected = points(alone, at)
            for one, result in zip(ranges, over_time, strict=True):
                assert points(result, at) == expected, (shape, now - at, one)


def test_counts_of_other_programs_and_histograms_begin_with_all_events(
    open_meter: OpenMeter, client: Any
) -> None:
    """At an instant they are as many as over days."""
    meter = open_meter()
    now = int(time.time())
    record(meter, client, now)
    moments = len(moments_until(now))

    def value(query: str) -> Any:
        (one,) = meter.query(query).series
        return one.samples[0].value

    assert value("foreign_total") == 2 * moments
    assert value("mixed_total") == 2 * moments + 1000
    assert value("lat_count") == value("histogram_count(lat)") == moments
    assert value("lat_count > 100") == moments
    assert value("old_count") == 21
    assert value("old_sum") == pytest.approx(32.5)
    day = value("lat_count - lat_count offset 1d")
    old = [at for at in range(now - 3 * DAY, now - 7200, 2_311) if at <= now - DAY]
    assert math.isclose(day, moments - len(old), abs_tol=2)


@pytest.mark.slow
def test_a_meter_in_memory_answers_as_a_store_does(open_meter: OpenMeter, client: Any) -> None:
    """Each shape, given the same events, at moments within the retention and past it."""
    meter = open_meter()
    while time.time() % 1 > 0.3:
        time.sleep(0.05)
    now = int(time.time())
    clock = ManualClock(now - 3 * DAY)
    memory = MemoryMeter(clock=clock)
    record(meter, client, now)
    for number, at in enumerate(moments_until(now)):
        clock.set_wall(float(at))
        memory.count("hits", 1 + number % 3)
        memory.observe("lat", (number % 90) / 100)
        memory.gauge("queue").set(number % 50)
    chance = random.Random(7)
    compared = [shape for shape in SHAPES if not re.search("foreign|old|idle|mixed", shape)]
    for shape in compared:
        for ago in chance.sample((5, 119, 605, 7190, 36_100, 2 * DAY, 4 * DAY), 3):
            while True:
                clock.set_wall(time.time())
                results = [
                    points(each.query(shape, at=now - ago), now - ago) for each in (meter, memory)
                ]
                if int(clock.wall()) == int(time.time()):
                    break
            assert results[0] == results[1], (shape, ago)
