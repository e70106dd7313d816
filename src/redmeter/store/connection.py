"""One exchange with the server: commands out, as many replies back. The only user of the client.

The client's connections are used, its retries are not: its own policy is to send a command
again, up to ten times, when a reply is lost, and then nobody knows how often it was carried out.
Here a failed exchange is an error that says whether anything had been sent; who calls decides
(store.py sends a batch again under its number, and repeats a reading).

A connection outlives a failover: the old primary keeps it open, as a replica. So a server that
answers READONLY, LOADING or MASTERDOWN is left: the connection of that exchange is closed, and so
are all idle ones, also those in a caller's pool. The next exchange connects anew, and whatever the
address leads to then, a proxy, a Service, DNS or sentinels, has the chance to name another server.

Works on a client of ours or of the caller's, whatever its settings for decoding or protocol.
"""

import contextlib
import os
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any

import redis
import redis.exceptions as client_errors
from redis.backoff import NoBackoff
from redis.retry import Retry

from redmeter.errors import (
    InvalidSetting,
    RedmeterError,
    StoreError,
    StoreRefused,
    StoreUnavailable,
)
from redmeter.store.busy_wait import BusyWait
from redmeter.store.deadlines import bound
from redmeter.store.link import Link
from redmeter.store.packing import pack
from redmeter.store.replies import (
    ARGUMENTS,
    Command,
    Reply,
    is_misplaced,
    translate,
)
from redmeter.store.retry import is_not_primary

#: Commands of which nobody knows which key an error is about.
_SCRIPTS = {"EVAL", "EVALSHA"}


class _Limits(threading.local):
    """Until when the exchanges of a thread have to end, by the monotonic clock."""

    until: float | None = None


