"""Groups of exceptions whose rate changed between two windows.

Exceptions are counted by five minutes for a day, by hours and days for longer. The finest width
that reaches back to the baseline is used, and stated. All intervals that touch the window count as
part of it, the others that touch the baseline as part of that; rates are compared, not sums.

A group is listed if it is new; if none came, though GONE_EXPECTED were expected; or if its rate is
_LEAST_RATIO times as high or low, which is unlikely by chance.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from redmeter.analysis.comparing.changes import GONE_EXPECTED
from redmeter.analysis.comparing.significance import split_probability
from redmeter.reading.diagnosis.windows import Comparison, clock_time
from redmeter.reading.exceptions import StoredGroup
from redmeter.results.explanation import ExceptionChange, ExceptionChanges
from redmeter.store.query import Query, Read
from redmeter.store.servers.replies import is_misplaced, raised
from redmeter.stored.exception import INTERVALS, counts_between, oldest_kept
from redmeter.stored.keys import Keys, slice_start

#: Groups that are compared, those seen last, and groups that are listed.
_MAX_COMPARED: Final = 300
_MAX_LISTED: Final = 20
#: Least ratio of two rates, and the probability that it is chance, at most.
_LEAST_RATIO: Final = 2.0
_ALPHA: Final = 0.001

_FIELDS: Final = ("type", "message", "place", "first", "last")


class ExceptionWindows(NamedTuple):
    """The intervals of exceptions that two windows touch."""

    width: int
    #: Starts of intervals, in steps of the width.
    baseline: range
    window: range

    @property
    def all_of(self) -> range:
        """The intervals from the start of the baseline to the end of the window."""
        return range(self.baseline.start, self.window.stop, self.width)

    def split(self, counts: Sequence[int]) -> tuple[int, int]:
        """Return the sums of the baseline and of the window, of counts of all intervals."""
        before = after = 0
        for start, count in zip(self.all_of, counts, strict=True):
            if start in self.window:
                after += count
            elif start in self.baseline:
                before += count
        return before, after


def windows_of(comparison: Comparison, now: float) -> ExceptionWindows | None:
    """Return the intervals of a comparison; None if no width reaches back to its baseline."""
    baseline, window = comparison.baseline, comparison.window
    for width in INTERVALS:
        first = slice_start(baseline.start, width)
        if first < oldest_kept(width, now):
            continue
        start, end = slice_start(window.start, width), -slice_start(-window.stop, width)
        before = min(start, -slice_start(-baseline.stop, width))
        if first < before:
            return ExceptionWindows(width, range(first, before, width), range(start, end, width))
    return None


def exception_changes(keys: Keys, comparison: Comparison, now: float) -> Query[ExceptionChanges]:
    """Read the groups of exceptions whose rate changed, in two round trips.

    Args:
        now: the server's clock, Unix seconds.
    """
    windows = windows_of(comparison, now)
    if windows is None:
        return not_kept(comparison, now)
    read: Read = (
        *("ZREVRANGEBYSCORE", keys.exceptions, "+inf", str(windows.baseline.start)),
        *("LIMIT", "0", str(_MAX_COMPARED)),
    )
    _, (members,) = yield [read]
    if is_misplaced(members) or not members:
        return ExceptionChanges(precision=windows.width)
    groups = [member.decode(errors="replace") for member in raised(members)]
    fields = (*_FIELDS, str(windows.width))
    _, replies = yield [("HMGET", keys.key("exception", group), *fields) for group in groups]
    stored = []
    for group, reply in zip(groups, replies, strict=True):
        if is_misplaced(reply):
            continue
        *texts, counts = raised(reply)
        kind, message, place, first, last = [(t or b"").decode(errors="replace") for t in texts]
        span = windows.all_of
        changed = counts_between(counts, windows.width, span.start, span.stop)
        try:
            times = float(first), float(last)
        except ValueError:
            continue
        stored.append(StoredGroup(group, (kind, message, place), 0, *times, (), (), changed))
    return changes_of(stored, windows, comparison)


def not_kept(comparison: Comparison, now: float) -> ExceptionChanges:
    """Return the answer if the baseline is older than any exception, or not before the window."""
    if comparison.baseline.start >= comparison.window.start:
        return ExceptionChanges(reason="the baseline is not before the window")
    oldest = min(oldest_kept(width, now) for width in INTERVALS)
    return ExceptionChanges(reason=f"not kept: exceptions reach back to {clock_time(oldest)} UTC")


def changes_of(
    stored: Iterable[StoredGroup], windows: ExceptionWindows, comparison: Comparison
) -> ExceptionChanges:
    """Return the groups whose rate changed.

    Args:
        stored: with the counts of all intervals of the windows.
    """
    scale = len(windows.window) / len(windows.baseline)
    share = scale / (1 + scale)
    changes: list[ExceptionChange] = []
    for one in stored:
        number, count = windows.split(one.counts)
        before = scale * number
        kind = None
        if count and comparison.window.start <= one.first < comparison.window.stop:
            kind = "new"
        elif not count:
            kind = "vanished" if before >= GONE_EXPECTED else None
        elif split_probability(count, number, share) <= _ALPHA:
            if count >= _LEAST_RATIO * before:
                kind = "more"
            elif before >= _LEAST_RATIO * count:
                kind = "fewer"
        if kind is None:
            continue
        changes.append(
            ExceptionChange(
                id=one.group,
                type=one.texts[0],
                message=one.texts[1],
                place=one.texts[2],
                kind=kind,  # type: ignore[arg-type]
                before=before,
                count=count,
                first=one.first,
                last=one.last,
            )
        )
    changes.sort(key=lambda one: (one.kind != "new", -abs(one.count - one.before), one.id))
    return ExceptionChanges(groups=tuple(changes[:_MAX_LISTED]), precision=windows.width)
