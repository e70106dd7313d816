"""Topology: which node of a cluster has a key, and what nodes say of that.

Three parts: the slots and who serves them, redirects (MOVED and ASK), and the detection of a single
cluster node behind a URL that names one server.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from redis.crc import key_slot

from redmeter.errors import AccessDenied, StoreRefused, StoreUnavailable
from redmeter.keys import Keys
from redmeter.shards import TAGS
from redmeter.store.connection import ServerLink
from redmeter.store.replies import Command, Reply, pairs
from redmeter.store.retry import is_redirect

#: Host and port.
Address = tuple[str, int]
#: From where a node says that one is, to where that one is reached.
Remap = Callable[[Address], Address]

#: What a node calls one that has no name to be called by.
UNKNOWN_HOST = "?"
#: Commands whose key comes after a script and the number of keys.
SCRIPTS = {"EVAL", "EVALSHA"}
#: Their key comes after a word.
_WORDY = {"MEMORY", "OBJECT"}
_KEYLESS = {"TIME", "INFO", "CONFIG", "SCAN", "PING", "CLUSTER", "DBSIZE", "SCRIPT", "COMMAND"}
#: How CLUSTER NODES tells a slot that who is asked is handing over: [77->-NODE].
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


def name_of(address: Address) -> str:
    """Return how a node is called: "127.0.0.1:7003"."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def as_told(address: Address) -> Address:
    """Return where a node is that is reached where others say: the remap of most clusters."""
    return address


class SlotRange(NamedTuple):
    """A range of slots, and who has it."""

    first: int
    last: int
    master: Address
    replicas: tuple[Address, ...]


class Slots:
    """Which node has which slots."""

    def __init__(self, shards: Sequence[SlotRange]) -> None:
        self.ranges = sorted(shards)
        self._firsts = [shard.first for shard in self.ranges]
        #: Each once, in the order of their slots.
        self.masters = list(dict.fromkeys(shard.master for shard in self.ranges))
        self._master = {node: shard.master for shard in self.ranges for node in shard.replicas}
        #: Masters first.
        self.nodes = list(dict.fromkeys((*self.masters, *self._master)))

    @classmethod
    def read(cls, reply: Reply, host: str, remap: Remap = as_told) -> "Slots":
        """Read what CLUSTER SLOTS answers.

        Args:
            host: the one that was asked, which may call itself by no name.
            remap: where a node is reached, by where it is said to be.

        Raises:
            StoreUnavailable: it cannot be understood.
        """
        shards = []
        try:
            for first, last, *nodes in reply:
                at = [remap((_host_of(node) or host, int(node[1]))) for node in nodes]
                shards.append(SlotRange(int(first), int(last), at[0], tuple(at[1:])))
        except (ValueError, TypeError, IndexError, AttributeError):
            reason = "what it says of its slots cannot be understood"
            raise StoreUnavailable(ascii(host), reason) from None
        return cls(shards)

    def master_of(self, replica: Address) -> Address | None:
        """Return the master of a replica; None where it is none."""
        return self._master.get(replica)

    def range_of(self, slot: int) -> SlotRange | None:
        """Return the range that a slot lies in; None where nobody serves it."""
        at = bisect_right(self._firsts, slot) - 1
        if at < 0 or slot > self.ranges[at].last:
            return None
        return self.ranges[at]


def leaving_in(reply: bytes) -> list[int]:
    """Read of the answer to CLUSTER NODES which slots that node is handing over to another one."""
    return [int(slot) for slot in _LEAVING.findall(reply)]


def _host_of(node: Sequence[Any]) -> str:
    """Return where a node says that it is; "" where it leaves that to who found it.

    One that is to be called by a host name and has none says "?", and its address beside it.
    """
    host = (node[0] or b"").decode()
    if host == UNKNOWN_HOST:
        more = dict(pairs(node[3])) if len(node) > 3 else {}
        host = more.get(b"ip", b"").decode()
    return str(host)


