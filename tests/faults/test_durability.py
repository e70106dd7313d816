"""Confirmations that events are durable: by a replica, by the disk; and servers without either."""

import time
from collections.abc import Iterator
from functools import partial

import pytest

from redmeter import InvalidSetting, Meter, Unconfirmed
from redmeter.health.check import Finding
from redmeter.health.doctor import examine
from redmeter.stored.keys import Keys
from support.clusters import Cluster
from support.migrating import replica_of
from support.proxy import Proxy
from support.recorders import OpenBuffered, check_sums
from support.sentinels import Watched
from support.servers import Server
from support.stores import opened_store, total_on
from support.waiting import eventually

#: Of tests in which no confirmation comes, seconds; and the longest that a call may take then.
TIMEOUT, LONGEST = 0.4, 10.0


@pytest.fixture
def replica(server: Server) -> Iterator[Server]:
    """A replica of the server."""
    with replica_of(server) as made:
        wait_for_replica(server)
        yield made


def wait_for_replica(server: Server) -> None:
    """Wait until a replica confirms what it receives: in its first second it may not."""
    with server.client() as client:
        client.set("waited", 1)
        assert client.wait(1, 10_000) == 1
        client.delete("waited")


def trouble(meter: Meter) -> int:
    """Return how many batches are not confirmed; and each event is in its place."""
    health = meter.recorder_health()
    check_sums(health)
    return health.troubles.get("unconfirmed", 0)


def reported(meter: Meter, batches: int) -> bool:
    """Return whether so many batches are reported."""
    return trouble(meter) == batches


def use_disk(server: Server, fsync: str = "always") -> None:
    """Turn the append-only file on, and wait until it is in use."""
    with server.client() as client:
        client.config_set("appendfsync", fsync)
        client.config_set("appendonly", "yes")
        eventually(lambda: not client.info("persistence")["aof_rewrite_in_progress"])


@pytest.mark.servers
def test_a_replica_confirms_a_flush(
    server: Server, replica: Server, open_buffered: OpenBuffered
) -> None:
    """The replica has the events when the call returns, also those that were stored before."""
    meter = open_buffered(server.url)
    meter.count("hits", 2)
    assert meter.flush(durability="replica")
    assert total_on(replica) == 2
    meter.count("hits", 3)
    assert meter.flush()
    assert meter.flush(durability="replica")
    assert total_on(replica) == 5
    assert trouble(meter) == 0


@pytest.mark.servers
def test_a_replica_that_is_stopped_confirms_nothing(
    server: Server, replica: Server, open_buffered: OpenBuffered
) -> None:
    """The flush returns in time; its events are stored, and each batch is reported once."""
    meter = open_buffered(server.url, timeout=TIMEOUT)
    meter.count("hits")
    assert meter.flush()
    replica.pause()
    started = time.monotonic()
    assert not meter.flush(durability="replica")  # although nothing is left to store
    assert not meter.flush(durability="replica")
    assert time.monotonic() - started < LONGEST
    assert (trouble(meter), meter.recorder_health().stored, total_on(server)) == (1, 1, 1)
    assert "no replica has received it within 0.3 s" in meter.recorder_health().last_trouble
    replica.resume()
    wait_for_replica(server)
    assert meter.flush(10.0, durability="replica")
    assert trouble(meter) == 1


@pytest.mark.servers
def test_a_synchronous_call_waits_for_a_replica(
    server: Server, replica: Server, proxy: Proxy, open_buffered: OpenBuffered
) -> None:
    """It raises if none confirms the event, also if the event's reply was lost: it is stored."""
    meter = open_buffered(proxy.url, timeout=TIMEOUT, sync=True, durability="replica")
    meter.count("hits")
    assert total_on(replica) == 1
    replica.pause()
    with pytest.raises(Unconfirmed, match="start one, or see why it lags") as raised:
        meter.count("hits")
    assert (raised.value.sent, raised.value.durability) == (True, "replica")
    proxy.reset_after(0, of="replies")
    with pytest.raises(Unconfirmed):
        meter.count("hits")
    assert not meter.flush()
    assert (trouble(meter), meter.recorder_health().stored, total_on(server)) == (2, 3, 3)
    replica.resume()
    wait_for_replica(server)
    meter.count("hits")
    assert total_on(replica) == 4
    assert meter.flush()


