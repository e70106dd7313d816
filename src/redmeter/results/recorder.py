"""The state of a recorder, which processes that only record need as well."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Loss:
    """Events that one precision of a series lacks."""

    #: A key of losses.LOSS_REASONS (aged, memory, …), or an error code of the server.
    reason: str
    #: The name of the series.
    series: str
    #: Interval width, seconds; 0 for the grand total.
    precision: int
    #: The number of events.
    events: int


@dataclass(frozen=True, slots=True)
class RecorderHealth:
    """The statistics of a recorder since it started or was forked.

    An event is one unit of a counter (`count("a", 3)` records three), one setting of a gauge, one
    value of a histogram, one message, or one mark.
    At any moment recorded == stored + buffered + uncertain + dropped.
    """

    #: The producer that writes: 128 random bits, in hexadecimal.
    producer: str
    #: The instance number of this process: 0, 1, 2 …; None if none is needed.
    instance: int | None
    #: When the recorder started, Unix seconds.
    started: float
    #: Events recorded.
    recorded: int
    #: Events of acknowledged batches; `losses` lists those that single precisions lack.
    stored: int
    #: Events in memory, not stored yet.
    buffered: int
    #: Events whose outcome is unknown: they were sent, and the watermark is gone.
    uncertain: int
    #: Events that are missing everywhere: no precision and no grand total has them.
    dropped: int
    #: Events missing from single precisions, by reason; those that were dropped, too.
    losses: tuple[Loss, ...]
    #: Events that went to a series labeled overflow="true", or to (other), because their name had
    #: too many series, or all names together; without events that are not collected yet.
    overflowed: int
    #: Series in memory.
    series: int
    #: An estimate of the memory of these series and their events, bytes.
    buffer_bytes: int
    #: Acknowledged batches.
    batches: int
    #: Retries of batches that may have been applied; a batch retried twice counts as two.
    retried: int
    #: When a batch was last stored, Unix seconds; None if none was.
    last_flush: float | None
    #: Errors in the background: kind -> count.
    troubles: Mapping[str, int]
    #: The text of the last of these errors; "" if there was none.
    last_trouble: str
    #: The part of the `aged` losses whose time (`at=`) was already too long ago when they were
    #: recorded: precision -> events.
    past: Mapping[int, int] = field(default_factory=dict)
    #: Events of acknowledged batches that a server had lost, and that were sent again.
    repaired: int = 0
    #: Events of acknowledged batches that were in the store when it was emptied: those that were
    #: sent again, and those that are lost.
    emptied: int = 0

    def lost(self) -> dict[str, dict[int, int]]:
        """Return the losses summed over all series: reason -> {precision: events}."""
        losses: dict[str, dict[int, int]] = {}
        for loss in self.losses:
            by_precision = losses.setdefault(loss.reason, {})
            by_precision[loss.precision] = by_precision.get(loss.precision, 0) + loss.events
        return losses

    def as_dict(self) -> dict[str, Any]:
        """Return everything except the names of series, in JSON's types."""
        return {
            "producer": self.producer,
            "instance": self.instance,
            "started": self.started,
            "recorded": self.recorded,
            "stored": self.stored,
            "buffered": self.buffered,
            "uncertain": self.uncertain,
            "dropped": self.dropped,
            "lost": {
                r: {str(p): n for p, n in counts.items()} for r, counts in self.lost().items()
            },
            "overflowed": self.overflowed,
            "series": self.series,
            "buffer_bytes": self.buffer_bytes,
            "batches": self.batches,
            "retried": self.retried,
            "repaired": self.repaired,
            "emptied": self.emptied,
            "last_flush": self.last_flush,
            "troubles": dict(self.troubles),
            "last_trouble": self.last_trouble,
            "past": {str(precision): events for precision, events in self.past.items()},
        }
