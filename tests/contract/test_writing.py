"""Writing: one batch, applied exactly once, that pushes out nothing live and breaks nothing."""

import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redmeter import AccessDenied, IncompatibleStore, InvalidSetting, StoreError, StoreRefused
from redmeter.clock import ManualClock
from redmeter.keys import DEFAULT_RETENTION, slice_start
from redmeter.model import Outcome
from redmeter.store.answers import RetentionChanged
from redmeter.store.store import WATERMARK_SECONDS
from support.proxy import Proxy
from support.servers import Server
from support.stores import (
    HastyClock,
    OpenMeter,
    OpenStore,
    batch_keys,
    batch_of,
    count,
    count_all,
    samples,
    server_time,
    store_all,
)
from support.waiting import eventually

DAY = 86400
MAX = 2**63 - 1


def key(precision: int, name: str = "x") -> str:
    """Return the key of a counter's hash under the default prefix."""
    return f"redmeter:count:{precision}:{name}"


def lives_a_retention(client: Any, found: str, precision: int, kept: int) -> bool:
    """Whether a hash lives as long as its newest sample counts, with at most an eighth to spare."""
    spare = client.ttl(found) - (kept + 1) * precision
    return bool(-5 <= spare <= kept * precision / 8 + 1)


def reasons(outcome: Outcome) -> list[tuple[str, str]]:
    """Return what was rejected, as (key, reason)."""
    return [(rejection.key, rejection.reason) for rejection in outcome.rejections]


# --- Once ----------------------------------------------------------------------------------


def test_a_batch_sent_three_times_counts_once(client: Any, open_store: OpenStore) -> None:
    """The same number again is a success that changes nothing, and says so."""
    store = open_store()
    second = int(server_time(client))
    batch = batch_of(store, 1, "x", second, 5)
    version = store.binding().version
    first = store.send(batch, version, must_exist=False)
    again = [store.send(batch, version, must_exist=True) for _ in range(2)]
    assert first == Outcome(applied=True)
    assert again == [Outcome(applied=False)] * 2
    assert samples(client, key(1)) == {second: 5}
    assert client.hget("redmeter:total:", "x") == b"5"


def test_a_lower_number_than_the_watermark_is_taken_as_applied(
    client: Any, open_store: OpenStore
) -> None:
    """A batch that comes late, after its successor, was given up: it changes nothing."""
    store = open_store()
    second = int(server_time(client))
    version = store.binding().version
    for number in (7, 6, 9):
        store.send(batch_of(store, number, "x", second), version, must_exist=False)
    assert samples(client, key(1)) == {second: 2}
    assert client.get("redmeter:batch:" + "p" * 32) == b"9"


def test_numbers_are_compared_as_numbers(client: Any, open_store: OpenStore) -> None:
    """Batch 10 comes after batch 9, although its text sorts before it."""
    store = open_store()
    second = int(server_time(client))
    version = store.binding().version
    for number in (9, 10, 9, 10, 11):
        store.send(batch_of(store, number, "x", second), version, must_exist=False)
    assert samples(client, key(1)) == {second: 3}


def test_a_watermark_outlives_its_producers_last_batch_by_two_hours(
    client: Any, open_store: OpenStore
) -> None:
    """Each batch renews it, and it holds the number of the last one."""
    store = open_store()
    second = int(server_time(client))
    for _ in range(3):
        count(store, "x", second)
        (found,) = batch_keys(client)
        client.expire(found, 100)
    count(store, "x", second)
    assert client.get(found) == b"4"
    assert WATERMARK_SECONDS - 5 <= client.ttl(found) <= WATERMARK_SECONDS
    assert WATERMARK_SECONDS >= 7200


def test_a_reply_lost_between_two_tries_counts_once(
    any_server: Server, client: Any, open_store: OpenStore
) -> None:
    """The batch had been applied; the second try finds its watermark."""
    with Proxy(any_server.port) as proxy:
        store = open_store(proxy.url, clock=HastyClock())
        second = int(server_time(client))
        count(store, "x", second)
        proxy.drop_replies(1)
        assert count(store, "x", second) == Outcome(applied=False)
        assert proxy.dropped == 1
        store.close()
    assert samples(client, key(1)) == {second: 2}


