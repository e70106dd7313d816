"""Flusher: decides when a recorder flushes, and the background thread that does it.

A flusher wakes up once an interval, or when it is rung; it collects events and sends them. While
the store is unreachable it backs off (store/servers/retry.py), but keeps collecting, so that memory
stays small.

All flushers of a process share one thread, which serves them in turns. A store that hangs delays no
other: if a turn takes long, another thread takes over the rest, and the flusher that hung joins
them once its turn is over.

The thread is started by `_thread`, not by `threading.Thread`, whose start() takes locks that a
signal handler could find held by the very thread it interrupted. Only flush() and close() wait.

Waiting uses the machine's monotonic clock, even if the meter's own clock is set by hand.

gevent replaces threads and locks, before this is imported or at any time after. This module uses
the ones of its import: a greenlet that waited for a lock of threads would stop its whole thread.
"""

import contextlib
import math
import os
import sys
import time
from _thread import allocate_lock, get_ident, start_new_thread
from collections import deque
from collections.abc import Callable, Generator
from typing import Protocol, TypeVar

from redmeter.store.servers.retry import Backoff, short_pause, system_random

#: Whether our thread is a greenlet.
GREENLETS = start_new_thread.__module__ != "_thread"

#: Longest time to wait for a flush, seconds: locks cannot count much further.
LONGEST_WAIT = 1e6
#: Seconds after which another thread takes over the other flushers.
STUCK = 0.5

T = TypeVar("T")
#: Long work in steps: each yields the pause before the next, seconds, and whether a ring ends the
#: pause.
Pauses = Generator[tuple[float, bool], None, T]


#: The background threads, by process and identity: a forked child has none of its parent's.
_ours: set[tuple[int, int]] = set()


def in_background() -> bool:
    """Return whether this thread is a background thread of ours."""
    return (os.getpid(), get_ident()) in _ours


def may_start_threads() -> bool:
    """Return whether a thread that is started here ever runs.

    In a thread of gevent's pool it would be a greenlet, and no other greenlet ever runs there.
    """
    return not GREENLETS or bool(sys.modules["gevent"].get_hub().loop.default)


class FlushFailed(Exception):
    """Events are left, in memory.

    Args:
        passing: whether a retry may succeed within moments.
        partly: whether only a part of the store failed, which has its own backoff: other parts
            work, are still in progress, or were not tried.
    """

    def __init__(self, *, passing: bool, partly: bool = False) -> None:
        super().__init__(passing, partly)
        self.passing = passing
        self.partly = partly


class Replaced(Exception):
    """A callback of the application returned after another thread had taken over."""


class Flush(Protocol):
    """Collects and sends until nothing is left."""

    def __call__(self, *, last: bool, requested: bool) -> None:
        """Flush.

        Args:
            last: no flush comes after it.
            requested: a flush was requested.

        Raises:
            FlushFailed: events are left.
            Replaced: another flusher does it from now on.
        """


class FlushRequest:
    """A requested flush, and the caller that waits for it."""

    __slots__ = ("_done", "_flusher", "last", "ok", "until")

    def __init__(self, flusher: "Flusher", timeout: float, *, last: bool = False) -> None:
        self._flusher = flusher
        #: Until when to try, monotonic seconds.
        self.until = time.monotonic() + min(timeout, LONGEST_WAIT)
        #: Whether no flush comes after it.
        self.last = last
        self.ok = False
        self._done = allocate_lock()
        self._done.acquire()

    def answer(self, ok: bool) -> None:
        """Report that the flush is done, and whether everything was stored."""
        self.ok = ok
        self._done.release()

    def wait(self) -> bool:
        """Wait for the flush until its timeout; return whether everything was stored."""
        while not self._done.acquire(timeout=max(0.0, min(STUCK, self.until - time.monotonic()))):
            if time.monotonic() >= self.until or not self._flusher.start():
                return False
        return self.ok


