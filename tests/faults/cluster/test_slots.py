"""Slots that move while a recorder writes: nothing is lost, nothing counts twice."""

import pytest

from redmeter.stored.shards import shard_of
from support.clusters import Cluster
from support.history import check_exact
from support.nodes import Node
from support.progress import errors, goes_on, read, shards_on, slot_of, whereabouts
from support.recorders import OpenBuffered, check_sums, stored_by_itself
from support.waiting import eventually
from support.writers import Writers


def total(node: Node, series: str) -> int:
    """Return the grand total of a series as a node has it."""
    for key in node.client.scan_iter("redmeter:*total:", count=1000):
        if found := node.client.hget(key, series):
            return int(found)
    return 0


@pytest.mark.servers
def test_a_slot_that_has_moved_is_followed(
    any_cluster: Cluster, open_buffered: OpenBuffered
) -> None:
    """MOVED, in either direction."""
    meter = open_buffered(any_cluster.url)
    meter.count("x", 0)
    assert meter.flush(10.0)
    slot, source, to = whereabouts(any_cluster, shard_of("x"))
    for node, other in ((source, to), (to, source)):
        meter.count("x", 10)
        assert meter.flush(10.0)
        any_cluster.migrate_slot(slot, other)
        meter.count("x", 100)
        assert meter.flush(10.0)
        assert errors(node, "MOVED") > 0
    health = meter.recorder_health()
    assert (health.recorded, health.stored, health.losses, health.uncertain) == (220, 220, (), 0)
    assert total(source, "x") == 220


def test_a_slot_that_is_moving_is_asked_for(
    any_cluster: Cluster, open_buffered: OpenBuffered
) -> None:
    """ASK: its keys are there already, and it is not."""
    meter = open_buffered(any_cluster.url)
    meter.count("x", 1)
    assert meter.flush(10.0)
    slot, source, to = whereabouts(any_cluster, shard_of("x"))
    any_cluster.open_slot(slot, to)
    any_cluster.move_keys(slot, to)
    meter.count("x", 10)
    assert meter.flush(10.0)
    assert errors(source, "ASK") > 0
    assert meter.recorder_health().stored == 11
    any_cluster.close_slot(slot, to)
    meter.count("x", 100)
    assert meter.flush(10.0)
    health = meter.recorder_health()
    assert (health.recorded, health.stored, health.losses, health.uncertain) == (111, 111, (), 0)
    assert total(to, "x") == 111


@pytest.mark.parametrize("moved", ["a key", "all keys"])
def test_a_slot_that_is_half_moved_waits_and_the_others_go_on(
    any_cluster: Cluster, open_buffered: OpenBuffered, moved: str
) -> None:
    """TRYAGAIN: some keys are here and some there, or some are not there yet."""
    cluster = any_cluster
    meter = open_buffered(cluster.url)
    meter.count("x", 1)
    others = [name for name in map("y{}".format, range(50)) if shard_of(name) != shard_of("x")]
    for name in others:
        meter.count(name)
    assert meter.flush(10.0)
    slot, source, to = whereabouts(cluster, shard_of("x"))
    cluster.open_slot(slot, to)
    cluster.move_keys(slot, to, 1 if moved == "a key" else None)
    # A new series of the same shard: its keys are nowhere yet.
    new = next(n for n in map("z{}".format, range(10_000)) if shard_of(n) == shard_of("x"))
    meter.count("x", 10)
    meter.count(new, 100)
    stored = meter.recorder_health().stored
    for name in others:
        meter.count(name)
    eventually(
        lambda: meter.recorder_health().stored == stored + len(others), 10.0, "the others go on"
    )
    # With each flush, not less and less often: some ten times by then.
    eventually(lambda: errors(source, "TRYAGAIN") + errors(to, "TRYAGAIN") > 50, 10.0)
    assert meter.recorder_health().buffered == 110
    check_sums(meter.recorder_health())
    cluster.move_keys(slot, to)
    cluster.close_slot(slot, to)
    stored_by_itself(meter)
    health = meter.recorder_health()
    assert (health.stored, health.losses, health.uncertain) == (health.recorded, (), 0)
    assert (total(to, "x"), total(to, new)) == (11, 100)


def test_all_slots_of_a_node_move_under_load(any_cluster: Cluster) -> None:
    """To two others, key by key, while threads and a process write; it is a primary without any."""
    cluster = any_cluster
    with Writers(cluster.url, processes=1) as writers:
        goes_on(cluster)
        source, first, second = cluster.masters()
        mine = sorted(shards_on(cluster, source))
        for i, shard in enumerate(mine):
            cluster.migrate_slot(slot_of(shard), (first, second)[i % 2])
        assert not shards_on(cluster, source)
        writers.catch_up()
        goes_on(cluster)
        ledger = writers.finish()
    assert errors(source, "ASK") + errors(source, "TRYAGAIN") > 0
    assert errors(source, "MOVED") > 0
    check_exact(ledger, read(cluster))


def test_a_slot_that_nobody_serves_waits_and_the_others_go_on(cluster: Cluster) -> None:
    """CLUSTERDOWN for one slot, until a node serves it again."""
    with Writers(cluster.url) as writers:
        goes_on(cluster)
        shard = shard_of("load.0")
        slot, source, _ = whereabouts(cluster, shard)
        cluster.drop_slot(slot)
        goes_on(cluster, but={shard})
        assert errors(source, "CLUSTERDOWN") + errors(source, "MOVED") > 0
        assert any(health.buffered for health in writers.healths())
        cluster.serve_slot(slot, source)
        writers.catch_up()
        goes_on(cluster)
        ledger = writers.finish()
    check_exact(ledger, read(cluster))
