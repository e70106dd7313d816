"""A failover while writers count: what a replica had stays, nothing is ever there twice.

What was counted while the master changed hands may be lost with the old one: as much as no replica
had. All that was stored before and on a replica, and all that is counted once the new master is
known, is there in the end.
"""

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import pytest

from redmeter import Meter
from redmeter.results import RecorderHealth
from redmeter.store.servers.retry import Backoff
from support.recorders import INTERVAL, TOTAL, OpenBuffered, check_sums, lost, stored
from support.sentinels import Watched
from support.servers import Server
from support.stores import total_on
from support.waiting import eventually

#: Meters that write at the same time.
WRITERS = 3


class Writers:
    """Meters that count for as long as they are told to; a context manager."""

    def __init__(self, url: str) -> None:
        self.meters = [Meter(url, flush_interval=INTERVAL, timeout=0.5) for _ in range(WRITERS)]
        self._going = threading.Event()
        self._threads = [threading.Thread(target=self._count, args=(m,)) for m in self.meters]

    def _count(self, meter: Meter) -> None:
        while self._going.is_set():
            meter.count("hits")
            self._pause.wait(0.0005)

    def __enter__(self) -> Self:
        self._pause = threading.Event()
        self._going.set()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._going.clear()
        for thread in self._threads:
            thread.join()

    def count(self, name: str, number: int) -> None:
        """Have each of them count so often, and store all that it has."""
        for meter in self.meters:
            for _ in range(number):
                meter.count(name)
        self.store()

    def store(self) -> None:
        """Have them store all that they have."""
        for meter in self.meters:
            eventually(lambda m=meter: m.flush(), 20.0, "all is stored")  # type: ignore[misc]

    def healths(self) -> list[RecorderHealth]:
        """Return what they know of themselves."""
        return [meter.recorder_health() for meter in self.meters]

    def close(self) -> None:
        """End them."""
        for meter in self.meters:
            meter.close()


@pytest.fixture
def writers(group: Watched) -> Iterator[Writers]:
    """Some, closed after the test."""
    made = Writers(group.url)
    yield made
    made.close()


def recorded(healths: list[RecorderHealth]) -> int:
    """Return how many events they took in."""
    return sum(health.recorded for health in healths)


def check_bounds(client: Any, healths: list[RecorderHealth], safe: Mapping[str, int]) -> None:
    """Check what is promised of a failover, at each precision.

    Args:
        safe: of which series a replica had all, or it came when the new master was known; and how
            many events those were.
    """
    losses: Counter[int] = sum((lost(health) for health in healths), Counter())
    for health in healths:
        check_sums(health)
        assert (health.buffered, health.dropped) == (0, 0)
    for precision, number in stored(client).items():
        assert number <= recorded(healths) - losses[precision], (precision, healths)
    for name, number in safe.items():
        gone = sum((lost(health, name) for health in healths), Counter())
        for precision, there in stored(client, name).items():
            assert there == number - gone[precision], (name, precision, healths)


def run(group: Watched, writers: Writers, change: Callable[[Server], Server]) -> None:
    """Count before, while and after the master changes hands; check what the new one has."""
    before = group.master
    writers.count("before", 50)
    group.wait_for_replicas()
    with writers:
        eventually(lambda: recorded(writers.healths()) > 500, 10.0, "they count")
        now = change(before)
        with now.client() as client:
            there = stored(client, "hits")[TOTAL]
            eventually(lambda: stored(client, "hits")[TOTAL] > there + 100, 20.0, "there too")
    writers.store()
    with now.client() as client:
        hits = stored(client, "hits")[TOTAL]
        for meter in writers.meters:
            eventually(lambda m=meter: m.total("hits") == hits, 5.0, "readings go there")  # type: ignore[misc]
        writers.count("after", 50)
        safe = dict.fromkeys(("before", "after"), 50 * WRITERS)
        check_bounds(client, writers.healths(), safe)


