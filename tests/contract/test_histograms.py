"""Histograms: merged in the server as they are in Python, once; kept, trimmed, indexed, refused."""

import itertools
import math
import multiprocessing
import random
import re
import statistics as exact
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redmeter import Meter
from redmeter.clock import ManualClock
from redmeter.maintenance import cleaning as cleaner
from redmeter.maintenance import forgetting
from redmeter.store import Store
from redmeter.stored.counter import counter_operations
from redmeter.stored.exponential_histogram import RELATIVE_ERROR, Distribution
from redmeter.stored.histogram import histogram_operations
from redmeter.stored.keys import DEFAULT_HISTOGRAMS, HOUR, Kept, slice_start
from redmeter.stored.packed_text import buckets_text, moments_text, parse_distribution
from redmeter.types import Batch, Operations, Outcome
from support.examples import scaled
from support.proxy import Proxy
from support.realdata import real_log
from support.servers import Server
from support.stores import OpenMeter, OpenStore, send, server_time

values = st.one_of(
    st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=8),
    st.lists(st.floats(1.0, 4.0), min_size=1, max_size=30),
    st.lists(st.integers(-9, 9).map(float), min_size=1, max_size=30),
    st.lists(st.integers(-1000, 1000).map(lambda e: 2.0**e), min_size=1, max_size=5),
    st.lists(st.sampled_from([0.0, 0.1, 1e-300, 1e300, -1e300]), min_size=1, max_size=5),
)


def of(some: list[float]) -> Distribution:
    """Return the distribution of some values."""
    found = Distribution()
    found.add_all(some)
    return found


def keys(precision: int, name: str = "x", own: str = "redmeter:") -> tuple[str, str]:
    """Return the keys of the two hashes of a histogram."""
    return f"{own}hist:{precision}:{name}", f"{own}moments:{precision}:{name}"


def stored(client: Any, precision: int, name: str = "x") -> dict[int, Distribution | None]:
    """Return a histogram as it is stored: slice start -> distribution, None where it is none."""
    buckets, moments = map(client.hgetall, keys(precision, name))
    assert buckets.keys() == moments.keys()
    return {int(start): parse_distribution(buckets[start], moments[start]) for start in buckets}


def observe(
    store: Store, given_: Mapping[str, list[float]], time: float, **options: Any
) -> Outcome:
    """Observe values at a time, in one batch."""
    slices = {name: {slice_start(time, 1): of(some)} for name, some in given_.items()}

    def build(kept: Kept) -> Operations:
        return histogram_operations(store.keys, kept.histograms, slices)

    return store.shard("").write(build, **options)


def check_same(found: Distribution | None, expected: Distribution) -> None:
    """Check that two are the same, but for the rounding of sums."""
    assert found is not None
    one, other = found.moments, expected.moments
    assert (found.positive, found.negative, found.zeros) == (
        expected.positive,
        expected.negative,
        expected.zeros,
    )
    assert (one.count, one.low, one.high) == (other.count, other.low, other.high)
    largest = max(abs(other.low), abs(other.high))
    assert math.isclose(one.total, other.total, abs_tol=1e-14 * other.count * largest)
    assert math.isclose(
        one.stddev(), other.stddev(), rel_tol=1e-9, abs_tol=min(1e-12 * largest, 1e290)
    )


# --- Merging -------------------------------------------------------------------------------


