"""Summaries and statistics by the hour: against all values, sorted."""

import math
import random
import statistics
from collections.abc import Callable
from dataclasses import astuple
from typing import Any

import pytest

from redmeter import InvalidValue, LimitExceeded, StoreRefused, UnknownPrecision
from redmeter.reading import selection
from redmeter.reading.distributions import (
    read_summaries,
)
from redmeter.reading.statistics import read_statistics
from redmeter.stored.keys import DEFAULT_HISTOGRAMS, slice_start
from redmeter.types import Window
from support.observed import exact_quantile, near, put_observed
from support.stores import OpenMeter, OpenStore, exchanges, server_time

QS = (0.001, 0.5, 0.9, 0.95, 0.99, 0.999)

#: Kinds of data that are hard for histograms.
HARD: dict[str, Any] = {
    "heavy tail": lambda rng: rng.paretovariate(0.7),
    "two humps": lambda rng: rng.choice([rng.gauss(0.01, 0.001), rng.gauss(30, 1)]),
    "constant": lambda _: 0.1,
    "powers of two": lambda rng: 2.0 ** rng.randint(-20, 20),
    "negative too": lambda rng: rng.gauss(0, 5),
    "zeros": lambda rng: rng.choice([0.0, 0.0, rng.expovariate(1)]),
    "tiny to huge": lambda rng: 10 ** rng.uniform(-9, 9),
    "close together": lambda rng: 1e9 + rng.random(),
}


def within(observed: list[tuple[float, float]], first: float, end: float) -> list[float]:
    """Return the values of [first, end)."""
    return [value for time, value in observed if first <= time < end]


@pytest.mark.parametrize("kind", HARD)
def test_a_summary_tells_what_all_values_would(
    client: Any, open_meter: OpenMeter, kind: str
) -> None:
    """Of the window as a whole and of each slice; quantiles within 2.17 %, the rest as exact."""
    rng, newest = random.Random(kind), slice_start(server_time(client), 60)
    observed = [(newest - rng.uniform(0, 7_000), HARD[kind](rng)) for _ in range(3_000)]
    put_observed(client, {"x": observed})
    found = open_meter().summary("x", precision=60)
    values = [value for _, value in observed]
    assert found.count == 3_000
    assert (found.low, found.high) == (min(values), max(values))
    assert found.total is not None
    assert math.isclose(found.total, math.fsum(values), rel_tol=1e-9, abs_tol=1e-6)
    assert found.stddev is not None
    assert math.isclose(found.stddev, statistics.stdev(values), rel_tol=1e-6, abs_tol=1e-12)
    assert all(near(found.quantile(q), exact_quantile(values, q)) for q in QS)
    assert [found.p50, found.p90, found.p95, found.p99] == found.quantiles((0.5, 0.9, 0.95, 0.99))
    assert sum(bucket.count for bucket in found.buckets) == 3_000
    for start, one in found.over_time():
        some = within(observed, start, start + 60)
        assert (one.count if one else 0) == len(some)
        if one:
            assert (one.low, one.high) == (min(some), max(some))
            assert all(near(one.quantile(q), exact_quantile(some, q)) for q in QS)


def test_the_share_above_a_threshold_is_that_of_all_values(
    client: Any, open_meter: OpenMeter
) -> None:
    """Off by less than what lies in the bucket of the threshold."""
    rng, newest = random.Random(5), slice_start(server_time(client), 60)
    values = [rng.lognormvariate(-2, 1) for _ in range(2_000)]
    put_observed(client, {"x": [(newest - 60 * (n % 50), v) for n, v in enumerate(values)]})
    found = open_meter().summary("x", precision=60)
    for threshold in (0.01, 0.1, 0.25, 0.5, 2.0):
        exact = sum(v > threshold for v in values) / 2_000
        off = sum(abs(v / threshold - 1) < 0.045 for v in values) / 2_000
        share = found.share_above(threshold)
        assert share is not None
        assert abs(share - exact) <= off


