"""A recorder behind a bad network: what was counted is kept in memory and stored once."""

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
import redis
from redis.exceptions import InvalidResponse

from redmeter import Meter
from redmeter.clock import ManualClock
from redmeter.store.producers import WATERMARK_SECONDS
from redmeter.store.servers import retry
from support.proxy import Proxy
from support.recorders import (
    INTERVAL,
    OpenBuffered,
    check_promise,
    check_sums,
    check_whole,
    fail_again,
    stored,
    stored_by_itself,
    tries,
)
from support.servers import Server
from support.stores import batch_keys, server_time
from support.waiting import eventually

Fault = Callable[[Proxy], None]

# --- Lost replies --------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 3])
def test_a_batch_whose_reply_is_lost_is_stored_once(
    proxy: Proxy, conn: Any, retries: dict[str, Any], times: int
) -> None:
    """The server has applied it each time that it came; whatever the caller's client would do."""
    with (
        redis.Redis("127.0.0.1", proxy.port, **retries) as client,
        Meter(client=client, flush_interval=INTERVAL) as meter,
    ):
        meter.count("x")
        assert meter.flush(5.0)
        proxy.drop_replies(times)
        meter.count("x", 10)
        assert meter.flush(5.0)
        assert proxy.dropped == meter.recorder_health().retried == times
        check_whole(conn, meter.recorder_health(), 11)
    assert len(batch_keys(conn)) == 1


def test_the_first_word_to_a_store_may_be_lost_as_well(
    proxy: Proxy, conn: Any, retries: dict[str, Any]
) -> None:
    """What the store keeps, the first batch and the first report, all of them at the first try."""
    proxy.drop_pattern("x.")
    with (
        redis.Redis("127.0.0.1", proxy.port, **retries) as client,
        Meter(client=client, flush_interval=INTERVAL) as meter,
    ):
        meter.count("x", 3)
        assert meter.flush(5.0)
        assert proxy.dropped == 3
        check_whole(conn, meter.recorder_health(), 3)


LOSSES: dict[str, Fault] = {
    "two replies in three": lambda proxy: proxy.drop_pattern("xx."),
    "every other reply": lambda proxy: proxy.drop_pattern(".x"),
    "requests cut in half": lambda proxy: proxy.reset_after(900, of="requests", times=5),
    "replies cut in half": lambda proxy: proxy.reset_after(3, of="replies", times=5),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_counted_while_the_network_loses_is_stored_once(
    proxy: Proxy, conn: Any, open_buffered: OpenBuffered, loss: str
) -> None:
    """By threads that go on counting while batches come again."""
    meter = open_buffered(proxy.url)
    meter.count("x", 0)
    assert meter.flush(5.0)
    LOSSES[loss](proxy)
    rounds = 6

    def work(name: str) -> None:
        for _ in range(rounds):
            for _ in range(100):
                meter.count(name)
            meter.flush(5.0)

    threads = [threading.Thread(target=work, args=(name,)) for name in "xyz"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert meter.recorder_health().retried > 0
    proxy.heal()
    assert meter.flush(5.0)
    check_whole(conn, meter.recorder_health(), 3 * rounds * 100)
    assert stored(conn, "y")[60] == rounds * 100


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (RuntimeError("a fault of ours"), "RuntimeError"),
        (InvalidResponse("Protocol error"), "StoreUnavailable"),
    ],
)
def test_an_answer_that_cannot_be_read_leaves_the_batch_in_doubt(
    server: Server,
    conn: Any,
    open_buffered: OpenBuffered,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    trouble: str,
) -> None:
    """Garbled, or something of ours fails after the server has stored it: it comes again, once."""
    meter = open_buffered(server.url)
    meter.count("x")
    assert meter.flush(5.0)
    read, errors = redis.Connection.read_response, [error]

    def interrupted(self: redis.Connection, *args: Any, **options: Any) -> Any:
        reply = read(self, *args, **options)
        if errors and reply == 1:  # a batch was applied
            raise errors.pop()
        return reply

    monkeypatch.setattr(redis.Connection, "read_response", interrupted)
    meter.count("x", 10)
    assert meter.flush(5.0)
    assert errors == []
    assert meter.recorder_health().troubles == {trouble: 1}
    check_whole(conn, meter.recorder_health(), 11)


# --- No connection -------------------------------------------------------------------------


