"""What an application says, at a glance: what changed, what comes most often, what came last.

Two round trips, whatever there is: for those loggers that logged last, up to a number of them, the
patterns that come most often, in this hour and in the one before; then what is known of these, and
the newest messages. All of them, and more of each, are read by messages.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from redmeter.analysis import changes as analysis
from redmeter.keys import Keys
from redmeter.kinds.message import SEVERITY, name_of, parse_name
from redmeter.model import Change, Frequency, LogSource, Message
from redmeter.reading.join import Ask, Joined, join
from redmeter.reading.messages import (
    Source,
    frequencies_of,
    messages_of,
    ordered,
    seen_of,
    sources_of,
)
from redmeter.reading.partly import there
from redmeter.reading.together import Question, ask
from redmeter.store import Store
from redmeter.store.replies import Command, Reply, is_misplaced, raised

#: Loggers and severities that are looked at, and those of which the newest messages are read.
MAX_SOURCES, MAX_RECENT_SOURCES = 100, 20
#: Patterns of each that are looked at, of each hour, and of how many it is read what is known.
MAX_PATTERNS, MAX_SEEN = 100, 2_000
#: Messages of a request at most.
MAX_MESSAGES = 500
#: Loggers that are named at most.
MAX_LOGGERS = 1_000

#: What counts as an error.
_ERRORS = {SEVERITY[40], SEVERITY[50]}


@dataclass(slots=True)
class Talk:
    """What is logged."""

    #: Loggers and severities that there are, and of how many the patterns were read.
    sources: int = 0
    compared: int = 0
    changes: list[Change] = field(default_factory=list)
    #: Those that came most often in this hour first.
    frequent: list[Frequency] = field(default_factory=list)
    #: The newest first.
    recent: list[Message] = field(default_factory=list)
    loggers: list[LogSource] = field(default_factory=list)
    #: Messages of severity error or critical, in this hour and in the one before.
    errors: int = 0
    errors_before: int = 0


def read_talk(
    store: Store, *, logger: str | None = None, severities: Sequence[str] = (), limit: int = 100
) -> Talk:
    """Read what is logged.

    Args:
        logger, severities: only of these, as they are stored; no severities: of all.
        limit: how many messages, and how many patterns.

    Raises:
        StoreError: the server cannot be reached or refuses.
    """
    return ask(store, lambda _: talk(store.keys, logger, severities, limit))[1]


def talk(
    keys: Keys, logger: str | None = None, severities: Sequence[str] = (), limit: int = 100
) -> Question[Talk]:
    """Ask the same; without a limit of messages, 0, these are left out."""
    limit = min(limit, MAX_MESSAGES)
    index = ("ZREVRANGE", keys.messages, "0", str(MAX_LOGGERS - 1), "WITHSCORES")
    number = ("ZCARD", keys.messages)
    if logger is None:
        asks = _asks(keys, "")
        join_of = join(keys.messages, ("ZREVRANGE", "0", str(MAX_SOURCES - 1)), 0, asks)
        view, replies = yield [index, number, join_of]
        hours = _of_join(Joined(replies[2], len(asks), needed=False), severities)
    else:
        wanted = [(logger, s) for s in severities or SEVERITY.values()]
        view, replies = yield [index, number, *_of_sources(keys, wanted)]
        grouped = _grouped(replies[2:], len(_asks(keys, "")))
        hours = dict(zip(wanted, grouped, strict=True))
    loggers = [
        s for s in sources_of(there(replies[0], [])) if not severities or s.severity in severities
    ]
    found = Talk(there(replies[1], 0), len(hours), loggers=loggers)
    if logger is not None:
        found.sources = found.compared = len(hours)
    frequencies = [
        one
        for source, answers in hours.items()
        if not any(map(is_misplaced, answers))
        for one in frequencies_of(source, [raised(reply) for reply in answers], (), view.now)
    ]
    for one in frequencies:
        if one.severity in _ERRORS:
            found.errors += one.count
            found.errors_before += one.before
    frequent = _to_know(ordered(frequencies), limit or MAX_MESSAGES)
    patterns: dict[Source, list[str]] = {}
    for one in frequent:
        patterns.setdefault((one.logger, one.severity), []).append(one.pattern)
    newest = _newest(loggers, hours, logger)[:MAX_RECENT_SOURCES] if limit else []
    commands: list[Command] = [("HMGET", keys.patterns(*s), *some) for s, some in patterns.items()]
    commands += [("LRANGE", keys.recent(*source), "0", str(limit - 1)) for source in newest]
    if commands:
        view, replies = yield commands
        frequent = _known(frequent, patterns, replies)
        found.recent = _recent(newest, replies[len(patterns) :], limit)
    found.changes = analysis.changes(frequent, view.now)
    found.frequent = ordered(frequent)[: limit or MAX_MESSAGES]
    return found


def _to_know(frequencies: Sequence[Frequency], shown: int) -> list[Frequency]:
    """Choose the patterns to look up: those shown as frequent, then the most urgent ones."""
    urgent = sorted(frequencies[shown:], key=lambda one: analysis.severity_rank(one.severity))
    return [*frequencies[:shown], *urgent][:MAX_SEEN]


def _asks(keys: Keys, entry: str) -> list[Ask]:
    """Return how to read the frequencies of patterns.

    Args:
        entry: of `messages:`, or "" for those of a join, which puts each entry in its place.
    """
    some = ("0", str(MAX_PATTERNS - 1), "WITHSCORES")
    key, start, last, *others = keys.common_parts(entry)
    counted = [Ask("ZREVRANGE", *part, some) for part in (key, last)]
    return [*counted, *(Ask("GET", *part) for part in (start, *others))]


def _of_sources(keys: Keys, sources: Sequence[Source]) -> list[Command]:
    return [
        (one.command, f"{one.head}{one.tail}", *one.arguments)
        for source in sources
        for one in _asks(keys, name_of(*source))
    ]


def _grouped(replies: Sequence[Reply], size: int) -> list[Sequence[Reply]]:
    return [replies[at : at + size] for at in range(0, len(replies), size)]


def _of_join(joined: Joined, severities: Sequence[str]) -> dict[Source, Sequence[Reply]]:
    found = {}
    for member, replies in joined.readable():
        source = parse_name(member.decode(errors="replace"))
        if all(source) and (not severities or source[1] in severities):
            found[source] = replies
    return found


def _newest(
    loggers: Sequence[LogSource], hours: dict[Source, Sequence[Reply]], logger: str | None
) -> list[Source]:
    if logger is not None:
        return list(hours)
    return [(one.logger, one.severity) for one in loggers]


def _known(
    frequencies: list[Frequency], patterns: dict[Source, list[str]], replies: Sequence[Reply]
) -> list[Frequency]:
    seen: dict[tuple[Source, str], bytes] = {}
    for (source, some), values in zip(patterns.items(), replies, strict=False):
        if is_misplaced(values):
            continue
        for pattern, value in zip(some, raised(values), strict=True):
            if value is not None:
                seen[source, pattern] = value
    known = []
    for one in frequencies:
        value = seen.get(((one.logger, one.severity), one.pattern))
        known.append(one if value is None else one.known(*seen_of(value)))
    return known


def _recent(sources: Sequence[Source], replies: Sequence[Reply], limit: int) -> list[Message]:
    found = [
        pair
        for source, reply in zip(sources, replies, strict=True)
        if not is_misplaced(reply)
        for pair in messages_of(*source, raised(reply))
    ]
    found.sort(key=lambda pair: pair[0], reverse=True)
    return [message for _, message in found[:limit]]
