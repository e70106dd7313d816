"""Marks: labeled moments that explain changes in metrics, a deploy for instance.

All marks of a store are one sorted set, member "TIME LABEL", scored with the time. Many processes
may note the same event at once: an explicit label within ten minutes of the same label is the same
mark, unless another label is between the two. Rolling back to a version within ten minutes makes
three marks: v1, v2, v1. A label within a minute before the later one does not count as between
them: hosts whose clocks differ and that note two labels each make two marks.

A release, which processes note without naming a label, is one mark until another release is noted,
so that a restart adds none. The member "release LABEL", which is not a mark, holds the newest
release.
"""

from collections.abc import Iterable
from typing import NamedTuple

from redmeter.errors import InvalidValue
from redmeter.names import without_sequences
from redmeter.stored.keys import MAX_TIME, Keys
from redmeter.types import Mark, Operation, Operations

#: Minimum seconds between two marks of one label without another label between them; a nearer one
#: is the same mark.
NEAR_SECONDS = 600
#: Minimum seconds before the later of two marks for another label to be between them.
APART_SECONDS = 60
#: How long a mark is kept, seconds: 90 days.
MARK_LIFE = 90 * 86400
#: Maximum marks of a store; then the oldest are removed.
MAX_MARKS = 1_000
#: Maximum characters of a label.
MAX_LABEL = 100

# The characters that change the direction of a text are format characters (Cf).
_REMOVED = {"Cc", "Cf", "Cs"}

#: The prefix of the member with the newest release.
_RELEASE = "release "


class Noted(NamedTuple):
    """A mark as it was noted."""

    #: Unix seconds.
    time: float
    label: str
    #: Whether it is the release of a process, not an explicit label.
    release: bool = False


def clean_label(label: object) -> str:
    """Return a label as it is stored: one line without control characters, at most 100 long.

    Raises:
        TypeError: not text.
        InvalidValue: nothing is left of it.
    """
    if not isinstance(label, str):
        raise TypeError(f"a mark's label is text (str), not {type(label).__name__}")
    words = " ".join(without_sequences(label[: 10 * MAX_LABEL]).split())
    import unicodedata  # with the first mark, not by `import redmeter`

    text = "".join(c for c in words if unicodedata.category(c) not in _REMOVED).strip()
    if not text:
        raise InvalidValue(label, "a mark needs a label, e.g. a version: mark('v1.4.2')")
    return text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 1] + "…"


def mark_operations(keys: Keys, marks: Iterable[Noted | tuple[float, str]]) -> Operations:
    """Turn marks, or times in Unix seconds and labels, into the operations of one batch."""
    return tuple(_operation(keys.marks, *one) for one in marks)


def _operation(key: str, time: float, label: str, release: bool = False) -> Operation:
    numbers = NEAR_SECONDS, MARK_LIFE, MAX_MARKS, APART_SECONDS
    args = (f"{time:.3f}", label, *map(str, numbers), "1" if release else "")
    return Operation("mark", (key,), args, lambda: [(label, 1)])


def distinct(marks: Iterable[Noted]) -> list[Noted]:
    """Return marks by their time, of those that are the same only the first.

    That is a release if any of them is one.
    """
    kept: list[Noted] = []
    last: dict[str, int] = {}  # where the newest mark of a label is
    release = ""
    for one in sorted(marks):
        newest = release or (kept[-1].label if kept else "")
        at = last.get(one.label)
        if at is not None and (
            (one.release and newest == one.label) or _is_same(kept, kept[at], one)
        ):
            if one.release:
                kept[at] = kept[at]._replace(release=True)
        else:
            last[one.label] = len(kept)
            kept.append(one)
        if one.release:
            release = one.label
    return kept


def _is_same(kept: list[Noted], before: Noted, one: Noted) -> bool:
    """Return whether a label repeats an earlier mark."""
    between = any(before.time < each.time <= one.time - APART_SECONDS for each in kept)
    return not between and one.time - before.time <= NEAR_SECONDS


def parse_mark(member: bytes) -> Mark | None:
    """Read a member of the set; None where it is none of ours."""
    text, _, label = member.decode(errors="replace").partition(" ")
    try:
        time = float(text)
    except ValueError:
        return None
    # NaN is not within either.
    return Mark(time, label) if label and -MAX_TIME < time < MAX_TIME else None


def parse_release(member: bytes) -> str:
    """Return the release that a member of the set names; "" where it names none."""
    text = member.decode(errors="replace")
    return text.removeprefix(_RELEASE) if text.startswith(_RELEASE) else ""
