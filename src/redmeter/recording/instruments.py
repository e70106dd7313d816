"""Cells: where events land. A cell is a series' list of events; a handle that counts is its cell.

Counting appends to the list and does nothing else: appending is one atomic step, which the FAQ of
Python names among those that threads need no lock for ("What kinds of global value mutation are
thread-safe?"), and so is replacing or removing a stretch of a list. An interrupted append has
happened or has not, so signal handlers and destructors may count as well.

An event is the time at which it happened, or a tuple that begins with its time. So it is in its own
slice however late someone looks at the list, and precisions are made from it later.

`due` is a time shortly ahead, in Unix seconds. The first event at or after it has a look at what
must not be done for each event: whether a flusher runs, in this process, and whether the list grew
long (see Recorder.attend). Where no flusher runs, it lies in the past.
"""

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from redmeter.format.counter import MAX_COUNT, check_amount
from redmeter.format.gauge import check_value
from redmeter.keys import check_time
from redmeter.recording.pending import GaugeSample, PendingCounter, PendingGauge, PendingSeries

#: Time of an event that happened once; else a tuple (time, amount), or Last of a gauge.
Event = Any

#: `due` where no flusher runs.
NOW = -math.inf

#: Events from which on they are merged on the spot, at first.
LONG = 500

#: Estimate of what an element of a cell's list takes, bytes.
ELEMENT_BYTES = 40

# CPython has a single object for the number one. Should there be another, or True, it takes the
# longer way, which checks it.
_ONE = 1


class InstrumentOwner(Protocol):
    """What looks after a cell."""

    def attend(self, cell: "Instrument") -> None:
        """See to a cell that is due, after an event was put into it."""
        ...

    def trouble(self, kind: str, text: str) -> None:
        """Write down that something went wrong with an event."""
        ...


class Instrument(ABC):
    """The events of one series that nobody has collected yet."""

    __slots__ = ("attendant", "due", "events", "long", "name", "overflow")

    kind: type[PendingSeries]

    #: How many elements of the list an event takes.
    ELEMENTS = 1
    #: Elements from which on, where merging them did not help, recording has to wait for the
    #: flusher: someone records many slices of the past.
    TOO_LONG = 100_000

    def __init__(self, name: str, attendant: InstrumentOwner, *, overflow: bool = False) -> None:
        #: In its stored spelling; a place for the number of the process is instance="".
        self.name = name
        self.attendant = attendant
        #: Whether it stands for the series of a name that has too many.
        self.overflow = overflow
        self.events: list[Event] = []
        self.due = NOW
        #: From how many events on they are merged on the spot.
        self.long = LONG

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def put(self, event: Event, time: float) -> None:
        """Add an event that is more than its time.

        Args:
            time: the present, Unix seconds.
        """
        self.events.append(event)
        if time >= self.due:
            self.attendant.attend(self)

    def shorten(self) -> bool:
        """Replace the events by fewer that mean the same; not while someone else does.

        Returns:
            Whether they should be collected soon, as there are many that nothing makes fewer.
        """
        count = len(self.events)
        # One assignment, so that an exception out of a signal handler finds all of it or nothing.
        self.events[:count] = self.merged(self.events[:count])
        return False

    def clear(self) -> None:
        """Forget all events."""
        self.events.clear()  # in place: an interrupted count() goes on with this very list

    def waiting(self) -> list[Event]:
        """Return all events that nobody has collected yet."""
        return list(self.events)

    @classmethod
    def size_in_memory(cls, events: list[Event]) -> int:
        """Return about how many bytes events take."""
        return len(events) * ELEMENT_BYTES

    @staticmethod
    @abstractmethod
    def merged(events: list[Event]) -> list[Event]:
        """Return events that mean the same, as pairs() takes them."""

    @staticmethod
    @abstractmethod
    def value(event: Event) -> Any:
        """Return what a run takes as the value of a merged event."""

    @classmethod
    def pairs(cls, events: list[Event]) -> Iterable[tuple[float, Any]]:
        """Return time and value of merged events."""
        return [(event[0], cls.value(event)) for event in events]

    @classmethod
    def size(cls, events: list[Event]) -> int:
        """Return how many things happened in these events."""
        return sum(cls.kind.events_of(value) for _, value in cls.pairs(cls.merged(events)))


