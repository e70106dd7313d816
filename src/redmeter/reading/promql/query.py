"""PromQL queries of a store, and their results."""

from typing import Literal

from redmeter.promql.answers import seconds, series_of
from redmeter.promql.errors import Limits
from redmeter.promql.evaluator import Answer, Engine
from redmeter.promql.histogram import Histogram
from redmeter.promql.intervals import LOOKBACK, Intervals
from redmeter.promql.intervals.buckets import full_resolution
from redmeter.promql.nodes import Kind
from redmeter.reading.export.listing import ExportList, Exports
from redmeter.reading.promql.source import StoreSource
from redmeter.results import (
    QueryBucket,
    QueryHistogram,
    QueryResult,
    QuerySample,
    QuerySeries,
)
from redmeter.store import Store


def engine(
    store: Store, exports: Exports, limits: Limits | None = None, lookback: int = LOOKBACK
) -> Engine:
    """Return an engine that answers queries from a store; `lookback` is in milliseconds."""
    semantics = Intervals(StoreSource(store, exports), lookback)
    return Engine(semantics, limits or Limits(), rewrite=full_resolution)


def query(
    exports: ExportList, text: str, at: float | None, window: tuple[float, float, float] | None
) -> QueryResult:
    """Answer a query.

    Args:
        at: Unix seconds; None: now.
        window: start, end and step in seconds; None: at one time.

    Raises:
        QueryError: the query cannot be answered.
        LimitExceeded, StoreError: of the store.
    """
    return result_of(answer(exports, text, at, window), instant=window is None)


def answer(
    exports: ExportList,
    text: str,
    at: float | None,
    window: tuple[float, float, float] | None,
    limits: Limits | None = None,
    lookback: int = LOOKBACK,
) -> Answer:
    """Return the answer of the evaluator; the arguments are those of query().

    Args:
        lookback: how long gauges keep their last value, milliseconds.
    """
    series = exports.read()
    evaluator = engine(exports.store, series, limits, lookback)
    if window is not None:
        start, end, step = (round(number * 1000) for number in window)
        return evaluator.range(text, start, end, step)
    time = series.time() if at is None else at
    return evaluator.instant(text, round(time * 1000))


def result_of(answer: Answer, *, instant: bool) -> QueryResult:
    """Return an answer as a result."""
    notes = tuple(answer.warnings), tuple(answer.infos)
    if isinstance(answer.value, str):
        return QueryResult("string", (), answer.value, *notes)
    rows = []
    for labels, samples in series_of(answer):
        points = tuple(QuerySample(seconds(time), _value(value)) for time, value in samples)
        rows.append(QuerySeries(dict(labels), points))
    kind: Literal["scalar", "vector", "matrix"] = "matrix"
    if instant and answer.kind is Kind.SCALAR:
        kind = "scalar"
    elif instant and answer.kind is Kind.VECTOR:
        kind = "vector"
    return QueryResult(kind, tuple(rows), "", *notes)


def _value(value: float | Histogram) -> float | QueryHistogram:
    if isinstance(value, float):
        return value
    buckets = [QueryBucket(one.lower, one.upper, one.count) for one in value.buckets()]
    return QueryHistogram(value.count, value.sum, tuple(buckets))
