"""Forecast horizons: at each distance ahead, the weights of the methods and the range's width.

The forecasts of several simple methods are combined, each weighted by its past errors at that
distance: the best method for the next hour is not the best one for tomorrow. The errors of the
combination make the expected range, whose coverage is COVERAGE.

Weights are recent mean squared errors to the power of -8 (Bates and Granger, "The combination of
forecasts", 1969, use -1; a higher power drops the poor methods). The width is a quantile of
the absolute errors with the correction of conformal prediction (Vovk, Gammerman and Shafer,
"Algorithmic Learning in a Random World", 2005): of n errors, the one at (n + 1) * COVERAGE. While
errors are few, it is blended with the width of a normal distribution with the same median. An
adaptive factor corrects it: each miss widens the range, each hit narrows it a little, so that the
miss rate approaches _MISSES (Gibbs and Candes, "Adaptive conformal inference under distribution
shift", 2021). Errors grow with the distance about as those of a random walk do, so the width
between two distances is interpolated over the root of the distance.

Counts whose errors may be those of chance need no quantile of 64 errors, which is a fifth too
wide on average: their range is Poisson's, and no miss widens it. Between those that may be and
those that are not, both ranges are mixed.

Bound: a width is at most _WIDEST robust standard deviations times the factor, which is limited as
well; the errors of a burst do not count. In a series with frequent bursts, more than 5 % of the
values are outside the range until the factor has grown.
"""

import math
from collections.abc import Callable, Sequence
from operator import attrgetter, mul
from typing import Final, NamedTuple

from redmeter.analysis.forecasting.scales import ErrorExcess, Scale

#: Nominal coverage of the expected range.
COVERAGE: Final = 0.95

#: A miss widens the range by this rate, a hit narrows it by a twentieth of that, down to a limit.
_ADAPTS, _NARROWEST = 0.25, 0.9
#: The miss rate at which the factor settles: less than 1 - COVERAGE, since the factor starts at 1.
_MISSES: Final = 0.045
#: Forecasts further ahead overlap, so their recent errors are correlated: the range of one this
#: many intervals ahead is twice as wide.
_OVERLAPS: Final = 100
#: Number of recent errors that a width uses, and the minimum of them.
_KEPT, FEWEST = 64, 8
#: Number of errors from which the quantile is used alone.
_ENOUGH: Final = 40
#: Robust standard deviation in median absolute errors; half a normal distribution's range with
#: coverage COVERAGE, and the maximum width, in standard deviations.
_DEVIATION, _NORMAL, _WIDEST = 1.4826, 1.96, 3.5
#: Decay of older errors with each new one.
_FADING: Final = 0.97
_POWER: Final = 8
#: Deviations beyond which an error is an outlier; minimum number of errors for a deviation.
_CLIP, _MIN_ERRORS = 3.5, 4
#: Deviations by which errors exceed those of chance because expected counts are estimates; by how
#: much more or less they may be those of chance, and from where on they are not.
_ESTIMATED, _MAY_BE, _ARE_NOT = 1.0, 0.5, 2.5
#: Minimum number of forecasts for a weight.
_TRIED: Final = 3


def covering(ascending: Sequence[float]) -> float:
    """Return the value that COVERAGE of all values do not exceed, as conformal prediction does."""
    count = len(ascending)
    return ascending[min(count, math.ceil((count + 1) * COVERAGE)) - 1]


class _Errors:
    """The errors of a combination, the oldest first."""

    def __init__(self) -> None:
        #: Absolute, in units of noise.
        self.sizes: list[float] = []
        #: See ErrorExcess.
        self.excesses: list[float] = []
        self.variances: list[float] = []

    def __len__(self) -> int:
        return len(self.sizes)

    def add(self, size: float, excess: ErrorExcess) -> None:
        self.sizes.append(size)
        self.excesses.append(excess[0])
        self.variances.append(excess[1])

    def cut(self, count: int) -> None:
        """Forget all but the oldest ones."""
        del self.sizes[count:], self.excesses[count:], self.variances[count:]


_SIZES, _EXCESSES, _VARIANCES = map(attrgetter, ("sizes", "excesses", "variances"))


class _Spread(NamedTuple):
    """The spread of errors, in units of noise."""

    #: Robust standard deviation.
    deviation: float
    #: Half the width of the range, before the factor that adapts it.
    width: float
    #: How certainly the errors are not those of chance, from 0 to 1.
    unlike_chance: float


class Snapshot(NamedTuple):
    """A state of a horizon: its numbers of errors, its factor, and the methods' weights."""

    early: int
    late: int
    factor: float
    losses: list[float]
    tried: int
    weights: list[float] | None


