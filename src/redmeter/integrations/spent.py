"""Spent: how much of a request's or a task's time went into one thing, the database for example.

Problem: a slow page is slow by itself or by its queries. Whoever times the page does not see the
queries, and whoever times the queries does not know for whom they were.

Idea: whoever times something as a whole says so, and whoever times a part of it tells how long it
took. A variable of the context brings them together: it goes along into tasks, and into threads
that are started with a copy of the context, as Starlette, asgiref and asyncio.to_thread() do.

    with collecting() as spent:         # the middleware, around a request
        ...
            spend("db", 0.012, 1)       # the database's hook, somewhere within
        ...
    spent["db"]                         # 0.012 seconds
    spent.statements                    # 1
    spent.names()                       # {"SELECT orders WHERE id": 1}, where a name was given

Where a `with` does not fit, `spent = begin()` and `spent.end()` do the same; begin_if_told() costs
next to nothing where no hook is installed that tells of anything.

Within one another, what is spent counts for all of them. What comes after the end counts for none.
Parts that run side by side add up, so their sum may be more than what the whole took.

Bound: two look-ups and an addition for each part; no lock, since each thread adds to sums of its
own; memory by threads and kinds.
"""

from _thread import get_ident
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: What is spent in a database, as a kind.
DATABASE = "db"


class Spent:
    """What was spent since begin(), by kind, seconds; and in how many statements."""

    __slots__ = ("_names", "_open", "_outer", "_parts")

    def __init__(self, outer: "Spent | None") -> None:
        self._outer = outer
        #: (kind, thread) -> seconds, statements.
        self._parts: dict[tuple[str, int], tuple[float, int]] = {}
        #: (statement, thread) -> executions.
        self._names: dict[tuple[str, int], int] = {}
        self._open = True

    def __getitem__(self, kind: str) -> float:
        """Return the seconds that were spent; 0.0 where nothing told of any."""
        return sum([part[0] for (found, _), part in list(self._parts.items()) if found == kind])

    @property
    def statements(self) -> int:
        """How many statements were sent to a database; 0 where nothing told of any."""
        return sum([part[1] for part in list(self._parts.values())])

    def names(self) -> dict[str, int]:
        """Return the executions of each statement that has a name."""
        counts: dict[str, int] = {}
        for (name, _), count in list(self._names.items()):
            counts[name] = counts.get(name, 0) + count
        return counts

    def __bool__(self) -> bool:
        """Whether anything was spent: asked first, it makes the usual case cheap."""
        return bool(self._parts)

    def end(self) -> None:
        """End it. Whatever comes later counts for what is around it. Once more does nothing."""
        self._open = False
        if _current.get() is self:
            _current.set(self._outer)


_current: ContextVar[Spent | None] = ContextVar("redmeter_spent", default=None)


#: Whether anything in this process tells of what is spent.
_told = False


def tell() -> None:
    """Say that this process has something that tells: for whoever installs a hook."""
    global _told
    _told = True


def begin() -> Spent:
    """Begin to collect what is spent in this context."""
    outer = _current.get()
    while outer is not None and not outer._open:  # ended in another task
        outer = outer._outer
    spent = Spent(outer)
    _current.set(spent)
    return spent


def begin_if_told() -> Spent | None:
    """Begin to collect, where anything in this process tells of what is spent."""
    return begin() if _told else None


@contextmanager
def collecting() -> Iterator[Spent]:
    """Collect what is spent within; it can be read there, and afterwards."""
    spent = begin()
    try:
        yield spent
    finally:
        spent.end()


_NOTHING = 0.0, 0


def spend(kind: str, seconds: float, statements: int = 0, name: str = "") -> None:
    """Add time spent on a part of the request or task in this context, if anybody collects it.

    Args:
        kind: for example DATABASE.
        seconds: how long it took.
        statements: how many statements were sent to a database.
        name: the group of the statement.
    """
    spent = _current.get()
    while spent is not None:
        if spent._open:
            thread = get_ident()
            key, parts = (kind, thread), spent._parts
            before = parts.get(key, _NOTHING)
            parts[key] = before[0] + seconds, before[1] + statements
            if name:
                names = spent._names
                names[name, thread] = names.get((name, thread), 0) + statements
        spent = spent._outer
