"""Meters over clients of valkey-py: of a server, its socket, TLS, sentinels and clusters."""

import ssl
from typing import Any

import pytest
import redis
import valkey as untyped
from valkey.cluster import ValkeyCluster
from valkey.connection import AbstractConnection

from redmeter import AccessDenied, InvalidSetting, Meter, StoreUnavailable
from redmeter.store.servers.client_options import connection_options
from support.clusters import Cluster
from support.names import one_in_each
from support.proxy import Proxy
from support.sentinels import SERVICE, Watched
from support.servers import Server
from support.stores import total_on

#: Its functions have no types.
valkey: Any = untyped


def use(client: Any) -> str:
    """Record and read some of everything; return the location of the store."""
    with Meter(client=client) as meter:
        meter.count("orders", 3, labels={"plan": "pro"})
        meter.gauge("depth").set(2.5)
        meter.observe("order_seconds", 0.25)
        meter.log("shop", "paid %s", 12)
        assert meter.flush(20)
        assert meter.total("orders") == 3
        assert meter.gauge_series("depth", precision=60).values[-1] == 2.5
        assert meter.summary("order_seconds", precision=60).count == 1
        assert [source.logger for source in meter.loggers()] == ["shop"]
        assert meter._store is not None
        return meter._store.location


@pytest.mark.parametrize("options", [{}, {"decode_responses": True}, {"protocol": 3}])
@pytest.mark.parametrize("blocking", [False, True])
def test_a_client_of_a_server_is_used_and_left_open(
    server: Server, options: dict[str, Any], blocking: bool
) -> None:
    """Whatever its pool and its replies are like."""
    kind = valkey.BlockingConnectionPool if blocking else valkey.ConnectionPool
    pool = kind.from_url(server.url, **options)
    theirs = valkey.Valkey(connection_pool=pool)
    assert "the caller's client" in use(theirs)
    assert theirs.ping()
    theirs.close()
    pool.disconnect()


def test_its_database_and_password_are_used(server: Server) -> None:
    """A wrong one is refused as it is with every other client."""
    with server.client() as admin:
        admin.execute_command("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all")
    try:
        theirs = valkey.Valkey(port=server.port, db=3, username="app", password="secret")
        with Meter(client=theirs, sync=True) as meter:
            meter.count("orders")
        assert theirs.hgetall("redmeter:total:") == {b"orders": b"1"}
        theirs.close()
        wrong = valkey.Valkey(port=server.port, username="app", password="wrong")
        with Meter(client=wrong, sync=True) as meter, pytest.raises(AccessDenied):
            meter.total("orders")
        wrong.close()
    finally:
        with server.client() as admin:
            admin.execute_command("ACL", "DELUSER", "app")


def test_a_server_that_does_not_answer_is_unreachable(server: Server) -> None:
    """After the client's timeout; the exception is Redmeter's."""
    with Proxy(server.port) as proxy:
        theirs = valkey.Valkey(port=proxy.port, socket_timeout=0.2)
        with Meter(client=theirs, sync=True) as meter:
            meter.count("orders")
            proxy.black_hole()
            with pytest.raises(StoreUnavailable):
                meter.total("orders")
        theirs.close()


def test_a_cluster_client_says_where_the_cluster_is(cluster: Cluster) -> None:
    """Series of every shard."""
    theirs: Any = ValkeyCluster(host="127.0.0.1", port=cluster.nodes[0].port)
    names = one_in_each()
    with Meter(client=theirs, sync=True) as meter:
        for name in names:
            meter.count(name)
        assert meter.names() == sorted(names)
    assert theirs.ping()
    theirs.close()


def test_a_client_of_sentinels_follows_them(group: Watched) -> None:
    """They are asked for the primary by connections of our own."""
    found = valkey.Sentinel([("127.0.0.1", each.port) for each in group.sentinels])
    theirs = found.master_for(SERVICE)
    assert "sentinel" in use(theirs)
    assert total_on(group.master, 'orders{plan="pro"}') == 3
    theirs.close()


@pytest.mark.parametrize(
    ("url", "kind", "expected"),
    [
        ("valkey://u:p@h:7000/2", redis.Connection, {"host": "h", "port": 7000, "db": 2}),
        ("unix:///tmp/s.sock", redis.UnixDomainSocketConnection, {"path": "/tmp/s.sock"}),
        ("valkeys://h?ssl_ca_certs=ca.pem", redis.SSLConnection, {"ssl_ca_certs": "ca.pem"}),
    ],
)
def test_options_that_mean_the_same_are_kept(
    url: str, kind: type, expected: dict[str, Any]
) -> None:
    """Retries, parsers and encodings are Redmeter's own."""
    client = valkey.Valkey.from_url(url, socket_timeout=1.5, decode_responses=True)
    options = connection_options(client.connection_pool)
    assert options["connection_class"] is kind
    assert options.items() >= (expected | {"socket_timeout": 1.5}).items()
    assert not options.keys() & {"retry", "parser_class", "decode_responses", "encoding"}


@pytest.mark.parametrize("level", [None, ssl.CERT_NONE, "none"])
def test_tls_without_verification_stays_so(level: Any) -> None:
    """In the words of redis-py."""
    theirs = valkey.Valkey(ssl=True, ssl_cert_reqs=level)
    options = connection_options(theirs.connection_pool)
    assert options["connection_class"] is redis.SSLConnection
    assert options["ssl_cert_reqs"] == "none"


def test_connections_of_another_kind_are_refused() -> None:
    """They may lead anywhere."""
    pool = valkey.ConnectionPool(connection_class=AbstractConnection)
    with pytest.raises(InvalidSetting, match="AbstractConnection: give a URL instead"):
        Meter(client=valkey.Valkey(connection_pool=pool))
