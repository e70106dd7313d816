"""Coverage: the intervals of a window of the page, and the intervals that are read for them.

A window ends with the running interval, or in the past, where a frame names its ends.

Everything on the page covers the same window. Curves have the precision that was chosen. Sums are
read from fewer intervals: coarser ones as far as they fit, finer ones for the rest, so they cover
exactly this window. Only coarser precisions keep the time before the window. So the previous period
has about the same length, and may end up to one of these intervals earlier.

Histograms have their own precisions. A window of histograms uses the finest precision that is not
finer than the chosen one and reaches as far back; or the one that reaches farthest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import NamedTuple

from redmeter.stored.families import SERIES_KINDS
from redmeter.stored.keys import Retention, slice_start

#: How many values a small curve has at least.
PIECES = 10
#: Part of all events that may lie between a window and the previous period, which are not quite
#: adjacent, or come while one reads: a counter with no more before these began within them.
LITTLE = 0.05


@dataclass(frozen=True, slots=True)
class Coverage:
    """The newest intervals of a precision, the current one included."""

    #: Width of its intervals, seconds, and how many there are.
    fine: int
    count: int
    #: The widths that it is read from: `fine`, and multiples of that and of each other, ascending.
    widths: tuple[int, ...]
    #: The same of the previous period, and its length, seconds; empty if no precision keeps it.
    earlier: tuple[int, ...] = ()
    before: int = 0
    #: Where it ends, Unix seconds; None: with the running interval. Then how long ago that was.
    until: int | None = None
    ago: int = 0
    #: Seconds from the compared period to the window; None: the period right before it.
    shift: int | None = None

    def start(self, now: float) -> int:
        """Return where it begins, Unix seconds."""
        return slice_start(self.moment(now), self.fine) - (self.count - 1) * self.fine

    def end(self, now: float) -> int:
        """Return where it ends, Unix seconds, the rest of the current interval included."""
        return self.start(now) + self.length

    def moment(self, now: float) -> float:
        """Return the last moment of it, Unix seconds: now, unless it is in the past."""
        return now if self.until is None else min(now, self.until - 1.0)

    def slots(self, now: float, width: int = 0) -> range:
        """Return the starts of the intervals of a curve, of drawn() or of another width."""
        width = width or self.drawn()
        return range(slice_start(self.start(now), width), int(self.moment(now)) + 1, width)

    def running(self) -> bool:
        """Return whether its newest interval is still running."""
        return self.until is None

    @property
    def gap(self) -> int:
        """Seconds from the end of the compared period to the window; negative if they overlap."""
        return 0 if self.shift is None else self.shift - self.length

    @property
    def length(self) -> int:
        """How long it is, seconds, the rest of the current interval included."""
        return self.fine * self.count

    def seconds(self, now: float) -> float:
        """Return how much of it has passed."""
        if self.until is not None:
            return float(self.length)
        return max(now - self.start(now), 1.0)

    def drawn(self, pieces: int = PIECES) -> int:
        """Return the coarsest of its widths of which it has so many: for a small curve."""
        return max((w for w in self.widths if w * pieces <= self.length), default=self.fine)

    def in_pieces(self) -> "Coverage":
        """Return the same window, read from intervals of which a small curve can be made."""
        widest = self.drawn()
        return replace(self, widths=tuple(width for width in self.widths if width <= widest))

    def slices(self, now: float) -> dict[int, list[int]]:
        """Return the intervals that are read for it: precision -> starts, as lua/join.lua does."""
        if self.until is not None:
            return _cover(self.start(now), self.until, self.widths)
        coarsest = self.widths[-1]
        return _cover(self.start(now), slice_start(now, coarsest) + coarsest, self.widths)

    def slices_before(self, now: float) -> dict[int, list[int]]:
        """Return the same of the previous period; empty if no precision keeps it."""
        start, end = self.period_before(now)
        return {} if start is None or end is None else _cover(start, end, self.earlier)

    def period_before(self, now: float) -> tuple[int, int] | tuple[None, None]:
        """Return the start and the end of the previous period, Unix seconds."""
        if not self.earlier:
            return None, None
        end = slice_start(self.start(now) - self.gap, self.earlier[0])
        return end - self.before, end


@dataclass(slots=True)
class Span:
    """The time that is shown, Unix seconds."""

    precision: int
    start: int
    end: int
    #: Interval width of the histograms that belong to it, and where they begin.
    histograms: int
    histograms_start: int
    histograms_end: int
    #: Whether a precision keeps the compared period; which, and where the period begins and ends.
    before: bool
    before_precision: int | None = None
    before_start: int | None = None
    before_end: int | None = None
    #: The same of the compared period of histograms.
    histograms_before_start: int | None = None
    histograms_before_end: int | None = None
    #: Seconds from the compared period to the window, 23 to 25 hours from yesterday by local time;
    #: null: it is the period right before.
    shift: int | None = None


class Frame(NamedTuple):
    """The time that a view shows, and the period that it is compared with."""

    #: Unix seconds; None: up to now, and as far back as the precision reaches.
    since: float | None = None
    until: float | None = None
    #: Seconds from the compared period to the window; None: the period right before it.
    shift: int | None = None
    #: The time by the reader's clock, Unix seconds.
    now: float = 0.0
    #: The length of a window that ends now, seconds, instead of both ends.
    last: int | None = None

    @property
    def chosen(self) -> bool:
        """Whether it names a window."""
        return (self.since, self.until, self.last) != (None, None, None)


def span_of(window: Coverage, observed: Coverage, now: float) -> Span:
    """Return the time that windows of counters and of histograms have."""
    before_start, before_end = window.period_before(now)
    observed_start, observed_end = observed.period_before(now)
    return Span(
        window.fine,
        window.start(now),
        window.end(now),
        observed.fine,
        observed.start(now),
        observed.end(now),
        bool(window.earlier),
        window.earlier[0] if window.earlier else None,
        before_start,
        before_end,
        observed_start,
        observed_end,
        window.shift,
    )


def window_of(
    kept: Mapping[int, int],
    precision: int,
    count: int,
    *,
    until: int | None = None,
    ago: int = 0,
    shift: int | None = None,
) -> Coverage:
    """Return a window of a precision: its newest intervals, or those before `until`.

    Args:
        kept: precision -> samples; the precision is one of them.
        count: how many intervals.
        until: where it ends, a multiple of the precision; None: with the running interval.
        ago: how long ago that was, seconds.
        shift: see Coverage.
    """
    length = precision * count
    widths = _nested(kept, precision, length, ago)
    # Back to the compared period, and by how much that may be earlier.
    back = ago + length + (length if shift is None else shift)
    able = (p for p in kept if precision <= p and length % p == 0 and _reaches(kept, p, back + p))
    if until is not None:  # at its edges exactly
        able = (p for p in able if (until - (shift or 0)) % p == 0)
    elif shift is not None:  # which move with the time
        able = (p for p in able if p == precision and shift % p == 0)
    finest = min(able, default=None)
    if finest is None:
        return Coverage(precision, count, widths, (), 0, until, ago, shift)
    earlier = _nested(kept, finest, length, back - length)
    return Coverage(precision, count, widths, earlier, length, until, ago, shift)


def whole_window(
    retention: Mapping[int, int], precision: int, frame: Frame | None = None
) -> Coverage:
    """Return the window of a frame; without one, of all samples that a precision keeps.

    It has whole intervals. Where the precision does not reach back to a frame's start, the next one
    that does is used; if none does, the window begins with the oldest interval that is kept, or is
    the last one of the frame.

    Raises:
        UnknownPrecision: it is not kept.
    """
    kept = Retention(retention)
    kept.check(precision)
    frame = frame or Frame()
    if not frame.chosen:
        return window_of(kept, precision, kept[precision], shift=frame.shift)
    wide = [p for p in kept if p >= precision]
    longest = max(wide, key=lambda p: p * kept[p])
    if frame.last is not None:
        precision = min((p for p in wide if p * kept[p] >= frame.last), default=longest)
        count = min(ceil(frame.last / precision), kept[precision])
        return window_of(kept, precision, count, shift=frame.shift)
    now = frame.now
    until = now if frame.until is None else min(frame.until, now)
    span = precision * kept[precision]
    since = min(until - span if frame.since is None else frame.since, until)
    able = (p for p in wide if slice_start(since, p) >= kept.oldest(p, now))
    return _window_between(kept, min(able, default=longest), since, until, now, frame.shift)


def _window_between(
    kept: Mapping[int, int],
    precision: int,
    since: float,
    until: float,
    now: float,
    shift: int | None,
) -> Coverage:
    """Return the window of the kept intervals that a time touches; at least one."""
    end = max(-int(-until // precision) * precision, slice_start(since, precision) + precision)
    oldest = slice_start(now, precision) - (kept[precision] - 1) * precision
    start = min(max(slice_start(since, precision), oldest), end - precision)
    count = (end - start) // precision
    if end > now:
        return window_of(kept, precision, count, shift=shift)
    return window_of(kept, precision, count, until=end, ago=int(now - end), shift=shift)


def histogram_window(histograms: Mapping[int, int], window: Coverage) -> Coverage:
    """Return the window of histograms that belongs to one of counters."""
    length, back = window.length, window.length + window.ago
    able = [p for p in histograms if p >= window.fine and _reaches(histograms, p, back)]
    precision = min(able) if able else max(histograms, key=lambda p: p * histograms[p])
    if window.until is not None:
        until, now = window.until, window.until + window.ago
        return _window_between(histograms, precision, until - length, until, now, window.shift)
    count = max(1, min(-(-length // precision), histograms[precision]))
    return window_of(histograms, precision, count, shift=window.shift)


def window_of_kind(kind: str, window: Coverage, observed: Coverage) -> Coverage:
    """Return that of two windows which a kind of series has.

    Args:
        window, observed: of counters and gauges, and of histograms.
    """
    return observed if SERIES_KINDS[kind].retention == "histograms" else window


def _nested(kept: Mapping[int, int], finest: int, length: int, ago: int) -> tuple[int, ...]:
    """Return precisions, each a multiple of the one before, that hold a time of some length.

    Args:
        ago: how long it has been over, seconds.
    """
    precisions = [finest]
    for width in sorted(kept):
        nested = width > precisions[-1] and width % precisions[-1] == 0
        if nested and width <= length and _reaches(kept, width, length + ago + width):
            precisions.append(width)
    return tuple(precisions)


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
    covered = {width: list(range(first, last, width))}
    for one, other in ((start, first), (last, end)):
        if one < other:
            for precision, starts in _cover(one, other, tuple(finer)).items():
                covered.setdefault(precision, []).extend(starts)
    return covered
