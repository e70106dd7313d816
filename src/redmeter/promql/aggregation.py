"""Aggregations: from many rows to one for each group, or to some rows of each."""

from collections.abc import Callable

import numpy as np

from redmeter.promql.errors import Note, Notes, QueryError
from redmeter.promql.functions import check_label_name
from redmeter.promql.histogram import NativeHistogram, mean_of, resets_conflict, total_of
from redmeter.promql.nodes import Aggregation
from redmeter.promql.values import (
    METRIC_NAME,
    Bools,
    Floats,
    LabelSet,
    Objects,
    Vector,
    format_float,
    only,
    with_label,
    without,
)

# --- Sums ----------------------------------------------------------------------------------------

# Sums that keep small values next to large ones, and means and spreads, over parts of an array.
# All functions reduce the last axis to the cells where `mask` is true.

#: Above this ratio of the sum of magnitudes to the magnitude of the sum, digits have been lost.
_CANCELLATION = 1e3


def _compensated_sum(values: list[float]) -> float:
    """Return a sum by Kahan's and Neumaier's method."""
    total = compensation = 0.0
    for value in values:
        following = total + value
        if np.isinf(following):
            compensation = 0.0
        elif abs(total) >= abs(value):
            compensation += (total - following) + value
        else:
            compensation += (value - following) + total
        total = following
    return total if np.isinf(total) else total + compensation


def masked_sum(values: Floats, mask: Bools) -> Floats:
    """Return sums; where large values cancel each other, by compensated summation."""
    chosen = np.where(mask, values, 0.0)
    sums: Floats = chosen.sum(axis=-1)
    magnitudes = np.abs(chosen).sum(axis=-1)
    lossy = (magnitudes > _CANCELLATION * np.abs(sums)) & np.isfinite(sums)
    for index in zip(*np.nonzero(lossy), strict=True):
        sums[index] = _compensated_sum(values[index][mask[index]].tolist())
    return sums


def masked_mean(values: Floats, mask: Bools) -> Floats:
    """Return means; also where the sum is larger than a float can be."""
    count = mask.sum(axis=-1)
    sums = masked_sum(values, mask)
    means: Floats = sums / count
    overflow = ~np.isfinite(sums) & ~(mask & ~np.isfinite(values)).any(axis=-1)
    if overflow.any():
        scaled = values[overflow] / count[overflow][..., None]
        means[overflow] = masked_sum(scaled, mask[overflow])
    return means


def masked_variance(values: Floats, mask: Bools) -> Floats:
    """Return population variances: exactly 0 where all values are equal."""
    means = masked_mean(values, mask)
    squares = np.where(mask, (values - means[..., None]) ** 2, 0.0)
    variances: Floats = squares.sum(axis=-1) / mask.sum(axis=-1)
    low = np.where(mask, values, np.inf).min(axis=-1, initial=np.inf)
    high = np.where(mask, values, -np.inf).max(axis=-1, initial=-np.inf)
    variances[(low == high) & np.isfinite(low)] = 0.0
    return variances


def masked_quantile(values: Floats, mask: Bools, quantile: Floats) -> Floats:
    """Return quantiles by linear interpolation; NaN is the smallest value."""
    count = mask.sum(axis=-1)
    missing = (mask & np.isnan(values)).sum(axis=-1)
    ordered = np.sort(np.where(mask, values, np.nan), axis=-1)  # NaN last
    rank = quantile * (count - 1)
    low = np.clip(np.floor(rank), 0, np.maximum(count - 1, 0))
    low = np.where(np.isnan(low), 0, low).astype(np.int64)
    high = np.minimum(low + 1, np.maximum(count - 1, 0))

    def at(index: np.ndarray) -> Floats:
        place = np.clip(index - missing, 0, max(values.shape[-1] - 1, 0))
        taken = np.take_along_axis(ordered, place[..., None], axis=-1)[..., 0]
        return np.where(index < missing, np.nan, taken)

    weight = rank - np.floor(rank)
    below, above = at(low), at(high)
    return beyond_range(quantile, below * (1 - weight) + above * weight)


def beyond_range(quantile: Floats, results: Floats) -> Floats:
    """Return results of quantiles, infinite where one is not 0 to 1, NaN where it is NaN."""
    results = np.where(quantile < 0, -np.inf, np.where(quantile > 1, np.inf, results))
    return np.where(np.isnan(quantile), np.nan, results)


REDUCE: dict[str, Callable[[Floats, Bools], Floats]] = {
    "sum": masked_sum,
    "avg": masked_mean,
    "min": lambda values, mask: np.fmin.reduce(np.where(mask, values, np.nan), axis=-1),
    "max": lambda values, mask: np.fmax.reduce(np.where(mask, values, np.nan), axis=-1),
    "stdvar": masked_variance,
    "stddev": lambda values, mask: np.sqrt(masked_variance(values, mask)),
}


def groups(vector: Vector, node: Aggregation) -> dict[LabelSet, list[int]]:
    """Return the rows of each group; without certain labels is also without the metric name."""
    rows: dict[LabelSet, list[int]] = {}
    removed = {*node.labels, METRIC_NAME}
    for row, labels in enumerate(vector.labels):
        key = without(labels, removed) if node.without else only(labels, node.labels)
        rows.setdefault(key, []).append(row)
    return rows


