"""Shard sender: sends batches to one shard of the store, one at a time.

A producer has one batch in flight: a later one would make an earlier one look applied. A batch that
was sent and not acknowledged does not change and is retried under its number until there is a
reply; one that was never sent goes back to the buffer. So an outage leaves one batch in flight.
What the server has acknowledged and lost is sent again: see producers.py.

Used by one thread at a time: the one that runs the task of its shard, or holds the lock.
"""

from collections import deque
from functools import partial

from redmeter.errors import AccessDenied, StoreError, StoreMoving
from redmeter.recording.buffer import NO_RETENTION, BatchContents, Buffer
from redmeter.recording.status import RecorderStats
from redmeter.results.recorder import RETENTION
from redmeter.store.producers import MAX_IDLE_SECONDS, InFlightBatch, KeptBatch, Producer
from redmeter.store.scripts import Steps
from redmeter.store.servers.retry import Backoff
from redmeter.store.shard import Shard
from redmeter.stored.keys import Kept
from redmeter.types import Gap, Operations, Outcome


class ShardSender:
    """Sends to one shard.

    Args:
        number: the number of the shard.
        interval: seconds from one flush to the next.
        keep: most bytes of acknowledged batches, which are sent again if the server loses them.
    """

    __slots__ = (
        "_again",
        "_batch",
        "_emptied",
        "_queue",
        "_refused",
        "backoff",
        "in_flight",
        "number",
        "producer",
        "shard",
    )

    def __init__(self, number: int, shard: Shard, interval: float, keep: int = 0) -> None:
        self.number = number
        self.shard = shard
        #: When to retry after a failure.
        self.backoff = Backoff(interval)
        #: The batch that waits for a reply, or is about to be sent.
        self.in_flight: InFlightBatch | None = None
        self._batch = BatchContents(NO_RETENTION)
        self.producer = Producer(shard.clock, keep)
        #: The batches to send again, the one that is being sent again, and the one that waits.
        self._queue: deque[KeptBatch] = deque()
        self._again: KeptBatch | None = None
        self._refused: tuple[InFlightBatch, BatchContents] | None = None
        #: Whether the batches to send again were in a store that was emptied.
        self._emptied = False

    @property
    def is_retry(self) -> bool:
        """Whether the loaded batch was sent before."""
        return self.in_flight is not None and self.in_flight.sent

    @property
    def events(self) -> int:
        """Number of events in flight."""
        refused = self._refused[1].events if self._refused else 0
        return refused + (self._batch.events if self.in_flight and not self._again else 0)

    @property
    def busy(self) -> bool:
        """Whether a batch is in flight, or waits until others are sent again."""
        return bool(self.in_flight or self._queue or self._refused)

    def is_due(self, *, requested: bool) -> bool:
        """Return whether it is time to send; if a flush was requested, it nearly always is."""
        return not self.backoff.pause if requested else self.backoff.over

    def load(self, buffer: Buffer, instance: int | None) -> int:
        """Load a batch: the one that waits for a reply, otherwise the next from the buffer.

        Returns:
            The approximate number of fields that it writes; 0 if there is nothing to send.
        """
        if self.in_flight is None and self._queue:
            self._again = again = self._queue.popleft()
            self._begin(again.contents, again.number)
        elif self.in_flight is None and self._refused is not None:
            (self.in_flight, self._batch), self._refused = self._refused, None
        elif self.in_flight is None:
            batch = buffer.take(self.number, instance=instance)
            if batch is None and self.producer.must_ask:
                batch = BatchContents(self.shard.kept)  # empty: only to compare numbers
            if batch is None:
                return 0
            if self.producer.acknowledged and self.producer.idle > MAX_IDLE_SECONDS:
                self.producer.renew()
            self._begin(batch)
        return max(1, self._batch.fields)

    def _begin(self, batch: BatchContents, number: int | None = None) -> None:
        self._batch = batch
        build = partial(self._operations, batch)
        self.in_flight = InFlightBatch(self.producer, build, number)

    def _operations(self, batch: BatchContents, kept: Kept) -> Operations:
        return batch.operations(self.shard.keys, kept)

    def sending(self) -> Steps[Outcome]:
        """Send the loaded batch. Raises: see Shard.sending()."""
        assert self.in_flight is not None, "it was loaded"
        return self.shard.sending(self.in_flight)

    def interrupted(self) -> None:
        """Note that sending was interrupted: the batch may have been applied."""
        if self.in_flight is not None:
            self.in_flight.may_be_applied(self.shard.clock)

    def unload(self, buffer: Buffer, error: StoreError) -> None:
        """After a failure, return the batch to the buffer if it was not applied.

        A batch that may have been applied stays, unless the store was moved: then it never is.
        """
        if self.in_flight is not None and isinstance(error, StoreMoving) and not error.sent:
            self.in_flight.sent = False
        if self.in_flight is not None and not self.in_flight.sent:
            self.in_flight = None
            if self._again is not None:  # under its number: it is no new batch
                self._queue.appendleft(self._again)
                self._again = None
            else:
                buffer.put_back(self._batch)

    def settle(self, outcome: Outcome, stats: RecorderStats) -> AccessDenied | None:
        """Record the outcome of the batch; return the error if an ACL denied a part of it."""
        batch, denied = self._batch, ""
        in_flight, self.in_flight = self.in_flight, None
        again, self._again = self._again, None
        assert in_flight is not None, "it was sent"
        if outcome.gap is not None:
            self._go_back(outcome.gap, (in_flight, batch) if again is None else None, stats)
            return None
        stats.batches += 1
        if outcome.uncertain:
            stats.uncertain += batch.events
            stats.stored -= batch.events if again is not None else 0
            stats.record_error("uncertain", "the watermark of a batch in flight is gone")
            return None
        # The reply to one that was applied may have been lost before.
        if outcome.applied or in_flight.sent:
            self._count_lost(stats)
            stats.repaired += batch.events if again is not None else 0
            stats.emptied += batch.events if again is not None and self._emptied else 0
        elif again is not None:
            self.producer.take_lost(false=True)
        if again is None:
            stats.stored += batch.events
            self.producer.kept.add(in_flight.number, batch.events, batch, outcome.rejections)
        elif outcome.applied:
            stats.reject(self.shard.keys, again.rejections, undo=True)
            self.producer.kept.sent_again(again, outcome.rejections)
        stats.last_flush = self.shard.clock.wall()
        for series, lacking, events in batch.lacking(self.shard.kept) if again is None else ():
            stats.record_loss(RETENTION, series, lacking, events)
        for rejection in outcome.rejections:
            if rejection.reason == "denied":
                denied = f"{rejection.key}: {rejection.detail}"
        stats.reject(self.shard.keys, outcome.rejections)
        stats.crowd(self.shard.keys, outcome.answers)
        return AccessDenied("NOPERM", denied) if denied else None

    def _go_back(
        self, gap: Gap, refused: tuple[InFlightBatch, BatchContents] | None, stats: RecorderStats
    ) -> None:
        """Prepare to send again what the server has lost: see producers.py.

        Args:
            refused: the batch that found the gap, unless that was sent again itself.
        """
        self._refused = refused or self._refused
        producer = self.producer
        self._queue.clear()
        if producer.go_back(gap):
            self._emptied = gap.found is None
            self._queue.extend(producer.kept.after(gap.found or 0))
            return
        self._count_lost(stats)
        if self._refused is not None and not self._refused[0].sent:
            self._refused[0].renew()
            return
        if self._refused is not None:
            stats.uncertain += self._refused[1].events
            stats.record_error("uncertain", "the watermark of a batch in flight is gone")
            self._refused = None
        producer.renew()

    def _count_lost(self, stats: RecorderStats) -> None:
        """Count what the server has lost, now that it has applied a batch after that."""
        lost = self.producer.take_lost()
        if lost is not None:
            stats.take_back(lost, self.shard.kept)
