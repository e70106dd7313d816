"""Messages on their way: cells that take them, and what of them waits for being stored.

Logging appends (time, pattern, text) to a list, like all recording. What is slow comes later, in
the background, and only for what stays: of ten thousand messages between two flushes the newest
hundred are shown to people, so these and one sample of each pattern are cleaned and masked. A
message without a pattern needs one made of its text, once for each different text.

An event in a cell is one of

    (time, pattern, text)                   as it was logged
    (last, pattern, text, count, first)     several, of one hour and pattern; text is the last one's
    (start, LogHour)                           all of an hour, cleaned and masked

What is called a pattern there is what groups a message as it came in: see grouping.py.

Order: a text is cleaned, then masked, and only then a pattern is made of it, so that none holds a
secret; a format is masked as well. All that is done by the thread that stores, never by one that
logs. Where a masking function raises, or returns no text, `(masking failed)` stands for the text.

Bound: more than LONG events are put together on the spot, which is cheap. Where many different
texts are left, the thread that stores is rung. Where it cannot keep up, the oldest texts beyond
MANY, or beyond so many characters, are counted as `(other)` by whoever logs, and not kept.
"""

import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple, Self

from redmeter.analysis.patterns import pattern_of
from redmeter.analysis.secrets import mask
from redmeter.analysis.texts import clean
from redmeter.keys import HOUR, MAX_TIME, Kept, Keys
from redmeter.kinds import message
from redmeter.kinds.message import HOURS, OTHER, SAMPLE_LIMIT, Group, LogHour, name_of
from redmeter.model import Operations
from redmeter.recording.cells import Attendant, Cell, Event
from redmeter.recording.flusher import in_background
from redmeter.recording.grouping import (
    FORMAT_LIMIT,
    PATTERN_LIMIT,
    SAID_LIMIT,
    Grouping,
    Place,
    Placed,
    Said,
    is_wordless,
    received,
    size_of,
)
from redmeter.recording.runs import Run

#: Characters of a text that are stored.
TEXT_LIMIT = 2000
#: Characters of a text that wait for being cleaned; longer ones are cut at once.
LONGEST = 8000
#: Different texts, and characters, in one cell from which on the thread that stores is rung.
CROWD, CROWD_CHARACTERS = 1000, 1_000_000
#: The most that wait in a cell, beside the newest texts.
MANY, MANY_CHARACTERS = 4000, 2_000_000

#: Estimate of what a waiting message takes beside its text and format, bytes.
EVENT_BYTES = 150

MASKING_FAILED = "(masking failed)"

_time = itemgetter(0)


class Rules(NamedTuple):
    """How messages are read."""

    #: How many of the newest messages of a logger and severity are kept.
    keep: int = 100
    #: Masks secrets: text -> text.
    mask: Callable[[str], str] = mask


def formatted(template: object, args: tuple[object, ...]) -> tuple[str | None, str, str]:
    """Format a message as logging does. Never raises.

    Args:
        template: "retrying %s", or a text where there are no args.
        args: what belongs into it; a single mapping is looked into by names.

    Returns:
        The pattern, None where there are no args; the text; and "", or the class of the error by
        which it could not be made: the text then is the template and a note.
    """
    try:
        text = str(template)
        if not args:
            return None, text, ""
        values = args[0] if len(args) == 1 and isinstance(args[0], Mapping) and args[0] else args
    except Exception as error:  # noqa: BLE001 - of somebody's __str__
        note = f"({type(template).__name__} without a text)"
        return note, note, type(error).__name__
    try:
        return text, text % values, ""
    except Exception as error:  # noqa: BLE001 - also of somebody's __str__
        problem = type(error).__name__
        words = Said(text) if is_wordless(text) else text  # as it is the text now
        return words, f"{text} (its arguments do not fit: {problem})", problem


