"""Series, their groups, and rankings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, overload

from redmeter.errors import MissingExtra

if TYPE_CHECKING:
    import pandas

#: The type of a sample: int for counters; float for gauges, or None for a gap.
V = TypeVar("V", covariant=True)
R = TypeVar("R")


class Sample(NamedTuple, Generic[V]):
    """The value of one interval, as the members of a Series: `for start, value in series`."""

    #: Start of the interval, Unix seconds (UTC).
    start: int
    #: Of [start, start + precision): the number of events, or the newest value of a gauge.
    value: V


@dataclass(frozen=True, slots=True)
class CoveredWindow:
    """The window that a result covers: [since, until), in whole intervals of one width.

    Less than the caller named, if the store no longer keeps all of it: see `requested`.
    """

    #: Interval width, seconds.
    precision: int
    #: Start, Unix seconds, included.
    since: int
    #: End, Unix seconds, excluded.
    until: int
    #: Whether its newest interval is the current one, so that more may come.
    running: bool = False
    #: The start that the caller named, if the precision does not keep that; None otherwise.
    requested: int | None = None
    #: The finest precision that keeps it, seconds; None if there is none, or nothing is missing.
    reaching: int | None = None

    @property
    def starts(self) -> range:
        """The starts of its intervals."""
        return range(self.since, self.until, self.precision)


@dataclass(frozen=True, slots=True)
class Series(Sequence[Sample[V]], Generic[V]):
    """The stored samples of one series at one precision, oldest first, without holes.

    A sequence of Sample; `values` are the bare numbers. Intervals without an event after the oldest
    sample are 0 for a counter, and None for a gauge. Empty if nothing is stored.
    """

    #: The name of the series.
    name: str
    #: Interval width, seconds.
    precision: int
    #: Start of the oldest interval, Unix seconds.
    start: int
    #: The values, one per interval, oldest first.
    values: tuple[V, ...]
    #: Whether the newest interval is the current one, so that its value may grow.
    partial: bool
    #: The window that was read; the samples may begin later. None of a series that no query made.
    window: CoveredWindow | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, index: int) -> Sample[V]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Sample[V]]: ...
    def __getitem__(self, index: int | slice) -> Sample[V] | Sequence[Sample[V]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self.values)))]
        value = self.values[index]
        if index < 0:
            index += len(self.values)
        return Sample(self.start + index * self.precision, value)

    def __iter__(self) -> Iterator[Sample[V]]:
        starts = range(self.start, self.start + len(self.values) * self.precision, self.precision)
        return map(Sample, starts, self.values)

    def to_frame(self) -> "pandas.DataFrame":
        """Return the samples as a pandas DataFrame, indexed by time, in a column named like it.

        The index has the starts of the intervals, in UTC. Gaps of a gauge are NaN. The values of a
        summary over time become columns: count, total, mean, p50 and so on.

        Raises:
            MissingExtra: pandas is not installed.
        """
        try:
            import pandas
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "pandas":
                raise
            raise MissingExtra("Series.to_frame()", "pandas", "pip install pandas") from None
        starts = [self.start + number * self.precision for number in range(len(self.values))]
        index = pandas.to_datetime(starts, unit="s", utc=True).rename("time")
        values: Sequence[Any] = self.values
        shape = next((value for value in values if is_dataclass(value)), None)
        if shape is None:
            kind = float if None in values else None
            return pandas.DataFrame({self.name: values}, index=index, dtype=kind)
        names = [one.name for one in fields(shape) if one.name != "buckets"]
        columns = {name: [getattr(value, name, None) for value in values] for name in names}
        return pandas.DataFrame(columns, index=index, dtype=float)

    @property
    def total(self: "Series[int]") -> int:
        """The sum of all samples of a counter."""
        return sum(value for value in self.values if isinstance(value, int))


@dataclass(frozen=True, slots=True)
class Group(Generic[V]):
    """Series of one name that have the same values of some labels, aggregated."""

    #: The labels that the query split by; None for series without the label.
    labels: Mapping[str, str | None]
    #: The aggregated series.
    series: Series[V]


@dataclass(frozen=True, slots=True)
class TotalGroup:
    """The number of all events ever counted by series that have the same values of some labels."""

    #: The labels that the query split by; None for series without the label.
    labels: Mapping[str, str | None]
    #: The sum of their grand totals.
    total: int


class _Rows(Sequence[R]):
    """A result that is also the sequence of its rows."""

    __slots__ = ()

    def _rows(self) -> tuple[R, ...]:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._rows())

    def __iter__(self) -> Iterator[R]:
        return iter(self._rows())

    @overload
    def __getitem__(self, index: int) -> R: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[R]: ...
    def __getitem__(self, index: int | slice) -> R | Sequence[R]:
        return self._rows()[index]


@dataclass(frozen=True, slots=True)
class Ranked:
    """One row of a ranking."""

    #: A label's value, or a series' name. None stands for "without this label".
    key: str | None
    #: The number of events or values within the window.
    count: int
    #: Its part of everything ranked, 0 to 1: of the counts, or of the totals if these are ranked;
    #: of its own count if failures are ranked.
    share: float
    #: The number that ranks it: the count, the failures, or a mean, total or percentile.
    value: float = 0


@dataclass(frozen=True, slots=True)
class Ranking(_Rows[Ranked]):
    """A ranking; also the sequence of its rows, the highest first."""

    #: The groups, in the order of the ranking.
    rows: tuple[Ranked, ...] = ()
    #: The number of groups that could be ranked.
    groups: int = 0
    #: The number of groups that were compared: percentiles are read of a bounded number, those
    #: whose mean and spread allow the highest.
    examined: int = 0
    #: The number of intervals of the window.
    intervals: int = 0
    #: Whether none of the groups that were not compared can be among the rows.
    complete: bool = True
    #: Groups that were not compared because they have too many series.
    left_out: tuple[str | None, ...] = ()
    #: The window that was ranked.
    window: CoveredWindow | None = None

    def _rows(self) -> tuple[Ranked, ...]:
        return self.rows
