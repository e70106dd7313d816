"""Slots: in which one a key lies, and which node of a cluster has it. No I/O."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from redis.crc import key_slot

from redmeter.errors import StoreUnavailable
from redmeter.store.replies import Command, Reply, pairs

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


class Shard(NamedTuple):
    """A range of slots, and who has it."""

    first: int
    last: int
    master: Address
    replicas: tuple[Address, ...]


class Slots:
    """Which node has which slots."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.shards = sorted(shards)
        self._firsts = [shard.first for shard in self.shards]
        #: Each once, in the order of their slots.
        self.masters = list(dict.fromkeys(shard.master for shard in self.shards))
        self._master = {node: shard.master for shard in self.shards for node in shard.replicas}
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
                shards.append(Shard(int(first), int(last), at[0], tuple(at[1:])))
        except (ValueError, TypeError, IndexError, AttributeError):
            reason = "what it says of its slots cannot be understood"
            raise StoreUnavailable(ascii(host), reason) from None
        return cls(shards)

    def master_of(self, replica: Address) -> Address | None:
        """Return the master of a replica; None where it is none."""
        return self._master.get(replica)

    def shard(self, slot: int) -> Shard | None:
        """Return the range that a slot lies in; None where nobody serves it."""
        at = bisect_right(self._firsts, slot) - 1
        if at < 0 or slot > self.shards[at].last:
            return None
        return self.shards[at]


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
