"""Process lifecycle: forks, exits and SIGTERM, as they concern recorders.

    fork                    the child discards its parent's state and starts anew on first use
    interpreter exit        atexit
    multiprocessing         its children exit by os._exit; its own finalizers run
    Celery's pool           exits by os._exit; its signal worker_process_shutdown is sent
    Celery's worker         is replaced by exec after SIGHUP; worker_shutdown is sent before
    Tornado's autoreload    replaces the process by exec; its reload hooks are called before
    uvicorn                 ends itself by SIGTERM after its graceful shutdown; the server in this
                            process flushes at the end of that
    RQ's work horse         exits by os._exit; integrations/rq.py calls leave() before
    SIGTERM                 by default ends a process at once; see flush_on_sigterm()

Nothing is registered on import: only when a recorder is made.

A hook reports whether the process is exiting, not `threading.main_thread().is_alive()`: up to
Python 3.12 that call marks the main thread as ended if a signal handler raises within it.
"""

import atexit
import contextlib
import mmap
import os
import signal
import sys
import threading
import time
import weakref
from _thread import get_ident, start_new_thread
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from struct import Struct
from types import FrameType
from typing import Any, Protocol

from redmeter.recording.sending.flusher import FlushRequest
from redmeter.store import fork_guard

#: How long the exit of a process is delayed at most, seconds.
EXIT_SECONDS = 1.9
#: Longest wait for requests that uvicorn cancelled at its end, seconds.
CANCELLED_SECONDS = 1.0


class ProcessListener(Protocol):
    """A recorder, as the hooks see it."""

    def before_fork(self) -> None:
        """Prepare for a child, in the parent."""

    def after_fork(self) -> None:
        """Start anew, in the child."""

    def begin_exit(self, timeout: float) -> FlushRequest | None:
        """Request a last flush; None if no thread can do it."""

    def exit(self, timeout: float) -> None:
        """Flush in this thread."""

    def close(self, timeout: float) -> bool:
        """Flush; later events start again."""

    def log_unstored(self) -> None:
        """Log how many events are not stored and are lost if the process ends now."""


# Weakly, by id: a plain dict, since it is read and written in one step each.
_living: dict[int, "weakref.ref[ProcessListener]"] = {}
#: The registered hooks: once for all forked processes, or once for each.
_hooked: set[object] = set()
#: Process id -> remaining part of EXIT_SECONDS: several hooks may run when a process exits.
_left: dict[int, float] = {}

_hooking = False
#: Whether the main thread has ended: only other threads, exit handlers and destructors remain.
_ending = False


def add_listener(one: ProcessListener) -> None:
    """Notify a recorder of forks and exits from now on.

    Cheap, and called again from time to time: other modules may be imported later.
    """
    key = id(one)
    if key not in _living:
        _living[key] = weakref.ref(one, lambda _: _living.pop(key, None))
    if "always" not in _hooked:
        _hook_always()
    for name, hook, scope in (
        ("multiprocessing.util", _hook_finalizers, os.getpid()),
        ("billiard.util", _hook_finalizers, os.getpid()),
        ("celery.signals", _hook_celery, 0),
        ("tornado.autoreload", _hook_tornado, 0),
    ):
        if (name, scope) not in _hooked and (module := sys.modules.get(name)):
            try:
                hook(module)
            except AttributeError:  # it is being imported right now
                continue
            _hooked.add((name, scope))
    watch_uvicorn()


def _hook_always() -> None:
    global _hooking
    with fork_guard.fork_lock():
        # A signal handler interrupted this thread right here.
        if _hooking or "always" in _hooked:
            return
        _hooking = True
        try:
            _register()
        finally:
            _hooking = False


def _register() -> None:
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
    atexit.register(leave)
    # threading's hooks run before other threads are joined, atexit handlers only after.
    register = getattr(threading, "_register_atexit", atexit.register)
    try:
        register(_begin_to_end)
    except RuntimeError:  # threads are being joined, or that is over
        _begin_to_end()
    # Last: an exception raised by a signal handler must not skip any of it.
    _hooked.add("always")


def _begin_to_end() -> None:
    global _ending
    _ending = True


def _hook_finalizers(util: Any) -> None:
    def register(_: object) -> None:
        util.Finalize(None, leave, exitpriority=100)

    register(None)
    # A child forgets all finalizers, also those of modules that its server of forks has imported.
    util.register_after_fork(leave, register)


