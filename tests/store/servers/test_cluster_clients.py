"""Clusters that a client of the caller's leads to."""

import contextlib
import threading
from typing import Any

import pytest
from redis.cluster import ClusterNode, LoadBalancingStrategy, RedisCluster

from redmeter import Meter, StoreUnavailable
from redmeter.health.doctor import examine
from redmeter.store import Store
from redmeter.store.servers.topology import slot_of
from support.clusters import Cluster
from support.layout import SLOTS
from support.names import one_in_each
from support.nodes import Node
from support.proxy import Proxy
from support.servers import Server
from support.stores import link_of
from support.waiting import eventually

#: One for each shard.
NAMES = one_in_each()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"decode_responses": True},
        {"protocol": 3},
        {"load_balancing_strategy": LoadBalancingStrategy.ROUND_ROBIN},
    ],
)
def test_a_cluster_client_of_the_callers_says_where_and_how(
    options: dict[str, Any], cluster: Cluster
) -> None:
    """Whatever its settings; it is left open, and nothing goes over its own connections."""
    theirs: Any = RedisCluster(host="127.0.0.1", port=cluster.nodes[0].port, **options)
    with Meter(client=theirs, sync=True) as meter:
        for number, name in enumerate(NAMES):
            meter.count(name, number + 1)
        meter.log("shop", "paid %s", 12)
        meter.observe("took", 1.5)
        assert meter.names() == sorted(NAMES)
        assert [meter.total(name) for name in NAMES] == list(range(1, 65))
        assert meter.summary("took", precision=60).count == 1
        assert [source.logger for source in meter.loggers()] == ["shop"]
        assert len(meter.top("n*", precision=60, limit=100)) == 64
        store = meter._store
        assert store is not None
        assert "the caller's client" in store.location
        found = examine(store)
        assert (found.series[60], found.level) == (64, "warn")
    assert theirs.ping()
    theirs.close()


def test_a_cluster_client_of_the_callers_that_was_closed_does_as_well(cluster: Cluster) -> None:
    """It says where and how all the same, also between a meter and its first reading."""
    theirs: Any = RedisCluster(host="127.0.0.1", port=cluster.nodes[0].port)
    with Meter(client=theirs, sync=True, read_from="replica") as before:
        theirs.close()
        with Meter(client=theirs, sync=True) as meter:
            meter.count("hits", 3)
            assert meter.total("hits") == 3
        eventually(lambda: before.total("hits") == 3)


def test_a_cluster_client_of_the_callers_brings_its_user(cluster: Cluster) -> None:
    """Name and password, which no message has."""
    for node in cluster.nodes:
        node.ask("ACL", "SETUSER", "ada", "on", ">hidden-secret", "~*", "+@all")
    theirs: Any = RedisCluster(
        host="127.0.0.1", port=cluster.nodes[1].port, username="ada", password="hidden-secret"
    )
    try:
        with Meter(client=theirs, sync=True) as meter:
            meter.count("hits", 3)
            assert meter.total("hits") == 3
            assert "hidden" not in f"{meter!r} {meter._store!r}"
            for node in cluster.nodes:
                node.ask("ACL", "SETUSER", "ada", ">other", "<hidden-secret")
                node.ask("CLIENT", "KILL", "USER", "ada")
            with pytest.raises(Exception, match=r"WRONGPASS|invalid username") as error:
                meter.total("hits")
            assert "hidden" not in str(error.value)
    finally:
        theirs.close()
        for node in cluster.nodes:
            node.ask("ACL", "DELUSER", "ada")


def store_of(meter: Meter) -> Store:
    """Return where it stores."""
    assert meter._store is not None
    return meter._store


