"""What else changed between two windows: log patterns, marks, time in the database, exceptions.

Log patterns are those of the _MAX_SOURCES loggers and severities that logged last. When a pattern
was seen first and last is known for as long as it is kept; how often is counted for two hours.

Exceptions are counted by five minutes for a day, by hours and days for longer. The finest width
that reaches back to the baseline is used, and stated. All intervals that touch the window count as
part of it, the others that touch the baseline as part of that; rates are compared, not sums. A
group is listed if it is new; if none came, which is more than chance; or if its rate is
_LEAST_RATIO times as high or low, which is unlikely by chance.

Two round trips, the second one for groups of exceptions, together with the other reads.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from redmeter.analysis.comparing.changes import severity_rank, stopped
from redmeter.analysis.comparing.significance import split_probability
from redmeter.names import REQUEST_DB_SECONDS, SECONDS
from redmeter.reading.diagnosis.label_counts import moments_ask, moments_of
from redmeter.reading.diagnosis.windows import Comparison, clock_time
from redmeter.reading.exceptions import StoredGroup
from redmeter.reading.foreign_keys import there
from redmeter.reading.join import Ask, Joined, join_of_newest
from redmeter.reading.logs.frequencies import texts_of, times
from redmeter.reading.marks import answered, asked
from redmeter.reading.selection import LabelSets
from redmeter.results.explanation import (
    DatabaseTime,
    ExceptionChange,
    ExceptionChanges,
    LogPattern,
    PatternChanges,
)
from redmeter.store.query import Query, Read, together
from redmeter.store.servers.replies import is_misplaced, raised
from redmeter.stored.exception import INTERVALS, counts_between, oldest_kept
from redmeter.stored.keys import STEP, Keys, slice_start
from redmeter.stored.message import parse_source
from redmeter.stored.steps import parse_steps
from redmeter.types import Mark

#: Loggers and severities whose patterns are compared, patterns of each, and
#: patterns and exceptions that are listed.
_MAX_SOURCES: Final = 30
_MAX_PATTERNS: Final = 200
_MAX_LISTED: Final = 20
#: Groups of exceptions that are compared, those seen last.
_MAX_COMPARED: Final = 300
#: Least ratio of two rates of exceptions, and the probability that it is chance, at most.
_LEAST_RATIO: Final = 2.0
_ALPHA: Final = 0.001
#: Label sets of requests whose time in the database is read.
_MAX_REQUESTS: Final = 500

_OTHER = "(other)"
_FIELDS: Final = ("type", "message", "place", "first", "last")


@dataclass(slots=True)
class Circumstances:
    """What else changed."""

    messages: PatternChanges = field(default_factory=PatternChanges)
    exceptions: ExceptionChanges = field(default_factory=ExceptionChanges)
    marks: list[Mark] = field(default_factory=list)
    database: DatabaseTime | None = None
    not_compared: list[str] = field(default_factory=list)
    #: That no series has the labels of failures; "" if some has, or none are given.
    none_failed: str = ""


def circumstances(
    keys: Keys, comparison: Comparison, observed: Comparison | None, now: float
) -> Query[Circumstances]:
    """Read what else changed.

    Args:
        observed: the intervals of histograms that cover the same time, for web requests.
        now: the server's clock, Unix seconds.
    """
    result, exceptions = yield from together(
        [_without_exceptions(keys, comparison, observed), _exceptions(keys, comparison, now)]
    )
    assert isinstance(result, Circumstances)
    assert isinstance(exceptions, ExceptionChanges)
    result.exceptions = exceptions
    return result


def _without_exceptions(
    keys: Keys, comparison: Comparison, observed: Comparison | None
) -> Query[Circumstances]:
    window, baseline = comparison.window, comparison.baseline
    since, until = window.start, window.stop
    marks_since = baseline.start if baseline.stop == since else since
    reads: list[Read] = [
        asked(keys, marks_since, until),
        join_of_newest(
            keys,
            keys.messages,
            _MAX_SOURCES,
            [
                Ask("HSCAN", keys.key("patterns"), arguments=("0", "COUNT", "200")),
                Ask("HGETALL", keys.key("steps")),
            ],
        ),
    ]
    if observed is not None:
        starts = [*observed.baseline, *observed.window]
        fields = [str(start) for start in starts]
        ask = moments_ask(keys, observed.window.step, fields)
        for name in (REQUEST_DB_SECONDS, SECONDS):
            label_sets = LabelSets(keys, keys.hists, observed.window.step, name)
            reads.append(label_sets.join([ask], _MAX_REQUESTS))
    _, replies = yield reads
    result = Circumstances(marks=answered(there(replies[0], [])))
    joined = Joined(replies[1], 2, needed=False)
    result.messages, left_out = _patterns(joined, comparison)
    result.not_compared += left_out
    if observed is not None:
        sums = [_sums(Joined(reply, 1, needed=False), fields, observed) for reply in replies[2:]]
        result.database = database_time(*sums)
    return result


def _sums(
    joined: Joined, fields: Sequence[str], observed: Comparison
) -> tuple[tuple[int, float], tuple[int, float]]:
    """Return count and total of the baseline and of the window."""
    counts, totals = [0, 0], [0.0, 0.0]
    for _, (reply,) in joined.readable():
        for start, (count, total) in moments_of(reply, fields).items():
            for side, intervals in enumerate((observed.baseline, observed.window)):
                if start in intervals:
                    counts[side] += count
                    totals[side] += total
    return (counts[0], totals[0]), (counts[1], totals[1])


def database_time(
    database: tuple[tuple[int, float], tuple[int, float]],
    requests: tuple[tuple[int, float], tuple[int, float]],
) -> DatabaseTime | None:
    """Return the time per request; None if none was recorded.

    Args:
        database, requests: count and total in the baseline and in the window, seconds.
    """
    if not database[0][0] and not database[1][0]:
        return None
    means, shares = [], []
    for (_, total), (count, seconds) in zip(database, requests, strict=True):
        means.append(total / count if count else None)
        shares.append(min(1.0, total / seconds) if seconds else None)
    before, after = means
    change = None if before is None or after is None else after - before
    return DatabaseTime(
        name=REQUEST_DB_SECONDS,
        before=before,
        after=after,
        change=change,
        share_before=shares[0],
        share=shares[1],
    )


def _patterns(joined: Joined, comparison: Comparison) -> tuple[PatternChanges, list[str]]:
    """Return new and vanished patterns, and sentences about those that were not compared."""
    window, baseline = comparison.window, comparison.baseline
    appeared, vanished = list[LogPattern](), list[LogPattern]()
    partial = uncounted = 0
    for member, (scan, steps_reply) in joined.readable():
        logger, severity = parse_source(member.decode(errors="replace"))
        cursor, seen = scan
        partial += cursor not in (b"0", "0", 0)
        steps = {pattern: parse_steps(text) for pattern, text in texts_of(steps_reply).items()}
        for pattern, value in texts_of(seen).items():
            first, last, sample = times(value)
            if first is None or last is None or pattern == _OTHER:
                continue
            counts = steps.get(pattern)
            new = window.start <= first < window.stop
            gone = baseline.start <= last < baseline.stop and last < window.start
            if not new and not gone:
                continue
            intervals, count = window if new else baseline, None
            since = max(intervals.start, slice_start(first, STEP)) if new else intervals.start
            if counts is not None and counts.oldest <= since:
                count = counts.between(intervals.start, intervals.stop)
            uncounted += gone and count is None
            # A rare pattern vanishes all the time.
            if gone and (count is None or not stopped(count, comparison.scale)):
                continue
            row = LogPattern(
                logger=logger,
                severity=severity,
                pattern=pattern,
                sample=sample,
                first=first,
                last=last,
                count=count,
            )
            (appeared if new else vanished).append(row)
    left_out = []
    if partial:
        left_out.append(f"some patterns of {partial} loggers with over {_MAX_PATTERNS} patterns")
    if uncounted:
        left_out.append(
            f"{uncounted} log patterns that were last seen in the baseline: how often is not kept, "
            "counts of patterns reach back two hours"
        )
    return PatternChanges(new=_listed(appeared), vanished=_listed(vanished)), left_out


def _listed(rows: list[LogPattern]) -> tuple[LogPattern, ...]:
    """Return the most important patterns."""
    rows.sort(key=lambda row: (severity_rank(row.severity), -(row.count or 0), row.pattern))
    return tuple(rows[:_MAX_LISTED])


def window_note(first: int | None, comparison: Comparison) -> str:
    """Return a sentence if the events begin within the baseline; "" if not.

    Args:
        first: start of the first interval with events; None if there are none.
    """
    if first is None or first <= comparison.baseline.start:
        return ""
    if first >= comparison.baseline.stop:
        return ""
    return f"the baseline before {clock_time(first)} UTC: nothing was recorded"


# --- Exceptions -----------------------------------------------------------------------------


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


def _exceptions(keys: Keys, comparison: Comparison, now: float) -> Query[ExceptionChanges]:
    """Read the groups of exceptions whose rate changed, in two round trips."""
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
            kind = "vanished" if stopped(number, scale) else None
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