def _hook_celery(signals: Any) -> None:
    signals.worker_process_shutdown.connect(leave, weak=False)
    signals.worker_shutdown.connect(leave, weak=False)


def _hook_tornado(autoreload: Any) -> None:
    autoreload.add_reload_hook(leave)


def watch_uvicorn() -> None:
    """Make the uvicorn server of this process flush at the end of its shutdown.

    After its shutdown, uvicorn sends the signal that stopped it to itself, which by default ends
    the process before any exit handler. While it runs, the handler of SIGTERM and SIGINT is a
    method of the server, so it is found there, and only that one server is changed. An application
    may have replaced one of the two handlers, with flush_on_sigterm() for instance.

    Cheap, and called again from time to time: the server may start later.
    """
    module = sys.modules.get("uvicorn.server")
    if module is None:
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        server: Any = getattr(signal.getsignal(number), "__self__", None)
        # While uvicorn is being imported, it has no such class yet.
        is_server = server is not None and isinstance(server, getattr(module, "Server", ()))
        if is_server and getattr(server.shutdown, "func", None) is not _shut_down_and_flush:
            server.shutdown = partial(_shut_down_and_flush, server.shutdown)


async def _shut_down_and_flush(
    shutdown: Callable[..., Awaitable[None]], *args: Any, **options: Any
) -> None:
    try:
        await shutdown(*args, **options)
        # Requests that uvicorn cancelled because of their timeout: uvicorn does not wait until they
        # have ended, which takes a turn of the loop for each task group around them.
        state = getattr(getattr(shutdown, "__self__", None), "server_state", None)
        if cancelled := set(getattr(state, "tasks", ())):
            await sys.modules["asyncio"].wait(cancelled, timeout=CANCELLED_SECONDS)
    finally:
        with spending() as left:
            until = time.monotonic() + left
            for one in _all():
                if not one.close(max(0.0, until - time.monotonic())):
                    one.log_unstored()


def is_ending() -> bool:
    """Return whether the main thread has ended; other threads may still run."""
    return _ending


def at_the_very_end() -> bool:
    """Return whether this is the main thread's very end: atexit handlers, destructors."""
    return _ending and threading.main_thread().ident == get_ident()


def _all() -> list[ProcessListener]:
    return [one for ref in list(_living.values()) if (one := ref()) is not None]


def _before_fork() -> None:
    for one in _all():
        one.before_fork()


def _after_fork_in_child() -> None:
    global _hooking, _ending
    # The thread that forked is the child's main thread, even if the parent's had ended.
    _hooking = _ending = False
    for one in _all():
        one.after_fork()


def leave(*_: object, **__: object) -> None:
    """Flush all recorders concurrently, within EXIT_SECONDS, since this process ends.

    Events that are recorded afterwards are stored at once, within the rest of that time.
    """
    with spending() as left:
        until = time.monotonic() + left
        leaving = [(one, one.begin_exit(left)) for one in _all()]
        for one, request in leaving:
            if request is None or not request.wait():
                one.exit(until - time.monotonic())
                one.log_unstored()


@contextlib.contextmanager
def spending() -> Iterator[float]:
    """Yield the remaining part of EXIT_SECONDS, and subtract the time used."""
    process, began = os.getpid(), time.monotonic()
    left = _left.get(process, EXIT_SECONDS)
    try:
        yield left
    finally:
        _left[process] = max(0.0, left - (time.monotonic() - began))


#: The requests to make when SIGTERM arrives, and the previous handler.
_sigterm_requests: list[Callable[[float], FlushRequest | None]] = []
_before: Any = signal.SIG_DFL


def flush_on_sigterm(request: Callable[[float], FlushRequest | None]) -> None:
    """Flush when SIGTERM arrives, then do what its previous handler did.

    If that ends the process, another thread does it once the flush has ended, after EXIT_SECONDS at
    the latest: the main thread may hold any lock when it is interrupted, so the handler never
    waits.

    Raises:
        ValueError: not called in the main thread.
    """
    global _before
    handler = signal.getsignal(signal.SIGTERM)
    if handler is not _on_sigterm:
        signal.signal(signal.SIGTERM, _on_sigterm)
        _before = handler
    _sigterm_requests.append(request)


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    requests = [
        one for request in list(_sigterm_requests) if (one := request(EXIT_SECONDS)) is not None
    ]
    if callable(_before):
        _before(number, frame)
    elif _before is not signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)
        try:
            start_new_thread(_die, (number, requests))
        except RuntimeError:
            _die(number, [])


