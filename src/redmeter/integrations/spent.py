"""Spent: how much of a request's or a task's time went into one thing, the database for example.

Problem: a page is slow because of its own code or because of its queries. The middleware that times
the page does not see the queries, and the hook that times the queries does not know the page.

Idea: the middleware collects, and the hook adds the time of each part. A context variable connects
them: tasks inherit it, and so do threads that run in a copy of the context, as those of Starlette,
asgiref and asyncio.to_thread() do.

    with collecting() as spent:         # the middleware, around a request
        ...
            spend("db", 0.012, 1)       # the database's hook, somewhere within
        ...
    spent["db"]                         # 0.012 seconds
    spent.statements                    # 1
    spent.names()                       # {"SELECT orders WHERE id": 1}, if a name was passed

`spent = begin()` and `spent.end()` do the same without `with`; begin_if_enabled() costs next to
nothing unless a hook is installed.

A part counts for all nested collections that are open, and for none that has ended. Concurrent
parts are summed, so the sum may exceed the duration of the whole.

Bound: two look-ups and one addition per part. No lock, since each thread has its own sums. Memory
grows with threads, kinds and names.
"""

from _thread import get_ident
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: The kind of time that is spent waiting for a database.
DATABASE = "db"


class Spent:
    """The time spent since begin(), in seconds by kind, and the statements sent."""

    __slots__ = ("_names", "_open", "_outer", "_parts")

    def __init__(self, outer: "Spent | None") -> None:
        self._outer = outer
        #: (kind, thread) -> seconds, statements.
        self._parts: dict[tuple[str, int], tuple[float, int]] = {}
        #: (statement, thread) -> executions.
        self._names: dict[tuple[str, int], int] = {}
        self._open = True

    def __getitem__(self, kind: str) -> float:
        """Return the seconds that were spent on a kind; 0.0 if none were reported."""
        return sum([part[0] for (each, _), part in list(self._parts.items()) if each == kind])

    @property
    def statements(self) -> int:
        """How many statements were sent to a database; 0 if none were reported."""
        return sum([part[1] for part in list(self._parts.values())])

    def names(self) -> dict[str, int]:
        """Return the executions of each statement that has a name."""
        counts: dict[str, int] = {}
        for (name, _), count in list(self._names.items()):
            counts[name] = counts.get(name, 0) + count
        return counts

    def __bool__(self) -> bool:
        """Whether anything was spent: a cheap test."""
        return bool(self._parts)

    def end(self) -> None:
        """Stop collecting; later parts count for the enclosing collection only. Idempotent."""
        self._open = False
        if _current.get() is self:
            _current.set(self._outer)


_current: ContextVar[Spent | None] = ContextVar("redmeter_spent", default=None)


#: Whether a hook in this process reports parts.
_enabled = False


def enable() -> None:
    """Enable begin_if_enabled(), when a hook that reports parts is installed."""
    global _enabled
    _enabled = True


def begin() -> Spent:
    """Begin a collection in this context."""
    outer = _current.get()
    while outer is not None and not outer._open:  # ended in another task
        outer = outer._outer
    spent = Spent(outer)
    _current.set(spent)
    return spent


def begin_if_enabled() -> Spent | None:
    """Begin to collect if a hook in this process reports parts, else return None."""
    return begin() if _enabled else None


@contextmanager
def collecting() -> Iterator[Spent]:
    """Collect the parts within; the result can be read there, and afterwards."""
    spent = begin()
    try:
        yield spent
    finally:
        spent.end()


_NOTHING = 0.0, 0


def spend(kind: str, seconds: float, statements: int = 0, name: str = "") -> None:
    """Add time spent on a part of this context's request or task, if anything collects it.

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
