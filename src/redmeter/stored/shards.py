"""Shards: the keys of a store that share a slot of a cluster.

On one server there is one shard. On a cluster there are 64, and a hash tag follows the prefix of
each key: `redmeter:{axl}count:60:hits`. All keys that one batch writes must share a slot. So a
series, its index entries, its grand total and its writer's watermark have the same tag; each shard
has its own indexes, totals and `meta:`.

A series is in the shard of its NAME, labels included, so that the label sets of a busy name are
spread; messages are in that of their LOGGER; marks and the reports of writers are in the first.

The tags are words whose slots are evenly spaced: that of shard i is slot 256 i + 128, or the next.
So primaries that share the slots evenly also share the shards evenly, as long as there are fewer of
them than shards. The shard of a name is part of the stored format: CRC-32 (ISO 3309, as in zlib) of
its UTF-8, modulo 64.

Pure: no I/O.
"""

from zlib import crc32

from redmeter.stored.families import FAMILIES, owner
from redmeter.stored.keys import DEFAULT_PREFIX, Keys

#: Shard -> its tag.
TAGS = (
    *("axl", "jwb", "hcu", "kec", "hpt", "kvb", "akm", "jdc", "eta", "frw", "lox", "oin"),
    *("dua", "gsw", "mnx", "fav", "ain", "box", "hrw", "kta", "hav", "cnx", "azo", "jua"),
    *("eec", "fcu", "dwb", "gqt", "ddc", "gbu", "evb", "fpt", "jvr", "ipd", "cmk", "hbe"),
    *("kwr", "hqd", "blk", "ice", "fsg", "euq", "gaf", "dgp", "grg", "dtq", "wbv", "efp"),
    *("bnh", "iaf", "kuq", "hsg", "coh", "qkn", "jtq", "irg", "fbe", "eds", "gpd", "dvr"),
    *("gce", "des", "fqd", "ewr"),
)

#: How many shards a store on a cluster has.
SHARDS = len(TAGS)
_NUMBERS = {tag: number for number, tag in enumerate(TAGS)}


def shard_of(text: str | bytes) -> int:
    """Return the number of the shard of a series or a logger on a cluster.

    Args:
        text: its name, or the UTF-8 of that.
    """
    raw = text if isinstance(text, bytes) else text.encode(errors="surrogatepass")
    return crc32(raw) % SHARDS


class ShardedKeys(Keys):
    """The names of the keys of a store on a cluster, for readers.

    The key of a series is that of its shard. An index, of which every shard has a part, has the
    name that it has on one server, `redmeter:known:`; store/indexes.py reads it from all shards.
    The same applies to beginnings of keys: `key("count")`.

    Args:
        prefix: the beginning of all keys; not empty.
    """

    def __init__(self, prefix: str = DEFAULT_PREFIX) -> None:
        self.shards = tuple(Keys(prefix, tag) for tag in TAGS)
        super().__init__(prefix)
        #: The keys of which every shard has its own: only store/indexes.py reads them.
        self.spread = frozenset(
            self.key(family.name)
            for family in FAMILIES.values()
            if not family.rest and family.shard != "first"
        )

    def _make_heads(self) -> dict[str, str]:
        first = [family.name for family in FAMILIES.values() if family.shard == "first"]
        return super()._make_heads() | {name: self.shards[0].key(name) for name in first}

    def of(self, text: str) -> Keys:
        """Return the keys of the shard of a series or a logger, by its name."""
        return self.shards[shard_of(text)]

    def in_shard(self, key: str, shard: int) -> str:
        """Return a key of which every shard has its own, or the beginning of keys, in one shard."""
        return self.shards[shard].head + key[len(self.prefix) :]

    def in_each(self, key: str) -> list[str]:
        """Return a key as it is in each shard that has it: in all of them, or in the first."""
        if self.shard_of_key(key) is not None:
            return [key]
        return [self.in_shard(key, shard) for shard in range(len(self.shards))]

    def shard_of_key(self, key: str | bytes) -> int | None:
        """Return the shard of a key; None if it does not belong to the store."""
        text = key.decode(errors="replace") if isinstance(key, bytes) else key
        return _NUMBERS.get(text[len(self.prefix) + 1 :].partition("}")[0])

    def owns(self, key: str) -> bool:
        """Return whether a key is one of this store, by its name alone."""
        shard = self.shard_of_key(key)
        return shard is not None and self.shards[shard].owns(key)

    def key(self, family: str, rest: str = "") -> str:
        """Return a key of a family, with the tag of its shard; see Keys.key()."""
        if not rest or FAMILIES[family].shard == "first":
            return super().key(family, rest)
        return self.of(owner(FAMILIES[family].rest, rest)).key(family, rest)

    def batch(self, producer: str) -> str:
        """Return a pattern of the keys of a producer's watermarks, one in each shard."""
        return f"{self.prefix}{{*}}batch:{producer}"

    def hourly_parts(self, family: str, rest: str) -> list[tuple[str, str]]:
        """Return the keys for two hours, with the tag of their shard; see Keys.hourly_parts()."""
        if not rest:
            return super().hourly_parts(family, rest)
        return self.of(owner(FAMILIES[family].rest, rest)).hourly_parts(family, rest)

    def stats(self, name: str, *, as_is: bool = False) -> tuple[str, ...]:
        """Return the keys of the statistics of a series, which are in the shard of its name."""
        return self.of(name).stats(name, as_is=as_is)