# --- Redirects -------------------------------------------------------------------------------

#: The next command is for a slot that the node is but to get; readings are answered by replicas; is
#: it one, and does it hear from its master?
ASKING: Command = ("ASKING",)
READONLY: Command = ("READONLY",)
ROLE: Command = ("ROLE",)

#: What a node says of a slot: which, and who has it.
_REDIRECTED = re.compile(r"(\d+) (\S*):(\d+)")


def place_in(
    reply: StoreRefused,
    address: Address,
    known: Collection[Address],
    remap: Remap = as_told,
) -> Address | None:
    """Return where a redirect leads; None where it does not say.

    Args:
        address: of the node that said so, which may call the other by no name.
        known: nodes that may be meant by one without a name, where they are reached.
        remap: where a node is reached, by where it is said to be.
    """
    found = _REDIRECTED.search(reply.detail)
    if found is None:
        return None
    host, port = found[2] or address[0], int(found[3])
    if host == UNKNOWN_HOST:
        meant = next((other for other in known if other[1] == port), None)
        return meant or remap((address[0], port))
    return remap((host, port))


def answers(sent: Sequence[Command], replies: Sequence[Reply]) -> list[Reply]:
    """Return the replies to all but our own words; who may not say one is told that instead."""
    found, always, once = list[Reply](), None, None
    for command, reply in zip(sent, replies, strict=True):
        denied = reply if isinstance(reply, AccessDenied) else None
        if command == READONLY:
            always = denied
        elif command == ASKING:
            once = denied
        elif command == ROLE:
            pass  # see is_cut_off()
        else:  # a master that got the slot meanwhile carries it out all the same
            sent_on = is_redirect(reply)
            found.append((once or always or reply) if sent_on else reply)
            once = None
    return found


def is_cut_off(reply: Reply) -> bool:
    """Tell by its answer to ROLE whether a node is a replica that does not hear from its master.

    One that may not be asked is taken to be well.
    """
    told = reply if isinstance(reply, list) else []
    return len(told) > 3 and told[0] == b"slave" and told[3] != b"connected"


# --- A single node ---------------------------------------------------------------------------

# A node that a URL names as one server answers for its own slots as any server does. A series may
# be in another node's slots, so the store looks empty. Therefore the first reading of a link asks
# for keys of many slots in the same exchange; a cluster node refuses those of other nodes.
# Where the store has a `meta:` key, the answers do not matter. Writing is safe
# without this: see config.py.
#
# A new connection may lead to another server, so each one asks again. Not covered: the pool of a
# caller's client reconnects unnoticed, so there only a failed exchange
# makes the next one ask again.

#: Tags whose slots are asked for, evenly over all that a cluster has.
_ASKED = TAGS[::8]


def probe_commands(link: ServerLink, keys: Keys) -> list[Command]:
    """Return commands that a cluster node refuses; none once the server is known to be alone."""
    if link.standalone:
        return []
    # No precision is 0. Who may read counters may ask for these.
    return [("HGETALL", keys.count(0, f"{{{tag}}}")) for tag in _ASKED]


def refuse_cluster_node(
    link: ServerLink, keys: Keys, meta: Reply, replies: Sequence[Reply]
) -> None:
    """Raise the error of a cluster node, which refuses keys of other nodes' slots.

    Args:
        meta: the content of `meta:`. A cluster node has none.
        replies: to the node questions; empty where the exchange opened a new connection, to a
            server that has not been asked: it is asked now.

    Raises:
        StoreRefused: MOVED or ASK.
    """
    if link.standalone:
        return
    answers = [meta] if meta else replies or link.collect(probe_commands(link, keys))
    for reply in answers:
        if is_redirect(reply):
            raise reply
    # Without the rights for these keys it stays unknown; a server that is not ready is asked again.
    link.standalone = not any(
        isinstance(reply, StoreUnavailable | StoreRefused) for reply in answers
    )