def test_slices_without_a_value_are_gaps_and_the_running_one_is_partial(
    client: Any, open_meter: OpenMeter
) -> None:
    """From the oldest slice that has something to the one that is running."""
    newest = slice_start(server_time(client), 3600)
    put_observed(client, {"x": [(newest - 3 * 3600, 1.0), (newest - 3600, 2.0)]})
    found = open_meter().summary("x", precision=3600)
    over_time = found.over_time()
    assert [s.value and s.value.mean for s in over_time] == [1.0, None, 2.0, None]
    assert (over_time.start, over_time.partial) == (newest - 3 * 3600, True)
    assert (found.start, found.end) == (newest - 239 * 3600, newest + 3600)
    assert (found.precision, found.name, found.partial) == (3600, "x", True)


def test_a_summary_of_nothing_says_so(client: Any, open_meter: OpenMeter) -> None:
    """None where a number would mean something; and nothing is written by asking."""
    for found in (
        open_meter().summary("x", precision=60),
        open_meter().summary("x", precision=60),
        open_meter(url="off").summary("x", precision=60),
        open_meter(url="off").summary("x", precision=60),
    ):
        assert (found.count, found.total, found.mean, found.stddev) == (0, 0.0, None, None)
        assert (found.low, found.high, found.p99, found.share_above(1)) == (None,) * 4
        assert (found.buckets, list(found.over_time())) == ((), [])
    assert client.dbsize() == 0


def test_a_window_is_cut_by_times_and_by_slices(client: Any, open_meter: OpenMeter) -> None:
    """Slices that the times lie in belong to it, as of a series."""
    newest = slice_start(server_time(client), 3600)
    put_observed(client, {"x": [(newest - 3600 * age, float(age)) for age in range(10)]})
    meter = open_meter()

    def seen(**options: Any) -> list[float | None]:
        found = meter.summary("x", precision=3600, **options).over_time()
        return [s.value.total for s in found if s.value]

    assert (
        seen(last="3h") == seen(last="7201s") == seen(last=3) == seen(last="3") == [2.0, 1.0, 0.0]
    )
    assert seen(since=newest - 3601, until=newest - 1) == [2.0, 1.0]
    assert seen(since=newest) == [0.0]
    cut = meter.summary("x", precision=3600, until=newest - 1)
    assert (cut.partial, cut.over_time().partial, cut.end) == (False, False, newest)


def test_only_the_newest_slices_of_the_retention_count(client: Any, open_store: OpenStore) -> None:
    """Neither what has left it nor what lies ahead."""
    store = open_store()
    store.change_retention([(5, 0), (60, 0), (3600, 3)], histograms=True)
    newest = slice_start(server_time(client), 3600)
    observed = [(newest + 3600 * n, 10.0**n) for n in range(-4, 3)]
    put_observed(client, {"x": observed}, histograms={3600: 3})
    found = read_summaries(store, ["x"], Window(3600))["x"]
    assert (found.count, found.low, found.high) == (3, 0.01, 1.0)


@pytest.mark.parametrize(
    ("buckets", "moments"),
    [
        ("junk", "1 1 0"),
        ("1.0|1.0|0|-1=1|", None),
        (None, "1 1 0"),
        ("1.0|1.0|0|-1=1|", "2 2 0"),
        ("1.0|inf|0|-1=1|", "1 1 0"),
    ],
)
def test_a_slice_that_is_not_of_the_form_is_nobodys(
    client: Any, open_store: OpenStore, buckets: str | None, moments: str | None
) -> None:
    """It is a gap; the others count."""
    newest = slice_start(server_time(client), 3600)
    put_observed(client, {"x": [(newest - 3600, 5.0)]})
    for family, text in (("hist", buckets), ("moments", moments)):
        if text is not None:
            client.hset(f"redmeter:{family}:3600:x", str(newest), text)
            client.hset(f"redmeter:{family}:3600:x", "no start", text)
    client.hset("redmeter:hist:3600:x", str(newest - 7200), "1.0|1.0|0|-1=1|")
    found = read_summaries(open_store(), ["x"], Window(3600))["x"]
    assert [s.value and s.value.total for s in found.over_time()] == [5.0, None]
    assert found.total == 5.0


