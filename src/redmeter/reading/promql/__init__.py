"""Reads of PromQL queries."""

from math import ceil
from typing import TYPE_CHECKING

from redmeter.reading.export.listing import ExportList, Exports
from redmeter.results.promql import QueryResult
from redmeter.store import Store

if TYPE_CHECKING:
    from redmeter.reading.promql.source import QueriedStore

#: Steps of a query over time by default.
_STEPS = 100

#: A range query: its start, or minus its length; its end, or None for now; its step, or None.
QueryRange = tuple[float, float | None, float | None]


def read_query(store: Store, text: str, at: float | None, window: QueryRange | None) -> QueryResult:
    """Answer a query.

    Args:
        at: Unix seconds; None: now.
        window: None: at one time.

    Raises:
        QueryError: the query cannot be answered.
        MissingExtra: the extra is not installed.
        LimitExceeded, StoreError: of the store.
    """
    return query_result(store, ExportList(store, seconds=0).read(), text, at, window)


def query_result(
    store: "QueriedStore",
    series: Exports,
    text: str,
    at: float | None,
    window: QueryRange | None,
) -> QueryResult:
    """Answer the same, given what the store exports."""
    from redmeter.reading.promql.query import answer, result_of

    steps = None
    if window is not None:
        start, end, step = window
        until = series.time() if end is None else end
        begin = start if start >= 0 else until + start
        steps = begin, until, step or max(1.0, ceil((until - begin) / _STEPS))
    return result_of(answer(store, series, text, at, steps))