@settings(max_examples=scaled(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(values, min_size=1, max_size=6), st.integers(86_400, 10**9))
def test_the_server_merges_as_python_does(
    client: Any, open_store: OpenStore, parts: list[list[float]], now: int
) -> None:
    """To the last bucket, and byte for byte the text that Python would write of it.

    Not in the first day of all, whose hours read as those of a day: see stored/intervals.py.
    """
    client.flushall()
    store = open_store(histogram_retention={60: 120}, clock=ManualClock(now))
    whole = Distribution()
    for part in parts:
        assert observe(store, {"x": part}, now, trim=False, refuse=False) == Outcome()
        whole.merge(of(part))
    ((start, found),) = stored(client, 60).items()
    assert start == slice_start(now, 60)
    check_same(found, whole)
    assert client.hget(keys(60)[0], str(start)) == buckets_text(whole).encode()
    store.close()


def test_busy_histograms_merge_as_python_does(client: Any, open_store: OpenStore) -> None:
    """Of hundreds of buckets on both sides of zero, with gaps that are filled later."""
    store, rng = open_store(), random.Random(8)
    now = server_time(client)
    whole = Distribution()
    for _ in range(150):
        spread, at = rng.choice([0.1, 1, 4]), rng.choice([-6, -1, 3, 60])
        sign = rng.choice([-1, 1, 1])
        some = [sign * rng.lognormvariate(at, spread) for _ in range(rng.choice([1, 5, 200]))]
        if rng.random() < 0.2:
            some.append(0.0)
        observe(store, {"x": some}, now)
        whole.merge(of(some))
    assert len(whole.positive) > 300
    for precision in DEFAULT_HISTOGRAMS:
        (found,) = stored(client, precision).values()
        check_same(found, whole)


def test_values_around_a_billion_keep_their_spread(client: Any, open_store: OpenStore) -> None:
    """Written one by one, where sums of squares have lost all of it."""
    store, now = open_store(), server_time(client)
    for digits in range(1, 7):
        spread = 10.0 ** (digits - 1)
        some = [1e9 + spread * (n % 10) / 9 for n in range(60)]
        for value in some:
            observe(store, {f"x{digits}": [value]}, now)
        (found,) = stored(client, 3600, f"x{digits}").values()
        assert found is not None
        assert found.moments.stddev() == pytest.approx(exact.stdev(some), rel=1e-5)


def work(url: str, seed: int, time: float) -> None:
    """Observe in a process of its own."""
    rng = random.Random(seed)
    with Meter(url, flush_interval=0.05) as meter:
        for _ in range(2000):
            meter.observe("x", rng.lognormvariate(-4, 1), at=time)


@pytest.mark.slow
def test_many_processes_give_what_one_would(client: Any, any_server: Server) -> None:
    """Each of them flushes some times while the others do."""
    now = server_time(client)
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=work, args=[any_server.url, seed, now]) for seed in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    rngs = [random.Random(seed) for seed in range(2)]
    whole = of([rng.lognormvariate(-4, 1) for rng in rngs for _ in range(2000)])
    for precision in DEFAULT_HISTOGRAMS:
        ((start, found),) = stored(client, precision).items()
        assert start == slice_start(now, precision)
        check_same(found, whole)


# --- Once ----------------------------------------------------------------------------------


def test_a_batch_sent_three_times_counts_once(client: Any, open_store: OpenStore) -> None:
    """Histograms and statistics alike, also when another one came in between."""
    store, now = open_store(), server_time(client)
    config = store.config()
    slices = {"x": {int(now): of([1.0, 2.0])}}
    made = histogram_operations(store.keys, config.histograms, slices)
    batch = Batch("p" * 32, 1, made)
    assert send(store, batch, config.version, must_exist=False) == Outcome()
    observe(store, {"x": [5.0]}, now)
    for _ in range(2):
        found = send(store, batch, config.version, must_exist=True)
        assert found == Outcome(applied=False)
    for precision in DEFAULT_HISTOGRAMS:
        check_same(stored(client, precision)[slice_start(now, precision)], of([1.0, 2.0, 5.0]))
    assert client.zscore("redmeter:stats:x", "count") == 3


@pytest.mark.parametrize("pattern", ["x", "xx.", ".x"])
def test_lost_replies_change_nothing(client: Any, any_server: Server, pattern: str) -> None:
    """Of a recorder in the background: every value is stored, once."""
    rng = random.Random(3)
    now = server_time(client)
    some = [rng.gauss(0, 1) for _ in range(300)]
    with Proxy(any_server.port) as proxy, Meter(proxy.url, flush_interval=0.01) as meter:
        if pattern == "x":
            proxy.drop_replies(2)
        else:
            proxy.drop_pattern(pattern)
        for at in range(0, 300, 50):
            for value in some[at : at + 50]:
                meter.observe("x", value, at=now)
            assert meter.flush(10.0)
        assert proxy.dropped > 0
        health = meter.recorder_health()
    assert (health.recorded, health.stored, health.losses) == (300, 300, ())
    for precision in DEFAULT_HISTOGRAMS:
        check_same(stored(client, precision)[slice_start(now, precision)], of(some))


