"""The interface between a meter and its integrations, in addition to Meter's public methods.

An integration records with the methods of Meter where they are enough. Otherwise it makes an
Instrumentation of the meter. This is the only module of the package that uses private attributes of
a meter; a test enforces that.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from redmeter import Counter, Histogram, Meter
from redmeter.recording.logging.coalesce import Fingerprint
from redmeter.recording.sync import SyncRecorder
from redmeter.store import Store


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


class Helper(Protocol):
    """A thread of an integration that uses a meter's store, such as its cleaner."""

    def stop(self, timeout: float) -> None:
        """End the thread, and wait for that, `timeout` seconds at most."""
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
        counter = self._meter._recorder.counter(name, labels, extra)
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
        return self._meter._recorder.histogram(name, labels, extra)

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
