r"""Texts of messages: makes them safe to store, and to show in a terminal or a browser.

Problem: a message may contain untrusted input. It may clear the reader's screen, reverse the
direction of a line, be invalid Unicode, or be a megabyte long.

Idea: keep visible characters, and mark a cut.

    "\x1b[31mfailed\x1b[0m\x07"          failed
    "user \u202egnp.exe"                 user gnp.exe
    b"caf\xc3\xa9 \xff"                  café \ufffd
    "x" * 1_000_000                      xxxxx… (999,018 more)     at a limit of 1,000

Rules, in this order:

1. Terminal sequences go as a whole: colours and cursor (CSI), titles and links (OSC), the other
   strings (DCS, SOS, PM, APC), all others of ESC, also in their 8-bit forms. A string that is
   never ended ends with its line.
2. Line breaks of any kind (CR LF, CR, NEL, U+2028, U+2029) become a newline. Newline and tab stay.
3. All other control characters, marks and overrides of direction and byte order marks are removed.
4. A lone surrogate becomes U+FFFD, as do bytes that are not valid UTF-8.
5. A text above the limit is cut, with a mark at its end.

Bound: the result has at most `limit` characters, and WINDOW times as many are examined. The
check of a text with nothing to remove is one call of str.isprintable.

Not done: zero-width joiners stay, since emoji and several scripts need them; so do heaps of
combining characters. Secrets are the business of secrets.mask(), which comes after: a sequence in
the middle of a word would hide the word from it, and it knows the mark of a cut.

Source: ECMA-48, sections 5.3 to 5.6; Unicode TR36, section 3.
"""

import re
from typing import Final

from redmeter.lazy_regex import late
from redmeter.names import SEQUENCE

EMPTY: Final = "(empty)"
#: Default maximum characters of a result.
LIMIT: Final = 1000
#: The least limit, in characters: the mark of a cut must fit.
LEAST_LIMIT: Final = 32
#: How many times the limit is examined, so that removed characters do not count.
WINDOW: Final = 4

#: The mark of a cut, at the end of a text.
CUT: Final = late(r"… \(\d{1,3}(?:,\d{3})* more\)\Z")

# No ESC and no C1 control is left that could begin a sequence with what comes to stand behind it.
_UNSEEN = late(
    rf"""
    (?P<line> \r\n? | [\x85\u2028\u2029] )
  | (?P<lone> [\ud800-\udfff] )
  | {SEQUENCE}
  | [\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f\ufeff]
    """,
    re.VERBOSE,
)


def clean_text(text: object, limit: int = LIMIT) -> str:
    """Return what may be stored and shown of a text.

    Args:
        text: str or bytes; for anything else the caller decides how it is written.
        limit: characters of the result, at least 32, the mark of a cut included.

    Returns:
        Visible characters, newlines and tabs; "(empty)" where there is nothing else than space.
        Cleaning it again changes nothing.

    Raises:
        TypeError: neither str nor bytes.
        ValueError: a limit below 32.
    """
    if limit < LEAST_LIMIT:
        raise ValueError(f"limit is {limit}: the least is {LEAST_LIMIT}, for the mark of a cut")
    window = WINDOW * limit
    if isinstance(text, str):
        seen, beyond = str.__str__(text[:window]), len(text) - window
    elif isinstance(text, bytes):
        seen, beyond = text[:window].decode(errors="replace"), len(text) - window
    else:
        raise TypeError(f"a message is str or bytes, not {type(text).__name__}: pass str(…)")
    if not seen.isprintable():
        seen = _UNSEEN.sub(_seen, seen)
    rest = max(beyond, 0)
    if not rest and len(seen) <= limit:
        return EMPTY if not seen or seen.isspace() else seen
    return _cut(seen, rest, limit)


def _seen(match: re.Match[str]) -> str:
    kind = match.lastgroup
    return "" if kind is None else "\n" if kind == "line" else "\ufffd"


def _cut(seen: str, rest: int, limit: int) -> str:
    """Cut a text, telling how many characters (for bytes past the window: bytes) are missing."""
    # The number depends on how much is kept, and that on the digits of the number: room for the
    # most that it can be is at most one or two characters too many.
    room = len(f"… ({rest + len(seen):,} more)")
    kept = seen[: limit - room]
    return f"{kept}… ({rest + len(seen) - len(kept):,} more)"
