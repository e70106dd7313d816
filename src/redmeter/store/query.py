"""Queries: how a reading asks a store, in as few round trips as it takes.

A query is a generator. It yields a step, which is a list of reads that are sent together. It
receives the view (the server's time and the store's configuration) and one reply per read. It may
yield further steps, and returns its answer. `run_query()` runs one query. `together()` makes one
query of several and sends their steps together, so a page with twelve panels takes as many round
trips as its longest panel.

A read is a command about one key, which goes to the node that has the key; or the same with a
parser of its reply, a `ParsedRead`; or a `ShardedRead`: a read of data that is spread over all
shards of a cluster, such as an index. On one server there is one shard, and every read is a
command. indexes.py makes the reads of indexes.

Queries only read, so a step may be repeated: after a lost connection, and as a whole after the
store's configuration has changed. Writes, which must not be repeated, are in shard.py.
"""

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from redmeter.store.servers.replies import Command, Reply, raised
from redmeter.stored.families import SERIES_KINDS
from redmeter.stored.keys import Kept, Keys, Retention
from redmeter.stored.shards import ShardedKeys

T = TypeVar("T")


class View(NamedTuple):
    """The server's time and the store's configuration, by which a reading is understood."""

    #: The server's clock, Unix seconds.
    now: float
    #: The retention of counters and gauges.
    retention: Retention
    histograms: Retention
    #: Version of meta:, "" where nothing has been written yet.
    version: str

    def retention_of(self, kind: str) -> Retention:
        """Return the retention of a kind of series."""
        return self.histograms if SERIES_KINDS[kind].retention == "histograms" else self.retention


#: The commands to single shards that one `ShardedRead` takes, step by step. It returns the merged
#: reply, or an error.
ShardSteps = Generator[Sequence[Command], Sequence[Reply], Reply]


@dataclass(frozen=True, slots=True)
class ShardedRead:
    """A read of data that every shard has a part of."""

    #: Starts the read.
    start: Callable[[], ShardSteps]
    #: In a best-effort reading: what counts as the reply to a command whose shard is unreachable.
    missing: Callable[[Command], Reply]


@dataclass(frozen=True, slots=True)
class ConfigRead:
    """A read of the store's configuration, from the shards that the other reads of the step use.

    Other shards may have an older configuration until they are written to again, and that does not
    matter to these reads.
    """

    #: Starts the read, for some shards.
    start: Callable[[Sequence[int]], ShardSteps]
    missing: Callable[[Command], Reply]


@dataclass(frozen=True, slots=True)
class ParsedRead:
    """A command whose reply is parsed as it arrives, while the server sends the next ones.

    A large reading then holds one raw reply at a time, and takes a third less time.
    """

    command: Command
    #: Makes the value that the query receives instead of the reply, which may be an error.
    parse: Callable[[View, Reply], Any]


Read = Command | ShardedRead | ParsedRead
#: What the fan-out runs: reads without their parsers, and the read of the configuration.
PlainRead = Command | ShardedRead | ConfigRead

#: What a query receives for a step.
Answered = tuple[View, Sequence[Reply]]
Query = Generator[Sequence[Read], Answered, T]


class StoreReader(Protocol):
    """A store, as queries use it. See Store."""

    @property
    def seen(self) -> Kept:
        """The retention at the last read."""

    def read(self, reads: Sequence[Read] = ()) -> tuple[View, list[Any]]:
        """Run the reads of a query's first step."""

    def ask(self, reads: Sequence[Read], view: View | None = None) -> list[Any]:
        """Run the reads of a later step."""


#: How often a query is started anew because the store's configuration has changed.
_TRIES = 5


def run_query(store: StoreReader, make: Callable[[Kept], Query[T]]) -> tuple[View, T]:
    """Run a query, and return the view of its first step and its answer.

    Args:
        make: makes the query for a configuration of the store. It is called again if the
            configuration turns out to be another one.

    Raises:
        StoreError: the server is unreachable or refuses.
    """
    for _ in range(_TRIES):
        kept = store.seen
        query = make(kept)
        try:
            view, replies = store.read(next(query))
            if store.seen == kept:
                while True:
                    replies = store.ask(query.send((view, replies)), view)
        except StopIteration as end:
            return view, end.value
        finally:
            query.close()
    raise AssertionError("the store's configuration changes with every step")


