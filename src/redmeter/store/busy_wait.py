"""BusyWait: look for a reply without sleeping, for a moment, where that is quicker.

To sleep until a reply comes, and to be woken, may take longer than a server nearby needs to answer:
some 40 us in a virtual machine, whose processors halt meanwhile. So a thread that can do nothing
before there is a reply looks for it a while before it sleeps, as threads do that wait for a lock.
That pays as long as a processor is free for it, and nothing says whether one is: both ways are
timed, and what was quicker lately is done. Other threads of the process would have to wait for the
interpreter meanwhile: where Python has started any, by whatever module, a thread sleeps at once.
"""

import _thread
import contextlib
import math
import sys
import time
from typing import Any, NamedTuple

import redis

#: For so long a reply is looked for at most, seconds.
SPIN_SECONDS = 150e-6
#: Once in so many waits the other way is tried.
TRY = 32
#: What spinning may take at most of what sleeping takes: it uses a processor that others may need.
WORTH = 0.9


class Wait(NamedTuple):
    """A wait that has begun."""

    spun: bool
    #: Monotonic seconds.
    since: float


class BusyWait:
    """How to wait for the replies of one server; threads may share it, for these are estimates."""

    __slots__ = ("_slept", "_spun", "_turn")

    def __init__(self) -> None:
        #: How long waits of either kind were lately, seconds; 0 before the first.
        self._spun = self._slept = 0.0
        self._turn = 0

    def begin(self, connection: Any) -> Wait:
        """Begin to wait for what a connection receives next; perhaps it is there afterwards."""
        wait = Wait(_is_alone() and self.spins(), time.monotonic())
        if wait.spun:
            until = wait.since + SPIN_SECONDS
            # Closed by the server, it may hold a reply all the same: who reads it will find out.
            with contextlib.suppress(redis.ConnectionError):
                while not connection.can_read() and time.monotonic() < until:
                    pass
        return wait

    def end(self, wait: Wait) -> None:
        """Take in how long a wait was, now that the reply is there."""
        self.learn(wait.spun, time.monotonic() - wait.since)

    def spins(self) -> bool:
        """Tell whether to spin this time."""
        self._turn += 1
        quicker = self._spun < WORTH * self._slept
        return quicker != (self._turn % TRY == 1)

    def learn(self, spun: bool, seconds: float) -> None:
        """Take in how long a wait was."""
        if spun:
            self._spun = _averaged(self._spun, seconds)
        else:
            self._slept = _averaged(self._slept, seconds)


def _averaged(average: float, seconds: float) -> float:
    """Return an average that forgets, with one wait more."""
    # A single long one, for whatever reason, says little about the next.
    seconds = min(seconds, 1.5 * average or math.inf, 2 * SPIN_SECONDS)
    return average + (seconds - average) / 4 if average else seconds


def _is_alone() -> bool:
    """Tell whether nothing else of this process could run while this thread waits."""
    # `threading` knows its own alone, and threads that ask for everybody's frames can deadlock.
    return _thread._count() == 0 and "gevent" not in sys.modules
