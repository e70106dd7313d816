"""Counters that tick now and then: mostly nothing, and something every seven minutes for instance.

No level tells when the next tick comes, and the errors of most slices are next to nothing, so a
band made of them has no room for a tick. Here is what a tick usually is, and the band is widened
to that: from nothing to the usual tick. It is an empirical quantile of the ticks alone, and robust:
one that is far larger than the others stays outside.

Bound: ticks that are foreseen, as each night at three, are none here; nor is what comes in a row.
Three have to be seen until they are usual.
"""

import math
from collections import deque
from typing import Final

from redmeter.analysis.horizons import LEVEL

#: Newest slices and newest ticks that are looked at; slices of the shortest look.
_SLICES, _TICKS, _SHORT = 64, 32, 8
#: Ticks that are usual, no chance.
_USUAL: Final = 3
#: How far beyond the median a usual tick may be: so many robust deviations of roots, which are
#: one half at least, the noise of counting.
_BEYOND, _DEVIATION, _LEAST = 3.5, 1.4826, 0.5

_Band = tuple[float, float, float]


class Ticks:
    """What is known of the ticks of a counter after some of its slices."""

    def __init__(self) -> None:
        self._empty: deque[bool] = deque(maxlen=_SLICES)
        self._ticks: deque[float] = deque(maxlen=_TICKS)
        self._usual = 0.0

    def take(self, value: float, high: float | None) -> None:
        """Learn from the next slice.

        Args:
            high: what was expected at most by the time of day, ticks left out; None if that is not
                known, so that any is a tick.
        """
        after_nothing = not self._empty or self._empty[-1]
        self._empty.append(value <= 0)
        if value > 0 and after_nothing and (high is None or value > high):
            self._ticks.append(value)
            self._usual = self._largest_usual()

    def widen(self, band: _Band, *, learned: bool) -> _Band:
        """Return a band that has room for a tick, and for none, where the counter ticks.

        Args:
            band: lowest, middle and highest.
            learned: whether the band knows of the time of day: then it is only to be doubted for
                ticks that it did not foresee.
        """
        low, middle, high = band
        if not self._mostly_nothing():
            return band
        if len(self._ticks) >= _USUAL:
            return 0, middle, max(high, self._usual)
        return (low if learned else 0), middle, high

    def _mostly_nothing(self) -> bool:
        return all(2 * sum(few) > len(few) for few in (self._empty, [*self._empty][-_SHORT:]))

    def _largest_usual(self) -> float:
        ticks = sorted(self._ticks)
        count = len(ticks)
        roots = [math.sqrt(tick) for tick in ticks]
        median = roots[count // 2]
        apart = sorted(abs(root - median) for root in roots)[count // 2]
        root = median + _BEYOND * max(_DEVIATION * apart, _LEAST)
        quantile = ticks[min(count, math.ceil((count + 1) * LEVEL)) - 1]
        return quantile if root >= math.sqrt(quantile) else math.ceil(root * root)
