"""FanOut: runs the reads of a step on a cluster.

Each read knows the shards that it is about and how their replies are merged: see query.py and
indexes.py. The commands of all reads are sent together, so a step of reads that need one exchange
is one round trip to each node.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import chain
from typing import Any

from redmeter.errors import StoreError, StoreRefused, StoreUnavailable
from redmeter.shards import ShardedKeys
from redmeter.store.cluster import ClusterLink, place_of
from redmeter.store.connection import ServerLink
from redmeter.store.query import ConfigRead, PlainRead, ShardedRead, ShardSteps
from redmeter.store.replies import Command, Reply
from redmeter.store.retry import is_moving, is_unanswered, retry_missing, unready_reason
from redmeter.store.scripts import collect_scripts
from redmeter.store.topology import key_of, name_of, slot_of
from redmeter.store.urls import in_short

#: What a master says of all its slots while nobody serves some of others', and what that means.
_DOWN, STOPPED = "The cluster is down", "serves nothing, since the cluster is down"
#: Slots that are named.
_SHOWN = 3


class FanOut:
    """Runs reads on a cluster. It has the methods of connection.ServerLink.

    Args:
        keys: the names of the keys of all shards.
        best_effort: continue without unreachable nodes: see Store.best_effort().
    """

    def __init__(
        self, cluster: ClusterLink, keys: ShardedKeys, *, best_effort: bool = False
    ) -> None:
        self.cluster = cluster
        self._keys = keys
        self._best_effort = best_effort
        #: Why something was left out -> the slots that it lies in, or none.
        self._skipped: dict[str, set[int]] = {}

    def best_effort(self) -> "FanOut":
        """Return one that goes on without the servers that are away."""
        return FanOut(self.cluster, self._keys, best_effort=True)

    @property
    def location(self) -> str:
        """Where it is, without credentials."""
        return self.cluster.location

    def bounded(self, seconds: float) -> AbstractContextManager[None]:  # noqa: ARG002
        """Limit nothing: the connections to the nodes are ours."""
        return nullcontext()

    def exchange(
        self, reads: Sequence[PlainRead], take: Callable[[Reply], Any] | None = None
    ) -> list[Reply]:
        """Run reads together and return one reply for each.

        Args:
            take: makes something of a reply; its results are returned instead.

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
        """Run reads together; an error is a reply, also that a node is unreachable."""
        replies: list[Reply] = [None] * len(reads)
        steps: dict[int, ShardSteps] = {}
        asked: dict[int, Sequence[Command]] = {}
        for number, read in enumerate(reads):
            if isinstance(read, ShardedRead):
                steps[number] = read.start()
                asked[number] = next(steps[number])
            elif not isinstance(read, ConfigRead):
                assert key_of(read) not in self._keys.spread, "see indexes.py"
                asked[number] = [read]
        shards = self._shards_of(chain.from_iterable(asked.values()))
        for number, read in enumerate(reads):
            if isinstance(read, ConfigRead):
                steps[number] = read.start(shards)
                asked[number] = next(steps[number])
        while asked:
            answers = iter(self._collect([one for some in asked.values() for one in some]))
            before, asked = asked, {}
            for number, commands in before.items():
                read, own = reads[number], [next(answers) for _ in commands]
                if isinstance(read, tuple):
                    (replies[number],) = own
                    continue
                if self._best_effort:
                    own = [
                        read.missing(command) if is_unanswered(reply) else reply
                        for command, reply in zip(commands, own, strict=True)
                    ]
                try:
                    asked[number] = steps[number].send(own)
                except StopIteration as end:
                    replies[number] = end.value
        return replies

    def _shards_of(self, commands: Iterable[Command]) -> Sequence[int]:
        """Return the numbers of the shards that some commands are about, or of all."""
        keys = (key_of(command) for command in commands)
        found = {self._keys.shard_of_key(key) for key in keys if key is not None} - {None}
        if self._best_effort or not found:
            return range(len(self._keys.shards))
        return sorted(number for number in found if number is not None)

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
        """Note what is missing; return the reply that stands for it."""
        if isinstance(reply, StoreUnavailable):
            self._skipped.setdefault(f"{place_of(reply)} does not answer", set())
            return reply
        assert isinstance(reply, StoreRefused)
        key = key_of(command)
        if key is None:
            return reply
        master = self.cluster.master_of(key)
        if master and reply.detail.startswith(_DOWN):
            self._skipped.setdefault(f"{name_of(master)} {STOPPED}", set())
        elif what := unready_reason(reply):
            self._skipped.setdefault(f"{name_of(master)} {what}" if master else what, set())
        else:
            down = reply.code == "CLUSTERDOWN"
            why = "nobody serves" if down else "on the way to another node:"
            self._skipped.setdefault(why, set()).add(slot_of(key))
        return StoreUnavailable(in_short(self.location), reply.detail, fix=reply.fix)

    def skipped(self) -> list[str]:
        """Return what this one went on without, as sentences: "127.0.0.1:7003 does not answer"."""
        told = []
        for why, slots in self._skipped.items():
            some = ", ".join(map(str, sorted(slots)[:_SHOWN]))
            more = f" … ({len(slots) - _SHOWN} more)" if len(slots) > _SHOWN else ""
            told.append(f"{why} slot{'s' * (len(slots) > 1)} {some}{more}" if slots else why)
        return told

    def servers(self) -> list[ServerLink]:
        """See ClusterLink."""
        return self.cluster.servers()

    def ask_servers(self, commands: Sequence[Command]) -> dict[str, list[Reply]]:
        """See ClusterLink."""
        return self.cluster.ask_servers(commands)

    def unreachable(self) -> list[str]:
        """See ClusterLink."""
        return self.cluster.unreachable()

    def by_server(self, keys: Sequence[str]) -> dict[str, list[int]]:
        """See ClusterLink."""
        return self.cluster.by_server(keys)

    def retry_after(self, key: str) -> float:
        """Return the seconds for which the node that has a key is not contacted."""
        return self.cluster.retry_after(key)

    def recover(self) -> None:
        """See ClusterLink."""
        self.cluster.recover()

    def cap_timeout(self, seconds: float) -> None:
        """See ServerLink."""
        self.cluster.cap_timeout(seconds)

    def close(self) -> None:
        """See ClusterLink."""
        self.cluster.close()
