"""The values that pass between the layers: queries and batches. Imports nothing of ours.

Named tuples: a dataclass takes four times as long to define, at every import. Results are in
redmeter.results.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple


class Selector(NamedTuple):
    """The stored series that a query reads: see redmeter.reading.selection."""

    #: A name without labels; if `exact`, the name as it is stored.
    name: str
    #: Only label sets that have these labels.
    labels: Mapping[str, str] = MappingProxyType({})
    #: Labels by whose values the result is split into groups.
    by: tuple[str, ...] = ()
    #: Only the series that is stored under this name.
    exact: bool = False


class Period(NamedTuple):
    """The intervals that a query reads."""

    #: Interval width, seconds.
    precision: int
    #: Intervals that end before or start after are left out, Unix seconds.
    since: float | None = None
    until: float | None = None
    #: No more than so many of the newest.
    intervals: int | None = None
    #: Only the newest that so many seconds hold, the current one included.
    last: float | None = None


#: Defaults of a ranking: the newest intervals, or all that are kept if fewer; and rows, at most.
#: The same for Meter, MemoryMeter, the command and the API.
RANKED_INTERVALS, RANKED_ROWS, MAX_RANKED_ROWS = 60, 10, 1_000
#: Groups of exceptions that are listed by default.
ERROR_GROUPS = 50


class Top(NamedTuple):
    """Which ranking is asked for: see Meter.top()."""

    name: str
    precision: int
    by: str | None = None
    intervals: int | None = None
    limit: int = RANKED_ROWS
    order: str = "count"
    where: Mapping[str, str] | None = None
    failing: Mapping[str, str] | None = None
    since: float | None = None
    until: float | None = None


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
    #: aged, future, denied, or the class of error: WRONGTYPE, overflow, not-a-number, ERR.
    reason: str
    #: The server's error text; "" if there is none.
    detail: str
    #: Interval start or field, as sent.
    field: str
    #: The number of events that were not stored.
    amount: int


class Outcome(NamedTuple):
    """The result of writing a batch."""

    #: False if it had been applied before, and was not applied again.
    applied: bool = True
    #: True if that is unknown: it was sent before, and its watermark is gone.
    uncertain: bool = False
    rejections: tuple[Rejection, ...] = ()
    #: (key, reply) of the operations that return a value.
    answers: tuple[tuple[str, str], ...] = ()
