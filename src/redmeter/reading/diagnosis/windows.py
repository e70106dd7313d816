"""Which intervals explain() compares: a window, its baseline, and the precision of both.

The precision is the finest one that keeps the window. Windows are rounded to its intervals,
outwards, and end with the last complete one. If the baseline is not kept at this precision, a
coarser one is used only if both windows are exactly the same at it, since sums over the same time
are the same numbers. Else the answer is `not kept`; what a coarser precision would compare is
another window, which nobody asked for. Such precisions are listed as alternatives.
"""

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from redmeter.analysis.comparing.noise import Windows
from redmeter.clock import UTC, Zone
from redmeter.results.explanation import Alternative
from redmeter.stored.keys import Retention, slice_start, span

#: Length of the window if only its end is known, seconds.
DEFAULT_LENGTH: Final = 900
#: Intervals of a window whose edges are not given, unless its length is a multiple of theirs.
_FEWEST: Final = 5
#: Intervals of histograms before the window from which noise is estimated, at most; as many as the
#: window has, if it has more. All kept intervals of counts are used: they are read as a whole.
MAX_HISTORY: Final = 60

#: Seconds by which a baseline is earlier, without changes of the clock.
_SHIFTS: Final[Mapping[str, int]] = {"yesterday": 86_400, "last-week": 7 * 86_400}
#: How a sentence names a baseline.
_NAMES: Final = {"yesterday": "the same time yesterday", "last-week": "the same time last week"}

