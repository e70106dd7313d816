"""A cluster: each command goes to the primary that has its key, as one pipeline per primary.

`ClusterLink` has one `ServerLink` per node. Primaries are contacted at the same time, in threads,
so a slow or unreachable node delays only the commands about its own keys. Redirects are followed
here, command by command: MOVED and ASK name another node. TRYAGAIN, CLUSTERDOWN and NOSCRIPT are
replies to the caller, since nothing was executed.

The client's own cluster class is not used: its pipeline refuses scripts, one hanging node blocks
all of it, and it refreshes the slots in an order of its own and closes connections to do so. Here,
the slots are looked up at the node whose last trouble is the longest ago.
"""

import math
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from functools import partial
from typing import NamedTuple, TypeVar

import redis

from redmeter.errors import StoreError, StoreRefused, StoreUnavailable
from redmeter.store.servers.connection import ServerLink
from redmeter.store.servers.replies import Command, Link, Reply, raised
from redmeter.store.servers.retry import is_redirect, system_random, unready_reason
from redmeter.store.servers.topology import (
    ASKING,
    READONLY,
    ROLE,
    SCRIPTS,
    Address,
    Remap,
    SlotRange,
    Slots,
    as_announced,
    host_port,
    is_cut_off,
    key_of,
    leaving_in,
    own_replies,
    place_in,
    slot_of,
)
from redmeter.store.servers.urls import in_short

T = TypeVar("T")

#: Redirects that a command follows, at most.
REDIRECTS = 5

#: Nodes tried in one lookup of the slots, at most, if older slots are known.
LOOKUPS = 3

#: A node that timed out is not contacted for as long as that took, at most so many seconds.
LEFT_ALONE = 2.0

#: Seconds between two lookups of the slots while a primary does not answer; when replicas are read,
#: also between two lookups of the replicas and of the slots that are migrating.
AGAIN = 1.0

#: Seconds for which a replica is avoided that could not answer or has lost its primary, and for
#: which a primary is not asked for its migrating slots after it was in trouble or took
#: LOOKUP_PATIENCE.
LATER = 10.0

#: Seconds that a read waits for a lookup that it does not itself need.
LOOKUP_PATIENCE = 0.5


class _Trouble(NamedTuple):
    """A node that does not answer: since when, until when it is not contacted (monotonic seconds).

    Also the reason and a possible fix, for messages.
    """

    since: float
    until: float
    reason: str
    fix: str


