"""Runs: what was recorded of one series and is not stored yet, by slice. Pure.

A class for each kind of series: here Sums for counters and Lasts for gauges, others beside the
cells that they come from. Slices of a run all have the same width; what is added to a slice twice
is merged. A thousand series that are counted every second through a minute of outage are 60,000
slices, so Sums keeps its numbers in two sorted arrays, 16 bytes a slice, where a dict would take
five times that.
"""

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from redmeter.format import counter, gauge, histogram, packed_text
from redmeter.format.counter import MAX_COUNT
from redmeter.format.exponential_histogram import Distribution
from redmeter.keys import HOUR, Kept, Keys
from redmeter.recording.stats import OVERFLOW
from redmeter.types import Operations

#: What a slice of a run holds.
V = TypeVar("V")


class IntervalFull(ValueError):
    """A slice would pass what the server can hold; nothing was added."""

    #: What is written down as the reason of the loss.
    reason = OVERFLOW


class PendingSeries(ABC):
    """Slice start -> what was recorded, merged."""

    __slots__ = ()

    #: Whether there is something to remember of events that no precision holds any more.
    HAS_TOTAL: ClassVar[bool]
    #: Whether several series put together mean something.
    ADDS_UP: ClassVar[bool] = True
    #: Whether it holds texts, which are given up before numbers are.
    TEXTS: ClassVar[bool] = False
    #: Whether names may have a place for the number of the process: see instance.py.
    NUMBERED: ClassVar[bool] = True

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def bytes(self) -> int:
        """An estimate of what it takes."""

    @property
    @abstractmethod
    def events(self) -> int:
        """How many events are in here."""

    @property
    @abstractmethod
    def first(self) -> int:
        """Start of the oldest slice."""

    @property
    @abstractmethod
    def last(self) -> int:
        """Start of the newest slice."""

    @abstractmethod
    def __iter__(self) -> Iterator[tuple[int, Any]]: ...

    @abstractmethod
    def add(self, start: int, value: Any) -> None:
        """Merge into a slice.

        Raises:
            Full: see there.
        """

    @abstractmethod
    def older(self, time: float) -> int:
        """Return how many slices start before a time."""

    @abstractmethod
    def cut(self, count: int) -> Self:
        """Take the oldest slices out, and return them as a run of their own."""

    def give_up_texts(self, need: int) -> tuple[int, int]:  # noqa: ARG002
        """Give up texts until so many bytes are free; return how many are, and how many texts."""
        return 0, 0

    def give_up_patterns(self, need: int) -> int:  # noqa: ARG002
        """Tell fewer patterns apart until so many bytes are free; return how many are."""
        return 0

    @staticmethod
    @abstractmethod
    def events_of(value: Any) -> int:
        """Return how many events a slice's value stands for."""

    @staticmethod
    def home(name: str) -> str:
        """Return the text by which a run has its shard: see shards.py."""
        return name

    @staticmethod
    def retention(kept: Kept) -> Mapping[int, int]:
        """Return what is kept of this kind."""
        return kept.series

    def fields(self, precisions: Collection[int]) -> int:
        """Return about how many fields it writes: slices at each precision, and the grand total."""
        count, span = len(self), self.last - self.first
        if count == 1:
            return 1 + len(precisions)
        return 1 + sum(min(count, span // precision + 2) for precision in precisions)

    @staticmethod
    @abstractmethod
    def operations(keys: Keys, kept: Kept, runs: Mapping[str, Any], width: int) -> Operations:
        """Turn runs of slices of a width, by series, into operations."""


class PendingCounter(PendingSeries):
    """Slice start -> how many."""

    __slots__ = ("_amounts", "_starts")

    HAS_TOTAL = True

    def __init__(self) -> None:
        self._starts = array("q")
        self._amounts = array("q")

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def bytes(self) -> int:
        return 16 * len(self._starts)

    @property
    def events(self) -> int:
        return sum(self._amounts)

    @property
    def first(self) -> int:
        return self._starts[0]

    @property
    def last(self) -> int:
        return self._starts[-1]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._starts, self._amounts, strict=True)

    def add(self, start: int, value: int) -> None:
        starts = self._starts
        at = len(starts)
        if at and start <= starts[-1]:  # else it is newer than all others, as it usually is
            at = at - 1 if start == starts[-1] else bisect_left(starts, start)
            if starts[at] == start:
                if self._amounts[at] + value > MAX_COUNT:
                    raise IntervalFull
                self._amounts[at] += value
                return
        if value > MAX_COUNT:
            raise IntervalFull
        self._amounts.insert(at, value)
        starts.insert(at, start)

    def older(self, time: float) -> int:
        return bisect_left(self._starts, time)

    def cut(self, count: int) -> Self:
        part = type(self)()
        part._starts, self._starts = self._starts[:count], self._starts[count:]
        part._amounts, self._amounts = self._amounts[:count], self._amounts[count:]
        return part

    @staticmethod
    def events_of(value: int) -> int:
        return value

    @staticmethod
    def operations(
        keys: Keys, kept: Kept, runs: Mapping[str, "PendingCounter"], width: int
    ) -> Operations:
        counts = {name: dict(run) for name, run in runs.items()}
        return counter.operations(keys, kept.series, counts, width=width)


class PendingByInterval(PendingSeries, Generic[V]):
    """A run in a dict: for what takes far more than a number."""

    __slots__ = ("_slices",)

    def __init__(self) -> None:
        self._slices: dict[int, V] = {}

    def __len__(self) -> int:
        return len(self._slices)

    @property
    def events(self) -> int:
        return sum(map(self.events_of, self._slices.values()))

    @property
    def first(self) -> int:
        return min(self._slices)

    @property
    def last(self) -> int:
        return max(self._slices)

    def __iter__(self) -> Iterator[tuple[int, V]]:
        return iter(self._slices.items())

    def older(self, time: float) -> int:
        return sum(start < time for start in self._slices)

    def cut(self, count: int) -> Self:
        part = type(self)()
        for start in sorted(self._slices)[:count]:
            part._slices[start] = self._slices.pop(start)
        return part


class GaugeSample(NamedTuple):
    """The newest setting of a gauge within a slice."""

    #: When it was set, Unix seconds.
    time: float
    value: float
    #: How often the gauge was set within the slice, this time included.
    events: int = 1


class PendingGauge(PendingByInterval[GaugeSample]):
    """Slice start -> the newest of what was set."""

    __slots__ = ()

    HAS_TOTAL = False
    ADDS_UP = False

    @property
    def bytes(self) -> int:
        return 250 * len(self._slices)

    def add(self, start: int, value: GaugeSample) -> None:
        old = self._slices.get(start)
        if old is not None:
            newest = value if value.time >= old.time else old
            value = newest._replace(events=old.events + value.events)
        self._slices[start] = value

    @staticmethod
    def events_of(value: GaugeSample) -> int:
        return value.events

    @staticmethod
    def operations(
        keys: Keys, kept: Kept, runs: Mapping[str, "PendingGauge"], width: int
    ) -> Operations:
        values = {
            name: {start: (last.time, last.value) for start, last in run}
            for name, run in runs.items()
        }
        return gauge.operations(keys, kept.series, values, width=width)


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


class PendingHistogram(PendingByInterval[Distribution]):
    """Slice start -> distribution of what was observed."""

    __slots__ = ()

    HAS_TOTAL: ClassVar[bool] = False

    @property
    def bytes(self) -> int:
        return _EMPTY_BYTES * len(self._slices) + _BUCKET_BYTES * self._buckets()

    def add(self, start: int, value: Distribution | NonFiniteCount) -> None:
        """Merge into a slice; a distribution that is given becomes the run's own.

        Raises:
            NotFinite, Full: see there.
        """
        if isinstance(value, NonFiniteCount):
            raise NotFinite
        old = self._slices.get(start)
        if old is None:
            self._slices[start] = value
        elif old.count + value.count > packed_text.MAX_COUNT:
            raise IntervalFull
        else:
            old.merge(value)

    @staticmethod
    def events_of(value: Distribution | NonFiniteCount) -> int:
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
