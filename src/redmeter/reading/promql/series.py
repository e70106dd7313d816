"""Lists the label sets that PromQL selectors select within a time range.

A series is listed if a query within the range can return it: a counter or a histogram from its
first event on, a gauge for as long as it keeps a value.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from redmeter.export.prometheus_names import COUNTER, GAUGE
from redmeter.promql.errors import Limits
from redmeter.promql.intervals import LOOKBACK
from redmeter.promql.nodes import Matcher
from redmeter.promql.semantics import matches
from redmeter.promql.values import Labels, with_label
from redmeter.reading.export.listing import Exports
from redmeter.reading.promql.selectors import BUCKET, COUNT, Chosen, choose
from redmeter.reading.promql.source import StoreSource
from redmeter.store import Store

#: Series of a selector whose times are read, and histograms whose bounds are read.
MAX_TIMED, MAX_BOUNDED = 1_000, 50
#: A range that ends no longer ago than this ends now, milliseconds.
RECENT = 60_000

UNTIMED = (
    f"over {MAX_TIMED:,} series are selected: series outside of the time range are listed too."
    " Add label matchers"
)
UNBOUNDED = (
    f"over {MAX_BOUNDED} histograms are selected: of the label le, only +Inf is listed."
    " Add label matchers"
)


@dataclass(frozen=True)
class Listing:
    """Label sets, without repetition, and warnings."""

    labels: dict[Labels, None] = field(default_factory=dict)
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

    def list(self, selectors: Sequence[Sequence[Matcher]]) -> Listing:
        """Return the label sets that any of the selectors selects.

        Raises:
            QueryError: the limits end it.
            StoreError: the store is unreachable or refuses.
        """
        listing = Listing()
        for matchers in selectors:
            self.limits.interrupt()
            chosen = self._within(choose(self.exports, matchers), listing)
            buckets = [one for one in chosen if one.suffix == BUCKET]
            listing.labels.update((one.labels, None) for one in chosen if one.suffix != BUCKET)
            if self.bounds and 0 < len(buckets) <= MAX_BOUNDED:
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

    def _within(self, chosen: Sequence[Chosen], listing: Listing) -> Sequence[Chosen]:
        """Return the series that exist in the time range."""
        end = self.end
        if end is not None and end >= self.exports.time() * 1000 - RECENT:
            end = None
        gauges = [one for one in chosen if one.series.kind == GAUGE]
        timed = [] if self.start is None and end is None else gauges
        if end is not None:
            # Counts of a histogram show when it began.
            timed = [
                one if one.series.kind in (COUNTER, GAUGE) else replace(one, suffix=COUNT)
                for one in chosen
            ]
        if not timed:
            return chosen
        if len(timed) > MAX_TIMED:
            listing.warnings[UNTIMED] = None
            return chosen
        present = self._present(timed, end)
        left = {one.labels for one in timed} - present
        return [one for one in chosen if one.labels not in left]

    def _present(self, timed: Sequence[Chosen], end: int | None) -> set[Labels]:
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
