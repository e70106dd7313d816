"""Instruments: Counter, Gauge and Histogram, the objects that an application holds.

Recording appends to a list and does nothing else. Appending is one atomic step, which Python's FAQ
lists among those that threads need no lock for ("What kinds of global value mutation are
thread-safe?"), and so is replacing or removing a stretch of a list. An interrupted append has
happened or has not, so signal handlers and destructors may record as well.

An event carries the time at which it happened, so it belongs to its own interval no matter how late
the list is read; precisions are computed later. How events are merged: see events.py.

`_due` is a time shortly ahead, in Unix seconds. The first event at or after it does the work that
would be too slow for each event: check that a flusher runs in this process, and that the list has
not grown long (see Recorder.attend). It is in the past if no flusher runs.

Attributes with an underscore belong to the recorder and to nobody else.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, NoReturn, Protocol, Self, TypeVar

from redmeter.recording.events import (
    CounterEvents,
    Element,
    EventList,
    GaugeChange,
    GaugeEvents,
    GaugeLevel,
    GaugeRefresh,
    HistogramEvents,
    PastSample,
)
from redmeter.recording.pending import GaugeSample, without_instance
from redmeter.recording.scopes import InProgress, Timer
from redmeter.stored.counter import check_amount
from redmeter.stored.keys import check_time
from redmeter.stored.moments import to_float

#: `_due` if no flusher runs.
NOW = -math.inf

#: Initial length at which a list is merged on the spot.
LONG = 500

# CPython has a single object for the number one. Another 1, or True, takes the slower path, which
# checks it.
_ONE = 1


class InstrumentOwner(Protocol):
    """The recorder, as its instruments see it."""

    def attend(self, instrument: "Instrument") -> None:
        """Look after an instrument that is due, after an event was appended to its list."""

    def process_gauge(self, series: str) -> "Gauge":
        """Return the gauge of this process's part of a series."""

    def record_error(self, kind: str, text: str) -> None:
        """Count that something went wrong with an event."""

    def drop_value(self, series: str) -> None:
        """Count a value of a gauge as dropped that is not finite."""


class Instrument(ABC):
    """A series and its events that have not been collected yet."""

    __slots__ = ("_due", "_events", "_overflow", "_owner", "_series", "_threshold", "name")

    _LIST: ClassVar[type[EventList]]

    def __init__(self, series: str, owner: InstrumentOwner, *, overflow: bool = False) -> None:
        #: The name of the series, labels included, in its stored spelling.
        self.name = without_instance(series)
        #: The same with a placeholder for the instance number, if the series has one.
        self._series = series
        self._owner = owner
        #: Whether it collects the series beyond a limit.
        self._overflow = overflow
        self._events: list[Element] = []
        self._due = NOW
        #: The length at which the list is merged on the spot.
        self._threshold = LONG

    @classmethod
    def _clocked(cls, now: Callable[[], float], monotonic: Callable[[], float]) -> type[Self]:  # noqa: ARG003
        """Return the class of these instruments that reads a clock; this one if it reads none."""
        return cls

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} cannot be pickled: make it in each process, of its own Meter"
        )

    def _put(self, event: Element, time: float) -> None:
        """Append an event that is more than its time.

        Args:
            time: the current time, Unix seconds.
        """
        self._events.append(event)
        if time >= self._due:
            self._owner.attend(self)

    def _merge(self, events: list[Element]) -> list[Element]:
        """Return fewer events that mean the same."""
        return self._LIST.merged(events)

    def _shorten(self) -> bool:
        """Merge the events in the list; not while another thread does.

        Returns:
            Whether they should be collected soon, because they are many even so.
        """
        count = len(self._events)
        # One assignment: an exception raised by a signal handler finds all of it or nothing.
        self._events[:count] = self._merge(self._events[:count])
        return False

    def _take(self) -> list[Element]:
        """Remove all events and return them merged."""
        count = len(self._events)
        merged = self._merge(self._events[:count])
        del self._events[:count]
        return merged

    def _clear(self) -> None:
        """Discard all events, in a forked child."""
        self._events.clear()  # in place: an interrupted inc() continues with this very list

    @property
    def _waiting(self) -> bool:
        """Whether there are events to collect."""
        return bool(self._events)

    def _snapshot(self) -> list[Element]:
        """Return all events that have not been collected yet."""
        return list(self._events)


