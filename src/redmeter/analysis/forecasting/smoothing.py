"""One pass over a series: the forecast of each method, how it learns, and bursts.

The state is updated with one value at a time; see forecast.py for the approach and its sources.
Values are on a scale with constant noise: square roots of counts, with a multiplicative season, or
the values of a gauge, with an additive one.

A burst is a run of up to LONGEST_BURST outliers. The first one copies the state; _RUN in a row on
one side reset the levels to them, because they may be a lasting step. Until that is decided, the
range covers both levels. If the values return, the copy is restored and the errors of the burst are
forgotten; otherwise the copy is dropped.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import mul
from typing import Final

from redmeter.analysis.forecasting.horizons import FEWEST, Horizon, Horizons, Snapshot
from redmeter.analysis.forecasting.scales import Scale
from redmeter.analysis.forecasting.seasons import Season

#: Distances at which errors are recorded, in intervals.
_STEPS: Final = (1, 5, 20)
#: Methods with a level: the season (none, that of the place, that smoothed over its neighbors) and
#: the smoothing factor of the level.
_NONE, _ALONE, _SMOOTH = range(3)
_LEVELS: Final = ((_NONE, 0.1), (_NONE, 0.4), (_ALONE, 0.2), (_SMOOTH, 0.08), (_SMOOTH, 0.4))
#: The damped trend: smoothing factors of its level and its slope, and its damping factor.
_FOLLOWS, _TURNS, _DAMPED = 0.6, 0.2, 0.9
#: Outliers in a row, on one side, that reset the levels; and the length beyond which a burst is a
#: lasting step.
_RUN: Final = 3
LONGEST_BURST: Final = 5
#: Minimum half-width of a gauge's range, as a part of the standard deviation of its values.
_LEAST_WIDTH: Final = 0.05
#: In the first cycle, errors up to this part of an outlier's count in full.
_FULL_WEIGHT: Final = 0.6
#: Maximum distance ahead, in intervals.
_FURTHEST: Final = 512


@dataclass(slots=True)
class _State:
    """Everything learned from the values, except for the season and the errors."""

    levels: list[float]
    trend: float = 0.0
    slope: float = 0.0
    last: float = 0.0
    # Number, sum and sum of squares of the values.
    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    def copy(self) -> "_State":
        return replace(self, levels=[*self.levels])

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.squares += value * value

    def deviation(self) -> float:
        mean = self.total / self.count
        return math.sqrt(max(0.0, self.squares / self.count - mean * mean))


@dataclass(slots=True)
class _Burst:
    """Outliers that may be a burst or the beginning of a step."""

    #: Index of the first one, the state before it, and the state of each horizon.
    first: int
    state: _State
    horizons: list[Snapshot]
    #: Forecasts of its intervals and of the next one, made from the values before it.
    middles: list[float]
    #: Whether the levels were reset to it.
    stepped: bool = False


class Smoothing:
    """The state of all methods, learned from a series one value at a time.

    Args:
        season: a new one, which this class teaches.
        scale: of the values.
        factors: whether the season is multiplicative.
    """

    def __init__(self, season: Season, scale: Scale, *, factors: bool) -> None:
        self._season, self._scale, self._factors = season, scale, factors
        levels = [each for each in _LEVELS if season.places or each[0] == _NONE]
        self._kinds, self._shares = [k for k, _ in levels], [share for _, share in levels]
        self._state = _State([0.0] * len(levels))
        self._burst: _Burst | None = None
        #: Errors of the values of forgotten bursts, by index.
        self._forgotten: dict[int, float] = {}
        methods = len(levels) + (3 if season.lag else 2)
        self._horizons = Horizons([Horizon(steps, methods, scale) for steps in _STEPS])
        # The values, the same without outliers, and the forecasts made by distance and interval:
        # those of the methods, their combination, and whether they lack a season.
        self._values: list[float | None] = []
        self._clean: list[float | None] = []
        self._made: list[list[tuple[list[float], float, bool]]] = [[] for _ in _STEPS]
        self._missing = self._row = self._known = 0
        self._slopes = [0.0, *accumulate(_DAMPED**step for step in range(1, _FURTHEST))]

    def expected(self, steps: int) -> tuple[float, float, float] | None:
        """Return the lowest, middle and highest expected value; None while too little is known.

        While a burst may be a lasting step, the range covers both levels.

        Args:
            steps: distance of the interval; 1 is the next one.
        """
        distance = min(steps + self._missing, _FURTHEST - 1)
        if self._known <= FEWEST:
            return None
        if steps == _STEPS[0] and not self._missing:
            middle = self._made[0][-1][1]
        else:
            middle = self._combine(steps, distance, self._state)
        low, high = self._range(distance, middle, self._state)
        if self._burst is not None:
            before = self._combine(steps, distance, self._burst.state)
            lowest, highest = self._range(distance, before, self._burst.state)
            low, high = min(low, lowest), max(high, highest)
        return low, middle, high

    def _range(self, distance: int, middle: float, state: _State) -> tuple[float, float]:
        """Return the limits of a range; that of a quiet gauge does not shrink to nothing."""
        half, center = self._horizons.half_width(distance, middle), self._scale.center(middle)
        if not self._factors:
            half = max(half, _LEAST_WIDTH * state.deviation())
        return center - half, center + half

    def _combine(self, steps: int, distance: int, state: _State) -> float:
        return self._horizons.combine(self._forecasts(steps, state), distance)

    def take(self, value: float | None) -> None:
        """Learn from the next value; None is a gap."""
        self._values.append(value)
        state = self._state
        if value is None:
            self._clean.append(None)
            self._missing += 1
            state.trend += _DAMPED * state.slope
            state.slope *= _DAMPED
        elif not self._known:
            self._state = _State([value] * len(state.levels), trend=value, last=value)
            self._state.add(value)
            self._clean.append(value)
            self._known, self._missing = 1, 0
        else:
            self._judge(value)
            self._known, self._missing = self._known + 1, 0
        if self._season.places:
            before = self._season.known
            self._season.learn(self._clean, self._values)
            if self._season.known and not before:
                for horizon in self._horizons.horizons:
                    horizon.reset_weights()
        self._record_forecasts()

    def _record_forecasts(self) -> None:
        unseasoned = bool(self._season.places) and not self._season.known
        for steps, made in zip(_STEPS, self._made, strict=True):
            if not self._known:
                made.append(([], 0.0, True))
                continue
            forecasts = self._forecasts(steps, self._state)
            combined = self._horizons.combine(forecasts, steps)
            made.append((forecasts, combined, unseasoned))
        if self._burst is not None:
            self._burst.middles.append(self._combine(1, 1, self._burst.state))

    def _judge(self, value: float) -> None:
        """Record the errors of the forecasts of a value, and update the levels."""
        at = len(self._values) - 1
        nearest = self._horizons.horizons[0]
        combined = self._made[0][at - 1][1]
        burst = self._burst
        if burst is not None and at - burst.first > LONGEST_BURST:
            for horizon, snapshot in zip(self._horizons.horizons, burst.horizons, strict=True):
                horizon.count_one_miss(snapshot)
            self._burst = None
        elif burst is not None and self._is_over(burst, value):
            combined = burst.middles[-1]
            self._end_burst(burst, at)
        most = nearest.most(combined)
        error = value - combined
        side = (error > most) - (error < -most)
        self._row = self._row + side if self._row * side > 0 else side
        if not side and self._burst is not None and not self._burst.stepped:
            self._burst = None
        if side and self._burst is None:
            horizons = [each.snapshot() for each in self._horizons.horizons]
            self._burst = _Burst(at, self._state.copy(), horizons, [combined])
        self._note_errors(value, at)
        state = self._state
        if abs(self._row) >= _RUN:
            self._step(value)
            state.last = value
            state.add(value)
            return
        clean = combined + max(-most, min(most, error))
        self._clean.append(clean)
        state.add(clean)
        if self._season.places and not self._season.known:
            # Errors are large before the season is known, so outliers are not far beyond them.
            state.last = combined + _limited(error, most)
            self._move(state.last, at)
        else:
            state.last = value
            self._move(clean, at)

    def _is_over(self, burst: _Burst, value: float) -> bool:
        known = [each for each in self._values[burst.first : -1] if each is not None]
        level, before = sum(known) / len(known), burst.middles[-1]
        most = self._horizons.horizons[0].most(before)
        return abs(value - before) <= min(most, abs(value - level))

    def _end_burst(self, burst: _Burst, at: int) -> None:
        self._state, self._burst, self._row = burst.state, None, 0
        for horizon, made, snapshot in zip(
            self._horizons.horizons, self._made, burst.horizons, strict=True
        ):
            horizon.rewind(snapshot, weights=burst.stepped)
            for index in range(burst.first, at):
                made[index] = [], 0.0, True
        if burst.stepped:
            for index, middle in zip(range(burst.first, at), burst.middles, strict=False):
                value = self._values[index]
                if value is not None:
                    self._forget(index, value, middle)

    def _forget(self, index: int, value: float, middle: float) -> None:
        """Hide a value of a burst from the season, unless the last cycle had one there, too."""
        most, error = self._horizons.horizons[0].most(middle), value - middle
        recurs = error * self._forgotten.get(self._season.before(index)[0], -error) > 0
        self._forgotten[index] = error
        if recurs:
            self._clean[index] = value
        else:
            self._values[index] = self._clean[index] = middle + max(-most, min(most, error))

    def _note_errors(self, value: float, at: int) -> None:
        for horizon, made in zip(self._horizons.horizons, self._made, strict=True):
            index = at - horizon.steps
            if index < 0 or not made[index][0]:
                continue
            forecasts, middle, unseasoned = made[index]
            early = unseasoned and self._season.known
            horizon.learn(forecasts, middle, value, early=early)

    def _move(self, value: float, at: int) -> None:
        seasons, state = self._seasons(at), self._state
        # The level begins as the mean of the first values, however slow it is afterwards.
        first = 1 / (self._known + 1)
        for index, (kind, share) in enumerate(zip(self._kinds, self._shares, strict=True)):
            season, level = seasons[kind], state.levels[index]
            share = max(share, first) if self._known < 10 else share
            if not self._factors:
                level += share * (value - level - season)
            elif season > 1:
                level += share * (value / season - level)
            else:  # a place with low counts carries little information about the level
                level += share * season * (value - level * season)
            state.levels[index] = level
        ahead = state.trend + _DAMPED * state.slope
        error = value - ahead
        state.trend = ahead + _FOLLOWS * error
        state.slope = _DAMPED * state.slope + _TURNS * error

    def _step(self, value: float) -> None:
        """Reset all levels to the last values: so many in a row are not outliers."""
        self._clean.append(value)
        self._row = 0
        if self._burst is not None:
            self._burst.stepped = True
        newest = range(len(self._values) - _RUN, len(self._values))
        samples = []
        for at in newest:
            self._clean[at] = known = self._values[at]
            if known is not None:
                samples.append((known, self._seasons(at)))
        for index, kind in enumerate(self._kinds):
            if self._factors:
                total = sum(known * seasons[kind] for known, seasons in samples)
                squares = sum(seasons[kind] ** 2 for _, seasons in samples)
                self._state.levels[index] = total / squares
            else:
                total = sum(known - seasons[kind] for known, seasons in samples)
                self._state.levels[index] = total / len(samples)
        mean = sum(known for known, _ in samples) / len(samples)
        self._state.trend, self._state.slope = mean, 0.0

    def _forecasts(self, steps: int, state: _State) -> list[float]:
        at = len(self._values) - 1 + steps
        seasons = self._seasons(at)
        each = [seasons[kind] for kind in self._kinds]
        if self._factors:
            forecasts = list(map(mul, state.levels, each))
        else:
            forecasts = [level + season for level, season in zip(state.levels, each, strict=True)]
        forecasts.append(state.last)
        forecasts.append(state.trend + state.slope * self._slopes[steps])
        if self._season.lag:
            forecasts.append(self._seasonal_naive(at, state.last))
        return forecasts

    def _seasonal_naive(self, at: int, last: float) -> float:
        """Return the value one cycle before an interval, without outliers; the last in a gap."""
        season, later = self._season, 0.0
        while at >= len(self._values):
            at, part = season.before(at)
            later += part
        value = self._values[at] if at >= 0 else None
        if value is None:
            return last
        usual, other = season.usual(at, value), at + (1 if later > 0 else -1)
        if not later or not 0 <= other < len(self._values):
            return usual
        value = self._values[other]
        return usual if value is None else usual + abs(later) * (season.usual(other, value) - usual)

    def _seasons(self, at: int) -> Sequence[float]:
        season = self._season
        flat = 1.0 if self._factors else 0.0
        if not season.known:
            return flat, flat, flat
        return flat, *season.effects(at)


def _limited(error: float, most: float) -> float:
    """Return the part of an error that moves a level: all of a usual one, less of larger ones.

    Args:
        error: value minus forecast.
        most: the size from which an error has no effect.
    """
    usual, size = _FULL_WEIGHT * most, abs(error)
    if size <= usual or math.isinf(most):
        return error
    if size >= most:
        return 0.0
    return math.copysign(usual * ((most - size) / (most - usual)), error)