def test_a_value_that_finds_itself_in_a_forked_process_stays(
    client: Any, open_meter: OpenMeter
) -> None:
    """Where the fork ran no hooks; with its time, which lies beside it."""
    meter = open_meter(sync=False)
    now = server_time(client)
    cell = meter.histogram("x")
    cell.observe(1.0)
    assert meter.flush()
    meter._recorder._pid = -1
    cell._due = -math.inf
    cell.observe(2.0)
    assert meter.flush()
    assert meter.recorder_health().stored == 1
    merged = Distribution()
    for found in stored(client, 3600).values():
        assert found is not None
        merged.merge(found)
    check_same(merged, of([1.0, 2.0]))
    assert max(stored(client, 5)) >= slice_start(now, 5)


# --- Keeping -------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["redmeter:", "shop.", ""])
def test_a_histogram_lives_for_a_retention_under_every_prefix(
    client: Any, open_store: OpenStore, prefix: str
) -> None:
    """Both of its hashes; the index says where they lie, and statistics live for a week."""
    own = prefix or "redmeter:bare:"
    observe(open_store(prefix=prefix), {"点": [1.0]}, server_time(client))
    entries = client.zrange(f"{own}hists:", 0, -1, withscores=True)
    assert dict(entries) == {f"{p}:点".encode(): 0.0 for p in DEFAULT_HISTOGRAMS}
    for precision, kept in DEFAULT_HISTOGRAMS.items():
        for key in keys(precision, "点", own):
            spare = client.ttl(key) - (kept + 1) * precision
            assert -5 <= spare <= kept * precision / 8 + 1
    for key in (f"{prefix}stats:点", f"{own}stats:点:start"):
        assert -5 <= client.ttl(key) - 7 * 86400 <= 0
    assert not client.exists(f"{prefix}known:", f"{own}gauges:", f"{own}total:")


def test_a_hash_keeps_the_newest_slices(client: Any, open_store: OpenStore) -> None:
    """What has left the retention of histograms goes when a new one is opened, from both hashes."""
    store = open_store(histogram_retention={60: 5, 3600: 2})
    now = server_time(client)
    for ago in range(20, -1, -1):
        observe(store, {"x": [1.0]}, now - 60 * ago, refuse=False)
    newest = slice_start(now, 60)
    for key in keys(60):
        assert client.hlen(key) <= 7
        assert {newest - 60 * ago for ago in range(4)} <= set(map(int, client.hkeys(key)))


def test_a_value_of_a_slice_that_is_no_longer_kept_is_aged(
    client: Any, open_meter: OpenMeter
) -> None:
    """Told once, although two hashes lack it; the coarser slices have it."""
    meter = open_meter(sync=False)
    now = server_time(client)
    for _ in range(3):
        meter.observe("x", 1.5, at=now - 300)
    assert meter.flush()
    assert meter.recorder_health().lost() == {"aged": {5: 3}}
    assert not client.exists(*keys(5))
    check_same(stored(client, 60)[slice_start(now - 300, 60)], of([1.5] * 3))
    meter.observe("x", 1.5, at=now + 10**7)
    meter.flush()
    assert meter.recorder_health().lost()["future"] == {5: 1, 60: 1, 3600: 1}


def test_statistics_of_an_hour_long_ago_are_no_loss(client: Any, open_meter: OpenMeter) -> None:
    """They are of two hours; the histogram has it."""
    meter = open_meter(sync=False)
    now = server_time(client)
    meter.observe("x", 1.5)
    assert meter.flush()
    meter.observe("x", 7.5, at=now - 5 * HOUR)
    assert meter.flush()
    assert 3600 not in meter.recorder_health().lost().get("aged", {})
    check_same(stored(client, 3600)[slice_start(now - 5 * HOUR, HOUR)], of([7.5]))


# --- Refusing ------------------------------------------------------------------------------


