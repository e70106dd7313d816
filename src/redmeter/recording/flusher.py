"""Flusher: when a recorder stores what it has, and the one background thread that does it.

A flusher wakes once an interval, or when someone rings; collects what was counted and sends it.
While the store is away it tries less and less often (backoff.py). Meanwhile it goes on collecting,
so that memory stays small.

All flushers of a process share one thread, which takes them in turns. A store that hangs holds up
no other: where a turn takes long, another thread goes on with the rest, and who hung joins them
once that turn is over.

The thread is started by `_thread`, not by `threading.Thread`, whose start() takes locks that a
signal handler could find held by the very thread it interrupted. Nothing here is waited for but by
those who ask to: flush and close.

Waiting goes by the machine's monotonic clock, also where the meter's own clock is set by hand.

gevent replaces threads and locks, before this is imported or at any time after. What is used here
is what was there on import: a greenlet that waits at a lock of threads would stop its whole thread.
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

from redmeter.recording.backoff import Backoff, chance

#: Whether our thread is a greenlet.
GREENLETS = start_new_thread.__module__ != "_thread"

#: Longest time that someone may wait for a flush, seconds: what locks can count to, and more.
LONGEST_WAIT = 1e6
#: First wait between two tries while someone waits for a flush, seconds; doubled each time.
FIRST_RETRY, LONGEST_RETRY = 0.02, 0.5
#: How long a turn may take before another thread goes on with the others, seconds.
STUCK = 0.5

T = TypeVar("T")
#: What takes time, in steps: each says how long to wait before the next, seconds, and whether a
#: ring ends that.
Steps = Generator[tuple[float, bool], None, T]


#: Threads that are ours, by process and identity: a forked child has none of its parent's.
_ours: set[tuple[int, int]] = set()


def in_background() -> bool:
    """Tell whether this thread does nothing but to store."""
    return (os.getpid(), get_ident()) in _ours


def may_start_threads() -> bool:
    """Tell whether a thread that is started here ever runs.

    In a thread of gevent's pool it would be a greenlet, and there no other one ever runs.
    """
    return not GREENLETS or bool(sys.modules["gevent"].get_hub().loop.default)


class FlushFailed(Exception):
    """A try to send failed; the events are kept.

    Args:
        passing: whether it may pass by itself within moments.
        partly: whether it concerns a part of the store, which is tried again in its own time.
    """

    def __init__(self, *, passing: bool, partly: bool = False) -> None:
        super().__init__(passing, partly)
        self.passing = passing
        self.partly = partly


class Flush(Protocol):
    """Collects, and sends until nothing is left."""

    def __call__(self, *, last: bool, asked: bool) -> None:
        """Do so.

        Args:
            last: nothing comes after it.
            asked: someone waits for it.

        Raises:
            Failed: something is left.
        """
        ...


class FlushRequest:
    """Someone who waits for a flush."""

    __slots__ = ("_done", "_flusher", "last", "ok", "until")

    def __init__(self, flusher: "Flusher", timeout: float, *, last: bool = False) -> None:
        self._flusher = flusher
        #: Until when to try, monotonic seconds.
        self.until = time.monotonic() + min(timeout, LONGEST_WAIT)
        #: Whether nothing comes after it.
        self.last = last
        self.ok = False
        self._done = allocate_lock()
        self._done.acquire()

    def answer(self, ok: bool) -> None:
        """Say that it is done, and whether all was stored."""
        self.ok = ok
        self._done.release()

    def wait(self) -> bool:
        """Wait for the answer, no longer than asked; tell whether all was stored."""
        while not self._done.acquire(timeout=max(0.0, min(STUCK, self.until - time.monotonic()))):
            if time.monotonic() >= self.until or not self._flusher.start():
                return False
        return self.ok


class FlusherThread:
    """A thread that takes flushers in turns, for as long as there are any."""

    def __init__(self) -> None:
        # Held by the thread for as long as it lives. Several may be started at once: whoever takes
        # it goes on, the others end.
        self._alive = allocate_lock()
        self._bell = allocate_lock()
        self._bell.acquire()
        #: In no order; a dict, since it is changed in one step by any thread.
        self._members: dict[Flusher, None] = {}
        self._turn: tuple[Flusher | None, float] = None, 0.0
        self._process = os.getpid()

    @property
    def alive(self) -> bool:
        """Whether there is a thread, in this process."""
        return self._alive.locked() and self._process == os.getpid()

    def stuck(self, other_than: "Flusher | None" = None) -> bool:
        """Whether the turn of another flusher has been taking long."""
        whose, since = self._turn
        return whose not in (None, other_than) and time.monotonic() - since > STUCK

    def take(self, flusher: "Flusher") -> bool:
        """Take a flusher in; False where no thread can be started."""
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
        """Take over what another thread does not get to."""
        whose, _ = other._turn
        for flusher in list(other._members):
            if flusher is not whose:
                self.take(flusher)

    def ring(self) -> None:
        """Wake the thread."""
        with contextlib.suppress(RuntimeError):  # it has been rung already
            self._bell.release()

    def _run(self) -> None:
        me = os.getpid(), get_ident()
        _ours.add(me)
        try:
            # Again for those who came when the last turn was through, and still saw a thread.
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
                if flusher.loop is not self:  # it is through, or another thread's
                    self._members.pop(flusher, None)
                    if flusher.loop is self:  # it has just come back
                        self._members[flusher] = None
                soonest = min(soonest, flusher.due)
            pause = soonest - time.monotonic()
            if self._members and pause > 0:
                self._bell.acquire(timeout=pause)


_loop: FlusherThread | None = None


def _current_loop() -> FlusherThread:
    """Return the thread of this process, another one where that hangs."""
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
    """When to flush.

    Args:
        flush: see there.
        collect: only collects.
        waiting: whether there is something to collect.
        interval: seconds from one flush to the next.
    """

    def __init__(
        self,
        flush: Flush,
        collect: Callable[[], None],
        waiting: Callable[[], bool],
        interval: float,
    ) -> None:
        self._flush = flush
        self._collect = collect
        self._waiting = waiting
        self._interval = interval
        #: Whose turns it has; None where it has none.
        self.loop: FlusherThread | None = None
        self._steps: Steps[list[FlushRequest]] | None = None
        self._stepping = allocate_lock()
        self._wake, self._listens, self._rung = 0.0, True, False
        self._requests: deque[FlushRequest] = deque()
        self._backoff = Backoff(interval)

    @property
    def running(self) -> bool:
        """Whether there is a thread that comes to it."""
        loop = self.loop
        return loop is not None and loop.alive and not loop.stuck(other_than=self)

    @property
    def failing(self) -> bool:
        """Whether the last try failed."""
        return self._backoff.failures > 0

    @property
    def due(self) -> float:
        """When it has its next turn, monotonic seconds."""
        return -math.inf if self._rung and self._listens else self._wake

    def start(self) -> bool:
        """Start to flush, unless it does.

        Returns:
            False where no thread can be started: the interpreter is ending, or a limit is reached,
            or this is a thread of gevent's pool, in which no other greenlet ever runs.
        """
        if self.running:
            return True
        if not may_start_threads():
            return False
        return _current_loop().take(self)

    def ring(self) -> None:
        """Have the next turn now: to collect, or to flush where someone asks for it."""
        self._rung = True
        if self.loop is not None:
            self.loop.ring()

    def request(self, timeout: float, *, last: bool = False) -> FlushRequest:
        """Ask for a flush. With `last`, the turns end after it."""
        request = FlushRequest(self, timeout, last=last)
        self._requests.append(request)
        self.ring()
        return request

    def ask(self, timeout: float, *, last: bool) -> FlushRequest | None:
        """Ask for a flush; None where there is no thread, and none can be started."""
        request = self.request(timeout, last=last)  # first: turns end where there is nothing to do
        if self.start():
            return request
        with contextlib.suppress(ValueError):
            self._requests.remove(request)
        return None

    def step(self, loop: FlusherThread) -> None:
        """Have a turn, in a thread."""
        if not self._stepping.acquire(blocking=False):
            return  # in another thread, from which this one has just taken over
        try:
            if self.loop is not loop:
                return
            requests = self._step()
        finally:
            self._stepping.release()
        if requests is None:
            if loop is not _loop:  # it was stuck, and is through
                _current_loop().take(self)
            return
        # Only now: whoever is told so shall find that there is no thread.
        for request in requests:
            request.answer(True)
        if self._requests or self._waiting():  # who came meanwhile, and still saw one
            self.start()

    def _step(self) -> list[FlushRequest] | None:
        """Do what is next; return who waits for an answer, where it was the last."""
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
            raise
        self._wake = time.monotonic() + pause
        return None

    def _work(self) -> Steps[list[FlushRequest]]:
        """Flush once an interval, and when asked to, until all is stored after the last request.

        What cannot be stored then is not given up: nobody else would ever store it.

        Returns:
            Those who still wait for an answer.
        """
        ending = False
        if not self._requests and not self._waiting():
            return []  # another thread, started at the same time, has done everything already
        # Processes that were started together shall not all flush in the same moment.
        flush_at = time.monotonic() + self._interval * chance.uniform(0.5, 1.0)
        while True:
            yield max(0.0, flush_at - time.monotonic()), True
            if not self._requests and time.monotonic() < flush_at:  # rung, as much has come
                self._collect()
                continue
            requests, ok = yield from self._flush_where_due(ending)
            ending = ending or any(request.last for request in requests)
            if ending and ok:
                return requests
            for request in requests:
                request.answer(ok)
            flush_at = time.monotonic() + self._interval * chance.uniform(0.95, 1.05)

    def _flush_where_due(self, ending: bool) -> Steps[tuple[list[FlushRequest], bool]]:
        """Flush, where it is time to; return who asked for it, and whether all was stored."""
        requests, ok = [], False
        while self._requests:
            requests.append(self._requests.popleft())
        if requests:
            last = ending or any(request.last for request in requests)
            ok = yield from self._flush_until(max(request.until for request in requests), last=last)
        elif self._backoff.over:
            ok = self._try(last=ending, asked=False)
        else:
            self._collect()
        return requests, ok

    def flush_until(self, until: float, *, last: bool) -> bool:
        """Flush in this thread, and try again until a time (monotonic seconds).

        Returns:
            Whether all was stored.
        """
        steps = self._flush_until(until, last=last)
        while True:
            try:
                pause, _ = next(steps)
            except StopIteration as end:
                return bool(end.value)
            time.sleep(pause)

    def _flush_until(self, until: float, *, last: bool) -> Steps[bool]:
        if not self._backoff.passing:
            pause = self._backoff.pause
            if time.monotonic() + pause > until:
                return False
            yield pause, False
        wait = FIRST_RETRY
        while not self._try(last=last, asked=True):
            left = until - time.monotonic()
            if left <= 0 or not self._backoff.passing:
                return False
            yield min(left, wait * chance.uniform(0.5, 1.0)), False
            wait = min(LONGEST_RETRY, 2 * wait)
        return True

    def _try(self, *, last: bool, asked: bool) -> bool:
        try:
            self._flush(last=last, asked=asked)
        except FlushFailed as failure:
            if failure.partly:
                self._backoff.failed_partly(passing=failure.passing)
            else:
                self._backoff.failed(passing=failure.passing)
            return False
        self._backoff.succeeded()
        return True
