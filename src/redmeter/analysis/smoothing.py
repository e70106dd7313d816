"""One pass over a series: what each method says of the next slices, and how it learns.

A state that takes value after value; see forecast.py for the idea and its sources. Values are on
the scale on which noise is even: roots of counts, of which a season is a factor, or what was
measured, to which a season is added.
"""

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import mul
from typing import Final

from redmeter.analysis.horizons import FEWEST, Horizon, Horizons
from redmeter.analysis.seasons import Season

#: Distances at which errors are noted, slices.
_STEPS: Final = (1, 5, 20)
#: Season of the methods that have a level: none, that of a place, that of its neighbours too; and
#: the share of an error that the level follows.
_NONE, _ALONE, _SMOOTH = range(3)
_LEVELS: Final = ((_NONE, 0.1), (_NONE, 0.4), (_ALONE, 0.2), (_SMOOTH, 0.08), (_SMOOTH, 0.4))
#: Of the trend: shares of an error that level and slope follow, and what is left of a slope.
_FOLLOWS, _TURNS, _DAMPED = 0.6, 0.2, 0.9
#: So many errors in a row that are out of the ordinary, on one side, are a step.
_RUN: Final = 3
#: The part of an error out of the ordinary up to which one is believed wholly in the first cycle.
_BELIEVED: Final = 0.6
#: Furthest that is asked for, slices.
_FURTHEST: Final = 512


