"""Status: what a recorder counts, publishes and logs, and its instance number.

Every event is counted in exactly one place, and every loss has a reason. At any moment recorded ==
stored + buffered + uncertain + dropped. In addition, losses list the events that single precisions
lack: an event that arrived after two minutes of outage is stored, but not by the second. The
reasons are listed in results/recorder.py.

The number that the `instance` label has is assigned by the store with a report: see pending.py.
Redis gives it to another process once its holder has been silent for INSTANCE_SECONDS by the
server's clock. A process renews its lease long before that, and stops using the number shortly
before it could be reassigned, so that a server outage does not keep it from storing on other nodes.
"""

import contextlib
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager

from redmeter.clock import Clock
from redmeter.errors import StoreError, StoreRefused, Unconfirmed
from redmeter.results.recorder import EMPTIED, ROLLED_BACK, TOTAL, Loss, RecorderHealth
from redmeter.store.producers import INSTANCE_SECONDS
from redmeter.stored.keys import Kept, Keys
from redmeter.types import LostEvents, Rejection

#: Stands for the series of events that were lost together.
ALL_SERIES = "(all series)"
#: The kind of trouble under which batches are counted that are stored, but not confirmed durable.
UNCONFIRMED = "unconfirmed"
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
#: Age at which a lease is renewed, seconds; see store/producers.py.
RENEW_SECONDS = 60.0
#: How long a number is used when the lease cannot be renewed, seconds. The rest is a margin for
#: batches in flight and for a server clock that is set forward a little.
LEASE_SECONDS = INSTANCE_SECONDS - 30.0

logger = logging.getLogger("redmeter")


def _warn(text: str, *args: object) -> None:
    with contextlib.suppress(Exception):  # raised by an application's filter or handler
        logger.warning(text, *args, stacklevel=2)


def kind_of(error: Exception) -> str:
    """Return the kind under which an error is counted."""
    return error.code if isinstance(error, StoreRefused) else type(error).__name__


