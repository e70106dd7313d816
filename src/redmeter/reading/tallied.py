"""Rankings by what can be summed up: counts, failures, totals and means; two round trips.

The server looks the slices of all series up by itself (join.py), so they cost a tenth of what
rankings.py spends on them. What it does meanwhile holds up others: no more than MAX_SUMMED series.
"""

from collections.abc import Mapping

from redmeter.keys import Kept, Keys, Retention
from redmeter.reading.join import counts_of
from redmeter.reading.rankable import Rankable, summed
from redmeter.reading.rankings import (
    Order,
    check_limits,
    grouped,
    grouping,
    ranked,
    ranked_failing,
    ranked_values,
)
from redmeter.reading.windows import window_of
from redmeter.store.query import Query, Read
from redmeter.types import RANKED_SLICES, Ranking

#: Series that are summed up.
MAX_SUMMED = 5_000


def by_sums(
    keys: Keys,
    kept: Kept,
    name: str,
    precision: int,
    order: Order,
    *,
    by: str | None,
    slices: int | None,
    limit: int,
    where: Mapping[str, str] | None,
    failing: Mapping[str, str] | None,
) -> Query[Ranking]:
    """Rank by anything but a percentile: see rankings.rank(). Starts are whole numbers here.

    Raises:
        UnknownPrecision: it is not kept of what is ranked.
        LimitExceeded: over MAX_SUMMED series, or more slices than are kept.
    """
    assert order.q is None, "percentiles are ranked by ranked.py"
    wanted = Rankable(name, precision, by, where, MAX_SUMMED)
    group = grouping(by, failing)
    if order.word in ("count", "failing"):
        view, replies = yield _asked(
            keys, wanted, keys.known, keys.count_of(""), kept.series, slices
        )
        counts = {one: sum(counts_of(found).values()) for one, found in wanted.read(replies)}
        happened = {name: count for name, count in counts.items() if count > 0}
        if failing:
            rows = ranked_failing(happened, group, failing, limit)
        else:
            rows = ranked(grouped(happened, group).items(), limit)
        if failing or counts:
            rows.slices = _slices(view.retention, precision, slices, limit)
            return rows
    moments = keys.moments_of("")
    view, replies = yield _asked(keys, wanted, keys.hists, moments, kept.histograms, slices)
    found = list(wanted.read(replies))
    if order.word == "count" and not found:
        rows.slices = _slices(view.retention, precision, slices, limit)
        return rows
    sums = summed(found, group)
    values = {key: one.value(order.word) for key, one in sums.items()}
    rows = ranked_values(sums, values, order, limit)
    rows.slices = _slices(view.histograms, precision, slices, limit)
    return rows


def _asked(
    keys: Keys,
    wanted: Rankable,
    index: str,
    family: str,
    kept: Mapping[int, int],
    slices: int | None,
) -> list[Read]:
    width = wanted.precision
    if width not in kept:
        return []  # whether that is an error is told by what else there is
    seen = window_of(kept, width, min(slices or RANKED_SLICES, kept[width]))
    return wanted.reads(keys, index, family, seen)


def _slices(kept: Retention, precision: int, slices: int | None, limit: int) -> int:
    """Check what was asked for, and return how many slices were ranked."""
    most = kept[kept.check(precision)]
    check_limits(limit, slices or 1, most)
    return min(slices or RANKED_SLICES, most)
