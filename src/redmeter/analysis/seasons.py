"""What the time of day, or the day of the week, does to a series: learned while one goes along.

Each place in the cycle (an hour of the day, a day of the week) has a mean of how far the slices
there lay from the mean of the cycle around them, as classical decomposition has it: as a factor of
counts, as a difference of what is measured. A mean is drawn to "as any other place" as if that had
been seen once, and forgets what is more than a dozen cycles old.

Slices that do not divide the day, those of five hours for example, share the places of their first
hours, and learn from the places around.
"""

import math
from collections.abc import Sequence
from typing import Final

DAY: Final = 86400
HOUR: Final = 3600

#: Cycles after which what was seen fades.
_MEMORY: Final = 12


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

    def learn(self, values: Sequence[float | None], start: int) -> None:
        """Learn from one more value: call it after each of them.

        A slice is held against the cycle in whose middle it is, so it is learned half a cycle
        later: well before its place comes again. The slices of the first cycle share its mean.

        Args:
            values: all up to now; the last of them is new.
            start: of the first of them, Unix seconds.
        """
        cycle, count = self.cycle, len(values)
        if not cycle or count < cycle:
            return
        if count == cycle:
            for at in range(count):
                self._add(values, at, values, start)
            self._learned = count
        elif count - 1 - cycle // 2 >= cycle:
            at = count - 1 - cycle // 2
            # An even cycle has no middle: half of the slice at each end belongs to it.
            self._add(values, at, values[at - cycle // 2 : count], start)

    def _add(
        self, values: Sequence[float | None], at: int, around: Sequence[float | None], start: int
    ) -> None:
        value, known = values[at], [each for each in around if each is not None]
        if value is None or not known:
            return
        total, number = sum(known), float(len(known))
        if len(around) == self.cycle + 1:
            ends = [each for each in (around[0], around[-1]) if each is not None]
            total, number = total - sum(ends) / 2, number - len(ends) / 2
        mean = total / number
        found = value / mean if self._factors else value - mean
        place = self.place(start + at * self._precision)
        self._seen[place] = seen = min(self._seen[place] + 1, _MEMORY)
        self._means[place] += (found - self._means[place]) / seen
        self.alone[place] = (self._flat + seen * self._means[place]) / (1 + seen)
        for step, _ in self._around:
            self._smoothen((place + step) % self.places)

    def _smoothen(self, place: int) -> None:
        total, weight = self._flat, 1.0
        for step, part in self._around:
            near = (place + step) % self.places
            part *= self._seen[near]
            total += part * self._means[near]
            weight += part
        self.smooth[place] = total / weight