def test_what_is_counted_while_the_server_is_away_is_stored_when_it_is_back(
    proxy: Proxy, conn: Any, open_buffered: OpenBuffered, outage: Fault
) -> None:
    """By itself, without a flush that is asked for."""
    meter = open_buffered(proxy.url, timeout=0.2)
    meter.count("x")
    assert meter.flush(5.0)
    outage(proxy)
    for _ in range(3):
        meter.count("x", 10)
        meter.count("y")
        fail_again(meter)
        check_sums(meter.recorder_health())
    assert not meter.flush(0.01)
    assert (meter.recorder_health().stored, meter.recorder_health().buffered) == (1, 33)
    assert stored(conn)[0] == 1
    proxy.heal()
    stored_by_itself(meter)
    check_whole(conn, meter.recorder_health(), 34)
    assert stored(conn, "y")[60] == 3


def test_a_server_that_was_never_there_gets_everything_once_it_comes(
    proxy: Proxy, conn: Any, open_buffered: OpenBuffered
) -> None:
    """Counting begins before the first connection succeeds."""
    proxy.refuse()
    meter = open_buffered(proxy.url)
    for _ in range(50):
        meter.count("x")
    fail_again(meter, 2)
    proxy.heal()
    stored_by_itself(meter)
    check_whole(conn, meter.recorder_health(), 50)


def test_an_outage_of_hundreds_of_tries_is_not_too_long(
    proxy: Proxy, conn: Any, open_buffered: OpenBuffered, outage: Fault
) -> None:
    """Nothing is used up by trying in vain."""
    meter = open_buffered(proxy.url, flush_interval=3600, timeout=0.01)
    meter.count("x")
    assert meter.flush(5.0)
    outage(proxy)
    for _ in range(110):
        meter.count("x")
        meter.flush(0.0)
        fail_again(meter)
    proxy.heal()
    assert meter.flush(5.0)
    check_whole(conn, meter.recorder_health(), 111)


def calls_of(work: Callable[[], object]) -> set[str]:
    """Return which functions work calls on this thread, of Python and of C."""
    seen = set()

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        if event == "c_call":
            owner = type(getattr(arg, "__self__", None)).__qualname__
            seen.add(f"{owner}.{arg.__name__}")
        elif event == "call":
            seen.add(f"{frame.f_code.co_filename}:{frame.f_code.co_qualname}")

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return seen


def test_counting_does_the_same_whether_the_server_is_there_or_not(
    proxy: Proxy, conn: Any, open_buffered: OpenBuffered, outage: Fault
) -> None:
    """The very same functions are called; none of them waits or touches a socket."""
    clock = ManualClock(server_time(conn))
    meter = open_buffered(proxy.url, timeout=0.2, clock=clock)
    hits = meter.counter("hits", labels={"a": "b"})

    def work() -> None:
        for _ in range(60):
            meter.count("x")
            meter.count("x", 5)
            meter.count("x", labels={"a": "b"})
            meter.count("x", at=clock.wall())
            hits.inc()
            clock.advance(0.01)  # every fifth time, the flusher is looked after

    work()
    assert meter.flush(5.0)
    before = calls_of(work)
    assert meter.flush(5.0)
    outage(proxy)
    meter.count("x")
    fail_again(meter, 2)
    during = calls_of(work)
    assert any(call.endswith("Recorder.attend") for call in before)
    # Whoever looks while the flusher is at work also looks at how long it has been.
    assert during - {"module.monotonic"} == before - {"module.monotonic"}
    names = {call.rpartition(".")[2] for call in during}
    assert "append" in names
    assert not names & {"connect", "sendall", "recv", "select", "sleep", "acquire", "__enter__"}
    proxy.heal()
    assert meter.flush(5.0)
    check_whole(conn, meter.recorder_health(), 3 * 60 * 9 + 1)


