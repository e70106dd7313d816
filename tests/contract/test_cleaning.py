"""Cleaning: what has left the retention goes, and nothing that lives, whoever else is at work."""

import contextlib
import itertools
import os
import random
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redmeter import AccessDenied, ClockDisagreement, InvalidName, StoreRefused
from redmeter.cleaning import Report, clean, forget, forget_logger, forget_mark, run
from redmeter.clock import ManualClock
from redmeter.keys import DEFAULT_RETENTION, slice_start
from redmeter.store import Store
from support import listings
from support.servers import Server
from support.stores import HastyClock, OpenMeter, OpenStore, count, samples, server_time

DAY = 86400
HOUR = 3600


def fill(client: Any, precision: int, starts: list[int], name: str = "x") -> None:
    """Write a counter without time to live, as another program does."""
    pipe = client.pipeline(transaction=False)
    for at in range(0, len(starts), 5000):
        pipe.hset(f"count:{precision}:{name}", mapping={str(s): 1 for s in starts[at : at + 5000]})
    pipe.zadd("known:", {f"{precision}:{name}": 0})
    pipe.execute()


def everything(client: Any) -> dict[bytes, Any]:
    """Return the index and all hashes."""
    found = {key: client.hgetall(key) for key in client.scan_iter("count:*", count=1000)}
    return found | {b"known:": client.zrange("known:", 0, -1)}


def encoding(client: Any, key: str) -> bytes:
    """Return how the server stores a key."""
    return bytes(client.execute_command("OBJECT", "ENCODING", key))


COMPACT = (b"listpack", b"ziplist")


@pytest.fixture
def bare(open_store: OpenStore) -> Store:
    """A store on the keys of the listings."""
    return open_store(prefix="")


# --- What goes -----------------------------------------------------------------------------


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), passes=st.sampled_from([0, 1, 5, 59, 60, 300, 1440]))
def test_a_pass_leaves_what_the_listings_pass_leaves(
    client: Any, open_store: OpenStore, seed: int, passes: int
) -> None:
    """On the same random data, at the same second, in any pass; also to the very edge."""
    rng = random.Random(seed)
    now = int(server_time(client)) - rng.randrange(3000)
    client.flushall()
    for number in range(rng.randrange(1, 12)):
        precision = rng.choice([1, 5, 60, 300, HOUR, 5 * HOUR, DAY, 7, 59, 61, 119, 121])
        span = rng.choice([100, 130, 200, 300, 700])
        age = rng.choice([0, 50, 110, 119, 120, 121, 500])
        newest = now - now % precision - age * precision
        # Not on the grid: other programs may use another.
        edge = now - 120 * precision
        starts = {newest - rng.randrange(span) * precision for _ in range(span)}
        starts |= set(rng.sample([edge - 1, edge, edge + 1, -5, 0, 5, now + DAY], 2))
        if rng.random() < 0.3:
            starts = {start for start in starts if start <= edge} | {edge}
        fill(client, precision, sorted(starts), f"series{number}")
    before = {key: client.dump(key) for key in client.scan_iter("*", count=1000)}
    listings.clean(client, passes, now=now)
    expected = everything(client)
    client.flushall()
    for key, dump in before.items():
        client.restore(key, 0, dump)
    store = open_store(prefix="", clock=ManualClock(now + 0.9))
    report = clean(store, passes=passes)
    assert everything(client) == expected
    assert report.complete
    assert report.strange == []
    store.close()


@pytest.mark.parametrize("precision", [1, 60, 61])
def test_a_slice_goes_in_the_second_it_has_left_the_retention(
    client: Any, open_store: OpenStore, precision: int
) -> None:
    """In either spelling: started `samples` slices ago it goes, a second younger it stays."""
    now = int(server_time(client)) - 500
    edge = now - 120 * precision
    fields = [f"{edge + off}{tail}" for off in (-1, 0, 1) for tail in ("", ".0")]
    client.hset(f"count:{precision}:x", mapping=dict.fromkeys(fields, 1))
    client.zadd("known:", {f"{precision}:x": 0})
    report = clean(open_store(prefix="", clock=ManualClock(now)))
    left = {field.decode() for field in client.hkeys(f"count:{precision}:x")}
    assert left == {f"{edge + 1}", f"{edge + 1}.0"}
    assert (report.slices_removed, report.hashes_removed, report.entries_removed) == (4, 0, 0)


