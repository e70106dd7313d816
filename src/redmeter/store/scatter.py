"""Scatter: what is asked of a store on a cluster is asked of its partitions, and put together.

Who reads need not know of partitions. A command about a series is about one key, in the partition
of its name. A command about what every partition has, an index, goes to all of them, and _RULES say
how their replies become one. All commands go out together, so it is one round trip to each master.

A rule is a generator: it yields commands, is sent their replies, may do so again, and returns the
reply. Of a list that is cut (LIMIT) it asks each partition for its share and some more, names being
spread evenly, and asks again where a partition may have had more to tell.
"""

import heapq
import math
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from redmeter.errors import StoreError, StoreRefused, StoreUnavailable
from redmeter.partitions import SpreadKeys, partition_of
from redmeter.store.binding import rank_of
from redmeter.store.cluster import ClusterLink, key_of
from redmeter.store.link import Command, Link, Reply, pairs, scored
from redmeter.store.scripts import JOIN

#: While a slot moves, what concerns it is tried again after so many seconds, and so often.
MOVING_PAUSE, MOVING_TRIES = 0.02, 50
#: What is answered meanwhile: several keys of which some are here and some there; by a script, one
#: that is not here.
_MOVING = ("TRYAGAIN", "CLUSTERDOWN")
_MOVING_TEXT = "non local key"

Gather = Generator[Sequence[Command], Sequence[Reply], Reply]


class Scatter:
    """Exchanges the commands of who reads with all partitions. It has the face of link.Link.

    Args:
        keys: what stands for the keys of all partitions.
        partly: go on without the servers that are away: see Store.partly().
    """

    def __init__(self, cluster: ClusterLink, keys: SpreadKeys, *, partly: bool = False) -> None:
        self.cluster = cluster
        self._keys = keys
        self._partly = partly

    def partly(self) -> "Scatter":
        """Return one that goes on without the servers that are away."""
        return Scatter(self.cluster, self._keys, partly=True)

    @property
    def location(self) -> str:
        """Where it is, without credentials."""
        return self.cluster.location

    @property
    def owned(self) -> bool:
        """See Link."""
        return self.cluster.owned

    def exchange(
        self, commands: Sequence[Command], take: Callable[[Reply], Any] | None = None
    ) -> list[Reply]:
        """Send commands together and return one reply for each. See Link.

        Raises:
            StoreUnavailable: a node that has to be asked does not answer. Where one goes on without
                those that are away, it is the reply to what concerns them alone.
        """
        replies = self.collect(commands)
        for reply in replies:
            if isinstance(reply, StoreUnavailable) and not self._partly:
                raise reply
        return replies if take is None else [take(reply) for reply in replies]

    def collect(self, commands: Sequence[Command]) -> list[Reply]:
        """Do the same; what was not answered has the error as its reply."""
        replies: list[Reply] = [None] * len(commands)
        gathers = [self._gather(command) for command in commands]
        asked = {number: next(gather) for number, gather in enumerate(gathers)}
        while asked:
            answers = iter(self._patiently([one for some in asked.values() for one in some]))
            before, asked = asked, {}
            for number, some in before.items():
                own = [next(answers) for _ in some]
                if self._partly:
                    own = _of_those_there(some, own)
                try:
                    asked[number] = gathers[number].send(own)
                except StopIteration as end:
                    replies[number] = end.value
        return replies

    def _gather(self, command: Command) -> Gather:
        if key_of(command) not in self._keys.spread:
            return _alone(command)
        return _RULES[str(command[0])](self._keys, command)

    def _patiently(self, commands: Sequence[Command]) -> list[Reply]:
        """Exchange commands, and again those whose slot is on its way to another node."""
        replies = self.cluster.collect(commands)
        for _ in range(MOVING_TRIES):
            again = [number for number, reply in enumerate(replies) if _is_moving(reply)]
            if not again:
                break
            time.sleep(MOVING_PAUSE)
            answers = self.cluster.collect([commands[number] for number in again])
            for number, reply in zip(again, answers, strict=True):
                replies[number] = reply
        return replies

    def servers(self) -> list[Link]:
        """See ClusterLink."""
        return self.cluster.servers()

    def ask_servers(self, commands: Sequence[Command]) -> dict[str, list[Reply]]:
        """See ClusterLink."""
        return self.cluster.ask_servers(commands)

    def away(self) -> list[str]:
        """See ClusterLink."""
        return self.cluster.away()

    def lanes(self, keys: Sequence[str]) -> list[list[int]]:
        """See ClusterLink."""
        return self.cluster.lanes(keys)

    def within(self, seconds: float) -> AbstractContextManager[None]:
        """See Link."""
        return self.cluster.within(seconds)

    def recover(self) -> None:
        """See ClusterLink."""
        self.cluster.recover()

    def hurry(self, seconds: float) -> None:
        """See Link."""
        self.cluster.hurry(seconds)

    def close(self) -> None:
        """See ClusterLink."""
        self.cluster.close()


