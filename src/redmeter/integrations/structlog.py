"""Counts the log events of structlog: a processor, placed before the renderer.

    structlog.configure(processors=[
        structlog.processors.add_log_level,
        RedmeterProcessor(meter),
        structlog.dev.ConsoleRenderer(),
    ])

Idea: structlog keeps variable values out of the event, `log.info("job failed", job=7)`. The event
is usually a constant, and is its own pattern. If an event contains values, as with f-strings, its
variable parts are masked, in the background.

    log.warning("retrying", url=url)        retrying
    log.warning(f"retrying {url}")          retrying <url>
    log.exception("job failed", job=7)      job failed [KeyError at jobs.py:12 in run]
    log.info("job %d failed", 7)            job %d failed

The last one has a format, as in logging, until PositionalArgumentsFormatter inserts the arguments.
After it, the variable parts are masked.

Bound: no lock and no I/O; values become text at once, as far as they can be kept.

Not done: if structlog passes its events to logging, count them in one place only.
"""

import logging
import re
import sys
import time
from collections.abc import Mapping, MutableMapping
from typing import Any

from redmeter import Meter
from redmeter.integrations.shared.interface import Intake, busy, error_of, text_of
from redmeter.recording.logging.coalesce import (
    LONGEST,
    Fingerprint,
    Phrase,
    is_wordless,
    with_place,
)
from redmeter.recording.logging.messages import format_message
from redmeter.recording.logging.shortening import with_traceback
from redmeter.recording.logging.tracebacks import describe_error, describe_parsed_error, place_of

#: Values that need no quotes. Quotes show where a value ends, for masking secrets.
_is_bare = re.compile(r"[\w./:@+-]+").fullmatch
#: Methods whose names differ from their levels.
_LEVELS = {"exception": "error", "msg": "info", "log": "info"}
#: Keys of an event that do not become part of its text as `key=value`.
_APART = frozenset(
    {
        *("event", "level", "level_number", "logger", "timestamp", "exc_info", "exception"),
        *("stack_info", "stack", "positional_args", "_record", "_from_structlog"),
    }
)


class RedmeterProcessor:
    """Counts events, and keeps the newest. Returns events unchanged, and never raises.

    Args:
        meter: records the messages. None: a Meter by the environment's settings, created for the
            first event.
        level: events below it are ignored; a level of `logging`.
    """

    def __init__(self, meter: Meter | None = None, *, level: int = logging.NOTSET) -> None:
        self._intake = Intake(meter)
        self._level = level

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._intake.meter!r}>"

    def __call__(
        self, logger: Any, method_name: str, event_dict: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Count an event."""
        if not busy.get():
            try:
                busy.set(True)  # inside, so that an exception of a signal handler resets it
                self._take(logger, method_name, event_dict)
            finally:
                busy.set(False)
        return event_dict

    def _take(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> None:
        try:
            level = event.get("level") or _LEVELS.get(method, method)
            if self._level and _number(level) < self._level:
                return
            fingerprint, words = _message_of(event)
            text = f"{words}{_pairs(event)}"
            error = error_of(event.get("exc_info")) or _current(event.get("exc_info"))
            place, frames = (
                _rendered(event.get("exception")) if error is None else describe_error(error)
            )
            name = event.get("logger") or getattr(logger, "name", None)
            name = name if isinstance(name, str) else "structlog"
            if error is not None:
                self._intake.record_exception(name, level, error, frames)
            stack = event.get("stack")
            parts = (with_traceback(text, frames), stack if isinstance(stack, str) else "")
            pattern: Fingerprint = with_place(fingerprint, place) if place else fingerprint
            self._intake.put(name, level, pattern, "\n".join(filter(None, parts)), time.time())
        except Exception as problem:  # noqa: BLE001 - a value's, or the object is not an event
            self._intake.record_error(problem)
            note = f"(not read: {type(problem).__name__})"
            self._intake.put("structlog", "unknown", note, note, None)


def _message_of(event: Mapping[str, Any]) -> tuple[str, str]:
    message, args = event.get("event", ""), event.get("positional_args")
    if isinstance(message, str) and isinstance(args, tuple):
        pattern, text, problem = format_message(message, args)
        # PositionalArgumentsFormatter may have inserted arguments and kept them.
        if pattern not in (None, text) and not problem:
            return Phrase(text) if is_wordless(pattern) else pattern, text
    text = text_of(message)
    return Phrase(text), text


def _rendered(exception: object) -> tuple[str, str]:
    """Return the place and the traceback of an exception that an earlier processor rendered."""
    if exception is None or isinstance(exception, str):
        text = exception or ""
        return place_of(text), text
    return describe_parsed_error(exception) or ("", repr(exception))


def _pairs(event: Mapping[str, Any]) -> str:
    """Return ` key=value …` of an event's other values, up to the length that is stored."""
    made, size = [], 0
    for key, value in event.items():
        if key in _APART:
            continue
        if isinstance(value, str):
            text = str.__str__(value)
            text = text if _is_bare(text) else repr(text)
        else:
            try:
                text = repr(value)
            except Exception as error:  # noqa: BLE001 - foreign code
                text = f"({type(value).__name__} without a text: {type(error).__name__})"
        made.append(f" {text_of(key)}={text}")
        size += len(made[-1])
        if size > LONGEST:
            break
    return "".join(made)


def _current(exc_info: object) -> BaseException | None:
    """Return the exception that is being handled, if exc_info is True."""
    return sys.exc_info()[1] if exc_info is True else None


def _number(level: object) -> int:
    """Return the number of a level; an unknown one is above all others."""
    number = logging.getLevelName(level.upper()) if isinstance(level, str) else level
    return number if isinstance(number, int) else sys.maxsize
