"""Producers, their sequence numbers, the batch that each has in flight, and their reports.

A producer is 128 random bits, never a process ID or a host name: those repeat (all containers start
at pid 1), and a repeated producer would make new batches look applied. A fork gets new producers,
otherwise parent and child would share numbers.

A producer has one batch in flight, since a later one would make an earlier one look applied.
Synchronous callers therefore borrow a producer for each call from a small pool: as many watermark
keys as there ever were concurrent calls, not one per thread or per call. Beyond POOL, a call first
waits POOL_PATIENCE for one to be returned.

A signal handler may count while its own thread is in here, so it must not need a lock that this
thread holds: a producer is borrowed by trying its lock, never by waiting for one in particular. A
handler that raises right after the lock was acquired leaves it held forever; that costs one later
call POOL_PATIENCE, and another producer takes its place.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from redmeter.clock import Clock
from redmeter.store.scripts import PUBLISH
from redmeter.store.servers.replies import Link, raised
from redmeter.stored.keys import Kept, Keys
from redmeter.types import Batch, Gap, LostEvents, Operations, Rejection

#: Seconds for which a watermark outlives its producer's last batch: longer than fine samples, so a
#: server that evicts the keys that expire next evicts those first. A batch that was first sent half
#: as long ago is applied only if its watermark exists.
WATERMARK_SECONDS = 86400
#: A buffered writer that was idle for longer is renewed, seconds: its watermark may be gone when a
#: lost reply makes a retry necessary, and then the outcome would be unknown.
MAX_IDLE_SECONDS = 3600.0
#: An idle producer asks for a gap after so many seconds.
ASK_SECONDS = 60.0
#: Births of stores that are remembered.
BIRTHS = 16
#: Producers of one store in one process, as long as no call waits POOL_PATIENCE for one.
POOL = 8
#: Seconds between two tries while all are borrowed, and after which another one is created: this
#: very thread may hold them, interrupted by a signal handler.
POOL_POLL, POOL_PATIENCE = 0.001, 0.05


class Producer:
    """One source of numbered batches; use it from one thread at a time.

    Args:
        keep: most bytes of acknowledged batches, which are sent again if the server loses them.
    """

    __slots__ = (
        "_births",
        "_clock",
        "_lost",
        "_since",
        "acknowledged",
        "born",
        "confirmed",
        "id",
        "kept",
        "lock",
        "number",
        "tried",
    )

    def __init__(self, clock: Clock, keep: int = 0) -> None:
        #: Held by the call that has borrowed it, which releases it after its batch, also where the
        #: call was broken off: its next number is higher, and its batch, should it arrive after
        #: that, is refused as old. In a `finally`, as its first step: nothing can come between.
        self.lock = threading.Lock()
        self._clock = clock
        self.kept = KeptBatches(clock, keep)
        #: Counted once a batch after it is applied: a demoted primary finds gaps, too.
        self._lost: LostEvents | None = None
        self.renew()

    def renew(self) -> None:
        """Become another producer: new ID, new numbers."""
        self.id = os.urandom(16).hex()
        #: Sequence number of the last batch.
        self.number = 0
        #: Number of the last batch that the store has acknowledged; 0 if there is none. While a gap
        #: is repaired, the last one that it is known to have.
        self.acknowledged = 0
        #: The birth of the store that it last heard of: batches are for that one.
        self.born = ""
        #: "replica" or "disk", and the number of the last batch that it has confirmed; and the same
        #: of the last batch for which that was tried. See durability.py.
        self.confirmed = self.tried = ("", 0)
        self._since = (0.0, 0.0)
        #: The births of stores that have acknowledged its batches, the newest last.
        self._births: dict[str, None] = {}
        self.kept.clear()

    def next(self) -> int:
        """Return the next batch's number."""
        self.number += 1
        return self.number

    def acknowledge(self, number: int, born: str) -> None:
        """Note that a store has a batch."""
        self.acknowledged, self.born = number, born
        self._since = self._clock.monotonic(), self._clock.wall()
        self._births[born] = self._births.pop(born, None)
        if len(self._births) > BIRTHS:
            del self._births[next(iter(self._births))]

    @property
    def idle(self) -> float:
        """Seconds since the last acknowledgement."""
        return self._clock.monotonic() - self._since[0]

    @property
    def must_ask(self) -> bool:
        """Whether it has been idle for so long that it asks the server for a gap."""
        return self.acknowledged > 0 and ASK_SECONDS < self.idle < MAX_IDLE_SECONDS

    @property
    def floor(self) -> int:
        """The number that the store must know; 0 if its watermark may have expired."""
        age = max(self.idle, self._clock.wall() - self._since[1])
        return self.acknowledged if age < WATERMARK_SECONDS / 2 else 0

    def go_back(self, gap: Gap) -> bool:
        """Go on from what the store has; return whether its batches are known to be gone.

        They are not where the watermark alone is gone, evicted or deleted: then another producer
        has to go on.
        """
        # A birth that was known before is no new one, also if several stores take turns.
        # One that begins with "~" proves nothing: see bind.lua.
        new = gap.born not in self._births and not gap.born.startswith("~")
        emptied = self.born != "" and new
        gone = gap.found is not None or emptied
        self._lost = self.kept.lost(gap, gone=gone)
        if gone:
            self.acknowledged, self.born = gap.found or 0, gap.born
            tried, number = self.tried
            self.confirmed, self.tried = ("", 0), (tried, min(number, self.acknowledged))
        return gone

    @property
    def counts_lost(self) -> bool:
        """Whether batches count as lost once the next one is applied."""
        return self._lost is not None

    def take_lost(self, *, false: bool = False) -> LostEvents | None:
        """Return what the server has lost, once.

        Args:
            false: a server that has more than was found answered: it is not lost.
        """
        lost, self._lost = self._lost, None
        if lost is None or false:
            return None
        self.kept.forget(lost)
        return lost


