"""Cleaning and forgetting on a cluster: all shards, and none waits for a node that is away."""

import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest

from redmeter import Meter, StoreRefused, StoreUnavailable
from redmeter.maintenance import cleaning, forgetting
from redmeter.reading.names import read_names
from redmeter.store import Store
from redmeter.store.servers import cluster as clusters
from redmeter.store.servers.connection import ServerLink
from redmeter.store.servers.replies import Command
from redmeter.stored.keys import entry
from redmeter.stored.shards import shard_of
from support.clusters import Cluster
from support.nodes import Node
from support.progress import shards_on
from support.stores import OpenStore, opened_stores

#: Counters of long ago, in all shards and on all masters, and those that are alive.
OLD = [f"old{number}" for number in range(200)]
LIVE = [f"live{number}" for number in range(100)]


@pytest.fixture
def open_store(cluster: Cluster) -> Iterator[OpenStore]:
    """Open stores on the cluster, closed after the test."""
    yield from opened_stores(cluster.url)


def dirty(store: Store) -> None:
    """Leave what other writers may leave: old hashes, entries without one; and live ones."""
    now, commands = int(time.time()) // 60 * 60, list[Command]()
    for names, start in ((OLD, 60), (LIVE, now)):
        for name in names:
            keys = store.shard(name).keys
            commands.append(("ZADD", keys.known, "0", entry(60, name), "0", entry(300, name)))
            commands.append(("HSET", keys.count(60, name), str(start), "1", str(start - 60), "1"))
    assert set(map(type, store.shards[0].link.collect(commands))) == {int}


def left(store: Store) -> dict[str, int]:
    """Return how many names there are of each kind."""
    names = read_names(store.best_effort())
    return {kind: sum(name.startswith(kind) for name in names) for kind in ("old", "live")}


def on(cluster: Cluster, node: Node, names: list[str]) -> int:
    """Return how many of some names lie on a node."""
    return sum(shard_of(name) in shards_on(cluster, node) for name in names)


def test_a_pass_walks_all_shards(open_store: OpenStore) -> None:
    """Nothing old is left anywhere, nothing live is gone; when it ended is noted once."""
    store = open_store()
    dirty(store)
    sizes: list[int] = []
    report = cleaning.clean(store, progress=lambda _, size: sizes.append(size))
    assert report.complete
    assert report.examined == 600
    assert (report.samples_removed, report.hashes_removed) == (400, 200)
    assert report.entries_removed == 500  # 200 with a hash that was old, 300 with none
    assert (max(sizes), left(store)) == (600, {"old": 0, "live": 100})
    (ended,) = store.ask([("HGET", store.keys.cleaned, "redmeter:")])
    assert abs(int(ended) - time.time()) < 60


def test_a_pass_that_runs_out_of_time_goes_on_where_it_stopped(open_store: OpenStore) -> None:
    """Index by index, shard by shard; and ends."""
    store = open_store()
    dirty(store)
    passes = cursor = removed = 0
    while True:
        report = cleaning.clean(store, budget=0, cursor=cursor)
        passes, cursor, removed = passes + 1, report.cursor, removed + report.entries_removed
        if report.complete:
            break
    assert passes > 64
    assert (removed, left(store)) == (500, {"old": 0, "live": 100})


def test_a_node_that_is_away_is_told_once_the_others_are_cleaned(
    open_store: OpenStore, cluster: Cluster
) -> None:
    """What lies there is cleaned when it is back; that a pass ended is not noted before."""
    store = open_store(timeout=0.3)
    dirty(store)
    cluster.keep_masters()
    node = cluster.nodes[1]
    kept = on(cluster, node, OLD)
    cluster.pause(node)
    with pytest.raises(StoreUnavailable, match=node.address):
        cleaning.clean(store)
    (ended,) = store.ask([("HGET", store.keys.cleaned, "redmeter:")])
    assert ended is None
    assert left(store)["old"] == 0
    cluster.resume(node)
    assert 0 < kept == left(open_store())["old"]
    assert cleaning.clean(open_store()).complete
    assert left(open_store()) == {"old": 0, "live": 100}


