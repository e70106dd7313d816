"""Busy wait: poll for a reply for a moment before sleeping, if that is faster.

Sleeping until a reply arrives may take longer than a nearby server needs to reply: waking up costs
about 40 us in a virtual machine, whose processors halt meanwhile. So a thread that has nothing else
to do polls for a while before it sleeps, like threads that wait for a lock. That pays as long as a
processor is free for it, which cannot be known: both ways are timed, and the faster one is used.
Other threads of the process would wait for the interpreter meanwhile: if Python has started any, a
thread sleeps at once.
"""

import _thread
import contextlib
import math
import sys
import time
from typing import Any, NamedTuple

import redis

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
