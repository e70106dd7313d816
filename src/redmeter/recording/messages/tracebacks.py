"""Exceptions in messages: what groups them, and what of them is shown.

Problem: two errors are one thing that happens often where they are of one type and come from one
place. Most are raised deep in a library, where all errors of a kind are raised; the place that
somebody can mend is in the application.

Idea: the place is the innermost frame of the application (see library_code.py), or where there is
none, the innermost frame. `[IntegrityError at shop.py:12 in buy]` is added to the pattern of the
message. The text shows the application's frames and the one that raised, what the error says, then
the members of a group and the cause, each in the same way:

    … (6 more)
      /srv/shop/views.py:12 in buy
    … (9 more)
      /srv/.venv/lib/python3.12/site-packages/sqlalchemy/engine/default.py:952 in do_execute
    IntegrityError: (sqlite3.IntegrityError) UNIQUE constraint failed: orders.id
    caused by:
    … (1 more)
      /srv/.venv/lib/python3.12/site-packages/sqlalchemy/engine/default.py:952 in do_execute
    IntegrityError: UNIQUE constraint failed: orders.id

No source is read, and no code of the application runs but the error's `__str__`, which may raise: a
message must never cost more than itself.

Bound: ERRORS errors, MEMBERS of a group and FRAMES frames of each are shown, and DEEPEST frames are
looked at. No error is shown twice, so causes may form a circle. What an error says is never cut in
the middle of a text, since an incomplete secret is only recognized at the end of one; once LONGEST
characters are reached, no further error is shown.

Not done: notes. In a traceback that is text already, only the place is looked for.

**Groups.** Exceptions are also stored as records of their own: see recording/exceptions.py. An
Origin is what groups them: the type, and the functions of the application that the exception came
through, each as module and qualified name. It has no line numbers, paths or values, so a group
stays the same when code moves within a file or is deployed to another directory.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from redmeter.expressions import late
from redmeter.recording.messages.coalesce import LONGEST
from redmeter.recording.messages.fingerprint import Place
from redmeter.recording.messages.library_code import in_library

#: Frames of the application that are shown, the innermost ones; of the libraries, where there is
#: none of the application.
FRAMES = 8
#: Frames of one error that are looked at.
DEEPEST = 10_000
#: Errors that are shown: the one that was raised, causes, members of groups. And members of each.
ERRORS, MEMBERS = 8, 4
#: Characters of one part of a place.
PART_LIMIT = 40

#: Characters of the type and of each function of an Origin.
NAME_LIMIT = 150

#: A frame, and the class of an error, in a traceback as Python writes it.
_FRAME = late(r'^ *File "([^"\n]*)", line (\d+), in (\S+)', re.MULTILINE)
_KIND = late(r"(?:[\w.]*\.)?(\w+)(?::|\Z)")
#: What begins a traceback, and that of a group, whose lines have a margin.
_HEADER, _GROUP_HEADER = "Traceback (most recent call last):", "  + Exception Group Traceback"
_MARGIN = "  | "

#: File, line and function.
_Frame = tuple[str, int | str, str]
F = TypeVar("F")


def describe_error(error: BaseException) -> tuple[str, str]:
    """Return what an error adds to a message: to its pattern, and to its text. Never raises.

    Returns:
        A Place, `[ValueError at app.py:12 in handler]`, or `[ValueError]` where there is no
        traceback; and frames, what the error says, its members and its cause.
    """
    place, lines, size = "", list[str](), 0
    for heading, each in _related(error):
        if each is None or size > LONGEST:
            lines.append("…")
            break
        kind = type(each).__name__
        found = _chosen(_tracebacks(each), _is_own, 1 if place else FRAMES)
        frames = [(before, _frame(traceback)) for before, traceback in found[0]]
        place = place or _place(kind, frames[found[1]][1] if frames else None)
        told = _told(heading, kind, _said(each), frames)
        lines += told
        size += sum(map(len, told))
    return place, "\n".join(lines)


class Origin(NamedTuple):
    """Where an exception comes from: what groups exceptions, and what a list shows of one."""

    #: Module and qualified name: `shop.errors.PaymentFailed`; `KeyError` of a built-in type.
    kind: str
    #: Its text.
    message: str
    #: The innermost frame of the application: `pay.py:42 in charge`; "" without a traceback.
    place: str
    #: The same as log messages have it: `[PaymentFailed at pay.py:42 in charge]`.
    log_place: str
    #: Functions of the application, the innermost last: `shop.pay.Order.charge`.
    functions: tuple[str, ...]
    #: The types of the members of an exception group.
    members: tuple[str, ...]


def origin_of(error: BaseException) -> Origin:
    """Return where an exception comes from. Never raises.

    A function that calls itself, directly or not, is named once, however deep it was. Without a
    frame of the application, the function is the innermost one of a library.
    """
    frames: dict[Any, TracebackType] = {}
    innermost: TracebackType | None = None
    for innermost in _tracebacks(error):
        if _is_own(innermost):
            code = innermost.tb_frame.f_code
            frames.pop(code, None)
            frames[code] = innermost
    if not frames and innermost is not None:
        frames[None] = innermost
    place = next(reversed(frames.values())) if frames else None
    frame = None if place is None else _frame(place)
    kind = type(error).__name__
    return Origin(
        _cut(_qualified(type(error))),
        _said(error),
        "" if frame is None else _location(frame),
        _place(kind, frame),
        tuple([_function(one) for one in frames.values()][-FRAMES:]),
        _members(error),
    )


def _qualified(kind: type) -> str:
    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def _members(error: BaseException) -> tuple[str, ...]:
    try:
        if isinstance(error, BaseExceptionGroup):
            return tuple(sorted({_cut(_qualified(type(one))) for one in error.exceptions})[:FRAMES])
    except Exception:  # noqa: BLE001, S110 - of a class that computes its attributes
        pass
    return ()


def _function(traceback: TracebackType) -> str:
    """Return module and qualified name of a frame's function."""
    frame = traceback.tb_frame
    module = frame.f_globals.get("__name__")
    if type(module) is not str or module == "__main__":
        file = frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
        module = file.removesuffix(".py")
    return _cut(f"{module}.{frame.f_code.co_qualname}")