def _is_moving(reply: Reply) -> bool:
    return isinstance(reply, StoreRefused) and (
        reply.code in _MOVING or _MOVING_TEXT in reply.detail
    )


def _of_those_there(commands: Sequence[Command], replies: list[Reply]) -> list[Reply]:
    """Put nothing in the place of what those would have replied that are away, unless all are."""
    gone = [isinstance(reply, StoreUnavailable) for reply in replies]
    if all(gone):
        return replies
    return [
        _NOTHING[str(command[0])](command) if away else reply
        for command, reply, away in zip(commands, replies, gone, strict=True)
    ]


def _alone(command: Command) -> Gather:
    """Ask the partition that has the key."""
    (reply,) = yield [command]
    return reply


def _everywhere(keys: SpreadKeys, command: Command) -> list[Command]:
    """Return the command for each partition; its key is the first argument."""
    name, key, *rest = command
    return [(name, keys.in_part(str(key), part), *rest) for part in range(len(keys.parts))]


def _error(replies: Iterable[Reply]) -> StoreError | None:
    return next((reply for reply in replies if isinstance(reply, StoreError)), None)


def _added(keys: SpreadKeys, command: Command) -> Gather:
    """ZCARD, ZLEXCOUNT: how many there are."""
    replies = yield _everywhere(keys, command)
    return _error(replies) or sum(replies)


def _one_field(keys: SpreadKeys, command: Command) -> Gather:
    """HGET KEY NAME: what the partition of the name has."""
    _, key, name = command
    (reply,) = yield [("HGET", keys.in_part(str(key), partition_of(str(name))), name)]
    return reply


def _one_member(keys: SpreadKeys, command: Command) -> Gather:
    """ZSCORE KEY PRECISION:NAME: what the partition of the name has."""
    _, key, entry = command
    part = partition_of(str(entry).partition(":")[2])
    (reply,) = yield [("ZSCORE", keys.in_part(str(key), part), entry)]
    return reply


def _fields(keys: SpreadKeys, command: Command) -> Gather:
    """HMGET KEY NAME …: of each name what its partition has."""
    _, key, *names = command
    by_part: dict[int, list[int]] = {}
    for number, name in enumerate(names):
        by_part.setdefault(partition_of(str(name)), []).append(number)
    replies = yield [
        ("HMGET", keys.in_part(str(key), part), *(names[number] for number in some))
        for part, some in by_part.items()
    ]
    if (error := _error(replies)) is not None:
        return error
    values: list[Reply] = [None] * len(names)
    for some, reply in zip(by_part.values(), replies, strict=True):
        for number, value in zip(some, reply, strict=True):
            values[number] = value
    return values


def _meta(keys: SpreadKeys, command: Command) -> Gather:
    """HGETALL meta: what the partition says that ranks highest: see binding.rank_of()."""
    replies = yield _everywhere(keys, command)
    told = [reply for reply in replies if not isinstance(reply, StoreError)]
    return max(told, key=_rank_of_meta) if told else replies[0]


