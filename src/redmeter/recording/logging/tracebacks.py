"""Exceptions in messages: their fingerprint, and the frames that are shown.

Problem: errors of one type from one place should be one group. Most are raised deep in a library,
where all errors of a kind are raised; the place to fix is in the application.

Idea: the place is the innermost frame of the application (see in_library()); if there is none,
that of its cause; without one, the innermost frame. `[IntegrityError at shop.py:12 in buy]` is
added to the pattern of the message. The text shows the application's frames and the one that
raised, the error's text, then the members of a group and the cause, each in the same way:

    … (6 more)
      /srv/shop/views.py:12 in buy
    … (9 more)
      /srv/.venv/lib/python3.12/site-packages/sqlalchemy/engine/default.py:952 in do_execute
    IntegrityError: (sqlite3.IntegrityError) UNIQUE constraint failed: orders.id
    caused by:
    … (1 more)
      /srv/.venv/lib/python3.12/site-packages/sqlalchemy/engine/default.py:952 in do_execute
    IntegrityError: UNIQUE constraint failed: orders.id

No source is read, and the only code of the application that runs is the error's `__str__`, which
may raise: a message must never cost more than itself.

Bound: MAX_ERRORS errors, MAX_MEMBERS of a group and MAX_FRAMES frames of each are shown, and
MAX_SEARCHED frames are searched. No error is shown twice, so causes may form a cycle. The text of
an error is never truncated in the middle, since an incomplete secret is only recognized at the end
of a text; once LONGEST characters are reached, no further error is shown.

Not done: notes. In a traceback that is text already, only the place is searched.

**Groups.** Exceptions are also stored as records of their own: see recording/logging/exceptions.py.
An Origin is what groups them: the type, and the functions of the application that the exception
came through, each as module and qualified name. It has no line numbers, paths or values, so a group
stays the same when code moves within a file or is deployed to another directory.
"""

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from redmeter.lazy_regex import late
from redmeter.recording.logging.coalesce import LONGEST, Place

# --- Library code --------------------------------------------------------------------------------

# Which source files belong to a library, and which to the application.
#
# Problem: most errors are raised by a library, for a reason that is in the application. The frame
# `default.py:1192 in do_execute` is the same for every failed statement of a program.
#
# Idea: the path decides.
#
#     /srv/shop/.venv/lib/python3.12/site-packages/flask/app.py    library: site-packages
#     /usr/lib/python3/dist-packages/requests/api.py               library: dist-packages
#     /usr/lib/python3.12/json/decoder.py                          library: where `os` is
#     <frozen runpy>                                               library: the standard library
#     …/redmeter/integrations/wsgi.py                              library: Redmeter itself
#     /srv/shop/.venv/../views.py, /srv/shop.pyz/shop/views.py     application
#     <string>, <stdin>, <template>                                application
#
# A virtual environment within the project is therefore no problem, and neither is an editable
# install, which stays outside of site-packages.
#
# Bound: one dictionary lookup for a known file; MAX_FILES files are cached.
#
# Not done: an application that is itself installed into site-packages, and libraries that are
# copied next to the application (`pip install --target`, AWS Lambda), look like the other kind.


#: Files that are cached.
MAX_FILES = 4096

_known: dict[str, bool] = {}


def in_library(file: str) -> bool:
    """Return whether a source file belongs to a library, the standard library, or Redmeter.

    Args:
        file: as a code object or a traceback names it.
    """
    known = _known.get(file)
    if known is None:
        known = _is_library(file.replace("\\", "/"))
        if len(_known) < MAX_FILES:
            _known[file] = known
    return known


def _is_library(path: str) -> bool:
    return (
        not path
        or path.startswith(("<frozen ", *_FOLDERS))
        or "/site-packages/" in path
        or "/dist-packages/" in path
    )


def _folder(file: str | None) -> tuple[str, ...]:
    return (f"{Path(file).parent.as_posix()}/",) if file else ()


#: Where the standard library and Redmeter are. `os` has no file in a program that is frozen whole.
_FOLDERS = (
    *_folder(getattr(os, "__file__", None)),
    *_folder(str(Path(__file__).parents[1])),
)


#: Most frames that are shown, the innermost of the application; of libraries if it has none.
MAX_FRAMES = 8
#: Most frames of one error that are searched.
MAX_SEARCHED = 10_000
#: Most errors that are shown: the one that was raised, causes, members of groups; members of each.
MAX_ERRORS, MAX_MEMBERS = 8, 4
#: Longest part of a place, characters.
PART_LIMIT = 40

#: Characters of the type and of each function of an Origin.
NAME_LIMIT = 150

