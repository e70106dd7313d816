"""Workloads: the label sets of a histogram that time database statements, or background tasks.

A workload joins one histogram, for example `db_query_seconds{statement}`, with counters about the
same label, for example `db_errors{statement,error}`. statements.py and tasks.py make rows of it.

Two round trips, however many label sets there are. The first reads the moments of the histogram's
label sets and the counters. The second reads the distributions of the rows that are shown, so a
percentile is exact for each of them, and their samples for sparklines. An order by percentile reads
the distributions of the rows that may be the slowest: see ranking.py.

Bound: MAX_TIMED label sets of the histogram and MAX_COUNTED of each counter, in the order of their
names; `examined` and `of` state it where there are more.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from redmeter.format.moments import Sums
from redmeter.format.packed_text import merge_moments, parse_moments
from redmeter.keys import Kept, Keys, slice_start
from redmeter.names import SeriesName
from redmeter.reading.distributions import slices_answered, slices_asked
from redmeter.reading.join import Joined, of_before, of_window, series_in
from redmeter.reading.label_sets import OTHER, LabelSets
from redmeter.reading.ranking import bound
from redmeter.reading.samples import counts_of, number_of, summed
from redmeter.reading.windows import Frame, Span, Window, histogram_window, span_of, whole_window
from redmeter.store import Store
from redmeter.store.query import Query, run
from redmeter.store.replies import Command, Reply, pairs, raised

#: Label sets of the histogram and of each counter that are read at most.
MAX_TIMED, MAX_COUNTED = 500, 1_000
#: Most rows, and rows of which distributions are read.
MAX_ROWS = 50
#: The quantile of a row.
QUANTILE = 0.95


@dataclass(slots=True)
class Timing:
    """The durations of one row of a workload."""

    key: str
    #: Names of its series, as stored.
    series: list[str] = field(default_factory=list)
    sums: Sums = field(default_factory=Sums)
    #: Durations in the compared period; None if that is not kept.
    before: int | None = None
    p95: float | None = None
    #: Durations by interval; None before the first one.
    values: list[float | None] = field(default_factory=list)


@dataclass(slots=True)
class Counted:
    """A counter's label sets: labels and events within the window."""

    rows: list[tuple[SeriesName, int]] = field(default_factory=list)


@dataclass(slots=True)
class Workload:
    """The rows of a workload, and its counters."""

    window: Span
    timings: dict[str, Timing]
    #: By the names of the counters.
    counters: dict[str, Counted]
    #: Means of further histograms, by their names and by row, seconds.
    means: dict[str, dict[str, float]]
    #: Label sets of the histogram, and those that were read.
    of: int
    examined: int
    values_start: int
    values_precision: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """A workload, and which of its rows have their distributions read."""

    #: The histogram, the label that names its rows, and the counters.
    histogram: str
    label: str
    counters: tuple[str, ...]
    #: Returns the keys of the rows that are shown, given all rows and the counters.
    shown: Callable[[Mapping[str, Timing], Mapping[str, Counted]], Sequence[str]]
    #: Further histograms with the same label, of which the means are read.
    means: tuple[str, ...] = ()


def read_workload(
    store: Store, precision: int, wanted: Wanted, frame: Frame | None
) -> tuple[float, Workload]:
    """Read a workload; return also the server's clock, Unix seconds.

    Raises:
        UnknownPrecision: it is not kept.
        StoreError: the server is unreachable or refuses.
    """

    def make(kept: Kept) -> Query[Workload]:
        window = whole_window(kept.series, precision, frame)
        observed = histogram_window(kept.histograms, window)
        return _workload(store.keys, window, observed, wanted)

    view, found = run(store, make)
    return view.now, found


