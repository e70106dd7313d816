"""Functions of range vectors over samples.

The windows of one series become a table, a row for each evaluation time and a column for each
sample of the longest window; functions work on whole tables.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from redmeter.promql.aggregation import (
    check_quantiles,
    masked_mean,
    masked_quantile,
    masked_sum,
    masked_variance,
)
from redmeter.promql.errors import Limits, Notes
from redmeter.promql.histogram_ranges import HISTOGRAM_FUNCTIONS, Window, extrapolation
from redmeter.promql.semantics import RangeCall, Series
from redmeter.promql.values import (
    Bools,
    Floats,
    Objects,
    Times,
    Vector,
    empty_vector,
    label,
)

#: Samples in one table, at most (8 MB).
TABLE = 1_000_000

COUNTER_SUFFIXES = ("_total", "_sum", "_count", "_bucket")


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


Result = tuple[Floats, Bools]
Function = Callable[[Table], Result]


def tables(series: Series, call: RangeCall) -> Iterator[tuple[slice, Table]]:
    """Yield tables of a series' windows, and which of the evaluation times each is for."""
    starts = call.ends - call.window
    low = np.searchsorted(series.times, starts, side="right")
    high = np.searchsorted(series.times, call.ends, side="right")
    count = high - low
    widest = int(count.max(initial=0))
    if not widest:
        return
    rows = max(1, TABLE // widest)
    for begin in range(0, len(starts), rows):
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
                *(starts[part], call.ends[part], call.times[part], arguments),
            ),
        )


def apply(call: RangeCall, found: list[Series], limits: Limits, notes: Notes) -> Vector:
    """Return a range function of each series; metric names are kept."""
    if not found:
        return empty_vector(len(call.times))
    limits.check_cells(len(found), len(call.times))
    shape = (len(found), len(call.times))
    values, present = np.zeros(shape), np.zeros(shape, bool)
    histograms: Objects | None = None
    for row, series in enumerate(found):
        limits.interrupt()
        is_histogram = series.is_histogram
        if not is_histogram.any():
            for part, table in tables(series, call):
                values[row, part], present[row, part] = FUNCTIONS[call.function](table)
            if call.function in ("rate", "increase"):
                _check_counter(call, series, present[row], notes)
            continue
        if histograms is None:
            histograms = np.full(shape, None, dtype=object)
        _apply_mixed(call, series, (values[row], present[row], histograms[row]), notes)
    if call.function == "quantile_over_time":
        check_quantiles(call.arguments[0], present, call.argument_position, notes)
    nameless = np.array([series.nameless for series in found], bool)
    labels = [series.labels for series in found]
    return Vector(labels, values, present, histograms, nameless).nonempty()


def _check_counter(call: RangeCall, series: Series, present: Bools, notes: Notes) -> None:
    name = label(series.labels, "__name__")
    if name and not name.endswith(COUNTER_SUFFIXES) and present.any():
        notes.possibly_no_counter(name, call.position)


def _apply_mixed(
    call: RangeCall, series: Series, row: tuple[Floats, Bools, Objects], notes: Notes
) -> None:
    """Fill the row of a series that has histograms, maybe among floats."""
    values, present, histograms = row
    function = HISTOGRAM_FUNCTIONS.get(call.function)
    starts = call.ends - call.window
    low = np.searchsorted(series.times, starts, side="right")
    high = np.searchsorted(series.times, call.ends, side="right")
    is_histogram = series.is_histogram
    before = np.concatenate([[0], np.cumsum(is_histogram)])
    histogram_count = before[high] - before[low]
    float_count = high - low - histogram_count
    name = label(series.labels, "__name__")
    if function is None:
        if ((histogram_count > 0) & (float_count > 0)).any():
            notes.ignored_in_range(name, call.position)
        for part, table in tables(series.chosen(~is_histogram), call):
            values[part], present[part] = FUNCTIONS[call.function](table)
        return
    floats = np.zeros_like(values), np.zeros_like(present)
    for part, table in tables(series.chosen(~is_histogram), call):
        floats[0][part], floats[1][part] = FUNCTIONS[call.function](table)
    assert series.histograms is not None
    for column in np.flatnonzero(high > low):
        if not histogram_count[column]:
            values[column], present[column] = floats[0][column], floats[1][column]
            continue
        part = slice(int(low[column]), int(high[column]))
        window = Window(
            *(series.times[part], series.values[part], series.histograms[part]),
            *(int(starts[column]), int(call.ends[column])),
            name,
            call.position,
            notes,
        )
        result = function(window)
        if result is None:
            continue
        present[column] = True
        if isinstance(result, float):
            values[column] = result
        else:
            histograms[column] = result
    if call.function in ("rate", "increase"):
        _check_counter(call, series, floats[1], notes)


