"""Rows of a list: a series, or all label sets of a name, and their sums within a window.

Sums come from a join of the index (join.py): counts of counters, moments of histograms. A row keeps
the names of its busiest MAX_ROW_SERIES series, from which curves and percentiles are read. The
curve of counters with more series is summed from the counts that the join returns.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from redmeter.reading.join import Ask, Joined, entry_name, of_before, of_field, of_window
from redmeter.reading.names import matching
from redmeter.reading.ranking import RankedGroup, highest, sums_of
from redmeter.reading.samples import counts_of, number_of
from redmeter.reading.selection import base_of
from redmeter.reading.windows import LITTLE, Coverage
from redmeter.store.servers.replies import Reply
from redmeter.stored.families import SERIES_KINDS
from redmeter.stored.keys import Keys, slice_start
from redmeter.stored.moments import Sums

#: Series of one row whose names are kept.
MAX_ROW_SERIES = 50


@dataclass(slots=True)
class ListRow:
    """A series, or all label sets of a name, within a window."""

    name: str
    #: counter, gauge or histogram.
    kind: str
    #: How many label sets it stands for, and whether these are all: of a great many series, those
    #: of the last name that was looked at may go on.
    series: int = 0
    complete: bool = True
    #: How often it happened within the window; of a gauge, how many intervals have a sample.
    count: int = 0
    #: The same within as long a time before; None where nobody keeps that, or it was not read, or
    #: where a counter began within that time, of which a part is no measure.
    before: int | None = None
    #: The mean of a histogram, the newest sample of a gauge; None where there is none.
    value: float | None = None
    #: The mean of a histogram in the time before, where the rows are ordered by change.
    value_before: float | None = None
    #: The 95th percentile of a histogram within the window, and in the time before; None where it
    #: has no values or was not read.
    p95: float | None = None
    p95_before: float | None = None
    #: By intervals of `precision`, the last of which contains now: counts of a counter, samples of
    #: a gauge, the 95th percentiles of a histogram. None for gaps, and before the first.
    values: list[float | None] = field(default_factory=list)
    #: Width of these intervals, seconds, and where the first one starts, Unix seconds.
    precision: int = 0
    start: int = 0


def row_value(row: ListRow, order: str) -> float:
    """Return the value that a row is ranked by.

    By change, counters are ranked by the difference of their counts. Histograms have different
    units, so they are ranked by the relative change of their means, 0 to 2; percentiles are read of
    the rows on display only.
    """
    if order == "count":
        return row.count
    if order == "change":
        if row.kind != "histogram":
            return 0 if row.before is None else abs(row.count - row.before)
        now, before = row.value, row.value_before
        if now is not None and before is not None and now != before:
            return abs(now - before) / max(abs(now), abs(before))
    return 0


def asks_of(
    keys: Keys, kind: str, window: Coverage, order: str, *, grouped: bool = False
) -> list[Ask]:
    """Return what a join asks about each series: its sums, as far as an order needs them.

    Args:
        kind: a key of SERIES_KINDS.
        order: `name`, `count` or `change`.
        grouped: counts are also the curves of rows: see add_members(). The time before is read too,
            which is not read afterwards of rows with many series.
    """
    stored = SERIES_KINDS[kind]
    if stored.events is None:
        return []
    family = keys.key(stored.events.name)
    asks = [of_window(family, window.in_pieces() if grouped and kind == "counter" else window)]
    if window.earlier:
        asks += [of_field(keys.total)] if stored.has_total else []
        asks += [of_before(family, window)] if order == "change" or grouped else []
    return asks


@dataclass(slots=True)
class RowGroup(RankedGroup):
    """A row, and the busiest of the series that it stands for."""

    row: ListRow = field(kw_only=True)
    #: How often its counters ever came; None where nobody knows it of all of them.
    total: int | None = 0
    #: The counts of all its series, by the starts of the intervals of a small curve.
    curve: dict[int, int] = field(default_factory=dict)

    def take(self, name: str, replies: Sequence[Reply], width: int = 0) -> None:
        """Add a series, with the replies to asks_of().

        Args:
            width: of the intervals of its curve, seconds; 0: none is needed.
        """
        row, curve = self.row, self.curve
        if width:
            for start, count in counts_of(replies[0]).items():
                at = slice_start(start, width)
                curve[at] = curve.get(at, 0) + count
        if SERIES_KINDS[row.kind].has_total and len(replies) > 1:
            window, ever, *rest = replies
            replies = [window, *rest]
            # Other programs count without grand totals.
            known = self.total is not None and ever is not None
            self.total = (self.total or 0) + number_of(ever) if known else None
        else:
            self.total = None
        self.add(name, *([sums_of(row.kind, reply) for reply in replies] or [Sums()]))
        row.series += 1
        row.count = self.sums.count
        row.before = self.count_before
        if row.kind == "histogram":
            row.value = self.sums.exact_mean
            row.value_before = None if self.before is None else self.before.exact_mean

    def compare(self) -> None:
        """Forget the time before where it began within that.

        It did if next to nothing of the grand total was counted earlier. If the grand total is less
        than both counts, other programs count too, and it is unknown.
        """
        row = self.row
        known = row.count + (row.before or 0)
        if row.before and self.total is not None and 0 <= self.total - known <= LITTLE * known:
            row.before = None

    def trim(self) -> None:
        """Forget the names of all series but the busiest."""
        if len(self.series) > MAX_ROW_SERIES:
            self.series = {name: self.series[name] for name in self.names()}

    def names(self) -> list[str]:
        """Return the series of which its curve is, the busiest first."""
        return highest(self.series, self.series.__getitem__, limit=MAX_ROW_SERIES)


@dataclass(frozen=True, slots=True)
class RowRanking:
    """The first rows of a ranking of all series, made some time ago: see background_ranking.py."""

    rows: Sequence[RowGroup]
    #: Rows that there are, and series that were read for them.
    found: int
    examined: int
    #: When it was begun, by the server's clock, Unix seconds.
    at: float


def add_members(
    groups: dict[str, RowGroup],
    joined: Joined,
    kind: str,
    pattern: str,
    *,
    grouped: bool,
    width: int,
) -> None:
    """Add the members of an index, with the replies to asks_of(), to the rows that they belong to.

    Args:
        groups: the rows by name; missing ones are added.
        kind: a key of SERIES_KINDS.
        pattern: only series that match it; see names.py.
        grouped: one row for all label sets of a name that matches; a label set that matches by its
            labels only has a row of its own.
        width: of the intervals of the curves of grouped counters, seconds.
    """
    width = width if grouped and kind == "counter" else 0
    names = {member: entry_name(member) for member in joined.members}
    matches = set(matching(names.values(), pattern))
    bases = {name: base_of(name) for name in names.values()} if grouped else {}
    matching_bases = set(matching(set(bases.values()), pattern))
    for member, replies in joined.readable():
        name = names[member]
        shown = bases[name] if bases.get(name) in matching_bases else name
        if shown is not name or name in matches:
            if shown not in groups:
                groups[shown] = RowGroup(row=ListRow(shown, kind))
            groups[shown].take(name, replies, width)


def sorted_rows(groups: Iterable[RowGroup], order: str, limit: int | None = None) -> list[RowGroup]:
    """Return rows in an order, the first ones."""
    return highest(
        groups,
        lambda group: row_value(group.row, order),
        name=lambda group: group.row.name,
        limit=limit,
    )


def hide_unknown_before(rows: Collection[ListRow]) -> None:
    """Where no row has anything before the window, nothing is known of that time."""
    if not any(row.before for row in rows):
        for row in rows:
            row.before = None