def test_the_background_reports_batches_without_a_replica(
    server: Server, open_buffered: OpenBuffered, caplog: pytest.LogCaptureFixture
) -> None:
    """There is none. All is stored, the log has one line, and the doctor names the problem."""
    meter = open_buffered(server.url, timeout=0.01, durability="replica")
    for number in range(1, 4):
        meter.count("hits")
        eventually(partial(reported, meter, number))
    assert total_on(server) == 3
    (line,) = [record.getMessage() for record in caplog.records]
    assert "not confirmed by a replica: no replica has received it" in line
    meter.close()
    with opened_store(server.url) as store:
        findings = examine(store).findings
    (warning,) = [one for one in findings if "not confirmed in time" in one.text]
    assert warning.text.startswith("3 batches are stored")


def test_the_background_has_a_replica_confirm_its_batches(
    server: Server, replica: Server, open_buffered: OpenBuffered
) -> None:
    """Once for each flush; a requested one does not ask again."""
    meter = open_buffered(server.url, durability="replica", flush_interval=1000)
    with server.client() as client:
        client.config_resetstat()
        meter.count("hits")
        assert meter.flush()
        assert (client.info("commandstats")["cmdstat_wait"]["calls"], trouble(meter)) == (1, 0)
        assert meter.flush()
        assert not meter.flush(durability="disk")
        assert client.info("commandstats")["cmdstat_wait"]["calls"] == 1
    assert trouble(meter) == 1


def test_without_a_durability_nothing_is_asked(server: Server, open_buffered: OpenBuffered) -> None:
    """Neither by default, nor where a call wants none."""
    for durability in (None, "none"):
        open_buffered(server.url, sync=True, durability=durability).count("hits")
    meter = open_buffered(server.url, durability="none")
    meter.count("hits")
    assert meter.flush(durability="none")
    with server.client() as client:
        assert not {"cmdstat_wait", "cmdstat_waitaof"} & set(client.info("commandstats"))
    with pytest.raises(InvalidSetting, match="none, replica, disk"):
        meter.flush(durability="paper")


def test_the_disk_confirms_events(server: Server, open_buffered: OpenBuffered) -> None:
    """They survive a crash of the server right after the call."""
    with Server("valkey-9.1", config={"appendonly": "yes"}) as own:
        meter = open_buffered(own.url)
        meter.count("hits", 3)
        assert meter.flush(durability="disk")
        sync = open_buffered(own.url, sync=True, durability="disk")
        sync.count("hits")
        own.kill()
        own.start()
        assert total_on(own) == 4
        assert trouble(meter) == trouble(sync) == 0


def test_without_an_append_only_file_the_disk_confirms_nothing(
    server: Server, open_buffered: OpenBuffered
) -> None:
    """The error is immediate, and names the setting."""
    meter = open_buffered(server.url)
    meter.count("hits")
    assert not meter.flush(durability="disk")
    assert "it has no append-only file: set appendonly yes" in meter.recorder_health().last_trouble
    with pytest.raises(Unconfirmed, match="by the disk: it has no append-only file"):
        open_buffered(server.url, sync=True, durability="disk").count("hits")
    assert total_on(server) == 2


def test_an_old_server_cannot_confirm_by_its_disk(
    redis62: Server, open_buffered: OpenBuffered
) -> None:
    """It lacks the command; the error names the servers that have it."""
    meter = open_buffered(redis62.url)
    meter.count("hits")
    assert not meter.flush(durability="disk")
    assert "it has no WAITAOF: use Redis 7.2 or newer" in meter.recorder_health().last_trouble


def test_a_right_that_is_missing_is_named(server: Server, open_buffered: OpenBuffered) -> None:
    """The events are stored."""
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "few", "on", ">p", "~*", "+@all", "-wait")
        url = server.url.replace("//", "//few:p@")
        meter = open_buffered(url)
        meter.count("hits")
        assert not meter.flush(durability="replica")
        client.acl_deluser("few")
    assert "ACL SETUSER grants it" in meter.recorder_health().last_trouble
    assert (trouble(meter), total_on(server)) == (1, 1)


@pytest.mark.servers
def test_a_server_that_lacks_acknowledged_batches_confirms_nothing(
    server: Server, replica: Server, open_buffered: OpenBuffered
) -> None:
    """As after a failover. The next batch has them sent again, and then they are confirmed."""
    meter = open_buffered(server.url)
    meter.count("hits", 2)
    assert meter.flush(durability="replica")
    meter.count("hits")
    assert meter.flush()
    with server.client() as client:
        client.delete(*client.keys(Keys("redmeter:").batch("*")))
        client.flushdb()
    assert not meter.flush(durability="replica")
    assert "it lacks batches that were acknowledged" in meter.recorder_health().last_trouble
    meter.count("hits")
    assert meter.flush(durability="replica")
    assert total_on(replica) == 4


