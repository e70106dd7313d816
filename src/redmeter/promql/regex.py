"""Regular expressions of queries, which come from outside and must not hang the process.

Python's `re` backtracks: with a repeated group, or with several repetitions in a row, a short text
can take longer than the age of the universe. So `re` matches only bounded expressions: no repeated
groups, no lookaround, and at most two repetitions that follow each other, two only in texts
of at most 256 characters. All else goes to google-re2, whose time is linear, where it is installed,
and is refused where it is not.
"""

import functools
import re
from collections.abc import Callable
from typing import Any

from redmeter.promql.errors import BadQuery

#: Repetitions within one alternative that `re` may do: the work grows with the text's length to
#: this power.
MOST_REPETITIONS = 2
#: Characters of a pattern that is compiled; google-re2 takes quadratic time to refuse some.
LONGEST_PATTERN = 16_384
#: Characters of a text in which `re` may do more than one repetition.
LONGEST_TEXT = 256

#: What `re` may give another meaning in a set one day.
_SET_OPERATION = re.compile(r"--|&&|~~|\|\|")
_LITERAL = re.compile(r"[\w \-/:,@%&=!~#<>;'\"]*")
_ESCAPED = re.compile(r"\\([.\-/+*?()|\[\]{}^$\\])")
_PART = re.compile(
    r"""
      (?P<escape>\\.)
    | (?P<set>\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*(?:\]|\\?\Z))
    | (?P<group>\((?:\?(?:P<\w+>|:))?)
    | (?P<close>\))
    | (?P<bar>\|)
    | (?P<repeat>[*+?]\??|\{\d+(?:,\d*)?\}\??)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def _repetitions(pattern: str) -> int | None:
    """Return how many repetitions follow each other, or None if `re` must not try the pattern."""
    most = repetitions = 0
    before = ""
    for match in _PART.finditer(pattern):
        kind, text = match.lastgroup or "", match.group()
        if kind == "escape" and text[1:].isalnum() and text[1] not in "dwsDWSbBnrtfv":
            return None
        if kind == "set" and ("[" in text[1:] or "\\p" in text or _SET_OPERATION.search(text)):
            return None
        if kind == "group" and text == "(" and pattern[match.end() : match.end() + 1] == "?":
            return None  # flags and lookarounds
        if kind == "repeat":
            if before == "close":
                return None
            last = match.end() == len(pattern) and pattern[match.start() - 1] == "."
            repetitions += not last  # at the end, .* matches at once
        elif kind == "bar" and "(" not in pattern:
            repetitions = 0
        most = max(most, repetitions)
        before = kind
    return most if most <= MOST_REPETITIONS else None


def _literals(pattern: str) -> frozenset[str] | None:
    """Return the texts that a pattern stands for if it is an alternation of plain texts."""
    alternatives = []
    for part in pattern.split("|"):
        plain = _ESCAPED.sub("", part)
        if not _LITERAL.fullmatch(plain):
            return None
        alternatives.append(_ESCAPED.sub(r"\1", part))
    return None if "\\" in _ESCAPED.sub("", pattern) else frozenset(alternatives)


class Expression:
    """A compiled pattern that matches any text in bounded time."""

    def __init__(self, pattern: str) -> None:
        """Compile a pattern.

        Raises:
            BadQuery: the pattern is not valid or too long, or it needs google-re2, which is not
                installed.
        """
        if len(pattern) > LONGEST_PATTERN:
            raise BadQuery(
                f"the regular expression has {len(pattern):,} characters, more than"
                f" {LONGEST_PATTERN:,}. Only alternatives of plain texts may be longer"
            )
        self._pattern = pattern
        repetitions = _repetitions(pattern)
        self.backtracking: re.Pattern[str] | None = None
        self._longest = LONGEST_TEXT if repetitions and repetitions > 1 else 1 << 30
        if repetitions is None:
            self._linear()
            return
        try:
            self.backtracking = re.compile(pattern, re.DOTALL | re.ASCII)
        except (re.error, OverflowError, RecursionError) as error:
            raise BadQuery(f"invalid regular expression {pattern!r}: {error}") from None

    def fullmatch(self, text: str) -> Any:
        """Return a match of all of a text, or None."""
        if self.backtracking is not None and len(text) <= self._longest:
            return self.backtracking.fullmatch(text)
        return self._linear().fullmatch(text)

    def _linear(self) -> Any:
        """Return the pattern compiled by google-re2, which caches it."""
        try:
            import re2  # type: ignore[import-untyped, unused-ignore]
        except ImportError:
            raise BadQuery(
                f"the regular expression {self._pattern!r} repeats a group, has more than"
                f" {MOST_REPETITIONS} repetitions, uses flags or meets a long text. Install"
                " google-re2 to use it, or simplify it"
            ) from None
        options = re2.Options()
        options.log_errors = False
        options.dot_nl = True
        try:
            return re2.compile(self._pattern, options)
        except re2.error as error:
            raise BadQuery(f"invalid regular expression {self._pattern!r}: {error}") from None


compiled = functools.lru_cache(maxsize=1024)(Expression)


@functools.lru_cache(maxsize=1024)
def full_match(pattern: str) -> Callable[[str], bool]:
    """Return a test whether a pattern matches all of a text."""
    literals = _literals(pattern)
    if literals is not None:
        return literals.__contains__
    expression = compiled(pattern)
    return lambda text: expression.fullmatch(text) is not None


_REFERENCE = re.compile(r"\$(?:(\$)|(\w+)|\{(\w+)\})")


def expand(match: Any, template: str) -> str:
    """Return a replacement with $1, ${1} and ${name} filled in; unknown groups are empty."""

    def group(reference: re.Match[str]) -> str:
        dollar, plain, braced = reference.groups()
        if dollar:
            return "$"
        name = plain or braced
        try:
            return match.group(int(name) if name.isdecimal() else name) or ""
        except (IndexError, KeyError):
            return ""

    return _REFERENCE.sub(group, template)
