r"""Fingerprint: the part of a message that groups it, as it was logged, not masked yet.

    "retrying %s"                   a format: it is the pattern
    None                            no format: the pattern is derived from the text
    Phrase("retrying")              text next to values: the pattern is derived from it
    Place("[KeyError at a.py:7 in f]")  appended to the pattern of the text
    Placed("job %s failed", Place(…))   appended to a format or phrase

A format and a place stay apart until both are masked. A secret may be truncated at the end of a
format; mask() recognizes that by the mark of truncation, which must be at the end.

A format without words, as in `log.error("%s", error)`, would group everything: it counts as none.
"""

from functools import lru_cache
from typing import NamedTuple

from redmeter.analysis.texts import clean
from redmeter.expressions import late

#: Longest format as a pattern, and of one with a place, characters.
PATTERN_LIMIT, FORMAT_LIMIT = 340, 200
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
    return _cut(grouping, PATTERN_LIMIT) if len(grouping) > LONGEST_FORMAT else grouping


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
        return Phrase(clean(words, SAID_LIMIT)) if len(words) > SAID_LIMIT else words
    return clean(words, limit) if len(words) > limit else words
