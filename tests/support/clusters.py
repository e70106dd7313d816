"""Clusters of one's own: three primaries and three replicas on loopback, from one binary.

The rule of `servers.py` holds: every node is a child of the test process, and ends with it.

A cluster of its own network (`network=True`) is reached through forwarded ports alone, so that a
node can be cut off while it lives: see `network.py`. Others are reached directly, which is faster.

`node.ask()` goes over the node's unix socket, which nothing cuts off.
"""

from collections.abc import Callable, Mapping
from typing import Self

import redis

from support.binaries import Unavailable
from support.fleet import missing, settings_of
from support.layout import AGREE_TIMEOUT, SLOTS, Layout, Ranges, slots_in
from support.lifetimes import Started
from support.network import CLIENT, Network, member_address
from support.nodes import Node
from support.servers import Server
from support.waiting import SLOW_ROOM, eventually, room_in_slices

#: Milliseconds without an answer until a node is held to be gone.
NODE_TIMEOUT_MS = 1500

CONFIG: dict[str, str | int] = {
    "cluster-enabled": "yes",
    "cluster-config-file": "nodes.conf",
    "cluster-node-timeout": NODE_TIMEOUT_MS,
    "cluster-require-full-coverage": "no",
    # Replicas of a primary that nobody wrote to for long may take its place as well.
    "cluster-replica-validity-factor": 0,
    "repl-diskless-sync": "yes",
    "repl-diskless-sync-delay": 0,
    "repl-timeout": 5,
}

#: What INFO says while a node writes down what it has so far.
AOF_UNDER_WAY = ("aof_rewrite_in_progress", "aof_rewrite_scheduled")