def test_a_resend_whose_watermark_is_gone_is_uncertain_and_not_applied(
    any_server: Server, client: Any, open_store: OpenStore
) -> None:
    """Reply lost, then the watermark evicted: applying it again might count it twice."""
    with Proxy(any_server.port) as proxy:
        clock = HastyClock()
        store = open_store(proxy.url, clock=clock)
        second = int(server_time(client))
        count(store, "x", second)
        (watermark,) = batch_keys(client)
        clock.on_sleep = lambda: client.delete(watermark)
        proxy.drop_replies(1)
        assert count(store, "x", second, 10).uncertain
        proxy.heal()
        assert count(store, "x", second, 3).applied
        store.close()
    assert samples(client, key(1)) == {second: 14}


def test_the_first_batch_of_a_producer_may_be_sent_again_without_a_watermark(
    any_server: Server, client: Any, open_store: OpenStore
) -> None:
    """Nothing reached the server the first time, and nobody had ever been acknowledged."""
    with Proxy(any_server.port) as proxy:
        store = open_store(proxy.url, clock=HastyClock())
        second = int(server_time(client))
        store.binding()
        # Half a request is never applied.
        proxy.reset_after(100, of="requests")
        assert count(store, "x", second) == Outcome(applied=True)
        store.close()
    assert samples(client, key(1)) == {second: 1}


def test_must_exist_looks_for_the_watermark_before_anything_is_written(
    client: Any, open_store: OpenStore
) -> None:
    """A batch that was in doubt is applied where the watermark is lower, at any age, else not."""
    store = open_store()
    second = int(server_time(client))
    version = store.binding().version
    send = store.send
    assert send(batch_of(store, 2, "x", second), version, must_exist=True).uncertain
    assert not client.exists(key(1), "redmeter:total:", "redmeter:batch:" + "p" * 32)
    assert send(batch_of(store, 2, "x", second), version, must_exist=False).applied
    assert send(batch_of(store, 3, "x", second), version, must_exist=True).applied
    assert samples(client, key(1)) == {second: 2}


def test_a_watermark_of_another_type_mints_a_new_producer(
    client: Any, open_store: OpenStore
) -> None:
    """Somebody's list lies under the key: it stays, and the batch is written by a new name."""
    store = open_store()
    second = int(server_time(client))
    count(store, "x", second)
    (watermark,) = batch_keys(client)
    client.delete(watermark)
    client.rpush(watermark, "theirs")
    assert count(store, "x", second).applied
    assert count(store, "x", second).applied
    assert client.lrange(watermark, 0, -1) == [b"theirs"]
    assert len(batch_keys(client)) == 2
    assert samples(client, key(1)) == {second: 3}


def test_scripts_that_the_server_forgot_are_sent_again(client: Any, open_store: OpenStore) -> None:
    """SCRIPT FLUSH between every two writes loses and doubles nothing."""
    store = open_store()
    second = int(server_time(client))
    for _ in range(5):
        client.script_flush()
        assert count(store, "x", second).applied
    assert samples(client, key(1)) == {second: 5}


def test_eight_threads_of_one_store_make_at_most_eight_watermarks(
    client: Any, open_store: OpenStore
) -> None:
    """Producers are lent, one call at a time: not one per thread and not one per call."""
    store = open_store()
    second = int(server_time(client))

    def work() -> None:
        for _ in range(50):
            count(store, "x", second)

    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert samples(client, key(1)) == {second: 1000}
    assert 1 <= len(batch_keys(client)) <= 8


# --- Poison --------------------------------------------------------------------------------


def test_a_key_of_another_type_is_rejected_and_the_rest_applied_once(
    client: Any, open_store: OpenStore
) -> None:
    """A list under the minute's key: every other precision and the total count."""
    store = open_store()
    second = int(server_time(client))
    client.rpush(key(60), "theirs")
    version = store.binding().version
    batch = batch_of(store, 1, "x", second, 4)
    outcome = store.send(batch, version, must_exist=False)
    assert reasons(outcome) == [(key(60), "WRONGTYPE")]
    assert outcome.applied
    assert outcome.rejections[0][3:] == (str(slice_start(second, 60)), 4)
    assert store.send(batch, version, must_exist=False) == outcome  # told again
    assert client.lrange(key(60), 0, -1) == [b"theirs"]
    for precision in DEFAULT_RETENTION.keys() - {60}:
        assert samples(client, key(precision)) == {slice_start(second, precision): 4}
    assert client.hget("redmeter:total:", "x") == b"4"


