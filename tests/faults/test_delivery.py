"""Delivery by a thread that an exception of a signal handler's breaks off: nothing counts twice."""

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import pytest

from redmeter.recording.buffer import Buffer
from redmeter.recording.pending import PendingCounter
from redmeter.recording.sending.delivery import Delivery
from redmeter.recording.sending.flusher import FlushFailed
from redmeter.recording.status import RecorderStats
from redmeter.store import Store
from support.proxy import Proxy
from support.recorders import check_whole
from support.stores import opened_store


class Lock:
    """A lock at which Ctrl-C comes, once."""

    def __init__(self) -> None:
        #: How often it is still taken before.
        self.left = -1

    def __enter__(self) -> None:
        self.left -= 1
        if self.left == -1:
            raise KeyboardInterrupt

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def opened(proxy: Proxy) -> Iterator[Store]:
    """A store behind a proxy."""
    with opened_store(proxy.url) as store:
        yield store


@pytest.mark.parametrize("before", range(3))
def test_what_was_answered_is_not_sent_as_another_batch(
    proxy: Proxy, opened: Store, conn: Any, before: int
) -> None:
    """Also where nobody heard the answer, and the next try does not get as far as the server."""
    lock, stats = Lock(), RecorderStats(opened.clock.wall())
    buffer, now = Buffer(opened.kept, stats, math.inf), opened.clock.wall()
    delivery = Delivery(opened, buffer, stats, lock)
    stats.recorded += 5
    buffer.add(PendingCounter, "x", now, 5, now)
    lock.left = before
    with contextlib.suppress(KeyboardInterrupt):
        delivery.run()
    lock.left = -1
    proxy.refuse()
    try:
        delivery.run()
    except FlushFailed:
        delivery.reset()
    stats.recorded += 2
    buffer.add(PendingCounter, "x", now, 2, now)
    proxy.heal()
    delivery.run()
    assert stats.buffered == delivery.unacknowledged == 0
    health = stats.health(producer=delivery.writer, instance=None)
    check_whole(conn, health, 7)
