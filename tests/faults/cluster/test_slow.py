"""Nodes that are slow to answer while a recorder writes."""

import math
from typing import Any

import pytest

from redmeter import Meter
from redmeter.store.servers.retry import Backoff
from redmeter.stored.shards import TAGS, shard_of
from support.clusters import Cluster
from support.progress import shards_on, totals
from support.recorders import OpenBuffered
from support.stores import link_of
from support.waiting import eventually


@pytest.fixture
def meter(cluster: Cluster, open_buffered: OpenBuffered) -> Meter:
    """A meter that waits for no node: none is ever back in time."""
    meter = open_buffered(cluster.url, flush_interval=0.05)
    recorder: Any = meter._recorder
    recorder._delivery._workers._patience = 0.0
    return meter


def test_a_report_comes_before_what_is_counted_meanwhile(cluster: Cluster, meter: Meter) -> None:
    """Where the first shard's server is never back by the time that a report is made."""
    key = f"redmeter:{{{TAGS[0]}}}reports:"

    def told() -> bool:
        for number in range(300):
            meter.count(f"n{number}")
        return bool(cluster.node_of(key).client.exists(key))

    eventually(told, 5.0)


def test_nodes_that_are_all_slow_are_sent_to_as_often_as_others(
    cluster: Cluster, meter: Meter
) -> None:
    """Where each answer takes longer than anybody waits for it, nothing has failed."""
    recorder: Any = meter._recorder
    for _ in range(5):
        for number in range(300):
            meter.count(f"n{number}")
        eventually(lambda: meter.recorder_health().buffered == 0, 10.0)
        assert recorder._flusher._backoff.over
    assert meter.flush(10.0)
    assert meter.recorder_health().troubles == {}
    assert sum(totals(cluster).values()) == 5 * 300


def test_a_try_at_a_master_that_was_replaced_meanwhile_delays_nothing(
    cluster: Cluster, open_buffered: OpenBuffered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails once its place is known to be another's: its shards go there without a pause."""
    failed = Backoff.failed

    def for_ever(backoff: Backoff, *, passing: bool, soon: bool = False) -> None:
        failed(backoff, passing=passing, soon=soon)
        backoff._not_before = math.inf

    monkeypatch.setattr(Backoff, "failed", for_ever)
    meter = open_buffered(cluster.url, timeout=3.0)
    recorder: Any = meter._recorder
    master = cluster.nodes[0]
    (replica,) = cluster.replicas(master)
    number = min(shards_on(cluster, master))
    name = next(f"n{n}" for n in range(1000) if shard_of(f"n{n}") == number)
    meter.count(name)
    assert meter.flush(10.0)
    cluster.wait_for_replicas()
    cluster.pause(master)
    meter.count(name)
    workers = recorder._delivery._workers
    eventually(lambda: number in workers.busy, 10.0, "it waits for the reply")
    replica.ask("CLUSTER", "FAILOVER", "TAKEOVER")
    link = link_of(recorder._store)

    def known() -> bool:
        link.recover()  # as a redirect makes it look
        return link.primary_of(recorder._store.shards[number].keys.meta) == (
            "127.0.0.1",
            replica.port,
        )

    eventually(known, 10.0, "the new master is known")
    assert number in workers.busy, "it still waits"
    eventually(lambda: totals(cluster).get(number) == 2, 20.0, "it is there")
