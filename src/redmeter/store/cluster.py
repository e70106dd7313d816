"""A cluster: each command to the master that has its key, those of one master as one pipeline.

The same face as ServerLink, one of which there is for each node. Masters are asked at the same
time, in threads, so a node that is slow or away holds up only what lies there. What a node answers
instead of carrying a command out is answered here, command by command: MOVED and ASK lead to
another node. TRYAGAIN, CLUSTERDOWN and NOSCRIPT are replies for who asked, since nothing was done.

The client's own cluster class is not used: its pipeline refuses scripts, one node that stands still
blocks all of it, and it asks for the slots in an order of its own and closes connections to do so.
Which master has which slots is asked of the node that was in trouble least lately.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import partial
from random import SystemRandom
from typing import Any, NamedTuple

import redis

from redmeter.errors import StoreError, StoreRefused, StoreUnavailable
from redmeter.store.connection import ServerLink
from redmeter.store.parallel import in_parallel
from redmeter.store.replies import Command, Reply, raised
from redmeter.store.retry import is_redirect, unready_reason
from redmeter.store.topology import (
    ASKING,
    READONLY,
    ROLE,
    SCRIPTS,
    Address,
    Remap,
    SlotRange,
    Slots,
    answers,
    as_told,
    is_cut_off,
    key_of,
    leaving_in,
    name_of,
    place_in,
    slot_of,
)
from redmeter.store.urls import in_short

#: Times that a command may be sent on by nodes that do not have its slot.
REDIRECTS = 5

#: Nodes that are asked at once for who has which slots, where that is known as it was.
ASKED = 3

#: A node that kept us waiting for nothing is left alone for as long, at most so many seconds.
LEFT_ALONE = 2.0

#: How often it is asked who has which slots while a master does not answer, seconds; and, where
#: replicas are asked, which ones there are, and which slots are being handed over.
AGAIN = 1.0

#: A replica that could not answer, or does not hear from its master, is passed over for so many
#: seconds. As long nobody asks a master which slots it hands over that let us wait for PATIENCE, or
#: was in trouble.
LATER = 10.0

#: How long readings wait for what they do not need themselves, seconds.
PATIENCE = 0.5

# Not the generator of the application, which may have seeded it.
_chance = SystemRandom()


class _Trouble(NamedTuple):
    """Since when a node does not answer, until when it is left alone (monotonic seconds), and why.

    With what may help.
    """

    since: float
    until: float
    reason: str
    fix: str


class ClusterLink:
    """A way to exchange commands with a cluster.

    Args:
        connect: returns a client for one node; connects to nothing.
        start: some nodes, to begin with.
        location: for messages, without credentials.
        replicas: whether replicas are asked, where there are any, so that nothing can be written.
        remap: where a node is reached, by where others say that it is.
    """

    def __init__(
        self,
        connect: "Callable[[Address], redis.Redis]",
        start: Sequence[Address],
        location: str,
        *,
        replicas: bool = False,
        remap: Remap = as_told,
    ) -> None:
        self._connect = connect
        self._first = tuple(start)
        self.location = location
        self._replicas = replicas
        self._remap = remap
        self._nodes: dict[Address, ServerLink] = {}
        self._slots: Slots | None = None
        self._stale = False
        #: When it was last asked who has which slots, monotonic seconds.
        self._looked = -math.inf
        #: Nodes that did not answer last.
        self._trouble: dict[Address, _Trouble] = {}
        #: Nodes that could not answer, or said that the cluster is down, and when: what they know
        #: of it may be old.
        self._doubted: dict[Address, float] = {}
        #: Slots that masters were handing over when they last told, of which their replicas may
        #: know nothing; and when they last did not tell.
        self._leaving: dict[Address, frozenset[int]] = {}
        self._silent: dict[Address, float] = {}
        #: How long to wait for an answer at the end of a process, seconds.
        self._longest: float | None = None

    # Exchanges

    def exchange(
        self, commands: Sequence[Command], take: Callable[[Reply], Any] | None = None
    ) -> list[Reply]:
        """Send commands and return a reply for each; a server's error is a reply. See ServerLink.

        Raises:
            StoreUnavailable: a node that has to be asked does not answer.
        """
        replies = self.collect(commands)
        for reply in replies:
            if isinstance(reply, StoreUnavailable):
                raise reply
        return replies if take is None else [take(reply) for reply in replies]

    def collect(
        self, commands: Sequence[Command], *, whole: bool = False, spin: bool = False
    ) -> list[Reply]:
        """Do the same; what was not answered has the error as its reply.

        Args:
            spin: see ServerLink.exchange().
            whole: scripts read keys that they do not name. Of a node that is yet to get a slot they
                would find some to be missing, so none is sent there: its reply is TRYAGAIN.
        """
        try:
            self._look()
        except StoreError as error:
            error.sent = False  # none of these was
            return [copy(error) for _ in commands]
        replies: list[Reply] = [None] * len(commands)
        waiting: dict[int, Address | None] = dict.fromkeys(range(len(commands)))
        asking: set[int] = set()
        for _ in range(REDIRECTS):
            groups: dict[Address, list[int]] = {}
            # What no key is about is asked of a node that is asked anyway.
            for number in sorted(waiting, key=lambda one: key_of(commands[one]) is None):
                place = waiting[number] or self._place(commands[number], among=groups)
                if place is None:
                    self._stale = True
                    replies[number] = StoreRefused("CLUSTERDOWN", "no node serves its slot")
                else:
                    groups.setdefault(place, []).append(number)
            jobs = [
                partial(self._ask, address, [(commands[n], n in asking) for n in some], spin=spin)
                for address, some in groups.items()
            ]
            answers = in_parallel(jobs)
            waiting = {}
            for (address, some), answer in zip(groups.items(), answers, strict=True):
                for number, reply in zip(some, answer, strict=True):
                    replies[number] = reply
                    if not isinstance(reply, StoreRefused):
                        continue
                    place = self._redirected(reply, address)
                    place = place or self._instead(commands[number], reply, address)
                    if place is None:
                        continue
                    asking.discard(number)
                    if reply.code == "ASK":
                        if whole and commands[number][0] in SCRIPTS:
                            replies[number] = StoreRefused("TRYAGAIN", "its slot is on its way")
                            continue
                        asking.add(number)
                    waiting[number] = place
            if not waiting:
                return replies
        for number in waiting:  # nothing was done, and they may agree in a moment
            told = StoreRefused("TRYAGAIN", "the nodes do not agree on who has its slot")
            replies[number] = told
        return replies

    def _ask(
        self, address: Address, commands: Sequence[tuple[Command, bool]], *, spin: bool = False
    ) -> list[Reply]:
        """Exchange commands with one node.

        Args:
            commands: each with whether the node is but to get its slot.
        """
        link, started = self.node(address), time.monotonic()
        last = self._trouble.get(address)
        if last and started < last.until:
            return [StoreUnavailable(link.location, last.reason, fix=last.fix) for _ in commands]
        # A replica sends readings on to its master, until it is told that it may answer; and does
        # so whether or not it hears from that one.
        sent: list[Command] = [READONLY, ROLE] if self._replicas else []
        for command, asking in commands:
            sent += [ASKING, command] if asking else [command]
        replies = link.collect(sent, spin=spin)
        cut_off = self._replicas and is_cut_off(replies[1])
        if len(sent) > len(commands):
            replies = answers(sent, replies)
        error = next((reply for reply in replies if isinstance(reply, StoreUnavailable)), None)
        if error is not None:
            # Half of the time may be spent waiting for a node that stands still, no more.
            now = time.monotonic()
            until = now + min(now - started, LEFT_ALONE)
            self._trouble[address] = _Trouble(now, until, error.reason, error.fix)
            self._stale = True
        else:
            self._trouble.pop(address, None)
        if cut_off and error is None:
            self._doubted[address] = time.monotonic()
            # What it knows is old. Where its master is away, it is the newest that there is.
            if self._slots is not None and self._slots.master_of(address) not in self._trouble:
                text = f"{name_of(address)} does not hear from its master"
                return [StoreRefused("MASTERDOWN", text) for _ in commands]
        return replies

    def _redirected(self, reply: StoreRefused, address: Address) -> Address | None:
        """Return where a node sends one; None where it answered."""
        if not is_redirect(reply):
            return None
        self._stale = self._stale or reply.code == "MOVED"
        known = self._slots.nodes if self._slots else ()
        return place_in(reply, address, known, self._remap)

    def _instead(self, command: Command, reply: StoreRefused, address: Address) -> Address | None:
        """Return who else can answer, where a node cannot: of a replica, its master."""
        down = reply.code == "CLUSTERDOWN"
        if not down and not unready_reason(reply):
            return None
        self._stale = self._stale or down
        self._doubted[address] = time.monotonic()
        if not self._replicas and key_of(command) is not None:
            return None
        other = self._place(command, replicas=False)
        return None if other == address else other

    def _place(
        self, command: Command, *, replicas: bool = True, among: Iterable[Address] = ()
    ) -> Address | None:
        assert self._slots is not None, "looked for"
        key = key_of(command)
        if key is None:
            return min((*among, *self._slots.masters), key=self._last_trouble, default=None)
        slot = slot_of(key)
        shard = self._slots.range_of(slot)
        if shard is None:
            return None
        leaving = self._leaving.get(shard.master, ())
        if self._replicas and replicas and slot not in leaving:
            before = time.monotonic() - LATER
            able = [r for r in shard.replicas if self._last_trouble(r) < before]
            if not able and shard.master in self._trouble:
                able = [r for r in shard.replicas if r not in self._trouble]
            if able:
                return _chance.choice(able)
        return shard.master

    def _last_trouble(self, address: Address) -> float:
        trouble = self._trouble.get(address)
        since = trouble.since if trouble else -math.inf
        return max(since, self._doubted.get(address, -math.inf))

    def master_of(self, key: str | bytes) -> Address | None:
        """Return the master that has a key, as far as is known."""
        shard = self._slots.range_of(slot_of(key)) if self._slots else None
        return shard and shard.master

    def bounded(self, seconds: float) -> AbstractContextManager[None]:  # noqa: ARG002
        """Limit nothing: the connections to the nodes are ours."""
        return nullcontext()

    def best_effort(self) -> "ClusterLink":
        """Return this link; its collect() has the error as the reply of each unreachable node."""
        return self

    def skipped(self) -> list[str]:
        """Return what best-effort reads left out: nothing, see FanOut."""
        return []

    def retry_after(self, key: str) -> float:
        """Return for how long the master that has a key is still left alone, seconds."""
        master = self.master_of(key)
        trouble = self._trouble.get(master) if master else None
        return max(0.0, trouble.until - time.monotonic()) if trouble else 0.0

    # Nodes

    def node(self, address: Address) -> ServerLink:
        """Return the link to one node."""
        link = self._nodes.get(address)
        if link is None:
            name = f"{name_of(address)} (a node of {in_short(self.location)})"
            link = ServerLink(partial(self._connect, address), name)
            if self._longest is not None:
                link.cap_timeout(self._longest)
            link = self._nodes.setdefault(address, link)
        return link

    def masters(self) -> list[Address]:
        """Return the masters that have slots.

        Raises:
            StoreError: no node tells.
        """
        self._look()
        assert self._slots is not None, "looked for"
        return self._slots.masters

    def servers(self) -> list[ServerLink]:
        """Return a link to each master.

        Raises:
            StoreError: no node tells which masters there are.
        """
        return [self.node(address) for address in self.masters()]

    def ask_servers(self, commands: Sequence[Command]) -> dict[str, list[Reply]]:
        """Ask the same of each master, as collect() does; by host and port.

        Raises:
            StoreError: no node tells which masters there are.
        """
        masters = self.masters()
        asked = [(command, False) for command in commands]
        replies = in_parallel([partial(self._ask, address, asked) for address in masters])
        return dict(zip(map(name_of, masters), replies, strict=True))

    def unreachable(self) -> list[str]:
        """Return which masters did not answer last."""
        masters = self._slots.masters if self._slots else ()
        return [name_of(address) for address in masters if address in self._trouble]

    def ranges(self) -> list[SlotRange]:
        """Return who has which slots.

        Raises:
            StoreError: no node tells.
        """
        self._look()
        assert self._slots is not None, "looked for"
        return self._slots.ranges

    def by_server(self, keys: Sequence[str]) -> dict[str, list[int]]:
        """Return the numbers of the keys that each master has; of "" those that no one has.

        Raises:
            StoreError: no node tells.
        """
        self._look()
        assert self._slots is not None, "looked for"
        found: dict[str, list[int]] = {}
        for number, key in enumerate(keys):
            master = self.master_of(key)
            found.setdefault(name_of(master) if master else "", []).append(number)
        return found

    def _look(self) -> None:
        """See that the slots are known; where they may have changed, ask again.

        Raises:
            StoreError: no node tells, and none ever did.
        """
        now = time.monotonic()
        # No reply tells of a new replica, nor that one has taken the place of a dead master.
        masters = self._slots.masters if self._slots and self._trouble else ()
        again = self._replicas or any(node in self._trouble for node in masters)
        aged = again and now > self._looked + AGAIN
        if self._slots is not None and not self._stale and not aged:
            return
        self._stale, self._looked = False, now
        problem: StoreError | None = None
        known = self._slots.nodes if self._slots else ()
        nodes = sorted(dict.fromkeys((*known, *self._first)), key=self._last_trouble)
        # Others come first the next time; nobody waits for each of a hundred that stand still.
        for address in nodes[:ASKED] if known else nodes:
            (reply,) = self._ask(address, [(("CLUSTER", "SLOTS"), False)])
            try:
                if raised(reply):
                    self._slots = Slots.read(reply, address[0], self._remap)
                    self._stale = False
                    self._forget(self._slots)
                    if self._replicas:
                        self._ask_what_leaves(self._slots.masters)
                    return
            except StoreError as error:
                problem = problem or error
        if self._slots is None:
            raise problem or StoreRefused("CLUSTERDOWN", "no node serves any slot")

    def _ask_what_leaves(self, masters: Sequence[Address]) -> None:
        """Ask masters which slots they are handing over.

        On Redis a replica knows nothing of it: of what has gone ahead it says that it is not there,
        where its master says who has it. Valkey's tell it from 8.0 on. Of a master that does not
        answer we go by what it said before.
        """

        def ask(address: Address) -> Reply:
            link = self.node(address)
            with link.within(PATIENCE):
                (reply,) = link.collect([("CLUSTER", "NODES")])
            return reply

        before = time.monotonic() - LATER
        able = [
            address
            for address in masters
            if max(self._last_trouble(address), self._silent.get(address, -math.inf)) < before
        ]
        replies = in_parallel([partial(ask, address) for address in able])
        for address, reply in zip(able, replies, strict=True):
            if isinstance(reply, StoreError):
                self._silent[address] = time.monotonic()
            else:
                self._leaving[address] = frozenset(leaving_in(reply))

    def _forget(self, slots: Slots) -> None:
        """Drop what is held of nodes that are gone: where addresses change, that would add up."""
        known = {*slots.nodes, *self._first}
        for address in {*self._nodes, *self._trouble, *self._doubted} - known:
            link = self._nodes.pop(address, None)
            for told in (self._trouble, self._doubted, self._leaving, self._silent):
                told.pop(address, None)
            if link is not None:  # an exchange under way ends the connection that it has
                link.close()

    def recover(self) -> None:
        """Look anew who has which slots, with the next exchange."""
        self._stale = True

    def cap_timeout(self, seconds: float) -> None:
        """From now on wait no longer than about that for any answer. See ServerLink."""
        self._longest = seconds if self._longest is None else min(self._longest, seconds)
        for link in list(self._nodes.values()):
            link.cap_timeout(seconds)

    def close(self) -> None:
        """Close the connections; the next exchange would open others."""
        for link in list(self._nodes.values()):
            link.close()


def place_of(error: StoreUnavailable) -> str:
    """Return which node did not answer: "127.0.0.1:7003"."""
    return error.location.partition(" ")[0]
