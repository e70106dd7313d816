"""Curves: the lines of a chart, one value for each interval of a window.

The values are the counts of a counter, the newest samples of a gauge, or a percentile of a
histogram. Several series are merged to one curve.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from redmeter.format.exponential_histogram import Distribution
from redmeter.keys import Keys, Retention
from redmeter.reading import label_sets, samples
from redmeter.reading.distributions import SummaryGrid
from redmeter.reading.spread import Summary
from redmeter.reading.windows import Window
from redmeter.results import Series
from redmeter.store import View
from redmeter.store.query import Query, Read
from redmeter.store.replies import Command, Reply, is_misplaced, raised

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
    each = 4
    most = max(label_sets.MAX_MERGED, label_sets.MAX_COUNTED // max(1, len(names)))
    bare = [name for name in names if "{" not in name]
    reads: list[Read] = []
    for name in names:
        reads += asked_counts(keys, [name], window.fine)
        reads.append(("HGETALL", keys.gauge(window.fine, name)))
        reads += asked_spreads(keys, [name], observed.fine)
    for name in bare:
        reads += label_sets.event_reads(keys, "counters", name, window, most)
        reads += label_sets.event_reads(keys, "histograms", name, observed, most)
    view, replies = yield reads
    curves_of = {
        name: _curve(name, replies[each * at : each * (at + 1)], window, observed, view)
        for at, name in enumerate(names)
    }
    rest = replies[each * len(names) :]
    parts: dict[str, _Added] = {}
    for at, name in enumerate(bare):
        four = rest[each * at : each * (at + 1)]
        counters, spreads = (
            label_sets.event_counts("counters", four[:2]),
            label_sets.event_counts("histograms", four[2:]),
        )
        if not curves_of[name].values and (counters.by_name or spreads.by_name):
            parts[name] = _Added(keys, counters, spreads, window, observed)
    if parts:
        view, replies = yield [command for part in parts.values() for command in part.commands]
        answers = iter(replies)
        for name, part in parts.items():
            curves_of[name] = part.curve(name, [next(answers) for _ in part.commands], view)
    return [curves_of[name] for name in names]


class _Added:
    """The merged curve of the label sets of a name: its commands, and the result of the replies.

    Args:
        counters, spreads: its label sets, as counters and as histograms.
    """

    def __init__(
        self,
        keys: Keys,
        counters: label_sets.Counts,
        spreads: label_sets.Counts,
        window: Window,
        observed: Window,
    ) -> None:
        self._counted = bool(counters.by_name)
        self._sets = counters if self._counted else spreads
        self._window = window if self._counted else observed
        commands_of = asked_counts if self._counted else asked_spreads
        self.commands = commands_of(keys, self._sets.busiest(), self._window.fine)

    def curve(self, name: str, replies: Sequence[Reply], view: View) -> Curve:
        """Merge the replies to the commands."""
        window, of = self._window, self._sets.total
        if self._counted:
            return counted(name, replies, window.fine, window.start(view.now), view.now, of)
        return spread(name, replies, window, view.histograms, view.now, of)


def _curve(
    name: str, replies: Sequence[Reply], window: Window, observed: Window, view: View
) -> Curve:
    start = window.start(view.now)
    count, gauge, *observations = replies
    measures = measured(name, gauge, window.fine, start, view.now)
    if measures.values:
        return measures
    spreads = spread(name, observations, observed, view.histograms, view.now)
    if spreads.values:
        return spreads
    return counted(name, [count], window.fine, start, view.now)
