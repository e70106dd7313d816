"""Clocks that are set, run wrong or are asked late: events stay in their own intervals."""

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import redmeter
from redmeter.clock import ManualClock
from redmeter.stored.keys import DEFAULT_RETENTION, slice_start
from support.proxy import Proxy
from support.recorders import (
    TOTAL,
    OpenBuffered,
    check_exact,
    check_whole,
    fail_again,
    stored,
)
from support.servers import Server
from support.stores import samples, server_time
from support.waiting import eventually

pytestmark = pytest.mark.servers

DAY, HOUR = 86400, 3600


def slices(seconds: Mapping[int, int], precision: int) -> dict[int, int]:
    """Return what the intervals of a precision hold of what was counted, second by second."""
    found: Counter[int] = Counter()
    for second, amount in seconds.items():
        found[slice_start(second, precision)] += amount
    return dict(found)


def of(conn: Any, precision: int, name: str = "x") -> dict[int, int]:
    """Return a counter's stored intervals."""
    return samples(conn, f"redmeter:count:{precision}:{name}")


# --- The clock is set ----------------------------------------------------------------------


@pytest.mark.parametrize("away", [False, True], ids=["connected", "in an outage"])
@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_clock_that_is_set_by_an_hour_moves_nothing_that_was_counted(
    proxy: Proxy, conn: Any, open_buffered: OpenBuffered, step: int, away: bool
) -> None:
    """What came before stays where it was; what comes after goes by the new time."""
    now = int(server_time(conn))
    clock = ManualClock(now)
    meter = open_buffered(proxy.url, clock=clock, flush_interval=HOUR)
    meter.count("x")
    assert meter.flush(5.0)
    if away:
        proxy.refuse()
    meter.count("x", 10)
    clock.set_wall(now + step)
    meter.count("x", 100)
    if away:
        assert not meter.flush(0.0)
        fail_again(meter)
        meter.count("x", 1000)
        proxy.heal()
    assert meter.flush(5.0)
    check_exact(conn, meter.recorder_health())
    late = 1100 if away else 100
    # An hour ahead of the server's clock is further than the seconds are kept.
    ahead = {"future": dict.fromkeys((1, 5), late)} if step > 0 else {}
    assert meter.recorder_health().lost() == ahead
    counted = {now: 11, now + step: late}
    for precision in DEFAULT_RETENTION:
        seconds = {now: 11} if step > 0 and precision < 60 else counted
        assert of(conn, precision) == slices(seconds, precision)
    assert meter.recorder_health().last_flush == now + step


def test_a_clock_that_is_set_back_and_forth_counts_everything(
    server: Server, conn: Any, open_buffered: OpenBuffered
) -> None:
    """While the background flushes as it likes; nothing lasts a negative time."""
    now = int(server_time(conn))
    clock = ManualClock(now)
    meter = open_buffered(server.url, clock=clock, retention={60: 120, 420: 120})
    counted: Counter[int] = Counter()
    for i in range(300):
        clock.set_wall(now - (i * 997) % 3600)
        meter.count("x", i)
        counted[int(clock.wall())] += i
    assert meter.flush(5.0)
    check_whole(conn, meter.recorder_health(), counted.total())
    for precision in (60, 420):
        assert of(conn, precision) == slices(counted, precision)


# --- Intervals --------------------------------------------------------------------------------


@pytest.mark.parametrize("begin", [-5000, 0], ids=["around 1970", "now"])
def test_precisions_that_do_not_divide_each_other_have_the_right_slices(
    server: Server, conn: Any, open_buffered: OpenBuffered, begin: int
) -> None:
    """7 s and 60 s; where one divides the other, fine intervals add up to the coarse one."""
    retention = {7: 250, 60: 250, 420: 250}
    begin = begin or int(server_time(conn)) - 1400
    clock = ManualClock(begin)
    meter = open_buffered(server.url, clock=clock, retention=retention, flush_interval=HOUR)
    counted: Counter[int] = Counter()
    for i in range(1400):
        # Late ones too, up to a minute, and fractions of a second.
        at = clock.wall() - (i * 7919) % 60 - 0.25
        meter.count("x", i % 11, at=at)
        counted[slice_start(at, 1)] += i % 11
        clock.advance(1.0)
        if i % 500 == 0:
            assert meter.flush(5.0)
    clock.advance(30.0)
    assert meter.flush(5.0)
    check_whole(conn, meter.recorder_health(), counted.total())
    for precision in retention:
        assert of(conn, precision) == slices(counted, precision)
    for fine in (7, 60):
        assert slices(of(conn, fine), 420) == of(conn, 420)


