"""A primary that is replaced behind an address that stays, as behind a proxy or a Service.

Whatever connections are open stay with the old primary, which goes on answering, as a replica.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from redmeter import Meter, book
from redmeter.store.servers.connection import ServerLink
from support.proxy import Proxy
from support.recorders import OpenBuffered, check_whole
from support.servers import Server
from support.stores import OpenMeter, opened_meters, opened_store, total_on
from support.waiting import eventually


@pytest.fixture(scope="module")
def other_server() -> Iterator[Server]:
    """The server that becomes the primary."""
    with Server("valkey-9.1") as made:
        yield made


@pytest.fixture
def successor(other_server: Server) -> Server:
    """The server that becomes the primary: empty."""
    with other_server.client() as client:
        client.flushall()
    return other_server


@pytest.fixture
def open_meter() -> Iterator[OpenMeter]:
    """Open meters that store at once, closed after the test."""
    yield from opened_meters(sync=True)


BLOCKING_POOL: Any = redis.BlockingConnectionPool  # has no types

#: How an application gets to the server: by what options of a Meter.
WAYS: dict[str, Callable[[Proxy], dict[str, Any]]] = {
    "url": lambda proxy: {"url": proxy.url},
    "client": lambda proxy: {"client": redis.Redis(port=proxy.port)},
    "client without retries": lambda proxy: {
        "client": redis.Redis(port=proxy.port, retry=Retry(NoBackoff(), 0))
    },
    "blocking pool": lambda proxy: {
        "client": redis.Redis.from_pool(BLOCKING_POOL(port=proxy.port, timeout=1))
    },
}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, proxy: Proxy) -> Iterator[dict[str, Any]]:
    """Options of a Meter that lead to the server by its stable address."""
    options = WAYS[request.param](proxy)
    yield options
    if "client" in options:
        options["client"].close()


def fail_over(proxy: Proxy, old: Server, new: Server) -> None:
    """Make one a replica of the other, which new connections lead to from now on."""
    proxy.target_port = new.port
    with old.client() as client:
        client.replicaof("127.0.0.1", str(new.port))


def keep_idle(client: "redis.Redis", number: int) -> None:
    """Leave some connections idle in a caller's pool, all to the same server."""
    pool = client.connection_pool
    with contextlib.ExitStack() as lent:
        for _ in range(number):
            lent.callback(pool.release, pool.get_connection())


@contextlib.contextmanager
def opened(*args: Any, **options: Any) -> Iterator[ServerLink]:
    """Open a store, and give its link."""
    with opened_store(*args, **options) as store:
        assert isinstance(store.link, ServerLink)
        yield store.link


def test_a_flush_finds_the_new_primary_behind_the_same_address(
    proxy: Proxy,
    server: Server,
    successor: Server,
    way: dict[str, Any],
    open_buffered: OpenBuffered,
) -> None:
    """Of the same call, with nothing lost: the old one took nothing."""
    meter = open_buffered(**way, flush_interval=3600)
    meter.count("hits")
    assert meter.flush(10)
    with server.client() as client:
        client.flushall()
    fail_over(proxy, server, successor)
    meter.count("hits", 4)
    assert meter.flush(10)
    assert total_on(successor) == 5, "what it lacks is sent again"
    health = meter.recorder_health()
    assert (health.recorded, health.stored, health.uncertain, health.losses) == (5, 5, 0, ())
    assert health.repaired == 1


def test_what_is_recorded_while_connections_lead_to_a_replica_is_exact(
    proxy: Proxy,
    server: Server,
    successor: Server,
    way: dict[str, Any],
    open_buffered: OpenBuffered,
) -> None:
    """In the background, without anybody who waits for it."""
    meter = open_buffered(**way)
    meter.count("hits")
    assert meter.flush(10)
    with server.client() as old, successor.client() as new:
        # What the replica had: all of it, and what the watermark is.
        for key in old.scan_iter():
            new.restore(key, 0, old.dump(key))
        fail_over(proxy, server, successor)
        meter.count("hits", 4)
        assert meter.flush(10)
        check_whole(new, meter.recorder_health(), 5)


def test_a_synchronous_write_finds_the_new_primary_behind_the_same_address(
    proxy: Proxy, server: Server, successor: Server, way: dict[str, Any], open_meter: OpenMeter
) -> None:
    """Without an error, though the first try was refused."""
    meter = open_meter(**way)
    meter.count("hits")
    fail_over(proxy, server, successor)
    meter.count("hits", 4)
    assert total_on(successor) == 4
    assert meter.total("hits") == 4


def test_the_books_functions_find_the_new_primary_behind_the_same_address(
    proxy: Proxy, server: Server, successor: Server
) -> None:
    """By the caller's connection, with its idle ones to the old primary too."""
    with redis.Redis(port=proxy.port) as conn:
        book.update_counter(conn, "hits")
        keep_idle(conn, 5)
        fail_over(proxy, server, successor)
        book.update_counter(conn, "hits", 4)
        assert book.get_counter(conn, "hits", 86400)[0][1] == 4
        # The caller's own commands profit as well.
        conn.set("mine", "1")
    with successor.client() as client:
        assert client.get("mine") == b"1"


@pytest.mark.parametrize("pool", [redis.ConnectionPool, BLOCKING_POOL])
def test_one_refusal_drops_all_idle_connections_of_a_callers_pool(
    proxy: Proxy, server: Server, successor: Server, pool: Any
) -> None:
    """But none that somebody is using at that moment."""
    with redis.Redis.from_pool(pool(port=proxy.port)) as client, opened(client=client) as link:
        keep_idle(client, 6)
        used = client.connection_pool.get_connection()
        fail_over(proxy, server, successor)
        link.exchange([("SET", "a", "b")])
        eventually(lambda: proxy.open == 1, 5.0, "one is left: that which is used")
        used.send_command("PING")
        assert used.read_response() == b"PONG"
        client.connection_pool.release(used)


def test_one_refusal_drops_all_connections_of_ours(
    proxy: Proxy, server: Server, successor: Server
) -> None:
    """Also those that had a time to end at."""
    with opened(proxy.url) as link:
        assert link.exchange([("PING",)]) == [b"PONG"]
        with link.within(5):
            assert link.exchange([("PING",)]) == [b"PONG"]
        assert proxy.open == 2
        fail_over(proxy, server, successor)
        link.exchange([("SET", "a", "b")])
        eventually(lambda: proxy.open == 0, 5.0, "none is left")
        assert link.exchange([("SET", "a", "b")]) == [b"OK"]


def test_a_server_that_does_not_hear_from_its_primary_is_left(
    proxy: Proxy, server: Server, successor: Server, open_meter: OpenMeter
) -> None:
    """MASTERDOWN is what it answers to readings where it must not give old data."""
    meter: Meter = open_meter(proxy.url)
    meter.count("hits", 2)
    with server.client() as old, successor.client() as new:
        for key in old.scan_iter():
            new.restore(key, 0, old.dump(key))
        old.config_set("replica-serve-stale-data", "no")
        proxy.target_port = successor.port
        old.replicaof("127.0.0.1", "1")
        with contextlib.suppress(Exception):
            meter.total("hits")
        assert meter.total("hits") == 2
