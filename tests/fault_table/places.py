"""Places of the fault table: one server, a pair, Sentinel, a cluster; empty at each row."""

import abc
import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import redis
from redis.sentinel import Sentinel

from redmeter.stored.shards import SHARDS
from support.clusters import Cluster
from support.nodes import Node
from support.proxy import Proxy
from support.sentinels import SERVICE, Watched
from support.servers import Server
from support.waiting import eventually

#: Keys of totals: by a Meter, and by the book, whose listings have none: its days.
_TOTALS, _DAYS = "redmeter:*total:*", "count:86400:"


class Place(abc.ABC):
    """A store and its servers, started by `with place.row():` as new."""

    shards = 1

    def __init__(self, server: str) -> None:
        self.server_name = server

    @property
    @abc.abstractmethod
    def url(self) -> str:
        """The address that a Meter takes."""

    @abc.abstractmethod
    def row(self) -> contextlib.AbstractContextManager[None]:
        """Have it be whole and empty, for one row."""

    @abc.abstractmethod
    def primaries(self) -> list[Any]:
        """Return a client, which decodes, of each server that takes writes."""

    def client(self) -> Any:
        """Return a client for the functions of the book."""
        raise NotImplementedError

    def close(self) -> None:  # noqa: B027 - nothing runs between rows
        """End the servers."""

    def counted(self) -> Counter[str]:
        """Return what is stored: event -> how often it was counted."""
        found: Counter[str] = Counter()
        for client in self.primaries():
            for key in client.scan_iter(_TOTALS, count=1000):
                found.update({name: int(value) for name, value in client.hgetall(key).items()})
            for key in client.scan_iter(f"{_DAYS}*", count=1000):
                found[key.removeprefix(_DAYS)] += sum(map(int, client.hvals(key)))
        return found

    @staticmethod
    def hold(seconds: float) -> None:
        """Let the writer go on."""
        time.sleep(seconds)


class OneServer(Place):
    """A single server, without persistence at first; another one for each row."""

    server: Server

    @property
    def url(self) -> str:
        return self.server.url

    @contextlib.contextmanager
    def row(self) -> Iterator[None]:
        with Server(self.server_name) as self.server:
            yield

    def primaries(self) -> list[Any]:
        return [self.server.client(decode_responses=True)]

    def client(self) -> Any:
        return redis.Redis(port=self.server.port)


class Pair(Place):
    """Two servers, and an address that leads to one of them, as a proxy or a Service does.

    Attributes:
        server: the primary at first.
        other: its replica.
    """

    server: Server
    other: Server
    _proxy: Proxy

    @property
    def url(self) -> str:
        return self._proxy.url

    @contextlib.contextmanager
    def row(self) -> Iterator[None]:
        name = self.server_name
        with Server(name) as self.server, Server(name) as self.other:
            with self.other.client() as client:
                client.replicaof("127.0.0.1", str(self.server.port))
                eventually(lambda: client.info("replication")["master_link_status"] == "up")
            self._now = self.server
            with Proxy(self.server.port) as self._proxy:
                yield

    def switch(self, to: Server) -> None:
        """Have the address lead to the other one, which takes writes then."""
        with to.client() as client:
            client.execute_command("REPLICAOF", "NO", "ONE")
        self._now, self._proxy.target_port = to, to.port
        self._proxy.reset()

    def primaries(self) -> list[Any]:
        return [self._now.client(decode_responses=True)]

    def client(self) -> Any:
        return redis.Redis(port=self._proxy.port)


class SentinelGroup(Place):
    """A primary and two replicas, watched by three sentinels; others where a row spoilt them."""

    def __init__(self, server: str) -> None:
        super().__init__(server)
        self.group = self._started()

    def _started(self) -> Watched:
        return Watched(self.server_name).__enter__()

    @property
    def url(self) -> str:
        return self.group.url

    @contextlib.contextmanager
    def row(self) -> Iterator[None]:
        try:
            self.group.renew()
        except (AssertionError, redis.RedisError):
            self.group.close()
            self.group = self._started()
        yield

    def primaries(self) -> list[Any]:
        return [self.group.master.client(decode_responses=True)]

    def client(self) -> Any:
        ports = [sentinel.port for sentinel in self.group.sentinels]
        options = {"socket_timeout": 0.5, "socket_connect_timeout": 0.5}
        known: Any = Sentinel
        return known([("127.0.0.1", port) for port in ports], **options).master_for(SERVICE)

    def close(self) -> None:
        self.group.close()


class ThreeNodes(Place):
    """A cluster of three primaries with a replica each; another one where a row spoilt it."""

    shards = SHARDS

    def __init__(self, server: str) -> None:
        super().__init__(server)
        self.cluster = self._started()

    def _started(self) -> Cluster:
        return Cluster(self.server_name, network=True).__enter__()

    @property
    def url(self) -> str:
        return self.cluster.url

    @contextlib.contextmanager
    def row(self) -> Iterator[None]:
        if not self.cluster.renew():
            self.cluster.close()
            self.cluster = self._started()
        yield

    def primaries(self) -> list[Any]:
        return [node.client for node in self.cluster.masters()]

    def first(self) -> tuple[Node, Node]:
        """Return the first primary and its replica."""
        node = self.cluster.masters()[0]
        return node, self.cluster.replicas(node)[0]

    def close(self) -> None:
        self.cluster.close()
