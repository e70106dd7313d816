"""Exceptions in messages: what groups them, and what of them is shown.

Two errors are one thing that happens often where they are of one type and come from one place, so
both are added to the pattern of the message: `[ValueError at app.py:12 in handler]`. The text tells
the last frames and what the error says. No source is read, and no code of the application runs but
the error's `__str__`, which may raise: a message must never cost more than itself.

Not done: causes and contexts, notes, the members of groups.
"""

import re
from types import TracebackType

from redmeter.expressions import late
from redmeter.recording.grouping import Place

#: Frames that are shown, the innermost ones.
FRAMES = 8
#: Characters of one part of a place.
PART_LIMIT = 40

#: A frame, and the class of an error, in a traceback as Python writes it.
_FRAME = late(r'^ *File "([^"\n]*)", line (\d+), in (\S+)', re.MULTILINE)
_KIND = late(r"(?:[\w.]*\.)?(\w+)(?::|\Z)")


def described(error: BaseException) -> tuple[str, str]:
    """Return what an error adds to a message: to its pattern, and to its text. Never raises.

    Returns:
        A Place, `[ValueError at app.py:12 in handler]`, the innermost frame, or `[ValueError]`
        where there is no traceback; and the last frames, then what the error says.
    """
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - whatever an application's __str__ raises
        said = "(its text cannot be made)"
    return _described(type(error).__name__, said, _frames(error.__traceback__))


def described_by(stacks: object) -> tuple[str, str] | None:
    """Return what an error adds to a message that was taken apart, as by dict_tracebacks.

    Args:
        stacks: mappings, the first of the error that was raised, with exc_type, exc_value, and
            frames of filename, lineno and name.

    Returns:
        As described(); None where it is of another form.
    """
    try:
        error = stacks[0]  # type: ignore[index]
        frames = [(str(f["filename"]), int(f["lineno"]), str(f["name"])) for f in error["frames"]]
        return _described(str(error["exc_type"]), str(error["exc_value"]), frames)
    except (LookupError, TypeError, ValueError):
        return None


def _described(kind: str, said: str, frames: list[tuple[str, int, str]]) -> tuple[str, str]:
    kind = _part(kind)
    lines = [f"… ({len(frames) - FRAMES} more)"] if len(frames) > FRAMES else []
    lines += [f"  {file}:{line} in {name}" for file, line, name in frames[-FRAMES:]]
    lines.append(f"{kind}: {said}" if said else kind)
    if not frames:
        return Place(f"[{kind}]"), "\n".join(lines)
    return _place(kind, *frames[-1]), "\n".join(lines)


def place_of(traceback: str) -> str:
    """Return type and place of an error whose traceback is text; "" where none can be found."""
    lines = traceback.strip().splitlines()
    kind = _KIND.match(lines[-1]) if lines else None
    if kind is None:
        return ""
    places = _FRAME.findall(traceback)
    return _place(_part(kind[1]), *places[-1]) if places else Place(f"[{_part(kind[1])}]")


def _frames(traceback: TracebackType | None) -> list[tuple[str, int, str]]:
    frames = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.append((code.co_filename, traceback.tb_lineno or 0, code.co_name))
        traceback = traceback.tb_next
    return frames


def _place(kind: str, file: str, line: int | str, name: str) -> Place:
    short = _part(file.replace("\\", "/").rpartition("/")[2])
    return Place(f"[{kind} at {short}:{line} in {_part(name)}]")


def _part(text: str) -> str:
    return text if len(text) <= PART_LIMIT else f"{text[: PART_LIMIT - 1]}…"
