"""Functions of range vectors that hold native histograms, one window at a time."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from redmeter.promql.errors import Notes
from redmeter.promql.histogram import Histogram
from redmeter.promql.values import Floats, Objects, Times

# Extending the difference of two samples to the window that they were read from.


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


@dataclass(frozen=True)
class Window:
    """The samples of one window, of which at least one is a histogram.

    Attributes:
        times: of the samples, in milliseconds.
        values: of the samples that are floats.
        histograms: a Histogram, or None for a float.
        start, end: of the window in milliseconds.
        name: the metric's name.
        position: where the range is in the query.
        notes: where warnings go.
    """

    times: Times
    values: Floats
    histograms: Objects
    start: int
    end: int
    name: str
    position: str
    notes: Notes


Result = float | Histogram | None


def _only_histograms(window: Window) -> list[Histogram] | None:
    """Return the histograms, or None, with a warning, if there are floats among them."""
    histograms = [histogram for histogram in window.histograms if histogram is not None]
    if len(histograms) < len(window.histograms):
        window.notes.mixed_samples(window.name, window.position)
        return None
    return histograms


def _difference(window: Window, *, counter: bool) -> Histogram | None:
    histograms = _only_histograms(window)
    if histograms is None or len(histograms) < 2:
        return None
    gauges = [histogram.hint == "gauge" for histogram in histograms]
    if counter and any(gauges):
        window.notes.no_counter_histogram(window.name, window.position)
    if not counter and not (gauges[0] and gauges[-1]):
        window.notes.no_gauge_histogram(window.name, window.position)
    schema = min(histogram.schema for histogram in histograms)
    result = histograms[-1].at_schema(schema) - histograms[0]
    if counter:
        for before, after in itertools.pairwise(histograms):
            if after.is_reset_after(before):
                result = result + before
    return result


def _extrapolated(window: Window, *, counter: bool, per_second: bool) -> Histogram | None:
    result = _difference(window, counter=counter)
    if result is None:
        return None
    first = window.histograms[0]
    numbers = (window.times[0], window.times[-1], window.start, window.end, len(window.times))
    with np.errstate(all="ignore"):
        factor = extrapolation(
            tuple(np.array(number) for number in numbers),  # type: ignore[arg-type]
            (np.array(first.count), np.array(result.count)) if counter else None,
        )
    seconds = (window.end - window.start) / 1000 if per_second else 1.0
    return result.scaled(float(factor) / seconds).as_gauge()


def _instantaneous(window: Window, *, rate: bool) -> Result:
    if len(window.times) < 2:
        return None
    previous, last = window.histograms[-2:]
    seconds = float(window.times[-1] - window.times[-2]) / 1000
    if previous is None and last is None:
        before, after = (float(value) for value in window.values[-2:])
        change = after if rate and after < before else after - before
        return change / seconds if rate else change
    if previous is None or last is None:
        window.notes.mixed_samples(window.name, window.position)
        return None
    gauges = [histogram.hint == "gauge" for histogram in (previous, last)]
    if rate and any(gauges):
        window.notes.no_counter_histogram(window.name, window.position)
    if not rate and not all(gauges):
        window.notes.no_gauge_histogram(window.name, window.position)
    difference: Histogram = last - previous
    if rate and last.is_reset_after(previous):
        difference = last
    return difference.divided(seconds).as_gauge() if rate else difference.as_gauge()


def _total(window: Window) -> Histogram | None:
    histograms = _only_histograms(window)
    if histograms is None:
        return None
    total = histograms[0]
    for histogram in histograms[1:]:
        total = total + histogram
    return total


def _mean(window: Window) -> Histogram | None:
    total = _total(window)
    return None if total is None else total.divided(len(window.times))


def _count_pairs(
    window: Window,
    floats: Callable[[float, float], bool],
    histograms: Callable[[Histogram, Histogram], bool],
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


def _last(window: Window) -> Result:
    histogram: Histogram | None = window.histograms[-1]
    return float(window.values[-1]) if histogram is None else histogram


HISTOGRAM_FUNCTIONS: dict[str, Callable[[Window], Result]] = {
    "rate": lambda window: _extrapolated(window, counter=True, per_second=True),
    "increase": lambda window: _extrapolated(window, counter=True, per_second=False),
    "delta": lambda window: _extrapolated(window, counter=False, per_second=False),
    "irate": lambda window: _instantaneous(window, rate=True),
    "idelta": lambda window: _instantaneous(window, rate=False),
    "sum_over_time": _total,
    "avg_over_time": _mean,
    "count_over_time": lambda window: float(len(window.times)),
    "present_over_time": lambda window: 1.0,  # noqa: ARG005
    "last_over_time": _last,
    "changes": lambda w: _count_pairs(w, _differ, lambda old, new: not old.same(new)),
    "resets": lambda w: _count_pairs(
        w, lambda old, new: new < old, lambda old, new: new.is_reset_after(old)
    ),
}
