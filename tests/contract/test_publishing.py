"""Publishing: what a producer tells of itself is there for everyone, and its number is its own."""

import json
import threading
import time
from typing import Any

import pytest

from redmeter import AccessDenied, IncompatibleStore, StoreRefused, StoreUnavailable
from redmeter import store as stores
from redmeter.health.writers import MAX_WRITERS, Writer
from redmeter.store import Store, producers
from redmeter.store.servers.connection import ServerLink
from redmeter.stored.keys import BARE_OWN, DEFAULT_PREFIX
from support.servers import Server
from support.stores import OpenStore, exchanges, read_writers, server_time

pytestmark = pytest.mark.servers

DAY = 86400
WRITERS, REPORTS, INSTANCES = (f"redmeter:{name}:" for name in ("writers", "reports", "instances"))


@pytest.fixture
def store(open_store: OpenStore) -> Store:
    """A store on each server in turn."""
    return open_store()


def publish(store: Store, producer: str, *, instance: bool = True, ended: bool = False) -> Any:
    """Publish a report that says who it is from."""
    return store.publish(producer, json.dumps({"host": producer}), instance=instance, ended=ended)


def age(client: Any, producer: str, seconds: float) -> None:
    """Let a writer have published so long ago."""
    client.zadd(WRITERS, {producer: int(server_time(client) - seconds)})


def numbers(client: Any) -> dict[bytes, int]:
    """Return who holds which number."""
    return {producer: int(number) for producer, number in client.hgetall(INSTANCES).items()}


# --- The report ----------------------------------------------------------------------------


def test_a_report_is_stored_with_the_servers_time(store: Store, client: Any) -> None:
    """The newest of each producer, and nothing else is written but what the store is."""
    before = int(server_time(client))
    for text in ('{"recorded": 1}', '{"recorded": 2}'):
        assert store.publish("ada", text, instance=False, ended=False) is None
    assert client.hgetall(REPORTS) == {b"ada": b'{"recorded": 2}'}
    ((member, score),) = client.zrange(WRITERS, 0, -1, withscores=True)
    assert member == b"ada"
    assert before <= score <= server_time(client)
    assert score == int(score)
    assert set(client.keys()) == {b"redmeter:meta:", WRITERS.encode(), REPORTS.encode()}


@pytest.mark.parametrize("prefix", ["", "shop:"])
def test_what_is_published_lies_under_the_stores_own_prefix(
    open_store: OpenStore, client: Any, prefix: str
) -> None:
    """Not bare where there is none, and stores with different prefixes share no numbers."""
    assert [publish(open_store(), "ada"), publish(open_store(prefix=prefix), "ada")] == [0, 0]
    own = prefix or BARE_OWN
    assert own != DEFAULT_PREFIX
    for name in ("writers:", "reports:", "instances:"):
        assert client.exists(own + name, DEFAULT_PREFIX + name) == 2
        assert not client.exists(name)


def test_every_key_goes_a_day_after_the_last_report(store: Store, client: Any) -> None:
    """Whoever publishes renews all three."""
    publish(store, "ada")
    for key in (WRITERS, REPORTS, INSTANCES):
        client.expire(key, 50)
    publish(store, "bob", instance=False)
    assert all(DAY - 60 < client.ttl(key) <= DAY for key in (WRITERS, REPORTS, INSTANCES))


def test_writers_not_seen_for_a_day_are_removed_with_all_they_left(
    store: Store, client: Any
) -> None:
    """Those seen a little later stay, and so do their numbers."""
    for name in ("old", "recent"):
        publish(store, name)
    age(client, "old", DAY + 5)
    age(client, "recent", DAY - 60)
    publish(store, "now", instance=False)
    assert set(client.zrange(WRITERS, 0, -1)) == {b"recent", b"now"}
    assert set(client.hkeys(REPORTS)) == {b"recent", b"now"}
    assert numbers(client) == {b"recent": 1}


def test_removing_is_bounded_and_goes_on_with_the_next_report(store: Store, client: Any) -> None:
    """A hundred a call, whatever has piled up."""
    client.zadd(WRITERS, {f"old{n}": 1000 + n for n in range(250)})
    client.hset(REPORTS, mapping={f"old{n}": "{}" for n in range(250)})
    for left in (150, 50, 0):
        publish(store, "now", instance=False)
        assert client.zcard(WRITERS) == client.hlen(REPORTS) == left + 1


