"""Counts the log messages of an application: a handler for `logging`, installed in one line.

    from redmeter.integrations.logging import install
    install()

Problem: a log contains every event, and nobody reads all of it. To show how often something happens
and since when, messages must be grouped by meaning instead of text.

Idea: `logger.info("retrying %s in %d ms", url, delay)` has a format, which is exact and free. It is
the pattern that is counted; with an exception, its type and place are added. A record without
arguments may be an f-string, so the variable parts of its text are masked, in the background. The
same happens to a format without words.

    logger.warning("retrying %s", url)      retrying %s
    logger.warning(f"retrying {url}")       retrying <url>
    logger.error("%s", "order 17 is lost")  order <n> is lost
    logger.exception("job %s failed", 7)    job %s failed [KeyError at jobs.py:12 in run]

The exception of a record of level ERROR or above is also recorded as an exception, once, however
often it is logged: see Meter.record_exception().

Unreadable records still count: if the arguments do not fit the format, the format is counted, with
a note instead of the text; if a filter raises, the record is counted without its text.

Bound: no lock and no I/O. logging puts a lock around each handler, because most handlers write.
This one appends to a list, which is one step, so it needs none: no slow thread, signal handler or
fork can find a lock taken. Arguments become text at once, since they may change later. Everything
else happens in the background, and most of it only for the messages that are kept.

Not done: nothing is set except the handler's level; levels and filters are yours. A QueueHandler
converts records to text, which loses the formats: add this handler to the logger itself, not behind
the queue.

Source: the documentation of logging, "LogRecord attributes", "Handler Objects".
"""

import logging
import threading

from redmeter import Meter
from redmeter.errors import StoreError
from redmeter.integrations.shared.interface import Intake, busy, error_of, text_of
from redmeter.integrations.shared.meters import meter_for, off_meter
from redmeter.recording.logging.coalesce import Fingerprint, Phrase, is_wordless, with_place
from redmeter.recording.logging.shortening import with_traceback
from redmeter.recording.logging.tracebacks import describe_error, place_of
from redmeter.stored.keys import MAX_TIME

_installing = threading.Lock()


