"""Primaries that die, stand still or are cut off under load, and replicas that take their place.

What a primary had acknowledged and its replica did not have is gone with it: at most what was
recorded since its replica was seen to have all. Never anything twice, and nothing of shards on
other primaries.
"""

import time
from collections.abc import Callable

import pytest

from support.clusters import Cluster
from support.history import check, check_exact
from support.nodes import Node
from support.progress import at_risk, goes_on, read, replicated, shards_on
from support.waiting import eventually
from support.writers import Writers


def recovers(cluster: Cluster, writers: Writers) -> None:
    """Have all be stored that waits, and see that all shards go on."""
    writers.catch_up()
    goes_on(cluster)


def fails_again(writers: Writers) -> None:
    """Wait until each has waited in vain for an answer once more."""
    before = [health.troubles.get("StoreUnavailable", 0) for health in writers.healths()]

    def failed() -> bool:
        now = [health.troubles.get("StoreUnavailable", 0) for health in writers.healths()]
        return all(new > old for old, new in zip(before, now, strict=True))

    eventually(failed, 20.0, "another try has failed")


def another_takes_its_place(
    cluster: Cluster, writers: Writers, master: Node, comes_back: Callable[[Node], None]
) -> None:
    """Wait until a primary that went away is replaced, and have it come back as a replica."""
    cluster.wait_failover(master)
    recovers(cluster, writers)
    comes_back(master)
    cluster.wait_ok()
    recovers(cluster, writers)


def away_for_a_while(
    cluster: Cluster,
    master: Node,
    goes_away: Callable[[Node], None],
    comes_back: Callable[[Node], None],
    times: int = 1,
) -> None:
    """Have a primary be away some times, unreplaced: nothing is lost, or counts twice."""
    cluster.keep_masters()
    with Writers(cluster.url, timeout=0.3) as writers:
        goes_on(cluster)
        for _ in range(times):
            shards = shards_on(cluster, master)
            goes_away(master)
            goes_on(cluster, but=shards)
            fails_again(writers)
            assert any(health.buffered for health in writers.healths())
            comes_back(master)
            cluster.wait_ok()
            goes_on(cluster)
        ledger = writers.finish()
    assert sum(health.retried for health in writers.healths()) > 0
    check_exact(ledger, read(cluster))


def away_for_too_long(
    cluster: Cluster,
    master: Node,
    goes_away: Callable[[Node], None],
    comes_back: Callable[[Node], None],
) -> None:
    """Have a primary be replaced: what nobody had replicated is gone, and nothing counts twice."""
    with Writers(cluster.url, timeout=0.3) as writers:
        goes_on(cluster)
        shards, safe = shards_on(cluster, master), replicated(cluster, master)
        goes_away(master)
        went = time.monotonic()
        goes_on(cluster, but=shards)
        another_takes_its_place(cluster, writers, master, comes_back)
        ledger = writers.finish()
    check(ledger, read(cluster), missing=at_risk(ledger, shards, safe, went))


@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_masters_are_killed_one_after_the_other(any_cluster: Cluster, times: int) -> None:
    """kill -9 under load: the others go on meanwhile; the dead one comes back as a replica."""
    cluster = any_cluster
    died: list[tuple[frozenset[int], dict[str, int], float]] = []
    with Writers(cluster.url, processes=1) as writers:
        goes_on(cluster)
        for master in cluster.masters()[:times]:
            shards = shards_on(cluster, master)
            safe = replicated(cluster, master)
            cluster.kill(master)
            died.append((shards, safe, time.monotonic()))
            goes_on(cluster, but=shards)
            another_takes_its_place(cluster, writers, master, cluster.start_again)
        ledger = writers.finish()
    risks = [at_risk(ledger, *one) for one in died]
    check(ledger, read(cluster), missing=lambda series: sum(risk(series) for risk in risks))


@pytest.mark.nightly
def test_a_master_that_comes_back_with_its_data_has_lost_nothing(cluster: Cluster) -> None:
    """Killed and started again before anybody took its place: all that it acknowledged is there."""
    cluster.keep_masters()
    master = cluster.nodes[0]
    cluster.keep_data(master)
    with Writers(cluster.url) as writers:
        goes_on(cluster)
        shards = shards_on(cluster, master)
        cluster.kill(master)
        goes_on(cluster, but=shards)
        cluster.start_again(master)
        recovers(cluster, writers)
        ledger = writers.finish()
    check_exact(ledger, read(cluster))


def test_a_master_that_stands_still_for_a_while_loses_nothing(cluster: Cluster) -> None:
    """SIGSTOP, and nobody takes its place: what was sent is sent again, and counts once."""
    away_for_a_while(cluster, cluster.nodes[0], cluster.pause, cluster.resume)


@pytest.mark.nightly
def test_a_master_that_stood_still_for_too_long_is_a_replica_afterwards(cluster: Cluster) -> None:
    """Its place was taken: what nobody had replicated is gone, and nothing counts twice."""
    away_for_too_long(cluster, cluster.nodes[0], cluster.pause, cluster.resume)


@pytest.mark.nightly
def test_a_node_that_nobody_reaches_for_a_while_loses_nothing(networked_cluster: Cluster) -> None:
    """What was under way arrives late, after it was sent again, and counts once."""
    cluster = networked_cluster
    away_for_a_while(cluster, cluster.nodes[1], cluster.cut_off, cluster.heal, times=2)


@pytest.mark.nightly
def test_a_node_that_is_cut_off_is_replaced(networked_cluster: Cluster) -> None:
    """And is a replica once it is back."""
    cluster = networked_cluster
    away_for_too_long(cluster, cluster.nodes[1], cluster.cut_off, cluster.heal)


def test_what_a_master_took_that_only_its_clients_reached_is_sent_again(
    networked_cluster: Cluster,
) -> None:
    """It goes on until it finds itself alone; the next batches find that. Nothing counts twice."""
    cluster = networked_cluster
    master = cluster.nodes[1]
    with Writers(cluster.url, timeout=0.3) as writers:
        goes_on(cluster)
        cluster.cut_off(master, clients=False)
        eventually(lambda: "cluster_state:fail" in master.ask("CLUSTER", "INFO"), 10.0)
        another_takes_its_place(cluster, writers, master, cluster.heal)
        ledger = writers.finish()
    check_exact(ledger, read(cluster))
