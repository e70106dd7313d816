"""A place: a store on private servers, and the ways to put it in trouble.

A fault is done when its method returns: the place is in order again then. `lossy` are those that
may cost what was stored shortly before; after all others nothing may be missing.
"""

import abc
import random
from collections.abc import Callable, Mapping
from typing import Any

#: Longest time from being acknowledged to being on disk, or on a replica, seconds.
LAG = 3.0

#: A replica takes the place of a primary that is well.
HANDED_OVER = "handed over"

#: Waits while the soak goes on.
Hold = Callable[[float], None]


class Place(abc.ABC):
    """A store and its servers.

    Args:
        chance: what is chosen by.
        hold: see Hold.
    """

    #: The names of those that may cost what was stored shortly before; those of `until_end` also
    #: what is stored until they are over.
    lossy: frozenset[str]
    until_end: frozenset[str] = frozenset()
    #: The shards that the last fault was about; None: all.
    touched: frozenset[int] | None = None

    def __init__(self, chance: random.Random, hold: Hold) -> None:
        self._chance = chance
        self._hold = hold

    @property
    @abc.abstractmethod
    def url(self) -> str:
        """The address that a Meter takes."""

    @abc.abstractmethod
    def start(self) -> None:
        """Start all servers."""

    @abc.abstractmethod
    def close(self) -> None:
        """End them."""

    @abc.abstractmethod
    def masters(self) -> frozenset[str]:
        """Return who takes writes: where that changes, there was a failover."""

    @abc.abstractmethod
    def clients(self) -> list[Any]:
        """Return a client, which decodes, of each server that takes writes."""

    @abc.abstractmethod
    def own_faults(self) -> Mapping[str, Callable[[], None]]:
        """What can be done to a place of this kind, by name."""

    def faults(self) -> Mapping[str, Callable[[], None]]:
        """What can be done to it, by name."""
        return {
            **self.own_faults(),
            "scripts forgotten": lambda: self._ask("SCRIPT", "FLUSH"),
            "connections closed": lambda: self._ask("CLIENT", "KILL", "TYPE", "normal"),
        }

    @abc.abstractmethod
    def _ask(self, *words: str) -> None:
        """Send a command to a server that takes writes."""

    def _wait(self, least: float, most: float) -> None:
        """Let the soak go on for a time between the two, seconds."""
        self._hold(self._chance.uniform(least, most))
