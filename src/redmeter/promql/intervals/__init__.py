"""Semantics of a store that keeps the counts of intervals.

A counter is the cumulative function of grid.py. It is exact at the edges of intervals and linear
between them, so an increase is a difference: nothing is extrapolated, and the first count of a
series is not lost. Histograms are cumulative functions of each bucket. Gauges are samples, each
with its own time; a window takes them from the finest precision that holds all of it. Its extremes
and its last value are those of the samples at all precisions.

rate(), increase() and delta() of counters and histograms are differences of cumulative functions.
Other functions work on samples: of counters these are the values at the edges of intervals. Where a
window has no sample, functions that aggregate over time take the value held at its end.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from redmeter.promql.errors import Limits, Note
from redmeter.promql.histogram import Hint, NativeHistogram
from redmeter.promql.intervals.grid import CounterTable, Grid
from redmeter.promql.nodes import Matcher
from redmeter.promql.range_functions import apply
from redmeter.promql.semantics import RangeCall, SampledSeries
from redmeter.promql.values import (
    Bools,
    Floats,
    LabelSet,
    Objects,
    Times,
    Vector,
    concatenate,
)

#: How long a gauge keeps its last value, in milliseconds; longer where its intervals are wider.
LOOKBACK = 300_000
#: A window at the current time is measured for longer than this, milliseconds.
SHORTEST_MEASURED = 1_000
#: Before all times, milliseconds.
NEVER = -(2**62)
#: Functions of the samples of gauges to which the number of samples does not matter.
OF_ANY_SAMPLES = ("min_over_time", "max_over_time", "first_over_time", "last_over_time")
#: The functions that are differences of cumulative functions.
DIFFERENCES = ("rate", "increase", "delta")


@dataclass(frozen=True)
class Native:
    """A histogram as cumulative functions.

    Attributes:
        labels: its labels.
        table: the functions: the count, the sum, the zero bucket, the positive buckets, the
            negative ones.
        positive, negative: indexes of the buckets.
    """

    labels: LabelSet
    table: CounterTable
    positive: tuple[int, ...]
    negative: tuple[int, ...]

    def histograms(self, numbers: Floats, present: Bools, hint: Hint) -> Objects:
        """Return a histogram for each column of numbers, which are rows of the table's kind."""
        histograms = np.full(numbers.shape[1], None, dtype=object)
        split = 3 + len(self.positive)
        columns = np.flatnonzero(present)
        for column, one in zip(columns, numbers[:, columns].T.tolist(), strict=True):
            count, total, zeros = one[:3]
            positive = zip(self.positive, one[3:split], strict=True)
            negative = zip(self.negative, one[split:], strict=True)
            histograms[column] = NativeHistogram(
                *(4, count, total, 0.0, zeros),
                {index: number for index, number in positive if number},
                {index: number for index, number in negative if number},
                hint,
            )
        return histograms

    def series(self, after: int, until: int) -> SampledSeries:
        """Return the histograms at the edges later than `after` and no later than `until`."""
        first = self.table.rows(slice(1)).series(after, until)[0]
        present = np.ones(len(first.times), bool)
        histograms = self.histograms(self.table.at(first.times), present, "unknown")
        return SampledSeries(self.labels, first.times, np.zeros(len(first.times)), histograms)


