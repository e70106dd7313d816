"""Curves: what a chart draws, one value for each slice of a window.

Of a counter how often, of a gauge what was measured last, of observed values a percentile. Several
series add up to one curve.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from redmeter.keys import Keys, Retention
from redmeter.reading.gauges import value_of
from redmeter.reading.series import slices_of
from redmeter.reading.spread import Summary
from redmeter.reading.summaries import SummaryGrid
from redmeter.reading.together import Question
from redmeter.reading.windows import Window
from redmeter.store import View
from redmeter.store.link import Command, Reply, is_misplaced, pairs, raised

#: The percentile of a curve of observed values.
QUANTILE = 0.95


@dataclass(slots=True)
class Curve:
    """Values by slices, from the oldest that is known; None for a gap."""

    name: str
    #: counter, gauge or histogram.
    kind: str
    #: Slice width, seconds, and where the first slice starts, Unix seconds.
    precision: int
    start: int
    values: list[float | None] = field(default_factory=list)
    #: Whether the newest slice is still running.
    partial: bool = False
    #: Of several series that were added up: how many were, and how many there are.
    looked_at: int = 1
    of: int = 1


def asked_counts(keys: Keys, names: Sequence[str], precision: int) -> list[Command]:
    """Return the commands whose replies counted() takes."""
    return [("HGETALL", keys.count(precision, name)) for name in names]


def counted(
    name: str, replies: Sequence[Reply], precision: int, start: int, now: float, of: int = 1
) -> Curve:
    """Add counters up to one curve, which begins with the oldest slice that one of them has.

    Args:
        start: of the window.
        of: how many counters there are.
    """
    found: dict[int, int] = {}
    for reply in replies:
        if not is_misplaced(reply):
            for at, count in slices_of(reply).items():
                found[at] = found.get(at, 0) + count
    starts = range(start, int(now) + 1, precision)
    oldest = next((at for at in starts if at in found), None)
    if oldest is None:
        return Curve(name, "counter", precision, start, looked_at=len(replies), of=of)
    values: list[float | None] = [found.get(at, 0) for at in starts if at >= oldest]
    return Curve(
        name, "counter", precision, oldest, values, partial=True, looked_at=len(replies), of=of
    )


def measured(name: str, reply: Reply, precision: int, start: int, now: float) -> Curve:
    """Read the curve of a gauge."""
    texts = {} if is_misplaced(reply) else dict(pairs(raised(reply)))
    starts = range(start, int(now) + 1, precision)
    values = [value_of(texts.get(b"%d" % at), at, precision) for at in starts]
    oldest = next((at for at, value in enumerate(values) if value is not None), None)
    if oldest is None:
        return Curve(name, "gauge", precision, start)
    return Curve(
        name, "gauge", precision, start + oldest * precision, values[oldest:], partial=True
    )


def asked_spreads(keys: Keys, names: Sequence[str], precision: int) -> list[Command]:
    """Return the commands whose replies summed() takes."""
    return [
        ("HGETALL", key(precision, name)) for name in names for key in (keys.hist, keys.moments)
    ]


def summed(
    name: str, replies: Sequence[Reply], window: Window, histograms: Retention, now: float
) -> Summary:
    """Merge the replies to asked_spreads(); what is no histogram is left out."""
    hashes = [
        [raised(reply) for reply in two]
        for two in zip(replies[::2], replies[1::2], strict=True)
        if not any(map(is_misplaced, two))
    ]
    grid = SummaryGrid(histograms, window.fine, now, None, None, window.count)
    return grid.summary(name, hashes)


def percentile(summary: Summary, looked_at: int = 1, of: int = 1) -> Curve:
    """Return how a percentile of observed values went."""
    found = summary.over_time()
    return Curve(
        summary.name,
        "histogram",
        summary.precision,
        found.start,
        [None if one is None else one.quantile(QUANTILE) for one in found.values],
        partial=found.partial,
        looked_at=looked_at,
        of=of,
    )


def curves(
    keys: Keys, names: Sequence[str], window: Window, observed: Window
) -> Question[list[Curve]]:
    """Read the curves of some series, whatever kind each is of; one round trip.

    Args:
        names: in their stored spelling.
        window, observed: of counters and gauges, and of histograms.
    """
    each = 4
    commands: list[Command] = []
    for name in names:
        commands += asked_counts(keys, [name], window.fine)
        commands.append(("HGETALL", keys.gauge(window.fine, name)))
        commands += asked_spreads(keys, [name], observed.fine)
    view, replies = yield commands
    return [
        _curve(name, replies[each * at : each * (at + 1)], window, observed, view)
        for at, name in enumerate(names)
    ]


def _curve(
    name: str, replies: Sequence[Reply], window: Window, observed: Window, view: View
) -> Curve:
    start = window.start(view.now)
    count, gauge, *observations = replies
    measures = measured(name, gauge, window.fine, start, view.now)
    if measures.values:
        return measures
    spreads = percentile(summed(name, observations, observed, view.histograms, view.now))
    if spreads.values:
        return spreads
    return counted(name, [count], window.fine, start, view.now)
