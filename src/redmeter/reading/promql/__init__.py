"""Reads of PromQL queries."""

from math import ceil

from redmeter.reading.export.listing import ExportList
from redmeter.results.promql import QueryResult
from redmeter.store import Store

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
    from redmeter.reading.promql.query import answer, result_of

    exports = ExportList(store, seconds=0)
    steps = None
    if window is not None:
        start, end, step = window
        until = exports.read().time() if end is None else end
        begin = start if start >= 0 else until + start
        steps = begin, until, step or max(1.0, ceil((until - begin) / _STEPS))
    return result_of(answer(exports, text, at, steps))
