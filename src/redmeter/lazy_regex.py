"""Regular expressions that are compiled when they are first used, not when they are imported.

Compiling one takes 0.1 to 1 ms, and an application that only records metrics uses few of them.
"""

import re
from collections.abc import Iterable
from typing import Any, cast


class _Late:
    def __init__(self, source: str, flags: int) -> None:
        self._made = source, flags

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(re.compile(*self._made), name)
        setattr(self, name, attribute)  # later calls find the attribute directly
        return attribute


def late(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return an expression that is compiled when it is first used."""
    return cast(re.Pattern[str], _Late(source, flags))


def any_of(words: Iterable[str]) -> str:
    """Return an expression for any of several literal texts, fast if none of them matches."""
    by_letter: dict[str, list[str]] = {}
    for word in words:
        by_letter.setdefault(word[0], []).append(re.escape(word[1:]))
    return "|".join(
        f"{re.escape(letter)}(?:{'|'.join(rests)})" for letter, rests in by_letter.items()
    )
