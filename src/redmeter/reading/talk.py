"""What an application says, at a glance: what changed, what comes most often, what came last.

Two round trips, whatever there is. The first reads, of the loggers that logged last, up to a limit,
the patterns that came most often in this clock hour and in the one before, and counts by five
minutes of about as many patterns. The second reads the other counts by five minutes, times and
samples of patterns, and the newest messages. All loggers and patterns are read by messages.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from redmeter.analysis import changes as analysis
from redmeter.analysis.changes import passed_of
from redmeter.format.message import SEVERITY, name_of, parse_name
from redmeter.format.steps import ALL, is_complete, parse
from redmeter.keys import HOUR, Keys
from redmeter.reading.foreign_keys import there
from redmeter.reading.join import Ask, Joined, join_newest
from redmeter.reading.messages import (
    Source,
    frequencies_of,
    messages_of,
    ordered,
    seen_of,
    sources_of,
    texts_of,
)
from redmeter.reading.sliding import clock_hours, slid, slid_one
from redmeter.store import Store, indexes
from redmeter.store.query import Query, run
from redmeter.store.replies import Command, Reply, is_misplaced, raised
from redmeter.types import Change, Frequency, LogSource, Message

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

    #: Loggers and severities that there are, of how many the patterns were read, and of how many
    #: of these only clock hours are known.
    sources: int = 0
    compared: int = 0
    clock_hours: int = 0
    changes: list[Change] = field(default_factory=list)
    #: Those that came most often in the last hour first.
    frequent: list[Frequency] = field(default_factory=list)
    #: The newest first.
    recent: list[Message] = field(default_factory=list)
    loggers: list[LogSource] = field(default_factory=list)
    #: Messages of severity error or critical in the last hour and in the hour before; and how many
    #: the last hour would have by now at the rate of the hour before.
    errors: int = 0
    errors_before: int = 0
    errors_expected: float = 0.0
    #: Whether these hours are sliding hours.
    errors_sliding: bool = True


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
    return run(store, lambda _: talk(store.keys, logger, severities, limit))[1]


def talk(
    keys: Keys, logger: str | None = None, severities: Sequence[str] = (), limit: int = 100
) -> Query[Talk]:
    """Ask the same; without a limit of messages, 0, these are left out."""
    limit = min(limit, MAX_MESSAGES)
    index = indexes.newest(keys, keys.messages, MAX_LOGGERS)
    number = indexes.size(keys, keys.messages)
    if logger is None:
        asks = _asks(keys, "")
        join_of = join_newest(keys, keys.messages, MAX_SOURCES, asks)
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
    errors: list[tuple[Frequency, Frequency]] = []
    sliding: list[Frequency] = []
    steps: dict[Source, dict[str, bytes]] = {}
    for source, answers in hours.items():
        if not any(map(is_misplaced, answers)):
            *of_hours, total, (_, scanned) = map(raised, answers)
            of_source = frequencies_of(source, of_hours, view.now)
            steps[source] = texts_of(scanned) | ({} if total is None else {ALL: total})
            sliding += slid(source, of_source, steps[source], view.now)
            if source[1] in _ERRORS:
                errors.append(_whole(source, of_source, steps[source], view.now))
    _count_errors(found, errors, view.now)
    frequent = _to_know(ordered(sliding), limit or MAX_MESSAGES)
    patterns: dict[Source, list[str]] = {}
    for one in frequent:
        patterns.setdefault((one.logger, one.severity), []).append(one.pattern)
    newest = _newest(loggers, hours, logger)[:MAX_RECENT_SOURCES] if limit else []
    unslid = _unslid(frequent, steps, view.now)
    commands: list[Command] = [("HMGET", keys.patterns(*s), *some) for s, some in patterns.items()]
    commands += [("HMGET", keys.key("steps", name_of(*s)), *some) for s, some in unslid.items()]
    commands += [("LRANGE", keys.recent(*source), "0", str(limit - 1)) for source in newest]
    if commands:
        now = view.now
        view, replies = yield commands
        at = len(patterns) + len(unslid)
        late = _fields(unslid, replies[len(patterns) : at])
        frequent = [
            slid_one(one, late[place], now) if (place := _place(one)) in late else one
            for one in frequent
        ]
        frequent = _known(frequent, _fields(patterns, replies))
        found.recent = _recent(newest, replies[at:], limit)
    found.clock_hours = clock_hours(frequent)
    found.changes = analysis.changes(frequent, view.now)
    found.frequent = ordered(frequent)[: limit or MAX_MESSAGES]
    return found


def _whole(
    source: Source, hourly: Sequence[Frequency], steps: Mapping[str, bytes], now: float
) -> tuple[Frequency, Frequency]:
    """Return how many messages of all patterns there were: by clock hours, and by sliding hours."""
    counts = sum(one.count for one in hourly), sum(one.before for one in hourly)
    whole = Frequency(*source, ALL, *counts, None, None, "")
    total = steps.get(ALL)
    return whole, slid_one(whole, total, now) if is_complete(parse(total), now) else whole


def _count_errors(found: Talk, logs: Sequence[tuple[Frequency, Frequency]], now: float) -> None:
    """Count errors: by sliding hours where these are known of each log, else by clock hours."""
    found.errors_sliding = all(one.sliding or not (one.count or one.before) for _, one in logs)
    counted = [logs_by[found.errors_sliding] for logs_by in logs]
    found.errors = sum(one.count for one in counted)
    found.errors_before = sum(one.before for one in counted)
    found.errors_expected = sum(one.before * passed_of(one, now) / HOUR for one in counted)


def _unslid(
    frequencies: Sequence[Frequency], steps: Mapping[Source, Mapping[str, bytes]], now: float
) -> dict[Source, list[str]]:
    """Return the patterns whose steps are still to be read: of logs with more than were scanned."""
    found: dict[Source, list[str]] = {}
    for one in frequencies:
        source = one.logger, one.severity
        known = steps[source]
        if not one.sliding and one.pattern not in known and is_complete(parse(known.get(ALL)), now):
            found.setdefault(source, []).append(one.pattern)
    return found


def _to_know(frequencies: Sequence[Frequency], shown: int) -> list[Frequency]:
    """Choose the patterns to look up: those shown as frequent, then the most urgent ones."""
    urgent = sorted(frequencies[shown:], key=lambda one: analysis.severity_rank(one.severity))
    return [*frequencies[:shown], *urgent][:MAX_SEEN]


def _asks(keys: Keys, entry: str) -> list[Ask]:
    """Return how to read the frequencies of patterns.

    By clock hours, then by steps: of all, and of about MAX_PATTERNS, some hundreds where they are
    short. The others are read by their names.

    Args:
        entry: of `messages:`, or "" for those of a join, which puts each entry in its place.
    """
    some = ("0", str(MAX_PATTERNS - 1), "WITHSCORES")
    key, start, last, *others = keys.hourly_parts("common", entry)
    counted = [Ask("ZREVRANGE", *part, some) for part in (key, last)]
    steps = keys.key("steps", entry)
    return [
        *counted,
        *(Ask("GET", *part) for part in (start, *others)),
        Ask("HGET", steps, arguments=(ALL,)),
        Ask("HSCAN", steps, arguments=("0", "COUNT", str(MAX_PATTERNS))),
    ]


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


def _place(one: Frequency) -> tuple[Source, str]:
    return (one.logger, one.severity), one.pattern


def _fields(
    asked: Mapping[Source, Sequence[str]], replies: Sequence[Reply]
) -> dict[tuple[Source, str], bytes]:
    """Return what hashes have of patterns, given replies to HMGET."""
    found: dict[tuple[Source, str], bytes] = {}
    for (source, some), values in zip(asked.items(), replies, strict=False):
        if is_misplaced(values):
            continue
        for pattern, value in zip(some, raised(values), strict=True):
            if value is not None:
                found[source, pattern] = value
    return found


def _known(
    frequencies: Sequence[Frequency], seen: Mapping[tuple[Source, str], bytes]
) -> list[Frequency]:
    return [
        one.known(*seen_of(seen[place])) if (place := _place(one)) in seen else one
        for one in frequencies
    ]


def _recent(sources: Sequence[Source], replies: Sequence[Reply], limit: int) -> list[Message]:
    found = [
        pair
        for source, reply in zip(sources, replies, strict=True)
        if not is_misplaced(reply)
        for pair in messages_of(*source, raised(reply))
    ]
    found.sort(key=lambda pair: pair[0], reverse=True)
    return [message for _, message in found[:limit]]
