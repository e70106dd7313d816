"""Nodes that are slow to answer while a recorder writes."""

from typing import Any

import pytest

from redmeter import Meter
from redmeter.shards import TAGS
from support.clusters import Cluster
from support.progress import totals
from support.recorders import OpenBuffered
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
        eventually(lambda: meter.health().buffered == 0, 10.0)
        assert recorder._flusher._backoff.over
    assert meter.flush(10.0)
    assert meter.health().troubles == {}
    assert sum(totals(cluster).values()) == 5 * 300
