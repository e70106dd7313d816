"""Curves: the lines of a chart, one value for each interval of a window.

The values are the counts of a counter, the newest samples of a gauge, or a percentile of a
histogram. Several series are merged to one curve.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from redmeter.reading import samples
from redmeter.reading.distributions import SummaryGrid
from redmeter.reading.foreign_keys import there
from redmeter.reading.join import Joined, name_of, of_window
from redmeter.reading.samples import counts_of
from redmeter.reading.selection import LabelSets
from redmeter.reading.windows import Coverage
from redmeter.results.series import Series
from redmeter.results.summaries import Summary
from redmeter.store.query import Query, Read, together
from redmeter.store.servers.replies import Command, Reply, is_misplaced, raised
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.families import INDEX_OF
from redmeter.stored.keys import Keys, Retention
from redmeter.stored.packed_text import parse_moments
from redmeter.types import Window

#: The percentile of the curve of a histogram.
QUANTILE = 0.95


@dataclass(slots=True)
class Curve:
    """Values by intervals, from the oldest that is known; None for a gap."""

    name: str
    #: counter, gauge or histogram.
    kind: str
    #: Interval width, seconds, and where the first interval starts, Unix seconds.
    precision: int
    start: int
    values: list[float | None] = field(default_factory=list)
    #: Whether the newest interval is still running.
    partial: bool = False
    #: How many series were summed, and how many there are.
    examined: int = 1
    of: int = 1


def asked_counts(keys: Keys, names: Sequence[str], precision: int) -> list[Command]:
    """Return the commands whose replies counted() takes."""
    return [("HGETALL", keys.count(precision, name)) for name in names]


def counted(
    name: str,
    replies: Sequence[Reply],
    precision: int,
    start: int,
    now: float,
    of: int = 1,
    *,
    partial: bool = True,
) -> Curve:
    """Sum counters to one curve, which begins with the oldest interval that one of them has.

    Args:
        start, now: the window, Unix seconds.
        of: how many counters there are.
        partial: whether its newest interval is still running.
    """
    values = samples.summed(replies, range(start, int(now) + 1, precision))
    curve = _curve_from("counter", name, precision, start, values, partial=partial)
    curve.examined, curve.of = len(replies), of
    return curve


def measured(name: str, reply: Reply, precision: int, start: int, now: float) -> Curve:
    """Read the curve of a gauge."""
    values = samples.measured(reply, range(start, int(now) + 1, precision))
    return _curve_from("gauge", name, precision, start, values)


def _curve_from(
    kind: str,
    name: str,
    precision: int,
    start: int,
    values: Sequence[float | None],
    *,
    partial: bool = True,
) -> Curve:
    """Return the values from the oldest sample on as a curve."""
    first = samples.first_sample(values)
    if first == len(values):
        return Curve(name, kind, precision, start)
    return Curve(
        name, kind, precision, start + first * precision, list(values[first:]), partial=partial
    )


def asked_spreads(keys: Keys, names: Sequence[str], precision: int) -> list[Command]:
    """Return the commands whose replies spread() and summed() take."""
    return [
        ("HGETALL", key(precision, name)) for name in names for key in (keys.hist, keys.moments)
    ]


def summed(
    name: str, replies: Sequence[Reply], window: Coverage, histograms: Retention, now: float
) -> Summary:
    """Merge the replies to asked_spreads(); other values are left out."""
    return grid(window, histograms, now).summary(name, hashes_of(replies))


def spread(
    name: str,
    replies: Sequence[Reply],
    window: Coverage,
    histograms: Retention,
    now: float,
    of: int = 1,
) -> Curve:
    """Merge the same to the curve of a percentile."""
    series = grid(window, histograms, now).over_time(name, hashes_of(replies))
    return percentile(series, len(replies) // 2, of)


def percentile(found: Series[Distribution | None], examined: int = 1, of: int = 1) -> Curve:
    """Return the curve of a percentile of histograms."""
    return Curve(
        found.name,
        "histogram",
        found.precision,
        found.start,
        [None if one is None else one.quantile(QUANTILE) for one in found.values],
        partial=found.partial,
        examined=examined,
        of=of,
    )


def grid(window: Coverage, histograms: Retention, now: float) -> SummaryGrid:
    """Return the intervals of a window of histograms."""
    if window.until is None:
        return SummaryGrid(histograms, Window(window.fine, last=window.length), now)
    return SummaryGrid(histograms, Window(window.fine, window.start(now), window.until), now)


def hashes_of(replies: Sequence[Reply]) -> list[list[Reply]]:
    """Return the two hashes of each series in the replies to asked_spreads()."""
    return [
        [raised(reply) for reply in two]
        for two in zip(replies[::2], replies[1::2], strict=True)
        if not any(map(is_misplaced, two))
    ]


def curves(
    keys: Keys, names: Sequence[str], window: Coverage, observed: Coverage
) -> Query[list[Curve]]:
    """Read the curves of some series, whatever kind each is of; two round trips.

    A name without labels, of which nothing is stored, stands for its label sets: the busiest of
    them are merged.

    Args:
        names: in their stored spelling.
        window, observed: of counters and gauges, and of histograms.
    """
    limit = max(MAX_MERGED, MAX_COUNTED // max(1, len(names)))
    return (yield from together([_curve(keys, name, window, observed, limit) for name in names]))


def _curve(keys: Keys, name: str, window: Coverage, observed: Coverage, limit: int) -> Query[Curve]:
    """Read the curve of a series, or of the busiest label sets of a name: see curves()."""
    reads: list[Read] = [
        *asked_counts(keys, [name], window.fine),
        ("HGETALL", keys.gauge(window.fine, name)),
        *asked_spreads(keys, [name], observed.fine),
    ]
    if "{" not in name:
        reads += event_reads(keys, "counter", name, window, limit)
        reads += event_reads(keys, "histogram", name, observed, limit)
    view, (count, gauge, buckets, moments, *sets) = yield reads
    now, start = view.now, window.start(view.now)
    curve = measured(name, gauge, window.fine, start, now)
    if not curve.values:
        curve = spread(name, [buckets, moments], observed, view.histograms, now)
    if not curve.values:
        curve = counted(name, [count], window.fine, start, now)
    if curve.values or not sets:
        return curve
    counters = event_counts("counter", sets[:2])
    histograms = event_counts("histogram", sets[2:])
    if counters.by_name:
        view, replies = yield asked_counts(keys, counters.busiest(), window.fine)
        start = window.start(view.now)
        return counted(name, replies, window.fine, start, view.now, counters.total)
    if histograms.by_name:
        view, replies = yield asked_spreads(keys, histograms.busiest(), observed.fine)
        return spread(name, replies, observed, view.histograms, view.now, histograms.total)
    return curve


# --- Events of label sets within a window -------------------------------------------------------

#: Label sets whose counts are read, and those that are merged into one curve.
MAX_COUNTED, MAX_MERGED = 500, 50


#: Kinds of records that count events.
EventKind = Literal["counter", "histogram"]


class EventCounts(NamedTuple):
    """Events of label sets within a window."""

    #: Those that were read, up to a limit.
    by_name: dict[str, int]
    #: How many label sets there are.
    total: int

    def busiest(self, limit: int = MAX_MERGED) -> list[str]:
        """Return the label sets with the most events, the busiest first."""
        return sorted(self.by_name, key=lambda name: (-self.by_name[name], name))[:limit]


def event_reads(
    keys: Keys, kind: EventKind, base: str, window: Coverage, limit: int = MAX_COUNTED
) -> list[Read]:
    """Return the two reads whose replies event_counts() takes.

    Args:
        base: a name without labels.
        window: of counters, or of histograms.
        limit: how many label sets are read.
    """
    label_sets = LabelSets(keys, keys.key(INDEX_OF[kind].name), window.fine, base)
    events = keys.key("count" if kind == "counter" else "moments")
    return [label_sets.join([of_window(events, window)], limit), label_sets.size()]


def event_counts(kind: EventKind, replies: Sequence[Reply]) -> EventCounts:
    """Parse the number of events of each label set: counts, or values of histograms."""
    by_name = {}
    for member, (reply,) in Joined(replies[0], 1, needed=False).readable():
        name = name_of(member)
        if kind == "counter":
            by_name[name] = sum(counts_of(reply).values())
        else:
            by_name[name] = sum(m.count for m in map(parse_moments, reply[1::2]) if m)
    return EventCounts(by_name, there(replies[1], 0))
