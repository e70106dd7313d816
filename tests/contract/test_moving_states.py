"""The states of a store that is moved: nothing is written, and writers learn why."""

from collections.abc import Callable
from typing import Any

import pytest

from redmeter import Meter, book
from redmeter.errors import StoreMoving
from redmeter.health.doctor import examine
from redmeter.maintenance import cleaning, forgetting
from redmeter.store import Store
from redmeter.types import Outcome
from support.proxy import Proxy
from support.servers import Server
from support.stores import HastyClock, OpenStore, batch_of, count, samples, send, server_time
from support.writing import key

pytestmark = pytest.mark.servers

META = "redmeter:meta:"
#: State -> the field of `meta:` that says so, and its value; {} is a time to come.
STATES = {
    "frozen": ("frozen", "token {}"),
    "receiving": ("receiving", "token move"),
    "moved": ("moved", "move"),
}


def put(client: Any, state: str, meta: str = META) -> None:
    """Have a store be in a state."""
    field, value = STATES[state]
    client.hset(meta, field, value.format(server_time(client) + 60))


def stored(client: Any) -> dict[bytes, bytes]:
    """Return everything a server holds but `meta:`, which has the state."""
    return {name: client.dump(name) for name in client.scan_iter() if b"meta:" not in name}


@pytest.mark.parametrize("state", STATES)
def test_nothing_is_written_in_any_state(client: Any, open_store: OpenStore, state: str) -> None:
    """Neither counts nor another retention nor the cleaner's and forget()'s removals."""
    store = open_store()
    second = int(server_time(client))
    count(store, "x", second, 2)
    client.hset(key(1), "60", "1")  # for the cleaner
    put(client, state)
    before, meta = stored(client), client.hgetall(META)
    changes: list[Callable[[], object]] = [
        lambda: count(store, "x", second),
        lambda: cleaning.clean(store),
        lambda: forgetting.forget(store, "x"),
        lambda: forgetting.forget_logger(store, "app"),
        lambda: forgetting.forget_mark(store, "v1"),
        lambda: store.change_retention([(60, 60)]),
    ]
    for change in changes:
        with pytest.raises(StoreMoving) as raised:
            change()
        assert (raised.value.state, raised.value.sent) == (state, False)
    assert (stored(client), client.hgetall(META)) == (before, meta)


@pytest.mark.parametrize("state", STATES)
def test_the_book_is_refused_as_well(client: Any, state: str) -> None:
    """Its batches name no version of the retention; without a prefix the state is in meta: too."""
    book.update_counter(client, "hits")
    put(client, state, "redmeter:bare:meta:")
    before = stored(client)
    with pytest.raises(StoreMoving):
        book.update_counter(client, "hits")
    with pytest.raises(StoreMoving):
        book.log_recent(client, "worker", "started")
    with pytest.raises(StoreMoving):
        book.update_stats(client, "cart", "value", 1.0)
    assert stored(client) == before


@pytest.mark.parametrize("state", STATES)
def test_a_lost_reply_is_settled_in_any_state(
    any_server: Server, client: Any, open_store: OpenStore, state: str
) -> None:
    """The batch had been applied: its watermark is looked at before the state."""
    with Proxy(any_server.port) as proxy:
        clock = HastyClock()
        store = open_store(proxy.url, clock=clock)
        second = int(server_time(client))
        count(store, "x", second)
        clock.on_sleep = lambda: put(client, state)
        proxy.drop_replies(1)
        assert count(store, "x", second) == Outcome(applied=False)
        assert proxy.dropped == 1
        store.close()
    assert samples(client, key(1)) == {second: 2}


def test_a_batch_in_doubt_is_not_applied_once_the_store_has_moved(
    any_server: Server, client: Any, open_store: OpenStore
) -> None:
    """A frozen store may apply it later, so it stays in doubt; a moved one never does."""
    with Proxy(any_server.port) as proxy:
        clock = HastyClock()
        store = open_store(proxy.url, clock=clock)
        second = int(server_time(client))
        count(store, "x", second)
        for state, sent in (("frozen", True), ("moved", False)):
            clock.on_sleep = lambda state=state: put(client, state)  # type: ignore[misc]
            proxy.reset_after(100, of="requests")
            with pytest.raises(StoreMoving) as raised:
                count(store, "x", second)
            assert (raised.value.state, raised.value.sent) == (state, sent)
            client.hdel(META, "frozen")
        store.close()
    assert samples(client, key(1)) == {second: 1}


def test_the_first_batch_after_the_deadline_ends_the_freeze(
    client: Any, open_store: OpenStore
) -> None:
    """For good: the field is removed, so that a clock that is set back does not revive it."""
    store = open_store()
    second = int(server_time(client))
    count(store, "x", second)
    client.hset(META, "frozen", f"token {second - 1}")
    assert cleaning.clean(store).complete
    assert client.hexists(META, "frozen")
    assert count(store, "x", second) == Outcome()
    assert not client.hexists(META, "frozen")


def test_a_batch_for_another_retention_is_refused_for_the_state(
    client: Any, open_store: OpenStore
) -> None:
    """It would be recreated for nothing."""
    store = open_store()
    batch = batch_of(store, 1, "x", int(server_time(client)))
    put(client, "moved")
    with pytest.raises(StoreMoving):
        send(store, batch, "1", must_exist=False)


def test_reports_are_stored_but_while_the_store_receives(
    client: Any, open_store: OpenStore
) -> None:
    """The keys are copied then, and a number that is given out may be another process'."""
    store = open_store()
    store.load_config()
    for state in ("frozen", "moved"):
        put(client, state)
        assert store.publish("a" * 32, "{}", instance=True, ended=False) == 0
    client.hdel(META, "frozen", "moved")
    put(client, "receiving")
    with pytest.raises(StoreMoving):
        store.publish("b" * 32, "{}", instance=True, ended=False)
    assert client.hgetall("redmeter:instances:") == {b"a" * 32: b"0"}


def test_a_synchronous_meter_raises_and_counts_the_event_as_dropped(
    any_server: Server, client: Any
) -> None:
    """The caller can try again; the books balance."""
    with Meter(any_server.url, sync=True) as meter:
        meter.count("hits")
        put(client, "frozen")
        with pytest.raises(StoreMoving, match="try again in a moment"):
            meter.count("hits")
        health = meter.recorder_health()
        assert (health.recorded, health.stored, health.dropped) == (2, 1, 1)
        assert health.troubles == {"frozen": 1}


@pytest.mark.parametrize("state", STATES)
def test_the_doctor_reports_the_state(client: Any, open_store: OpenStore, state: str) -> None:
    """And what to do; a freeze ends by itself."""
    store: Store = open_store()
    count(store, "x", int(server_time(client)))
    assert not [f for f in examine(store).findings if f.topic == "migration"]
    put(client, state)
    (finding,) = [f for f in examine(store).findings if f.topic == "migration"]
    assert finding.level == ("warn" if state == "frozen" else "fail")
    assert bool(finding.fix) == (state != "frozen")
