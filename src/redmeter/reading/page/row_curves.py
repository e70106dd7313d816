"""The small curves of rows on display, and what else is read of these alone: a second round trip.

A counter has a curve of its counts, a gauge of its samples, a histogram of its 95th percentiles.
These are read from its buckets, which are ten to a hundred times as large as counts. So a list
reads those of MAX_PERCENTILE_SERIES series and MAX_BUCKET_BYTES at most, a share of the bytes for
each series. A series with more bytes than its share is not sent by the server. A curve of
percentiles has MAX_POINTS points at most; each merges the intervals of its time. Rows beyond that
have neither curve nor percentile.
"""

from collections.abc import Iterable, Mapping, Sequence

from redmeter.reading.foreign_keys import there
from redmeter.reading.page.curves import QUANTILE
from redmeter.reading.page.rows import RowGroup
from redmeter.reading.samples import current, curve_values, number_of, states_of, summed
from redmeter.reading.selection import hashes_of
from redmeter.reading.windows import Coverage
from redmeter.results.summaries import Texts
from redmeter.store import indexes
from redmeter.store.query import Query, Read, in_parts
from redmeter.store.scripts import HASHES
from redmeter.store.servers.replies import Command, Reply, is_misplaced, pairs, raised
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.families import STATES
from redmeter.stored.keys import Keys, slice_start
from redmeter.stored.moments import merge_all
from redmeter.stored.packed_text import merge_distributions

#: Points of a curve of percentiles.
MAX_POINTS = 24
#: Series of histograms whose buckets one list reads, and bytes of their texts.
MAX_PERCENTILE_SERIES, MAX_BUCKET_BYTES = 50, 4_000_000


def row_curves(
    keys: Keys,
    groups: Sequence[RowGroup],
    window: Coverage,
    now: float,
    *,
    before: bool,
    ranked_at: float | None,
) -> Query[None]:
    """Read the curves of rows.

    Args:
        groups: rows of one kind.
        now: by the server's clock, Unix seconds.
        before: read also the time before the window; of histograms it is read in any case.
        ranked_at: when a ranking read the sums, Unix seconds: they are read anew, of rows that
            stand for MAX_ROW_SERIES series or fewer. None: they were read just now.
    """
    curves: list[_Counts | _Samples | _Percentiles]
    if groups and groups[0].row.kind == "histogram":
        for group in groups:
            group.row.precision = point_width(window)
        read = few_series(groups)
        share = MAX_BUCKET_BYTES // max(1, sum(len(group.names()) for group in read))
        curves = [_Percentiles(group, window, now, keys, share) for group in read]
    elif groups and groups[0].row.kind in STATES:
        curves = [_Samples(group, window, now, keys) for group in groups]
    else:
        curves = [
            _Counts(group, window, now, keys, before=before, ranked_at=ranked_at)
            for group in groups
        ]
    replies = yield from in_parts([curve.commands for curve in curves])
    for curve, own in zip(curves, replies, strict=True):
        curve.take(own)


def few_series(groups: Iterable[RowGroup], most: int = MAX_PERCENTILE_SERIES) -> list[RowGroup]:
    """Return the rows that can be read, as many as possible: those with the fewest series first."""
    chosen = []
    for group in sorted(groups, key=lambda group: group.row.series):
        most -= group.row.series
        if most < 0:
            break
        if group.row.complete:
            chosen.append(group)
    return chosen


class _Counts:
    """The curve of counters: its commands, and the result of the replies."""

    def __init__(
        self,
        group: RowGroup,
        window: Coverage,
        now: float,
        keys: Keys,
        *,
        before: bool,
        ranked_at: float | None,
    ) -> None:
        self._group, names = group, group.names()
        row, fresh = group.row, ranked_at is not None
        self._slots, self._read_at = window.slots(now), now if ranked_at is None else ranked_at
        row.start, row.precision = self._slots.start, self._slots.step
        # All series or none: a part of them would be no number to compare with.
        self._summed = len(names) < row.series
        if self._summed:
            names, before, fresh = [], False, False
        self.commands: list[Read] = [("HGETALL", keys.count(row.precision, name)) for name in names]
        self._curves = len(names)
        self._now = _asked(keys, names, window.slices(now)) if fresh else []
        self._before = _asked(keys, names, window.slices_before(now)) if before or fresh else []
        self._totals = [indexes.grand_totals(keys, names)] if fresh else []
        self.commands += [*self._now, *self._before, *self._totals]

    def take(self, replies: Sequence[Reply]) -> None:
        """Set the row by the replies to the commands."""
        row, answers = self._group.row, iter(replies[self._curves :])
        if self._summed:
            known = range(self._slots.start, int(self._read_at) + 1, self._slots.step)
            values = curve_values(self._group.curve, known)[: len(self._slots)]
            row.values = values + [None] * (len(self._slots) - len(values))
        else:
            row.values = summed(replies[: self._curves], self._slots)
        now, before, totals = (
            [reply for _, reply in zip(reads, answers, strict=False) if not is_misplaced(reply)]
            for reads in (self._now, self._before, self._totals)
        )
        if now:
            row.count = _summed(now)
        if before:
            row.before = _summed(before)
        if self._totals:
            ever = [text for reply in totals for text in raised(reply)]
            self._group.total = None if None in ever or not ever else sum(map(number_of, ever))


