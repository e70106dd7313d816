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
bytes hold. STEPS moments before
that are remembered, with the events until then: how many are lost.
"""

from collections import deque
from datetime import UTC, datetime
from typing import NamedTuple

from redmeter.clock import Clock
from redmeter.recording.buffer import BatchContents
from redmeter.types import Gap, Rejection

#: How long batches are kept, seconds: longer than a failover takes.
KEPT_SECONDS = 60.0
#: Moments that are remembered.
STEPS = 64
#: Memory of a rejection, approximately.
REJECTION_BYTES = 400


class KeptBatch(NamedTuple):
    """An acknowledged batch."""

    number: int
    #: When it was acknowledged, Unix seconds.
    time: float
    #: Events of the producer until then, its own included.
    events: int
    contents: BatchContents
    #: The parts that the server has rejected.
    rejections: tuple[Rejection, ...] = ()

    @property
    def bytes(self) -> int:
        """Its memory, approximately."""
        return self.contents.bytes + REJECTION_BYTES * len(self.rejections)


class LostEvents(NamedTuple):
    """Events that a server has acknowledged and lost, and that are not sent again."""

    #: "rolled-back", "emptied" or "uncertain".
    reason: str
    events: int
    #: Those of which it is unknown whether they are lost.
    uncertain: int
    #: When they were acknowledged, Unix seconds.
    since: float
    until: float

    def text(self) -> str:
        """Return what happened, for people."""
        begin, end = (
            datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
            for at in (self.since, self.until)
        )
        cause = {
            "rolled-back": "the server went back to an older state",
            "emptied": "the store was emptied",
        }.get(self.reason, "the watermark of this process is gone")
        return (
            f"{cause}: of the events acknowledged from {begin} to {end} UTC, {self.events:,} are "
            f"lost and {self.uncertain:,} may be"
        )


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
        self, number: int, contents: BatchContents, rejections: tuple[Rejection, ...] = ()
    ) -> None:
        """Keep a batch that was acknowledged for the first time."""
        now = self._clock.wall()
        self._events += contents.events
        batch = KeptBatch(number, now, self._events, contents, rejections)
        self._batches.append(batch)
        self.bytes += batch.bytes
        while self.bytes > self._limit or self._batches[0].time < now - KEPT_SECONDS:
            gone = self._batches.popleft()
            self.bytes -= gone.bytes
            self._steps.append((gone.number, gone.time, gone.events))
            if not self._batches:
                break
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

    def lost(self, gap: Gap, *, emptied: bool) -> LostEvents | None:
        """Return what the server has lost and is not sent again; None if nothing is.

        Args:
            emptied: whether the store was emptied, if the producer is unknown to it.
        """
        first = self._batches[0] if self._batches else None
        begin = self._steps[0][1] if self._steps else first.time if first else 0.0
        if gap.found is None and not emptied:  # only the watermark is gone
            return LostEvents("uncertain", 0, self._events, begin, self._clock.wall())
        last = gap.found or 0
        if first is not None and last >= first.number - 1:
            return None
        before = self._events if first is None else first.events - first.contents.events
        until = self._steps[-1][1] if self._steps else begin
        # A step that is not the number itself: the events since then may be there or not.
        _, since, low = max((s for s in self._steps if s[0] <= last), default=(0, begin, 0))
        known = not last or any(number == last for number, _, _ in self._steps)
        above = [events for number, _, events in self._steps if number > last]
        high = low if known else min(above, default=before)
        if before <= low:
            return None
        reason = "emptied" if gap.found is None else "rolled-back"
        return LostEvents(reason, before - high, high - low, since, until)

    def forget(self, lost: LostEvents) -> None:
        """Forget events that were counted as lost: another gap must not count them again."""
        if lost.reason == "uncertain":
            self.clear()
            return
        gone = lost.events + lost.uncertain
        before = (
            (self._batches[0].events - self._batches[0].contents.events)
            if (self._batches)
            else self._events
        )
        self._steps = [step for step in self._steps if step[2] <= before - gone]
        self._events -= gone
        self._batches = deque(b._replace(events=b.events - gone) for b in self._batches)
