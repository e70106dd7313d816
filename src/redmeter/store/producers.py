"""Producers: who writes, and under which number.

A producer is 128 random bits, never a process id or a host name: those repeat (containers all
start at pid 1), and a repeated producer would make new batches look applied. A fork mints its
own, or parent and child would share numbers.

One batch of a producer is under way at a time, since a later one would make an earlier one look
applied. Synchronous callers therefore borrow a producer for each call from a small pool: as many
watermark keys as there ever were calls at once, at most POOL, not one per thread or per call.

A signal handler may count while its own thread is in here, so nothing is held that it could wait
for: a producer is taken by trying its lock, never by waiting for one in particular.
"""

import os
import threading
import time

#: Most producers of one store in one process, and so most synchronous writes at a time.
POOL = 8
#: Seconds between two tries while all are out, and after which another one is made all the same:
#: whoever holds them may be the very thread that asks, below a signal handler.
POLL, PATIENCE = 0.001, 30.0


class Producer:
    """One source of numbered batches; use it from one thread at a time."""

    __slots__ = ("acknowledged", "id", "lock", "number")

    def __init__(self) -> None:
        #: Held by who has borrowed it.
        self.lock = threading.Lock()
        self.renew()

    def renew(self) -> None:
        """Become another producer."""
        self.id = os.urandom(16).hex()
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
        self._all = [Producer() for _ in range(POOL)]
        # Last: who sees it must not find the parent's producers any more.
        self._pid = os.getpid()

    def borrow(self) -> Producer:
        """Return a producer for one batch; waits while POOL of them are out."""
        if self._pid != os.getpid():
            self._start()  # forked: these producers are the parent's, and so are their locks
        # Always from the first: as few of them as possible ever write.
        waited = 0.0
        while True:
            for producer in self._all:
                if producer.lock.acquire(blocking=False):
                    return producer
            if waited >= PATIENCE:
                self._all.append(Producer())
            time.sleep(POLL)
            waited += POLL

    def give_back(self, producer: Producer) -> None:
        """Take a producer back, also after a call that was broken off.

        Its next number is higher; its batch, should it arrive after that, is refused as old.
        """
        producer.lock.release()