class FlusherThread:
    """A thread that serves flushers in turns, as long as there are any."""

    def __init__(self) -> None:
        # Held by the thread as long as it lives. Several may be started at once: the one that
        # acquires it runs, the others end.
        self._alive = allocate_lock()
        self._bell = allocate_lock()
        self._bell.acquire()
        #: Unordered; a dict, because any thread can change it in one step.
        self._members: dict[Flusher, None] = {}
        self._turn: tuple[Flusher | None, float] = None, 0.0
        self._process = os.getpid()

    @property
    def alive(self) -> bool:
        """Whether the thread runs, in this process."""
        return self._alive.locked() and self._process == os.getpid()

    def stuck(self, other_than: "Flusher | None" = None) -> bool:
        """Return whether the turn of another flusher is taking long."""
        whose, since = self._turn
        return whose not in (None, other_than) and time.monotonic() - since > STUCK

    def take(self, flusher: "Flusher") -> bool:
        """Add a flusher; return False if no thread can be started."""
        flusher.loop = self
        self._members[flusher] = None
        if not self._alive.locked():
            try:
                start_new_thread(self._run, ())
            except RuntimeError:
                self._members.pop(flusher, None)
                flusher.loop = None
                return False
        self.ring()
        return True

    def take_all_but_stuck(self, other: "FlusherThread") -> None:
        """Take over the flushers that another thread cannot serve."""
        whose, _ = other._turn
        for flusher in list(other._members):
            if flusher is not whose:
                self.take(flusher)

    def ring(self) -> None:
        """Wake the thread."""
        with contextlib.suppress(RuntimeError):  # it was rung already
            self._bell.release()

    def _run(self) -> None:
        me = os.getpid(), get_ident()
        _ours.add(me)
        try:
            # Again for flushers that were added after the last turn and still saw a thread.
            while self._members and self._alive.acquire(blocking=False):
                try:
                    self._serve()
                finally:
                    self._alive.release()
        finally:
            _ours.discard(me)

    def _serve(self) -> None:
        while self._members:
            soonest = time.monotonic() + LONGEST_WAIT
            for flusher in list(self._members):
                if flusher.due <= time.monotonic():
                    self._turn = flusher, time.monotonic()
                    try:
                        flusher.step(self)
                    finally:
                        self._turn = None, 0.0
                if flusher.loop is not self:  # it has ended, or moved to another thread
                    self._members.pop(flusher, None)
                    if flusher.loop is self:  # it has just been added again
                        self._members[flusher] = None
                soonest = min(soonest, flusher.due)
            pause = soonest - time.monotonic()
            if self._members and pause > 0:
                self._bell.acquire(timeout=pause)


_loop: FlusherThread | None = None


def _current_loop() -> FlusherThread:
    """Return this process's thread; a new one if the current one hangs."""
    global _loop
    before = _loop
    if before is None or before._process != os.getpid():
        _loop = FlusherThread()
    elif before.stuck():
        _loop = FlusherThread()
        _loop.take_all_but_stuck(before)
    assert _loop is not None, "set above"
    return _loop