def test_times_before_1970_are_in_their_slices(
    server: Server, conn: Any, open_buffered: OpenBuffered
) -> None:
    """Rounded down, not towards zero."""
    clock = ManualClock(-1.0)
    meter = open_buffered(server.url, clock=clock, retention={1: 120, 60: 120}, flush_interval=HOUR)
    for at in (-0.5, -1, -60, -61.5, 0, 1.5):
        clock.set_wall(at)
        meter.count("x")  # alone, and below together with others
        assert meter.flush(5.0)
        meter.count("x", at=at)
        meter.count("x", at=at)
        assert meter.flush(5.0)
    assert of(conn, 1) == {-1: 6, -60: 3, -62: 3, 0: 3, 1: 3}
    assert of(conn, 60) == {-60: 9, -120: 3, 0: 6}
    check_whole(conn, meter.recorder_health(), 18)


# --- A clock is wrong ----------------------------------------------------------------------


def live(conn: Any) -> dict[int, dict[int, int]]:
    """Return another writer's samples by precision."""
    return {precision: of(conn, precision) for precision in DEFAULT_RETENTION}


@pytest.mark.parametrize("off", [DAY, -DAY])
def test_a_writer_whose_clock_is_a_day_wrong_harms_nobody_else(
    server: Server, conn: Any, open_buffered: OpenBuffered, off: int
) -> None:
    """No other's sample is trimmed, no time to live shortened; what is not kept is counted."""
    now = int(server_time(conn))
    right = open_buffered(server.url, clock=ManualClock(now), flush_interval=HOUR)
    for age in range(110):
        right.count("x", at=now - age)
    right.count("x", at=now - 5 * DAY)
    assert right.flush(5.0)
    right.count("x", at=now + 2 * DAY)  # gives its hashes a longer life
    assert right.flush(5.0)
    before = live(conn)
    lives = {p: conn.ttl(f"redmeter:count:{p}:x") for p in DEFAULT_RETENTION}
    wrong = open_buffered(server.url, clock=ManualClock(now + off), flush_interval=HOUR)
    for age in range(100):
        wrong.count("x", at=now + off - age)
        if age % 30 == 0:
            assert wrong.flush(5.0)
    assert wrong.flush(5.0)
    check_exact(conn, right.recorder_health(), wrong.recorder_health())
    after = live(conn)
    for precision, found in before.items():
        assert all(after[precision][start] >= number for start, number in found.items())
        assert conn.ttl(f"redmeter:count:{precision}:x") >= lives[precision] - 5
    # What is behind is old by the server's clock alone: the next right writer's trimming takes it.
    ahead = {"future": dict.fromkeys((1, 5, 60, 300), 100)} if off > 0 else {}
    assert wrong.recorder_health().lost() == ahead
    assert wrong.recorder_health().stored == 100


def test_one_event_of_long_ago_and_one_far_ahead_are_left_out_where_they_do_not_fit(
    server: Server, conn: Any, open_buffered: OpenBuffered
) -> None:
    """1,000 s old: aged; 1,000,000 s ahead: in the future; the grand total has both."""
    now = int(server_time(conn))
    meter = open_buffered(server.url, clock=ManualClock(now), flush_interval=HOUR)
    for age in range(110):
        meter.count("x", at=now - age)
    assert meter.flush(5.0)
    before = live(conn)
    lives = {p: conn.ttl(f"redmeter:count:{p}:x") for p in DEFAULT_RETENTION}
    meter.count("x", 3, at=now - 1000)
    meter.count("x", 7, at=now + 10**6)
    assert meter.flush(5.0)
    health = meter.recorder_health()
    assert health.lost() == {
        "aged": dict.fromkeys((1, 5), 3),
        "future": dict.fromkeys((1, 5, 60, 300, 3600), 7),
    }
    assert (health.stored, health.dropped) == (120, 0)
    assert stored(conn)[TOTAL] == 120
    check_exact(conn, health)
    for precision, found in before.items():
        for start, number in found.items():
            assert of(conn, precision)[start] >= number
        assert conn.ttl(f"redmeter:count:{precision}:x") >= lives[precision] - 5


