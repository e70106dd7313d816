"""Functions of instant vectors that read histograms, classic and native."""

import math
from collections.abc import Callable

import numpy as np

from redmeter.promql.histogram import Histogram, divide
from redmeter.promql.notes import Notes
from redmeter.promql.quantiles import (
    classic_fraction,
    classic_histograms,
    classic_quantile,
    cumulative_counts,
    native_fraction,
    native_quantile,
)
from redmeter.promql.values import (
    NAME,
    Bools,
    Floats,
    Labels,
    Vector,
    concatenate,
    format_float,
    label,
    without,
)


def _variance(histogram: Histogram) -> float:
    mean = divide(histogram.sum, histogram.count)
    total = 0.0
    for bucket in histogram.buckets():
        middle = 0.0
        if bucket.lower > 0 or bucket.upper < 0:
            middle = math.sqrt(abs(bucket.lower)) * math.sqrt(abs(bucket.upper))
            middle = middle if bucket.lower > 0 else -middle
        total += bucket.count * (middle - mean) ** 2
    return divide(total, histogram.count)


HISTOGRAM_VALUES: dict[str, Callable[[Histogram], float]] = {
    "histogram_avg": lambda histogram: divide(histogram.sum, histogram.count),
    "histogram_count": lambda histogram: histogram.count,
    "histogram_sum": lambda histogram: histogram.sum,
    "histogram_stdvar": _variance,
    "histogram_stddev": lambda histogram: float(np.sqrt(_variance(histogram))),
}


def histogram_value(function: str, vector: Vector) -> Vector:
    """Return a number of each histogram; floats are left out."""
    values, present = np.zeros(vector.values.shape), vector.is_histogram
    if vector.histograms is not None:
        for index in zip(*np.nonzero(present), strict=True):
            values[index] = HISTOGRAM_VALUES[function](vector.histograms[index])
    return Vector(vector.labels, values, present, None, vector.nameless).nonempty()


def histogram_quantile(
    vector: Vector, quantile: Floats, positions: tuple[str, str], notes: Notes
) -> Vector:
    """Return a quantile of each histogram; `positions` are those of quantile and vector."""
    if vector.present.any():
        for number in np.unique(quantile[vector.present.any(axis=0)]):
            if not 0 <= number <= 1:
                notes.bad_quantile(format_float(number), positions[0])

    def classic(columns: Bools, bounds: Floats, counts: Floats) -> Floats:
        return classic_quantile(quantile[columns], bounds, counts)

    def native(column: int, histogram: Histogram, name: str) -> float:
        result = native_quantile(float(quantile[column]), histogram)
        if math.isnan(histogram.sum) and histogram.count and 0 <= quantile[column] <= 1:
            effect = "is NaN" if math.isnan(result) else "is skewed higher"
            notes.nan_observations("quantile", f", result {effect}", name, positions[1])
        return result

    return _of_histograms(vector, classic, native, positions[1], notes)


def histogram_fraction(
    vector: Vector, lower: Floats, upper: Floats, position: str, notes: Notes
) -> Vector:
    """Return the share of each histogram's observations between two values."""

    def classic(columns: Bools, bounds: Floats, counts: Floats) -> Floats:
        return classic_fraction(lower[columns], upper[columns], bounds, counts)

    def native(column: int, histogram: Histogram, name: str) -> float:
        if math.isnan(histogram.sum) and histogram.count:
            effect = ", which are excluded from all fractions"
            notes.nan_observations("fraction", effect, name, position)
        return native_fraction(float(lower[column]), float(upper[column]), histogram)

    return _of_histograms(vector, classic, native, position, notes)


def _of_histograms(
    vector: Vector,
    classic: Callable[[Bools, Floats, Floats], Floats],
    native: Callable[[int, Histogram, str], float],
    position: str,
    notes: Notes,
) -> Vector:
    """Return a function of classic and native histograms as one vector."""
    classics = classic_histograms(vector, position, notes)
    shape = (len(classics), vector.columns)
    values, present = np.zeros(shape), np.zeros(shape, bool)
    nameless = np.zeros(len(classics), bool)
    by_labels: dict[Labels, int] = {}
    names: list[Labels] = []
    for number, (labels, histogram) in enumerate(classics.items()):
        by_labels[labels] = number
        names.append(without(vector.labels[histogram.rows[0]], ("le",)))
        nameless[number] = vector.nameless[histogram.rows].any()
        for columns, bounds, counts, forced in cumulative_counts(vector, histogram):
            values[number, columns] = classic(columns, bounds, counts)
            present[number, columns] = True
            if forced:
                notes.forced_monotonicity(label(names[-1], NAME), position)
    of_classic = Vector(names, values, present, None, nameless)
    if vector.histograms is None:
        return of_classic.nonempty()
    native_mask = vector.is_histogram
    rows = np.flatnonzero(native_mask.any(axis=1))
    native_values = np.zeros((len(rows), vector.columns))
    native_present = native_mask[rows]
    for number, row in enumerate(rows):
        partner = by_labels.get(without(vector.labels[row], (NAME, "le")))
        if partner is not None and (present[partner] & native_mask[row]).any():
            both = present[partner] & native_mask[row]
            notes.mixed_histograms(label(vector.labels[row], NAME), position)
            of_classic.present[partner] &= ~both
            native_present[number] &= ~both
        for column in np.flatnonzero(native_present[number]):
            native_values[number, column] = native(
                int(column), vector.histograms[row, column], label(vector.labels[row], NAME)
            )
    native_names = [vector.labels[row] for row in rows]
    of_native = Vector(native_names, native_values, native_present, None, vector.nameless[rows])
    return concatenate([of_classic, of_native], vector.columns).nonempty()