def test_programs_that_come_and_go_do_not_fill_the_store(store: Store, client: Any) -> None:
    """Past a thousand reports the oldest go before their day, but none of who is alive."""
    now = int(server_time(client))
    client.zadd(WRITERS, {f"gone{n:04}": now - 1000 - n for n in range(990)})
    client.zadd(WRITERS, {f"alive{n:04}": now for n in range(30)})
    publish(store, "ada")
    assert client.zcard(WRITERS) == producers.KEPT
    assert client.zscore(WRITERS, "gone0968") is not None
    assert client.zscore(WRITERS, "gone0969") is None
    client.zadd(WRITERS, {f"more{n:04}": now for n in range(1200)})
    for _ in range(11):
        publish(store, "ada")
    assert client.zcard(WRITERS) == 1 + 30 + 1200


def test_writers_of_a_clock_that_was_far_ahead_are_removed(store: Store, client: Any) -> None:
    """Or they would count as alive until that time has come; an hour is none too much."""
    assert [publish(store, name) for name in ("far", "near")] == [0, 1]
    age(client, "far", -2 * DAY)
    age(client, "near", -3600)
    publish(store, "ada", instance=False)
    assert set(client.zrange(WRITERS, 0, -1)) == {b"near", b"ada"}
    assert numbers(client) == {b"near": 1}


# --- The number ----------------------------------------------------------------------------


def test_the_lowest_free_number_is_given_and_kept(store: Store, client: Any) -> None:
    """Publishing again changes nothing; a number given back is the next one's."""
    assert [publish(store, name) for name in ("ada", "bob", "cy")] == [0, 1, 2]
    assert [publish(store, name) for name in ("cy", "ada", "bob")] == [2, 0, 1]
    assert publish(store, "ada", ended=True) is None
    assert publish(store, "bob", ended=True) is None
    assert [publish(store, name) for name in ("dan", "eve", "fay")] == [0, 1, 3]
    assert numbers(client) == {b"cy": 2, b"dan": 0, b"eve": 1, b"fay": 3}


def test_who_has_ended_leaves_its_report(store: Store, client: Any) -> None:
    """So that what it lost can still be told."""
    publish(store, "ada")
    store.publish("ada", '{"dropped": 5}', instance=True, ended=True)
    assert client.hgetall(REPORTS) == {b"ada": b'{"dropped": 5}'}
    assert client.zscore(WRITERS, "ada") is not None
    assert numbers(client) == {}


def test_who_needs_no_number_gets_none_and_keeps_one_it_has(store: Store) -> None:
    """Numbers are for those who need one."""
    assert publish(store, "ada", instance=False) is None
    assert publish(store, "bob") == 0
    assert publish(store, "bob", instance=False) == 0
    assert publish(store, "ada") == 1


def test_numbers_of_the_dead_are_taken_over_when_needed(store: Store, client: Any) -> None:
    """After three minutes of silence, the lowest first; who was only away gets another one."""
    assert [publish(store, name) for name in ("ada", "bob", "cy")] == [0, 1, 2]
    age(client, "ada", 170)
    age(client, "bob", 190)
    age(client, "cy", 190)
    assert publish(store, "dan") == 1
    assert publish(store, "cy") == 2, "nobody needed it"
    assert publish(store, "bob") == 3
    assert publish(store, "ada") == 0
    assert sorted(numbers(client).values()) == [0, 1, 2, 3]


def test_numbers_of_those_who_left_no_trace_are_taken_over(store: Store, client: Any) -> None:
    """And what somebody else wrote there does no harm."""
    client.hset(INSTANCES, mapping={"ghost": "0", "strange": "x", "ada": "x"})
    assert publish(store, "bob") == 0
    assert publish(store, "ada") == 1
    assert client.hget(INSTANCES, "ghost") is None


