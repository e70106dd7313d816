"""Windows: the newest intervals of a precision, and the intervals that are read for them.

Everything on the page covers the same window. Curves have the precision that was chosen. Sums are
read from fewer intervals: coarser ones as far as they fit, finer ones for the rest, so they cover
exactly this window. Only coarser precisions keep the time before the window. So the previous period
has about the same length, and may end up to one of these intervals earlier.

Histograms have their own precisions. A window of histograms uses the finest precision that is not
finer than the chosen one and reaches as far back; or the one that reaches farthest.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from redmeter.keys import Retention, slice_start

#: How many values a small curve has at least.
PIECES = 10


@dataclass(frozen=True, slots=True)
class Window:
    """The newest intervals of a precision, the current one included."""

    #: Width of its intervals, seconds, and how many there are.
    fine: int
    count: int
    #: The widths that it is read from: `fine`, and multiples of that and of each other, ascending.
    widths: tuple[int, ...]
    #: The same of the previous period, and its length, seconds; empty if no precision keeps it.
    earlier: tuple[int, ...] = ()
    before: int = 0

    def start(self, now: float) -> int:
        """Return where it begins, Unix seconds."""
        return slice_start(now, self.fine) - (self.count - 1) * self.fine

    @property
    def length(self) -> int:
        """How long it is, seconds, the rest of the current interval included."""
        return self.fine * self.count

    def seconds(self, now: float) -> float:
        """Return how much of it has passed."""
        return max(now - self.start(now), 1.0)

    def drawn(self, pieces: int = PIECES) -> int:
        """Return the coarsest of its widths of which it has so many: for a small curve."""
        return max((w for w in self.widths if w * pieces <= self.length), default=self.fine)

    def slices(self, now: float) -> dict[int, list[int]]:
        """Return the intervals that are read for it: precision -> starts, as lua/join.lua does."""
        coarsest = self.widths[-1]
        return _cover(self.start(now), slice_start(now, coarsest) + coarsest, self.widths)

    def slices_before(self, now: float) -> dict[int, list[int]]:
        """Return the same of the previous period; empty if no precision keeps it."""
        if not self.earlier:
            return {}
        end = slice_start(self.start(now), self.earlier[0])
        return _cover(end - self.before, end, self.earlier)


@dataclass(slots=True)
class Span:
    """The time that is shown, Unix seconds."""

    precision: int
    start: int
    end: int
    #: Interval width of the histograms that belong to it, and where they begin.
    histograms: int
    histograms_start: int
    #: Whether a precision keeps the previous period.
    before: bool


def span_of(window: Window, observed: Window, now: float) -> Span:
    """Return the time that windows of counters and of histograms have."""
    return Span(
        window.fine,
        window.start(now),
        slice_start(now, window.fine) + window.fine,
        observed.fine,
        observed.start(now),
        bool(window.earlier),
    )


def window_of(kept: Mapping[int, int], precision: int, count: int) -> Window:
    """Return the window of the newest intervals of a precision.

    Args:
        kept: precision -> samples; the precision is one of them.
        count: how many intervals.
    """
    length = precision * count
    widths = _nested(kept, precision, length, 0)
    # Twice the window, and by how much it may be earlier.
    able = (p for p in kept if precision <= p <= length and _reaches(kept, p, 2 * length + p))
    finest = min(able, default=None)
    if finest is None:
        return Window(precision, count, widths)
    before = length // finest * finest
    return Window(precision, count, widths, _nested(kept, finest, before, length), before)


def whole_window(retention: Mapping[int, int], precision: int) -> Window:
    """Return the window of all samples that a precision keeps.

    Raises:
        UnknownPrecision: it is not kept.
    """
    Retention(retention).check(precision)
    return window_of(retention, precision, retention[precision])


def histogram_window(histograms: Mapping[int, int], window: Window) -> Window:
    """Return the window of histograms that belongs to one of counters."""
    length = window.length
    able = [p for p in histograms if p >= window.fine and _reaches(histograms, p, length)]
    precision = min(able) if able else max(histograms, key=lambda p: p * histograms[p])
    count = max(1, min(-(-length // precision), histograms[precision]))
    return window_of(histograms, precision, count)


def _nested(kept: Mapping[int, int], finest: int, length: int, ago: int) -> tuple[int, ...]:
    """Return precisions, each a multiple of the one before, that hold a time of some length.

    Args:
        ago: how long it has been over, seconds.
    """
    found = [finest]
    for width in sorted(kept):
        nested = width > found[-1] and width % found[-1] == 0
        if nested and width <= length and _reaches(kept, width, length + ago + width):
            found.append(width)
    return tuple(found)


def _reaches(kept: Mapping[int, int], precision: int, seconds: int) -> bool:
    """Return whether the samples of a precision always reach that far back."""
    return (kept[precision] - 1) * precision >= seconds - precision


def _cover(start: int, end: int, widths: tuple[int, ...]) -> dict[int, list[int]]:
    """Return the coarsest intervals that cover a time: precision -> starts."""
    *finer, width = widths
    first, last = -(-start // width) * width, end // width * width
    if not finer:
        return {width: list(range(first, last, width))}
    if first >= last:
        return _cover(start, end, tuple(finer))
    found = {width: list(range(first, last, width))}
    for one, other in ((start, first), (last, end)):
        if one < other:
            for precision, starts in _cover(one, other, tuple(finer)).items():
                found.setdefault(precision, []).extend(starts)
    return found
