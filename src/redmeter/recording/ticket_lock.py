"""Ticket lock: a lock that a signal handler cannot leave held by raising an exception.

`lock.acquire()` and the `try:` after it are two steps. A handler that raises between them, as that
of Ctrl-C does, leaves the lock held forever. A `with` statement has no such gap, but no timeout
either.

So each thread puts a ticket in line, within the `try`. The first ticket holds the lock. Removing a
ticket is one step and safe at any moment, whether or not it is in line or first:

    ticket = object()
    try:
        if lock.wait(ticket, 1.9):
            ...
    finally:
        lock.tickets.pop(ticket, None)

Bound: waiting polls every POLL seconds; this is for a lock that is rarely contended.
"""

import time

#: Seconds between two polls.
POLL = 0.005


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
            time.sleep(POLL)
        return True
