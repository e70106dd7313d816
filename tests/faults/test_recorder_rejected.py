"""What a server or its ACL does not take, and values that nobody can: the rest is stored once."""

import logging
import math
import threading
from typing import Any

import pytest

from redmeter import InvalidName, InvalidValue, Meter
from redmeter.clock import ManualClock, SystemClock
from redmeter.results import Loss
from redmeter.stored.keys import DEFAULT_RETENTION, slice_start
from support.proxy import Proxy
from support.recorders import (
    TOTAL,
    OpenBuffered,
    check_exact,
    check_sums,
    check_whole,
    fail_again,
    lost,
    stored,
)
from support.servers import Server
from support.stores import batch_keys, server_time
from support.waiting import eventually

pytestmark = pytest.mark.servers

MAX = 2**63 - 1

SECRET = "s3cret-word"


# --- Single items --------------------------------------------------------------------------


def test_what_a_key_does_not_take_is_rejected_by_itself_and_counted(
    server: Server, conn: Any, open_buffered: OpenBuffered
) -> None:
    """Somebody else's key, an interval that is full, one that holds no number; all in one batch."""
    now = server_time(conn)
    meter = open_buffered(server.url, clock=ManualClock(now), flush_interval=3600)
    conn.set("redmeter:count:60:theirs", "text")
    conn.hset("redmeter:count:300:full", str(slice_start(now, 300)), MAX - 6)
    conn.hset("redmeter:count:5:words", str(slice_start(now, 5)), "many")
    for name, amount in (("theirs", 5), ("full", 7), ("words", 11), ("good", 3)):
        meter.count(name, amount)
    assert meter.flush(5.0)
    health = meter.recorder_health()
    assert health.batches == 1
    assert set(health.losses) == {
        Loss("WRONGTYPE", "theirs", 60, 5),
        Loss("overflow", "full", 300, 7),
        Loss("not-a-number", "words", 5, 11),
    }
    assert conn.get("redmeter:count:60:theirs") == b"text"
    conn.delete("redmeter:count:60:theirs", "redmeter:count:5:words")
    conn.hincrby("redmeter:count:300:full", str(slice_start(now, 300)), -(MAX - 6))
    check_exact(conn, health)
    for name, amount in (("theirs", 5), ("full", 7), ("words", 11), ("good", 3)):
        assert stored(conn, name) == {p: amount - lost(health, name)[p] for p in stored(conn)}


def test_what_two_counts_cannot_hold_together_is_given_up_and_counted(
    server: Server, conn: Any, open_buffered: OpenBuffered
) -> None:
    """Past 2^63 - 1: in memory, where they fall into one interval, and in the grand total."""
    clock = ManualClock(server_time(conn) - 86400)
    meter = open_buffered(server.url, clock=clock, flush_interval=3600, retention={1: 9, 86400: 9})
    meter.count("x", MAX)
    meter.count("x", 1)
    meter.count("y", 5)
    assert meter.flush(5.0)
    health = meter.recorder_health()
    assert (health.recorded, health.stored, health.dropped) == (MAX + 6, MAX + 5, 1)
    assert set(health.losses) == {Loss("overflow", "x", p, 1) for p in (1, 86400, TOTAL)}
    check_exact(conn, health)
    clock.advance(86400)
    meter.count("x", 2)
    assert meter.flush(5.0)
    assert lost(meter.recorder_health(), "x") == {1: 1, 86400: 1, TOTAL: 3}
    check_exact(conn, meter.recorder_health())


