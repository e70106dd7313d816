"""Quantiles and fractions of classic histograms, whose buckets are series with a label `le`, and of
native ones."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from redmeter.promql.histogram import Bucket, Histogram
from redmeter.promql.notes import Notes
from redmeter.promql.values import NAME, Bools, Floats, Labels, Vector, label, without

#: Relative decrease of a cumulative count that is taken for a rounding error.
TOLERANCE = 1e-12


@dataclass(frozen=True)
class Classic:
    """A classic histogram: the rows of its buckets in ascending order of their bounds."""

    bounds: Floats
    rows: list[int]


def classic_histograms(vector: Vector, position: str, notes: Notes) -> dict[Labels, Classic]:
    """Return the classic histograms of a vector by their labels without name and `le`."""
    by_labels: dict[Labels, list[tuple[float, int]]] = {}
    floats = vector.is_float.any(axis=1)
    for row in np.flatnonzero(floats):
        labels = vector.labels[row]
        text = label(labels, "le")
        try:
            bound = float(text.replace("Inf", "inf"))
        except ValueError:
            bound = math.nan
        if math.isnan(bound):
            notes.bad_bucket(text, label(labels, NAME), position)
            continue
        by_labels.setdefault(without(labels, (NAME, "le")), []).append((bound, int(row)))
    classic = {}
    for labels, buckets in by_labels.items():
        buckets.sort()
        bounds = np.array([bound for bound, _ in buckets])
        classic[labels] = Classic(bounds, [row for _, row in buckets])
    return classic


def cumulative_counts(
    vector: Vector, histogram: Classic
) -> Iterator[tuple[Bools, Floats, Floats, bool]]:
    """Yield columns with the same buckets: which they are, bounds, counts, whether they decreased.

    Counts of equal bounds are added. Where counts decrease, they are set to the highest before.
    """
    present = vector.is_float[histogram.rows]
    patterns, inverse = np.unique(present, axis=1, return_inverse=True)
    for number in range(patterns.shape[1]):
        is_present = patterns[:, number]
        if not is_present.any():
            continue
        columns = np.ravel(inverse) == number
        bounds, first = np.unique(histogram.bounds[is_present], return_index=True)
        counts = vector.values[np.array(histogram.rows)[is_present]][:, columns]
        counts = np.add.reduceat(counts, first, axis=0)
        forced = False
        for bucket in range(1, len(counts)):
            before, now = counts[bucket - 1], counts[bucket]
            lower = now < before
            close = np.abs(now - before) <= TOLERANCE * (np.abs(now) + np.abs(before))
            forced = forced or bool((lower & ~close).any())
            counts[bucket] = np.where(lower | close, before, now)
        yield columns, bounds, counts, forced


def classic_quantile(quantile: Floats, bounds: Floats, counts: Floats) -> Floats:
    """Return quantiles of one classic histogram at several times, linear within a bucket."""
    columns = counts.shape[1]
    if len(bounds) < 2 or not math.isinf(bounds[-1]) or bounds[-1] < 0:
        result = np.full(columns, np.nan)
    else:
        rank = quantile * counts[-1]
        place = (counts[:-1] < rank).sum(axis=0)
        last = place == len(bounds) - 1
        place = np.minimum(place, len(bounds) - 2)
        every = np.arange(columns)
        before = np.maximum(place - 1, 0)
        start = np.where(place > 0, bounds[before], 0.0)
        below = np.where(place > 0, counts[before, every], 0.0)
        share = (rank - below) / (counts[place, every] - below)
        result = start + (bounds[place] - start) * share
        result = np.where((place == 0) & (bounds[0] <= 0), bounds[0], result)
        result = np.where(last, bounds[-2], result)
        result = np.where(counts[-1] == 0, np.nan, result)
    result = np.where(quantile < 0, -np.inf, np.where(quantile > 1, np.inf, result))
    return np.where(np.isnan(quantile), np.nan, result)


def classic_fraction(lower: Floats, upper: Floats, bounds: Floats, counts: Floats) -> Floats:
    """Return the shares of observations between two values of one classic histogram."""
    if not math.isinf(bounds[-1]) or bounds[-1] < 0:
        return np.full(counts.shape[1], np.nan)

    def rank(value: float, column: int) -> float:
        if value <= (0.0 if bounds[0] > 0 else -math.inf):
            return 0.0
        place = int(np.searchsorted(bounds, value, side="left"))
        if place >= len(bounds) or math.isinf(value):
            return float(counts[-1, column])
        start = float(bounds[place - 1]) if place else min(0.0, float(bounds[0]))
        below = float(counts[place - 1, column]) if place else 0.0
        width = float(bounds[place]) - start
        if math.isinf(width):
            return below
        share = (value - start) / width if width else 1.0
        return below + (float(counts[place, column]) - below) * share

    result = np.full(counts.shape[1], np.nan)
    for column in range(counts.shape[1]):
        low, high, total = lower[column], upper[column], counts[-1, column]
        if not total or math.isnan(total) or math.isnan(low) or math.isnan(high):
            continue
        result[column] = 0.0
        if low < high:
            result[column] = (rank(high, column) - rank(low, column)) / total
    return result


def _interpolated(bucket: Bucket, share: float) -> float:
    """Return the value below which a share of a bucket's observations is expected."""
    lower, upper = bucket.lower, bucket.upper
    if lower <= 0 <= upper:
        return lower + (upper - lower) * share
    log_lower, log_upper = math.log2(abs(lower)), math.log2(abs(upper))
    if lower > 0:
        return float(2.0 ** (log_lower + (log_upper - log_lower) * share))
    return float(-(2.0 ** (log_upper + (log_lower - log_upper) * (1 - share))))


