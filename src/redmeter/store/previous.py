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

from redmeter.errors import (
    AccessDenied,
    InvalidSetting,
    StoreError,
    StoreRefused,
    StoreUnavailable,
)
from redmeter.keys import BARE_OWN, Keys
from redmeter.store.link import Link
from redmeter.store.lone import refuse_node
from redmeter.store.replies import UNREADY, Command, Reply, is_misplaced, mapped, translate
from redmeter.store.scatter import Scatter
from redmeter.store.uniting import MERGED, ROLES, hours_united, role_of, united
from redmeter.store.wording import (
    MAX_COMPARED,
    asks_of,
    by_member,
    cut,
    everything,
    is_join,
    key_of,
    listing_of,
    members_of,
)

#: Which of the two it is, in messages.
_BEFORE = "the store before (REDMETER_PREVIOUS_URL)"

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
        other.role = _BEFORE
        #: Whether to go on without the servers that are away: see Store.partly().
        self._partly = False
        #: What the other one was left out for, as a sentence; "" where it was not.
        self.missing = ""
        #: Whether they are known to be two stores; the same for all copies of this.
        self._apart = threading.Event()

    def left_out(self) -> list[str]:
        """See Scatter."""
        told = self.link.left_out()
        return [*told, self.missing] if self.missing else told

    def partly(self) -> "Previous":
        """Return one that goes on without the servers that are away."""
        found = copy(self)
        found._partly, found.missing = True, ""
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
            AccessDenied, StoreRefused: one of them takes no connection.
            InvalidSetting: they are the same store.
        """
        asked = [everything(command) for command in commands]
        replies = self.link.exchange(asked)
        try:
            self._see_what_they_are()
            replies = self._added(commands, asked, replies)
        except _LeftOutError as left_out:
            self.missing = str(left_out)
            replies = [cut(*each) for each in zip(commands, replies, strict=True)]
        return replies if take is None else [take(reply) for reply in replies]

    def _ask_other(self, commands: Sequence[Command]) -> list[Reply]:
        """Ask the other store.

        Raises:
            _LeftOutError: it is away, busy or denies access, and one goes on without.
            StoreError: the same, where one does not.
        """
        try:
            replies = self._other.exchange(commands)
        except StoreError as error:
            self._leave_out(error)
            if isinstance(error, StoreUnavailable):
                raise _named(error) from error
            raise
        if self._partly:
            for command, reply in zip(commands, replies, strict=True):
                for wrong in _errors(command, reply):
                    self._leave_out(wrong)
        return replies

    def _leave_out(self, error: StoreError) -> None:
        """Go on without the other store, where one may and it does not answer for now."""
        what = _what_it_does(error)
        if self._partly and what:
            raise _LeftOutError(f"{self._other.location} {what}")

    def _see_what_they_are(self) -> None:
        """Look once: the other one may be a node of a cluster, which has but a part of it.

        And one server may have several names: then all would be counted twice.
        """
        apart = self._apart.is_set() or not isinstance(self.link, Link)
        if apart and self._other.alone:
            return
        (other,) = self._ask_other([("HGETALL", self._others.meta)])
        refuse_node(self._other, self._others, other)
        if apart:
            return
        # What is kept has a version of its own in each store.
        ours = _version(self.link.exchange([("HGETALL", self._keys.meta)])[0])
        theirs = _version(other)
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
        found = self._ask_other(list(theirs.values())) if theirs else []
        told = dict(zip(theirs, found, strict=True))
        made = list(replies)
        for number, reply in told.items():
            if commands[number][0] == "EVAL":
                made[number] = self._united_join(asked[number], replies[number], reply)
            else:
                family = self._family(asked[number])
                made[number] = united(family, asked[number], replies[number], reply)
        self._unite_hours(asked, replies, told, made)
        made = [cut(*each) for each in zip(commands, made, strict=True)]
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
            problem = translate(theirs[2], "")
            return ours if is_misplaced(problem) else problem.of(_BEFORE)
        asks = [command[at : at + 3] for at in asks_of(command)]
        mine, others = by_member(ours, len(asks)), by_member(theirs, len(asks))
        members = [*mine, *(member for member in others if member not in mine)]
        if "LIMIT" in command:
            members.sort()
        found: list[Reply] = []
        for member in members:
            if member in mine and member in others:
                found += self._united_asks(asks, mine[member], others[member])
            else:
                found += mine[member] if member in mine else others[member]
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
        return self._rest(key_of(command)).partition(":")[0] + ":"

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
            joins = is_join(command) and self._family(command) in _JOINED
            return self._translated_join(command) if joins else None
        if name not in MERGED or self._family(command) not in MERGED[name]:
            return None
        return (name, self._there(str(command[1])), *command[2:])

    def _translated_join(self, command: Command) -> Command:
        made = list(command)
        made[3] = self._there(str(command[3]))
        for at in asks_of(command):
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
        listing = [listing_of(commands[number]) for number in counted]
        here = self.link.exchange(listing)
        there = self._ask_other(
            [(str(one[0]), self._there(str(one[1])), *one[2:]) for one in listing]
        )
        for number, one, mine, other in zip(counted, listing, here, there, strict=True):
            if not (isinstance(mine, StoreError) or isinstance(other, StoreError)):
                made[number] = len({*members_of(one, mine), *members_of(one, other)})

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


class _LeftOutError(Exception):
    """The other store is left out; says what it does instead of answering."""


def _named(error: StoreUnavailable) -> StoreUnavailable:
    """Return an error of the other store's that says which one that is."""
    place = f"{error.location}, {_BEFORE}"
    fix = error.fix or "start it again; where all of it was moved, do without it"
    return StoreUnavailable(place, error.reason, sent=error.sent, fix=fix)


def _errors(command: Command, reply: Reply) -> Iterator[StoreError]:
    """Yield what a server answered with an error, within a join too."""
    if isinstance(reply, StoreError):
        yield reply
    elif is_join(command):
        _, _, members, told = reply
        found = members if isinstance(members, list) else [members]
        yield from (translate(one, "") for one in (*found, *told) if isinstance(one, Exception))


def _what_it_does(error: StoreError) -> str:
    """Return what a server does that does not answer for now; "" for another error."""
    if isinstance(error, StoreUnavailable):
        return "does not answer"
    if isinstance(error, AccessDenied):
        return f"denies access: {error.detail.rstrip('.')}"
    return UNREADY.get(error.code, "") if isinstance(error, StoreRefused) else ""


def _version(meta: Reply) -> str:
    """Return the version of what a store keeps; "" where there is none, or nobody may know."""
    return "" if isinstance(meta, StoreError) else mapped(meta).get(b"version", b"").decode()