# --- The flusher is late -------------------------------------------------------------------


def test_events_are_in_their_slices_however_late_they_are_stored(
    server: Server, conn: Any, open_buffered: OpenBuffered
) -> None:
    """The server answers nothing, so the background hangs; counting goes on, second by second."""
    now = int(server_time(conn)) - 100
    clock = ManualClock(now)
    meter = open_buffered(server.url, clock=clock, timeout=20.0)
    meter.count("x")
    assert meter.flush(5.0)
    server.pause()
    for second in range(1, 100):
        clock.advance(1.0)
        meter.count("x", second)
    assert meter.recorder_health().stored == 1
    assert meter.recorder_health().troubles == {}
    server.resume()
    assert meter.flush(10.0)
    check_whole(conn, meter.recorder_health(), 1 + sum(range(100)))
    assert of(conn, 1) == {now + second: second or 1 for second in range(100)}


def test_events_are_in_their_slices_when_no_other_thread_gets_to_run(
    server: Server, conn: Any, open_buffered: OpenBuffered
) -> None:
    """A call into C keeps the interpreter's lock for longer than a second."""
    meter = open_buffered(server.url)
    counted: Counter[int] = Counter()
    numbers = range(20_000_000)

    def count() -> None:
        before = time.time()
        meter.count("x")
        if int(before) == int(time.time()):
            counted[int(before)] += 1

    while len(counted) < 2:
        for _ in range(1000):
            count()
        sum(numbers)  # no byte code is run meanwhile
    assert meter.flush(5.0)
    check_whole(conn, meter.recorder_health(), meter.recorder_health().recorded)
    found = of(conn, 1)
    assert all(found[second] >= number for second, number in counted.items())


STOPPED = """
import sys, time
from redmeter import Meter
meter = Meter(sys.argv[1], flush_interval=0.05)
for _ in range(2):
    before = time.time()
    while int(time.time()) == int(before):
        pass  # to the next second, so that it does not end while we count
    second = int(time.time())
    for _ in range(500):
        meter.count("x")
    print(second, int(time.time()), flush=True)
    sys.stdin.readline()
meter.close()
health = meter.recorder_health()
assert health.recorded == health.stored == 1000, health
"""


def test_a_process_that_is_stopped_for_a_while_goes_on_where_it_was(
    server: Server, conn: Any
) -> None:
    """SIGSTOP and SIGCONT, in the middle of everything."""
    child = subprocess.Popen(
        [sys.executable, "-c", STOPPED, server.url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(Path(redmeter.__file__).parents[1])},
    )
    with child:
        assert child.stdin
        assert child.stdout
        first = child.stdout.readline().split()
        child.send_signal(signal.SIGSTOP)
        eventually(lambda: time.time() > int(first[1]) + 1.5, what="a second is over")
        child.send_signal(signal.SIGCONT)
        child.stdin.write("\n\n")
        child.stdin.flush()
        second = child.stdout.readline().split()
        assert child.wait(20) == 0
    found = of(conn, 1)
    assert sum(found.values()) == 1000
    assert set(found) <= {int(s) for s in (*first, *second)}
    for begin, end in (first, second):
        assert sum(found.get(s, 0) for s in {int(begin), int(end)}) == 500
    assert int(second[0]) > int(first[1]) + 1


def test_what_a_store_keeps_beyond_what_a_recorder_expected_is_told_to_be_lacking(
    conn: Any, server: Server
) -> None:
    """Before its first batch a recorder goes by its own configuration: then by the store's."""
    with redmeter.Meter(server.url, retention={1: 120, 60: 120}, sync=True) as first:
        first.count("x")
    with redmeter.Meter(server.url, retention={60: 120}, flush_interval=3600) as meter:
        meter.count("x", 5)
        assert meter.flush(5.0)
        assert meter.recorder_health().lost() == {"retention": {1: 5}}
        meter.count("x", 7)
        assert meter.flush(5.0)
        assert meter.recorder_health().lost() == {"retention": {1: 5}}
    sums = {p: sum(map(int, conn.hvals(f"redmeter:count:{p}:x"))) for p in (1, 60)}
    assert sums == {1: 8, 60: 13}
