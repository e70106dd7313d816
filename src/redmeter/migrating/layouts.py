"""Layouts: a store that gets a prefix, or loses it, while it is copied.

Without a prefix, a store shares keys with the listings of "Redis in Action". Two things differ:

- Dates of hours. With a prefix, `:start` and `:pstart` are Unix seconds. Without one, the listings
  keep the hour of the day in them, and Redmeter the Unix second in `redmeter:bare:…`. The hours are
  read as every reader reads them, and written in the form of the target.
- Times to live. The listings set none, and add to counters without renewing any. So keys without
  one get that of a new key when the store gets a prefix, and counters lose it on the way back.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from redmeter.errors import StoreError
from redmeter.migrating.contents import StoredKey
from redmeter.store import Store
from redmeter.store.servers.replies import Command, Reply
from redmeter.stored.families import Family
from redmeter.stored.histogram import STATISTICS_LIFE
from redmeter.stored.intervals import hours_of
from redmeter.stored.keys import HOUR, OTHER_SAMPLES, Keys, parse_entry
from redmeter.stored.message import MESSAGE_LIFE

#: Kind of the listings' hours and lists -> seconds that they live with a prefix.
_LIVES = {"histogram": STATISTICS_LIFE, "message": MESSAGE_LIFE}


class Date(NamedTuple):
    """A key that dates an hour, as the target has it."""

    key: bytes
    text: bytes
    #: Milliseconds; 0: no limit.
    ttl: int


def same_layout(source: Store, target: Store) -> bool:
    """Return whether both stores have a prefix, or neither."""
    return bool(source.keys.prefix) == bool(target.keys.prefix)


class Layouts:
    """How keys change between a store with a prefix and one without.

    Args:
        source, target: one of the two has a prefix.
    """

    def __init__(self, source: Store, target: Store) -> None:
        self._source = source
        self._to_prefix = bool(target.keys.prefix)

    def ttl(self, stored: StoredKey, ttl: int) -> int:
        """Return the time to live in the target, milliseconds; 0: no limit.

        Args:
            ttl: that of the source, as PTTL returns it.
        """
        if self._to_prefix and ttl < 0 and stored.family.shared:
            return 1000 * self._life(stored)
        if not self._to_prefix and stored.family.shared and stored.family.kind == "counter":
            return 0
        return max(0, ttl)

    def _life(self, stored: StoredKey) -> int:
        """Return the seconds that a new key lives with a prefix; 0: no limit."""
        if stored.family.kind != "counter":
            return _LIVES[stored.family.kind]
        entry = parse_entry(stored.rest.decode(errors="replace"))
        if entry is None:
            return 0
        width = entry[0]
        samples = self._source.config().retention.get(width, OTHER_SAMPLES)
        return (samples + 1) * width + samples * width // 8

    def date_reads(self, stored: StoredKey) -> list[Command]:
        """Return the commands that read the dates of two hours, whose replies dates() takes.

        Args:
            stored: one of the keys of these hours.
        """
        shard = self._source.shards[stored.shard(len(self._source.shards))]
        _, start, _, before, *others = _keys_of(shard.keys, stored)
        texts = [start, before, *others]
        return [*(("GET", key) for key in texts), *(("PTTL", key) for key in texts)]

    def dates(
        self, stored: StoredKey, keys: Keys, replies: Sequence[Reply], now: float
    ) -> Iterator[Date]:
        """Yield the dates of two hours as the target has them.

        Args:
            keys: those of the shard of the target.
            replies: to date_reads().
            now: Unix seconds, by the clock of the source.
        """
        texts, ttls = replies[: len(replies) // 2], replies[len(replies) // 2 :]
        hours = hours_of([None if isinstance(text, StoreError) else text for text in texts], now)
        _, start, _, before, *others = _keys_of(keys, stored)
        for hour, key, ttl in zip(hours, (start, before), ttls[:2], strict=True):
            if hour is not None:
                yield Date(key, str(hour).encode(), self.ttl(stored, ttl))
        if others and _has_hours_of_day(stored.family):
            for hour, key, ttl in zip(hours, others, ttls[:2], strict=True):
                if hour is not None:
                    yield Date(key, str(hour // HOUR % 24).encode(), self.ttl(stored, ttl))


def _keys_of(keys: Keys, stored: StoredKey) -> list[bytes]:
    parts = keys.hourly_parts(stored.family.name, "")
    return [head.encode() + stored.stem + ending.encode() for head, ending in parts]


def _has_hours_of_day(family: Family) -> bool:
    """Return whether Redmeter creates the listings' dates. One fails if `stats:` has any."""
    return family.kind == "message"
