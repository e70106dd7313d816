"""What the tests of a buffered recorder share: a meter that flushes fast, and ways to break."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis.backoff import NoBackoff
from redis.retry import Retry

from redmeter import Meter
from support.proxy import Proxy
from support.recorders import INTERVAL, OpenBuffered


@pytest.fixture
def open_buffered() -> Iterator[OpenBuffered]:
    """Open meters that record into memory and flush a hundred times a second."""
    opened: list[Meter] = []

    def open_one(url: str | None = None, **options: Any) -> Meter:
        meter = Meter(url, **{"flush_interval": INTERVAL, **options})
        opened.append(meter)
        return meter

    yield open_one
    for meter in opened:
        meter.close()


@pytest.fixture(params=["the client's own retries", "no retries"])
def retries(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Options of the caller's client."""
    return {"retry": Retry(NoBackoff(), 0)} if request.param == "no retries" else {}


BREAKS: dict[str, Callable[[Proxy], None]] = {
    "refused": Proxy.refuse,
    "reset": lambda proxy: proxy.reset_after(0, of="requests", times=10**6),
    "black hole": Proxy.black_hole,
}


@pytest.fixture(params=BREAKS)
def outage(request: pytest.FixtureRequest) -> Callable[[Proxy], None]:
    """A way in which the server cannot be reached; Proxy.heal() ends it."""
    return BREAKS[request.param]
