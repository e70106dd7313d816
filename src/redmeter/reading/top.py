"""top: the series, or the values of a label, that are the highest within a window.

Counters are ranked by their counts or failures, histograms by count, total, mean or a percentile.
The series are read page by page: the server looks up the intervals of up to RANKING_PAGE series in
one round trip (see join.py). The histograms of a bounded number of series follow for percentiles
(see ranking.py).

The newest intervals of histograms are read from the fewest intervals of all precisions, e.g. two
hours of minutes from hours and some minutes. Everything else is read from the intervals of the
precision: windows in the past, and counters, of which another program may write one precision only.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from redmeter.errors import LimitExceeded, StoreRefused
from redmeter.reading.distributions import slices_answered, slices_asked
from redmeter.reading.foreign_keys import warn_of
from redmeter.reading.join import Budget, Joined, of_counts, of_window, read_on
from redmeter.reading.names import find_names, matching
from redmeter.reading.ranking import (
    MatchingSeries,
    Order,
    choose_candidates,
    quantile_of,
    rank,
    rank_percentiles,
    ranked_groups,
    ranked_window,
    single_name,
    sums_of,
)
from redmeter.reading.samples import newest_intervals
from redmeter.reading.selection import LabelSets, check_asked, check_labels, has_labels, lacking
from redmeter.reading.windows import Coverage, window_of
from redmeter.results.series import CoveredWindow, Ranking
from redmeter.store import Store, View
from redmeter.store.query import Query, run_query, together
from redmeter.store.servers.replies import raised
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.families import SERIES_KINDS
from redmeter.stored.keys import Kept, Keys
from redmeter.stored.moments import Sums
from redmeter.types import RANKED_INTERVALS, Top

#: Series of one ranking at most, and of one round trip.
MAX_RANKED_SERIES, RANKING_PAGE = 20_000, 1_000
#: Series whose histograms one round trip reads.
HISTOGRAM_PAGE = 500


def read_top(store: Store, wanted: Top) -> Ranking:
    """Rank series or the values of a label: see top()."""
    return run_query(store, lambda kept: top(store.keys, kept, wanted))[1]


def top(keys: Keys, kept: Kept, wanted: Top) -> Query[Ranking]:
    """Rank series or the values of a label.

    One round trip for each RANKING_PAGE series, and for percentiles one for each HISTOGRAM_PAGE.
    Counters are ranked by count; if none match, histograms are, after another round trip.

    Keys under which another program stores something else are left out: see foreign_keys.py.

    Args:
        keys: names of the store's keys.
        kept: the store's retention.
        wanted: the arguments of Meter.top().

    Raises:
        WrongKind: nothing can be ranked, and the name is one of another kind.
        UnknownLabel: no series of the name, or of the pattern, has a label of the arguments.
        UnknownPrecision: it is not kept.
        LimitExceeded: over MAX_RANKED_SERIES series.
        StoreError: the server is unreachable or refuses.
    """
    order = Order.parse(wanted.order)
    series, *others = (_Series(keys, wanted, kept, kind) for kind in order.kinds)
    replies = yield from series.read()
    for other in others if not replies else ():
        replies = yield from other.read()
        series = other if replies else series
    window = series.window()
    if (name := single_name(wanted)) is not None:
        failing = wanted.failing or ()
        yield from check_asked(keys, series.view, name, order.kinds, replies, failing)
    elif missing := lacking([*(wanted.where or ()), *(wanted.failing or ())], replies):
        names_of_kinds = yield from together(
            [find_names(keys, kept, wanted.name, kind) for kind in SERIES_KINDS]
        )
        check_labels(wanted.name, missing, [*chain.from_iterable(names_of_kinds)])
    groups = ranked_groups({name: series.sums_of(reply) for name, reply in replies.items()}, wanted)
    if order.q is None:
        values = {key: group.value(order) for key, group in groups.items()}
        return replace(rank(groups, values, wanted), intervals=len(window.starts), window=window)
    chosen, left_out = choose_candidates(groups, order.q, wanted.limit)
    names = [name for key in chosen for name in groups[key].series]
    merged = yield from _distributions(keys, names, series.fields())
    values = {key: quantile_of(order.q, map(merged.get, groups[key].series)) for key in chosen}
    values = {key: value for key, value in values.items() if value is not None}
    ranking = rank_percentiles(groups, values, left_out, order.q, wanted)
    return replace(ranking, intervals=len(window.starts), window=window)


def _distributions(
    keys: Keys, names: Sequence[str], fields: Mapping[int, Sequence[int]]
) -> Query[dict[str, Distribution]]:
    """Read the histograms of series, each merged over some intervals.

    Args:
        fields: precision -> starts of intervals.
    """
    distribution_of: dict[str, Distribution] = {}
    for at in range(0, len(names) if fields else 0, HISTOGRAM_PAGE):
        page = names[at : at + HISTOGRAM_PAGE]
        _, texts = yield slices_asked(keys, page, fields)
        distribution_of |= slices_answered(page, fields, texts)
    return distribution_of


class _Series:
    """The series of one kind that are ranked."""

    def __init__(self, keys: Keys, wanted: Top, kept: Kept, kind: str) -> None:
        self._wanted, self._kind, stored = wanted, kind, SERIES_KINDS[kind]
        assert stored.events
        precision = wanted.window.precision
        self._members: LabelSets | MatchingSeries = (
            LabelSets(keys, keys.key(stored.index.name), precision, wanted.name)
            if wanted.by
            else MatchingSeries(keys, kind, precision, wanted.name)
        )
        #: The part of the keys before the precision.
        self._family = keys.key(stored.events.name)
        self._kept = kept.of(kind)
        #: What the store looked like when they were read.
        self.view: View
        self._intervals = range(0)
        self._past = wanted.window.since is not None or wanted.window.until is not None
        self._foreign: list[StoreRefused] = []

    def read(self) -> Query[dict[str, Sequence[bytes]]]:
        """Read the intervals of each series: [start, value, …]; none if the precision is not kept.

        Raises:
            LimitExceeded: over MAX_RANKED_SERIES series.
        """
        if self._wanted.window.precision not in self._kept:
            self.view, _ = yield ()
            return {}
        members, window = self._members, self._coverage()
        asks = [(of_counts if self._kind == "counter" else of_window)(self._family, window)]
        reads = [members.join(asks, RANKING_PAGE), members.size()]
        if isinstance(members, LabelSets):
            reads.append(members.join_base(asks))
        self.view, (joined, size, *base) = yield reads
        number = raised(size)
        if number > MAX_RANKED_SERIES:
            raise LimitExceeded("series", number, MAX_RANKED_SERIES, "narrow the pattern down")
        self._intervals = self.window().starts
        pages = [Joined(reply, 1) for reply in (joined, *base)]
        yield from read_on(
            pages[0], partial(members.join, asks), Budget(number, RANKING_PAGE), pages.append
        )
        replies_of = {name: reply for page in pages for name, reply in self._matching(page)}
        if self._foreign and not replies_of:
            raise self._foreign[0]
        warn_of(self._foreign)
        return replies_of

    def window(self) -> CoveredWindow:
        """Return the intervals that are ranked, after read().

        Raises:
            UnknownPrecision: the precision is not kept.
        """
        return ranked_window(self._wanted, self.view.retention_of(self._kind), self.view.now)

    def sums_of(self, reply: Sequence[bytes]) -> Sums:
        """Return the moments of a series; of a counter, its count."""
        return sums_of(self._kind, reply, self._intervals if self._past else None)

    def fields(self) -> Mapping[int, Sequence[int]]:
        """Return the intervals that are ranked: precision -> starts."""
        if self._past:
            return {self._wanted.window.precision: self._intervals} if self._intervals else {}
        return self._coverage().slices(self.view.now)

    def _coverage(self) -> Coverage:
        width, last = self._wanted.window.precision, self._wanted.window.last
        kept = self._kept[width]
        if self._past:
            return Coverage(width, kept, (width,))
        count = min(RANKED_INTERVALS if last is None else newest_intervals(last, width), kept)
        if self._kind == "histogram":
            return window_of(self._kept, width, count)
        return Coverage(width, count, (width,))

    def _matching(self, joined: Joined) -> Iterator[tuple[str, Sequence[bytes]]]:
        """Yield the series that match, and note the keys of another program."""
        wanted, found = self._wanted, dict[str, Sequence[bytes]]()
        for member, (reply,) in joined.readable():
            try:
                name = member.decode().partition(":")[2]
            except UnicodeDecodeError:
                continue  # written by another program
            if name:
                found[name] = reply
        for member, error in joined.foreign:
            name = member.decode(errors="replace")
            detail = error.detail if isinstance(error, StoreRefused) else str(error)
            self._foreign.append(StoreRefused("WRONGTYPE", detail, self._family + name))
        for name in found if wanted.by else matching(found, wanted.name):
            if not wanted.where or has_labels(name, wanted.where):
                yield name, found[name]
