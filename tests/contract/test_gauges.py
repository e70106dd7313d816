"""Gauges: the last value by its own time, in every slice, once; read with gaps, and swept."""

import itertools
import math
import random
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redmeter import InvalidValue, Meter, StoreRefused, UnknownPrecision
from redmeter.clock import ManualClock
from redmeter.export.exposition import Format
from redmeter.maintenance import cleaning as cleaner
from redmeter.maintenance import forgetting
from redmeter.reading import names as reading_names
from redmeter.reading.aggregates import read_forecasts, read_gauge
from redmeter.reading.export.scrape import Scraper
from redmeter.results import Series
from redmeter.store import Store
from redmeter.store.producers import INSTANCE_SECONDS
from redmeter.store.query import run_query, together
from redmeter.stored.counter import counter_operations
from redmeter.stored.gauge import gauge_operations
from redmeter.stored.keys import DEFAULT_RETENTION, Kept, slice_start
from redmeter.testing import MemoryMeter
from redmeter.types import Batch, Operations, Outcome, Rejection, Selection, Window
from support.examples import scaled
from support.servers import Server
from support.stores import (
    HastyClock,
    OpenMeter,
    OpenStore,
    count,
    exchanges,
    measure,
    send,
    server_time,
)

pytestmark = pytest.mark.servers

DAY = 86400


def key(precision: int, name: str = "x") -> str:
    """Return the key of a gauge's hash under the default prefix."""
    return f"redmeter:gauge:{precision}:{name}"


def stored(client: Any, precision: int, name: str = "x") -> dict[int, tuple[float, float]]:
    """Return a gauge's hash: slice start -> (value, time)."""
    found = {}
    for start, text in client.hgetall(key(precision, name)).items():
        value, time = map(float, text.split(b" "))
        found[int(start)] = value, time
    return found


def read_gauges(
    store: Store,
    names: Sequence[str],
    precision: int,
    since: float | None = None,
    until: float | None = None,
) -> dict[str, Series[float | None]]:
    """Return the samples of gauges, each by its stored name."""
    period = Window(precision, since, until)
    reads = [read_gauge(store.keys, Selection(name, exact=True), period, None) for name in names]
    _, replies = run_query(store, lambda _: together(reads))
    return {name: series for name, ((_, series),) in zip(names, replies, strict=True)}


def values(store: Store, precision: int, name: str = "x") -> list[tuple[int, float | None]]:
    """Return a gauge's samples as they are read."""
    return [(s.start, s.value) for s in read_gauges(store, [name], precision)[name]]


# --- Writing -------------------------------------------------------------------------------


def test_a_value_is_stored_at_every_precision_as_it_was(client: Any, open_store: OpenStore) -> None:
    """Value and time as a float's repr, under the start of the slice."""
    now = int(server_time(client)) + 0.25
    assert measure(open_store(), {"x": 17}, now) == Outcome()
    for precision in DEFAULT_RETENTION:
        text = f"17.0 {now!r}".encode()
        found = client.hgetall(key(precision))
        assert found == {str(slice_start(now, precision)).encode(): text}


@settings(max_examples=scaled(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.integers(0, 8 * 600).map(lambda eighths: eighths / 8),
            st.floats(allow_nan=False, allow_infinity=False),
        ),
        min_size=1,
        max_size=10,
    ),
    st.integers(-(10**9), 10**9),
)
def test_the_newest_value_of_a_slice_stays_whatever_the_order(
    client: Any, open_store: OpenStore, some: list[tuple[float, float]], now: int
) -> None:
    """To the last bit, also before 1970; of two at one time the one that was written later."""
    client.flushall()
    store = open_store(retention={1: 120, 60: 120, 3600: 120}, clock=ManualClock(now))
    for ago, value in some:
        measure(store, {"x": value}, now - ago, trim=False, refuse=False)
    for precision in (1, 60, 3600):
        expected: dict[int, tuple[float, float]] = {}
        for ago, value in some:
            start = slice_start(now - ago, precision)
            if start not in expected or now - ago >= expected[start][1]:
                expected[start] = value, now - ago
        assert stored(client, precision) == expected
    store.close()


