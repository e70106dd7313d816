"""Fork guard: everything the first exchange needs is loaded while no fork can happen.

A fork copies only the thread that calls it. Modules that another thread is importing at that moment
stay half made in the child, and their import locks stay held: the child's first exchange would wait
for them for ever. redis-py imports some modules with the first connection only, and so does the
codec that host names go through.

So when a store is opened, all of it happens once: the codec is used, the scripts are read, and a
connection is rehearsed, to no server and with made-up replies. Which modules that takes depends on
the versions of Python and redis-py, so no list names them. A fork waits until it is done, a few
milliseconds; nothing is imported later.

Bound: a fork by C code that runs none of Python's hooks does not wait.
"""

import contextlib
import logging
import os
from _thread import RLock
from typing import Any

import redis

from redmeter.store import scripts
from redmeter.store.servers import sockets

logger = logging.getLogger("redmeter")

# A signal handler may open a store while its own thread is in here.
_lock = RLock()
_hooked = _loading = _loaded = False


def fork_lock() -> RLock:
    """Return the lock that a fork waits for; for a `with` statement of a few milliseconds."""
    return _lock


def load_before_forks() -> None:
    """Load what the first exchange needs, once per process."""
    global _hooked, _loading, _loaded
    if _loaded:
        return
    with _lock:
        # A signal handler interrupted this very thread, in the middle of an import.
        if _loading or _loaded:
            return
        _loading = True
        try:
            if not _hooked:
                os.register_at_fork(
                    before=_before_fork,
                    after_in_parent=_after_fork,
                    after_in_child=_after_fork_in_child,
                )
                _hooked = True
            try:
                _rehearse()
            except ImportError:  # the interpreter is ending
                pass
            except Exception:
                logger.exception("redmeter: a fork during the first connection may hang")
            scripts.read_all()
            _loaded = True
        finally:
            _loading = False


class _Replies:
    """What a connection needs of a socket, to a server that replies OK to everything."""

    def recv_into(self, buffer: bytearray) -> int:
        buffer[:5] = b"+OK\r\n"
        return 5

    def sendall(self, data: bytes) -> None:
        pass

    def settimeout(self, timeout: float | None) -> None:
        pass

    def shutdown(self, how: int) -> None:
        pass

    def close(self) -> None:
        pass


def _rehearse() -> None:
    """Do what the first exchange does, without a server."""
    "a.example".encode("idna")
    "xn--a".encode("ascii").decode("punycode")
    pool: Any = redis.ConnectionPool(protocol=2)
    connection = pool.make_connection()
    connection._connect = _Replies
    connection.connect()
    connection.send_command("PING")
    connection.read_response()
    connection.disconnect()


def _before_fork() -> None:
    _lock.acquire()


def _after_fork() -> None:
    with contextlib.suppress(RuntimeError):  # registered while a fork was under way
        _lock.release()


def _after_fork_in_child() -> None:
    global _lock, _loading
    _lock, _loading = RLock(), False
    sockets.close_inherited()