def test_a_callers_client_with_a_short_timeout_waits_long_enough(
    server: Server, open_buffered: OpenBuffered
) -> None:
    """Its timeout is that of its own commands; the reply takes longer, and is not missed."""
    with server.client(socket_timeout=0.1) as client:
        meter = open_buffered(client=client, timeout=TIMEOUT)
        meter.count("hits")
        assert not meter.flush(durability="replica")
    assert "no replica has received it within 0.3 s" in meter.recorder_health().last_trouble


@pytest.mark.slow
def test_each_primary_of_a_cluster_confirms_its_shards(
    cluster: Cluster, open_buffered: OpenBuffered
) -> None:
    """A replica that is stopped is reported with its primary; the others confirm theirs."""
    meter = open_buffered(cluster.url, timeout=TIMEOUT, flush_interval=1000)
    for number in range(200):
        meter.count(f"c{number}")
    assert meter.flush(10.0)
    assert meter.flush(10.0, durability="replica")
    meter.count("c1")
    assert meter.flush(10.0)
    store = meter._store
    assert store is not None
    node = cluster.node_of(store.shard("c1").keys.meta)
    (replica,) = cluster.replicas(node)
    cluster.pause(replica)
    try:
        assert not meter.flush(10.0, durability="replica")
        assert trouble(meter) == 1
        assert f"stored by {node.address}" in meter.recorder_health().last_trouble
        other = next(
            f"c{number}"
            for number in range(200)
            if cluster.node_of(store.shard(f"c{number}").keys.meta) is not node
        )
        sync = open_buffered(cluster.url, timeout=TIMEOUT, sync=True, durability="replica")
        sync.count(other)
        with pytest.raises(Unconfirmed):
            sync.count("c1")
    finally:
        cluster.resume(replica)
    assert meter.flush(10.0, durability="replica")


@pytest.mark.slow
def test_after_a_failover_the_new_primary_confirms(
    group: Watched, open_buffered: OpenBuffered
) -> None:
    """Events that a replica had are not lost by it."""
    meter = open_buffered(group.url)
    meter.count("hits", 2)
    assert meter.flush(10.0, durability="replica")
    group.fail_over()
    meter.count("hits", 3)
    eventually(lambda: meter.flush(durability="replica"), 20, "the new primary confirms")
    assert total_on(group.master) == 5


@pytest.mark.parametrize(
    ("durability", "level", "text"),
    [
        ("replica", "warn", "confirmed by a replica, but none is online"),
        ("disk", "warn", "confirmed by the disk, but there is no append-only file"),
        ("none", "", ""),
    ],
)
def test_the_doctor_warns_of_a_server_that_cannot_confirm(
    server: Server, durability: str, level: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where the setting asks for it."""
    assert [found.level for found in about(server, durability, monkeypatch)] == [level] * bool(
        level
    )
    assert all(text in found.text for found in about(server, durability, monkeypatch))


def test_the_doctor_accepts_a_server_that_can(
    server: Server, replica: Server, redis62: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a replica, or an append-only file that is written in time, and the command."""
    (by_replica,) = about(server, "replica", monkeypatch)
    assert (by_replica.level, by_replica.text) == ("ok", "writes are confirmed by a replica")
    use_disk(server)
    (by_disk,) = about(server, "disk", monkeypatch)
    assert (by_disk.level, by_disk.text) == ("ok", "writes are confirmed by the disk")
    use_disk(server, "everysec")
    (early,) = about(server, "disk", monkeypatch)
    assert (early.level, early.fix) == ("warn", "set appendfsync always")
    use_disk(server, "no")
    (never,) = about(server, "disk", monkeypatch)
    assert (never.level, "appendfsync is no" in never.text) == ("warn", True)
    (old,) = about(redis62, "disk", monkeypatch)
    assert (old.level, "has no WAITAOF" in old.text) == ("warn", True)


def about(server: Server, durability: str, monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    """Return the doctor's findings about a setting."""
    monkeypatch.setenv("REDMETER_DURABILITY", durability)
    with opened_store(server.url) as store:
        return [found for found in examine(store).findings if found.topic == "durability"]