def test_starts_before_1970_and_float_spellings_go_too(client: Any, bare: Store) -> None:
    """And what lives stays, however it is spelled."""
    now = slice_start(server_time(client), 60)
    live = [str(now), f"{now - 60}.0", f"{now - 120}.5"]
    gone = ["-60", "0", "60", "1336376400", "1336376400.0", "-1336376400", "999999999"]
    client.hset("count:60:x", mapping=dict.fromkeys([*live, *gone], 1))
    client.zadd("known:", {"60:x": 0})
    assert clean(bare).slices_removed == len(gone)
    assert {field.decode() for field in client.hkeys("count:60:x")} == set(live)


def test_fields_that_are_no_times_stay(client: Any, bare: Store) -> None:
    """Whatever their length and the character they begin with."""
    theirs = ["note", "", "(metadata)", "#comment 1", "1585-00000", "!!!!!!!!!!", "nan"]
    client.hset("count:60:x", mapping=dict.fromkeys([*theirs, "1336376400"], 1))
    client.zadd("known:", {"60:x": 0})
    clean(bare)
    assert {field.decode() for field in client.hkeys("count:60:x")} == set(theirs)


def test_an_entry_without_a_hash_goes(client: Any, bare: Store) -> None:
    """Its hash expired, or somebody deleted it; live ones stay."""
    now = int(server_time(client))
    fill(client, 60, [now])
    client.zadd("known:", {"60:gone": 0, "1:x": 0, f"{DAY}:点击量": 0})
    report = clean(bare)
    assert client.zrange("known:", 0, -1) == [b"60:x"]
    assert (report.entries_removed, report.hashes_removed, report.looked_at) == (3, 0, 4)


def test_a_hash_of_which_nothing_is_left_goes_with_its_entry(client: Any, bare: Store) -> None:
    """And is counted."""
    fill(client, 60, [1336376400, 1336376460])
    report = clean(bare)
    assert client.dbsize() <= 1  # but for the note of when a pass was made
    assert not client.exists("known:", "count:60:x")
    assert (report.slices_removed, report.hashes_removed, report.entries_removed) == (2, 1, 1)


@pytest.mark.parametrize(
    "theirs", ["60*60:hits", ":x", "x:y", "60", "60:", "-60:x", "1e3:x", "99999999999:x", "²:x"]
)
def test_entries_that_do_not_parse_are_left_alone_and_reported(
    client: Any, bare: Store, theirs: str
) -> None:
    """With the hash that may belong to them; all others of the page are cleaned."""
    client.zadd("known:", {theirs: 0, "60:gone": 0, "1:gone": 0})
    client.hset("count:" + theirs, mapping={"1336376400": 1})
    report = clean(bare)
    assert client.zrange("known:", 0, -1) == [theirs.encode()]
    assert client.hlen("count:" + theirs) == 1
    assert report.strange == [ascii(theirs)]
    assert report.entries_removed == 2


def test_names_that_end_in_a_colon_are_names(client: Any, bare: Store) -> None:
    """They neither stay uncleaned nor keep others from being cleaned."""
    for name in ("x", "zz:", ":", "a:b:"):
        fill(client, 60, [1336376400], name)
    report = clean(bare)
    assert not client.exists("known:")
    assert (report.hashes_removed, report.strange) == (4, [])