class RecorderStats:
    """Counts since the recorder started or was forked. Not locked: see buffer.py."""

    def __init__(self, started: float) -> None:
        self.started = started
        self.recorded = self.stored = self.uncertain = self.dropped = 0
        self.overflowed = self.batches = self.retried = 0
        self.repaired = self.emptied = 0
        self.last_flush: float | None = None
        self.troubles: Counter[str] = Counter()
        self.last_trouble = ""
        #: LOGGER:SEVERITY -> messages counted under coarse patterns, and those counted as (other).
        self.coarse: Counter[str] = Counter()
        self.hidden: Counter[str] = Counter()
        # By all precisions that lack the same events: one entry instead of seven.
        self._losses: Counter[tuple[str, str, tuple[int, ...]]] = Counter()
        #: Precision -> events that were already too old for it when they were recorded.
        self.past: Counter[int] = Counter()

    @property
    def buffered(self) -> int:
        """Events that are neither stored nor dropped yet."""
        return self.recorded - self.stored - self.uncertain - self.dropped

    def record_loss(
        self, reason: str, series: str, precisions: tuple[int, ...], events: int
    ) -> None:
        """Record that some precisions of a series lack some events."""
        if events and precisions:
            self._losses[reason, series, precisions] += events

    def drop(self, reason: str, series: str, precisions: tuple[int, ...], events: int) -> None:
        """Record that events were dropped: no precision and no total has them."""
        self.dropped += events
        self.record_loss(reason, series, (*precisions, TOTAL), events)

    def take_back(self, lost: LostEvents, kept: Kept) -> None:
        """Record that the server has lost events that were stored."""
        self.stored -= lost.events + lost.uncertain
        self.emptied += lost.events if lost.reason == EMPTIED else 0
        self.uncertain += lost.uncertain
        self.drop(lost.reason, ALL_SERIES, tuple(kept.series), lost.events)
        self.record_error(lost.reason, str(lost))

    def reject(self, keys: Keys, rejections: Iterable[Rejection], *, undo: bool = False) -> None:
        """Record which parts of a batch the store rejected.

        Args:
            undo: the opposite: the store has lost the batch, and got it again.

        `unkept` is no loss: the data is stored, but may expire early. The hashes of a histogram and
        its statistics hold the same events, so an event that several of them lack is lost once.
        """
        rejected: dict[tuple[str, str, int, str], int] = {}
        for rejection in rejections:
            if rejection.reason == "unkept":
                if not undo:
                    self.record_error(rejection.reason, f"{rejection.key}: {rejection.detail}")
                continue
            precision, series = keys.series_of(rejection.key) or (TOTAL, rejection.field)
            place = rejection.reason, series, precision, rejection.key
            rejected[place] = rejected.get(place, 0) + rejection.amount
        sign = -1 if undo else 1
        histograms: dict[tuple[str, str, int], int] = {}
        for (reason, series, precision, key), events in rejected.items():
            if keys.is_of_histogram(key):
                most = max(events, histograms.get((reason, series, precision), 0))
                histograms[reason, series, precision] = most
            else:
                self.record_loss(reason, series, (precision,), sign * events)
        for (reason, series, precision), events in histograms.items():
            self.record_loss(reason, series, (precision,), sign * events)

    def crowd(self, keys: Keys, answers: Iterable[tuple[str, str]]) -> None:
        """Record the messages of a batch that had no pattern of their own.

        Args:
            answers: of the batch; those of its steps count: see messages.lua.
        """
        head = keys.key("steps")
        for key, text in answers:
            if key.startswith(head):
                coarse, other = map(int, text.split())
                source = key[len(head) :]
                self.coarse.update({source: coarse} if coarse else {})
                self.hidden.update({source: other} if other else {})

    def record_error(self, kind: str, text: str, times: int = 1) -> None:
        """Record an error in the background."""
        self.troubles[kind] += times
        self.last_trouble = text

    def record_unconfirmed(self, error: Unconfirmed) -> None:
        """Record that batches are not confirmed to be durable; each batch counts once."""
        self.record_error(UNCONFIRMED, str(error), error.batches)

    def health(
        self,
        *,
        producer: str,
        instance: int | None,
        fresh: int = 0,
        series: int = 0,
        buffer_bytes: int = 0,
    ) -> RecorderHealth:
        """Return the statistics.

        Args:
            producer, instance, series, buffer_bytes: see RecorderHealth.
            fresh: events that were not collected yet.
        """
        return RecorderHealth(
            producer=producer,
            instance=instance,
            started=self.started,
            recorded=self.recorded + fresh,
            stored=self.stored,
            buffered=self.buffered + fresh,
            uncertain=self.uncertain,
            dropped=self.dropped,
            losses=self._losses_by_precision(),
            overflowed=self.overflowed,
            series=series,
            buffer_bytes=buffer_bytes,
            batches=self.batches,
            retried=self.retried,
            repaired=self.repaired,
            emptied=self.emptied,
            last_flush=self.last_flush,
            troubles=dict(self.troubles),
            last_trouble=self.last_trouble,
            past=dict(self.past),
            coarse_messages=dict(self.coarse),
            other_messages=dict(self.hidden),
        )

    def _losses_by_precision(self) -> tuple[Loss, ...]:
        by_precision: Counter[tuple[str, str, int]] = Counter()
        for (reason, series, precisions), events in self._losses.items():
            for precision in precisions:
                by_precision[reason, series, precision] += events
        return tuple(Loss(*key, events) for key, events in sorted((+by_precision).items()))


