"""Synchronous writers find out what a server has lost of that which it had acknowledged."""

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from redmeter import Meter, book
from redmeter.clock import ManualClock
from support.stores import OpenMeter, OpenStore, count, server_time

#: A state of a server: key -> what it holds.
State = dict[bytes, bytes]


def state_of(client: Any) -> State:
    """Return all that the server has."""
    return {key: client.dump(key) for key in client.scan_iter()}


def roll_back(client: Any, state: State) -> None:
    """Restore an older state, as a failover or an older dump does."""
    client.flushdb()
    for key, value in state.items():
        client.restore(key, 0, value)


def assert_balanced(meter: Meter) -> None:
    """Each event is in exactly one place."""
    health = meter.recorder_health()
    counted = health.stored + health.buffered + health.uncertain + health.dropped
    assert counted == health.recorded


def test_a_synchronous_meter_reports_what_was_rolled_back(
    client: Any, open_meter: OpenMeter, caplog: pytest.LogCaptureFixture
) -> None:
    """With the next call, by events, not by calls."""
    meter = open_meter()
    meter.count("orders", 2)
    before = state_of(client)
    meter.count("orders", 3)
    meter.count("orders", 4)
    roll_back(client, before)
    with caplog.at_level(logging.WARNING, "redmeter"):
        meter.count("orders", 10)
    health = meter.recorder_health()
    assert (health.stored, health.dropped, health.uncertain) == (12, 7, 0)
    assert meter.total("orders") == health.stored
    assert {loss.reason for loss in health.losses} == {"rolled-back"}
    assert "went back to an older state" in caplog.text
    assert "7 are lost" in caplog.text
    assert_balanced(meter)


def test_a_synchronous_meter_reports_that_the_store_was_emptied(
    client: Any, open_meter: OpenMeter
) -> None:
    """FLUSHDB, as a cache next door does it."""
    meter = open_meter()
    meter.count("orders", 5)
    client.flushdb()
    meter.count("orders", 3)
    health = meter.recorder_health()
    assert (health.stored, health.dropped, meter.total("orders")) == (3, 5, 3)
    assert {loss.reason for loss in health.losses} == {"emptied"}
    assert_balanced(meter)


def test_without_its_watermark_it_is_uncertain(client: Any, open_meter: OpenMeter) -> None:
    """The key was evicted: the events may be there, and are."""
    meter = open_meter()
    meter.count("orders", 5)
    client.delete(*client.keys("redmeter:batch:*"))
    meter.count("orders", 3)
    health = meter.recorder_health()
    assert (health.stored, health.dropped, health.uncertain) == (3, 0, 5)
    assert meter.total("orders") == 8
    assert_balanced(meter)


def in_threads(many: int, write: Callable[[], object]) -> None:
    """Have as many threads write at the same moment, so each needs a producer."""
    barrier = threading.Barrier(many)

    def run() -> None:
        barrier.wait()
        for _ in range(20):
            write()

    threads = [threading.Thread(target=run) for _ in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_one_call_finds_what_other_threads_have_lost(client: Any, open_meter: OpenMeter) -> None:
    """Their producers may never write again."""
    meter = open_meter()
    in_threads(6, lambda: meter.count("orders"))
    client.flushdb()
    meter.count("orders")
    health = meter.recorder_health()
    assert (health.stored, health.dropped, meter.total("orders")) == (1, 120, 1)
    assert_balanced(meter)


def test_producers_that_are_idle_ask_once_a_minute(client: Any, open_store: OpenStore) -> None:
    """So a call finds it whose own producer has lost nothing."""
    clock = ManualClock(server_time(client))
    store = open_store(clock=clock)
    second = int(clock.wall())
    (shard,) = store.shards
    first = shard._producers.borrow()
    count(store, "x", second)  # by a second producer
    first.lock.release()
    before = state_of(client)
    first = shard._producers.borrow()
    count(store, "x", second, 7, events=7)
    first.lock.release()
    roll_back(client, before)
    assert count(store, "x", second).lost == ()  # by the first, which had written nothing
    clock.advance(61.0)
    (lost,) = count(store, "x", second).lost
    assert (lost.reason, lost.events) == ("rolled-back", 7)
    clock.advance(61.0)
    assert count(store, "x", second).lost == ()


def test_the_functions_of_the_book_log_what_is_lost(
    client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing there says whether a store was emptied, so a missing watermark is uncertain."""
    book.update_counter(client, "hits", 2)
    before = state_of(client)
    book.update_counter(client, "hits", 3)
    roll_back(client, before)
    with caplog.at_level(logging.WARNING, "redmeter"):
        book.update_counter(client, "hits", 4)
    assert book.get_counter(client, "hits", 86400)[0][1] == 6
    assert "3 are lost and 0 may be" in caplog.text
    caplog.clear()
    client.flushdb()
    with caplog.at_level(logging.WARNING, "redmeter"):
        book.update_counter(client, "hits", 5)
    assert "0 are lost and 6 may be" in caplog.text
    assert book.get_counter(client, "hits", 86400)[0][1] == 5
