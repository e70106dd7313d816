"""Reads of indexes and other keys that every shard has a part of.

On one server each function returns a command. On a cluster it returns a `ShardedRead`, which asks
the shards and merges their replies to what one server would have replied. No I/O here.

Lists that are cut, the first members of an index, are merged by asking each shard for its share and
some more, since names are spread evenly, and once again those that may have further members.
"""

import heapq
import math
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from redmeter.errors import StoreError
from redmeter.store.query import ConfigRead, Read, ShardedRead, ShardSteps
from redmeter.store.scripts import JOIN
from redmeter.store.servers.replies import Command, Reply, is_misplaced, pairs, scored
from redmeter.stored.keys import Keys, epoch_of
from redmeter.stored.shards import ShardedKeys, shard_of

#: Members of an index that a join skips by also reading what their keys hold; to skip more, their
#: names are read first.
SKIPPED = 1_000

#: A word of a command.
Word = str | bytes
#: Commands to shards; the result is a list of tuples, or an error.
_Merging = Generator[Sequence[Command], Sequence[Reply], Any]


def size(keys: Keys, index: str) -> Read:
    """Read how many members an index has."""
    return _of_all(keys, index, lambda key: ("ZCARD", key), sum, 0)


def size_between(keys: Keys, index: str, first: Word, last: Word) -> Read:
    """Read how many members of an index are between two of them, in the words of ZLEXCOUNT."""
    return _of_all(keys, index, lambda key: ("ZLEXCOUNT", key, first, last), sum, 0)


def score(keys: Keys, index: str, entry: Word) -> Read:
    """Read the score of an entry, PRECISION:NAME; None if it is missing."""
    return _of_shard(keys, ("ZSCORE", index, entry), shard_of_entry(entry))


def has(keys: Keys, index: str, entry: str) -> Read:
    """Read whether an index has an entry, PRECISION:NAME: 1 or 0."""
    alone = f"[{entry}"
    return _of_shard(keys, ("ZLEXCOUNT", index, alone, alone), shard_of_entry(entry))


def grand_total(keys: Keys, name: Word) -> Read:
    """Read the grand total of a series; None if it has none."""
    return _of_shard(keys, ("HGET", keys.total, name), shard_of(name))


def grand_totals(keys: Keys, names: Sequence[Word]) -> Read:
    """Read the grand totals of counters, in the order of their names."""
    return fields(keys, keys.total, names)


def fields(keys: Keys, key: str, names: Sequence[Word]) -> Read:
    """Read the fields of grand totals that belong to some series, in the order of their names."""
    if not isinstance(keys, ShardedKeys):
        return ("HMGET", key, *names)

    def steps() -> ShardSteps:
        by_shard: dict[int, list[int]] = {}
        for number, name in enumerate(names):
            by_shard.setdefault(shard_of(name), []).append(number)
        replies = yield [
            ("HMGET", keys.in_shard(key, shard), *(names[number] for number in numbers))
            for shard, numbers in by_shard.items()
        ]
        if (error := _error_of(replies)) is not None:
            return error
        values: list[Reply] = [None] * len(names)
        for numbers, reply in zip(by_shard.values(), replies, strict=True):
            for number, value in zip(numbers, reply, strict=True):
                values[number] = value
        return values

    return ShardedRead(steps, lambda command: [None] * (len(command) - 2))


def memory_usage(keys: Keys, key: str) -> Read:
    """Read how many bytes a key takes; None if it is missing."""

    def merge(replies: Sequence[Reply]) -> Reply:
        return sum(reply or 0 for reply in replies)

    return _of_all(keys, key, lambda one: ("MEMORY", "USAGE", one), merge, None)


def sample(keys: Keys, index: str, count: int) -> Read:
    """Read some members of an index, chosen at random."""
    share = math.ceil(count / len(keys.in_each(index)))

    def merge(replies: Sequence[Reply]) -> Reply:
        return [member for reply in replies for member in reply]

    return _of_all(keys, index, lambda key: ("ZRANDMEMBER", key, str(share)), merge, [])


