"""Pending series: recorded events of one series that are not stored yet, by interval. Pure.

There is a class for each kind of series. All intervals of a pending series have the same width;
values that are added to one interval are merged. A thousand series that are counted every second
during an outage of a minute are 60,000 intervals, so PendingCounter keeps its numbers in two sorted
arrays, 16 bytes per interval, where a dict would take five times that.
"""

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from redmeter.names import INSTANCE, canonical, format_name, parse_name
from redmeter.results.recorder import NOT_FINITE, OVERFLOW
from redmeter.stored.counter import MAX_COUNT, counter_operations
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.gauge import gauge_operations
from redmeter.stored.histogram import histogram_operations
from redmeter.stored.keys import HOUR, Kept, Keys
from redmeter.stored.packed_text import MAX_INTERVAL_VALUES
from redmeter.types import Operations

#: The value of an interval.
V = TypeVar("V")


class IntervalFull(ValueError):
    """The value of an interval would exceed the server's limit; nothing was added."""

    #: The reason under which the drop is counted.
    reason = OVERFLOW


class PendingSeries(ABC):
    """Interval start -> merged value."""

    __slots__ = ()

    #: Whether events that no precision keeps any more still count in a grand total.
    HAS_TOTAL: ClassVar[bool]
    #: Whether the sum of several series has a meaning.
    ADDS_UP: ClassVar[bool] = True
    #: Whether it holds texts, which are dropped before numbers are.
    TEXTS: ClassVar[bool] = False
    #: Whether names may have a placeholder for the instance number.
    NUMBERED: ClassVar[bool] = True

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def bytes(self) -> int:
        """Estimated memory."""

    @property
    @abstractmethod
    def events(self) -> int:
        """Number of events."""

    @property
    @abstractmethod
    def first(self) -> int:
        """Start of the oldest interval."""

    @property
    @abstractmethod
    def last(self) -> int:
        """Start of the newest interval."""

    @abstractmethod
    def __iter__(self) -> Iterator[tuple[int, Any]]: ...

    @abstractmethod
    def add(self, start: int, value: Any) -> None:
        """Merge a value into an interval. Raises: IntervalFull."""

    @abstractmethod
    def older(self, time: float) -> int:
        """Return how many intervals start before a time."""

    @abstractmethod
    def cut(self, count: int) -> Self:
        """Remove the oldest intervals, and return them as a pending series."""

    def give_up_texts(self, need: int) -> tuple[int, int]:  # noqa: ARG002
        """Drop texts to free `need` bytes; return the bytes freed and the number of texts."""
        return 0, 0

    def give_up_patterns(self, need: int) -> int:  # noqa: ARG002
        """Merge rare patterns to free `need` bytes; return the bytes freed."""
        return 0

    @staticmethod
    @abstractmethod
    def events_of(value: Any) -> int:
        """Return the number of events in the value of an interval."""

    @staticmethod
    def home(name: str) -> str:
        """Return the text that determines the shard of a series: see shards.py."""
        return name

    @staticmethod
    def retention(kept: Kept) -> Mapping[int, int]:
        """Return the retention of this kind: precision -> samples."""
        return kept.series

    def fields(self, precisions: Collection[int]) -> int:
        """Estimate the fields it writes: intervals at each precision, and the grand total."""
        count, span = len(self), self.last - self.first
        if count == 1:
            return 1 + len(precisions)
        return 1 + sum(min(count, span // precision + 2) for precision in precisions)

    @staticmethod
    @abstractmethod
    def operations(keys: Keys, kept: Kept, series: Mapping[str, Any], width: int) -> Operations:
        """Convert pending series whose intervals have this width into operations."""


class PendingCounter(PendingSeries):
    """Interval start -> count."""

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
        oldest = type(self)()
        oldest._starts, self._starts = self._starts[:count], self._starts[count:]
        oldest._amounts, self._amounts = self._amounts[:count], self._amounts[count:]
        return oldest

    @staticmethod
    def events_of(value: int) -> int:
        return value

    @staticmethod
    def operations(
        keys: Keys, kept: Kept, series: Mapping[str, "PendingCounter"], width: int
    ) -> Operations:
        counts = {name: dict(pending) for name, pending in series.items()}
        return counter_operations(keys, kept.series, counts, width=width)


class PendingByInterval(PendingSeries, Generic[V]):
    """Intervals in a dict, for values that take far more memory than a number."""

    __slots__ = ("_intervals",)

    def __init__(self) -> None:
        self._intervals: dict[int, V] = {}

    def __len__(self) -> int:
        return len(self._intervals)

    @property
    def events(self) -> int:
        return sum(map(self.events_of, self._intervals.values()))

    @property
    def first(self) -> int:
        return min(self._intervals)

    @property
    def last(self) -> int:
        return max(self._intervals)

    def __iter__(self) -> Iterator[tuple[int, V]]:
        return iter(self._intervals.items())

    def older(self, time: float) -> int:
        return sum(start < time for start in self._intervals)

    def cut(self, count: int) -> Self:
        oldest = type(self)()
        for start in sorted(self._intervals)[:count]:
            oldest._intervals[start] = self._intervals.pop(start)
        return oldest


class PendingRecords(PendingByInterval[V]):
    """Intervals of records with texts, which are taken apart: patterns of messages, for instance.

    They count in a grand total, and their names have no placeholder.
    """

    __slots__ = ()

    HAS_TOTAL = True
    NUMBERED = False
    TEXTS = True

    @staticmethod
    @abstractmethod
    def parts_of(value: V) -> int:
        """Return the number of parts of an interval, at least 1."""

    @staticmethod
    @abstractmethod
    def cut_value(value: V, count: int) -> V:
        """Remove some parts of an interval, and return them."""

    def __len__(self) -> int:
        """Return the number of parts of all intervals."""
        return sum(map(self.parts_of, self._intervals.values()))

    def older(self, time: float) -> int:
        older = (value for start, value in self._intervals.items() if start < time)
        return sum(map(self.parts_of, older))

    def cut(self, count: int) -> Self:
        oldest = type(self)()
        for start in sorted(self._intervals):
            value = self._intervals[start]
            if self.parts_of(value) > count:
                if count:
                    oldest._intervals[start] = self.cut_value(value, count)
                break
            oldest._intervals[start] = self._intervals.pop(start)
            count -= self.parts_of(value)
        return oldest


class GaugeSample(NamedTuple):
    """The newest value of a gauge within an interval."""

    #: When it was set, Unix seconds.
    time: float
    value: float
    #: How often the gauge was set within the interval, this time included.
    events: int = 1


class PendingGauge(PendingByInterval[GaugeSample]):
    """Interval start -> newest value."""

    __slots__ = ()

    HAS_TOTAL = False
    ADDS_UP = False

    @property
    def bytes(self) -> int:
        return 250 * len(self._intervals)

    def add(self, start: int, value: GaugeSample) -> None:
        old = self._intervals.get(start)
        if old is not None:
            newest = value if value.time >= old.time else old
            value = newest._replace(events=old.events + value.events)
        self._intervals[start] = value

    @staticmethod
    def events_of(value: GaugeSample) -> int:
        return value.events

    @staticmethod
    def operations(
        keys: Keys, kept: Kept, series: Mapping[str, "PendingGauge"], width: int
    ) -> Operations:
        values = {
            name: {start: (last.time, last.value) for start, last in pending}
            for name, pending in series.items()
        }
        return gauge_operations(keys, kept.series, values, width=width)


# The server's work, in fields of a counter, of which a batch has 500, about 3 ms: an interval at
# one precision (25 us, and 0.8 us for each bucket), and the statistics of an hour (20 us).
_INTERVAL_FIELDS, _BUCKETS_PER_FIELD, _HOUR_FIELDS = 4, 8, 4

# Memory of a distribution, and of each of its buckets, bytes.
_EMPTY_BYTES, _BUCKET_BYTES = 700, 60


class NotFinite(IntervalFull):
    """Values that cannot be stored; nothing was added."""

    reason = NOT_FINITE


class NonFiniteCount(NamedTuple):
    """The number of values that are not finite."""

    count: int  # type: ignore[assignment]  # tuple.count() counts members


class PendingHistogram(PendingByInterval[Distribution]):
    """Interval start -> distribution."""

    __slots__ = ()

    HAS_TOTAL: ClassVar[bool] = False

    @property
    def bytes(self) -> int:
        return _EMPTY_BYTES * len(self._intervals) + _BUCKET_BYTES * self._buckets()

    def add(self, start: int, value: Distribution | NonFiniteCount) -> None:
        """Merge into an interval, which may keep the given distribution object.

        Raises: NotFinite, IntervalFull.
        """
        if isinstance(value, NonFiniteCount):
            raise NotFinite
        old = self._intervals.get(start)
        if old is None:
            self._intervals[start] = value
        elif old.count + value.count > MAX_INTERVAL_VALUES:
            raise IntervalFull
        else:
            old.merge(value)

    @staticmethod
    def events_of(value: Distribution | NonFiniteCount) -> int:
        return value.count

    @staticmethod
    def retention(kept: Kept) -> Mapping[int, int]:
        """Return the retention of histograms; the statistics need this hour and the last one."""
        return kept.histograms if HOUR in kept.histograms else {**kept.histograms, HOUR: 2}

    def fields(self, precisions: Collection[int]) -> int:
        intervals = super().fields(precisions) - 1
        buckets = self._buckets() * intervals // len(self) if self._intervals else 0
        hours = (self.last - self.first) // HOUR + 1
        intervals += 1  # the grand total
        return _INTERVAL_FIELDS * intervals + buckets // _BUCKETS_PER_FIELD + _HOUR_FIELDS * hours

    def _buckets(self) -> int:
        return sum(len(each.positive) + len(each.negative) for each in self._intervals.values())

    @staticmethod
    def operations(
        keys: Keys, kept: Kept, series: Mapping[str, "PendingHistogram"], width: int
    ) -> Operations:
        intervals = {name: dict(pending) for name, pending in series.items()}
        return histogram_operations(keys, kept.histograms, intervals, width=width)


# --- The label `instance` ------------------------------------------------------------------------

# Its value distinguishes an application's processes: a small number that Redis assigns, never a
# process id. Process ids do not come back, so each of them would leave a series behind. Until the
# number is known, the series name has an empty value in its place, `instance=""`: see status.py.

_PLACEHOLDER = f'{INSTANCE}=""'
#: Bytes that the label takes in a name, with a number of five digits.
INSTANCE_BYTES = len(f",{_PLACEHOLDER}") + 5


def per_process_series(series: str) -> str:
    """Return the name of a series with a placeholder for the instance number.

    Raises:
        InvalidName: it already has an `instance` label, or becomes too long.
    """
    return canonical(series, {INSTANCE: ""})


def needs_instance(series: str) -> bool:
    """Return whether a name may have a placeholder for the instance number."""
    return _PLACEHOLDER in series


def with_instance(series: str, number: int | None) -> str:
    """Fill in the instance number if the name has a placeholder for it."""
    if number is None or not needs_instance(series):
        return series
    base, pairs = parse_name(series)
    labels = dict(pairs)
    if labels.get(INSTANCE) == "":
        labels[INSTANCE] = str(number)
    return format_name(base, labels)


def without_instance(series: str) -> str:
    """Remove the label if it has a placeholder."""
    if not needs_instance(series):
        return series
    base, pairs = parse_name(series)
    return format_name(base, {key: value for key, value in pairs if (key, value) != (INSTANCE, "")})
