"""Messages that wait in a cell, put together: cheap, and nothing of them is masked yet.

An event is one of

    (time, pattern, text)                   as it was logged
    (last, pattern, text, count, first)     several, of one step and pattern; text is the last one's
    (start, LogHour)                        all of an hour, cleaned and masked: see redact.py

What is called a pattern there is what groups a message as it came in: see fingerprint.py.

Bound: more than LONG events are put together on the spot, which is cheap. Where many different
texts are left, the thread that stores is rung. Where it cannot keep up, the oldest texts beyond
MANY, or beyond so many characters, are counted as `(other)` by whoever logs, and not kept.
"""

import math
import sys
from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from redmeter.analysis.texts import clean
from redmeter.format.message import OTHER, Group, LogHour
from redmeter.keys import HOUR, STEP
from redmeter.recording.events import Event
from redmeter.recording.messages.fingerprint import Fingerprint, Place, shorten_fingerprint, size_of

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

#: Of an event that is a message by itself.
time_of = itemgetter(0)

#: Step, pattern, and the text where the pattern is to be made of it -> [count, first, last, text].
Groups = dict[tuple[float, Fingerprint, str | None], list[Any]]


def message_event(time: float, pattern: Fingerprint, text: str) -> Event:
    """Return a message as it waits: of a text and a format as much as may be needed."""
    if len(text) > LONGEST:
        text = clean(text, TEXT_LIMIT)
    return time, pattern if pattern is None else shorten_fingerprint(pattern), text


def bytes_of(event: Event) -> int:
    """Return about how many bytes an event takes."""
    if len(event) == 2:
        return int(event[1].bytes)
    return EVENT_BYTES + sys.getsizeof(event[2]) + size_of(event[1])


def events_of(event: Event) -> int:
    """Return how many messages an event stands for."""
    if len(event) == 3:
        return 1
    return int(event[3]) if len(event) == 5 else int(event[1].events)


def coalesce(events: list[Event], keep: int) -> list[Event]:
    """Put messages of one step and pattern together, but for the newest; cheap, and masks nothing.

    Args:
        keep: how many of the newest.
    """
    singles = sorted([event for event in events if len(event) == 3], key=time_of)
    groups = grouped([event for event in events if len(event) == 5], singles[:-keep])
    return [
        *(event for event in events if len(event) == 2),
        *((last, key[1], text, count, first) for key, (count, first, last, text) in groups.items()),
        *singles[-keep:],
    ]


def limit_size(events: list[Event], keep: int) -> tuple[list[Event], bool]:
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


def grouped(several: Iterable[Event], singles: Iterable[Event]) -> Groups:
    """Count messages by step and pattern; where that is to be made, by step and text.

    Args:
        several: events that stand for several messages.
        singles: events that are a message each.
    """
    groups: Groups = {}
    for event in several:
        _count(groups, *event)
    _count_singles(groups, singles)
    return groups


def _count(
    groups: Groups,
    time: float,
    pattern: Fingerprint,
    text: str,
    count: int,
    first: float,
) -> None:
    known = pattern is not None and type(pattern) is not Place
    key = (time // STEP, pattern, None if known else text)
    group = groups.get(key)
    if group is None:
        groups[key] = [count, first, time, text]
        return
    group[0] += count
    if first < group[1]:
        group[1] = first
    if time >= group[2]:
        group[2:] = time, text


def _count_singles(groups: Groups, events: Iterable[Event]) -> None:
    """Do the same with messages by themselves: each goes through here, most of them twice."""
    get = groups.get
    for time, pattern, text in events:
        made_of = text if pattern is None or type(pattern) is Place else None
        key = (time // STEP, pattern, made_of)
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
