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
fork can find a lock taken. Arguments become text at once, since they may change later. The rest is
done in the background, mostly for the messages that are kept only.

Not done: nothing is set except the handler's level; levels and filters are yours. A QueueHandler
converts records to text, which loses the formats: add this handler to the logger itself, not behind
the queue.

Source: the documentation of logging, "LogRecord attributes", "Handler Objects".
"""

import logging
import threading

from redmeter import Meter
from redmeter.errors import StoreError
from redmeter.integrations.hooks import meter_for
from redmeter.integrations.intake import Intake, busy, error_of, text_of
from redmeter.integrations.meters import off_meter
from redmeter.keys import MAX_TIME
from redmeter.recording.messages.fingerprint import Fingerprint, Phrase, is_wordless, with_place
from redmeter.recording.messages.tracebacks import describe_error, place_of

_installing = threading.Lock()


class RedmeterHandler(logging.Handler):
    """Counts log records by their patterns, and keeps the newest.

    It never waits, never raises and never logs. The library's own log, and what is logged while a
    record is handled or a meter stores, is left out. Level and filters are yours to set. A
    formatter makes the texts that are kept, not the patterns.

    Args:
        meter: where messages go. None: a Meter as the environment says, made for the first
            record; so a handler can be made by logging.config.
        level: records below it are left out.
    """

    def __init__(self, meter: Meter | None = None, level: int | str = logging.NOTSET) -> None:
        super().__init__(level)
        self._intake = Intake(meter)
        self._sinks = self._intake.sinks

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.meter!r} ({logging.getLevelName(self.level)})>"

    @property
    def meter(self) -> Meter | None:
        """Where messages go; None where one is still to be made."""
        return self._intake.meter

    def createLock(self) -> None:
        """Create no lock: appending to a list needs none."""
        self.lock = None

    def handle(self, record: logging.LogRecord) -> bool:
        """Count a record that passes the filters; return whether it was taken."""
        if busy.get():
            return False
        try:
            busy.set(True)  # within, so that an exception out of a signal handler resets it
            found = self._filtered(record) if self.filters else record
            if found is None:
                return False
            self._take(found)
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
        """Return the record, or what a filter puts in its place; None where it does not pass."""
        try:
            found: object = self.filter(record)
        except Exception as error:  # noqa: BLE001 - of a filter that is not ours
            # It may be there to keep something out: nothing of the text is taken.
            self._intake.record_error(error)
            self._note(record, f"(left out: a filter raised {type(error).__name__})")
            return None
        if isinstance(found, logging.LogRecord):  # since Python 3.12
            return found
        return record if found else None

    def _take(self, record: logging.LogRecord) -> None:
        try:
            msg, args = record.msg, record.args
            plain = type(record) is logging.LogRecord and type(msg) is str
            if plain and self.formatter is None:  # as most are: the short way
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
        except StoreError:  # of a meter that stores at once, and counts what it loses
            pass
        except Exception as error:  # noqa: BLE001 - of an argument, or what is given is no record
            self._intake.record_error(error)
            text = text_of(getattr(record, "msg", record))
            self._note(record, text, f" (not formatted: {type(error).__name__})")

    def _read(self, record: logging.LogRecord) -> tuple[Fingerprint, str]:
        """Return pattern and text of a record."""
        pattern = record.msg if record.args and type(record.msg) is str else None
        if pattern is not None and is_wordless(pattern):
            pattern = None
        message = text_of(record.getMessage())
        if self.formatter is None:
            return pattern, message
        try:
            text = text_of(self.format(record))
        except Exception as error:  # noqa: BLE001 - of a formatter that is not ours
            self._intake.record_error(error)
            return pattern, f"{message} (not formatted: {type(error).__name__})"
        # Of what the formatter adds nothing belongs into the pattern.
        return pattern or Phrase(message), text

    def _traced(
        self, record: logging.LogRecord, pattern: Fingerprint, text: str
    ) -> tuple[Fingerprint, str]:
        """Add what there is of an error: to the pattern where it was, to the text what it said."""
        told = [text]
        error = error_of(record.exc_info)
        if error is not None:
            place, frames = describe_error(error)
            told.append(frames)
            self._intake.record_exception(record.name, record.levelno, error, frames)
        else:
            trace = record.exc_text if isinstance(record.exc_text, str) else ""
            place = place_of(trace)
            told.append(trace)
        if isinstance(record.stack_info, str):
            told.append(record.stack_info)
        if place:
            pattern = with_place(pattern, place)
        # A formatter's text has all of it already.
        return pattern, text if self.formatter else "\n".join(part for part in told if part)

    def _note(self, record: logging.LogRecord, text: str, note: str = "") -> None:
        """Count what is left of a record that cannot be read."""
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

    Adds a handler, and changes nothing else: what the loggers' own levels leave out does not get
    here either. Called again for the same meter, it returns the handler that is there, and sets its
    level where one is given.

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
