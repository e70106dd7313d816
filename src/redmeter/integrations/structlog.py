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
from redmeter.integrations.intake import Intake, busy, error_of, text_of
from redmeter.recording.messages.coalesce import LONGEST
from redmeter.recording.messages.fingerprint import Fingerprint, Phrase, is_wordless, with_place
from redmeter.recording.messages.instrument import format_message
from redmeter.recording.messages.tracebacks import describe_error, describe_parsed_error, place_of

#: What is written without quotes: whoever masks secrets has to see where a value ends.
_is_bare = re.compile(r"[\w./:@+-]+").fullmatch
#: Names of methods whose level is called otherwise.
_LEVELS = {"exception": "error", "msg": "info", "log": "info"}
#: What of an event is said elsewhere than in its text.
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
        level: events below it are left out; a level of logging.
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
                busy.set(True)  # within, so that an exception out of a signal handler resets it
                self._take(logger, method_name, event_dict)
            finally:
                busy.set(False)
        return event_dict

    def _take(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> None:
        try:
            level = event.get("level") or _LEVELS.get(method, method)
            if self._level and _number(level) < self._level:
                return
            said, words = _said(event)
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
            parts = (text, frames, stack if isinstance(stack, str) else "")
            pattern: Fingerprint = with_place(said, place) if place else said
            self._intake.put(name, level, pattern, "\n".join(filter(None, parts)), time.time())
        except Exception as problem:  # noqa: BLE001 - of a value, or what is given is no event
            self._intake.record_error(problem)
            note = f"(not read: {type(problem).__name__})"
            self._intake.put("structlog", "unknown", note, note, None)


def _said(event: Mapping[str, Any]) -> tuple[str, str]:
    """Return what groups an event, and what it says."""
    given, args = event.get("event", ""), event.get("positional_args")
    if isinstance(given, str) and isinstance(args, tuple):
        pattern, text, problem = format_message(given, args)
        # Arguments that have no place may be in the text already: structlog leaves them on demand.
        if pattern not in (None, text) and not problem:
            return Phrase(text) if is_wordless(pattern) else pattern, text
    text = text_of(given)
    return Phrase(text), text


def _rendered(exception: object) -> tuple[str, str]:
    """Return what an error adds that a processor before has rendered: see described()."""
    if exception is None or isinstance(exception, str):
        told = exception or ""
        return place_of(told), told
    return describe_parsed_error(exception) or ("", repr(exception))


def _pairs(event: Mapping[str, Any]) -> str:
    """Return ` key=value …` of what an event has beside itself, as far as it may be kept."""
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
            except Exception as error:  # noqa: BLE001 - of code that is not ours
                text = f"({type(value).__name__} without a text: {type(error).__name__})"
        made.append(f" {text_of(key)}={text}")
        size += len(made[-1])
        if size > LONGEST:
            break
    return "".join(made)


def _current(given: object) -> BaseException | None:
    """Return the error that is being handled, where exc_info=True asks for it."""
    return sys.exc_info()[1] if given is True else None


def _number(level: object) -> int:
    """Return the number of a level; what has none is never left out."""
    found = logging.getLevelName(level.upper()) if isinstance(level, str) else level
    return found if isinstance(found, int) else sys.maxsize
