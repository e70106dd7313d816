"""A number of a descriptor is the application's once it was closed: nothing of ours uses it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from redmeter import Meter
from redmeter.store import embedded
from support.clusters import Cluster
from support.programs import Programs
from support.pythons import PYTHONS, python
from support.sentinels import Watched
from support.servers import Server

#: A process that closes all descriptors, takes their numbers, and records; then it forks.
PROGRAM = """
import socket
from redmeter.store.servers import sentinel

sentinel.LOOK_SECONDS = 0.0  # subscribe to a sentinel from the first call on
meter = Meter(URL, sync="sync" in sys.argv[2:], flush_interval=60, timeout=10)

def record():
    meter.count("a")
    meter.observe("seconds", 0.5)
    meter.count("b", labels={"route": "/cart"})
    assert meter.flush(20), meter.recorder_health()

def closed(name, deeper):
    os.closerange(3, 256)
    sockets = "sockets" in name  # have the first numbers
    pairs = [socket.socketpair() for _ in range(60 if sockets else 0)]
    files = [open(f"{name}{number}", "wb+", buffering=0) for number in range(30)]
    pairs += [socket.socketpair() for _ in range(0 if sockets else 30)]
    for file in files:
        file.write(b"SET evil 1\\r\\n")
    for one, other in pairs:
        one.sendall(b"SET evil 1\\r\\n")
    record()
    if deeper:
        forked(f"{name}child", False, record)
        forked(f"{name}grandchild", False, lambda: None)
    for file in files:
        file.write(b"SET evil 2\\r\\n")
        file.seek(0)
        assert file.read() == b"SET evil 1\\r\\nSET evil 2\\r\\n", name
    for one, other in pairs:
        other.sendall(b"over")
        assert other.recv(100) == b"SET evil 1\\r\\n", name
        assert one.recv(100) == b"over", name

def forked(name, deeper, then=lambda: None):
    pid = os.fork()
    if pid == 0:
        try:
            closed(name, deeper)
            then()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0, name

record()
if "fork" in sys.argv[2:]:
    forked("child", True)
    record()
    forked("second", True)
else:
    closed("own", True)
    closed("own sockets", True)
print(os.getpid())
"""
#: Calls of record(): before, and of each process.
CALLS = {"fork": 1 + 1 + 2 * (1 + 1 + 1 + 1), "no fork": 1 + 2 * (1 + 1 + 1 + 1)}


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a store of each kind."""
    if request.param == "embedded":
        yield f"embedded://{tmp_path}/data"
        embedded.stop(tmp_path / "data")
    elif request.param == "sentinel":
        with Watched(replicas=1, sentinels=1) as watched:
            yield watched.url
    else:
        yield request.getfixturevalue(request.param).url


def check(programs: Programs, url: str, fork: str, *how: str, **options: Any) -> None:
    """Run the program, and compare what is stored."""
    forks = ["fork"] if fork == "fork" else []
    quiet = {"PYTHONWARNINGS": "ignore::DeprecationWarning"}  # of forks next to threads
    done = programs.run(PROGRAM, *how, *forks, url=url, env=quiet, **options)
    assert (done.code, done.err) == (0, ""), done.err
    with Meter(url) as meter:
        assert meter.total("a") == CALLS[fork]
        assert meter.total("b") == CALLS[fork]


@pytest.mark.parametrize("fork", CALLS)
@pytest.mark.parametrize("how", ["buffered", "sync"])
def test_of_one_server(programs: Programs, server: Server, fork: str, how: str) -> None:
    """No file, and no socket of the application, is written to, read from or closed."""
    check(programs, server.url, fork, how)
    with server.client() as client:
        assert not client.exists("evil")


@pytest.mark.parametrize("fork", CALLS)
@pytest.mark.parametrize("version", PYTHONS)
def test_on_each_python(programs: Programs, server: Server, fork: str, version: str) -> None:
    """The same."""
    check(programs, server.url, fork, "buffered", python=python(version))


@pytest.mark.slow
@pytest.mark.parametrize("fork", CALLS)
@pytest.mark.parametrize("url", ["embedded", "sentinel"], indirect=True)
def test_of_other_kinds_of_stores(programs: Programs, url: str, fork: str) -> None:
    """The embedded server's socket, and those to the sentinels."""
    check(programs, url, fork, "buffered")


@pytest.mark.slow
@pytest.mark.parametrize("fork", CALLS)
@pytest.mark.parametrize("how", ["buffered", "sync"])
def test_of_a_cluster(programs: Programs, cluster: Cluster, fork: str, how: str) -> None:
    """With a connection to each node."""
    check(programs, cluster.url, fork, how)
    for node in cluster.nodes:
        with redis.Redis(port=node.port) as client:
            assert client.execute_command("KEYS", "evil") == []


def test_a_child_has_no_descriptor_of_ours(programs: Programs) -> None:
    """Even if it never records anything: they are closed right after the fork."""
    done = programs.run(
        """
def sockets():
    links = [os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")
             if os.path.islink(f"/proc/self/fd/{name}")]
    return sum(link.startswith("socket:") for link in links)

meter, other = Meter(URL), Meter(URL, sync=True)
meter.count("x")
meter.flush()
other.count("x")
assert sockets() == 2
if os.fork() == 0:
    print(sockets(), flush=True)
    os._exit(0)
os.wait()
print(sockets())
"""
    )
    assert (done.numbers, done.err) == ([0, 2], "")
