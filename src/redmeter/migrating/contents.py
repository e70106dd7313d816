"""The keys of a store, and where each belongs in another one.

Three sorts of keys are copied: those of one series or logger, which go to its shard; indexes and
totals, whose members go to the shards of their names; and marks and writers, which are in the first
shard. Watermarks, `meta:` and `cleaned:` stay: they are about the store that is left.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple, TypeVar

from redmeter.keys import BARE_OWN, Keys
from redmeter.shards import shard_of
from redmeter.store import Store
from redmeter.store.replies import raised

T = TypeVar("T")

#: How many keys one SCAN looks at: about 0.2 ms of the server's time.
SCANNED = 500

#: Family to the command that writes it. `stats` and `common` also have strings, see kind_of().
_ENTRIES = {
    **dict.fromkeys(("count", "gauge", "hist", "moments"), "HSET"),
    **dict.fromkeys(("patterns", "steps", "distinct"), "HSET"),
    **dict.fromkeys(("stats", "common"), "ZADD"),
    "recent": "RPUSH",
}
_INDEXES = {**dict.fromkeys(("known", "gauges", "hists", "messages"), "ZADD"), "total": "HSET"}
_FIRST = {"marks": "ZADD", "writers": "ZADD", "reports": "HSET", "instances": "HSET"}
#: Families whose keys have the prefix itself before them where that is empty, as in the listings.
_OF_LISTINGS = {"count", "known", "stats", "common", "recent"}
_HOURLY = {"stats", "common"}
_STRINGS = (b":start", b":pstart")


class StoredKey(NamedTuple):
    """A key of a store."""

    key: bytes
    family: str
    #: What follows the family and a colon.
    rest: bytes
    #: Whether it has the prefix redmeter:bare:, in a store without a prefix.
    is_own: bool

    @property
    def is_index(self) -> bool:
        """Whether its members belong to different shards."""
        return self.family in _INDEXES

    @property
    def command(self) -> str:
        """The command that writes it."""
        if self.family in _HOURLY and self.rest.endswith(_STRINGS):
            return "SET"
        return _ENTRIES.get(self.family) or _INDEXES.get(self.family) or _FIRST[self.family]

    def shard(self, shards: int) -> int:
        """Return the number of the shard it belongs to, in a store of so many."""
        if shards == 1 or self.family in _FIRST:
            return 0
        if self.family in ("count", "gauge", "hist", "moments"):
            return shard_of(self.rest.partition(b":")[2])
        if self.family == "distinct":
            return shard_of(self.rest)
        base = self.rest
        if self.family in _HOURLY:
            base = _base(base)
        return shard_of(base if self.family == "stats" else base.rpartition(b":")[0])

    def key_in(self, keys: Keys) -> bytes:
        """Return its name in a shard of another store."""
        head = keys.head or (BARE_OWN if self.is_own else "")
        return f"{head}{self.family}:".encode() + self.rest


def shard_of_member(family: str, member: bytes, shards: int) -> int:
    """Return the shard of a member of an index, or of a field of the totals."""
    if shards == 1:
        return 0
    if family == "total":
        return shard_of(member)
    if family == "messages":
        return shard_of(member.rpartition(b":")[0])
    return shard_of(member.partition(b":")[2])


def _base(rest: bytes) -> bytes:
    """Return the name behind a key of an hour: `job` of `job:pstart`, `job:last` of `job:last~`."""
    for ending in (*_STRINGS, b":last"):
        if rest.endswith(ending):
            rest = rest[: -len(ending)]
            break
    bare = rest.rstrip(b"~")
    marked = rest != bare and bare.endswith((*_STRINGS, b":last"))
    return rest[:-1] if marked else rest


def parse_key(prefix: str, key: bytes) -> StoredKey | None:
    """Read a key; None if it is none that is copied.

    Args:
        prefix: of the store.
    """
    is_own = bool(prefix)
    rest = key[len(prefix.encode()) :]
    if not prefix and rest.startswith(BARE_OWN.encode()):
        is_own, rest = True, rest[len(BARE_OWN) :]
    elif prefix and rest.startswith(b"{"):
        rest = rest[rest.find(b"}") + 1 :]
    name, colon, rest = rest.partition(b":")
    family = name.decode(errors="replace")
    if not colon:
        return None
    if (
        not prefix
        and is_own == (family in _OF_LISTINGS)
        and not (is_own and family in _HOURLY and rest.endswith(_STRINGS))
    ):
        return None
    if rest:
        return StoredKey(key, family, rest, is_own) if family in _ENTRIES else None
    return StoredKey(key, family, rest, is_own) if family in _INDEXES or family in _FIRST else None


def batched(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Yield items in pieces of a size, as itertools.batched() does from Python 3.12 on."""
    rest = iter(items)
    while piece := tuple(islice(rest, size)):
        yield piece


def all_keys(store: Store) -> Iterator[StoredKey]:
    """Walk all keys of a store that are copied. One that is written meanwhile may come twice."""
    prefix = store.keys.prefix
    pattern = "".join(f"\\{c}" if c in "*?[]^\\" else c for c in prefix) + "*"
    for server in store.link.servers():
        cursor = b"0"
        while True:
            (reply,) = server.exchange([("SCAN", cursor, "MATCH", pattern, "COUNT", str(SCANNED))])
            cursor, page = raised(reply)
            for key in page:
                stored = parse_key(prefix, key)
                if stored is not None:
                    yield stored
            if int(cursor) == 0:
                break
