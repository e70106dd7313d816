"""What commands of who reads say: of which key, how much is asked for, and what a join asks.

For who puts together replies of two stores: see previous.py. Pure.
"""

from collections.abc import Iterator

from redmeter.store.replies import Command, Reply, scored
from redmeter.store.scripts import JOIN

#: Members of an index that are compared to tell how many there are in both.
MAX_COMPARED = 10_000


def is_join(command: Command) -> bool:
    """Whether it is a join: see lua/join.lua."""
    return command[:2] == JOIN.command((), (), whole=True)[:2]


def key_of(command: Command) -> str:
    """Return the key that a command is about; of a join its index."""
    return str(command[3 if command[0] == "EVAL" else 1])


def asks_of(command: Command) -> Iterator[int]:
    """Yield where in a join stands what is asked of each member: command, head, tail, number …"""
    at = 5 + int(command[4]) + 1
    while at < len(command):
        yield at
        at += int(command[at + 3]) + 4


def by_member(reply: Reply, size: int) -> dict[bytes, list[Reply]]:
    """Return what a join found, by member; `size` was asked of each."""
    members, replies = reply[2], reply[3]
    return {m: replies[n * size : (n + 1) * size] for n, m in enumerate(members)}


def _limit(command: Command) -> int | None:
    """Return where a LIMIT stands among what selects members; None where there is none."""
    if command[0] == "EVAL":
        words = command[5 : 5 + int(command[4])]
        return 5 + words.index("LIMIT") if "LIMIT" in words else None
    return command.index("LIMIT") if "LIMIT" in command else None


def everything(command: Command) -> Command:
    """Return a command that asks from the beginning, so that two replies can be put together."""
    at = _limit(command)
    if at is None:
        return command
    most = int(command[at + 1]) + int(command[at + 2])
    return (*command[:at], "LIMIT", "0", str(most), *command[at + 3 :])


def cut(command: Command, reply: Reply) -> Reply:
    """Return of all what was asked for."""
    if not isinstance(reply, list):
        return reply
    at, name = _limit(command), command[0]
    if at is not None:
        first, most = int(command[at + 1]), int(command[at + 2])
        if name != "EVAL":
            return reply[first : first + most]
        if isinstance(reply[2], Exception):
            return reply
        size = len(list(asks_of(command)))
        replies = reply[3][first * size : (first + most) * size]
        return [*reply[:2], reply[2][first : first + most], replies]
    if name in ("LRANGE", "ZREVRANGE") and int(command[3]) >= 0:
        most = int(command[3]) + 1
        return reply[: 2 * most if "WITHSCORES" in command else most]
    return reply


def listing_of(command: Command) -> Command:
    """Return what lists the members that are counted."""
    index = str(command[1])
    if index.endswith("messages:"):
        return ("ZREVRANGE", index, "0", str(MAX_COMPARED - 1), "WITHSCORES")
    ends = command[2:] or ("-", "+")
    return ("ZRANGEBYLEX", index, *ends, "LIMIT", "0", str(MAX_COMPARED))


def members_of(command: Command, reply: Reply) -> list[bytes]:
    """Return the members in the reply to a listing."""
    return [m for m, _ in scored(reply)] if command[0] == "ZREVRANGE" else reply
