"""Nodes of the clusters that tests have, each a server, and how nodes see one another."""

import dataclasses
import functools
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from support.servers import Server


@dataclasses.dataclass(frozen=True)
class Seen:
    """A node as another one sees it, or itself: a line of CLUSTER NODES."""

    id: str
    address: str
    flags: frozenset[str]
    master: str
    connected: bool
    slots: tuple[tuple[int, int], ...]
    moving: bool

    @classmethod
    def parse(cls, line: str) -> "Seen":
        """Read a line."""
        words = line.split()
        # [93-<-id] is a slot on its way.
        ranges = [word.partition("-") for word in words[8:] if not word.startswith("[")]
        return cls(
            id=words[0],
            address=words[1].partition("@")[0],
            flags=frozenset(words[2].split(",")),
            master="" if words[3] == "-" else words[3],
            connected=words[7] == "connected",
            slots=tuple((int(first), int(last or first)) for first, _, last in ranges),
            moving=any(word.startswith("[") for word in words[8:]),
        )

    @property
    def is_master(self) -> bool:
        """Whether it says, or others say, that it takes writes."""
        return "master" in self.flags


class Node:
    """One of a cluster's nodes: a server with a name within the cluster.

    Attributes:
        server: the process.
        number: which it is, from 0 on; 0 to 2 are the primaries at first.
        port: the one that others know.
    """

    def __init__(self, server: Server, number: int) -> None:
        self.server = server
        self.number = number
        self.port = 0
        self.bus_port = 0
        self.cut_off = False
        self._client: Any = None

    def __repr__(self) -> str:
        return f"<Node {self.number} at {self.address}, {self.server!r}>"

    @property
    def address(self) -> str:
        """Where others reach it, "127.0.0.1:7000"."""
        return f"127.0.0.1:{self.port}"

    @functools.cached_property
    def id(self) -> str:
        """What it is called within the cluster."""
        return str(self.ask("CLUSTER", "MYID"))

    @property
    def reachable(self) -> bool:
        """Whether others can talk to it."""
        return self.server.running and not self.server.paused and not self.cut_off

    @property
    def client(self) -> Any:
        """A client on this node alone, which decodes and tries nothing again."""
        if self._client is None:
            self._client = redis.Redis(
                unix_socket_path=str(self.server.socket),
                decode_responses=True,
                retry=Retry(NoBackoff(), 0),
                socket_timeout=5.0,
            )
        return self._client

    def ask(self, *words: str | int) -> Any:
        """Send a command to this node, whatever the cluster says; return the answer as text."""
        return self.client.execute_command(*words)

    def info(self, section: str) -> dict[str, Any]:
        """Return a section of INFO."""
        found: dict[str, Any] = self.client.info(section)
        return found

    def view(self) -> list[Seen]:
        """Return the cluster as this node sees it."""
        return [Seen.parse(line) for line in self.ask("CLUSTER", "NODES").splitlines()]

    def close(self) -> None:
        """End the client and the process."""
        if self._client is not None:
            self._client.close()
        self.server.kill()  # asked to end, a primary would wait for its replicas
        self.server.close()