class ServerLink(Link):
    """A way to exchange commands with one server.

    Each exchange has a connection to itself, so threads do not wait for each other; those of our
    own client are kept here between exchanges, which is cheaper than the client's pool by a tenth
    of a round trip. A caller's client is borrowed from through its pool, as its owner set it up.

    Args:
        connect: returns a redis-py client.
        location: for messages, without credentials.
        owned: whether the client is ours: opened on first use, and closed here.
        restarts: whether connect() starts the server, should it have ended.
    """

    def __init__(
        self,
        connect: "Callable[[], redis.Redis | None]",
        location: str,
        *,
        owned: bool = True,
        restarts: bool = False,
    ) -> None:
        self._connect = connect
        self._owned = owned
        self._restarts = restarts
        self.location = location
        #: Whether the server is known not to be a cluster node: see topology.py.
        self.standalone = False
        self._limits = _Limits()
        self._start()

    def _start(self) -> None:
        self._client: redis.Redis | None = None
        self._idle: deque[Any] = deque()
        #: Those of within(), which know no other times any more.
        self._bounded: deque[Any] = deque()
        self._pid = os.getpid()
        self._longest: float | None = None
        self._busy_wait = BusyWait()

    def exchange(
        self,
        commands: Sequence[Command],
        take: Callable[[Reply], Any] | None = None,
        *,
        spin: bool = False,
    ) -> list[Reply]:
        """Send commands together and read one reply for each; a server's error is a reply.

        Args:
            take: is given each reply as it arrives; what it returns stands in its place.
            spin: for who can do nothing else before there is a reply: see busy_wait.py.

        Raises:
            StoreUnavailable: no connection, or it broke; `sent` says whether anything went out.
            AccessDenied: the server did not let us in.
            StoreRefused: the server is there but takes no connection.
        """
        packed = b"".join([pack(command) for command in commands])
        sent, until = False, self._limits.until
        if self._pid != os.getpid():  # forked: sockets and locks are the parent's
            self._start()
        try:
            client = self._client or self._open()
            connection, usable = self._take(client, until), False
            try:
                sent, left = True, False
                connection.send_packed_command((packed,))
                wait = self._busy_wait.begin(connection) if spin else None
                replies = []
                for command in commands:
                    _limit(connection, until)
                    reply = self._read(connection, command)
                    left = left or is_not_primary(reply)
                    replies.append(reply if take is None else take(reply))
                if wait is not None:
                    self._busy_wait.end(wait)
                usable = not left
                if left:
                    self._leave(client)
                return replies
            finally:
                # Replies still under way must not be taken for those of the next exchange: where
                # closing the connection is interrupted, nobody gets it back.
                if not usable:
                    connection.disconnect()
                self._give_back(client, connection, until)
        except (client_errors.RedisError, OSError) as error:
            self.standalone = False
            problem = self._told(error)
            if isinstance(problem, StoreUnavailable):
                problem.sent = sent
            # What a server repeats of an AUTH must not come back by way of the traceback.
            raise problem from (None if ARGUMENTS.search(str(error)) else error)

    def collect(self, commands: Sequence[Command], *, spin: bool = False) -> list[Reply]:
        """Do the same; what was not answered has the error as its reply, each one of its own."""
        replies: list[Reply] = []
        try:
            self.exchange(commands, replies.append, spin=spin)
        except StoreError as error:
            missing = len(commands) - len(replies)
            replies += [error, *(copy(error) for _ in range(missing - 1))][:missing]
        return replies

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Have the exchanges of this thread end so many seconds from now, answered or not.

        With a caller's client, which may wait for as long as it likes: by connections of our own,
        made as its pool makes them, without its retries. Not bounded: see bound().
        """
        before = self._limits.until
        self.end_within(seconds)
        try:
            yield
        finally:
            self._limits.until = before

    def end_within(self, seconds: float) -> None:
        """Do the same from now on, until it is said again: for who has a link to himself."""
        self._limits.until = time.monotonic() + seconds

    def bounded(self, seconds: float) -> contextlib.AbstractContextManager[None]:
        """Do the same with a caller's client alone: ours waits no longer than the settings say."""
        return contextlib.nullcontext() if self._owned else self.within(seconds)

    def _take(self, client: "redis.Redis", until: float | None) -> Any:
        if not self._owned and until is None:
            return client.connection_pool.get_connection()
        try:
            connection = self._kept(until).pop()
        except IndexError:
            connection = self._made(client.connection_pool)
        if _foreign(connection):
            connection.disconnect()
        try:
            _limit(connection, until)
            try:
                self._connect_or_renew(connection)
            except ValueError as error:
                raise _unreadable(error) from None
            _limit(connection, until)
        except BaseException:
            connection.disconnect()
            # To be used again: the pool makes only so many, and does not know that one failed.
            self._give_back(client, connection, until)
            raise
        return connection

    def _made(self, pool: Any) -> Any:
        if self._owned:
            return pool.make_connection()
        # One that the caller's pool does not count among the most that it may have.
        return pool.connection_class(**pool.connection_kwargs)

    def _connect_or_renew(self, connection: Any) -> None:
        if getattr(connection, "_sock", None) is None:
            self.standalone = False
            connection.connect()  # which is nothing where it is connected
        try:
            # A server that ended since has closed its side; found out now, nothing is in doubt.
            stale = connection.can_read()
        except (client_errors.ConnectionError, client_errors.TimeoutError, OSError):
            stale = True
        if stale:
            self.standalone = False
            connection.disconnect()
            connection.connect()

    def _kept(self, until: float | None) -> deque[Any]:
        return self._idle if until is None else self._bounded

    def _give_back(self, client: "redis.Redis", connection: Any, until: float | None) -> None:
        if not self._owned and until is None:
            client.connection_pool.release(connection)
        elif self._client is client or not self._owned:
            self._kept(until).append(connection)
        else:  # closed meanwhile
            connection.disconnect()

    def _leave(self, client: "redis.Redis") -> None:
        """Close all idle connections, so that the next exchange connects anew."""
        if not self._owned:
            self._drop_idle()
            # Only the idle ones: others are in use, by the application perhaps. Before redis-py 7 a
            # blocking pool cannot tell them apart; there each is found out when it is used.
            with contextlib.suppress(TypeError):
                client.connection_pool.disconnect(inuse_connections=False)
        elif self._client is client:  # else another thread has done so already
            self._drop_client()

    def _read(self, connection: Any, command: Command) -> Reply:
        try:
            return connection.read_response(disable_decoding=True, disconnect_on_error=False)
        # To the client, LOADING is a broken connection. But the server may have answered what was
        # sent before and, once it has its data, answers what was sent after: none is in doubt.
        except (client_errors.ResponseError, client_errors.BusyLoadingError) as error:
            return self._told(error, command)
        except ValueError as error:
            raise _unreadable(error) from None

    def _told(self, error: Exception, command: Command | None = None) -> StoreError:
        """Return an error of the client's as one of ours."""
        problem = translate(error, self.location)
        if command and is_misplaced(problem) and command[0] not in _SCRIPTS:
            assert isinstance(problem, StoreRefused)
            problem = StoreRefused(problem.code, problem.detail, _text(command[1]))
        return problem

    def _open(self) -> "redis.Redis":
        try:
            client = self._connect()
        except TypeError as error:  # an option in the URL that no connection knows
            raise InvalidSetting("url", f"has an unknown option: {_option(error)}") from None
        assert client is not None, "the caller holds its client during the call"
        if self._owned:
            self._client = client
            if self._longest is not None:
                options = client.connection_pool.connection_kwargs
                for name in ("socket_timeout", "socket_connect_timeout"):
                    options[name] = min(options.get(name) or self._longest, self._longest)
        return client

    def servers(self) -> list["ServerLink"]:
        """Return a link to each server: the only one."""
        return [self]

    def ask_servers(self, commands: Sequence[Command]) -> dict[str, list[Reply]]:
        """Ask the same of each server, as collect() does; the only one has no name."""
        return {"": self.collect(commands)}

    def by_server(self, keys: Sequence[str]) -> dict[str, list[int]]:
        """Return the numbers of the keys that each server has."""
        return {self.location: list(range(len(keys)))}

    def recover(self) -> None:
        """Do what may help, after an exchange broke."""
        if self._restarts:
            self.close()

    def cap_timeout(self, seconds: float) -> None:
        """From now on wait no longer than about that for any answer; for the end of a process.

        A caller's client is not changed.
        """
        if not self._owned:
            return
        now = self._longest
        if self._client is not None:
            now = self._client.connection_pool.connection_kwargs.get("socket_timeout")
        # Not for next to nothing: another connection may be more than can be had at shutdown, and
        # once modules are taken apart it surely is.
        enough = 0.5 if sys.is_finalizing() else 0.9
        if now is None or seconds < enough * now:
            self._longest = seconds
            self.close()

    def close(self) -> None:
        """Close a client of ours; the next exchange would open another."""
        self._drop_client()

    def _drop_client(self) -> None:
        client, self._client = self._client, None
        self._drop_idle()
        if client is not None:
            client.close()

    def _drop_idle(self) -> None:
        for kept in (self._idle, self._bounded):
            with contextlib.suppress(IndexError):  # another thread may have taken the last one
                while kept:
                    kept.pop().disconnect()


