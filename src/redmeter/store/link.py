"""Link: what the store needs of a connection to Redis.

Implemented by `ServerLink` and `SentinelLink` for one server, by `ClusterLink` for the nodes of a
cluster, by `FanOut` for reads of all shards, and by test doubles.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from redmeter.store.replies import Command, Reply


class Link(Protocol):
    """Exchanges commands with a server, or with all servers of a cluster."""

    #: The address, without credentials.
    location: str

    def exchange(
        self, commands: Sequence[Command], take: Callable[[Reply], Any] | None = None
    ) -> list[Reply]:
        """Send commands together and return one reply for each; a server's error is a reply.

        Args:
            take: called with each reply, on one server as it arrives; its results are returned
                instead.

        Raises:
            StoreUnavailable: there is no connection, or it broke.
            StoreError: the server refuses the connection.
        """
        ...

    def collect(self, commands: Sequence[Command], *, spin: bool = False) -> list[Reply]:
        """Exchange commands; a command that was not answered has the error as its reply.

        Args:
            spin: look for the reply without sleeping for a moment, where that is faster.
        """
        ...

    def bounded(self, seconds: float) -> AbstractContextManager[None]:  # noqa: ARG002
        """Limit the exchanges of this thread to so many seconds where the client is a caller's."""
        return nullcontext()

    def best_effort(self) -> "Link":
        """Return a link for reads that continue without unreachable servers."""
        return self

    def skipped(self) -> list[str]:
        """Return what best-effort reads left out, as sentences: "HOST:PORT does not answer"."""
        return []

    def unreachable(self) -> list[str]:
        """Return the servers of a cluster that did not answer the last time."""
        return []

    def by_server(self, keys: Sequence[str]) -> dict[str, list[int]]:
        """Return the positions of the keys that each server has."""
        ...

    def servers(self) -> "Sequence[Link]":
        """Return a link to each server."""
        ...

    def ask_servers(self, commands: Sequence[Command]) -> dict[str, list[Reply]]:
        """Send the same commands to each server, and return the replies by its address."""
        ...

    def retry_after(self, key: str) -> float:  # noqa: ARG002
        """Return the seconds for which the server that has a key is not contacted."""
        return 0.0

    def recover(self) -> None:
        """Prepare for another exchange after a connection broke."""
        ...

    def cap_timeout(self, seconds: float) -> None:
        """From now on, wait for a reply no longer than about that."""
        ...

    def close(self) -> None:
        """Close the connections, unless they are a caller's."""
        ...
