"""PromQL queries of a store, their results, and lists of the label sets that selectors select.

A series is listed for a time range if a query within the range can return it: a counter or a
histogram from its first event on, a gauge for as long as it keeps a value.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from redmeter.export.prometheus_names import HISTOGRAM
from redmeter.promql.answers import seconds, series_of
from redmeter.promql.errors import BadQuery, Limits
from redmeter.promql.evaluator import Answer, Engine
from redmeter.promql.histogram import NativeHistogram
from redmeter.promql.histogram_functions import nearest_rank
from redmeter.promql.intervals import LOOKBACK, Intervals
from redmeter.promql.intervals.buckets import full_resolution
from redmeter.promql.nodes import Matcher, Selector
from redmeter.promql.parser import parse_query
from redmeter.promql.semantics import matches
from redmeter.promql.values import LabelSet, with_label
from redmeter.reading.export.listing import Exports
from redmeter.reading.promql.source import (
    BUCKET,
    COUNT,
    Chosen,
    QueriedStore,
    StoreSource,
    choose_series,
)
from redmeter.results.promql import (
    QueryBucket,
    QueryHistogram,
    QueryResult,
    QuerySample,
    QuerySeries,
)
from redmeter.store import Store
from redmeter.stored.families import STATES

#: Series of a selector whose times are read, and histograms whose bounds are read.
MAX_TIMED_SERIES, MAX_BOUNDED_HISTOGRAMS = 1_000, 50
#: A range that ends no longer ago than this ends now, milliseconds.
RECENT = 60_000

UNTIMED = (
    f"over {MAX_TIMED_SERIES:,} series are selected: series outside of the time range are listed"
    " too. Add label matchers"
)
UNBOUNDED = (
    f"over {MAX_BOUNDED_HISTOGRAMS} histograms are selected: of the label le, only +Inf is listed."
    " Add label matchers"
)


def engine(source: StoreSource, limits: Limits | None = None, lookback: int = LOOKBACK) -> Engine:
    """Return an engine that answers queries from a store; `lookback` is in milliseconds."""
    semantics = Intervals(source, lookback)
    return Engine(
        semantics,
        limits or Limits(),
        rewrite=full_resolution,
        native_quantile=nearest_rank,
    )


def answer(
    store: QueriedStore,
    series: Exports,
    text: str,
    at: float | None,
    window: tuple[float, float, float] | None,
    limits: Limits | None = None,
    lookback: int = LOOKBACK,
) -> Answer:
    """Return the answer to a query.

    Args:
        series: what the store exports.
        at: Unix seconds; None: now.
        window: start, end and step in seconds; None: at one time.
        lookback: how long gauges keep their last value, milliseconds.

    Raises:
        QueryError: the query cannot be answered.
        LimitExceeded, StoreError: of the store.
    """
    source = StoreSource(store, series)
    evaluator = engine(source, limits, lookback)
    if window is not None:
        start, end, step = (round(number * 1000) for number in window)
        found = evaluator.range(text, start, end, step)
    else:
        time = series.time() if at is None else at
        found = evaluator.instant(text, round(time * 1000))
    return replace(found, infos=[*found.infos, *source.infos])


def result_of(answer: Answer) -> QueryResult:
    """Return an answer as a result."""
    notes = tuple(answer.warnings), tuple(answer.infos)
    if isinstance(answer.value, str):
        return QueryResult("string", (), answer.value, *notes)
    rows = []
    for labels, samples in series_of(answer):
        points = tuple(QuerySample(seconds(time), _value(value)) for time, value in samples)
        rows.append(QuerySeries(dict(labels), points))
    return QueryResult(answer.kind.value, tuple(rows), "", *notes)


def _value(value: float | NativeHistogram) -> float | QueryHistogram:
    if isinstance(value, float):
        return value
    buckets = [QueryBucket(one.lower, one.upper, one.count) for one in value.buckets()]
    return QueryHistogram(value.count, value.sum, tuple(buckets))


# --- Label sets ------------------------------------------------------------------------------


def selectors(texts: Sequence[str]) -> list[tuple[Matcher, ...]]:
    """Return the matchers of series selectors.

    Raises:
        BadQuery: a text is no selector.
    """
    nodes = [(text, parse_query(text)) for text in texts]
    for text, node in nodes:
        if not isinstance(node, Selector) or node.offset or node.at is not None:
            raise BadQuery(f'{text[:200]} is no series selector. Give one such as {{job="api"}}')
    return [node.matchers for _, node in nodes if isinstance(node, Selector)]


@dataclass(frozen=True)
class SeriesListing:
    """Label sets, without repetition, and warnings."""

    labels: dict[LabelSet, None] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True)
class SeriesLister:
    """Lists label sets.

    Attributes:
        store, exports: where the series are.
        start, end: the time range in milliseconds; None: open.
        limits: bounds on the reads.
        bounds: list the bounds of classic buckets; else they all have the bound +Inf.
    """

    store: Store
    exports: Exports
    start: int | None
    end: int | None
    limits: Limits
    bounds: bool = True

    def list(self, selectors: Sequence[Sequence[Matcher]]) -> SeriesListing:
        """Return the label sets that any of the selectors selects.

        Raises:
            QueryError: the limits end it.
            StoreError: the store is unreachable or refuses.
        """
        listing = SeriesListing()
        for matchers in selectors:
            self.limits.interrupt()
            chosen = self._within(choose_series(self.exports, matchers), listing)
            buckets = [one for one in chosen if one.suffix == BUCKET]
            listing.labels.update((one.labels, None) for one in chosen if one.suffix != BUCKET)
            if self.bounds and 0 < len(buckets) <= MAX_BOUNDED_HISTOGRAMS:
                stored = self._source.read_chosen(buckets, matchers, self.start or 0, self.limits)
                labels = (each for table in stored.counters for each in table.labels)
                listing.labels.update(dict.fromkeys(labels))
                continue
            for one in buckets:
                labels_of_last = with_label(one.labels, "le", "+Inf")
                if matches(labels_of_last, matchers):
                    listing.labels[labels_of_last] = None
            if self.bounds and buckets:
                listing.warnings[UNBOUNDED] = None
        return listing

    @property
    def _source(self) -> StoreSource:
        return StoreSource(self.store, self.exports)

    def _within(self, chosen: Sequence[Chosen], listing: SeriesListing) -> Sequence[Chosen]:
        """Return the series that exist in the time range."""
        end = self.end
        if end is not None and end >= self.exports.time() * 1000 - RECENT:
            end = None
        gauges = [one for one in chosen if one.series.kind in STATES]
        timed = [] if self.start is None and end is None else gauges
        if end is not None:
            # Counts of a histogram show when it began.
            timed = [
                replace(one, suffix=COUNT) if one.series.kind == HISTOGRAM else one
                for one in chosen
            ]
        if not timed:
            return chosen
        if len(timed) > MAX_TIMED_SERIES:
            listing.warnings[UNTIMED] = None
            return chosen
        present = self._present(timed, end)
        left = {one.labels for one in timed} - present
        return [one for one in chosen if one.labels not in left]

    def _present(self, timed: Sequence[Chosen], end: int | None) -> set[LabelSet]:
        until = end if end is not None else round(self.exports.time() * 1000) + RECENT
        start = 0 if self.start is None else self.start
        since = max(min(start, until) - LOOKBACK, 0)
        stored = self._source.read_chosen(timed, (), since, self.limits)
        present = {
            labels
            for table in stored.counters
            for labels, birth in zip(table.labels, table.birth, strict=True)
            if birth <= until
        }
        for gauges in stored.gauges:
            after = start - max(LOOKBACK, gauges.width)
            present |= {
                series.labels
                for series in gauges.series
                if ((series.times > after) & (series.times <= until)).any()
            }
        return present
