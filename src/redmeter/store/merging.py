"""Lists that are cut: the first members of all partitions, of an index in its order.

Each partition is asked for its share and some more, names being spread evenly; asked again is where
one may have had more to tell. No I/O here: what yields commands is driven by gathering.py.
"""

import heapq
import math
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

from redmeter.errors import StoreError
from redmeter.partitions import PARTITIONS, SpreadKeys, partition_of
from redmeter.store.replies import Command, Reply
from redmeter.store.scripts import JOIN

#: Its result is a list of tuples, or an error.
Merging = Generator[Sequence[Command], Sequence[Reply], Any]


def merged_of(
    parts: Sequence[int],
    most: int,
    ask: Callable[[int, int], Command],
    read: Callable[[Reply], Sequence[tuple[Any, ...]]],
    *,
    newest: bool = False,
) -> Merging:
    """Ask partitions for the first members of each, and return the first `most` of all.

    Args:
        ask: makes the command of a partition, for so many members.
        read: makes of a reply tuples that begin with what the members are in the order of.
        newest: whether this order is descending.
    """
    share, asked = _share(most, len(parts)), list(parts)
    found: dict[int, Sequence[tuple[Any, ...]]] = {}
    while True:
        replies = yield [ask(part, share) for part in asked]
        if (error := error_of(replies)) is not None:
            return error
        found.update(zip(asked, map(read, replies), strict=True))
        merged = list(heapq.merge(*found.values(), key=_first, reverse=newest))
        # Beyond the end of a share, its partition may have more.
        asked = [part for part, some in found.items() if len(some) == share < most]
        if len(merged) >= most:
            last = merged[most - 1][0]
            ends = {part: found[part][-1][0] for part in asked}
            asked = [part for part, end in ends.items() if (end > last if newest else end < last)]
        if not asked:
            return merged[:most]
        share = most


def _share(most: int, parts: int) -> int:
    """Return how many members a partition is asked for, so that the first `most` are among them.

    Names are spread as by chance, so a share has a deviation of about its square root.
    """
    mean = most / parts
    return min(most, math.ceil(mean + 5 * math.sqrt(mean) + 5))


def _first(one: tuple[Any, ...]) -> Any:
    return one[0]


class Range:
    """The words of ZRANGEBYLEX after its key: MIN MAX [LIMIT OFFSET COUNT].

    Without a LIMIT it has to name one entry: more are never asked for so.
    """

    def __init__(self, words: Sequence[str | bytes]) -> None:
        self.first, self.last, *limit = words
        self.offset, self.count = (int(limit[1]), int(limit[2])) if limit else (0, 1)
        first, last = map(_bytes, words[:2])
        #: The one entry that it names; b"" where it may find several.
        self.entry = first[1:] if first == last and first.startswith(b"[") else b""
        assert limit or self.entry, "all of an index is too much"

    @property
    def parts(self) -> Sequence[int]:
        """The partitions that may have some."""
        if self.entry:
            return [part_of(self.entry)]
        return range(PARTITIONS)

    def between(self, found: Sequence[bytes]) -> "Range":
        """Return the range that has just these members, which were found in it."""
        ends = (b"[" + found[0], b"[" + found[-1]) if found else ("(", "(")
        return Range([*ends, "LIMIT", "0", str(self.count)])

    def words(self, most: int) -> list[str | bytes]:
        """Return the words for the first so many."""
        return [self.first, self.last, "LIMIT", "0", str(most)]


def _bytes(word: str | bytes) -> bytes:
    return word if isinstance(word, bytes) else word.encode()


class Join:
    """A join, as it is asked of each partition.

    Args:
        index: of all partitions.
        cut: see lua/join.lua.
        asks: what is asked of each member: COMMAND HEAD TAIL NUMBER ARGUMENT …
    """

    def __init__(
        self, keys: SpreadKeys, index: str, cut: str | bytes, asks: Sequence[str | bytes]
    ) -> None:
        self._keys, self._index, self._cut, self._asks = keys, index, cut, asks
        self._heads, at = list[int](), 1  # where the heads of keys stand
        while at < len(asks):
            self._heads.append(at)
            at += int(asks[at + 2]) + 4

    def listed(self, wanted: Range) -> Merging:
        """Ask for the members of a range, up to its count beyond its offset."""

        def ask(part: int, most: int) -> Command:
            return self._command(part, ["ZRANGEBYLEX", *wanted.words(most)], [])

        def read(reply: Reply) -> Sequence[tuple[bytes, bytes, Sequence[Reply]]]:
            return [(member, member, own) for member, own in self._members(reply, 0)]

        return merged_of(wanted.parts, wanted.offset + wanted.count, ask, read)

    def newest(self, most: int) -> Merging:
        """Ask for those that score highest."""

        def ask(part: int, most: int) -> Command:
            return self._command(part, ["ZREVRANGE", "0", str(most - 1)], ["SCORE", "", "", "0"])

        def read(reply: Reply) -> Sequence[tuple[tuple[float, bytes], bytes, Sequence[Reply]]]:
            return [((float(own[-1]), m), m, own[:-1]) for m, own in self._members(reply, 1)]

        return merged_of(range(len(self._keys.parts)), most, ask, read, newest=True)

    def _command(
        self, part: int, selection: Sequence[str | bytes], more: Sequence[str | bytes]
    ) -> Command:
        asks = list(self._asks)
        for at in self._heads:
            asks[at] = self._keys.in_part(str(asks[at]), part)
        index = self._keys.in_part(self._index, part)
        return JOIN.command([index], [str(len(selection)), *selection, self._cut, *asks, *more])

    def _members(self, reply: Reply, more: int) -> Iterable[tuple[bytes, Sequence[Reply]]]:
        """Yield each member with the replies to what was asked of it, and so many more."""
        _, _, members, replies = reply
        size = len(self._heads) + more
        return ((m, replies[at * size : (at + 1) * size]) for at, m in enumerate(members))


def error_of(replies: Iterable[Reply]) -> StoreError | None:
    """Return the first error among replies."""
    return next((reply for reply in replies if isinstance(reply, StoreError)), None)


def part_of(entry: str | bytes) -> int:
    """Return the partition that has an entry of an index, PRECISION:NAME."""
    whole = entry if isinstance(entry, bytes) else entry.encode(errors="surrogatepass")
    return partition_of(whole.partition(b":")[2])
