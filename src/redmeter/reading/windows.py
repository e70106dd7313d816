"""Windows: the newest so many slices of a precision, and what is read for them.

Everything on the page is about one window. Its curves have the precision that was chosen, its sums
are read from fewer slices: coarser ones as far as they fit, finer ones for the rest, so that they
are those of exactly this window. What came right before it is kept by coarser precisions alone;
therefore the time before is as long, but may end by less than one of these slices earlier.

Histograms have precisions of their own. For those the finest is taken that is no finer than the
one that was chosen and reaches as far back; or that which reaches farthest, which is told.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from redmeter.keys import Retention, slice_start

#: Sums are read from the coarsest slices of which a window has so many: its small curves.
MIN_SLICES = 10


@dataclass(frozen=True, slots=True)
class Window:
    """The newest slices of a precision, the running one included."""

    #: Width of its slices, seconds, and how many there are.
    fine: int
    count: int
    #: Width of those that most of it is read from; `fine`, or a multiple.
    coarse: int
    #: Width and number of the slices that hold what was before; None where nothing keeps it.
    earlier: tuple[int, int] | None

    def start(self, now: float) -> int:
        """Return where it begins, Unix seconds."""
        return slice_start(now, self.fine) - (self.count - 1) * self.fine

    @property
    def length(self) -> int:
        """How long it is, seconds, the rest of the running slice included."""
        return self.fine * self.count

    def slices(self, now: float) -> dict[int, list[int]]:
        """Return what is read for it: precision -> starts, as lua/join.lua does."""
        start, end = self.start(now), slice_start(now, self.fine) + 1
        turn = min(-(-start // self.coarse) * self.coarse, end)
        found = {self.coarse: list(range(turn, end, self.coarse))}
        if turn > start:
            found[self.fine] = list(range(start, turn, self.fine))
        return found

    def slices_before(self, now: float) -> dict[int, list[int]]:
        """Return the same of what was before; nothing where nothing keeps it."""
        if self.earlier is None:
            return {}
        width, number = self.earlier
        end = self.start(now) // width * width
        return {width: list(range(end - number * width, end, width))}

    def seconds(self, now: float) -> float:
        """Return how much of it has passed."""
        return max(now - self.start(now), 1.0)

    def before_seconds(self) -> int:
        """Return how long the time before it is, seconds; 0 where nothing keeps it."""
        return self.earlier[0] * self.earlier[1] if self.earlier else 0


def window_of(
    kept: Mapping[int, int], precision: int, count: int, *, pieces: int = MIN_SLICES
) -> Window:
    """Return the window of the newest slices of a precision.

    Args:
        kept: precision -> samples; the precision is one of them.
        count: how many slices.
        pieces: how many of its coarse slices it shall have at least.
    """
    length = precision * count
    coarse = max(
        (
            p
            for p in kept
            if p % precision == 0 and p * pieces <= length and _reaches(kept, p, length)
        ),
        default=precision,
    )
    earlier = min(
        (p for p in kept if precision <= p <= length and _reaches(kept, p, 2 * length + p)),
        default=None,
    )
    before = None if earlier is None else (earlier, length // earlier)
    return Window(precision, count, max(coarse, precision), before)


def whole_window(
    retention: Mapping[int, int], precision: int, *, pieces: int = MIN_SLICES
) -> Window:
    """Return the window of all samples that a precision keeps.

    Raises:
        UnknownPrecision: it is not kept.
    """
    Retention(retention).check(precision)
    return window_of(retention, precision, retention[precision], pieces=pieces)


def histogram_window(histograms: Mapping[int, int], window: Window) -> Window:
    """Return the window of histograms that belongs to one of counters."""
    length = window.length
    able = [p for p in histograms if p >= window.fine and _reaches(histograms, p, length)]
    precision = min(able) if able else max(histograms, key=lambda p: p * histograms[p])
    count = max(1, min(-(-length // precision), histograms[precision]))
    return window_of(histograms, precision, count, pieces=1)


def _reaches(kept: Mapping[int, int], precision: int, seconds: int) -> bool:
    """Tell whether the samples of a precision reach so far back at any time."""
    return (kept[precision] - 1) * precision >= seconds - precision
