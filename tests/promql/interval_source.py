"""A store of intervals in memory: events, kept by precision as a store keeps them."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from redmeter.promql.errors import Limits
from redmeter.promql.intervals import GaugeSamples, Native, Stored
from redmeter.promql.intervals.grid import (
    CounterTable,
    Fields,
    Grid,
    GridPart,
    accumulate,
    lay,
    make_grid,
)
from redmeter.promql.nodes import Matcher
from redmeter.promql.semantics import SampledSeries, matches
from redmeter.promql.values import LabelSet

#: Events: (time in seconds, how many).
Events = Sequence[tuple[float, int]]


def labels_of(name: str, **labels: str) -> LabelSet:
    """Return a label set."""
    return tuple(sorted({"__name__": name, **labels}.items()))


def kept(events: Events, retention: Mapping[int, int], now: float) -> dict[int, dict[int, float]]:
    """Return the intervals that a store keeps: precision -> start -> count."""
    found: dict[int, dict[int, float]] = {}
    for precision, samples in retention.items():
        oldest = int(now) // precision * precision - (samples - 1) * precision
        counts: Counter[int] = Counter()
        for at, count in events:
            start = int(at) // precision * precision
            if start >= oldest:
                counts[start] += count
        found[precision] = dict(counts)
    return found


def cumulative(
    grid: Grid,
    labels: list[LabelSet],
    rows: Sequence[Mapping[int, Mapping[int, float]]],
    totals: Sequence[float],
    kind: type = np.int64,
) -> CounterTable:
    """Return the cumulative functions of stored intervals."""
    counts, stored = [], []
    for part in grid.parts:
        size = part.count(grid.now // 1000)
        hashes: list[Fields] = [
            (np.array(list(fields), np.int64), np.array(list(fields.values()), kind))
            for fields in (row[part.precision] for row in rows)
        ]
        values, stored_here = lay(part, size, hashes)
        counts.append(values)
        stored.append(stored_here)
    return accumulate(grid, labels, counts, stored, np.array(totals, kind))


class Memory:
    """An IntervalSource.

    Args:
        now: the server's time in seconds.
        retention: precision -> samples.
    """

    def __init__(self, now: float, retention: Mapping[int, int]) -> None:
        self.now, self.retention = now, retention
        self.counters: dict[LabelSet, Events] = {}
        self.gauges: dict[LabelSet, list[tuple[float, float]]] = {}
        self.natives: dict[LabelSet, Mapping[int, Events]] = {}

    def read(self, matchers: Sequence[Matcher], since: int, limits: Limits) -> Stored:
        """Return the data that fulfills all matchers."""
        del limits
        grid = make_grid(self.retention, self.now, since / 1000)
        chosen = {own: one for own, one in self.counters.items() if matches(own, matchers)}
        stored = Stored()
        if chosen:
            rows = [kept(events, self.retention, self.now) for events in chosen.values()]
            totals = [sum(count for _, count in events) for events in chosen.values()]
            stored.counters.append(cumulative(grid, list(chosen), rows, totals))
        for own, buckets in self.natives.items():
            if matches(own, matchers):
                stored.natives.append(self._native(grid, own, buckets))
        gauges = {own: one for own, one in self.gauges.items() if matches(own, matchers)}
        for part in grid.parts if gauges else ():
            series = [self._samples(own, part, one) for own, one in gauges.items()]
            stored.gauges.append(GaugeSamples(part.precision * 1000, part.first * 1000, series))
        return stored

    def _native(self, grid: Grid, own: LabelSet, buckets: Mapping[int, Events]) -> Native:
        indexes = tuple(sorted(buckets))
        every = [event for index in indexes for event in buckets[index]]
        value_sum = [(at, count * 2**index) for index in indexes for at, count in buckets[index]]
        series: list[Events] = [every, value_sum, [], *(buckets[index] for index in indexes)]
        rows = [kept(each, self.retention, self.now) for each in series]
        totals = [sum(count for _, count in each) for each in series]
        table = cumulative(grid, [own] * len(rows), rows, totals, np.float64)
        return Native(own, table.following(table.rows(slice(1))), indexes, ())

    def _samples(
        self, own: LabelSet, part: GridPart, values: list[tuple[float, float]]
    ) -> SampledSeries:
        newest: dict[int, tuple[float, float]] = {}
        for at, value in sorted(values):
            if at >= part.first:
                newest[int(at) // part.precision] = at, value
        times = np.array([at * 1000 for at, _ in newest.values()], np.int64)
        return SampledSeries(own, times, np.array([value for _, value in newest.values()], float))
