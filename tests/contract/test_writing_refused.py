"""Servers that refuse to write take all of a batch or nothing, and all of it in the end."""

import threading
from pathlib import Path
from typing import Any

import pytest

from redmeter import StoreRefused
from support.servers import Server
from support.stores import (
    HastyClock,
    OpenStore,
    batch_of,
    count,
    count_all,
    samples,
    send,
    server_time,
)
from support.waiting import eventually
from support.writing import key

pytestmark = pytest.mark.servers


def test_a_server_without_memory_takes_nothing_and_everything_once_it_has_some(
    client: Any, open_store: OpenStore
) -> None:
    """OOM: no part of the batch is written, the next one counts, hashes stay whole."""
    store = open_store()
    now = int(server_time(client))
    count(store, "x", now)
    before = _everything(client)
    client.config_set("maxmemory-policy", "noeviction")
    client.config_set("maxmemory", "1")
    for _ in range(3):
        with pytest.raises(StoreRefused) as caught:
            count(store, "x", now)
        assert caught.value.code == "OOM"
    client.config_set("maxmemory", "0")
    assert _everything(client) == before
    assert count(store, "x", now).applied
    assert samples(client, key(1)) == {now: 2}


def test_the_same_batch_number_goes_through_once_memory_is_back(
    client: Any, open_store: OpenStore
) -> None:
    """A refused batch is not marked as applied."""
    store = open_store()
    now = int(server_time(client))
    version = store.config().version
    batch = batch_of(store, 1, "x", now, 6)
    client.config_set("maxmemory", "1")
    with pytest.raises(StoreRefused):
        send(store, batch, version, must_exist=False)
    client.config_set("maxmemory", "0")
    assert send(store, batch, version, must_exist=False).applied
    assert not send(store, batch, version, must_exist=False).applied
    assert samples(client, key(1)) == {now: 6}


def test_memory_that_runs_out_within_a_batch_does_not_cut_it_in_half(
    client: Any, open_store: OpenStore
) -> None:
    """Once the watermark is written the script goes on to its end."""
    store = open_store(retention={1: 120})
    now = int(server_time(client))
    store.config()
    names = [f"series-{i}" + "x" * 150 for i in range(150)]
    used = client.info("memory")["used_memory"]
    outcomes = []
    for room in range(0, 400_000, 20_000):
        client.config_set("maxmemory", str(used + room))
        try:
            count_all(store, {name: {now: 1} for name in names})
            outcomes.append("stored")
        except StoreRefused as error:
            outcomes.append(error.code)
    assert set(outcomes) <= {"stored", "OOM"}
    stored = outcomes.count("stored")
    client.config_set("maxmemory", "0")
    totals = {int(client.hget("redmeter:total:", name) or 0) for name in names}
    assert totals == {stored}
    for name in names:
        assert sum(samples(client, key(1, name)).values()) == stored


def test_a_replica_takes_nothing_until_it_is_made_a_master(
    any_server: Server, client: Any, open_store: OpenStore
) -> None:
    """READONLY: tried for the timeout; and exact when it clears between two tries."""
    clock = HastyClock()
    store = open_store(clock=clock, timeout=0.05)
    now = int(server_time(client))
    count(store, "x", now)
    before = _everything(client)
    client.execute_command("CONFIG", "SET", "replica-serve-stale-data", "yes")
    client.execute_command("REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(StoreRefused) as caught:
        count(store, "x", now)
    assert caught.value.code == "READONLY"
    assert _everything(client) == before
    clock.on_sleep = lambda: client.execute_command("REPLICAOF", "NO", "ONE")
    assert count(store, "x", now).applied
    assert samples(client, key(1)) == {now: 2}


def test_a_server_that_lacks_replicas_takes_all_or_nothing(
    client: Any, open_store: OpenStore
) -> None:
    """NOREPLICAS, which Redis 6.2 does not ask about within scripts."""
    store = open_store(timeout=0.05)
    now = int(server_time(client))
    count(store, "x", now)
    client.config_set("min-replicas-to-write", "1")
    said = ""
    try:
        count(store, "x", now)
    except StoreRefused as error:
        said = error.code
    assert said in ("", "NOREPLICAS")
    refused = said != ""
    client.config_set("min-replicas-to-write", "0")
    count(store, "x", now)
    assert samples(client, key(1)) == {now: 3 - refused}
    assert client.hget("redmeter:total:", "x") == str(3 - refused).encode()


@pytest.mark.slow
def test_a_server_that_cannot_save_takes_all_or_nothing(any_server: Server, tmp_path: Path) -> None:
    """MISCONF: the dump cannot be written; exact once it can."""
    from redmeter import store as stores

    with Server(any_server.name, dir=tmp_path / "data") as server, server.client() as client:
        any_client: Any = client
        store = stores.open(server.url)
        assert store is not None
        now = int(server_time(client))
        count(store, "x", now)
        (server.dir / "dump.rdb" / "in the way").mkdir(parents=True)
        client.config_set("save", "3600 1")
        client.bgsave()
        eventually(
            lambda: any_client.info("persistence")["rdb_last_bgsave_status"] == "err",
            what="the dump has failed",
        )
        for _ in range(2):
            with pytest.raises(StoreRefused) as caught:
                count(store, "x", now)
            assert caught.value.code == "MISCONF"
            assert "script" not in str(caught.value)
            assert "free disk space" in caught.value.fix
        client.config_set("stop-writes-on-bgsave-error", "no")
        count(store, "x", now)
        assert samples(client, key(1)) == {now: 2}
        store.close()
        server.kill()  # or it would try to save, and wait


@pytest.mark.slow
def test_a_server_that_loads_its_data_is_waited_for(any_server: Server, tmp_path: Path) -> None:
    """LOADING passes by itself: the write that came during it is counted once."""
    from redmeter import store as stores

    config = {"key-load-delay": "1000", "rdbcompression": "no"}
    with Server(any_server.name, dir=tmp_path / "data", config=config) as server:
        clock = HastyClock()
        store = stores.open(server.url, clock=clock, timeout=10.0)
        assert store is not None
        with server.client() as client:
            any_client: Any = client
            now = int(server_time(client))
            count(store, "x", now)
            pipe = client.pipeline(transaction=False)
            for i in range(1200):
                pipe.set(f"filler:{i}", "x" * 20_000)  # it looks up every 2 MB
            pipe.execute()
            client.save()
        server.kill()
        server.start(loaded=False)
        store.close()
        clock.on_sleep = lambda: threading.Event().wait(0.02)
        assert count(store, "x", now).applied
        assert clock.waits > 0
        with server.client() as client:
            assert samples(client, key(1)) == {now: 2}
            assert any_client.dbsize() > 1200
        store.close()


def _everything(client: Any) -> dict[bytes, bytes]:
    """Return all that is stored, as the server would dump it."""
    return {found: client.dump(found) for found in client.scan_iter("*", count=1000)}
