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
_OTHERS: Final = 0.05
#: The least level that a prediction begins with.
_LEAST_LEVEL: Final = 0.05
#: A variance that stands for not knowing.
_UNKNOWN: Final = 100.0
#: Starts of a change that are tried within a window, about.
_STARTS: Final = 15
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


class Shift(NamedTuple):
    """An estimate of a change that begins within the window and lasts until its end."""

    #: By how much the counts rose, as a share of the predicted level.
    size: float
    #: Its variance if nothing changed, with chance.
    variance: float
    #: The expected events from its start on.
    expected: float


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
    squared = typical.correlation**2 * (typical.lasting / variance if variance else 0.0)
    # Intervals that last show less of a variance.
    weight = intervals * (larger / (1 + larger)) ** 2 * (1 - squared) / (1 + squared)
    shrunk = (weight * estimate + _TYPICAL * variance) / (weight + _TYPICAL)
    if not variance:
        return Noise(brief=shrunk)
    return typical.times(shrunk / variance)


def predict(track: Track, noise: Noise, windows: Windows) -> Prediction:
    """Return what the history of a group leads one to expect of the window after it."""
    return _State(track, noise).predict(windows.window)


def shifts(track: Track, within: Track, noise: Noise) -> list[Shift]:
    """Return estimates of changes that begin with the window, and at later starts within it.

    Args:
        track, within: the history, and the window after it.
    """
    state, window = _State(track, noise), len(within.counts)
    level = state.predict(window).level
    steps = [
        state.add(count, expected, within.others)
        for count, expected in zip(within.counts, within.expected, strict=True)
    ]
    estimates = []
    for start in range(0, window, -(-window // _STARTS)):
        if shift := _shift(steps[start:], noise.correlation):
            expected = level * within.others * sum(within.expected[start:])
            estimates.append(Shift(shift[0] / level, shift[1] / level**2, expected))
    return estimates


class _Step(NamedTuple):
    """An interval's contribution to the state."""

    #: By how much its count differs from the prediction, and the variance of that.
    error: float
    total: float
    #: How much of the error the mean and the lasting part take over.
    to_mean: float
    to_part: float


class _State:
    """The mean of a group and its lasting part, as estimated so far: a Kalman filter."""

    def __init__(self, track: Track, noise: Noise) -> None:
        self.noise = noise.times(1 + _UNCERTAIN / len(track.counts))
        self.mean = self.part = self.covariance = 0.0
        self.of_mean, self.of_part = _UNKNOWN, self.noise.lasting
        for count, expected in zip(track.counts, track.expected, strict=True):
            # Relative to the other groups.
            self._add(expected + (count - expected) / track.others, expected, track.others)

    def add(self, count: float, expected: float, others: float) -> _Step | None:
        """Add an interval; one without expected events changes nothing."""
        step = self._add(count, expected, others)
        return _Step(*step) if step else None

    def _add(
        self, count: float, expected: float, others: float
    ) -> tuple[float, float, float, float] | None:
        brief, lasting, correlation = self.noise
        self.part *= correlation
        self.covariance *= correlation
        self.of_part = lasting + (self.of_part - lasting) * correlation * correlation
        if expected <= 0:
            return None
        total = self.of_mean + 2 * self.covariance + self.of_part + brief + 1 / (expected * others)
        to_mean = (self.of_mean + self.covariance) / total
        to_part = (self.covariance + self.of_part) / total
        error = count / expected - 1 - self.mean - self.part
        self.mean += to_mean * error
        self.part += to_part * error
        self.of_mean -= to_mean * to_mean * total
        self.covariance -= to_mean * to_part * total
        self.of_part -= to_part * to_part * total
        return error, total, to_mean, to_part

    def predict(self, window: int) -> Prediction:
        brief, lasting, correlation = self.noise
        ahead = sum(correlation**lag for lag in range(1, window + 1)) / window
        level = max(1 + self.mean + self.part * ahead, _LEAST_LEVEL)
        variance = self.of_mean + 2 * ahead * self.covariance + ahead * ahead * self.of_part
        variance += brief / window + _new(lasting, correlation, window)
        return Prediction(level, variance / level**2)


def _shift(steps: Sequence[_Step | None], correlation: float) -> tuple[float, float] | None:
    """Estimate a change that begins with the first step, and the variance of the estimate.

    Generalized least squares: the errors that a change of 1 would have are those of the same
    filter. It counts fully at first; where bursts last, later intervals are taken for one of them.
    """
    mean = part = precision = product = 0.0
    for step in steps:
        part *= correlation
        if step is None:
            continue
        error = 1 - mean - part
        precision += error * error / step.total
        product += error * step.error / step.total
        mean += step.to_mean * error
        part += step.to_part * error
    return (product / precision, 1 / precision) if precision else None


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