def extrapolated(table: Table, *, counter: bool, per_second: bool) -> Result:
    """Return the difference of the last and first value, extended to the window's ends.

    The ends of the samples are extended by half a sample interval at most, and a counter never
    below zero.
    """
    first, first_time = table.values[:, 0], table.times[:, 0]
    last, last_time = table.from_end(0)
    result = last - first
    if counter and table.values.shape[1] > 1:
        before, after = table.values[:, :-1], table.values[:, 1:]
        result = result + np.where(table.mask[:, 1:] & (after < before), before, 0.0).sum(axis=1)
    factor = extrapolation(
        (first_time, last_time, table.starts, table.ends, table.count),
        (first, result) if counter else None,
    )
    if per_second:
        factor = factor / ((table.ends - table.starts) / 1000)
    return result * factor, table.count > 1


def instantaneous(table: Table, *, rate: bool) -> Result:
    """Return the difference of the last two values, per second for a rate."""
    last, last_time = table.from_end(0)
    previous, previous_time = table.from_end(1)
    result = last - previous
    if rate:
        result = np.where(last < previous, last, result)
        result = result / ((last_time - previous_time) / 1000)
    return result, table.count > 1


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


def derivative(table: Table) -> Result:
    """Return the slope of the fitted line."""
    return regression(table, table.times[:, 0])[0], table.count > 1


def prediction(table: Table) -> Result:
    """Return the fitted line's value some seconds after the evaluation time."""
    slope, intercept = regression(table, table.now)
    return intercept + slope * table.arguments[0], table.count > 1


def changes(table: Table) -> Result:
    """Return how often the value changed."""
    before, after = table.values[:, :-1], table.values[:, 1:]
    changed = (before != after) & ~(np.isnan(before) & np.isnan(after))
    return (changed & table.mask[:, 1:]).sum(axis=1).astype(float), table.count > 0


def resets(table: Table) -> Result:
    """Return how often the value fell."""
    fell = (table.values[:, 1:] < table.values[:, :-1]) & table.mask[:, 1:]
    return fell.sum(axis=1).astype(float), table.count > 0


def _filled(table: Table) -> Floats:
    return np.where(table.mask, table.values, np.nan)


FUNCTIONS: dict[str, Function] = {
    "rate": lambda table: extrapolated(table, counter=True, per_second=True),
    "increase": lambda table: extrapolated(table, counter=True, per_second=False),
    "delta": lambda table: extrapolated(table, counter=False, per_second=False),
    "irate": lambda table: instantaneous(table, rate=True),
    "idelta": lambda table: instantaneous(table, rate=False),
    "deriv": derivative,
    "predict_linear": prediction,
    "changes": changes,
    "resets": resets,
    "sum_over_time": lambda t: (masked_sum(t.values, t.mask), t.count > 0),
    "avg_over_time": lambda t: (masked_mean(t.values, t.mask), t.count > 0),
    "min_over_time": lambda t: (np.fmin.reduce(_filled(t), axis=1), t.count > 0),
    "max_over_time": lambda t: (np.fmax.reduce(_filled(t), axis=1), t.count > 0),
    "count_over_time": lambda t: (t.count.astype(float), t.count > 0),
    "present_over_time": lambda t: (np.ones(len(t.count)), t.count > 0),
    "last_over_time": lambda t: (t.from_end(0)[0], t.count > 0),
    "stdvar_over_time": lambda t: (masked_variance(t.values, t.mask), t.count > 0),
    "stddev_over_time": lambda t: (np.sqrt(masked_variance(t.values, t.mask)), t.count > 0),
    "quantile_over_time": lambda t: (
        masked_quantile(t.values, t.mask, t.arguments[0]),
        t.count > 0,
    ),
}