def test_a_master_that_is_killed_under_load_has_a_successor_that_counts_nothing_twice(
    group: Watched, writers: Writers
) -> None:
    """By SIGKILL: batches whose answer is missing are sent again, to the new one."""

    def kill(before: Server) -> Server:
        before.kill()
        return group.moved_from(before)

    run(group, writers, kill)
    assert sum(sum(health.troubles.values()) for health in writers.healths()) > 0


def test_a_failover_by_hand_under_load_counts_nothing_twice(
    group: Watched, writers: Writers
) -> None:
    """The old master is well all the time, and takes writes until it is reported."""
    run(group, writers, lambda _: group.fail_over())


def test_a_master_that_stood_still_and_comes_back_counts_nothing_twice(
    group: Watched, writers: Writers
) -> None:
    """What waits in its sockets it takes for writes still, until the sentinels have told it."""

    def pause(before: Server) -> Server:
        before.pause()
        now = group.moved_from(before)
        before.resume()
        return now

    run(group, writers, pause)


def test_with_all_that_was_written_on_a_replica_a_failover_is_exact(
    group: Watched, writers: Writers
) -> None:
    """Nothing is under way when it happens; what was recorded meanwhile follows."""
    writers.count("hits", 100)
    group.wait_for_replicas()
    before = group.master
    before.kill()
    for meter in writers.meters:
        for _ in range(40):
            meter.count("hits")
    now = group.moved_from(before)
    writers.store()
    healths = writers.healths()
    assert [(health.stored, health.uncertain) for health in healths] == [(140, 0)] * WRITERS
    with now.client() as client:
        check_bounds(client, healths, {"hits": 140 * WRITERS})


def test_a_new_master_ends_the_pause_after_a_failure(
    group: Watched, open_buffered: OpenBuffered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it would be: the sentinels are asked meanwhile."""
    failed = Backoff.failed

    def for_ever(backoff: Backoff, *, passing: bool, soon: bool = False) -> None:
        failed(backoff, passing=passing, soon=soon)
        backoff._not_before = math.inf

    monkeypatch.setattr(Backoff, "failed", for_ever)
    meter = open_buffered(group.url, timeout=0.5)
    meter.count("hits")
    assert meter.flush()
    group.wait_for_replicas()
    before = group.master
    before.kill()
    meter.count("hits")
    eventually(lambda: meter.recorder_health().troubles, 10.0, "a flush has failed")
    now = group.moved_from(before)
    eventually(lambda: total_on(now) == 2, 20.0, "what was recorded meanwhile is there")


def test_a_master_that_stands_still_is_not_waited_for_once_another_is_named(
    group: Watched, open_buffered: OpenBuffered
) -> None:
    """However long a reply may take; what it was sent is sent to the new one, and counts once."""
    meter = open_buffered(group.url, timeout=300.0)
    meter.count("hits")
    assert meter.flush()
    group.wait_for_replicas()
    before = group.master
    before.pause()
    meter.count("hits")
    now = group.moved_from(before)
    eventually(lambda: total_on(now) == 2, 20.0, "what was recorded meanwhile is there")
    assert meter.flush(10.0)
    health = meter.recorder_health()
    assert (health.stored, health.uncertain, health.retried) == (2, 0, 1)


def test_while_most_sentinels_are_away_nothing_is_lost_and_nobody_is_held_up(
    group: Watched, writers: Writers
) -> None:
    """Without a majority there is no failover: the master that there is stays."""
    master = group.master
    for sentinel in group.sentinels[:2]:
        sentinel.pause()
    with writers:
        eventually(lambda: recorded(writers.healths()) > 1000, 20.0, "they count")
    writers.store()
    healths = writers.healths()
    assert sum(health.uncertain for health in healths) == 0
    with master.client() as client:
        check_bounds(client, healths, {"hits": recorded(healths)})
