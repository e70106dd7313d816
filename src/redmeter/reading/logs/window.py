"""The log within a window: its messages, and its patterns compared with as long a time before.

Counts come from the steps of five minutes, which reach back two hours, to `counted_since`. A window
that begins earlier is counted from there, and so is the time before it; its messages are listed as
far as the lists of newest messages reach.

Three round trips: the logs, their steps and newest messages, and the times of the patterns shown.

Bound: MAX_WINDOW_LOGS logs that logged since the window began, those that logged last.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from redmeter.analysis.comparing.changes import as_change, severity_rank
from redmeter.reading.foreign_keys import there
from redmeter.reading.logs import frequencies as log_counts
from redmeter.reading.logs.frequencies import PatternFields, Source, by_frequency
from redmeter.reading.logs.overview import MAX_LOGGERS, MAX_SHOWN_MESSAGES
from redmeter.results.logs import Change, Frequency, LogSource, Message
from redmeter.store import indexes
from redmeter.store.query import Query
from redmeter.store.servers.replies import is_misplaced, raised
from redmeter.stored.keys import STEP, Keys, slice_start
from redmeter.stored.message import SEVERITY_OF_LEVEL, source_name
from redmeter.stored.steps import ALL, STEPS, StepCounts, parse_steps

#: Logs that are read.
MAX_WINDOW_LOGS = 50


@dataclass(slots=True)
class LogWindow:
    """The log within a window."""

    since: float
    until: float
    #: Logs that logged since the window began, and those that were read.
    sources: int = 0
    compared: int = 0
    #: Always 0: the counts of a window are by steps.
    clock_hours: int = 0
    #: The oldest step that is kept, Unix seconds.
    counted_since: float = 0.0
    #: Patterns that were first seen in the window.
    changes: list[Change] = field(default_factory=list)
    #: The most frequent ones of the window first.
    frequent: list[Frequency] = field(default_factory=list)
    #: The newest first.
    recent: list[Message] = field(default_factory=list)
    loggers: list[LogSource] = field(default_factory=list)


class LogQuery(NamedTuple):
    """A window of the log."""

    #: Unix seconds.
    since: float
    until: float
    #: Only this logger; only these severities, as they are stored, all if there are none.
    logger: str | None = None
    severities: Sequence[str] = ()
    #: Only patterns and messages with this text.
    containing: str = ""
    #: Number of messages, and of patterns.
    limit: int = 100


def log_window(keys: Keys, wanted: LogQuery) -> Query[LogWindow]:
    """Read the log within a window.

    Raises:
        StoreError: the server is unreachable or refuses the command.
    """
    since, until, logger, severities, containing, limit = wanted
    view, (index,) = yield [indexes.newest_members(keys, keys.messages, MAX_LOGGERS)]
    until = min(until, view.now)
    result = LogWindow(min(since, until), until)
    result.loggers = [
        one
        for one in log_counts.sources_of(there(index, []))
        if not severities or one.severity in severities
    ]
    # The index rounds times to seconds.
    logs = [
        (one.logger, one.severity)
        for one in result.loggers
        if one.last >= since - 1.0 and logger in (None, one.logger)
    ]
    if logger is not None and not logs:  # other programs don't write the index
        logs = [(logger, severity) for severity in severities or SEVERITY_OF_LEVEL.values()]
    result.sources, logs = len(logs), logs[:MAX_WINDOW_LOGS]
    result.counted_since = slice_start(view.now, STEP) - (STEPS - 1) * STEP
    if not logs:
        return result
    _, replies = yield [
        *(("HGETALL", keys.key("steps", source_name(*source))) for source in logs),
        *(("LRANGE", keys.recent(*source), "0", str(MAX_SHOWN_MESSAGES - 1)) for source in logs),
    ]
    counted: list[Frequency] = []
    for source, reply in zip(logs, replies, strict=False):
        if not is_misplaced(reply):
            counted += _frequencies(source, log_counts.texts_of(reply), result, containing)
            result.compared += 1
    lists = zip(logs, replies[len(logs) :], strict=True)
    entries = {source: raised(reply) for source, reply in lists if not is_misplaced(reply)}
    result.recent = [
        message
        for _, message in log_counts.newest_messages(entries, MAX_SHOWN_MESSAGES * MAX_WINDOW_LOGS)
        if message.time is not None and since <= message.time < until and containing in message.text
    ][:limit]
    shown = by_frequency(counted)[:limit]
    urgent = sorted(counted, key=lambda one: severity_rank(one.severity))[:limit]
    seen = PatternFields(dict.fromkeys([*shown, *urgent]), lambda source: keys.patterns(*source))
    if seen.commands:
        _, replies = yield seen.commands
        texts = seen.texts(replies)
        result.frequent = log_counts.merge_variants(log_counts.with_times(shown, texts))
        changed = log_counts.merge_variants(log_counts.with_times(urgent, texts))
        changed.sort(key=lambda one: severity_rank(one.severity))
        result.changes = _new(changed, since, until)
    return result


def _frequencies(
    source: Source, texts: Mapping[str, bytes], window: LogWindow, containing: str
) -> list[Frequency]:
    """Return the counts of the patterns of a log within the window and before it."""
    start = slice_start(window.since, STEP)
    length = -int(-(window.until - start) // STEP) * STEP
    counted = []
    for pattern, text in texts.items():
        steps = parse_steps(text) or StepCounts(0, ())
        count = steps.between(start, start + length)
        if pattern != ALL and count and containing in pattern:
            before = steps.between(start - length, start)
            counted.append(Frequency(*source, pattern, count, before, None, None, "", True))
    return counted


def _new(frequencies: Sequence[Frequency], since: float, until: float) -> list[Change]:
    """Return the patterns that were first seen in the window, errors first."""
    return [
        as_change(one, "new")
        for one in frequencies
        if one.first is not None and since <= one.first < until
    ]
