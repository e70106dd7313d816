"""A recorder and a server that refuses, forgets, restarts or dies."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from redmeter import Meter
from redmeter.clock import ManualClock
from support.proxy import Proxy
from support.recorders import (
    OpenBuffered,
    check_sums,
    check_whole,
    fail_again,
    kept,
    stored,
    stored_by_itself,
)
from support.servers import Server
from support.stores import batch_keys, server_time
from support.waiting import eventually

pytestmark = pytest.mark.servers

#: A server that has all it was reported on disk before it answers.
DURABLE = {"appendonly": "yes", "appendfsync": "always"}


def everything(client: Any) -> dict[bytes, bytes]:
    """Return each key and what it holds."""
    return {key: client.dump(key) for key in client.scan_iter(count=1000)}


@pytest.fixture
def own(server_name: str, tmp_path: Path) -> Iterator[Server]:
    """A server that keeps its data, to be killed and started at will."""
    with Server(server_name, config=DURABLE, dir=tmp_path / "data") as server:
        yield server


# --- It refuses ----------------------------------------------------------------------------


def no_memory(client: Any) -> Callable[[], object]:
    """Have the server lack memory; return what ends that."""
    client.config_set("maxmemory-policy", "noeviction")
    client.config_set("maxmemory", "1")
    return lambda: client.config_set("maxmemory", "0")


def be_a_replica(client: Any) -> Callable[[], object]:
    """Have the server be a replica, of nobody; return what ends that."""
    client.execute_command("REPLICAOF", "127.0.0.1", "1")
    return lambda: client.execute_command("REPLICAOF", "NO", "ONE")


def be_a_stale_replica(client: Any) -> Callable[[], object]:
    """Have the server be one that does not even answer what it has."""
    client.config_set("replica-serve-stale-data", "no")
    return be_a_replica(client)


def lack_replicas(client: Any) -> Callable[[], object]:
    """Have the server want a replica that is not there; return what ends that."""
    client.config_set("min-replicas-to-write", "1")
    return lambda: client.config_set("min-replicas-to-write", "0")


REFUSALS = {
    "OOM": no_memory,
    "READONLY": be_a_replica,
    "MASTERDOWN": be_a_stale_replica,
    "NOREPLICAS": lack_replicas,
}


@pytest.mark.parametrize("code", REFUSALS)
def test_a_server_that_refuses_gets_everything_once_it_takes_again(
    server: Server, conn: Any, open_buffered: OpenBuffered, code: str
) -> None:
    """Until then nothing of a batch is written; what comes meanwhile adds up."""
    meter = open_buffered(server.url)
    meter.count("x")
    assert meter.flush(5.0)
    before = everything(conn)
    end = REFUSALS[code](conn)
    for _ in range(2):
        meter.count("x", 10)
        meter.count("y", 100)
        fail_again(meter)
    assert set(meter.recorder_health().troubles) == {code}
    assert (meter.recorder_health().stored, meter.recorder_health().buffered) == (1, 220)
    if code != "MASTERDOWN":
        assert everything(conn) == before
    end()
    stored_by_itself(meter)
    assert meter.recorder_health().retried == 0
    check_whole(conn, meter.recorder_health(), 221)
    assert stored(conn, "y")[3600] == 200


@pytest.mark.parametrize("code", ["OOM", "READONLY", "NOREPLICAS"])
def test_a_batch_in_doubt_that_is_then_refused_counts_once(
    proxy: Proxy, conn: Any, open_buffered: OpenBuffered, code: str
) -> None:
    """It had been applied, and its reply was lost; the server refuses to write it again."""
    meter = open_buffered(proxy.url)
    meter.count("x")
    assert meter.flush(5.0)
    proxy.drop_pattern("x")
    meter.count("x", 10)
    fail_again(meter)
    end = REFUSALS[code](conn)
    proxy.heal()
    meter.count("x", 100)
    fail_again(meter, 2)
    end()
    stored_by_itself(meter)
    check_whole(conn, meter.recorder_health(), 111)


def test_a_server_that_cannot_save_gets_everything_once_it_can(
    own: Server, open_buffered: OpenBuffered
) -> None:
    """MISCONF: its disk is full, or the like."""
    client: Any = own.client()
    meter = open_buffered(own.url)
    meter.count("x")
    assert meter.flush(5.0)
    before = everything(client)
    (own.dir / "dump.rdb" / "in the way").mkdir(parents=True)
    client.config_set("save", "3600 1")
    client.bgsave()
    eventually(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err")
    meter.count("x", 10)
    fail_again(meter, 2)
    assert set(meter.recorder_health().troubles) == {"MISCONF"}
    assert everything(client) == before
    client.config_set("stop-writes-on-bgsave-error", "no")
    stored_by_itself(meter)
    check_whole(client, meter.recorder_health(), 11)
    own.kill()  # or it would try to save, and wait


def test_a_server_that_loads_its_data_gets_everything_once_it_has_them(
    server_name: str, tmp_path: Path, open_buffered: OpenBuffered
) -> None:
    """LOADING: it was killed, and reads for a while."""
    config = {"key-load-delay": "500", "rdbcompression": "no"}
    with Server(server_name, dir=tmp_path / "data", config=config) as server:
        client: Any = server.client()
        meter = open_buffered(server.url)
        meter.count("x")
        assert meter.flush(5.0)
        pipe = client.pipeline(transaction=False)
        for i in range(1200):
            pipe.set(f"filler:{i}", "x" * 20_000)  # it looks up every 2 MB
        pipe.execute()
        client.save()
        server.kill()
        server.start(loaded=False)
        meter.count("x", 10)
        fail_again(meter)
        assert meter.recorder_health().troubles["LOADING"] >= 1
        stored_by_itself(meter)
        check_whole(client, meter.recorder_health(), 11)
        meter.close()


# --- It forgets ----------------------------------------------------------------------------


def test_a_server_that_forgets_the_scripts_is_told_them_again(
    proxy: Proxy, conn: Any, open_buffered: OpenBuffered
) -> None:
    """NOSCRIPT after SCRIPT FLUSH, also with every other reply lost."""
    meter = open_buffered(proxy.url)
    meter.count("x", 0)
    assert meter.flush(5.0)
    proxy.drop_pattern(".x")
    for _ in range(10):
        conn.script_flush()
        meter.count("x")
        assert meter.flush(5.0)
    assert proxy.commands["EVAL"] >= 10
    assert proxy.dropped >= 5
    proxy.heal()
    check_whole(conn, meter.recorder_health(), 10)


def test_a_server_that_restarts_with_its_data_goes_on(
    own: Server, open_buffered: OpenBuffered
) -> None:
    """The scripts are gone, the data and the watermark are not; killed in mid-sentence."""
    meter = open_buffered(own.url)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            meter.count("x")
            stop.wait(0.0002)

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(3):
        batches = meter.recorder_health().batches
        eventually(lambda: meter.recorder_health().batches > batches + 3)  # noqa: B023
        own.kill()
        fail_again(meter)
        own.start()
    stop.set()
    thread.join()
    assert meter.flush(5.0)
    client = own.client()
    check_whole(client, meter.recorder_health(), meter.recorder_health().recorded)
    assert meter.recorder_health().recorded > 20


def test_a_store_that_was_wiped_is_made_anew(
    server: Server, conn: Any, open_buffered: OpenBuffered
) -> None:
    """FLUSHALL: what was stored lately is sent again, with the same retention."""
    meter = open_buffered(server.url, retention={60: 5, 3600: 7})
    for amount, whole in ((1, 1), (10, 11), (100, 111)):
        conn.flushall()
        meter.count("x", amount)
        assert meter.flush(5.0)
        assert stored(conn) == {0: whole, 60: whole, 3600: whole}
        assert kept(conn) == [(60, 5), (3600, 7)]
    check_sums(meter.recorder_health())
    assert (meter.recorder_health().stored, meter.recorder_health().repaired) == (111, 1 + 11)
    assert (meter.recorder_health().losses, meter.recorder_health().troubles) == (
        (),
        {"emptied": 2},
    )
    assert meter.recorder_health().emptied == 1 + 11


def test_a_restart_without_persistence_begins_anew(
    server_name: str, open_buffered: OpenBuffered
) -> None:
    """What was counted while the server was away is there, and what it had stored just before."""
    with Server(server_name) as server:
        meter = open_buffered(server.url)
        meter.count("x", 5)
        assert meter.flush(5.0)
        server.kill()
        meter.count("x", 2)
        fail_again(meter)
        server.start()
        stored_by_itself(meter)
        assert set(stored(server.client()).values()) == {7}
        check_sums(meter.recorder_health())
        assert (meter.recorder_health().stored, meter.recorder_health().repaired) == (7, 5)
        assert meter.recorder_health().emptied == 5
        meter.close()


# --- It dies -------------------------------------------------------------------------------


def sync(client: Any) -> None:
    """Have all that a server was told so far be on disk."""
    client.config_set("appendfsync", "always")
    client.set("synced", "before it answers")
    client.config_set("appendfsync", "everysec")


def test_what_the_file_lost_is_sent_again(
    server_name: str, tmp_path: Path, open_buffered: OpenBuffered
) -> None:
    """Synced every second: the end of the file is lost, cut in the middle of a batch.

    Data and watermark are lost together, so no batch is half there and none is stored twice.
    """
    config = {"appendonly": "yes", "appendfsync": "everysec"}
    with Server(server_name, dir=tmp_path / "data", config=config) as server:
        meter = open_buffered(server.url)
        client: Any = server.client()
        for _ in range(15):
            meter.count("x", 10)
            assert meter.flush(5.0)
        sync(client)
        (file,) = server.dir.rglob("*.aof")
        synced = file.stat().st_size
        for _ in range(5):
            meter.count("x", 10)
            meter.count("y", 10)
            assert meter.flush(5.0)
        sync(client)
        server.kill()
        assert file.stat().st_size > synced + 100
        with file.open("r+b") as opened:
            opened.truncate(synced + 100)
        meter.count("x", 7)
        fail_again(meter)
        server.start()
        stored_by_itself(meter)
        assert set(stored(client).values()) == {257}
        check_sums(meter.recorder_health())
        assert meter.recorder_health().stored == meter.recorder_health().recorded == 257
        assert (meter.recorder_health().repaired, meter.recorder_health().emptied) == (100, 0)
        meter.close()


def test_a_killed_server_loses_at_most_what_was_not_synced(
    server_name: str, tmp_path: Path, open_buffered: OpenBuffered
) -> None:
    """kill -9 while batches come in: at most the last two seconds; every precision has the same."""
    config = {"appendonly": "yes", "appendfsync": "everysec"}
    with Server(server_name, dir=tmp_path / "data", config=config) as server:
        meter = open_buffered(server.url)
        client: Any = server.client()
        meter.count("x", 1000)
        assert meter.flush(5.0)
        sync(client)
        for _ in range(30):
            meter.count("x")
            eventually(lambda: not meter.recorder_health().buffered)
        meter.count("x")
        server.kill()
        server.start()
        meter.count("x")
        stored_by_itself(meter)
        check_sums(meter.recorder_health())
        (number,) = set(stored(client).values())
        assert 1000 <= number <= meter.recorder_health().recorded == 1032
        meter.close()


def test_a_flush_within_a_flush_is_not_waited_for(
    server: Server, open_buffered: OpenBuffered
) -> None:
    """By what is called before each flush, or a destructor: it would wait for itself."""
    meter = open_buffered(server.url)
    recorder: Any = meter._recorder
    answers: list[bool] = []
    recorder.before_flush(lambda: answers.append(meter.flush(1e6)))
    meter.count("x")
    eventually(lambda: answers, 10.0)
    assert not any(answers)
    eventually(lambda: meter.recorder_health().stored == 1, 10.0)
    recorder._hooks._before_flush = ()
    assert meter.flush(10.0)


# --- It forgets ----------------------------------------------------------------------------


def test_what_is_too_old_to_be_sent_again_is_counted(
    server: Server, conn: Any, open_buffered: OpenBuffered, caplog: pytest.LogCaptureFixture
) -> None:
    """By how many events, and when they were acknowledged."""
    clock = ManualClock(server_time(conn))
    meter = open_buffered(server.url, clock=clock, flush_interval=3600)
    for amount in (1, 10):
        meter.count("x", amount)
        assert meter.flush(5.0)
    clock.advance(100.0)
    meter.count("x", 100)
    assert meter.flush(5.0)
    conn.flushall()
    meter.count("x", 1000)
    assert meter.flush(5.0)
    health = meter.recorder_health()
    assert stored(conn)[0] == 1100
    assert (health.recorded, health.stored, health.repaired) == (1111, 1100, 100)
    assert (health.dropped, health.emptied) == (11, 111)
    assert health.lost()["emptied"][0] == 11
    assert "the store was emptied: of the events acknowledged from" in health.last_trouble
    check_sums(health)
    assert "the store was emptied" in caplog.text


def test_what_was_rejected_of_a_batch_is_counted_once_however_often_it_is_sent(
    server: Server, conn: Any, open_buffered: OpenBuffered
) -> None:
    """Too far in the future for the minutes, until they come; also observed values."""
    now = server_time(conn)
    clock = ManualClock(now)
    retention = {60: 5, 86400: 100}
    options = {"retention": retention, "histogram_retention": retention}
    meter = open_buffered(server.url, clock=clock, flush_interval=3600, **options)
    for amount in (1, 10):
        meter.count("x", amount, at=now + 3600)
        meter.observe("seen", 1.0, at=now + 3600)
        assert meter.flush(5.0)
        conn.flushall()
    meter.count("x", 100)
    assert meter.flush(5.0)
    lost = {(one.series, one.precision): one.events for one in meter.recorder_health().losses}
    assert lost == {("x", 60): 11, ("seen", 60): 2}
    check_sums(meter.recorder_health())
    assert stored(conn)[60] == 100
    assert stored(conn)[86400] == 111


def test_a_configuration_that_was_evicted_is_no_emptied_store(
    server: Server, conn: Any, open_buffered: OpenBuffered
) -> None:
    """With the watermark: its batches are there, so nothing is sent again, and nothing doubles."""
    meter = open_buffered(server.url, flush_interval=3600)
    meter.count("x", 5)
    assert meter.flush(5.0)
    conn.delete("redmeter:meta:", *batch_keys(conn))
    meter.count("x", 1)
    assert meter.flush(5.0)
    health = meter.recorder_health()
    assert stored(conn)[0] == 6
    assert (health.stored, health.uncertain, health.repaired) == (1, 5, 0)
    check_sums(health)
    conn.flushall()  # a birth with "~" can be followed by another one
    meter.count("x", 2)
    assert meter.flush(5.0)
    assert (stored(conn)[0], meter.recorder_health().repaired) == (3, 1)


def test_an_idle_process_asks_for_what_is_missing(
    server: Server, conn: Any, open_buffered: OpenBuffered
) -> None:
    """Once a minute, though it has nothing to store."""
    clock = ManualClock(server_time(conn))
    meter = open_buffered(server.url, clock=clock, flush_interval=3600)
    meter.count("x", 5)
    assert meter.flush(5.0)
    conn.flushall()
    clock.advance(61.0)
    eventually(lambda: meter._recorder._flusher.flush_until(0.0, last=False) and stored(conn))  # type: ignore[union-attr]
    assert stored(conn)[0] == 5
    assert meter.recorder_health().repaired == 5


def test_a_synchronous_writer_counts_what_the_server_has_lost(server: Server, conn: Any) -> None:
    """Its calls have returned: nothing can be sent again."""
    with Meter(server.url, sync=True) as meter:
        for _ in range(3):
            meter.count("x")
        conn.flushall()
        meter.count("x")
        assert stored(conn)[0] == 1
        health = meter.recorder_health()
        assert (health.troubles, health.stored, health.dropped) == ({"emptied": 1}, 1, 3)
        check_sums(health)
