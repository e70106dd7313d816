"""Shard sender: sends batches to one shard of the store, one at a time.

One producer, one batch at a time: a later one would make an earlier one look applied. A batch that
was sent and not answered stays as it is and comes again under its number, until there is an answer;
one that was never sent goes back into the buffer. So an outage leaves one batch waiting.

Used by one thread at a time: whoever does the task that the shard is of, or has the lock.
"""

from functools import partial

from redmeter.clock import Clock
from redmeter.errors import AccessDenied, StoreError, StoreMoving
from redmeter.keys import Kept
from redmeter.losses import RETENTION
from redmeter.recording.backoff import Backoff
from redmeter.recording.buffer import NOTHING, BatchContents, Buffer
from redmeter.recording.stats import RecorderStats
from redmeter.store.producers import InFlightBatch, Producer
from redmeter.store.scripts import Steps
from redmeter.store.shard import Shard
from redmeter.types import Operations, Outcome

#: A producer that was silent for so long becomes another one, seconds: its watermark may be gone
#: by the time that a lost reply makes one ask for it, and then nobody could tell.
SILENCE = 3600.0


class ShardSender:
    """The way to one shard.

    Args:
        number: of the shard.
        interval: seconds from one flush to the next.
    """

    __slots__ = ("_answered", "_part", "_producer", "backoff", "in_flight", "number", "shard")

    def __init__(self, number: int, shard: Shard, interval: float) -> None:
        self.number = number
        self.shard = shard
        #: When it is tried again after a failure.
        self.backoff = Backoff(interval)
        #: What waits for an answer, or is about to be sent.
        self.in_flight: InFlightBatch | None = None
        self._part = BatchContents(NOTHING)
        self._producer: Producer | None = None
        self._answered = 0.0

    @property
    def producer(self) -> Producer:
        """Who writes; made when it is needed."""
        if self._producer is None:
            self._producer = Producer()
        return self._producer

    @property
    def is_repeated(self) -> bool:
        """Whether what is loaded was sent before."""
        return self.in_flight is not None and self.in_flight.sent

    @property
    def events(self) -> int:
        """How many events are on their way."""
        return self._part.events if self.in_flight else 0

    def is_due(self, *, asked: bool) -> bool:
        """Tell whether it is time to send; where someone asks for it, it nearly always is."""
        return not self.backoff.pause if asked else self.backoff.over

    def load(self, buffer: Buffer, instance: int | None) -> int:
        """Have a batch to send: the one that is waiting for an answer, or else the next.

        Returns:
            About how many fields it writes; 0 where there is nothing to send.
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
        """Send what is loaded. Raises: see Shard.sending()."""
        assert self.in_flight is not None, "it was loaded"
        return self.shard.sending(self.in_flight)

    def broken_off(self) -> None:
        """Note that sending ended somewhere, nobody knows where."""
        if self.in_flight is not None:
            self.in_flight.may_be_applied(self.shard.clock)

    def unload(self, buffer: Buffer, error: StoreError) -> None:
        """After a failure: put back what is not applied, to merge with what comes meanwhile.

        What may have been applied stays, unless the store was moved: then it was not, and never is.
        """
        if self.in_flight is not None and isinstance(error, StoreMoving) and not error.sent:
            self.in_flight.sent = False
        if self.in_flight is not None and not self.in_flight.sent:
            self.in_flight = None
            buffer.put_back(self._part)

    def settle(self, outcome: Outcome, stats: RecorderStats) -> AccessDenied | None:
        """Write down what became of the batch; return what was not allowed of it."""
        part, clock, denied = self._part, self.shard.clock, ""
        self.in_flight, self._answered = None, clock.monotonic()
        stats.batches += 1
        if outcome.uncertain:
            stats.uncertain += part.events
            stats.record_error("uncertain", "what tells whether a batch was stored is gone")
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
