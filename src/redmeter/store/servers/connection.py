"""One server: an exchange sends commands and reads as many replies. The only user of the client.

It uses the client library's connections, not its retries: the library resends a command up to ten
times if a reply is lost, and then nobody knows how often it was applied. Here a failed exchange is
an error with `sent`, and the caller decides: shard.py retries a batch under its number, and reads
are repeated.

A connection outlives a failover: the old primary keeps it open, as a replica. So if a server
replies READONLY, LOADING or MASTERDOWN, the connection of that exchange is closed, and so are all
idle ones, including those in a caller's pool. The next exchange connects anew, and its address (a
proxy, a Service, DNS or sentinels) may then lead to another server.

Works with a client of ours or of the caller's, whatever its settings for decoding or protocol.
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
from redmeter.store.servers.replies import (
    ARGUMENTS,
    Command,
    Link,
    Reply,
    is_misplaced,
    plain_text,
    translate,
)
from redmeter.store.servers.retry import is_not_primary
from redmeter.store.servers.sockets import BusyWait, bound, guarded, pack

#: Commands whose errors do not show which key they concern.
_SCRIPTS = {"EVAL", "EVALSHA"}


#: Exceptions of reply parsers: hiredis raises TypeError for a map whose key is a map, the client
#: ValueError for -MOVED without a host, and so on. Not every Exception: a signal handler may raise
#: its own meanwhile, such as Celery's time limit of a task, which belongs to the application.
_PARSE_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    SystemError,
    TypeError,
    ValueError,
)


class _Limits(threading.local):
    """The time at which exchanges of a thread must end, by the monotonic clock."""

    until: float | None = None


class ServerLink(Link):
    """Exchanges commands with one server. See Link for its methods.

    Each exchange has a connection to itself, so threads do not wait for each other. Connections of
    our own client are kept here between exchanges, which saves a tenth of a round trip compared
    with the client's pool. A caller's client is used through its pool, as its owner configured it.

    Args:
        connect: returns a redis-py client.
        location: for messages, without credentials.
        owned: whether the client is ours: opened on first use, and closed here.
        restarts: whether connect() starts the server if it has ended.
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
        #: Those of within(), whose timeouts were changed.
        self._bounded: deque[Any] = deque()
        self._pid = os.getpid()
        self._longest: float | None = None
        self._busy_wait = BusyWait()

    @property
    def database(self) -> int:
        """The number of the database; 0 before the first exchange."""
        options = self._client.connection_pool.connection_kwargs if self._client else {}
        return int(options.get("db") or 0)

    def exchange(
        self,
        commands: Sequence[Command],
        take: Callable[[Reply], Any] | None = None,
        *,
        spin: bool = False,
    ) -> list[Reply]:
        """Send commands together and read one reply for each; a server's error is a reply.

        Args:
            take: called with each reply as it arrives; its result replaces the reply.
            spin: the caller has nothing else to do before there is a reply: see sockets.py.

        Raises:
            StoreUnavailable: no connection, or it broke; `sent` is whether anything was sent.
            AccessDenied: the server denied access.
            StoreRefused: the server accepts no connection.
        """
        packed = b"".join([pack(command) for command in commands])
        sent, until = False, self._limits.until
        forked = self._pid != os.getpid()
        if forked:  # sockets and locks are the parent's
            self._start()
        try:
            client = self._client or self._open()
            if forked and not self._owned:
                _free(client.connection_pool)
            connection, usable = self._take(client, until), False
            try:
                sent, left = True, False
                try:
                    connection.send_packed_command((packed,))
                except _PARSE_ERRORS as error:  # of the health check of a caller's client
                    raise _unreadable(error) from None
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
                # Replies in flight must not be taken for those of the next exchange. If closing the
                # connection is interrupted, it is not returned to the pool.
                if not usable:
                    connection.disconnect()
                self._give_back(client, connection, until)
        except (client_errors.RedisError, OSError) as error:
            self.standalone = False
            problem = self._translated(error)
            if isinstance(problem, StoreUnavailable):
                problem.sent = sent
            # A server may repeat the arguments of AUTH, which must not appear in the traceback.
            raise problem from (None if ARGUMENTS.search(str(error)) else error)

    def collect(self, commands: Sequence[Command], *, spin: bool = False) -> list[Reply]:
        """Do the same; commands without a reply have an error of their own as their reply."""
        replies: list[Reply] = []
        try:
            self.exchange(commands, replies.append, spin=spin)
        except StoreError as error:
            missing = len(commands) - len(replies)
            replies += [error, *(copy(error) for _ in range(missing - 1))][:missing]
        return replies

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Make the exchanges of this thread end so many seconds from now, with or without a reply.

        With a caller's client, which may have any timeout: by connections of our own, made as its
        pool makes them, without its retries. See bound() for the exceptions.
        """
        before = self._limits.until
        self.end_within(seconds)
        try:
            yield
        finally:
            self._limits.until = before

    def end_within(self, seconds: float) -> None:
        """Do the same permanently, until the next call: for links used by one thread."""
        self._limits.until = time.monotonic() + seconds

    def bounded(self, seconds: float) -> contextlib.AbstractContextManager[None]:
        """Do the same for a caller's client only: ours has the timeout of the settings."""
        return contextlib.nullcontext() if self._owned else self.within(seconds)

    def _take(self, client: "redis.Redis", until: float | None) -> Any:
        if not self._owned and until is None:
            try:
                return client.connection_pool.get_connection()
            except _PARSE_ERRORS as error:
                raise _unreadable(error) from None
        try:
            connection = self._kept(until).pop()
            connection.verify()
        except IndexError:
            connection = self._made(client.connection_pool)
        if is_foreign(connection):
            connection.disconnect()
        try:
            _limit(connection, until)
            try:
                self._connect_or_renew(connection)
            except _PARSE_ERRORS as error:
                raise _unreadable(error) from None
            _limit(connection, until)
        except BaseException:
            connection.disconnect()
            # Returned for reuse: the pool has a limit, and does not know that this one failed.
            self._give_back(client, connection, until)
            raise
        return connection

    def _made(self, pool: Any) -> Any:
        if self._owned:
            return pool.make_connection()
        # Not counted by the limit of the caller's pool.
        return guarded(pool.connection_class)(**pool.connection_kwargs)

    def _connect_or_renew(self, connection: Any) -> None:
        if getattr(connection, "_sock", None) is None:
            self.standalone = False
            connection.connect()  # a no-op if it is connected
        try:
            # A server that has ended closed its side; detected now, no outcome is unknown.
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
            # Only idle ones: the application may be using others. Before redis-py 7 a blocking pool
            # cannot distinguish them; each of its connections is checked when it is used.
            with contextlib.suppress(TypeError):
                client.connection_pool.disconnect(inuse_connections=False)
        elif self._client is client:  # else another thread has done so already
            self._drop_client()

    def _read(self, connection: Any, command: Command) -> Reply:
        try:
            return connection.read_response(disable_decoding=True, disconnect_on_error=False)
        # The client treats LOADING as a broken connection. But the server may reply to commands
        # that were sent before or after, so their outcome is known.
        except (client_errors.ResponseError, client_errors.BusyLoadingError) as error:
            return self._translated(error, command)
        except _PARSE_ERRORS as error:
            raise _unreadable(error) from None

    def _translated(self, error: Exception, command: Command | None = None) -> StoreError:
        """Translate an error of the client into one of ours."""
        problem = translate(error, self.location)
        if command and is_misplaced(problem) and command[0] not in _SCRIPTS:
            assert isinstance(problem, StoreRefused)
            problem = StoreRefused(problem.code, problem.detail, plain_text(command[1]))
        return problem

    def _open(self) -> "redis.Redis":
        try:
            client = self._connect()
        except TypeError as error:  # an option in the URL that no connection knows
            raise InvalidSetting("url", f"has an unknown option: {_option(error)}") from None
        assert client is not None, "the caller holds its client during the call"
        if self._owned:
            pool = client.connection_pool
            pool.connection_class = guarded(pool.connection_class)
            self._client = client
            if self._longest is not None:
                options = client.connection_pool.connection_kwargs
                for name in ("socket_timeout", "socket_connect_timeout"):
                    options[name] = min(options.get(name) or self._longest, self._longest)
        return client

    def servers(self) -> list["ServerLink"]:
        return [self]

    def ask_servers(self, commands: Sequence[Command]) -> dict[str, list[Reply]]:
        """Send the same commands to each server, as collect() does; the only one has no name."""
        return {"": self.collect(commands)}

    def by_server(self, keys: Sequence[str]) -> dict[str, list[int]]:
        return {self.location: list(range(len(keys)))}

    def recover(self) -> None:
        if self._restarts:
            self.close()

    def cap_timeout(self, seconds: float) -> None:
        """Wait no longer than about that for any reply from now on; for the exit of a process.

        A caller's client is not changed.
        """
        if not self._owned:
            return
        now = self._longest
        if self._client is not None:
            now = self._client.connection_pool.connection_kwargs.get("socket_timeout")
        # Not for a small gain: at exit a new connection may be impossible, and once modules have
        # been torn down it always is.
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
            with contextlib.suppress(IndexError):  # another thread may have removed the last one
                while kept:
                    kept.pop().disconnect()


