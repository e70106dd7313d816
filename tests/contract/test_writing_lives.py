"""How long a counter lives that is written to, and how few slices of it stay."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redmeter.clock import ManualClock
from redmeter.stored.keys import DEFAULT_RETENTION, slice_start
from redmeter.types import Outcome
from support.examples import scaled
from support.stores import (
    OpenMeter,
    OpenStore,
    count,
    count_all,
    samples,
    server_time,
    store_all,
)
from support.writing import DAY, key, lives_a_retention

# --- Life of a key, index ------------------------------------------------------------------


def test_a_new_counter_has_its_index_entries_and_a_life_of_one_retention(
    client: Any, open_store: OpenStore
) -> None:
    """One entry with score 0 per precision, and a time to live for as long as its newest sample."""
    count(open_store(), "点击量", int(server_time(client)))
    entries = client.zrange("redmeter:known:", 0, -1, withscores=True)
    assert sorted(entries) == sorted(
        (f"{precision}:点击量".encode(), 0.0) for precision in DEFAULT_RETENTION
    )
    for precision, kept in DEFAULT_RETENTION.items():
        assert lives_a_retention(client, key(precision, "点击量"), precision, kept)


def test_every_key_lives_for_a_time_or_has_someone_who_sweeps_it(
    client: Any, open_meter: OpenMeter
) -> None:
    """Only index, totals and the store's own description stay for ever; nothing else is made."""
    open_meter().count("x")
    forever = {found for found in client.scan_iter("*", count=1000) if client.ttl(found) < 0}
    assert forever == {b"redmeter:known:", b"redmeter:total:", b"redmeter:meta:"}
    rest = set(client.scan_iter("*", count=1000)) - forever
    assert all(found.startswith((b"redmeter:count:", b"redmeter:batch:")) for found in rest)
    assert len(rest) == len(DEFAULT_RETENTION) + 1


def test_a_new_slice_renews_life_and_index_entry(client: Any, open_store: OpenStore) -> None:
    """Half expired and gone from the index; the next slice brings both back."""
    store = open_store()
    now = int(server_time(client))
    count(store, "x", now - 60)
    client.expire(key(60), 600)
    client.zrem("redmeter:known:", "60:x")
    count(store, "x", now)
    assert lives_a_retention(client, key(60), 60, 120)
    assert client.zscore("redmeter:known:", "60:x") == 0.0


@pytest.mark.parametrize("starts", [(60, 0), (0, 60)])
def test_what_lies_ahead_lives_as_long_as_it_should_in_any_order(
    client: Any, open_store: OpenStore, starts: tuple[int, int]
) -> None:
    """The life is that of the newest slice, wherever it stands."""
    now = int(server_time(client))
    ahead = dict.fromkeys((now + start for start in starts), 1)
    count_all(open_store(retention={1: 120}), {"x": ahead})
    assert 121 + 60 - 5 <= client.ttl(key(1)) <= 121 + 60 + 16


def test_a_slice_that_was_there_before_renews_nothing(client: Any, open_store: OpenStore) -> None:
    """The cheap path: nothing but the addition."""
    store = open_store()
    now = int(server_time(client))
    count(store, "x", now)
    client.expire(key(DAY), 1000)
    count(store, "x", now)
    assert client.ttl(key(DAY)) <= 1000


@settings(max_examples=scaled(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(["new", "new", "short", "long", "endless"]), max_size=40), st.data()
)
def test_new_and_old_hashes_in_one_batch_each_live_as_long_as_they_should(
    client: Any, open_store: OpenStore, some: list[str], data: st.DataObject
) -> None:
    """What is found out for many at once holds for each: also where only the first ones are new."""
    client.flushall()
    store = open_store(retention={60: 120})
    states = ["new"] * data.draw(st.sampled_from([0, 31, 32, 33, 70])) + some
    now = int(server_time(client))
    before = {"short": 600, "long": 10**6, "endless": -1}
    for number, state in enumerate(states):
        if state != "new":
            client.hset(key(60, f"n{number}"), str(slice_start(now, 60) - 60), 5)
            if state != "endless":
                client.expire(key(60, f"n{number}"), before[state])
    # More than one slice for some of them.
    counts = {f"n{n}": {now - 60 * i: 1 for i in range(1 + n % 3)} for n in range(len(states))}
    assert count_all(store, counts) == Outcome()
    indexed = set(client.zrange("redmeter:known:", 0, -1))
    for number, state in enumerate(states):
        found = key(60, f"n{number}")
        assert (f"60:n{number}".encode() in indexed) is (state != "long")
        if state in ("new", "short"):
            assert lives_a_retention(client, found, 60, 120), state
        else:
            assert before[state] - 10 <= client.ttl(found) <= before[state]
    store.close()


