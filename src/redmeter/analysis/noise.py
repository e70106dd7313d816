"""Noise of counts: how much the counts of a group vary, and the expected range of the next window.

Problem: the events of a route come in bursts, and a burst may last for minutes. How much its count
differs from the usual one by chance depends on how large that count is, on the bursts and on how
long they last. A group alone shows too little of it: it has 60 intervals.

Idea: the count of an interval is its expected count times 1 plus a deviation, plus chance
(Poisson). The deviation has a brief part, without memory, and a lasting part, a first-order
autoregressive process.

    fit         by moments: the autocovariances of relative errors at lags 0 to 4, less the part of
                chance, of all groups of a label together. They are corrected for the mean, which is
                estimated from the same intervals
    shrinkage   the variance of a group is its own and that of its label, weighted by how precisely
                its own is known: a group with few events varies as the others do
    prediction  a Kalman filter over the intervals gives the level at which the window begins, and
                the variance of the mean over the window. A route whose traffic has been high for
                some minutes is expected to come back slowly
    reference   such a variance is that of a number of events: 1 / variance. A test compares the
                window's events with this number

Bound: groups times intervals; some 0.1 ms for each group of 60 intervals.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

#: Lags of the autocorrelation from which bursts are fitted.
_LAGS: Final = 4
#: The strongest correlation of adjacent intervals, and the weakest one.
_STRONGEST, _WEAKEST = 0.95, 0.1
#: Standard errors that an autocovariance has at least if bursts last.
_SURE: Final = 2.0
#: The weight of the variance of a label, in intervals.
_TYPICAL: Final = 20.0
#: The relative variance by which the groups of a label are weighted.
_WEIGHT: Final = 0.1
#: The least share of all others in a comparison with them.
_OTHERS: Final = 0.2
#: The least level that a prediction begins with.
_LEAST_LEVEL: Final = 0.05
#: A variance that stands for not knowing.
_UNKNOWN: Final = 100.0
#: After how many intervals the uncertainty of a variance has halved.
_UNCERTAIN: Final = 10.0


class Windows(NamedTuple):
    """The lengths of the windows that are compared, in intervals."""

    window: int
    baseline: int
    #: Whether the history, and the baseline in it, ends where the window begins.
    adjacent: bool = True

    @property
    def scale(self) -> float:
        """The length of the window by that of the baseline."""
        return self.window / self.baseline


class Noise(NamedTuple):
    """Relative variances of an interval, beyond chance."""

    #: The variances of the part without memory, and of the part that lasts.
    brief: float = 0.0
    lasting: float = 0.0
    #: The correlation of the lasting part in adjacent intervals.
    correlation: float = 0.0

    def of_mean(self, intervals: int) -> float:
        """Return the variance of the mean of some intervals."""
        products = sum((1 - lag / intervals) * self.correlation**lag for lag in range(1, intervals))
        return (self.brief + self.lasting * (1 + 2 * products)) / intervals

    def times(self, factor: float) -> "Noise":
        """Return noise of a larger or smaller variance."""
        return Noise(self.brief * factor, self.lasting * factor, self.correlation)


class Track(NamedTuple):
    """The counts of a group by interval, and their expected values."""

    counts: Sequence[float]
    expected: Sequence[float]
    #: The share of all events that other groups have: errors are relative to all events.
    others: float = 1.0


class Prediction(NamedTuple):
    """What the history leads one to expect."""

    #: By which factor the window is higher than the mean of the history.
    level: float
    #: The relative variance of that, without the window's own chance.
    variance: float


def fit(tracks: Sequence[Track]) -> list[Noise]:
    """Return the noise of each group of a label; all have the same intervals."""
    moments = [_moments(track) for track in tracks]
    weights = [(m.mean / (1 + _WEIGHT * m.mean)) ** 2 for m in moments]
    whole = sum(weights)
    if not whole:
        return [Noise()] * len(tracks)
    pooled = [
        sum(w * m.products[lag] for w, m in zip(weights, moments, strict=True)) / whole
        for lag in range(_LAGS + 1)
    ]
    intervals = len(tracks[0].counts)
    # The standard error of a weighted mean of autocovariances without any correlation.
    errors = sum((w * m.variance) ** 2 for w, m in zip(weights, moments, strict=True)) / intervals
    typical = _shape(pooled, errors**0.5 / whole, intervals)
    variance = typical.brief + typical.lasting
    return [_shrunk(typical, variance, m, intervals) for m in moments]


class _Moments(NamedTuple):
    """The relative errors of a group."""

    #: Events of an interval.
    mean: float
    #: Their variance with chance, and their autocovariances without.
    variance: float
    products: Sequence[float]


def _moments(track: Track) -> _Moments:
    counts, expected, others = track
    intervals = len(counts)
    mean = sum(expected) / intervals
    squares = sum([one * one for one in expected])
    if not squares:
        return _Moments(0.0, 0.0, [0.0] * (_LAGS + 1))
    errors = [(count - one) / others for count, one in zip(counts, expected, strict=True)]
    variance = sum([error * error for error in errors]) / squares
    chance = sum(expected) / others / squares * (1 - 1 / intervals)
    products = [variance - chance]
    for lag in range(1, _LAGS + 1):
        above = sum([one * other for one, other in zip(errors, errors[lag:], strict=False)])
        below = sum([one * other for one, other in zip(expected, expected[lag:], strict=False)])
        products.append(above / below if below else 0.0)
    return _Moments(mean, variance, products)


def _shape(products: Sequence[float], error: float, intervals: int) -> Noise:
    """Fit autocovariances; those of errors from a mean that was fitted are too low."""
    noise = _fitted(products, error)
    for _ in range(3):
        missing = noise.of_mean(intervals)
        noise = _fitted([product + missing for product in products], error)
    return noise


def _fitted(products: Sequence[float], error: float) -> Noise:
    variance = max(products[0], 0.0)
    first, second = sum(products[1:_LAGS]), sum(products[2 : _LAGS + 1])
    if first <= _SURE * error * (_LAGS - 1) ** 0.5:
        return Noise(brief=variance)
    correlation = min(max(second / first, 0.0), _STRONGEST)
    if correlation < _WEAKEST:
        return Noise(brief=variance)
    powers = sum(correlation**lag for lag in range(1, _LAGS))
    lasting = min(first / powers, variance)
    return Noise(variance - lasting, lasting, correlation)


def _shrunk(typical: Noise, variance: float, group: _Moments, intervals: int) -> Noise:
    estimate = max(group.products[0] + typical.of_mean(intervals), 0.0)
    larger = group.mean * max(estimate, variance)
    weight = intervals * (larger / (1 + larger)) ** 2
    shrunk = (weight * estimate + _TYPICAL * variance) / (weight + _TYPICAL)
    if not variance:
        return Noise(brief=shrunk)
    return typical.times(shrunk / variance)


def predict(track: Track, noise: Noise, windows: Windows) -> Prediction:
    """Return what the history of a group leads one to expect of the window after it."""
    brief, lasting, correlation = noise.times(1 + _UNCERTAIN / len(track.counts))
    # The mean and the lasting part, their variances and covariance.
    mean = part = covariance = 0.0
    of_mean, of_part = _UNKNOWN, lasting
    for count, expected in zip(track.counts, track.expected, strict=True):
        part *= correlation
        covariance *= correlation
        of_part = lasting + (of_part - lasting) * correlation * correlation
        if expected <= 0:
            continue
        total = of_mean + 2 * covariance + of_part + brief + 1 / (expected * track.others)
        error = (count / expected - 1 - mean - part) / total
        to_mean, to_part = of_mean + covariance, covariance + of_part
        mean += to_mean * error
        part += to_part * error
        of_mean -= to_mean * to_mean / total
        covariance -= to_mean * to_part / total
        of_part -= to_part * to_part / total
    window = windows.window
    ahead = sum(correlation**lag for lag in range(1, window + 1)) / window
    level = max(1 + mean + part * ahead, _LEAST_LEVEL)
    variance = of_mean + 2 * ahead * covariance + ahead * ahead * of_part + brief / window
    return Prediction(level, (variance + _new(lasting, correlation, window)) / level**2)


def _new(lasting: float, correlation: float, window: int) -> float:
    """Return the variance of the window's mean by what begins within it."""
    if not lasting:
        return 0.0
    sums = ((1 - correlation**left) / (1 - correlation) for left in range(1, window + 1))
    return lasting * (1 - correlation**2) * sum(one * one for one in sums) / window**2


def others_of(part: float) -> float:
    """Return the share of all other groups, of a group with a share of events."""
    return max(1 - part, _OTHERS)


def sums(histories: Iterable[Sequence[float]]) -> list[float]:
    """Return the sums of several histories by interval."""
    return [float(sum(counts)) for counts in zip(*histories, strict=True)]