def newest_members(keys: Keys, index: str, count: int) -> Read:
    """Read the members with the highest scores, with their scores."""
    words = ("0", str(count - 1), "WITHSCORES")
    if not isinstance(keys, ShardedKeys):
        return ("ZREVRANGE", index, *words)

    def ask(shard: int, most: int) -> Command:
        return ("ZREVRANGE", keys.in_shard(index, shard), "0", str(most - 1), "WITHSCORES")

    def parse(reply: Reply) -> Sequence[tuple[tuple[float, bytes]]]:
        return [((score, member),) for member, score in scored(reply)]

    def steps() -> ShardSteps:
        members = yield from merge_members(range(len(keys.shards)), count, ask, parse, newest=True)
        if isinstance(members, StoreError):
            return members
        return [item for ((score, member),) in members for item in (member, score)]

    return ShardedRead(steps, lambda _: [])


def members(
    keys: Keys, index: str, first: Word, last: Word, *, count: int, offset: int = 0
) -> Read:
    """Read members of an index in their order.

    Args:
        first, last: where they begin and end, in the words of ZRANGEBYLEX.
        offset: how many to skip.
    """
    span = _Range(first, last, offset, count)
    if not isinstance(keys, ShardedKeys):
        return ("ZRANGEBYLEX", index, *span.words())
    return ShardedRead(lambda: _listed(keys, index, span), lambda _: [])


def config(keys: Keys) -> Command | ConfigRead:
    """Read the store's configuration: the fields of `meta:`."""
    if not isinstance(keys, ShardedKeys):
        return ("HGETALL", keys.meta)

    def steps(shards: Sequence[int]) -> ShardSteps:
        replies = yield [("HGETALL", keys.in_shard(keys.meta, shard)) for shard in shards]
        known = [reply for reply in replies if not isinstance(reply, StoreError)]
        if not known:
            return replies[0]
        alike = all(reply == known[0] for reply in known)  # as they nearly always are
        return known[0] if alike else max(known, key=_rank_of_config)

    return ConfigRead(steps, lambda _: [])


def join_members(
    keys: Keys,
    index: str,
    first: Word,
    last: Word,
    *,
    count: int,
    offset: int = 0,
    cut: int,
    asks: Sequence[Word],
    limit_us: int = 0,
) -> Read:
    """Read members of an index in their order, and what their keys hold.

    Args:
        first, last, offset: see members().
        cut, asks: see lua/join.lua.
        limit_us: microseconds of server time after which the other members are left out; 0 for
            none. A cluster reads all: each shard has a small part of them.
    """
    span = _Range(first, last, offset, count)
    if not isinstance(keys, ShardedKeys):
        selection = ["ZRANGEBYLEX", *span.words()]
        return _join_command(index, selection, cut, asks, limit_us, whole=True)
    join = _Join(keys, index, cut, asks)

    def steps() -> ShardSteps:
        listed = span
        if offset > SKIPPED:
            names = yield from _listed(keys, index, span)
            if isinstance(names, StoreError):
                return [b"0", b"0", names, []] if is_misplaced(names) else names
            listed = span.between(names)
        return (yield from _joined(join.listed(listed), listed.offset))

    return ShardedRead(steps, _no_join)


def join_newest(keys: Keys, index: str, count: int, *, cut: int, asks: Sequence[Word]) -> Read:
    """Read the members of an index with the highest scores, and what their keys hold.

    Args:
        cut, asks: see lua/join.lua.
    """
    if not isinstance(keys, ShardedKeys):
        selection = ["ZREVRANGE", "0", str(count - 1)]
        return _join_command(index, selection, cut, asks, whole=True)
    join = _Join(keys, index, cut, asks)
    return ShardedRead(lambda: _joined(join.newest(count), 0), _no_join)


def shard_of_entry(entry: Word) -> int:
    """Return the number of the shard that has an entry of an index, PRECISION:NAME."""
    whole = entry if isinstance(entry, bytes) else entry.encode(errors="surrogatepass")
    return shard_of(whole.partition(b":")[2])


# --- All shards, or one --------------------------------------------------------------------


