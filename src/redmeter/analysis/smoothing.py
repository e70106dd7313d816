"""One pass over a series: the forecast of each method, how it learns, and bursts.

A state that takes value after value; forecast.py has the idea and its sources. Values are on the
scale on which noise is even: roots of counts, of which a season is a factor, or the values of a
gauge, to which a season is added.

A burst is up to LONGEST_BURST intervals out of the ordinary. With the first of them the state is
copied; after _RUN on one side the levels are set to them, as a step may last. Until that is decided
the range covers both levels. If the values return, the copy is restored and the errors of the burst
are forgotten; if they do not, the copy is.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import mul
from typing import Final

from redmeter.analysis.horizons import FEWEST, Horizon, Horizons, Snapshot
from redmeter.analysis.seasons import Season

#: Distances at which errors are noted, slices.
_STEPS: Final = (1, 5, 20)
#: Season of the methods that have a level: none, that of a place, that of its neighbours too; and
#: the share of an error that the level follows.
_NONE, _ALONE, _SMOOTH = range(3)
_LEVELS: Final = ((_NONE, 0.1), (_NONE, 0.4), (_ALONE, 0.2), (_SMOOTH, 0.08), (_SMOOTH, 0.4))
#: Of the trend: shares of an error that level and slope follow, and what is left of a slope.
_FOLLOWS, _TURNS, _DAMPED = 0.6, 0.2, 0.9
#: Intervals in a row that are out of the ordinary, on one side, after which the levels are set to
#: them; and intervals after which they are no burst any more, but a step that lasts.
_RUN: Final = 3
LONGEST_BURST: Final = 5
#: Half of a gauge's range is at least this part of the standard deviation of its values.
_LEAST_WIDTH: Final = 0.05
#: The part of an error out of the ordinary up to which one is believed wholly in the first cycle.
_BELIEVED: Final = 0.6
#: Furthest that is asked for, slices.
_FURTHEST: Final = 512


@dataclass(slots=True)
class _State:
    """Everything that is learned from the values, except for the season and the errors."""

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
        """Return the standard deviation of the values."""
        mean = self.total / self.count
        return math.sqrt(max(0.0, self.squares / self.count - mean * mean))


@dataclass(slots=True)
class _Burst:
    """Intervals out of the ordinary that may be a burst, or the beginning of a step."""

    #: Index of the first one, the state before it, and that of each horizon.
    first: int
    state: _State
    horizons: list[Snapshot]
    #: Forecasts of its intervals and of the next one that know nothing of it.
    middles: list[float]
    #: Whether the levels were set to it.
    stepped: bool = False


class Smoothing:
    """What is known of a series after some of its values.

    Args:
        season: not learned yet.
        start: of the first slice, Unix seconds.
        precision: slice width, seconds.
        factors: whether a season multiplies.
        least: see Horizon.
        widest: see Horizon.
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
        widest: float,
        noise: Callable[[float], float],
    ) -> None:
        self._season, self._start, self._precision = season, start, precision
        self._factors, self._noise = factors, noise
        levels = [each for each in _LEVELS if season.places or each[0] == _NONE]
        self._kinds, self._shares = [k for k, _ in levels], [share for _, share in levels]
        self._state = _State([0.0] * len(levels))
        self._burst: _Burst | None = None
        #: Errors of the values of bursts that were forgotten, by index.
        self._forgotten: dict[int, float] = {}
        methods = len(levels) + (3 if season.lag else 2)
        self._horizons = Horizons([Horizon(s, methods, least, widest, noise) for s in _STEPS])
        # As they were, and without what is out of the ordinary; forecasts by slice and distance.
        self._values: list[float | None] = []
        self._clean: list[float | None] = []
        self._said: list[list[tuple[list[float], float, bool]]] = [[] for _ in _STEPS]
        self._missing = self._row = self._known = 0
        self._slopes = [0.0, *accumulate(_DAMPED**step for step in range(1, _FURTHEST))]

    def expected(self, steps: int) -> tuple[float, float, float] | None:
        """Return the expected range of a coming interval, and its middle; None: nobody knows.

        While a burst may be a step that lasts, the range covers both levels.

        Args:
            steps: 1 is the next interval.
        """
        away = min(steps + self._missing, _FURTHEST - 1)
        width = self._horizons.width(away)
        if width is None or self._known <= FEWEST:
            return None
        if steps == _STEPS[0] and not self._missing:
            middle = self._said[0][-1][1]  # it was said already
        else:
            middle = self._combine(steps, away, self._state)
        half = self._half(width, middle, self._state)
        low, high = middle - half, middle + half
        if self._burst is not None:
            before = self._combine(steps, away, self._burst.state)
            half = self._half(width, before, self._burst.state)
            low, high = min(low, before - half), max(high, before + half)
        return low, middle, high

    def _half(self, width: float, middle: float, state: _State) -> float:
        """Return half the width of a range; the range of a quiet gauge does not collapse."""
        least = 0.0 if self._factors else _LEAST_WIDTH * state.deviation()
        return max(width * self._noise(middle), least)

    def _combine(self, steps: int, away: int, state: _State) -> float:
        return self._horizons.combine(self._forecasts(steps, state), away)

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
            forecasts = self._forecasts(steps, self._state)
            combined = self._horizons.combine(forecasts, steps)
            said.append((forecasts, combined, unseasoned))
        if self._burst is not None:
            self._burst.middles.append(self._combine(1, 1, self._burst.state))

    def _judge(self, value: float) -> None:
        """Note how far off the forecasts were, and move the levels."""
        at = len(self._values) - 1
        nearest = self._horizons.all_of[0]
        combined = self._said[0][at - 1][1]
        burst = self._burst
        if burst is not None and at - burst.first > LONGEST_BURST:
            for one, snapshot in zip(self._horizons.all_of, burst.horizons, strict=True):
                one.count_one_miss(snapshot)
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
            horizons = [each.snapshot() for each in self._horizons.all_of]
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
            # Errors are large before the day is known, so outliers are not far beyond them.
            state.last = combined + _believed(error, most)
            self._move(state.last, at)
        else:
            state.last = value
            self._move(clean, at)

    def _is_over(self, burst: _Burst, value: float) -> bool:
        """Return whether a value is back where it was before a burst."""
        known = [each for each in self._values[burst.first : -1] if each is not None]
        there, back = sum(known) / len(known), burst.middles[-1]
        most = self._horizons.all_of[0].most(back)
        return abs(value - back) <= min(most, abs(value - there))

    def _end_burst(self, burst: _Burst, at: int) -> None:
        """Return to the state before a burst: it was no step."""
        self._state, self._burst, self._row = burst.state, None, 0
        for one, said, snapshot in zip(
            self._horizons.all_of, self._said, burst.horizons, strict=True
        ):
            one.rewind(snapshot, weights=burst.stepped)
            for made in range(burst.first, at):
                said[made] = [], 0.0, True
        if burst.stepped:
            for index, middle in zip(range(burst.first, at), burst.middles, strict=False):
                value = self._values[index]
                if value is not None:
                    self._forget(index, value, middle)

    def _forget(self, index: int, value: float, middle: float) -> None:
        """Let the season not see a value of a burst, unless the last cycle had one there, too."""
        most, error = self._horizons.all_of[0].most(middle), value - middle
        again = error * self._forgotten.get(index - self._season.lag, -error) > 0
        self._forgotten[index] = error
        if again:
            self._clean[index] = value
        else:
            self._values[index] = self._clean[index] = middle + max(-most, min(most, error))

    def _note_errors(self, value: float, at: int) -> None:
        """Let each distance learn from its forecast of a value."""
        for one, said in zip(self._horizons.all_of, self._said, strict=True):
            made = at - one.steps
            if made < 0 or not said[made][0]:
                continue
            forecasts, middle, unseasoned = said[made]
            early = unseasoned and self._season.known
            one.judge(forecasts, middle, value, early=early)

    def _move(self, value: float, at: int) -> None:
        seasons, state = self._seasons(at), self._state
        # The first values are the level's mean, however slow it is afterwards.
        first = 1 / (self._known + 1)
        for index, (kind, share) in enumerate(zip(self._kinds, self._shares, strict=True)):
            season, level = seasons[kind], state.levels[index]
            share = max(share, first) if self._known < 10 else share
            if not self._factors:
                level += share * (value - level - season)
            elif season > 1:
                level += share * (value / season - level)
            else:  # a place where little happens says little of the level
                level += share * season * (value - level * season)
            state.levels[index] = level
        ahead = state.trend + _DAMPED * state.slope
        error = value - ahead
        state.trend = ahead + _FOLLOWS * error
        state.slope = _DAMPED * state.slope + _TURNS * error

    def _step(self, value: float) -> None:
        """Make all levels anew: the last values were no outliers."""
        self._clean.append(value)
        self._row = 0
        if self._burst is not None:
            self._burst.stepped = True
        newest = range(len(self._values) - _RUN, len(self._values))
        found = []
        for at in newest:
            self._clean[at] = known = self._values[at]
            if known is not None:
                found.append((known, self._seasons(at)))
        for index, kind in enumerate(self._kinds):
            if self._factors:
                total = sum(known * seasons[kind] for known, seasons in found)
                self._state.levels[index] = total / sum(seasons[kind] ** 2 for _, seasons in found)
            else:
                total = sum(known - seasons[kind] for known, seasons in found)
                self._state.levels[index] = total / len(found)
        self._state.trend, self._state.slope = sum(known for known, _ in found) / len(found), 0.0

    def _forecasts(self, steps: int, state: _State) -> list[float]:
        """Return the forecast of each method."""
        at = len(self._values) - 1 + steps
        seasons = self._seasons(at)
        each = [seasons[kind] for kind in self._kinds]
        if self._factors:
            found = list(map(mul, state.levels, each))
        else:
            found = [level + season for level, season in zip(state.levels, each, strict=True)]
        found.append(state.last)
        found.append(state.trend + state.slope * self._slopes[steps])
        if self._season.lag:
            found.append(self._ago(at, state.last))
        return found

    def _ago(self, at: int, last: float) -> float:
        """Return the newest value at the place of a slice, as far as it is usual; else the last."""
        lag = self._season.lag
        at -= lag * -(-(at - len(self._values) + 1) // lag)
        value = self._values[at] if at >= 0 else None
        return last if value is None else self._season.usual(at, value, self._start)

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
