"""One distance ahead: which forecasts to trust there, and how far off they are.

The forecasts of several simple methods are combined, each weighted by its errors so far at that
distance: the best method for the next hour is not the best one for tomorrow. The errors of the
combination make the expected range, which holds LEVEL of the values.

Weights are recent mean squared errors to the power of -8 (Bates and Granger, "The combination of
forecasts", 1969, use -1; a higher power leaves the poor methods out). The width is a quantile of
the absolute errors with the correction of conformal prediction (Vovk, Gammerman and Shafer,
"Algorithmic Learning in a Random World", 2005): of n errors, the one at (n + 1) * LEVEL. While
there are few, it is blended with the width of a normal distribution with their median. A factor
corrects it: each miss widens the range, each hit narrows it a little, so that the part of misses
approaches _MISSES (Gibbs and Candes, "Adaptive conformal inference under distribution shift",
2021). Errors grow with the distance about as those of a random walk do, so a width between two
distances is read from a line over the root of the distance.

Bound: a width is at most _WIDEST robust standard deviations times the factor, which has a limit
of its own, and the errors of a burst are left out of it. A series with frequent bursts has more
than 5 % outside its range until the factor has grown.
"""

import math
from collections.abc import Callable, Sequence
from operator import mul
from typing import Final, NamedTuple

#: The part of values that the band is to hold.
LEVEL: Final = 0.95

#: A miss widens the range by this part, a hit narrows it by a twentieth of that, down to a limit.
_ADAPTS, _NARROWEST = 0.25, 0.9
#: The part of misses that the factor settles at: less than 1 - LEVEL, since it begins at 1.
_MISSES: Final = 0.045
#: Errors of forecasts further ahead overlap, so the newest of them are less different: a range is
#: wider by a part of one for each so many intervals ahead.
_OVERLAPS: Final = 100
#: Errors that a width is made of: the newest, and how many there must be.
_KEPT, FEWEST = 64, 8
#: From so many on the quantile stands alone.
_ENOUGH: Final = 40
#: A robust standard deviation is so many median absolute errors; of a normal distribution, so many
#: of them hold LEVEL; a width is so many at most.
_DEVIATION, _NORMAL, _WIDEST = 1.4826, 1.96, 3.5
#: How much of an older error is left with each newer one.
_FADING: Final = 0.97
_POWER: Final = 8
#: Errors beyond so many deviations are out of the ordinary; errors that tells a deviation.
_CLIP, _TOLD = 3.5, 4
#: Forecasts that a weight must be made of.
_TRIED: Final = 3


class Snapshot(NamedTuple):
    """A state of a horizon: how many errors it knew, its factor, and how it weighed methods."""

    early: int
    late: int
    factor: float
    losses: list[float]
    tried: int
    weights: list[float] | None


