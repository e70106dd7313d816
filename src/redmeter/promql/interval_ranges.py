"""Range functions over cumulative functions and over gauges of several precisions.

rate(), increase() and delta() of counters and histograms are differences of cumulative functions.
Other functions work on samples: of counters these are the values at the edges of intervals. Where a
window has no sample, functions that aggregate over time take the value held at its end.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from redmeter.promql.errors import Limits, Notes
from redmeter.promql.range_functions import apply
from redmeter.promql.semantics import RangeCall, Series
from redmeter.promql.values import (
    Bools,
    Floats,
    Labels,
    Times,
    Vector,
    concatenate,
    empty_vector,
)

if TYPE_CHECKING:
    from redmeter.promql.intervals import CounterTable, GaugeSamples, Native

#: The functions that are differences of cumulative functions.
DIFFERENCES = ("rate", "increase", "delta")
#: The functions of the last two samples.
LAST_TWO = ("irate", "idelta")


def differences(table: "CounterTable", call: RangeCall) -> tuple[Floats, Bools]:
    """Return how much counters increase within each window.

    Events of the last two seconds may not have arrived. A window that ends there is measured up to
    two seconds ago, and its increase is extended to the whole window.
    """
    grid, window = table.grid, call.window
    ends, starts = call.ends, call.ends - window
    late = ends > grid.horizon
    measured = np.where(late, grid.horizon - starts, window)
    factor = window / np.maximum(measured, 1)
    increase = (table.at(np.minimum(ends, grid.horizon)) - table.at(starts)) * factor
    known = (starts >= grid.edges[0]) | table.complete[:, None]
    usable = ~late | (starts < grid.horizon - 1_000)
    present = table.present(ends) & known & usable
    if call.function == "rate":
        increase = increase / (window / 1000)
    return increase, present


def last_two(table: "CounterTable", call: RangeCall) -> tuple[Floats, Bools]:
    """Return the increase within the last whole interval before the end of each window."""
    edges = table.grid.edges
    place = np.searchsorted(edges[:-1], np.minimum(call.ends, table.grid.horizon), side="right") - 1
    start = np.maximum(place - 1, 0)
    last = np.maximum(place, 1)
    width = edges[last] - edges[start]
    change = table.values[:, last] - table.values[:, start]
    if call.function == "irate":
        change = change / (width / 1000)
    near = edges[last] + np.maximum(call.window, width) >= call.ends
    return change, table.present(edges[last]) & (place >= 1) & near


def counter_range(call: RangeCall, table: "CounterTable", limits: Limits, notes: Notes) -> Vector:
    """Return a range function of counters."""
    columns = len(call.times)
    if not table.labels:
        return empty_vector(columns)
    if call.function in DIFFERENCES:
        return Vector(table.labels, *differences(table, call))
    if call.function in LAST_TWO:
        return Vector(table.labels, *last_two(table, call))
    if call.function == "resets":
        present = table.present(call.ends)
        return Vector(table.labels, np.zeros(present.shape), present)
    after, until = int(call.ends.min()) - call.window, int(call.ends.max())
    sampled = apply(call, table.series(after, until), limits, notes)
    held = Vector(table.labels, table.at(call.ends), table.present(call.ends))
    return with_held(call, table.labels, sampled, held, limits, notes)


def native_range(call: RangeCall, native: "Native", limits: Limits, notes: Notes) -> Vector:
    """Return a range function of a histogram."""
    if call.function not in (*DIFFERENCES, *LAST_TWO):
        after, until = int(call.ends.min()) - call.window, int(call.ends.max())
        return apply(call, [native.series(after, until)], limits, notes)
    function = differences if call.function in DIFFERENCES else last_two
    numbers, present = function(native.table, call)
    rows = present[:1]
    histograms = native.histograms(numbers, rows[0], gauge=True)
    return Vector([native.labels], np.zeros(rows.shape), rows, histograms[None])


def gauge_range(
    call: RangeCall,
    gauges: "Sequence[GaugeSamples]",
    held: Vector,
    limits: Limits,
    notes: Notes,
) -> Vector:
    """Return a range function of gauges, each window from the finest precision that holds it."""
    columns = len(call.times)
    labels = held.labels
    values, present = np.zeros((len(labels), columns)), np.zeros((len(labels), columns), bool)
    rows = {each: row for row, each in enumerate(labels)}
    left = np.ones(columns, bool)
    for number, samples in enumerate(gauges):
        last = number == len(gauges) - 1
        chosen = left & ((call.ends - call.window >= samples.oldest) | last)
        left &= ~chosen
        part = np.flatnonzero(chosen)
        if not len(part):
            continue
        vector = apply(_columns(call, part), samples.series, limits, notes)
        for row, own in enumerate(vector.labels):
            values[rows[own], part] = vector.values[row]
            present[rows[own], part] = vector.present[row]
    return with_held(call, labels, Vector(labels, values, present), held, limits, notes)


def with_held(
    call: RangeCall,
    labels: list[Labels],
    sampled: Vector,
    held: Vector,
    limits: Limits,
    notes: Notes,
) -> Vector:
    """Return a function over time, of the value held where a window has no sample."""
    if not call.function.endswith("_over_time"):
        return sampled
    rows = {own: row for row, own in enumerate(sampled.labels)}
    vectors = [sampled]
    for row, own in enumerate(labels):
        missing = held.present[row]
        if own in rows:
            missing = missing & ~sampled.present[rows[own]]
        part = np.flatnonzero(missing)
        if not len(part):
            continue
        # Windows of a millisecond, each with one sample.
        moments, first = np.unique(call.ends[part], return_index=True)
        single = Series(own, moments, held.values[row, part][first])
        narrow = replace(_columns(call, part), window=1)
        function = apply(narrow, [single], limits, notes)
        wide = Vector([own], np.zeros((1, len(missing))), np.zeros((1, len(missing)), bool))
        if len(function):
            wide.values[0, part], wide.present[0, part] = function.values[0], function.present[0]
        vectors.append(wide)
    return _overlaid(labels, vectors, len(call.times))


def _overlaid(labels: list[Labels], vectors: list[Vector], columns: int) -> Vector:
    """Return one row for each label set; vectors have no two samples of one at one time."""
    rows = {own: row for row, own in enumerate(labels)}
    values, present = np.zeros((len(labels), columns)), np.zeros((len(labels), columns), bool)
    whole = concatenate(vectors, columns)
    for row, own in enumerate(whole.labels):
        mask = whole.present[row]
        values[rows[own]] = np.where(mask, whole.values[row], values[rows[own]])
        present[rows[own]] |= mask
    return Vector(labels, values, present)


def _columns(call: RangeCall, part: Times) -> RangeCall:
    """Return a call at some of its evaluation times."""
    arguments = tuple(argument[part] for argument in call.arguments)
    return replace(call, arguments=arguments, times=call.times[part], ends=call.ends[part])