@pytest.mark.parametrize("usable", [True, False])
def test_more_new_series_than_fit_one_command_are_all_indexed(
    client: Any, open_store: OpenStore, usable: bool
) -> None:
    """Or each of them tells that it is not."""
    store = open_store(retention={60: 5})
    if not usable:
        client.set("redmeter:known:", "theirs")
    now = int(server_time(client))
    outcome = count_all(store, {f"n{number}": {now: 1} for number in range(4100)})
    told = [(rejection.key, rejection.reason) for rejection in outcome.rejections]
    if usable:
        assert told == []
        assert client.zcard("redmeter:known:") == 4100
    else:
        assert told == [(key(60, f"n{number}"), "unkept") for number in range(4100)]


def test_a_life_is_never_shortened(client: Any, open_store: OpenStore) -> None:
    """Somebody gave the hash a longer one."""
    store = open_store()
    now = int(server_time(client))
    count(store, "x", now - 60)
    client.expire(key(60), 10**6)
    count(store, "x", now)
    assert client.ttl(key(60)) > 10**6 - 10


def test_a_slice_ahead_lives_longer_by_as_much(client: Any, open_store: OpenStore) -> None:
    """Or it would expire before its time comes."""
    store = open_store()
    ahead = int(server_time(client)) + 3600
    count(store, "x", ahead)
    needed = slice_start(ahead, 60) + 120 * 60 - server_time(client)
    assert needed <= client.ttl(key(60)) <= needed + 60 + 900 + 5


def test_another_programs_hash_without_a_life_stays_without(
    client: Any, open_store: OpenStore
) -> None:
    """It would not renew it, and lose what it counts; its index entry is kept."""
    store = open_store()
    now = int(server_time(client))
    client.hset(key(60), str(slice_start(now, 60) - 60), "5")
    count(store, "x", now)
    assert client.ttl(key(60)) == -1
    assert client.zscore("redmeter:known:", "60:x") == 0.0
    assert client.ttl(key(1)) > 0


def test_an_expired_hash_comes_back_whole(client: Any, open_store: OpenStore) -> None:
    """The next count recreates hash, life and index entry."""
    store = open_store()
    now = int(server_time(client))
    count(store, "x", now)
    client.delete(key(60))
    client.zrem("redmeter:known:", "60:x")
    count(store, "x", now)
    assert samples(client, key(60)) == {slice_start(now, 60): 1}
    assert client.ttl(key(60)) > 0
    assert client.zscore("redmeter:known:", "60:x") == 0.0


# --- Trimming ------------------------------------------------------------------------------


