r"""What groups a message, as it comes in with it; nothing here is masked yet.

    "retrying %s"                   a format: it is the pattern
    None                            there is none: a pattern is made of the text
    Said("retrying")                what was said beside values: a pattern is made of it
    Place("[KeyError at a.py:7 in f]")  the pattern that the text has, and this behind it
    Placed("job %s failed", Place(…))   a format, or what was said, and this behind it

A format and a place stay apart until both are masked. A secret may be cut off at the end of a
format; the mark of the cut tells mask() so, and it has to stand at the end.

A format that says nothing of its own, as in `log.error("%s", error)`, would group all there is: it
counts as none.
"""

from functools import lru_cache
from typing import NamedTuple

from redmeter.analysis.texts import clean
from redmeter.expressions import late

#: Characters of a format that is a pattern, and of one to which a place is added.
PATTERN_LIMIT, FORMAT_LIMIT = 340, 200
#: Characters of a format that wait for being cleaned; longer ones are cut at once.
LONGEST_FORMAT = 1000
#: Characters of what was said that wait: of more, no pattern is made.
SAID_LIMIT = 2000
#: Characters of the longest format that may say nothing of its own.
_WORDLESS_LIMIT = 60

_CONVERSION = late(r"%(?:\([^()]*\))?[#0 +-]*(?:\d+|\*)?(?:\.(?:\d+|\*))?[hlL]?[diouxXeEfFgGcrsa%]")
_LETTER = late(r"[^\W\d_]")


class Phrase(str):
    """What was said beside values that the text tells as well; a pattern is made of it."""

    __slots__ = ()


class Place(str):
    """What is added to the pattern that a text without a format has: where its error came from."""

    __slots__ = ()


class Placed(NamedTuple):
    """A format, or what was said, and the place that is added to its pattern."""

    #: A format, or Said.
    words: str
    place: str


#: What groups a message: see the head of this file.
Fingerprint = str | Placed | None


def with_place(words: Fingerprint, place: str) -> Fingerprint:
    """Add a place; it stays whole, however long the format is.

    Args:
        words: a format, Said, or None where the message has neither.
    """
    if words is None:
        return Place(place)
    assert not isinstance(words, Placed), "a message has one place"
    return Placed(_cut(words, FORMAT_LIMIT), place)


def shorten_fingerprint(grouping: Fingerprint) -> Fingerprint:
    """Return what waits of what groups a message: no more than is needed of it."""
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
    """Return how many characters wait."""
    if grouping is None:
        return 0
    return sum(map(len, grouping)) if type(grouping) is Placed else len(grouping)


def is_wordless(template: str) -> bool:
    """Tell whether a format says nothing of its own: it has conversions, and not a letter."""
    return len(template) <= _WORDLESS_LIMIT and _is_wordless(template)


@lru_cache(1024)
def _is_wordless(template: str) -> bool:
    return "%" in template and not _LETTER.search(_CONVERSION.sub("", template))


def _cut(words: str, limit: int) -> str:
    if type(words) is Phrase:
        return Phrase(clean(words, SAID_LIMIT)) if len(words) > SAID_LIMIT else words
    return clean(words, limit) if len(words) > limit else words
