"""What was logged: the newest messages, how often each pattern comes, and what changed.

`messages:` says which loggers and severities there are. Other programs do not write it, so of a
logger that is named the standard severities are looked at in any case, at the first round trip;
a second one reads what else it is said to have.

What others wrote is read as far as it can be understood: a time in the form of time.asctime(), or
none, an hour of the day in `:start`, bytes that are no UTF-8. None of it is cleaned.
"""

from collections.abc import Callable, Iterable, Sequence

from redmeter.analysis import changes as analysis
from redmeter.errors import InvalidValue, LimitExceeded
from redmeter.keys import HOUR, slice_start
from redmeter.kinds.hourly import hour_of
from redmeter.kinds.message import MAX_PATTERNS, SEVERITY, parse_entry, parse_name
from redmeter.model import Change, Frequency, LogSource, Message
from redmeter.store import Store, View
from redmeter.store.link import Command, Reply, pairs, raised

#: Most messages that one request may ask for.
MAX_MESSAGES = 10_000
#: Loggers and severities that are looked at, those that logged last.
MAX_SOURCES = 10_000
#: The same where their patterns are read as well.
MAX_COMPARED = 100

#: A logger and a severity.
Source = tuple[str, str]
#: What is asked of each.
Commands = Callable[[Source], list[Command]]


def read_recent(
    store: Store, logger: str | None, *, severity: str | None = None, limit: int = 100
) -> list[Message]:
    """Read the newest messages of a logger, the newest first, in two round trips at most.

    Args:
        logger: None: of the 100 loggers and severities that logged last.
        severity: only of this one, as it is stored; else of all.
        limit: how many.

    Raises:
        InvalidValue, LimitExceeded: see check_limit().
        StoreError: the server cannot be reached or refuses, or another program keeps something
            else under a key.
    """
    check_limit(limit)

    def commands(source: Source) -> list[Command]:
        return [("LRANGE", store.keys.recent(*source), 0, limit - 1)]

    if logger is None:
        known = [s for s in read_loggers(store) if severity in (None, s.severity)]
        _, found = _ask(store, [(s.logger, s.severity) for s in known[:MAX_COMPARED]], commands)
    else:
        _, found = _read(store, logger, severity, commands)
    messages: list[tuple[float, Message]] = []
    for (name, level), (reply,) in found.items():
        messages += _messages(name, level, raised(reply))
    # The sort keeps the order of a list where times are the same.
    messages.sort(key=lambda one: one[0], reverse=True)
    return [message for _, message in messages[:limit]]


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


def _messages(logger: str, severity: str, entries: Sequence[bytes]) -> list[tuple[float, Message]]:
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
    view, found = _read(store, logger, severity, lambda source: _hours(store, source))
    return ordered(
        f for source, replies in found.items() for f in _frequencies(source, replies, view.now)
    )


def ordered(frequencies: Iterable[Frequency]) -> list[Frequency]:
    """Return frequencies, those that came most often in this hour first, then in the one before."""
    return sorted(frequencies, key=lambda f: (-f.count, -f.before, f.severity, f.pattern))


def read_loggers(store: Store) -> list[LogSource]:
    """Read which loggers and severities there are, those that logged last first.

    Raises:
        StoreError: see read_recent().
    """
    (reply,) = store.ask([_index(store)])
    return _sources(reply)


def read_changes(store: Store, logger: str | None = None) -> list[Change]:
    """Read what is new, spiking or gone: see analysis/changes.py. Two round trips.

    Args:
        logger: only of this one; else of the 100 loggers and severities that logged last.

    Raises:
        StoreError: see read_recent().
    """
    frequencies, now = read_frequencies(store, logger)
    return analysis.changes(frequencies, now)


def read_frequencies(store: Store, logger: str | None = None) -> tuple[list[Frequency], float]:
    """Read how often each pattern came in this hour and in the one before, as read_common() does.

    Args:
        logger: only of this one; else of the 100 loggers and severities that logged last.

    Returns:
        Also the store's present, Unix seconds.

    Raises:
        StoreError: see read_recent().
    """
    if logger is not None:
        view, found = _read(store, logger, None, lambda source: _hours(store, source))
    else:
        sources = [(s.logger, s.severity) for s in read_loggers(store)[:MAX_COMPARED]]
        view, found = _ask(store, sources, lambda source: _hours(store, source))
    read = (f for source, some in found.items() for f in _frequencies(source, some, view.now))
    return ordered(read), view.now


# --- What both need ------------------------------------------------------------------------


def _index(store: Store) -> Command:
    return ("ZREVRANGE", store.keys.messages, 0, MAX_SOURCES - 1, "WITHSCORES")


def _sources(reply: Reply) -> list[LogSource]:
    found = []
    for member, score in pairs(raised(reply)):
        logger, severity = parse_name(member.decode(errors="replace"))
        if logger and severity:
            found.append(LogSource(logger, severity, float(score)))
    return found


def _ask(
    store: Store, sources: Sequence[Source], commands: Commands, *first: Command
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
    others = [(s.logger, s.severity) for s in _sources(index) if s.logger == logger]
    others = [source for source in others if source not in found]
    if others:
        found |= _ask(store, others, commands)[1]
    return view, found


def _hours(store: Store, source: Source) -> list[Command]:
    key, start, last, pstart = store.keys.common(*source)
    most = 2 * MAX_PATTERNS  # others keep as many as they like
    return [
        ("ZREVRANGE", key, 0, most - 1, "WITHSCORES"),
        ("ZREVRANGE", last, 0, most - 1, "WITHSCORES"),
        ("GET", start),
        ("GET", pstart),
        ("HGETALL", store.keys.patterns(*source)),
    ]


def _frequencies(source: Source, replies: Sequence[Reply], now: float) -> list[Frequency]:
    """Return how often each pattern came in the hour that is running, and in the one before.

    What is stored as this hour may be of an earlier one, where nothing was logged since.
    """
    newest, older, start, pstart, known = map(raised, replies)
    hour = slice_start(now, HOUR)
    by_hour: dict[int, dict[str, int]] = {hour: {}, hour - HOUR: {}}
    # What lies ahead was begun before the clock was set back, and goes on. Where nobody says which
    # hour it is, whoever writes next takes it for this one.
    begun = hour_of(start, now)
    by_hour[hour if begun is None else min(begun, hour)] = _counts(newest)
    before = hour_of(pstart, now)
    if before == hour - HOUR and before != begun:
        by_hour[before] = _counts(older)
    seen = {_text(pattern): _seen(value) for pattern, value in pairs(known)}
    counts, earlier = by_hour[hour], by_hour[hour - HOUR]
    found = []
    for pattern in {**counts, **earlier}:
        first, last, sample = seen.get(pattern, (None, None, ""))
        count, past = counts.get(pattern, 0), earlier.get(pattern, 0)
        found.append(Frequency(*source, pattern, count, past, first, last, sample))
    return found


def _counts(reply: Reply) -> dict[str, int]:
    """Read members and scores; those that count nothing are left out."""
    found: dict[str, int] = {}
    for member, score in pairs(reply):
        number = float(score)
        if 1 <= number < float("inf"):
            found[_text(member)] = int(number)
    return found


def _seen(value: bytes) -> tuple[float | None, float | None, str]:
    """Read "FIRST LAST SAMPLE"."""
    first, _, rest = _text(value).partition(" ")
    last, _, sample = rest.partition(" ")
    try:
        return float(first), float(last), sample
    except ValueError:
        return None, None, ""


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
