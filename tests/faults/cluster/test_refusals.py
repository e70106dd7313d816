"""Nodes that refuse while a recorder writes: their shards wait, the others go on."""

from support.clusters import Cluster
from support.history import check_exact
from support.progress import errors, goes_on, read, shards_on, totals
from support.waiting import eventually
from support.writers import Writers


def test_a_full_node_gets_everything_once_it_has_room(any_cluster: Cluster) -> None:
    """OOM on one: nothing is written there, and nothing of the others waits for it."""
    cluster = any_cluster
    node = cluster.nodes[2]
    with Writers(cluster.url, processes=1) as writers:
        goes_on(cluster)
        for _ in range(2):
            full = shards_on(cluster, node)
            cluster.fill(node)
            eventually(lambda: writers.troubles()["OOM"] > 0, 10.0)
            before = totals(cluster)
            goes_on(cluster, but=full)
            after = totals(cluster)
            assert {n: after[n] for n in full} == {n: before[n] for n in full}
            assert all(health.buffered for health in writers.healths())
            cluster.unfill(node)
            goes_on(cluster)
        ledger = writers.finish()
    check_exact(ledger, read(cluster))


def test_a_node_in_trouble_is_tried_less_often_and_the_others_as_always(cluster: Cluster) -> None:
    """Its shards have pauses of their own: the others are stored several times within one."""
    node = cluster.nodes[2]
    with Writers(cluster.url, threads=1, flush_interval=0.5) as writers:
        goes_on(cluster)
        full = shards_on(cluster, node)
        cluster.fill(node)
        eventually(lambda: writers.troubles()["OOM"] >= 3, 20.0)
        before = writers.troubles()["OOM"]
        goes_on(cluster, but=full, times=4)
        assert writers.troubles()["OOM"] <= before + 1
        cluster.unfill(node)
        ledger = writers.finish()
    check_exact(ledger, read(cluster))


def test_a_cluster_that_serves_all_or_nothing_gets_everything_afterwards(cluster: Cluster) -> None:
    """CLUSTERDOWN on all nodes for as long as one is unreachable: all of it waits in memory."""
    cluster.keep_masters()
    for node in cluster.nodes:
        node.ask("CONFIG", "SET", "cluster-require-full-coverage", "yes")
        node.ask("CONFIG", "SET", "cluster-node-timeout", "500")  # nobody is replaced: safe
    master, other = cluster.nodes[:2]
    with Writers(cluster.url, timeout=0.3) as writers:
        goes_on(cluster)
        cluster.pause(master)
        eventually(lambda: errors(other, "CLUSTERDOWN") > 0, 20.0)
        cluster.resume(master)
        writers.catch_up()
        goes_on(cluster)
        ledger = writers.finish()
    check_exact(ledger, read(cluster))


def test_answers_that_are_lost_count_once(networked_cluster: Cluster) -> None:
    """Of one node, again and again: it has applied what was sent, and is sent it again."""
    cluster = networked_cluster
    node = cluster.nodes[0]
    with Writers(cluster.url) as writers:
        goes_on(cluster)
        cluster.lose_replies(node, 4)
        goes_on(cluster, but=shards_on(cluster, node))
        eventually(lambda: cluster.losses_left(node) == 0, 20.0)
        goes_on(cluster)
        ledger = writers.finish()
    assert sum(health.retried for health in writers.healths()) > 0
    check_exact(ledger, read(cluster))


def test_a_node_without_a_successor_is_waited_for(cluster: Cluster) -> None:
    """Primary and replica are gone: its shards wait, in bounded memory, and start again."""
    master = cluster.nodes[0]
    (replica,) = cluster.replicas(of=master)
    with Writers(cluster.url, timeout=0.3) as writers:
        goes_on(cluster)
        gone = shards_on(cluster, master)
        cluster.kill(replica)
        cluster.kill(master)
        goes_on(cluster, but=gone)
        cluster.start_again(master)
        writers.catch_up()
        goes_on(cluster)
        ledger = writers.finish()
        assert all(health.buffered == 0 for health in writers.healths())
    stored, recorded = read(cluster), ledger.recorded()
    for place, slices in stored.slices.items():  # its data are gone: there is no lower bound
        assert sum(slices.values()) <= sum(recorded[place[1]].values())
