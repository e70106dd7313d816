"""Writing: one batch, applied exactly once, whatever of it is refused."""

import threading
from typing import Any

import pytest

from redmeter import AccessDenied
from redmeter.store.producers import WATERMARK_SECONDS
from redmeter.stored.keys import DEFAULT_RETENTION, slice_start
from redmeter.types import Outcome
from support.proxy import Proxy
from support.servers import Server
from support.stores import (
    HastyClock,
    OpenStore,
    batch_keys,
    batch_of,
    count,
    count_all,
    samples,
    send,
    server_time,
)
from support.writing import key, reasons

pytestmark = pytest.mark.servers

MAX = 2**63 - 1


# --- Once ----------------------------------------------------------------------------------


def test_a_batch_sent_three_times_counts_once(client: Any, open_store: OpenStore) -> None:
    """The same number again is a success that changes nothing, and says so."""
    store = open_store()
    second = int(server_time(client))
    batch = batch_of(store, 1, "x", second, 5)
    version = store.config().version
    first = send(store, batch, version, must_exist=False)
    again = [send(store, batch, version, must_exist=True) for _ in range(2)]
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
    version = store.config().version
    for number in (7, 6, 9):
        send(store, batch_of(store, number, "x", second), version, must_exist=False)
    assert samples(client, key(1)) == {second: 2}
    assert client.get("redmeter:batch:" + "p" * 32) == b"9"


def test_numbers_are_compared_as_numbers(client: Any, open_store: OpenStore) -> None:
    """Batch 10 comes after batch 9, although its text sorts before it."""
    store = open_store()
    second = int(server_time(client))
    version = store.config().version
    for number in (9, 10, 9, 10, 11):
        send(store, batch_of(store, number, "x", second), version, must_exist=False)
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
        store.config()
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
    version = store.config().version
    assert send(store, batch_of(store, 2, "x", second), version, must_exist=True).uncertain
    assert not client.exists(key(1), "redmeter:total:", "redmeter:batch:" + "p" * 32)
    assert send(store, batch_of(store, 2, "x", second), version, must_exist=False).applied
    assert send(store, batch_of(store, 3, "x", second), version, must_exist=True).applied
    assert samples(client, key(1)) == {second: 2}


@pytest.mark.parametrize("kind", ["list", "text"])
def test_a_watermark_of_another_type_mints_a_new_producer(
    client: Any, open_store: OpenStore, kind: str
) -> None:
    """What lies under the key is somebody else's and stays; the batch is written by a new name."""
    store = open_store()
    second = int(server_time(client))
    count(store, "x", second)
    (watermark,) = batch_keys(client)
    client.delete(watermark)
    (client.rpush if kind == "list" else client.set)(watermark, "theirs")
    theirs = client.dump(watermark)
    assert count(store, "x", second).applied
    assert count(store, "x", second).applied
    assert client.dump(watermark) == theirs
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


@pytest.mark.parametrize("threads", [8, 20])
def test_a_store_makes_no_more_watermarks_than_it_has_calls_at_once(
    client: Any, open_store: OpenStore, threads: int
) -> None:
    """Producers are lent for one call at a time; only a call that waits long makes a ninth one."""
    store = open_store()
    second = int(server_time(client))

    def work() -> None:
        for _ in range(50):
            count(store, "x", second)

    running = [threading.Thread(target=work) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert samples(client, key(1)) == {second: 50 * threads}
    assert 1 <= len(batch_keys(client)) <= threads


# --- Poison --------------------------------------------------------------------------------


def test_a_key_of_another_type_is_rejected_and_the_rest_applied_once(
    client: Any, open_store: OpenStore
) -> None:
    """A list under the minute's key: every other precision and the total count."""
    store = open_store()
    second = int(server_time(client))
    client.rpush(key(60), "theirs")
    version = store.config().version
    batch = batch_of(store, 1, "x", second, 4)
    outcome = send(store, batch, version, must_exist=False)
    assert reasons(outcome) == [(key(60), "WRONGTYPE")]
    assert outcome.applied
    assert outcome.rejections[0][3:] == (str(slice_start(second, 60)), 4)
    assert send(store, batch, version, must_exist=False) == outcome  # told again
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
    assert "redmeter:known:: WRONGTYPE" in outcome.rejections[0].detail
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
