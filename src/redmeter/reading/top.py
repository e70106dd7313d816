"""top: the series, or the values of a label, that are the highest within a window.

Counters are ranked by their counts or failures, histograms by count, total, mean or a percentile.
The series are read page by page: the server looks up the intervals of up to PAGE series in one
round trip (see join.py). The histograms of a bounded number of series follow for percentiles (see
ranking.py).

The newest intervals of histograms are read from the fewest intervals of all precisions, e.g. two
hours of minutes from hours and some minutes. Everything else is read from the intervals of the
precision: windows in the past, and counters, of which another program may write one precision only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from redmeter.errors import LimitExceeded, StoreRefused
from redmeter.reading.distributions import slices_answered, slices_asked
from redmeter.reading.foreign_keys import warn_of
from redmeter.reading.join import Ask, Joined, join, of_counts, of_window, read_on
from redmeter.reading.names import matching, matching_ends
from redmeter.reading.ranking import (
    Order,
    choose,
    groups_of,
    intervals_of,
    rank,
    rank_percentiles,
    single_name,
)
from redmeter.reading.samples import newest_intervals
from redmeter.reading.selection import LabelSets, check_kind, has_labels
from redmeter.reading.windows import Coverage, window_of
from redmeter.results.series import Ranking
from redmeter.store import Store, View, indexes
from redmeter.store.query import Query, Read, run
from redmeter.store.servers.replies import raised
from redmeter.stored import counter
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.keys import Kept, Keys, entry
from redmeter.stored.moments import Sums, merge_all
from redmeter.stored.packed_text import merge_moments
from redmeter.types import RANKED_INTERVALS, Top

#: Series of one ranking at most, and of one round trip.
MAX_SERIES, PAGE = 20_000, 1_000
#: Series whose histograms one round trip reads.
HISTOGRAM_PAGE = 500


def read_top(store: Store, wanted: Top) -> Ranking:
    """Rank series or the values of a label: see top()."""
    return run(store, lambda kept: top(store.keys, kept, wanted))[1]


def top(keys: Keys, kept: Kept, wanted: Top) -> Query[Ranking]:
    """Rank series or the values of a label.

    One round trip for each PAGE series, and for percentiles one for each HISTOGRAM_PAGE. Counters
    are ranked by count; if none match, histograms are, after another round trip.

    Keys under which another program stores something else are left out: see foreign_keys.py.

    Args:
        keys: names of the store's keys.
        kept: the store's retention.
        wanted: the arguments of Meter.top().

    Raises:
        WrongKind: nothing can be ranked, and the name is one of another kind.
        UnknownPrecision: it is not kept.
        LimitExceeded: too many intervals, or over MAX_SERIES series.
        StoreError: the server is unreachable or refuses.
    """
    order = Order.parse(wanted.order)
    series, *others = (
        _Series(keys, wanted, kept, histograms=kind == "histogram") for kind in order.kinds
    )
    replies = yield from series.read()
    for other in others if not replies else ():
        replies = yield from other.read()
        series = other if replies else series
    size = series.size()
    if not replies and (name := single_name(wanted)) is not None:
        yield from check_kind(keys, series.view, name, order.kinds)
    groups = groups_of({name: series.sums_of(reply) for name, reply in replies.items()}, wanted)
    if order.q is None:
        values = {key: group.value(order) for key, group in groups.items()}
        return replace(rank(groups, values, wanted), intervals=size)
    chosen, left_out = choose(groups, order.q, wanted.limit)
    names = [name for key in chosen for name in groups[key].series]
    merged = yield from _distributions(keys, names, series.fields())
    values = {}
    for key in chosen:
        readable = (merged[name] for name in groups[key].series if name in merged)
        whole = merge_all(Distribution(), readable)
        if whole.count:
            values[key] = whole.quantile(order.q)
    ranking = rank_percentiles(groups, values, left_out, order.q, wanted)
    return replace(ranking, intervals=size)


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
    """The series of one kind that are ranked.

    Args:
        keys: names of the store's keys.
        wanted: the ranking.
        kept: the store's retention.
        histograms: rank histograms, not counters.
    """

    def __init__(self, keys: Keys, wanted: Top, kept: Kept, *, histograms: bool) -> None:
        self._keys, self._wanted, self._histograms = keys, wanted, histograms
        self._index = keys.hists if histograms else keys.known
        #: The part of the keys before the precision.
        self._family = keys.key("moments") if histograms else keys.key("count")
        self._kept = kept.histograms if histograms else kept.series
        #: What the store looked like when they were read.
        self.view: View
        self._intervals = range(0)
        self._past = wanted.window.since is not None or wanted.window.until is not None
        self._foreign: list[StoreRefused] = []

    def read(self) -> Query[dict[str, Sequence[bytes]]]:
        """Read the intervals of each series: [start, value, …]; none if the precision is not kept.

        Raises:
            LimitExceeded: over MAX_SERIES series.
        """
        if self._wanted.window.precision not in self._kept:
            self.view, _ = yield ()
            return {}
        window = self._window()
        asks = [(of_window if self._histograms else of_counts)(self._family, window)]
        self.view, replies = yield [self._page(asks, b""), *self._others(asks)]
        number = raised(replies[1])
        if number > MAX_SERIES:
            raise LimitExceeded("series", number, MAX_SERIES, "narrow the pattern down")
        self._intervals = self._ranked()
        first, *base = (Joined(reply, 1) for reply in (replies[0], *replies[2:]))
        replies_of: dict[str, Sequence[bytes]] = {}

        def take(page: Joined) -> None:
            replies_of.update(self._matching(page))

        for page in (first, *base):
            take(page)
        yield from read_on(first, partial(self._page, asks), PAGE, number, take)
        if self._foreign and not replies_of:
            raise self._foreign[0]
        warn_of(self._foreign)
        return replies_of

    def size(self) -> int:
        """Return how many intervals are ranked.

        Raises:
            UnknownPrecision: the precision is not kept.
        """
        return len(self._ranked())

    def sums_of(self, reply: Sequence[bytes]) -> Sums:
        """Return the moments of a series; of a counter, its count."""
        intervals = self._intervals if self._past else None
        if self._histograms:
            if intervals is None:
                return merge_moments(reply[1::2])
            pairs = zip(reply[::2], reply[1::2], strict=True)
            return merge_moments(text for start, text in pairs if int(start) in intervals)
        counts = counter.parse(list(zip(reply[::2], reply[1::2], strict=True)))
        if intervals is None:
            return Sums(sum(counts.values()))
        return Sums(sum(count for start, count in counts.items() if start in intervals))

    def fields(self) -> Mapping[int, Sequence[int]]:
        """Return the intervals that are ranked: precision -> starts."""
        if self._past:
            return {self._wanted.window.precision: self._intervals} if self._intervals else {}
        return self._window().slices(self.view.now)

    def _ranked(self) -> range:
        retention = self.view.histograms if self._histograms else self.view.retention
        return intervals_of(self._wanted, retention, self.view.now)

    def _window(self) -> Coverage:
        width, last = self._wanted.window.precision, self._wanted.window.last
        kept = self._kept[width]
        if self._past:
            return Coverage(width, kept, (width,))
        # More than are kept is refused by intervals_of().
        count = min(RANKED_INTERVALS if last is None else newest_intervals(last, width), kept)
        if self._histograms:
            return window_of(self._kept, width, count)
        return Coverage(width, count, (width,))

    def _page(self, asks: Sequence[Ask], after: bytes) -> Read:
        query = self._wanted
        if query.by:
            return self._label_sets().join(asks, PAGE, after)
        first, last = matching_ends(query.window.precision, query.name)
        ends = (b"(" + after if after else first, last)
        cut = len(entry(query.window.precision, ""))
        return join(self._keys, self._index, ends, cut, asks, count=PAGE)

    def _others(self, asks: Sequence[Ask]) -> list[Read]:
        """Return the read that counts the series, and with a label that of the base series."""
        query = self._wanted
        if query.by:
            return [self._label_sets().size(), self._label_sets().join_base(asks)]
        ends = matching_ends(query.window.precision, query.name)
        return [indexes.size_between(self._keys, self._index, *ends)]

    def _label_sets(self) -> LabelSets:
        return LabelSets(self._keys, self._index, self._wanted.window.precision, self._wanted.name)

    def _matching(self, joined: Joined) -> dict[str, Sequence[bytes]]:
        """Return the series that match, and note the keys of another program."""
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
        names = found if wanted.by else set(matching(found, wanted.name))
        where = wanted.where
        return {n: found[n] for n in names if not where or has_labels(n, where)}