class Smoothing:
    """What is known of a series after some of its values.

    Args:
        season: not learned yet.
        start: of the first slice, Unix seconds.
        precision: slice width, seconds.
        factors: whether a season multiplies.
        least: see Horizon.
        noise: see Horizon.
    """

    def __init__(
        self,
        season: Season,
        start: int,
        precision: int,
        *,
        factors: bool,
        least: tuple[float, float],
        noise: Callable[[float], float],
    ) -> None:
        self._season, self._start, self._precision = season, start, precision
        self._factors, self._noise = factors, noise
        levels = [each for each in _LEVELS if season.places or each[0] == _NONE]
        self._kinds, self._shares = [k for k, _ in levels], [share for _, share in levels]
        self._levels = [0.0] * len(levels)
        self._trend = self._slope = self._last = 0.0
        methods = len(levels) + (3 if season.lag else 2)
        self._horizons = Horizons([Horizon(s, methods, least, noise) for s in _STEPS])
        # As they were, and without what is out of the ordinary; forecasts by slice and distance.
        self._values: list[float | None] = []
        self._clean: list[float | None] = []
        self._said: list[list[tuple[list[float], float, bool]]] = [[] for _ in _STEPS]
        self._missing = self._row = self._known = 0
        self._slopes = [0.0, *accumulate(_DAMPED**step for step in range(1, _FURTHEST))]

    def expected(self, steps: int) -> tuple[float, float] | None:
        """Return what a coming slice will hold, and how far off that may be; None: nobody knows.

        Args:
            steps: 1 is the next slice.
        """
        away = min(steps + self._missing, _FURTHEST - 1)
        width = self._horizons.width(away)
        if width is None or self._known <= FEWEST:
            return None
        if steps == _STEPS[0] and not self._missing:
            middle = self._said[0][-1][1]  # it was said already
        else:
            middle = self._horizons.combine(self._forecasts(steps), away)
        return middle, width * self._noise(middle)

    def take(self, value: float | None) -> None:
        """Learn from the next value; None is a gap."""
        self._values.append(value)
        if value is None:
            self._clean.append(None)
            self._missing += 1
            self._trend += _DAMPED * self._slope
            self._slope *= _DAMPED
        elif not self._known:
            self._levels = [value] * len(self._levels)
            self._trend = self._last = value
            self._clean.append(value)
            self._known, self._missing = 1, 0
        else:
            self._judge(value)
            self._known, self._missing = self._known + 1, 0
        if self._season.places:
            before = self._season.known
            self._season.learn(self._clean, self._values, self._start)
            if self._season.known and not before:
                for one in self._horizons.all_of:
                    one.start_anew()
        self._say()

    def _say(self) -> None:
        """Note what is forecast of the slices whose errors will be noted."""
        unseasoned = bool(self._season.places) and not self._season.known
        for steps, said in zip(_STEPS, self._said, strict=True):
            if not self._known:
                said.append(([], 0.0, True))
                continue
            forecasts = self._forecasts(steps)
            combined = self._horizons.combine(forecasts, steps)
            said.append((forecasts, combined, unseasoned))

    def _judge(self, value: float) -> None:
        """Note how far off the forecasts were, and move the levels."""
        at = len(self._values) - 1
        combined, most = value, math.inf
        for one, said in zip(self._horizons.all_of, self._said, strict=True):
            made = at - one.steps
            if made < 0 or not said[made][0]:
                continue
            forecasts, middle, unseasoned = said[made]
            early = unseasoned and self._season.known
            if one.steps == 1:
                combined, most = middle, one.most(middle)
            one.judge(forecasts, middle, value, early=early)
        error = value - combined
        side = (error > most) - (error < -most)
        self._row = self._row + side if self._row * side > 0 else side
        if abs(self._row) >= _RUN:
            self._step(value)
            self._last = value
            return
        clean = combined + max(-most, min(most, error))
        self._clean.append(clean)
        if self._season.places and not self._season.known:
            # Errors are large before the day is known, so outliers are not far beyond them.
            self._last = combined + _believed(error, most)
            self._move(self._last, at)
        else:
            self._last = value
            self._move(clean, at)

    def _move(self, value: float, at: int) -> None:
        seasons = self._seasons(at)
        # The first values are the level's mean, however slow it is afterwards.
        first = 1 / (self._known + 1)
        for index, (kind, share) in enumerate(zip(self._kinds, self._shares, strict=True)):
            season, level = seasons[kind], self._levels[index]
            share = max(share, first) if self._known < 10 else share
            if not self._factors:
                level += share * (value - level - season)
            elif season > 1:
                level += share * (value / season - level)
            else:  # a place where little happens says little of the level
                level += share * season * (value - level * season)
            self._levels[index] = level
        ahead = self._trend + _DAMPED * self._slope
        error = value - ahead
        self._trend = ahead + _FOLLOWS * error
        self._slope = _DAMPED * self._slope + _TURNS * error

    def _step(self, value: float) -> None:
        """Make all levels anew: the last values were no outliers."""
        self._clean.append(value)
        self._row = 0
        newest = range(len(self._values) - _RUN, len(self._values))
        found = []
        for at in newest:
            self._clean[at] = known = self._values[at]
            if known is not None:
                found.append((known, self._seasons(at)))
        for index, kind in enumerate(self._kinds):
            if self._factors:
                total = sum(known * seasons[kind] for known, seasons in found)
                self._levels[index] = total / sum(seasons[kind] ** 2 for _, seasons in found)
            else:
                total = sum(known - seasons[kind] for known, seasons in found)
                self._levels[index] = total / len(found)
        self._trend, self._slope = sum(known for known, _ in found) / len(found), 0.0

    def _forecasts(self, steps: int) -> list[float]:
        """Return what each method says."""
        at = len(self._values) - 1 + steps
        seasons = self._seasons(at)
        each = [seasons[kind] for kind in self._kinds]
        if self._factors:
            found = list(map(mul, self._levels, each))
        else:
            found = [level + season for level, season in zip(self._levels, each, strict=True)]
        found.append(self._last)
        found.append(self._trend + self._slope * self._slopes[steps])
        if self._season.lag:
            found.append(self._ago(at))
        return found

    def _ago(self, at: int) -> float:
        """Return the newest value at the place of a slice, as far as it is usual; else the last."""
        lag = self._season.lag
        at -= lag * -(-(at - len(self._values) + 1) // lag)
        value = self._values[at] if at >= 0 else None
        return self._last if value is None else self._season.usual(at, value, self._start)

    def _seasons(self, at: int) -> Sequence[float]:
        season = self._season
        flat = 1.0 if self._factors else 0.0
        if not season.known:
            return flat, flat, flat
        place = season.place(self._start + at * self._precision)
        return flat, season.alone[place], season.smooth[place]


def _believed(error: float, most: float) -> float:
    """Return what of an error moves a level: all of a usual one, less and less of larger ones.

    Args:
        most: of such a size and beyond, nothing of it.
    """
    usual, size = _BELIEVED * most, abs(error)
    if size <= usual or math.isinf(most):
        return error
    if size >= most:
        return 0.0
    return math.copysign(usual * ((most - size) / (most - usual)), error)
