"""Gathering: what is asked of the partitions for one command of who reads, and what replies make.

A command about a series is about one key, in the partition of its name. A command about what every
partition has, an index, goes to all of them, and _RULES say how their replies become one.

A rule is a generator: it yields commands, is sent their replies, may do so again, and returns the
reply. No I/O here: who exchanges the commands is scatter.py.
"""

import math
from collections.abc import Callable, Collection, Generator, Iterable, Sequence

from redmeter.errors import StoreError, StoreRefused, StoreUnavailable
from redmeter.partitions import SpreadKeys, partition_of
from redmeter.store.binding import rank_of
from redmeter.store.merging import Join, Range, error_of, merged_of, part_of
from redmeter.store.replies import Command, Reply, is_misplaced, pairs, scored
from redmeter.store.slots import key_of

#: Members of an index that are passed over by looking at what they hold, too: of more, their names
#: are read first.
PASSED_OVER = 1_000

Gather = Generator[Sequence[Command], Sequence[Reply], Reply]


def gather(keys: SpreadKeys, command: Command) -> Gather:
    """Ask a command of the partitions that it is about.

    Args:
        command: its key is of one partition, or stands for those of all.
    """
    if key_of(command) not in keys.spread:
        return _alone(command)
    return _RULES[str(command[0])](keys, command)


def parts_in(keys: SpreadKeys, commands: Iterable[Command]) -> set[int]:
    """Return the partitions that commands with keys of theirs are about."""
    named = (key_of(command) for command in commands)
    found = (keys.part_of_key(key) for key in named if key is not None)
    return {part for part in found if part is not None}


def of_those_there(
    keys: SpreadKeys, command: Command, asked: Sequence[Command], replies: list[Reply]
) -> list[Reply]:
    """Put nothing in the place of what those would have replied that are away.

    Args:
        command: for which the partitions were asked. One about a single key stays unanswered.
    """
    if key_of(command) not in keys.spread:
        return replies
    return [
        _NOTHING[str(one[0])](one) if isinstance(reply, StoreUnavailable) else reply
        for one, reply in zip(asked, replies, strict=True)
    ]


def _alone(command: Command) -> Gather:
    """Ask the partition that has the key."""
    (reply,) = yield [command]
    return reply


def _everywhere(keys: SpreadKeys, command: Command) -> list[Command]:
    """Return the command for each partition; its key is the first argument."""
    name, key, *rest = command
    return [(name, keys.in_part(str(key), part), *rest) for part in range(len(keys.parts))]


def _added(keys: SpreadKeys, command: Command) -> Gather:
    """ZCARD, ZLEXCOUNT: how many there are."""
    replies = yield _everywhere(keys, command)
    return error_of(replies) or sum(replies)


def _one_field(keys: SpreadKeys, command: Command) -> Gather:
    """HGET KEY NAME: what the partition of the name has."""
    _, key, name = command
    assert isinstance(name, str | bytes)
    (reply,) = yield [("HGET", keys.in_part(str(key), partition_of(name)), name)]
    return reply


def _one_member(keys: SpreadKeys, command: Command) -> Gather:
    """ZSCORE KEY PRECISION:NAME: what the partition of the name has."""
    _, key, entry = command
    assert isinstance(entry, str | bytes)
    (reply,) = yield [("ZSCORE", keys.in_part(str(key), part_of(entry)), entry)]
    return reply


def _fields(keys: SpreadKeys, command: Command) -> Gather:
    """HMGET KEY NAME …: of each name what its partition has."""
    _, key, *names = command
    by_part: dict[int, list[int]] = {}
    for number, name in enumerate(names):
        assert isinstance(name, str | bytes)
        by_part.setdefault(partition_of(name), []).append(number)
    replies = yield [
        ("HMGET", keys.in_part(str(key), part), *(names[number] for number in some))
        for part, some in by_part.items()
    ]
    if (error := error_of(replies)) is not None:
        return error
    values: list[Reply] = [None] * len(names)
    for some, reply in zip(by_part.values(), replies, strict=True):
        for number, value in zip(some, reply, strict=True):
            values[number] = value
    return values


def is_meta(keys: SpreadKeys, command: Command) -> bool:
    """Tell whether a command asks what the partitions keep."""
    return command[0] == "HGETALL" and command[1] == keys.meta