def test_a_count_past_63_bits_is_rejected_and_the_rest_applied_once(
    client: Any, open_store: OpenStore
) -> None:
    """The full slice keeps its value to the last unit, and other series are not touched by it."""
    store = open_store()
    second = int(server_time(client))
    assert count(store, "x", second, MAX - 1).rejections == ()
    outcome = count_all(store, {"x": {second: 2}, "y": {second: 2}})
    assert reasons(outcome) == [
        *((key(precision), "overflow") for precision in DEFAULT_RETENTION),
        ("redmeter:total:", "overflow"),
    ]
    assert outcome.rejections[-1].field == "x"
    assert count(store, "x", second, 1).rejections == ()
    assert samples(client, key(60)) == {slice_start(second, 60): MAX}
    assert samples(client, key(1, "y")) == {second: 2}
    assert client.hgetall("redmeter:total:") == {b"x": str(MAX).encode(), b"y": b"2"}


@pytest.mark.parametrize("value", ["many", "1.5", "", "9" * 30, " 1"])
def test_a_field_that_is_no_whole_number_is_rejected_and_the_rest_applied(
    client: Any, open_store: OpenStore, value: str
) -> None:
    """What another program wrote there stays as it is."""
    store = open_store()
    second = int(server_time(client))
    client.hset(key(5), str(slice_start(second, 5)), value)
    outcome = count(store, "x", second)
    assert reasons(outcome) == [(key(5), "not-a-number")]
    assert client.hget(key(5), str(slice_start(second, 5))) == value.encode()
    assert samples(client, key(1)) == {second: 1}


def test_an_index_of_another_type_loses_the_index_alone(client: Any, open_store: OpenStore) -> None:
    """Counts are kept, and it is told that the index could not be."""
    store = open_store()
    second = int(server_time(client))
    client.set("redmeter:known:", "theirs")
    outcome = count(store, "x", second)
    assert {reason for _, reason in reasons(outcome)} == {"unkept"}
    assert len(outcome.rejections) == len(DEFAULT_RETENTION)
    assert samples(client, key(60)) == {slice_start(second, 60): 1}
    assert client.hget("redmeter:total:", "x") == b"1"
    assert client.get("redmeter:known:") == b"theirs"


@pytest.fixture
def limited(any_server: Server, client: Any) -> str:
    """The address for a user who may use our keys and commands, except for one command."""
    client.execute_command("ACL", "SETUSER", "app", "on", ">s3cret-word", "~redmeter:*", "+@all")
    return f"redis://app:s3cret-word@127.0.0.1:{any_server.port}/0"


def test_a_command_that_the_user_may_not_use_is_denied_by_itself(
    client: Any, open_store: OpenStore, limited: str
) -> None:
    """Without HINCRBY nothing can be counted, which each rejection says; the batch is done."""
    client.execute_command("ACL", "SETUSER", "app", "-hincrby")
    store = open_store(limited)
    outcome = count(store, "x", int(server_time(client)))
    assert {reason for _, reason in reasons(outcome)} == {"denied"}
    assert len(outcome.rejections) == len(DEFAULT_RETENTION) + 1
    assert not client.exists(key(1))


def test_where_the_watermark_cannot_be_written_nothing_is(
    client: Any, open_store: OpenStore, limited: str
) -> None:
    """It comes first: data without it would be counted again with the next try."""
    client.execute_command("ACL", "SETUSER", "app", "-set")
    store = open_store(limited)
    for _ in range(2):
        with pytest.raises(AccessDenied) as caught:
            count(store, "x", int(server_time(client)))
        assert caught.value.code == "NOPERM"
    assert client.keys() == [b"redmeter:meta:"]


def test_keys_that_the_user_may_not_touch_are_refused_before_anything_is_written(
    client: Any, open_store: OpenStore, limited: str
) -> None:
    """The server looks at all keys first: the error says which permission is missing."""
    client.execute_command("ACL", "SETUSER", "app", "resetkeys", "~redmeter:[btmk]*")
    store = open_store(limited)
    with pytest.raises(AccessDenied) as caught:
        count(store, "x", int(server_time(client)))
    assert caught.value.code == "NOPERM"
    assert not client.exists("redmeter:total:")
    assert batch_keys(client) == []
    assert "s3cret-word" not in str(caught.value) + repr(store)


