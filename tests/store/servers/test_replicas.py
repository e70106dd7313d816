"""Readings from replicas: which one is read, which is left, and that nothing is written there."""

from typing import Any

import pytest

from redmeter import InvalidSetting, Meter
from redmeter.dashboard import Dashboard
from redmeter.health import doctor
from redmeter.store.servers import sentinel as sentinels
from support.asking import asking
from support.sentinels import Watched
from support.servers import Server
from support.stores import OpenMeter, total_on
from support.waiting import eventually


def calls(server: Server) -> dict[str, int]:
    """Return how often each command was called since the server was made as new."""
    with server.client(decode_responses=True) as client:
        told: Any = client.info("commandstats")
    return {name.removeprefix("cmdstat_"): one["calls"] for name, one in told.items()}


def test_a_replica_is_read_and_never_written(group: Watched, open_meter: OpenMeter) -> None:
    """The master has the writes, and no reading."""
    meter = open_meter(group.url, read_from="replica")
    meter.count("hits", 4)
    group.wait_for_replicas()
    group.forget_commands()
    assert meter.total("hits", exact=True) == 4
    assert sum(meter.series("hits", precision=60, exact=True).values) == 4
    meter.count("hits")
    assert "hgetall" not in calls(group.master)
    told = [calls(server) for server in group.replicas]
    assert sum("hgetall" in each for each in told) == 1
    for server, each in zip(group.replicas, told, strict=True):
        assert not {"eval", "evalsha"} & set(each)
        with server.client() as client:
            errors: Any = client.info("errorstats")
        assert "errorstat_READONLY" not in errors


@pytest.mark.slow
def test_a_replica_that_fails_is_left_at_once_and_without_any_the_master_is_read(
    group: Watched, open_meter: OpenMeter
) -> None:
    """Killed one by one; and once they are back, one of them is read again."""
    meter = open_meter(group.url, read_from="replica")
    meter.count("hits")
    group.wait_for_replicas()
    port = _asked(meter)
    (read,) = [each for each in group.replicas if each.port == port]
    read.kill()
    assert _asked(meter) != port
    for server in group.replicas:
        server.kill()
    eventually(lambda: _asked(meter) == group.master.port, 10, "the master is read")
    group.heal()
    eventually(lambda: _asked(meter) != group.master.port, 10, "a replica is read")


def _read_from(meter: Meter) -> int:
    """Return the port of the server that was read last."""
    store: Any = meter._store
    assert store is not None
    port: int = store.reader.link._client.connection_pool.connection_kwargs["port"]
    return port


def _asked(meter: Meter) -> int:
    assert meter.total("hits") == 1
    return _read_from(meter)


def test_a_replica_that_has_nothing_to_read_yet_is_left_at_once_for_a_while(
    open_meter: OpenMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers MASTERDOWN; the reading is repeated elsewhere, and nobody sees an error."""
    monkeypatch.setattr(sentinels, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(sentinels, "LATER_SECONDS", 2.0)
    with Watched(replicas=1, sentinels=1) as group:
        group.sentinels[0].haste({"info-period": 10_000})  # it does not know yet
        meter = open_meter(group.url, read_from="replica")
        meter.count("hits")
        group.wait_for_replicas()
        (replica,) = group.replicas
        assert _asked(meter) == replica.port
        with replica.client() as client:
            client.config_set("replica-serve-stale-data", "no")
            client.execute_command("REPLICAOF", "127.0.0.1", "1")
        assert _asked(meter) == group.master.port
        group.heal()
        eventually(lambda: _asked(meter) == replica.port, 10.0, "the replica is read again")


@pytest.mark.slow
def test_a_replica_that_does_not_hear_from_its_master_is_left(
    group: Watched, open_meter: OpenMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would answer, with what was once."""
    monkeypatch.setattr(sentinels, "LOOK_SECONDS", 0.0)
    meter = open_meter(group.url, read_from="replica")
    meter.count("hits")
    group.wait_for_replicas()
    port = _asked(meter)
    (read,) = [server for server in group.replicas if server.port == port]
    with read.client() as client:
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
    try:
        meter.count("hits")
        eventually(lambda: meter.total("hits") == 2, 2.0, "another one is asked")
        assert _read_from(meter) != port
    finally:
        with read.client() as client:
            client.execute_command("REPLICAOF", "127.0.0.1", str(group.master.port))


def test_the_page_and_the_doctor_say_that_a_replica_is_read(
    group: Watched, open_meter: OpenMeter
) -> None:
    """And what they examine is the master."""
    meter = open_meter(group.url, read_from="replica")
    meter.count("hits")
    group.wait_for_replicas()
    with asking(Dashboard(meter, access="open")) as client:
        found, overview = (client.get(f"/api/{each}").json() for each in ("doctor", "overview"))
    assert (found["read_from"], overview["store"]["read_from"]) == ("replica", "replica")
    assert meter._store is not None
    told = [(f.topic, f.level, f.text) for f in doctor.examine(meter._store).findings]
    assert [f for f in told if f[0] == "replicas"] == [
        ("replicas", "ok", "reads use a replica (2 online), which may be slightly behind")
    ]
    assert not [text for _, _, text in told if "is a replica" in text]
    with asking(Dashboard(open_meter(group.url), access="open")) as client:
        assert client.get("/api/doctor").json()["read_from"] == "primary"


def test_where_no_replicas_are_known_readings_say_what_mends_it(
    server: Server, open_meter: OpenMeter
) -> None:
    """What is written does not care."""
    for place in ({"url": server.url}, {"client": server.client()}):
        meter = open_meter(**place, read_from="replica")
        meter.count("hits")
        with pytest.raises(InvalidSetting, match=r"redis\+sentinel:.* or read_from primary"):
            meter.total("hits")
        with pytest.raises(InvalidSetting, match="read_from"):
            Dashboard(meter, access="open")
    assert total_on(server) == 2