class StatusReporter:
    """Publishes and logs the status of a recorder.

    Args:
        publish: publishes a report; returns False if that has to wait. See Delivery.publish().
        lock: held while the statistics are used.
        health: returns the status.
    """

    def __init__(
        self,
        publish: Callable[..., bool],
        stats: RecorderStats,
        lock: AbstractContextManager[object],
        health: Callable[[], RecorderHealth],
    ) -> None:
        self._publish = publish
        self._stats = stats
        self._lock = lock
        self._health = health
        self._last_logged = -LOG_SECONDS
        self._logged_unstored = 0
        self._reported = -math.inf
        self._report_of = -1
        #: Whether the store has a report of this process that is not its last.
        self.registered = False
        #: Whether something waits for the next report that may not wait until it is due.
        self.must_report = False
        self._logged_lost = 0

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
            if self._publish(self._health().as_dict(), ended=last):
                self._report_of = state
                self.registered = not last
        except StoreError as error:
            self.record_error(error)

    def _log_lost(self) -> None:
        lost = sum(self._stats.troubles[reason] for reason in (ROLLED_BACK, EMPTIED))
        if lost != self._logged_lost:
            self._logged_lost = lost
            # At once: an emptied store has lost the last report, too.
            self.must_report = True
            _warn("redmeter: %s", self._stats.last_trouble)

    def log_unstored(self) -> None:
        """Log how many events could not be stored and are lost if the process ends now.

        Once, even if the process ends in several steps, unless more events arrive in between.
        """
        waiting = self._health().buffered
        if waiting and waiting != self._logged_unstored:
            _warn(
                "redmeter: %d events are not stored, and are lost if the process ends now", waiting
            )
        self._logged_unstored = waiting

    def record_ended_children(self, pids: Sequence[int]) -> None:
        """Count and log forked processes that ended before they had stored their events."""
        shown = ", ".join(map(str, pids[:SHOWN])) + (" …" if len(pids) > SHOWN else "")
        text = f"forked processes ended before they had stored their events: pid {shown}"
        with self._lock:
            self._stats.record_error(CHILD_ENDED, text, len(pids))
        self.must_report = True
        if self._may_log():
            _warn("redmeter: %s; let them exit normally, or call flush() before", text)

    def record_hanging(self, name: str) -> None:
        """Count and log a callback that does not return."""
        text = f"the callback of {name} does not return; it is not called again until it does"
        with self._lock:
            self._stats.record_error(CALLBACK_HANGS, text)
        self.must_report = True
        _warn("redmeter: %s", text)

    def record_error(self, error: Exception) -> None:
        """Count an error of storing, and log one at most every LOG_SECONDS."""
        with self._lock:
            self._stats.record_error(kind_of(error), str(error))
        waiting = self._stats.buffered
        kept = f"{waiting} events are buffered" if waiting else "no events are buffered"
        if self._may_log():
            _warn("redmeter cannot store metrics: %s (%s)", error, kept)

    def record_unconfirmed(self, error: Unconfirmed) -> None:
        """Count batches that are not confirmed to be durable, and log that, as record_error()."""
        with self._lock:
            self._stats.record_unconfirmed(error)
        if error.batches and self._may_log():
            _warn("redmeter: %s", error)

    def _may_log(self) -> bool:
        may = time.monotonic() - self._last_logged >= LOG_SECONDS
        if may:
            self._last_logged = time.monotonic()
        return may


class InstanceLease:
    """The lease of this process on an instance number.

    Args:
        clock: its monotonic time determines the lease's age.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._number: int | None = None
        self._renewed = -math.inf
        #: Whether any series has a placeholder for the number.
        self.needed = False

    @property
    def number(self) -> int | None:
        """The number while no other process can have it; else None."""
        return self._number if self._age <= LEASE_SECONDS else None

    @property
    def is_due(self) -> bool:
        """Whether a number is needed, and the lease has to be acquired or renewed."""
        return self.needed and (self._number is None or self._age > RENEW_SECONDS)

    @property
    def _age(self) -> float:
        return self._clock.monotonic() - self._renewed

    def renew(self, number: int | None, requested: float) -> None:
        """Record the reply of the store.

        Args:
            number: the number that this process holds; None if it holds none.
            requested: when the request was sent, or earlier, monotonic seconds.
        """
        self._number, self._renewed = number, requested
