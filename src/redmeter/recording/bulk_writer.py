"""Bulk writer: stores many events, such as those of a file, on request.

It uses the recorder's buffer and delivery without its thread: memory grows with series and
intervals, every batch counts once, and errors are raised to the caller.
"""

import math
from threading import Lock

from redmeter.recording.buffer import Buffer
from redmeter.recording.pending import (
    GaugeSample,
    PendingCounter,
    PendingGauge,
    PendingHistogram,
)
from redmeter.recording.sending.delivery import Delivery
from redmeter.recording.sending.flusher import FlushFailed
from redmeter.recording.status import RecorderStats
from redmeter.results.recorder import RecorderHealth
from redmeter.store import Store
from redmeter.store.servers.retry import WriteRetry, is_recoverable
from redmeter.stored.exponential_histogram import Distribution


class BulkWriter:
    """Collects counts, values and settings of gauges, and writes them together. Not thread-safe.

    Args:
        store: the store to write to.
        limit: approximate bytes above which fine intervals of old events are rolled up.
    """

    def __init__(self, store: Store, *, limit: float = math.inf) -> None:
        self._store = store
        self._stats = RecorderStats(store.clock.wall())
        spread = len(store.shards) > 1
        number_of = store.shard_number if spread else None
        self._buffer = Buffer(store.kept, self._stats, limit, number_of)
        self._delivery = Delivery(store, self._buffer, self._stats, Lock(), patience=math.inf)

    def add(self, series: str, second: int, amount: int, now: float) -> None:
        """Add to a counter.

        Args:
            series: in its stored spelling.
            second: when, Unix seconds.
            now: Unix seconds, not later than the server's clock.
        """
        self._stats.recorded += amount
        self._buffer.add(PendingCounter, series, second, amount, now)

    def observe(self, series: str, second: int, values: Distribution, now: float) -> None:
        """Add values to a histogram.

        Args:
            series, second, now: see add().
            values: their distribution, at least one; the buffer keeps the object.
        """
        self._stats.recorded += values.count
        self._buffer.add(PendingHistogram, series, second, values, now)

    def histogram_width(self, age: float) -> int:
        """Return the width of the interval in which values of an age are kept, seconds.

        Args:
            age: seconds, negative in the future.

        Returns:
            0 if no precision holds them any more.
        """
        return self._buffer.width(PendingHistogram, age)

    def set(self, series: str, time: float, value: float, now: float) -> None:
        """Set a gauge. The newest of several values of an interval stays.

        Args:
            series, now: see add().
            time: when it had the value, Unix seconds.
            value: a finite number.
        """
        self._stats.recorded += 1
        self._buffer.add(PendingGauge, series, time, GaugeSample(time, value), now)

    def write(self, timeout: float, now: float) -> None:
        """Store everything, with retries.

        Args:
            timeout: how long to retry, seconds; at least one attempt, and two of a sent batch.
            now: see add().

        Raises:
            StoreError: the store is unreachable or refuses; the events stay.
        """
        self._buffer.roll_up(now)
        self._buffer.shrink(now)
        retry = WriteRetry(self._store.clock, timeout, None)
        while True:
            try:
                self._delivery.reset()
                self._delivery.run()
                return
            except FlushFailed as left:
                errors, passing = self._delivery.take_errors(), left.passing
            worst = next((error for error in errors if not is_recoverable(error)), errors[0])
            if worst is not errors[0] or not passing:
                raise worst
            retry.wait(worst, sent=self._delivery.unacknowledged > 0)

    def confirm(self, durability: str, timeout: float) -> None:
        """Have the servers confirm that the written events are durable.

        Args:
            durability: "replica" or "disk".
            timeout: how long to wait for that, seconds.

        Raises:
            Unconfirmed: they are stored, but one server did not confirm it.
        """
        for problem in self._delivery.confirm(durability, timeout, again=False):
            raise problem

    @property
    def unacknowledged(self) -> int:
        """Events that were sent and not acknowledged: their outcome is unknown."""
        return self._delivery.unacknowledged

    def health(self) -> RecorderHealth:
        """Return the statistics."""
        return self._stats.health(producer=self._delivery.writer, instance=None)