# --- Time ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("precision", "kept"), [(1, 120), (7, 3), (60, 120)])
def test_a_slice_is_aged_once_it_ended_before_the_retention(
    client: Any, open_store: OpenStore, precision: int, kept: int
) -> None:
    """To the instant: what ended exactly then is written, what ended earlier is not."""
    clock = ManualClock()
    store = open_store(retention={precision: kept}, clock=clock)
    start = slice_start(server_time(client), precision) - 500 * precision
    clock.set_wall(start + precision + kept * precision)
    assert count(store, "x", start, trim=False) == Outcome()
    clock.set_wall(start + precision + kept * precision + 0.01)
    (rejected,) = count(store, "x", start + precision - 1, 7, trim=False).rejections
    assert (rejected.key, rejected.reason) == (key(precision), "aged")
    assert (rejected.field, rejected.amount) == (str(start), 7)
    assert samples(client, key(precision)) == {start: 1}
    assert client.hget("redmeter:total:", "x") == b"8"


@pytest.mark.parametrize(("precision", "kept"), [(60, 120), (3600, 5)])
def test_a_slice_is_future_once_it_starts_a_whole_retention_ahead_of_the_server(
    client: Any, open_store: OpenStore, precision: int, kept: int
) -> None:
    """However far ahead the producer's own clock is."""
    server = server_time(client)
    store = open_store(retention={precision: kept}, clock=ManualClock(server + 10**6))
    edge = slice_start(server, precision) + kept * precision
    assert count(store, "x", edge) == Outcome()
    # One slice further; two, should the server's clock have gone over an edge meanwhile.
    assert reasons(count(store, "x", edge + 2 * precision)) == [(key(precision), "future")]
    assert samples(client, key(precision)) == {edge: 1}


def test_without_refusal_every_time_is_written(client: Any, open_store: OpenStore) -> None:
    """As the functions of the book want it: their own example is of 2012."""
    store = open_store()
    times = [1336376410, -1, 0, int(server_time(client)) + 10**7]
    for second in times:
        assert count(store, "x", second, refuse=False, trim=False) == Outcome()
    assert samples(client, key(1)) == dict.fromkeys(times, 1)


def _full_hash(client: Any, precision: int, kept: int, name: str = "x") -> dict[int, int]:
    """Write as many samples as are kept, the newest being the running slice."""
    newest = slice_start(server_time(client), precision)
    live = {newest - i * precision: 1000 + i for i in range(kept)}
    client.hset(key(precision, name), mapping={str(k): v for k, v in live.items()})
    client.expire(key(precision, name), (kept + 1) * precision)
    client.zadd("redmeter:known:", {f"{precision}:{name}": 0})
    return live


@pytest.mark.parametrize("off", [DAY, -DAY, 40 * DAY, -40 * DAY, 3 * 3600])
def test_a_clock_that_is_wrong_pushes_out_nobody_elses_sample(
    client: Any, open_store: OpenStore, off: int
) -> None:
    """No sample is trimmed and no time to live shortened by a writer days ahead or behind."""
    retention = {3600: 120, DAY: 120}
    live = {precision: _full_hash(client, precision, 120) for precision in retention}
    # A long life, as a writer with slices ahead gives it, must not be cut either.
    client.expire(key(DAY), 500 * DAY)
    before = {precision: client.ttl(key(precision)) for precision in retention}
    clock = ManualClock(server_time(client) + off)
    store = open_store(retention=retention, clock=clock)
    for step in range(6):
        clock.advance(1800 * step)
        count(store, "x", int(clock.wall()))
    for precision in retention:
        stored = samples(client, key(precision))
        # Its own counts may have gone to a slice that is kept, and only added to it.
        for start, value in live[precision].items():
            assert stored.get(start, 0) >= value, (precision, start)
        assert client.ttl(key(precision)) >= before[precision] - 5


def test_a_writer_a_day_behind_is_measured_by_its_own_clock(
    client: Any, open_store: OpenStore
) -> None:
    """Its present is written, although the server has long left it behind; the server's too."""
    now = int(server_time(client))
    store = open_store(clock=ManualClock(now - DAY))
    for second in (now - DAY, now):
        assert count(store, "x", second) == Outcome()
    assert samples(client, key(1)) == {now - DAY: 1, now: 1}


def test_a_writer_a_day_ahead_is_measured_by_the_servers_clock(
    client: Any, open_store: OpenStore
) -> None:
    """Its seconds and minutes lie a retention ahead and are rejected; its hours are taken."""
    clock = ManualClock(server_time(client) + DAY)
    outcome = count(open_store(clock=clock), "x", int(clock.wall()))
    assert reasons(outcome) == [(key(p), "future") for p in (1, 5, 60, 300)]
    assert not client.exists(key(60))
    assert samples(client, key(3600)) == {slice_start(clock.wall(), 3600): 1}


