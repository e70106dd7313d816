"""Regular expressions of queries, which come from outside and must not hang the process.

Python's `re` backtracks: with a repeated group, or with several repetitions in a row, a short text
can take longer than the age of the universe. So only patterns that cannot do this go to `re`: no
group is repeated, nothing is looked around, and at most three repetitions follow each other. All
others go to google-re2, whose time is linear, where it is installed; else they are refused.
"""

import functools
import re
from collections.abc import Callable
from typing import Any

from redmeter.promql.errors import BadQuery

#: Repetitions within one alternative that `re` may do: the work grows with the text's length to
#: this power.
MOST_REPETITIONS = 3

_LITERAL = re.compile(r"[\w \-/:,@%&=!~#<>;'\"]*")
_ESCAPED = re.compile(r"\\([.\-/+*?()|\[\]{}^$\\])")
_PART = re.compile(
    r"""
      (?P<escape>\\.)
    | (?P<set>\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\])
    | (?P<group>\((?:\?(?:P<\w+>|:))?)
    | (?P<close>\))
    | (?P<bar>\|)
    | (?P<repeat>[*+?]\??|\{\d+(?:,\d*)?\}\??)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def _is_bounded(pattern: str) -> bool:
    """Return whether `re` matches a pattern in bounded time, and with RE2's meaning."""
    repetitions = 0
    before = ""
    for match in _PART.finditer(pattern):
        kind, text = match.lastgroup or "", match.group()
        following = pattern[match.end() : match.end() + 1]
        if kind == "escape" and text[1].isalnum() and text[1] not in "dwsDWSbBnrtfv":
            return False
        if kind == "set" and ("[:" in text or "&&" in text or "\\p" in text):
            return False
        if kind == "group" and text == "(" and following == "?":
            return False  # flags and lookarounds
        if kind == "repeat":
            if before == "close":
                return False
            repetitions += 1
        elif kind == "bar" and "(" not in pattern:
            repetitions = 0
        if repetitions > MOST_REPETITIONS:
            return False
        before = kind
    return True


def _literals(pattern: str) -> frozenset[str] | None:
    """Return the texts that a pattern stands for if it is an alternation of plain texts."""
    alternatives = []
    for part in pattern.split("|"):
        plain = _ESCAPED.sub("", part)
        if not _LITERAL.fullmatch(plain):
            return None
        alternatives.append(_ESCAPED.sub(r"\1", part))
    return None if "\\" in _ESCAPED.sub("", pattern) else frozenset(alternatives)


@functools.lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """Return a pattern with `fullmatch()` and `groupindex`, of `re` or of google-re2.

    Raises:
        BadQuery: the pattern is not valid, or it needs google-re2, which is not installed.
    """
    if _is_bounded(pattern):
        try:
            return re.compile(pattern, re.DOTALL | re.ASCII)
        except re.error as error:
            raise BadQuery(f"invalid regular expression {pattern!r}: {error}") from None
    try:
        import re2  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise BadQuery(
            f"the regular expression {pattern!r} repeats a group, has more than"
            f" {MOST_REPETITIONS} repetitions or uses flags. Install google-re2 to use it, or"
            " simplify it"
        ) from None
    options = re2.Options()
    options.log_errors = False
    options.dot_nl = True
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise BadQuery(f"invalid regular expression {pattern!r}: {error}") from None


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