def _limit(connection: Any, until: float | None) -> None:
    """Have a connection wait no longer than until a time, by the monotonic clock."""
    if until is None:
        return
    left = until - time.monotonic()
    if left <= 0:
        raise client_errors.TimeoutError("the time that was given for it is over")
    connection.retry = Retry(NoBackoff(), 0)
    connection.socket_timeout = connection.socket_connect_timeout = left
    bound(connection, until)
    socket = getattr(connection, "_sock", None)
    if socket is not None:
        socket.settimeout(left)


def _unreadable(error: ValueError) -> Exception:
    """Return what the client should have raised: it trips over -MOVED without a host, for one.

    What says more stays: a certificate that is none of the host's is a ValueError too.
    """
    if isinstance(error, OSError | RedmeterError):
        return error
    return client_errors.InvalidResponse("a reply that cannot be understood")


def _foreign(connection: Any) -> bool:
    """Whether it has a socket of gevent's that belongs to another thread, where alone it works."""
    gevent = sys.modules.get("gevent")
    hub = getattr(getattr(connection, "_sock", None), "hub", None)
    return gevent is not None and hub is not None and hub is not gevent.get_hub()


def _option(error: TypeError) -> str:
    found = re.search(r"'(\w+)'", str(error))
    return found[1] if found else "see the client's documentation"


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
