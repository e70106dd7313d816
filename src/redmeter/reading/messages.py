"""What was logged: the newest messages, how often each pattern comes, and what changed.

`messages:` says which loggers and severities there are. Other programs do not write it, so of a
logger that is named the standard severities are looked at in any case, at the first round trip;
a second one reads what else it is said to have.

Of all loggers, those that logged last are read, PAGE at a time, up to MAX_COMPARED and until
MAX_READ patterns are known: then what is told says of how many it is. What is known of a pattern,
a sample among it, is read of those that are told alone.

What others wrote is read as far as it can be understood: a time in the form of time.asctime(), or
none, an hour of the day in `:start`, bytes that are no UTF-8. None of it is cleaned.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from redmeter.analysis import changes as analysis
from redmeter.errors import InvalidValue, LimitExceeded
from redmeter.format.hourly import hours_of
from redmeter.format.message import MAX_PATTERNS, SEVERITY, name_of, parse_entry, parse_name
from redmeter.keys import HOUR, slice_start
from redmeter.reading.foreign_keys import readable
from redmeter.reading.sliding import clock_hours, slid
from redmeter.store import Store, View, indexes
from redmeter.store.query import Read
from redmeter.store.replies import Command, Reply, pairs, raised, scored
from redmeter.types import Changes, Frequency, LogSource, Message

#: Most messages that one request may ask for.
MAX_MESSAGES = 10_000
#: Loggers and severities that are looked at, those that logged last.
MAX_SOURCES = 10_000
#: The same where their messages are compared, and how many are read at a time.
MAX_COMPARED, PAGE = 5_000, 100
#: Patterns of all of them after which no further ones are read, and of how many it is read at a
#: time what is known of them.
MAX_READ, SEEN_PAGE = 200_000, 5_000

#: A logger and a severity.
Source = tuple[str, str]
#: What is asked of each.
Commands = Callable[[Source], list[Command]]


def read_recent(
    store: Store, logger: str | None, *, severity: str | None = None, limit: int = 100
) -> list[Message]:
    """Read the newest messages of a logger, the newest first, in two round trips at most.

    Args:
        logger: None: of all loggers; then it takes a round trip for every PAGE of them that may
            have one of the newest.
        severity: only of this one, as it is stored; else of all.
        limit: how many.

    Raises:
        InvalidValue, LimitExceeded: see check_limit().
        StoreError: the server cannot be reached or refuses, or another program keeps something
            else under a key.
    """
    check_limit(limit)

    def commands(source: Source) -> list[Command]:
        return [("LRANGE", store.keys.recent(*source), "0", str(limit - 1))]

    messages: list[tuple[float, Message]] = []

    def add(found: Mapping[Source, Sequence[Reply]]) -> None:
        for (name, level), (reply,) in readable(found).items():
            messages.extend(messages_of(name, level, reply))
        # The sort keeps the order of a list where times are the same.
        messages.sort(key=lambda one: one[0], reverse=True)
        del messages[limit:]

    if logger is not None:
        add(_read(store, logger, severity, commands)[1])
    else:
        known, _ = _known(store, severity)
        for at in range(0, len(known), PAGE):
            # A second for what the index rounds.
            if len(messages) == limit and messages[-1][0] > known[at].last + 1.0:
                break
            some = [(s.logger, s.severity) for s in known[at : at + PAGE]]
            add(_ask(store, some, commands)[1])
    return [message for _, message in messages]


def check_limit(limit: object) -> None:
    """Check how many messages are asked for.

    Raises:
        InvalidValue: not a whole number above 0.
        LimitExceeded: over 10,000.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InvalidValue(limit, "a limit is a whole number of messages, 1 or more")
    if limit > MAX_MESSAGES:
        raise LimitExceeded("messages", limit, MAX_MESSAGES, "ask for fewer")


def messages_of(
    logger: str, severity: str, entries: Sequence[bytes]
) -> list[tuple[float, Message]]:
    """Return the messages of a list, the newest first, and by which time each is put in order.

    A message without a time stands where it stands in the list: right after the one before it.
    """
    found, time = [], float("-inf")
    for entry in reversed(entries):
        own, text = parse_entry(entry)
        time = time if own is None else own
        found.append((time, Message(logger, severity, own, text)))
    return found[::-1]


def read_common(store: Store, logger: str, *, severity: str | None = None) -> list[Frequency]:
    """Read how often each pattern of a logger came in this hour and in the one before.

    Those that came most often in this hour come first. Two round trips at most.

    Args:
        severity: only of this one, as it is stored; else of all.

    Raises:
        StoreError: see read_recent().
    """
    return _one(store, logger, severity, sliding=False).frequencies


