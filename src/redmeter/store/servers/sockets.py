"""Sockets: what a connection of the client owns, how it waits and ends, and packs commands."""

import _thread
import contextlib
import math
import os
import ssl
import sys
import time
import weakref
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import hiredis
import redis

from redmeter.store.servers.replies import Command

# --- Descriptors ---------------------------------------------------------------------------------

# A descriptor is a number, and the number may become another file of the application: daemons fork,
# and close all numbers that they know nothing of. A connection that used its number after that
# would send commands to that file, take what arrives there, or close it.
#
# So a child closes the sockets that it inherited right after the fork, whether or not it ever
# records anything. And before a connection is used or closed, its number is looked at: if it is no
# longer the socket that was connected, the connection forgets it.
#
# Bound: 1 us for each exchange. A number that is closed and opened again by another thread during
# an exchange is not noticed before its end.

#: The open connections, by identity.
_open: dict[int, "weakref.ref[Guarded]"] = {}


class Guarded:
    """Added to a connection of the client: it uses and closes its own socket only."""

    _sock: Any
    _inode: tuple[int, int, int] | None = None
    #: While it connects: the alert of TLS with which the server breaks off.
    _alert: str | None = None

    def connect(self, *args: Any, **options: Any) -> None:
        """Connect; if the server breaks off, the error is its reason.

        By TLS 1.3 it looks at our certificate after the handshake, so that the client fails to send
        and closes the socket, with the reason unread.
        """
        self._alert = ""
        try:
            super().connect(*args, **options)  # type: ignore[misc]
        except redis.ConnectionError as error:
            if self._alert:
                raise redis.ConnectionError(self._alert) from error
            raise
        finally:
            self._alert = None

    def _connect(self) -> Any:
        socket = super()._connect()  # type: ignore[misc]
        self._inode = _inode_of(socket.fileno())
        key = id(self)
        _open[key] = weakref.ref(self, lambda _: _open.pop(key, None))
        return socket

    def verify(self) -> None:
        """Forget the socket if its number has become another file."""
        socket = self._sock
        if socket is not None and _inode_of(socket.fileno()) != self._inode:
            _detach(socket)
            self.disconnect()

    def disconnect(self, *args: Any, **options: Any) -> None:
        """Close the socket, if it still is one."""
        socket = self._sock
        if socket is not None and _inode_of(socket.fileno()) != self._inode:
            _detach(socket)
        elif self._alert == "":
            self._alert = _alert_of(socket)
        super().disconnect(*args, **options)  # type: ignore[misc]

    def close_inherited(self) -> None:
        """Close this process's copy of a socket that its parent goes on with. Takes no lock."""
        socket, self._sock = self._sock, None
        if socket is not None:
            number = _detach(socket)
            if _inode_of(number) == self._inode:
                os.close(number)


@lru_cache(maxsize=16)
def guarded(kind: type) -> type:
    """Return a class of connections that use and close their own sockets only."""
    return kind if issubclass(kind, Guarded) else type(kind.__name__, (Guarded, kind), {})


def close_inherited() -> None:
    """Close the sockets that a forked child has inherited."""
    for ref in list(_open.values()):
        if (connection := ref()) is not None:
            with contextlib.suppress(Exception):
                connection.close_inherited()
    _open.clear()


def _alert_of(socket: Any) -> str:
    """Return the alert of TLS that has arrived; "" if none has."""
    if isinstance(socket, Bounded):
        socket = socket._socket
    if not isinstance(socket, ssl.SSLSocket):
        return ""
    try:
        socket.settimeout(0)
        socket.recv(1)
    except (OSError, ValueError) as error:
        return str(error) if "alert" in str(error) else ""
    return ""


def _inode_of(number: int) -> tuple[int, int, int] | None:
    try:
        status = os.fstat(number)
    except OSError:
        return None
    return number, status.st_dev, status.st_ino


def _detach(socket: Any) -> int:
    """Make a socket forget its number, without closing it; return the number."""
    if isinstance(socket, Bounded):
        socket = socket._socket
    # That of gevent would close it by its loop, later.
    number: int = getattr(socket, "_sock", socket).detach()
    return number


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
