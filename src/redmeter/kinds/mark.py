"""Marks: moments that explain what is seen elsewhere, a deploy for instance, by a label.

All marks of a store are one sorted set, member "TIME LABEL", scored with the time. Many processes
may note the same thing at once: a label within ten minutes of the same label is the same mark, as
long as no other label lies between the two. Who goes back to a version within ten minutes has noted
three marks: v1, v2, v1. What lies within a minute before the later one is not between them: hosts
that note two labels each, by clocks that differ, have noted two marks.
"""

import math
from collections.abc import Iterable

from redmeter.errors import InvalidValue
from redmeter.keys import MAX_TIME, Keys
from redmeter.model import Mark, Operation, Operations
from redmeter.names import without_sequences

#: How far apart two marks of one label are at least, seconds, where no other lies between them;
#: what is nearer is the same mark.
NEAR_SECONDS = 600
#: How long before the later of two marks another label must lie to be between them, seconds.
APART_SECONDS = 60
#: How long a mark is kept, seconds: 90 days.
KEPT_SECONDS = 90 * 86400
#: Marks that a store holds at most; then the oldest go.
MAX_MARKS = 1_000
#: Characters of a label.
MAX_LABEL = 100

# What may turn the direction of a text around is a format character (Cf).
_REMOVED = {"Cc", "Cf", "Cs"}


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


def operations(keys: Keys, marks: Iterable[tuple[float, str]]) -> Operations:
    """Turn marks, each a time in Unix seconds and a label, into the operations of one batch."""
    return tuple(_operation(keys.marks, time, label) for time, label in marks)


def _operation(key: str, time: float, label: str) -> Operation:
    numbers = NEAR_SECONDS, KEPT_SECONDS, MAX_MARKS, APART_SECONDS
    args = (f"{time:.3f}", label, *map(str, numbers))
    return Operation("mark", (key,), args, lambda: [(label, 1)])


def distinct(marks: Iterable[Mark]) -> list[Mark]:
    """Return marks by their time, of those that are the same only the first."""
    kept: list[Mark] = []
    last: dict[str, float] = {}
    for one in sorted(marks):
        before = last.get(one.label, -math.inf)
        another = any(before < each.time <= one.time - APART_SECONDS for each in kept)
        if another or one.time - before > NEAR_SECONDS:
            last[one.label] = one.time
            kept.append(one)
    return kept


def parse(member: bytes) -> Mark | None:
    """Read a member of the set; None where it is none of ours."""
    text, _, label = member.decode(errors="replace").partition(" ")
    try:
        time = float(text)
    except ValueError:
        return None
    # NaN is not within either.
    return Mark(time, label) if label and -MAX_TIME < time < MAX_TIME else None