class Messages(Cell):
    """The messages of one logger and severity."""

    __slots__ = ("_now", "rules", "taken")

    def __init__(
        self,
        logger: str,
        severity: str,
        attendant: Attendant,
        now: Callable[[], float],
        rules: Rules,
    ) -> None:
        super().__init__(name_of(logger, severity), attendant)
        self._now = now
        self.rules = rules
        #: Events that the thread that stores has taken out and is at; replaced as a whole.
        self.taken: list[Event] = []

    def put_message(self, pattern: Grouping, text: str, time: float) -> None:
        """Add a message.

        Args:
            pattern: what groups it: see grouping.py.
            time: Unix seconds; where that is no time, it is now.
        """
        now = self._now()
        if not -MAX_TIME < time < MAX_TIME:
            time = now
        self.events.append(received_event(time, pattern, text))
        if now >= self.due:
            self.attendant.attend(self)

    def take(self) -> list[Event]:
        """Take all events out of the list, so that what is slow does not touch it."""
        count = len(self.events)
        self.taken = self.taken + self.events[:count]
        del self.events[:count]
        return self.taken

    def clear(self) -> None:
        super().clear()
        self.taken = []

    def waiting(self) -> list[Event]:
        return [*self.taken, *self.events]

    def shorten(self) -> bool:
        count = len(self.events)
        made, crowded = bounded(folded(self.events[:count], self.rules.keep), self.rules.keep)
        self.events[:count] = made
        return crowded

    def merged(self, events: list[Event]) -> list[Event]:  # type: ignore[override]
        """Clean, mask and count: one event for each hour."""
        if len(events) == 1 and len(events[0]) == 2:
            return events
        return list(digested(events, self.rules, self.attendant.trouble).items())

    @staticmethod
    def value(event: Event) -> Any:
        return event[1]

    @classmethod
    def size(cls, events: list[Event]) -> int:
        return sum(_events_of(event) for event in events)

    @classmethod
    def size_in_memory(cls, events: list[Event]) -> int:
        return sum(_bytes_of(event) for event in events)


def received_event(time: float, pattern: Grouping, text: str) -> Event:
    """Return a message as it waits: of a text and a format as much as may be needed."""
    if len(text) > LONGEST:
        text = clean(text, TEXT_LIMIT)
    return time, pattern if pattern is None else received(pattern), text


def _bytes_of(event: Event) -> int:
    if len(event) == 2:
        return int(event[1].bytes)
    return EVENT_BYTES + sys.getsizeof(event[2]) + size_of(event[1])


def _events_of(event: Event) -> int:
    if len(event) == 3:
        return 1
    return int(event[3]) if len(event) == 5 else int(event[1].events)


def folded(events: list[Event], keep: int) -> list[Event]:
    """Put messages of one hour and pattern together, but for the newest; cheap, and masks nothing.

    Args:
        keep: how many of the newest.
    """
    singles = sorted([event for event in events if len(event) == 3], key=_time)
    groups: dict[Any, list[Any]] = {}
    for event in events:
        if len(event) == 5:
            _count(groups, *event)
    _count_singles(groups, singles[:-keep])
    return [
        *(event for event in events if len(event) == 2),
        *((last, key[1], text, count, first) for key, (count, first, last, text) in groups.items()),
        *singles[-keep:],
    ]


def bounded(events: list[Event], keep: int) -> tuple[list[Event], bool]:
    """Give up texts where there are too many; cheap.

    Args:
        events: as they come from folded().
        keep: how many of the newest are beside the bound, of a usual length.

    Returns:
        The events, those that were given up as hours in which they are (other); and whether there
        are many.
    """
    sizes = [len(event[2]) + size_of(event[1]) if len(event) > 2 else 0 for event in events]
    room, left = keep * TEXT_LIMIT, MANY + keep
    crowded = len(events) > CROWD + keep or sum(sizes) > CROWD_CHARACTERS + room
    if len(events) <= left and sum(sizes) <= MANY_CHARACTERS + room:
        return events, crowded
    characters = MANY_CHARACTERS + room
    kept: list[Event] = []
    hours: dict[int, LogHour] = {}
    for event, size in zip(reversed(events), reversed(sizes), strict=True):  # the newest first
        if len(event) == 2:
            kept.append(event)
        elif left > 0 and size <= characters:
            left, characters = left - 1, characters - size
            kept.append(event)
        else:
            last = event[0]
            count, first = event[3:] if len(event) == 5 else (1, last)
            start = math.floor(last) // HOUR * HOUR
            hour = hours.setdefault(start, LogHour(keep))
            hour.add(OTHER, Group(count, first, last, ""))
    return [*hours.items(), *reversed(kept)], True


