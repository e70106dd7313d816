"""Turns: a lock that a signal handler cannot leave held by raising an exception.

`lock.acquire()` and the `try:` after it are two steps. A handler that raises between them, as that
of Ctrl-C does, leaves the lock held for good, and nobody can tell by whom. A `with` statement has
no such gap, but no timeout either.

So whoever wants a turn puts a ticket in line, within the `try`. The first ticket has the turn.
Removing a ticket is one step and right at any moment, whether or not it is in line or first:

    ticket = object()
    try:
        if turns.wait(ticket, 1.9):
            ...
    finally:
        turns.tickets.pop(ticket, None)

Bound: waiting polls every POLL seconds; this is for a lock that is hardly ever contended.
"""

import time

#: Seconds between two looks at who is first.
POLL = 0.005


class TicketLock:
    """Lets one thread at a time do something."""

    def __init__(self) -> None:
        #: The tickets in line, the first of which has the turn. Each operation on it is atomic.
        self.tickets: dict[object, None] = {}

    def wait(self, ticket: object, timeout: float) -> bool:
        """Wait for a turn.

        Args:
            ticket: a new object, which the caller removes from `tickets` in the end.
            timeout: how long to wait, seconds.

        Returns:
            Whether it is the caller's turn.
        """
        until = time.monotonic() + timeout
        self.tickets[ticket] = None
        while list(self.tickets)[0] is not ticket:  # noqa: RUF015 - another thread may change it
            if time.monotonic() >= until:
                return False
            time.sleep(POLL)
        return True