def test_names_that_are_no_text_are_cleaned_by_their_bytes(client: Any, bare: Store) -> None:
    """Another program may write what we cannot spell."""
    now = int(server_time(client))
    name = b"\xff\xfe*"
    client.hset(b"count:60:" + name, mapping={str(now): 1, "1336376400": 1})
    client.zadd("known:", {b"60:" + name: 0})
    assert clean(bare).slices_removed == 1
    assert client.hkeys(b"count:60:" + name) == [str(now).encode()]


def test_keys_of_another_type_are_left_alone_and_reported(client: Any, bare: Store) -> None:
    """The rest is cleaned."""
    client.rpush("count:60:list", "x")
    client.zadd("known:", {"60:list": 0})
    fill(client, 60, [1336376400])
    report = clean(bare)
    assert client.zrange("known:", 0, -1) == [b"60:list"]
    assert report.strange == ["'60:list'"]
    assert report.hashes_removed == 1


def test_precisions_that_the_store_does_not_name_keep_as_many_as_told(
    client: Any, open_store: OpenStore
) -> None:
    """The store's retention holds for its own, `other_samples` for those of other programs."""
    now = int(server_time(client))
    store = open_store(retention={60: 10})
    store.binding()
    for precision in (60, 7):
        key = f"redmeter:count:{precision}:x"
        client.hset(key, mapping={str(now - i * precision): 1 for i in range(50)})
        client.zadd("redmeter:known:", {f"{precision}:x": 0})
    clean(store, other_samples=20)
    assert client.hlen("redmeter:count:60:x") == 10
    assert client.hlen("redmeter:count:7:x") == 20
    clean(store, samples={60: 5, 7: 6})
    assert client.hlen("redmeter:count:60:x") == 5
    assert client.hlen("redmeter:count:7:x") == 6


def test_hashes_that_their_writers_keep_in_order_are_not_touched(
    client: Any, open_meter: OpenMeter, open_store: OpenStore
) -> None:
    """A pass over what a Meter writes changes nothing."""
    meter = open_meter()
    now = server_time(client)
    for ago in (0, 1, 61, 3700, DAY + 1):
        meter.count("x", at=now - ago)
    before = {key: client.dump(key) for key in client.scan_iter("redmeter:count:*")}
    report = clean(open_store())
    assert {key: client.dump(key) for key in client.scan_iter("redmeter:count:*")} == before
    assert report.looked_at == len(DEFAULT_RETENTION)
    assert (report.slices_removed, report.hashes_removed, report.entries_removed) == (0, 0, 0)


def test_a_hash_that_others_go_on_with_lives_as_long_as_its_newest_sample(
    client: Any, open_store: OpenStore
) -> None:
    """We gave it a time to live, they do not renew it: the cleaner does, and never shortens it."""
    store, key = open_store(), "redmeter:count:60:x"
    now = int(server_time(client))
    client.hset(key, mapping={str(now - 60 * i): 1 for i in range(100)})
    client.zadd("redmeter:known:", {"60:x": 0})
    client.expire(key, 300)
    clean(store)
    assert client.ttl(key) >= 119 * 60
    client.expire(key, 10**6)
    clean(store)
    assert client.ttl(key) > 10**6 - 10
    client.persist(key)
    clean(store)
    assert client.ttl(key) == -1


def test_a_hash_that_may_expire_before_the_pass_after_next_is_looked_at(
    client: Any, open_store: OpenStore
) -> None:
    """More than half of a short retention is left, and still less than two minutes."""
    key, now = "redmeter:count:1:x", int(server_time(client))
    client.hset(key, mapping={str(now - i): 1 for i in range(30)})
    client.zadd("redmeter:known:", {"1:x": 0})
    client.expire(key, 90)
    clean(open_store())
    assert client.ttl(key) >= 115


# --- Schedule ------------------------------------------------------------------------------