def test_as_many_threads_as_like_to_use_a_node_at_once(cluster: Cluster) -> None:
    """Also more than the hundred that the client would allow."""
    theirs: Any = RedisCluster(
        host="127.0.0.1", port=cluster.nodes[0].port, socket_timeout=60.0, protocol=2
    )
    meter, many, replies = Meter(client=theirs), 130, list[Any]()
    link, key = link_of(store_of(meter)), "redmeter:queue"
    node = cluster.node_of(slot_of(key))

    def wait() -> None:
        replies.extend(link.collect([("BLPOP", key, "0")]))

    threads = [threading.Thread(target=wait) for _ in range(many)]
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: replies or node.info("clients")["blocked_clients"] == many, 30.0)
        assert replies == []
    finally:
        node.ask("LPUSH", key, *range(many))
        for thread in threads:
            thread.join(30.0)
        meter.close()
        theirs.close()
    assert {reply[0] for reply in replies} == {key.encode()}
    assert link.unreachable() == []


@pytest.fixture
def inner(cluster: Cluster) -> Cluster:
    """A cluster whose nodes call each other by names that nobody else knows."""

    def called() -> set[str]:
        return {told[0] for node in cluster.nodes for told in hosts_of(node)}

    for node in cluster.nodes:
        node.ask("CONFIG", "SET", "cluster-announce-hostname", f"inner-{node.number}.invalid")
        node.ask("CONFIG", "SET", "cluster-preferred-endpoint-type", "hostname")
    eventually(lambda: called() == {f"inner-{number}.invalid" for number in range(6)})
    return cluster


def hosts_of(node: Node) -> list[Any]:
    """Return what a node says of where nodes are."""
    return [each for row in node.ask("CLUSTER", "SLOTS") for each in row[2:]]


def test_a_client_that_knows_another_way_to_the_nodes_brings_it_along(inner: Cluster) -> None:
    """To those that it knows, and to those that a node leads to: for good, and for once."""

    def outside(address: tuple[str, int]) -> tuple[str, int]:
        return "127.0.0.1", address[1]

    start = [ClusterNode("127.0.0.1", inner.nodes[0].port)]  # type: ignore[no-untyped-call]
    theirs: Any = RedisCluster(startup_nodes=start, address_remap=outside)
    with Meter(client=theirs, sync=True) as meter:
        for name in NAMES:
            meter.count(name)
        assert meter.names() == sorted(NAMES)
        part = store_of(meter).shard(NAMES[0])
        slot = slot_of(part.keys.total)
        other = inner.other_than(inner.node_of(slot))
        inner.open_slot(slot, other)  # what is not there any more is asked for there: ASK
        assert part.link.exchange([("EXISTS", part.keys.hists)]) == [0]
        inner.move_keys(slot, other)
        inner.close_slot(slot, other)
        meter.count(NAMES[0])
        assert meter.total(NAMES[0]) == 2
        told = {name.partition(":")[0] for name in store_of(meter).link.ask_servers([("PING",)])}
        assert told == {"127.0.0.1"}
    theirs.close()


def cluster_of_one() -> Server:
    """Return a server, not started yet, that is a cluster by itself once it has all slots."""
    return Server("valkey-9.1", config={"cluster-enabled": "yes"})


def hand_all_slots(server: Server) -> None:
    """Have it be a cluster by itself."""
    with server.client() as client:
        client.execute_command("CLUSTER", "ADDSLOTS", *range(SLOTS))
        eventually(lambda: client.cluster("INFO")["cluster_state"] == "ok", 10.0)


def test_an_address_that_a_client_keeps_leads_to_nodes_that_all_have_new_ones() -> None:
    """A name that stays while nodes come and go, as that of a service: the client's, so ours."""
    with cluster_of_one() as old, cluster_of_one() as new, Proxy(old.port) as stays:
        for server in (old, new):
            hand_all_slots(server)
            with Meter(f"redis+cluster://127.0.0.1:{server.port}", sync=True) as meter:
                meter.count("hits", server.port)
        start = [ClusterNode("127.0.0.1", stays.port)]  # type: ignore[no-untyped-call]
        theirs: Any = RedisCluster(startup_nodes=start, dynamic_startup_nodes=False)
        with Meter(client=theirs, sync=True, timeout=0.5) as meter:
            assert meter.total("hits") == old.port
            stays.target_port = new.port
            old.kill()

            def total() -> int | None:
                with contextlib.suppress(StoreUnavailable):
                    return meter.total("hits")
                return None

            eventually(lambda: total() == new.port, 15.0)
            meter.count("hits")
            assert total() == new.port + 1
        theirs.close()
