"""The values that pass between the layers. Imports nothing of ours.

Named tuples where they can be: a dataclass takes four times as long to define, at every import.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar, overload

#: What a sample is: int for counters; float for gauges, or None where there is a gap.
V = TypeVar("V", covariant=True)


class Sample(NamedTuple, Generic[V]):
    """What one slice of a series holds."""

    #: Start of the slice, Unix seconds (UTC).
    start: int
    #: Of [start, start + precision): how often it happened, or what was measured last.
    value: V


@dataclass(frozen=True, slots=True)
class Series(Sequence[Sample[V]], Generic[V]):
    """The kept samples of one series at one precision, oldest first, without holes.

    A sequence of Sample; `values` are the bare numbers. Slices after the oldest sample in which
    nothing happened are zeros of a counter, and None of a gauge. Empty where nothing is kept.
    """

    name: str
    #: Slice width, seconds.
    precision: int
    #: Start of the oldest slice, Unix seconds.
    start: int
    values: tuple[V, ...]
    #: Whether the newest slice is still running, so that its value may grow.
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

    @property
    def total(self: "Series[int]") -> int:
        """The sum of all samples of a counter."""
        return sum(self.values)


@dataclass(frozen=True, slots=True)
class Group(Generic[V]):
    """Series of one name that have the same values of some labels, aggregated."""

    #: The labels that the query split by; None for series without the label.
    labels: Mapping[str, str | None]
    series: Series[V]


@dataclass(frozen=True, slots=True)
class TotalGroup:
    """Everything ever counted by series that have the same values of some labels."""

    #: See Group.
    labels: Mapping[str, str | None]
    total: int


class Ranked(NamedTuple):
    """One row of a ranking."""

    #: A label's value, or a series' name. None stands for "without this label".
    key: str | None
    #: How often it happened within the window asked for.
    count: int  # type: ignore[assignment]  # tuple.count() counts members
    #: Its part of all that was ranked, 0 to 1: of the counts, or of the totals where these are
    #: ranked; of its own count where it is ranked by what failed.
    share: float
    #: What it is ranked by: the count, how many of them failed, or a mean, total or percentile.
    value: float = 0


class Ranking(list[Ranked]):
    """The rows of a ranking, the first of them the highest; a list, which whoever asked may change.

    Attributes, of the ranking as it was answered:
        groups: how many there were to rank.
        examined: how many of them were compared; percentiles are read of a bounded number: of
            those of which mean and spread allow the highest.
        complete: whether none of the others can be among these rows, whatever it is.
        left_out: groups that were not compared since they have too many series.
        slices: how many slices the window has.
    """

    def __init__(
        self,
        rows: Iterable[Ranked] = (),
        *,
        groups: int = 0,
        examined: int = 0,
        slices: int = 0,
    ) -> None:
        super().__init__(rows)
        self.groups = groups
        self.examined = examined
        self.slices = slices
        self.complete = True
        self.left_out: tuple[str | None, ...] = ()


class HourlyStats(NamedTuple):
    """What was observed within an hour of UTC."""

    #: Start of the hour, Unix seconds.
    start: int
    count: int  # type: ignore[assignment]  # tuple.count() counts members
    low: float
    high: float
    #: The sum; None where the count times the largest magnitude reaches 1.8e308.
    total: float | None
    #: None where the total is None, unless all values are equal.
    mean: float | None
    #: Sample standard deviation; 0 of a single value, None above about 1e154.
    stddev: float | None


class Statistics(NamedTuple):
    """What was observed of a name by the hour."""

    name: str
    #: The hour that is running; None where nothing was observed in it.
    this: HourlyStats | None
    #: The last hour before it in which something was; None where none is known.
    before: HourlyStats | None


class Message(NamedTuple):
    """One message, as it was logged."""

    logger: str
    severity: str
    #: When it was, Unix seconds; None where what is stored does not say.
    time: float | None
    #: Without secrets; may hold newlines. Clean it before you print what others wrote.
    text: str


class Frequency(NamedTuple):
    """How often the messages of one pattern come."""

    logger: str
    severity: str
    #: What the messages have in common; "(other)" stands for those beyond the most there may be.
    pattern: str
    #: How many there were in this hour, which is still running, and in the hour before; or, where
    #: `sliding`, in the last 60 minutes and in the 60 minutes before.
    count: int  # type: ignore[assignment]  # tuple.count() counts members
    before: int
    #: When it was seen first and last, Unix seconds; None where nobody knows.
    first: float | None
    last: float | None
    #: The last of them, or its beginning; "" where nobody knows.
    sample: str
    #: Whether the hours are sliding hours; else clock hours, UTC.
    sliding: bool = False

    def known(self, first: float | None, last: float | None, sample: str) -> "Frequency":
        """Return the same with what is known of the pattern."""
        return self._replace(first=first, last=last, sample=sample)


class Change(NamedTuple):
    """Messages of which there is more, or less, than in the hour before."""

    #: `new`, `spiking` or `gone`.
    what: str
    frequency: Frequency


class Changes(list[Change]):
    """What changed; first what is new. A list, and whoever asked may change it.

    Attributes, of what was answered:
        sources: how many loggers and severities there were to compare.
        compared: how many of them were: where there are thousands, those that logged last.
        clock_hours: how many of these were compared by clock hours, since their counts by five
            minutes do not cover two hours yet, or another program writes them; the others were
            compared by sliding hours.
    """

    def __init__(
        self,
        changes: Iterable[Change] = (),
        *,
        sources: int = 0,
        compared: int = 0,
        clock_hours: int = 0,
    ) -> None:
        super().__init__(changes)
        self.sources = sources
        self.compared = compared
        self.clock_hours = clock_hours


class LogSource(NamedTuple):
    """A logger and a severity that messages came with."""

    logger: str
    severity: str
    #: When the last one was, Unix seconds.
    last: float


class Mark(NamedTuple):
    """A moment that explains what is seen elsewhere: a deploy, for instance."""

    #: When it was, Unix seconds.
    time: float
    label: str


class Selector(NamedTuple):
    """The stored series that a query reads: see redmeter.reading.selection."""

    #: A name without labels; if `exact`, the name as it is stored.
    name: str
    #: Only label sets that have these labels.
    labels: Mapping[str, str] = MappingProxyType({})
    #: Labels by whose values the result is split into groups.
    by: tuple[str, ...] = ()
    #: Only the series that is stored under this name.
    exact: bool = False


class Period(NamedTuple):
    """The intervals that a query reads."""

    #: Interval width, seconds.
    precision: int
    #: Intervals that end before or start after are left out, Unix seconds.
    since: float | None = None
    until: float | None = None
    #: No more than so many of the newest.
    slices: int | None = None
    #: Only the newest that so many seconds hold, the current one included.
    last: float | None = None


#: Of a ranking: how many of the newest slices it covers by default, or all that are kept; how many
#: rows it has by default, and at most. The same for Meter, MemoryMeter, the command and the API.
RANKED_SLICES, RANKED_ROWS, MAX_RANKED_ROWS = 60, 10, 1_000


class Top(NamedTuple):
    """Which ranking is asked for: see Meter.top()."""

    name: str
    precision: int
    by: str | None = None
    slices: int | None = None
    limit: int = RANKED_ROWS
    order: str = "count"
    where: Mapping[str, str] | None = None
    failing: Mapping[str, str] | None = None
    since: float | None = None
    until: float | None = None


class ForecastPoint(NamedTuple):
    """What is to be expected of a slice that is not over."""

    #: Start of the slice, Unix seconds.
    start: int
    #: Ends of the band; of a counter whole numbers, never below 0.
    low: float
    #: As likely too high as too low.
    mid: float
    high: float


class ForecastCheck(NamedTuple):
    """A finished slice, and what was to be expected of it before it began."""

    #: Start of the slice, Unix seconds.
    start: int
    value: float
    low: float
    mid: float
    high: float

    @property
    def outside(self) -> bool:
        """Whether it fell out of the band."""
        return not self.low <= self.value <= self.high


class Unmarked(ForecastCheck):
    """One of the first finished intervals of a series, which are never marked."""

    __slots__ = ()

    @property
    def outside(self) -> bool:
        """False: too few intervals are known."""
        return False


class Anomaly(NamedTuple):
    """A finished interval outside its expected range."""

    #: Start of the interval, Unix seconds.
    start: int
    value: float
    low: float
    mid: float
    high: float
    #: Distance from the mean of the values before it, in standard deviations of these.
    strength: float


class Forecast(NamedTuple):
    """What is to be expected of a series, by the samples that are kept."""

    name: str
    #: `counter` or `gauge`.
    kind: str
    #: Slice width, seconds.
    precision: int
    #: How it was made, in words.
    method: str
    #: The part of slices that are to lie within the band, 0 to 1.
    level: float
    #: What the running slice holds so far, which is not judged; None where none runs.
    running: float | None = None
    #: Finished slices, oldest first: those before which enough was known. Gaps are left out.
    past: tuple[ForecastCheck, ...] = ()
    #: The next slices, the running one first.
    ahead: tuple[ForecastPoint, ...] = ()
    #: Why there is no band; "" where there is one.
    reason: str = ""
    #: Intervals of `past` outside their range, the strongest first.
    anomalies: tuple[Anomaly, ...] = ()


class Operation(NamedTuple):
    """One thing that a batch does: see store/lua/operations/CODE.lua."""

    code: str
    keys: tuple[str, ...]
    args: tuple[str, ...]
    #: Returns, for each key, the events that are lost if the server rejects it: (interval start or
    #: field, number of events).
    at_stake: Callable[[], Sequence[tuple[str, int]]]


#: What a batch does, in order.
Operations = tuple[Operation, ...]


class Batch(NamedTuple):
    """The immutable unit of writing. Sent as often as it takes, it is applied once."""

    #: Who writes: 128 random bits, in hexadecimal.
    producer: str
    #: 1, 2, 3 … of this producer.
    number: int
    operations: Operations


class Rejection(NamedTuple):
    """A part of a batch that was not carried out."""

    key: str
    #: aged, future, denied, or the class of error: WRONGTYPE, overflow, not-a-number, ERR.
    reason: str
    #: What the server said, where it said something.
    detail: str
    #: Slice start or field, as sent.
    field: str
    #: The amount that was to be added.
    amount: int


class Outcome(NamedTuple):
    """What became of a batch."""

    #: False where it had been applied before: sent again, counted once.
    applied: bool = True
    #: True where nobody can know: it was sent, and its watermark is gone.
    uncertain: bool = False
    rejections: tuple[Rejection, ...] = ()
    #: What was asked for: (key, answer).
    answers: tuple[tuple[str, str], ...] = ()


class Loss(NamedTuple):
    """Events that one precision of a series lacks."""

    #: A key of losses.LOSS_REASONS (aged, memory, …), or an error code of the server.
    reason: str
    series: str
    #: Interval width, seconds; 0 for the grand total.
    precision: int
    events: int


class RecorderHealth(NamedTuple):
    """The statistics of a recorder since it started or was forked.

    An event is one unit of a counter (`count("a", 3)` records three), one setting of a gauge, one
    observed value, one message, or one mark.
    At any moment recorded == stored + buffered + uncertain + dropped.
    """

    #: The producer that writes: 128 random bits, in hexadecimal.
    producer: str
    #: The instance number of this process: 0, 1, 2 …; None if none is needed.
    instance: int | None
    #: When the recorder started, Unix seconds.
    started: float
    #: Events recorded.
    recorded: int
    #: Events of acknowledged batches; `losses` lists those that single precisions lack.
    stored: int
    #: Events in memory, not stored yet.
    buffered: int
    #: Events whose outcome is unknown: they were sent, and the watermark is gone.
    uncertain: int
    #: Events that are missing everywhere: no precision and no grand total has them.
    dropped: int
    #: Events missing from single precisions, by reason; those that were dropped, too.
    losses: tuple[Loss, ...]
    #: Events that went to a series labeled overflow="true", or to (other), because their name had
    #: too many series, or all names together; without events that are not collected yet.
    overflowed: int
    #: Series in memory, and an estimate of the memory of these and their events, bytes.
    series: int
    buffer_bytes: int
    #: Acknowledged batches.
    batches: int
    #: Retries of batches that may have been applied; a batch retried twice counts as two.
    retried: int
    #: When a batch was last stored, Unix seconds; None if none was.
    last_flush: float | None
    #: Errors in the background: kind -> count; and the text of the last.
    troubles: Mapping[str, int]
    last_trouble: str
    #: The part of the `aged` losses whose time (`at=`) was already too long ago when they were
    #: recorded: precision -> events.
    past: Mapping[int, int] = MappingProxyType({})

    def lost(self) -> dict[str, dict[int, int]]:
        """Return the losses summed over all series: reason -> {precision: events}."""
        losses: dict[str, dict[int, int]] = {}
        for loss in self.losses:
            by_precision = losses.setdefault(loss.reason, {})
            by_precision[loss.precision] = by_precision.get(loss.precision, 0) + loss.events
        return losses

    def as_dict(self) -> dict[str, Any]:
        """Return everything except the names of series, in JSON's types."""
        return {
            "producer": self.producer,
            "instance": self.instance,
            "started": self.started,
            "recorded": self.recorded,
            "stored": self.stored,
            "buffered": self.buffered,
            "uncertain": self.uncertain,
            "dropped": self.dropped,
            "lost": {
                r: {str(p): n for p, n in counts.items()} for r, counts in self.lost().items()
            },
            "overflowed": self.overflowed,
            "series": self.series,
            "buffer_bytes": self.buffer_bytes,
            "batches": self.batches,
            "retried": self.retried,
            "last_flush": self.last_flush,
            "troubles": dict(self.troubles),
            "last_trouble": self.last_trouble,
            "past": {str(precision): events for precision, events in self.past.items()},
        }