def test_a_node_that_goes_away_during_a_pass_holds_up_nothing(
    open_store: OpenStore, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is given up with all that lies there, after one wait."""
    store = open_store(timeout=0.3)
    dirty(store)
    cluster.keep_masters()
    node = cluster.nodes[2]
    kept, waited, asked = on(cluster, node, OLD), list[int](), list[str]()
    whole = ServerLink.exchange

    def noted(self: ServerLink, *args: Any, **options: Any) -> Any:
        if node.server.paused:
            asked.append(self.location.partition(" ")[0])
        return whole(self, *args, **options)

    monkeypatch.setattr(ServerLink, "exchange", noted)
    monkeypatch.setattr(clusters, "LEFT_ALONE", 0.0)

    def went_on(report: cleaning.CleaningReport, size: int) -> None:
        if not waited:
            cluster.pause(node)
        waited.append(size)

    with pytest.raises(StoreUnavailable, match=node.address):
        cleaning.clean(store, progress=went_on)
    assert waited[-1] < waited[0]
    assert asked.count(node.address) == 1
    cluster.resume(node)
    assert left(open_store())["old"] == kept


def test_a_cleaner_goes_on_beside_a_node_that_is_away(
    open_store: OpenStore, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Pass after pass: one that ended with the trouble starts again, and it is logged."""
    store = open_store(timeout=0.2)
    dirty(store)
    cluster.keep_masters()
    node = cluster.nodes[0]
    cluster.pause(node)
    rounds: list[cleaning.CleaningReport] = []

    def quit_after_two() -> bool:
        return len([r for r in caplog.records if "could not clean" in r.message]) == 2

    with caplog.at_level(logging.WARNING), pytest.MonkeyPatch.context() as patch:
        patch.setattr(cleaning, "PASS_INTERVAL", 0.0)
        cleaning.clean_every_minute(store, quit=quit_after_two, on_pass=rounds.append)
    assert rounds == []
    assert all(node.address in r.message for r in caplog.records if "tries again" in r.message)
    assert left(store)["old"] == 0


def test_an_index_that_is_another_programs_holds_up_no_other(open_store: OpenStore) -> None:
    """It is told at the end."""
    store = open_store()
    dirty(store)
    part = store.shards[shard_of(LIVE[0])]
    store.link.exchange([("DEL", part.keys.known), ("SET", part.keys.known, "a text")])
    with pytest.raises(StoreRefused, match="something else"):
        cleaning.clean(store)
    store.link.exchange([("DEL", part.keys.known)])
    assert left(store)["old"] == 0


def test_what_is_forgotten_is_gone_from_its_shard(open_store: OpenStore, cluster: Cluster) -> None:
    """A series with all that belongs to it, a logger, a mark; nothing else, and no key is left."""
    store = open_store()
    with Meter(cluster.url, sync=True) as meter:
        for name in ("hits", "others"):
            meter.count(name, 3)
            meter.gauge(name).set(2)
            meter.observe(name, 1.5)
        for logger in ("shop", "app"):
            meter.log(logger, "paid %s", 12)
            meter.log(logger, "late", severity="error")
        for mark in ("v1", "v2"):
            meter.mark(mark)
        assert forgetting.forget(store, "hits")
        assert not forgetting.forget(store, "hits")
        assert forgetting.forget_logger(store, "shop")
        assert not forgetting.forget_logger(store, "shop")
        assert forgetting.forget_mark(store, "v1") == 1
        assert forgetting.forget_mark(store, "v1") == 0
        for kind in ("counter", "gauge", "histogram"):
            assert meter.names(kind=kind) == ["others"]
        assert (meter.total("hits"), meter.total("others")) == (0, 3)
        assert {source.logger for source in meter.loggers()} == {"app"}
        assert [mark.label for mark in meter.marks()] == ["v2"]
    keys = [key for _, key in cluster.keys("redmeter:*")]
    assert keys
    assert not [key for key in keys if ":hits" in key or ":shop" in key]


def test_a_series_is_forgotten_though_another_node_is_away(
    open_store: OpenStore, cluster: Cluster
) -> None:
    """One that lies there is not, and that is said."""
    store = open_store(timeout=0.3)
    dirty(store)
    cluster.keep_masters()
    node = cluster.nodes[1]
    away = shards_on(cluster, node)
    gone = next(name for name in LIVE if shard_of(name) in away)
    there = next(name for name in LIVE if shard_of(name) not in away)
    cluster.pause(node)
    assert forgetting.forget(store, there)
    with pytest.raises(StoreUnavailable, match=node.address):
        forgetting.forget(store, gone)
    cluster.resume(node)
    assert there not in read_names(open_store())
    assert gone in read_names(open_store())
