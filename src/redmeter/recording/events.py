"""Element lists: what an instrument appends to, and how the events in it are merged. Pure.

An instrument's list grows by one element with each event (a histogram's by two). Before it becomes
long, and once an interval, its events are merged into fewer that mean the same. There is a class
for each kind of list; none has state. Messages and marks have lists of their own: see logging/ and
marks.py.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple

from redmeter.recording.pending import (
    GaugeSample,
    NonFiniteCount,
    PendingCounter,
    PendingGauge,
    PendingHistogram,
    PendingSeries,
)
from redmeter.stored.counter import MAX_COUNT
from redmeter.stored.exponential_histogram import Distribution

#: An element of a list; for counters, the time of an event, or (time, amount).
Element = Any

#: Estimated memory of a list element, bytes.
ELEMENT_BYTES = 40


class EventList:
    """How the events of one kind of instrument are merged."""

    #: What merged events are added to.
    PENDING: ClassVar[type[PendingSeries]]
    #: How many elements of the list an event takes.
    ELEMENTS: ClassVar[int] = 1
    #: If merging leaves more elements than this, recording waits for the flusher: an
    #: application is recording many past intervals.
    TOO_LONG: ClassVar[int] = 100_000

    @staticmethod
    def merged(events: list[Element]) -> list[Element]:
        """Return fewer events that mean the same, in the form that pairs() accepts.

        A RedactedInstrument does it itself, by its rules.
        """
        return events

    @classmethod
    def pairs(cls, events: list[Element]) -> Iterable[tuple[float, Any]]:
        """Return time and value of merged events, the value as PENDING accepts it."""
        return events

    @classmethod
    def size(cls, events: list[Element]) -> int:
        """Return the number of events."""
        return sum(cls.PENDING.events_of(value) for _, value in cls.pairs(cls.merged(events)))

    @classmethod
    def size_in_memory(cls, events: list[Element]) -> int:
        """Return an estimate of the memory that events take, bytes."""
        return len(events) * ELEMENT_BYTES


class CounterEvents(EventList):
    """Events of a counter: the time of something that happened once, or (time, amount)."""

    PENDING = PendingCounter

    @staticmethod
    def merged(events: list[Element]) -> list[Element]:
        head = 0  # events that were merged before are at the front
        while head < len(events) and type(events[head]) is tuple:
            head += 1
        several, ones = events[:head], events[head:]
        try:
            # Appended in order of time: sorting takes hardly longer than reading them.
            ones.sort()
        except TypeError:  # tuples among them
            several += [event for event in ones if type(event) is tuple]
            ones = sorted(event for event in ones if type(event) is not tuple)
        sums = _counts_by_second(ones)
        if not several:
            return sums
        seconds: dict[int, int] = {}
        for time, amount in several + sums:
            second = math.floor(time)
            total = seconds.get(second, 0) + amount
            if total > MAX_COUNT:  # then one of them is rejected later, not both
                return several + sums
            seconds[second] = total
        return list(seconds.items())


def _counts_by_second(times: list[float]) -> list[tuple[float, int]]:
    """Count sorted times by their second, without looking at each of them."""
    sums: list[tuple[float, int]] = []
    at = 0
    while at < len(times):
        second = math.floor(times[at])
        end = bisect_left(times, second + 1, at)
        sums.append((second, end - at))
        at = end
    return sums


class PastSample(GaugeSample):
    """A value that a gauge had at another time; it does not change the current one."""

    __slots__ = ()


class GaugeChange(NamedTuple):
    """A gauge went up, or by a negative amount down."""

    time: float
    amount: float


class GaugeRefresh(NamedTuple):
    """A gauge still has its current value."""

    time: float


class GaugeLevel(NamedTuple):
    """The current value of a gauge, after all events before it in the list. Not an event."""

    value: float
    #: Whether the gauge was ever changed by inc() or dec().
    counted: bool


class GaugeEvents(EventList):
    """Events of a gauge: GaugeSample, PastSample, GaugeChange, GaugeRefresh; and a GaugeLevel.

    inc() and dec() only append, so that threads, signal handlers and destructors may call them
    without a lock. The value that results is computed here, in the order of the list.
    """

    PENDING = PendingGauge

    @staticmethod
    def merged(events: list[Element]) -> list[Element]:
        seconds: dict[int, GaugeSample] = {}
        level: float = 0.0
        known = counted = False
        for event in events:
            kind = type(event)
            if kind is GaugeLevel:
                level, known, counted = event.value, True, counted or event.counted
                continue
            time = event.time
            old = seconds.get(math.floor(time))
            if kind is GaugeChange or kind is GaugeRefresh:
                if kind is GaugeChange:
                    level, known, counted = level + event.amount, True, True
                # Threads may append in another order than that of their times.
                sample = GaugeSample(max(time, old.time) if old else time, level)
            else:
                sample = event
                if kind is GaugeSample:
                    level = event.value
            if old is not None:
                newest = sample if sample.time >= old.time else old
                sample = newest._replace(events=old.events + sample.events)
            seconds[math.floor(time)] = sample
        samples: list[Element] = list(seconds.values())
        return [*samples, GaugeLevel(level, counted)] if known else samples

    @classmethod
    def pairs(cls, events: list[Element]) -> Iterable[tuple[float, Any]]:
        return [(event.time, event) for event in events if type(event) is not GaugeLevel]

    @staticmethod
    def level(events: list[Element]) -> GaugeLevel | None:
        """Return the level at the end of merged events, if there is one."""
        return events[-1] if events and type(events[-1]) is GaugeLevel else None


class HistogramEvents(EventList):
    """Events of a histogram: a time and a value, flat in the list.

    Both are added by one extension, which is as atomic as an append. Tuples would take twice the
    memory, and there would be so many that the garbage collector, which visits each, would take
    more time than everything else.

    Values that are not finite are detected here. An application must not fail because of a measured
    value, so they raise no error: they are counted as dropped, without affecting other values.
    """

    PENDING = PendingHistogram
    ELEMENTS = 2
    TOO_LONG = 40_000

    @staticmethod
    def merged(events: list[Element]) -> list[Element]:
        head = 0  # events that were merged before are at the front
        while head < len(events) and type(events[head + 1]) is not float:
            head += 2
        fresh = _distributions_by_second(events[head::2], events[head + 1 :: 2])
        if not head:
            return [element for pair in fresh for element in pair]
        seconds: dict[float, Distribution] = {}
        not_finite: list[Element] = []
        for second, value in (*HistogramEvents.pairs(events[:head]), *fresh):
            if type(value) is NonFiniteCount:
                not_finite += (second, value)
                continue
            whole = seconds.get(second)
            if whole is None:  # a copy: merged events do not change
                whole = seconds[second] = Distribution()
            whole.merge(value)
        return [element for pair in seconds.items() for element in pair] + not_finite

    @classmethod
    def pairs(cls, events: list[Element]) -> Iterable[tuple[float, Any]]:
        return zip(events[::2], events[1::2], strict=True)

    @classmethod
    def size(cls, events: list[Element]) -> int:
        return sum(1 if type(value) is float else value.count for value in events[1::2])


def _distributions_by_second(
    times: list[float], values: list[float]
) -> Iterator[tuple[int, Distribution | NonFiniteCount]]:
    """Yield the distribution of each second's values."""
    if not times:
        return
    # Appended in order of time: sorting takes hardly longer than reading them.
    ordered = sorted(times)
    second = math.floor(ordered[0])
    if ordered[-1] < second + 1:
        yield from _distribution(second, values)
        return
    if ordered != times:
        values = [value for _, value in sorted(zip(times, values, strict=True), key=itemgetter(0))]
    at = 0
    while at < len(ordered):
        second = math.floor(ordered[at])
        end = bisect_left(ordered, second + 1, at)
        yield from _distribution(second, values[at:end])
        at = end


def _distribution(
    second: int, values: Sequence[float]
) -> Iterator[tuple[int, Distribution | NonFiniteCount]]:
    distribution = Distribution()
    try:
        distribution.add_all(values)
    except ValueError:
        finite = [value for value in values if math.isfinite(value)]
        yield second, NonFiniteCount(len(values) - len(finite))
        distribution.add_all(finite)
    if distribution.count:
        yield second, distribution
