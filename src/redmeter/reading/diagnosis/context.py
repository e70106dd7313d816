"""What else changed between two windows: log patterns, marks, time in the database.

One round trip, together with the other reads. Exceptions are in exception_changes.py. Log patterns
are those of the MAX_SOURCES loggers and severities that logged last. When a pattern was seen first
and last is known for as long as it is kept; how often is counted for two hours.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from redmeter.analysis.comparing.changes import GONE_EXPECTED, severity_rank
from redmeter.names import SECONDS
from redmeter.reading.diagnosis.label_counts import moments_ask, moments_of
from redmeter.reading.diagnosis.windows import Comparison, clock_time
from redmeter.reading.foreign_keys import there
from redmeter.reading.join import Ask, Joined, join_of_newest
from redmeter.reading.logs.frequencies import texts_of, times
from redmeter.reading.marks import answered, asked
from redmeter.reading.selection import LabelSets
from redmeter.results.explanation import DatabaseTime, ExceptionChanges, LogPattern, PatternChanges
from redmeter.store.query import Query, Read
from redmeter.stored.keys import Keys
from redmeter.stored.message import parse_name
from redmeter.stored.steps import parse as parse_steps
from redmeter.types import Mark

#: Loggers and severities whose patterns are compared, patterns of each, and those that are listed.
MAX_SOURCES: Final = 30
MAX_PATTERNS: Final = 200
MAX_LISTED: Final = 20
#: Label sets of requests whose time in the database is read.
MAX_REQUESTS: Final = 500
#: Time in the database by request.
DB_SECONDS: Final = "http_request_db_seconds"

_OTHER = "(other)"


@dataclass(slots=True)
class Circumstances:
    """What else changed."""

    messages: PatternChanges = field(default_factory=PatternChanges)
    exceptions: ExceptionChanges = field(default_factory=ExceptionChanges)
    marks: list[Mark] = field(default_factory=list)
    database: DatabaseTime | None = None
    not_compared: list[str] = field(default_factory=list)


def circumstances(
    keys: Keys, comparison: Comparison, observed: Comparison | None
) -> Query[Circumstances]:
    """Read what else changed.

    Args:
        observed: the intervals of histograms that cover the same time, for web requests.
    """
    window, baseline = comparison.window, comparison.baseline
    since, until = window.start, window.stop
    marks_since = baseline.start if baseline.stop == since else since
    reads: list[Read] = [
        asked(keys, marks_since, until),
        join_of_newest(
            keys,
            keys.messages,
            MAX_SOURCES,
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
        for name in (DB_SECONDS, SECONDS):
            label_sets = LabelSets(keys, keys.hists, observed.window.step, name)
            reads.append(label_sets.join([ask], MAX_REQUESTS))
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
        name=DB_SECONDS,
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
        logger, severity = parse_name(member.decode(errors="replace"))
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
            if counts is not None and counts.oldest <= intervals.start:
                count = counts.between(intervals.start, intervals.stop)
            uncounted += gone and count is None
            # A rare pattern vanishes all the time.
            if gone and (count is None or count * comparison.scale < GONE_EXPECTED):
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
        left_out.append(f"some patterns of {partial} loggers with over {MAX_PATTERNS} patterns")
    if uncounted:
        left_out.append(
            f"{uncounted} log patterns that were last seen in the baseline: how often is not kept, "
            "counts of patterns reach back two hours"
        )
    return PatternChanges(new=_listed(appeared), vanished=_listed(vanished)), left_out


def _listed(rows: list[LogPattern]) -> tuple[LogPattern, ...]:
    """Return the most important patterns."""
    rows.sort(key=lambda row: (severity_rank(row.severity), -(row.count or 0), row.pattern))
    return tuple(rows[:MAX_LISTED])


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
