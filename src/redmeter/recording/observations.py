"""Observations: measured values, from the call to the distributions that a batch carries.

Observing appends a time and a value to a list and does nothing else: see instruments.py. Buckets
are computed later, for many values at once: in sorted order, those of one bucket are adjacent.

Values that are no finite numbers come to light then, too. A measuring application shall not fail
by what it measured, so they are no errors: they are counted as lost, and nothing else is lost with
them.
"""

import math
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple

from redmeter.format import histogram
from redmeter.format.exponential_histogram import Distribution, check_value
from redmeter.format.packed_text import MAX_COUNT
from redmeter.keys import HOUR, Kept, Keys
from redmeter.recording.instruments import Event, Instrument
from redmeter.recording.pending import IntervalFull, PendingByInterval
from redmeter.types import Operations

#: Why values are lost that are no finite numbers.
NOT_FINITE = "not-finite"

# What the server does, in fields of a counter, of which a batch has 500, about 3 ms: for a slice at
# one precision (25 us and 0.8 us for each bucket), and for the statistics of an hour (20 us).
_SLICE_FIELDS, _BUCKETS_PER_FIELD, _HOUR_FIELDS = 4, 8, 4

# What a distribution takes in memory, bytes, and each bucket of it.
_EMPTY_BYTES, _BUCKET_BYTES = 700, 60


class NotFinite(IntervalFull):
    """Values that cannot be stored; nothing was added."""

    reason = NOT_FINITE


class NonFiniteCount(NamedTuple):
    """So many values that are no finite numbers."""

    count: int  # type: ignore[assignment]  # tuple.count() counts members


#: What merged events have for a value.
Observed = Distribution | NonFiniteCount


class PendingHistogram(PendingByInterval[Distribution]):
    """Slice start -> distribution of what was observed."""

    __slots__ = ()

    HAS_TOTAL: ClassVar[bool] = False

    @property
    def bytes(self) -> int:
        return _EMPTY_BYTES * len(self._slices) + _BUCKET_BYTES * self._buckets()

    def add(self, start: int, value: Observed) -> None:
        """Merge into a slice; a distribution that is given becomes the run's own.

        Raises:
            NotFinite, Full: see there.
        """
        if isinstance(value, NonFiniteCount):
            raise NotFinite
        old = self._slices.get(start)
        if old is None:
            self._slices[start] = value
        elif old.count + value.count > MAX_COUNT:
            raise IntervalFull
        else:
            old.merge(value)

    @staticmethod
    def events_of(value: Observed) -> int:
        return value.count

    @staticmethod
    def retention(kept: Kept) -> Mapping[int, int]:
        """Return what is kept of histograms, and for the statistics this hour and the last one."""
        return kept.histograms if HOUR in kept.histograms else {**kept.histograms, HOUR: 2}

    def fields(self, precisions: Collection[int]) -> int:
        slices = super().fields(precisions) - 1
        buckets = self._buckets() * slices // len(self) if self._slices else 0
        hours = (self.last - self.first) // HOUR + 1
        return _SLICE_FIELDS * slices + buckets // _BUCKETS_PER_FIELD + _HOUR_FIELDS * hours

    def _buckets(self) -> int:
        return sum(len(each.positive) + len(each.negative) for each in self._slices.values())

    @staticmethod
    def operations(
        keys: Keys, kept: Kept, runs: Mapping[str, "PendingHistogram"], width: int
    ) -> Operations:
        slices = {name: dict(run) for name, run in runs.items()}
        return histogram.operations(keys, kept.histograms, slices, width=width)


class Histogram(Instrument):
    """Observes values of one series: the fast way. Made by Meter.histogram().

    The class that is used is made by histogram_class(), with a clock built in.
    """

    __slots__ = ()

    kind = PendingHistogram

    # A time and a value, flat in the list, added by one extension, which is as atomic as an append.
    # Tuples would be twice the memory, and so many of them that the garbage collector, which looks
    # at each, would take more time than all the rest.
    ELEMENTS = 2
    TOO_LONG = 40_000

    @abstractmethod
    def observe(self, value: float) -> None:
        """Take in a value, measured now.

        Args:
            value: a number. One that is not finite is counted as lost; see Meter.health().

        Raises:
            TypeError: not a number.
        """

    def put(self, event: Event, time: float) -> None:
        self.events.extend(event)
        if time >= self.due:
            self.attendant.attend(self)

    @staticmethod
    def merged(events: list[Event]) -> list[Event]:
        head = 0  # what was merged before stands in front
        while head < len(events) and type(events[head + 1]) is not float:
            head += 2
        fresh = _by_second(events[head::2], events[head + 1 :: 2])
        if not head:
            return [element for pair in fresh for element in pair]
        seconds: dict[float, Distribution] = {}
        unfit: list[Event] = []
        for second, value in (*Histogram.pairs(events[:head]), *fresh):
            if type(value) is NonFiniteCount:
                unfit += (second, value)
                continue
            whole = seconds.get(second)
            if whole is None:  # a copy: what is merged stays as it is
                whole = seconds[second] = Distribution()
            whole.merge(value)
        return [element for pair in seconds.items() for element in pair] + unfit

    @classmethod
    def pairs(cls, events: list[Event]) -> Iterable[tuple[float, Any]]:
        return zip(events[::2], events[1::2], strict=True)

    @staticmethod
    def value(event: Event) -> Any:
        return event[1]

    @classmethod
    def size(cls, events: list[Event]) -> int:
        return sum(1 if type(value) is float else value.count for value in events[1::2])


def _by_second(times: list[float], values: list[float]) -> Iterator[tuple[int, Observed]]:
    """Yield for each second how its values were spread."""
    if not times:
        return
    # They were appended as time went by: sorting takes hardly more than looking at them.
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


def _distribution(second: int, values: Sequence[float]) -> Iterator[tuple[int, Observed]]:
    found = Distribution()
    try:
        found.add_all(values)
    except ValueError:
        finite = [value for value in values if math.isfinite(value)]
        yield second, NonFiniteCount(len(values) - len(finite))
        found.add_all(finite)
    if found.count:
        yield second, found


def histogram_class(now: Callable[[], float]) -> type[Histogram]:
    """Return a class of histograms that read a clock; see cells.counter_class()."""

    class ClockedHistogram(Histogram):
        __slots__ = ()

        def observe(self, value: float) -> None:
            if type(value) is float:
                time = now()
                if time < self.due:
                    events = self.events
                    events += (time, value)
                else:
                    self.put((time, value), time)
            else:
                number, time = check_value(value), now()
                self.put((time, number), time)

    ClockedHistogram.__name__ = ClockedHistogram.__qualname__ = "Histogram"
    ClockedHistogram.observe.__doc__ = Histogram.observe.__doc__
    return ClockedHistogram
