"""Replies about a log, parsed: frequencies of its patterns, its newest messages.

A log is a logger with a severity. Frequencies are stored twice: by clock hour, in the layout of the
listings, and by steps of five minutes, see stored/steps.py. The steps make sliding hours: the last
60 minutes, and the 60 minutes before. They replace the clock hours if they are complete. They are
not within two hours of an upgrade, nor for messages that another program counts: the clock hours of
a pattern then have more events than its steps, and stay.

Texts of other programs are parsed as far as possible: a time in the form of time.asctime(), or
none, an hour of the day in `:start`, bytes that are not UTF-8. None of it is removed.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from redmeter.analysis.text.variants import merged_names
from redmeter.reading.foreign_keys import readable
from redmeter.reading.join import Ask
from redmeter.results.logs import Frequency, LogSource, Message
from redmeter.store.servers.replies import Command, Reply, pairs, raised, scored
from redmeter.stored.intervals import hours_of
from redmeter.stored.keys import HOUR, Keys, slice_start
from redmeter.stored.message import parse_recent, parse_source
from redmeter.stored.steps import ALL, StepCounts, is_complete, parse_steps, windows

#: A logger and a severity.
Source = tuple[str, str]
#: The same with a pattern.
PatternPlace = tuple[str, str, str]


def source_of(frequency: Frequency) -> Source:
    """Return the log of a frequency."""
    return frequency.logger, frequency.severity


def pattern_place(frequency: Frequency) -> PatternPlace:
    """Return the log and the pattern of a frequency."""
    return frequency.logger, frequency.severity, frequency.pattern


def sources_of(reply: Reply) -> list[LogSource]:
    """Parse members of `messages:` with their scores; malformed ones are left out."""
    sources = []
    for member, last in scored(raised(reply)):
        logger, severity = parse_source(member.decode(errors="replace"))
        if logger and severity and math.isfinite(last):
            sources.append(LogSource(logger, severity, last))
    return sources


# --- Frequencies ---------------------------------------------------------------------------


def hour_reads(keys: Keys, entry: str, limit: int) -> list[Ask]:
    """Return the reads of the clock hours of a log, whose replies hourly() takes.

    Args:
        entry: of `messages:`, or "" for the parts of a join, which inserts its entries.
        limit: patterns of each hour, the most frequent ones.
    """
    key, start, last, *dates = keys.hourly_parts("common", entry)
    words = ("0", str(limit - 1), "WITHSCORES")
    return [
        *(Ask("ZREVRANGE", *part, words) for part in (key, last)),
        *(Ask("GET", *part) for part in (start, *dates)),
    ]


def command_of(ask: Ask) -> Command:
    """Return a read as a command."""
    return (ask.command, f"{ask.head}{ask.tail}", *ask.arguments)


def hourly(source: Source, replies: Sequence[Reply], now: float) -> list[Frequency]:
    """Return the counts of patterns in the current clock hour, and in the one before.

    The hour that is stored as the current one may be an earlier one, if nothing was logged since.

    Args:
        replies: to hour_reads().
    """
    newest, older, *dates = replies
    hour = slice_start(now, HOUR)
    by_hour: dict[int, dict[str, int]] = {hour: {}, hour - HOUR: {}}
    # An hour in the future began before the clock was set back, and goes on. An hour without a date
    # is the current one, as it is for the next writer.
    begun, before = hours_of(dates, now)
    by_hour[hour if begun is None else min(begun, hour)] = _counts(newest)
    if before == hour - HOUR and before != begun:
        by_hour[before] = _counts(older)
    counts, earlier = by_hour[hour], by_hour[hour - HOUR]
    return [
        Frequency(*source, pattern, counts.get(pattern, 0), earlier.get(pattern, 0), None, None, "")
        for pattern in {**counts, **earlier}
    ]


def _counts(reply: Reply) -> dict[str, int]:
    """Parse members and scores, without scores that are not counts."""
    return {_text(member): int(n) for member, n in scored(reply) if 1 <= n < 2**63}


def sliding(
    source: Source, by_hour: Sequence[Frequency], steps: Mapping[str, bytes], now: float
) -> list[Frequency]:
    """Return the frequencies of a log by sliding hours, as far as these are known.

    Args:
        by_hour: by clock hours.
        steps: the stored texts of patterns, and of ALL.
    """
    if not is_complete(parse_steps(steps.get(ALL)), now):
        return list(by_hour)
    frequencies = [slide(one, steps.get(one.pattern), now) for one in by_hour]
    listed = {one.pattern for one in by_hour}
    for pattern, text in steps.items():
        parsed = parse_steps(text)
        if parsed is not None and pattern != ALL and pattern not in listed:
            count, before = windows(parsed, now)
            if count or before:  # within the last two hours, but in neither clock hour
                one = Frequency(*source, pattern, count, before, None, None, "", True)
                frequencies.append(one)
    return frequencies


def slide(by_hour: Frequency, text: bytes | None, now: float) -> Frequency:
    """Return a frequency by sliding hours; unchanged if its steps have less than its hours."""
    steps = parse_steps(text) or StepCounts(0, ())
    hour = slice_start(now, HOUR)
    if (
        steps.between(hour, hour + HOUR) < by_hour.count
        or steps.between(hour - HOUR, hour) < by_hour.before
    ):
        return by_hour
    count, before = windows(steps, now)
    return replace(by_hour, count=count, before=before, sliding=True)


def clock_hours(frequencies: Iterable[Frequency]) -> int:
    """Return the number of logs with a frequency that is only known by clock hours."""
    return len({source_of(one) for one in frequencies if not one.sliding})


def by_frequency(frequencies: Iterable[Frequency]) -> list[Frequency]:
    """Return frequencies, the highest count first, then the highest count before."""
    return sorted(frequencies, key=lambda f: (-f.count, -f.before, f.severity, f.pattern))


def merge_variants(frequencies: Iterable[Frequency]) -> list[Frequency]:
    """Merge patterns of a log that differ in one word, sorted by frequency: see variants.py."""
    by_source: dict[Source, list[Frequency]] = {}
    for one in frequencies:
        by_source.setdefault(source_of(one), []).append(one)
    result: list[Frequency] = []
    for several in by_source.values():
        names = merged_names({one.pattern: one.count + one.before for one in several})
        groups: dict[str, list[Frequency]] = {}
        for one in several:
            groups.setdefault(names.get(one.pattern, one.pattern), []).append(one)
        result += [_merged(name, group) for name, group in groups.items()]
    return by_frequency(result)


def _merged(name: str, group: Sequence[Frequency]) -> Frequency:
    if len(group) == 1:
        return group[0]
    newest = max(group, key=lambda one: -math.inf if one.last is None else one.last)
    return replace(
        newest,
        pattern=name,
        count=sum(one.count for one in group),
        before=sum(one.before for one in group),
        first=min((one.first for one in group if one.first is not None), default=None),
        sliding=all(one.sliding for one in group),
        variants=tuple(one.pattern for one in by_frequency(group)),
    )


class PatternFields:
    """Reads of hash fields named by patterns: one HMGET for each log.

    Args:
        frequencies: of the patterns.
        key: makes the key of a log's hash.
    """

    def __init__(self, frequencies: Iterable[Frequency], key: Callable[[Source], str]) -> None:
        self._patterns: dict[Source, list[str]] = {}
        for one in frequencies:
            self._patterns.setdefault(source_of(one), []).append(one.pattern)
        self.commands: list[Command] = [
            ("HMGET", key(source), *patterns) for source, patterns in self._patterns.items()
        ]

    def texts(self, replies: Sequence[Reply]) -> dict[PatternPlace, bytes]:
        """Return the fields that exist; foreign keys are left out with a warning."""
        by_source = {s: [reply] for s, reply in zip(self._patterns, replies, strict=True)}
        return {
            (*source, pattern): value
            for source, (values,) in readable(by_source, needed=False).items()
            for pattern, value in zip(self._patterns[source], values, strict=True)
            if value is not None
        }


def with_times(
    frequencies: Iterable[Frequency], texts: Mapping[PatternPlace, bytes]
) -> list[Frequency]:
    """Return frequencies with the first and last times of their patterns, and an example.

    Args:
        texts: fields of `patterns:`.
    """
    return [
        _with_times(one, texts[place]) if (place := pattern_place(one)) in texts else one
        for one in frequencies
    ]


def _with_times(frequency: Frequency, value: bytes) -> Frequency:
    first, last, example = times(value)
    return replace(frequency, first=first, last=last, sample=example)


def times(value: bytes) -> tuple[float | None, float | None, str]:
    """Parse a field of `patterns:`, "FIRST LAST EXAMPLE"."""
    first, _, rest = _text(value).partition(" ")
    last, _, example = rest.partition(" ")
    try:
        seconds = float(first), float(last)
    except ValueError:
        return None, None, ""
    return (*seconds, example) if all(map(math.isfinite, seconds)) else (None, None, "")


def texts_of(reply: Reply) -> dict[str, bytes]:
    """Parse a hash of patterns."""
    return {_text(pattern): value for pattern, value in pairs(reply)}


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


# --- Messages ------------------------------------------------------------------------------


def newest_messages(
    lists: Mapping[Source, Sequence[bytes]], limit: int
) -> list[tuple[float, Message]]:
    """Merge lists of `recent:`, the newest message first.

    A message without a time keeps its place in its list, right after the message before it.

    Returns:
        Each message with the time by which it is sorted.
    """
    messages: list[tuple[float, Message]] = []
    for (logger, severity), entries in lists.items():
        parsed, time = [], float("-inf")
        for entry in reversed(entries):
            stated, text = parse_recent(entry)
            time = time if stated is None else stated
            parsed.append((time, Message(logger, severity, stated, text)))
        messages += parsed[::-1]
    # The sort keeps the order of a list for equal times.
    return sorted(messages, key=lambda pair: pair[0], reverse=True)[:limit]
