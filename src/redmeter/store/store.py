"""Store: all shards of a store, and reading in one round trip.

Each reading sends its commands together with two more: the server's time and the store's
configuration, by which the replies are understood. Writes go to one shard, in shard.py.
"""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, cast

from redmeter.clock import SYSTEM, UTC, Clock, Zone
from redmeter.errors import RedmeterError
from redmeter.store import fork_guard, indexes, producers
from redmeter.store.config import ShardConfigs, WantedConfig, read_meta
from redmeter.store.fan_out import FanOut
from redmeter.store.query import ConfigRead, ParsedRead, Read, View
from redmeter.store.scripts import run_steps
from redmeter.store.servers.cluster import ClusterLink
from redmeter.store.servers.replies import Command, Link, Reply, pairs, raised
from redmeter.store.servers.retry import retry_read
from redmeter.store.servers.topology import probe_commands, refuse_cluster_node
from redmeter.store.shard import Shard
from redmeter.stored.keys import DEFAULT_HISTOGRAMS, HISTOGRAMS, Kept, Keys, Retention
from redmeter.stored.shards import ShardedKeys, shard_of


class _Arrival:
    """Parses the replies of a reading as they arrive: first those that make the view.

    `view_of` makes the view of the `count` replies that come before those to the reads. An error of
    ours waits until all replies are there, so that the connection stays in order.
    """

    def __init__(
        self, count: int, reads: Sequence[Read], view_of: Callable[[Sequence[Reply]], View]
    ) -> None:
        self._count, self._reads, self._view_of = count, iter(reads), view_of
        self._first: list[Reply] = []
        self._view: View | None = None
        self._error: RedmeterError | None = None

    def take(self, reply: Reply) -> Any:
        try:
            if len(self._first) < self._count:
                self._first.append(reply)
                return reply
            read = next(self._reads)
            if not isinstance(read, ParsedRead) or self._error is not None:
                return reply
            if self._view is None:
                self._view = self._view_of(self._first)
            return read.parse(self._view, reply)
        except RedmeterError as error:
            self._error = self._error or error
            return None

    def check(self) -> None:
        """Raise the first error of a parser."""
        if self._error is not None:
            raise self._error


