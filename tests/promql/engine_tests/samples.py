"""Semantics of Prometheus over raw samples.

A series has the value of its newest sample for a lookback of 5 minutes, until a staleness marker
ends it. Windows are open on the left: they hold the samples later than their start.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from redmeter.promql.errors import Limits
from redmeter.promql.nodes import Matcher
from redmeter.promql.range_functions import apply
from redmeter.promql.semantics import RangeCall, SampledSeries
from redmeter.promql.values import (
    Bools,
    Floats,
    Objects,
    Times,
    Vector,
    empty_vector,
    only_where,
)

#: How long a sample is the value of its series, in milliseconds.
LOOKBACK = 300_000

#: The NaN that marks the end of a series.
STALE = np.uint64(0x7FF0000000000002).view(np.float64)


def is_stale(values: Floats) -> Bools:
    """Return which values are staleness markers."""
    stale: Bools = values.view(np.uint64) == np.uint64(0x7FF0000000000002)
    return stale


class SampleSource(Protocol):
    """Where samples come from."""

    def read(self, matchers: Sequence[Matcher], after: int, until: int) -> list[SampledSeries]:
        """Return the series that fulfill all matchers.

        At least the samples later than `after` and no later than `until` are needed, in
        milliseconds; staleness markers are among them.
        """


class Samples:
    """Reads samples from a source as Prometheus does."""

    def __init__(self, source: SampleSource, lookback: int = LOOKBACK) -> None:
        """Read from a source; `lookback` is in milliseconds."""
        self._source = source
        self._lookback = lookback

    def instant(
        self, matchers: Sequence[Matcher], times: Times, limits: Limits
    ) -> tuple[Vector, Floats]:
        """Return the newest sample of each series at each time, and its time in seconds."""
        first, last = int(times.min()) - self._lookback, int(times.max())
        samples = self._source.read(matchers, first, last)
        limits.check_series(len(samples))
        limits.check_cells(len(samples), len(times))
        if not samples:
            return empty_vector(len(times)), np.zeros((0, len(times)))
        shape = (len(samples), len(times))
        values, stamps, present = np.zeros(shape), np.zeros(shape), np.zeros(shape, bool)
        histograms: Objects | None = None
        for row, series in enumerate(samples):
            if not len(series.times):
                continue
            newest = np.searchsorted(series.times, times, side="right") - 1
            known = (newest >= 0) & (series.times[newest] > times - self._lookback)
            values[row] = series.values[newest]
            stamps[row] = series.times[newest] / 1000
            present[row] = known & ~is_stale(values[row])
            if series.histograms is not None:
                if histograms is None:
                    histograms = np.full(shape, None, dtype=object)
                histograms[row] = only_where(present[row], series.histograms[newest])
        labels = [series.labels for series in samples]
        vector = Vector(labels, values, present, histograms)
        kept = present.any(axis=1)
        return vector.rows(kept), stamps[kept]

    def apply(self, call: RangeCall, matchers: Sequence[Matcher]) -> Vector:
        """Return a range function of each series."""
        after, until = int(call.ends.min()) - call.window, int(call.ends.max())
        return apply(call, self.select(matchers, after, until, call.limits))

    def select(
        self, matchers: Sequence[Matcher], after: int, until: int, limits: Limits
    ) -> list[SampledSeries]:
        """Return the samples in a range, without staleness markers."""
        samples = self._source.read(matchers, after, until)
        limits.check_series(len(samples))
        selected = [series.between(after, until) for series in samples]
        return [series.chosen(~is_stale(series.values)) for series in selected if len(series.times)]
