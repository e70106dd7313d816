"""Bulk: what it does while a store is unreachable."""

import random

import pytest

from redmeter import StoreUnavailable
from redmeter.recording.bulk_writer import BulkWriter
from support.servers import free_port
from support.stores import HastyClock, opened_store


def test_waiting_between_tries_leaves_the_applications_random_numbers_alone() -> None:
    """They may be seeded: for a simulation, or for tests."""
    clock = HastyClock()
    with opened_store(f"redis://127.0.0.1:{free_port()}", clock=clock) as store:
        bulk, now = BulkWriter(store), clock.wall()
        bulk.add("hits", int(now), 1, now)
        random.seed(17)
        before = random.getstate()
        clock.on_sleep = lambda: setattr(clock, "monotonic", lambda: float("inf"))
        with pytest.raises(StoreUnavailable):
            bulk.write(5.0, now)
        assert clock.waits == 1
        assert random.getstate() == before
