"""Exceptions in messages: their fingerprint, and the frames that are shown.

Problem: errors of one type from one place should be one group. Most are raised deep in a library,
where all errors of a kind are raised; the place to fix is in the application.

Idea: the place is the innermost frame of the application (see in_library()); if there is none,
that of its cause; without one, the innermost frame. `[IntegrityError at shop.py:12 in buy]` is
added to the pattern of the message. The text shows the application's frames with their lines, folds
those of libraries but for the one that raised, then has the error's text, the members of a group
and the cause, each in the same way:

      (starlette, anyio: 14 frames)
      shop/views.py:12 in buy
        orders.insert(order)
      (sqlalchemy: 9 frames, the last: sqlalchemy/engine/default.py:952 in do_execute)
    IntegrityError: (sqlite3.IntegrityError) UNIQUE constraint failed: orders.id
    caused by:
      (sqlalchemy: 2 frames, the last: sqlalchemy/engine/default.py:952 in do_execute)
    IntegrityError: UNIQUE constraint failed: orders.id

Paths begin at the folder that Python imports from. shorten_traceback() cuts such a text.

The only code of the application that runs is the error's `__str__`, which may raise: a message must
never cost more than itself.

Bound: MAX_ERRORS errors, MAX_MEMBERS of a group and MAX_FRAMES frames of each are shown, and
MAX_SEARCHED frames are searched. No error is shown twice, so causes may form a cycle. The text of
an error is never truncated in the middle, since an incomplete secret is only recognized at the end
of a text; once LONGEST characters are reached, no further error is shown.

Not done: notes. In a traceback that is text already, only the place is searched.

**Groups.** Exceptions are also stored as records of their own: see recording/logging/exceptions.py.
An Origin groups them by the type and that of the cause, the functions of the application that
the exception came through, the library's that raised it, each as module and qualified name, the
text of the application's innermost line, and the HTTP status that an error stands for. It has no
line numbers, paths or values, so a group stays the same when code moves within a file or is
deployed to another directory. What a program numbers while it runs is one: functions that are
compiled from text, classes that their module does not have, and all functions of a recursion.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from redmeter.analysis.text.texts import clean_text
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


@lru_cache(MAX_FILES)
def in_library(file: str) -> bool:
    """Return whether a source file belongs to a library, the standard library, or Redmeter.

    Args:
        file: as a code object or a traceback names it.
    """
    return _is_library(file.replace("\\", "/"))


@lru_cache(MAX_FILES)
def shown_path(file: str) -> str:
    """Return the path of a source file from the folder that Python imports it from."""
    return _from_root(file.replace("\\", "/"))


def _from_root(path: str) -> str:
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in path:
            return path.rpartition(folder)[2]
    try:
        roots = [Path(root or ".").absolute().as_posix() for root in (*sys.path, "")]
    except (OSError, TypeError):  # without a current folder, or with an odd sys.path
        roots = []
    roots = [f"{root.rstrip('/')}/" for root in roots if root != "/"]
    root = max((root for root in roots if path.startswith(root)), key=len, default="")
    return path[len(root) :]


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


#: Most frames that are shown, the innermost of the application; and packages of those between.
MAX_FRAMES, MAX_PACKAGES = 8, 4
#: Characters of a source line that are shown.
SOURCE_LIMIT = 120
#: Most frames of one error that are searched.
MAX_SEARCHED = 10_000
#: Most errors that are shown: the one that was raised, causes, members of groups; members of each.
MAX_ERRORS, MAX_MEMBERS = 8, 4
#: Longest part of a place, characters.
PART_LIMIT = 40

#: Characters of the type and of each function of an Origin.
NAME_LIMIT = 150

#: Attribute of an exception, or of its class, that names its group.
GROUP_ATTRIBUTE = "redmeter_group"
#: Characters of a line that are looked at.
_LONGEST_LINE = 200
#: Attributes of an error, or of its response, that may be an HTTP status.
_STATUS_NAMES = ("status_code", "status", "code")
_STATUSES = frozenset((*range(400, 430), 431, 451, *range(500, 512)))
#: The same in a text: `404 Client Error`, `HTTP 503`, `status=500`, `Error code: 404`.
_STATUS = late(r"\A([45]\d\d)(?=:|[ ][A-Z])|\b(?:HTTP|[Ss]tatus|[Cc]ode)\W{1,2}([45]\d\d)(?![\w.])")
#: Numbers in the names of generated code.
_NUMBER = late(r"(?<![a-z])(?=[a-f]*\d)[0-9a-f]{8,}|\d+")

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
        entries = list(_tracebacks(each))
        frames, at = _frame_lines(entries, _is_own, _file_of, _frame, _source_of)
        if not place:
            inner = entries[at] if at >= 0 else _own_entry(error) or next(reversed(entries), None)
            place = _place(kind, None if inner is None else _frame(inner))
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
    #: Module and qualified name of the function of `place`: `shop.pay.Order.charge`; "" if none.
    function: str
    #: The parts that all exceptions of its group share: see group_of().
    key: tuple[tuple[str, ...], ...]


def origin_of(error: BaseException) -> Origin:
    """Return where an exception comes from. Never raises."""
    chosen = _from_application(error)
    frames = list(_tracebacks(chosen))
    ours = [entry for entry in frames if _is_own(entry)]
    innermost = frames[-1] if frames else None
    place = ours[-1] if ours else innermost
    frame = None if place is None else _frame(place)
    kind = _cut(_kind(type(error)))
    text = _text_of(error)
    is_deep = isinstance(error, RecursionError)  # where it ended is a matter of chance
    at = () if place is None or is_deep or not ours else (_source_of(place),)
    raiser = () if innermost is place or innermost is None or is_deep else (_function(innermost),)
    names = {entry: _function(entry) for entry in _without_cycles(ours)[-MAX_FRAMES:]}
    function = "" if place is None else names.get(place) or _function(place)
    key = (
        (kind,),
        _members(error),
        tuple(names.values()) or (function,),
        (_cause_of(error),),
        raiser,
        at,
        (_status_of(error, text),),
    )
    chosen_group = _given_group(error)
    return Origin(
        kind,
        text,
        "" if frame is None else _location(frame),
        _place(type(error).__name__, frame),
        function,
        (("group",), (chosen_group,)) if chosen_group else key,
    )


def _without_cycles(entries: Sequence[TracebackType]) -> list[TracebackType]:
    """Return a frame of each function; of those that call each other, of the first one."""
    kept: list[TracebackType] = []
    at: dict[int, int] = {}  # identity of a function's code -> which of `kept` stands for it
    for entry in entries:
        code = id(entry.tb_frame.f_code)
        known = at.get(code)
        if known is None:
            at[code] = len(kept)
            kept.append(entry)
        elif known < len(kept) - 1:
            del kept[known + 1 :]
            at = {each: min(number, known) for each, number in at.items()}
    return kept


_lines_of_files: dict[tuple[str, int], str] = {}


def _source_of(entry: TracebackType) -> str:
    """Return the text of the line of a frame; "" if there is none.

    Lines are cached as Python's linecache does, which looks at a file only once; those of code
    that was compiled from text are not, as two such texts may have the same name.
    """
    file, number = entry.tb_frame.f_code.co_filename, entry.tb_lineno or 0
    known = _lines_of_files.get((file, number))
    if known is not None:
        return known
    import linecache

    line = linecache.getline(file, number, entry.tb_frame.f_globals).strip()
    line = line if len(line) <= SOURCE_LIMIT else clean_text(line, SOURCE_LIMIT)
    if line and file[:1] != "<" and len(_lines_of_files) < MAX_FILES:
        _lines_of_files[file, number] = line
    return line


def _cause_of(error: BaseException) -> str:
    cause = _attribute(error, "__cause__")
    return _cut(_kind(type(cause))) if isinstance(cause, BaseException) else ""


def _attribute(error: object, name: str) -> Any:
    """Return an attribute; None if there is none, or the class that computes it raises."""
    try:
        return getattr(error, name, None)
    except Exception:  # noqa: BLE001 - of a class that computes its attributes
        return None


def _status_of(error: BaseException, text: str) -> str:
    """Return the HTTP status that an error stands for, from its values or its text; "" if none.

    Only values of the instance are looked at, since a property may do anything.
    """
    values, found = _values(error), []
    if values:
        response = values.get("response")
        for each in (values,) if response is None else (values, _values(response)):
            found += [each.get(name) for name in _STATUS_NAMES]
    args = _attribute(error, "args")
    if type(args) is tuple and len(args) > 1 and type(args[1]) is str:
        found.append(args[0])
    if "4" in text or "5" in text:
        match = _STATUS.search(text[:_LONGEST_LINE])
        if match is not None:
            found.append(int(match[1] or match[2]))
    statuses = (int(each) for each in found if isinstance(each, int) and each in _STATUSES)
    return str(next(statuses, ""))


def _values(thing: object) -> dict[str, Any]:
    try:
        return vars(thing)
    except Exception:  # noqa: BLE001 - of a class that has none, or computes them
        return {}


def _given_group(error: BaseException) -> str:
    group = _attribute(error, GROUP_ATTRIBUTE)
    return _cut(group) if type(group) is str else ""


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


def _kind(kind: type) -> str:
    """Return module and qualified name of a class, without the numbers of one made at run time."""
    module, name = kind.__module__, kind.__qualname__
    if module == "builtins":
        return name
    known: Any = sys.modules.get(module)
    for part in name.split("."):
        known = _values(known).get(part)
    return f"{module}.{name if known is kind else _unnumbered(name)}"


def _unnumbered(name: str) -> str:
    return _NUMBER.sub("#", name)


def _members(error: BaseException) -> tuple[str, ...]:
    try:
        if isinstance(error, BaseExceptionGroup):
            return tuple(sorted({_cut(_kind(type(one))) for one in error.exceptions})[:MAX_FRAMES])
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
    name = f"{module}.{frame.f_code.co_qualname}"
    return _cut(_unnumbered(name) if frame.f_code.co_filename.startswith("<") else name)


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
            all_frames: list[_Frame] = [
                (str(f["filename"]), int(f["lineno"]), str(f["name"])) for f in error["frames"]
            ]
            frames, at = _frame_lines(all_frames, _is_own_file, _name_of, _itself, _nothing)
            heading = "" if not place else _CAUSE if error.get("is_cause") else _CONTEXT
            place = place or _place(kind, all_frames[at] if all_frames else None)
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
    frames = _FRAME.findall("\n".join(lines))[-MAX_SEARCHED:]
    of_application = [frame for frame in frames if _is_own_file(frame)]
    return _place(kind[1], (of_application or frames or [None])[-1])


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
#: A line before the lines of another error.
IS_HEADING = late(rf"{_CAUSE}|{_CONTEXT}|member \d+ of \d+:")


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


def _own_entry(error: BaseException) -> TracebackType | None:
    """Return the innermost frame of the application, of an error or of its cause."""
    frames = [one for one in _tracebacks(_from_application(error)) if _is_own(one)]
    return frames[-1] if frames else None


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
    if file[:1] != "<":
        return not in_library(file)
    file = frame.f_globals.get("__file__", file)  # compiled from text: its module decides
    return type(file) is not str or not in_library(file)


def _name_of(frame: _Frame) -> str:
    return frame[0]


def _itself(frame: _Frame) -> _Frame:
    return frame


def _nothing(_: _Frame) -> str:
    return ""


def _is_own_file(frame: _Frame) -> bool:
    return not in_library(frame[0])


def _file_of(traceback: TracebackType) -> str:
    return traceback.tb_frame.f_code.co_filename


def _frame(traceback: TracebackType) -> _Frame:
    code = traceback.tb_frame.f_code
    return code.co_filename, traceback.tb_lineno or 0, code.co_name


# Frames and their lines


def _frame_lines(
    frames: Sequence[F],
    is_own: Callable[[F], bool],
    file_of: Callable[[F], str],
    frame_of: Callable[[F], _Frame],
    source_of: Callable[[F], str],
) -> tuple[list[str], int]:
    """Return the lines of the frames of an error, the innermost last, and which is its place."""
    ours = [number for number, frame in enumerate(frames) if is_own(frame)][-MAX_FRAMES:]
    lines, at = list[str](), 0
    for number in (*ours, len(frames)):
        if at < number:
            lines.append(
                _folded(frames[at:number], number == len(frames), file_of, frame_of, is_own)
            )
        if number < len(frames):
            lines.append(f"  {_shown(frame_of(frames[number]))}")
            source = source_of(frames[number])
            if source:
                lines.append(f"    {source}")
        at = number + 1
    return lines, ours[-1] if ours else -1


def _folded(
    frames: Sequence[F],
    are_last: bool,
    file_of: Callable[[F], str],
    frame_of: Callable[[F], _Frame],
    is_own: Callable[[F], bool],
) -> str:
    if len(frames) == 1:
        return f"  ({_shown(frame_of(frames[0]))})"
    names = list(
        dict.fromkeys("application" if is_own(one) else _package(file_of(one)) for one in frames)
    )
    if len(names) > MAX_PACKAGES:
        names[MAX_PACKAGES:] = ["…"]
    last = f", the last: {_shown(frame_of(frames[-1]))}" if are_last else ""
    return f"  ({', '.join(names)}: {len(frames):,} frames{last})"


def _shown(frame: _Frame) -> str:
    file, line, name = frame
    return f"{shown_path(file)}:{line} in {name}"


def _package(file: str) -> str:
    return (
        shown_path(file).strip("<>").removeprefix("frozen ").partition("/")[0].removesuffix(".py")
    )


def _lines_of(heading: str, kind: str, text: str, frames: Sequence[str]) -> list[str]:
    """Return the lines of one error."""
    kind = _part(kind)
    head = [heading] if heading else []
    return [*head, *frames, f"{kind}: {text}" if text else kind]


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
