"""Shortening: cuts a text with a traceback where it matters least.

Problem: a message with its traceback is cut to the length that is stored, and the end has what
matters: the exception's text, below the frames of the application.

Idea: choose lines by their kind, until the limit is reached; `…` stands for lines left out.

    1   the first line of the message; the exception's line
    2   frames of the application, the innermost first
    3   lines of causes and members of a group
    4   the source line of the innermost frame, then other lines

Both forms are known: that of tracebacks.py, whose frames are all of the application and whose first
error is the one that was raised; and Python's own, where it is the last one. Long lines are cut
too, frames at their beginning.

Source lines are redacted one by one, since one that ends within a string or a bracket would make
all that follows a part of a secret.

Pure: no I/O.
"""

import re
from collections.abc import Callable

from redmeter.analysis.text.secrets import mask
from redmeter.analysis.text.texts import clean_text
from redmeter.lazy_regex import late
from redmeter.recording.logging.coalesce import LONGEST
from redmeter.recording.logging.tracebacks import IS_HEADING, in_library

#: A frame and the line below it. In one of Python, group 2 is the file.
_FRAME = late(r"  (?:\S.*:\d+ in \S+|File \"([^\"]*)\", line \d+.*)\Z")
_ANY_FRAME = late(r"^  (?:\S.*:\d+ in \S+|File \"[^\"\n]*\", line \d+.*)$", re.MULTILINE)
_SOURCE = late(r"^(  \S.*:\d+ in \S+)\n    (\S.*)$", re.MULTILINE)
_HEADER = "Traceback (most recent call last):"
#: Share of the limit that one line may take.
_SHARE = 3
#: Characters that a message keeps at least, however long its traceback is.
LEAST_TEXT = 1_000
#: Most lines that are looked at, from the beginning and from the end.
_MOST = 500


def with_traceback(text: str, traceback: str) -> str:
    """Return a message with its traceback below, also where the message is very long."""
    if text and traceback and len(text) + len(traceback) >= LONGEST:
        # Text must be masked before it is cut: within a text the end of a secret is not known.
        text = mask(clean_text(text, max(LEAST_TEXT, LONGEST - len(traceback) - 1)))
    return "\n".join(part for part in (text, traceback) if part)


def has_frames(text: str) -> bool:
    """Return whether a text has a traceback."""
    return "\n  " in text and _ANY_FRAME.search(text) is not None


def redact_lines(text: str, redact: Callable[[str], str], *, keep: bool) -> str:
    """Redact a text, and its source lines one by one.

    Args:
        redact: text -> text.
        keep: whether source lines are kept.
    """
    sources = _SOURCE.findall(text)
    if not sources:
        return redact(text)
    redacted = redact(_SOURCE.sub(r"\1", text))
    if not keep:
        return redacted
    lines, at = list[str](), 0
    for line in redacted.split("\n"):
        lines.append(line)
        if at < len(sources) and line == sources[at][0]:
            lines.append("    " + redact(sources[at][1]).replace("\n", " "))
            at += 1
    return "\n".join(lines)


def shorten_traceback(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters, without what matters least."""
    if len(text) <= limit:
        return text
    lines = text.split("\n")
    if len(lines) > 2 * _MOST:
        lines[_MOST:-_MOST] = ["…"]
    kept: dict[int, str] = {}
    room = limit
    for number in sorted(range(len(lines)), key=_ranks(lines).__getitem__):
        line = _cut(lines[number], limit // _SHARE)
        if len(line) + 3 <= room:  # with its line break, and one mark
            kept[number] = line
            room -= len(line) + 3
    result: list[str] = []
    before = -1
    for number in sorted(kept):
        if number > before + 1:
            result.append("…")
        result.append(kept[number])
        before = number
    if before < len(lines) - 1:
        result.append("…")
    return "\n".join(result)[:limit]


def _cut(line: str, most: int) -> str:
    if len(line) <= most:
        return line
    return f"  …{line[3 - most :]}" if _FRAME.match(line) else f"{line[: most - 1]}…"


def _ranks(lines: list[str]) -> list[tuple[int, int]]:
    """Return of each line how much it matters: least is most."""
    blocks, kinds = _parsed(lines)
    main = max(blocks) if any(line.endswith(_HEADER) for line in lines) else 1
    ranks: list[tuple[int, int]] = []
    innermost = max(
        (n for n, k in enumerate(kinds) if k == "frame" and blocks[n] == main), default=0
    )
    for number, (block, kind) in enumerate(zip(blocks, kinds, strict=True)):
        is_main = block == main
        if number == 0 or (kind == "error" and is_main):
            rank = 0, number
        elif kind == "frame":
            rank = (1 if is_main else 3), -number
        elif kind in ("error", "heading"):
            rank = 2, abs(block - main)
        elif kind == "source" and number == innermost + 1:
            rank = 4, 0
        elif kind == "fold":
            rank = (5 if is_main else 8), -number
        else:
            rank = {"text": 6, "source": 7, "library": 8}[kind], number
        ranks.append(rank)
    return ranks


def _parsed(lines: list[str]) -> tuple[list[int], list[str]]:
    """Return the block and the kind of each line; an error's block ends with its text."""
    blocks, kinds = list[int](), list[str]()
    block, open_error = 0, False  # within the frames of a block
    for line in lines:
        frame = _FRAME.match(line)
        kind = "text"
        if frame is not None or line.startswith("  ("):
            block += not open_error
            open_error = True
            kind = "fold" if frame is None else "frame"
            if frame is not None and frame[1] and in_library(frame[1]):
                kind = "library"
        elif open_error and line.startswith("    "):
            kind = "source"
        elif IS_HEADING.fullmatch(line):
            kind = "heading"
        elif open_error and line and not line[0].isspace():
            kind, open_error = "error", False
        blocks.append(block)
        kinds.append(kind)
    return blocks, kinds
