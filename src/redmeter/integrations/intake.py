"""Shared by the integrations of logging libraries: records a message, however malformed.

Problem: foreign code makes a message: an argument's __str__, a formatter, a filter. It may raise,
and it may log, which would recurse.

Idea: a flag of the current thread, task or greenlet is set while a message is recorded. Messages
logged meanwhile are ignored, and so are those logged while a meter stores: a client library that
logs its commands would otherwise cause new commands forever. A message that cannot be formatted is
recorded as far as possible, with a note.

Bound: no lock, no I/O, no thread. A message costs its formatting and one append.

Not done: a message that a signal handler logs while another one is recorded is ignored too. With
Meter(sync=True) the thread that logs a message also stores it.
"""

import time
from contextlib import suppress

from redmeter import Meter
from redmeter.errors import StoreError
from redmeter.integrations.hooks import meter_for
from redmeter.integrations.interface import Instrumentation, MessageSink
from redmeter.recording.logging.coalesce import Fingerprint
from redmeter.recording.logging.exceptions import SEVERITIES
from redmeter.recording.recorder import is_storing
from redmeter.stored.keys import MAX_TIME
from redmeter.stored.message import logger_of, severity_of

#: Set while a message is recorded.
busy = is_storing

#: Pairs of logger and level whose sinks are cached.
SINKS = 1000

_OWN = "redmeter"


class Intake:
    """Records messages.

    Args:
        meter: records the messages. None: a Meter by the environment's settings, created for the
            first message.
    """

    def __init__(self, meter: Meter | None) -> None:
        self.meter = meter
        #: (name of the logger, level) -> its sink; None for Redmeter's own loggers.
        self.sinks: dict[tuple[object, object], MessageSink | None] = {}
        self._has_failed = False

    def put(
        self, logger: object, level: object, pattern: Fingerprint, text: object, at: object
    ) -> None:
        """Record a message. Never raises.

        Args:
            logger: its name.
            level: a level of logging, or its name.
            pattern: see Recorder.log().
            text: the formatted message.
            at: its time, Unix seconds; if that is invalid, now.
        """
        sink = self._sink(logger, level)
        if sink is not None:
            if type(at) is not float or not -MAX_TIME < at < MAX_TIME:
                at = time.time()
            with suppress(StoreError):  # with sync=True; the meter counts the drop
                sink.put_message(pattern, text if type(text) is str else text_of(text), at)

    def record_exception(
        self, logger: object, level: object, error: BaseException, traceback: str
    ) -> None:
        """Record the exception of a message that is an error. Never raises.

        Args:
            logger, level: see put().
            traceback: as describe_error() returned it.
        """
        name = severity_of(level if isinstance(level, int | str) else text_of(level))
        if name in SEVERITIES and self._sink(logger, level) is not None and self.meter is not None:
            with suppress(StoreError):  # see put()
                Instrumentation(self.meter).record_exception(error, "", traceback)

    def _sink(self, logger: object, level: object) -> MessageSink | None:
        if type(logger) is not str:
            logger = text_of(logger)
        if type(level) is not int:
            level = level if type(level) is str else text_of(level)
        key = logger, level
        if key in self.sinks:
            return self.sinks[key]
        meter = self.meter or self._made()
        if meter is None:
            return None
        name = logger_of(logger)
        is_own = logger == _OWN or logger.startswith(f"{_OWN}.")
        sink = None if is_own else Instrumentation(meter).message_sink(name, severity_of(level))
        if len(self.sinks) < SINKS:
            self.sinks[key] = sink
        return sink

    def record_error(self, error: Exception) -> None:
        """Count a message that could not be formatted."""
        if self.meter is not None:
            kind = type(error).__name__
            Instrumentation(self.meter).record_error("format", f"formatting a message: {kind}")

    def _made(self) -> Meter | None:
        if not self._has_failed:
            self.meter = meter_for(None, "messages are not counted")
            self._has_failed = self.meter is None
        return self.meter


def text_of(value: object) -> str:
    """Return str(value) as a plain `str`, or a note if that raises."""
    try:
        return str.__str__(str(value))
    except Exception as error:  # noqa: BLE001 - foreign code
        return f"({type(value).__name__} without a text: {type(error).__name__})"


def error_of(exc_info: object) -> BaseException | None:
    """Return the exception of a record's exc_info, which may be one or a tuple with one."""
    if isinstance(exc_info, tuple):
        exc_info = next((part for part in exc_info if isinstance(part, BaseException)), None)
    return exc_info if isinstance(exc_info, BaseException) else None
