"""Status reports: a recorder publishes its statistics periodically, and logs problems."""

import contextlib
import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from redmeter.errors import StoreError
from redmeter.recording.delivery import Delivery, kind_of
from redmeter.recording.instance import RENEW_SECONDS
from redmeter.recording.stats import RecorderStats
from redmeter.types import RecorderHealth

#: Seconds between two reports while events are recorded.
REPORT_SECONDS = 10.0
#: Seconds between two log lines.
LOG_SECONDS = 60.0

logger = logging.getLogger("redmeter")


class StatusReporter:
    """Publishes and logs the status of a recorder.

    Args:
        lock: held while the statistics are used.
        health: returns the status.
    """

    def __init__(
        self,
        delivery: Delivery,
        stats: RecorderStats,
        lock: AbstractContextManager[object],
        health: Callable[[], RecorderHealth],
    ) -> None:
        self._delivery = delivery
        self._stats = stats
        self._lock = lock
        self._health = health
        self._said = -LOG_SECONDS
        self._left = 0
        self._reported = 0.0
        self._report_of = -1

    def report(self, *, last: bool, always: bool) -> None:
        """Publish the status if a report is due.

        Args:
            last: whether this is the last report.
            always: report even if nothing changed, to renew the lease on the instance number.
        """
        state = self._stats.recorded + sum(self._stats.troubles.values())
        changed = state != self._report_of
        passed = time.monotonic() - self._reported
        due = passed >= REPORT_SECONDS if changed else always and passed > RENEW_SECONDS
        if not self._stats.batches or not (due or last):
            return
        self._reported = time.monotonic()  # even if it fails: not with every flush
        try:
            report = self._delivery.report(self._health().as_dict())
            if self._delivery.publish(report, ended=last):
                self._report_of = state
        except StoreError as error:
            self.record_error(error)

    def log_unstored(self) -> None:
        """Log how many events could not be stored and are lost if the process ends now.

        Once, even if the process ends in several steps, unless more events arrive in between.
        """
        waiting = self._health().buffered
        if waiting and waiting != self._left:
            with contextlib.suppress(Exception):  # raised by an application's filter or handler
                logger.warning(
                    "redmeter: %d events are not stored, and are lost if the process ends now",
                    waiting,
                )
        self._left = waiting

    def record_error(self, error: Exception) -> None:
        """Count an error of storing, and log one at most every LOG_SECONDS."""
        with self._lock:
            self._stats.record_error(kind_of(error), str(error))
        if time.monotonic() - self._said >= LOG_SECONDS:
            self._said = time.monotonic()
            waiting = self._stats.buffered
            kept = f"{waiting} events are buffered" if waiting else "no events are buffered"
            with contextlib.suppress(Exception):  # raised by an application's filter or handler
                logger.warning("redmeter cannot store metrics: %s (%s)", error, kept)
