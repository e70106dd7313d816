"""Cumulative functions of counters whose intervals have several widths.

A store keeps the counts of intervals: the newest ones narrow, older ones wider. The edges of all
intervals that are used are one grid, the same for all series of a store. At each edge the
cumulative count is known exactly: the grand total less everything later. Between two edges it is a
straight line. With S_P the counts of intervals of precision P, T the grand total and `now` the
server's time:

    C(now) = T
    C(b)   = T - sum of S_P of all intervals that start at or after b

where P is the finest precision that still holds b. T is no less than the sum of the intervals that
are kept: other programs write intervals without a grand total. From one precision to the next
coarser one, the sum continues at an edge that both have. So the current interval is counted once,
and events that arrive between the reads of two hashes only move the newest interval.

Before the oldest edge the count is 0 if it is 0 at that edge; else it is unknown.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redmeter.promql.semantics import SampledSeries
from redmeter.promql.values import Bools, Floats, LabelSet, Times

#: Starts of intervals in seconds, and their amounts.
Fields = tuple[Times, NDArray[Any]]

#: How long events are on their way, at most, as readers assume; milliseconds.
FLUSHED = 2_000

#: By how much the clock of a client may be ahead, milliseconds: it asks for the current value.
AHEAD = 60_000
#: The first number that int64 cannot hold.
INT64_END = 2.0**63
#: Numbers of events are int64, sums of measured values float64.
Amounts = NDArray[Any]


@dataclass(frozen=True)
class GridPart:
    """Intervals of one precision within a grid.

    Attributes:
        precision: their width in seconds.
        first: start of the oldest one.
        end: where the part continues that is newer; None: it ends at the current interval.
        edges: how many edges of the grid are starts of its intervals; those newer than these
            belong to a finer part.
    """

    precision: int
    first: int
    end: int | None
    edges: int

    def count(self, now: int) -> int:
        """Return how many intervals there are at a time in seconds."""
        end = (now // self.precision + 1) * self.precision if self.end is None else self.end
        return (end - self.first) // self.precision


@dataclass(frozen=True)
class Grid:
    """The edges of intervals, from the oldest that is needed to the current time.

    Attributes:
        edges: milliseconds, ascending; the last one is the current time.
        parts: the finest precision first.
    """

    edges: Times
    parts: tuple[GridPart, ...]

    @property
    def now(self) -> int:
        """The server's time in milliseconds."""
        return int(self.edges[-1])

    @property
    def horizon(self) -> int:
        """Until when all events have arrived, in milliseconds."""
        return self.now - FLUSHED

    def places(self, times: Times) -> tuple[Times, Floats]:
        """Return the edge before each time, and the share of its interval up to the time.

        Times outside of the grid are moved to its ends.
        """
        times = np.clip(times, self.edges[0], self.edges[-1])
        last = len(self.edges) - 2
        left = np.minimum(np.searchsorted(self.edges, times, side="right") - 1, last)
        start, end = self.edges[left], self.edges[left + 1]
        return left, (times - start) / (end - start)

    def wider_than(self, window: int, since: int) -> tuple[int, int] | None:
        """Return until when intervals are wider than a window, and their greatest width.

        Args:
            window: milliseconds.
            since: only intervals that end after this time, in milliseconds.
        """
        widths = np.diff(self.edges)
        wide = np.flatnonzero((widths > window) & (self.edges[1:] > since))
        if not len(wide):
            return None
        return int(self.edges[wide[-1] + 1]), int(widths[wide].max())


def make_grid(retention: Mapping[int, int], now: float, since: float) -> Grid:
    """Return the grid of the finest intervals that reach back to a time, without older ones.

    Args:
        retention: precision in seconds -> samples.
        now: the server's time in seconds.
        since: seconds.
    """
    second = math.floor(now)
    edges: list[int] = []
    parts: list[GridPart] = []
    for precision in sorted(retention):
        if edges and edges[0] <= since:
            break
        newest = second // precision * precision
        oldest = newest - (retention[precision] - 1) * precision
        limit = edges[0] if edges else newest + precision
        # The whole interval before it is the newest one that ends by then.
        first = math.floor(min(max(since, oldest), newest)) // precision * precision - precision
        first = max(first, oldest)
        added = range(first, limit, precision)
        if not added:
            continue
        end = next((edge for edge in edges if edge % precision == 0), None)
        parts.append(GridPart(precision, first, end, len(added)))
        edges = [*added, *edges]
    times = np.array(edges, np.int64) * 1000
    current = max(math.floor(now * 1000), int(times[-1]) + 1)
    return Grid(np.append(times, current), tuple(parts))


