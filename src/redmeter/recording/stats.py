"""Recorder statistics: every event is counted in exactly one place, and every loss has a reason.

At any moment recorded == stored + buffered + uncertain + dropped. In addition, losses list the
events that single precisions lack: an event that arrived after two minutes of outage is stored, but
not by the second. The reasons are listed in losses.py.
"""

from collections import Counter
from collections.abc import Iterable

from redmeter.errors import Unconfirmed
from redmeter.losses import EMPTIED, TOTAL
from redmeter.stored.keys import Kept, Keys
from redmeter.types import Loss, LostEvents, RecorderHealth, Rejection

#: Stands for the series of events that were lost together.
ALL_SERIES = "(all series)"

#: The kind of trouble under which batches are counted that are stored, but not confirmed durable.
UNCONFIRMED = "unconfirmed"


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
        )

    def _losses_by_precision(self) -> tuple[Loss, ...]:
        by_precision: Counter[tuple[str, str, int]] = Counter()
        for (reason, series, precisions), events in self._losses.items():
            for precision in precisions:
                by_precision[reason, series, precision] += events
        return tuple(Loss(*key, events) for key, events in sorted((+by_precision).items()))
