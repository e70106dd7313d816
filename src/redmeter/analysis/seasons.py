"""What the time of day, or the day of the week, does to a series: learned while one goes along.

Each place in the cycle (an hour of the day, a day of the week) has a mean of how far the slices
there lay from the mean of the cycle around them, as classical decomposition has it: as a factor of
counts, as a difference of what is measured. A mean is drawn to "as any other place" as if that had
been seen once, and forgets what is more than a dozen cycles old.

One day does not tell an outlier from what happens each day. So an hour that stands out from those
around it is learned as they are, until the same hour of another day stands out on the same side.

Slices that do not divide the day, those of five hours for example, share the places of their first
hours, and learn from the places around.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

DAY: Final = 86400
HOUR: Final = 3600

#: Cycles after which what was seen fades.
_MEMORY: Final = 12
#: Slices that a cycle must have for neighbours to be much alike; how many of them on each side.
_ALIKE, _BESIDE = 12, 2
#: What lies further beyond its neighbours than so many median steps stands out.
_STANDS_OUT: Final = 3.0


class _Found(NamedTuple):
    """What a slice says of its place: as it was, like those around, and how far it stood out."""

    found: float
    usual: float
    beyond: float


class Season:
    """The places of a cycle.

    Args:
        precision: slice width, seconds.
        factors: whether places multiply a level, or are added to it.
    """

    def __init__(self, precision: int, *, factors: bool) -> None:
        self._precision, self._factors = precision, factors
        self._flat = 1.0 if factors else 0.0
        #: How many places there are; 0 where there is no cycle to learn.
        self.places = 0
        #: Slices of a cycle, about, and slices after which the same place comes again.
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
        self._found: list[list[_Found]] = [[] for _ in range(self.places)]
        #: Of slices that stood out, by number: what those around them were like.
        self._like: dict[int, float] = {}
        #: For each place: by itself, and smoothed over its neighbours.
        self.alone, self.smooth = [self._flat] * self.places, [self._flat] * self.places
        self._learned = 0

    @property
    def known(self) -> bool:
        """Whether a cycle has been seen."""
        return self._learned > 0

    def place(self, start: int) -> int:
        """Return the place of a slice that starts at a Unix time."""
        return start // self._place % self.places

    def learn(
        self, values: Sequence[float | None], seen: Sequence[float | None], start: int
    ) -> None:
        """Learn from one more value: call it after each of them.

        A slice is held against the cycle in whose middle it is, so it is learned half a cycle
        later: well before its place comes again. The slices of the first cycle share its mean.

        Args:
            values: all up to now, without what was out of the ordinary; the last of them is new.
            seen: the same as they were.
            start: of the first of them, Unix seconds.
        """
        cycle, count = self.cycle, len(values)
        if not cycle or count < cycle:
            return
        if count == cycle:
            for at in range(count):
                self._add(values, seen, at, values, start)
            self._learned = count
        elif count - 1 - cycle // 2 >= cycle:
            at = count - 1 - cycle // 2
            # An even cycle has no middle: half of the slice at each end belongs to it.
            self._add(values, seen, at, values[at - cycle // 2 : count], start)

    def usual(self, at: int, value: float, start: int) -> float:
        """Return what a slice would have held, had it not stood out for once.

        Args:
            at: of the slice, counted as `learn` counts them.
            value: of the slice.
            start: of the first slice, Unix seconds.
        """
        like = self._like.get(at)
        if like is None or self._again(self.place(start + at * self._precision), value - like):
            return value
        return like

    def _add(
        self,
        values: Sequence[float | None],
        seen: Sequence[float | None],
        at: int,
        around: Sequence[float | None],
        start: int,
    ) -> None:
        value, was = values[at], seen[at]
        known = [each for each in around if each is not None]
        if value is None or was is None or not known:
            return
        total, number = sum(known), float(len(known))
        if len(around) == self.cycle + 1:
            ends = [each for each in (around[0], around[-1]) if each is not None]
            total, number = total - sum(ends) / 2, number - len(ends) / 2
        mean = total / number
        usual, like = value, self._like_others(seen, at, was)
        if like != was:
            self._like[at] = usual = like
        ratios = [each / mean if self._factors else each - mean for each in (value, usual)]
        one = _Found(ratios[0], ratios[1], was - like)
        place = self.place(start + at * self._precision)
        self._found[place] = found = [*self._found[place], one][-_MEMORY:]
        self._seen[place] = len(found)
        total = sum(
            each.usual if each.beyond and not self._again(place, each.beyond) else each.found
            for each in found
        )
        self._means[place] = total / len(found)
        self.alone[place] = (self._flat + total) / (1 + len(found))
        for step, _ in self._around:
            self._smoothen((place + step) % self.places)

    def _again(self, place: int, beyond: float) -> bool:
        """Return whether a place stood out more than once on that side."""
        return sum(each.beyond * beyond > 0 for each in self._found[place]) > 1

    def _like_others(self, seen: Sequence[float | None], at: int, value: float) -> float:
        """Return a value, or if it stands out from those around, the nearest of what they are."""
        if self.cycle < _ALIKE:
            return value  # days of a week differ from one to the next
        first = max(0, at - _BESIDE)
        beside = [*seen[first:at], *seen[at + 1 : at + 1 + _BESIDE]]
        near = sorted(each for each in beside if each is not None)
        if len(near) < _BESIDE:
            return value
        low, high = near[len(near) // 2 - 1], near[-(len(near) // 2)]
        if low <= value <= high:
            return value
        known = [each for each in seen[-2 * self.cycle :] if each is not None]
        steps = sorted(abs(b - a) for a, b in pairwise(known))
        # Of roots the noise of counting; of what is measured, where it hardly ever changes.
        least = 0.5 if self._factors else 0.15 * sum(steps) / len(steps)
        room = _STANDS_OUT * max(steps[len(steps) // 2], least)
        if low - room <= value <= high + room:
            return value
        return max(low, min(high, value))

    def _smoothen(self, place: int) -> None:
        total, weight = self._flat, 1.0
        for step, part in self._around:
            near = (place + step) % self.places
            part *= self._seen[near]
            total += part * self._means[near]
            weight += part
        self.smooth[place] = total / weight