class ClusterLink(Link):
    """Exchanges commands with a cluster. See Link for its methods.

    Args:
        connect: returns a client for one node, without connecting.
        start: addresses of some nodes, for the first lookup.
        location: the address in messages, without credentials.
        replicas: whether replicas are read where there are any; nothing can be written then.
        remap: maps announced addresses to reachable ones.
    """

    def __init__(
        self,
        connect: "Callable[[Address], redis.Redis]",
        start: Sequence[Address],
        location: str,
        *,
        replicas: bool = False,
        remap: Remap = as_announced,
    ) -> None:
        self._connect = connect
        self._first = tuple(start)
        self.location = location
        self._replicas = replicas
        self._remap = remap
        self._nodes: dict[Address, ServerLink] = {}
        self._slots: Slots | None = None
        self._stale = False
        #: When the slots were last looked up, monotonic seconds.
        self._looked = -math.inf
        #: Nodes whose replies are awaited.
        self._awaited: dict[Address, None] = {}
        #: Nodes that did not answer the last time.
        self._trouble: dict[Address, _Trouble] = {}
        #: When nodes could not answer or reported that the cluster is down: their view may be old.
        self._doubted: dict[Address, float] = {}
        #: The slots that each primary is migrating, which its replicas may not know; and when a
        #: primary last failed to return them.
        self._leaving: dict[Address, frozenset[int]] = {}
        self._silent: dict[Address, float] = {}
        #: The cap of the timeout at the end of a process, seconds.
        self._longest: float | None = None

    # Exchanges

    def collect(
        self, commands: Sequence[Command], *, whole: bool = False, spin: bool = False
    ) -> list[Reply]:
        """Exchange commands: see Link.collect().

        Args:
            whole: the scripts read keys that they do not name. On a node that is importing the slot
                some may be missing, so no script is sent there: its reply is TRYAGAIN.
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
            # A command without a key goes to a node that is contacted anyway.
            for number in sorted(waiting, key=lambda index: key_of(commands[index]) is None):
                place = waiting[number] or self._place(commands[number], among=groups)
                if place is None:
                    self._stale = True
                    replies[number] = StoreRefused("CLUSTERDOWN", "no node serves its slot")
                else:
                    groups.setdefault(place, []).append(number)
            jobs = [
                partial(
                    self._ask, address, [(commands[n], n in asking) for n in numbers], spin=spin
                )
                for address, numbers in groups.items()
            ]
            answers = in_parallel(jobs)
            waiting = {}
            for (address, numbers), answer in zip(groups.items(), answers, strict=True):
                for number, reply in zip(numbers, answer, strict=True):
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
        for number in waiting:  # nothing was executed, and the nodes may agree in a moment
            replies[number] = StoreRefused("TRYAGAIN", "the nodes do not agree on who has its slot")
        return replies

    def _ask(
        self, address: Address, commands: Sequence[tuple[Command, bool]], *, spin: bool = False
    ) -> list[Reply]:
        """Exchange commands with one node, each with whether it is importing the slot."""
        link, started = self.node(address), time.monotonic()
        last = self._trouble.get(address)
        if last and started < last.until:
            return [StoreUnavailable(link.location, last.reason, fix=last.fix) for _ in commands]
        # A replica redirects reads to its primary unless READONLY was sent, and answers them then
        # also if it has lost its primary.
        sent: list[Command] = [READONLY, ROLE] if self._replicas else []
        for command, asking in commands:
            sent += [ASKING, command] if asking else [command]
        self._awaited[address] = None
        try:
            replies = link.collect(sent, spin=spin)
        finally:
            self._awaited.pop(address, None)
        cut_off = self._replicas and is_cut_off(replies[1])
        if len(sent) > len(commands):
            replies = own_replies(sent, replies)
        error = next((reply for reply in replies if isinstance(reply, StoreUnavailable)), None)
        if error is not None:
            # At most half of the time is spent waiting for a hanging node.
            now = time.monotonic()
            until = now + min(now - started, LEFT_ALONE)
            self._trouble[address] = _Trouble(now, until, error.reason, error.fix)
            self._stale = True
        else:
            self._trouble.pop(address, None)
        if cut_off and error is None:
            self._doubted[address] = time.monotonic()
            # Its data is old. If the primary is unreachable, there is no newer data.
            if self._slots is not None and self._slots.primary_of(address) not in self._trouble:
                text = f"{host_port(address)} does not hear from its primary"
                return [StoreRefused("MASTERDOWN", text) for _ in commands]
        return replies

    def _redirected(self, reply: StoreRefused, address: Address) -> Address | None:
        """Return the node that a redirect names; None if the reply is no redirect."""
        if not is_redirect(reply):
            return None
        self._stale = self._stale or reply.code == "MOVED"
        known = self._slots.nodes if self._slots else ()
        return place_in(reply, address, known, self._remap)

    def _instead(self, command: Command, reply: StoreRefused, address: Address) -> Address | None:
        """Return another node for a command that a node cannot answer: a replica's primary."""
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
            return min((*among, *self._slots.primaries), key=self._last_trouble, default=None)
        slot = slot_of(key)
        shard = self._slots.range_of(slot)
        if shard is None:
            return None
        leaving = self._leaving.get(shard.primary, ())
        if self._replicas and replicas and slot not in leaving:
            before = time.monotonic() - LATER
            able = [r for r in shard.replicas if self._last_trouble(r) < before]
            if not able and shard.primary in self._trouble:
                able = [r for r in shard.replicas if r not in self._trouble]
            if able:
                return system_random.choice(able)
        return shard.primary

    def _last_trouble(self, address: Address) -> float:
        trouble = self._trouble.get(address)
        since = trouble.since if trouble else -math.inf
        return max(since, self._doubted.get(address, -math.inf))

    def primary_of(self, key: str | bytes) -> Address | None:
        """Return the primary that has a key, as far as known."""
        shard = self._slots.range_of(slot_of(key)) if self._slots else None
        return shard and shard.primary

    def retry_after(self, key: str) -> float:
        primary = self.primary_of(key)
        trouble = self._trouble.get(primary) if primary else None
        return max(0.0, trouble.until - time.monotonic()) if trouble else 0.0

    # Nodes

    def node(self, address: Address) -> ServerLink:
        """Return the link to one node."""
        link = self._nodes.get(address)
        if link is None:
            name = f"{host_port(address)} (a node of {in_short(self.location)})"
            link = ServerLink(partial(self._connect, address), name)
            if self._longest is not None:
                link.cap_timeout(self._longest)
            link = self._nodes.setdefault(address, link)
        return link

    def primaries(self) -> list[Address]:
        """Return the primaries that have slots.

        Raises:
            StoreError: no node returns the slots.
        """
        return self._look().primaries

    def servers(self) -> list[ServerLink]:
        return [self.node(address) for address in self.primaries()]

    def ask_servers(self, commands: Sequence[Command]) -> dict[str, list[Reply]]:
        primaries = self.primaries()
        pairs = [(command, False) for command in commands]
        replies = in_parallel([partial(self._ask, address, pairs) for address in primaries])
        return dict(zip(map(host_port, primaries), replies, strict=True))

    def unreachable(self) -> list[str]:
        primaries = self._slots.primaries if self._slots else ()
        return [host_port(address) for address in primaries if address in self._trouble]

    def ranges(self) -> list[SlotRange]:
        """Return the ranges of slots and their nodes.

        Raises:
            StoreError: no node returns the slots.
        """
        return self._look().ranges

    def by_server(self, keys: Sequence[str]) -> dict[str, list[int]]:
        self._look()
        positions: dict[str, list[int]] = {}
        for number, key in enumerate(keys):
            primary = self.primary_of(key)
            positions.setdefault(host_port(primary) if primary else "", []).append(number)
        return positions

    def _look(self) -> Slots:
        """Return the slots, looked up again if they may have changed.

        Raises:
            StoreError: no node returns them, and none ever did.
        """
        now = time.monotonic()
        # No reply reports a new replica, or that a replica has replaced a dead primary.
        primaries = self._slots.primaries if self._slots and self._trouble else ()
        again = self._replicas or any(node in self._trouble for node in primaries)
        aged = again and now > self._looked + AGAIN
        if self._slots is not None and not self._stale and not aged:
            return self._slots
        self._stale, self._looked = False, now
        problem: StoreError | None = None
        known = self._slots.nodes if self._slots else ()
        nodes = sorted(
            dict.fromkeys((*known, *self._first)),
            key=lambda node: (node in self._awaited, self._last_trouble(node)),  # it may hang
        )
        # Others come first the next time, so no read waits for each of many hanging nodes.
        for address in nodes[:LOOKUPS] if known else nodes:
            (reply,) = self._ask(address, [(("CLUSTER", "SLOTS"), False)])
            try:
                if raised(reply):
                    self._slots = Slots.read(reply, address[0], self._remap)
                    self._stale = False
                    self._forget(self._slots)
                    if self._replicas:
                        self._look_for_leaving(self._slots.primaries)
                    return self._slots
            except StoreError as error:
                problem = problem or error
        if self._slots is None:
            raise problem or StoreRefused("CLUSTERDOWN", "no node serves any slot")
        return self._slots

    def _look_for_leaving(self, primaries: Sequence[Address]) -> None:
        """Look up the slots that primaries are migrating.

        A replica of Redis does not know them: it replies that a migrated key does not exist, where
        its primary redirects. Replicas of Valkey redirect from 8.0 on. For a primary that does not
        answer, its last reply still counts.
        """

        def ask(address: Address) -> Reply:
            link = self.node(address)
            with link.within(LOOKUP_PATIENCE):
                (reply,) = link.collect([("CLUSTER", "NODES")])
            return reply

        before = time.monotonic() - LATER
        able = [
            address
            for address in primaries
            if max(self._last_trouble(address), self._silent.get(address, -math.inf)) < before
        ]
        replies = in_parallel([partial(ask, address) for address in able])
        for address, reply in zip(able, replies, strict=True):
            if isinstance(reply, StoreError):
                self._silent[address] = time.monotonic()
            else:
                self._leaving[address] = frozenset(leaving_in(reply))

    def _forget(self, slots: Slots) -> None:
        """Drop the state of nodes that are gone: where addresses change, it would accumulate."""
        known = {*slots.nodes, *self._first}
        for address in {*self._nodes, *self._trouble, *self._doubted} - known:
            link = self._nodes.pop(address, None)
            for state in (self._trouble, self._doubted, self._leaving, self._silent):
                state.pop(address, None)
            if link is not None:  # a running exchange closes its own connection
                link.close()

    def recover(self) -> None:
        """Look up the slots again before the next exchange."""
        self._stale = True

    def cap_timeout(self, seconds: float) -> None:
        self._longest = seconds if self._longest is None else min(self._longest, seconds)
        for link in list(self._nodes.values()):
            link.cap_timeout(seconds)

    def close(self) -> None:
        """Close the connections. The next exchange looks the slots up again, and opens others."""
        self._stale = True
        for link in list(self._nodes.values()):
            link.close()


def in_parallel(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Do jobs, each in a thread of its own but the last, and return their results.

    Where no thread can be started, as in an interpreter that is ending: one after the other.

    Raises:
        BaseException: the first that a job raised, once all have ended.
    """
    results: dict[int, T] = {}
    raised: dict[int, BaseException] = {}

    def do(number: int) -> None:
        try:
            results[number] = jobs[number]()
        except BaseException as error:  # noqa: BLE001 - it is raised below
            raised[number] = error

    threads = []
    for number in range(len(jobs) - 1):
        if sys.is_finalizing():  # up to Python 3.11 a thread is awaited there that never runs
            do(number)
            continue
        thread = threading.Thread(target=do, args=(number,), name="redmeter", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            do(number)
        else:
            threads.append(thread)
    if jobs:
        do(len(jobs) - 1)
    for thread in threads:
        thread.join()
    for number in sorted(raised):
        raise raised[number]
    return [results[number] for number in range(len(jobs))]
