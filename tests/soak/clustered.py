"""A cluster whose nodes die, stand still and hand over, and whose slots move."""

import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from redmeter.stored.shards import TAGS
from soak.place import HANDED_OVER, Hold, Place
from support.clusters import Cluster
from support.nodes import Node
from support.progress import shards_on, slot_of


class Clustered(Place):
    """A cluster of three primaries, each with a replica. Args: see OneServer."""

    lossy = frozenset({"killed", "stopped for long"})

    def __init__(self, _: Path, chance: random.Random, hold: Hold, name: str) -> None:
        super().__init__(chance, hold)
        # Long enough that no busy machine takes a node for dead.
        self._cluster = Cluster(name, config={"cluster-node-timeout": 3000})

    @property
    def url(self) -> str:
        return self._cluster.url

    def start(self) -> None:
        self._cluster.start()

    def close(self) -> None:
        self._cluster.close()

    def masters(self) -> frozenset[str]:
        return frozenset(self._cluster.layout())

    def clients(self) -> list[Any]:
        return [node.client for node in self._cluster.masters()]

    def own_faults(self) -> Mapping[str, Callable[[], None]]:
        return {
            "killed": self._kill,
            "stopped for long": self._stop_for_long,
            "stopped": self._stop,
            "replica killed": self._kill_replica,
            HANDED_OVER: self._hand_over,
            "slots moved": self._move,
            "full": self._fill,
        }

    def _master(self) -> Node:
        node = self._chance.choice(self._cluster.masters())
        self.touched = shards_on(self._cluster, node)
        return node

    def _ask(self, *words: str) -> None:
        self._master().ask(*words)

    def _kill(self) -> None:
        node = self._master()
        self._cluster.kill(node)
        self._cluster.wait_failover(node)
        self._start_again(node, 2)

    def _kill_replica(self) -> None:
        node = self._chance.choice(self._cluster.replicas())
        self._cluster.kill(node)
        self._start_again(node, 3)

    def _start_again(self, node: Node, most: float) -> None:
        self._wait(0, most)
        self._cluster.start_again(node)
        self._cluster.wait_ok()

    def _stop_for_long(self) -> None:
        node = self._master()
        self._cluster.pause(node)
        self._cluster.wait_failover(node)
        self._resume(node, 0, 1)

    def _stop(self) -> None:
        node = self._master()
        self._cluster.pause(node)
        self._resume(node, 0.3, 1.5)

    def _resume(self, node: Node, least: float, most: float) -> None:
        self._wait(least, most)
        self._cluster.resume(node)
        self._cluster.wait_ok()

    def _hand_over(self) -> None:
        """Have a replica take its primary's place in good order, with all that it has."""
        master = self._master()
        self._chance.choice(self._cluster.replicas(master)).ask("CLUSTER", "FAILOVER")
        before = time.monotonic()
        while master.id in self._cluster.layout() and time.monotonic() < before + 10:
            self._hold(0.1)
        self._cluster.wait_ok()

    def _move(self) -> None:
        for shard in self._chance.sample(range(len(TAGS)), 8):
            slot = slot_of(shard)
            self._cluster.migrate_slot(slot, self._cluster.other_than(self._cluster.node_of(slot)))
            self._cluster.wait_ok()

    def _fill(self) -> None:
        node = self._master()
        self._cluster.fill(node)
        self._wait(0.5, 3)
        self._cluster.unfill(node)
