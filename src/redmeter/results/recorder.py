"""The state of a recorder, and why events are missing: the one table of reasons.

A loss is a number of events that one precision of one series lacks, and the reason; precision 0 is
the grand total. Most losses are partial: after an outage of ten minutes the samples by the second
are lost, those by the minute are not. An event that no precision and no total has is also counted
in `RecorderHealth.dropped`.

The recorder records losses under these reasons (recording/status.py), `redmeter doctor` explains
them (health/writers.py), and docs/faults.md lists them. An error code of the server that is
not in the table is a reason too. Processes that only record import this as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

#: Logs in a report, of those with too many patterns.
_MOST_LOGS = 20
#: The precision under which a loss of the grand total is recorded.
TOTAL = 0

# Found by the recorder, before a batch is sent
AGED, MEMORY, RETENTION, SERIES = "aged", "memory", "retention", "series"
NOT_FINITE, MARKS = "not-finite", "marks"
# Found by the recorder or the server
OVERFLOW = "overflow"
# Found by the server, which applies the rest of the batch
FUTURE, WRONGTYPE, NOT_A_NUMBER, DENIED = "future", "WRONGTYPE", "not-a-number", "denied"
OUT_OF_MEMORY = "OOM"
STORE_FULL = "store-full"
# Found by the next batch: the server had acknowledged the events
ROLLED_BACK, EMPTIED = "rolled-back", "emptied"

_LABELS = "keep ids, addresses and raw paths out of labels: give each few values"


class LossReason(NamedTuple):
    """What a reason means."""

    #: The events concerned, as `redmeter doctor` names them.
    events: str
    #: The cause, and the data that is not lost, in Markdown.
    cause: str
    #: What to do about it.
    fix: str


LOSS_REASONS = {
    AGED: LossReason(
        "events that arrived too late",
        "the interval had left the retention when the event could be stored: after an outage of "
        "two minutes, intervals of a second are gone. Coarser precisions and the grand total have "
        "the event",
        "these events cannot be recovered; prevent more: shorten outages of Redis, synchronize "
        "clocks (NTP), don't pass old times as at=",
    ),
    FUTURE: LossReason(
        "events too far in the future",
        "the event is further ahead of the server's clock than the retention is long; the grand "
        "total has it",
        "synchronize the writers' clocks (NTP), and check the times passed as at=",
    ),
    MEMORY: LossReason(
        "events that did not fit in a buffer",
        "the buffer was full, so the oldest fine intervals were dropped; coarser precisions and "
        "the grand total have the event. For messages, at precision 0: texts that would have been "
        "among the newest; the messages are still counted",
        f"raise REDMETER_BUFFER_BYTES, or {_LABELS}",
    ),
    RETENTION: LossReason(
        "events aggregated for another retention",
        "the event was already aggregated to a coarser precision when this one was added: a "
        "recorder configured for minutes only, with a store that also keeps seconds",
        "configure the writers for the retention of the store: REDMETER_RETENTION",
    ),
    OVERFLOW: LossReason(
        "events beyond the largest number",
        "an interval or a grand total would exceed 2^63 - 1, or an interval of a histogram 2^53 "
        "values",
        "count in larger units",
    ),
    MARKS: LossReason(
        "marks beyond the limit",
        "more than 1,000 marks were waiting for the store, which keeps no more than that",
        "mark deploys and similar moments, not frequent events",
    ),
    WRONGTYPE: LossReason(
        "events whose keys belong to another program",
        "another program uses the key",
        "choose another prefix",
    ),
    NOT_A_NUMBER: LossReason(
        "events whose fields belong to another program",
        "another program wrote a value that is not a number into the field",
        "choose another prefix",
    ),
    SERIES: LossReason(
        "gauges beyond the limit of series",
        "a gauge beyond `max_label_sets` or `max_series`; a shared `(other)` gauge would be "
        "meaningless",
        f"gauges have too many label sets: {_LABELS}",
    ),
    NOT_FINITE: LossReason(
        "values of histograms that are not finite",
        "a value is NaN, infinite, or an integer too large for a float",
        "find the code that observes NaN, infinities or integers too large for a float",
    ),
    DENIED: LossReason(
        "events that the server's ACL denies",
        "the server's user may run the script, but not this command in it",
        "ACL LOG on the server shows the command or key that the writers' user lacks; ACL SETUSER "
        "grants it",
    ),
    STORE_FULL: LossReason(
        "events of new series, in a store that is full",
        "the cleaner found the store larger than `store_bytes`, and the series is not in it yet; "
        "series that are in it go on",
        "redmeter names --by-size ranks names by memory: remove the largest with redmeter "
        f"clean --forget, and {_LABELS}; or raise REDMETER_STORE_BYTES",
    ),
    ROLLED_BACK: LossReason(
        "acknowledged events that the server has lost",
        "the server went back to an older state, by a failover or a restart, and the batches were "
        "too old to be sent again",
        "let writes be durable: a replica with min-replicas-to-write 1, or appendonly yes with "
        "appendfsync always",
    ),
    EMPTIED: LossReason(
        "events of a store that was emptied",
        "somebody ran FLUSHDB or FLUSHALL, or the server restarted without its data, and the "
        "batches were too old to be sent again",
        "give the metrics a server or a database of their own, and turn persistence on",
    ),
    OUT_OF_MEMORY: LossReason(
        "events for which the server had no memory",
        "the server ran out of memory within a batch",
        "raise maxmemory",
    ),
}


@dataclass(frozen=True, slots=True)
class Loss:
    """Events that one precision of a series lacks."""

    #: A key of LOSS_REASONS (aged, memory, …), or an error code of the server.
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
    #: Messages counted under a coarse pattern, such as `payment failed for … (4 words)`, because
    #: their severity had too many patterns: "LOGGER:SEVERITY" -> messages.
    coarse_messages: Mapping[str, int] = field(default_factory=dict)
    #: Messages counted as (other), because there were too many coarse patterns as well: new ones
    #: may be among these.
    other_messages: Mapping[str, int] = field(default_factory=dict)

    def lost(self) -> dict[str, dict[int, int]]:
        """Return the losses summed over all series: reason -> {precision: events}."""
        losses: dict[str, dict[int, int]] = {}
        for loss in self.losses:
            by_precision = losses.setdefault(loss.reason, {})
            by_precision[loss.precision] = by_precision.get(loss.precision, 0) + loss.events
        return losses

    def as_dict(self) -> dict[str, Any]:
        """Return everything except the names of series, in JSON's types.

        Of `coarse_messages` and `other_messages` it has the 20 logs with the most messages.
        """
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
            "coarse_messages": _largest(self.coarse_messages),
            "other_messages": _largest(self.other_messages),
        }


def _largest(messages: Mapping[str, int]) -> dict[str, int]:
    # Counter.most_common() imports a module, which a destructor at the end of a process cannot.
    return dict(sorted(messages.items(), key=lambda pair: -pair[1])[:_MOST_LOGS])
