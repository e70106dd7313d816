"""Sources: what answers a query. A store, nothing, or in tests a meter's memory.

A question is one of the functions of reading/ that read a store, with its arguments. So a query
names that function itself; a source that is no store has an answer of its own for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from redmeter.store import Store
from redmeter.store.query import Query, run_query
from redmeter.stored.keys import Keys

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


class Answers:
    """Answers from a table: a function of reading/ -> one that takes its arguments."""

    def __init__(self, table: Mapping[Callable[..., Any], Callable[..., Any]]) -> None:
        self._table = table

    def run(self, query: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        """Answer by the table."""
        return self._table[query](*arguments, **options)

    ask = run


class QueryBase:
    """Holds the store that queries read."""

    def __init__(self, store: Store | None) -> None:
        self._store = store

    @property
    def _source(self) -> QuerySource:
        if self._store is not None:
            return FromStore(self._store.reader)
        # Imported with the first query: a process that only records does not load the readings.
        from redmeter.queries.off import OFF_ANSWERS

        return Answers(OFF_ANSWERS)