def _of_all(
    keys: Keys,
    key: str,
    ask: Callable[[str], Command],
    merge: Callable[[Sequence[Reply]], Reply],
    missing: Reply,
) -> Read:
    """Return a read of a key that every shard has, whose replies are merged."""
    if not isinstance(keys, ShardedKeys):
        return ask(key)

    def steps() -> ShardSteps:
        replies = yield [ask(one) for one in keys.in_each(key)]
        return _error_of(replies) or merge(replies)

    return ShardedRead(steps, lambda _: missing)


def _of_shard(keys: Keys, command: Command, shard: int) -> Read:
    """Return a read of one member or field: of the shard that has it."""
    if not isinstance(keys, ShardedKeys):
        return command
    name, key, *rest = command

    def steps() -> ShardSteps:
        (reply,) = yield [(name, keys.in_shard(str(key), shard), *rest)]
        return reply

    return ShardedRead(steps, lambda _: None)


def _rank_of_config(reply: Reply) -> tuple[int, int]:
    version = dict(pairs(reply)).get(b"version", b"")
    return epoch_of(version.decode(errors="replace"))


def _error_of(replies: Iterable[Reply]) -> StoreError | None:
    """Return the first error among replies."""
    return next((reply for reply in replies if isinstance(reply, StoreError)), None)


# --- Lists that are cut --------------------------------------------------------------------


@dataclass(slots=True)
class _Range:
    """A part of an index: the members between two of them, in their order."""

    #: In the words of ZRANGEBYLEX.
    first: Word
    last: Word
    #: How many to skip, and how many to read.
    offset: int
    count: int

    def shards(self, keys: ShardedKeys) -> Sequence[int]:
        """Return the numbers of the shards that may have some."""
        first, last = _bytes(self.first), _bytes(self.last)
        if first == last and first.startswith(b"["):  # one entry
            return [shard_of_entry(first[1:])]
        return range(len(keys.shards))

    def between(self, found: Sequence[bytes]) -> "_Range":
        """Return the range that has just these members, which were found in it."""
        first, last = (b"[" + found[0], b"[" + found[-1]) if found else (b"(", b"(")
        return _Range(first, last, 0, self.count)

    def words(self, most: int | None = None) -> list[Word]:
        """Return the words of ZRANGEBYLEX; with `most` for the first so many of a shard."""
        offset, count = (self.offset, self.count) if most is None else (0, most)
        return [self.first, self.last, "LIMIT", str(offset), str(count)]


def _bytes(word: Word) -> bytes:
    return word if isinstance(word, bytes) else word.encode()


def _listed(keys: ShardedKeys, index: str, wanted: _Range) -> ShardSteps:
    def ask(shard: int, most: int) -> Command:
        return ("ZRANGEBYLEX", keys.in_shard(index, shard), *wanted.words(most))

    most = wanted.offset + wanted.count
    shards = wanted.shards(keys)
    listed = yield from merge_members(
        shards, most, ask, lambda reply: [(member,) for member in reply]
    )
    if isinstance(listed, StoreError):
        return listed
    return [member for (member,) in listed[wanted.offset :]]


def merge_members(
    shards: Sequence[int],
    most: int,
    ask: Callable[[int, int], Command],
    parse: Callable[[Reply], Sequence[tuple[Any, ...]]],
    *,
    newest: bool = False,
) -> _Merging:
    """Ask shards for the first members of each, and return the first `most` of all.

    Args:
        ask: makes the command for a shard and a number of members.
        parse: makes tuples of a reply, each beginning with what the members are ordered by.
        newest: whether this order is descending.
    """
    share, waiting = _share(most, len(shards)), list(shards)
    by_shard: dict[int, Sequence[tuple[Any, ...]]] = {}
    while True:
        replies = yield [ask(shard, share) for shard in waiting]
        if (error := _error_of(replies)) is not None:
            return error
        by_shard.update(zip(waiting, map(parse, replies), strict=True))
        merged = list(heapq.merge(*by_shard.values(), key=_first, reverse=newest))
        # Beyond the end of its share, a shard may have more.
        waiting = [shard for shard, some in by_shard.items() if len(some) == share < most]
        if len(merged) >= most:
            last = merged[most - 1][0]
            ends = {shard: by_shard[shard][-1][0] for shard in waiting}
            waiting = [
                shard for shard, end in ends.items() if (end > last if newest else end < last)
            ]
        if not waiting:
            return merged[:most]
        share = most