def _rank_of_meta(reply: Reply) -> tuple[int, int]:
    version = dict(pairs(reply)).get(b"version", b"")
    return rank_of(version.decode(errors="replace"))


def _type(keys: SpreadKeys, command: Command) -> Gather:
    """TYPE KEY: one that is not as the others are, if there is one."""
    replies = yield _everywhere(keys, command)
    if (error := _error(replies)) is not None:
        return error
    return max(replies, key=lambda kind: (kind != b"none", kind != b"zset"))


def _size(keys: SpreadKeys, command: Command) -> Gather:
    """MEMORY USAGE KEY: of all of them."""
    _, usage, key = command
    asked = [("MEMORY", usage, keys.in_part(str(key), part)) for part in range(len(keys.parts))]
    replies = yield asked
    return _error(replies) or sum(reply or 0 for reply in replies)


def _some(keys: SpreadKeys, command: Command) -> Gather:
    """ZRANDMEMBER KEY COUNT: some of each partition."""
    name, key, count = command
    share = math.ceil(int(count) / len(keys.parts))
    replies = yield _everywhere(keys, (name, key, share))
    return _error(replies) or [member for reply in replies for member in reply]


def _newest(keys: SpreadKeys, command: Command) -> Gather:
    """ZREVRANGE KEY 0 STOP WITHSCORES: the members that score highest."""
    _, _, first, stop, with_scores = command
    assert (first, with_scores) == (0, "WITHSCORES"), "no other is asked"
    replies = yield _everywhere(keys, command)
    if (error := _error(replies)) is not None:
        return error
    merged = heapq.merge(*map(scored, replies), key=lambda one: (one[1], one[0]), reverse=True)
    return [part for one in list(merged)[: int(stop) + 1] for part in one]


# --- Lists that are cut --------------------------------------------------------------------


def _share(most: int, parts: int) -> int:
    """Return how many members a partition is asked for, so that the first `most` are among them.

    Names are spread as by chance, so a share has a deviation of about its square root.
    """
    mean = most / parts
    return min(most, math.ceil(mean + 5 * math.sqrt(mean) + 5))


def _limit_of(words: Sequence[Any]) -> tuple[int, int, int]:
    """Return where offset and count of a LIMIT stand, and these; -1 where there is none."""
    if "LIMIT" not in words:
        return -1, 0, -1
    at = list(words).index("LIMIT")
    return at, int(words[at + 1]), int(words[at + 2])


def _limited(words: Sequence[Any], at: int, most: int) -> list[Any]:
    return list(words) if at < 0 else [*words[:at], "LIMIT", 0, most, *words[at + 3 :]]


def _listed(keys: SpreadKeys, command: Command) -> Gather:
    """ZRANGEBYLEX KEY MIN MAX [LIMIT OFFSET COUNT]: members in their order."""
    name, key, *words = command

    def ask(part: int, some: list[Any]) -> Command:
        return (name, keys.in_part(str(key), part), *some)

    found = yield from _merged(len(keys.parts), words, ask, lambda reply: [(m,) for m in reply])
    return found if isinstance(found, StoreError) else [member for (member,) in found]


def _merged(
    parts: int,
    words: Sequence[Any],
    ask: Callable[[int, list[Any]], Command],
    read: Callable[[Reply], Sequence[tuple[Any, ...]]],
) -> Generator[Sequence[Command], Sequence[Reply], Any]:
    """Ask all partitions for the members that some words select, and put them together.

    In their order where they are cut by a LIMIT; else those of one partition after the other.

    Args:
        ask: makes the command of a partition, of the words that select there.
        read: makes of a reply tuples that begin with a member.
    """
    at, offset, count = _limit_of(words)
    most = offset + count
    share = _share(most, parts) if at >= 0 else 0
    asked = list(range(parts))
    found: dict[int, Sequence[tuple[Any, ...]]] = {}
    while True:
        replies = yield [ask(part, _limited(words, at, share)) for part in asked]
        if (error := _error(replies)) is not None:
            return error
        found.update(zip(asked, map(read, replies), strict=True))
        if at < 0:
            return [one for some in found.values() for one in some]
        merged = list(heapq.merge(*found.values(), key=lambda one: one[0]))
        # Beyond the end of a share, its partition may have more.
        asked = [part for part, some in found.items() if len(some) == share < most]
        end = min((found[part][-1][0] for part in asked), default=None)
        if end is None or (len(merged) >= most and merged[most - 1][0] <= end):
            return merged[offset:most]
        share = most