@dataclass(frozen=True)
class GaugeSamples:
    """Samples of gauges at one precision.

    Attributes:
        width: of the intervals, of which each has one sample at most; milliseconds.
        oldest: start of the oldest interval in milliseconds.
        series: one for each gauge, in the same order at all precisions.
        held: by series, for how long its last value counts, milliseconds; of others, the
            lookback of the query.
    """

    width: int
    oldest: int
    series: list[SampledSeries]
    held: Mapping[LabelSet, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Stored:
    """The data that a selector selects.

    Attributes:
        counters: those of each grid.
        natives: histograms as native histograms.
        gauges: at each precision, the finest first; all have the same gauges.
    """

    counters: list[CounterTable] = field(default_factory=list)
    natives: list[Native] = field(default_factory=list)
    gauges: list[GaugeSamples] = field(default_factory=list)


class IntervalSource(Protocol):
    """Where intervals come from."""

    def read(self, matchers: Sequence[Matcher], since: int, limits: Limits) -> Stored:
        """Return the data that fulfills all matchers, from a time in milliseconds on."""


class Intervals:
    """Reads intervals from a source."""

    def __init__(self, source: IntervalSource, lookback: int = LOOKBACK) -> None:
        """Read from a source; `lookback` is in milliseconds."""
        self._source = source
        self._lookback = lookback

    def instant(
        self, matchers: Sequence[Matcher], times: Times, limits: Limits
    ) -> tuple[Vector, Floats]:
        """Return the value of each series at each time, and its time in seconds."""
        stored = self._source.read(matchers, int(times.min()) - self._lookback, limits)

        def timed(vector: Vector, grid: Grid) -> tuple[Vector, Floats]:
            known = np.minimum(times, grid.horizon) / 1000
            return vector, np.broadcast_to(known, vector.values.shape)

        parts: list[tuple[Vector, Floats]] = []
        for table in stored.counters:
            limits.check_cells(len(table.labels), len(times))
            vector = Vector(table.labels, table.newest(times), table.present(times))
            parts.append(timed(vector, table.grid))
        limits.check_histograms(len(stored.natives), len(times))
        for native in stored.natives:
            limits.interrupt()
            present = native.table.rows(slice(1)).present(times)
            histograms = native.histograms(native.table.newest(times), present[0], "unknown")
            vector = Vector([native.labels], np.zeros(present.shape), present, histograms[None])
            parts.append(timed(vector, native.table.grid))
        if stored.gauges:
            parts.append(self._held(stored.gauges, times, limits))
        whole = concatenate([vector for vector, _ in parts], len(times))
        if not len(whole):
            return whole, np.zeros((0, len(times)))
        kept = whole.present.any(axis=1)
        stamps = np.concatenate([rows for vector, rows in parts if len(vector)])
        return whole.rows(kept), stamps[kept]

    def apply(self, call: RangeCall, matchers: Sequence[Matcher]) -> Vector:
        """Return a range function of each series."""
        since = int(call.ends.min()) - max(call.window, self._lookback)
        stored = self._source.read(matchers, since, call.limits)
        vectors = []
        for table in stored.counters:
            call.limits.check_cells(len(table.labels), len(call.times))
            vectors.append(counter_range(call, table))
        call.limits.check_histograms(len(stored.natives), len(call.times))
        for native in stored.natives:
            call.limits.interrupt()
            vectors.append(native_range(call, native))
        if stored.gauges:
            held = self._held(stored.gauges, call.ends, call.limits)[0]
            vectors.append(gauge_range(call, stored.gauges, held))
        self._note_widths(call, stored)
        return concatenate(vectors, len(call.times))

    def select(
        self, matchers: Sequence[Matcher], after: int, until: int, limits: Limits
    ) -> list[SampledSeries]:
        """Return samples in a range: of counters and histograms, the values at edges."""
        stored = self._source.read(matchers, after, limits)
        series = [one for table in stored.counters for one in table.series(after, until)]
        series += [native.series(after, until) for native in stored.natives]
        for samples in stored.gauges[-1:]:
            whole = [each for each in stored.gauges if each.oldest <= after]
            chosen = whole[0] if whole else samples
            series += [one.between(after, until) for one in chosen.series]
        return series

    def _held(
        self, gauges: Sequence[GaugeSamples], times: Times, limits: Limits
    ) -> tuple[Vector, Floats]:
        """Return the last value of each gauge at each time, and when it was set, in seconds."""
        shape = (len(gauges[0].series), len(times))
        limits.check_cells(*shape)
        values, stamps, present = np.zeros(shape), np.zeros(shape), np.zeros(shape, bool)
        left = np.ones(len(times), bool)
        for samples in gauges:
            columns = np.flatnonzero(left)
            if not len(columns):
                break
            for row, series in enumerate(samples.series):
                if not len(series.times):
                    continue
                longest = samples.held.get(series.labels, self._lookback)
                lookback = max(min(self._lookback, longest), samples.width)
                newest = np.searchsorted(series.times, times[columns], side="right") - 1
                known = (newest >= 0) & (series.times[newest] > times[columns] - lookback)
                known &= ~present[row, columns]  # a finer precision has a later value
                known_columns = columns[known]
                values[row, known_columns] = series.values[newest[known]]
                stamps[row, known_columns] = series.times[newest[known]] / 1000
                present[row, known_columns] = True
            left &= times - self._lookback < samples.oldest
        labels = [series.labels for series in gauges[0].series]
        return Vector(labels, values, present), stamps

    def _note_widths(self, call: RangeCall, stored: Stored) -> None:
        """Inform where intervals are too wide for the windows.

        A difference is an average where intervals are wider than the window. A function of samples
        needs two intervals in the window, or it may have a single sample.
        """
        difference = call.function in _OF_CUMULATIVE
        note = Note.WIDE_INTERVALS if difference else Note.FEW_SAMPLES
        widest = call.window if difference else call.window // 2
        since = int(call.ends.min()) - call.window
        tables = [table for table in stored.counters if table.labels]
        tables += [native.table for native in stored.natives]
        for table in tables if call.function != "resets" else ():
            wide = table.grid.wider_than(widest, since)
            if wide is not None and (table.birth < wide[0]).any():
                self._note(call, note, *wide)
            if since < table.grid.edges[0] and not table.complete.all():
                self._note(call, Note.NOT_KEPT, int(table.grid.edges[0]))
        chosen = precisions_of(call, stored.gauges) if stored.gauges else np.zeros(0, np.int64)
        for number in np.unique(chosen):
            samples, ends = stored.gauges[number], call.ends[chosen == number]
            first, last = int(ends.min()) - call.window, int(ends.max())
            held = first - max(self._lookback, samples.width)
            if not any(len(series.between(held, last).times) for series in samples.series):
                continue
            if samples.width * 2 > call.window:
                until = stored.gauges[number - 1].oldest + call.window if number else last
                self._note(call, Note.FEW_SAMPLES, until, samples.width)
            if first < samples.oldest:
                self._note(call, Note.NOT_KEPT, samples.oldest)

    def _note(self, call: RangeCall, note: Note, until: int, width: int = 0) -> None:
        moment = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(until // 1000))
        details = _duration(call.window), moment, _duration(width or 1)
        call.notes.add(note, call.position, *details)


def _duration(milliseconds: int) -> str:
    """Return a duration as PromQL writes it, in its largest whole unit."""
    units = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))
    unit, size = next(unit for unit in units if milliseconds % unit[1] == 0)
    return f"{milliseconds // size}{unit}"


