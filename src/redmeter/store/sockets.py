"""Sockets: how a connection of the client waits, ends at a deadline, and packs commands."""

import _thread
import contextlib
import math
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import hiredis
import redis

from redmeter.store.replies import Command

# --- Deadlines ---------------------------------------------------------------------------------

# The client's timeout is one of each reception: a server that sends a byte now and then would keep
# it for ever.


class Bounded:
    """A connected socket, of which nothing is received after a time.

    Args:
        socket: of any class: also TLS, or gevent's.
        until: by the monotonic clock.
    """

    __slots__ = ("_socket", "until")

    def __init__(self, socket: Any, until: float) -> None:
        self._socket = socket
        self.until = until

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def recv(self, *args: Any) -> bytes:
        """Receive as a socket does.

        Raises:
            TimeoutError: the time is over.
        """
        self._limit()
        received: bytes = self._socket.recv(*args)
        return received

    def recv_into(self, *args: Any) -> int:
        """Receive as a socket does. Raises: see recv()."""
        self._limit()
        received: int = self._socket.recv_into(*args)
        return received

    def _limit(self) -> None:
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        if self._socket.gettimeout() != 0:  # else somebody looks whether anything is there
            self._socket.settimeout(left)


def bound(connection: Any, until: float) -> None:
    """Have what a connection receives end at a time, from its first reply on.

    Not bounded as a whole: looking up a host's name, and connecting, with TLS, to each address.
    """
    socket = getattr(connection, "_sock", None)
    if type(socket) is Bounded:
        socket.until = until
    connect = type(connection)._connect
    connection._connect = lambda: Bounded(connect(connection), until)


# --- Waiting -------------------------------------------------------------------------------------
# Busy wait: poll for a reply for a moment before sleeping, if that is faster.
#
# Sleeping until a reply arrives may take longer than a nearby server needs to reply: waking up
# costs about 40 us in a virtual machine, whose processors halt meanwhile. So a thread that has
# nothing else to do polls for a while before it sleeps, like threads that wait for a lock. That
# pays as long as a processor is free for it, which cannot be known: both ways are timed, and the
# faster one is used. Other threads of the process would wait for the interpreter meanwhile: if
# Python has started any, a thread sleeps at once.

#: Longest time to poll, seconds.
SPIN_SECONDS = 150e-6
#: Every so many waits, the other way is tried.
TRY = 32
#: Polling must take at most this part of the time of sleeping: others may need the processor.
WORTH = 0.9


class Wait(NamedTuple):
    """A wait in progress."""

    spun: bool
    #: Monotonic seconds.
    since: float


class BusyWait:
    """Decides how to wait for one server; threads may share it, since these are estimates."""

    __slots__ = ("_slept", "_spun", "_turn")

    def __init__(self) -> None:
        #: Average recent wait of either kind, seconds; 0 before the first.
        self._spun = self._slept = 0.0
        self._turn = 0

    def begin(self, connection: Any) -> Wait:
        """Begin to wait for a reply on a connection, and poll for it if that pays."""
        wait = Wait(_is_alone() and self.spins(), time.monotonic())
        if wait.spun:
            until = wait.since + SPIN_SECONDS
            # Closed by the server, it may still hold a reply: the read finds out.
            with contextlib.suppress(redis.ConnectionError):
                while not connection.can_read() and time.monotonic() < until:
                    pass
        return wait

    def end(self, wait: Wait) -> None:
        """Record how long a wait took, once the reply has arrived."""
        self.learn(wait.spun, time.monotonic() - wait.since)

    def spins(self) -> bool:
        """Return whether to poll this time."""
        self._turn += 1
        quicker = self._spun < WORTH * self._slept
        return quicker != (self._turn % TRY == 1)

    def learn(self, spun: bool, seconds: float) -> None:
        """Record how long a wait took."""
        if spun:
            self._spun = _averaged(self._spun, seconds)
        else:
            self._slept = _averaged(self._slept, seconds)


def _averaged(average: float, seconds: float) -> float:
    """Return a moving average with one more wait."""
    # A single long one is no evidence for the next.
    seconds = min(seconds, 1.5 * average or math.inf, 2 * SPIN_SECONDS)
    return average + (seconds - average) / 4 if average else seconds


def _is_alone() -> bool:
    """Return whether no other thread of this process could run while this one waits."""
    # `threading` only knows its own, and reading all threads' frames can deadlock.
    return _thread._count() == 0 and "gevent" not in sys.modules


# --- Packing -------------------------------------------------------------------------------------
# Packing: commands as they go over the wire, of text and bytes alone.
#
# Problem: hiredis also converts numbers to text, and does not check that it could. Meanwhile Python
# may run a signal handler; if that raises, as the handler of Ctrl-C does, the process crashes.
#
# Idea: hiredis never gets a number. By its type a `Command` has none, and the numbers of the
# commands that a connection sends when it connects (`SELECT 6`, `HELLO 3`) are converted here.
#
# Not done: connections made by a caller's client pack these commands themselves.

#: Return a command as it goes over the wire.
pack: Callable[[Command], bytes] = hiredis.pack_command  # type: ignore[assignment]  # its stub


class Packer:
    """Packs the commands that a connection of redis-py sends when it connects."""

    def pack(self, name: str, *rest: str | bytes | float) -> list[bytes]:
        """Return a command as it goes over the wire.

        Args:
            name: one word or several, "CLIENT SETINFO" for one.
        """
        return [
            pack((*name.split(), *(p if isinstance(p, str | bytes) else repr(p) for p in rest)))
        ]