def _cut(name: str) -> str:
    return name if len(name) <= NAME_LIMIT else f"{name[: NAME_LIMIT - 1]}…"


def describe_parsed_error(stacks: object) -> tuple[str, str] | None:
    """Return what an error adds to a message that was taken apart, as by dict_tracebacks.

    Args:
        stacks: mappings, the first of the error that was raised, the others of its causes, with
            exc_type, exc_value, is_cause, and frames of filename, lineno and name.

    Returns:
        As described(), without the members of groups; None where it is of another form.
    """
    place, lines = "", list[str]()
    try:
        for error in islice(stacks, ERRORS):  # type: ignore[call-overload]
            kind, said = str(error["exc_type"]), str(error["exc_value"])
            given = [
                (str(f["filename"]), int(f["lineno"]), str(f["name"])) for f in error["frames"]
            ]
            frames, at = _chosen(given, lambda frame: not in_library(frame[0]), FRAMES)
            heading = "" if not place else _CAUSE if error.get("is_cause") else _CONTEXT
            place = place or _place(kind, frames[at][1] if frames else None)
            lines += _told(heading, kind, said, frames)
    except (LookupError, TypeError, ValueError, AttributeError):
        return None
    return (place, "\n".join(lines)) if place else None


def place_of(traceback: str) -> str:
    """Return type and place of an error whose traceback is text; "" where none can be found."""
    lines = _last_of(traceback.rstrip().splitlines())
    # The frames, and the source that may be shown below each, are indented.
    said = next((line for line in lines if line and not line[0].isspace()), "")
    kind = _KIND.match(said)
    if kind is None:
        return ""
    frames, at = _chosen(_FRAME.findall("\n".join(lines)), _is_own_file, FRAMES)
    return _place(kind[1], frames[at][1] if frames else None)


def _last_of(lines: list[str]) -> list[str]:
    """Return what follows the header of the last traceback: causes are written before it."""
    for at in range(len(lines) - 1, -1, -1):
        if lines[at] == _HEADER:
            return lines[at + 1 :]
        if lines[at].startswith(_GROUP_HEADER):
            return [line.removeprefix(_MARGIN) for line in lines[at + 1 :]]
    return lines


# Errors, and those behind them

_CAUSE, _CONTEXT = "caused by:", "while handling:"


