"""Recorder statistics: every event is counted in exactly one place, and drops have a reason.

At any moment recorded == stored + buffered + uncertain + dropped. Beside that, losses say what
single precisions lack: an event that came after two minutes of outage is stored, but not by the
second.
"""

from collections import Counter
from collections.abc import Iterable

from redmeter.keys import Keys
from redmeter.types import Drop, RecorderHealth, Rejection

#: What the grand total is called among the precisions.
TOTAL = 0

#: Why events are given up whole, or by a precision, before they are sent.
AGED, MEMORY, OVERFLOW, RETENTION = "aged", "memory", "overflow", "retention"
SERIES = "series"


class RecorderStats:
    """Counts since the recorder started, or was forked. Not locked: see buffer.py."""

    def __init__(self, started: float) -> None:
        self.started = started
        self.recorded = self.stored = self.uncertain = self.dropped = 0
        self.overflowed = self.batches = self.retried = 0
        self.last_flush: float | None = None
        self.troubles: Counter[str] = Counter()
        self.last_trouble = ""
        # By all precisions that lack the same events: one entry where there would be seven.
        self._losses: Counter[tuple[str, str, tuple[int, ...]]] = Counter()
        #: Precision -> events that were already too old for it when they were recorded.
        self.past: Counter[int] = Counter()

    @property
    def buffered(self) -> int:
        """Events that were taken in and are neither stored nor given up."""
        return self.recorded - self.stored - self.uncertain - self.dropped

    def lose(self, reason: str, series: str, precisions: tuple[int, ...], events: int) -> None:
        """Write down that some precisions of a series lack some events."""
        if events and precisions:
            self._losses[reason, series, precisions] += events

    def drop(self, reason: str, series: str, precisions: tuple[int, ...], events: int) -> None:
        """Write down that events were given up whole."""
        self.dropped += events
        self.lose(reason, series, (*precisions, TOTAL), events)

    def refuse(self, keys: Keys, rejections: Iterable[Rejection]) -> None:
        """Write down what a store refused. What it could not keep as long as it should is stored.

        The hashes of a histogram, and the statistics beside them, hold the same events: what
        several of them lack is lost once.
        """
        found: dict[tuple[str, str, int, str], int] = {}
        for rejection in rejections:
            if rejection.reason == "unkept":
                self.record_error(rejection.reason, f"{rejection.key}: {rejection.detail}")
                continue
            precision, series = keys.series_of(rejection.key) or (TOTAL, rejection.field)
            place = rejection.reason, series, precision, rejection.key
            found[place] = found.get(place, 0) + rejection.amount
        observed: dict[tuple[str, str, int], int] = {}
        for (reason, series, precision, key), events in found.items():
            if keys.is_observed(key):
                most = max(events, observed.get((reason, series, precision), 0))
                observed[reason, series, precision] = most
            else:
                self.lose(reason, series, (precision,), events)
        for (reason, series, precision), events in observed.items():
            self.lose(reason, series, (precision,), events)

    def record_error(self, kind: str, text: str) -> None:
        """Write down that something went wrong in the background."""
        self.troubles[kind] += 1
        self.last_trouble = text

    def health(
        self,
        *,
        producer: str,
        instance: int | None,
        fresh: int = 0,
        series: int = 0,
        buffer_bytes: int = 0,
    ) -> RecorderHealth:
        """Return the books as they are.

        Args:
            producer, instance, series, buffer_bytes: see RecorderHealth.
            fresh: events that are not in the books yet.
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
            losses=self._losses_each(),
            overflowed=self.overflowed,
            series=series,
            buffer_bytes=buffer_bytes,
            batches=self.batches,
            retried=self.retried,
            last_flush=self.last_flush,
            troubles=dict(self.troubles),
            last_trouble=self.last_trouble,
            past=dict(self.past),
        )

    def _losses_each(self) -> tuple[Drop, ...]:
        """Return the losses precision by precision."""
        each: Counter[tuple[str, str, int]] = Counter()
        for (reason, series, precisions), events in self._losses.items():
            for precision in precisions:
                each[reason, series, precision] += events
        return tuple(Drop(*key, events) for key, events in sorted(each.items()))
