"""Marks: labeled moments, such as deploys."""

from collections.abc import Sequence

from redmeter.store import Store
from redmeter.store.servers.replies import Command, raised
from redmeter.stored.keys import Keys
from redmeter.stored.mark import MAX_MARKS, parse_mark
from redmeter.types import Mark


def read_marks(
    store: Store, *, since: float | None = None, until: float | None = None
) -> list[Mark]:
    """Read the marks between two times, both included, the oldest first. One round trip.

    Args:
        since, until: Unix seconds; the newest 1,000 where there are more.

    Raises:
        StoreError: the server cannot be reached or refuses.
    """
    return read_marks_now(store, since=since, until=until)[1]


def read_marks_now(
    store: Store, *, since: float | None = None, until: float | None = None
) -> tuple[float, list[Mark]]:
    """Return the marks, and the server's clock, Unix seconds: see read_marks()."""
    view, (reply,) = store.read([asked(store.keys, since, until)])
    return view.now, answered(raised(reply))


def asked(keys: Keys, since: float | None = None, until: float | None = None) -> Command:
    """Return the command whose reply answered() takes: see read_marks()."""
    least = "-inf" if since is None else f"{since:.3f}"
    most = "+inf" if until is None else f"{until:.3f}"
    return ("ZREVRANGEBYSCORE", keys.marks, most, least, "LIMIT", "0", str(MAX_MARKS))


def answered(reply: Sequence[bytes]) -> list[Mark]:
    """Parse marks, the oldest first; other members are left out."""
    marks = [mark for member in reply if (mark := parse_mark(member)) is not None]
    return marks[::-1]
