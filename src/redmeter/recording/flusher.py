"""Flusher: the one background thread of a recorder, and when it works.

It wakes once an interval, or when someone rings; collects what was counted and sends it. While the
store is away it tries less and less often, at random moments within a range, so that many
processes do not come back at once; where it is not let in, every 30 s. Meanwhile it goes on
collecting, so that memory stays small.

The thread is started by `_thread`, not by `threading.Thread`, whose start() takes locks that a
signal handler could find held by the very thread it interrupted. Nothing here is waited for but by
those who ask to: flush and close.

Waiting goes by the machine's monotonic clock, also where the meter's own clock is set by hand.

gevent replaces threads and locks, before this is imported or at any time after. What is used here
is what was there on import: a greenlet that waits at a lock of threads would stop its whole thread.
"""

import contextlib
import random
import sys
import time
from _thread import allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable

#: Whether our thread is a greenlet.
GREENLETS = start_new_thread.__module__ != "_thread"

#: Longest time between two tries while the store is away, seconds.
LONGEST_BACKOFF = 15.0
#: Time between two tries where the store does not let us in, or is not what it should be.
REFUSED_BACKOFF = 30.0
#: The same where someone asks for a flush.
REFUSED_PAUSE = 1.0
#: Longest time that someone may wait for a flush, seconds: what locks can count to, and more.
LONGEST_WAIT = 1e6
#: First wait between two tries while someone waits for a flush, seconds; doubled each time.
FIRST_RETRY, LONGEST_RETRY = 0.02, 0.5


class Failed(Exception):
    """A try to send failed; the events are kept.

    Args:
        passing: whether it may pass by itself within moments.
    """

    def __init__(self, *, passing: bool) -> None:
        super().__init__(passing)
        self.passing = passing


class Request:
    """Someone who waits for a flush."""

    __slots__ = ("_done", "last", "ok", "until")

    def __init__(self, timeout: float, *, last: bool = False) -> None:
        #: Until when to try, monotonic seconds.
        self.until = time.monotonic() + min(timeout, LONGEST_WAIT)
        #: Whether the thread ends after it.
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
        return self._done.acquire(timeout=max(0.0, self.until - time.monotonic())) and self.ok


class Flusher:
    """A thread that flushes.

    Args:
        flush: collects, and sends until nothing is left; raises Failed. With True as its argument
            nothing comes after it.
        collect: only collects.
        waiting: whether there is something to collect.
        interval: seconds from one flush to the next.
    """

    def __init__(
        self,
        flush: Callable[[bool], None],
        collect: Callable[[], None],
        waiting: Callable[[], bool],
        interval: float,
    ) -> None:
        self._flush = flush
        self._collect = collect
        self._waiting = waiting
        self._interval = interval
        # Held by the thread for as long as it lives. Several may be started at once, by several
        # threads that find none: whoever takes it goes on, the others end.
        self._alive = allocate_lock()
        self._bell = allocate_lock()
        self._bell.acquire()
        self._requests: deque[Request] = deque()
        self._failures = 0
        #: Whether what failed last may pass by itself within moments.
        self._passing = True
        self._refused = 0.0
        self._not_before = 0.0

    @property
    def running(self) -> bool:
        """Whether there is a thread."""
        return self._alive.locked()

    @property
    def failing(self) -> bool:
        """Whether the last try failed."""
        return self._failures > 0

    def start(self) -> bool:
        """Start the thread, unless there is one.

        Returns:
            False where none can be started: the interpreter is ending, or a limit is reached, or
            this is a thread of gevent's pool, in which no other greenlet ever runs.
        """
        if not self.running:
            if GREENLETS and not sys.modules["gevent"].get_hub().loop.default:
                return False
            try:
                start_new_thread(self._run, ())
            except RuntimeError:
                return False
        return True

    def ring(self) -> None:
        """Wake the thread."""
        with contextlib.suppress(RuntimeError):  # it has been rung already
            self._bell.release()

    def request(self, timeout: float, *, last: bool = False) -> Request:
        """Ask for a flush. With `last`, the thread ends after it."""
        request = Request(timeout, last=last)
        self._requests.append(request)
        self.ring()
        return request

    def ask(self, timeout: float, *, last: bool) -> Request | None:
        """Ask for a flush; None where there is no thread, and none can be started."""
        request = self.request(timeout, last=last)  # first: a thread ends that finds nothing to do
        if self.running or self.start():
            return request
        with contextlib.suppress(ValueError):
            self._requests.remove(request)
        return None

    def _run(self) -> None:
        # Again for those who came when the last turn was through, and still saw a thread. And not
        # at all where another thread, started at the same time, has done everything already.
        while (self._requests or self._waiting()) and self._alive.acquire(blocking=False):
            try:
                requests = self._work()
            finally:
                self._alive.release()
            # Only now: whoever is told so shall find that there is no thread.
            for request in requests:
                request.answer(True)

    def _work(self) -> list[Request]:
        """Flush once an interval, and when asked to, until all is stored after the last request.

        What cannot be stored then is not given up: nobody else would ever store it.

        Returns:
            Those who still wait for an answer.
        """
        ending = False
        # Processes that were started together shall not all flush in the same moment.
        pause = self._interval * random.uniform(0.5, 1.0)
        while True:
            self._bell.acquire(timeout=pause)
            requests, ok = self._turn(ending)
            ending = ending or any(request.last for request in requests)
            if ending and ok:
                return requests
            for request in requests:
                request.answer(ok)
            pause = self._interval * random.uniform(0.95, 1.05)

    def _turn(self, ending: bool) -> tuple[list[Request], bool]:
        """Flush, where it is time to; return who asked for it, and whether all was stored."""
        requests, ok = [], False
        while self._requests:
            requests.append(self._requests.popleft())
        if requests:
            last = ending or any(request.last for request in requests)
            ok = self.insist(max(request.until for request in requests), last=last)
        elif time.monotonic() >= self._not_before:
            ok = self._try(last=ending)
        else:
            self._collect()
        return requests, ok

    def insist(self, until: float, *, last: bool) -> bool:
        """Flush, and try again until a time (monotonic seconds); tell whether all was stored."""
        if not self._passing:
            pause = self._refused + REFUSED_PAUSE - time.monotonic()
            if time.monotonic() + pause > until:
                return False
            time.sleep(max(0.0, pause))
        wait = FIRST_RETRY
        while not self._try(last=last):
            left = until - time.monotonic()
            if left <= 0 or not self._passing:
                return False
            time.sleep(min(left, wait * random.uniform(0.5, 1.0)))
            wait = min(LONGEST_RETRY, 2 * wait)
        return True

    def _try(self, *, last: bool) -> bool:
        try:
            self._flush(last)
        except Failed as failure:
            self._failures, self._passing = self._failures + 1, failure.passing
            if failure.passing:
                wait = min(LONGEST_BACKOFF, self._interval * 2 ** min(self._failures, 10))
                wait *= random.uniform(0.75, 1.0)
            else:
                self._refused = time.monotonic()
                wait = REFUSED_BACKOFF * random.uniform(1.0, 1.25)
            self._not_before = time.monotonic() + wait
            return False
        self._failures, self._passing, self._not_before = 0, True, 0.0
        return True
