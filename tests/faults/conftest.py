"""What the tests of faults share: servers, a meter that flushes fast, and ways to break.

Tests marked `servers` depend on what a server does and run on two, the others on the default;
all of them on those that REDMETER_TEST_SERVERS asks for.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis.backoff import NoBackoff
from redis.retry import Retry

from support.fleet import servers_of_a_test
from support.proxy import Proxy
from support.recorders import INTERVAL, OpenBuffered
from support.stores import opened_meters


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose what `server_name` is, and with it `server`."""
    if "server_name" in metafunc.fixturenames:
        depends = metafunc.definition.get_closest_marker("servers") is not None
        metafunc.parametrize("server_name", servers_of_a_test(depends))


@pytest.fixture
def open_buffered() -> Iterator[OpenBuffered]:
    """Open meters that record into memory and flush a hundred times a second."""
    yield from opened_meters(flush_interval=INTERVAL)


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