class Cluster(Started, Layout):
    """A cluster of one's own; a context manager that starts and ends it.

    A third of the slots belongs to each of `nodes[:3]` at first, `nodes[3:]` are their replicas in
    the same order.

    Args:
        name: a key of `binaries.BINARIES`.
        network: whether it has a network of its own, for `cut_off` and `lose_replies`.
        config: settings of all nodes, next to `CONFIG`.
        own: returns those that a node has for itself, asked once for each.
        masters: how many; each has one replica.

    Raises:
        Unavailable: there is no such binary here.
    """

    def __init__(
        self,
        name: str = "valkey-9.1",
        *,
        network: bool = False,
        config: Mapping[str, str | int] | None = None,
        own: Callable[[], Mapping[str, str | int]] = dict,
        masters: int = 3,
    ) -> None:
        super().__init__()
        self.name = name
        self.size = masters
        self._config = {**CONFIG, **(config or {})}
        self._own = own
        self._with_network = network
        self._network: Network | None = None
        self._settings: list[dict[str, str]] = []
        self._layout: dict[str, Ranges] = {}
        self._spoilt = False

    def __repr__(self) -> str:
        return f"<Cluster {self.name} at {self.url}>"

    # --- Life -------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start all nodes and have them be one cluster."""
        if self._with_network:
            self._network = Network()
        for number in range(2 * self.size):
            self.nodes.append(self._started(number))
        first, masters = self.nodes[0], self.nodes[: self.size]
        for i, node in enumerate(masters):
            low, high = SLOTS * i // self.size, SLOTS * (i + 1) // self.size
            node.ask("CLUSTER", "ADDSLOTS", *range(low, high))
        for node in self.nodes:
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", node.number + 1)
        for node in self.nodes[1:]:
            first.ask("CLUSTER", "MEET", "127.0.0.1", node.port, node.bus_port)
        eventually(self._all_have_met, AGREE_TIMEOUT, "all nodes know each other")
        for node, master in zip(self.nodes[self.size :], masters, strict=True):
            node.ask("CLUSTER", "REPLICATE", master.id)
        self.wait_ok()
        self._layout = self.layout()
        self._settings = [settings_of(node.client) for node in self.nodes]
        return self

    def _started(self, number: int) -> Node:
        node = Node(Server(self.name, config={**self._config, **self._own()}), number)
        if self._network is None:
            node.server.start()
            node.port, node.bus_port = node.server.port, node.server.port + 10_000
            return node
        server, here = node.server, member_address(number)
        node.port = self._network.forward(here, lambda: (here, server.port))
        node.bus_port = self._network.forward(here, lambda: (here, server.port + 10_000))
        server.config += ["--bind", here, "--cluster-announce-ip", "127.0.0.1"]
        server.config += ["--cluster-announce-port", str(node.port)]
        server.config += ["--cluster-announce-bus-port", str(node.bus_port)]
        if not self.name.startswith("redis-6"):  # there it connects from where it listens
            server.config += ["--bind-source-addr", here]
        server.start()
        return node

    def _all_have_met(self) -> bool:
        ids = {node.id for node in self.nodes}
        return all(
            {seen.id for seen in node.view() if "handshake" not in seen.flags} == ids
            for node in self.nodes
        )

    def close(self) -> None:
        """End all nodes."""
        for node in self.nodes:
            node.close()
        if self._network is not None:
            self._network.close()

    def renew(self) -> bool:
        """Make it as new after a test; False where only another cluster will do."""
        if self._spoilt or not all(node.server.running for node in self.nodes):
            return False
        try:
            for node, as_new in zip(self.nodes, self._settings, strict=True):
                self.resume(node)
                self.heal(node)
                now = settings_of(node.client)
                for setting in as_new.keys() & now.keys():
                    if now[setting] != as_new[setting]:
                        node.ask("CONFIG", "SET", setting, as_new[setting])
            if self.layout().keys() != self._layout.keys():  # others are primaries now
                return False
            for node in self.nodes[: self.size]:
                for command in ("FLUSHALL", "SCRIPT FLUSH", "CONFIG RESETSTAT"):
                    node.ask(*command.split())
            self._give_back()
            self.wait_ok()
            return self.layout() == self._layout
        except (redis.RedisError, AssertionError, KeyError):  # KeyError: others are primaries now
            return False

    def _give_back(self) -> None:
        """Move slots, which are empty, to where they were at first."""
        if any(seen.moving for node in self.nodes for seen in node.view()):
            raise redis.RedisError("a slot was left half way")
        at_first = {n.id: set(slots_in(self._layout[n.id])) for n in self.nodes[: self.size]}
        for node_id, ranges in self.layout().items():
            for slot in set(slots_in(ranges)) - at_first[node_id]:
                home = next(node for node in self.nodes if slot in at_first.get(node.id, ()))
                self.migrate_slot(slot, home)

    @property
    def url(self) -> str:
        """The address that a Meter takes, with all nodes."""
        return "redis+cluster://" + ",".join(node.address for node in self.nodes)

    # --- Nodes in trouble -------------------------------------------------------------------

    def kill(self, node: Node) -> None:
        """End a node by SIGKILL."""
        node.server.kill()

    def start_again(self, node: Node) -> None:
        """Start a node that was killed: with its place in the cluster, without its data."""
        node.server.start()

    def keep_data(self, node: Node) -> None:
        """Have a node find all it acknowledged when it is started again."""
        node.server.config += ["--appendonly", "yes", "--appendfsync", "always"]
        node.ask("CONFIG", "SET", "appendfsync", "always")
        node.ask("CONFIG", "SET", "appendonly", "yes")
        eventually(
            lambda: not any(node.info("persistence")[what] for what in AOF_UNDER_WAY),
            AGREE_TIMEOUT,
            "all it has is on disk",
        )
        self._spoilt = True

    def pause(self, node: Node) -> None:
        """Stop a node in its tracks (SIGSTOP)."""
        node.server.pause()

    def resume(self, node: Node) -> None:
        """Let a paused node go on."""
        node.server.resume()

    def fill(self, node: Node) -> None:
        """Have a node lack memory: it refuses all that would take more."""
        node.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
        node.ask("CONFIG", "SET", "maxmemory", "1")

    def unfill(self, node: Node) -> None:
        """Let a full node have as much memory as it wants."""
        node.ask("CONFIG", "SET", "maxmemory", "0")

    def keep_masters(self) -> None:
        """Have no replica take the place of its primary by itself."""
        for node in self.nodes:
            node.ask("CONFIG", "SET", "cluster-replica-no-failover", "yes")

    def cut_off(self, node: Node, *, clients: bool = True) -> None:
        """Have no other node reach this one, nor this one any other, while it lives.

        Args:
            clients: whether clients reach it no more either.
        """
        network, here = self._own_network(), member_address(node.number)
        for other in self.nodes:
            if other is not node:
                network.cut(here, member_address(other.number))
        if clients:
            network.cut(here, CLIENT)
        node.cut_off = True

    def heal(self, node: Node) -> None:
        """Let a node that was cut off be reached, and reach, again."""
        if node.cut_off:
            network, here = self._own_network(), member_address(node.number)
            for other in (CLIENT, *(member_address(one.number) for one in self.nodes)):
                network.heal(here, other)
            node.cut_off = False

    def lose_replies(self, node: Node, times: int = 1) -> None:
        """Close a client's connection in place of the next answers of a node."""
        self._own_network().lose_replies(member_address(node.number), times)

    def losses_left(self, node: Node) -> int:
        """Return how many answers of a node are yet to be lost."""
        return self._own_network().losses_left(member_address(node.number))

    def _own_network(self) -> Network:
        if self._network is None:
            raise RuntimeError("a Cluster(network=True) can do that")
        return self._network


class Clusters:
    """The clusters of one test worker, each made when first asked for, or when one was spoilt."""

    def __init__(self) -> None:
        self._clusters: dict[tuple[str, bool], Cluster] = {}

    def get(self, name: str, *, network: bool = False) -> Cluster:
        """Return a cluster as new; skip (in CI: fail) where there is no such server."""
        cluster = self._clusters.pop((name, network), None)
        if cluster is not None and not cluster.renew():
            cluster.close()
            cluster = None
        if cluster is None:
            try:
                cluster = Cluster(name, network=network).__enter__()
            except Unavailable as error:
                missing(error)
        self._clusters[name, network] = cluster
        room_in_slices(SLOW_ROOM)  # it may have taken seconds
        return cluster

    def close(self) -> None:
        """End them all."""
        for cluster in self._clusters.values():
            cluster.close()