def test_a_key_of_another_type_is_an_error_of_ours(client: Any, open_meter: OpenMeter) -> None:
    """As of every reading."""
    client.set("redmeter:hist:60:x", "theirs")
    with pytest.raises(StoreRefused):
        open_meter().summary("x", precision=60)


def test_a_precision_not_kept_of_histograms_is_an_error(client: Any, open_meter: OpenMeter) -> None:
    """It lists those that are, not those of counters."""
    meter = open_meter()
    calls: list[Callable[[], object]] = [
        lambda: meter.summary("x", precision=1),
        lambda: meter.summary("x", precision=86400),
        lambda: meter.summary("x", precision="1d"),
    ]
    for call in calls:
        with pytest.raises(UnknownPrecision) as caught:
            call()
        assert caught.value.kept == tuple(DEFAULT_HISTOGRAMS)


def test_requests_have_their_limits(
    client: Any, open_meter: OpenMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of series, of slices, of label sets that are merged, and of quantiles."""
    meter = open_meter()
    put_observed(client, {f'x{{a="{n}"}}': [(server_time(client), 1.0)] for n in range(6)})
    few = selection.KINDS["histogram"]._replace(most=5)
    monkeypatch.setitem(selection.KINDS, "histogram", few)
    monkeypatch.setattr(selection, "JOINED", 3)
    for call in (
        lambda: meter.summary_many([f"s{n}" for n in range(501)], precision=60),
        lambda: meter.summary("x", precision=3600),
    ):
        with pytest.raises(LimitExceeded):
            call()
    with pytest.raises(InvalidValue):
        meter.summary('x{a="0"}', precision=3600).quantile(1.1)


def test_fifty_series_are_one_round_trip(
    client: Any, open_meter: OpenMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the first time that a meter reads; a series that does not exist has an empty summary."""
    newest = slice_start(server_time(client), 60)
    given = {f"s{n}": [(newest - 60 * age, n + 1.0) for age in range(5)] for n in range(50)}
    put_observed(client, given)
    meter = open_meter()
    for _ in range(2):
        with exchanges(monkeypatch) as seen:
            found = meter.summary_many([*given], precision=60)
        assert len(seen) == 1
        with exchanges(monkeypatch) as seen:
            found |= meter.summary_many([*given, "none"], precision=60)
        assert len(seen) == 2
    assert [found[name].total for name in given] == [5.0 * (n + 1) for n in range(50)]
    assert found["none"].count == 0


def test_label_sets_of_a_name_merge_into_one(
    client: Any, open_meter: OpenMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if all had been one series, in one round trip; of no other name, and by labels."""
    rng, newest = random.Random(1), slice_start(server_time(client), 60)
    names = [f'x{{method="{m}",route="/{r}"}}' for m in ("GET", "POST") for r in range(20)]
    given = {
        name: [(newest - rng.randrange(3000), rng.expovariate(1)) for _ in range(30)]
        for name in [*names, "x"]
    }
    put_observed(client, given | {"xy": [(newest, 1e9)], 'xy{method="GET"}': [(newest, 1e9)]})
    meter = open_meter()
    with exchanges(monkeypatch) as seen:
        found = meter.summary("x", precision=60)
    assert len(seen) == 1
    values = [value for some in given.values() for _, value in some]
    assert (found.name, found.count, found.high) == ("x", len(values), max(values))
    assert all(near(found.quantile(q), exact_quantile(values, q)) for q in QS)
    assert sum(s.value.count for s in found.over_time() if s.value) == len(values)
    posts = [v for name, some in given.items() if "POST" in name for _, v in some]
    labelled = meter.summary("x", precision=60, labels={"method": "POST"})
    assert (labelled.count, labelled.low) == (len(posts), min(posts))
    one = meter.summary("x", precision=60, labels={"method": "GET", "route": "/3"})
    assert one.count == 30


# --- Statistics by the hour ----------------------------------------------------------------


def put_hour(client: Any, key: str, values: list[float], *, ours: bool) -> None:
    """Write the members of an hour, with those of ours or without."""
    members = {
        "count": len(values),
        "min": min(values),
        "max": max(values),
        "sum": math.fsum(values),
        "sumsq": math.fsum(v * v for v in values),
    }
    if ours:
        mean = statistics.fmean(values)
        m2 = math.fsum((v - mean) ** 2 for v in values)
        members |= {"n": len(values), "mean": mean, "m2": m2}
    client.zadd(f"redmeter:{key}", members)


@pytest.mark.parametrize("ours", [True, False])
def test_statistics_tell_this_hour_and_the_one_before(
    client: Any, open_meter: OpenMeter, ours: bool
) -> None:
    """Of what was written here the spread is right also where the textbook's formula is not."""
    this = slice_start(server_time(client), 3600)
    values = [1e9 + n for n in range(10)] if ours else [1.5, 2.5, 4.0]
    put_hour(client, "stats:x", values, ours=ours)
    put_hour(client, "stats:x:last", [7.0], ours=ours)
    client.set("redmeter:stats:x:start", this)
    client.set("redmeter:stats:x:pstart", this - 7200)
    found = open_meter().statistics("x")
    assert (found.name, found.this is not None, found.before is not None) == ("x", True, True)
    assert found.this
    assert found.before
    assert (found.this.start, found.before.start) == (this, this - 7200)
    assert (found.this.count, found.this.low, found.this.high) == (
        *(len(values), min(values), max(values)),
    )
    assert None not in astuple(found.this)
    assert math.isclose(found.this.total or 0.0, math.fsum(values))
    assert math.isclose(found.this.mean or 0.0, statistics.fmean(values))
    assert math.isclose(found.this.stddev or 0.0, statistics.stdev(values), rel_tol=1e-6)
    assert (found.before.count, found.before.mean, found.before.stddev) == (1, 7.0, 0.0)


def test_an_hour_that_nobody_rotated_is_the_one_before(
    client: Any, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was observed since. One round trip; nothing at all is nothing."""
    this = slice_start(server_time(client), 3600)
    put_hour(client, "stats:x", [1.0], ours=True)
    client.set("redmeter:stats:x:start", this - 3600)
    store = open_store()
    with exchanges(monkeypatch) as seen:
        found = read_statistics(store, "x")
    assert len(seen) == 1
    assert found.this is None
    assert found.before
    assert found.before.start == this - 3600
    empty = read_statistics(store, "none")
    assert (empty.this, empty.before) == (None, None)


def test_statistics_without_an_hour_are_of_this_one(client: Any, open_store: OpenStore) -> None:
    """As they are for whoever writes next; and an hour is read as it is of messages."""
    store, now = open_store(), server_time(client)
    hour = slice_start(now, 3600)
    client.zadd("redmeter:stats:x", {"min": 1, "max": 3, "count": 2, "sum": 4, "sumsq": 10})
    found = read_statistics(store, "x")
    assert found.this is not None
    assert (found.this.start, found.this.count, found.this.mean) == (hour, 2, 2.0)
    assert found.before is None
    client.set("redmeter:stats:x:start", " 1e3 ")
    found = read_statistics(store, "x")
    assert (found.this, found.before is not None) == (None, True)
    client.set("redmeter:stats:x:start", "1_000")  # a number in Python alone
    assert read_statistics(store, "x").this is not None