@pytest.mark.parametrize("which", [0, 1])
def test_a_key_of_another_type_loses_its_slice_and_nothing_else(
    client: Any, open_meter: OpenMeter, which: int
) -> None:
    """Told once, with how many values."""
    now = server_time(client)
    client.rpush(keys(60)[which], "theirs")
    meter = open_meter(sync=False)
    for name in ("x", "y"):
        meter.observe(name, 1.5, at=now)
        meter.observe(name, 2.5, at=now)
    meter.flush()
    assert meter.recorder_health().lost() == {"WRONGTYPE": {60: 2}}
    assert client.lrange(keys(60)[which], 0, -1) == [b"theirs"]
    for precision, name in itertools.product(DEFAULT_HISTOGRAMS, ("x", "y")):
        if (precision, name) != (60, "x"):
            check_same(stored(client, precision, name)[slice_start(now, precision)], of([1.5, 2.5]))
    assert client.zscore("redmeter:stats:x", "count") == 2


def test_statistics_of_another_type_are_a_loss_of_the_hour(
    client: Any, open_meter: OpenMeter
) -> None:
    """The histogram has what they lack."""
    client.set("redmeter:stats:x", "theirs")
    meter = open_meter(sync=False)
    meter.observe("x", 1.5)
    meter.flush()
    assert meter.recorder_health().lost() == {"WRONGTYPE": {3600: 1}}
    assert len(stored(client, 3600)) == 1


@pytest.mark.parametrize(
    "theirs",
    [
        *("", "7", "||||", "a|b|0||", "1|2|0|=|", "1|2|0|x=1|", "1|2|0|5|", "1|2|0|1=|"),
        *("1|2|0|0=1/2|", "1|2|x|0=1|", "1|2|0|--=1|", "1|2|0|0=1"),
        *("1 nan 0", "0 1 1", "3 1", "3 inf 1", "3 1 1 1", "3 1e999 1"),
    ],
)
def test_a_text_that_is_none_is_nobodys(client: Any, open_store: OpenStore, theirs: str) -> None:
    """The next value takes its place, in both hashes."""
    store, now = open_store(histogram_retention={60: 5}), server_time(client)
    start = slice_start(now, 60)
    store.config()
    for key in keys(60):
        client.hset(key, str(start), theirs)
    assert observe(store, {"x": [5.0, -1.0]}, now) == Outcome()
    check_same(stored(client, 60)[start], of([5.0, -1.0]))


@pytest.mark.parametrize("theirs", ["damaged", "1|2|0|-1=,,,,|", "1|2|0|-1=1==1|", "1|2|0|9=7|"])
def test_one_text_that_is_damaged_damages_no_other_slice(
    client: Any, open_store: OpenStore, theirs: str
) -> None:
    """What does not fit together is nobody's; later slices are right."""
    store = open_store(histogram_retention={60: 5})
    now = server_time(client)
    start = slice_start(now, 60)
    observe(store, {"x": [1.0]}, now - 60)
    observe(store, {"x": [2.0]}, now)
    client.hset(keys(60)[0], str(start - 60), theirs)
    observe(store, {"x": [3.0]}, now - 60)
    observe(store, {"x": [4.0]}, now)
    found = stored(client, 60)
    assert found[start - 60] is None
    check_same(found[start], of([2.0, 4.0]))


def test_counters_and_histograms_of_one_name_go_in_one_batch(
    client: Any, open_store: OpenStore
) -> None:
    """And are two series, also in the index."""
    store, now = open_store(retention={60: 5}, histogram_retention={60: 5}), server_time(client)
    second = int(now)

    def build(kept: Kept) -> Operations:
        counts = counter_operations(store.keys, kept.series, {"x": {second: 3}})
        return counts + histogram_operations(
            store.keys, kept.histograms, {"x": {second: of([1.0])}}
        )

    assert store.shard("").write(build) == Outcome()
    assert client.zrange("redmeter:known:", 0, -1) == [b"60:x"]
    assert client.zrange("redmeter:hists:", 0, -1) == [b"60:x"]
    assert client.hvals("redmeter:count:60:x") == [b"3"]


