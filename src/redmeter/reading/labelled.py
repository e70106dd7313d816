"""All label sets of a name: their samples by the values of a label, or as one; their summaries.

Two round trips: which label sets there are at that precision, and what they hold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redmeter.errors import LimitExceeded
from redmeter.keys import Keys
from redmeter.reading.curves import asked_spreads
from redmeter.reading.foreign_keys import readable
from redmeter.reading.label_sets import LabelSets, label_of
from redmeter.reading.series import Grid, window
from redmeter.reading.spread import Summary
from redmeter.reading.summaries import SummaryGrid
from redmeter.store.query import Query
from redmeter.store.replies import Reply
from redmeter.types import Series

#: Most label sets whose samples are added up by one request, and those that are merged.
MAX_ADDED, MAX_MERGED = 2_000, 500


@dataclass(slots=True)
class Labelled:
    """Samples of the label sets of a name, added up."""

    #: By the value of the label, None for those without it; those that counted most come first.
    series: dict[str | None, Series[int]]
    #: How many values there are.
    of: int
    #: The window: [start, end).
    start: int
    end: int


def by_label(
    keys: Keys,
    base: str,
    label: str | None,
    precision: int,
    *,
    since: float | None = None,
    until: float | None = None,
    limit: int = 50,
) -> Query[Labelled]:
    """Read counters of one name, added up by the values of a label.

    Args:
        base: a name without labels.
        label: None: all in one, whose value is None.
        precision: slice width, seconds.
        since, until: leave out slices that end before or start after, Unix seconds.
        limit: of so many values at most.

    Raises:
        UnknownPrecision: it is not kept.
        LimitExceeded: over MAX_ADDED label sets.
    """
    label_sets = LabelSets(keys, keys.known, precision, base)
    view, replies = yield label_sets.names(MAX_ADDED)
    first, last = window(view.retention, precision, view.now, since, until)
    names = label_sets.found(replies, MAX_ADDED)
    end = max(first, last + precision)
    if not names:
        return Labelled({}, 0, first, end)
    _, hashes = yield [("HGETALL", keys.count(precision, name)) for name in names]
    found = readable({name: [reply] for name, reply in zip(names, hashes, strict=True)})
    grid = Grid(precision, first, last, view.now)
    sums: dict[str | None, list[int | None]] = {}
    size = len(range(first, last + 1, precision))
    for name, (reply,) in found.items():
        value = None if label is None else label_of(name, label)
        added = sums.setdefault(value, [None] * size)
        values = grid.series(name, reply).values
        for at, count in enumerate(values, size - len(values)):
            added[at] = (added[at] or 0) + count
    busiest = sorted(sums, key=lambda value: (-sum(n or 0 for n in sums[value]), value or ""))
    running = last + precision > view.now
    laid = {v: _laid(base, precision, first, sums[v], running) for v in busiest[:limit]}
    return Labelled(laid, len(sums), first, end)


def _laid(
    name: str, precision: int, first: int, counts: Sequence[int | None], running: bool
) -> Series[int]:
    oldest = next((at for at, count in enumerate(counts) if count is not None), len(counts))
    values = tuple(count or 0 for count in counts[oldest:])
    partial = bool(values) and running
    return Series(name, precision, first + oldest * precision, values, partial=partial)


def summaries_of(
    keys: Keys,
    names: Sequence[str],
    precision: int,
    *,
    merge: bool,
    where: Mapping[str, str] | None = None,
    since: float | None = None,
    until: float | None = None,
) -> Query[list[Summary]]:
    """Read how observed values were spread, one summary for each name.

    Args:
        names: in their stored spelling; without labels where label sets are merged.
        precision: slice width, seconds.
        merge: merge all label sets of each.
        where: only those that have these labels.
        since, until: see by_label().

    Raises:
        UnknownPrecision: it is not kept of histograms.
        LimitExceeded: over MAX_MERGED label sets.
    """
    sets = {name: [name] for name in names}
    if merge:
        label_sets = [LabelSets(keys, keys.hists, precision, name) for name in names]
        view, replies = yield [read for one in label_sets for read in one.names(MAX_MERGED, where)]
        pairs = zip(replies[::2], replies[1::2], strict=True)
        sets = {
            one.base: one.found(pair, MAX_MERGED, where)
            for one, pair in zip(label_sets, pairs, strict=True)
        }
        number = sum(map(len, sets.values()))
        if number > MAX_MERGED:
            raise LimitExceeded("label sets", number, MAX_MERGED, "ask for fewer names")
        view.histograms.check(precision)
    series = list(dict.fromkeys(one for some in sets.values() for one in some))
    hashes: Sequence[Reply] = ()
    if series or not merge:
        view, hashes = yield asked_spreads(keys, series, precision)
    grid = SummaryGrid(view.histograms, precision, view.now, since, until, None)
    both = zip(hashes[::2], hashes[1::2], strict=True)
    found = readable(dict(zip(series, both, strict=True)))
    return [
        grid.summary(name, [found[one] for one in some if one in found])
        for name, some in sets.items()
    ]
