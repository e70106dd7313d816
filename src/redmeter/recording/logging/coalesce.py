"""Coalescing: merges the messages of an instrument cheaply, before they are masked.

An event is one of

    (time, pattern, text)                   as it was logged
    (last, pattern, text, count, first)     several of one step and pattern; the text of the last
    (start, LogHour)                        all of an hour, cleaned and masked: see redact.py

The pattern here is the fingerprint of the message as it was logged: see Fingerprint.

Bound: more than LONG events are merged on the spot, which is cheap. If many different texts are
left, the flusher is rung. If it cannot keep up, the logging thread counts the oldest texts beyond
MAX_TEXTS, or beyond MAX_CHARACTERS, as `(other)` and drops them.
"""

import math
import sys
from collections.abc import Iterable
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from redmeter.analysis.text.patterns import is_object
from redmeter.analysis.text.texts import clean_text
from redmeter.lazy_regex import late
from redmeter.recording.events import Element
from redmeter.stored.keys import HOUR, OTHER, STEP
from redmeter.stored.message import LogHour, PatternHour

# Fingerprint: the part of a message that groups it, as it was logged, not masked yet.
#
#     "retrying %s"                   a format: it is the pattern
#     None                            no format: the pattern is derived from the text
#     Phrase("retrying")              text next to values: the pattern is derived from it
#     Place("[KeyError at a.py:7 in f]")  appended to the pattern of the text
#     Placed("job %s failed", Place(…))   appended to a format or phrase
#
# A format and a place stay apart until both are masked. A secret may be truncated at the end of a
# format; mask() recognizes that by the mark of truncation, which must be at the end.
#
# A format without words, as in `log.error("%s", error)`, would group everything: it counts as
# none.


#: Longest format as a pattern, and of one with a place, characters.
FINGERPRINT_LIMIT, FORMAT_LIMIT = 340, 200
#: Longest format that is buffered unchanged, characters; longer ones are truncated at once.
LONGEST_FORMAT = 1000
#: Longest phrase that a pattern is derived from, characters.
SAID_LIMIT = 2000
#: Longest format that may count as wordless, characters.
_WORDLESS_LIMIT = 60

_CONVERSION = late(r"%(?:\([^()]*\))?[#0 +-]*(?:\d+|\*)?(?:\.(?:\d+|\*))?[hlL]?[diouxXeEfFgGcrsa%]")
_LETTER = late(r"[^\W\d_]")


class Phrase(str):
    """The words next to the values of a message; the pattern is derived from it."""

    __slots__ = ()


class Place(str):
    """The origin of an error, which is appended to the pattern of a text without a format."""

    __slots__ = ()


class Placed(NamedTuple):
    """A format or phrase, and the place that is appended to its pattern."""

    #: A format, or a Phrase.
    words: str
    place: str


#: See the top of this file.
Fingerprint = str | Placed | None


def with_place(words: Fingerprint, place: str) -> Fingerprint:
    """Add a place; it stays whole, however long the format is.

    Args:
        words: a format, a Phrase, or None if the message has neither.
    """
    if words is None:
        return Place(place)
    assert not isinstance(words, Placed), "a message has one place"
    return Placed(_cut(words, FORMAT_LIMIT), place)


def shorten_fingerprint(grouping: Fingerprint) -> Fingerprint:
    """Return a fingerprint without the parts that no pattern needs."""
    if grouping is None or type(grouping) is Place:
        return grouping
    if type(grouping) is Placed:
        words, place = grouping
        return Place(place) if type(words) is not Phrase and is_wordless(words) else grouping
    assert isinstance(grouping, str), "there is nothing else"
    if len(grouping) <= _WORDLESS_LIMIT:
        return None if type(grouping) is not Phrase and is_wordless(grouping) else grouping
    return _cut(grouping, FINGERPRINT_LIMIT) if len(grouping) > LONGEST_FORMAT else grouping


def size_of(grouping: Fingerprint) -> int:
    """Return the number of characters."""
    if grouping is None:
        return 0
    return sum(map(len, grouping)) if type(grouping) is Placed else len(grouping)


def is_wordless(template: str) -> bool:
    """Return whether a format has conversions and no letters besides."""
    return len(template) <= _WORDLESS_LIMIT and _is_wordless(template)


@lru_cache(1024)
def _is_wordless(template: str) -> bool:
    return "%" in template and not _LETTER.search(_CONVERSION.sub("", template))


def _cut(words: str, limit: int) -> str:
    if type(words) is Phrase:
        return Phrase(clean_text(words, SAID_LIMIT)) if len(words) > SAID_LIMIT else words
    return clean_text(words, limit) if len(words) > limit else words


#: Longest text that is stored, characters.
TEXT_LIMIT = 2000
#: Longest text that is buffered unchanged, characters; longer ones are truncated at once.
LONGEST = 8000
#: Different texts, and characters, of one instrument above which the flusher is rung.
CROWD, CROWD_CHARACTERS = 1000, 1_000_000
#: Most texts and characters of one instrument, in addition to the newest texts.
MAX_TEXTS, MAX_CHARACTERS = 4000, 2_000_000

#: Estimated memory of a message in addition to its text and format, bytes.
EVENT_BYTES = 150

#: The time of an event that is a single message.
time_of = itemgetter(0)

#: Step, pattern, and the text if the pattern is derived from it -> [count, first, last, text].
Groups = dict[tuple[float, Fingerprint, str | None], list[Any]]


def message_event(time: float, pattern: Fingerprint, text: str) -> Element:
    """Return the event of a message; text and format are truncated to what may be needed."""
    if len(text) > LONGEST:
        # The first line of a JSON object is grouped by all of it.
        text = text[: LONGEST + 1] if is_object(text) else clean_text(text, TEXT_LIMIT)
    return time, pattern if pattern is None else shorten_fingerprint(pattern), text


def bytes_of(event: Element) -> int:
    """Return the estimated memory of an event, bytes."""
    if len(event) == 2:
        return int(event[1].bytes)
    return EVENT_BYTES + sys.getsizeof(event[2]) + size_of(event[1])


def events_of(event: Element) -> int:
    """Return the number of messages of an event."""
    if len(event) == 3:
        return 1
    return int(event[3]) if len(event) == 5 else int(event[1].events)


def coalesce(events: list[Element], keep: int) -> list[Element]:
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


def limit_size(events: list[Element], keep: int) -> tuple[list[Element], bool]:
    """Drop texts beyond the limits; cheap.

    Args:
        events: returned by coalesce().
        keep: how many of the newest, of a usual length, are exempt from the limits.

    Returns:
        The events, with dropped texts as hours that count them as (other); and whether there are
        many.
    """
    sizes = [len(event[2]) + size_of(event[1]) if len(event) > 2 else 0 for event in events]
    room, left = keep * TEXT_LIMIT, MAX_TEXTS + keep
    crowded = len(events) > CROWD + keep or sum(sizes) > CROWD_CHARACTERS + room
    if len(events) <= left and sum(sizes) <= MAX_CHARACTERS + room:
        return events, crowded
    characters = MAX_CHARACTERS + room
    kept: list[Element] = []
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
            hour.add(OTHER, PatternHour(count, first, last, ""))
    return [*hours.items(), *reversed(kept)], True


def grouped(several: Iterable[Element], singles: Iterable[Element]) -> Groups:
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


def _count_singles(groups: Groups, events: Iterable[Element]) -> None:
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
