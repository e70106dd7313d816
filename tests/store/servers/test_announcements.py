"""Sentinels announce a new master: whoever has subscribed leaves the old one at once."""

from collections.abc import Callable
from typing import Any

import pytest

from redmeter import Meter
from redmeter.store.servers import sentinel as sentinels
from support.sentinels import SERVICE, Sentinel, Watched
from support.stores import OpenMeter, total_on
from support.waiting import eventually

#: What sentinels announce a new master on.
CHANNELS = ("+promoted-slave", "+switch-master")


def subscribed(sentinel: Sentinel) -> int:
    """Return to how many channels of a sentinel connections are subscribed."""
    with sentinel.client() as client:
        return sum(int(each["sub"]) for each in client.client_list())


@pytest.fixture
def announced(
    group: Watched, open_meter: OpenMeter, monkeypatch: pytest.MonkeyPatch
) -> tuple[Meter, Sentinel]:
    """A meter that will not ask by itself any more, and the sentinel that it has subscribed to."""
    monkeypatch.setattr(sentinels, "LOOK_SECONDS", 0.0)
    meter = open_meter(group.url)
    meter.count("hits")
    monkeypatch.setattr(sentinels, "LOOK_SECONDS", 3600.0)
    meter.count("hits")
    (sentinel,) = [one for one in group.sentinels if subscribed(one)]
    assert subscribed(sentinel) == len(CHANNELS)
    return meter, sentinel


@pytest.mark.slow
@pytest.mark.parametrize("leads", [True, False], ids=["the leader", "another sentinel"])
def test_a_failover_is_learned_of_by_an_announcement(
    group: Watched, announced: tuple[Meter, Sentinel], leads: bool
) -> None:
    """The old master is well and takes all writes; nobody would ask for an hour."""
    meter, sentinel = announced
    group.wait_for_replicas()
    for each in group.sentinels:
        each.haste({"publish-period": 5000})  # they would tell the old one after four of these
    before = group.master
    try:
        leader = next(each for each in group.sentinels if (each is sentinel) == leads)
        leader.told("FAILOVER", SERVICE)
        now = group.moved_from(before)

        def arrived() -> bool:
            meter.count("hits")
            return total_on(now) > 2

        eventually(arrived, 10, "what is counted arrives at the new master")
        with before.client() as client:
            old: Any = client.info("replication")
        assert old["role"] == "master"
    finally:
        with before.client() as client:
            client.execute_command("REPLICAOF", "127.0.0.1", str(group.master.port))


@pytest.mark.slow
@pytest.mark.parametrize("ends", [Sentinel.kill, Sentinel.close_clients], ids=["dies", "closes"])
def test_another_sentinel_announces_where_one_is_gone(
    group: Watched, announced: tuple[Meter, Sentinel], ends: Callable[[Sentinel], None]
) -> None:
    """Nothing fails meanwhile."""
    meter, sentinel = announced
    master = group.master
    ends(sentinel)

    def again() -> bool:
        meter.count("hits")
        return any(subscribed(each) for each in group.sentinels if each.running)

    eventually(again, 10, "it has subscribed again")
    assert meter.recorder_health().troubles == {}
    assert meter.total("hits") == total_on(master)