def aggregate(vector: Vector, node: Aggregation, parameter: Floats | str, notes: Notes) -> Vector:
    """Return an aggregation of a vector; `parameter` is "" where there is none."""
    if node.operator in ("topk", "bottomk"):
        assert not isinstance(parameter, str)
        return _extremes(vector, node, parameter, notes)
    if node.operator == "count_values":
        assert isinstance(parameter, str)
        return _count_values(vector, node, parameter)
    members = groups(vector, node)
    shape = (len(members), vector.columns)
    values, present = np.zeros(shape), np.zeros(shape, bool)
    nameless = np.zeros(len(members), bool)
    histograms: Objects | None = None
    is_float, is_histogram = vector.is_float, vector.is_histogram
    for group, rows in enumerate(members.values()):
        nameless[group] = vector.nameless[rows].any()
        floats, native = is_float[rows], is_histogram[rows]
        if node.operator in ("count", "group"):
            count = (floats | native).sum(axis=0)
            present[group] = count > 0
            values[group] = count if node.operator == "count" else 1
            continue
        present[group] = floats.any(axis=0)
        if present[group].any():
            cells, mask = vector.values[rows].T, floats.T
            if node.operator == "quantile":
                assert not isinstance(parameter, str)
                values[group] = masked_quantile(cells, mask, parameter)
            else:
                values[group] = REDUCE[node.operator](cells, mask)
        if not native.any():
            continue
        if node.operator not in ("sum", "avg"):
            notes.add(Note.IGNORED_IN_AGGREGATION, node.expression.position, node.operator)
            continue
        mixed = present[group] & native.any(axis=0)
        if mixed.any():
            notes.add(Note.MIXED_AGGREGATION, node.expression.position)
        if histograms is None:
            histograms = np.full(shape, None, dtype=object)
        assert vector.histograms is not None
        mean = node.operator == "avg"
        combined = native & ~mixed
        histograms[group] = _total(vector.histograms[rows], combined, mean=mean)
        columns = np.flatnonzero(combined.any(axis=0))
        if any(resets_conflict(vector.histograms[rows][combined[:, c], c]) for c in columns):
            notes.add(Note.CONFLICTING_RESETS, node.expression.position, "aggregation")
        present[group] = (present[group] | native.any(axis=0)) & ~mixed
    if node.operator == "quantile":
        assert not isinstance(parameter, str)
        assert node.parameter is not None
        check_quantiles(parameter, node.parameter.position, notes)
    return Vector(list(members), values, present, histograms, nameless).nonempty()


def check_quantiles(quantiles: Floats, position: str, notes: Notes) -> None:
    """Warn about quantiles outside of 0 to 1."""
    for quantile in np.unique(quantiles):
        if not 0 <= quantile <= 1:
            notes.add(Note.BAD_QUANTILE, position, format_float(quantile))


def _total(histograms: Objects, mask: Bools, *, mean: bool) -> Objects:
    result = np.full(histograms.shape[1], None, dtype=object)
    for column in np.flatnonzero(mask.any(axis=0)):
        chosen = histograms[mask[:, column], column]
        result[column] = (mean_of if mean else total_of)(chosen)
    return result


def _extremes(vector: Vector, node: Aggregation, parameter: Floats, notes: Notes) -> Vector:
    """Return the rows with the highest or lowest values of each group."""
    if np.isnan(parameter).any():
        raise QueryError("Parameter value is NaN")
    if (np.abs(parameter) >= 2**63).any():
        raise QueryError(f"Scalar value {format_float(parameter[0])} overflows int64")
    floats = vector.is_float
    if (vector.present & ~floats).any():
        notes.add(Note.IGNORED_IN_AGGREGATION, node.expression.position, node.operator)
    order: list[int] = []
    chosen = np.zeros_like(vector.present)
    for rows in groups(vector, node).values():
        numbers = np.array(rows)
        values, mask = vector.values[numbers], floats[numbers]
        missing = np.isnan(values)
        keys = np.where(missing, 0, -values if node.operator == "topk" else values)
        ranked = np.lexsort((keys, missing, ~mask), axis=0)
        rank = np.empty_like(ranked)
        np.put_along_axis(rank, ranked, np.arange(len(rows))[:, None], axis=0)
        chosen[numbers] = mask & (rank < np.trunc(parameter))
        order += numbers[ranked[:, 0]].tolist() if vector.columns == 1 else rows
    return vector.masked(chosen).rows(order).nonempty()


def _count_values(vector: Vector, node: Aggregation, name: str) -> Vector:
    """Return a row for each distinct value, with the number of samples that have it."""
    check_label_name(name)
    totals: dict[LabelSet, Floats] = {}
    for labels, rows in groups(vector, node).items():
        counts: dict[str, Floats] = {}
        for row in rows:
            for column in np.flatnonzero(vector.present[row]):
                sample: float | NativeHistogram = vector.values[row, column]
                if vector.histograms is not None and vector.histograms[row, column] is not None:
                    sample = vector.histograms[row, column]
                text = str(sample) if isinstance(sample, NativeHistogram) else format_float(sample)
                counts.setdefault(text, np.zeros(vector.columns))[column] += 1
        # Groups that differ by this label alone become one.
        for text, numbers in counts.items():
            counted = with_label(labels, name, text)
            totals[counted] = totals.get(counted, 0) + numbers
    values = np.array(list(totals.values())).reshape(len(totals), vector.columns)
    return Vector(list(totals), values, values > 0)