def test_what_is_not_finite_is_lost_and_told(client: Any, open_meter: OpenMeter) -> None:
    """Whether it is stored in the background or at once; the values beside it are stored."""
    for sync in (False, True):
        meter = open_meter(sync=sync)
        name = f"x{sync}"
        for value in (1.0, math.nan, math.inf, -math.inf, 10**400, 3):
            meter.observe(name, value)
        meter.histogram(name).observe(math.nan)
        assert meter.flush()
        health = meter.recorder_health()
        assert (health.recorded, health.stored, health.dropped) == (7, 2, 5)
        assert set(health.lost()) == {"not-finite"}
        assert health.lost()["not-finite"] == {0: 5, 5: 5, 60: 5, 3600: 5}
        (found,) = stored(client, 3600, name).values()
        check_same(found, of([1.0, 3.0]))


def test_too_many_series_are_put_together(client: Any, open_meter: OpenMeter) -> None:
    """Distributions of several series mean something, as counts do and gauges do not."""
    meter = open_meter(sync=False, max_label_sets=2)
    for number in range(5):
        meter.observe("x", float(number), labels={"n": str(number)})
    assert meter.flush()
    (found,) = stored(client, 3600, 'x{overflow="true"}').values()
    check_same(found, of([2.0, 3.0, 4.0]))
    assert meter.recorder_health().overflowed == 3


# --- Retention and cleaning ----------------------------------------------------------------


def test_a_changed_retention_holds_for_a_writer_that_runs(
    client: Any, open_meter: OpenMeter, open_store: OpenStore
) -> None:
    """From its next write on; counters are not touched by it."""
    meter, store = open_meter(sync=False), open_store()
    meter.observe("x", 1.0)
    assert meter.flush()
    before = store.read()[0].retention
    store.change_retention([(5, 0), (300, 10)], histograms=True)
    meter.observe("y", 1.0)
    assert meter.flush()
    assert {int(key.split(b":")[2]) for key in client.scan_iter("redmeter:hist:*:y")} == {
        60,
        300,
        3600,
    }
    assert store.read()[0].retention == before


def test_the_cleaner_sweeps_histograms(client: Any, open_store: OpenStore) -> None:
    """Slices that went out, whole series, and entries without a hash; nothing that lives."""
    store = open_store(histogram_retention={60: 10})
    store.config()
    now = slice_start(server_time(client), 60)
    text, sums = buckets_text(of([1.0])), moments_text(of([1.0]))
    for name, agos in (("live", range(5)), ("half", range(5, 40)), ("gone", range(10, 40))):
        starts = [str(now - 60 * ago) for ago in agos]
        client.hset(keys(60, name)[0], mapping=dict.fromkeys(starts, text))
        client.hset(keys(60, name)[1], mapping=dict.fromkeys(starts, sums))
    client.hset(keys(60, "one")[1], str(now), sums)  # its other hash is not there
    names = ("live", "half", "gone", "one", "none")
    client.zadd("redmeter:hists:", {f"60:{name}": 0 for name in names})
    report = cleaner.clean(store)
    assert (report.complete, report.strange) == (True, [])
    assert (report.examined, report.entries_removed, report.hashes_removed) == (5, 2, 2)
    assert report.samples_removed == 2 * (30 + 30)
    assert [client.hlen(key) for key in keys(60, "live")] == [5, 5]
    assert [client.hlen(key) for key in keys(60, "half")] == [5, 5]
    assert not client.exists(*keys(60, "gone"))
    assert client.zrange("redmeter:hists:", 0, -1) == [b"60:half", b"60:live", b"60:one"]


