"""Messages: the newest of each logger and severity, and how often each pattern of them comes.

    recent:LOGGER:SEVERITY      the newest messages, as `2026-11-21T16:13:00.123456Z TEXT`
    common:LOGGER:SEVERITY      pattern -> how often in this hour; `:last` is the hour before
    patterns:LOGGER:SEVERITY    pattern -> when it was seen first and last, and one sample
    distinct:LOGGER             hour -> how many patterns there are, of all severities together: the
                                bound of those that are counted by the hour alone
    steps:LOGGER:SEVERITY       pattern -> how often in each of the last steps: see steps.py
    messages:                   LOGGER:SEVERITY, scored with the time of the last message

Messages are counted by pattern, not by text: see analysis/text/patterns.py. Two hours of one logger
merge by summing the counts of each pattern and keeping the newest texts, so messages are aggregated
before they are sent. A severity has no colon, so that keys can be parsed, and differs from all
suffixes of the keys of `common:`.
"""

import logging
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from sys import getsizeof
from typing import NamedTuple

from redmeter.lazy_regex import late
from redmeter.names import check_text, cleaned
from redmeter.stored.intervals import THIS_HOUR
from redmeter.stored.keys import HOUR, OTHER, STEP, Keys, slice_start
from redmeter.stored.steps import COARSE_ROOM, name_in_room, room_of, step_operations
from redmeter.types import Operation, Operations

#: The levels of logging that have a severity of their own.
SEVERITY_OF_LEVEL = {
    logging.DEBUG: "debug",
    logging.INFO: "info",
    logging.WARNING: "warning",
    logging.ERROR: "error",
    logging.CRITICAL: "critical",
}
#: What programs also call them.
_ALIASES = {"warn": "warning", "fatal": "critical"}
#: Endings of keys, see Keys.hourly_parts().
_ENDINGS = {"start", "last", "pstart"}

#: Longest name of a severity, bytes.
MAX_SEVERITY = 20

#: Most patterns of a severity that wait in a process, further ones as coarse patterns: see
#: steps.py. Texts that are counted by the hour alone: most of a logger, of all severities together.
MAX_HOURLY_PATTERNS = 1000

#: How long messages are kept after the last one, seconds.
MESSAGE_LIFE = 30 * 86400

#: Hours of which is known how often a pattern came: this one and the one before.
HOURS = {HOUR: 2}

#: Characters of a sample at most.
SAMPLE_LIMIT = 300

_ENTRY = late(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?)Z(?: |\Z)", re.ASCII)
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_ASCTIME = late(
    rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ({'|'.join(_MONTHS)}) ([ \d]\d) "
    r"(\d\d):(\d\d):(\d\d) (\d{4})(?: |\Z)",
    re.ASCII,
)
#: The range of datetime, Unix seconds.
_EARLIEST, _LATEST = -62_135_596_800.0, 253_402_300_799.0


def severity_of(level: int | str) -> str:
    """Return the severity of a level of logging, or of a name.

    Args:
        level: a name is taken in lower case, without control characters and colons, and cut at
            20 bytes. A number that has no name, neither here nor by logging.addLevelName(), means
            the next standard one below.
    """
    known = SEVERITY_OF_LEVEL.get(level) if isinstance(level, int) else None
    return known or _severity(level)


@lru_cache(256)
def _severity(level: int | str) -> str:
    if isinstance(level, int):
        name = str(logging.getLevelName(level))
        if level == logging.NOTSET or name.startswith("Level "):
            return SEVERITY_OF_LEVEL[
                max((n for n in SEVERITY_OF_LEVEL if n <= level), default=logging.DEBUG)
            ]
        level = name
    name = cleaned(level.lower().replace(":", "-"), MAX_SEVERITY).strip()
    name = _ALIASES.get(name, name) or "unknown"
    return f"{name}-" if name in _ENDINGS else name


def check_logger(name: object) -> str:
    """Check the name of a logger that a caller gave, and return it.

    Raises:
        InvalidName: not text, empty, over 200 bytes, or with a control character.
    """
    return check_text(name, "logger name")