class Counter(Instrument):
    """Counts one series: the fast way, for what is counted often. Made by Meter.counter().

    The class that is used is made by counter_class(), with a clock built in.
    """

    __slots__ = ("part",)

    kind = PendingCounter

    def __init__(self, name: str, attendant: InstrumentOwner, *, overflow: bool = False) -> None:
        super().__init__(name, attendant, overflow=overflow)
        #: The stored name of a counter of a part of these events; "" for none. It gets a 0 in each
        #: interval in which something is counted here, which tells "none" from "not counted".
        self.part = ""

    @abstractmethod
    def inc(self, amount: int = 1) -> None:
        """Count that it happened, now.

        Args:
            amount: how often, a whole number, not negative.

        Raises:
            InvalidValue, TypeError: not a number that can be counted.
        """

    @staticmethod
    def merged(events: list[Event]) -> list[Event]:
        head = 0  # what was merged before stands in front
        while head < len(events) and type(events[head]) is tuple:
            head += 1
        several, ones = events[:head], events[head:]
        try:
            # They were appended as time went by: sorting takes hardly more than looking at them.
            ones.sort()
        except TypeError:  # tuples among them
            several += [event for event in ones if type(event) is tuple]
            ones = sorted(event for event in ones if type(event) is not tuple)
        sums = _by_second(ones)
        if not several:
            return sums
        seconds: dict[int, int] = {}
        for time, amount in several + sums:
            second = math.floor(time)
            total = seconds.get(second, 0) + amount
            if total > MAX_COUNT:  # whoever stores it shall refuse one of them, not both
                return several + sums
            seconds[second] = total
        return list(seconds.items())

    @staticmethod
    def value(event: Event) -> Any:
        return event[1]


def _by_second(times: list[float]) -> list[tuple[float, int]]:
    """Count sorted times by their second, without looking at each of them."""
    sums: list[tuple[float, int]] = []
    at = 0
    while at < len(times):
        second = math.floor(times[at])
        end = bisect_left(times, second + 1, at)
        sums.append((second, end - at))
        at = end
    return sums


def counter_class(now: Callable[[], float]) -> type[Counter]:
    """Return a class of counters that read a clock.

    Built into the class, the clock costs an eighth less than as an attribute of each counter.
    """

    class ClockedCounter(Counter):
        __slots__ = ()

        def inc(self, amount: int = 1) -> None:
            if amount is _ONE:
                time = now()
                if time < self.due:
                    self.events.append(time)
                else:
                    self.put(time, time)
            else:
                time = now()
                self.put((time, check_amount(amount)), time)

    ClockedCounter.__name__ = ClockedCounter.__qualname__ = "Counter"
    ClockedCounter.inc.__doc__ = Counter.inc.__doc__
    return ClockedCounter


class Gauge(Instrument):
    """Sets one series that goes up and down. Made by Meter.gauge()."""

    __slots__ = ("_now",)

    kind = PendingGauge

    def __init__(self, name: str, attendant: InstrumentOwner, now: Callable[[], float]) -> None:
        super().__init__(name, attendant)
        self._now = now

    def set(self, value: float, *, at: float | None = None) -> None:
        """Set it. Of each interval, the value with the newest time stays.

        Args:
            value: a finite number.
            at: when it had this value, Unix seconds; now, if not given.

        Raises:
            InvalidValue, TypeError: not a finite number, or a time out of range.
        """
        now = self._now()
        number = check_value(value)
        self.put(GaugeSample(now if at is None else check_time(at), number), now)

    @staticmethod
    def merged(events: list[Event]) -> list[Event]:
        seconds: dict[int, GaugeSample] = {}
        for event in events:
            second = math.floor(event.time)
            old = seconds.get(second)
            if old is not None:
                newest = event if event.time >= old.time else old
                event = newest._replace(events=old.events + event.events)
            seconds[second] = event
        return list(seconds.values())

    @staticmethod
    def value(event: Event) -> Any:
        return event
