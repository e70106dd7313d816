"""Extending the difference of two samples to the window that they were read from."""

import numpy as np

from redmeter.promql.values import Floats, Times


def extrapolation(
    edges: tuple[Times, Times, Times, Times, Times], zero: tuple[Floats, Floats] | None
) -> Floats:
    """Return the factor that extends a difference between samples to the whole window.

    A side is extended by half a sample interval at most.

    Args:
        edges: first and last sample time, start and end of the window, number of samples.
        zero: the first value and the increase of a counter, which is not extended below zero.
    """
    first_time, last_time, starts, ends, count = edges
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
