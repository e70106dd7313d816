"""What there is, with a small curve of each: the rows of a list, of one kind of series.

Two round trips: which series there are, and what sums each has; then the curves of those rows that
are on display (row_curves.py). Ordered by name, a list goes on page by page. Another order needs
the sums of all series: up to MAX_LISTED_SERIES are read at once; of more, a ranking is shown that
was made before (background_ranking.py), or, until there is one, the first MAX_LISTED_SERIES by
name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from redmeter.reading.foreign_keys import there
from redmeter.reading.join import Joined, decoded, entry_name
from redmeter.reading.page.curves import MAX_MERGED, Curve, merged
from redmeter.reading.page.row_curves import row_curves
from redmeter.reading.page.rows import (
    ListRow,
    RowGroup,
    RowRanking,
    add_members,
    asks_of,
    hide_unknown_before,
    sorted_rows,
)
from redmeter.reading.ranking import MatchingSeries
from redmeter.reading.selection import LabelSets, base_of
from redmeter.reading.windows import Coverage, Frame, histogram_window, whole_window, window_of_kind
from redmeter.store.query import Query, together
from redmeter.stored.families import STATES
from redmeter.stored.keys import Kept, Keys

#: Series that are looked at for one list.
MAX_LISTED_SERIES = 1_000


@dataclass(slots=True)
class RowListing:
    """A part of what there is."""

    rows: list[ListRow]
    #: Series of the kind that match, as far as that is known without looking at each: those that
    #: begin as the pattern does.
    total: int
    examined: int
    #: Rows that there are after grouping and matching, of those that were looked at. A ranking
    #: keeps the first of them.
    found: int
    #: When the series were ranked, Unix seconds; None where these rows were read just now.
    ranked_at: float | None = None
    #: The busiest of them at the precision of the window, where that was asked for; and the series
    #: that each of these rows stands for; None: all label sets of its name.
    curves: list[Curve] = field(default_factory=list)
    busiest: dict[str, list[str] | None] = field(default_factory=dict)


def window_for(kept: Kept, kind: str, precision: int, frame: Frame | None = None) -> Coverage:
    """Return the window of a list.

    Raises:
        UnknownPrecision: it is not kept.
    """
    window = whole_window(kept.series, precision, frame)
    return window_of_kind(kind, window, histogram_window(kept.histograms, window))


def listing(
    keys: Keys,
    window: Coverage,
    *,
    kind: str = "counter",
    pattern: str = "*",
    grouped: bool = False,
    order: str = "name",
    limit: int = 50,
    offset: int = 0,
    curves: int = 0,
    charted: Coverage | None = None,
    needed: bool = True,
    ranked: RowRanking | None = None,
) -> Query[RowListing]:
    """Read rows.

    Args:
        window: of the kind.
        kind: a key of SERIES_KINDS.
        pattern: as for names: see names.py.
        grouped: one row for all label sets of a name.
        order: `name`, `count` or `change`, see rows.row_value(); gauges are always listed by name.
        limit, offset: which rows.
        curves: of how many of the first counters curves are read, too.
        charted: the window of these curves; None: the same.
        needed: see Joined.
        ranked: all series of that kind, pattern and order, ranked before.
    """
    asks = asks_of(keys, kind, window, order, grouped=grouped)
    members = MatchingSeries(keys, kind, window.fine, pattern)
    # By name the list goes on where the page before ended; else all is put in order.
    by_name = order == "name" or kind in STATES
    pages = by_name and not grouped and _is_a_beginning(pattern)
    if ranked is not None:
        view, (number,) = yield [members.size()]
        now, examined, found = view.now, ranked.examined, ranked.found
        shown = [
            replace(group, row=replace(group.row)) for group in ranked.rows[offset : offset + limit]
        ]
    else:
        first, most = (offset, limit) if pages else (0, MAX_LISTED_SERIES)
        _, (reply, number) = yield [members.join(asks, most, offset=first), members.size()]
        joined = Joined(reply, len(asks), needed=needed)
        groups: dict[str, RowGroup] = {}
        add_members(groups, joined, kind, pattern, grouped=grouped, width=window.drawn())
        for group in groups.values():
            group.compare()
        now, examined, found = joined.now, len(joined.members), len(groups)
        shown = sorted_rows(groups.values(), order)
        shown = shown if pages else shown[offset : offset + limit]
        if examined == MAX_LISTED_SERIES and not pages:
            unfinished = base_of(entry_name(joined.members[-1]))
            for group in shown:
                group.row.complete = group.row.name != unfinished
    total = there(number, 0)
    busiest = {
        group.row.name: list(group.series)
        if group.row.complete and len(group.series) == group.row.series
        else None
        for group in shown[:curves]
    }
    made: list[Curve] = []
    if shown:
        small = row_curves(
            keys,
            shown,
            window,
            now,
            before=order != "change",
            ranked_at=None if ranked is None else ranked.at,
        )
        both: list[Query[Any]] = [small, redrawn(keys, charted or window, busiest)]
        _, made = yield from together(both)
        for group in shown:
            group.compare()
    if ranked is not None:
        shown = sorted_rows(shown, order)
    rows = [group.row for group in shown]
    hide_unknown_before(rows)
    return RowListing(
        rows,
        total,
        examined,
        total if pages else found,
        None if ranked is None else ranked.at,
        made,
        busiest,
    )


def redrawn(
    keys: Keys, window: Coverage, busiest: Mapping[str, Sequence[str] | None]
) -> Query[list[Curve]]:
    """Read the curves of rows, at the precision of the window; one or two round trips.

    Args:
        busiest: the name of a row -> the counters that it stands for; None: all label sets.
    """
    return (yield from together([_sum(keys, window, *row) for row in busiest.items()]))


def _sum(keys: Keys, window: Coverage, name: str, series: Sequence[str] | None) -> Query[Curve]:
    of = 0
    if series is None:
        label_sets = LabelSets(keys, keys.known, window.fine, name)
        most = MAX_MERGED["counter"]
        _, (listed, size) = yield [label_sets.first_names(most), label_sets.size()]
        series, of = [name, *decoded(there(listed, []))[:most]], there(size, 0)
    return (yield from merged(keys, "counter", name, series, window, of))


def _is_a_beginning(pattern: str) -> bool:
    """Return whether a pattern is a prefix, or one name."""
    return not any(c in pattern.removesuffix("*") for c in "*?[")
