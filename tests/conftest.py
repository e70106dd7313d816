"""Servers for tests: one private process per kind and test worker, made as new before each test.

REDMETER_TEST_SERVERS names what `any_server` runs on: a comma list of names out of
`support.servers.BINARIES`, or "all"; else the default and the oldest supported.
"""

import os
import signal
from collections.abc import Iterator

import pytest
import redis
from hypothesis import Phase, settings

from support.fleet import IN_CI, Fleet
from support.proxy import Proxy
from support.servers import BINARIES, Server

# Started in the background, we may have inherited that Ctrl-C is ignored; so would every process
# that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("dev", deadline=None)
# For tools/mutants, which only wants to know whether something fails, not the shortest way to it.
settings.register_profile(
    "mutants",
    settings.get_profile("ci"),
    phases=(Phase.explicit, Phase.generate),
    report_multiple_bugs=False,
)

settings.load_profile("ci" if IN_CI else "dev")


def chosen_servers() -> list[str]:
    """Return the names that REDMETER_TEST_SERVERS asks for."""
    asked = os.environ.get("REDMETER_TEST_SERVERS", "valkey-9.1,redis-6.2")
    names = list(BINARIES) if asked == "all" else [name.strip() for name in asked.split(",")]
    if wrong := [name for name in names if name not in BINARIES]:
        raise pytest.UsageError(f"REDMETER_TEST_SERVERS: no {wrong}; there are {list(BINARIES)}")
    return names


@pytest.fixture(scope="session")
def fleet() -> Iterator[Fleet]:
    """The servers of this test worker, ended with it."""
    fleet = Fleet()
    yield fleet
    fleet.close()


@pytest.fixture
def server(fleet: Fleet) -> Iterator[Server]:
    """A private Valkey 9.1: empty, no scripts, its settings as at the start."""
    server = fleet.get("valkey-9.1")
    yield server
    server.close_clients()


@pytest.fixture
def redis62(fleet: Fleet) -> Iterator[Server]:
    """A private Redis 6.2, the oldest server we support, as new."""
    server = fleet.get("redis-6.2")
    yield server
    server.close_clients()


@pytest.fixture(params=chosen_servers())
def any_server(request: pytest.FixtureRequest, fleet: Fleet) -> Iterator[Server]:
    """A private server of each kind in turn, as new."""
    server = fleet.get(request.param)
    yield server
    server.close_clients()


@pytest.fixture
def conn(server: Server) -> Iterator[redis.Redis]:
    """A client on `server`, closed after the test."""
    with server.client() as client:
        yield client


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """A proxy in front of `server` that breaks connections when told to."""
    with Proxy(server.port) as proxy:
        yield proxy
