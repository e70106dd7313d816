"""The seal of a source that has replicas: it is confirmed, or the target is not opened."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from redmeter.errors import StoreMoving
from redmeter.migrating import MigrationError, migrate, states
from redmeter.store import Store
from redmeter.store.config import read_states
from support.clusters import Cluster
from support.migrating import fill, replica_of
from support.proxy import Proxy
from support.servers import Server
from support.stores import OpenStore, count, opened_store, opened_stores

META = "redmeter:meta:"


@pytest.fixture
def open_store() -> Iterator[OpenStore]:
    """Open stores, and close them after the test."""
    yield from opened_stores()


@pytest.fixture
def replica(server: Server) -> Iterator[Server]:
    """A replica of a filled source, which has everything."""
    fill(server.url)
    with replica_of(server) as made:
        yield made


@pytest.fixture
def other() -> Iterator[Server]:
    """The server of the target."""
    with Server("valkey-9.1") as other:
        yield other


@pytest.fixture
def target(other: Server, open_store: OpenStore) -> Store:
    """A target that does not exist yet."""
    return open_store(other.url)


def accepts(url: str) -> bool:
    """Whether a store accepts an event."""
    with opened_store(url) as store:
        try:
            count(store, "new", int(store.read()[0].now))
        except StoreMoving:
            return False
        return True


def test_a_replica_confirms_the_seal(
    server: Server, replica: Server, target: Store, open_store: OpenStore
) -> None:
    """Then a failover finds the source sealed."""
    report = migrate(open_store(server.url), target)
    assert list(report.seal.values()) == ["replicated"]
    with replica.client() as client:
        assert client.hget(META, "moved") == report.move.encode()


def test_a_source_without_replicas_is_told(
    server: Server, target: Store, open_store: OpenStore
) -> None:
    """There is nothing to wait for."""
    fill(server.url)
    waits: list[str] = []
    report = migrate(open_store(server.url), target, waiting=lambda what, _: waits.append(what))
    assert (list(report.seal.values()), waits) == (["no replica"], [])


def test_a_replica_that_is_stopped_does_not_confirm_it(
    server: Server,
    replica: Server,
    target: Store,
    open_store: OpenStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The target is opened after some seconds. Another run asks again."""
    monkeypatch.setattr(states, "CONFIRM", 2.5)
    waits: list[tuple[str, float]] = []
    for _ in range(2):
        report = migrate(
            *(open_store(server.url), target),
            progress=lambda _: replica.pause(),
            waiting=lambda *wait: waits.append(wait),
        )
        assert list(report.seal.values()) == ["unconfirmed"]
        assert accepts(target.location)
    assert report.already
    assert all("a replica of" in what for what, _ in waits)
    lefts = [left for _, left in waits[: len(waits) // 2]]
    assert lefts == sorted(lefts, reverse=True)
    assert all(0 < before - after < 2 for before, after in itertools.pairwise(lefts))
    replica.resume()
    assert list(migrate(open_store(server.url), target).seal.values()) == ["replicated"]


def test_a_failover_that_loses_the_seal_leaves_the_target_closed(
    server: Server,
    replica: Server,
    proxy: Proxy,
    other: Server,
    target: Store,
    open_store: OpenStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The old primary goes on; only new connections lead to the new one. A second run completes."""
    confirm = states.confirm_seal

    def cut_off(_: int) -> None:
        with replica.client() as client:
            client.replicaof("127.0.0.1", "1")

    def fail_over(*args: Any) -> dict[str, str]:
        found = confirm(*args)
        with replica.client() as client:
            client.replicaof("NO", "ONE")
            client.hdel(META, "frozen")  # as if its lease had expired
        proxy.target_port = replica.port
        return found

    with monkeypatch.context() as patched:
        patched.setattr(states, "confirm_seal", fail_over)
        with pytest.raises(MigrationError) as raised:
            migrate(open_store(proxy.url), target, progress=cut_off)
    assert raised.value.reason == "unsealed"
    assert accepts(proxy.url)
    assert not accepts(target.location)
    report = migrate(open_store(proxy.url), target)
    assert not report.already
    assert not accepts(proxy.url)
    assert accepts(target.location)
    with other.client() as client:
        assert client.hget("redmeter:total:", "new") == b"2"


def test_each_primary_of_a_cluster_is_asked(
    cluster: Cluster, target: Store, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One replica is stopped; and a shard that lost its seal keeps the target closed."""
    monkeypatch.setattr(states, "CONFIRM", 1.0)
    fill(cluster.url, series=20)
    source = open_store(cluster.url)
    primary, replica = cluster.nodes[0], cluster.nodes[3]
    confirm = states.confirm_seal

    def lose_a_seal(*args: Any) -> dict[str, str]:
        found = confirm(*args)
        shard = source.shards[-1]
        shard.link.collect([("HDEL", shard.keys.meta, "moved")])
        return found

    with monkeypatch.context() as patched:
        patched.setattr(states, "confirm_seal", lose_a_seal)
        with pytest.raises(MigrationError) as raised:
            migrate(source, target)
    assert raised.value.reason == "unsealed"
    assert not accepts(target.location)
    try:
        seal = migrate(source, target, progress=lambda _: cluster.pause(replica)).seal
    finally:
        cluster.resume(replica)
    found = {name.split()[0]: state for name, state in seal.items()}
    assert found.pop(primary.address) == "unconfirmed"
    assert list(found.values()) == ["replicated"] * 2
    assert accepts(target.location)


def test_a_cluster_that_was_killed_while_it_got_another_seal_goes_on(
    cluster: Cluster, other: Server, target: Store, open_store: OpenStore
) -> None:
    """Some shards name the new move, the others the one before."""
    fill(cluster.url)
    source = open_store(cluster.url)
    migrate(source, target)
    with other.client() as client:
        client.hset(META, "receiving", "token newer")
        client.hdel(META, "verified")
    source.shards[0].link.collect([("HSET", source.shards[0].keys.meta, "moved", "newer")])
    report = migrate(source, target)
    assert (report.move, report.already) == ("newer", False)
    assert {state.moved for state in read_states(source)} == {"newer"}
