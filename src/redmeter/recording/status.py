"""Status reports: a recorder publishes its state from time to time, and logs problems."""

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

#: Seconds between two reports to the store while something happens.
REPORT_SECONDS = 10.0
#: Seconds between two lines in the log.
LOG_SECONDS = 60.0

logger = logging.getLogger("redmeter")


class StatusReporter:
    """Tells how a recorder is.

    Args:
        lock: held while the stats is used.
        health: how it is.
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
        """Tell the store how the recorder is, from time to time.

        Args:
            last: whether there will be no other.
            always: whether it is told also where nothing happens, to keep the process's number.
        """
        state = self._stats.recorded + sum(self._stats.troubles.values())
        changed = state != self._report_of
        passed = time.monotonic() - self._reported
        due = passed >= REPORT_SECONDS if changed else always and passed > RENEW_SECONDS
        if not self._stats.batches or not (due or last):
            return
        self._reported = time.monotonic()  # also where it fails: not with every flush
        try:
            report = self._delivery.report(self._health().as_dict())
            if self._delivery.publish(report, ended=last):
                self._report_of = state
        except StoreError as error:
            self.record_error(error)

    def say_farewell(self) -> None:
        """Say in the log what could not be stored, and is lost if the process ends now.

        Once, where it ends in several steps, and nothing comes up in between.
        """
        waiting = self._health().buffered
        if waiting and waiting != self._left:
            with contextlib.suppress(Exception):  # of somebody's filter or handler
                logger.warning(
                    "redmeter: %d events are not stored, and are lost if the process ends now",
                    waiting,
                )
        self._left = waiting

    def record_error(self, error: Exception) -> None:
        """Write down that storing failed, and say so in the log now and then."""
        with self._lock:
            self._stats.record_error(kind_of(error), str(error))
        if time.monotonic() - self._said >= LOG_SECONDS:
            self._said = time.monotonic()
            waiting = self._stats.buffered
            kept = f"{waiting} events are waiting in memory" if waiting else "no event is waiting"
            with contextlib.suppress(Exception):  # of somebody's filter or handler
                logger.warning("redmeter cannot store metrics: %s (%s)", error, kept)
