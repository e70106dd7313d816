"""`meta:`: what a store says of itself holds for everyone."""

import logging
import threading
from typing import Any

import pytest

from redmeter import IncompatibleStore, InvalidSetting, StoreError, StoreRefused
from redmeter.clock import ManualClock
from redmeter.health.doctor import examine
from redmeter.store.shard import RetentionChanged
from redmeter.stored.keys import DEFAULT_RETENTION, slice_start
from support.stores import (
    OpenMeter,
    OpenStore,
    batch_of,
    count,
    samples,
    send,
    server_time,
)
from support.writing import key

pytestmark = pytest.mark.servers


def test_meta_is_made_once_and_its_retention_holds_for_everyone(
    client: Any, open_store: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    """A second process that is configured otherwise goes on with it, and warns once."""
    now = int(server_time(client))
    count(open_store(retention={60: 10, 3600: 5}), "x", now)
    made = client.hgetall("redmeter:meta:")
    assert made[b"format"] == b"1"
    assert made[b"partitions"] == b"1"
    assert made[b"retention"] == b"60=10 3600=5"
    with caplog.at_level(logging.WARNING, logger="redmeter"):
        other = open_store(retention={60: 20})
        for _ in range(3):
            count(other, "y", now)
    assert client.hgetall("redmeter:meta:") == made
    assert set(client.scan_iter("redmeter:count:*:y")) == {
        key(60, "y").encode(),
        key(3600, "y").encode(),
    }
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert "60=10 3600=5" in said[0]


def test_a_process_that_is_not_configured_adopts_the_retention_silently(
    client: Any,
    open_store: OpenStore,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also after a change; a variable in its environment is a choice, and worth a warning."""
    now = int(server_time(client))
    store = open_store()
    count(store, "x", now)
    store.change_retention([(60, 240)])
    store.change_retention([(60, 24)], histograms=True)
    count(open_store(), "x", now)
    assert caplog.records == []
    monkeypatch.setenv("REDMETER_HISTOGRAM_RETENTION", "60=120")
    count(open_store(), "x", now)
    (record,) = caplog.records
    assert "of histograms" in record.getMessage()


def test_the_version_of_what_is_kept_is_the_time_of_the_change(
    client: Any, open_store: OpenStore
) -> None:
    """By the store's own clock, in microseconds: even at first, odd where somebody chose."""
    clock = ManualClock(1_000_000_000.5)
    store = open_store(clock=clock)
    store.load_config()
    assert client.hget("redmeter:meta:", "version") == b"1000000000500000"
    clock.advance(10)
    store.change_retention([(60, 7)])
    assert client.hget("redmeter:meta:", "version") == b"1000000010500001"


def test_a_process_that_agrees_with_the_store_says_nothing(
    client: Any, open_store: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing to tell."""
    for _ in range(2):
        count(open_store(), "x", int(server_time(client)))
    assert caplog.records == []


def test_two_processes_that_start_at_once_make_one_store(
    client: Any, open_store: OpenStore
) -> None:
    """The first to bind decides; the other follows it with its very first batch."""
    one, two = open_store(retention={60: 10}), open_store(retention={7: 10})
    for store in (one, two, one):
        count(store, "x", int(server_time(client)))
    assert set(client.scan_iter("redmeter:count:*")) == {key(60).encode()}


def test_a_change_of_retention_reaches_a_writer_that_already_runs(
    client: Any, open_store: OpenStore, open_meter: OpenMeter
) -> None:
    """With its next write, which is counted once: under the new precisions alone."""
    meter = open_meter(retention={60: 10, 300: 10})
    now = server_time(client)
    meter.count("x", at=now)
    changed = open_store().change_retention([(60, 0), (7, 5), (300, 20)])
    assert dict(changed) == {7: 5, 300: 20}
    meter.count("x", at=now)
    assert samples(client, key(60)) == {slice_start(now, 60): 1}
    assert samples(client, key(7)) == {slice_start(now, 7): 1}
    assert samples(client, key(300)) == {slice_start(now, 300): 2}
    assert meter.total("x") == 2


def test_a_batch_for_another_retention_is_not_applied(client: Any, open_store: OpenStore) -> None:
    """Nothing of it is written, not even the watermark, so the same number may come again."""
    store = open_store()
    now = int(server_time(client))
    old = store.config().version
    open_store().change_retention([(60, 7)])
    batch = batch_of(store, 1, "x", now)
    with pytest.raises(RetentionChanged):
        send(store, batch, old, must_exist=False)
    assert not client.exists(key(1), "redmeter:total:", "redmeter:batch:" + batch.producer)


def test_a_retention_out_of_range_changes_nothing(client: Any, open_store: OpenStore) -> None:
    """Nor does one that is the store's already: its version stays."""
    store = open_store()
    store.config()
    made = client.hgetall("redmeter:meta:")
    for wrong in ([(60, 255)], [(0, 5)], [(p, 0) for p in DEFAULT_RETENTION]):
        with pytest.raises(InvalidSetting):
            store.change_retention(wrong)
    store.change_retention([(60, 120)])
    assert client.hgetall("redmeter:meta:") == made


def test_two_changes_at_once_are_both_made(client: Any, open_store: OpenStore) -> None:
    """Each looks again when the other was faster."""
    stores = [open_store() for _ in range(4)]

    def change(number: int) -> None:
        stores[number].change_retention([(100 + number, 5)])

    threads = [threading.Thread(target=change, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = open_store().config().retention
    assert {100, 101, 102, 103} <= found.keys()


def test_after_flushall_the_next_writer_restores_what_the_store_kept(
    client: Any, open_store: OpenStore
) -> None:
    """Its retention as last agreed on, not the one the process was configured for."""
    store = open_store()
    now = int(server_time(client))
    count(store, "x", now)
    open_store().change_retention([(60, 7)])
    count(store, "x", now)
    client.flushall()
    (lost,) = count(store, "x", now, 4).lost
    assert (lost.reason, lost.events, lost.uncertain) == ("emptied", 2, 0)
    assert client.hget("redmeter:meta:", "retention") == str(store.config().retention).encode()
    assert store.config().retention[60] == 7
    assert samples(client, key(1)) == {now: 4}
    assert client.hget("redmeter:total:", "x") == b"4"


@pytest.mark.parametrize("version", ["007", "+5", "1_0"])
def test_a_version_however_it_is_spelled_is_kept_to(
    client: Any, open_store: OpenStore, version: str
) -> None:
    """Someone wrote it by hand: it is compared as it stands, or a writer would never agree."""
    store = open_store()
    store.config()
    client.hset("redmeter:meta:", "version", version)
    count(store, "x", int(server_time(client)))
    assert client.hget("redmeter:total:", "x") == b"1"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", "2"),
        ("partitions", "64"),
        ("retention", "everything"),
        ("retention", "60=100000"),
        ("version", "first"),
        ("format", ""),
    ],
)
def test_a_store_of_another_kind_is_neither_written_nor_read(
    client: Any, open_meter: OpenMeter, field: str, value: str
) -> None:
    """The error says what the store has and what this version works with."""
    made = {"format": "1", "partitions": "1", "retention": "60=120", "version": "5", field: value}
    client.hset("redmeter:meta:", mapping=made)
    meter = open_meter()
    for call in (
        lambda: meter.count("x"),
        lambda: meter.series("x", precision=60),
        lambda: meter.names(),
        lambda: meter.total("x"),
    ):
        with pytest.raises(IncompatibleStore) as caught:
            call()
        assert caught.value.found == value or field == "version"
    assert client.keys() == [b"redmeter:meta:"]


def test_fields_and_keys_of_other_versions_are_ignored(
    client: Any, open_meter: OpenMeter, open_store: OpenStore
) -> None:
    """A store may hold what an earlier or a later version of Redmeter left there."""
    made = {"format": "1", "partitions": "1", "retention": "60=120", "version": "5"}
    others = {"journal": "a" * 32, "target": "redis://two/0", "group": "[]", "number": "7f"}
    client.hset("redmeter:meta:", mapping=made | others)
    client.hset("redmeter:moving:", mapping=others)
    meter = open_meter()
    meter.count("x", 3)
    assert meter.total("x") == 3
    assert meter.names() == ["x"]
    store = open_store()
    assert store.config().retention == {60: 120}
    assert examine(store).level != "fail"
    assert client.hgetall("redmeter:moving:") == {
        name.encode(): text.encode() for name, text in others.items()
    }


@pytest.mark.parametrize("theirs", ["a hash", "a list"])
def test_somebody_elses_key_in_place_of_meta_is_an_error_of_ours(
    client: Any, open_meter: OpenMeter, theirs: str
) -> None:
    """Nothing is written beside it."""
    if theirs == "a hash":
        client.hset("redmeter:meta:", "colour", "red")
    else:
        client.rpush("redmeter:meta:", "red")
    meter = open_meter()
    for call in (lambda: meter.count("x"), lambda: meter.total("x")):
        with pytest.raises(StoreError) as caught:
            call()
        assert isinstance(caught.value, IncompatibleStore if theirs == "a hash" else StoreRefused)
    assert client.keys() == [b"redmeter:meta:"]


def test_a_store_under_another_prefix_has_its_own_everything(
    client: Any, open_meter: OpenMeter
) -> None:
    """No key without the prefix, and the two do not see each other."""
    one, two = open_meter(prefix="a:"), open_meter(prefix="b*:")
    one.count("x", 2)
    two.count("x", 3)
    assert (one.total("x"), two.total("x")) == (2, 3)
    assert (one.names(), two.names()) == (["x"], ["x"])
    assert all(found.startswith((b"a:", b"b*:")) for found in client.scan_iter("*"))
