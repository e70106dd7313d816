"""The base of the query methods: the backend that executes them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from redmeter.store import Store

if TYPE_CHECKING:
    from redmeter.backends import Backend


class QueryBase:
    """Holds the store that queries read, and the backend that reads it."""

    def __init__(self, store: Store | None) -> None:
        self._store = store

    @cached_property
    def _backend(self) -> Backend:
        # Imported with the first query: a process that only records does not load the readings.
        from redmeter.backends import Backend, StoreBackend

        return Backend() if self._store is None else StoreBackend(self._store.reader)