def _narrowed(bucket: Bucket, histogram: Histogram) -> Bucket:
    """Return a bucket, the zero bucket only on the side that has observations."""
    if bucket.lower < 0 < bucket.upper:
        positive, negative = any(histogram.positive.values()), any(histogram.negative.values())
        if positive and not negative:
            return Bucket(0.0, bucket.upper, bucket.count)
        if negative and not positive:
            return Bucket(bucket.lower, 0.0, bucket.count)
    return bucket


def native_quantile(quantile: float, histogram: Histogram) -> float:
    """Return a quantile of a native histogram, exponential within a bucket."""
    if quantile < 0:
        return -math.inf
    if quantile > 1:
        return math.inf
    if not histogram.count or math.isnan(quantile):
        return math.nan
    backward = not math.isnan(histogram.sum) and quantile >= 0.5
    rank = (1 - quantile if backward else quantile) * histogram.count
    buckets = list(histogram.buckets())
    passed, bucket = 0.0, Bucket(0.0, 0.0, 0.0)
    for bucket in reversed(buckets) if backward else buckets:
        passed += bucket.count
        if passed >= rank:
            break
    else:
        if math.isnan(histogram.sum) or not buckets:
            return math.nan
        return bucket.lower if backward else bucket.upper
    bucket = _narrowed(bucket, histogram)
    rank = passed - rank if backward else rank - (passed - bucket.count)
    return _interpolated(bucket, rank / bucket.count)


def _share_below(value: float, bucket: Bucket) -> float:
    """Return the share of a bucket's observations expected below a value inside of it."""
    lower, upper = bucket.lower, bucket.upper
    if lower <= 0 <= upper:
        return (value - lower) / (upper - lower)
    log_lower, log_upper = math.log2(abs(lower)), math.log2(abs(upper))
    return (math.log2(abs(value)) - log_lower) / (log_upper - log_lower)


def native_fraction(lower: float, upper: float, histogram: Histogram) -> float:
    """Return the share of a native histogram's observations between two values."""
    if not histogram.count or math.isnan(lower) or math.isnan(upper):
        return math.nan
    if lower >= upper:
        return 0.0

    def rank(value: float) -> float:
        below = 0.0
        for bucket in histogram.buckets():
            bucket = _narrowed(bucket, histogram)
            if value >= bucket.upper:
                below += bucket.count
            elif value > bucket.lower:
                below += bucket.count * _share_below(value, bucket)
        return below

    return (rank(upper) - rank(lower)) / histogram.count