def in_parts(parts: Sequence[Sequence[Read]]) -> Query[list[Sequence[Reply]]]:
    """Send reads in one step, or in none if there are none; return the replies of each part."""
    reads = [read for part in parts for read in part]
    answers: Iterator[Reply] = iter(())
    if reads:
        _, replies = yield reads
        answers = iter(replies)
    return [[next(answers) for _ in part] for part in parts]


def together(queries: Sequence[Query[T]]) -> Query[list[T]]:
    """Make one query of several; its answer is the list of their answers."""
    answers: dict[int, T] = {}
    waiting = dict(enumerate(queries))
    steps: dict[int, Sequence[Read]] = {}

    def go(number: int, sent: Answered | None) -> None:
        try:
            steps[number] = next(waiting[number]) if sent is None else waiting[number].send(sent)
        except StopIteration as end:
            del waiting[number]
            answers[number] = end.value

    try:
        for number in list(waiting):
            go(number, None)
        while steps:
            reads = [read for step in steps.values() for read in step]
            view, replies = yield reads
            before, steps, at = steps, {}, 0
            for number, step in before.items():
                go(number, (view, replies[at : at + len(step)]))
                at += len(step)
    finally:
        for query in waiting.values():
            query.close()
    return [answers[number] for number in sorted(answers)]


# --- Scans ---------------------------------------------------------------------------------------
# Keys, members of a sorted set, or fields of a hash, in pages that do not block the server. A hash
# that every shard has a part of is scanned on all shards at once.

#: Fields that the server looks at in one step: about 1 ms.
SCAN_FIELDS = 5_000


def scan(
    exchange: Callable[[Sequence[Command]], Sequence[Reply]], command: Callable[[bytes], Command]
) -> Iterator[Sequence[bytes]]:
    """Yield the pages of a scan. An element that is there all the time comes at least once.

    Args:
        exchange: sends commands to a server.
        command: makes the command for a cursor.

    Raises:
        StoreError: the server is unreachable or refuses.
    """
    cursor = b"0"
    while True:
        (reply,) = exchange([command(cursor)])
        cursor, page = raised(reply)
        yield page
        if int(cursor) == 0:
            return


def escaped(text: str) -> str:
    """Return a text as a pattern that matches this text only."""
    return re.sub(r"([\\*?\[\]])", r"\\\1", text)


def scan_fields(keys: Keys, key: str, pattern: str) -> Query[dict[bytes, bytes]]:
    """Read the fields of a hash whose names match a pattern: field -> value.

    A field that is there for the whole time of the scan is found. Takes a round trip for each
    SCAN_FIELDS of a server's fields.

    Args:
        key: one that every shard has on a cluster, such as `total:`.
        pattern: a glob as Redis matches it; see escaped().

    Raises:
        StoreError: the server is unreachable or refuses.
    """

    def command(key: str, cursor: bytes) -> Command:
        return ("HSCAN", key, cursor, "MATCH", pattern, "COUNT", str(SCAN_FIELDS))

    fields_found: dict[bytes, bytes] = {}
    if isinstance(keys, ShardedKeys):
        _, replies = yield [ShardedRead(lambda: _on_shards(keys, key, command), _nothing)]
        fields = raised(replies[0])[1]
        return dict(zip(fields[::2], fields[1::2], strict=True))
    cursor = b"0"
    while True:
        _, (reply,) = yield [command(key, cursor)]
        cursor, fields = raised(reply)
        fields_found.update(zip(fields[::2], fields[1::2], strict=True))
        if int(cursor) == 0:
            return fields_found


def _on_shards(keys: ShardedKeys, key: str, command: Callable[[str, bytes], Command]) -> ShardSteps:
    cursors = dict.fromkeys(keys.in_each(key), b"0")
    fields_found: list[bytes] = []
    while cursors:
        replies: Sequence[Reply] = yield [command(key, at) for key, at in cursors.items()]
        before, cursors = cursors, {}
        for key, reply in zip(before, replies, strict=True):
            if isinstance(reply, Exception):
                return reply
            cursor, fields = reply
            fields_found += fields
            if int(cursor) != 0:
                cursors[key] = cursor
    return [b"0", fields_found]


def _nothing(command: Command) -> Reply:  # noqa: ARG001
    return [b"0", []]