def test_one_old_and_one_far_time_change_nothing_that_lives(
    client: Any, open_meter: OpenMeter
) -> None:
    """`at=` 1,000 s ago and a million s ahead: only slices that still hold them are written."""
    meter = open_meter()
    now = server_time(client)
    meter.count("x", 2, at=now)
    ttl = client.ttl(key(60))
    meter.count("x", 1, at=now - 1000)
    meter.count("x", 1, at=now + 10**6)
    assert samples(client, key(1)) == {int(now): 2}
    assert samples(client, key(60)) == {
        slice_start(now, 60): 2,
        slice_start(now - 1000, 60): 1,
    }
    assert samples(client, key(DAY))[slice_start(now, DAY)] >= 2
    assert client.ttl(key(60)) >= ttl - 2
    assert meter.total("x") == 4


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    now=st.integers(-(10**9), 10**9),
    back=st.lists(st.integers(0, 4000), min_size=1, max_size=12),
    amounts=st.lists(st.integers(0, 2**40), min_size=12, max_size=12),
)
def test_every_event_lies_in_the_slice_of_its_floor(
    client: Any, open_store: OpenStore, now: int, back: list[int], amounts: list[int]
) -> None:
    """Also before 1970, and for widths that do not divide each other: sums agree."""
    client.flushall()
    store = open_store(retention={1: 120, 7: 120, 60: 120, 3600: 120}, clock=ManualClock(now))
    events: dict[int, int] = {}
    for ago, amount in zip(back, amounts, strict=False):
        events[now - ago] = events.get(now - ago, 0) + amount
    store_all(store, {"x": events})
    for precision in (1, 7, 60, 3600):
        expected: dict[int, int] = {}
        for second, amount in events.items():
            start = second - second % precision
            if start + precision >= now - 120 * precision:
                expected[start] = expected.get(start, 0) + amount
        # A slice that is about to go may be trimmed by the write itself.
        newest_gone = now - now % precision - 121 * precision
        stored = samples(client, key(precision))
        assert {s: n for s, n in stored.items() if s > newest_gone} == {
            s: n for s, n in expected.items() if s > newest_gone
        }
        assert stored.items() <= expected.items()
    store.close()


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


def test_a_slice_that_was_there_before_renews_nothing(client: Any, open_store: OpenStore) -> None:
    """The cheap path: nothing but the addition."""
    store = open_store()
    now = int(server_time(client))
    count(store, "x", now)
    client.expire(key(DAY), 1000)
    count(store, "x", now)
    assert client.ttl(key(DAY)) <= 1000


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


@pytest.mark.parametrize("forbidden", ["hlen", "ttl", "pexpireat", "hdel"])
def test_a_right_that_is_missing_for_the_rest_is_told_once_for_each_slice(
    client: Any, open_store: OpenStore, limited: str, forbidden: str
) -> None:
    """Everything is counted all the same, and nothing twice."""
    client.execute_command("ACL", "SETUSER", "app", f"-{forbidden}", "-zadd")
    store = open_store(limited, retention={60: 3, 300: 3})
    now = int(server_time(client))
    client.hset(key(60), mapping={str(slice_start(now, 60) - 60 * i): 1 for i in range(1, 5)})
    client.expire(key(60), 10)
    outcome = count(store, "x", now)
    assert reasons(outcome) == [(key(60), "unkept"), (key(300), "unkept")]
    assert samples(client, key(300)) == {slice_start(now, 300): 1}
    assert samples(client, key(60))[slice_start(now, 60)] == 1
    assert client.hget("redmeter:total:", "x") == b"1"


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
    """The next count makes hash, life and index entry anew."""
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
    assert (meter.total("x"), meter.total('x{plan="pro"}'), meter.total("none")) == (9, 3, 0)


# --- meta: ---------------------------------------------------------------------------------