#: A frame, and the class of an error, in a traceback as Python writes it.
_FRAME = late(r'^ *File "([^"\n]*)", line (\d+), in (\S+)', re.MULTILINE)
_KIND = late(r"(?:[\w.]*\.)?(\w+)(?::|\Z)")
#: The first line of a traceback, and of that of a group, whose lines have a margin.
_HEADER, _GROUP_HEADER = "Traceback (most recent call last):", "  + Exception Group Traceback"
_MARGIN = "  | "

#: File, line and function.
_Frame = tuple[str, int | str, str]
F = TypeVar("F")


def describe_error(error: BaseException) -> tuple[str, str]:
    """Return the additions of an error to the pattern and to the text of a message. Never raises.

    Returns:
        A Place, `[ValueError at app.py:12 in handler]`, or `[ValueError]` if there is no
        traceback; and its frames, text, members and cause.
    """
    place, lines, size = "", list[str](), 0
    for heading, each in _related(error):
        if each is None or size > LONGEST:
            lines.append("…")
            break
        kind = type(each).__name__
        chosen, at = _chosen(_tracebacks(each), _is_own, 1 if place else MAX_FRAMES)
        frames = [(before, _frame(traceback)) for before, traceback in chosen]
        if not place:
            place = _place(kind, _own_frame(error) or (frames[at][1] if frames else None))
        block = _lines_of(heading, kind, _text_of(each), frames)
        lines += block
        size += sum(map(len, block))
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
    frame of the application, those of its cause count; and without one there, the function is the
    innermost one of a library.
    """
    frames: dict[Any, TracebackType] = {}
    innermost: TracebackType | None = None
    for innermost in _tracebacks(_from_application(error)):
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
        _text_of(error),
        "" if frame is None else _location(frame),
        _place(kind, frame),
        tuple([_function(one) for one in frames.values()][-MAX_FRAMES:]),
        _members(error),
    )


def raised_again(error: BaseException, head: int) -> bool:
    """Return whether the application raised an exception again after its traceback was seen.

    A `raise` extends the traceback of an instance that was raised before; an exception that is
    still propagating extends it too, by its callers, and library code re-raises exceptions of other
    tasks and threads. It was raised again if a `raise` statement of the application, which did not
    just handle it, is in the new part as well as in the part that was seen.

    Args:
        head: identity of the first entry of the traceback when it was seen.
    """
    from opcode import opmap

    statements: set[tuple[int, int]] = set()
    was_seen = False
    for entry in _tracebacks(error):
        was_seen = was_seen or id(entry) == head
        code, at, callee = entry.tb_frame.f_code, entry.tb_lasti, entry.tb_next
        if was_seen:
            if not statements or (id(code), at) in statements:
                return bool(statements)
        elif (
            code.co_code[at] == opmap["RAISE_VARARGS"]
            and (callee is None or callee.tb_frame is not entry.tb_frame or callee.tb_lasti == at)
            and _is_own(entry)
        ):
            statements.add((id(code), at))
    return False


def _qualified(kind: type) -> str:
    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def _members(error: BaseException) -> tuple[str, ...]:
    try:
        if isinstance(error, BaseExceptionGroup):
            return tuple(
                sorted({_cut(_qualified(type(one))) for one in error.exceptions})[:MAX_FRAMES]
            )
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
    """Return the same for an error that was parsed already, as by structlog's dict_tracebacks.

    Args:
        stacks: mappings, the first of the error that was raised, the others of its causes, with
            exc_type, exc_value, is_cause, and frames of filename, lineno and name.

    Returns:
        As describe_error(), without the members of groups; None if the form is unknown.
    """
    place, lines = "", list[str]()
    try:
        for error in islice(stacks, MAX_ERRORS):  # type: ignore[call-overload]
            kind, text = str(error["exc_type"]), str(error["exc_value"])
            all_frames = [
                (str(f["filename"]), int(f["lineno"]), str(f["name"])) for f in error["frames"]
            ]
            frames, at = _chosen(all_frames, _is_own_file, MAX_FRAMES)
            heading = "" if not place else _CAUSE if error.get("is_cause") else _CONTEXT
            place = place or _place(kind, frames[at][1] if frames else None)
            lines += _lines_of(heading, kind, text, frames)
    except (LookupError, TypeError, ValueError, AttributeError):
        return None
    return (place, "\n".join(lines)) if place else None


def place_of(traceback: str) -> str:
    """Return type and place of an error whose traceback is text; "" if there is none."""
    lines = _last_of(traceback.rstrip().splitlines())
    # Frames, and the source lines below them, are indented.
    last = next((line for line in lines if line and not line[0].isspace()), "")
    kind = _KIND.match(last)
    if kind is None:
        return ""
    frames, at = _chosen(_FRAME.findall("\n".join(lines)), _is_own_file, MAX_FRAMES)
    return _place(kind[1], frames[at][1] if frames else None)


def _last_of(lines: list[str]) -> list[str]:
    """Return the lines after the header of the last traceback: causes precede it."""
    for at in range(len(lines) - 1, -1, -1):
        if lines[at] == _HEADER:
            return lines[at + 1 :]
        if lines[at].startswith(_GROUP_HEADER):
            return [line.removeprefix(_MARGIN) for line in lines[at + 1 :]]
    return lines


# Errors and their causes

_CAUSE, _CONTEXT = "caused by:", "while handling:"


def _related(error: BaseException) -> Iterator[tuple[str, BaseException | None]]:
    """Yield an error, its members and causes, each with a heading; None if some are omitted."""
    seen: set[int] = set()
    waiting: list[tuple[str, BaseException | None]] = [("", error)]
    while waiting:
        heading, each = waiting.pop()
        if id(each) in seen:
            continue
        if each is None or len(seen) == MAX_ERRORS:
            yield heading, None
            return
        seen.add(id(each))
        yield heading, each
        waiting += reversed(_behind(each))


def _behind(error: BaseException) -> list[tuple[str, BaseException]]:
    """Return the members of a group, and the cause or context of an error."""
    errors: list[tuple[str, Any]] = []
    try:
        if isinstance(error, BaseExceptionGroup):
            members = error.exceptions
            of = len(members)
            errors += ((f"member {n} of {of}:", e) for n, e in enumerate(members[:MAX_MEMBERS], 1))
        if error.__cause__ is not None:
            errors.append((_CAUSE, error.__cause__))
        elif not error.__suppress_context__:
            errors.append((_CONTEXT, error.__context__))
    except Exception:  # noqa: BLE001, S110 - of a class that computes these attributes
        pass
    return [(heading, each) for heading, each in errors if isinstance(each, BaseException)]


def _from_application(error: BaseException) -> BaseException:
    """Return an error; or the first of its causes that came through the application, if it did not.

    Such as the RuntimeError that a framework raises because of an exception that came too late.
    """
    each: BaseException | None = error
    for _ in range(MAX_ERRORS):
        if each is None:
            break
        if any(map(_is_own, _tracebacks(each))):
            return each
        each = next((one for head, one in _behind(each) if head in (_CAUSE, _CONTEXT)), None)
    return error


def _own_frame(error: BaseException) -> _Frame | None:
    """Return the innermost frame of the application, of an error or of its cause."""
    frames = [one for one in _tracebacks(_from_application(error)) if _is_own(one)]
    return _frame(frames[-1]) if frames else None


def _text_of(error: BaseException) -> str:
    try:
        return str.__str__(str(error))
    except Exception:  # noqa: BLE001 - raised by an application's __str__
        return "(its text cannot be made)"


def _tracebacks(error: BaseException) -> Iterator[TracebackType]:
    traceback = error.__traceback__
    for _ in range(MAX_SEARCHED):
        if traceback is None:
            return
        yield traceback
        traceback = traceback.tb_next


def _is_own(traceback: TracebackType) -> bool:
    """Return whether a frame is the application's."""
    frame = traceback.tb_frame
    file = frame.f_code.co_filename
    if file.startswith("<"):  # compiled from text: its module decides
        file = frame.f_globals.get("__file__", file)
    return type(file) is not str or not in_library(file)