def test_a_precision_of_n_minutes_is_looked_at_in_every_nth_pass(client: Any, bare: Store) -> None:
    """Narrower ones in every pass, and all in the first."""
    precisions = [1, 59, 60, 119, 120, 300, HOUR, DAY]
    client.zadd("known:", {f"{precision}:gone": 0 for precision in precisions})
    for passes in (0, 1, 2, 3, 5, 60, 1440, 1441):
        client.zadd("known:", {f"{precision}:gone": 0 for precision in precisions})
        report = clean(bare, passes=passes)
        due = [precision for precision in precisions if passes % max(1, precision // 60) == 0]
        left = {int(entry.partition(b":")[0]) for entry in client.zrange("known:", 0, -1)}
        assert left == set(precisions) - set(due)
        assert (report.looked_at, report.not_due) == (len(due), len(left))


def test_a_cleaner_makes_a_pass_a_minute_until_it_is_told_to_stop(
    client: Any, open_store: OpenStore
) -> None:
    """By the monotonic clock; and it asks at least once a second whether to stop."""
    clock = ManualClock(server_time(client))
    asked: list[float] = []
    starts: list[float] = []

    def stop() -> bool:
        asked.append(clock.monotonic())
        return len(starts) == 5

    client.zadd("known:", {f"{HOUR}:gone": 0})
    store = open_store(prefix="", clock=clock)
    run(store, quit=stop, on_pass=lambda _: starts.append(clock.monotonic()))
    # A pass itself takes as long as its pauses by this clock.
    pauses = [b - a for a, b in itertools.pairwise(starts)]
    assert pauses == pytest.approx([60.0] * 4, abs=0.01)
    assert max(b - a for a, b in itertools.pairwise(asked)) <= 1.0


def test_trouble_that_passes_is_logged_and_tried_again(
    client: Any, open_store: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    """The index is another type for the first two passes, then a cleaner works again."""
    clock = ManualClock(server_time(client))
    client.set("known:", "theirs")
    reports: list[Report] = []
    tries = []

    def stop() -> bool:
        if clock.monotonic() >= 119 and client.type("known:") == b"string":
            client.delete("known:")
            client.zadd("known:", {"60:gone": 0})
        tries.append(clock.monotonic())
        return bool(reports) or clock.monotonic() > 600

    run(open_store(prefix="", clock=clock), quit=stop, on_pass=reports.append)
    assert [report.entries_removed for report in reports] == [1]
    assert 2 <= len(caplog.records) <= 3


def test_trouble_that_does_not_pass_ends_the_cleaner(
    any_server: Server, client: Any, open_store: OpenStore
) -> None:
    """A user who may not clean, at once; not a log line a minute for ever."""
    client.execute_command("ACL", "SETUSER", "app", "on", ">s3cret-word", "~*", "+@all", "-evalsha")
    client.execute_command("ACL", "SETUSER", "app", "-eval")
    fill(client, 60, [1336376400])
    store = open_store(f"redis://app:s3cret-word@127.0.0.1:{any_server.port}/0", prefix="")
    with pytest.raises(AccessDenied) as caught:
        run(store, quit=lambda: False)
    assert caught.value.code == "NOPERM"
    assert "s3cret-word" not in str(caught.value)
    assert client.hlen("count:60:x") == 1


# --- Clocks --------------------------------------------------------------------------------


@pytest.mark.parametrize("off", [3650 * DAY, -3650 * DAY, HOUR + 60, -HOUR - 60])
def test_a_cleaner_whose_clock_is_wildly_off_refuses(
    client: Any, open_store: OpenStore, off: int
) -> None:
    """Nothing is touched, and the error says by how much."""
    now = server_time(client)
    fill(client, 60, [int(now) - 60 * i for i in range(300)])
    before = everything(client)
    with pytest.raises(ClockDisagreement) as caught:
        clean(open_store(prefix="", clock=ManualClock(now + off)))
    assert abs(caught.value.difference + off) < 60
    assert everything(client) == before


@pytest.mark.parametrize("off", [HOUR - 60, -HOUR + 60])
def test_within_the_hour_the_earlier_clock_decides(
    client: Any, open_store: OpenStore, off: int
) -> None:
    """No sample is removed that lives by either clock."""
    now = server_time(client)
    starts = [int(now) + 3 - i for i in range(400)]
    fill(client, 1, starts)
    clean(open_store(prefix="", clock=ManualClock(now + off)))
    left = set(samples(client, "count:1:x"))
    expected = {start for start in starts if start > min(now, now + off) - 120}
    assert expected - left <= set(range(int(now) - 122, int(now) - 110))  # time has gone on
    assert len(left - expected) <= 1


# --- Large hashes --------------------------------------------------------------------------


@pytest.mark.slow
def test_a_hash_of_100000_stale_fields_is_brought_back_to_the_compact_form(
    client: Any, bare: Store
) -> None:
    """In steps that touch a bounded number of fields each, so that nobody waits for long."""
    now = int(server_time(client))  # so that none leaves within the minute
    fill(client, 60, [now - i * 60 for i in range(100_000)])
    fill(client, 60, [now - i * 60 for i in range(150, 100_000)], "stale")
    assert encoding(client, "count:60:x") == b"hashtable"
    size = client.memory_usage("count:60:x", samples=0)
    client.config_set("slowlog-log-slower-than", "0")
    client.config_set("slowlog-max-len", "10000")
    client.slowlog_reset()
    report = clean(bare)
    calls = client.slowlog_get(10000)
    client.config_set("slowlog-log-slower-than", "10000")
    assert client.hlen("count:60:x") == 120
    assert encoding(client, "count:60:x") in COMPACT
    assert client.memory_usage("count:60:x", samples=0) < size / 100
    assert not client.exists("count:60:stale")
    assert report.slices_removed == 100_000 - 120 + 100_000 - 150
    assert report.compacted == 1
    assert sum(call["command"].startswith(b"HDEL") for call in calls) >= 200
    # The log keeps 31 arguments and says how many more there were.
    for call in calls:
        more = call["command"].rpartition(b"... (")[2].partition(b" more")[0]
        assert not call["command"].endswith(b" more arguments)") or int(more) < 1100
        assert not call["command"].startswith((b"HKEYS", b"HVALS", b"DEL "))
    # On an idle machine none takes 5 ms; on a busy one a few may be kept waiting.
    # An entry whose large hash is gone goes with the next pass at the latest.
    clean(bare)
    assert client.zrange("known:", 0, -1) == [b"60:x"]
    times = sorted(call["duration"] for call in calls)
    assert times[int(len(times) * 0.98)] < 5000


def test_a_hash_that_was_trimmed_by_the_listings_is_made_compact(client: Any, bare: Store) -> None:
    """It has grown past 512 fields before: its few fields fill a hash table, until rewritten."""
    now = int(server_time(client))
    fill(client, 60, [now - i * 60 for i in range(3000)])
    client.expire("count:60:x", 7777)
    assert clean(bare).compacted == 1
    assert encoding(client, "count:60:x") in COMPACT
    assert samples(client, "count:60:x") == {now - i * 60: 1 for i in range(120)}
    assert 7770 <= client.ttl("count:60:x") <= 7777


def test_a_hash_with_a_thousand_live_slices_is_left(client: Any, bare: Store) -> None:
    """Of a clock far ahead: nothing of it has gone."""
    now = int(server_time(client))
    starts = [now + i * 60 for i in range(2000)]
    fill(client, 60, [*starts, now - 60 * 600])
    assert clean(bare).slices_removed == 1
    assert set(samples(client, "count:60:x")) == set(starts)


@pytest.mark.parametrize("missing", ["hset", "pexpire"])
def test_a_user_who_may_not_write_a_hash_anew_loses_nothing(
    any_server: Server, client: Any, open_store: OpenStore, missing: str
) -> None:
    """The rewriting fails before or after, but never between removing and writing."""
    now = int(server_time(client))
    fill(client, 60, [now - i * 60 for i in range(3000)])
    client.expire("count:60:x", 10**6)
    client.execute_command(
        *("ACL", "SETUSER", "app", "on", ">s3cret-word", "~*", "+@all", "-" + missing)
    )
    store = open_store(f"redis://app:s3cret-word@127.0.0.1:{any_server.port}/0", prefix="")
    with pytest.raises(AccessDenied):
        clean(store)
    assert samples(client, "count:60:x") == {now - i * 60: 1 for i in range(120)}


def test_a_server_without_memory_is_cleaned_all_the_same(client: Any, bare: Store) -> None:
    """That is what it needs; a hash that cannot be written anew is not lost."""
    now = int(server_time(client))
    fill(client, 60, [now - i * 60 for i in range(3000)])
    fill(client, 60, [1336376400], "gone")
    clean(bare, passes=1)  # the scripts are known to the server from here on
    fill(client, 60, [now - i * 60 for i in range(3000)])
    client.config_set("maxmemory", "1")
    with contextlib.suppress(StoreRefused):
        clean(bare)
    client.config_set("maxmemory", "0")
    assert samples(client, "count:60:x") == {now - i * 60: 1 for i in range(120)}
    assert not client.exists("count:60:gone")


# --- Steps ---------------------------------------------------------------------------------


def test_a_pass_that_runs_out_of_time_goes_on_where_it_stopped(
    client: Any, open_store: OpenStore
) -> None:
    """Page by page; together the passes see every entry, although many go on the way."""
    now = int(server_time(client))
    store = open_store(prefix="")
    pipe = client.pipeline(transaction=False)
    for i in range(3500):
        if i % 3 == 0:
            pipe.hset(f"count:60:s{i:05}", str(now), 1)
        pipe.zadd("known:", {f"60:s{i:05}": 0})
    pipe.execute()
    cursor, looked, removed, calls = 0, 0, 0, 0
    while True:
        report = clean(store, budget=0.0, cursor=cursor)
        looked, removed, calls = (
            looked + report.looked_at,
            removed + report.entries_removed,
            calls + 1,
        )
        cursor = report.cursor
        if report.complete:
            break
        assert cursor > 0
    assert (looked, removed) == (3500, 3500 - 1167)
    assert 2 <= calls <= 50
    left = client.zrange("known:", 0, -1)
    assert left == [f"60:s{i:05}".encode() for i in range(0, 3500, 3)]


def test_progress_is_told_after_each_page(client: Any, bare: Store) -> None:
    """With the size that the index had."""
    client.zadd("known:", {f"60:s{i}": 0 for i in range(2500)})
    told: list[tuple[int, int]] = []
    clean(bare, progress=lambda report, size: told.append((report.looked_at, size)))
    looked = [looked for looked, _ in told]
    assert looked == sorted(looked)
    assert 2 <= len(set(looked)) <= 50
    assert looked[-1] == 2500
    assert told[0][1] == 2500


# --- Company -------------------------------------------------------------------------------


def test_two_cleaners_at_once_remove_everything_once(client: Any, open_store: OpenStore) -> None:
    """What the one has removed the other does not count, and no live sample is lost."""
    now = int(server_time(client))
    for i in range(300):
        fill(client, 60, [now - 60 * j for j in range(i, i + 150)], f"s{i}")
    reports: list[Report] = []

    def work(store: Store) -> None:
        reports.append(clean(store))

    stores = [open_store(prefix="") for _ in range(3)]
    threads = [threading.Thread(target=work, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(report.slices_removed for report in reports) == sum(
        len([j for j in range(i, i + 150) if j >= 120]) for i in range(300)
    )
    assert sum(report.hashes_removed for report in reports) == 180
    assert sum(report.entries_removed for report in reports) == 180
    for i in range(120):
        assert set(samples(client, f"count:60:s{i}")) == {now - 60 * j for j in range(i, 120)}
    assert client.zcard("known:") == 120


def test_cleaners_beside_writers_lose_no_live_sample(client: Any, open_store: OpenStore) -> None:
    """Counters that come back while their last old slice goes: sums and index entries are whole."""
    names = [f"s{i}" for i in range(5)]
    stop = threading.Event()
    failures: list[BaseException] = []
    rounds = 60

    def cleaning() -> None:
        store = open_store()
        try:
            while not stop.is_set():
                clean(store)
        except BaseException as error:
            failures.append(error)
            raise

    def staling() -> None:
        # Another program's slices, long gone, in the same hashes.
        try:
            with_stale = client.pipeline(transaction=False)
            while not stop.is_set():
                for name in names:
                    with_stale.hset(f"redmeter:count:60:{name}", mapping={"60": 1, "120": 1})
                with_stale.execute()
        except BaseException as error:
            failures.append(error)
            raise

    now = int(server_time(client))
    helpers = [threading.Thread(target=cleaning, daemon=True) for _ in range(2)]
    helpers.append(threading.Thread(target=staling, daemon=True))
    for helper in helpers:
        helper.start()
    writers = [open_store() for _ in range(2)]

    def writing(store: Store) -> None:
        for step in range(rounds):
            for name in names:
                count(store, name, now - 60 * (step % 100))

    threads = [threading.Thread(target=writing, args=(store,)) for store in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    for helper in helpers:
        helper.join()
    assert failures == []
    clean(writers[0])
    for name in names:
        stored = samples(client, f"redmeter:count:60:{name}")
        live = {start: n for start, n in stored.items() if start > 200}
        assert sum(live.values()) == 2 * rounds
        assert client.zscore("redmeter:known:", f"60:{name}") == 0.0


def removals(client: Any) -> int:
    """Return how many HDELs the server has carried out."""
    return int(client.info("commandstats").get("cmdstat_hdel", {"calls": 0})["calls"])


_CLEANER = """
import sys
from redmeter import cleaning, store
opened = store.open(sys.argv[1], prefix="")
print("ready", flush=True)
while True:
    cleaning.clean(opened)
"""


@pytest.mark.slow
def test_a_cleaner_that_is_killed_half_way_leaves_nothing_half_done(
    any_server: Server, client: Any, bare: Store
) -> None:
    """Live samples and their entries are all there, and the next pass finishes the work."""
    now = int(server_time(client))
    live = [now - 60 * j for j in range(100)]
    stale = [now - 60 * j for j in range(200, 500)]
    rng = random.Random(7)
    for i in range(50):
        fill(client, 60, live + stale, f"mixed{i}")
        fill(client, 60, stale, f"stale{i}")
    fill(client, 60, live + [now - 60 * j for j in range(200, 12_000)], "large")
    for _ in range(2):
        child = subprocess.Popen(
            [sys.executable, "-c", _CLEANER, any_server.url],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        target = removals(client) + rng.randrange(1, 40)
        deadline = time.monotonic() + 5
        while removals(client) < target and client.hlen("count:60:large") > 100:
            assert time.monotonic() < deadline, "the cleaner is not at work"
        child.kill()
        child.wait()
        child.stdout.close()
        for i in range(50):
            assert set(live) <= set(samples(client, f"count:60:mixed{i}"))
            assert client.zscore("known:", f"60:mixed{i}") == 0.0
            # No hash is left without its entry.
            if client.exists(f"count:60:stale{i}"):
                assert client.zscore("known:", f"60:stale{i}") == 0.0
        assert set(live) <= set(samples(client, "count:60:large"))
    clean(bare)
    assert client.zcard("known:") == 51
    assert client.hlen("count:60:large") == 100
    assert encoding(client, "count:60:large") in COMPACT


# --- Forgetting ----------------------------------------------------------------------------


def test_a_forgotten_counter_is_gone_and_nothing_else_is(
    client: Any, open_meter: OpenMeter, open_store: OpenStore
) -> None:
    """Samples, index entries and total; not the label sets of the same name, nor longer names."""
    meter = open_meter()
    for name in ("x", 'x{plan="pro"}', "xy", "*"):
        meter.count(name, 2)
    store = open_store()
    assert forget(store, "*")
    assert forget(store, "x")
    assert not forget(store, "x")
    assert not forget(store, "never")
    assert meter.names() == ["xy", 'x{plan="pro"}']
    assert (meter.total("x"), meter.total("xy")) == (0, 2)
    assert list(client.scan_iter("redmeter:count:*:x", count=1000)) == []
    assert forget(store, 'x{ plan = "pro", }')
    assert meter.names() == ["xy"]
    meter.count("x")
    assert meter.total("x") == 1


def test_a_counter_is_forgotten_at_precisions_that_are_no_longer_kept(
    client: Any, open_meter: OpenMeter, open_store: OpenStore
) -> None:
    """And at those of other programs; names that end alike keep theirs."""
    meter = open_meter(retention={7: 5, 60: 5})
    for name in ("x", "60:x", "yx", "y:x"):
        meter.count(name)
    store = open_store()
    store.change_retention([(7, 0), (300, 5)])
    assert forget(store, "x")
    left = client.zrange("redmeter:known:", 0, -1)
    assert left == [b"60:60:x", b"60:y:x", b"60:yx", b"7:60:x", b"7:y:x", b"7:yx"]
    assert all(client.exists(b"redmeter:count:" + entry) for entry in left)
    assert not client.exists("redmeter:count:7:x", "redmeter:count:60:x")


def test_a_forgotten_logger_leaves_nothing_behind(
    client: Any, open_meter: OpenMeter, open_store: OpenStore
) -> None:
    """No text of it, in no key, also where other programs wrote; other loggers keep theirs."""
    meter, secret = open_meter(), b"HUNTER2"
    for name in ("app", "app2", "my.app"):
        meter.log(name, "it is HUNTER2", severity="error")
    meter.log("app", "HUNTER2 again", severity="odd")
    hour = int(server_time(client)) // 3600 * 3600
    client.set("redmeter:common:app:error:start", hour - 3600)
    meter.log("app", "it is HUNTER2", severity="error")
    client.lpush("redmeter:recent:app:debug", b"HUNTER2")  # in no index
    client.lpush("redmeter:recent:app:info:x", b"HUNTER2")  # of logger "app:info"
    store = open_store()
    assert forget_logger(store, "app")
    left = {key for key in client.keys("*") if secret in client.dump(key)}
    kinds = ("recent", "common", "patterns")
    others = {f"redmeter:{k}:{name}:error".encode() for k in kinds for name in ("app2", "my.app")}
    assert left == {*others, b"redmeter:recent:app:info:x"}
    assert client.keys("redmeter:*:app:*") == [b"redmeter:recent:app:info:x"]
    assert {s.logger for s in meter.loggers()} == {"app2", "my.app"}
    assert not forget_logger(store, "app")
    with pytest.raises(InvalidName, match="invalid logger name"):
        forget_logger(store, "a\nb")


def test_marks_of_a_label_are_forgotten(
    client: Any, open_meter: OpenMeter, open_store: OpenStore
) -> None:
    """However many; the label as it is stored. What another program put there stays."""
    meter, now = open_meter(), server_time(client)
    for at in (now, now - 3600, now - 7200):
        meter.mark("v1 x", at=at)
    meter.mark("v1")
    client.zadd("redmeter:marks:", {"theirs": 1})
    store = open_store()
    assert forget_mark(store, "  v1\tx ") == 3
    assert forget_mark(store, "v1 x") == 0
    assert [one.label for one in meter.marks()] == ["v1"]
    assert client.zscore("redmeter:marks:", "theirs") == 1


def test_cleaning_an_empty_store_makes_no_store(client: Any, open_store: OpenStore) -> None:
    """It asks, and finds nothing to do."""
    report = clean(open_store(clock=HastyClock()))
    assert (report.looked_at, report.complete) == (0, True)
    assert not client.exists("redmeter:meta:", "redmeter:known:")
