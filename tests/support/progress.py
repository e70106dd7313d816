"""Progress: whether the shards of a store on a cluster get what is recorded, node by node."""

import contextlib
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial

import redis
from redis.crc import key_slot

from redmeter.stored.shards import TAGS, shard_of
from support.clusters import Cluster
from support.history import Ledger, Stored
from support.nodes import Node
from support.waiting import eventually

#: Seconds until a shard that is in order has to have more.
TIMEOUT = 60.0


def slot_of(shard: int) -> int:
    """Return the slot in which a shard lies."""
    return key_slot(f"{{{TAGS[shard]}}}".encode())


def shards_on(cluster: Cluster, node: Node) -> frozenset[int]:
    """Return the numbers of the shards that a node has."""
    ranges = cluster.layout().get(node.id, ())
    return frozenset(
        shard
        for shard in range(len(TAGS))
        if any(low <= slot_of(shard) <= high for low, high in ranges)
    )


def whereabouts(cluster: Cluster, shard: int) -> tuple[int, Node, Node]:
    """Return the slot of a shard, the node that has it, and one that has not."""
    slot = slot_of(shard)
    node = cluster.node_of(slot)
    return slot, node, cluster.other_than(node)


def totals(cluster: Cluster) -> dict[int, int]:
    """Return what was counted and is stored, by shard, as far as primaries answer."""
    found: dict[int, int] = {}
    for master in cluster.masters():
        numbers = sorted(shards_on(cluster, master))
        pipe = master.client.pipeline(transaction=False)
        for number in numbers:
            pipe.hvals(f"redmeter:{{{TAGS[number]}}}total:")
        with contextlib.suppress(redis.ConnectionError):
            for number, values in zip(numbers, pipe.execute(raise_on_error=False), strict=True):
                if not isinstance(values, redis.RedisError):
                    found[number] = sum(int(value) for value in values)
    return found


def goes_on(cluster: Cluster, but: AbstractSet[int] = frozenset(), times: int = 2) -> None:
    """Wait until each shard has more than now, but for some; and again, so many times."""
    expected = set(range(len(TAGS))) - but
    for _ in range(times):
        before: dict[int, int] = {}
        waiting = set(expected)

        def more(before: dict[int, int], waiting: set[int]) -> bool:
            for number, total in totals(cluster).items():
                if total > before.setdefault(number, total):
                    waiting.discard(number)
            return not waiting

        try:
            eventually(partial(more, before, waiting), TIMEOUT)
        except AssertionError:
            raise AssertionError(f"no more within {TIMEOUT} s in {sorted(waiting)}") from None


def replicated(cluster: Cluster, master: Node) -> dict[str, int]:
    """Return what a primary has of each series, once its replica has it as well."""
    stored = Stored.read([master.client])
    offset = int(master.info("replication")["master_repl_offset"])
    (replica,) = cluster.replicas(of=master)

    def caught_up() -> bool:
        return int(replica.info("replication")["slave_repl_offset"]) >= offset

    eventually(caught_up, TIMEOUT, f"{replica} has what {master} has")
    return {series: stored.amount(series) for _, series in stored.slices}


def at_risk(
    ledger: Ledger, shards: AbstractSet[int], safe: Mapping[str, int], until: float
) -> Callable[[str], int]:
    """Return what a failover may cost: what was not replicated yet and may have been stored.

    Args:
        shards: those of the primary that was lost.
        safe: what was replicated of each of its series: see replicated().
        until: from when on it cannot have taken anything any more, monotonic.
    """
    recorded = ledger.between(0.0, until)
    return lambda series: (
        recorded[series] - safe.get(series, 0) if shard_of(series) in shards else 0
    )


def errors(node: Node, code: str) -> int:
    """Return how often a node has answered with an error since its cluster was as new."""
    found = node.info("errorstats").get(f"errorstat_{code}", {"count": 0})
    return int(found["count"])


def read(cluster: Cluster) -> Stored:
    """Return all that the primaries have."""
    return Stored.read(master.client for master in cluster.masters())