@pytest.mark.parametrize(
    "theirs",
    ["", "7", "many", "7 9e99", "7 inf", "nan 9e99", "inf {t}", "1e999 {t}", "0x1 {t}", "7 {t} 1"],
)
def test_a_text_that_is_no_value_of_its_slice_is_nobodys(
    client: Any, open_store: OpenStore, theirs: str
) -> None:
    """It is read as a gap, and the next value takes its place, however new it claims to be."""
    store = open_store()
    now = server_time(client)
    start = slice_start(now, DAY)
    store.config()
    client.hset(key(DAY), str(start), theirs.format(t=float(start + DAY - 1)))
    client.zadd("redmeter:gauges:", {f"{DAY}:x": 0})
    assert values(store, DAY) == []
    assert measure(store, {"x": 5.0}, now) == Outcome()
    assert values(store, DAY) == [(start, 5.0)]


def test_a_batch_of_gauges_sent_again_changes_nothing(client: Any, open_store: OpenStore) -> None:
    """Also where another value came in between."""
    store = open_store()
    now = server_time(client)
    version = store.config().version
    entries = {"x": {int(now): (now, 1.0)}}
    made = gauge_operations(store.keys, store.config().retention, entries)
    batch = Batch("p" * 32, 1, made)
    assert send(store, batch, version, must_exist=False) == Outcome()
    measure(store, {"x": 2.0}, now)
    assert send(store, batch, version, must_exist=True) == Outcome(applied=False)
    assert stored(client, 60) == {slice_start(now, 60): (2.0, now)}


def test_counters_and_gauges_go_in_one_batch(client: Any, open_store: OpenStore) -> None:
    """Under one name too; what is wrong with one of them is told of that one."""
    store = open_store(retention={60: 5})
    now = server_time(client)
    second = int(now)
    client.rpush(key(60, "bad"), "theirs")
    client.rpush("redmeter:count:60:bad", "theirs")

    def build(kept: Kept) -> Operations:
        given = {name: {second: 3} for name in ("x", "bad")}
        counts = counter_operations(store.keys, kept.series, given)
        set_to = {n: {second: (now, 4.0)} for n in ("x", "bad", "y")}
        return counts + gauge_operations(store.keys, kept.series, set_to)

    start = str(slice_start(now, 60))
    found = [(r.key, r.reason, r.field, r.amount) for r in store.shard("").write(build).rejections]
    assert found == [
        ("redmeter:count:60:bad", "WRONGTYPE", start, 3),
        ("redmeter:gauge:60:bad", "WRONGTYPE", start, 1),
    ]
    assert client.hgetall("redmeter:count:60:x") == {start.encode(): b"3"}
    assert client.zrange("redmeter:known:", 0, -1) == [b"60:x"]
    assert client.zrange("redmeter:gauges:", 0, -1) == [b"60:x", b"60:y"]
    assert client.hgetall("redmeter:total:") == {b"x": b"3", b"bad": b"3"}
    assert stored(client, 60) == stored(client, 60, "y") == {int(start): (4.0, now)}


def test_a_value_of_a_slice_that_is_no_longer_kept_is_aged(
    client: Any, open_store: OpenStore
) -> None:
    """And one that lies a retention ahead is of the future; one setting each."""
    store = open_store(retention={60: 5, 3600: 5})
    now = server_time(client)
    (old,) = measure(store, {"x": 1.0}, now - 600).rejections
    assert old == Rejection(key(60), "aged", "aged", str(slice_start(now - 600, 60)), 1)
    (ahead,) = measure(store, {"x": 2.0}, now + 600).rejections
    assert (ahead.key, ahead.reason, ahead.amount) == (key(60), "future", 1)
    assert not client.exists(key(60))
    assert {value for value, _ in stored(client, 3600).values()} <= {1.0, 2.0}


@pytest.mark.parametrize("sync", [False, True])
def test_an_empty_label_instance_of_an_application_is_left_out(
    client: Any, any_server: Server, sync: bool
) -> None:
    """It is no placeholder for the number of this process, for which a series would wait."""
    labels = {"instance": ""}
    with Meter(any_server.url, sync=sync) as meter:
        meter.count("orders", labels=labels)
        meter.observe("order_seconds", 1, labels=labels)
        meter.gauge("queue", labels=labels).set(3)
        assert meter.flush()
        assert meter.recorder_health().buffered == 0
        assert meter.names() == ["orders"]
        assert meter.names(kind="gauge") == ["queue"]
        assert meter.names(kind="histogram") == ["order_seconds"]


