"""Connection limits of the standalone dashboard: a maximum number, and none that only waits.

Any client that reaches the port can open connections, without a token. So their number is limited
to less than the process's limit of open files: one too many closes the one that has been idle for
longest. A connection is also closed if its request never completes or its client does not read.
Errors for a lack of file descriptors are logged a few times a minute at most.

Options of uvicorn do not replace this: `timeout_keep_alive` begins after the first response, so a
client that never finishes a header stays; at `limit_concurrency` every new client gets a 503, so
idle connections lock everybody out. There is no timeout for clients that do not read.
"""

import asyncio
import logging
import resource
import time
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Connections at most; never more than half of the files that the process may open.
MAX_OPEN = 512
#: Connections that wait in the system to be taken, and that are taken at once.
BACKLOG = 64
#: How long the header of a request may take, seconds.
HEADER_SECONDS = 10.0
#: For how long somebody may read nothing of what he asked for, seconds.
READ_SECONDS = 30.0
#: Records of one logger within a minute.
MAX_RECORDS = 5


def most_open() -> int:
    """Return how many connections there may be."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_OPEN if soft == resource.RLIM_INFINITY else max(8, min(MAX_OPEN, soft // 2))


class Connection(H11Protocol):
    """A connection that is closed where it waits for too long, or takes the place of others.

    Args:
        waiting: of one server: its connections without a request under way, the oldest first.
        options: see H11Protocol.
    """

    def __init__(self, *, waiting: "dict[Connection, None]", **options: Any) -> None:
        super().__init__(**options)
        self._waiting = waiting
        self._patience: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; where there are too many, end the one that has waited longest."""
        super().connection_made(transport)
        self._waiting[self] = None
        self._watch()
        if len(self.connections) > most_open():
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if not self._answering:
            self._waiting[self] = None
            if self.conn.trailing_data[0]:
                self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._waiting.pop(self, None)
        self._unwatch()
        self._unstick()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for somebody who does not read what he asked for."""
        super().pause_writing()
        self._stuck = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on, since he reads."""
        super().resume_writing()
        self._unstick()

    def _unstick(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def _watch(self) -> None:
        if self._answering:
            self._waiting.pop(self, None)
            self._unwatch()
        elif self._patience is None:
            self._patience = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _unwatch(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        self._patience = None
        if not self._answering:
            self.transport.abort()


class LogRateLimit(logging.Filter):
    """Lets a few records of a logger pass within a minute.

    Args:
        monotonic: a clock, for tests.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._since, self._passed = -60.0, 0

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002
        """Return whether a record passes."""
        now = self._monotonic()
        if now - self._since >= 60.0:
            self._since, self._passed = now, 0
        self._passed += 1
        return self._passed <= MAX_RECORDS