def _count(
    groups: dict[Any, list[Any]],
    time: float,
    pattern: Grouping,
    text: str,
    count: int,
    first: float,
) -> None:
    """Count messages by hour and pattern; where that is to be made, by hour and text."""
    known = pattern is not None and type(pattern) is not Place
    key = (time // HOUR, pattern, None if known else text)
    group = groups.get(key)
    if group is None:
        groups[key] = [count, first, time, text]
        return
    group[0] += count
    if first < group[1]:
        group[1] = first
    if time >= group[2]:
        group[2:] = time, text


def _count_singles(groups: dict[Any, list[Any]], events: list[Event]) -> None:
    """Do the same with messages by themselves: each goes through here, most of them twice."""
    get = groups.get
    for time, pattern, text in events:
        made_of = text if pattern is None or type(pattern) is Place else None
        key = (time // HOUR, pattern, made_of)
        group = get(key)
        if group is None:
            groups[key] = [1, time, time, text]
        else:
            group[0] += 1
            if time >= group[2]:
                group[2] = time
                group[3] = text
            elif time < group[1]:
                group[1] = time


def digested(
    events: list[Event], rules: Rules, trouble: Callable[[str, str], None]
) -> dict[int, LogHour]:
    """Clean and mask messages, and count them by pattern.

    Args:
        events: see above; none of them is changed.
        trouble: called where masking failed: "mask", and the class of the error.

    Returns:
        Start of an hour, Unix seconds -> what was logged within it.
    """
    reader = _Reader(rules.mask, trouble)
    hours: dict[int, LogHour] = {}

    def hour(time: float) -> LogHour:
        start = math.floor(time) // HOUR * HOUR
        found = hours.get(start)
        if found is None:
            found = hours[start] = LogHour(rules.keep)
        return found

    groups: dict[Any, list[Any]] = {}
    singles = []
    for event in events:
        if len(event) == 3:
            singles.append(event)
        elif len(event) == 2:
            hour(event[0]).merge(event[1])
        else:
            _count(groups, *event)
    _count_singles(groups, singles)
    by_pattern: dict[Any, list[Any]] = {}
    for (start, pattern, _), (count, first, last, text) in groups.items():
        shown = reader.text(text)
        key = start, reader.pattern(pattern, shown)
        old = by_pattern.get(key)
        if old is None:
            by_pattern[key] = [count, first, last, shown]
        else:
            old[0] += count
            if first < old[1]:
                old[1] = first
            if last >= old[2]:
                old[2:] = last, shown
    for (_, made), (count, first, last, shown) in by_pattern.items():
        hour(last).add(made, Group(count, first, last, clean(shown, SAMPLE_LIMIT)))
    newest: dict[int, list[tuple[float, str]]] = {}
    for time, _, text in sorted(singles, key=_time)[-rules.keep :]:
        newest.setdefault(math.floor(time) // HOUR, []).append((time, reader.text(text)))
    for texts in newest.values():
        hour(texts[0][0]).add_texts(texts)
    return hours


class _Reader:
    """Cleans and masks, and makes patterns; once for each different text."""

    def __init__(self, mask: Callable[[str], str], trouble: Callable[[str, str], None]) -> None:
        self._mask = mask
        self._trouble = trouble
        self._texts: dict[tuple[str, int], str] = {}

    def text(self, text: str, limit: int = TEXT_LIMIT) -> str:
        """Return what may be stored of a text."""
        known = self._texts.get((text, limit))
        if known is None:
            known = self._texts[text, limit] = self._masked(clean(text, limit), limit)
        return known

    def _masked(self, text: str, limit: int) -> str:
        try:
            masked = self._mask(text)
            # What a user's function returns may be anything. Masks may be longer than secrets.
            return text if masked is text else clean(str.__str__(masked), 2 * limit)
        except BaseException as error:  # of a user's function: its text may be the secret
            # What ends a program, or a greenlet's patience, is for the application's threads. In
            # ours it comes from that function alone, and would end all storing.
            if not isinstance(error, Exception) and not in_background():
                raise
            self._trouble("mask", f"masking secrets: {type(error).__name__}")
            return MASKING_FAILED

    def pattern(self, grouping: Grouping, text: str) -> str:
        """Return the pattern of a message.

        Args:
            grouping: as it came in.
            text: cleaned and masked.
        """
        if grouping is None:
            return pattern_of(text)
        if type(grouping) is Placed:
            return f"{self._words(grouping.words, FORMAT_LIMIT)} {self._place(grouping.place)}"
        if type(grouping) is Place:
            return f"{pattern_of(text)} {self._place(grouping)}"
        assert isinstance(grouping, str), "there is nothing else"
        return self._words(grouping, PATTERN_LIMIT)

    def _words(self, words: str, limit: int) -> str:
        if type(words) is Said:
            return pattern_of(self.text(words, SAID_LIMIT))
        return self.text(words, limit)

    def _place(self, place: str) -> str:
        return self.text(place, PATTERN_LIMIT)


class Log(Run):
    """Start of an hour -> what was logged within it."""

    __slots__ = ("_hours",)

    HAS_TOTAL = True
    NUMBERED: ClassVar[bool] = False
    TEXTS: ClassVar[bool] = True

    def __init__(self) -> None:
        self._hours: dict[int, LogHour] = {}

    def __len__(self) -> int:
        """Return how many parts there are: an hour is one for each pattern."""
        return sum(map(_parts, self._hours.values()))

    @property
    def bytes(self) -> int:
        return sum(hour.bytes for hour in self._hours.values())

    @property
    def events(self) -> int:
        return sum(hour.events for hour in self._hours.values())

    @property
    def first(self) -> int:
        return min(self._hours)

    @property
    def last(self) -> int:
        return max(self._hours)

    def __iter__(self) -> Iterator[tuple[int, LogHour]]:
        return iter(self._hours.items())

    def add(self, start: int, value: LogHour) -> None:
        hour = self._hours.get(start)
        if hour is None:
            hour = self._hours[start] = LogHour(value.keep)
        hour.merge(value)

    def give_up_texts(self, need: int) -> tuple[int, int]:
        """Give up texts, the oldest first, then samples, until so many bytes are free.

        Returns:
            How many bytes are free, and how many of the newest messages were given up.
        """
        freed = given_up = 0
        for start in sorted(self._hours):
            before, texts = self._hours[start].bytes, len(self._hours[start].texts)
            self._hours[start].give_up_texts(need - freed)
            freed += before - self._hours[start].bytes
            given_up += texts - len(self._hours[start].texts)
        for start in sorted(self._hours):
            before = self._hours[start].bytes
            self._hours[start].give_up_samples(need - freed)
            freed += before - self._hours[start].bytes
        return freed, given_up

    def give_up_patterns(self, need: int) -> int:
        """Count messages as (other), the oldest hours first, until so many bytes are free."""
        freed = 0
        for start in sorted(self._hours):
            before = self._hours[start].bytes
            self._hours[start].give_up_patterns(need - freed)
            freed += before - self._hours[start].bytes
        return freed

    def older(self, time: float) -> int:
        return sum(_parts(hour) for start, hour in self._hours.items() if start < time)

    def cut(self, count: int) -> Self:
        part = type(self)()
        for start in sorted(self._hours):
            hour = self._hours[start]
            if _parts(hour) > count:
                if count:
                    part._hours[start] = hour.cut(count)
                break
            part._hours[start] = self._hours.pop(start)
            count -= _parts(hour)
        return part

    @staticmethod
    def events_of(value: LogHour) -> int:
        return value.events

    @staticmethod
    def retention(kept: Kept) -> Mapping[int, int]:  # noqa: ARG004
        """Return the hours in which patterns are counted, whatever is kept of other kinds."""
        return HOURS

    def fields(self, precisions: Collection[int]) -> int:
        """Return how many fields it writes: each pattern is counted, and its sample kept."""
        texts = sum(len(hour.texts) for hour in self._hours.values())
        return 1 + texts + (2 * len(self) if precisions else 0)

    @staticmethod
    def operations(
        keys: Keys,
        kept: Kept,  # noqa: ARG004
        runs: Mapping[str, "Log"],
        width: int,
    ) -> Operations:
        """Turn messages into operations; those of which no hour is known are not counted."""
        messages = {name: dict(run) for name, run in runs.items()}
        return message.operations(keys, messages, tallied=width > 0)


def _parts(hour: LogHour) -> int:
    return len(hour.patterns) or 1


Messages.kind = Log