class RedmeterHandler(logging.Handler):
    """Counts log records by their patterns, and keeps the newest.

    It never waits, never raises and never logs. It ignores Redmeter's own log records, and all that
    are logged while it handles a record or a meter stores. Level and filters are yours to set. A
    formatter changes the stored texts, not the patterns.

    Args:
        meter: records the messages. None: a Meter by the environment's settings, created for the
            first record, so that logging.config can create the handler.
        level: records below it are ignored.
    """

    def __init__(self, meter: Meter | None = None, level: int | str = logging.NOTSET) -> None:
        super().__init__(level)
        self._intake = Intake(meter)
        self._sinks = self._intake.sinks

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.meter!r} ({logging.getLevelName(self.level)})>"

    @property
    def meter(self) -> Meter | None:
        """The meter that records the messages; None if it is not created yet."""
        return self._intake.meter

    def createLock(self) -> None:
        """Create no lock: appending to a list needs none."""
        self.lock = None

    def handle(self, record: logging.LogRecord) -> bool:
        """Count a record that passes the filters; return whether it was taken."""
        if busy.get():
            return False
        try:
            busy.set(True)  # inside, so that an exception of a signal handler resets it
            filtered = self._filtered(record) if self.filters else record
            if filtered is None:
                return False
            self._take(filtered)
            return True
        finally:
            busy.set(False)

    def emit(self, record: logging.LogRecord) -> None:
        """Count a record, regardless of filters."""
        if not busy.get():
            try:
                busy.set(True)
                self._take(record)
            finally:
                busy.set(False)

    def handleError(self, record: logging.LogRecord) -> None:
        """Do nothing: an unreadable record is counted, with a note."""

    def _filtered(self, record: logging.LogRecord) -> logging.LogRecord | None:
        """Return the record, or a filter's replacement; None if a filter rejects it."""
        try:
            result: object = self.filter(record)
        except Exception as error:  # noqa: BLE001 - a foreign filter
            # It may be there to protect secrets, so the text is not recorded.
            self._intake.record_error(error)
            self._note(record, f"(left out: a filter raised {type(error).__name__})")
            return None
        if isinstance(result, logging.LogRecord):  # since Python 3.12
            return result
        return record if result else None

    def _take(self, record: logging.LogRecord) -> None:
        try:
            msg, args = record.msg, record.args
            plain = type(record) is logging.LogRecord and type(msg) is str
            if plain and self.formatter is None:  # the fast path for most records
                pattern: Fingerprint = msg if args else None
                text = msg % args if args else msg
            else:
                pattern, text = self._read(record)
            if record.exc_info or record.exc_text or record.stack_info:
                pattern, text = self._traced(record, pattern, text)
            sink = self._sinks.get((record.name, record.levelno))
            if sink is not None and -MAX_TIME < record.created < MAX_TIME:
                sink.put_message(pattern, text, record.created)
            else:
                self._intake.put(record.name, record.levelno, pattern, text, record.created)
        except StoreError:  # with sync=True; the meter counts the drop
            pass
        except Exception as error:  # noqa: BLE001 - an argument's, or the object is not a record
            self._intake.record_error(error)
            text = text_of(getattr(record, "msg", record))
            self._note(record, text, f" (not formatted: {type(error).__name__})")

    def _read(self, record: logging.LogRecord) -> tuple[Fingerprint, str]:
        pattern = record.msg if record.args and type(record.msg) is str else None
        if pattern is not None and is_wordless(pattern):
            pattern = None
        message = text_of(record.getMessage())
        if self.formatter is None:
            return pattern, message
        try:
            text = text_of(self.format(record))
        except Exception as error:  # noqa: BLE001 - a foreign formatter
            self._intake.record_error(error)
            return pattern, f"{message} (not formatted: {type(error).__name__})"
        # The formatter's additions, such as the time, are not part of the pattern.
        return pattern or Phrase(message), text

    def _traced(
        self, record: logging.LogRecord, pattern: Fingerprint, text: str
    ) -> tuple[Fingerprint, str]:
        """Add an error and a stack: its place to the pattern, the traceback to the text."""
        error = error_of(record.exc_info)
        if error is not None:
            place, frames = describe_error(error)
            self._intake.record_exception(record.name, record.levelno, error, frames)
        else:
            frames = record.exc_text if isinstance(record.exc_text, str) else ""
            place = place_of(frames)
        if place:
            pattern = with_place(pattern, place)
        if self.formatter:  # its text includes the traceback
            return pattern, text
        stack = record.stack_info if isinstance(record.stack_info, str) else ""
        return pattern, "\n".join(filter(None, (with_traceback(text, frames), stack)))

    def _note(self, record: logging.LogRecord, text: str, note: str = "") -> None:
        """Count a record that cannot be read, as far as possible."""
        name, level = getattr(record, "name", ""), getattr(record, "levelno", logging.ERROR)
        pattern = Phrase(text) if is_wordless(text) else text
        self._intake.put(name, level, pattern, text + note, getattr(record, "created", None))


def install(
    meter: Meter | None = None,
    *,
    level: int | str | None = None,
    logger: logging.Logger | str | None = None,
) -> RedmeterHandler:
    """Count log messages from now on.

    Adds a handler and changes nothing else: records below a logger's own level do not reach it.
    Called again for the same meter, it returns the existing handler, and sets its level if one is
    given.

    Args:
        meter: records the messages. None: a Meter by the environment's settings.
        level: records below it are not counted. None: INFO.
        logger: the logger whose records are counted, with those below it. None: all.
    """
    if meter is None:
        meter = meter_for(None, "messages are not counted") or off_meter()
    target = logger if isinstance(logger, logging.Logger) else logging.getLogger(logger)
    with _installing:
        for handler in target.handlers:
            if isinstance(handler, RedmeterHandler) and handler.meter is meter:
                if level is not None:
                    handler.setLevel(level)
                return handler
        handler = RedmeterHandler(meter, logging.INFO if level is None else level)
        target.addHandler(handler)
        return handler