def meta_of(keys: SpreadKeys, parts: Collection[int]) -> Gather:
    """HGETALL meta: what the partition says that ranks highest: see binding.rank_of().

    Args:
        parts: the partitions that are asked. Others may keep something else until they are written
            to again, and nothing else is stored there by then.
    """
    replies = yield [("HGETALL", keys.in_part(keys.meta, part)) for part in sorted(parts)]
    told = [reply for reply in replies if not isinstance(reply, StoreError)]
    if not told:
        return replies[0]
    alike = all(reply == told[0] for reply in told)  # as they nearly always are
    return told[0] if alike else max(told, key=_rank_of_meta)


def _rank_of_meta(reply: Reply) -> tuple[int, int]:
    version = dict(pairs(reply)).get(b"version", b"")
    return rank_of(version.decode(errors="replace"))


def _size(keys: SpreadKeys, command: Command) -> Gather:
    """MEMORY USAGE KEY: of all of them."""
    _, usage, key = command
    asked = [("MEMORY", usage, keys.in_part(str(key), part)) for part in range(len(keys.parts))]
    replies = yield asked
    return error_of(replies) or sum(reply or 0 for reply in replies)


def _some(keys: SpreadKeys, command: Command) -> Gather:
    """ZRANDMEMBER KEY COUNT: some of each partition."""
    name, key, count = command
    share = math.ceil(int(count) / len(keys.parts))
    replies = yield _everywhere(keys, (name, key, str(share)))
    return error_of(replies) or [member for reply in replies for member in reply]


# --- Lists that are cut --------------------------------------------------------------------


def _newest(keys: SpreadKeys, command: Command) -> Gather:
    """ZREVRANGE KEY 0 STOP WITHSCORES: the members that score highest."""
    _, key, start, stop, with_scores = command
    assert (start, with_scores) == ("0", "WITHSCORES"), "no other is asked"

    def ask(part: int, most: int) -> Command:
        return ("ZREVRANGE", keys.in_part(str(key), part), "0", str(most - 1), "WITHSCORES")

    def read(reply: Reply) -> Sequence[tuple[tuple[float, bytes]]]:
        return [((score, member),) for member, score in scored(reply)]

    found = yield from merged_of(range(len(keys.parts)), int(stop) + 1, ask, read, newest=True)
    if isinstance(found, StoreError):
        return found
    return [part for ((score, member),) in found for part in (member, score)]


def _listed(keys: SpreadKeys, command: Command) -> Gather:
    """ZRANGEBYLEX KEY MIN MAX [LIMIT OFFSET COUNT]: members in their order."""
    _, key, *words = command
    wanted = Range(words)

    def ask(part: int, most: int) -> Command:
        return ("ZRANGEBYLEX", keys.in_part(str(key), part), *wanted.words(most))

    most = wanted.offset + wanted.count
    found = yield from merged_of(wanted.parts, most, ask, lambda reply: [(m,) for m in reply])
    if isinstance(found, StoreError):
        return found
    return [member for (member,) in found[wanted.offset :]]


def _joined(keys: SpreadKeys, command: Command) -> Gather:
    """EVAL of join.lua: members of an index, and what their keys hold. See lua/join.lua.

    Members are selected by ZRANGEBYLEX MIN MAX [LIMIT OFFSET COUNT], or by ZREVRANGE 0 STOP: then
    their scores are asked for, too.
    """
    _, text, _, index, number, *rest = command
    (selection, *words), (cut, *asks) = rest[: int(number)], rest[int(number) :]
    join = Join(keys, str(index), cut, asks)
    if selection == "ZREVRANGE":
        offset = 0
        merged = join.newest(int(words[1]) + 1)
    else:
        wanted = Range(words)
        if wanted.offset > PASSED_OVER:
            found = yield from _listed(keys, ("ZRANGEBYLEX", str(index), *words))
            if isinstance(found, StoreError):
                return [b"0", b"0", found, []] if is_misplaced(found) else found
            wanted = wanted.between(found)
        offset = wanted.offset
        merged = join.listed(wanted)
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
            members = [member for _, member, _ in end.value[offset:]]
            told = [reply for *_, own in end.value[offset:] for reply in own]
            return [*first[:2], members, told]


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
}