def check_severity(given: object) -> int | str:
    """Check a severity that a caller gave, and return it.

    Raises:
        TypeError: neither text nor a whole number.
    """
    if isinstance(given, bool) or not isinstance(given, int | str):
        kind = type(given).__name__
        raise TypeError(f"a severity is a name or a level of logging, not {kind}")
    return given


@lru_cache(1024)
def logger_of(name: str) -> str:
    """Return a valid name for a logger, where an invalid one must not raise."""
    return cleaned(name) or "root"


def source_name(logger: str, severity: str) -> str:
    """Return what stands for a logger and a severity in keys and in `messages:`."""
    return f"{logger}:{severity}"


def parse_source(name: str) -> tuple[str, str]:
    """Return logger and severity from a source_name(); either is empty where there is none."""
    logger, _, severity = name.rpartition(":")
    return logger, severity


# --- Entries -------------------------------------------------------------------------------


def format_recent(time: float, text: str) -> str:
    """Return a message in the form of `recent:`.

    Args:
        time: Unix seconds.
    """
    moment = datetime.fromtimestamp(max(_EARLIEST, min(time, _LATEST)), UTC)
    return f"{moment.isoformat(timespec='microseconds')[:26]}Z {text}"


def parse_recent(entry: bytes) -> tuple[float | None, str]:
    """Return the time (Unix seconds) and the text of an entry in `recent:`.

    Also reads the listings' form, `Sun Jun 23 11:57:38 2019 text`, as UTC, since it has no time
    zone. An entry of any other form is all text, with the time None. Invalid UTF-8 is replaced.
    """
    text = entry.decode(errors="replace")
    try:
        if found := _ENTRY.match(text):
            time = datetime.fromisoformat(found[1]).replace(tzinfo=UTC).timestamp()
            return time, text[found.end() :]
        if found := _ASCTIME.match(text):
            month = _MONTHS.index(found[1]) + 1
            day, hour, minute, second, year = map(int, found.groups()[1:])
            moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
            return moment.timestamp(), text[found.end() :]
    except ValueError:  # 31 February
        pass
    return None, text


# --- Writing -------------------------------------------------------------------------------


class PatternHour(NamedTuple):
    """The messages of one pattern within an hour."""

    #: How many.
    events: int
    #: Unix seconds.
    first: float
    last: float
    #: The text of the last one.
    sample: str
    #: Start of a step, Unix seconds -> how many; None where all are of the last one's step.
    steps: Mapping[int, int] | None = None

    def by_step(self) -> Mapping[int, int]:
        """Return the start of each step, Unix seconds, and how many there were."""
        return self.steps or {slice_start(self.last, STEP): self.events}

    def and_older(self, old: "PatternHour") -> "PatternHour":
        """Return both as one; of two that came last at one time, the sample of this one."""
        by_step: dict[int, int] | None = None
        if old.steps or self.steps or slice_start(self.last, STEP) != slice_start(old.last, STEP):
            by_step = dict(old.by_step())
            for start, events in self.by_step().items():
                by_step[start] = by_step.get(start, 0) + events
        return PatternHour(
            old.events + self.events,
            min(old.first, self.first),
            max(old.last, self.last),
            self.sample if self.last >= old.last else old.sample,
            by_step,
        )


#: Estimated bytes of a pattern and of a text, in addition to their characters.
_GROUP_BYTES, _TEXT_BYTES = 250, 80
#: Estimated bytes of a step, if there are several.
_STEP_BYTES = 100


def _own_bytes(group: PatternHour) -> int:
    return getsizeof(group.sample) + _STEP_BYTES * len(group.steps or ())


def _text_bytes(entry: tuple[float, str]) -> int:
    return _TEXT_BYTES + getsizeof(entry[1])