def _is_own_file(frame: _Frame) -> bool:
    return not in_library(frame[0])


def _frame(traceback: TracebackType) -> _Frame:
    code = traceback.tb_frame.f_code
    return code.co_filename, traceback.tb_lineno or 0, code.co_name


# Frames and their lines


def _chosen(
    frames: Iterable[F], is_own: Callable[[F], bool], others: int
) -> tuple[list[tuple[int, F]], int]:
    """Choose the frames to show: those of the application, and the one that raised.

    Args:
        frames: of one error, the innermost last.
        is_own: whether a frame is the application's.
        others: how many to show if there are none.

    Returns:
        The frames, each with the number omitted before it; and the index of the place.
    """
    ours: deque[tuple[int, F]] = deque(maxlen=MAX_FRAMES)
    last: deque[tuple[int, F]] = deque(maxlen=others)
    for numbered in enumerate(frames):
        last.append(numbered)
        if is_own(numbered[1]):
            ours.append(numbered)
    chosen = list(ours or last)
    place = len(chosen) - 1
    if ours and ours[-1][0] != last[-1][0]:
        chosen.append(last[-1])
    before = [-1, *(number for number, _ in chosen)]
    return [
        (n - previous - 1, frame) for (n, frame), previous in zip(chosen, before, strict=False)
    ], place


def _lines_of(
    heading: str, kind: str, text: str, frames: Sequence[tuple[int, _Frame]]
) -> list[str]:
    """Return the lines of one error."""
    lines = [heading] if heading else []
    for left_out, (file, line, name) in frames:
        if left_out:
            lines.append(f"… ({left_out} more)")
        lines.append(f"  {file}:{line} in {name}")
    kind = _part(kind)
    lines.append(f"{kind}: {text}" if text else kind)
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
