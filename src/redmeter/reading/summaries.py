"""Summaries: how observed values were spread, over a window and slice by slice.

Only the newest samples of the retention count, as for counters; see series.py. A slice lies in two
hashes, buckets and moments, of which one without the other is nobody's: see format/packed_text.py.

Where only the window as a whole is asked for, as by rankings, it is covered by the fewest slices of
all precisions that are kept: an hour and a half is an hour and thirty minutes, not ninety minutes.
Distributions merge exactly, so the answer is the same, with fewer slices to read. Where precisions
do not agree, as with one that came to be kept within the window, the coarser ones count.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from redmeter.errors import LimitExceeded
from redmeter.format.exponential_histogram import Distribution
from redmeter.format.packed_text import merged
from redmeter.keys import Keys, Retention, slice_start
from redmeter.reading.foreign_keys import readable
from redmeter.reading.series import window
from redmeter.reading.spread import Spread, Summary, Texts, spread_of
from redmeter.store import Store
from redmeter.store.replies import Command, Reply, pairs
from redmeter.types import Series

#: Most series that are summed up by one request, each by itself.
MAX_SERIES = 500


def read_summaries(
    store: Store,
    names: Sequence[str],
    precision: int,
    *,
    since: float | None = None,
    until: float | None = None,
    slices: int | None = None,
    last: float | None = None,
) -> dict[str, Summary]:
    """Read how the values of many series were spread, in one round trip.

    Args:
        names: in their stored spelling.
        precision: slice width, seconds.
        since, until: leave out slices that end before or start after, Unix seconds.
        slices: no more than so many of the newest, the running one included.

    Returns:
        A summary for every name; an empty one where nothing is kept. Names under whose keys
        another program keeps something else are left out: see foreign_keys.py.

    Raises:
        UnknownPrecision: the store does not keep it of histograms; the error lists those it keeps.
        LimitExceeded: over MAX_SERIES names, or more slices than are kept.
        StoreError: the server cannot be reached or refuses.
    """
    if len(names) > MAX_SERIES:
        raise LimitExceeded("summaries", len(names), MAX_SERIES, "ask for fewer at a time")
    view, replies = store.read(_whole_hashes(store, names, precision))
    grid = SummaryGrid(view.histograms, precision, view.now, since, until, slices, last)
    found = readable(dict(zip(names, _two(replies), strict=True)))
    return {name: grid.summary(name, [hashes]) for name, hashes in found.items()}


def merged_slices(
    store: Store, names: Sequence[str], fields: Mapping[int, Sequence[int]]
) -> dict[str, Distribution]:
    """Read slices of many series, and merge those of each; a round trip for MAX_SERIES of them.

    Args:
        fields: precision -> starts of slices.

    Returns:
        Those that can be read: see foreign_keys.py.
    """
    found: dict[str, Distribution] = {}
    for at in range(0, len(names), MAX_SERIES):
        found |= _merged_slices(store, names[at : at + MAX_SERIES], fields)
    return found


def _merged_slices(
    store: Store, names: Sequence[str], fields: Mapping[int, Sequence[int]]
) -> dict[str, Distribution]:
    commands = slices_asked(store.keys, names, fields)
    replies = store.ask(commands) if commands else []
    return slices_answered(names, fields, replies)


def slices_asked(
    keys: Keys, names: Sequence[str], fields: Mapping[int, Sequence[int]]
) -> list[Command]:
    """Return the commands that read slices of many series: see merged_slices()."""
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
    """Read the replies to slices_asked(): see merged_slices().

    Args:
        needed: see readable().
    """
    each = 2 * len(fields)
    by_name = {n: replies[at * each : (at + 1) * each] for at, n in enumerate(names)}
    found = {}
    for name, mine in readable(by_name, needed=needed).items():
        texts = [
            text
            for buckets, moments in zip(mine[::2], mine[1::2], strict=True)
            for text in zip(buckets, moments, strict=True)
        ]
        found[name] = merged(texts)
    return found


def window_of(
    retention: Retention,
    precision: int,
    now: float,
    since: float | None,
    until: float | None,
    slices: int | None,
    seconds: float | None = None,
) -> tuple[int, int]:
    """Return where a window begins and ends, Unix seconds: [first, end); empty where first >= end.

    Raises:
        UnknownPrecision: the precision is not kept.
        LimitExceeded: none, or more slices than are kept.
    """
    first, last = window(retention, precision, now, since, until, seconds)
    if slices is not None:
        kept = retention[precision]
        check_whole("slices", slices)
        if not 1 <= slices <= kept:
            raise LimitExceeded("intervals", slices, kept, "ask for 1 or more, up to what is kept")
        first = max(first, slice_start(now, precision) - (slices - 1) * precision)
    return first, last + precision


def cover(retention: Retention, now: float, first: int, end: int) -> dict[int, list[int]]:
    """Return the fewest slices that hold a window: precision -> starts, ascending.

    Where the window ends with a slice that is running, a running slice of any precision covers its
    end: nothing lies behind it. With minutes and hours kept, 13:59 to 15:31 at 15:30:10 is one
    minute and two hours.

    Args:
        retention: precision -> samples; only what is kept can be used.
        now: Unix seconds.
        first, end: where the window begins and ends, both on slices of one of these precisions.

    Returns:
        Nothing where the window is empty, or no slices that are kept fit.
    """
    running = end > now
    ends: dict[int, list[tuple[int, int]]] = {}
    for precision in retention:
        oldest = max(first, retention.oldest(precision, now))
        for start in range(-(-oldest // precision) * precision, end, precision):
            stop = start + precision
            if stop <= end or running:
                ends.setdefault(start, []).append((precision, min(stop, end)))
    # From the end backwards: how many slices it takes from here, and the first of them.
    best: dict[int, tuple[int, int, int]] = {end: (0, 0, end)}
    for start in sorted(ends, reverse=True):
        ways = [
            (best[stop][0] + 1, -precision, stop) for precision, stop in ends[start] if stop in best
        ]
        if ways:
            best[start] = min(ways)
    found: dict[int, list[int]] = {}
    at = first
    while at in best and at < end:
        _, minus, stop = best[at]
        found.setdefault(-minus, []).append(at)
        at = stop
    return found


def check_whole(what: str, number: object) -> None:
    """Check how many of something are asked for.

    Raises:
        TypeError: not a whole number.
    """
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"{what} is a whole number (int), not {type(number).__name__}")


def _whole_hashes(store: Store, names: Iterable[str], precision: object) -> list[Command]:
    # Whether the precision is kept, the answer tells; until then it must only be a number.
    width = precision if isinstance(precision, int) else 0
    return [
        ("HGETALL", key(width, name))
        for name in names
        for key in (store.keys.hist, store.keys.moments)
    ]


def _two(replies: Sequence[Reply]) -> list[tuple[Reply, Reply]]:
    return list(zip(replies[::2], replies[1::2], strict=True))


def _spreads(rows: Sequence[Sequence[Texts]]) -> list[Spread | None]:
    return [spread_of(row) for row in rows]


class SummaryGrid:
    """The slices of a window, on which hashes are laid."""

    def __init__(
        self,
        retention: Retention,
        precision: int,
        now: float,
        since: float | None,
        until: float | None,
        slices: int | None,
        last: float | None = None,
    ) -> None:
        self._first, self._end = window_of(retention, precision, now, since, until, slices, last)
        self._precision = precision
        starts = range(self._first, self._end, precision)
        self._fields = [b"%d" % start for start in starts]
        self._running = bool(starts) and self._end > now

    def summary(self, name: str, hashes: Sequence[Sequence[Reply]]) -> Summary:
        """Lay the hashes of some series, two of each, on the grid, and merge them."""
        rows = self._rows(hashes)
        return Summary(
            merged(texts for row in rows for texts in row),
            name,
            self._precision,
            self._first,
            self._end,
            self._running,
            partial(_spreads, rows),
        )

    def over_time(self, name: str, hashes: Sequence[Sequence[Reply]]) -> Series[Spread | None]:
        """Merge them slice by slice alone: what over_time() of the summary would tell."""
        spreads = tuple(_spreads(self._rows(hashes)))
        start = self._end - len(spreads) * self._precision
        running = bool(spreads) and self._running
        return Series(name, self._precision, start, spreads, partial=running)

    def _rows(self, hashes: Sequence[Sequence[Reply]]) -> list[tuple[Texts, ...]]:
        """Return what each slice holds, from the oldest that holds something."""
        columns: list[list[Texts]] = []
        for replies in hashes:
            buckets, moments = (dict(pairs(reply)) for reply in replies)
            columns.append([(buckets.get(field), moments.get(field)) for field in self._fields])
        rows = list(zip(*columns, strict=True))
        there = [any(b is not None and m is not None for b, m in row) for row in rows]
        return rows[there.index(True) if True in there else len(rows) :]
