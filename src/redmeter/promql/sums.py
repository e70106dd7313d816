"""Compensated sums, and functions based on sums, over parts of an array.

All functions reduce the last axis to the cells where `mask` is true.
"""

import numpy as np

from redmeter.promql.values import Bools, Floats

#: Above this ratio of the sum of magnitudes to the magnitude of the sum, digits have been lost.
_CANCELLATION = 1e3


def compensated_sum(values: list[float]) -> float:
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
        sums[index] = compensated_sum(values[index][mask[index]].tolist())
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
    quantiles = below * (1 - weight) + above * weight
    quantiles = np.where(quantile < 0, -np.inf, np.where(quantile > 1, np.inf, quantiles))
    return np.where(np.isnan(quantile), np.nan, quantiles)
