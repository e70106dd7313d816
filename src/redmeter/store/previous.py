"""The store that this one was moved from: what lies there still is added to what is read here.

While a store is on its way to another one, part of it lies in either. So both are asked the same,
first this one, then the other, and two replies become one: see uniting.py. In this order nothing is
ever counted twice: what had arrived here before it was asked for had left there before. What is on
its way in that moment is in neither, and is there with the next reading.

What is about neither series nor messages is asked of this store alone: what it keeps, who writes to
it, how it fares.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from typing import Any

from redmeter.errors import InvalidSetting, StoreError, StoreUnavailable
from redmeter.keys import BARE_OWN, Keys
from redmeter.store.link import Link
from redmeter.store.replies import Command, Reply, mapped, scored
from redmeter.store.scatter import Scatter
from redmeter.store.scripts import JOIN
from redmeter.store.uniting import MERGED, ROLES, hours_united, role_of, united

#: Members of an index that are compared to tell how many there are in both.
MAX_COMPARED = 10_000

#: Families whose keys have the prefix as it is, without one too.
_SHARED = ("known:", "count:", "stats:", "recent:", "common:")
#: Indexes that are joined.
_JOINED = ("known:", "gauges:", "hists:", "messages:")
_HOURLY = ("stats:", "common:")
_COUNTED = ("ZCARD", "ZLEXCOUNT")


class Previous:
    """A link that asks two stores. It has the face of link.Link.

    Args:
        link: to this store.
        keys: its keys.
        other: to the store that it was moved from.
        others: the keys of that.
    """

    def __init__(self, link: Link | Scatter, keys: Keys, other: Link, others: Keys) -> None:
        self.link = link
        self._keys = keys
        self._other = other
        self._others = others
        #: Whether to go on without the servers that are away: see Store.partly().
        self._partly = False
        self._other_is_away = False
        #: Whether they are known to be two stores; the same for all copies of this.
        self._apart = threading.Event()

    def left_out(self) -> list[str]:
        """See Scatter."""
        told = self.link.left_out()
        return [*told, f"{self._other.location} does not answer"] if self._other_is_away else told

    def partly(self) -> "Previous":
        """Return one that goes on without the servers that are away."""
        found = copy(self)
        found._partly, found._other_is_away = True, False
        if isinstance(self.link, Scatter):
            found.link = self.link.partly()
        return found

    @property
    def location(self) -> str:
        """Where this store is, without credentials."""
        return self.link.location

    @property
    def before(self) -> tuple[Link, Keys]:
        """The other store alone."""
        return self._other, self._others

    def exchange(
        self, commands: Sequence[Command], take: Callable[[Reply], Any] | None = None
    ) -> list[Reply]:
        """Send commands to both and return one reply for each. See Link.

        Raises:
            StoreUnavailable: one of them does not answer.
            InvalidSetting: they are the same store.
        """
        asked = [_everything(command) for command in commands]
        replies = self.link.exchange(asked)
        try:
            self._see_that_they_are_two()
            replies = self._added(commands, asked, replies)
        except StoreUnavailable as error:
            if not self._partly:
                if error.location == self._other.location:
                    raise _named(error) from error
                raise
            self._other_is_away = True
            replies = [_cut(*each) for each in zip(commands, replies, strict=True)]
        return replies if take is None else [take(reply) for reply in replies]

    def _see_that_they_are_two(self) -> None:
        """Look once: one server may have several names, and all would be counted twice."""
        if self._apart.is_set() or not isinstance(self.link, Link):
            return
        # What is kept has a version of its own in each store.
        ours = _version(self.link.exchange([("HGETALL", self._keys.meta)])[0])
        theirs = _version(self._other.exchange([("HGETALL", self._others.meta)])[0])
        if ours and ours == theirs:
            reason = "is this store itself, by another name: all would be counted twice"
            raise InvalidSetting("previous_url", reason)
        if ours:
            self._apart.set()

    def collect(self, commands: Sequence[Command]) -> list[Reply]:
        """Ask this store alone; what was not answered has the error as its reply. See Link."""
        return self.link.collect(commands)

    def _added(
        self, commands: Sequence[Command], asked: Sequence[Command], replies: list[Reply]
    ) -> list[Reply]:
        """Add what the other store replies."""
        theirs: dict[int, Command] = {}
        for number, command in enumerate(asked):
            if (other := self._translated(command)) is not None:
                theirs[number] = other
        found = self._other.exchange(list(theirs.values())) if theirs else []
        told = dict(zip(theirs, found, strict=True))
        made = list(replies)
        for number, reply in told.items():
            if commands[number][0] == "EVAL":
                made[number] = self._united_join(asked[number], replies[number], reply)
            else:
                family = self._family(asked[number])
                made[number] = united(family, asked[number], replies[number], reply)
        self._unite_hours(asked, replies, told, made)
        made = [_cut(*each) for each in zip(commands, made, strict=True)]
        self._count_once(commands, replies, told, made)
        return made

    def _unite_hours(
        self,
        asked: Sequence[Command],
        ours: Sequence[Reply],
        theirs: Mapping[int, Reply],
        made: list[Reply],
    ) -> None:
        """Put together what is kept by the hour, where all four keys were asked for."""
        fours: dict[str, dict[str, int]] = {}
        for number in theirs:
            if self._family(asked[number]) in _HOURLY:
                key = str(asked[number][1])
                role = role_of(key)
                fours.setdefault(key.removesuffix(role), {})[role] = number
        for key, four in fours.items():
            if len(four) == len(ROLES):
                one = {role: ours[number] for role, number in four.items()}
                other = {role: theirs[number] for role, number in four.items()}
                family = self._rest(key).partition(":")[0] + ":"
                for role, reply in hours_united(family, one, other, time.time()).items():
                    made[four[role]] = reply

    def _united_join(self, command: Command, ours: Reply, theirs: Reply) -> Reply:
        """Make one answer to a join of two: see lua/join.lua."""
        if isinstance(ours, StoreError) or isinstance(ours[2], Exception):
            return ours
        if isinstance(theirs, StoreError):
            return theirs
        if isinstance(theirs[2], Exception):
            return ours
        asks = [command[at : at + 3] for at in _asks(command)]
        mine, others = _by_member(ours, len(asks)), _by_member(theirs, len(asks))
        members = [*mine, *(member for member in others if member not in mine)]
        if "LIMIT" in command:
            members.sort()
        found: list[Reply] = []
        for member in members:
            if member in mine and member in others:
                found += self._united_asks(asks, mine[member], others[member])
            else:
                found += mine.get(member) or others[member]
        return [*ours[:2], members, found]

    def _united_asks(
        self, asks: Sequence[Command], ours: Sequence[Reply], theirs: Sequence[Reply]
    ) -> list[Reply]:
        """Unite what was asked of one member."""
        made = list(ours)
        hours: dict[str, int] = {}
        for number, (name, head, tail) in enumerate(asks):
            family = self._rest(str(head)).partition(":")[0] + ":"
            if family in _HOURLY:
                hours[str(tail)] = number
            elif isinstance(ours[number], Exception) or isinstance(theirs[number], Exception):
                continue
            elif name in ("WINDOW", "BEFORE"):
                made[number] = united(family, ("HGETALL",), ours[number], theirs[number])
            else:
                made[number] = united(family, ("HGET",), ours[number], theirs[number])
        if len(hours) == len(ROLES):
            one = {role: ours[number] for role, number in hours.items()}
            other = {role: theirs[number] for role, number in hours.items()}
            for role, reply in hours_united("common:", one, other, time.time()).items():
                made[hours[role]] = reply
        return made

    # Keys

    def _family(self, command: Command) -> str:
        return self._rest(_key(command)).partition(":")[0] + ":"

    def _rest(self, key: str) -> str:
        """Return what of a key stands behind prefix and tag."""
        own = self._keys.prefix or BARE_OWN
        rest = key[len(own) :] if key.startswith(own) else key[len(self._keys.prefix) :]
        return rest.partition("}")[2] if rest.startswith("{") else rest

    def _there(self, key: str) -> str:
        """Return a key of this store, or what keys begin with, as it is in the other one."""
        rest, prefix = self._rest(key), self._others.prefix
        return (prefix if rest.startswith(_SHARED) else prefix or BARE_OWN) + rest

    def _translated(self, command: Command) -> Command | None:
        """Return a command for the other store; None where that is not asked."""
        name = str(command[0])
        if name == "EVAL":
            joins = command[1] == _join_text() and self._family(command) in _JOINED
            return self._translated_join(command) if joins else None
        if name not in MERGED or self._family(command) not in MERGED[name]:
            return None
        return (name, self._there(str(command[1])), *command[2:])

    def _translated_join(self, command: Command) -> Command:
        made = list(command)
        made[3] = self._there(str(command[3]))
        for at in _asks(command):
            made[at + 1] = self._there(str(command[at + 1]))
        return tuple(made)

    # How many there are

    def _count_once(
        self,
        commands: Sequence[Command],
        ours: Sequence[Reply],
        theirs: Mapping[int, Reply],
        made: list[Reply],
    ) -> None:
        """Count members once that both indexes have, as far as they can be compared."""
        counted = [
            number
            for number in theirs
            if commands[number][0] in _COUNTED
            and isinstance(ours[number], int)
            and isinstance(theirs[number], int)
            and 0 < ours[number] <= MAX_COMPARED
            and 0 < theirs[number] <= MAX_COMPARED
        ]
        if not counted:
            return
        listing = [_listing(commands[number]) for number in counted]
        here = self.link.exchange(listing)
        there = self._other.exchange(
            [(str(one[0]), self._there(str(one[1])), *one[2:]) for one in listing]
        )
        for number, one, mine, other in zip(counted, listing, here, there, strict=True):
            if not (isinstance(mine, StoreError) or isinstance(other, StoreError)):
                made[number] = len({*_members(one, mine), *_members(one, other)})

    # As a link

    def servers(self) -> list[Link]:
        """See Link."""
        return self.link.servers()

    def ask_servers(self, commands: Sequence[Command]) -> dict[str, list[Reply]]:
        """See Link."""
        return self.link.ask_servers(commands)

    def away(self) -> list[str]:
        """See Link."""
        return self.link.away()

    def lanes(self, keys: Sequence[str]) -> dict[str, list[int]]:
        """See Link."""
        return self.link.lanes(keys)

    def bounded(self, seconds: float) -> AbstractContextManager[None]:
        """See Link."""
        return self.link.bounded(seconds)

    def recover(self) -> None:
        """See Link."""
        self.link.recover()
        self._other.recover()

    def hurry(self, seconds: float) -> None:
        """See Link."""
        self.link.hurry(seconds)
        self._other.hurry(seconds)

    def close(self) -> None:
        """See Link."""
        self.link.close()
        self._other.close()


# --- Commands ------------------------------------------------------------------------------


def _join_text() -> object:
    return JOIN.command((), (), whole=True)[1]


def _key(command: Command) -> str:
    return str(command[3 if command[0] == "EVAL" else 1])


def _asks(command: Command) -> Iterator[int]:
    """Yield where in a join stands what is asked of each member: command, head, tail, number …"""
    at = 5 + int(command[4]) + 1
    while at < len(command):
        yield at
        at += int(command[at + 3]) + 4


def _by_member(reply: Reply, size: int) -> dict[bytes, list[Reply]]:
    members, replies = reply[2], reply[3]
    return {m: replies[n * size : (n + 1) * size] for n, m in enumerate(members)}


def _limit(command: Command) -> int | None:
    """Return where a LIMIT stands among what selects members; None where there is none."""
    if command[0] == "EVAL":
        words = command[5 : 5 + int(command[4])]
        return 5 + words.index("LIMIT") if "LIMIT" in words else None
    return command.index("LIMIT") if "LIMIT" in command else None


def _everything(command: Command) -> Command:
    """Return a command that asks from the beginning, so that two replies can be put together."""
    at = _limit(command)
    if at is None:
        return command
    most = int(command[at + 1]) + int(command[at + 2])
    return (*command[:at], "LIMIT", 0, most, *command[at + 3 :])


def _cut(command: Command, reply: Reply) -> Reply:
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
        size = len(list(_asks(command)))
        replies = reply[3][first * size : (first + most) * size]
        return [*reply[:2], reply[2][first : first + most], replies]
    if name in ("LRANGE", "ZREVRANGE") and int(command[3]) >= 0:
        most = int(command[3]) + 1
        return reply[: 2 * most if "WITHSCORES" in command else most]
    return reply


def _listing(command: Command) -> Command:
    """Return what lists the members that are counted."""
    index = str(command[1])
    if index.endswith("messages:"):
        return ("ZREVRANGE", index, 0, MAX_COMPARED - 1, "WITHSCORES")
    ends = command[2:] or ("-", "+")
    return ("ZRANGEBYLEX", index, *ends, "LIMIT", 0, MAX_COMPARED)


def _members(command: Command, reply: Reply) -> list[bytes]:
    return [m for m, _ in scored(reply)] if command[0] == "ZREVRANGE" else reply


def _named(error: StoreUnavailable) -> StoreUnavailable:
    """Return an error of the other store's that says which one that is."""
    place = f"{error.location}, the store before (REDMETER_PREVIOUS_URL)"
    fix = error.fix or "start it again; where all of it was moved, do without it"
    return StoreUnavailable(place, error.reason, sent=error.sent, fix=fix)


def _version(meta: Reply) -> str:
    """Return the version of what a store keeps; "" where there is none, or nobody may know."""
    return "" if isinstance(meta, StoreError) else mapped(meta).get(b"version", b"").decode()