Baseline = Literal["previous", "yesterday", "last-week", "custom"]
#: Baselines that have a name.
BASELINES: Final[Mapping[str, Baseline]] = {
    "previous": "previous",
    "yesterday": "yesterday",
    "last-week": "last-week",
}


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """The arguments of Meter.explain(), checked."""

    name: str
    #: Unix seconds; without an end up to now, without a start DEFAULT_LENGTH.
    since: float | None = None
    until: float | None = None
    against: Baseline = "previous"
    #: The baseline's window, if it is `custom`.
    against_since: float = 0.0
    against_until: float = 0.0
    #: Length of a window that has no start.
    last: float | None = None
    precision: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    #: The labels of events that failed: explain their share.
    failing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The intervals that are compared."""

    request: ExplainRequest
    #: The window as it was requested.
    since: float
    until: float
    #: None if no precision keeps the window.
    precision: int | None = None
    reaches: int | None = None
    #: Starts of intervals, in steps of the precision; each stops at the end of its last interval.
    window: range = range(0)
    baseline: range = range(0)
    #: Complete intervals before the window that are kept.
    history: range = range(0)
    #: Why it cannot be compared; "" if it can.
    reason: str = ""
    alternatives: tuple[Alternative, ...] = ()

    @property
    def scale(self) -> float:
        """The length of the window by that of the baseline."""
        return len(self.window) / len(self.baseline)

    @property
    def recent(self) -> range:
        """Those intervals of the history whose histograms are read."""
        return self.history[-max(MAX_HISTORY, len(self.window)) :]

    @property
    def windows(self) -> Windows:
        """The lengths of both windows."""
        adjacent = self.baseline.stop == self.window.start
        return Windows(len(self.window), len(self.baseline), adjacent)

    @property
    def baseline_name(self) -> str:
        """The baseline, as a sentence names it."""
        kind = self.request.against
        if kind in _NAMES:
            return _NAMES[kind]
        if kind == "custom":
            first, end = self.baseline.start, self.baseline.stop
            return f"{clock_time(first)} to {clock_time(end)}"
        return f"the {length(len(self.baseline) * self.baseline.step)} before"


def clock_time(moment: float) -> str:
    """Return a time in UTC: "2026-11-23 14:05"."""
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(moment))


def length(seconds: float) -> str:
    """Return a length of time in words: "15 min", "2 h", "9 h 55 min"."""
    units = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
    for (unit, name), (part, part_name) in itertools.pairwise(units):
        if seconds >= 2 * unit or (seconds >= unit and seconds % unit == 0):
            whole, rest = divmod(round(seconds / part), unit // part)
            return f"{whole} {name}" + (f" {rest} {part_name}" if rest else "")
    return f"{seconds:.3g} s"


def compare(
    request: ExplainRequest, retention: Retention, now: float, zone: Zone = UTC
) -> Comparison:
    """Choose the precision and the intervals of a comparison.

    Args:
        retention: of the counters or of the histograms.
        zone: whose time of day `yesterday` and `week` keep.

    Raises:
        UnknownPrecision: the precision of the request is not kept.
    """
    until = now if request.until is None else min(request.until, now)
    since = until - (request.last or DEFAULT_LENGTH) if request.since is None else request.since
    if request.precision is not None:
        retention.check(request.precision)
    precisions = [request.precision] if request.precision is not None else list(retention)
    windows = {p: _rounded(since, until, p, now) for p in precisions}
    if request.since is None and request.until is None and request.precision is None:
        # The edges are those of any precision that is fine enough.
        precisions = [p for p in precisions if _is_fine(p, until - since)]
    kept = [p for p in precisions if windows[p] and _keeps(retention, p, windows[p], now)]
    if not kept:
        widest = max(retention, key=lambda p: p * retention[p])
        return Comparison(request, since, until, reason=_not_kept(since, retention, widest, now))
    finest = kept[0]
    fixed = request.since is not None or request.until is not None
    window, baseline = windows[finest], _baseline(request, windows[finest], zone)
    for precision in kept:
        earlier = _baseline(request, windows[precision], zone)
        if earlier is None or not _keeps(retention, precision, earlier, now):
            continue
        if fixed and not (_same(windows[precision], window) and _same(earlier, baseline)):
            continue
        oldest = retention.oldest(precision, now)
        return Comparison(
            request,
            since,
            until,
            precision,
            oldest,
            windows[precision],
            earlier,
            range(oldest, windows[precision].start, precision),
        )
    reaches = retention.oldest(finest, now)
    others = tuple(
        Alternative(precision=p, reaches=retention.oldest(p, now))
        for p in retention
        if (rounded := _rounded(since, until, p, now))
        and _keeps(retention, p, rounded, now)
        and (other := _baseline(request, rounded, zone)) is not None
        and _keeps(retention, p, other, now)
    )
    return Comparison(
        request,
        since,
        until,
        finest,
        reaches,
        window,
        range(0) if baseline is None else baseline,
        reason=f"not kept: intervals of {span(finest)} reach back to {clock_time(reaches)} UTC",
        alternatives=others,
    )


def _not_kept(since: float, retention: Retention, widest: int, now: float) -> str:
    oldest = retention.oldest(widest, now)
    if since >= oldest:
        return "not kept: no complete interval of any precision is within the window"
    reach = f"intervals of {span(widest)} reach back to {clock_time(oldest)} UTC"
    return f"not kept: {reach}, and no others further"


def _rounded(since: float, until: float, precision: int, now: float) -> range:
    """Return the complete intervals that touch a window."""
    end = min(-slice_start(-until, precision), slice_start(now, precision))
    return range(slice_start(since, precision), end, precision)


def _baseline(request: ExplainRequest, window: range, zone: Zone) -> range | None:
    """Return the intervals of a baseline; None if they are not on the edges of intervals.

    Of another day, those of the same local time: fewer or more than the window has if the clocks
    changed within one of both.
    """
    step = window.step
    if request.against == "custom":
        end = -slice_start(-request.against_until, step)
        return range(slice_start(request.against_since, step), end, step)
    if request.against == "previous":
        return range(window.start - len(window) * step, window.start, step)
    shift = _SHIFTS[request.against]
    if shift % step:
        return None
    starts = [each - zone.back(each, shift, step) for each in window]
    return range(min(starts), max(starts) + step, step)


def _is_fine(precision: int, length: float) -> bool:
    """Return whether a window of a length is made of intervals of a precision."""
    return precision * _FEWEST <= length or length % precision == 0


def _same(one: range, other: range | None) -> bool:
    """Return whether intervals cover the same time."""
    if other is None:  # it has no edge of an interval there
        return True
    return one.start == other.start and one.stop == other.stop


def _keeps(retention: Retention, precision: int, intervals: range, now: float) -> bool:
    """Return whether a precision keeps intervals, all of which are complete."""
    if not intervals:
        return False
    end = slice_start(now, precision)
    return intervals.start >= retention.oldest(precision, now) and intervals.stop <= end
