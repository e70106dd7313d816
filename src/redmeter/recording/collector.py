"""Collecting: events move from the cells into the buffer, and lists that grow long are shortened.

Other threads append to a list meanwhile, so what is taken of it is a stretch from its start. A
signal handler that finds the lock held by the thread it interrupted leaves its event in the list.
"""

from _thread import RLock  # as it is on import: see flusher.py

from redmeter.clock import Clock
from redmeter.recording.buffer import Buffer
from redmeter.recording.instruments import LONG, NOW, Counter, Instrument
from redmeter.recording.messages.messages import Messages
from redmeter.recording.registry import Registry
from redmeter.recording.stats import SERIES, RecorderStats

#: How long a cell is left alone after it was attended to, seconds.
ATTENTION = 0.001


class Collector:
    """Moves events from cells into a buffer.

    Args:
        registry: has the cells.
        lock: held while buffer or tally are used, and lists replaced.
    """

    def __init__(
        self, registry: Registry, buffer: Buffer, tally: RecorderStats, lock: RLock, clock: Clock
    ) -> None:
        self._registry = registry
        self._buffer = buffer
        self._tally = tally
        self._lock = lock
        self._clock = clock
        self._busy = False
        self.anchor()

    def anchor(self) -> None:
        """Take the present from the clock: all that was collected is stored. See _now()."""
        self._anchor = (self._clock.wall(), self._clock.monotonic())

    def empty(self) -> bool:
        """Tell whether nothing waits, neither here nor in the buffer."""
        return not self._tally.buffered and not self.waiting()

    def waiting(self) -> bool:
        """Tell whether there is something to collect."""
        return any(
            cell.events or (isinstance(cell, Messages) and cell.taken)
            for cell in self._registry.cells()
        )

    def let_all_be_due(self) -> None:
        """See that the next event of each cell is attended to."""
        for cell in self._registry.cells():
            cell.due = NOW

    def shorten(self, cell: Instrument) -> bool:
        """Make a long list shorter; tell whether it should be collected soon."""
        if len(cell.events) < cell.long or self._busy:
            return False
        with self._lock:
            if self._busy:  # this is a signal handler or a destructor within the lock
                return False
            self._busy = True
            try:
                soon = cell.shorten()
                cell.long = max(LONG, 2 * len(cell.events))  # not again and again for little
            finally:
                self._busy = False
        return soon

    def collect(self) -> None:
        """Move all events from the cells into the buffer."""
        for cell in self._registry.cells():
            if isinstance(cell, Messages):
                self._digest(cell)
        now, due = self._now(), self._clock.wall() + ATTENTION
        with self._lock:
            self._busy = True
            try:
                for cell in self._registry.cells():
                    if cell.taken if isinstance(cell, Messages) else cell.events:
                        self._collect_cell(cell, now)
                        cell.due = min(cell.due, due)  # the clock may have been set back
                        cell.long = LONG
                self._buffer.fade(now)
            finally:
                self._busy = False

    def _digest(self, cell: Messages) -> None:
        """Do what takes longer than a moment without the lock, so that nobody waits for it."""
        with self._lock:
            self._busy = True
            try:
                taken = cell.take()
                cell.long = LONG
            finally:
                self._busy = False
        if not taken:
            return
        made = cell.merged(taken)
        with self._lock:
            if cell.taken is taken:  # else another thread has collected them meanwhile
                cell.taken = made

    def collect_to_keep(self) -> None:
        """Collect while the store is away: what is there has to stay for a while."""
        self.collect()
        self.keep()

    def keep(self) -> None:
        """Give up what there is no room for, until the store is back."""
        with self._lock:
            self._buffer.shrink(self._now())

    def _collect_cell(self, cell: Instrument, now: float) -> None:
        if isinstance(cell, Messages):
            events = cell.merged(cell.taken)
            cell.taken = []
        else:
            count = len(cell.events)
            events = cell.merged(cell.events[:count])
            del cell.events[:count]
        kind, recorded = cell.kind, 0
        # The newest of what several gauges were set to would mean nothing.
        meaningless = cell.overflow and not kind.ADDS_UP
        part = cell.part if isinstance(cell, Counter) and not cell.overflow else ""
        for time_, value in cell.pairs(events):
            recorded += kind.events_of(value)
            if not meaningless:
                self._buffer.add(kind, cell.name, time_, value, now)
            if part:
                self._buffer.add(kind, part, time_, 0, now)
        self._tally.recorded += recorded
        if cell.overflow:
            self._tally.overflowed += recorded
        if meaningless:
            self._tally.drop(SERIES, cell.name, self._buffer.precisions(kind), recorded)

    def _now(self) -> float:
        """Return the present, or a little earlier, also where the clock was just set ahead.

        What is in the buffer is of before; by a clock set ahead it would be too old.
        """
        wall, monotonic = self._anchor
        return min(self._clock.wall(), wall + self._clock.monotonic() - monotonic)
