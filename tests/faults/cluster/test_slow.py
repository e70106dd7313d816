"""Nodes that are slow to answer while a recorder writes."""

from typing import Any

from support.clusters import Cluster
from support.progress import totals
from support.recorders import OpenBuffered
from support.waiting import eventually


def test_nodes_that_are_all_slow_are_sent_to_as_often_as_others(
    cluster: Cluster, open_buffered: OpenBuffered
) -> None:
    """Where each answer takes longer than anybody waits for it, nothing has failed."""
    meter = open_buffered(cluster.url, flush_interval=0.05)
    recorder: Any = meter._recorder
    recorder._delivery._errands._patience = 0.0
    for _ in range(5):
        for number in range(300):
            meter.count(f"n{number}")
        eventually(lambda: meter.health().buffered == 0, 10.0)
        assert recorder._flusher._backoff.over
    assert meter.flush(10.0)
    assert meter.health().troubles == {}
    assert sum(totals(cluster).values()) == 5 * 300
