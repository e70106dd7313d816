"""Widths: how finely an event has to be remembered, by its age. Pure.

An event must be told from its neighbours only as finely as some precision still does. With 1 s, 5 s
and 1 min kept, 120 samples each, an event of the last two minutes is remembered by its second; once
no second of that age is kept any more, by its 5 s; after ten minutes by its minute; after two
hours only that it happened. In general: by the greatest common divisor of the precisions that still
hold it, so that each of them can be made from what is remembered, also 7 s and 60 s beside each
other.

So an outage of hours costs memory by series and slices, however many events there were.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping


class Resolution:
    """The width in which to remember an event, for each age.

    Args:
        retention: precision -> samples.
    """

    __slots__ = ("_ages", "_lost", "_widths", "_windows")

    def __init__(self, retention: Mapping[int, int]) -> None:
        # An event may be of the last second of its slice, and the slice is refused once its end
        # is out of the retention: see store/lua/apply.lua.
        self._windows = {p: (samples + 1) * p for p, samples in retention.items()}
        self._lost: dict[tuple[int, int], tuple[int, ...]] = {}
        self._ages = sorted(set(self._windows.values()))
        # One for each stretch between two ages, each a divisor of the next; 0 for what no precision
        # holds any more.
        self._widths = [
            math.gcd(*(p for p, window in self._windows.items() if window >= age))
            for age in self._ages
        ] + [0]

    @property
    def finest(self) -> int:
        """The width of what is new, seconds."""
        return self._widths[0]

    @property
    def widest(self) -> int:
        """The width of what is so old that a single precision holds it, seconds."""
        return self._widths[-2]

    def at(self, age: float) -> int:
        """Return the width for an age (seconds, negative in the future); 0: by no slice at all."""
        return self._widths[bisect_left(self._ages, age)]

    def until(self, width: int) -> float:
        """Return the age up to which a width is no finer than needed, seconds."""
        needed = zip(self._ages, self._widths, strict=False)
        return max((age for age, w in needed if width % w == 0), default=-math.inf)

    def precisions(self, width: int) -> tuple[int, ...]:
        """Return the precisions that can be made from slices of a width."""
        return tuple(p for p in self._windows if p % width == 0) if width else ()

    def lost(self, width: int, wider: int) -> tuple[int, ...]:
        """Return the precisions that can be made from slices of a width, and of a wider not."""
        found = self._lost.get((width, wider))
        if found is None:
            left = self.precisions(wider)
            found = tuple(p for p in self.precisions(width) if p not in left)
            self._lost[width, wider] = found
        return found

    def holding(self, precisions: tuple[int, ...], age: float) -> tuple[int, ...]:
        """Return those of some precisions that still hold an event of an age, seconds."""
        return tuple(p for p in precisions if self._windows[p] >= age)
