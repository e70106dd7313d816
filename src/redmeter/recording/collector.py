"""Collector: moves events from instruments to the buffer, and merges lists that grow long.

Other threads append to a list meanwhile, so the collector takes elements from its start. A signal
handler that interrupts the thread which holds the lock leaves its event in the list.
"""

from _thread import RLock  # as it is on import: see sending/flusher.py

from redmeter.clock import Clock
from redmeter.recording.buffer import Buffer
from redmeter.recording.instruments import LONG, NOW, Counter, Instrument, RedactedInstrument
from redmeter.recording.registry import Registry
from redmeter.recording.status import RecorderStats
from redmeter.results.recorder import SERIES

#: Minimum time between two calls of attend() for one instrument, seconds.
ATTENTION = 0.001


class Collector:
    """Moves events from instruments to a buffer.

    Args:
        lock: held while buffer or statistics are used, and lists replaced.
    """

    def __init__(
        self, registry: Registry, buffer: Buffer, stats: RecorderStats, lock: RLock, clock: Clock
    ) -> None:
        self._registry = registry
        self._buffer = buffer
        self._stats = stats
        self._lock = lock
        self._clock = clock
        self._busy = False
        self.anchor()

    def anchor(self) -> None:
        """Read the clocks at a moment when everything collected is stored. See _now()."""
        self._anchor = (self._clock.wall(), self._clock.monotonic())

    def empty(self) -> bool:
        """Return whether no event is waiting, neither here nor in the buffer."""
        return not self._stats.buffered and not self.waiting()

    def waiting(self) -> bool:
        """Return whether there are events to collect."""
        return any(instrument._waiting for instrument in self._registry.instruments())

    def let_all_be_due(self) -> None:
        """Make the next event of each instrument call attend()."""
        for instrument in self._registry.instruments():
            instrument._due = NOW

    def shorten(self, instrument: Instrument) -> bool:
        """Merge a long list; return whether it should be collected soon."""
        if len(instrument._events) < instrument._threshold or self._busy:
            return False
        with self._lock:
            if self._busy:  # this is a signal handler or a destructor that interrupted the lock
                return False
            self._busy = True
            try:
                soon = instrument._shorten()
                # Next time at twice the length: merging again and again would gain little.
                instrument._threshold = max(LONG, 2 * len(instrument._events))
            finally:
                self._busy = False
        return soon

    def collect(self) -> None:
        """Move all events from the instruments to the buffer."""
        for instrument in self._registry.instruments():
            if isinstance(instrument, RedactedInstrument):
                self._digest(instrument)
        now, due = self._now(), self._clock.wall() + ATTENTION
        with self._lock:
            self._busy = True
            try:
                for instrument in self._registry.instruments():
                    if instrument._waiting:
                        self._collect_instrument(instrument, now)
                        # The clock may have been set back.
                        instrument._due = min(instrument._due, due)
                        instrument._threshold = LONG
                self._buffer.roll_up(now)
            finally:
                self._busy = False

    def _digest(self, instrument: RedactedInstrument) -> None:
        """Redact texts without the lock: it takes longer than a moment."""
        with self._lock:
            self._busy = True
            try:
                taken = instrument.begin_redacting()
                instrument._threshold = LONG
            finally:
                self._busy = False
        if not taken:
            return
        made = instrument._merge(taken)
        with self._lock:
            if instrument.taken is taken:  # else another thread has collected them meanwhile
                instrument.taken = made

    def collect_to_keep(self) -> None:
        """Collect while the store is unreachable: the events must stay in memory for a while."""
        self.collect()
        self.keep()

    def keep(self) -> None:
        """Roll up the buffer to its limit, until the store is reachable again."""
        with self._lock:
            self._buffer.shrink(self._now())

    def _collect_instrument(self, instrument: Instrument, now: float) -> None:
        merged, recorded = instrument._take(), 0
        series, overflow = instrument._series, instrument._overflow
        pending = instrument._LIST.PENDING
        # The newest value of several gauges would be meaningless.
        meaningless = overflow and not pending.ADDS_UP
        zero = instrument._zero_series if isinstance(instrument, Counter) and not overflow else ""
        for at, value in instrument._LIST.pairs(merged):
            recorded += pending.events_of(value)
            if not meaningless:
                self._buffer.add(pending, series, at, value, now)
            if zero:
                self._buffer.add(pending, zero, at, 0, now)
        self._stats.recorded += recorded
        if overflow:
            self._stats.overflowed += recorded
        if meaningless:
            self._stats.drop(SERIES, series, self._buffer.precisions(pending), recorded)

    def _now(self) -> float:
        """Return the current time, or a little earlier if the clock was just set forward.

        Buffered events were recorded before; by the new time they would be too old.
        """
        wall, monotonic = self._anchor
        return min(self._clock.wall(), wall + self._clock.monotonic() - monotonic)
