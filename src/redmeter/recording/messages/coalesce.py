"""Coalescing: merges the messages of an instrument cheaply, before they are masked.

An event is one of

    (time, pattern, text)                   as it was logged
    (last, pattern, text, count, first)     several of one step and pattern; the text of the last
    (start, LogHour)                        all of an hour, cleaned and masked: see redact.py

The pattern here is the fingerprint of the message as it was logged: see fingerprint.py.

Bound: more than LONG events are merged on the spot, which is cheap. If many different texts are
left, the flusher is rung. If it cannot keep up, the logging thread counts the oldest texts beyond
MANY, or beyond MANY_CHARACTERS, as `(other)` and drops them.
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

#: Longest text that is stored, characters.
TEXT_LIMIT = 2000
#: Longest text that is buffered unchanged, characters; longer ones are truncated at once.
LONGEST = 8000
#: Different texts, and characters, of one instrument above which the flusher is rung.
CROWD, CROWD_CHARACTERS = 1000, 1_000_000
#: Most texts and characters of one instrument, in addition to the newest texts.
MANY, MANY_CHARACTERS = 4000, 2_000_000

#: Estimated memory of a message in addition to its text and format, bytes.
EVENT_BYTES = 150

#: The time of an event that is a single message.
time_of = itemgetter(0)

#: Step, pattern, and the text if the pattern is derived from it -> [count, first, last, text].
Groups = dict[tuple[float, Fingerprint, str | None], list[Any]]


def message_event(time: float, pattern: Fingerprint, text: str) -> Event:
    """Return the event of a message; text and format are truncated to what may be needed."""
    if len(text) > LONGEST:
        text = clean(text, TEXT_LIMIT)
    return time, pattern if pattern is None else shorten_fingerprint(pattern), text


def bytes_of(event: Event) -> int:
    """Return the estimated memory of an event, bytes."""
    if len(event) == 2:
        return int(event[1].bytes)
    return EVENT_BYTES + sys.getsizeof(event[2]) + size_of(event[1])


def events_of(event: Event) -> int:
    """Return the number of messages of an event."""
    if len(event) == 3:
        return 1
    return int(event[3]) if len(event) == 5 else int(event[1].events)


def coalesce(events: list[Event], keep: int) -> list[Event]:
    """Merge messages of one step and pattern, except the newest; cheap, without masking.

    Args:
        keep: how many of the newest stay single.
    """
    singles = sorted([event for event in events if len(event) == 3], key=time_of)
    groups = grouped([event for event in events if len(event) == 5], singles[:-keep])
    return [
        *(event for event in events if len(event) == 2),
        *((last, key[1], text, count, first) for key, (count, first, last, text) in groups.items()),
        *singles[-keep:],
    ]


def limit_size(events: list[Event], keep: int) -> tuple[list[Event], bool]:
    """Drop texts beyond the limits; cheap.

    Args:
        events: returned by coalesce().
        keep: how many of the newest, of a usual length, are exempt from the limits.

    Returns:
        The events, with dropped texts as hours that count them as (other); and whether there are
        many.
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
    """Count messages by step and pattern; if the pattern is derived later, by step and text.

    Args:
        several: events of several messages.
        singles: events of one message each.
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
    """Do the same with single messages: each passes through here, most of them twice."""
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