class LogHour:
    """What one logger logged with one severity within an hour; texts are as they are stored.

    Args:
        keep: how many of the newest messages.
    """

    __slots__ = ("bytes", "events", "keep", "patterns", "texts")

    def __init__(self, keep: int) -> None:
        self.keep = keep
        #: How many messages there were.
        self.events = 0
        self.patterns: dict[str, PatternHour] = {}
        #: The newest, as (time, text), in order of time.
        self.texts: list[tuple[float, str]] = []
        #: Estimated size in memory.
        self.bytes = 0

    def add(self, pattern: str, group: PatternHour) -> None:
        """Count messages of a pattern, or of a coarse one where there are too many."""
        self.events += group.events
        pattern = name_in_room(pattern, self.patterns, MAX_HOURLY_PATTERNS)
        old = self.patterns.get(pattern)
        if old is None:
            self.bytes += _GROUP_BYTES + getsizeof(pattern)
        else:
            self.bytes -= _own_bytes(old)
            group = group.and_older(old)
        self.bytes += _own_bytes(group)
        self.patterns[pattern] = group

    def add_texts(self, texts: Iterable[tuple[float, str]]) -> None:
        """Keep messages, if they are among the newest."""
        self.bytes -= sum(map(_text_bytes, self.texts))
        self.texts = newest_texts([*self.texts, *texts], self.keep)
        self.bytes += sum(map(_text_bytes, self.texts))

    def give_up_texts(self, need: int) -> None:
        """Give up the oldest texts, until so many bytes are free or none is left."""
        count = 0
        while need > 0 and count < len(self.texts):
            size = _text_bytes(self.texts[count])
            need, count, self.bytes = need - size, count + 1, self.bytes - size
        del self.texts[:count]

    def give_up_samples(self, need: int) -> None:
        """Give up samples, until so many bytes are free or none is left."""
        for pattern, group in self.patterns.items():
            if need <= 0:
                return
            if group.sample:
                size = getsizeof(group.sample) - getsizeof("")
                self.patterns[pattern] = group._replace(sample="")
                need, self.bytes = need - size, self.bytes - size

    def give_up_patterns(self, need: int) -> None:
        """Count the rarest as (other), until so many bytes are free or nothing else is left."""
        target = self.bytes - need
        for pattern, group in sorted(self.patterns.items(), key=lambda each: each[1].events):
            if self.bytes <= target:
                return
            if pattern != OTHER:
                del self.patterns[pattern]
                self.events -= group.events
                self.bytes -= _GROUP_BYTES + getsizeof(pattern) + _own_bytes(group)
                self.add(OTHER, group._replace(sample=""))

    def cut(self, count: int) -> "LogHour":
        """Take so many patterns out, and return them as an hour of their own, without texts."""
        part = LogHour(self.keep)
        for pattern in list(self.patterns)[:count]:
            group = self.patterns.pop(pattern)
            part.add(pattern, group)
            self.events -= group.events
        self.bytes -= part.bytes
        return part

    @property
    def last(self) -> float:
        """The time of the last message, Unix seconds."""
        return max([t for t, _ in self.texts[-1:]] + [g.last for g in self.patterns.values()])

    def merge(self, other: "LogHour") -> None:
        """Add what another one has."""
        for pattern, group in other.patterns.items():
            self.add(pattern, group)
        self.add_texts(other.texts)


def newest_texts(texts: list[tuple[float, str]], keep: int) -> list[tuple[float, str]]:
    """Return the newest of some (time, text), in order of time."""
    return sorted(texts, key=lambda entry: entry[0])[-keep:]


def message_operations(
    keys: Keys, messages: Mapping[str, Mapping[int, LogHour]], *, tallied: bool = True
) -> Operations:
    """Turn messages into the operations of one batch.

    Args:
        keys: the store's.
        messages: LOGGER:SEVERITY -> {start of an hour, Unix seconds -> its messages}.
        tallied: whether their patterns are counted; else they only are among the newest.
    """
    whole = {name: _together(hours.values()) for name, hours in messages.items()}
    made = _push(keys, whole)
    if tallied:
        by_step = {name: _by_step(hour.patterns) for name, hour in whole.items()}
        # The steps first: they name what the others count.
        made += step_operations(keys, by_step) + _tally(keys, messages) + _seen(keys, whole)
    last = [(name, hour.last) for name, hour in whole.items()]
    return (*made, _touch(keys, last))


