"""What the tests of the store share."""

from collections.abc import Iterator

import pytest

from redmeter.store.servers.sockets import BusyWait
from support.canned import Canned
from support.stores import OpenMeter, opened_meters


@pytest.fixture
def open_meter() -> Iterator[OpenMeter]:
    """Open meters that store at once, closed after the test."""
    yield from opened_meters(sync=True)


@pytest.fixture
def canned() -> Iterator[Canned]:
    """A server with prepared answers."""
    server = Canned()
    yield server
    server.close()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What is found out of waits, as they end: whether each spun."""
    seen: list[bool] = []
    monkeypatch.setattr(BusyWait, "learn", lambda _, spun, __: seen.append(spun))
    return seen