# --- Range functions -------------------------------------------------------------------------


def differences(table: CounterTable, call: RangeCall) -> tuple[Floats, Bools]:
    """Return how much counters increase within each window.

    Events of the last two seconds may not have arrived. A window that ends there is measured up to
    two seconds ago: its increase is the count until then, its rate that of the time measured.
    """
    starts, ends = call.ends - call.window, np.minimum(call.ends, table.grid.horizon)
    measured = ends - starts
    known = (starts >= table.grid.edges[0]) | table.complete[:, None]
    enough = (measured == call.window) | (measured > SHORTEST_MEASURED)
    change = table.increase(starts, ends)
    if call.function == "rate":
        change = change / (np.maximum(measured, 1) / 1000)
    return change, table.present(call.ends) & known & enough


def last_two(table: CounterTable, call: RangeCall) -> tuple[Floats, Bools]:
    """Return the increase within the last whole interval before the end of each window."""
    edges = table.grid.edges
    place = np.searchsorted(edges[:-1], np.minimum(call.ends, table.grid.horizon), side="right") - 1
    start = np.maximum(place - 1, 0)
    last = np.maximum(place, 1)
    width = edges[last] - edges[start]
    change = table.values[:, last] - table.values[:, start]
    if call.function == "irate":
        change = change / (width / 1000)
    change = change.astype(np.float64)
    near = edges[last] + np.maximum(call.window, width) >= call.ends
    return change, table.present(edges[last]) & (place >= 1) & near


