"""Shards: which keys of a store lie together, in one slot of a cluster.

On one server there is one shard. On a cluster there are 64, and a hash tag stands behind the
prefix of each key: `redmeter:{axl}count:60:hits`. What one batch writes has to share a slot, so a
series, its entries in the indexes, its grand total and the watermark of who writes it have one
tag; each shard has all of these keys, and its own `meta:`.

What lies where: a series in the shard of its NAME, labels and all, so that the label sets of a
busy name are spread; messages in that of their LOGGER; marks, and what writers tell of themselves,
in the first.

The tags are words whose slots lie evenly: the one of shard i is slot 256 i + 128, or the next.
So masters that share the slots evenly share the shards evenly, as long as there are fewer of
them than shards. Which shard a name is of is part of the stored format: CRC-32 (ISO 3309,
as in zlib) of its UTF-8, modulo 64.

Pure: no I/O.
"""

from zlib import crc32

from redmeter.keys import DEFAULT_PREFIX, Keys

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
    """Return the number of the shard in which a series, or a logger, lies on a cluster.

    Args:
        text: its name, or the UTF-8 of that.
    """
    raw = text if isinstance(text, bytes) else text.encode(errors="surrogatepass")
    return crc32(raw) % SHARDS


class ShardedKeys(Keys):
    """The names of the keys of a store on a cluster, for readers.

    The key of a series is that of the series' shard. An index, which every shard has a part of, has
    the name that it has on one server, `redmeter:known:`; store/indexes.py reads it from all
    shards. The same goes for heads, the beginnings of keys: `count_of("")`.

    Args:
        prefix: what all keys begin with; not empty.
    """

    def __init__(self, prefix: str = DEFAULT_PREFIX) -> None:
        super().__init__(prefix)
        self.shards = tuple(Keys(prefix, tag) for tag in TAGS)
        #: The keys that every shard has: read by store/indexes.py alone.
        self.spread = frozenset(
            (self.known, self.gauges, self.hists, self.messages, self.total, self.meta)
        )
        first = self.shards[0]
        self.marks, self.cleaned = first.marks, first.cleaned
        self.writers, self.reports = first.writers, first.reports
        self.instances = first.instances

    def of(self, text: str) -> Keys:
        """Return the keys of the shard in which a series, or a logger, lies."""
        return self.shards[shard_of(text)]

    def in_shard(self, key: str, shard: int) -> str:
        """Return a key or a head that stands for those of all shards, as it is in one."""
        return self.shards[shard].head + key[len(self.prefix) :]

    def in_each(self, key: str) -> list[str]:
        """See Keys."""
        return [self.in_shard(key, shard) for shard in range(len(self.shards))]

    def shard_of_key(self, key: str | bytes) -> int | None:
        """Return the shard that a key lies in; None where it is none of these."""
        text = key.decode(errors="replace") if isinstance(key, bytes) else key
        return _NUMBERS.get(text[len(self.prefix) + 1 :].partition("}")[0])

    def count(self, precision: int, name: str) -> str:
        """See Keys."""
        return self.of(name).count(precision, name)

    def count_of(self, entry: str) -> str:
        """See Keys."""
        return self._of_entry(entry).count_of(entry) if entry else super().count_of("")

    def gauge(self, precision: int, name: str) -> str:
        """See Keys."""
        return self.of(name).gauge(precision, name)

    def gauge_of(self, entry: str) -> str:
        """See Keys."""
        return self._of_entry(entry).gauge_of(entry) if entry else super().gauge_of("")

    def hist(self, precision: int, name: str) -> str:
        """See Keys."""
        return self.of(name).hist(precision, name)

    def hist_of(self, entry: str) -> str:
        """See Keys."""
        return self._of_entry(entry).hist_of(entry) if entry else super().hist_of("")

    def moments(self, precision: int, name: str) -> str:
        """See Keys."""
        return self.of(name).moments(precision, name)

    def moments_of(self, entry: str) -> str:
        """See Keys."""
        return self._of_entry(entry).moments_of(entry) if entry else super().moments_of("")

    def _of_entry(self, entry: str) -> Keys:
        return self.of(entry.partition(":")[2])

    def batch(self, producer: str) -> str:
        """Return a pattern of the keys of a producer's watermarks, one in each shard."""
        return f"{self.prefix}{{*}}batch:{producer}"

    def recent(self, logger: str, severity: str) -> str:
        """See Keys."""
        return self.of(logger).recent(logger, severity)

    def common_parts(self, entry: str) -> list[tuple[str, str]]:
        """See Keys."""
        if not entry:
            return super().common_parts("")
        return self.of(entry.rpartition(":")[0]).common_parts(entry)

    def stats(self, name: str) -> tuple[str, ...]:
        """See Keys."""
        return self.of(name).stats(name)

    def stats_as_is(self, name: str) -> tuple[str, ...]:
        """See Keys."""
        return self.of(name).stats_as_is(name)

    def patterns(self, logger: str, severity: str) -> str:
        """See Keys."""
        return self.of(logger).patterns(logger, severity)

    def distinct(self, logger: str) -> str:
        """See Keys."""
        return self.of(logger).distinct(logger)

    def steps_of(self, entry: str) -> str:
        """See Keys."""
        if not entry:
            return super().steps_of("")
        return self.of(entry.rpartition(":")[0]).steps_of(entry)
