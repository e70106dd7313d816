"""The keys of a store, and where each belongs in another one.

Three sorts of keys are copied: those of one series or logger, which go to its shard; indexes and
totals, whose members go to the shards of their names; and marks, exceptions and writers, which are
in the first shard. Watermarks, `meta:` and `cleaned:` stay: they are about the store that is left.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple, TypeVar

from redmeter.store import Store
from redmeter.store.query import escaped, scan
from redmeter.stored.families import FAMILIES, Family, owner
from redmeter.stored.keys import BARE_OWN, Keys
from redmeter.stored.shards import shard_of

T = TypeVar("T")

#: How many keys one SCAN looks at: about 0.2 ms of the server's time.
KEYS_PER_SCAN = 500

#: Type of a key to the command that writes it.
_WRITE = {"hash": "HSET", "zset": "ZADD", "list": "RPUSH", "string": "SET"}
#: Endings of the keys that date the hours of a family: strings.
_DATES = (b":start", b":pstart")


class StoredKey(NamedTuple):
    """A key of a store."""

    key: bytes
    family: Family
    #: The text after the family and a colon.
    rest: bytes
    #: Whether it has the prefix redmeter:bare:, in a store without a prefix.
    is_own: bool

    @property
    def is_index(self) -> bool:
        """Whether its members belong to different shards."""
        return bool(self.family.members)

    @property
    def type(self) -> str:
        """Its Redis type."""
        is_date = self.family.hourly and self.rest.endswith(_DATES)
        return "string" if is_date else self.family.type

    @property
    def command(self) -> str:
        """The command that writes it."""
        return _WRITE[self.type]

    def shard(self, shards: int) -> int:
        """Return the number of the shard it belongs to, in a store of so many."""
        if shards == 1 or self.family.shard == "first":
            return 0
        rest = _base(self.rest) if self.family.hourly else self.rest
        return shard_of(owner(self.family.rest, rest))

    def key_in(self, keys: Keys) -> bytes:
        """Return its name in a shard of another store."""
        head = keys.head or (BARE_OWN if self.is_own else "")
        return f"{head}{self.family.name}:".encode() + self.rest


def shard_of_member(family: Family, member: bytes, shards: int) -> int:
    """Return the shard of a member of an index, or of a field of the totals."""
    if shards == 1 or family.shard == "first":
        return 0
    return shard_of(owner(family.members, member))


def _base(rest: bytes) -> bytes:
    """Return the name behind a key of an hour: `job` of `job:pstart`, `job:last` of `job:last~`."""
    for ending in (*_DATES, b":last"):
        if rest.endswith(ending):
            rest = rest[: -len(ending)]
            break
    bare = rest.rstrip(b"~")
    marked = rest != bare and bare.endswith((*_DATES, b":last"))
    return rest[:-1] if marked else rest


def parse_key(prefix: str, key: bytes) -> StoredKey | None:
    """Parse a key; None if it is not copied.

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
    family = FAMILIES.get(name.decode(errors="replace"))
    if not colon or family is None or not family.copied or bool(rest) != bool(family.rest):
        return None
    is_date = family.hourly and rest.endswith(_DATES)
    if not prefix and is_own == family.shared and not (is_own and is_date):
        return None
    return StoredKey(key, family, rest, is_own)


def batched(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Yield items in pieces of a size, as itertools.batched() does from Python 3.12 on."""
    rest = iter(items)
    while piece := tuple(islice(rest, size)):
        yield piece


def all_keys(store: Store) -> Iterator[StoredKey]:
    """Walk all keys of a store that are copied. One that is written meanwhile may come twice."""
    prefix = store.keys.prefix
    words = "MATCH", f"{escaped(prefix)}*", "COUNT", str(KEYS_PER_SCAN)
    for server in store.link.servers():
        for page in scan(server.exchange, lambda at: ("SCAN", at, *words)):
            for key in page:
                stored = parse_key(prefix, key)
                if stored is not None:
                    yield stored