def _related(error: BaseException) -> Iterator[tuple[str, BaseException | None]]:
    """Yield an error and those behind it, each with a heading; None where some are left out."""
    seen: set[int] = set()
    waiting: list[tuple[str, BaseException | None]] = [("", error)]
    while waiting:
        heading, each = waiting.pop()
        if id(each) in seen:
            continue
        if each is None or len(seen) == ERRORS:
            yield heading, None
            return
        seen.add(id(each))
        yield heading, each
        waiting += reversed(_behind(each))


def _behind(error: BaseException) -> list[tuple[str, BaseException]]:
    """Return the members of a group, and what an error was raised from, or while handling."""
    found: list[tuple[str, Any]] = []
    try:
        if isinstance(error, BaseExceptionGroup):
            members = error.exceptions
            of = len(members)
            found += ((f"member {n} of {of}:", e) for n, e in enumerate(members[:MEMBERS], 1))
        if error.__cause__ is not None:
            found.append((_CAUSE, error.__cause__))
        elif not error.__suppress_context__:
            found.append((_CONTEXT, error.__context__))
    except Exception:  # noqa: BLE001, S110 - of a class that computes these attributes
        pass
    return [(heading, each) for heading, each in found if isinstance(each, BaseException)]


def _said(error: BaseException) -> str:
    try:
        return str.__str__(str(error))
    except Exception:  # noqa: BLE001 - whatever an application's __str__ raises
        return "(its text cannot be made)"


def _tracebacks(error: BaseException) -> Iterator[TracebackType]:
    traceback = error.__traceback__
    for _ in range(DEEPEST):
        if traceback is None:
            return
        yield traceback
        traceback = traceback.tb_next


def _is_own(traceback: TracebackType) -> bool:
    """Return whether a frame is one of the application."""
    frame = traceback.tb_frame
    file = frame.f_code.co_filename
    if file.startswith("<"):  # made from text, which is as good as a part of the module
        file = frame.f_globals.get("__file__", file)
    return type(file) is not str or not in_library(file)


def _is_own_file(frame: _Frame) -> bool:
    return not in_library(frame[0])


def _frame(traceback: TracebackType) -> _Frame:
    code = traceback.tb_frame.f_code
    return code.co_filename, traceback.tb_lineno or 0, code.co_name


# Frames, and what is told of them


def _chosen(
    frames: Iterable[F], is_own: Callable[[F], bool], others: int
) -> tuple[list[tuple[int, F]], int]:
    """Choose the frames that are shown: those of the application, and the one that raised.

    Args:
        frames: of one error, the innermost last.
        is_own: whether a frame is one of the application.
        others: how many to show where none is.

    Returns:
        The frames, each with how many were left out before it; and the index of the place.
    """
    own: deque[tuple[int, F]] = deque(maxlen=FRAMES)
    last: deque[tuple[int, F]] = deque(maxlen=others)
    for numbered in enumerate(frames):
        last.append(numbered)
        if is_own(numbered[1]):
            own.append(numbered)
    chosen = list(own or last)
    place = len(chosen) - 1
    if own and own[-1][0] != last[-1][0]:
        chosen.append(last[-1])
    before = [-1, *(number for number, _ in chosen)]
    return [
        (n - previous - 1, frame) for (n, frame), previous in zip(chosen, before, strict=False)
    ], place


def _told(heading: str, kind: str, said: str, frames: Sequence[tuple[int, _Frame]]) -> list[str]:
    """Return the lines of one error."""
    lines = [heading] if heading else []
    for left_out, (file, line, name) in frames:
        if left_out:
            lines.append(f"… ({left_out} more)")
        lines.append(f"  {file}:{line} in {name}")
    kind = _part(kind)
    lines.append(f"{kind}: {said}" if said else kind)
    return lines


def _place(kind: str, frame: _Frame | None) -> Place:
    if frame is None:
        return Place(f"[{_part(kind)}]")
    return Place(f"[{_part(kind)} at {_location(frame)}]")


def _location(frame: _Frame) -> str:
    file, line, name = frame
    short = _part(file.replace("\\", "/").rpartition("/")[2])
    return f"{short}:{line} in {_part(name)}"


def _part(text: str) -> str:
    return text if len(text) <= PART_LIMIT else f"{text[: PART_LIMIT - 1]}…"
