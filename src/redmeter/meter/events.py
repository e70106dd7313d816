"""Recording of log messages, exceptions and marks."""

from collections.abc import Callable

from redmeter.recording.logging.coalesce import Fingerprint, with_place
from redmeter.recording.logging.exceptions import SEVERITIES
from redmeter.recording.logging.marks import label_of
from redmeter.recording.logging.messages import format_message
from redmeter.recording.logging.tracebacks import describe_error
from redmeter.recording.recorder import Recorder
from redmeter.recording.sync import SyncRecorder
from redmeter.stored.message import check_logger, check_severity, severity_of


class EventMethods:
    """Methods of a Meter that record log messages, exceptions and marks."""

    _recorder: Recorder | SyncRecorder
    _release: str
    _now: Callable[[], float]

    def log(
        self,
        logger: str,
        message: str,
        *args: object,
        severity: int | str = "info",
        exception: BaseException | None = None,
    ) -> None:
        """Log a message: the newest of each logger and severity are kept, and all are counted.

            meter.log("payments", "retrying order %s", order_id, severity="warning")

        Messages are counted by their pattern: the format if there are arguments and it has letters,
        otherwise the text without its variable parts. Secrets are masked before anything is stored.
        To log through the standard library, use redmeter.integrations.logging.

        Args:
            logger: the name of the logger; 1 to 200 bytes without control characters.
            message: a text, or a format as in logging, for the arguments.
            args: the arguments of the format. If they do not fit, the stored text mentions it.
            severity: a name, or a level of logging.
            exception: adds its type and its place in the application to the pattern, and its
                frames, message and causes to the text. With severity "error" or above, it is also
                recorded as by record_exception().

        Raises:
            InvalidName: the logger's name is not allowed.
            TypeError: the severity is neither text nor a whole number, or the exception is not one.
            StoreError: only with sync=True: the store is unreachable or refuses.
        """
        name = check_logger(logger)
        check_severity(severity)
        stored = severity_of(severity)
        if exception is not None:
            _check_exception(exception)
        pattern: Fingerprint
        pattern, text, problem = format_message(message, args)
        if problem:
            self._recorder.record_error("format", f"formatting a message: {problem}")
        if exception is not None:
            place, frames = describe_error(exception)
            pattern, text = with_place(pattern, place), f"{text}\n{frames}"
            if stored in SEVERITIES:
                self._recorder.record_exception(exception, "", frames)
        self._recorder.log(name, stored, pattern, text, self._now())

    def record_exception(self, error: BaseException, *, route: str = "") -> None:
        """Record an exception. Exceptions of one type and origin are one group.

            try:
                charge(order)
            except PaymentFailed as error:
                meter.record_exception(error)

        A group has its count by interval, when it was first and last seen, its routes and releases,
        and the traceback of its newest exception, with secrets masked; exceptions() returns them.
        An exception that passes through several integrations and logs is counted once, so it is
        safe to record one that is raised again.

        Args:
            error: the exception.
            route: where it happened: the route of a request, or the name of a task.

        Raises:
            TypeError: not an exception.
            StoreError: only with sync=True: the store is unreachable or refuses.
        """
        _check_exception(error)
        self._recorder.record_exception(error, route)

    def mark(self, label: str | None = None, *, at: float | None = None) -> None:
        """Note a moment that explains a change in the metrics, such as a deploy.

        Without a label, it marks the setting `release`, once per release: every process and host
        may do so when it starts, and only another release, or a rollback to an earlier one, adds a
        mark. With a label, it is the same mark as one with this label in the ten minutes before.
        The newest 1,000 marks are kept, for 90 days.

        Args:
            label: one line, truncated to 100 characters. Default: the release.
            at: the time, Unix seconds. Default: now.

        Raises:
            InvalidValue: there is no label, or the time is out of range.
            TypeError: the label is not text.
            StoreError: only with sync=True: the store is unreachable or refuses.
        """
        self._recorder.mark(label_of(label, self._release), at, release=label is None)


def _check_exception(error: object) -> None:
    if not isinstance(error, BaseException):
        kind = type(error).__name__
        raise TypeError(f"an exception is one that was raised (except … as error), not {kind}")