@pytest.mark.parametrize("sync", [True, False])
def test_a_gauge_is_set_as_of_another_time(client: Any, any_server: Server, sync: bool) -> None:
    """Of an interval the value with the newest time stays, whatever order they come in."""
    now = slice_start(server_time(client), 3600) - 3600
    memory = MemoryMeter(clock=ManualClock(now + 3600))
    with Meter(any_server.url, sync=sync, flush_interval=60) as meter:
        for one in (meter, memory):
            gauge = one.gauge("depth")
            for at, value in ((30.5, 2), (90, 3), (30.25, 1), (30.5, 4), (10, 9)):
                gauge.set(value, at=now + at)
            with pytest.raises(InvalidValue):
                gauge.set(1, at=math.inf)
        assert meter.flush()
        for one in (meter, memory):
            found = one.gauge_series("depth", precision=60, since=now, until=now + 119)
            assert [sample.value for sample in found] == [4.0, 3.0]
    assert memory.value("depth") == 3.0


def test_the_current_value_sums_live_processes_only(client: Any, open_store: OpenStore) -> None:
    """The part of a killed process, or of one that ended, counts in past intervals only."""
    now = server_time(client)
    ago = now - INSTANCE_SECONDS - 20
    width = next(w for w in range(3600, 3700) if slice_start(ago, w) == slice_start(now + 60, w))
    store = open_store(retention={60: 120, width: 120})
    for producer in ("live", "killed", "ended"):
        store.publish(producer, "{}", instance=True, ended=False)
    store.publish("ended", "{}", instance=True, ended=True)
    client.zadd("redmeter:writers:", {"killed": int(ago)})
    parts = {"0": 1.0, "1": 2.0, "2": 4.0, "app-1": 8.0}
    for number, value in parts.items():
        measure(store, {f'jobs{{instance="{number}"}}': value}, ago)
    measure(store, {'jobs{instance="3"}': 16.0}, now)  # of a process that just ended

    def jobs(precision: int, **options: Any) -> float | None:
        period = Window(precision, **options)
        query = read_gauge(store.keys, Selection("jobs"), period, None)
        ((_, series),) = run_query(store, lambda _: query)[1]
        return series.values[-1]

    assert jobs(width) == 1 + 8 + 16
    assert jobs(60, until=ago) == 1 + 2 + 4 + 8
    forecast = read_forecasts(store.keys, Selection("jobs"), width)
    ((_, found),) = run_query(store, lambda _: forecast)[1]
    assert found.running == 1 + 8 + 16


def test_every_reader_leaves_out_the_part_of_a_process_that_ended(
    client: Any, open_store: OpenStore, open_meter: OpenMeter
) -> None:
    """After a minute without a report: samples, PromQL and the text for Prometheus agree."""
    store, meter, now = open_store(), open_meter(), server_time(client)
    for number, ago in (("0", 1.0), ("1", 61.5), ("2", 200.0)):
        measure(store, {f'jobs{{instance="{number}"}}': 100.0}, now - ago)
        measure(store, {f'jobs_by{{instance="app-{number}"}}': 100.0}, now - ago)
    series = meter.gauge_series("jobs", precision=60, since=now - 1, until=now)
    assert series.values[-1] == 100.0
    (asked,) = meter.query("sum(jobs)", at=now).series
    assert [sample.value for sample in asked.samples] == [100.0]
    names = re.findall(rb"^jobs.* 100.0", Scraper(store).scrape(Format()), re.MULTILINE)
    assert names[:1] == [b'jobs{instance="0"} 100.0']
    assert len(names) == 1 + 3, "a label of the application's own is no process"