def _die(number: int, requests: list[FlushRequest]) -> None:
    for request in requests:
        request.wait()
    os.kill(os.getpid(), number)


# --- Children ------------------------------------------------------------------------------------

# A recorder notices forked processes that ended before they had stored anything.
#
# Such a process is not among the writers of the store yet, so nobody else could notice. Parent and
# children share memory with a slot for each child: a child writes its process id there with its
# first event, and clears it once the store has its first report, or all of its events.
#
# Bounds: a child forked by C code that runs no hooks has no slot, nor has one that is spawned, nor
# one beyond SLOTS. A parent that is killed itself notices nothing.

_PID = Struct("=I")
#: Children that have events and no report at the same time.
SLOTS = 1024


class Children:
    """The slots of a process's children, and its own slot among those of its parent.

    Args:
        parents: the memory shared with the parent and its other children; None if there is none.
    """

    def __init__(self, parents: mmap.mmap | None = None) -> None:
        self._parents = parents
        self._slot: int | None = None
        self._shared: mmap.mmap | None = None

    def before_fork(self) -> None:
        """Share memory with the child that is about to be forked."""
        if self._shared is None:
            with contextlib.suppress(OSError):  # no memory, or too many mappings
                self._shared = mmap.mmap(-1, SLOTS * _PID.size)

    def in_child(self) -> "Children":
        """Return what the child has instead, in the child."""
        return Children(self._shared)

    def has_events(self) -> None:
        """Note that this process has events that are not stored, unless that is noted."""
        parents = self._parents
        if parents is None or self._slot is not None:
            return
        first = os.getpid()
        for number in range(first, first + SLOTS):
            offset = number % SLOTS * _PID.size
            if not _PID.unpack_from(parents, offset)[0]:
                _PID.pack_into(parents, offset, first)
                self._slot = offset
                return

    def settled(self) -> None:
        """Note that the store knows this process, or has all of its events."""
        parents, slot = self._parents, self._slot
        if parents is not None and slot is not None:
            self._slot = None
            _PID.pack_into(parents, slot, 0)

    def take_ended(self) -> list[int]:
        """Return the process ids of children that have ended with events, each of them once."""
        shared = self._shared
        if shared is None or not any(shared[:]):
            return []
        ended = []
        for offset in range(0, len(shared), _PID.size):
            (pid,) = _PID.unpack_from(shared, offset)
            # Read again: it may have cleared its slot and ended since.
            if pid and has_ended(pid) and _PID.unpack_from(shared, offset)[0] == pid:
                _PID.pack_into(shared, offset, 0)
                ended.append(pid)
        return ended


def has_ended(pid: int) -> bool:
    """Return whether a process has ended, even if its parent has not waited for it yet."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1] in (b"Z", b"X")
    return False  # no /proc: noticed once its parent has waited for it


# --- A lock for exits ----------------------------------------------------------------------------

# Ticket lock: a lock that a signal handler cannot leave held by raising an exception.
#
# `lock.acquire()` and the `try:` after it are two steps. A handler that raises between them, as
# that of Ctrl-C does, leaves the lock held forever. A `with` statement has no such gap, but no
# timeout either.
#
# So each thread puts a ticket in line, within the `try`. The first ticket holds the lock. Removing
# a ticket is one step and safe at any moment, whether or not it is in line or first:
#
#     ticket = object()
#     try:
#         if lock.wait(ticket, 1.9):
#             ...
#     finally:
#         lock.tickets.pop(ticket, None)
#
# Bound: waiting polls every _POLL seconds; this is for a lock that is rarely contended.


#: Seconds between two polls.
_POLL = 0.005


class TicketLock:
    """Lets one thread at a time pass."""

    def __init__(self) -> None:
        #: The tickets in line; the first holds the lock. Each operation on it is atomic.
        self.tickets: dict[object, None] = {}

    def wait(self, ticket: object, timeout: float) -> bool:
        """Wait for the lock.

        Args:
            ticket: a new object, which the caller finally removes from `tickets`.
            timeout: how long to wait, seconds.

        Returns:
            Whether the ticket holds the lock.
        """
        until = time.monotonic() + timeout
        self.tickets[ticket] = None
        while list(self.tickets)[0] is not ticket:  # noqa: RUF015 - another thread may change it
            if time.monotonic() >= until:
                return False
            time.sleep(_POLL)
        return True
