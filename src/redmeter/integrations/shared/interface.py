"""The interface between a meter and its integrations, in addition to Meter's public methods.

An integration records with the methods of Meter where they are enough. Otherwise it makes an
Instrumentation of the meter. This is the only module of the package that uses private attributes of
a meter; a test enforces that.

Messages of logging libraries go through an Intake, which records them however malformed. Problem:
foreign code makes a message: an argument's __str__, a formatter, a filter. It may raise, and it may
log, which would recurse.

Idea: a flag of the current thread, task or greenlet is set while a message is recorded. Messages
logged meanwhile are ignored, and so are those logged while a meter stores: a client library that
logs its commands would otherwise cause new commands forever. A message that cannot be formatted is
recorded as far as possible, with a note.

Bound: no lock, no I/O, no thread. A message costs its formatting and one append.

Not done: a message that a signal handler logs while another one is recorded is ignored too. With
Meter(sync=True) the thread that logs a message also stores it.
"""

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from redmeter import Counter, Histogram, Meter
from redmeter.errors import StoreError
from redmeter.integrations.shared.meters import meter_for
from redmeter.meter import Helper
from redmeter.recording.logging.coalesce import Fingerprint
from redmeter.recording.logging.exceptions import SEVERITIES
from redmeter.recording.recorder import is_storing
from redmeter.recording.sync import SyncRecorder
from redmeter.store import Store
from redmeter.stored.keys import MAX_TIME
from redmeter.stored.message import logger_of, severity_of

#: Set while a message is recorded.
busy = is_storing

#: Pairs of logger and level whose sinks are cached.
SINKS = 1000

_OWN = "redmeter"


class MessageSink(Protocol):
    """Accepts the messages of one logger and severity."""

    def put_message(self, pattern: Fingerprint, text: str, time: float) -> None:
        """Add a message.

        Args:
            pattern: groups it: see recording/logging/coalesce.py.
            text: of any length, with any characters.
            time: Unix seconds.
        """
        ...


class Instrumentation:
    """A meter, as integrations use it. Cheap to make; no method of it connects to Redis."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    @property
    def store(self) -> Store | None:
        """The meter's store; None if its URL is `off`."""
        return self._meter._store

    @property
    def is_off(self) -> bool:
        """Whether the meter records nothing: its URL is `off`. A MemoryMeter is not off."""
        return self._meter._store is None and type(self._meter._recorder) is SyncRecorder

    def now(self) -> float:
        """Return the time of the meter's clock, Unix seconds."""
        return self._meter._now()

    @property
    def monotonic(self) -> Callable[[], float]:
        """The meter's monotonic clock, seconds, for durations."""
        return self._meter._monotonic

    def counter(
        self,
        name: str,
        labels: Mapping[str, object] | None = None,
        extra: Mapping[str, object] | None = None,
        *,
        zero_series: str = "",
    ) -> Counter:
        """Return the counter of a series.

        Args:
            name, labels: see Meter.count().
            extra: labels of the application. Above the limit of label sets their values become
                `(other)`, while `labels` stay as they are.
            zero_series: another counter, which gets a 0 in each interval in which this one counts
                something, which distinguishes "none" from "not recorded".
        """
        counter = self._meter._recorder.instrument(Counter, name, labels, extra)
        if zero_series:
            counter._zero_series = zero_series
        return counter

    def histogram(
        self,
        name: str,
        labels: Mapping[str, object] | None = None,
        extra: Mapping[str, object] | None = None,
    ) -> Histogram:
        """Return the histogram of a series. See counter() for the arguments."""
        return self._meter._recorder.instrument(Histogram, name, labels, extra)

    def message_sink(self, logger: str, severity: str) -> MessageSink:
        """Return the sink for the messages of a logger and severity, both in stored form."""
        return self._meter._recorder.sink(logger, severity)

    def record_exception(
        self, error: BaseException, route: str = "", traceback: str | None = None
    ) -> None:
        """Record an exception, unless it was recorded before.

        Args:
            route: of the request, or the name of the task; "" if unknown.
            traceback: as describe_error() returned it; None: it is made here.
        """
        self._meter._recorder.record_exception(error, route, traceback)

    def record_error(self, kind: str, text: str) -> None:
        """Count a failure; Meter.recorder_health() and `redmeter doctor` report it."""
        self._meter._recorder.record_error(kind, text)

    def before_flush(self, hook: Callable[[], None]) -> None:
        """Call a function before each flush, in the thread that flushes; it must not wait."""
        self._meter._recorder.before_flush(hook)

    def add_helper(self, helper: Helper) -> None:
        """Have Meter.close() stop a helper."""
        self._meter._helpers = (*self._meter._helpers, helper)

    def remove_helper(self, helper: Helper) -> None:
        """Undo add_helper()."""
        self._meter._helpers = tuple(each for each in self._meter._helpers if each is not helper)


def record_error(meter: Meter, kind: str, error: BaseException) -> None:
    """Count a failure of an integration, for Meter.recorder_health(). Never raises.

    A StoreError is ignored: the meter counts it already.
    """
    if not isinstance(error, StoreError):
        with contextlib.suppress(Exception):  # str(error) may raise
            Instrumentation(meter).record_error(kind, f"{kind}: {type(error).__name__}: {error}")


class Names:
    """Label values of limited cardinality: above the limit, new ones are `(other)`.

    Args:
        make: converts a text to a label value.
        limit: how many different values there may be.
    """

    OTHER = "(other)"

    def __init__(self, make: Callable[[str], str], limit: int) -> None:
        self._make = make
        self._limit = limit
        self._names: set[str] = set()

    def __call__(self, text: str) -> str:
        """Return the label value of a text."""
        name = self._make(text)
        if name not in self._names:
            if len(self._names) >= self._limit:
                return self.OTHER
            self._names.add(name)
        return name


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
            with contextlib.suppress(StoreError):  # with sync=True; the meter counts the drop
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
            with contextlib.suppress(StoreError):  # see put()
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