class Horizon:
    """One distance ahead.

    Args:
        steps: how many slices.
        methods: how many forecasts there are to combine.
        least: what a robust standard deviation is at least, and at least of the mean error.
        widest: how many times its misses may widen the range.
        noise: the expected size of an error at a forecast, up to a factor.
    """

    def __init__(
        self,
        steps: int,
        methods: int,
        least: tuple[float, float],
        widest: float,
        noise: Callable[[float], float],
    ) -> None:
        self.steps = steps
        self._losses, self._tried = [0.0] * methods, 0
        #: How much each method counts; None while nothing is known of them.
        self.weights: list[float] | None = None
        self._least, self._widest, self._noise = least, widest, noise
        # Errors of forecasts that were made before there was a season, and since.
        self._early: list[float] = []
        self._late: list[float] = []
        self._sorted: list[float] | None = None
        self._factor = 1.0

    def start_anew(self) -> None:
        """Forget the weights: the methods know more from here on."""
        self._losses, self._tried, self.weights = [0.0] * len(self._losses), 0, None

    def judge(
        self, forecasts: Sequence[float], combined: float, value: float, *, early: bool
    ) -> None:
        """Take in what became of forecasts.

        Args:
            early: whether they were made without the season that is known by now.
        """
        most = self.most(combined)
        error, width = abs(value - combined) / self._noise(combined), self.width
        if width is not None and not early:
            self._adapt(missed=error > width)
        self._sorted = None
        (self._early if early else self._late).append(error)
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
            parts = [(least / loss) ** _POWER if loss > least else 1.0 for loss in losses]
            whole = sum(parts)
            self.weights = [part / whole for part in parts]

    def _adapt(self, *, missed: bool) -> None:
        factor = self._factor * math.exp(_ADAPTS * (missed - _MISSES))
        self._factor = max(_NARROWEST, min(self._widest, factor))

    def snapshot(self) -> Snapshot:
        """Return what `rewind` needs."""
        errors = len(self._early), len(self._late)
        return Snapshot(*errors, self._factor, self._losses, self._tried, self.weights)

    def rewind(self, to: Snapshot, *, weights: bool) -> None:
        """Forget the errors since a snapshot, and count them as one miss.

        Args:
            weights: whether to forget how the methods were weighed, too.
        """
        del self._early[to.early :], self._late[to.late :]
        self._sorted = None
        self.count_one_miss(to)
        if weights:
            self._losses, self._tried, self.weights = to.losses, to.tried, to.weights

    def count_one_miss(self, since: Snapshot) -> None:
        """Let the misses since a snapshot have widened the range as one does."""
        self._factor = since.factor
        self._adapt(missed=True)

    def most(self, forecast: float) -> float:
        """Return how large an error may be and not be out of the ordinary."""
        if len(self.errors) < _TOLD:
            return math.inf
        return _CLIP * self.deviation * self._noise(forecast)

    @property
    def errors(self) -> list[float]:
        """The newest absolute errors, ascending."""
        if self._sorted is None:
            late = self._late
            used = late if len(late) >= FEWEST else self._early + late
            self._sorted = sorted(used[-_KEPT:])
        return self._sorted

    @property
    def deviation(self) -> float:
        """A robust standard deviation of the errors, of which there must be some."""
        errors = self.errors
        half = len(errors) // 2
        median = errors[half] if len(errors) % 2 else (errors[half - 1] + errors[half]) / 2
        absolute, relative = self._least
        deviation = max(_DEVIATION * median, absolute)
        return max(deviation, relative * sum(errors) / len(errors)) if relative else deviation

    @property
    def width(self) -> float | None:
        """Half of the band's width, where the noise is 1; None where too little is known."""
        errors = self.errors
        count = len(errors)
        if count < _TOLD:
            return None
        deviation = self.deviation
        found = errors[min(count, math.ceil((count + 1) * LEVEL)) - 1]
        found = min(found, _WIDEST * deviation)
        if count < _ENOUGH:
            part = max(0.0, (count - 10) / (_ENOUGH - 10))
            found = part * found + (1 - part) * deviation * (_NORMAL + 6 / count)
        return found * self._factor * (1 + self.steps / _OVERLAPS)


class Horizons:
    """Several distances, and what lies between."""

    def __init__(self, all_of: Sequence[Horizon]) -> None:
        self.all_of = all_of

    def combine(self, forecasts: Sequence[float], steps: int) -> float:
        """Return one forecast of many, by the weights of the distance or of the next known one."""
        weights = self._weights(steps)
        if weights is None:
            return sum(forecasts) / len(forecasts)
        return float(sum(map(mul, weights, forecasts)))

    def _weights(self, steps: int) -> list[float] | None:
        for one in self.all_of:
            if one.steps >= steps and one.weights is not None:
                return one.weights
        return next((one.weights for one in self.all_of[::-1] if one.weights is not None), None)

    def width(self, steps: int) -> float | None:
        """Return half of the band's width at a distance, at least that of the next slice."""
        before: tuple[int, float] | None = None
        for one in self.all_of:
            width = one.width
            if width is None:
                continue
            if before is None:
                before = one.steps, width
            width = max(width, before[1])
            if one.steps >= steps:
                first, here, last = map(math.sqrt, (before[0], steps, one.steps))
                part = (here - first) / (last - first or 1)
                return before[1] + (width - before[1]) * max(0.0, part)
            before = one.steps, width
        # Further than was ever tried.
        return None if before is None else before[1] * math.sqrt(steps / before[0])