class Flusher:
    """Decides when a recorder flushes.

    Args:
        flush: collects and sends.
        collect: only collects.
        waiting: returns whether there are events to collect.
        interval: seconds from one flush to the next.
        hangs: returns whether a callback of the application does not return.
        replace: returns a flusher that goes on without that callback.
        recovered: returns whether a retry is worthwhile before the backoff has ended.
    """

    def __init__(
        self,
        flush: Flush,
        collect: Callable[[], None],
        waiting: Callable[[], bool],
        interval: float,
        *,
        hangs: Callable[[], bool],
        replace: "Callable[[], Flusher]",
        recovered: Callable[[], bool],
    ) -> None:
        self._flush = flush
        self._collect = collect
        self._waiting = waiting
        self._interval = interval
        self._hangs = hangs
        self._replace = replace
        self._recovered = recovered
        #: The flusher that goes on in its place; None if it goes on itself.
        self._successor: Flusher | None = None
        #: The thread that serves it; None if there is none.
        self.loop: FlusherThread | None = None
        self._steps: Pauses[list[FlushRequest]] | None = None
        self._stepping = allocate_lock()
        self._wake, self._listens, self._rung = 0.0, True, False
        self._requests: deque[FlushRequest] = deque()
        #: The requests that the current flush is for.
        self._taken: list[FlushRequest] = []
        self._backoff = Backoff(interval)

    @property
    def running(self) -> bool:
        """Whether a thread serves it."""
        loop = self.loop
        serves = loop is not None and loop.alive and not loop.stuck(other_than=self)
        return serves and not self._hangs()

    @property
    def failing(self) -> bool:
        """Whether the last attempt failed."""
        return self._backoff.failures > 0

    @property
    def due(self) -> float:
        """Time of the next turn, monotonic seconds."""
        return -math.inf if self._rung and self._listens else self._wake

    def start(self) -> bool:
        """Start flushing, unless it is running.

        Returns:
            False if no thread can be started: the interpreter is exiting, a limit is reached, or
            this is a thread of gevent's pool, in which no other greenlet ever runs.
        """
        if self._successor is not None:
            return self._successor.start()
        if self.running:
            return True
        if self._hangs():
            return self._replace().start()
        if not may_start_threads():
            return False
        return _current_loop().take(self)

    def ring(self) -> None:
        """Have the next turn now: to collect, or to flush if requested."""
        self._rung = True
        if self.loop is not None:
            self.loop.ring()

    def request(self, timeout: float, *, last: bool = False) -> FlushRequest:
        """Request a flush. With `last`, the turns end after it."""
        request = FlushRequest(self, timeout, last=last)
        self._requests.append(request)
        if self._successor is not None:  # since a moment ago: it has taken the others already
            self._successor.take_requests(self)
        self.ring()
        return request

    def try_request(self, timeout: float, *, last: bool) -> FlushRequest | None:
        """Request a flush; None if there is no thread and none can be started."""
        request = self.request(timeout, last=last)  # first: turns end if there is nothing to do
        if self.start():
            return request
        with contextlib.suppress(ValueError):
            self._requests.remove(request)
        return None

    def take_over(self, other: "Flusher") -> None:
        """Go on in the place of another one, whose thread is held up by a callback."""
        other._successor = self
        self._backoff = other._backoff
        for request in other._taken:
            self._requests.append(request)
        self.take_requests(other)

    def take_requests(self, other: "Flusher") -> None:
        """Take the requests of another one that it has not begun to serve."""
        with contextlib.suppress(IndexError):  # all are taken
            while True:
                self._requests.append(other._requests.popleft())
        if self._successor is not None:
            self._successor.take_requests(self)
        self.ring()

    def step(self, loop: FlusherThread) -> None:
        """Take a turn, in a thread."""
        if not self._stepping.acquire(blocking=False):
            return  # in another thread, from which this one has just taken over
        try:
            if self.loop is not loop:
                return
            requests = self._step()
        finally:
            self._stepping.release()
        if requests is None:
            if loop is not _loop:  # it hung, and has recovered
                _current_loop().take(self)
            return
        # Only now: a caller that gets the reply must find that there is no thread.
        for request in requests:
            request.answer(True)
        # Added meanwhile, when there still was a thread.
        if self._successor is None and (self._requests or self._waiting()):
            self.start()

    def _step(self) -> list[FlushRequest] | None:
        """Do the next step; after the last one, return the requests that wait for a reply."""
        if self._steps is None:
            self._steps = self._work()
        elif self._listens:
            self._rung = False
        try:
            pause, self._listens = next(self._steps)
        except BaseException as end:
            self._steps, self.loop, self._wake, self._listens = None, None, 0.0, True
            if isinstance(end, StopIteration):
                return list(end.value)
            if isinstance(end, Replaced):
                return []
            raise
        self._wake = time.monotonic() + pause
        return None

    def _work(self) -> Pauses[list[FlushRequest]]:
        """Flush once an interval and on request, until all is stored after the last request.

        Events that cannot be stored then are not dropped: nothing else would ever store them.

        Returns:
            The requests that still wait for a reply.
        """
        ending = False
        if not self._requests and not self._waiting():
            return []  # another thread, started at the same time, has done everything already
        # Processes that were started together should not all flush at the same moment.
        flush_at = time.monotonic() + self._interval * system_random.uniform(0.5, 1.0)
        while True:
            yield max(0.0, flush_at - time.monotonic()), True
            if not self._requests and time.monotonic() < flush_at:  # rung: lists have grown long
                self._collect()
                continue
            requests, ok = yield from self._flush_where_due(ending)
            ending = ending or any(request.last for request in requests)
            if ending and ok:
                return requests
            for request in requests:
                request.answer(ok)
            flush_at = time.monotonic() + self._interval * system_random.uniform(0.95, 1.05)

    def _flush_where_due(self, ending: bool) -> Pauses[tuple[list[FlushRequest], bool]]:
        """Flush if it is time; return the requests, and whether everything was stored."""
        requests, ok = list[FlushRequest](), False
        self._taken = requests
        while self._requests:
            requests.append(self._requests.popleft())
        if requests:
            last = ending or any(request.last for request in requests)
            ok = yield from self._flush_until(max(request.until for request in requests), last=last)
        elif self._backoff.over or self._recovered():
            ok = self._try(last=ending, requested=False)
        else:
            self._collect()
        self._taken = []
        return requests, ok

    def flush_until(self, until: float, *, last: bool) -> bool:
        """Flush in this thread, and retry until a time (monotonic seconds).

        Returns:
            Whether everything was stored.
        """
        steps = self._flush_until(until, last=last)
        while True:
            try:
                pause, _ = next(steps)
            except StopIteration as end:
                return bool(end.value)
            except Replaced:
                return False
            time.sleep(pause)

    def _flush_until(self, until: float, *, last: bool) -> Pauses[bool]:
        if not self._backoff.passing:
            pause = self._backoff.pause
            if time.monotonic() + pause > until:
                return False
            yield pause, False
        attempt = 0
        while not self._try(last=last, requested=True):
            left = until - time.monotonic()
            if left <= 0 or not self._backoff.passing:
                return False
            yield min(left, short_pause(attempt)), False
            attempt += 1
        return True

    def _try(self, *, last: bool, requested: bool) -> bool:
        try:
            self._flush(last=last, requested=requested)
        except FlushFailed as failure:
            if failure.partly:
                self._backoff.failed_partly(passing=failure.passing)
            else:
                self._backoff.failed(passing=failure.passing)
            return False
        self._backoff.succeeded()
        return True