def test_values_that_nobody_can_count_are_refused_before_they_are_taken_in(
    server: Server, conn: Any, open_buffered: OpenBuffered
) -> None:
    """NaN, infinities, too large, too long: nothing else changes.

    A gauge's are counted as dropped, the others are errors.
    """
    meter = open_buffered(server.url)
    gauge = meter.gauge("g")
    meter.count("x", 3)
    wrong: Any
    for wrong in (math.nan, math.inf, -math.inf):
        gauge.set(wrong)
        with pytest.raises(InvalidValue):
            meter.count("x", at=wrong)
        with pytest.raises(TypeError):
            meter.count("x", wrong)
    for wrong in (2**63, -1, 10**5000):
        with pytest.raises(InvalidValue):
            meter.count("x", wrong)
    with pytest.raises(InvalidName):
        meter.count("x" * 2**20)
    with pytest.raises(InvalidName):
        meter.count("x", labels={"a" * 2**20: "b"})
    assert meter.flush(5.0)
    health = meter.recorder_health()
    assert (health.recorded, health.stored, health.dropped) == (6, 3, 3)
    assert lost(health, "g")[TOTAL] == 3
    assert not conn.exists("redmeter:gauges:")


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_a_series_of_nothing_finite_takes_nothing_else_with_it(
    server: Server, proxy: Proxy, conn: Any, open_buffered: OpenBuffered, odd: float
) -> None:
    """Before, within and after an outage: a counter, a gauge, values, messages and marks stay."""
    meter = open_buffered(proxy.url, flush_interval=3600)
    reading = Meter(server.url)

    def record(round_: int) -> None:
        meter.observe("good", 1.5)
        meter.observe("bad", odd)
        meter.count("visits", 2)
        meter.gauge("depth").set(round_)
        meter.log("app", "hello")
        meter.mark(f"v{round_}")
        meter.observe("zz", 2.5)

    for round_ in (1, 2, 3):
        record(round_)
        if round_ == 2:
            proxy.refuse()
            assert not meter.flush(0.3)
            record(2)
            proxy.heal()
        assert meter.flush(10.0)
        health = meter.recorder_health()
        times = round_ + (round_ > 1)
        check_sums(health)
        assert (health.recorded, health.stored, health.dropped) == (8 * times, 7 * times, times)
        assert health.lost()["not-finite"][TOTAL] == times
        assert reading.total("visits") == 2 * times
        assert [found.count for found in reading.log_frequencies("app")] == [times]
        assert {mark.label for mark in reading.marks()} == {f"v{n + 1}" for n in range(round_)}
        for name in ("good", "zz"):
            assert reading.summary(name, precision=3600).count == times
        newest = [sample.value for sample in reading.gauge_series("depth", precision=60)]
        assert newest[-1] == round_
    reading.close()


def test_somebody_elses_key_in_place_of_a_watermark_makes_another_producer(
    server: Server, conn: Any, open_buffered: OpenBuffered
) -> None:
    """Nothing is lost by it, and their key is left alone."""
    meter = open_buffered(server.url)
    theirs = f"redmeter:batch:{meter.recorder_health().producer}"
    conn.rpush(theirs, "theirs")
    meter.count("x", 3)
    assert meter.flush(5.0)
    assert len(batch_keys(conn)) == 2
    assert conn.lrange(theirs, 0, -1) == [b"theirs"]
    check_whole(conn, meter.recorder_health(), 3)


# --- Locked out ----------------------------------------------------------------------------


class WatchedClock(SystemClock):
    """The machine's clock, which knows how often threads other than its maker's looked at it."""

    def __init__(self) -> None:
        self._maker = threading.get_ident()
        self.looks = 0

    def wall(self) -> float:
        """Return Unix seconds."""
        if threading.get_ident() != self._maker:
            self.looks += 1
        return super().wall()

    def wait(self, looks: int) -> None:
        """Wait until the background has looked so often once more: several times a turn."""
        wanted = self.looks + looks
        eventually(lambda: self.looks >= wanted, 10.0, "the background has gone on")


#: Who is let in how: the address' user and password, what he may do; what mends it.
LOCKS = {
    "wrong password": ("app:wrong@", ("+@all", "~*"), (">wrong",)),
    "no password": ("", (), ("nopass",)),
    "a command is forbidden": (f"app:{SECRET}@", ("+@all", "-evalsha", "~*"), ("+evalsha",)),
    "a key is forbidden": (
        f"app:{SECRET}@",
        ("+@all", *(f"~redmeter:{begin}*" for begin in ("b", "t", "m", "k", "g", "w", "r", "i"))),
        ("~redmeter:count:*",),
    ),
}


@pytest.mark.parametrize("lock", LOCKS)
def test_who_is_not_let_in_keeps_it_in_memory_and_does_not_hammer(
    proxy: Proxy,
    conn: Any,
    open_buffered: OpenBuffered,
    caplog: pytest.LogCaptureFixture,
    lock: str,
) -> None:
    """One try in half a minute, one line in the log; exact once the ACL is mended."""
    login, rules, mended = LOCKS[lock]
    conn.execute_command("ACL", "SETUSER", "app", "on", ">" + SECRET, *rules)
    conn.execute_command("ACL", "SETUSER", "default", "resetpass", ">" + SECRET)
    clock = WatchedClock()
    with caplog.at_level(logging.INFO, "redmeter"):
        meter = open_buffered(f"redis://{login}127.0.0.1:{proxy.port}/0", clock=clock)
        meter.count("x")
        fail_again(meter)
        for _ in range(5):
            meter.count("x", 10)
            clock.wait(20)
        assert meter.recorder_health().troubles == {"AccessDenied": 1}
        assert proxy.connections <= 2
        assert proxy.commands["EVALSHA"] <= 2
        for _ in range(100):
            meter.flush(0.0)
        assert meter.recorder_health().troubles["AccessDenied"] <= 2  # once a second, who asks
    (line,) = caplog.records
    assert line.levelno == logging.WARNING
    assert SECRET not in caplog.text + meter.recorder_health().last_trouble
    assert (meter.recorder_health().buffered, meter.recorder_health().stored) == (51, 0)
    assert stored(conn)[0] == 0
    check_sums(meter.recorder_health())
    conn.execute_command("ACL", "SETUSER", "app" if login else "default", *mended)
    assert meter.flush(5.0)
    check_whole(conn, meter.recorder_health(), 51)