def _share(most: int, shards: int) -> int:
    """Return how many members to ask a shard for, so that the first `most` are among them.

    Names are spread as if by chance, so a share deviates by about its square root.
    """
    mean = most / shards
    return min(most, math.ceil(mean + 5 * math.sqrt(mean) + 5))


def _first(one: tuple[Any, ...]) -> Any:
    return one[0]


# --- Joins ---------------------------------------------------------------------------------


def _join_command(
    index: str,
    selection: Sequence[Word],
    cut: int,
    asks: Sequence[Word],
    limit_us: int = 0,
    *,
    whole: bool = False,
) -> Command:
    """Return the command of a join; `whole` where nobody could send it again with its text."""
    words = [str(len(selection)), *selection, str(cut), str(limit_us), *asks]
    return JOIN.command([index], words, whole=whole)


class _Join:
    """A join, as each shard is asked for it.

    Args:
        index: of all shards.
        cut: see lua/join.lua.
        asks: the reads of each member: COMMAND HEAD TAIL NUMBER ARGUMENT …
    """

    def __init__(self, keys: ShardedKeys, index: str, cut: int, asks: Sequence[Word]) -> None:
        self._keys, self._index, self._cut, self._asks = keys, index, cut, asks
        self._heads, at = list[int](), 1  # where the heads of keys are
        while at < len(asks):
            self._heads.append(at)
            at += int(asks[at + 2]) + 4

    def listed(self, wanted: _Range) -> _Merging:
        """Ask for the members of a range, up to its count beyond its offset."""

        def ask(shard: int, most: int) -> Command:
            return self._command(shard, ["ZRANGEBYLEX", *wanted.words(most)], [])

        def parse(reply: Reply) -> Sequence[tuple[bytes, bytes, Sequence[Reply]]]:
            return [(member, member, own) for member, own in self._members(reply, 0)]

        return merge_members(wanted.shards(self._keys), wanted.offset + wanted.count, ask, parse)

    def newest(self, most: int) -> _Merging:
        """Ask for the members with the highest scores."""

        def ask(shard: int, most: int) -> Command:
            return self._command(shard, ["ZREVRANGE", "0", str(most - 1)], ["SCORE", "", "", "0"])

        def parse(reply: Reply) -> Sequence[tuple[tuple[float, bytes], bytes, Sequence[Reply]]]:
            return [((float(own[-1]), m), m, own[:-1]) for m, own in self._members(reply, 1)]

        return merge_members(range(len(self._keys.shards)), most, ask, parse, newest=True)

    def _command(self, shard: int, selection: Sequence[Word], more: Sequence[Word]) -> Command:
        asks = list(self._asks)
        for at in self._heads:
            asks[at] = self._keys.in_shard(str(asks[at]), shard)
        index = self._keys.in_shard(self._index, shard)
        return _join_command(index, selection, self._cut, [*asks, *more])

    def _members(self, reply: Reply, more: int) -> Iterable[tuple[bytes, Sequence[Reply]]]:
        """Yield each member with the replies to its reads, and `more` others."""
        _, _, found, replies = reply
        size = len(self._heads) + more
        return ((m, replies[at * size : (at + 1) * size]) for at, m in enumerate(found))


def _joined(merging: _Merging, offset: int) -> ShardSteps:
    """Run the script of a join on shards, and merge their replies."""
    commands, first = next(merging), None
    while True:
        replies = yield commands
        for reply in replies:
            if not isinstance(reply, StoreError) and isinstance(reply[2], Exception):
                return reply  # the key is no index
        first = first or max(replies, key=_time_of)
        try:
            commands = merging.send(replies)
        except StopIteration as end:
            if isinstance(end.value, StoreError):
                return end.value
            members = end.value[offset:]
            return [*first[:2], [m for _, m, _ in members], [r for *_, own in members for r in own]]


def _no_join(command: Command) -> Reply:  # noqa: ARG001
    return [b"0", b"0", [], []]


def _time_of(reply: Reply) -> tuple[int, int]:
    """Return the time in the reply to a join; zero if it failed."""
    return (0, 0) if isinstance(reply, StoreError) else (int(reply[0]), int(reply[1]))
