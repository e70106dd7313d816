"""Functions of range vectors over samples.

The windows of one series become a table, a row for each evaluation time and a column for each
sample of the longest window; functions of floats work on whole tables. Functions of native
histograms work on one window at a time.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from redmeter.promql.aggregation import REDUCE, check_quantiles, masked_mean, masked_quantile
from redmeter.promql.errors import Note
from redmeter.promql.histogram import NativeHistogram, mean_of, resets_conflict, total_of
from redmeter.promql.semantics import RangeCall, SampledSeries
from redmeter.promql.values import (
    METRIC_NAME,
    Bools,
    Floats,
    Objects,
    Times,
    Vector,
    label,
)

#: Samples in one table, at most (8 MB).
_TABLE = 1_000_000

COUNTER_SUFFIXES = ("_total", "_sum", "_count", "_bucket")


def apply(call: RangeCall, found: list[SampledSeries]) -> Vector:
    """Return a range function of each series, in this order; metric names are kept."""
    call.limits.check_cells(len(found), len(call.times))
    shape = (len(found), len(call.times))
    values, present = np.zeros(shape), np.zeros(shape, bool)
    histograms: Objects | None = None
    needed = 2 if call.function in OF_TWO else 1
    for row, series in enumerate(found):
        call.limits.interrupt()
        is_histogram = series.is_histogram
        native = is_histogram.any()
        floats = series.chosen(~is_histogram) if native else series
        # A table lives until the next one is made: else each would be memory new from the system.
        for part, table in tables(floats, call):
            values[row, part] = FUNCTIONS[call.function](table)
            present[row, part] = table.count >= needed
        if call.function in ("rate", "increase") and present[row].any():
            name = label(series.labels, METRIC_NAME)
            if name and not name.endswith(COUNTER_SUFFIXES):
                call.notes.add(Note.POSSIBLY_NO_COUNTER, call.position, name=name)
        if native:
            if histograms is None:
                histograms = np.full(shape, None, dtype=object)
            _apply_to_histograms(call, series, (values[row], present[row], histograms[row]))
    if call.function == "quantile_over_time":
        quantiles = call.arguments[0][present.any(axis=0)]
        check_quantiles(quantiles, call.argument_position, call.notes)
    nameless = np.array([series.nameless for series in found], bool)
    labels = [series.labels for series in found]
    return Vector(labels, values, present, histograms, nameless)


def _places(series: SampledSeries, call: RangeCall) -> tuple[Times, Times]:
    """Return where the samples of each window begin and end."""
    low = np.searchsorted(series.times, call.ends - call.window, side="right")
    return low, np.searchsorted(series.times, call.ends, side="right")


# --- Floats ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """Windows of one series.

    Attributes:
        times: of the samples in milliseconds, windows x samples.
        values: of the samples.
        mask: which cells hold a sample; those of each window come first.
        count: samples of each window.
        starts, ends: of each window in milliseconds.
        now: the evaluation time of each window.
        arguments: of the function.
    """

    times: Times
    values: Floats
    mask: Bools
    count: Times
    starts: Times
    ends: Times
    now: Times
    arguments: tuple[Floats, ...]

    def from_end(self, place: int) -> tuple[Floats, Times]:
        """Return values and times of the last (0), the last but one (1) … sample."""
        column = np.maximum(self.count - 1 - place, 0)
        rows = np.arange(len(column))
        return self.values[rows, column], self.times[rows, column]


def tables(series: SampledSeries, call: RangeCall) -> Iterator[tuple[slice, Table]]:
    """Yield tables of a series' windows, and which of the evaluation times each is for."""
    low, high = _places(series, call)
    count = high - low
    widest = int(count.max(initial=0))
    if not widest:
        return
    rows = max(1, _TABLE // widest)
    for begin in range(0, len(count), rows):
        part = slice(begin, begin + rows)
        width = int(count[part].max(initial=0))
        if not width:
            continue
        places = low[part, None] + np.arange(width)
        mask = places < high[part, None]
        places = np.minimum(places, len(series.times) - 1)
        arguments = tuple(argument[part] for argument in call.arguments)
        yield (
            part,
            Table(
                *(series.times[places], series.values[places], mask, count[part]),
                *(call.ends[part] - call.window, call.ends[part], call.times[part], arguments),
            ),
        )


def extrapolation(
    first_time: Times | np.int64,
    last_time: Times | np.int64,
    starts: Times | int,
    ends: Times | int,
    count: Times | int,
    zero: tuple[Floats | np.float64, Floats | np.float64] | None,
) -> Floats:
    """Return the factor that extends a difference between samples to the whole window.

    A side is extended by half a sample interval at most.

    Args:
        first_time, last_time: of the samples in milliseconds.
        starts, ends: of the window in milliseconds.
        count: samples of the window.
        zero: the first value and the increase of a counter, which is not extended below zero.
    """
    to_start = (first_time - starts) / 1000
    to_end = (ends - last_time) / 1000
    sampled = (last_time - first_time) / 1000
    average = sampled / np.maximum(count - 1, 1)
    threshold = average * 1.1
    to_start = np.where(to_start >= threshold, average / 2, to_start)
    if zero is not None:
        first, increase = zero
        to_zero = np.where((increase > 0) & (first >= 0), sampled * (first / increase), np.inf)
        to_start = np.minimum(to_start, to_zero)
    to_end = np.where(to_end >= threshold, average / 2, to_end)
    factor: Floats = (sampled + to_start + to_end) / sampled
    return factor


def extrapolated(table: Table, *, counter: bool, per_second: bool) -> Floats:
    """Return the difference of the last and first value, extended to the window's ends."""
    first, first_time = table.values[:, 0], table.times[:, 0]
    last, last_time = table.from_end(0)
    result = last - first
    if counter and table.values.shape[1] > 1:
        before, after = table.values[:, :-1], table.values[:, 1:]
        result = result + np.where(table.mask[:, 1:] & (after < before), before, 0.0).sum(axis=1)
    factor = extrapolation(
        *(first_time, last_time, table.starts, table.ends, table.count),
        (first, result) if counter else None,
    )
    if per_second:
        factor = factor / ((table.ends - table.starts) / 1000)
    return result * factor


def instantaneous(table: Table, *, rate: bool) -> Floats:
    """Return the difference of the last two values, per second for a rate."""
    last, last_time = table.from_end(0)
    previous, previous_time = table.from_end(1)
    result = last - previous
    if rate:
        result = np.where(last < previous, last, result)
        result = result / ((last_time - previous_time) / 1000)
    return result


def regression(table: Table, origin: Times) -> tuple[Floats, Floats]:
    """Return slope per second and value at `origin` of a line fitted by least squares."""
    count = table.count
    x = (table.times - origin[:, None]) / 1000
    mean_x = np.where(table.mask, x, 0.0).sum(axis=1) / count
    mean_y = masked_mean(table.values, table.mask)
    centered = np.where(table.mask, x - mean_x[:, None], 0.0)
    y = np.where(table.mask, table.values - mean_y[:, None], 0.0)
    slope = (centered * y).sum(axis=1) / (centered**2).sum(axis=1)
    intercept = mean_y - slope * mean_x
    flat = (~table.mask | (table.values == table.values[:, :1])).all(axis=1)
    infinite = np.isinf(table.values[:, 0])
    slope = np.where(flat, np.where(infinite, np.nan, 0.0), slope)
    return slope, np.where(flat, np.where(infinite, np.nan, table.values[:, 0]), intercept)


def prediction(table: Table) -> Floats:
    """Return the fitted line's value some seconds after the evaluation time."""
    slope, intercept = regression(table, table.now)
    return intercept + slope * table.arguments[0]


def _changes(table: Table) -> Floats:
    """Return how often the value changed."""
    before, after = table.values[:, :-1], table.values[:, 1:]
    changed = (before != after) & ~(np.isnan(before) & np.isnan(after))
    return _counted(changed & table.mask[:, 1:])


def resets(table: Table) -> Floats:
    """Return how often the value fell."""
    return _counted((table.values[:, 1:] < table.values[:, :-1]) & table.mask[:, 1:])


def _counted(mask: Bools) -> Floats:
    counts: Floats = mask.sum(axis=1).astype(float)
    return counts


def _over_time(reduce: Callable[[Floats, Bools], Floats]) -> Callable[[Table], Floats]:
    return lambda table: reduce(table.values, table.mask)


#: Functions that need two samples; the others need one.
OF_TWO = ("rate", "increase", "delta", "irate", "idelta", "deriv", "predict_linear")
FUNCTIONS: dict[str, Callable[[Table], Floats]] = {
    "rate": lambda table: extrapolated(table, counter=True, per_second=True),
    "increase": lambda table: extrapolated(table, counter=True, per_second=False),
    "delta": lambda table: extrapolated(table, counter=False, per_second=False),
    "irate": lambda table: instantaneous(table, rate=True),
    "idelta": lambda table: instantaneous(table, rate=False),
    "deriv": lambda table: regression(table, table.times[:, 0])[0],
    "predict_linear": prediction,
    "changes": _changes,
    "resets": resets,
    **{f"{name}_over_time": _over_time(reduce) for name, reduce in REDUCE.items()},
    "count_over_time": lambda table: table.count.astype(float),
    "present_over_time": lambda table: np.ones(len(table.count)),
    "first_over_time": lambda table: table.values[:, 0],
    "last_over_time": lambda table: table.from_end(0)[0],
    "quantile_over_time": lambda table: masked_quantile(
        table.values, table.mask, table.arguments[0]
    ),
}


# --- Native histograms -----------------------------------------------------------------------


@dataclass(frozen=True)
class HistogramWindow:
    """The samples of one window, of which at least one is a histogram.

    Attributes:
        times: of the samples, in milliseconds.
        values: of the samples that are floats.
        histograms: a NativeHistogram, or None for a float.
        end: of the window in milliseconds.
        name: the metric's name.
        call: the function.
    """

    times: Times
    values: Floats
    histograms: Objects
    end: int
    name: str
    call: RangeCall

    def note(self, note: Note, *details: str) -> None:
        """Add a note about the metric."""
        self.call.notes.add(note, self.call.position, *details, name=self.name)


def _apply_to_histograms(
    call: RangeCall, series: SampledSeries, row: tuple[Floats, Bools, Objects]
) -> None:
    """Fill the windows of a series that have histograms, maybe among floats.

    Args:
        row: values, presence and histograms, with the results of the floats.
    """
    values, present, histograms = row
    function = HISTOGRAM_FUNCTIONS.get(call.function)
    low, high = _places(series, call)
    before = np.concatenate([[0], np.cumsum(series.is_histogram)])
    count = before[high] - before[low]
    name = label(series.labels, METRIC_NAME)
    if function is None:
        if ((count > 0) & (count < high - low)).any():
            call.notes.add(Note.IGNORED_IN_RANGE, call.position, name=name)
        return
    assert series.histograms is not None
    for column in np.flatnonzero(count):
        part = slice(int(low[column]), int(high[column]))
        samples = series.times[part], series.values[part], series.histograms[part]
        window = HistogramWindow(*samples, int(call.ends[column]), name, call)
        result = function(window)
        present[column] = result is not None
        if isinstance(result, NativeHistogram):
            histograms[column] = result
        elif result is not None:
            values[column] = result


Result = float | NativeHistogram | None


def _only_histograms(window: HistogramWindow) -> list[NativeHistogram] | None:
    """Return the histograms, or None, with a warning, if there are floats among them."""
    histograms = [histogram for histogram in window.histograms if histogram is not None]
    if len(histograms) < len(window.histograms):
        window.note(Note.MIXED_SAMPLES)
        return None
    return histograms


def _difference(window: HistogramWindow, *, counter: bool) -> NativeHistogram | None:
    histograms = _only_histograms(window)
    if histograms is None or len(histograms) < 2:
        return None
    gauges = [histogram.hint == "gauge" for histogram in histograms]
    if counter and any(gauges):
        window.note(Note.NO_COUNTER_HISTOGRAM)
    if not counter and not (gauges[0] and gauges[-1]):
        window.note(Note.NO_GAUGE_HISTOGRAM)
    schema = min(histogram.schema for histogram in histograms)
    result = histograms[-1].at_schema(schema) - histograms[0]
    if counter:
        for before, after in itertools.pairwise(histograms):
            if after.is_reset_after(before):
                result = result + before
    return result


def _extrapolated(
    window: HistogramWindow, *, counter: bool, per_second: bool
) -> NativeHistogram | None:
    result = _difference(window, counter=counter)
    if result is None:
        return None
    first = window.histograms[0]
    start = window.end - window.call.window
    factor = extrapolation(
        *(window.times[0], window.times[-1], start, window.end, len(window.times)),
        (np.float64(first.count), np.float64(result.count)) if counter else None,
    )
    seconds = window.call.window / 1000 if per_second else 1.0
    return result.scaled(float(factor) / seconds).as_gauge()


def _instantaneous(window: HistogramWindow, *, rate: bool) -> Result:
    if len(window.times) < 2:
        return None
    previous, last = window.histograms[-2:]
    seconds = float(window.times[-1] - window.times[-2]) / 1000
    if previous is None and last is None:
        before, after = (float(value) for value in window.values[-2:])
        change = after if rate and after < before else after - before
        return change / seconds if rate else change
    if previous is None or last is None:
        window.note(Note.MIXED_SAMPLES)
        return None
    gauges = [histogram.hint == "gauge" for histogram in (previous, last)]
    if rate and any(gauges):
        window.note(Note.NO_COUNTER_HISTOGRAM)
    if not rate and not all(gauges):
        window.note(Note.NO_GAUGE_HISTOGRAM)
    difference: NativeHistogram = last - previous
    if rate and last.is_reset_after(previous):
        difference = last
    return difference.divided(seconds).as_gauge() if rate else difference.as_gauge()


def _reduced(
    reduce: Callable[[Sequence[NativeHistogram]], NativeHistogram], window: HistogramWindow
) -> NativeHistogram | None:
    histograms = _only_histograms(window)
    if histograms is None:
        return None
    if resets_conflict(histograms):
        window.note(Note.CONFLICTING_RESETS, "aggregation")
    return reduce(histograms)


def _count_pairs(
    window: HistogramWindow,
    floats: Callable[[float, float], bool],
    histograms: Callable[[NativeHistogram, NativeHistogram], bool],
) -> float:
    """Count the neighbours that fulfill a condition; a change of type always does."""
    counted = 0
    samples = list(zip(window.values.tolist(), window.histograms, strict=True))
    for (before, old), (after, new) in itertools.pairwise(samples):
        if old is None and new is None:
            counted += floats(before, after)
        elif old is None or new is None:
            counted += 1
        else:
            counted += histograms(old, new)
    return float(counted)


def _differ(before: float, after: float) -> bool:
    return before != after and not (np.isnan(before) and np.isnan(after))


def _at(place: int, window: HistogramWindow) -> Result:
    histogram: NativeHistogram | None = window.histograms[place]
    return float(window.values[place]) if histogram is None else histogram


HISTOGRAM_FUNCTIONS: dict[str, Callable[[HistogramWindow], Result]] = {
    "rate": lambda window: _extrapolated(window, counter=True, per_second=True),
    "increase": lambda window: _extrapolated(window, counter=True, per_second=False),
    "delta": lambda window: _extrapolated(window, counter=False, per_second=False),
    "irate": lambda window: _instantaneous(window, rate=True),
    "idelta": lambda window: _instantaneous(window, rate=False),
    "sum_over_time": functools.partial(_reduced, total_of),
    "avg_over_time": functools.partial(_reduced, mean_of),
    "count_over_time": lambda window: float(len(window.times)),
    "present_over_time": lambda window: 1.0,  # noqa: ARG005
    "first_over_time": functools.partial(_at, 0),
    "last_over_time": functools.partial(_at, -1),
    "changes": lambda w: _count_pairs(w, _differ, lambda old, new: not old.same(new)),
    "resets": lambda w: _count_pairs(
        w, lambda old, new: new < old, lambda old, new: new.is_reset_after(old)
    ),
}
