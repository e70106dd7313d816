"""The log at a glance: changes, the most frequent patterns, the newest messages.

Two round trips, however large the store is. The first reads, for the logs that logged last, the
most frequent patterns of the current clock hour and of the one before, and the steps of about as
many patterns. The second reads the steps of other patterns, times and examples, and the newest
messages. recent.py reads all logs and patterns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from redmeter.analysis.comparing import changes as analysis
from redmeter.analysis.comparing.changes import passed_of
from redmeter.reading.foreign_keys import there
from redmeter.reading.join import Ask, Joined, join_of_newest
from redmeter.reading.logs import frequencies as log_counts
from redmeter.reading.logs.frequencies import (
    PatternFields,
    PatternPlace,
    Source,
    by_frequency,
    merge_variants,
    pattern_place,
    source_of,
)
from redmeter.results.logs import Change, Frequency, LogSource, Message
from redmeter.store import indexes
from redmeter.store.query import Query, in_parts
from redmeter.store.servers.replies import Command, Reply, is_misplaced, raised
from redmeter.stored.keys import HOUR, Keys
from redmeter.stored.message import SEVERITY_OF_LEVEL, parse_source, source_name
from redmeter.stored.steps import ALL, is_complete, parse_steps

#: Logs that are read, and those whose newest messages are read.
_MAX_SOURCES, _MAX_RECENT_SOURCES = 100, 20
#: Patterns of each log and hour that are read, and those whose times and examples are read.
_MAX_PATTERNS, _MAX_SEEN = 100, 2_000
#: Most messages of a request.
MAX_SHOWN_MESSAGES = 500
#: Most loggers that are listed.
MAX_LOGGERS = 1_000

#: Severities that count as errors.
_ERRORS = {SEVERITY_OF_LEVEL[40], SEVERITY_OF_LEVEL[50]}


@dataclass(slots=True)
class LogOverview:
    """The log at a glance."""

    #: Logs that exist, those whose patterns were read, and those with clock hours only.
    sources: int = 0
    compared: int = 0
    clock_hours: int = 0
    changes: list[Change] = field(default_factory=list)
    #: The most frequent ones of the last hour first.
    frequent: list[Frequency] = field(default_factory=list)
    #: The newest first.
    recent: list[Message] = field(default_factory=list)
    loggers: list[LogSource] = field(default_factory=list)
    #: Messages of severity error or critical in the last hour and in the hour before; and the count
    #: that the last hour would have by now at the rate of the hour before.
    errors: int = 0
    errors_before: int = 0
    errors_expected: float = 0.0
    #: Whether these hours are sliding hours.
    errors_sliding: bool = True


def log_overview(
    keys: Keys, logger: str | None = None, severities: Sequence[str] = (), limit: int = 100
) -> Query[LogOverview]:
    """Read the log at a glance.

    Args:
        logger: only this one.
        severities: only these, as they are stored; none: all.
        limit: number of messages, and of patterns; 0: no messages.

    Raises:
        StoreError: the server is unreachable or refuses the command.
    """
    limit = min(limit, MAX_SHOWN_MESSAGES)
    index = indexes.newest_members(keys, keys.messages, MAX_LOGGERS)
    number = indexes.size(keys, keys.messages)
    if logger is None:
        reads = _reads(keys, "")
        join_of = join_of_newest(keys, keys.messages, _MAX_SOURCES, reads)
        view, replies = yield [index, number, join_of]
        by_source = _joined(Joined(replies[2], len(reads), needed=False), severities)
    else:
        pairs = [(logger, severity) for severity in severities or SEVERITY_OF_LEVEL.values()]
        reads = [read for source in pairs for read in _reads(keys, source_name(*source))]
        view, replies = yield [index, number, *map(log_counts.command_of, reads)]
        size = len(reads) // len(pairs)
        by_source = {s: replies[2 + size * at :][:size] for at, s in enumerate(pairs)}
    loggers = log_counts.sources_of(there(replies[0], []))
    if severities:
        loggers = [one for one in loggers if one.severity in severities]
    result = LogOverview(there(replies[1], 0), len(by_source), loggers=loggers)
    if logger is not None:
        result.sources = result.compared = len(by_source)
    now = view.now
    errors: list[tuple[Frequency, Frequency]] = []
    counted: list[Frequency] = []
    steps: dict[Source, dict[str, bytes]] = {}
    unknown: set[PatternPlace] = set()
    for source, answers in by_source.items():
        if not any(map(is_misplaced, answers)):
            *hours, total, (_, scanned) = map(raised, answers)
            by_hour = log_counts.hourly(source, hours, now)
            steps[source] = log_counts.texts_of(scanned) | ({} if total is None else {ALL: total})
            counted += log_counts.sliding(source, by_hour, steps[source], now)
            unknown |= _partly_read(by_hour)
            if source[1] in _ERRORS:
                errors.append(_whole(source, by_hour, steps[source], now))
    _count_errors(result, errors, now)
    frequent = _chosen(by_frequency(counted), limit or MAX_SHOWN_MESSAGES)
    seen = PatternFields(frequent, lambda source: keys.patterns(*source))
    late = PatternFields(
        _without_steps(frequent, steps, now), lambda source: keys.key("steps", source_name(*source))
    )
    logs = list(by_source) if logger is not None else [(s.logger, s.severity) for s in loggers]
    recent = logs[:_MAX_RECENT_SOURCES] if limit else []
    lists: list[Command] = [("LRANGE", keys.recent(*s), "0", str(limit - 1)) for s in recent]
    times, steps_read, newest = yield from in_parts([seen.commands, late.commands, lists])
    frequent = log_counts.with_times(
        _slid(frequent, late.texts(steps_read), now), seen.texts(times)
    )
    lists_of = zip(recent, newest, strict=True)
    entries = {source: raised(reply) for source, reply in lists_of if not is_misplaced(reply)}
    result.recent = [message for _, message in log_counts.newest_messages(entries, limit)]
    result.clock_hours = log_counts.clock_hours(frequent)
    frequent = merge_variants(frequent)
    result.changes = [
        one
        for one in analysis.find_changes(frequent, now)
        if one.sliding or one.kind == analysis.NEW or unknown.isdisjoint(_places(one))
    ]
    result.frequent = frequent[: limit or MAX_SHOWN_MESSAGES]
    return result


def _places(one: Frequency) -> set[PatternPlace]:
    """Return the stored patterns of a frequency."""
    return {(*source_of(one), pattern) for pattern in one.variants or (one.pattern,)}


def _reads(keys: Keys, entry: str) -> list[Ask]:
    """Return the reads of a log's frequencies.

    By clock hours, then by steps: those of ALL, and of about _MAX_PATTERNS patterns, or of some
    hundreds if their texts are short. The others are read by name.

    Args:
        entry: of `messages:`, or "" for the parts of a join, which inserts its entries.
    """
    steps = keys.key("steps", entry)
    return [
        *log_counts.hour_reads(keys, entry, _MAX_PATTERNS),
        Ask("HGET", steps, arguments=(ALL,)),
        Ask("HSCAN", steps, arguments=("0", "COUNT", str(_MAX_PATTERNS))),
    ]


def _joined(joined: Joined, severities: Sequence[str]) -> dict[Source, Sequence[Reply]]:
    by_source = {}
    for member, replies in joined.readable():
        source = parse_source(member.decode(errors="replace"))
        if all(source) and (not severities or source[1] in severities):
            by_source[source] = replies
    return by_source


def _whole(
    source: Source, by_hour: Sequence[Frequency], steps: Mapping[str, bytes], now: float
) -> tuple[Frequency, Frequency]:
    """Return the number of messages of all patterns: by clock hours, and by sliding hours."""
    counts = sum(one.count for one in by_hour), sum(one.before for one in by_hour)
    whole = Frequency(*source, ALL, *counts, None, None, "")
    total = steps.get(ALL)
    return whole, log_counts.slide(whole, total, now) if is_complete(
        parse_steps(total), now
    ) else whole


def _partly_read(by_hour: Sequence[Frequency]) -> set[PatternPlace]:
    """Return the patterns that are missing in an hour of which only the most frequent are read."""
    full_now = sum(one.count > 0 for one in by_hour) >= _MAX_PATTERNS
    full_before = sum(one.before > 0 for one in by_hour) >= _MAX_PATTERNS
    return {
        pattern_place(one)
        for one in by_hour
        if (full_now and not one.count) or (full_before and not one.before)
    }


def _count_errors(
    result: LogOverview, logs: Sequence[tuple[Frequency, Frequency]], now: float
) -> None:
    """Count errors: by sliding hours if these are known of each log, otherwise by clock hours."""
    result.errors_sliding = all(one.sliding or not (one.count or one.before) for _, one in logs)
    counted = [by_hours[result.errors_sliding] for by_hours in logs]
    result.errors = sum(one.count for one in counted)
    result.errors_before = sum(one.before for one in counted)
    result.errors_expected = sum(one.before * passed_of(one, now) / HOUR for one in counted)


def _chosen(frequencies: Sequence[Frequency], shown: int) -> list[Frequency]:
    """Choose the patterns to look up: those shown as frequent, then the most urgent ones."""
    urgent = sorted(frequencies[shown:], key=lambda one: analysis.severity_rank(one.severity))
    return [*frequencies[:shown], *urgent][:_MAX_SEEN]


def _without_steps(
    frequencies: Sequence[Frequency], steps: Mapping[Source, Mapping[str, bytes]], now: float
) -> list[Frequency]:
    """Return the patterns whose steps are not read yet: of logs with more than were scanned."""
    complete = {
        source for source, texts in steps.items() if is_complete(parse_steps(texts.get(ALL)), now)
    }
    return [
        one
        for one in frequencies
        if not one.sliding
        and log_counts.source_of(one) in complete
        and one.pattern not in steps[log_counts.source_of(one)]
    ]


def _slid(
    frequencies: Sequence[Frequency], texts: Mapping[PatternPlace, bytes], now: float
) -> list[Frequency]:
    """Return frequencies by sliding hours, those whose steps are among the texts."""
    return [
        log_counts.slide(one, texts[place], now) if (place := pattern_place(one)) in texts else one
        for one in frequencies
    ]
