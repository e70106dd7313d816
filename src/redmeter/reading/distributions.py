"""Distributions of histograms: over a whole window, and interval by interval.

Only the newest samples of the retention count, as for counters; see samples.py. An interval has a
field in two hashes, buckets and moments. One without the other is ignored: see
stored/packed_text.py.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from redmeter.errors import LimitExceeded
from redmeter.reading.foreign_keys import readable
from redmeter.reading.samples import covered, first_sample, series_of
from redmeter.reading.selection import check_kinds
from redmeter.results.series import CoveredWindow, Series
from redmeter.results.summaries import Summary, Texts, distribution_of, summary_of
from redmeter.store import Store
from redmeter.store.query import Query, run_query
from redmeter.store.servers.replies import Command, Reply, is_misplaced, pairs, raised
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.keys import Keys
from redmeter.stored.packed_text import merge_distributions, parse_distribution
from redmeter.types import Window

#: Most series of one request, a summary of each.
MAX_SERIES = 500


def read_summaries(store: Store, names: Sequence[str], window: Window) -> dict[str, Summary]:
    """Read the distributions of many series in one round trip.

    A second one follows if there is nothing under a name: see check_kinds().

    Args:
        names: in their stored spelling.

    Returns:
        A summary for every name; an empty one if nothing is kept. Names under whose keys
        another program stores something else are left out: see foreign_keys.py.

    Raises:
        WrongKind: a name that has nothing is one of another kind.
        UnknownPrecision: histograms do not have it; the error lists those they have.
        LimitExceeded: over MAX_SERIES names.
        StoreError: the server is unreachable or refuses the command.
    """
    if len(names) > MAX_SERIES:
        raise LimitExceeded("summaries", len(names), MAX_SERIES, "ask for fewer at a time")
    view, replies = store.read(_whole_hashes(store, names, window.precision))
    grid = SummaryGrid(covered(window, view.histograms, view.now))
    replies_of = dict(zip(names, _two(replies), strict=True))
    if nothing := [name for name, hashes in replies_of.items() if not any(hashes)]:
        run_query(store, lambda _: check_kinds(store.keys, view, nothing, "histogram"))
    series = readable(replies_of)
    return {name: grid.summary(name, [hashes]) for name, hashes in series.items()}


def slices_asked(
    keys: Keys, names: Sequence[str], fields: Mapping[int, Sequence[int]]
) -> list[Command]:
    """Return the commands that read intervals of many series: buckets and moments of each.

    Args:
        fields: precision -> starts of intervals.
    """
    texts = {precision: [*map(str, starts)] for precision, starts in fields.items()}
    return [
        ("HMGET", key(precision, name), *starts)
        for name in names
        for precision, starts in texts.items()
        for key in (keys.hist, keys.moments)
    ]


def slices_answered(
    names: Sequence[str],
    fields: Mapping[int, Sequence[int]],
    replies: Sequence[Reply],
    *,
    needed: bool = True,
) -> dict[str, Distribution]:
    """Merge the intervals of each series, given the replies to slices_asked().

    Args:
        needed: raise if no series can be read: see readable().

    Returns:
        The series that can be read: see foreign_keys.py.
    """
    each = 2 * len(fields)
    by_name = {n: replies[at * each : (at + 1) * each] for at, n in enumerate(names)}
    merges = {}
    for name, mine in readable(by_name, needed=needed).items():
        texts = [
            text
            for buckets, moments in zip(mine[::2], mine[1::2], strict=True)
            for text in zip(buckets, moments, strict=True)
        ]
        merges[name] = merge_distributions(texts)
    return merges


def interval_distributions(
    keys: Keys, names: Sequence[str], precision: int, starts: Sequence[int]
) -> Query[dict[str, dict[int, Distribution]]]:
    """Read intervals of many series in one round trip: by name and start, those with values.

    Series that cannot be read are left out.
    """
    if not names:
        return {}
    _, replies = yield slices_asked(keys, names, {precision: starts})
    intervals_of: dict[str, dict[int, Distribution]] = {}
    for name, buckets, moments in zip(names, replies[::2], replies[1::2], strict=True):
        if is_misplaced(buckets) or is_misplaced(moments):
            continue
        texts = zip(starts, raised(buckets), raised(moments), strict=True)
        parsed = ((start, parse_distribution(*both)) for start, *both in texts)
        intervals_of[name] = {start: one for start, one in parsed if one is not None}
    return intervals_of


def _whole_hashes(store: Store, names: Iterable[str], precision: object) -> list[Command]:
    # The reply shows whether the precision is kept; until then it must only be a number.
    width = precision if isinstance(precision, int) else 0
    return [
        ("HGETALL", key(width, name))
        for name in names
        for key in (store.keys.hist, store.keys.moments)
    ]


def _two(replies: Sequence[Reply]) -> list[tuple[Reply, Reply]]:
    return list(zip(replies[::2], replies[1::2], strict=True))


def _by_interval(rows: Sequence[Sequence[Texts]]) -> list[Distribution | None]:
    return [distribution_of(row) for row in rows]


class SummaryGrid:
    """The intervals of a window, with which hashes are aligned."""

    def __init__(self, window: CoveredWindow) -> None:
        self._window = window
        self._fields = [b"%d" % start for start in window.starts]

    def summary(self, name: str, hashes: Sequence[Sequence[Reply]]) -> Summary:
        """Merge the hashes of some series, two of each."""
        rows = self._rows(hashes)
        return summary_of(
            merge_distributions(texts for row in rows for texts in row),
            name,
            self._window,
            partial(_by_interval, rows),
        )

    def over_time(
        self, name: str, hashes: Sequence[Sequence[Reply]]
    ) -> Series[Distribution | None]:
        """Merge them interval by interval only; see spread.distributions()."""
        return series_of(name, self._window, _by_interval(self._rows(hashes)))

    def _rows(self, hashes: Sequence[Sequence[Reply]]) -> list[tuple[Texts, ...]]:
        """Return the texts of each interval, from the oldest that has both texts of a series."""
        columns: list[list[Texts]] = []
        for replies in hashes:
            buckets, moments = (dict(pairs(reply)) for reply in replies)
            columns.append([(buckets.get(field), moments.get(field)) for field in self._fields])
        rows = list(zip(*columns, strict=True))
        complete = [any(None not in texts for texts in row) or None for row in rows]
        return rows[first_sample(complete) :]
