"""A store is moved from one server to a cluster, also while the cluster is in trouble."""

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from redmeter.errors import StoreError
from redmeter.migrating import MigrationError, Report, migrate, survey
from redmeter.partitions import PARTITIONS
from redmeter.reading.series import read_series, read_totals
from redmeter.store import Store
from support.clusters import Cluster
from support.moving import fill, held, write_series
from support.servers import Server
from support.stores import OpenStore, count, opened_stores


@pytest.fixture
def open_one() -> Iterator[OpenStore]:
    """Open stores, and close them after the test."""
    yield from opened_stores()


def held_on(cluster: Cluster) -> dict[str, Any]:
    """What the store on a cluster holds."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(node.server.client()) for node in cluster.masters()]
        return held(*clients)


def test_all_that_is_stored_moves_to_a_cluster(
    server: Server, any_cluster: Cluster, open_one: OpenStore
) -> None:
    """Each series into the partition of its name, with all that belongs to it."""
    source, target = open_one(server.url), open_one(any_cluster.url)
    fill(source, series=40, slices=2)
    with server.client() as client:
        before = held(client)
        report = migrate(source, target)
        assert held(client) == {}
    assert report.complete
    assert report.total().taken == report.total().stored
    assert report.total().looked_for == report.total().found
    assert held_on(any_cluster) == before
    names = [f'moved{{n="{number}"}}' for number in range(40)]
    found = read_series(target, names, 86400)
    assert {name: found[name].total for name in names} == read_totals(target, names)
    assert len(target.parts) == PARTITIONS


def test_a_store_that_was_moved_to_a_cluster_may_be_moved_elsewhere(
    server: Server, cluster: Cluster, open_one: OpenStore
) -> None:
    """What has come since; but not what is on its way to the cluster still."""
    source, other = open_one(server.url), open_one(server.url.removesuffix("0") + "1")
    target = open_one(cluster.url)
    fill(source, series=40, slices=2)
    broken_off = migrate(source, target, quit=lambda: True)
    assert not broken_off.complete
    for again in (survey, migrate):
        with pytest.raises(MigrationError, match=r"is on its way to .*: go on with the same TO"):
            again(source, other)
    assert migrate(source, target).complete
    fill(source, series=3, slices=2)
    assert survey(source, other).series
    assert migrate(source, other).complete


def test_slots_move_and_a_master_stands_still_meanwhile(
    server: Server, cluster: Cluster, open_one: OpenStore
) -> None:
    """A run that meets trouble waits, or ends and is begun again; all arrives, each event once."""
    source, target = open_one(server.url), open_one(cluster.url)
    for number in range(150):
        write_series(source, f"s{number}", 3, 2)
    ended = threading.Event()
    counted, late = [0], 0

    def write() -> None:
        while not ended.is_set():
            count(source, f"s{random.randrange(150)}", int(time.time()))
            counted[0] += 1
            time.sleep(0.002)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        trouble = threading.Thread(target=_trouble, args=(cluster,))
        trouble.start()
        while trouble.is_alive():
            write_series(source, f"late{late}", 1, 1)
            late += 1
            _moved(source, target)
        trouble.join()
    finally:
        ended.set()
        thread.join()
    report = _moved(source, target)
    assert report is not None
    assert report.complete
    assert report.total().uncertain == 0
    there = held_on(cluster)
    total = 150 * 3 * 2 + counted[0] + late
    assert sum(int(n) for n in there["total:"].values()) == total
    days = [key for key in there if key.startswith("count:86400:")]
    assert sum(int(n) for key in days for n in there[key].values()) == total


def _moved(source: Store, target: Store) -> Report | None:
    """Move; None where a run ended for what happens in the cluster."""
    with contextlib.suppress(StoreError):
        return migrate(source, target)
    return None


def _trouble(cluster: Cluster) -> None:
    """Move slots to another master and back, then let one master stand still for a while."""
    first, second, third = cluster.masters()
    slots = [128 + 256 * number for number in range(4)]
    cluster.migrate_slots(slots, second)
    cluster.migrate_slots(slots, first)
    cluster.pause(third)
    time.sleep(0.5)
    cluster.resume(third)
