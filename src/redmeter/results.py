"""The results of queries: frozen dataclasses of plain fields, so that every serializer takes them.

`dataclasses.asdict`, `json.dumps` of its result, FastAPI and pydantic give the same field names.
Times are Unix seconds, and widths of intervals are seconds. None stands for an unknown value or a
gap. Summaries are in redmeter.reading.spread; Loss, Mark and RecorderHealth, which processes that
only record need as well, in redmeter.types.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar, overload

from redmeter.errors import MissingExtra
from redmeter.types import Loss as Loss
from redmeter.types import Mark as Mark
from redmeter.types import RecorderHealth as RecorderHealth

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

    def _rows(self) -> tuple[Ranked, ...]:
        return self.rows


@dataclass(frozen=True, slots=True)
class HourlyStats:
    """Count, extremes, mean and spread of the values observed within an hour of UTC."""

    #: Start of the hour, Unix seconds.
    start: int
    #: The number of values.
    count: int
    #: The lowest value.
    low: float
    #: The highest value.
    high: float
    #: The sum; None where the count times the largest magnitude reaches 1.8e308.
    total: float | None
    #: None where the total is None, unless all values are equal.
    mean: float | None
    #: Sample standard deviation; 0 of a single value, None above about 1e154.
    stddev: float | None


@dataclass(frozen=True, slots=True)
class Statistics:
    """The hourly statistics of a series."""

    #: The name of the histogram.
    name: str
    #: The current hour; None if no value was observed in it.
    this: HourlyStats | None
    #: The last hour before it with a value; None if none is known.
    before: HourlyStats | None


@dataclass(frozen=True, slots=True)
class Message:
    """One log message."""

    #: The name of the logger.
    logger: str
    #: The severity in stored form, e.g. "error".
    severity: str
    #: Unix seconds; None if it is not stored.
    time: float | None
    #: Without secrets; may hold newlines. Clean it before you print messages of others.
    text: str


@dataclass(frozen=True, slots=True)
class Frequency:
    """The frequency of a log pattern."""

    #: The name of the logger.
    logger: str
    #: The severity in stored form, e.g. "error".
    severity: str
    #: The part that the messages have in common; "(other)" stands for those above the limit.
    pattern: str
    #: Messages of the current hour; if `sliding`, of the last 60 minutes.
    count: int
    #: Messages of the hour before; if `sliding`, of the 60 minutes before.
    before: int
    #: When it was first seen, Unix seconds; None if unknown.
    first: float | None
    #: When it was last seen, Unix seconds; None if unknown.
    last: float | None
    #: The last of the messages, or its beginning; "" if unknown.
    sample: str
    #: Whether the hours are sliding hours; else clock hours, UTC.
    sliding: bool = False


ChangeKind = Literal["new", "spiking", "gone"]


@dataclass(frozen=True, slots=True)
class Change(Frequency):
    """A log pattern that is new, comes more often, or stopped."""

    #: How it changed: "new", "spiking" or "gone".
    kind: ChangeKind = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Changes(_Rows[Change]):
    """The log patterns that changed; also their sequence, by severity, then kind, then count."""

    #: The patterns, by severity, then kind, then count.
    changes: tuple[Change, ...] = ()
    #: Pairs of logger and severity with messages.
    sources: int = 0
    #: How many of them were compared: of thousands, those that logged last.
    compared: int = 0
    #: How many of those compared were compared by clock hours, because their counts by five
    #: minutes do not cover two hours yet, or another program writes them; the others were compared
    #: by sliding hours.
    clock_hours: int = 0

    def _rows(self) -> tuple[Change, ...]:
        return self.changes


@dataclass(frozen=True, slots=True)
class LogSource:
    """A logger and a severity of stored messages."""

    #: The name of the logger.
    logger: str
    #: The severity in stored form, e.g. "error".
    severity: str
    #: The time of the last message, Unix seconds.
    last: float


@dataclass(frozen=True, slots=True)
class ForecastPoint:
    """The expected range of an interval that is not over."""

    #: Start of the interval, Unix seconds.
    start: int
    #: Lower end of the expected range; of a counter a whole number, never below 0.
    low: float
    #: The median: the value is as likely above as below.
    mid: float
    #: Upper end of the expected range; of a counter a whole number.
    high: float


@dataclass(frozen=True, slots=True)
class ForecastCheck:
    """A finished interval, and the range that was expected before it began."""

    #: Start of the interval, Unix seconds.
    start: int
    #: Its value.
    value: float
    #: Lower end of the expected range.
    low: float
    #: Median of the expected range.
    mid: float
    #: Upper end of the expected range.
    high: float
    #: Whether the value is outside the expected range; False for the first intervals of a series.
    outside: bool


@dataclass(frozen=True, slots=True)
class Anomaly:
    """A finished interval outside its expected range."""

    #: Start of the interval, Unix seconds.
    start: int
    #: Its value.
    value: float
    #: Lower end of the expected range.
    low: float
    #: Median of the expected range.
    mid: float
    #: Upper end of the expected range.
    high: float
    #: Distance from the mean of the values before it, in standard deviations of these.
    strength: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """The expected range of a series, past and future."""

    #: The name of the series.
    name: str
    #: The kind of the series.
    kind: Literal["counter", "gauge"]
    #: Interval width, seconds.
    precision: int
    #: A description of the method, for people.
    method: str
    #: The part of intervals that should be within the expected range, 0 to 1.
    level: float
    #: The value of the current interval so far, which is not compared; None if there is none.
    running: float | None = None
    #: Finished intervals, oldest first, from the first one with enough before it. Without gaps.
    past: tuple[ForecastCheck, ...] = ()
    #: The next intervals, the current one first.
    ahead: tuple[ForecastPoint, ...] = ()
    #: Why there is no expected range; "" if there is one.
    reason: str = ""
    #: Intervals of `past` outside their range, the strongest first.
    anomalies: tuple[Anomaly, ...] = ()


@dataclass(frozen=True, slots=True)
class ForecastGroup:
    """The forecast of the sum of series that have the same values of some labels."""

    #: The labels that the query split by; None for series without the label.
    labels: Mapping[str, str | None]
    #: The forecast of their sum.
    forecast: Forecast


# --- Results of PromQL queries --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueryBucket:
    """A bucket of a histogram: how many values are above `lower` and up to `upper`."""

    #: Lower edge.
    lower: float
    #: Upper edge.
    upper: float
    #: The number of values, which may be a fraction after PromQL's arithmetic.
    count: float


@dataclass(frozen=True, slots=True)
class QueryHistogram:
    """A histogram as a sample of a query's result."""

    #: The number of values, which may be a fraction after PromQL's arithmetic.
    count: float
    #: The sum of the values.
    sum: float
    #: The buckets that hold values, ascending.
    buckets: tuple[QueryBucket, ...]


@dataclass(frozen=True, slots=True)
class QuerySample:
    """A value of a series at one time."""

    #: Unix seconds.
    time: float
    #: A number, or a native histogram.
    value: float | QueryHistogram


@dataclass(frozen=True, slots=True)
class QuerySeries:
    """A series of a query's result."""

    #: The metric name, if there is one, is the label `__name__`.
    labels: Mapping[str, str]
    #: Oldest first.
    samples: tuple[QuerySample, ...]


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of a PromQL query."""

    #: `vector`: one sample for each series. `matrix`: samples over time. `scalar`: one series
    #: without labels. `string`: `text`.
    kind: Literal["vector", "matrix", "scalar", "string"]
    #: The series; empty for `string`.
    series: tuple[QuerySeries, ...] = ()
    #: The text, for `string`.
    text: str = ""
    #: Problems of the query, in Prometheus' words.
    warnings: tuple[str, ...] = ()
    #: Facts about the result, in Prometheus' words.
    infos: tuple[str, ...] = ()
