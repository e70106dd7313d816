"""Topology: which node of a cluster has a key.

Three parts: the slots and who serves them, redirects (MOVED and ASK), and the detection of a single
cluster node behind a URL that names one server.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from redis.crc import key_slot

from redmeter.errors import AccessDenied, StoreRefused, StoreUnavailable
from redmeter.store.servers.connection import ServerLink
from redmeter.store.servers.replies import Command, Link, Reply, pairs
from redmeter.store.servers.retry import is_redirect
from redmeter.stored.keys import Keys
from redmeter.stored.shards import TAGS

#: Host and port.
Address = tuple[str, int]
#: Maps the announced address of a node to the address at which it is reached.
Remap = Callable[[Address], Address]

#: The host in a node's reply for a node without a name.
UNKNOWN_HOST = "?"
#: Commands whose key comes after a script and the number of keys.
SCRIPTS = {"EVAL", "EVALSHA"}
#: Their key comes after a word.
_WORDY = {"MEMORY", "OBJECT"}
_KEYLESS = {"TIME", "INFO", "CONFIG", "SCAN", "PING", "CLUSTER", "DBSIZE", "SCRIPT", "COMMAND"}
#: A slot that the node is migrating, in its reply to CLUSTER NODES: [77->-NODE].
_LEAVING = re.compile(rb"\[(\d+)->-")


def key_of(command: Command) -> str | bytes | None:
    """Return the key that a command is about; None where it is about none."""
    name = command[0]
    if name in _KEYLESS:
        return None
    key = command[3 if name in SCRIPTS else 2 if name in _WORDY else 1]
    assert isinstance(key, str | bytes)
    return key


def slot_of(key: str | bytes) -> int:
    """Return the slot of a key: that of its hash tag, where it has one."""
    return int(key_slot(key if isinstance(key, bytes) else key.encode(errors="surrogatepass")))


def host_port(address: Address) -> str:
    """Return how a node is called: "127.0.0.1:7003"."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def as_announced(address: Address) -> Address:
    """Return an address unchanged: the remap of most clusters."""
    return address


class SlotRange(NamedTuple):
    """A range of slots, and the nodes that have it."""

    first: int
    last: int
    primary: Address
    replicas: tuple[Address, ...]


class Slots:
    """Which node has which slots."""

    def __init__(self, ranges: Sequence[SlotRange]) -> None:
        self.ranges = sorted(ranges)
        self._firsts = [slots.first for slots in self.ranges]
        #: Each primary once, in the order of their slots.
        self.primaries = list(dict.fromkeys(slots.primary for slots in self.ranges))
        self._primary = {node: slots.primary for slots in self.ranges for node in slots.replicas}
        #: All nodes, primaries first.
        self.nodes = list(dict.fromkeys((*self.primaries, *self._primary)))

    @classmethod
    def read(cls, reply: Reply, host: str, remap: Remap = as_announced) -> "Slots":
        """Parse the reply to CLUSTER SLOTS.

        Args:
            host: the node that replied; its reply may leave out its own name.
            remap: maps announced addresses to reachable ones.

        Raises:
            StoreUnavailable: the reply has another form.
        """
        ranges = []
        try:
            for first, last, *nodes in reply:
                at = [remap((_host_of(node) or host, int(node[1]))) for node in nodes]
                ranges.append(SlotRange(int(first), int(last), at[0], tuple(at[1:])))
        except (ValueError, TypeError, IndexError, AttributeError):
            reason = "its reply to CLUSTER SLOTS cannot be parsed"
            raise StoreUnavailable(ascii(host), reason) from None
        return cls(ranges)

    def primary_of(self, replica: Address) -> Address | None:
        """Return the primary of a replica; None if the node is no replica."""
        return self._primary.get(replica)

    def range_of(self, slot: int) -> SlotRange | None:
        """Return the range that contains a slot; None if no node serves it."""
        at = bisect_right(self._firsts, slot) - 1
        if at < 0 or slot > self.ranges[at].last:
            return None
        return self.ranges[at]


def leaving_in(reply: bytes) -> list[int]:
    """Return the slots that a node is migrating to another, from its reply to CLUSTER NODES."""
    return [int(slot) for slot in _LEAVING.findall(reply)]


