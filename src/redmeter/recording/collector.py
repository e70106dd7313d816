"""Collector: moves events from instruments to the buffer, and merges lists that grow long.

Other threads append to a list meanwhile, so the collector takes elements from its start. A signal
handler that interrupts the thread which holds the lock leaves its event in the list.
"""

import time
from _thread import RLock, allocate_lock  # as they are on import: see flusher.py
from collections.abc import Callable

from redmeter.clock import Clock
from redmeter.losses import SERIES
from redmeter.recording.buffer import Buffer
from redmeter.recording.flusher import Replaced, in_background
from redmeter.recording.instruments import LONG, NOW, Counter, Gauge, Instrument, RedactedInstrument
from redmeter.recording.registry import Registry
from redmeter.recording.stats import RecorderStats

#: Minimum time between two calls of attend() for one instrument, seconds.
ATTENTION = 0.001
#: After which a hook is given up until it returns, seconds.
HANGING = 1.0


class Collector:
    """Moves events from instruments to a buffer.

    Args:
        registry: has the instruments.
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
                        instrument._due = min(
                            instrument._due, due
                        )  # the clock may have been set back
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
        series, overflow, pending = (
            instrument._series,
            instrument._overflow,
            instrument._LIST.PENDING,
        )
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


# --- Hooks ---------------------------------------------------------------------------------------

# Hooks: functions of the application that set gauges before each flush.


#: Returns the value of a gauge; None: it has none now.
Callback = Callable[[], float | None]


class _Call:
    """A call of a hook, in progress: it either returns in time or is given up, never both."""

    __slots__ = ("_began", "_in_time", "_over", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._began = time.monotonic()
        # The first to acquire it decides; that is one step.
        self._over = allocate_lock()
        self._in_time = False

    @property
    def hangs(self) -> bool:
        return not self._over.locked() and time.monotonic() - self._began > HANGING

    def give_up(self) -> bool:
        """Give the hook up; return False if it has returned."""
        return self._over.acquire(blocking=False)

    def end(self) -> bool:
        """Return whether the hook, which has returned, was not given up."""
        self._in_time = self._in_time or self._over.acquire(blocking=False)
        return self._in_time


class FlushHooks:
    """The hooks of a recorder; a forked child keeps them.

    They are called in the flushing thread. One that does not return would hold up all events, and
    cannot be ended: other threads, which record or wait for a flush, notice it, and another flusher
    goes on. That hook is not called again until it has returned. The value that it returns then is
    not used: it is old, and would start the thread of a closed recorder again.

    Args:
        record_error: counts an error, by its kind and text.
    """

    def __init__(self, record_error: Callable[[str, str], None]) -> None:
        self._record_error = record_error
        self._before_flush: tuple[Callable[[], None], ...] = ()
        self._callbacks: dict[str, tuple[Gauge, Callback]] = {}
        self.after_fork()

    def after_fork(self) -> None:
        """Forget which hooks were being called, in a forked child."""
        #: The calls in progress, by the hook's name, also those that were given up.
        self._calls: dict[str, _Call] = {}

    def add(self, hook: Callable[[], None]) -> None:
        """Call a hook before each flush."""
        self._before_flush += (hook,)

    def set_callback(self, gauge: Gauge, callback: Callback) -> None:
        """Set a gauge to the value of a callback before each flush."""
        self._callbacks[gauge._series] = gauge, callback

    def hang(self) -> bool:
        """Return whether a hook takes so long that it is given up."""
        return any(call.hangs for call in list(self._calls.values()))

    def give_up(self) -> str:
        """Give up the hook that hangs; return its name, or "" if none does."""
        for call in list(self._calls.values()):
            if call.hangs and call.give_up():
                return call.name
        return ""

    def run(self) -> None:
        """Call all hooks; an exception of one counts as an error.

        Raises:
            Replaced: one was given up, and has returned now.
        """
        for number, hook in enumerate(self._before_flush):
            self._run("before-flush", f"hook {number}", hook)
        for series, (gauge, callback) in list(self._callbacks.items()):
            self._run("gauge-callback", series, callback, gauge)

    def _run(
        self, kind: str, name: str, hook: Callable[[], float | None], gauge: Gauge | None = None
    ) -> None:
        if name in self._calls:
            return
        calls, call = self._calls, _Call(name)  # a child forked during the call has other calls
        try:
            calls[name] = call
            value = hook()
            if call.end() and gauge is not None and value is not None:
                gauge.set(value)
        except BaseException as error:  # raised by the application's code: see redact.py
            if not isinstance(error, Exception) and not in_background():
                raise
            self._record_error(kind, f"before a flush: {type(error).__name__}: {error}")
        finally:
            calls.pop(name, None)
        if not call.end():
            raise Replaced
