"""The keys of a store, and where each belongs in another one.

Three sorts of keys are copied: those of one series or logger, which go to its shard; indexes and
totals, whose members go to the shards of their names; and marks, exceptions and writers, which are
in the first shard. Watermarks, `meta:` and `cleaned:` stay: they are about the store that is left.

Without a prefix, other programs may have keys of the same names: `count:users`, `stats:today`. Only
keys whose content, or whose index, shows that they are the store's are copied or removed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

from redmeter.errors import StoreError
from redmeter.store import Store
from redmeter.store.query import escaped, scan
from redmeter.store.servers.replies import Command, Reply
from redmeter.stored.families import FAMILIES, Family, owner
from redmeter.stored.keys import BARE_OWN, Keys
from redmeter.stored.message import parse_recent
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
    def is_date(self) -> bool:
        """Whether it dates an hour of a family."""
        return self.family.hourly and self.rest.endswith(_DATES)

    @property
    def type(self) -> str:
        """Its Redis type."""
        return "string" if self.is_date else self.family.type

    @property
    def stem(self) -> bytes:
        """The text that the keys of its hours have in common: `job~` of `job~:pstart`."""
        return _stem(self.rest) if self.family.hourly else self.rest

    @property
    def command(self) -> str:
        """The command that writes it."""
        return _WRITE[self.type]

    def shard(self, shards: int) -> int:
        """Return the number of the shard it belongs to, in a store of so many."""
        if shards == 1 or self.family.shard == "first":
            return 0
        rest = _unmarked(self.stem) if self.family.hourly else self.rest
        return shard_of(owner(self.family.rest, rest))

    def key_in(self, keys: Keys) -> bytes:
        """Return its name in a shard of another store; dates: of one with the same layout."""
        own_date = self.is_date and self.is_own and not keys.head
        head = f"{BARE_OWN if own_date else ''}{keys.key(self.family.name)}"
        return head.encode() + self.rest


def shard_of_member(family: Family, member: bytes, shards: int) -> int:
    """Return the shard of a member of an index, or of a field of the totals."""
    if shards == 1 or family.shard == "first":
        return 0
    return shard_of(owner(family.members, member))


def _stem(rest: bytes) -> bytes:
    for ending in (*_DATES, b":last"):
        if rest.endswith(ending):
            return rest[: -len(ending)]
    return rest


def _unmarked(rest: bytes) -> bytes:
    """Return the name of a stem: `job:last` of `job:last~`."""
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
    stored = StoredKey(key, family, rest, is_own)
    if not prefix and is_own == family.shared and not (is_own and stored.is_date):
        return None
    return stored


def batched(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Yield items in pieces of a size, as itertools.batched() does from Python 3.12 on."""
    rest = iter(items)
    while piece := tuple(islice(rest, size)):
        yield piece


def _ignore(_: StoredKey) -> None:
    pass


def all_keys(store: Store, foreign: Callable[[StoredKey], object] = _ignore) -> Iterator[StoredKey]:
    """Walk all keys of a store that are copied. One that is written meanwhile may come twice.

    Args:
        foreign: called with each key of another program that has the name of one.
    """
    prefix = store.keys.prefix
    words = "MATCH", f"{escaped(prefix)}*", "COUNT", str(KEYS_PER_SCAN)
    for server in store.link.servers():
        for page in scan(server.exchange, lambda at: ("SCAN", at, *words)):
            parsed = [stored for key in page if (stored := parse_key(prefix, key)) is not None]
            yield from parsed if prefix else _own_keys(store, parsed, foreign)


def _own_keys(
    store: Store, page: Sequence[StoredKey], foreign: Callable[[StoredKey], object]
) -> Iterator[StoredKey]:
    """Yield the keys of a store without a prefix, without those of other programs."""
    proofs = [_proofs(store.keys, stored) for stored in page]
    commands = [command for each in proofs for command in each]
    replies = iter(store.ask(commands) if commands else ())
    for stored, asked in zip(page, proofs, strict=True):
        found = [next(replies) for _ in asked]
        if not asked or any(map(_proves, asked, found)):
            yield stored
        else:
            foreign(stored)


def _proofs(keys: Keys, stored: StoredKey) -> list[Command]:
    """Return commands, one of whose replies shows that a key is the store's; [] needs no proof."""
    family, stem = stored.family, stored.stem
    if stored.is_own or not family.rest:
        return []
    if family.kind == "counter":
        return [("ZSCORE", keys.known, stored.rest)]
    if family.kind == "histogram":
        data = keys.key(family.name).encode() + stem if stored.is_date else stored.key
        return [("ZSCORE", data, "count")]
    # Other programs write no index, but begin each message with its time.
    recent = keys.key("recent").encode() + stem
    return [("LINDEX", recent, "0"), ("ZSCORE", keys.messages, stem)]


def _proves(command: Command, reply: Reply) -> bool:
    if reply is None or isinstance(reply, StoreError):
        return False
    return command[0] != "LINDEX" or parse_recent(reply)[0] is not None