class InFlightBatch:
    """One batch of a producer, until it is acknowledged.

    While `sent` is false it was certainly not applied. Once it was sent without a reply it may have
    been, so it keeps its number and its operations until there is a reply.

    Args:
        build: makes the operations for a retention; called again if the retention changed.
        number: of a batch that is sent again because the store has lost it; None: the next one.
        kept, refuse, trim: see Shard.write().
    """

    __slots__ = (
        *("_batch", "_build", "_since", "_version", "kept", "number", "producer", "refuse"),
        *("renewed", "sent", "trim"),
    )

    def __init__(
        self,
        producer: Producer,
        build: Callable[[Kept], Operations],
        number: int | None = None,
        *,
        kept: Kept | None = None,
        refuse: bool = True,
        trim: bool = True,
    ) -> None:
        self.kept, self.refuse, self.trim = kept, refuse, trim
        self.producer = producer
        self.number = producer.next() if number is None else number
        #: Whether it may have been applied.
        self.sent = False
        #: Whether its producer was renewed.
        self.renewed = False
        self._build = build
        self._batch: Batch | None = None
        self._version = ""
        self._since = (0.0, 0.0)

    def batch(self, kept: Kept, version: str) -> Batch:
        """Return the batch for a retention, the same each time for one version.

        It is rebuilt for another version even if it was sent: the server checks the number before
        the version, so a batch that it refuses for its version was not applied.
        """
        if self._batch is None or self._version != version:
            operations = self._build(kept)
            self._batch, self._version = Batch(self.producer.id, self.number, operations), version
        return self._batch

    def may_be_applied(self, clock: Clock) -> None:
        """Note that it was sent without a reply."""
        if not self.sent:
            self.sent, self._since = True, (clock.monotonic(), clock.wall())

    def age(self, clock: Clock) -> float:
        """Return how long ago it was first sent, seconds: the longer of two clocks' answers."""
        monotonic, wall = self._since
        return max(clock.monotonic() - monotonic, clock.wall() - wall)

    def goes_on_after(self, gap: Gap) -> bool:
        """Prepare to be sent again after a gap; return False if its outcome is unknown.

        The same events have the same number on every server, so batches that were lost are sent
        again under their numbers, wherever an old primary returns. Only where the watermark alone
        is gone, its batches may still be there: another producer goes on then.
        """
        if not self.producer.go_back(gap):
            if self.sent:
                return False
            self.renew()
        return True

    def renew(self) -> None:
        """Give it to another producer; only if it was not sent."""
        self.producer.renew()
        self.number = self.producer.next()
        self.renewed, self._batch = True, None


