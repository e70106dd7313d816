"""A place: a store on private servers, and the ways to put it in trouble.

A fault is done when its method returns: the place is in order again then. `lossy` are those that
may cost what was stored shortly before; after all others nothing may be missing.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

#: Longest time from being acknowledged to being on disk, or on a replica, seconds.
LAG = 3.0

#: A replica takes the place of a master that is well.
HANDED_OVER = "handed over"

#: Waits while the soak goes on.
Hold = Callable[[float], None]


class Place(Protocol):
    """A store and its servers."""

    @property
    def url(self) -> str:
        """The address that a Meter takes."""
        ...

    def start(self) -> None:
        """Start all servers."""
        ...

    def close(self) -> None:
        """End them."""
        ...

    def faults(self) -> Mapping[str, Callable[[], None]]:
        """What can be done to it, by name."""
        ...

    #: The names of those that may cost what was stored shortly before; those of `until_end` also
    #: what is stored until they are over.
    lossy: frozenset[str]
    until_end: frozenset[str]
    #: The partitions that the last fault was about; None: all.
    touched: frozenset[int] | None

    def masters(self) -> frozenset[str]:
        """Return who takes writes: where that changes, there was a failover."""
        ...

    def clients(self) -> list[Any]:
        """Return a client, which decodes, of each server that takes writes."""
        ...