def _workload(keys: Keys, window: Window, observed: Window, wanted: Wanted) -> Query[Workload]:
    moments = keys.key("moments")
    asks = [of_window(moments, observed)]
    if observed.earlier:
        asks.append(of_before(moments, observed))
    timed = LabelSets(keys, keys.hists, observed.fine, wanted.histogram)
    counted = [LabelSets(keys, keys.known, window.fine, name) for name in wanted.counters]
    more = [LabelSets(keys, keys.hists, observed.fine, name) for name in wanted.means]
    counts = [of_window(keys.key("count"), window)]
    number, (first, *rest) = len(counted), asks
    view, replies = yield [
        timed.size(),
        timed.join(asks, MAX_TIMED),
        *(each.join(counts, MAX_COUNTED) for each in counted),
        *(each.join([first], MAX_TIMED) for each in more),
    ]
    size, durations, *others = replies
    joined = Joined(durations, 1 + len(rest), needed=False)
    timings = _timings(joined, wanted.label)
    counters = {
        name: Counted(_counted(Joined(reply, 1, needed=False)))
        for name, reply in zip(wanted.counters, others[:number], strict=True)
    }
    means = {
        name: _means(_timings(Joined(reply, 1, needed=False), wanted.label))
        for name, reply in zip(wanted.means, others[number:], strict=True)
    }
    rows = [timings[key] for key in wanted.shown(timings, counters) if key in timings]
    width = observed.drawn()
    slots = _slots(observed, width, view.now)
    yield from _with_details(keys, rows[:MAX_ROWS], observed, slots, view.now)
    return Workload(
        span_of(window, observed, view.now),
        timings,
        counters,
        means,
        number_of(size),
        len(joined.members),
        slots.start,
        width,
    )


def _timings(joined: Joined, label: str) -> dict[str, Timing]:
    rows: dict[str, Timing] = {}
    for name, (_, labels), replies in series_in([joined]):
        key = dict(labels).get(label, OTHER)
        row = rows.setdefault(key, Timing(key))
        row.series.append(name)
        row.sums.merge(merge_moments(replies[0][1::2]))
        if len(replies) > 1:
            row.before = (row.before or 0) + merge_moments(replies[1][1::2]).count
    return rows


def _means(timings: Mapping[str, Timing]) -> dict[str, float]:
    means = {key: row.sums.exact_mean for key, row in timings.items() if row.sums.count}
    return {key: mean for key, mean in means.items() if mean is not None}


def _counted(joined: Joined) -> list[tuple[SeriesName, int]]:
    return [
        (parsed, count)
        for _, parsed, (reply,) in series_in([joined])
        if (count := sum(counts_of(reply).values()))
    ]


def _slots(observed: Window, width: int, now: float) -> range:
    return range(slice_start(observed.start(now), width), int(observed.moment(now)) + 1, width)


def _with_details(
    keys: Keys, rows: Sequence[Timing], observed: Window, slots: range, now: float
) -> Query[None]:
    """Set the percentiles and the samples of rows."""
    names = [name for row in rows for name in row.series]
    if not names:
        return
    fields = observed.slices(now)
    distributions = slices_asked(keys, names, fields)
    samples: list[Command] = [("HGETALL", keys.moments(slots.step, name)) for name in names]
    _, replies = yield [*distributions, *samples]
    spreads = slices_answered(names, fields, replies[: len(distributions)], needed=False)
    by_name = dict(zip(names, replies[len(distributions) :], strict=True))
    for row in rows:
        parts = [spreads[name] for name in row.series if name in spreads]
        if parts:
            whole = parts[0]
            for part in parts[1:]:
                whole.merge(part)
            row.p95 = whole.quantile(QUANTILE) if whole.count else None
        row.values = summed([by_name[name] for name in row.series], slots, _durations)


def _durations(reply: Reply) -> dict[int, int]:
    """Parse the moments of a histogram: interval start -> number of values."""
    return {
        int(start): sums.count
        for start, text in pairs(raised(reply))
        if start.isdigit() and (sums := parse_moments(text)) is not None
    }


def ordered(timings: Mapping[str, Timing], order: str) -> list[Timing]:
    """Return rows, the highest first; by percentile, those that may be the highest first."""

    def value(row: Timing) -> float:
        if order == "p95":
            return bound(row.sums, QUANTILE) if row.sums.count else 0.0
        return row.sums.count if order == "count" else row.sums.exact_total or 0.0

    return sorted(timings.values(), key=lambda row: (-value(row), row.key))


def total_of(timings: Mapping[str, Timing]) -> float:
    """Return the duration of all rows, seconds."""
    return sum(row.sums.exact_total or 0.0 for row in timings.values())
