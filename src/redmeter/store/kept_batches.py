"""Kept batches: what a shard has acknowledged lately, to be sent again if the server loses it.

A failover, a restart from an older dump or a FLUSHDB takes batches away that were acknowledged. The
next batch finds that: it names the number that the producer last had acknowledged, its floor, and
the script refuses it where the watermark is below (apply.lua). Then the batches above the watermark
are sent again, the lowest first, under their own numbers, and the refused one after them.

    acknowledged  1 2 3 4 5 6 7          the server has 3, the oldest kept batch is 5
    sent again            5 6 7   8      4 is lost, 8 was refused

The producer stays, so the same events have the same number on every server: an old primary that
returns counts nothing twice. If the watermark alone is gone, evicted or deleted, its batches may
still be there: nothing is sent again, and another producer goes on. That the store was emptied is
seen by its birth, see store/config.py.

Bounds: the batches of the last KEPT_SECONDS before the newest one are kept, and as many as `limit`
bytes hold; of synchronous calls, none. STEPS moments before that are remembered, with the events
until then: how many are lost.
"""

from collections import deque
from typing import Any, NamedTuple, Protocol

from redmeter.clock import Clock
from redmeter.types import Gap, LostEvents, Rejection

#: How long batches are kept, seconds: longer than a failover takes.
KEPT_SECONDS = 60.0
#: Moments that are remembered.
STEPS = 64
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
        if len(self._steps) > STEPS:
            # Every second one of the older half: the newest are the likeliest to be needed.
            del self._steps[: STEPS // 2 : 2]

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