#: The functions that are no functions of samples.
_OF_CUMULATIVE = dict.fromkeys(DIFFERENCES, differences) | dict.fromkeys(
    ("irate", "idelta"), last_two
)


def counter_range(call: RangeCall, table: CounterTable) -> Vector:
    """Return a range function of counters."""
    if call.function in _OF_CUMULATIVE:
        return Vector(table.labels, *_OF_CUMULATIVE[call.function](table, call))
    if call.function == "resets":
        present = table.present(call.ends)
        return Vector(table.labels, np.zeros(present.shape), present)
    after, until = int(call.ends.min()) - call.window, int(call.ends.max())
    sampled = apply(call, table.series(after, until))
    held = Vector(table.labels, table.at(call.ends), table.present(call.ends))
    return with_held(call, sampled, held)


def native_range(call: RangeCall, native: Native) -> Vector:
    """Return a range function of a histogram."""
    if call.function not in _OF_CUMULATIVE:
        after, until = int(call.ends.min()) - call.window, int(call.ends.max())
        return apply(call, [native.series(after, until)])
    numbers, present = _OF_CUMULATIVE[call.function](native.table, call)
    rows = present[:1]
    histograms = native.histograms(numbers, rows[0], "gauge")
    return Vector([native.labels], np.zeros(rows.shape), rows, histograms[None])


def precisions_of(call: RangeCall, gauges: Sequence[GaugeSamples]) -> Times:
    """Return for each window the finest precision that holds it, else the widest, as its number."""
    chosen = np.full(len(call.ends), len(gauges) - 1)
    for number in reversed(range(len(gauges))):
        chosen[call.ends - call.window >= gauges[number].oldest] = number
    return chosen


def gauge_range(call: RangeCall, gauges: Sequence[GaugeSamples], held: Vector) -> Vector:
    """Return a range function of gauges.

    An extreme and the last value are those of all samples. Other functions weigh samples equally,
    so each window has those of one precision.
    """
    if call.function in OF_ANY_SAMPLES:
        return with_held(call, apply(call, merged_samples(gauges)), held)
    values, present = np.zeros(held.values.shape), np.zeros(held.values.shape, bool)
    chosen = precisions_of(call, gauges)
    for number, samples in enumerate(gauges):
        part = np.flatnonzero(chosen == number)
        if len(part):
            vector = apply(_columns(call, part), samples.series)
            values[:, part], present[:, part] = vector.values, vector.present
    return with_held(call, Vector(held.labels, values, present), held)


def merged_samples(gauges: Sequence[GaugeSamples]) -> list[SampledSeries]:
    """Return the samples of each gauge at the finest precision that keeps each."""
    merged = []
    for same in zip(*(samples.series for samples in gauges), strict=True):
        ends = [None, *(samples.oldest for samples in gauges)]
        parts = [
            series if end is None else series.between(NEVER, end - 1)
            for series, end in zip(same, ends, strict=False)
        ][::-1]
        times = np.concatenate([series.times for series in parts])
        values = np.concatenate([series.values for series in parts])
        merged.append(SampledSeries(same[0].labels, times, values))
    return merged


def with_held(call: RangeCall, sampled: Vector, held: Vector) -> Vector:
    """Return a function over time, of the value held where a window has no sample.

    Args:
        sampled: the function where windows have samples.
        held: the value of each series at the end of each window, in the same order.
    """
    if not call.function.endswith("_over_time"):
        return sampled
    values, present = sampled.values.copy(), sampled.present.copy()
    for row, own in enumerate(held.labels):
        part = np.flatnonzero(held.present[row] & ~present[row])
        if not len(part):
            continue
        # Windows of a millisecond, each with one sample.
        moments, first = np.unique(call.ends[part], return_index=True)
        single = SampledSeries(own, moments, held.values[row, part][first])
        function = apply(replace(_columns(call, part), window=1), [single])
        values[row, part], present[row, part] = function.values[0], function.present[0]
    return Vector(held.labels, values, present)


def _columns(call: RangeCall, part: Times) -> RangeCall:
    """Return a call at some of its evaluation times."""
    arguments = tuple(argument[part] for argument in call.arguments)
    return replace(call, arguments=arguments, times=call.times[part], ends=call.ends[part])