def test_large_and_strange_histograms_stop_no_pass(client: Any, open_store: OpenStore) -> None:
    """Hashes of very many fields are cleaned in steps; keys of another type are left alone."""
    store = open_store(histogram_retention={60: 10})
    store.config()
    now = slice_start(server_time(client), 60)
    many = {str(now - 60 * ago): "x" * 100 for ago in range(1500)}
    for key in keys(60, "large"):
        client.hset(key, mapping=many)
    client.hset(keys(60, "odd")[0], mapping=many)
    client.rpush(keys(60, "odd")[1], "theirs")
    old = {str(now - 60 * ago): "x" for ago in range(600, 1500)}
    for key in keys(60, "old"):
        client.hset(key, mapping=old)
    client.zadd("redmeter:hists:", {f"60:{name}": 0 for name in ("large", "odd", "old")})
    report = cleaner.clean(store)
    assert report.strange == ["60:odd"]
    assert [client.hlen(key) for key in keys(60, "large")] == [10, 10]
    assert client.hlen(keys(60, "odd")[0]) == 1500
    assert not client.exists(*keys(60, "old"))
    assert client.zrange("redmeter:hists:", 0, -1) == [b"60:large", b"60:odd"]
    assert report.compacted == 0


def test_a_pass_that_runs_out_of_time_goes_on_in_the_index_where_it_stopped(
    client: Any, open_store: OpenStore
) -> None:
    """Counters, gauges, histograms; each entry is looked at once."""
    store = open_store()
    store.config()
    now = slice_start(server_time(client), 60)
    numbers = {"known": 3, "gauges": 2, "hists": 1000}
    families = {"known": ("count",), "gauges": ("gauge",), "hists": ("hist", "moments")}
    for index, number in numbers.items():
        entries = [f"60:n{n:04}" for n in range(number)]
        client.zadd(f"redmeter:{index}:", dict.fromkeys(entries, 0))
        for entry, family in itertools.product(entries, families[index]):
            client.hset(f"redmeter:{family}:{entry}", str(now), "1")
    cursor, looked, indexes = 0, 0, []
    for _ in range(30):
        report = cleaner.clean(store, budget=0.0, cursor=cursor)
        looked += report.examined
        if report.complete:
            break
        cursor = report.cursor
        indexes.append((cursor - 1) % 3)
    assert (looked, sorted(set(indexes))) == (1005, [0, 1, 2])
    assert indexes == sorted(indexes)


def test_forgetting_a_name_forgets_all_of_it(client: Any, open_meter: OpenMeter) -> None:
    """Its histogram and its statistics too, also at precisions that are no longer kept."""
    meter = open_meter()
    for name in ("x", "y"):
        meter.observe(name, 1.0)
        meter.count(name)
    store = meter._store
    assert store is not None
    store.change_retention([(5, 0)], histograms=True)
    assert forgetting.forget(store, "x")
    left = [key.decode() for key in client.scan_iter("*")]
    assert not [key for key in left if key.endswith((":x", "stats:x:start"))]
    assert client.zrange("redmeter:hists:", 0, -1) == [b"3600:y", b"5:y", b"60:y"]
    assert not forgetting.forget(store, "x")


# --- Real data -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sizes() -> list[int]:
    """The sizes of all responses of the real access log."""
    text = real_log().read_text(encoding="utf-8", errors="replace")
    found = [int(size) for size in re.findall(r'" \d{3} (\d+)(?: |$)', text, re.MULTILINE)]
    assert len(found) > 9000
    return found


@pytest.mark.realdata
def test_response_sizes_of_the_real_log_are_told_right(
    client: Any, open_meter: OpenMeter, sizes: list[int]
) -> None:
    """Count, sum and extremes exactly, percentiles within the bound, by the sorted sizes."""
    meter = open_meter(sync=False)
    now = server_time(client)
    response = meter.histogram("response_bytes")
    for number, size in enumerate(sizes):
        response.observe(size)
        if number % 1000 == 0:
            assert meter.flush()
    assert meter.flush()
    whole = Distribution()
    for each in stored(client, 3600, "response_bytes").values():
        assert each is not None
        whole.merge(each)
    assert now - 60 < server_time(client)
    assert (whole.count, whole.moments.total) == (len(sizes), sum(sizes))
    assert (whole.moments.low, whole.moments.high) == (min(sizes), max(sizes))
    assert whole.moments.stddev() == pytest.approx(exact.stdev(sizes), rel=1e-9)
    ordered = sorted(sizes)
    for q in (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999):
        truth = ordered[math.ceil(q * len(sizes)) - 1]
        assert abs(whole.quantile(q) - truth) <= RELATIVE_ERROR * 1.0001 * truth
