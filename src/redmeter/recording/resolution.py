"""Resolution: the interval width in which an event is kept, by its age. Pure.

A buffered event is kept only as finely as some precision of the retention still needs it. With
precisions of 1 s, 5 s and 1 min and 120 samples each, an event of the last two minutes is kept by
its second; once the 1 s precision no longer holds it, by its 5 s interval; after ten minutes by its
minute; after two hours only as a part of the total. In general the width is the greatest common
divisor of the precisions that still hold the event, so that each of them can be made from it, even
7 s next to 60 s.

So an outage of hours costs memory by series and intervals, however many events there were.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping


class Resolution:
    """The interval width in which an event is kept, by age.

    Args:
        retention: precision -> samples.
    """

    __slots__ = ("_ages", "_lost", "_widths", "_windows")

    def __init__(self, retention: Mapping[int, int]) -> None:
        # An event may be in the last second of its interval, which the store rejects once its end
        # is outside the retention: see store/lua/apply.lua.
        self._windows = {p: (samples + 1) * p for p, samples in retention.items()}
        self._lost: dict[tuple[int, int], tuple[int, ...]] = {}
        self._ages = sorted(set(self._windows.values()))
        # One for each range of ages, each a divisor of the next; 0 for events that no precision
        # holds any more.
        self._widths = [
            math.gcd(*(p for p, window in self._windows.items() if window >= age))
            for age in self._ages
        ] + [0]

    @property
    def finest(self) -> int:
        """The width of new events, seconds."""
        return self._widths[0]

    @property
    def widest(self) -> int:
        """The width of events so old that only one precision holds them, seconds."""
        return self._widths[-2]

    def at(self, age: float) -> int:
        """Return the width for an age (seconds, negative in the future); 0 if none holds it."""
        return self._widths[bisect_left(self._ages, age)]

    def until(self, width: int) -> float:
        """Return the age up to which a width is no finer than needed, seconds."""
        needed = zip(self._ages, self._widths, strict=False)
        return max((age for age, w in needed if width % w == 0), default=-math.inf)

    def precisions(self, width: int) -> tuple[int, ...]:
        """Return the precisions that can be made from intervals of a width."""
        return tuple(p for p in self._windows if p % width == 0) if width else ()

    def lost(self, width: int, wider: int) -> tuple[int, ...]:
        """Return the precisions that can be made from intervals of a width, but not a wider one."""
        lost = self._lost.get((width, wider))
        if lost is None:
            left = self.precisions(wider)
            lost = tuple(p for p in self.precisions(width) if p not in left)
            self._lost[width, wider] = lost
        return lost

    def holding(self, precisions: tuple[int, ...], age: float) -> tuple[int, ...]:
        """Return the given precisions that still hold an event of an age, seconds."""
        return tuple(p for p in precisions if self._windows[p] >= age)