@pytest.mark.parametrize("prefix", ["redmeter:", "shop.", ""])
def test_a_gauge_lives_for_a_retention_under_every_prefix(
    client: Any, open_store: OpenStore, prefix: str
) -> None:
    """Nobody else writes it, so it expires in a bare store too; its index says where it lies."""
    own = prefix or "redmeter:bare:"
    measure(open_store(prefix=prefix), {"点击量": 1.0}, server_time(client))
    entries = client.zrange(f"{own}gauges:", 0, -1, withscores=True)
    assert dict(entries) == {f"{p}:点击量".encode(): 0.0 for p in DEFAULT_RETENTION}
    for precision, kept in DEFAULT_RETENTION.items():
        spare = client.ttl(f"{own}gauge:{precision}:点击量") - (kept + 1) * precision
        assert -5 <= spare <= kept * precision / 8 + 1
    assert not client.exists(f"{prefix}known:", f"{own}total:")
    assert all(found.startswith(own.encode()) for found in client.scan_iter("*"))


@pytest.mark.parametrize("left", [600, -1])
def test_a_new_slice_renews_life_and_index_entry_of_a_gauge(
    client: Any, open_store: OpenStore, left: int
) -> None:
    """Also where somebody took the life away: there is no other program that it belongs to."""
    store = open_store()
    now = server_time(client)
    measure(store, {"x": 1.0}, now - 60)
    if left < 0:
        client.persist(key(60))
    else:
        client.expire(key(60), left)
    client.zrem("redmeter:gauges:", "60:x")
    measure(store, {"x": 2.0}, now)
    assert client.ttl(key(60)) >= 121 * 60 - 5
    assert client.zscore("redmeter:gauges:", "60:x") == 0.0


def test_another_value_in_the_same_slice_renews_nothing(client: Any, open_store: OpenStore) -> None:
    """Whether it takes the place of the one before or comes too late."""
    store = open_store(retention={DAY: 120})
    now = slice_start(server_time(client), DAY) + 100.0
    measure(store, {"x": 1.0}, now)
    client.expire(key(DAY), 1000)
    measure(store, {"x": 2.0}, now + 5)
    measure(store, {"x": 3.0}, now + 4)
    assert client.ttl(key(DAY)) <= 1000
    assert stored(client, DAY) == {int(now) - 100: (2.0, now + 5)}


def test_a_day_of_values_keeps_the_hashes_small(client: Any, open_store: OpenStore) -> None:
    """At most two fields more than are kept, and all that are."""
    clock = ManualClock(slice_start(server_time(client), DAY) - DAY)
    store = open_store(retention={60: 20, 300: 120}, clock=clock)
    rng = random.Random(3)
    times = []
    for _ in range(400):
        clock.advance(rng.choice([20.5, 60.25, 61.0, 400.0]))
        times.append(clock.wall())
        measure(store, {"x": float(len(times))}, times[-1])
        found = stored(client, 60)
        assert len(found) <= 22
        oldest = slice_start(times[-1], 60) - 19 * 60
        last = {slice_start(t, 60): (float(n), t) for n, t in enumerate(times, 1) if t >= oldest}
        assert {start: entry for start, entry in found.items() if start >= oldest} == last
    assert len(stored(client, 300)) <= 122


def test_an_index_of_gauges_of_another_type_loses_the_index_alone(
    client: Any, open_store: OpenStore
) -> None:
    """Values are kept, and each operation tells that the index could not be."""
    client.set("redmeter:gauges:", "theirs")
    store = open_store()
    outcome = measure(store, {"x": 1.0}, server_time(client))
    assert [r.reason for r in outcome.rejections] == ["unkept"] * len(DEFAULT_RETENTION)
    assert len(stored(client, 60)) == 1


# --- Reading -------------------------------------------------------------------------------


def test_slices_without_a_value_are_gaps(client: Any, open_store: OpenStore) -> None:
    """Between two samples, and from the newest of them to the slice that is running."""
    store = open_store()
    newest = slice_start(server_time(client), DAY)
    measure(store, {"x": 1.5}, newest - 4 * DAY)
    measure(store, {"x": 0.0}, newest - 2 * DAY + 1)
    found = read_gauges(store, ["x", "none"], DAY)
    assert [s.value for s in found["x"]] == [1.5, None, 0.0, None, None]
    assert (found["x"].start, found["x"].partial) == (newest - 4 * DAY, True)
    assert (len(found["none"]), found["none"].partial) == (0, False)