def test_processes_that_start_at_once_get_numbers_of_their_own(open_store: OpenStore) -> None:
    """Each exactly one of the lowest."""
    found: list[int] = []

    def start(name: str) -> None:
        found.append(publish(open_store(), name))

    threads = [threading.Thread(target=start, args=(f"p{n}",)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(12))


# --- Trouble -------------------------------------------------------------------------------


def test_a_report_whose_reply_was_lost_is_sent_again(
    store: Store, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once; the number is the one that the first try was given."""
    publish(store, "ada")
    whole, breaks = ServerLink.exchange, 1

    def breaking(self: ServerLink, commands: Any, take: Any = None, **options: Any) -> Any:
        nonlocal breaks
        if breaks:
            breaks -= 1
            whole(self, commands)
            raise StoreUnavailable(self.location, "reset")
        return whole(self, commands, take, **options)

    monkeypatch.setattr(ServerLink, "exchange", breaking)
    assert publish(store, "bob") == 1
    assert numbers(client) == {b"ada": 0, b"bob": 1}
    breaks = 2
    with pytest.raises(StoreUnavailable):
        publish(store, "cy")
    assert publish(store, "cy") == 2


def test_publishing_takes_one_round_trip(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the store is known, and after the server has forgotten the script one more."""
    publish(store, "ada")
    with exchanges(monkeypatch) as seen:
        publish(store, "ada")
    assert seen == [1]
    store.ask([("SCRIPT", "FLUSH")])
    with exchanges(monkeypatch) as seen:
        assert publish(store, "ada") == 0
    assert seen == [1, 1]


def test_errors_are_ours(store: Store, open_store: OpenStore, client: Any) -> None:
    """Another program's key, a store of another format, a full memory."""
    publish(store, "ada")
    client.config_set("maxmemory", "1")
    with pytest.raises(StoreRefused) as caught:
        publish(store, "bob")
    client.config_set("maxmemory", "0")
    assert caught.value.code == "OOM"
    assert client.zrange(WRITERS, 0, -1) == [b"ada"]
    client.delete(REPORTS)
    client.set(REPORTS, "x")
    with pytest.raises(StoreRefused) as caught:
        publish(store, "ada")
    assert caught.value.code == "WRONGTYPE"
    client.hset("redmeter:meta:", "format", "99")
    with pytest.raises(IncompatibleStore):
        publish(open_store(), "ada")


def test_who_may_not_publish_is_told(
    any_server: Server, open_store: OpenStore, client: Any
) -> None:
    """As elsewhere, by an error of ours."""
    rules = ("on", ">s", "~*", "+@all", "-zadd")
    client.execute_command("ACL", "SETUSER", "ada", *rules)
    store = open_store(any_server.url.replace("://", "://ada:s@"))
    with pytest.raises(AccessDenied):
        publish(store, "ada")


# --- Reading -------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"decode_responses": True}, {"protocol": 3}], ids=str)
def test_writers_are_read_newest_first(
    any_server: Server, open_store: OpenStore, client: Any, options: dict[str, Any]
) -> None:
    """With when each was seen, its number and its report, by any client."""
    before = int(server_time(client))
    publish(open_store(), "ada")
    publish(open_store(), "bob", instance=False)
    age(client, "ada", 100)
    with any_server.client(**options) as mine:
        store = stores.open(client=mine)
        assert store is not None
        first, second = read_writers(store)
    assert (first.producer, first.instance, first.report) == ("bob", None, {"host": "bob"})
    assert (second.producer, second.instance, second.report) == ("ada", 0, {"host": "ada"})
    assert before <= first.seen <= time.time() + 1
    assert 100 <= server_time(client) - second.seen < 110
    assert isinstance(first, Writer)


def test_writers_are_read_in_one_round_trip_and_bounded(
    store: Store, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest thousand, and none that was last seen over a day ago."""
    assert read_writers(store) == []
    now = int(server_time(client))
    count = MAX_WRITERS + 50
    client.zadd(WRITERS, {f"p{n:04}": now - n for n in range(count)})
    client.hset(REPORTS, mapping={f"p{n:04}": "{}" for n in range(count)})
    with exchanges(monkeypatch) as seen:
        found = read_writers(store)
    assert len(seen) == 1
    assert [writer.producer for writer in found] == [f"p{n:04}" for n in range(MAX_WRITERS)]
    client.delete(WRITERS)
    client.zadd(WRITERS, {"p0001": now - DAY - 60, "p0002": now - DAY + 60})
    assert [writer.producer for writer in read_writers(store)] == ["p0002"]


def test_reading_writers_where_something_else_lies_is_an_error(store: Store, client: Any) -> None:
    """Of ours, not of the client's."""
    client.set(WRITERS, "x")
    with pytest.raises(StoreRefused):
        read_writers(store)