def _joined(keys: SpreadKeys, command: Command) -> Gather:
    """EVAL of join.lua: members of an index, and what their keys hold. See lua/join.lua."""
    text, _, index, number, *rest = command[1:]
    words, (cut, *asks) = rest[: int(number)], rest[int(number) :]
    heads, at = [], 1  # where the heads of keys stand
    while at < len(asks):
        heads.append(at)
        at += int(asks[at + 2]) + 4
    size = len(heads)

    def ask(part: int, some: list[Any]) -> Command:
        own = list(asks)
        for at in heads:
            own[at] = keys.in_part(str(own[at]), part)
        args = [len(some), *some, cut, *own]
        return JOIN.command([keys.in_part(str(index), part)], args)

    def read(reply: Reply) -> Sequence[tuple[bytes, Sequence[Reply]]]:
        _, _, members, replies = reply
        return [(m, replies[n * size : (n + 1) * size]) for n, m in enumerate(members)]

    merged = _merged(len(keys.parts), words, ask, read)
    commands, first = next(merged), None
    while True:
        replies = list((yield commands))
        unknown = [n for n, reply in enumerate(replies) if _is_unknown(reply)]
        if unknown:
            again = yield [("EVAL", text, *commands[n][2:]) for n in unknown]
            for n, reply in zip(unknown, again, strict=True):
                replies[n] = reply
        for reply in replies:
            if not isinstance(reply, StoreError) and isinstance(reply[2], Exception):
                return reply  # the index is none
        first = first or max(replies, key=_time_of)
        try:
            commands = merged.send(replies)
        except StopIteration as end:
            if isinstance(end.value, StoreError):
                return end.value
            members = [member for member, _ in end.value]
            return [*first[:2], members, [reply for _, some in end.value for reply in some]]


def _time_of(reply: Reply) -> tuple[int, int]:
    """Return the time that a join tells; none where it failed."""
    return (0, 0) if isinstance(reply, StoreError) else (int(reply[0]), int(reply[1]))


def _is_unknown(reply: Reply) -> bool:
    return isinstance(reply, StoreRefused) and reply.code == "NOSCRIPT"


_RULES: dict[str, Callable[[SpreadKeys, Command], Gather]] = {
    "ZCARD": _added,
    "ZLEXCOUNT": _added,
    "ZSCORE": _one_member,
    "HGET": _one_field,
    "HMGET": _fields,
    "HGETALL": _meta,
    "TYPE": _type,
    "MEMORY": _size,
    "ZRANDMEMBER": _some,
    "ZREVRANGE": _newest,
    "ZRANGEBYLEX": _listed,
    "EVAL": _joined,
}

#: What there would be to reply where there is nothing.
_NOTHING: dict[str, Callable[[Command], Reply]] = {
    **dict.fromkeys(("ZCARD", "ZLEXCOUNT"), lambda _: 0),
    **dict.fromkeys(("HGET", "ZSCORE", "MEMORY"), lambda _: None),
    **dict.fromkeys(("ZREVRANGE", "ZRANGEBYLEX", "ZRANDMEMBER", "HGETALL"), lambda _: []),
    **dict.fromkeys(("EVAL", "EVALSHA"), lambda _: [b"0", b"0", [], []]),
    "HMGET": lambda command: [None] * (len(command) - 2),
    "TYPE": lambda _: b"none",
}
