"""Forgetting: a name, a logger or a mark is gone, and nothing else is."""

from typing import Any

import pytest

from redmeter import InvalidName
from redmeter.maintenance.forgetting import forget, forget_logger, forget_mark
from support.stores import OpenMeter, OpenStore, server_time

pytestmark = pytest.mark.servers


def test_a_forgotten_counter_is_gone_and_nothing_else_is(
    client: Any, open_meter: OpenMeter, open_store: OpenStore
) -> None:
    """Samples, index entries and total; not the label sets of the same name, nor longer names."""
    meter = open_meter()
    for name in ("x", 'x{plan="pro"}', "xy", "*"):
        meter.count(name, 2)
    store = open_store()
    assert forget(store, "*")
    assert forget(store, "x")
    assert not forget(store, "x")
    assert not forget(store, "never")
    assert meter.names() == ["xy", 'x{plan="pro"}']
    assert (meter.total("x", exact=True), meter.total("xy")) == (0, 2)
    assert list(client.scan_iter("redmeter:count:*:x", count=1000)) == []
    assert forget(store, 'x{ plan = "pro", }')
    assert meter.names() == ["xy"]
    meter.count("x")
    assert meter.total("x") == 1


def test_a_counter_is_forgotten_at_precisions_that_are_no_longer_kept(
    client: Any, open_meter: OpenMeter, open_store: OpenStore
) -> None:
    """And at those of other programs; names that end alike keep theirs."""
    meter = open_meter(retention={7: 5, 60: 5})
    for name in ("x", "60:x", "yx", "y:x"):
        meter.count(name)
    store = open_store()
    store.change_retention([(7, 0), (300, 5)])
    assert forget(store, "x")
    left = client.zrange("redmeter:known:", 0, -1)
    assert left == [b"60:60:x", b"60:y:x", b"60:yx", b"7:60:x", b"7:y:x", b"7:yx"]
    assert all(client.exists(b"redmeter:count:" + entry) for entry in left)
    assert not client.exists("redmeter:count:7:x", "redmeter:count:60:x")


def test_a_forgotten_logger_leaves_nothing_behind(
    client: Any, open_meter: OpenMeter, open_store: OpenStore
) -> None:
    """No text of it, in no key, also where other programs wrote; other loggers keep theirs."""
    meter, secret = open_meter(), b"HUNTER2"
    for name in ("app", "app2", "my.app"):
        meter.log(name, "it is HUNTER2", severity="error")
    meter.log("app", "HUNTER2 again", severity="odd")
    hour = int(server_time(client)) // 3600 * 3600
    client.set("redmeter:common:app:error:start", hour - 3600)
    meter.log("app", "it is HUNTER2", severity="error")
    client.lpush("redmeter:recent:app:debug", b"HUNTER2")  # in no index
    client.lpush("redmeter:recent:app:info:x", b"HUNTER2")  # of logger "app:info"
    store = open_store()
    assert forget_logger(store, "app")
    left = {key for key in client.keys("*") if secret in client.dump(key)}
    kinds = ("recent", "common", "patterns", "steps")
    others = {f"redmeter:{k}:{name}:error".encode() for k in kinds for name in ("app2", "my.app")}
    assert left == {*others, b"redmeter:recent:app:info:x"}
    assert client.keys("redmeter:*:app:*") == [b"redmeter:recent:app:info:x"]
    assert not client.exists("redmeter:distinct:app")
    assert client.exists("redmeter:distinct:app2")
    assert {s.logger for s in meter.loggers()} == {"app2", "my.app"}
    assert not forget_logger(store, "app")
    with pytest.raises(InvalidName, match="invalid logger name"):
        forget_logger(store, "a\nb")


def test_marks_of_a_label_are_forgotten(
    client: Any, open_meter: OpenMeter, open_store: OpenStore
) -> None:
    """However many; the label as it is stored. What another program put there stays."""
    meter, now = open_meter(), server_time(client)
    for at in (now, now - 3600, now - 7200):
        meter.mark("v1 x", at=at)
    meter.mark("v1")
    client.zadd("redmeter:marks:", {"theirs": 1})
    store = open_store()
    assert forget_mark(store, "  v1\tx ") == 3
    assert forget_mark(store, "v1 x") == 0
    assert [one.label for one in meter.marks()] == ["v1"]
    assert client.zscore("redmeter:marks:", "theirs") == 1
