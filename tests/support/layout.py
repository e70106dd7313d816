"""Layout: which nodes of a cluster hold which slots, whether they agree, and slots on their way."""

import contextlib
from collections.abc import Callable, Iterator

import redis
from redis.crc import key_slot

from support.nodes import Node, Seen
from support.waiting import eventually

#: How many slots a cluster has.
SLOTS = 16384

#: Seconds for a cluster to agree, or to choose another primary.
AGREE_TIMEOUT = 90.0

#: Slots, first and last included.
Ranges = tuple[tuple[int, int], ...]


class Layout:
    """What a cluster looks like; see clusters.py."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def masters(self) -> list[Node]:
        """Return the nodes that hold slots and can be talked to, by the others' agreement."""
        held = self.layout()
        return [node for node in self.nodes if node.reachable and node.id in held]

    def replicas(self, of: Node | None = None) -> list[Node]:
        """Return the nodes that hold no slots and can be talked to: all, or those of one."""
        chosen = [seen.id for seen in self._view() if of is None or seen.master == of.id]
        held = self.layout()
        return [n for n in self.nodes if n.reachable and n.id not in held and n.id in chosen]

    def layout(self) -> dict[str, Ranges]:
        """Return who holds which slots: node id -> ranges, as most of those that live see it."""
        return {seen.id: seen.slots for seen in self._view() if seen.slots}

    def node_of(self, slot_or_key: int | str) -> Node:
        """Return the node that holds a slot, or a key."""
        slot = slot_or_key if isinstance(slot_or_key, int) else key_slot(slot_or_key.encode())
        for node_id, ranges in self.layout().items():
            if any(low <= slot <= high for low, high in ranges):
                return next(node for node in self.nodes if node.id == node_id)
        raise LookupError(f"nobody holds slot {slot}")

    def wait_for_replicas(self) -> None:
        """Wait until replicas have what their primaries have by now, and all nodes tell of them.

        A node reports of no replica yet that was sent nothing, as far as it has heard.
        """
        have = {m.id: m.info("replication")["master_repl_offset"] for m in self.masters()}
        master_of = {seen.id: seen.master for seen in self._view() if seen.master in have}
        replicas = [node for node in self.nodes if node.reachable and node.id in master_of]

        def done() -> bool:
            told = [
                sum(len(there) - 1 for _, _, *there in node.ask("CLUSTER", "SLOTS"))
                for node in self.nodes
                if node.reachable
            ]
            return min(told) >= len(replicas) and all(
                replica.info("replication")["slave_repl_offset"] >= have[master_of[replica.id]]
                for replica in replicas
            )

        eventually(done, AGREE_TIMEOUT, "replicas have what their masters have")

    def other_than(self, *nodes: Node) -> Node:
        """Return a primary that is none of these."""
        return next(node for node in self.masters() if node not in nodes)

    def keys(self, pattern: str = "*") -> Iterator[tuple[Node, str]]:
        """Return each key that a primary holds, and which primary."""
        for node in self.masters():
            for key in node.client.scan_iter(pattern, count=1000):
                yield node, key

    def _view(self) -> list[Seen]:
        """Return the cluster as a node sees it that most others would agree with."""
        views = [node.view() for node in self.nodes if node.reachable]
        if not views:
            raise LookupError("no node can be talked to")
        told = [frozenset((seen.id, seen.slots) for seen in view if seen.slots) for view in views]
        return views[told.index(max(told, key=told.count))]

    # --- Agreement --------------------------------------------------------------------------

    def wait_ok(self, timeout: float = AGREE_TIMEOUT) -> None:
        """Wait until all nodes that can be talked to agree, and replicas have what masters have."""
        try:
            eventually(lambda: not self.discord(), timeout, f"the cluster is in order: {self}")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.discord()}") from None

    def discord(self) -> str:
        """Return what is not yet as it should be; "" where all is in order."""
        here = [node for node in self.nodes if node.reachable]
        ids = {node.id for node in here}
        views = set()
        for node in here:
            info = parse_info(node.ask("CLUSTER", "INFO"))
            if (info["cluster_state"], info["cluster_slots_ok"]) != ("ok", str(SLOTS)):
                return f"{node} says {info}"
            view = [seen for seen in node.view() if seen.slots or seen.id in ids]
            views.add(frozenset((seen.id, seen.slots, seen.master) for seen in view))
            about = node.info("replication")
            if about["role"] == "slave" and about["master_link_status"] != "up":
                return f"{node} is not in touch with its master"
        return "" if len(views) == 1 else "they disagree about who holds what"

    def wait_failover(self, lost: Node, timeout: float = AGREE_TIMEOUT) -> None:
        """Wait until others hold all slots in place of a node that cannot be talked to."""

        def taken_over() -> bool:
            view = self._view()
            held = [seen for seen in view if seen.slots]
            total = sum(high - low + 1 for seen in held for low, high in seen.slots)
            return total == SLOTS and all(seen.id != lost.id for seen in held)

        eventually(taken_over, timeout, f"another node is what {lost} was")
        self.wait_ok(timeout)

    # --- Slots on their way -----------------------------------------------------------------

    def open_slot(self, slot: int, to: Node) -> None:
        """Begin to move a slot: from now on ASK, and TRYAGAIN, are what clients may hear."""
        source = self.node_of(slot)
        to.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id)

    def move_keys(
        self, slot: int, to: Node, count: int | None = None, *, source: Node | None = None
    ) -> list[str]:
        """Move keys of a slot that was opened: all, or so many; return which."""
        source, moved = source or self.node_of(slot), list[str]()
        while count is None or len(moved) < count:
            limit = 50 if count is None else count - len(moved)
            keys = source.ask("CLUSTER", "GETKEYSINSLOT", slot, limit)
            if not keys:
                break
            self.move_key(source, to, *keys)
            moved += keys
        return moved

    def move_key(self, source: Node, to: Node, *keys: str) -> None:
        """Move single keys of a slot that was opened."""
        source.ask("MIGRATE", "127.0.0.1", to.port, "", 0, 5000, "REPLACE", "KEYS", *keys)

    def close_slot(self, slot: int, to: Node) -> None:
        """Give a slot that was opened to where its keys are: MOVED is what clients hear."""
        source = self.node_of(slot)
        for node in (to, source, *(n for n in self.masters() if n not in (to, source))):
            node.ask("CLUSTER", "SETSLOT", slot, "NODE", to.id)

    def migrate_slot(
        self, slot: int, to: Node, *, between: Callable[[str], object] = lambda _: None
    ) -> None:
        """Move a slot with its keys, in the classic way.

        Args:
            between: called after each step with what was done: "opened", "moved" for each key,
                "closed". May do without, write, or raise to leave the slot as it is.
        """
        source = self.node_of(slot)
        self.open_slot(slot, to)
        between("opened")
        while self.move_keys(slot, to, 1, source=source):
            between("moved")
        while True:  # a key may have come meanwhile
            try:
                self.close_slot(slot, to)
                break
            except redis.ResponseError as error:
                if "keys in hash slot" not in str(error):
                    raise
                self.move_keys(slot, to, source=source)
        between("closed")

    def drop_slot(self, slot: int) -> None:
        """Have nobody serve a slot; its keys stay where they are."""
        for node in self.nodes:
            with contextlib.suppress(redis.ResponseError):  # it has heard already
                node.ask("CLUSTER", "DELSLOTS", slot)

    def serve_slot(self, slot: int, node: Node) -> None:
        """Have a node serve a slot that nobody does."""
        node.ask("CLUSTER", "ADDSLOTS", slot)


def slots_in(ranges: Ranges) -> Iterator[int]:
    """Return each slot of some ranges."""
    return (slot for low, high in ranges for slot in range(low, high + 1))


def parse_info(text: str) -> dict[str, str]:
    """Read the answer of CLUSTER INFO."""
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
