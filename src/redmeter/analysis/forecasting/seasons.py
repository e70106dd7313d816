"""The season of a series, by time of day or day of the week, learned one value at a time.

As in classical decomposition, each place in the cycle (an hour of the day, a day of the week) has a
seasonal index: the mean of how far its values are from the mean of the cycle around them, as a
factor for counts and as a difference for gauges. An index is shrunk toward no effect, which counts
like one more cycle, and forgets everything older than a dozen cycles.

One day cannot distinguish an outlier from a daily event. So an outlying hour is learned as if it
were like its neighbors, until the same hour of another day is an outlier on the same side.

Intervals that do not divide the day, such as five hours, share the place of their first hour and
learn from the places around it.

The time of day is local: when the clocks change, the places move along. If they move by a part of a
place, such as half an hour, an interval has a mix of two indexes. Days are those of UTC, whose day
of the week no change affects.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from redmeter.clock import UTC, Zone
from redmeter.stored.keys import HOUR

DAY: Final = 86400

#: Number of cycles that an index remembers.
_MEMORY: Final = 12
#: Intervals that a cycle needs for neighbors to be similar; number of neighbors on each side.
_MIN_CYCLE, _NEIGHBORS = 12, 2
#: Distance from the neighbors, in median steps, beyond which a value is an outlier.
_OUTLIER: Final = 3.0


class _Effect(NamedTuple):
    """Seasonal effect of one interval: the actual one, that without an outlier, and its excess."""

    actual: float
    usual: float
    excess: float


class Season:
    """The seasonal indexes of a series.

    Args:
        precision: width of an interval, seconds.
        factors: whether an index multiplies a level; otherwise it is added.
        start: of the first interval, Unix seconds.
        zone: whose time of day it is.
    """

    def __init__(self, precision: int, *, factors: bool, start: int = 0, zone: Zone = UTC) -> None:
        self._precision, self._factors = precision, factors
        self._start, self._zone = start, zone if precision < DAY else UTC
        self._flat = 1.0 if factors else 0.0
        #: Number of places; 0 if the series has no cycle to learn.
        self.places = 0
        #: Approximate length of a cycle, and the distance to the same place, in intervals.
        self.cycle = self.lag = 0
        self._place, radius = DAY, 0
        if precision == DAY:
            self.places = self.cycle = self.lag = 7
        elif HOUR <= precision <= DAY // 3:
            self._place = max(HOUR, math.gcd(precision, DAY))
            self.places, self.cycle = DAY // self._place, round(DAY / precision)
            self.lag = math.lcm(precision, DAY) // precision
            radius = max(1, precision // self._place // 2)
        self._around = [(at, radius + 1 - abs(at)) for at in range(-radius, radius + 1)]
        self._means, self._seen = [0.0] * self.places, [0] * self.places
        self._effects: list[list[_Effect]] = [[] for _ in range(self.places)]
        #: Replacements of outliers, by index: values like those of their neighbors.
        self._replacements: dict[int, float] = {}
        #: Index of each place: its own, and smoothed over the neighboring places.
        self.alone, self.smooth = [self._flat] * self.places, [self._flat] * self.places
        self._learned = 0
        #: For each interval: its place, the other one that it touches, and the share of that.
        self._located: list[tuple[int, int, float]] = []
        #: Results of before().
        self._before: dict[int, tuple[int, float]] = {}

    @property
    def known(self) -> bool:
        """Whether a cycle has been seen."""
        return self._learned > 0

    def place(self, at: int) -> int:
        """Return the place in the cycle of an interval, by its index."""
        return self._locate(at)[0]

    def before(self, at: int) -> tuple[int, float]:
        """Return the index of the interval at the same place, one distance earlier.

        Returns:
            The index, and by what part of an interval the same time is later: at most a half.
        """
        if at not in self._before:
            start, back = self._start + at * self._precision, self.lag * self._precision
            back = self._zone.back(start, back)
            intervals = round(back / self._precision)
            self._before[at] = at - intervals, intervals - back / self._precision
        return self._before[at]

    def effects(self, at: int) -> tuple[float, float]:
        """Return the index of an interval: of its place alone, and smoothed."""
        place, other, share = self._locate(at)
        if not share:
            return self.alone[place], self.smooth[place]
        return (
            self.alone[place] + share * (self.alone[other] - self.alone[place]),
            self.smooth[place] + share * (self.smooth[other] - self.smooth[place]),
        )

    def _locate(self, at: int) -> tuple[int, int, float]:
        while len(self._located) <= at:
            start = self._start + len(self._located) * self._precision
            moved = (self._zone.offset(start) - self._zone.offset(self._start)) / self._place
            place, share = start // self._place + round(moved), moved - round(moved)
            other = place + (1 if share > 0 else -1)
            self._located.append((place % self.places, other % self.places, abs(share)))
        return self._located[at]

    def learn(self, values: Sequence[float | None], seen: Sequence[float | None]) -> None:
        """Learn from one more value; call this after each value.

        A value is compared with the mean of the cycle centered on it, so it is learned half a cycle
        later: well before its place recurs. The values of the first cycle share its mean.

        Args:
            values: all values so far, without outliers; the last one is new.
            seen: the same values with outliers.
        """
        cycle, count = self.cycle, len(values)
        if not cycle or count < cycle:
            return
        if count == cycle:
            for at in range(count):
                self._add(values, seen, at, values)
            self._learned = count
        elif count - 1 - cycle // 2 >= cycle:
            at = count - 1 - cycle // 2
            # An even cycle has no middle: half of the interval at each end belongs to it.
            self._add(values, seen, at, values[at - cycle // 2 : count])

    def usual(self, at: int, value: float) -> float:
        """Return the value of an interval, or its replacement if it was a single outlier.

        Args:
            at: index of the interval among the values given to `learn`.
            value: of the interval.
        """
        usual = self._replacements.get(at)
        if usual is None or self._recurs(self.place(at), value - usual):
            return value
        return usual

    def _add(
        self,
        values: Sequence[float | None],
        seen: Sequence[float | None],
        at: int,
        around: Sequence[float | None],
    ) -> None:
        value, actual = values[at], seen[at]
        known = [each for each in around if each is not None]
        if value is None or actual is None or not known:
            return
        total, number = sum(known), float(len(known))
        if len(around) == self.cycle + 1:
            ends = [each for each in (around[0], around[-1]) if each is not None]
            total, number = total - sum(ends) / 2, number - len(ends) / 2
        mean = total / number
        usual, replacement = value, self._without_outlier(seen, at, actual)
        if replacement != actual:
            self._replacements[at] = usual = replacement
        ratios = [each / mean if self._factors else each - mean for each in (value, usual)]
        effect = _Effect(ratios[0], ratios[1], actual - replacement)
        place = self.place(at)
        self._effects[place] = effects = [*self._effects[place], effect][-_MEMORY:]
        self._seen[place] = len(effects)
        total = sum(
            each.usual if each.excess and not self._recurs(place, each.excess) else each.actual
            for each in effects
        )
        self._means[place] = total / len(effects)
        self.alone[place] = (self._flat + total) / (1 + len(effects))
        for step, _ in self._around:
            self._smooth((place + step) % self.places)

    def _recurs(self, place: int, excess: float) -> bool:
        """Return whether a place had more than one outlier on the side of `excess`."""
        return sum(each.excess * excess > 0 for each in self._effects[place]) > 1

    def _without_outlier(self, seen: Sequence[float | None], at: int, value: float) -> float:
        """Return a value; of an outlier, the nearest value in the range of its neighbors."""
        if self.cycle < _MIN_CYCLE:
            return value  # consecutive days of a week differ
        first = max(0, at - _NEIGHBORS)
        neighbors = [*seen[first:at], *seen[at + 1 : at + 1 + _NEIGHBORS]]
        near = sorted(each for each in neighbors if each is not None)
        if len(near) < _NEIGHBORS:
            return value
        low, high = near[len(near) // 2 - 1], near[-(len(near) // 2)]
        if low <= value <= high:
            return value
        known = [each for each in seen[-2 * self.cycle :] if each is not None]
        steps = sorted(abs(b - a) for a, b in pairwise(known))
        # The noise of counting for roots; for gauges, a minimum in case they hardly ever change.
        least = 0.5 if self._factors else 0.15 * sum(steps) / len(steps)
        room = _OUTLIER * max(steps[len(steps) // 2], least)
        if low - room <= value <= high + room:
            return value
        return max(low, min(high, value))

    def _smooth(self, place: int) -> None:
        total, weight = self._flat, 1.0
        for step, share in self._around:
            near = (place + step) % self.places
            share *= self._seen[near]
            total += share * self._means[near]
            weight += share
        self.smooth[place] = total / weight
