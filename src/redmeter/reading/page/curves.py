"""Curves: the lines of a chart, one value for each interval of a window.

The values are the counts of a counter, the newest samples of a gauge, or a percentile of a
histogram. Several series are merged to one curve.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from redmeter.reading import label_sets, samples
from redmeter.reading.distributions import SummaryGrid
from redmeter.reading.spread import Summary
from redmeter.reading.windows import Window
from redmeter.results import Series
from redmeter.store.query import Query, Read, together
from redmeter.store.replies import Command, Reply, is_misplaced, raised
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.keys import Keys, Retention

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
    name: str, replies: Sequence[Reply], window: Window, histograms: Retention, now: float
) -> Summary:
    """Merge the replies to asked_spreads(); other values are left out."""
    return grid(window, histograms, now).summary(name, hashes_of(replies))


def spread(
    name: str,
    replies: Sequence[Reply],
    window: Window,
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


def grid(window: Window, histograms: Retention, now: float) -> SummaryGrid:
    """Return the intervals of a window of histograms."""
    if window.until is not None:
        first, last = window.start(now), window.until - 1
        return SummaryGrid(histograms, window.fine, now, first, last, None)
    return SummaryGrid(histograms, window.fine, now, None, None, window.count)


def hashes_of(replies: Sequence[Reply]) -> list[list[Reply]]:
    """Return the two hashes of each series in the replies to asked_spreads()."""
    return [
        [raised(reply) for reply in two]
        for two in zip(replies[::2], replies[1::2], strict=True)
        if not any(map(is_misplaced, two))
    ]


def curves(
    keys: Keys, names: Sequence[str], window: Window, observed: Window
) -> Query[list[Curve]]:
    """Read the curves of some series, whatever kind each is of; two round trips.

    A name without labels, of which nothing is stored, stands for its label sets: the busiest of
    them are merged.

    Args:
        names: in their stored spelling.
        window, observed: of counters and gauges, and of histograms.
    """
    limit = max(label_sets.MAX_MERGED, label_sets.MAX_COUNTED // max(1, len(names)))
    return (yield from together([_curve(keys, name, window, observed, limit) for name in names]))


def _curve(keys: Keys, name: str, window: Window, observed: Window, limit: int) -> Query[Curve]:
    """Read the curve of a series, or of the busiest label sets of a name: see curves()."""
    reads: list[Read] = [
        *asked_counts(keys, [name], window.fine),
        ("HGETALL", keys.gauge(window.fine, name)),
        *asked_spreads(keys, [name], observed.fine),
    ]
    if "{" not in name:
        reads += label_sets.event_reads(keys, "counter", name, window, limit)
        reads += label_sets.event_reads(keys, "histogram", name, observed, limit)
    view, (count, gauge, buckets, moments, *sets) = yield reads
    now, start = view.now, window.start(view.now)
    curve = measured(name, gauge, window.fine, start, now)
    if not curve.values:
        curve = spread(name, [buckets, moments], observed, view.histograms, now)
    if not curve.values:
        curve = counted(name, [count], window.fine, start, now)
    if curve.values or not sets:
        return curve
    counters = label_sets.event_counts("counter", sets[:2])
    histograms = label_sets.event_counts("histogram", sets[2:])
    if counters.by_name:
        view, replies = yield asked_counts(keys, counters.busiest(), window.fine)
        start = window.start(view.now)
        return counted(name, replies, window.fine, start, view.now, counters.total)
    if histograms.by_name:
        view, replies = yield asked_spreads(keys, histograms.busiest(), observed.fine)
        return spread(name, replies, observed, view.histograms, view.now, histograms.total)
    return curve
