"""What the integrations of logging libraries share: a message goes into a meter, whatever it is.

Problem: a message is made by code that is not ours, an argument's __str__, a formatter, a filter.
It may raise, and it may log, which would bring it here again, and again.

Idea: a flag of the thread, task or greenlet at hand says that a message is being taken in. What is
logged meanwhile is left out, and so is what is logged while a meter stores: a client library that
logs its commands would keep its own log going for ever. Of a message that cannot be read, what is
left is taken in, with a note.

Bound: no lock, no I/O, no thread. A message costs its text and an append.

Not done: a signal handler that logs while a message is taken in is not told from an argument that
does. With Meter(sync=True) a message is stored at once, by whoever logs it.
"""

import time
from contextlib import suppress

from redmeter import Meter
from redmeter.errors import StoreError
from redmeter.format.message import logger_of, severity_of
from redmeter.integrations.hooks import meter_for
from redmeter.integrations.interface import Instrumentation, MessageSink
from redmeter.keys import MAX_TIME
from redmeter.recording.exceptions import SEVERITIES
from redmeter.recording.messages.fingerprint import Fingerprint
from redmeter.recording.recorder import is_storing

#: Set while a message is taken in.
busy = is_storing

#: Loggers and levels that are remembered.
SINKS = 1000

_OWN = "redmeter"


class Intake:
    """Takes messages in.

    Args:
        meter: where they go; None makes one as the environment says, for the first message.
    """

    def __init__(self, meter: Meter | None) -> None:
        self.meter = meter
        #: What takes the messages of a logger's name and a level; None of the library's own.
        self.sinks: dict[tuple[object, object], MessageSink | None] = {}
        self._in_vain = False

    def put(
        self, logger: object, level: object, pattern: Fingerprint, text: object, at: object
    ) -> None:
        """Take a message in. Never raises.

        Args:
            logger: its name.
            level: a level of logging, or its name.
            pattern: see Recorder.log().
            text: what it says.
            at: when it was, Unix seconds; now, where this is none.
        """
        sink = self._sink(logger, level)
        if sink is not None:
            if type(at) is not float or not -MAX_TIME < at < MAX_TIME:
                at = time.time()
            with suppress(StoreError):  # of a meter that stores at once, and counts what it loses
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
        own = logger == _OWN or logger.startswith(f"{_OWN}.")
        found = None if own else Instrumentation(meter).message_sink(name, severity_of(level))
        if len(self.sinks) < SINKS:
            self.sinks[key] = found
        return found

    def record_error(self, error: Exception) -> None:
        """Write down that a message could not be made into text."""
        if self.meter is not None:
            kind = type(error).__name__
            Instrumentation(self.meter).record_error("format", f"formatting a message: {kind}")

    def _made(self) -> Meter | None:
        if not self._in_vain:
            self.meter = meter_for(None, "messages are not counted")
            self._in_vain = self.meter is None
        return self.meter


def text_of(value: object) -> str:
    """Return str(value) as plain text, or a note where that raises."""
    try:
        return str.__str__(str(value))
    except Exception as error:  # noqa: BLE001 - of code that is not ours
        return f"({type(value).__name__} without a text: {type(error).__name__})"


def error_of(given: object) -> BaseException | None:
    """Return the error of what a record has as exc_info, in any of its forms."""
    if isinstance(given, tuple):
        given = next((part for part in given if isinstance(part, BaseException)), None)
    return given if isinstance(given, BaseException) else None