def book_operations(
    keys: Keys, logger: str, severity: str, time: float, text: str, *, keep: int, tallied: bool
) -> Operations:
    """Return the listings' operations for one message, which count its text instead of a pattern.

    Args:
        time: Unix seconds.
        tallied: whether it is counted; else it only is among the newest.
    """
    hour = LogHour(keep)
    hour.add(text, PatternHour(1, time, time, ""))
    hour.add_texts([(time, text)])
    name = source_name(logger, severity)
    made = _push(keys, {name: hour})
    if tallied:
        made += _tally(keys, {name: {THIS_HOUR: hour}})
    return (*made, _touch(keys, [(name, time)]))


def _together(hours: Collection[LogHour]) -> LogHour:
    """Return what several hours have together; none of them is changed."""
    if len(hours) == 1:
        return next(iter(hours))
    whole = LogHour(max(hour.keep for hour in hours))
    for hour in hours:
        whole.merge(hour)
    return whole


def _push(keys: Keys, messages: Mapping[str, LogHour]) -> list[Operation]:
    lists: list[str] = []
    args = [str(MESSAGE_LIFE)]
    events = []
    for name, hour in messages.items():
        if hour.texts:
            lists.append(keys.recent(*parse_source(name)))
            entries = [format_recent(time, text) for time, text in hour.texts]
            args += (str(hour.keep), str(len(entries)), *entries)
            events.append((name, len(entries)))
    return [Operation("push", tuple(lists), tuple(args), lambda: events)] if lists else []


def _tally(keys: Keys, messages: Mapping[str, Mapping[int, LogHour]]) -> list[Operation]:
    """Count patterns by the hour: LOGGER:SEVERITY -> {start of an hour -> its messages}."""
    hashes: list[str] = []
    args = [str(MESSAGE_LIFE), str(MAX_HOURLY_PATTERNS), str(1 + len(keys.common("", "")))]
    events: list[tuple[str, int]] = []
    for name, hours in messages.items():
        for start in sorted(hours):  # oldest first: hours before the stored ones are rejected
            hour = hours[start]
            logger, severity = parse_source(name)
            hourly = keys.common(logger, severity)
            hashes += (keys.distinct(logger), *hourly)
            args += (name, str(start), str(len(hour.patterns)))
            for pattern, group in hour.patterns.items():
                args += (pattern, str(group.events))
            events += [("", 0), (str(start), hour.events), *[("", 0)] * (len(hourly) - 1)]
    return [Operation("tally", tuple(hashes), tuple(args), lambda: events)] if hashes else []


def _seen(keys: Keys, messages: Mapping[str, LogHour]) -> list[Operation]:
    """Note when the patterns of each LOGGER:SEVERITY were seen first and last, with a sample."""
    hashes: list[str] = []
    args = [str(MESSAGE_LIFE)]
    for name, hour in messages.items():
        groups = [(p, group) for p, group in hour.patterns.items() if p != OTHER]
        if groups:
            hashes.append(keys.patterns(*parse_source(name)))
            args += (name, str(room_of(parse_source(name)[1]) + COARSE_ROOM), str(len(groups)))
            for pattern, group in groups:
                args += (pattern, f"{group.first:.6f}", f"{group.last:.6f}", group.sample)
    # No counted event is lost if the server rejects this.
    events = [("", 0)] * len(hashes)
    return [Operation("seen", tuple(hashes), tuple(args), lambda: events)] if hashes else []


def _by_step(patterns: Mapping[str, PatternHour]) -> dict[int, list[tuple[str, int]]]:
    by_step: dict[int, list[tuple[str, int]]] = {}
    for pattern, group in patterns.items():
        for start, events in group.by_step().items():
            by_step.setdefault(start, []).append((pattern, events))
    return by_step


def _touch(keys: Keys, last: Sequence[tuple[str, float]]) -> Operation:
    """Note which LOGGER:SEVERITY there are, and when the last message of each was, Unix seconds."""
    args = [str(MESSAGE_LIFE)]
    for name, time in last:
        args += (name, f"{time:.6f}")
    return Operation("touch", (keys.messages,), tuple(args), lambda: [("", 0)])