def _free(pool: Any) -> None:
    """Replace the locks of a caller's pool that another thread may have held during the fork.

    The pool resets itself in a child when it is used, but takes these locks to do so.
    """
    if pool.pid != os.getpid():
        for name in ("_fork_lock", "_lock"):
            if hasattr(pool, name):
                setattr(pool, name, threading.RLock())


def _limit(connection: Any, until: float | None) -> None:
    """Limit the timeouts of a connection to a time, by the monotonic clock."""
    if until is None:
        return
    left = until - time.monotonic()
    if left <= 0:
        raise client_errors.TimeoutError("the time limit of the exchange has passed")
    connection.retry = Retry(NoBackoff(), 0)
    connection.socket_timeout = connection.socket_connect_timeout = left
    bound(connection, until)
    socket = getattr(connection, "_sock", None)
    if socket is not None:
        socket.settimeout(left)


def _unreadable(error: Exception) -> Exception:
    """Return the error for a reply that cannot be parsed.

    More specific errors stay: a certificate for another host is a ValueError, too.
    """
    if isinstance(error, OSError | RedmeterError | client_errors.RedisError):
        return error
    return client_errors.InvalidResponse("a reply that cannot be parsed")


def is_foreign(connection: Any) -> bool:
    """Return whether its socket is gevent's and belongs to another thread: it only works there."""
    gevent = sys.modules.get("gevent")
    hub = getattr(getattr(connection, "_sock", None), "hub", None)
    return gevent is not None and hub is not None and hub is not gevent.get_hub()


def _option(error: TypeError) -> str:
    match = re.search(r"'(\w+)'", str(error))
    return match[1] if match else "see the client's documentation"
