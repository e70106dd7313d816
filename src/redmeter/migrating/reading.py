"""What was taken is read: all at once where it is little, else in steps."""

from collections.abc import Callable, Sequence
from typing import Any

from redmeter.errors import StoreError
from redmeter.store.replies import Command, Reply, pairs, raised, scored

#: Items of a unit that are read at once, at most; and of one step.
AT_ONCE, STEP = 1_000, 500

Ask = Callable[[Sequence[Command]], list[Reply]]

_WHOLE: dict[str, Callable[[str], Command]] = {
    "hash": lambda key: ("HGETALL", key),
    "zset": lambda key: ("ZRANGE", key, 0, -1, "WITHSCORES"),
    "list": lambda key: ("LRANGE", key, 0, -1),
    "string": lambda key: ("GET", key),
}


def whole(shapes: Sequence[str], keys: Sequence[str]) -> list[Command]:
    """Return the commands that read a unit at once."""
    return [_WHOLE[shape](key) for shape, key in zip(shapes, keys, strict=True)]


def parts_of(shapes: Sequence[str], replies: Sequence[Reply]) -> list[Any]:
    """Return what a unit's keys hold: see Family.content(). What cannot be read is empty."""
    return [_read(shape, reply) for shape, reply in zip(shapes, replies, strict=True)]


def stepwise(ask: Ask, shapes: Sequence[str], keys: Sequence[str]) -> list[Any]:
    """Read a large unit in steps. Nobody writes there any more, so nothing is missed."""
    return [_stepwise(ask, shape, key) for shape, key in zip(shapes, keys, strict=True)]


def _stepwise(ask: Ask, shape: str, key: str) -> Any:
    if shape == "string":
        return _read(shape, ask([_WHOLE[shape](key)])[0])
    if shape == "list":
        entries: list[bytes] = []
        while True:
            at = len(entries)
            page = raised(ask([("LRANGE", key, at, at + STEP - 1)])[0])
            entries += page
            if len(page) < STEP:
                return entries
    found: dict[bytes, Any] = {}
    cursor = b"0"
    while True:
        command = "HSCAN" if shape == "hash" else "ZSCAN"
        cursor, page = raised(ask([(command, key, cursor, "COUNT", STEP)])[0])
        found |= dict(pairs(page) if shape == "hash" else scored(page))  # some come twice
        if int(cursor) == 0:
            return list(found.items())


def _read(shape: str, reply: Reply) -> Any:
    if isinstance(reply, StoreError):
        return None if shape == "string" else []
    if shape == "hash":
        return pairs(reply)
    return scored(reply) if shape == "zset" else reply
