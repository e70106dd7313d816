"""The values that pass between the layers: queries, batches, and the results that recording needs.

Named tuples where they are not results: a dataclass takes four times as long to define, at every
import. The other results are in redmeter.results. Imports nothing of ours.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import NamedTuple


class Selection(NamedTuple):
    """The stored series that a query reads, checked by queries/: see redmeter.reading.selection."""

    #: A name without labels; if `exact`, the name as it is stored.
    name: str
    #: Only label sets that have these labels.
    labels: Mapping[str, str] = MappingProxyType({})
    #: Labels by whose values the result is split into groups.
    by: tuple[str, ...] = ()
    #: Only the series that is stored under this name.
    exact: bool = False


class Window(NamedTuple):
    """The intervals that a query reads: [since, until), in whole intervals that are kept.

    queries/ makes and checks it; reading/samples.py turns it into intervals when a store's time and
    retention are known.
    """

    #: Interval width, seconds.
    precision: int
    #: Unix seconds, included; rounded down to the start of an interval. None: the oldest one kept.
    since: float | None = None
    #: Unix seconds, excluded; rounded up to the end of an interval. None: that of the current one.
    until: float | None = None
    #: Only the newest that so many seconds hold, the current one included; excludes the others.
    last: float | None = None


#: Defaults of a ranking: the newest intervals, or all that are kept if fewer; and rows, at most.
#: The same for Meter, MemoryMeter, the command and the API.
RANKED_INTERVALS, RANKED_ROWS, MAX_RANKED_ROWS = 60, 10, 1_000
#: Groups of exceptions that are listed by default.
EXCEPTION_GROUPS = 50


class Top(NamedTuple):
    """Which ranking is asked for: see Meter.top()."""

    #: With `by`, a name without labels; without, a pattern.
    name: str
    window: Window
    by: str | None = None
    limit: int = RANKED_ROWS
    order: str = "count"
    where: Mapping[str, str] | None = None
    failing: Mapping[str, str] | None = None


class Operation(NamedTuple):
    """One step of a batch, executed by a script of store/lua/operations/."""

    code: str
    keys: tuple[str, ...]
    args: tuple[str, ...]
    #: Returns, for each key, the events that are lost if the server rejects it: (interval start or
    #: field, number of events).
    at_stake: Callable[[], Sequence[tuple[str, int]]]


#: The steps of a batch, in order.
Operations = tuple[Operation, ...]


class Batch(NamedTuple):
    """The immutable unit of writing. Applying it is idempotent, so it can be sent again."""

    #: The id of the writer: 128 random bits, in hexadecimal.
    producer: str
    #: Sequence number of the producer: 1, 2, 3 …
    number: int
    operations: Operations


class Rejection(NamedTuple):
    """A part of a batch that the server rejected."""

    key: str
    #: aged, future, store-full, denied, or the class of error: WRONGTYPE, overflow, not-a-number,
    #: ERR.
    reason: str
    #: The server's error text; "" if there is none.
    detail: str
    #: Interval start or field, as sent.
    field: str
    #: The number of events that were not stored.
    amount: int


class Gap(NamedTuple):
    """What a server has lost of that which it had acknowledged to a producer."""

    #: The number of the producer's last batch that it has; None if it knows none.
    found: int | None
    #: The birth of the store, see store/config.py.
    born: str


class LostEvents(NamedTuple):
    """Events that a server has acknowledged and lost, and that are not sent again."""

    #: "rolled-back", "emptied" or "uncertain".
    reason: str
    events: int
    #: Those of which it is unknown whether they are lost.
    uncertain: int
    #: When they were acknowledged, Unix seconds.
    since: float
    until: float

    def __str__(self) -> str:
        """Return a sentence for people."""
        if not self.events and not self.uncertain:
            return "the store was emptied: all events acknowledged to this process are sent again"
        begin, end = (
            datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
            for at in (self.since, self.until)
        )
        cause = {
            "rolled-back": "the server went back to an older state",
            "emptied": "the store was emptied",
        }.get(self.reason, "the watermark of this process is gone")
        return (
            f"{cause}: of the events acknowledged from {begin} to {end} UTC, {self.events:,} are "
            f"lost and {self.uncertain:,} may be"
        )


class Outcome(NamedTuple):
    """The result of writing a batch."""

    #: False if it had been applied before, and was not applied again.
    applied: bool = True
    #: True if that is unknown: it was sent before, and its watermark is gone.
    uncertain: bool = False
    rejections: tuple[Rejection, ...] = ()
    #: (key, reply) of the operations that return a value.
    answers: tuple[tuple[str, str], ...] = ()
    #: The batch was not applied because batches before it are missing.
    gap: Gap | None = None
    #: Earlier synchronous writes that the server had acknowledged and has lost.
    lost: tuple[LostEvents, ...] = ()
    #: Why a synchronous write is not confirmed to be durable: an Unconfirmed; None otherwise.
    unconfirmed: Exception | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment that explains a change in the metrics: a deploy, for instance."""

    #: Unix seconds.
    time: float
    #: Its text, at most 100 characters.
    label: str