class Horizon:
    """One distance ahead.

    Args:
        steps: the distance, in intervals.
        methods: number of forecasts to combine.
        scale: of the values.
    """

    def __init__(self, steps: int, methods: int, scale: Scale) -> None:
        self.steps, self._scale = steps, scale
        self._losses, self._tried = [0.0] * methods, 0
        #: Weight of each method; None until enough errors are known.
        self.weights: list[float] | None = None
        # Errors of forecasts made before the season was known, and since.
        self._early = _Errors()
        self._late = _Errors()
        self._known: _Spread | None = None
        self._factor = 1.0

    def reset_weights(self) -> None:
        """Reset the weights: the methods have learned the season."""
        self._losses, self._tried, self.weights = [0.0] * len(self._losses), 0, None

    def learn(
        self, forecasts: Sequence[float], combined: float, value: float, *, early: bool
    ) -> None:
        """Learn from the errors of forecasts.

        Args:
            forecasts: of each method.
            combined: their combination.
            value: the actual value.
            early: whether they were made without the season that is known by now.
        """
        most = self.most(combined)
        error, half = abs(value - combined), self.half_width(combined)
        if half is not None and not early:
            self._adapt(missed=error > half)
        self._known = None
        errors = self._early if early else self._late
        errors.add(error / self._scale.noise(combined), self._scale.excess(combined, value))
        if early:
            return
        self._tried += 1
        low, high = value - most, value + most
        losses = [
            loss * _FADING + ((value - each) ** 2 if low < each < high else most * most)
            for loss, each in zip(self._losses, forecasts, strict=True)
        ]
        self._losses = losses
        if self._tried >= _TRIED:
            least = max(min(losses), 1e-12 * max(losses), 1e-300)
            powers = [(least / loss) ** _POWER if loss > least else 1.0 for loss in losses]
            total = sum(powers)
            self.weights = [power / total for power in powers]

    def _adapt(self, *, missed: bool) -> None:
        spread = self._spread
        misses = spread.unlike_chance if missed and spread else 0.0
        factor = self._factor * math.exp(_ADAPTS * (misses - _MISSES))
        self._factor = max(_NARROWEST, min(self._scale.widest, factor))

    def snapshot(self) -> Snapshot:
        """Return the state that `rewind` restores."""
        errors = len(self._early), len(self._late)
        return Snapshot(*errors, self._factor, self._losses, self._tried, self.weights)

    def rewind(self, to: Snapshot, *, weights: bool) -> None:
        """Forget the errors since a snapshot, and count them as one miss.

        Args:
            to: the state to return to.
            weights: whether to restore the weights of the methods, too.
        """
        self._early.cut(to.early)
        self._late.cut(to.late)
        self._known = None
        self.count_one_miss(to)
        if weights:
            self._losses, self._tried, self.weights = to.losses, to.tried, to.weights

    def count_one_miss(self, since: Snapshot) -> None:
        """Let all misses since a snapshot widen the range like a single one."""
        self._factor = since.factor
        self._adapt(missed=True)

    def most(self, forecast: float) -> float:
        """Return the largest error at a forecast that is not an outlier."""
        spread = self._spread
        return spread.deviation * _CLIP * self._scale.noise(forecast) if spread else math.inf

    def _newest(self, of: Callable[[_Errors], list[float]]) -> list[float]:
        late = of(self._late)
        return (late if len(late) >= FEWEST else of(self._early) + late)[-_KEPT:]

    @property
    def _spread(self) -> _Spread | None:
        """The spread of the newest errors; None if they are too few."""
        if self._known is None:
            errors = sorted(self._newest(_SIZES))
            if len(errors) < _MIN_ERRORS:
                return None
            deviation = self._deviation(errors)
            self._known = _Spread(deviation, self._width(errors, deviation), self._unlike_chance())
        return self._known

    def _deviation(self, errors: Sequence[float]) -> float:
        """Return the robust standard deviation of ascending errors."""
        half = len(errors) // 2
        median = errors[half] if len(errors) % 2 else (errors[half - 1] + errors[half]) / 2
        absolute, relative = self._scale.least
        deviation = max(_DEVIATION * median, absolute)
        return max(deviation, relative * sum(errors) / len(errors)) if relative else deviation

    @staticmethod
    def _width(errors: Sequence[float], deviation: float) -> float:
        count = len(errors)
        width = min(covering(errors), _WIDEST * deviation)
        if count >= _ENOUGH:
            return width
        share = max(0.0, (count - 10) / (_ENOUGH - 10))
        return share * width + (1 - share) * deviation * (_NORMAL + 6 / count)

    def _unlike_chance(self) -> float:
        excess, variance = (sum(self._newest(of)) for of in (_EXCESSES, _VARIANCES))
        far = abs(excess / math.sqrt(variance or 1.0) - _ESTIMATED)
        return min(1.0, max(0.0, (far - _MAY_BE) / (_ARE_NOT - _MAY_BE)))

    def half_width(self, forecast: float) -> float | None:
        """Return half the width of the range of a forecast; None if errors are too few."""
        spread = self._spread
        if spread is None:
            return None
        other = spread.unlike_chance
        width = (1 - other) * self._scale.chance(forecast)
        if other:
            width += other * spread.width * self._factor * self._scale.noise(forecast)
        return width * (1 + self.steps / _OVERLAPS)


class Horizons:
    """Several distances ahead, with interpolation between them."""

    def __init__(self, horizons: Sequence[Horizon]) -> None:
        self.horizons = horizons

    def combine(self, forecasts: Sequence[float], steps: int) -> float:
        """Return the weighted mean of forecasts, by the weights of the nearest known distance."""
        weights = self._weights(steps)
        if weights is None:
            return sum(forecasts) / len(forecasts)
        return float(sum(map(mul, weights, forecasts)))

    def _weights(self, steps: int) -> list[float] | None:
        known = [each for each in self.horizons if each.weights is not None]
        further = (each.weights for each in known if each.steps >= steps)
        return next(further, known[-1].weights if known else None)

    def half_width(self, steps: int, forecast: float) -> float:
        """Return half the width of the range of a forecast; it never falls with the distance.

        There must be as many errors as a width needs.

        Args:
            steps: the distance, in intervals.
            forecast: the middle of the range.
        """
        before: tuple[int, float] | None = None
        for horizon in self.horizons:
            width = horizon.half_width(forecast)
            if width is None:
                continue
            if before is None:
                before = horizon.steps, width
            width = max(width, before[1])
            if horizon.steps >= steps:
                first, here, last = map(math.sqrt, (before[0], steps, horizon.steps))
                share = (here - first) / (last - first or 1)
                return before[1] + (width - before[1]) * max(0.0, share)
            before = horizon.steps, width
        # Further ahead than any horizon with errors.
        assert before is not None, "the nearest horizon has enough errors"
        return before[1] * math.sqrt(steps / before[0])
