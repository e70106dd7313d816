"""Rows of a list: a series, or all label sets of a name, and their sums within a window.

Sums come from a join of the index (join.py): counts of counters, moments of histograms. A row keeps
the names of its busiest MAX_DRAWN series, from which curves and percentiles are read.
"""

import heapq
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from redmeter.reading.join import Ask, Joined, name_of, of_before, of_field, of_window
from redmeter.reading.names import matching
from redmeter.reading.samples import counts_of, number_of
from redmeter.reading.selection import base_of
from redmeter.reading.windows import Coverage
from redmeter.store.servers.replies import Reply
from redmeter.stored.keys import Keys
from redmeter.stored.moments import Sums
from redmeter.stored.packed_text import merge_moments

#: Series of one row that its curve is made of; those of further ones are not in it.
MAX_DRAWN = 50

#: Part of all of a counter that may lie between a window and the time before, which are not quite
#: adjacent, or come while one reads.
LITTLE = 0.05

#: The kinds that are listed -> the kind of one row.
KINDS = ("counter", "gauge", "histogram")
ORDERS = ("name", "count", "change")


@dataclass(slots=True)
class Row:
    """A series, or all label sets of a name, within a window."""

    name: str
    #: counter, gauge or histogram.
    kind: str
    #: How many label sets it stands for, of how many its curve is, and whether these are all: of a
    #: great many series, those of the last name that was looked at may go on.
    series: int = 0
    drawn: int = 1
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


def place(row: Row, order: str) -> tuple[float, str]:
    """Return the key that sorts rows.

    By change, counters are sorted by the difference of their counts. Histograms have different
    units, so they are sorted by the relative change of their means, 0 to 2; percentiles are read of
    the rows on display only.
    """
    if order == "count":
        return -row.count, row.name
    if order == "change":
        if row.kind != "histogram":
            return -(0 if row.before is None else abs(row.count - row.before)), row.name
        now, before = row.value, row.value_before
        if now is not None and before is not None and now != before:
            return -abs(now - before) / max(abs(now), abs(before)), row.name
    return 0, row.name


def asks_of(keys: Keys, kind: str, window: Coverage, order: str) -> list[Ask]:
    """Return what a join asks about each series: its sums, as far as an order needs them.

    Args:
        kind: one of KINDS.
        order: one of ORDERS.
    """
    if kind == "gauge":
        return []
    family = keys.key("count") if kind == "counter" else keys.key("moments")
    asks = [of_window(family, window)]
    if window.earlier:
        asks += [of_field(keys.total)] if kind == "counter" else []
        asks += [of_before(family, window)] if order == "change" else []
    return asks


@dataclass(slots=True)
class RowGroup:
    """A row, and the busiest of the series that it stands for, with their counts."""

    row: Row
    counts: dict[str, int] = field(default_factory=dict)
    #: How often its counters ever came; None where nobody knows it of all of them.
    total: int | None = 0
    #: The sums of a histogram's values within the window, and in the time before.
    _sums: list[Sums] = field(default_factory=lambda: [Sums(), Sums()])

    def add(self, name: str, replies: Sequence[Reply]) -> None:
        """Add a series, with the replies to asks_of()."""
        row = self.row
        if row.kind == "counter" and len(replies) > 1:
            window, ever, *rest = replies
            replies = [window, *rest]
            # Other programs count without grand totals.
            known = self.total is not None and ever is not None
            self.total = (self.total or 0) + number_of(ever) if known else None
        else:
            self.total = None
        sums = [_sum(row.kind, reply) for reply in replies] or [Sums()]
        self.counts[name] = sums[0].count
        row.series += 1
        row.count += sums[0].count
        if len(sums) > 1:
            row.before = (row.before or 0) + sums[1].count
        if row.kind == "histogram":
            for group_sum, each in zip(self._sums, sums, strict=False):
                group_sum.merge(each)
            row.value, row.value_before = (each.exact_mean for each in self._sums)

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
        if len(self.counts) > MAX_DRAWN:
            self.counts = {name: self.counts[name] for name in self.names()}

    def names(self) -> list[str]:
        """Return the series of which its curve is, the busiest first."""
        return heapq.nsmallest(MAX_DRAWN, self.counts, key=lambda name: (-self.counts[name], name))


@dataclass(frozen=True, slots=True)
class RowRanking:
    """The first rows of a ranking of all series, made some time ago: see rowrankings.py."""

    rows: Sequence[RowGroup]
    #: Rows that there are, and series that were read for them.
    found: int
    examined: int
    #: When it was begun, by the server's clock, Unix seconds.
    at: float


def add_members(
    groups: dict[str, RowGroup], joined: Joined, kind: str, pattern: str, *, grouped: bool
) -> None:
    """Add the members of an index, with the replies to asks_of(), to the rows that they belong to.

    Args:
        groups: the rows by name; missing ones are added.
        kind: one of KINDS.
        pattern: only series that match it; see names.py.
        grouped: one row for all label sets of a name.
    """
    names = {member: name_of(member) for member in joined.members}
    matches = set(matching(names.values(), pattern))
    for member, replies in joined.readable():
        name = names[member]
        if name in matches:
            shown = base_of(name) if grouped else name
            if shown not in groups:
                groups[shown] = RowGroup(Row(shown, kind))
            groups[shown].add(name, replies)


def sorted_rows(groups: Iterable[RowGroup], order: str) -> list[RowGroup]:
    """Return rows in an order."""
    return sorted(groups, key=lambda group: place(group.row, order))


def hide_unknown_before(rows: Collection[Row]) -> None:
    """Where no row has anything before the window, nothing is known of that time."""
    if not any(row.before for row in rows):
        for row in rows:
            row.before = None


def _sum(kind: str, reply: Sequence[bytes]) -> Sums:
    if kind == "counter":
        return Sums(sum(counts_of(reply).values()))
    return merge_moments(reply[1::2])
