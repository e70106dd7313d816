"""Fan-out: runs the reads of a step on a cluster.

Each read knows its shards and merges their replies; query.py defines reads, indexes.py makes those
of all shards. The commands of all reads are sent together, so a step of reads that need one
exchange is one round trip to each node.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any

from redmeter.errors import StoreError, StoreRefused, StoreUnavailable
from redmeter.store.query import ConfigRead, PlainRead, ShardedRead, ShardSteps
from redmeter.store.scripts import collect_scripts
from redmeter.store.servers.cluster import ClusterLink
from redmeter.store.servers.connection import ServerLink
from redmeter.store.servers.replies import Command, Link, Reply
from redmeter.store.servers.retry import is_moving, is_unanswered, retry_missing, unready_reason
from redmeter.store.servers.topology import host_port, key_of, slot_of
from redmeter.store.servers.urls import in_short
from redmeter.stored.shards import ShardedKeys

#: The error of a primary for all of its slots while others have no node, and its meaning.
_DOWN, STOPPED = "The cluster is down", "serves nothing, since the cluster is down"
#: Slots named in a message, at most.
_SHOWN = 3


class FanOut(Link):
    """Runs reads on a cluster. A `Link`, whose commands may also be reads of all shards.

    Args:
        keys: the names of the keys of all shards.
        best_effort: continue without unreachable nodes, and note the missing parts.
    """

    def __init__(
        self, cluster: ClusterLink, keys: ShardedKeys, *, best_effort: bool = False
    ) -> None:
        self.cluster = cluster
        self.location = cluster.location
        self._keys = keys
        self._best_effort = best_effort
        #: Why something was skipped -> the slots concerned, if it is about single slots.
        self._skipped: dict[str, set[int]] = {}

    def best_effort(self) -> "FanOut":
        return FanOut(self.cluster, self._keys, best_effort=True)

    def exchange(
        self, reads: Sequence[PlainRead], take: Callable[[Reply], Any] | None = None
    ) -> list[Reply]:
        """Run reads together and return one reply for each.

        Args:
            take: called with each reply; its results are returned instead.

        Raises:
            StoreUnavailable: a node that is needed is unreachable. In a best-effort reading, the
                error is the reply to reads that need that node alone.
        """
        replies = self.collect(reads)
        for reply in replies:
            if isinstance(reply, StoreUnavailable) and not self._best_effort:
                raise reply
        return replies if take is None else [take(reply) for reply in replies]

    def collect(
        self,
        reads: Sequence[PlainRead],
        *,
        spin: bool = False,  # noqa: ARG002
    ) -> list[Reply]:
        """Run reads together; an error is a reply, also StoreUnavailable."""
        replies: list[Reply] = [None] * len(reads)
        steps: dict[int, ShardSteps] = {}
        pending: dict[int, Sequence[Command]] = {}
        for number, read in enumerate(reads):
            if isinstance(read, ShardedRead):
                steps[number] = read.start()
                pending[number] = next(steps[number])
            elif not isinstance(read, ConfigRead):
                assert key_of(read) not in self._keys.spread, "see indexes.py"
                pending[number] = [read]
        shards = self._shards_of(chain.from_iterable(pending.values()))
        for number, read in enumerate(reads):
            if isinstance(read, ConfigRead):
                steps[number] = read.start(shards)
                pending[number] = next(steps[number])
        while pending:
            answers = iter(self._collect(list(chain.from_iterable(pending.values()))))
            before, pending = pending, {}
            for number, commands in before.items():
                read, direct = reads[number], [next(answers) for _ in commands]
                if isinstance(read, tuple):
                    (replies[number],) = direct
                    continue
                if self._best_effort:
                    direct = [
                        read.missing(command) if is_unanswered(reply) else reply
                        for command, reply in zip(commands, direct, strict=True)
                    ]
                try:
                    pending[number] = steps[number].send(direct)
                except StopIteration as end:
                    replies[number] = end.value
        return replies

    def _shards_of(self, commands: Iterable[Command]) -> Sequence[int]:
        """Return the numbers of the shards that commands are about; all if no command has a key."""
        keys = (key_of(command) for command in commands)
        shards = {self._keys.shard_of_key(key) for key in keys if key is not None}
        numbers = sorted(shard for shard in shards if shard is not None)
        return range(len(self._keys.shards)) if self._best_effort or not numbers else numbers

    def _collect(self, commands: Sequence[Command]) -> list[Reply]:
        """Exchange commands; in a best-effort reading, note those that cannot be answered."""
        exchange = partial(collect_scripts, partial(self.cluster.collect, whole=True))
        replies = retry_missing(exchange, commands, best_effort=self._best_effort)
        if self._best_effort:
            for number, reply in enumerate(replies):
                if is_unanswered(reply) or is_moving(reply) or unready_reason(reply):
                    replies[number] = self._skip(commands[number], reply)
        return replies

    def _skip(self, command: Command, reply: StoreError) -> StoreError:
        """Note that a command has no reply, and why; return the error that replaces it."""
        if isinstance(reply, StoreUnavailable):
            node = reply.location.partition(" ")[0]  # as ClusterLink.node() names it
            # For errors of TLS: the node runs, and no log of its own names the cause.
            named = reply.fix and "_ssl.c" in reply.reason
            why = f" ({reply.reason}; {reply.fix})" if named else ""
            self._skipped.setdefault(f"{node} does not answer{why}", set())
            return reply
        assert isinstance(reply, StoreRefused)
        key = key_of(command)
        if key is None:
            return reply
        primary = self.cluster.primary_of(key)
        if primary and reply.detail.startswith(_DOWN):
            self._skipped.setdefault(f"{host_port(primary)} {STOPPED}", set())
        elif what := unready_reason(reply):
            self._skipped.setdefault(f"{host_port(primary)} {what}" if primary else what, set())
        else:
            down = reply.code == "CLUSTERDOWN"
            why = "nobody serves" if down else "on the way to another node:"
            self._skipped.setdefault(why, set()).add(slot_of(key))
        return StoreUnavailable(in_short(self.location), reply.detail, fix=reply.fix)

    def skipped(self) -> list[str]:
        sentences = []
        for why, slots in self._skipped.items():
            shown = ", ".join(map(str, sorted(slots)[:_SHOWN]))
            more = f" … ({len(slots) - _SHOWN} more)" if len(slots) > _SHOWN else ""
            sentences.append(f"{why} slot{'s' * (len(slots) > 1)} {shown}{more}" if slots else why)
        return sentences

    def servers(self) -> list[ServerLink]:
        return self.cluster.servers()

    def ask_servers(self, commands: Sequence[Command]) -> dict[str, list[Reply]]:
        return self.cluster.ask_servers(commands)

    def unreachable(self) -> list[str]:
        return self.cluster.unreachable()

    def by_server(self, keys: Sequence[str]) -> dict[str, list[int]]:
        return self.cluster.by_server(keys)

    def retry_after(self, key: str) -> float:
        return self.cluster.retry_after(key)

    def recover(self) -> None:
        self.cluster.recover()

    def cap_timeout(self, seconds: float) -> None:
        self.cluster.cap_timeout(seconds)

    def close(self) -> None:
        self.cluster.close()
