"""How processes begin and end: forks, exits, SIGTERM. What recorders have to do with it.

    fork                    the child forgets what is the parent's and starts anew on first use
    end of the interpreter  atexit
    multiprocessing         its children leave by os._exit; its own finalizers are run
    Celery's pool           leaves by os._exit; its signal worker_process_shutdown is sent
    uvicorn                 ends itself by SIGTERM after its graceful end, which is waited for
    SIGTERM                 by default ends a process at once; see flush_on_sigterm()

Nothing is registered on import: only when a recorder starts.

A fork copies modules that another thread is just importing as they are, half made, and nothing
finishes them in the child. So what the client imports late is imported before our thread starts.
"""

import atexit
import contextlib
import functools
import importlib
import os
import signal
import sys
import threading
import time
import weakref
from _thread import RLock, get_ident, start_new_thread
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Protocol

from redmeter.recording.flusher import Request

#: How long the end of a process is delayed at most, seconds.
EXIT_SECONDS = 1.9


class Living(Protocol):
    """What has to know of forks and exits."""

    def after_fork(self) -> None:
        """Start anew, in the child."""
        ...

    def begin_leaving(self, timeout: float) -> Request | None:
        """Ask for a last flush; None where no thread can do it."""
        ...

    def leave(self, timeout: float) -> None:
        """Flush in this thread."""
        ...

    def flush(self, timeout: float) -> bool:
        """Flush, and go on afterwards."""
        ...

    def say_farewell(self) -> None:
        """Say in the log what could not be stored, and is lost if the process ends now."""
        ...


# Weakly, by id: a plain dict, since it is read and written in one step each.
_living: dict[int, "weakref.ref[Living]"] = {}
#: What is registered: once for all processes that are forked from this one, or once for each.
_hooked: set[object] = set()
#: Process id -> how much of EXIT_SECONDS is left: several hooks may run at the end of a process.
_left: dict[int, float] = {}

#: What the client library and ours import with the first exchange.
LATE = ("email.parser", "encodings.idna", "importlib.readers", "secrets")
#: Held while that is imported; no fork meanwhile.
_importing = RLock()
_hooking = False


def watch(one: Living) -> None:
    """Tell a recorder of forks and exits from now on.

    Cheap, and called again from time to time: what has to be known of may be imported later.
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
        ("uvicorn.server", _hook_uvicorn, 0),
    ):
        if (name, scope) not in _hooked and (module := sys.modules.get(name)):
            try:
                hook(module)
            except AttributeError:  # it is just being imported
                continue
            _hooked.add((name, scope))


def _hook_always() -> None:
    global _hooking
    # Whoever finds somebody else at it goes on: a signal handler may have interrupted that very
    # thread, in the middle of an import, where it must import nothing itself.
    if not _importing.acquire(blocking=False):
        return
    try:
        if _hooking:
            return
        _hooking = True
        try:
            if "always" not in _hooked:
                _register()
        finally:
            _hooking = False
    finally:
        _importing.release()


def _register() -> None:
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
    )
    atexit.register(_leave)
    for name in LATE:
        with contextlib.suppress(ImportError):  # the interpreter is ending
            importlib.import_module(name)
    # Last: an exception out of a signal handler must not leave any of it out.
    _hooked.add("always")


def _hook_finalizers(util: Any) -> None:
    util.Finalize(None, _leave, exitpriority=100)


def _hook_celery(signals: Any) -> None:
    signals.worker_process_shutdown.connect(_leave, weak=False)


def _hook_uvicorn(server: Any) -> None:
    shutdown = server.Server.shutdown

    @functools.wraps(shutdown)
    async def shutdown_and_flush(self: Any, *args: Any, **options: Any) -> None:
        try:
            await shutdown(self, *args, **options)
        finally:
            with spending() as left:
                until = time.monotonic() + left
                for one in _all():
                    if not one.flush(max(0.0, until - time.monotonic())):
                        one.say_farewell()

    server.Server.shutdown = shutdown_and_flush


def at_the_very_end() -> bool:
    """Whether this is what the main thread does last of all: atexit handlers, destructors."""
    main = threading.main_thread()
    return not main.is_alive() and main.ident == get_ident()


def _all() -> list[Living]:
    return [one for ref in list(_living.values()) if (one := ref()) is not None]


def _before_fork() -> None:
    _importing.acquire()


def _after_fork() -> None:
    with contextlib.suppress(RuntimeError):  # registered while a fork was under way
        _importing.release()


def _after_fork_in_child() -> None:
    global _importing, _hooking
    _importing, _hooking = RLock(), False
    for one in _all():
        one.after_fork()


def _leave(*_: object, **__: object) -> None:
    """Store what there is, all recorders at once, within EXIT_SECONDS."""
    with spending() as left:
        until = time.monotonic() + left
        leaving = [(one, one.begin_leaving(left)) for one in _all()]
        for one, request in leaving:
            if request is None or not request.wait():
                one.leave(until - time.monotonic())
                one.say_farewell()


@contextlib.contextmanager
def spending() -> Iterator[float]:
    """Give what is left of EXIT_SECONDS, and take off what was used."""
    process, began = os.getpid(), time.monotonic()
    left = _left.get(process, EXIT_SECONDS)
    try:
        yield left
    finally:
        _left[process] = max(0.0, left - (time.monotonic() - began))


#: What is asked to flush when SIGTERM comes, and what was done by SIGTERM before.
_asked: list[Callable[[float], Request | None]] = []
_before: Any = signal.SIG_DFL


def flush_on_sigterm(ask: Callable[[float], Request | None]) -> None:
    """Flush when SIGTERM comes, then do what would have been done.

    Where that is to die, it is done by another thread once the flush is through, after EXIT_SECONDS
    at the latest: the main thread may hold anything at the moment it is interrupted, so
    nothing is waited for in the handler.

    Raises:
        ValueError: not in the main thread.
    """
    global _before
    handler = signal.getsignal(signal.SIGTERM)
    if handler is not _on_sigterm:
        signal.signal(signal.SIGTERM, _on_sigterm)
        _before = handler
    _asked.append(ask)


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    requests = [request for ask in list(_asked) if (request := ask(EXIT_SECONDS)) is not None]
    if callable(_before):
        _before(number, frame)
    elif _before is not signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)
        try:
            start_new_thread(_die, (number, requests))
        except RuntimeError:
            _die(number, [])


def _die(number: int, requests: list[Request]) -> None:
    for request in requests:
        request.wait()
    os.kill(os.getpid(), number)