def test_tries_become_fewer_while_the_server_is_away(
    proxy: Proxy, conn: Any, open_buffered: OpenBuffered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each wait is about twice the last, and ends at a random moment within a range."""
    meter = open_buffered(proxy.url, flush_interval=0.02)
    meter.count("x")
    assert meter.flush(5.0)
    proxy.reset_after(0, of="requests", times=10**6)
    drawn: list[tuple[float, float]] = []
    uniform = retry.system_random.uniform

    def draw(low: float, high: float) -> float:
        drawn.append((low, high))
        return uniform(low, high)

    monkeypatch.setattr(retry.system_random, "uniform", draw)
    connections, waits = proxy.connections, 60
    meter.count("x")
    eventually(lambda: len(drawn) >= waits, 30.0, "the flusher has woken so often")
    # It wakes each time to collect what was counted, and tries after about 2, 4, 8, 16 … of them.
    assert 3 <= tries(meter) <= 9
    assert proxy.connections - connections <= tries(meter)
    assert all(0.5 <= low < high <= 1.5 for low, high in drawn)
    proxy.heal()
    assert meter.flush(5.0)
    check_whole(conn, meter.recorder_health(), 2)


# --- Slow servers --------------------------------------------------------------------------


def test_a_server_slower_than_the_timeout_counts_once(
    server: Server, conn: Any, retries: dict[str, Any]
) -> None:
    """CLIENT PAUSE: the batch lies there several times and is applied once."""
    with (
        server.client(socket_timeout=0.1, **retries) as client,
        Meter(client=client, flush_interval=INTERVAL) as meter,
    ):
        meter.count("x")
        assert meter.flush(5.0)
        conn.execute_command("CLIENT", "PAUSE", "450")
        meter.count("x", 10)
        fail_again(meter)
        meter.count("x", 100)
        stored_by_itself(meter)
        assert meter.recorder_health().retried >= 1
        check_whole(conn, meter.recorder_health(), 111)


def test_a_slow_network_is_waited_for(proxy: Proxy, conn: Any, open_buffered: OpenBuffered) -> None:
    """Replies that come too late are as good as lost: nothing counts twice."""
    meter = open_buffered(proxy.url, timeout=0.1)
    meter.count("x")
    assert meter.flush(5.0)
    proxy.delay(1.0)
    meter.count("x", 10)
    fail_again(meter, 2)
    proxy.delay(0.02)
    meter.count("x", 100)
    stored_by_itself(meter)
    check_whole(conn, meter.recorder_health(), 111)


# --- What tells whether a batch was stored is gone -----------------------------------------


def test_a_batch_of_which_nobody_can_know_is_uncertain_and_not_stored_twice(
    proxy: Proxy, conn: Any, open_buffered: OpenBuffered
) -> None:
    """Its reply was lost, then its watermark was deleted: what it had stored may be gone, too."""
    meter = open_buffered(proxy.url)
    for number in (1, 2):
        meter.count("x")
        assert meter.flush(5.0)
        before = stored(conn)[0]
        proxy.drop_pattern("x")
        meter.count("x", 10)
        fail_again(meter)
        assert stored(conn)[0] == before + 10
        conn.delete(*batch_keys(conn))
        proxy.heal()
        stored_by_itself(meter)
        meter.count("x", 100)
        assert meter.flush(5.0)
        assert stored(conn)[0] == before + 110
        assert meter.recorder_health().uncertain == before + 10
        assert meter.recorder_health().troubles["uncertain"] == 2 * number
        check_sums(meter.recorder_health())
    assert set(stored(conn).values()) == {222}


def test_a_batch_whose_reply_was_lost_is_stored_though_everything_was_deleted(
    proxy: Proxy, conn: Any, open_buffered: OpenBuffered
) -> None:
    """By its number, after those that were acknowledged before; each of them once."""
    meter = open_buffered(proxy.url)
    for number in (1, 2):
        meter.count("x")
        assert meter.flush(5.0)
        proxy.drop_pattern("x")
        meter.count("x", 10)
        fail_again(meter)
        conn.flushall()
        proxy.heal()
        stored_by_itself(meter)
        check_whole(conn, meter.recorder_health(), 11 * number)
        assert meter.recorder_health().uncertain == 0


def test_a_first_batch_is_not_stored_twice_either(
    proxy: Proxy, conn: Any, open_buffered: OpenBuffered
) -> None:
    """No watermark was ever seen, and for long none can have gone by itself; then it counts."""
    clock = ManualClock(server_time(conn))
    for passed, uncertain in ((10.0, 0), (WATERMARK_SECONDS / 2 + 1, 5)):
        conn.flushall()
        meter = open_buffered(proxy.url, clock=clock, retention={86400: 120})
        proxy.drop_replies(1, skip=1)
        proxy.drop_pattern(".x")  # the first reports what the store keeps
        meter.count("x", 5)
        fail_again(meter)
        proxy.refuse()
        conn.flushall()
        clock.advance(passed)
        proxy.heal()
        assert meter.flush(5.0)
        assert meter.recorder_health().uncertain == uncertain
        check_promise(conn, meter.recorder_health())


def test_a_producer_that_was_silent_for_an_hour_becomes_another(
    server: Server, conn: Any, open_buffered: OpenBuffered
) -> None:
    """Before its watermark may have gone; one that is not silent for that long stays."""
    clock = ManualClock(server_time(conn) - 3 * 3600)
    meter = open_buffered(server.url, clock=clock, retention={86400: 120})
    names = []
    for passed, producers in ((0.0, 1), (3500.0, 1), (3500.0, 1), (3700.0, 2)):
        clock.advance(passed)
        meter.count("x")
        assert meter.flush(5.0)
        names.append(meter.recorder_health().producer)
        assert len(batch_keys(conn)) == producers
    assert len(set(names)) == 1  # to who reads its reports it stays the same
    check_whole(conn, meter.recorder_health(), 4)