def ordered(frequencies: Iterable[Frequency]) -> list[Frequency]:
    """Return frequencies, those that came most often in this hour first, then in the one before."""
    return sorted(frequencies, key=lambda f: (-f.count, -f.before, f.severity, f.pattern))


def read_loggers(store: Store) -> list[LogSource]:
    """Read which loggers and severities there are, those that logged last first.

    Raises:
        StoreError: see read_recent().
    """
    (reply,) = store.ask([_index(store)])
    return sources_of(reply)


class Compared(NamedTuple):
    """How often patterns came, of how many loggers."""

    frequencies: list[Frequency]
    #: The store's present, Unix seconds.
    now: float
    #: Loggers and severities that there are, and those of them that were read.
    sources: int
    compared: int
    #: Of how many only clock hours are known.
    clock_hours: int = 0


def read_changes(store: Store, logger: str | None = None) -> Changes:
    """Read what is new, spiking or gone: see analysis/changes.py.

    Args:
        logger: only of this one; else of all: see read_frequencies().

    Raises:
        StoreError: see read_recent().
    """
    found = read_frequencies(store, logger)
    changed = analysis.changes(found.frequencies, found.now)
    return Changes(
        changed,
        sources=found.sources,
        compared=found.compared,
        clock_hours=found.clock_hours,
    )


def read_frequencies(
    store: Store,
    logger: str | None = None,
    *,
    severity: str | None = None,
    known: int | None = None,
) -> Compared:
    """Read how often each pattern came in the last hour and in the hour before.

    By sliding hours where they are known, else by clock hours, as read_common() does.

    Args:
        logger: only of this one; else of all, those that logged last: see above.
        severity: only of this one, as it is stored; else of all.
        known: of so many it is told when they were seen, with a sample: of the first; None: of all.

    Raises:
        StoreError: see read_recent().
    """
    if logger is not None:
        return _one(store, logger, severity, sliding=True)
    sources, number = _known(store, severity)
    counted: list[Frequency] = []
    compared, now = 0, store.clock.wall()
    for at in range(0, min(len(sources), MAX_COMPARED), PAGE):
        if len(counted) >= MAX_READ:
            break
        some = [(s.logger, s.severity) for s in sources[at : min(at + PAGE, MAX_COMPARED)]]
        view, found = _ask(
            store, some, lambda source: [*_hours(store, source), _steps(store, source)]
        )
        now = view.now
        for source, (*hours, steps) in readable(found).items():
            counted += slid(source, frequencies_of(source, hours, now), texts_of(steps), now)
        compared += len(some)
    found_all = ordered(counted)
    told = len(found_all) if known is None else known
    frequencies = _with_seen(store, found_all[:told]) + found_all[told:]
    return Compared(frequencies, now, number, compared, clock_hours(frequencies))


def _one(store: Store, logger: str, severity: str | None, *, sliding: bool) -> Compared:
    """Read the patterns of one logger, and what is known of them."""

    def commands(source: Source) -> list[Command]:
        made = [("HGETALL", store.keys.patterns(*source)), *_hours(store, source)]
        return [*made, _steps(store, source)] if sliding else made

    view, found = _read(store, logger, severity, commands)
    frequencies: list[Frequency] = []
    for source, (seen, *hours) in readable(found).items():
        steps = texts_of(hours.pop()) if sliding else {}
        hourly = frequencies_of(source, hours, view.now)
        known = texts_of(seen)
        frequencies += (
            one.known(*seen_of(known[one.pattern])) if one.pattern in known else one
            for one in slid(source, hourly, steps, view.now)
        )
    number = len(found)
    return Compared(ordered(frequencies), view.now, number, number, clock_hours(frequencies))


def _with_seen(store: Store, frequencies: Sequence[Frequency]) -> list[Frequency]:
    """Read what is known of patterns: in their order, with the times and the sample of each."""
    made: list[Frequency] = []
    for at in range(0, len(frequencies), SEEN_PAGE):
        some = frequencies[at : at + SEEN_PAGE]
        patterns: dict[Source, list[str]] = {}
        for f in some:
            patterns.setdefault((f.logger, f.severity), []).append(f.pattern)
        asked: list[Command] = [
            ("HMGET", store.keys.patterns(*source), *fields) for source, fields in patterns.items()
        ]
        replies = store.ask(asked) if asked else []
        found = {source: [reply] for source, reply in zip(patterns, replies, strict=True)}
        seen: dict[tuple[Source, str], bytes] = {}
        for source, (values,) in readable(found, needed=False).items():
            for pattern, value in zip(patterns[source], values, strict=True):
                if value is not None:
                    seen[source, pattern] = value
        for f in some:
            value = seen.get(((f.logger, f.severity), f.pattern))
            made.append(f if value is None else f.known(*seen_of(value)))
    return made


