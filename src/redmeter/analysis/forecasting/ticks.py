"""Intermittent counters: mostly 0, with a tick now and then, every seven minutes for example.

No level predicts the next tick, and the errors of most intervals are close to 0, so a range made
from them has no room for a tick. This module estimates the usual tick and widens the range to it:
from 0 to the usual tick. The estimate is a robust empirical quantile of the ticks alone: one that
is far larger than the others remains outside.

Bound: ticks that the season predicts, such as a job at three each night, do not count here, and
neither do values that follow another one directly. It takes three ticks to make them usual.
"""

import math
from collections import deque
from typing import Final

from redmeter.analysis.forecasting.horizons import LEVEL

#: Number of recent intervals and of recent ticks to use; intervals of the short window.
_INTERVALS, _TICKS, _SHORT = 64, 32, 8
#: Ticks that make them usual rather than chance.
_USUAL: Final = 3
#: Maximum distance of a usual tick from the median, in robust deviations of the square roots; a
#: deviation is at least one half, the noise of counting.
_BEYOND, _DEVIATION, _LEAST = 3.5, 1.4826, 0.5

_Range = tuple[float, float, float]


class Ticks:
    """The ticks of a counter, learned interval by interval."""

    def __init__(self) -> None:
        self._empty: deque[bool] = deque(maxlen=_INTERVALS)
        self._ticks: deque[float] = deque(maxlen=_TICKS)
        self._usual = 0.0

    def take(self, value: float, high: float | None) -> None:
        """Learn from the next interval.

        Args:
            value: its count.
            high: upper limit of the range that the season predicts, without ticks; None if it is
                unknown, so that any count is a tick.
        """
        after_zero = not self._empty or self._empty[-1]
        self._empty.append(value <= 0)
        if value > 0 and after_zero and (high is None or value > high):
            self._ticks.append(value)
            self._usual = self._largest_usual()

    def widen(self, expected: _Range, *, learned: bool) -> _Range:
        """Return a range that covers both 0 and the usual tick if the counter is intermittent.

        Args:
            expected: lowest, middle and highest.
            learned: whether the range includes the season: then only ticks that the season did not
                predict lower its start to 0.
        """
        low, middle, high = expected
        if not self._mostly_zero():
            return expected
        if len(self._ticks) >= _USUAL:
            return 0, middle, max(high, self._usual)
        return (low if learned else 0), middle, high

    def _mostly_zero(self) -> bool:
        return all(
            2 * sum(window) > len(window) for window in (self._empty, [*self._empty][-_SHORT:])
        )

    def _largest_usual(self) -> float:
        ticks = sorted(self._ticks)
        count = len(ticks)
        roots = [math.sqrt(tick) for tick in ticks]
        median = roots[count // 2]
        residual = sorted(abs(root - median) for root in roots)[count // 2]
        root = median + _BEYOND * max(_DEVIATION * residual, _LEAST)
        quantile = ticks[min(count, math.ceil((count + 1) * LEVEL)) - 1]
        return quantile if root >= math.sqrt(quantile) else math.ceil(root * root)