class Producers:
    """The pool that synchronous callers borrow from."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start()

    def _start(self) -> None:
        self._all: list[Producer] = []
        # Last: a thread that sees it must not find the parent's producers any more.
        self._pid = os.getpid()

    def all(self) -> list[Producer]:
        """Return the producers of this process."""
        return [] if self._pid != os.getpid() else list(self._all)

    def borrow(self) -> Producer:
        """Return a producer for one batch; the caller releases its lock."""
        if self._pid != os.getpid():
            self._start()  # forked: these producers are the parent's, and so are their locks
        waiting_since = None
        while True:
            # Always from the first: as few as possible should ever write.
            for producer in self._all:
                if producer.lock.acquire(blocking=False):
                    return producer
            now = time.monotonic()
            if waiting_since is None:
                waiting_since = now
            if len(self._all) < POOL or now - waiting_since >= POOL_PATIENCE:
                self._all.append(Producer(self._clock))
            else:
                time.sleep(POOL_POLL)

    @property
    def single(self) -> bool:
        """Whether there is one at most."""
        return len(self._all) < 2

    def borrow_idle(self, *, everyone: bool) -> Iterator[Producer]:
        """Yield the producers that ask the server for a gap now.

        Args:
            everyone: also those that were not idle for long.
        """
        for producer in list(self._all) if self._pid == os.getpid() else ():
            asks = producer.acknowledged > 0 if everyone else producer.must_ask
            if asks and producer.lock.acquire(blocking=False):
                try:
                    yield producer
                finally:
                    producer.lock.release()


# --- Kept batches --------------------------------------------------------------------------------
# What a shard has acknowledged lately is kept, to be sent again if the server loses it.
#
# A failover, a restart from an older dump or a FLUSHDB takes batches away that were acknowledged.
# The next batch finds that: it names the number that the producer last had acknowledged, its floor,
# and the script refuses it where the watermark is below (apply.lua). Then the batches above the
# watermark are sent again, the lowest first, under their own numbers, and the refused one after
# them.
#
#     acknowledged  1 2 3 4 5 6 7          the server has 3, the oldest kept batch is 5
#     sent again            5 6 7   8      4 is lost, 8 was refused
#
# The producer stays, so the same events have the same number on every server: an old primary that
# returns counts nothing twice. If the watermark alone is gone, evicted or deleted, its batches may
# still be there: nothing is sent again, and another producer goes on. That the store was emptied is
# seen by its birth, see store/config.py.
#
# Bounds: the batches of the last KEPT_SECONDS before the newest one are kept, and as many as
# `limit` bytes hold; of synchronous calls, none. KEPT_STEPS moments before that are remembered,
# with the events until then: how many are lost.

#: How long batches are kept, seconds: longer than a failover takes.
KEPT_SECONDS = 60.0
#: Moments that are remembered.
KEPT_STEPS = 64
#: Memory of a rejection, approximately.
REJECTION_BYTES = 400


class Contents(Protocol):
    """What a batch has."""

    @property
    def events(self) -> int:
        """How many events."""

    @property
    def bytes(self) -> int:
        """Their memory, approximately."""


class KeptBatch(NamedTuple):
    """An acknowledged batch."""

    number: int
    #: When it was acknowledged, Unix seconds.
    time: float
    #: Events of the producer until then, its own included.
    events: int
    contents: Any
    #: The parts that the server has rejected.
    rejections: tuple[Rejection, ...] = ()

    @property
    def bytes(self) -> int:
        """Its memory, approximately."""
        return int(self.contents.bytes) + REJECTION_BYTES * len(self.rejections)


class KeptBatches:
    """The acknowledged batches of one producer.

    Args:
        limit: most bytes of their contents, approximately.
    """

    def __init__(self, clock: Clock, limit: int) -> None:
        self._clock = clock
        self._limit = limit
        self.clear()

    def clear(self) -> None:
        """Forget everything: another producer begins."""
        self._batches: deque[KeptBatch] = deque()
        #: (number, Unix seconds, events until then), the oldest first.
        self._steps: list[tuple[int, float, int]] = []
        self._events = 0
        self.bytes = 0

    def add(
        self,
        number: int,
        events: int,
        contents: Contents | None = None,
        rejections: tuple[Rejection, ...] = (),
    ) -> None:
        """Keep a batch that was acknowledged for the first time; without contents, its number."""
        now = self._clock.wall()
        self._events += events
        if contents is None:
            self._steps.append((number, now, self._events))
        else:
            batch = KeptBatch(number, now, self._events, contents, rejections)
            self._batches.append(batch)
            self.bytes += batch.bytes
        while self._batches and (
            self.bytes > self._limit or self._batches[0].time < now - KEPT_SECONDS
        ):
            gone = self._batches.popleft()
            self.bytes -= gone.bytes
            self._steps.append((gone.number, gone.time, gone.events))
        if len(self._steps) > KEPT_STEPS:
            # Every second one of the older half: the newest are the likeliest to be needed.
            del self._steps[: KEPT_STEPS // 2 : 2]

    def sent_again(self, again: KeptBatch, rejections: tuple[Rejection, ...]) -> None:
        """Note the parts that the server has rejected this time."""
        for i, batch in enumerate(self._batches):
            if batch.number == again.number:
                self._batches[i] = batch._replace(rejections=rejections)
                self.bytes += self._batches[i].bytes - batch.bytes

    def after(self, found: int) -> list[KeptBatch]:
        """Return the batches above a number, the lowest first."""
        return [batch for batch in self._batches if batch.number > found]

    @property
    def _events_before(self) -> int:
        """Events before the oldest batch that is kept."""
        first = self._batches[0] if self._batches else None
        return self._events if first is None else first.events - first.contents.events

    def lost(self, gap: Gap, *, gone: bool) -> LostEvents | None:
        """Return what the server has lost and is not sent again; None if nothing is.

        That the store was emptied is returned also if all events are sent again.

        Args:
            gone: whether its batches are known to be gone; else the watermark alone may be.
        """
        first = self._batches[0] if self._batches else None
        begin = self._steps[0][1] if self._steps else first.time if first else 0.0
        if not gone:
            return LostEvents("uncertain", 0, self._events, begin, self._clock.wall())
        last = gap.found or 0
        if gap.found is not None and first is not None and last >= first.number - 1:
            return None
        before = self._events_before
        until = self._steps[-1][1] if self._steps else begin
        # A step that is not the number itself: the events since then may be there or not.
        _, since, low = max((s for s in self._steps if s[0] <= last), default=(0, begin, 0))
        known = not last or any(number == last for number, _, _ in self._steps)
        above = [events for number, _, events in self._steps if number > last]
        high = low if known else min(above, default=before)
        if before <= low and gap.found is not None:
            return None
        reason = "emptied" if gap.found is None else "rolled-back"
        return LostEvents(reason, before - high, high - low, since, until)

    def forget(self, lost: LostEvents) -> None:
        """Forget events that were counted as lost: another gap must not count them again."""
        if lost.reason == "uncertain" or not self._events:  # or another producer has begun
            self.clear()
            return
        gone = lost.events + lost.uncertain
        before = self._events_before
        self._steps = [step for step in self._steps if step[2] <= before - gone]
        self._events -= gone
        self._batches = deque(b._replace(events=b.events - gone) for b in self._batches)


# --- Reports -------------------------------------------------------------------------------------
# Reports of writers, and their instance numbers.
#
# `writers:` has the time of each producer's last report, by the server's clock; `reports:` the
# reports; `instances:` a small number for each process, 0, 1, 2 …, which labels its own series. No
# two live processes have the same number. It is assigned again once its process has ended, or
# published nothing for INSTANCE_SECONDS.
#
# A report is kept for a day, but only among the newest KEPT ones unless its producer is alive, so
# programs that start every second do not fill the store.

#: A producer is alive if it has published within so many seconds.
INSTANCE_SECONDS = 180
#: Seconds for which a report is kept.
WRITER_SECONDS = 86400
#: Reports kept, in addition to those of live producers.
KEPT = 1000


def publish(
    link: Link, keys: Keys, producer: str, report: str, *, instance: bool, ended: bool
) -> int | None:
    """Store a report once, with the arguments and the result of Store.publish()."""
    numbers = int(instance), int(ended), INSTANCE_SECONDS, WRITER_SECONDS, KEPT
    reply = PUBLISH.run(
        link,
        [keys.writers, keys.reports, keys.instances, keys.meta],
        [producer, report, *map(str, numbers)],
    )
    number = raised(reply)
    return None if number is None else int(number)
