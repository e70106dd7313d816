"""Shard sender: sends batches to one shard of the store, one at a time.

A producer has one batch in flight: a later one would make an earlier one look applied. A batch that
was sent and not acknowledged does not change and is retried under its number until there is a
reply; one that was never sent goes back to the buffer. So an outage leaves one batch in flight.

Used by one thread at a time: the one that runs the task of its shard, or holds the lock.
"""

from functools import partial

from redmeter.clock import Clock
from redmeter.errors import AccessDenied, StoreError, StoreMoving
from redmeter.keys import Kept
from redmeter.losses import RETENTION
from redmeter.recording.buffer import NO_RETENTION, BatchContents, Buffer
from redmeter.recording.stats import RecorderStats
from redmeter.store.producers import InFlightBatch, Producer
from redmeter.store.retry import Backoff
from redmeter.store.scripts import Steps
from redmeter.store.shard import Shard
from redmeter.types import Operations, Outcome

#: A producer that was idle for longer is renewed, seconds: its watermark may be gone when a lost
#: reply makes a retry necessary, and then the outcome would be unknown.
SILENCE = 3600.0


class ShardSender:
    """Sends to one shard.

    Args:
        number: the number of the shard.
        interval: seconds from one flush to the next.
    """

    __slots__ = ("_answered", "_part", "_producer", "backoff", "in_flight", "number", "shard")

    def __init__(self, number: int, shard: Shard, interval: float) -> None:
        self.number = number
        self.shard = shard
        #: When to retry after a failure.
        self.backoff = Backoff(interval)
        #: The batch that waits for a reply, or is about to be sent.
        self.in_flight: InFlightBatch | None = None
        self._part = BatchContents(NO_RETENTION)
        self._producer: Producer | None = None
        self._answered = 0.0

    @property
    def producer(self) -> Producer:
        """The producer; created on first use."""
        if self._producer is None:
            self._producer = Producer()
        return self._producer

    @property
    def is_retry(self) -> bool:
        """Whether the loaded batch was sent before."""
        return self.in_flight is not None and self.in_flight.sent

    @property
    def events(self) -> int:
        """Number of events in flight."""
        return self._part.events if self.in_flight else 0

    def is_due(self, *, asked: bool) -> bool:
        """Return whether it is time to send; if a flush was requested, it nearly always is."""
        return not self.backoff.pause if asked else self.backoff.over

    def load(self, buffer: Buffer, instance: int | None) -> int:
        """Load a batch: the one that waits for a reply, otherwise the next from the buffer.

        Returns:
            The approximate number of fields that it writes; 0 if there is nothing to send.
        """
        if self.in_flight is None:
            part = buffer.take(self.number, instance=instance)
            if part is None:
                return 0
            self._renew_where_silent(self.shard.clock)
            self._part = part
            self.in_flight = InFlightBatch(self.producer, partial(self._operations, part))
        return self._part.fields

    def _renew_where_silent(self, clock: Clock) -> None:
        producer = self.producer
        if producer.acknowledged and clock.monotonic() - self._answered > SILENCE:
            producer.renew()

    def _operations(self, part: BatchContents, kept: Kept) -> Operations:
        return part.operations(self.shard.keys, kept)

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
            buffer.put_back(self._part)

    def settle(self, outcome: Outcome, stats: RecorderStats) -> AccessDenied | None:
        """Record the outcome of the batch; return the error if an ACL denied a part of it."""
        part, clock, denied = self._part, self.shard.clock, ""
        self.in_flight, self._answered = None, clock.monotonic()
        stats.batches += 1
        if outcome.uncertain:
            stats.uncertain += part.events
            stats.record_error("uncertain", "the watermark of a batch in flight is gone")
            return None
        stats.stored += part.events
        stats.last_flush = clock.wall()
        for series, lacking, events in part.lacking(self.shard.kept):
            stats.record_loss(RETENTION, series, lacking, events)
        for rejection in outcome.rejections:
            if rejection.reason == "denied":
                denied = f"{rejection.key}: {rejection.detail}"
        stats.reject(self.shard.keys, outcome.rejections)
        return AccessDenied("NOPERM", denied) if denied else None