def _steady(step: int) -> list[int]:
    return [step] * (7 * DAY // step)


def _sparse() -> list[int]:
    return [1800, 7200, 60, 14400, 300, 40000] * (7 * DAY // 63760)


def _bursty() -> list[int]:
    return ([60] * 130 + [9000]) * (7 * DAY // 16800)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "retention"),
    [
        pytest.param(_steady(300), {60: 120, 300: 120, 3600: 24}, id="steady"),
        pytest.param(_sparse(), {60: 120, 300: 120, 3600: 120}, id="sparse"),
        pytest.param(_bursty(), {60: 120, 300: 60, 3600: 5}, id="bursty"),
        pytest.param(_steady(173), {7: 3, 300: 254, DAY: 1}, id="largest and smallest"),
    ],
)
def test_a_week_of_writing_keeps_hashes_small(
    client: Any, open_store: OpenStore, steps: list[int], retention: dict[int, int]
) -> None:
    """At most two fields more than are kept, all that counts, in the compact encoding."""
    clock = ManualClock(slice_start(server_time(client), DAY) - 7 * DAY)
    store = open_store(retention=retention, clock=clock)
    written: dict[int, dict[int, int]] = {precision: {} for precision in retention}
    for number, step in enumerate(steps, 1):
        clock.advance(step)
        second = int(clock.wall())
        count(store, "x", second, number)
        for precision in retention:
            start = slice_start(second, precision)
            written[precision][start] = written[precision].get(start, 0) + number
        if number % 101 and number != len(steps):
            continue
        for precision, kept in retention.items():
            stored = samples(client, key(precision))
            assert len(stored) <= kept + 2
            oldest = slice_start(second, precision) - (kept - 1) * precision
            live = {s: n for s, n in written[precision].items() if s >= oldest}
            assert {s: n for s, n in stored.items() if s >= oldest} == live
            encoding = client.execute_command("OBJECT", "ENCODING", key(precision))
            assert encoding in (b"listpack", b"ziplist")
    assert client.hget("redmeter:total:", "x") == str(sum(range(len(steps) + 1))).encode()


def test_fields_of_others_that_are_no_times_are_not_trimmed(
    client: Any, open_store: OpenStore
) -> None:
    """Trimming removes starts that are gone, in either spelling, and nothing else."""
    clock = ManualClock(slice_start(server_time(client), 60))
    store = open_store(retention={60: 3}, clock=clock)
    gone = int(clock.wall()) - 600
    fields = {"note": "1", str(gone): "1", f"{gone + 60}.0": "1", "": "1", str(gone - 60): "1"}
    client.hset(key(60), mapping=fields)
    count(store, "x", int(clock.wall()))
    left = set(client.hkeys(key(60)))
    assert {b"note", b"", str(int(clock.wall())).encode()} <= left
    assert len(left) <= 5  # two more than are kept may stay


def test_a_hash_past_512_fields_is_left_to_the_cleaner(client: Any, open_store: OpenStore) -> None:
    """A write must stay short: it removes at most the slice that just went out."""
    store = open_store(retention={60: 120})
    now = slice_start(server_time(client), 60)
    stale = {str(now - i * 60): 1 for i in range(1000, 2000)}
    client.hset(key(60), mapping=stale)
    count(store, "x", now)
    assert client.hlen(key(60)) == 1001


def test_totals_hold_everything_that_was_counted(client: Any, open_meter: OpenMeter) -> None:
    """Also what no slice holds any more, by series with its labels."""
    meter = open_meter()
    now = server_time(client)
    for at in (now, now - DAY, now - 365 * DAY):
        meter.count("x", 3, at=at)
        meter.count("x", 1, at=at, labels={"plan": "pro"})
    assert (meter.total("x"), meter.total('x{plan="pro"}'), meter.total("none")) == (12, 3, 0)
    assert meter.total("x", exact=True) == 9


def test_a_hash_that_gets_many_slices_at_once_is_trimmed_each_time(
    client: Any, open_store: OpenStore
) -> None:
    """Also within a large batch, where a single new slice now and then goes without."""
    clock = ManualClock(server_time(client) - 31 * 60)
    store = open_store(clock=clock)
    for _ in range(30):
        second = int(clock.wall())
        store_all(store, {name: {second - age: 1 for age in range(60)} for name in ("x", "y")})
        assert client.hlen(key(1)) <= 123
        clock.advance(60)


@pytest.mark.slow
def test_hashes_that_get_a_slice_at_a_time_are_trimmed_soon_enough(
    client: Any, open_store: OpenStore
) -> None:
    """In large batches one in four is: a few slices too many stay, for a while."""
    clock = ManualClock(server_time(client) - 400)
    store = open_store(retention={1: 20, 60: 20}, clock=clock)
    pipe = client.pipeline(transaction=False)
    longest, sizes = 0, []
    for _ in range(300):
        second = int(clock.wall())
        store_all(store, {f"n{n}": {second: 1} for n in range(40)})
        for n in range(40):
            pipe.hlen(f"redmeter:count:1:n{n}")
        sizes = pipe.execute()
        longest = max(longest, *sizes)
        clock.advance(1)
    assert longest <= 20 + 50
    assert sum(sizes) <= 40 * (20 + 8)