# --- What both need ------------------------------------------------------------------------


def _index(store: Store) -> Read:
    return indexes.newest(store.keys, store.keys.messages, MAX_SOURCES)


def _known(store: Store, severity: str | None) -> tuple[list[LogSource], int]:
    """Read which loggers there are with a severity, or with any, and how many of them."""
    index, number = store.ask([_index(store), indexes.size(store.keys, store.keys.messages)])
    found = [s for s in sources_of(index) if severity in (None, s.severity)]
    return found, len(found) + max(0, raised(number) - MAX_SOURCES)


def sources_of(reply: Reply) -> list[LogSource]:
    found = []
    for member, last in scored(raised(reply)):
        logger, severity = parse_name(member.decode(errors="replace"))
        if logger and severity and math.isfinite(last):
            found.append(LogSource(logger, severity, last))
    return found


def _ask(
    store: Store, sources: Sequence[Source], commands: Commands, *first: Read
) -> tuple[View, dict[Source, list[Reply]]]:
    """Ask the same of several sources; what is asked first comes back as that of ("", "")."""
    asked = [commands(source) for source in sources]
    view, replies = store.read([*first, *(command for some in asked for command in some)])
    answers = iter(replies)
    found = {("", ""): [next(answers) for _ in first]} if first else {}
    found |= {
        source: [next(answers) for _ in some] for source, some in zip(sources, asked, strict=True)
    }
    return view, found


def _read(
    store: Store, logger: str, severity: str | None, commands: Commands
) -> tuple[View, dict[Source, list[Reply]]]:
    """Ask the same of all severities of a logger, or of one."""
    if severity is not None:
        return _ask(store, [(logger, severity)], commands)
    standard = [(logger, name) for name in SEVERITY.values()]
    view, found = _ask(store, standard, commands, _index(store))
    (index,) = found.pop(("", ""))
    others = [(s.logger, s.severity) for s in sources_of(index) if s.logger == logger]
    others = [source for source in others if source not in found]
    if others:
        found |= _ask(store, others, commands)[1]
    return view, found


def _hours(store: Store, source: Source) -> list[Command]:
    key, start, last, *others = store.keys.common(*source)
    most = 2 * MAX_PATTERNS  # others keep as many as they like
    return [
        ("ZREVRANGE", key, "0", str(most - 1), "WITHSCORES"),
        ("ZREVRANGE", last, "0", str(most - 1), "WITHSCORES"),
        *(("GET", each) for each in (start, *others)),
    ]


def _steps(store: Store, source: Source) -> Command:
    return ("HGETALL", store.keys.key("steps", name_of(*source)))


def texts_of(reply: Reply) -> dict[str, bytes]:
    """Read a hash of patterns."""
    return {_text(pattern): value for pattern, value in pairs(reply)}


def frequencies_of(source: Source, hours: Sequence[Reply], now: float) -> list[Frequency]:
    """Return how often each pattern came in the hour that is running, and in the one before.

    What is stored as this hour may be of an earlier one, where nothing was logged since.

    Args:
        hours: the replies to _hours().
    """
    newest, older, *texts = hours
    hour = slice_start(now, HOUR)
    by_hour: dict[int, dict[str, int]] = {hour: {}, hour - HOUR: {}}
    # What lies ahead was begun before the clock was set back, and goes on. Where nobody says which
    # hour it is, whoever writes next takes it for this one.
    begun, before = hours_of(texts, now)
    by_hour[hour if begun is None else min(begun, hour)] = _counts(newest)
    if before == hour - HOUR and before != begun:
        by_hour[before] = _counts(older)
    counts, earlier = by_hour[hour], by_hour[hour - HOUR]
    found = []
    for pattern in {**counts, **earlier}:
        count, past = counts.get(pattern, 0), earlier.get(pattern, 0)
        found.append(Frequency(*source, pattern, count, past, None, None, ""))
    return found


def _counts(reply: Reply) -> dict[str, int]:
    """Read members and scores; those that count nothing are left out."""
    found: dict[str, int] = {}
    for member, number in scored(reply):
        if 1 <= number < 2**63:  # beyond, it is none that was counted
            found[_text(member)] = int(number)
    return found


def seen_of(value: bytes) -> tuple[float | None, float | None, str]:
    """Read "FIRST LAST SAMPLE"."""
    first, _, rest = _text(value).partition(" ")
    last, _, sample = rest.partition(" ")
    try:
        times = float(first), float(last)
    except ValueError:
        return None, None, ""
    return (*times, sample) if all(map(math.isfinite, times)) else (None, None, "")


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
