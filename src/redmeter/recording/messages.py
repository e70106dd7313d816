"""Messages on their way: cells that take them, and what of them waits for being stored.

Logging appends (time, pattern, text) to a list, like all recording. What is slow comes later, in
the background, and only for what stays: of ten thousand messages between two flushes the newest
hundred are shown to people, so these and one sample of each pattern are cleaned and masked. A
message without a pattern needs one made of its text, once for each different text.

An event in a cell is one of

    (time, pattern, text)                   as it was logged
    (last, pattern, text, count, first)     several, of one hour and pattern; text is the last one's
    (start, LogHour)                           all of an hour, cleaned and masked

A pattern is a format ("retrying %s"), None for a text without one, or a Place, which is added to
the pattern that the text has.

Order: a text is cleaned, then masked, and only then a pattern is made of it, so that none holds a
secret; a format is masked as well. A masking function of the user's is called by whichever thread
is at it. Where it raises, or returns no text, `(masking failed)` stands for the text.

Bound: more than LONG events are put together on the spot. Where many different texts are left,
their patterns are made there and then, in the thread that logs. Then a cell holds at most 1,000
patterns with a sample each, and the newest texts, for each hour.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple, Self

from redmeter.analysis.patterns import pattern_of
from redmeter.analysis.secrets import mask
from redmeter.analysis.texts import clean
from redmeter.keys import HOUR, MAX_TIME, Kept, Keys
from redmeter.kinds import message
from redmeter.kinds.message import HOURS, SAMPLE_LIMIT, Group, LogHour, name_of
from redmeter.model import Operations
from redmeter.recording.cells import Attendant, Cell, Event
from redmeter.recording.exceptions import Place
from redmeter.recording.runs import Run

#: Characters of a text that are stored.
TEXT_LIMIT = 2000
#: Characters of a text that wait for being cleaned; longer ones are cut at once.
LONGEST = 8000
#: Characters of a format that is a pattern, a place included.
PATTERN_LIMIT = 340

#: Different texts without a pattern, and characters, in one cell from which on patterns are made
#: of them on the spot.
MANY, MANY_CHARACTERS = 1000, 1_000_000

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
        return text, f"{text} (its arguments do not fit: {problem})", problem


class Messages(Cell):
    """The messages of one logger and severity."""

    __slots__ = ("_now", "rules", "version")

    EVENT_BYTES = 400

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
        #: Goes up whenever events were replaced by others that mean the same.
        self.version = 0

    def put_message(self, pattern: str | None, text: str, time: float) -> None:
        """Add a message.

        Args:
            pattern: a format, None, or a Place.
            time: Unix seconds; where that is no time, it is now.
        """
        now = self._now()
        if len(text) > LONGEST:
            text = clean(text, TEXT_LIMIT)
        if not -MAX_TIME < time < MAX_TIME:
            time = now
        self.events.append((time, pattern, text))
        if now >= self.due:
            self.attendant.attend(self)

    def shorten(self) -> None:
        count = len(self.events)
        made = folded(self.events[:count], self.rules.keep)
        texts = [event[2] for event in made if len(event) > 2]
        if len(texts) > MANY + self.rules.keep or sum(map(len, texts)) > MANY_CHARACTERS:
            made = self.merged(made)
        self.events[:count] = made
        self.version += 1

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


def _count(
    groups: dict[Any, list[Any]],
    time: float,
    pattern: str | None,
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
        except Exception as error:  # noqa: BLE001 - of a user's function: its text may be the secret
            self._trouble("mask", f"masking secrets: {type(error).__name__}")
            return MASKING_FAILED

    def pattern(self, pattern: str | None, text: str) -> str:
        """Return the pattern of a message.

        Args:
            pattern: as it was given.
            text: cleaned and masked.
        """
        if pattern is None:
            return pattern_of(text)
        if type(pattern) is Place:
            return f"{pattern_of(text)} {self.text(pattern, PATTERN_LIMIT)}"
        return self.text(pattern, PATTERN_LIMIT)


class Log(Run):
    """Start of an hour -> what was logged within it."""

    __slots__ = ("_hours",)

    HAS_TOTAL = True
    NUMBERED: ClassVar[bool] = False

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
