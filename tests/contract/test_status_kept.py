"""The status of a minute is judged once: by the first reader that may write."""

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from redmeter import Meter
from redmeter.reading.diagnosis import judged_status
from redmeter.reading.diagnosis.judged_status import RULES, read_status, restored
from redmeter.results.explanation import Status
from redmeter.store import Store
from redmeter.testing import MemoryMeter
from support.migrating import replica_of
from support.servers import Server
from support.stores import opened_store
from support.waiting import eventually


@pytest.fixture
def minutes(server: Server) -> Iterator[int]:
    """Two hours of requests; the end of the running minute, which has begun just now or lasts."""
    while time.time() % 60 > 45:
        time.sleep(0.5)  # so that all of a test is in one minute
    end = int(time.time()) // 60 * 60
    with Meter(server.url) as meter:
        record(meter, end)
        assert meter.flush(20)
    yield end
    assert int(time.time()) // 60 * 60 == end, "the test took over a minute"


def record(meter: Meter, end: int) -> None:
    """Record two hours, with an incident of twelve minutes on one route."""
    for ago in range(119, 0, -1):
        at, hits, wrong = end - 60 * ago, 0, 0
        for number, route in enumerate(("/", "/cart", "/pay")):
            count = 200 + (ago * 7 + number) % 9
            failed = 60 if ago <= 12 and route == "/pay" else (ago + number) % 3
            for status, amount in (("2xx", count - failed), ("5xx", failed)):
                labels = {"route": route, "method": "GET", "status": status}
                meter.count("http_requests", amount, labels=labels, at=at)
            hits, wrong = hits + count, wrong + failed
        meter.count("hits", hits, at=at)
        meter.count("hits_failed", wrong, at=at)
        for step in range(12):
            meter.observe("hits_seconds", 0.1 * (1 + step / 50), at=at)
    meter.mark("v2", at=end - 720)


def kept(server: Server) -> dict[bytes, bytes]:
    """Return the statuses that the store keeps."""
    with server.client() as client:
        keys = list(client.scan_iter("redmeter:status:*"))
        return dict(zip(keys, client.mget(keys), strict=True)) if keys else {}


def test_all_readers_get_the_same_and_one_judges(server: Server, minutes: int) -> None:
    """Also if they read at once; what comes late is in the next minute's."""
    statuses: list[Status] = []

    def read() -> None:
        with opened_store(server.url) as store:
            statuses.append(read_status(store)[1])

    threads = [threading.Thread(target=read) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(statuses) == 5
    assert all(one == statuses[0] for one in statuses)
    assert statuses[0].until == minutes
    assert "/pay" in statuses[0].sentence
    (key,) = kept(server)
    assert key == f"redmeter:status:{minutes}:{RULES}:UTC".encode()
    with Meter(server.url) as meter:
        meter.count("hits", 50_000, at=minutes - 30)
        meter.flush(20)
        assert meter.status() == statuses[0]
    with server.client() as client:
        assert 0 < client.ttl(key) <= 300


def test_another_zone_and_other_rules_are_judged_apart(
    server: Server, minutes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their sentence may be another one; here it is the same, of the same data."""
    sentences = set()
    for rules, zone in (("1", "UTC"), ("2", "UTC"), ("1", "Europe/Berlin")):
        monkeypatch.setattr(judged_status, "RULES", rules)
        with Meter(server.url, timezone=zone) as meter:
            sentences.add(meter.status().sentence)
    assert len(sentences) == 1
    assert set(kept(server)) == {
        f"redmeter:status:{minutes}:{name}".encode()
        for name in ("1:UTC", "2:UTC", "1:Europe/Berlin")
    }


def test_a_reader_that_may_not_write_gets_the_same(server: Server, minutes: int) -> None:
    """A user of few rights, a replica, and a store that is frozen keep nothing."""
    with server.client() as client:
        client.execute_command(
            *("ACL", "SETUSER", "seer", "reset", "on", ">pw", "~*", "+@read", "+eval", "+evalsha"),
            *("+time", "+@connection", "-set"),
        )
        url = f"redis://seer:pw@127.0.0.1:{server.port}/0"
        with opened_store(url) as store:
            alone = read_status(store)[1]
        assert kept(server) == {}
        client.hset("redmeter:meta:", "frozen", f"x {time.time() + 60}")
        with opened_store(server.url) as store:
            assert read_status(store)[1] == alone
        assert kept(server) == {}
        client.hdel("redmeter:meta:", "frozen")
        with opened_store(server.url) as store:
            assert read_status(store)[1] == alone
        assert len(kept(server)) == 1
        with opened_store(url) as store:
            assert read_status(store)[1] == alone


@pytest.mark.usefixtures("minutes")
def test_a_replica_gives_the_same(server: Server) -> None:
    """It has the status that the primary keeps, or judges without keeping."""
    with replica_of(server) as replica, replica.client() as client:
        eventually(lambda: client.exists("redmeter:count:60:hits") == 1)
        with opened_store(replica.url) as store:
            status = read_status(store)[1]
        assert "/pay" in status.sentence, status
        assert kept(server) == {}
        with opened_store(server.url) as store:
            assert read_status(store)[1] == status


def test_one_that_stopped_while_it_judged_is_not_waited_for_long(
    server: Server, minutes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark that it left passes, and others judge without keeping until then."""
    monkeypatch.setattr(judged_status, "LEASE_MS", 300)
    key = f"redmeter:status:{minutes}:{RULES}:UTC"
    with server.client() as client, opened_store(server.url) as store:
        client.set(key, "", px=2_000)
        assert read_status(store)[1].until == minutes
        assert client.get(key) == b""
        client.delete(key)
        client.set(key, "no JSON")  # of another program
        assert read_status(store)[1].until == minutes


def test_a_store_that_cannot_be_read_as_a_whole_is_not_kept(
    server: Server, monkeypatch: pytest.MonkeyPatch, minutes: int
) -> None:
    """A later reader of the whole store shall not get the status of a part."""
    monkeypatch.setattr(Store, "skipped", lambda _: ["127.0.0.1:1 does not answer"])
    with opened_store(server.url) as store:
        assert read_status(store)[1].until == minutes
    assert kept(server) == {}


def test_a_status_is_the_same_after_it_was_kept(server: Server, minutes: int) -> None:
    """Each field, and each piece of the sentence; and a meter in memory returns the same."""
    memory = MemoryMeter()
    memory.clock.set_wall(minutes + 20)
    record(memory, minutes)
    with Meter(server.url) as meter:
        first, second = meter.status(), meter.status()
    assert first == second
    assert first == memory.status()
    ((_, text),) = kept(server).items()
    assert restored(Status, json.loads(text)) == first
    assert any(check.causes and check.mark for check in first.checks)


def test_values_are_restored_as_they_were() -> None:
    """Values of each type that a status has."""
    made: Any = Status(state="usual", since=1.0, until=301.0, firing=("a", "b"))
    assert restored(Status, json.loads(json.dumps(made.__dict__))) == made
