"""The ground the tests of clusters stand on: nodes die, are cut off and hand over as told."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.retry import Retry

from support.clusters import Cluster, Clusters
from support.layout import SLOTS
from support.network import CLIENT, Network, member_address
from support.servers import Server
from support.waiting import eventually

pytestmark = pytest.mark.nightly


def test_a_cluster_of_each_kind_takes_writes_on_all_masters(any_cluster: Cluster) -> None:
    """Three masters hold all slots, each has one replica that has what it has."""
    masters = any_cluster.masters()
    assert masters == any_cluster.nodes[:3]
    assert [any_cluster.replicas(of=master) for master in masters] == [
        [node] for node in any_cluster.nodes[3:]
    ]
    host, port = any_cluster.url.removeprefix("redis+cluster://").split(",")[0].split(":")
    client: Any
    with redis.RedisCluster(host=host, port=int(port)) as client:
        for i in range(100):
            client.set(f"key:{i}", i)
    assert {node for node, _ in any_cluster.keys("key:*")} == set(masters)
    assert len(list(any_cluster.keys("key:*"))) == 100
    assert any_cluster.node_of("key:7").ask("GET", "key:7") == "7"


def test_a_cluster_is_as_new_for_each_test(clusters: Clusters) -> None:
    """What was stored, set, filled, paused and moved is undone in the very same processes."""
    before = clusters.get("valkey-9.1")
    node, other = before.nodes[:2]
    pids, layout = [one.server.pid for one in before.nodes], before.layout()
    before.migrate_slot(key_slot(b"key"), before.other_than(before.node_of("key")))
    before.node_of("key").ask("SET", "key", "value")
    node.ask("CONFIG", "SET", "cluster-require-full-coverage", "yes")
    before.fill(node)
    before.pause(other)
    after = clusters.get("valkey-9.1")
    assert ([one.server.pid for one in after.nodes], after.layout()) == (pids, layout)
    assert list(after.keys()) == []
    found = node.client.config_get("maxmemory", "cluster-require-full-coverage")
    assert set(found.values()) == {"0", "no"}


def test_a_replica_takes_the_place_of_a_master_that_was_killed(clusters: Clusters) -> None:
    """It has all replicated keys; the other becomes its replica; then all nodes are recreated."""
    cluster = clusters.get("valkey-9.1")
    master = cluster.node_of("key")
    (replica,) = cluster.replicas(of=master)
    master.ask("SET", "key", "value")
    assert master.ask("WAIT", 1, 5000) == 1
    cluster.kill(master)
    cluster.wait_failover(master)
    assert cluster.node_of("key") is replica
    assert replica.ask("GET", "key") == "value"
    cluster.start_again(master)
    cluster.wait_ok()
    assert cluster.replicas(of=replica) == [master]
    pids = {node.server.pid for node in cluster.nodes}
    fresh = clusters.get("valkey-9.1")
    assert not pids & {node.server.pid for node in fresh.nodes}
    assert fresh.masters() == fresh.nodes[:3]


def test_a_slot_that_was_left_half_way_asks_and_tells_to_try_again(cluster: Cluster) -> None:
    """Its keys are on two nodes; closed, it belongs to the other one with all that is in it."""
    keys = ["{t}a", "{t}b"]
    source, slot = cluster.node_of("{t}"), key_slot(b"{t}")
    to = cluster.other_than(source)
    source.client.mset(dict.fromkeys(keys, "value"))
    cluster.open_slot(slot, to)
    (moved,) = cluster.move_keys(slot, to, 1)
    with pytest.raises(redis.ResponseError, match=rf"{slot} {to.address}"):
        source.ask("GET", moved)
    with pytest.raises(redis.ResponseError, match=r"Multiple keys|TRYAGAIN"):
        source.ask("MGET", *keys)
    cluster.move_keys(slot, to)
    cluster.close_slot(slot, to)
    cluster.wait_ok()
    assert cluster.node_of("{t}") is to
    assert to.ask("MGET", *keys) == ["value", "value"]


def test_a_node_that_is_full_refuses_until_it_has_room(cluster: Cluster) -> None:
    """The others take what comes."""
    node, other = cluster.nodes[:2]
    keys = {cluster.node_of(f"{i}"): f"{i}" for i in range(100)}
    cluster.fill(node)
    with pytest.raises(redis.ResponseError, match="maxmemory"):
        node.ask("SET", keys[node], "value")
    assert other.ask("SET", keys[other], "value")
    cluster.unfill(node)
    assert node.ask("SET", keys[node], "value")


def test_a_node_that_is_cut_off_lives_and_is_given_up(networked_cluster: Cluster) -> None:
    """Its replica takes its place, no client reaches it, and healed it is a replica."""
    cluster = networked_cluster
    master = cluster.node_of("key")
    (replica,) = cluster.replicas(of=master)
    options: dict[str, Any] = {"socket_timeout": 0.3, "retry": Retry(NoBackoff(), 0)}
    with (
        redis.Redis(port=master.port, **options) as client,
        redis.Redis(port=master.port, **options) as other,
    ):
        assert client.ping()
        cluster.cut_off(master)
        for one in (client, other):
            with pytest.raises(redis.TimeoutError):
                one.ping()
        assert master.ask("PING")
        cluster.wait_failover(master)
        assert cluster.node_of("key") is replica
        # It is among the few, and gives up as well.
        eventually(lambda: "cluster_state:fail" in master.ask("CLUSTER", "INFO"), 10.0)
        cluster.heal(master)
        cluster.wait_ok()
        assert cluster.replicas(of=replica) == [master]
        assert client.ping()


def test_a_node_may_be_cut_off_from_the_others_alone(networked_cluster: Cluster) -> None:
    """Clients reach it for as long as it does not know."""
    master = networked_cluster.nodes[0]
    networked_cluster.cut_off(master, clients=False)
    with redis.Redis(port=master.port, socket_timeout=5.0) as client:
        assert client.ping()


@pytest.fixture
def network(server: Server) -> Iterator[Network]:
    """A network with one member, the server."""
    network = Network()
    yield network
    network.close()


def test_what_is_under_way_when_a_member_is_cut_off_arrives_later(
    server: Server, network: Network, conn: Any
) -> None:
    """As on a network that repeats what nobody has acknowledged."""
    here = member_address(0)
    port = network.forward(here, lambda: (CLIENT, server.port))
    with socket.create_connection((CLIENT, port)) as sock:
        sock.sendall(b"PING\r\n")
        assert sock.recv(100) == b"+PONG\r\n"
        network.cut(here, CLIENT)
        sock.sendall(b"INCR key\r\n")
        with socket.create_connection((CLIENT, port)) as late:
            late.sendall(b"INCR key\r\n")
            late.settimeout(0.1)
            with pytest.raises(TimeoutError):
                late.recv(100)
        assert conn.get("key") is None
        network.heal(here, CLIENT)
        assert sock.recv(100).startswith(b":")
        eventually(lambda: conn.get("key") == b"2")


def test_answers_are_lost_after_the_member_has_done_its_work(
    server: Server, network: Network, conn: Any
) -> None:
    """So often as was asked for."""
    here = member_address(0)
    port = network.forward(here, lambda: (CLIENT, server.port))
    network.lose_replies(here, 2)
    for _ in range(2):
        with socket.create_connection((CLIENT, port)) as sock:
            sock.sendall(b"INCR key\r\n")
            assert sock.recv(100) == b""
    assert network.losses_left(here) == 0
    with socket.create_connection((CLIENT, port)) as sock:
        sock.sendall(b"INCR key\r\n")
        assert sock.recv(100) == b":3\r\n"


_HOLDER = """
from support.clusters import Cluster
with Cluster(network=True) as cluster:
    print(*(node.server.pid for node in cluster.nodes), flush=True)
    input()
"""


def test_nodes_end_with_the_process_that_started_them() -> None:
    """Also where it was killed."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as holder:
        assert holder.stdout is not None
        pids = [int(pid) for pid in holder.stdout.readline().split()]
        assert len(pids) == 6
        holder.kill()
    eventually(lambda: not any(alive(pid) for pid in pids), 10.0, "they have ended")


def alive(pid: int) -> bool:
    """Whether a process is there and not only waiting to be collected."""
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_slots_are_all_given_out(cluster: Cluster) -> None:
    """Each slot belongs to one master."""
    held = [low_high for ranges in cluster.layout().values() for low_high in ranges]
    assert sum(high - low + 1 for low, high in held) == SLOTS
