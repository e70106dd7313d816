"""Stores that are migrated: something of each kind in one, what a store holds, and faults."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from redmeter import Meter
from redmeter.store import Store
from redmeter.store.servers.connection import ServerLink
from support.servers import Server
from support.waiting import eventually

#: Families that a migration leaves behind, as they follow the prefix and a tag.
LEFT = ("meta:", "batch:", "cleaned:")


def fill(url: str, *, series: int = 3, **options: Any) -> None:
    """Store something of each kind."""
    with Meter(url, **options) as meter:
        for number in range(series):
            labels = {"n": str(number)}
            meter.count("hits", number + 1, labels=labels)
            meter.observe("took:last", 0.5 * number, labels=labels)
            meter.observe("took:last", 3.0)
            meter.gauge("queue", labels=labels).set(number)
            meter.log(f"app.{number}", "job %s failed", number, severity="error")
        meter.gauge("connections", per_process=True).set(7)
        meter.mark("v1")
        meter.record_exception(KeyError("x"), route="/cart")
        assert meter.flush()


@contextlib.contextmanager
def replica_of(server: Server) -> Iterator[Server]:
    """Start a replica of a server, and wait until it has everything."""
    with (
        Server("valkey-9.1", config={"replicaof": ["127.0.0.1", str(server.port)]}) as replica,
        server.client() as client,
    ):
        client.config_set("repl-diskless-sync-delay", 0)
        eventually(lambda: client.info("replication").get("slave0", {}).get("state") == "online")
        yield replica


def held(clients: Iterable[Any], prefix: str = "redmeter:") -> dict[str, Any]:
    """Return everything that a migration copies: key without prefix and tag -> what it holds.

    Args:
        clients: one that does not decode for each server, or primary, of the store.
    """
    found: dict[str, Any] = {}
    for client in clients:
        for key in client.scan_iter(f"{prefix}*", count=1000):
            family = key.decode()[len(prefix) :]
            family = family.partition("}")[2] if family.startswith("{") else family
            if not family.startswith(LEFT):
                _merge(found, family, _value(client, key))
    return found


def _value(client: Any, key: bytes) -> Any:
    kind = client.type(key)
    if kind == b"hash":
        return client.hgetall(key)
    if kind == b"zset":
        return dict(client.zrange(key, 0, -1, withscores=True))
    return client.lrange(key, 0, -1) if kind == b"list" else client.get(key)


def _merge(found: dict[str, Any], family: str, value: Any) -> None:
    if isinstance(value, dict):
        found[family] = found.get(family, {}) | value
    else:
        assert family not in found
        found[family] = value


class Killed(BaseException):
    """Stands for SIGKILL: nothing of a process runs after it."""


class Killer:
    """Kills a mover at its Nth exchange with a server.

    Args:
        stores: those that it uses.
        at: number of the exchange, from 0 on.
        after: whether the exchange is carried out, and its replies are lost.
    """

    def __init__(self, monkeypatch: Any, stores: Iterable[Store], at: int, *, after: bool) -> None:
        self.exchanges = 0
        links = [store.shards[0].link for store in stores]
        whole = ServerLink.exchange

        def exchange(link: ServerLink, *args: Any, **options: Any) -> Any:
            if link not in links:
                return whole(link, *args, **options)
            self.exchanges += 1
            if self.exchanges - 1 < at:
                return whole(link, *args, **options)
            if self.exchanges - 1 == at and after:
                whole(link, *args, **options)
            raise Killed

        monkeypatch.setattr(ServerLink, "exchange", exchange)
