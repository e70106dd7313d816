"""Producers: who writes, and under which number.

A producer is 128 random bits, never a process id or a host name: those repeat (containers all
start at pid 1), and a repeated producer would make new batches look applied. A fork mints its
own, or parent and child would share numbers.

One batch of a producer is under way at a time, since a later one would make an earlier one look
applied. Synchronous callers therefore borrow a producer for each call from a small pool: as many
watermark keys as there ever were calls at once, at most POOL, not one per thread or per call.
"""

import os
import secrets
import threading
from collections import deque

#: Most producers of one store in one process, and so most synchronous writes at a time.
POOL = 8


class Producer:
    """One source of numbered batches; use it from one thread at a time."""

    __slots__ = ("acknowledged", "id", "number")

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Become another producer."""
        self.id = secrets.token_hex(16)
        #: Number of the last batch that was made.
        self.number = 0
        #: Whether the store has ever said that it applied a batch.
        self.acknowledged = False

    def next(self) -> int:
        """Return the next batch's number."""
        self.number += 1
        return self.number


class Producers:
    """The pool that synchronous callers borrow from."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._idle: deque[Producer] = deque()
        self._places = threading.Semaphore(POOL)
        # Last: who sees it must not find the parent's producers any more.
        self._pid = os.getpid()

    def borrow(self) -> Producer:
        """Return a producer for one batch; waits while POOL of them are out."""
        if self._pid != os.getpid():
            self._start()  # forked: its producers, and a semaphore perhaps held, are the parent's
        self._places.acquire()
        try:
            return self._idle.pop()
        except IndexError:
            return Producer()

    def give_back(self, producer: Producer) -> None:
        """Take a producer back, also after a call that was broken off.

        Its next number is higher; its batch, should it arrive after that, is refused as old.
        """
        self._idle.append(producer)
        self._places.release()
