"""What was taken is read: all at once where it is little, else in steps."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from redmeter.errors import StoreRefused
from redmeter.store.replies import Command, Reply, pairs, raised, scored

#: Items of a unit that are read at once, at most; and of one step.
AT_ONCE, STEP = 1_000, 500

Ask = Callable[[Sequence[Command]], list[Reply]]


class Parts(NamedTuple):
    """What the keys of a unit hold."""

    #: See Family.content(). What is of another type is empty.
    held: list[Any]
    #: How many keys are of another type.
    strange: int = 0


_WHOLE: dict[str, Callable[[str], Command]] = {
    "hash": lambda key: ("HGETALL", key),
    "zset": lambda key: ("ZRANGE", key, "0", "-1", "WITHSCORES"),
    "list": lambda key: ("LRANGE", key, "0", "-1"),
    "string": lambda key: ("GET", key),
}


def whole(shapes: Sequence[str], keys: Sequence[str]) -> list[Command]:
    """Return the commands that read a unit at once."""
    return [_WHOLE[shape](key) for shape, key in zip(shapes, keys, strict=True)]


def parts_of(shapes: Sequence[str], replies: Sequence[Reply]) -> Parts:
    """Return what a unit's keys hold, given the replies to whole().

    Raises:
        StoreError: one of them cannot be read, and may hold anything.
    """
    replied = zip(shapes, replies, strict=True)
    return _parts(shapes, [partial(_read, shape, reply) for shape, reply in replied])


def stepwise(ask: Ask, shapes: Sequence[str], keys: Sequence[str]) -> Parts:
    """Read a large unit in steps. Nobody writes there any more, so nothing is missed.

    Raises:
        StoreError: see parts_of().
    """
    named = zip(shapes, keys, strict=True)
    return _parts(shapes, [partial(_stepwise, ask, shape, key) for shape, key in named])


def _parts(shapes: Sequence[str], reads: Sequence[Callable[[], Any]]) -> Parts:
    held: list[Any] = []
    strange = 0
    for shape, read in zip(shapes, reads, strict=True):
        try:
            held.append(read())
        except StoreRefused as error:
            if error.code != "WRONGTYPE":
                raise
            held.append(None if shape == "string" else [])
            strange += 1
    return Parts(held, strange)


def _stepwise(ask: Ask, shape: str, key: str) -> Any:
    if shape == "string":
        return _read(shape, ask([_WHOLE[shape](key)])[0])
    if shape == "list":
        entries: list[bytes] = []
        while True:
            at = len(entries)
            page = raised(ask([("LRANGE", key, str(at), str(at + STEP - 1))])[0])
            entries += page
            if len(page) < STEP:
                return entries
    found: dict[bytes, Any] = {}
    cursor = b"0"
    while True:
        command = "HSCAN" if shape == "hash" else "ZSCAN"
        cursor, page = raised(ask([(command, key, cursor, "COUNT", str(STEP))])[0])
        found |= dict(pairs(page) if shape == "hash" else scored(page))  # some come twice
        if int(cursor) == 0:
            return list(found.items())


def _read(shape: str, reply: Reply) -> Any:
    raised(reply)
    if shape == "hash":
        return pairs(reply)
    return scored(reply) if shape == "zset" else reply