@dataclass(frozen=True)
class CounterTable:
    """The cumulative functions of counters on one grid.

    Attributes:
        grid: their edges.
        labels: of each row.
        values: series x edges, whole numbers (int64) if the counts are.
        birth: for each series the first edge at which it exists, in milliseconds.
        complete: whether each series is known to be 0 before its first edge.
    """

    grid: Grid
    labels: list[LabelSet]
    values: Amounts
    birth: Times
    complete: Bools

    def present(self, times: Times) -> Bools:
        """Return which counters exist at which times: from birth on, until the current time."""
        present: Bools = (times >= self.birth[:, None]) & (times <= self.grid.now + AHEAD)
        return present

    def at(self, times: Times) -> Floats:
        """Return their values at some times."""
        left, share = self.grid.places(times)
        return self.values[:, left] + self._steps(left) * share

    def increase(self, starts: Times, ends: Times) -> Floats:
        """Return by how much they increase between pairs of times.

        Whole numbers are subtracted before they become floats, which hold no more than 2^53.
        """
        (first, before), (last, within) = self.grid.places(starts), self.grid.places(ends)
        whole = self.values[:, last] - self.values[:, first]
        return whole - self._steps(first) * before + self._steps(last) * within

    def _steps(self, left: Times) -> Amounts:
        """Return the counts of the intervals that start at some edges."""
        return self.values[:, left + 1] - self.values[:, left]

    def newest(self, times: Times) -> Floats:
        """Return their values; those of the newest two seconds are the grand totals."""
        return self.at(np.where(times >= self.grid.horizon, self.grid.now, times))

    def following(self, counts: "CounterTable") -> "CounterTable":
        """Return the same as functions that begin when counts do, at 0.

        Args:
            counts: those of the events that the values are of; one row for all, or one for each.
        """
        size = len(self.labels)
        complete = np.broadcast_to(counts.complete, size)
        values = self.values - np.where(complete, self.values[:, 0], 0)[:, None]
        birth = np.broadcast_to(counts.birth, size)
        return replace(self, values=values, birth=birth, complete=complete)

    def rows(self, chosen: Bools | slice) -> "CounterTable":
        """Return some rows."""
        labels = [self.labels[number] for number in np.arange(len(self.labels))[chosen]]
        rest = self.values[chosen], self.birth[chosen], self.complete[chosen]
        return CounterTable(self.grid, labels, *rest)

    def series(self, after: int, until: int) -> list[SampledSeries]:
        """Return the values at the edges later than `after` and no later than `until`."""
        edges = self.grid.edges[:-1]
        inside = (edges > after) & (edges <= min(until, self.grid.horizon))
        times = edges[inside]
        values = self.values[:, :-1][:, inside].astype(np.float64)
        return [
            SampledSeries(labels, times[times >= birth], values[row][times >= birth])
            for row, (labels, birth) in enumerate(zip(self.labels, self.birth, strict=True))
        ]


def accumulate(
    grid: Grid,
    labels: list[LabelSet],
    counts: Sequence[Amounts],
    stored: Sequence[Bools],
    totals: Amounts,
) -> CounterTable:
    """Return the cumulative functions of series.

    Args:
        labels: of each series.
        counts: for each part of the grid, series x intervals.
        stored: for each part of the grid, which of them are stored.
        totals: everything ever counted of each series, as far as known.
    """
    size = len(labels)
    columns = len(grid.edges)
    if any((np.abs(part).sum(axis=1, dtype=float) >= INT64_END).any() for part in counts):
        counts = [part.astype(np.float64) for part in counts]  # other programs' counts
    kind = np.result_type(totals, *counts)
    values = np.zeros((size, columns), kind)
    exists = np.zeros((size, columns), bool)
    at = columns - 1  # the edges from here on are done
    for part, own, there in zip(grid.parts, counts, stored, strict=True):
        later = np.cumsum(own[:, ::-1], axis=1)[:, ::-1]
        base = np.zeros(size, kind)
        if part.end is not None:
            base = values[:, np.searchsorted(grid.edges, part.end * 1000)]
        begin = at - part.edges
        values[:, begin:at] = base[:, None] - later[:, : part.edges]
        exists[:, begin:at] = there[:, : part.edges]
        if at < columns - 1:  # the last of them overlaps finer intervals, which know better
            exists[:, at - 1] &= values[:, at - 1] < values[:, at]
        at = begin
    if totals.dtype == np.int64:
        # The reads of two precisions are not one moment: a count never falls.
        values = np.minimum.accumulate(values[:, ::-1], axis=1)[:, ::-1]
        # An event that arrives between the reads is in an interval only.
        totals = np.maximum(totals, -values[:, 0])
    values = values + totals[:, None]
    complete = values[:, 0] <= 0
    first = np.where(exists.any(axis=1), exists.argmax(axis=1), columns - 1)
    birth = np.where(complete, grid.edges[first], grid.edges[0])
    return CounterTable(grid, labels, values, birth, complete)


def lay(part: GridPart, count: int, hashes: Sequence[Fields]) -> tuple[Amounts, Bools]:
    """Return the intervals of series, series x intervals: their amounts, and which are stored.

    Intervals of the future are added to the newest one.

    Args:
        count: intervals of the part.
        hashes: of each series.
    """
    starts = np.concatenate([starts for starts, _ in hashes])
    amounts = np.concatenate([amounts for _, amounts in hashes])
    rows = np.repeat(np.arange(len(hashes)), [len(starts) for starts, _ in hashes])
    places = (starts - part.first) // part.precision
    if part.end is None:
        places = np.minimum(places, count - 1)
    inside = (places >= 0) & (places < count)
    cells = rows[inside], places[inside]
    values, stored = (
        np.zeros((len(hashes), count), amounts.dtype),
        np.zeros((len(hashes), count), bool),
    )
    np.add.at(values, cells, amounts[inside])
    stored[cells] = True
    return values, stored