def test_meta_is_made_once_and_its_retention_holds_for_everyone(
    client: Any, open_store: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    """The second process goes on with the store's, and says so once in the log."""
    now = int(server_time(client))
    count(open_store(retention={60: 10, 3600: 5}), "x", now)
    made = client.hgetall("redmeter:meta:")
    assert made[b"format"] == b"1"
    assert made[b"partitions"] == b"1"
    assert made[b"retention"] == b"60=10 3600=5"
    with caplog.at_level(logging.WARNING, logger="redmeter"):
        other = open_store()
        for _ in range(3):
            count(other, "y", now)
    assert client.hgetall("redmeter:meta:") == made
    assert set(client.scan_iter("redmeter:count:*:y")) == {
        key(60, "y").encode(),
        key(3600, "y").encode(),
    }
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert "60=10 3600=5" in said[0]


def test_a_process_that_agrees_with_the_store_says_nothing(
    client: Any, open_store: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing to tell."""
    for _ in range(2):
        count(open_store(), "x", int(server_time(client)))
    assert caplog.records == []


def test_two_processes_that_start_at_once_make_one_store(
    client: Any, open_store: OpenStore
) -> None:
    """The first to bind decides; the other follows it with its very first batch."""
    one, two = open_store(retention={60: 10}), open_store(retention={7: 10})
    for store in (one, two, one):
        count(store, "x", int(server_time(client)))
    assert set(client.scan_iter("redmeter:count:*")) == {key(60).encode()}


def test_a_change_of_retention_reaches_a_writer_that_already_runs(
    client: Any, open_store: OpenStore, open_meter: OpenMeter
) -> None:
    """With its next write, which is counted once: under the new precisions alone."""
    meter = open_meter(retention={60: 10, 300: 10})
    now = server_time(client)
    meter.count("x", at=now)
    changed = open_store().change_retention([(60, 0), (7, 5), (300, 20)])
    assert dict(changed) == {7: 5, 300: 20}
    meter.count("x", at=now)
    assert samples(client, key(60)) == {slice_start(now, 60): 1}
    assert samples(client, key(7)) == {slice_start(now, 7): 1}
    assert samples(client, key(300)) == {slice_start(now, 300): 2}
    assert meter.total("x") == 2


def test_a_batch_for_another_retention_is_not_applied(client: Any, open_store: OpenStore) -> None:
    """Nothing of it is written, not even the watermark, so the same number may come again."""
    store = open_store()
    now = int(server_time(client))
    old = store.binding().version
    open_store().change_retention([(60, 7)])
    batch = batch_of(store, 1, "x", now)
    with pytest.raises(RetentionChanged):
        store.send(batch, old, must_exist=False)
    assert not client.exists(key(1), "redmeter:total:", "redmeter:batch:" + batch.producer)


def test_a_retention_out_of_range_changes_nothing(client: Any, open_store: OpenStore) -> None:
    """Nor does one that is the store's already: its version stays."""
    store = open_store()
    store.binding()
    made = client.hgetall("redmeter:meta:")
    for wrong in ([(60, 255)], [(0, 5)], [(p, 0) for p in DEFAULT_RETENTION]):
        with pytest.raises(InvalidSetting):
            store.change_retention(wrong)
    store.change_retention([(60, 120)])
    assert client.hgetall("redmeter:meta:") == made


def test_two_changes_at_once_are_both_made(client: Any, open_store: OpenStore) -> None:
    """Each looks again when the other was faster."""
    stores = [open_store() for _ in range(4)]

    def change(number: int) -> None:
        stores[number].change_retention([(100 + number, 5)])

    threads = [threading.Thread(target=change, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = open_store().binding().retention
    assert {100, 101, 102, 103} <= found.keys()


def test_after_flushall_the_next_writer_restores_what_the_store_kept(
    client: Any, open_store: OpenStore
) -> None:
    """Its retention as last agreed on, not the one the process was configured for."""
    store = open_store()
    now = int(server_time(client))
    count(store, "x", now)
    open_store().change_retention([(60, 7)])
    count(store, "x", now)
    client.flushall()
    assert count(store, "x", now, 4) == Outcome()
    assert client.hget("redmeter:meta:", "retention") == str(store.binding().retention).encode()
    assert store.binding().retention[60] == 7
    assert samples(client, key(1)) == {now: 4}
    assert client.hget("redmeter:total:", "x") == b"4"


@pytest.mark.parametrize("version", ["007", "+5", "1_0"])
def test_a_version_however_it_is_spelled_is_kept_to(
    client: Any, open_store: OpenStore, version: str
) -> None:
    """Someone wrote it by hand: it is compared as it stands, or a writer would never agree."""
    store = open_store()
    store.binding()
    client.hset("redmeter:meta:", "version", version)
    count(store, "x", int(server_time(client)))
    assert client.hget("redmeter:total:", "x") == b"1"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", "2"),
        ("partitions", "64"),
        ("retention", "everything"),
        ("retention", "60=100000"),
        ("version", "first"),
        ("format", ""),
    ],
)
def test_a_store_of_another_kind_is_neither_written_nor_read(
    client: Any, open_meter: OpenMeter, field: str, value: str
) -> None:
    """The error says what the store has and what this version works with."""
    made = {"format": "1", "partitions": "1", "retention": "60=120", "version": "5", field: value}
    client.hset("redmeter:meta:", mapping=made)
    meter = open_meter()
    for call in (
        lambda: meter.count("x"),
        lambda: meter.series("x", precision=60),
        lambda: meter.names(),
        lambda: meter.total("x"),
    ):
        with pytest.raises(IncompatibleStore) as caught:
            call()
        assert caught.value.found == value or field == "version"
    assert client.keys() == [b"redmeter:meta:"]


@pytest.mark.parametrize("theirs", ["a hash", "a list"])
def test_somebody_elses_key_in_place_of_meta_is_an_error_of_ours(
    client: Any, open_meter: OpenMeter, theirs: str
) -> None:
    """Nothing is written beside it."""
    if theirs == "a hash":
        client.hset("redmeter:meta:", "colour", "red")
    else:
        client.rpush("redmeter:meta:", "red")
    meter = open_meter()
    for call in (lambda: meter.count("x"), lambda: meter.total("x")):
        with pytest.raises(StoreError) as caught:
            call()
        assert isinstance(caught.value, IncompatibleStore if theirs == "a hash" else StoreRefused)
    assert client.keys() == [b"redmeter:meta:"]


def test_a_store_under_another_prefix_has_its_own_everything(
    client: Any, open_meter: OpenMeter
) -> None:
    """No key without the prefix, and the two do not see each other."""
    one, two = open_meter(prefix="a:"), open_meter(prefix="b*:")
    one.count("x", 2)
    two.count("x", 3)
    assert (one.total("x"), two.total("x")) == (2, 3)
    assert (one.names(), two.names()) == (["x"], ["x"])
    assert all(found.startswith((b"a:", b"b*:")) for found in client.scan_iter("*"))


# --- Servers that refuse -------------------------------------------------------------------


def test_a_server_without_memory_takes_nothing_and_everything_once_it_has_some(
    client: Any, open_store: OpenStore
) -> None:
    """OOM: no part of the batch is written, the next one counts, hashes stay whole."""
    store = open_store()
    now = int(server_time(client))
    count(store, "x", now)
    before = _everything(client)
    client.config_set("maxmemory-policy", "noeviction")
    client.config_set("maxmemory", "1")
    for _ in range(3):
        with pytest.raises(StoreRefused) as caught:
            count(store, "x", now)
        assert caught.value.code == "OOM"
    client.config_set("maxmemory", "0")
    assert _everything(client) == before
    assert count(store, "x", now).applied
    assert samples(client, key(1)) == {now: 2}


def test_the_same_batch_number_goes_through_once_memory_is_back(
    client: Any, open_store: OpenStore
) -> None:
    """A refused batch is not marked as applied."""
    store = open_store()
    now = int(server_time(client))
    version = store.binding().version
    batch = batch_of(store, 1, "x", now, 6)
    client.config_set("maxmemory", "1")
    with pytest.raises(StoreRefused):
        store.send(batch, version, must_exist=False)
    client.config_set("maxmemory", "0")
    assert store.send(batch, version, must_exist=False).applied
    assert not store.send(batch, version, must_exist=False).applied
    assert samples(client, key(1)) == {now: 6}


def test_memory_that_runs_out_within_a_batch_does_not_cut_it_in_half(
    client: Any, open_store: OpenStore
) -> None:
    """Once the watermark is written the script goes on to its end."""
    store = open_store(retention={1: 120})
    now = int(server_time(client))
    store.binding()
    names = [f"series-{i}" + "x" * 150 for i in range(150)]
    used = client.info("memory")["used_memory"]
    outcomes = []
    for room in range(0, 400_000, 20_000):
        client.config_set("maxmemory", str(used + room))
        try:
            count_all(store, {name: {now: 1} for name in names})
            outcomes.append("stored")
        except StoreRefused as error:
            outcomes.append(error.code)
    assert set(outcomes) <= {"stored", "OOM"}
    stored = outcomes.count("stored")
    client.config_set("maxmemory", "0")
    totals = {int(client.hget("redmeter:total:", name) or 0) for name in names}
    assert totals == {stored}
    for name in names:
        assert sum(samples(client, key(1, name)).values()) == stored


def test_a_replica_takes_nothing_until_it_is_made_a_master(
    any_server: Server, client: Any, open_store: OpenStore
) -> None:
    """READONLY: tried for the timeout; and exact when it clears between two tries."""
    clock = HastyClock()
    store = open_store(clock=clock, timeout=0.05)
    now = int(server_time(client))
    count(store, "x", now)
    before = _everything(client)
    client.execute_command("CONFIG", "SET", "replica-serve-stale-data", "yes")
    client.execute_command("REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(StoreRefused) as caught:
        count(store, "x", now)
    assert caught.value.code == "READONLY"
    assert _everything(client) == before
    clock.on_sleep = lambda: client.execute_command("REPLICAOF", "NO", "ONE")
    assert count(store, "x", now).applied
    assert samples(client, key(1)) == {now: 2}


def test_a_server_that_lacks_replicas_takes_all_or_nothing(
    client: Any, open_store: OpenStore
) -> None:
    """NOREPLICAS, which Redis 6.2 does not ask about within scripts."""
    store = open_store(timeout=0.05)
    now = int(server_time(client))
    count(store, "x", now)
    client.config_set("min-replicas-to-write", "1")
    said = ""
    try:
        count(store, "x", now)
    except StoreRefused as error:
        said = error.code
    assert said in ("", "NOREPLICAS")
    refused = said != ""
    client.config_set("min-replicas-to-write", "0")
    count(store, "x", now)
    assert samples(client, key(1)) == {now: 3 - refused}
    assert client.hget("redmeter:total:", "x") == str(3 - refused).encode()


@pytest.mark.slow
def test_a_server_that_cannot_save_takes_all_or_nothing(any_server: Server, tmp_path: Path) -> None:
    """MISCONF: the dump cannot be written; exact once it can."""
    from redmeter import store as stores

    with Server(any_server.name, dir=tmp_path / "data") as server, server.client() as client:
        any_client: Any = client
        store = stores.open(server.url)
        assert store is not None
        now = int(server_time(client))
        count(store, "x", now)
        (server.dir / "dump.rdb" / "in the way").mkdir(parents=True)
        client.config_set("save", "3600 1")
        client.bgsave()
        eventually(
            lambda: any_client.info("persistence")["rdb_last_bgsave_status"] == "err",
            what="the dump has failed",
        )
        for _ in range(2):
            with pytest.raises(StoreRefused) as caught:
                count(store, "x", now)
            assert caught.value.code == "MISCONF"
        client.config_set("stop-writes-on-bgsave-error", "no")
        count(store, "x", now)
        assert samples(client, key(1)) == {now: 2}
        store.close()
        server.kill()  # or it would try to save, and wait


@pytest.mark.slow
def test_a_server_that_loads_its_data_is_waited_for(any_server: Server, tmp_path: Path) -> None:
    """LOADING passes by itself: the write that came during it is counted once."""
    from redmeter import store as stores

    config = {"key-load-delay": "1000", "rdbcompression": "no"}
    with Server(any_server.name, dir=tmp_path / "data", config=config) as server:
        clock = HastyClock()
        store = stores.open(server.url, clock=clock, timeout=10.0)
        assert store is not None
        with server.client() as client:
            any_client: Any = client
            now = int(server_time(client))
            count(store, "x", now)
            pipe = client.pipeline(transaction=False)
            for i in range(1200):
                pipe.set(f"filler:{i}", "x" * 20_000)  # it looks up every 2 MB
            pipe.execute()
            client.save()
        server.kill()
        server.start(loaded=False)
        store.close()
        clock.on_sleep = lambda: threading.Event().wait(0.02)
        assert count(store, "x", now).applied
        assert clock.waits > 0
        with server.client() as client:
            assert samples(client, key(1)) == {now: 2}
            assert any_client.dbsize() > 1200
        store.close()


def _everything(client: Any) -> dict[bytes, bytes]:
    """Return all that is stored, as the server would dump it."""
    return {found: client.dump(found) for found in client.scan_iter("*", count=1000)}


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


def test_hashes_that_get_a_slice_at_a_time_are_trimmed_soon_enough(
    client: Any, open_store: OpenStore
) -> None:
    """In large batches one in four is: a few slices too many stay, for a while."""
    clock = ManualClock(server_time(client) - 400)
    store = open_store(retention={1: 20, 60: 20}, clock=clock)
    longest = 0
    for _ in range(300):
        second = int(clock.wall())
        store_all(store, {f"n{n}": {second: 1} for n in range(40)})
        longest = max(longest, *(client.hlen(f"redmeter:count:1:n{n}") for n in range(40)))
        clock.advance(1)
    assert longest <= 20 + 50
    assert sum(client.hlen(f"redmeter:count:1:n{n}") for n in range(40)) <= 40 * (20 + 8)
