"""Texts that a regular expression matches, for generated labels."""

import importlib
import itertools
import re
from collections.abc import Iterator
from typing import Any

#: Python's parser of regular expressions, which is not public.
codes: Any = importlib.import_module("re._constants")
parser: Any = importlib.import_module("re._parser")
#: Texts of a pattern that are tried.
MOST = 40


def samples(pattern: str) -> Iterator[str]:
    """Yield some texts that a pattern matches, shorter ones of repetitions last."""
    try:
        parsed = parser.parse(pattern)
    except re.error:
        return
    yield from itertools.islice(_of(list(parsed)), MOST)


def _of(parts: list[Any]) -> Iterator[str]:
    if not parts:
        yield ""
        return
    for head in _one(*parts[0]):
        for rest in itertools.islice(_of(parts[1:]), MOST):
            yield head + rest


def _one(code: Any, argument: Any) -> Iterator[str]:
    if code is codes.LITERAL:
        yield chr(argument)
    elif code is codes.ANY:
        yield "a"
    elif code is codes.NOT_LITERAL:
        yield "a" if argument != ord("a") else "b"
    elif code is codes.IN:
        yield _of_set(argument)
    elif code is codes.BRANCH:
        for branch in argument[1]:
            yield from itertools.islice(_of(list(branch)), MOST)
    elif code is codes.SUBPATTERN:
        yield from _of(list(argument[-1]))
    elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
        least, most, repeated = argument
        for count in dict.fromkeys((max(least, min(most, 1)), least)):
            yield from _of(list(repeated) * count)
    else:  # anchors
        yield ""


def _of_set(parts: Any) -> str:
    negated = parts[0][0] is codes.NEGATE
    for character in "a1A_- ./:":
        if any(_inside(part, character) for part in parts) is not negated:
            return character
    return chr(parts[0][1]) if parts[0][0] is codes.LITERAL else "a"


def _inside(part: Any, character: str) -> bool:
    code, argument = part
    if code is codes.LITERAL:
        return ord(character) == int(argument)
    if code is codes.RANGE:
        return int(argument[0]) <= ord(character) <= int(argument[1])
    if code is codes.CATEGORY:
        patterns = {
            codes.CATEGORY_DIGIT: r"\d",
            codes.CATEGORY_WORD: r"\w",
            codes.CATEGORY_SPACE: r"\s",
            codes.CATEGORY_NOT_DIGIT: r"\D",
            codes.CATEGORY_NOT_WORD: r"\W",
            codes.CATEGORY_NOT_SPACE: r"\S",
        }
        return re.fullmatch(patterns[argument], character) is not None
    return False