def _host_of(node: Sequence[Any]) -> str:
    """Return the host of a node in CLUSTER SLOTS; "" if it is the host that was asked.

    A node that is configured to announce a host name but has none announces "?" and, in the
    metadata, its IP address.
    """
    host = (node[0] or b"").decode()
    if host == UNKNOWN_HOST:
        more = dict(pairs(node[3])) if len(node) > 3 else {}
        host = more.get(b"ip", b"").decode()
    return str(host)


# --- Redirects -------------------------------------------------------------------------------

#: The next command is about a slot that the node is importing.
ASKING: Command = ("ASKING",)
#: This connection only reads, so a replica answers it.
READONLY: Command = ("READONLY",)
#: Returns whether the node is a replica that is connected to its primary.
ROLE: Command = ("ROLE",)

#: The detail of MOVED and ASK: slot, host and port.
_REDIRECTED = re.compile(r"(\d+) (\S*):(\d+)")


def place_in(
    reply: StoreRefused,
    address: Address,
    known: Collection[Address],
    remap: Remap = as_announced,
) -> Address | None:
    """Return the address of the node that a redirect names; None if it names none.

    Args:
        address: the node that replied; the redirect may leave out the host if it is the same.
        known: reachable addresses of nodes, among which a node without a name is looked up by port.
        remap: maps announced addresses to reachable ones.
    """
    match = _REDIRECTED.search(reply.detail)
    if match is None:
        return None
    host, port = match[2] or address[0], int(match[3])
    if host == UNKNOWN_HOST:
        same_port = next((node for node in known if node[1] == port), None)
        return same_port or remap((address[0], port))
    return remap((host, port))


def own_replies(sent: Sequence[Command], replies: Sequence[Reply]) -> list[Reply]:
    """Return the replies to the caller's commands, without those to ASKING, READONLY and ROLE.

    If the user may not send ASKING or READONLY, that error replaces the resulting redirect.
    """
    result, always, once = list[Reply](), None, None
    for command, reply in zip(sent, replies, strict=True):
        denied = reply if isinstance(reply, AccessDenied) else None
        if command == READONLY:
            always = denied
        elif command == ASKING:
            once = denied
        elif command == ROLE:
            pass  # is_cut_off() reads it
        else:  # without a redirect the node executed the command, so nothing was missing
            result.append((once or always or reply) if is_redirect(reply) else reply)
            once = None
    return result


def is_cut_off(reply: Reply) -> bool:
    """Return whether a node is a replica that has lost its primary, by its reply to ROLE.

    A node that denies ROLE counts as connected.
    """
    fields = reply if isinstance(reply, list) else []
    return len(fields) > 3 and fields[0] == b"slave" and fields[3] != b"connected"


# --- A single node ---------------------------------------------------------------------------

# A cluster node that a URL names as a single server answers for its own slots like any server. A
# series may be in another node's slots, so the store looks empty. So the first reading of a link
# asks for keys of many slots in the same exchange; a cluster node refuses most. Where the store has
# a `meta:` key, the replies do not matter. Writes are safe without this: each script names keys of
# several slots, and a cluster node refuses that.
#
# A new connection may lead to another server, so each one probes again. Not covered: the pool of a
# caller's client reconnects unnoticed, so there only a failed exchange leads to another probe.

#: Tags whose slots are probed, spread evenly over all slots.
_PROBED = TAGS[::8]


def probe_commands(link: Link, keys: Keys) -> list[Command]:
    """Return commands that a cluster node refuses; none for a cluster or a known standalone."""
    if not isinstance(link, ServerLink) or link.standalone:
        return []
    # No precision is 0. A user that may read counters may send these.
    return [("HGETALL", keys.count(0, f"{{{tag}}}")) for tag in _PROBED]


def refuse_cluster_node(link: Link, keys: Keys, meta: Reply, replies: Sequence[Reply]) -> None:
    """Raise the error of a cluster node that a URL names as a single server.

    Args:
        meta: the content of `meta:`. A cluster node has none.
        replies: the replies to probe_commands(); empty if the exchange opened a new connection.
            Then the server is probed now.

    Raises:
        StoreRefused: MOVED or ASK.
    """
    if not isinstance(link, ServerLink) or link.standalone:
        return
    probes = [meta] if meta else replies or link.collect(probe_commands(link, keys))
    for reply in probes:
        if is_redirect(reply):
            raise reply
    # A user without the right to these keys never finds out; a server that is not ready is probed
    # again.
    link.standalone = not any(
        isinstance(reply, StoreUnavailable | StoreRefused) for reply in probes
    )