class RedactedInstrument(Instrument):
    """An instrument whose events are redacted before they are collected.

    Redacting takes longer than a moment, so the background thread does it without the lock: see
    Collector.collect(). `_merge()` redacts; it returns redacted events as they are.
    """

    __slots__ = ("taken",)

    def __init__(self, series: str, owner: InstrumentOwner) -> None:
        super().__init__(series, owner)
        #: Events that the background thread has removed from the list to redact them; replaced as a
        #: whole.
        self.taken: list[Element] = []

    def begin_redacting(self) -> list[Element]:
        """Move all events out of the list, so that slow work does not touch it, and return them."""
        count = len(self._events)
        self.taken = self.taken + self._events[:count]
        del self._events[:count]
        return self.taken

    def _take(self) -> list[Element]:
        merged = self._merge(self.taken)
        self.taken = []
        return merged

    def _clear(self) -> None:
        super()._clear()
        self.taken = []

    @property
    def _waiting(self) -> bool:
        return bool(self._events or self.taken)

    def _snapshot(self) -> list[Element]:
        return [*self.taken, *self._events]


class Counter(Instrument):
    """Counts the events of one series: the fastest way to count. Made by Meter.counter().

    The class that is used is made by counter_class(), with a clock built in.
    """

    __slots__ = ("_zero_series",)

    _LIST = CounterEvents

    def __init__(self, series: str, owner: InstrumentOwner, *, overflow: bool = False) -> None:
        super().__init__(series, owner, overflow=overflow)
        #: Another counter, which gets a 0 in each interval in which this one counts something: a
        #: reader can distinguish "none" from "not recorded". "" for none.
        self._zero_series = ""

    @classmethod
    def _clocked(cls, now: Callable[[], float], monotonic: Callable[[], float]) -> type["Counter"]:  # noqa: ARG003
        return counter_class(now)

    @abstractmethod
    def inc(self, amount: int = 1) -> None:
        """Count an event that happens now.

        Args:
            amount: how many events, a whole number of any type, not negative.

        Raises:
            InvalidValue, TypeError: the amount cannot be counted.
        """


def counter_class(now: Callable[[], float]) -> type[Counter]:
    """Return a class of counters that read a clock.

    A clock that is built into the class costs an eighth less than an attribute of each counter.
    """

    class ClockedCounter(Counter):
        __slots__ = ()

        def inc(self, amount: int = 1) -> None:
            if amount is _ONE:
                time = now()
                if time < self._due:
                    self._events.append(time)
                else:
                    self._put(time, time)
            else:
                time = now()
                self._put((time, check_amount(amount)), time)

    return _public(ClockedCounter, Counter, "inc")


