"""Sources: what answers a query. A store, nothing, or in tests a meter's memory.

A question is one of the functions of reading/ that read a store, with its arguments. So a query
names that function itself; a source that is no store has an answer of its own for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from redmeter.clock import SYSTEM
from redmeter.queries.arguments import Time, query_window
from redmeter.store import Store
from redmeter.store.query import Query, run_query
from redmeter.stored.keys import DEFAULT_HISTOGRAMS, DEFAULT_RETENTION, Kept, Keys, Retention
from redmeter.types import Window

P = ParamSpec("P")
T = TypeVar("T")


class QuerySource(Protocol):
    """Answers the questions of queries/."""

    def run(
        self,
        query: Callable[Concatenate[Keys, P], Query[T]],
        /,
        *arguments: P.args,
        **options: P.kwargs,
    ) -> T:
        """Answer a question that is a query of a store's keys."""
        ...

    def ask(
        self, read: Callable[Concatenate[Store, P], T], /, *arguments: P.args, **options: P.kwargs
    ) -> T:
        """Answer a question that reads a store."""
        ...

    def kept(self, kind: str) -> tuple[Retention, float]:
        """Return the retention of a kind of series, and the time, Unix seconds."""
        ...


class FromStore:
    """Answers from a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def run(
        self,
        query: Callable[Concatenate[Keys, P], Query[T]],
        /,
        *arguments: P.args,
        **options: P.kwargs,
    ) -> T:
        """Run the query."""
        return run_query(self._store, lambda _: query(self._store.keys, *arguments, **options))[1]

    def ask(
        self, read: Callable[Concatenate[Store, P], T], /, *arguments: P.args, **options: P.kwargs
    ) -> T:
        """Read the store."""
        return read(self._store, *arguments, **options)

    def kept(self, kind: str) -> tuple[Retention, float]:
        """Read them, in one round trip."""
        view, _ = self._store.read()
        return view.retention_of(kind), view.now


class Answers:
    """Answers from a table: a function of reading/ -> one that takes its arguments."""

    def __init__(self, table: Mapping[Callable[..., Any], Callable[..., Any]]) -> None:
        self._table = table

    def run(self, query: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        """Answer by the table."""
        return self._table[query](*arguments, **options)

    ask = run

    def kept(self, kind: str) -> tuple[Retention, float]:
        """Return what a new store keeps."""
        return Retention(Kept(DEFAULT_RETENTION, DEFAULT_HISTOGRAMS).of(kind)), SYSTEM.wall()


def window_kept(
    source: QuerySource,
    kind: str,
    precision: int | str | None,
    since: Time | None,
    until: Time | None,
    last: int | str | None,
) -> Window:
    """Return the intervals that a query reads.

    Without a precision, that is the finest that keeps the whole window, or the one that reaches
    back farthest; it takes one round trip to know them.

    Raises:
        InvalidValue: see query_window().
    """
    window = query_window(precision, since, until, last)
    if precision is not None:
        return window
    from redmeter.reading.samples import finest

    return finest(window, *source.kept(kind))


class QueryBase:
    """Holds the store that queries read."""

    def __init__(self, store: Store | None) -> None:
        self._store = store

    def _window(
        self,
        kind: str,
        precision: int | str | None,
        since: Time | None,
        until: Time | None,
        last: int | str | None,
    ) -> Window:
        return window_kept(self._source, kind, precision, since, until, last)

    @property
    def _source(self) -> QuerySource:
        if self._store is not None:
            return FromStore(self._store.reader)
        # Imported with the first query: a process that only records does not load the readings.
        from redmeter.queries.off import OFF_ANSWERS

        return Answers(OFF_ANSWERS)