def test_what_a_user_may_not_do_within_the_script_is_lost_and_counted(
    proxy: Proxy, conn: Any, open_buffered: OpenBuffered, caplog: pytest.LogCaptureFixture
) -> None:
    """Without HINCRBY: denied, at every precision; the next try is half a minute later."""
    conn.execute_command("ACL", "SETUSER", "app", "on", ">" + SECRET, "~*", "+@all", "-hincrby")
    clock = WatchedClock()
    meter = open_buffered(f"redis://app:{SECRET}@127.0.0.1:{proxy.port}/0", clock=clock)
    meter.count("x", 3)
    fail_again(meter)
    meter.count("x", 10)
    clock.wait(100)
    assert proxy.commands["EVALSHA"] + proxy.commands["EVAL"] == 4  # what is kept, and the batch
    health = meter.recorder_health()
    assert (health.stored, health.buffered, health.dropped) == (3, 10, 0)
    assert health.troubles == {"AccessDenied": 1}
    assert health.lost() == {"denied": dict.fromkeys([*DEFAULT_RETENTION, TOTAL], 3)}
    assert len(caplog.records) == 1
    conn.execute_command("ACL", "SETUSER", "app", "+hincrby")
    assert meter.flush(5.0)
    check_exact(conn, meter.recorder_health())
    assert set(stored(conn).values()) == {10}


def url_without_reports(server: Server, conn: Any) -> str:
    """Return the address for a user who may count, and set gauges, but not tell of himself."""
    rules = [f"~redmeter:{begin}*" for begin in ("b", "t", "m", "k", "g", "c")]
    conn.execute_command("ACL", "SETUSER", "app", "on", ">" + SECRET, "+@all", *rules)
    return f"redis://app:{SECRET}@127.0.0.1:{server.port}/0"


def test_a_report_that_the_store_does_not_take_is_not_tried_with_every_flush(
    server: Server, conn: Any, open_buffered: OpenBuffered
) -> None:
    """A user who may count, but not tell of himself: what is counted is stored all the same."""
    meter = open_buffered(url_without_reports(server, conn))
    for _ in range(10):
        meter.count("x")
        assert meter.flush(5.0)
    assert meter.recorder_health().troubles == {"AccessDenied": 1}
    check_whole(conn, meter.recorder_health(), 10)


def test_where_no_number_is_given_what_needs_none_is_stored(
    server: Server, conn: Any, open_buffered: OpenBuffered
) -> None:
    """A user who may not tell of himself gets no number: what has a place for it waits, alone."""
    meter = open_buffered(url_without_reports(server, conn))
    gauge = meter.gauge("own", per_process=True)
    for number in range(3):
        gauge.set(number)
        meter.count("x")
        eventually(lambda: stored(conn, "x")[0] == number + 1, 10.0)  # noqa: B023
    health = meter.recorder_health()
    assert (health.instance, set(health.troubles)) == (None, {"AccessDenied"})
    assert health.buffered > 0
    conn.execute_command("ACL", "SETUSER", "app", "allkeys")
    eventually(lambda: meter.recorder_health().buffered == 0, 10.0)
    assert meter.recorder_health().instance == 0
    check_sums(meter.recorder_health())


def test_what_was_rejected_is_told_again_when_the_answer_was_lost(
    server: Server, proxy: Proxy, conn: Any
) -> None:
    """The try that is told "applied before" hears what was not, so losses are counted exactly."""
    conn.set("redmeter:count:60:x", "theirs")
    with Meter(proxy.url, flush_interval=3600, timeout=0.2) as meter:
        for lost in (1, 3, 0):
            proxy.drop_replies(lost)
            meter.count("x", 10)
            assert meter.flush(20)
            proxy.heal()
        health = meter.recorder_health()
        assert health.lost() == {"WRONGTYPE": {60: 30}}
        assert (health.stored, health.retried >= 3) == (30, True)
    assert conn.hget("redmeter:total:", "x") == b"30"
    assert sum(map(int, conn.hvals("redmeter:count:3600:x"))) == 30


def test_a_sum_past_63_bits_is_called_an_overflow(server: Server, conn: Any) -> None:
    """Seconds that each fit: what they add up to does not, at the coarser precisions."""
    with Meter(server.url, flush_interval=3600) as meter:
        second = int(server_time(conn)) // 60 * 60 - 60
        for at in range(3):
            meter.count("x", 2**62, at=second + at)
        assert meter.flush(5.0)
        lost = meter.recorder_health().lost()
    assert set(lost) == {"overflow"}
    assert 1 not in lost["overflow"]
    assert {60, TOTAL} <= lost["overflow"].keys()
    assert len(conn.hgetall("redmeter:count:1:x")) == 3