def test_only_the_newest_samples_of_a_gauge_count(client: Any, open_store: OpenStore) -> None:
    """Neither what has left the retention nor what lies ahead; since and until cut slices."""
    store = open_store(retention={DAY: 3})
    store.config()
    newest = slice_start(server_time(client), DAY)
    days = {newest + day * DAY: f"{float(day)} {newest + day * DAY}" for day in range(-5, 3)}
    client.hset(key(DAY), mapping={str(start): text for start, text in days.items()})
    assert values(store, DAY) == [(newest + day * DAY, float(day)) for day in (-2, -1, 0)]
    cut = read_gauges(store, ["x"], DAY, since=newest - 1, until=newest - 1)["x"]
    assert (list(cut.values), cut.partial) == ([-1.0], False)


def test_many_gauges_are_one_round_trip(
    client: Any, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A precision that is not kept is an error, as is another type."""
    store = open_store()
    now = server_time(client)
    measure(store, {f"g{number}": float(number) for number in range(50)}, now)
    with exchanges(monkeypatch) as seen:
        found = read_gauges(store, [f"g{number}" for number in range(50)], DAY)
    assert len(seen) == 1
    assert [one.values[-1] for one in found.values()] == [float(number) for number in range(50)]
    with pytest.raises(UnknownPrecision):
        read_gauges(store, ["x"], 61)
    client.set(key(60), "theirs")
    with pytest.raises(StoreRefused):
        read_gauges(store, ["x"], 60)


def test_names_of_gauges_are_their_own(client: Any, open_store: OpenStore) -> None:
    """A counter is no gauge and a gauge no counter; both may have one name."""
    store = open_store()
    now = server_time(client)
    for name in ("hits", "both"):
        count(store, name, int(now))
    measure(store, {"queue": 1.0, "both": 2.0, 'queue{host="a"}': 3.0}, now)
    assert reading_names.read_names(store) == ["both", "hits"]
    assert reading_names.read_names(store, kind="gauge") == ["both", "queue", 'queue{host="a"}']
    assert reading_names.read_names(store, "queue{*", "gauge") == ['queue{host="a"}']


# --- Cleaning ------------------------------------------------------------------------------


def old_gauges(client: Any, own: str, number: int) -> None:
    """Write gauges of which nothing is kept any more."""
    for at in range(number):
        client.hset(f"{own}gauge:60:old{at}", mapping={"60": "1.0 60.0", "120": "1.0 120.0"})
        client.zadd(f"{own}gauges:", {f"60:old{at}": 0, f"60:bare{at}": 0})


@pytest.mark.parametrize("prefix", ["redmeter:", ""])
def test_a_pass_cleans_the_gauges_after_the_counters(
    client: Any, open_store: OpenStore, prefix: str
) -> None:
    """One report of both: slices that are gone, whole hashes, entries without one."""
    own = prefix or "redmeter:bare:"
    store = open_store(prefix=prefix)
    now = server_time(client)
    measure(store, {"x": 1.0}, now)
    client.hset(f"{own}gauge:60:x", "60", "1.0 60.0")
    client.expire(f"{own}gauge:60:x", 300)
    old_gauges(client, own, 2)
    client.zadd(f"{prefix}known:", {"60:gone": 0})
    report = cleaner.clean(store)
    assert (report.samples_removed, report.hashes_removed, report.entries_removed) == (5, 2, 5)
    assert (report.examined, report.complete) == (1 + len(DEFAULT_RETENTION) + 4, True)
    assert client.zcard(f"{own}gauges:") == len(DEFAULT_RETENTION)
    assert client.hlen(f"{own}gauge:60:x") == 1
    assert client.ttl(f"{own}gauge:60:x") > 7000
    assert not client.exists(f"{own}gauge:60:old0", f"{own}gauge:60:old1")


def test_gauges_are_kept_by_the_stores_retention_whatever_the_listings_keep(
    client: Any, open_store: OpenStore
) -> None:
    """The samples that a caller wants kept are those of counters."""
    store = open_store(prefix="", retention={60: 10})
    store.config()
    now = slice_start(server_time(client), 60)
    for family in ("redmeter:bare:gauge:60:x", "count:60:x"):
        client.hset(family, mapping={str(now - 60 * i): f"1.0 {now - 60 * i}" for i in range(50)})
    client.zadd("redmeter:bare:gauges:", {"60:x": 0})
    client.zadd("known:", {"60:x": 0})
    cleaner.clean(store, samples={}, other_samples=20)
    assert (client.hlen("redmeter:bare:gauge:60:x"), client.hlen("count:60:x")) == (10, 20)


def test_a_pass_that_runs_out_of_time_among_the_gauges_goes_on_there(
    client: Any, open_store: OpenStore
) -> None:
    """The cursor says where; only a whole pass is noted as one."""
    store = open_store()
    store.config()
    now = slice_start(server_time(client), 60)
    live = {f"60:n{number:04}": 0 for number in range(1000)}
    client.zadd("redmeter:known:", dict(itertools.islice(live.items(), 3)))
    client.zadd("redmeter:gauges:", live)
    for entry in live:
        for family in ("gauge", "count"):
            client.hset(f"redmeter:{family}:{entry}", str(now), "1")
    cursors, looked = [0], 0
    while len(cursors) < 30:
        report = cleaner.clean(store, budget=0.0, cursor=cursors[-1])
        looked += report.examined
        assert report.entries_removed == 0
        if report.complete:
            break
        assert not client.exists("redmeter:cleaned:")
        cursors.append(report.cursor)
    assert looked == 1003
    assert [(cursor - 1) % 3 for cursor in (cursors[1], cursors[-1])] == [0, 1]
    assert len(cursors) > 4
    assert client.exists("redmeter:cleaned:")


def test_a_large_gauge_is_cleaned_in_steps(client: Any, open_store: OpenStore) -> None:
    """And brought back to the compact form, as a counter is."""
    store = open_store()
    store.config()
    now = slice_start(server_time(client), 60)
    texts = {str(now - 60 * i): f"1.0 {now - 60 * i}" for i in range(1500)}
    client.hset(key(60), mapping=texts)
    client.hset(key(60, "gone"), mapping={str(60 * i): "1.0 1" for i in range(1500)})
    client.zadd("redmeter:gauges:", {"60:x": 0, "60:gone": 0})
    report = cleaner.clean(store)
    assert report.compacted == 1
    assert 119 <= client.hlen(key(60)) <= 120
    assert client.zrange("redmeter:gauges:", 0, -1) == [b"60:x"]
    assert not client.exists(key(60, "gone"))


def test_without_gauges_a_pass_asks_for_nothing_more(
    client: Any, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many there are comes with the first answer."""
    store = open_store(clock=HastyClock())
    now = server_time(client)
    count(store, "x", int(now))
    with exchanges(monkeypatch) as without:
        cleaner.clean(store)
    measure(store, {"x": 1.0}, now)
    with exchanges(monkeypatch) as with_gauges:
        cleaner.clean(store)
    # One round trip to begin with, two pages of which the second is empty, and one to note it.
    assert len(without) <= 5  # one more where the server does not know the script yet
    assert len(with_gauges) == 6


@pytest.mark.parametrize("counted", [False, True])
def test_a_forgotten_gauge_is_gone_with_the_counter_of_its_name(
    client: Any, open_store: OpenStore, counted: bool
) -> None:
    """Also at precisions that are no longer kept; names that end alike keep theirs."""
    store = open_store(retention={7: 5, 60: 5})
    now = server_time(client)
    measure(store, {"x": 1.0, "yx": 2.0, "60:x": 3.0}, now)
    if counted:
        count(store, "x", int(now))
    store.change_retention([(7, 0), (300, 5)])
    assert forgetting.forget(store, "x")
    assert not forgetting.forget(store, "x")
    left = [b"60:60:x", b"60:yx", b"7:60:x", b"7:yx"]
    assert client.zrange("redmeter:gauges:", 0, -1) == left
    assert all(client.exists(b"redmeter:gauge:" + entry) for entry in left)
    assert not client.exists(key(7), key(60), "redmeter:known:", "redmeter:total:")