def _asked(keys: Keys, names: Iterable[str], fields: Mapping[int, Sequence[int]]) -> list[Command]:
    return [
        ("HMGET", keys.count(width, name), *map(str, starts))
        for name in names
        for width, starts in fields.items()
    ]


def _summed(replies: Iterable[Reply]) -> int:
    return sum(number_of(text) for reply in replies for text in raised(reply))


class _Samples:
    """The curve of one of STATES; of several series there is no newest sample."""

    def __init__(self, group: RowGroup, window: Coverage, now: float, keys: Keys) -> None:
        self._row, names = group.row, group.names()
        row, self._slots = self._row, window.slots(now, window.fine)
        self._name, self._now = next(iter(names), row.name), now
        row.start, row.precision = self._slots.start, window.fine
        self.commands = hashes_of(keys, row.kind, names[: row.series == 1], window.fine)

    def take(self, replies: Sequence[Reply]) -> None:
        """Set the row by the replies to the commands."""
        if not replies or is_misplaced(replies[0]):
            return
        row = self._row
        samples = states_of(row.kind, replies[0], self._slots)
        row.count = sum(value is not None for value in samples)
        row.values = current(row.kind, self._name, replies[0], self._slots, self._now)
        row.value = next((value for value in reversed(row.values) if value is not None), None)


class _Percentiles:
    """The curve of a histogram, and its percentile now and in the time before.

    Args:
        most: bytes that each series may have.
    """

    def __init__(
        self, group: RowGroup, window: Coverage, now: float, keys: Keys, most: int
    ) -> None:
        self._row = group.row
        row, names = self._row, group.names()
        row.precision = point_width(window)
        self._slots = window.slots(now, row.precision)
        row.start = self._slots.start
        self._starts = {b"%d" % start: start for start in window.slots(now, window.fine)}
        self._before = window.slices_before(now)
        widths, args = [window.fine, *self._before], [str(most), "0"]
        for starts_before in self._before.values():
            args += [str(len(starts_before)), *map(str, starts_before)]
        self.commands: list[Command] = [
            HASHES.command(
                [key(width, name) for width in widths for key in (keys.hist, keys.moments)],
                args,
                whole=True,
            )
            for name in names
        ]

    def take(self, replies: Sequence[Reply]) -> None:
        """Set the row by the replies to the commands."""
        row = self._row
        hashes = [there(reply, None) for reply in replies]
        if [] in hashes:
            return  # a series has too many bytes, and the others alone are not the row
        points: dict[int, list[Texts]] = {}
        earlier: list[Texts] = []
        for buckets, moments, *before in filter(None, hashes):
            sums = dict(pairs(moments))
            for field, text in pairs(buckets):
                if field in self._starts and field in sums:
                    point = slice_start(self._starts[field], row.precision)
                    points.setdefault(point, []).append((text, sums[field]))
            for pair in zip(before[::2], before[1::2], strict=True):
                earlier += zip(*pair, strict=True)
        merges = {start: merge_distributions(texts) for start, texts in points.items()}
        spreads = {start: each for start, each in merges.items() if each.count}
        whole = merge_all(Distribution(), spreads.values())
        values = [spreads[at].quantile(QUANTILE) if at in spreads else None for at in self._slots]
        if whole.count:
            row.values = values
            row.count, row.value = whole.count, whole.moments.exact_mean
            row.p95 = whole.quantile(QUANTILE)
        if self._before:
            whole_before = merge_distributions(earlier)
            row.before = whole_before.count
            if whole_before.count:
                row.p95_before = whole_before.quantile(QUANTILE)


def point_width(window: Coverage) -> int:
    """Return the width of a point: of these, aligned, MAX_POINTS at most touch the window."""
    return -(-window.count // (MAX_POINTS - 1)) * window.fine
