"""Servers for tests: one private process per kind and test worker, made as new before each test.

REDMETER_TEST_SERVERS names what `any_server`, `any_cluster` and the tests of faults run on: a comma
list of names out of `support.binaries.BINARIES`, or "all". Without it, tests marked `servers` run
on the default and the oldest supported, all others on the default. `cluster` and `group` are of the
default, or of the first that is named.
"""

import functools
import gc
import logging
import random
import signal
from collections.abc import Iterator

import pytest
import redis
from hypothesis import HealthCheck, Phase, settings
from redis import utils

from redmeter.store.servers import connection
from redmeter.store.servers.replies import Command
from redmeter.store.servers.sockets import pack
from support.clusters import Cluster, Clusters
from support.examples import SEED
from support.fleet import DEFAULT, Fleet, servers_of_a_test, usual_server
from support.proxy import Proxy
from support.sentinels import Watched
from support.servers import Server
from support.waiting import ROOM, SLOW_ROOM, room_in_slices

# Started in the background, we may have inherited that Ctrl-C is ignored; so would every process
# that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# redis-py reads the metadata of its package for each client, which takes longer than to connect.
utils.get_lib_version = functools.cache(utils.get_lib_version)

#: How many examples of each property are tried every day. Tests with a number of their own scale it
#: by this: `support.examples.scaled`. For 100 of each: make nightly.
EVERYDAY_EXAMPLES = 15

# By day each run draws the same: what a stranger runs is what CI has run. `make nightly` and `make
# fuzz` draw new ones, see tools/tests, and what they find becomes an explicit example.
settings.register_profile(
    "day",
    derandomize=SEED == 0,
    database=None,
    deadline=None,
    print_blob=True,
    max_examples=EVERYDAY_EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow],  # which measures the machine
)
DAY = settings.get_profile("day")
# For make nightly.
settings.register_profile("thorough", DAY, max_examples=100)
# For make quick.
settings.register_profile("quick", DAY, max_examples=10)
# For tools/mutants, which only wants to know whether something fails, not the shortest way to it.
settings.register_profile(
    "mutants",
    DAY,
    max_examples=100,
    phases=(Phase.explicit, Phase.generate),
    report_multiple_bugs=False,
)

settings.load_profile("day")


@pytest.fixture(autouse=True)
def drawn_alike() -> None:
    """Start the random numbers of each test from the seed, whatever ran before."""
    random.seed(SEED)


#: Folders and files whose tests take longest. They run first: at the end, they would be waited for.
LONGEST = ("tests/faults/cluster/", "tests/faults/test_recorder_model.py", "tests/demo/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests first that take longest; the others keep their order."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


# Nothing of what is collected is garbage: do not look for any among it, now or later.
gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage from here on."""
    gc.freeze()
    gc.enable()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose what servers `any_server` and `any_cluster` are."""
    depends = metafunc.definition.get_closest_marker("servers") is not None
    for name in ("any_server", "any_cluster"):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, servers_of_a_test(depends), indirect=True)


@pytest.fixture(autouse=True)
def loggers_as_new() -> None:
    """Our loggers say what they say by themselves, whatever a test before configured."""
    logging.disable(logging.NOTSET)
    for name in ("redmeter", "redmeter.reading"):
        logger = logging.getLogger(name)
        logger.disabled, logger.propagate = False, True
        logger.setLevel(logging.NOTSET)


@pytest.fixture(autouse=True)
def room_for_a_test(request: pytest.FixtureRequest) -> None:
    """A test writes and reads in the same minute, hour and day: none begins right before an end."""
    slow = request.node.get_closest_marker("slow") is not None
    room_in_slices(SLOW_ROOM if slow else ROOM)


@pytest.fixture(autouse=True)
def no_numbers_are_packed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test has sent was text or bytes: of a number, a signal can crash the process."""
    strays: list[Command] = []

    def noting(command: Command) -> bytes:
        if not all(isinstance(part, str | bytes) for part in command):
            strays.append(command)
        return pack(command)

    monkeypatch.setattr(connection, "pack", noting)
    yield
    assert strays == []


@pytest.fixture(scope="session")
def fleet() -> Iterator[Fleet]:
    """The servers of this test worker, ended with it."""
    fleet = Fleet()
    yield fleet
    fleet.close()


@pytest.fixture
def server_name() -> str:
    """What `server` is; tests/faults has others too."""
    return DEFAULT


@pytest.fixture
def server(fleet: Fleet, server_name: str) -> Iterator[Server]:
    """A private Valkey 9.1: empty, no scripts, its settings as at the start."""
    server = fleet.get(server_name)
    yield server
    server.close_clients()


@pytest.fixture
def redis62(fleet: Fleet) -> Iterator[Server]:
    """A private Redis 6.2, the oldest server we support, as new."""
    server = fleet.get("redis-6.2")
    yield server
    server.close_clients()


@pytest.fixture
def any_server(request: pytest.FixtureRequest, fleet: Fleet) -> Iterator[Server]:
    """A private server of each kind in turn, as new."""
    server = fleet.get(request.param)
    yield server
    server.close_clients()


@pytest.fixture(scope="session")
def clusters() -> Iterator[Clusters]:
    """The clusters of this test worker, ended with it."""
    clusters = Clusters()
    yield clusters
    clusters.close()


@pytest.fixture
def cluster(clusters: Clusters) -> Cluster:
    """A private cluster of the usual server, as new: three masters with a replica each."""
    return clusters.get(usual_server())


@pytest.fixture
def networked_cluster(clusters: Clusters) -> Iterator[Cluster]:
    """The same with a network of its own, so that nodes can be cut off; healed afterwards.

    A node that stays cut off tries to connect several times a second, and all of it is held open.
    """
    cluster = clusters.get(usual_server(), network=True)
    yield cluster
    for node in cluster.nodes:
        cluster.heal(node)


@pytest.fixture
def any_cluster(request: pytest.FixtureRequest, clusters: Clusters) -> Cluster:
    """A private cluster of each kind of server in turn, as new."""
    return clusters.get(request.param)


@pytest.fixture(scope="module")
def group_of_file() -> Iterator[Watched]:
    """Three sentinels, a master and two replicas, for all tests of a file."""
    with Watched(usual_server()) as group:
        yield group


@pytest.fixture
def group(group_of_file: Watched) -> Watched:
    """The same, whole and empty."""
    group_of_file.renew()
    return group_of_file


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