class Gauge(Instrument):
    """A value that goes up and down. Made by Meter.gauge().

    `set()` sets the value for the application as a whole; of several processes, the last one wins.
    `inc()`, `dec()` and `track_in_progress()` change the part of this process: a series with the
    label `instance`, which begins at 0 and is reported with each flush while it is not 0. Readings
    of the name add the parts of all processes and the value that was set, if any.
    """

    __slots__ = ("_now", "_part")

    _LIST = GaugeEvents

    def __init__(
        self,
        series: str,
        owner: InstrumentOwner,
        now: Callable[[], float],
        *,
        overflow: bool = False,
    ) -> None:
        super().__init__(series, owner, overflow=overflow)
        self._now = now
        self._part: Gauge | None = None

    def set(self, value: float, *, at: float | None = None) -> None:
        """Set the value. Each interval keeps the value with the newest time.

        Args:
            value: an int, float, Decimal, Fraction or number of numpy. One that is not finite is
                counted as dropped.
            at: when it had this value, Unix seconds; now, if not given.

        Raises:
            InvalidValue, TypeError: not a number, or a time out of range.
        """
        now = self._now()
        number = to_float(value, "a gauge's set()")
        if not math.isfinite(number):
            self._drop()
            return
        sample = GaugeSample(now, number) if at is None else PastSample(check_time(at), number)
        self._put(sample, now)

    def inc(self, amount: float = 1) -> None:
        """Raise the part of this process.

        Args:
            amount: a number. One that is not finite is counted as dropped.

        Raises:
            TypeError: not a number.
        """
        self._change_by(to_float(amount, "a gauge's inc()"))

    def dec(self, amount: float = 1) -> None:
        """Lower the part of this process.

        Args, Raises: as in inc().
        """
        self._change_by(-to_float(amount, "a gauge's dec()"))

    def track_in_progress(self) -> InProgress:
        """Return a context manager and decorator that counts running blocks and calls.

        with requests_in_progress.track_in_progress():    # and `async with`
            ...

        @jobs_in_progress.track_in_progress()             # functions, coroutines, generators
        def run_job(): ...
        """
        return InProgress(self)

    def _change_by(self, amount: float) -> None:
        if math.isfinite(amount):
            self._change(amount)
        else:
            self._drop()

    def _drop(self) -> None:
        self._owner.drop_value(self._series)

    def _change(self, amount: float) -> None:
        part = self._part
        if part is None:
            part = self._part = self._owner.process_gauge(self._series)
        now = part._now()
        part._put(GaugeChange(now, amount), now)

    # Below, only of the part of a process

    def _take(self) -> list[Element]:
        count = len(self._events)
        merged = self._merge(self._events[:count])
        level = GaugeEvents.level(merged)
        self._events[:count] = [] if level is None else [level]  # one assignment: see _shorten()
        return merged

    @property
    def _waiting(self) -> bool:
        events = self._events
        return len(events) > 1 or (bool(events) and type(events[0]) is not GaugeLevel)

    def _refresh(self) -> None:
        """Report the current value again, if it was counted and is not 0."""
        events = self._events
        level = events[0] if len(events) == 1 else None
        if type(level) is GaugeLevel and level.counted and level.value:
            events.append(GaugeRefresh(self._now()))


class ProcessGauge(Gauge):
    """The part of a gauge that belongs to this process."""

    __slots__ = ()

    def _merge(self, events: list[Element]) -> list[Element]:
        # inc() after set() continues from that value, also if it has been collected already.
        return GaugeEvents.merged([GaugeLevel(0.0, counted=False), *events] if events else events)

    def _change(self, amount: float) -> None:
        now = self._now()
        self._put(GaugeChange(now, amount), now)


class Histogram(Instrument):
    """Observes values of one series: the fastest way to measure. Made by Meter.histogram().

    The class that is used is made by histogram_class(), with clocks built in.
    """

    __slots__ = ()

    _LIST = HistogramEvents

    @classmethod
    def _clocked(
        cls, now: Callable[[], float], monotonic: Callable[[], float]
    ) -> type["Histogram"]:
        return histogram_class(now, monotonic)

    @abstractmethod
    def observe(self, value: float) -> None:
        """Record a value that is measured now.

        Args:
            value: a number. One that is not finite is counted as dropped: see
            Meter.recorder_health().

        Raises:
            TypeError: not a number.
        """

    @abstractmethod
    def time(self) -> Timer:
        """Return a context manager and decorator that observes durations, in seconds.

        with checkout_seconds.time():    # and `async with`
            ...

        @checkout_seconds.time()         # functions, coroutines, generators
        def check_out(): ...
        """

    def _put(self, event: Element, time: float) -> None:
        self._events.extend(event)
        if time >= self._due:
            self._owner.attend(self)


def histogram_class(now: Callable[[], float], monotonic: Callable[[], float]) -> type[Histogram]:
    """Return a class of histograms that read clocks; see counter_class()."""

    class ClockedHistogram(Histogram):
        __slots__ = ()

        def observe(self, value: float) -> None:
            if type(value) is float:
                time = now()
                if time < self._due:
                    events = self._events
                    events += (time, value)
                else:
                    self._put((time, value), time)
            else:
                number, time = to_float(value, "observe()"), now()
                self._put((time, number), time)

        def time(self) -> Timer:
            return Timer(self, monotonic)

    return _public(ClockedHistogram, Histogram, "observe", "time")


C = TypeVar("C", bound=Instrument)


def _public(made: type[C], base: type, *methods: str) -> type[C]:
    """Give a class name and docstrings of its base class, for help() and repr()."""
    made.__name__ = made.__qualname__ = base.__name__
    for method in methods:
        getattr(made, method).__doc__ = getattr(base, method).__doc__
    return made