class Store(ShardConfigs):
    """One store: on one server, or spread over a cluster.

    Args:
        link: exchanges commands with it.
        prefix: the beginning of its keys.
        retention: the retention of counters and gauges if the store is new.
        histograms: the retention of histograms if the store is new.
        configured: whether each of them was configured for this process; then a warning is logged
            if the store has another one.
        timeout: seconds for which a synchronous write is tried.
        clock: the producer's time.
        zone: the local time that its readers compare by.
        reader: makes the store for reads, on replicas; None: this store.
    """

    def __init__(
        self,
        link: Link,
        *,
        prefix: str,
        retention: Retention,
        histograms: Retention | None = None,
        configured: tuple[bool, bool] = (False, False),
        timeout: float,
        clock: Clock = SYSTEM,
        zone: Zone = UTC,
        reader: "Callable[[], Store] | None" = None,
    ) -> None:
        fork_guard.load_before_forks()
        of_histograms = Retention(histograms or DEFAULT_HISTOGRAMS, of=HISTOGRAMS)
        config = WantedConfig(retention, of_histograms, configured)
        #: The names of its keys, for readers.
        self.keys: Keys
        #: Exchanges reads.
        self.link: Link
        if isinstance(link, ClusterLink):
            spread = ShardedKeys(prefix)
            self.keys, self.link, each = spread, FanOut(link, spread), spread.shards
        else:
            self.keys, self.link = Keys(prefix), link
            each = (self.keys,)
        shards = tuple(
            Shard(
                link,
                keys,
                wanted=config,
                shards=len(each),
                timeout=timeout,
                clock=clock,
                sync_config=self.sync_config if len(each) > 1 else None,
            )
            for keys in each
        )
        super().__init__(shards, config, clock)
        #: Apply batches.
        self.shards: tuple[Shard, ...] = shards
        #: Whose time of day readers compare.
        self.zone = zone
        #: Seconds for which a synchronous write is tried.
        self.timeout = timeout
        self._seen: Kept | None = None
        #: The store whose best-effort view this is.
        self._origin: Store | None = None
        self._make_reader = reader
        self._reader: Store | None = None
        self._primary: Store | None = None

    def __repr__(self) -> str:
        return f"<Store {self.location} prefix={self.keys.prefix!r}>"

    @property
    def location(self) -> str:
        """The address, without credentials."""
        return self.link.location

    @property
    def reader(self) -> "Store":
        """The store for reads: this one, or the same store on replicas if `read_from` is set.

        Raises:
            InvalidSetting: there are no replicas to read from.
        """
        if self._make_reader is None:
            return self
        if self._reader is None:
            self._reader = self._make_reader()
            self._reader._primary = self
        return self._reader

    @property
    def primary(self) -> "Store":
        """The store that is written to: this one, or the one that this is the reader of."""
        return self._primary or self._origin or self

    def close(self) -> None:
        """Close the connections, unless they are the caller's."""
        self.link.close()
        if self._reader is not None:
            self._reader.close()

    def shard_number(self, text: str) -> int:
        """Return the number of the shard that has a series or a logger."""
        return shard_of(text) if len(self.shards) > 1 else 0

    def shard(self, text: str) -> Shard:
        """Return the shard that has a series or a logger; for "", that of marks and reports."""
        return self.shards[self.shard_number(text)] if text else self.shards[0]

    def by_server(self) -> dict[str, list[int]]:
        """Return the numbers of the shards that each server has."""
        return self.link.by_server([shard.keys.meta for shard in self.shards])

    # Reading

    def read(self, reads: Sequence[Read] = ()) -> tuple[View, list[Any]]:
        """Run reads, with the server's time and the store's configuration, in one step.

        Returns:
            The view, and a reply for each read, parsed where the read has a parser; a server's
            error is a reply.

        Raises:
            StoreError: the server is unreachable, refuses, or holds another format.
            RedmeterError: what a parser raises.
        """
        first = [("TIME",), indexes.config(self.keys), *self._node_questions()]
        replies = self._exchange(first, reads, lambda found: self._view(found[0], found[1]))
        view = self._view(replies[0], replies[1])
        self._refuse_node(*replies[1 : len(first)])
        return view, replies[len(first) :]

    def ask(self, reads: Sequence[Read], view: View | None = None) -> list[Any]:
        """Run reads, and once more if the connection breaks; return a reply for each.

        Args:
            view: of the query's first step, for reads with a parser.

        Raises:
            StoreError, RedmeterError: see read().
        """
        questions = self._node_questions()
        first = [indexes.config(self.keys), *questions] if questions else []

        def view_of(_: Sequence[Reply]) -> View:
            assert view is not None, "a read with a parser needs the view of the first step"
            return view

        replies = self._exchange(first, reads, view_of)
        if first:
            self._refuse_node(*replies[: len(first)])
        return replies[len(first) :]

    def _node_questions(self) -> list[Command]:
        return probe_commands(self.shards[0].link, self.shards[0].keys)

    def _refuse_node(self, meta: Reply, *replies: Reply) -> None:
        refuse_cluster_node(self.shards[0].link, self.shards[0].keys, meta, replies)

    def _exchange(
        self,
        first: Sequence[Command | ConfigRead],
        reads: Sequence[Read],
        view_of: Callable[[Sequence[Reply]], View],
    ) -> list[Any]:
        """Run reads behind others; return the replies to both, parsed where a read has a parser."""
        streams = any(isinstance(read, ParsedRead) for read in reads)
        plain = [read.command if isinstance(read, ParsedRead) else read for read in reads]
        # On one server there is one shard, and all of these are commands.
        commands = cast("Sequence[Command]", [*first, *plain])
        if not streams:
            return retry_read(self.link.recover, lambda: self.link.exchange(commands))

        def exchange() -> tuple[_Arrival, list[Any]]:
            arrival = _Arrival(len(first), reads, view_of)
            return arrival, self.link.exchange(commands, arrival.take)

        arrival, values = retry_read(self.link.recover, exchange)
        arrival.check()
        return values

    def _view(self, time: Reply, meta: Reply) -> View:
        seconds, microseconds = raised(time)
        meta_fields = read_meta(dict(pairs(raised(meta))), len(self.shards))
        kept = meta_fields or self._wanted.config
        self._seen = kept.kept
        if self._origin is not None:
            self._origin._seen = self._seen
        now = int(seconds) + int(microseconds) / 1e6
        return View(now, kept.retention, kept.histograms, kept.version)

    @property
    def seen(self) -> Kept:
        """The retention at the last read; before the first, as far as known."""
        return self._seen or self.kept

    def best_effort(self) -> "Store":
        """Return the same store for reads that continue without unreachable servers.

        Data on such servers is left out; skipped() returns the missing parts.
        """
        link = self.link.best_effort()
        if link is self.link:
            return self
        store = copy(self)
        store.link, store._origin = link, self
        return store

    def skipped(self) -> list[str]:
        """Return what best-effort reads left out, as sentences: "HOST:PORT does not answer"."""
        return self.link.skipped()

    # Writers

    def publish(self, producer: str, report: str, *, instance: bool, ended: bool) -> int | None:
        """Store the report of a producer, and assign an instance number if it needs one.

        Safe to repeat, and repeated once where the first exchange broke.

        Args:
            producer: 128 random bits, in hexadecimal.
            report: JSON, see docs/stored-format.md.
            instance: it needs a number; a producer that has one keeps it.
            ended: this is its last report, and its number may be assigned again.

        Returns:
            The number it holds: 0, 1, 2 …; None where it holds none.

        Raises:
            StoreError: the server cannot be reached, refuses, or holds another format.
        """
        first = self.shards[0]
        if first.config is None:
            run_steps(first.link.collect, first.load_config())
        options = {"instance": instance, "ended": ended}
        return retry_read(
            first.link.recover,
            lambda: producers.publish(first.link, first.keys, producer, report, **options),
        )
