"""A writer that is silent for days, or suspended: no false gap, nothing twice, nothing forgotten.

The server's clock and the writer's are both moved, so watermarks expire as they do after a day.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from redmeter import book
from redmeter.clock import ManualClock
from redmeter.results import RecorderHealth
from redmeter.store.producers import KEPT_SECONDS, MAX_IDLE_SECONDS, WATERMARK_SECONDS
from support.fixed_time import FixedTime
from support.history import slices_of
from support.proxy import Proxy
from support.recorders import TOTAL, OpenBuffered, check_sums, fail_again, stored
from support.servers import Server
from support.stores import batch_keys, samples, server_time
from support.waiting import eventually

DAY, HOUR = 86400, 3600
#: Kept for longer than any silence here.
RETENTION = {HOUR: 120, DAY: 120}
#: Around each time at which something ends, and two days.
SILENCES = [
    *(KEPT_SECONDS + 1, MAX_IDLE_SECONDS - 1, MAX_IDLE_SECONDS + 1),
    *(WATERMARK_SECONDS / 2 - 1, WATERMARK_SECONDS / 2 + 1),
    *(WATERMARK_SECONDS - 1, WATERMARK_SECONDS + 1, 2 * DAY),
]


class World:
    """A server and a clock, shortly before the same midnight, UTC."""

    def __init__(self, server: FixedTime, conn: Any) -> None:
        self.server = server
        self.conn = conn
        self.clock = ManualClock(server.now)

    def let_pass(self, seconds: float, *, suspended: bool = False) -> None:
        """Let time pass on the server, and in the process.

        Args:
            suspended: the machine slept: the monotonic clock of Linux stands still then.
        """
        self.server.advance(seconds, self.conn)
        if suspended:
            self.clock.set_wall(self.clock.wall() + seconds)
        else:
            self.clock.advance(seconds)


@pytest.fixture
def world(server: Server, conn: Any) -> Iterator[World]:
    """Half a second before midnight, later than now: the server itself must not expire keys."""
    midnight = (server_time(conn) // DAY + 2) * DAY
    with FixedTime(server.port, midnight - 0.5) as fixed:
        yield World(fixed, conn)


def check_nothing_happened(health: RecorderHealth, events: int, **but: int) -> None:
    """Check that all events are stored, and that nothing was found to be missing."""
    expected = {"stored": events, "uncertain": 0, "dropped": 0, "repaired": 0} | but
    assert {name: getattr(health, name) for name in expected} == expected
    assert (health.losses, health.recorded) == ((), events)
    check_sums(health)


@pytest.mark.parametrize("suspended", [False, True], ids=["idle", "suspended"])
@pytest.mark.parametrize("sync", [False, True], ids=["buffered", "sync"])
@pytest.mark.parametrize("silence", SILENCES)
def test_a_writer_that_wakes_up_finds_no_gap_and_counts_nothing_twice(
    world: World, open_buffered: OpenBuffered, silence: float, sync: bool, suspended: bool
) -> None:
    """Whether or not its watermark has expired meanwhile."""
    options = {"sync": True} if sync else {"flush_interval": HOUR}
    meter = open_buffered(world.server.url, clock=world.clock, retention=RETENTION, **options)
    for amount in (1, 10):
        meter.count("x", amount)
        assert meter.flush(5.0)
    world.let_pass(silence, suspended=suspended)
    assert bool(batch_keys(world.conn)) == (silence < WATERMARK_SECONDS)
    for amount in (100, 1000):
        meter.count("x", amount)
        assert meter.flush(5.0)
    assert stored(world.conn) == dict.fromkeys((TOTAL, *RETENTION), 1111)
    check_nothing_happened(meter.recorder_health(), 1111)
    assert meter.recorder_health().troubles == {}


def test_the_book_finds_no_gap_after_days(world: World) -> None:
    """Its producers are those of a connection."""
    with redis.Redis(port=world.server.port) as conn:
        for silence in (0.0, *SILENCES):
            world.let_pass(silence)
            book.update_counter(conn, "x", 1, world.clock.wall())
    days = samples(world.conn, f"count:{DAY}:x")
    assert sum(days.values()) == 1 + len(SILENCES)


def test_a_writer_that_counts_for_days_is_in_the_right_hours_and_days(
    world: World, open_buffered: OpenBuffered
) -> None:
    """Every 50 minutes, through midnights; it is emptied, sent again and idle in between."""
    meter = open_buffered(
        world.server.url, clock=world.clock, retention=RETENTION, flush_interval=HOUR
    )
    counted: Counter[int] = Counter()
    for amount in range(1, 60):
        counted[int(world.clock.wall() // 1)] += amount
        meter.count("x", amount)
        assert meter.flush(5.0)
        world.let_pass(3000.0)
    for precision in (HOUR, DAY):
        found = samples(world.conn, f"redmeter:count:{precision}:x")
        assert found == dict(slices_of(counted, precision, 0))
    check_nothing_happened(meter.recorder_health(), counted.total())


def test_batches_that_are_sent_again_after_midnight_stay_in_their_day(
    world: World, open_buffered: OpenBuffered
) -> None:
    """Emptied on the next day, within the time for which batches are kept."""
    meter = open_buffered(
        world.server.url, clock=world.clock, retention=RETENTION, flush_interval=HOUR
    )
    midnight = int(world.clock.wall() + 0.5)
    meter.count("x", 1)
    assert meter.flush(5.0)
    world.let_pass(1.0)
    meter.count("x", 10)
    assert meter.flush(5.0)
    world.conn.flushall()
    meter.count("x", 100)
    assert meter.flush(5.0)
    for precision in RETENTION:
        found = samples(world.conn, f"redmeter:count:{precision}:x")
        assert found == {midnight - precision: 1, midnight: 110}
    check_nothing_happened(meter.recorder_health(), 111, repaired=11)


def test_a_store_that_was_emptied_while_the_machine_slept_is_found(
    world: World, open_buffered: OpenBuffered
) -> None:
    """By its birth, though the watermark would have expired anyway."""
    meter = open_buffered(
        world.server.url, clock=world.clock, retention=RETENTION, flush_interval=HOUR
    )
    meter.count("x", 1)
    assert meter.flush(5.0)
    world.conn.flushall()
    world.let_pass(2 * DAY, suspended=True)
    meter.count("x", 10)
    assert meter.flush(5.0)
    assert stored(world.conn)[TOTAL] == stored(world.conn)[DAY] == 11
    assert (meter.recorder_health().stored, meter.recorder_health().repaired) == (11, 1)
    check_sums(meter.recorder_health())


def test_a_batch_whose_reply_was_lost_before_two_days_of_sleep_is_never_there_twice(
    world: World, open_buffered: OpenBuffered
) -> None:
    """The watermark that would tell has expired: the outcome is unknown, and reported."""
    with Proxy(world.server.port) as proxy:
        meter = open_buffered(proxy.url, clock=world.clock, retention=RETENTION)
        meter.count("x", 1)
        eventually(lambda: meter.recorder_health().stored == 1, 10.0, "it is stored")
        proxy.drop_pattern("x")
        meter.count("x", 10)
        eventually(lambda: stored(world.conn)[TOTAL] == 11, 10.0, "it is applied")
        fail_again(meter, 2)  # one may be that of its report
        proxy.refuse()
        world.let_pass(2 * DAY, suspended=True)
        proxy.heal()
        meter.count("x", 100)
        assert meter.flush(5.0)
        assert stored(world.conn)[TOTAL] == 111
        health = meter.recorder_health()
        assert (health.stored, health.uncertain, health.dropped) == (101, 10, 0)
        check_sums(health)
        meter.close()
