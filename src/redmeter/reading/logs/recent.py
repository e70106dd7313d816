"""Logs: the newest messages, the frequencies of patterns, and their changes.

The index `messages:` lists loggers with their severities. Other programs don't write it, so for a
named logger the first round trip reads all standard severities, and a second one further severities
of the index.

The loggers that logged last are read, LOG_PAGE at a time, up to MAX_COMPARED_LOGS logs and until
MAX_COMPARED_PATTERNS patterns are known; the result states how many were read. Times and examples
are read only for the patterns that the caller needs. overview.py is the bounded reading of the
page.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from redmeter.analysis.comparing import changes as analysis
from redmeter.reading.foreign_keys import readable
from redmeter.reading.logs import frequencies as log_counts
from redmeter.reading.logs.frequencies import PatternFields, Source, by_frequency, merge_variants
from redmeter.results.logs import Changes, Frequency, LogSource, Message
from redmeter.store import Store, View, indexes
from redmeter.store.query import Read
from redmeter.store.servers.replies import Command, Reply, raised
from redmeter.stored.message import MAX_HOURLY_PATTERNS, SEVERITY_OF_LEVEL, source_name

#: Most messages of one request.
MAX_MESSAGES = 10_000
#: Logs of the index that are read, those that logged last.
_MAX_SOURCES = 10_000
#: Logs whose patterns are compared, and those read at once.
MAX_COMPARED_LOGS, LOG_PAGE = 5_000, 100
#: Patterns after which no further logs are read, and those whose times are read at once.
MAX_COMPARED_PATTERNS, SEEN_PAGE = 200_000, 5_000

#: Makes the commands for a log.
Commands = Callable[[Source], list[Command]]


def read_recent(
    store: Store, logger: str | None, *, severity: str | None = None, limit: int = 100
) -> list[Message]:
    """Read the newest messages of a logger, the newest first, in at most two round trips.

    Args:
        logger: None for all loggers, with a round trip for every LOG_PAGE of those that may have
            one of the newest messages.
        severity: only this one, as it is stored.
        limit: number of messages.

    Raises:
        StoreError: the server is unreachable or refuses the command, or another program stores
            something else under the key.
    """

    def commands(source: Source) -> list[Command]:
        return [("LRANGE", store.keys.recent(*source), "0", str(limit - 1))]

    def lists(replies: Mapping[Source, Sequence[Reply]]) -> dict[Source, Sequence[bytes]]:
        return {source: entries for source, (entries,) in readable(replies).items()}

    if logger is not None:
        merged = log_counts.newest_messages(
            lists(_read(store, logger, severity, commands)[1]), limit
        )
        return [message for _, message in merged]
    messages: list[tuple[float, Message]] = []
    sources, _ = _sources(store, severity)
    for at in range(0, len(sources), LOG_PAGE):
        # The index rounds times to seconds.
        if len(messages) == limit and messages[-1][0] > sources[at].last + 1.0:
            break
        page = [(s.logger, s.severity) for s in sources[at : at + LOG_PAGE]]
        messages += log_counts.newest_messages(lists(_ask(store, page, commands)[1]), limit)
        messages.sort(key=lambda pair: pair[0], reverse=True)
        del messages[limit:]
    return [message for _, message in messages]


def read_common(store: Store, logger: str, *, severity: str | None = None) -> list[Frequency]:
    """Read the counts of a logger's patterns in the current clock hour and in the one before.

    The most frequent ones of the current hour come first. At most two round trips.

    Args:
        severity: only this one, as it is stored.

    Raises:
        StoreError: the server is unreachable or refuses the command, or another program stores
            something else under the key.
    """
    return _one(store, logger, severity, slides=False).frequencies


def read_loggers(store: Store) -> list[LogSource]:
    """Read the loggers with their severities, those that logged last first.

    Raises:
        StoreError: the server is unreachable or refuses the command.
    """
    (reply,) = store.ask([_index(store)])
    return log_counts.sources_of(reply)


class Compared(NamedTuple):
    """The frequencies of patterns, and the number of logs that they are from."""

    frequencies: list[Frequency]
    #: The server's clock, Unix seconds.
    now: float
    #: Logs that exist, and logs that were read.
    sources: int
    compared: int
    #: Logs of which only clock hours are known.
    clock_hours: int = 0


def read_changes(store: Store, logger: str | None = None) -> Changes:
    """Read the patterns that are new, spiking or gone: see analysis/comparing/changes.py.

    Args:
        logger: None for all loggers, see read_frequencies().

    Raises:
        StoreError: the server is unreachable or refuses the command.
    """
    read = read_frequencies(store, logger)
    changed = analysis.find_changes(read.frequencies, read.now)
    return Changes(
        tuple(changed), sources=read.sources, compared=read.compared, clock_hours=read.clock_hours
    )


def read_frequencies(
    store: Store,
    logger: str | None = None,
    *,
    severity: str | None = None,
    known: int | None = None,
) -> Compared:
    """Read the counts of patterns in the last hour and in the hour before.

    By sliding hours if these are known, otherwise by clock hours, as read_common() does.

    Args:
        logger: None for all loggers, those that logged last first.
        severity: only this one, as it is stored.
        known: number of patterns that get times and an example, the most frequent ones; None: all.

    Raises:
        StoreError: the server is unreachable or refuses the command.
    """
    if logger is not None:
        return _one(store, logger, severity, slides=True)
    sources, number = _sources(store, severity)
    counted: list[Frequency] = []
    compared, now = 0, store.clock.wall()
    for at in range(0, min(len(sources), MAX_COMPARED_LOGS), LOG_PAGE):
        if len(counted) >= MAX_COMPARED_PATTERNS:
            break
        page = [(s.logger, s.severity) for s in sources[at : min(at + LOG_PAGE, MAX_COMPARED_LOGS)]]
        view, replies = _ask(
            store, page, lambda source: [*_hours(store, source), _steps(store, source)]
        )
        now = view.now
        for source, (*hours, steps) in readable(replies).items():
            by_hour = log_counts.hourly(source, hours, now)
            counted += log_counts.sliding(source, by_hour, log_counts.texts_of(steps), now)
        compared += len(page)
    counted = by_frequency(counted)
    shown = len(counted) if known is None else known
    frequencies = _with_times(store, counted[:shown]) + counted[shown:]
    by_clock = log_counts.clock_hours(frequencies)
    return Compared(merge_variants(frequencies), now, number, compared, by_clock)


def _one(store: Store, logger: str, severity: str | None, *, slides: bool) -> Compared:
    """Read the patterns of one logger, with their times and examples."""

    def commands(source: Source) -> list[Command]:
        reads = [("HGETALL", store.keys.patterns(*source)), *_hours(store, source)]
        return [*reads, _steps(store, source)] if slides else reads

    view, replies = _read(store, logger, severity, commands)
    frequencies: list[Frequency] = []
    for source, (patterns, *hours) in readable(replies).items():
        steps = log_counts.texts_of(hours.pop()) if slides else {}
        by_hour = log_counts.hourly(source, hours, view.now)
        counted = log_counts.sliding(source, by_hour, steps, view.now)
        texts = {(*source, name): text for name, text in log_counts.texts_of(patterns).items()}
        frequencies += log_counts.with_times(counted, texts)
    number = len(replies)
    by_clock = log_counts.clock_hours(frequencies)
    return Compared(merge_variants(frequencies), view.now, number, number, by_clock)


def _with_times(store: Store, frequencies: Sequence[Frequency]) -> list[Frequency]:
    """Read the times and examples of patterns; in their order."""
    complete: list[Frequency] = []
    for at in range(0, len(frequencies), SEEN_PAGE):
        page = frequencies[at : at + SEEN_PAGE]
        fields = PatternFields(page, lambda source: store.keys.patterns(*source))
        complete += log_counts.with_times(page, fields.texts(store.ask(fields.commands)))
    return complete


def _index(store: Store) -> Read:
    return indexes.newest_members(store.keys, store.keys.messages, _MAX_SOURCES)


def _sources(store: Store, severity: str | None) -> tuple[list[LogSource], int]:
    """Read the logs with a severity, or with any, and their number."""
    index, number = store.ask([_index(store), indexes.size(store.keys, store.keys.messages)])
    sources = [s for s in log_counts.sources_of(index) if severity in (None, s.severity)]
    return sources, len(sources) + max(0, raised(number) - _MAX_SOURCES)


def _ask(
    store: Store, sources: Sequence[Source], commands: Commands, *first: Read
) -> tuple[View, dict[Source, list[Reply]]]:
    """Send the same commands for each log; the replies to `first` are those of ("", "")."""
    by_source = [commands(source) for source in sources]
    view, replies = store.read([*first, *(command for each in by_source for command in each)])
    remaining = iter(replies)
    result = {("", ""): [next(remaining) for _ in first]} if first else {}
    result |= {
        source: [next(remaining) for _ in each]
        for source, each in zip(sources, by_source, strict=True)
    }
    return view, result


def _read(
    store: Store, logger: str, severity: str | None, commands: Commands
) -> tuple[View, dict[Source, list[Reply]]]:
    """Send the same commands for all severities of a logger, or for one."""
    if severity is not None:
        return _ask(store, [(logger, severity)], commands)
    standard = [(logger, name) for name in SEVERITY_OF_LEVEL.values()]
    view, replies = _ask(store, standard, commands, _index(store))
    (index,) = replies.pop(("", ""))
    listed = [(s.logger, s.severity) for s in log_counts.sources_of(index) if s.logger == logger]
    others = [source for source in listed if source not in replies]
    if others:
        replies |= _ask(store, others, commands)[1]
    return view, replies


def _hours(store: Store, source: Source) -> list[Command]:
    # Other programs keep any number of patterns.
    reads = log_counts.hour_reads(store.keys, source_name(*source), 2 * MAX_HOURLY_PATTERNS)
    return [log_counts.command_of(read) for read in reads]


def _steps(store: Store, source: Source) -> Command:
    return ("HGETALL", store.keys.key("steps", source_name(*source)))
