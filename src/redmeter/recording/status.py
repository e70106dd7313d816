"""Status reports: a recorder publishes its statistics periodically, and logs problems."""

import contextlib
import logging
import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from redmeter.errors import StoreError, Unconfirmed
from redmeter.losses import EMPTIED, ROLLED_BACK
from redmeter.recording.delivery import Delivery, kind_of
from redmeter.recording.instance import RENEW_SECONDS
from redmeter.recording.stats import RecorderStats
from redmeter.types import RecorderHealth

#: Seconds between two reports while events are recorded.
REPORT_SECONDS = 10.0
#: Seconds between two log lines.
LOG_SECONDS = 60.0
#: The kind of trouble under which forked processes are counted that ended too soon.
CHILD_ENDED = "child-ended"
#: The kind under which callbacks are counted that do not return.
CALLBACK_HANGS = "callback-hangs"
#: Process ids that a log line lists.
SHOWN = 5

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
        self._reported = -math.inf
        self._report_of = -1
        #: Whether the store has a report of this process that is not its last.
        self.registered = False
        #: Whether something waits for the next report that may not wait until it is due.
        self.must_report = False
        self._lost = 0

    def report(self, *, last: bool) -> None:
        """Publish the status if a report is due: also if nothing changed, to show that it lives.

        Args:
            last: whether this is the last report.
        """
        self._log_lost()
        state = self._stats.recorded + sum(self._stats.troubles.values())
        changed = state != self._report_of
        passed = time.monotonic() - self._reported
        due = passed >= REPORT_SECONDS if changed else passed > RENEW_SECONDS
        writes = self._stats.batches or self._stats.troubles[CHILD_ENDED]
        if not writes or not (due or last or self.must_report):
            return
        # Even if it fails: not with every flush. After the last one, further events report at once.
        self._reported = -math.inf if last else time.monotonic()
        self.must_report = False
        try:
            report = self._delivery.report(self._health().as_dict())
            if self._delivery.publish(report, ended=last):
                self._report_of = state
                self.registered = not last
        except StoreError as error:
            self.record_error(error)

    def _log_lost(self) -> None:
        lost = sum(self._stats.troubles[reason] for reason in (ROLLED_BACK, EMPTIED))
        if lost != self._lost:
            self._lost = lost
            # At once: an emptied store has lost the last report, too.
            self.must_report = True
            with contextlib.suppress(Exception):  # raised by an application's filter or handler
                logger.warning("redmeter: %s", self._stats.last_trouble)

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

    def record_ended_children(self, pids: Sequence[int]) -> None:
        """Count and log forked processes that ended before they had stored their events."""
        shown = ", ".join(map(str, pids[:SHOWN])) + (" …" if len(pids) > SHOWN else "")
        text = f"forked processes ended before they had stored their events: pid {shown}"
        with self._lock:
            for _ in pids:
                self._stats.record_error(CHILD_ENDED, text)
        self.must_report = True
        if self._may_log():
            with contextlib.suppress(Exception):  # raised by an application's filter or handler
                logger.warning("redmeter: %s; let them exit normally, or call flush() before", text)

    def record_hanging(self, name: str) -> None:
        """Count and log a callback that does not return."""
        text = f"the callback of {name} does not return; it is not called again until it does"
        with self._lock:
            self._stats.record_error(CALLBACK_HANGS, text)
        self.must_report = True
        with contextlib.suppress(Exception):  # raised by an application's filter or handler
            logger.warning("redmeter: %s", text)

    def record_error(self, error: Exception) -> None:
        """Count an error of storing, and log one at most every LOG_SECONDS."""
        with self._lock:
            self._stats.record_error(kind_of(error), str(error))
        waiting = self._stats.buffered
        kept = f"{waiting} events are buffered" if waiting else "no events are buffered"
        if self._may_log():
            with contextlib.suppress(Exception):  # raised by an application's filter or handler
                logger.warning("redmeter cannot store metrics: %s (%s)", error, kept)

    def record_unconfirmed(self, error: Unconfirmed) -> None:
        """Count batches that are not confirmed to be durable, and log that, as record_error()."""
        with self._lock:
            self._stats.record_unconfirmed(error)
        if error.batches and self._may_log():
            with contextlib.suppress(Exception):  # raised by an application's filter or handler
                logger.warning("redmeter: %s", error)

    def _may_log(self) -> bool:
        may = time.monotonic() - self._said >= LOG_SECONDS
        if may:
            self._said = time.monotonic()
        return may
