"""Rankings by a percentile in two round trips: moments of all series, then histograms of some.

Which histograms are read, and what that says of the others, is in observed.py. What is done here in
less time than by rankings.py is bounded by less: MAX_JOINED series, MAX_READ of their histograms.
"""

from collections.abc import Mapping

from redmeter.format.exponential_histogram import Distribution
from redmeter.keys import Kept, Keys
from redmeter.reading import observed
from redmeter.reading.join import Joined
from redmeter.reading.observed import CANDIDATES, choose
from redmeter.reading.rankable import Rankable, summed
from redmeter.reading.rankings import Order, check_limits, grouping, ranked_values
from redmeter.reading.summaries import slices_answered, slices_asked
from redmeter.reading.windows import window_of
from redmeter.store.query import Query
from redmeter.types import RANKED_SLICES, Ranking

#: Series whose moments are looked at, and those whose histograms are read.
MAX_JOINED, MAX_READ = 2_000, 500


def by_percentile(
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
) -> Query[Ranking]:
    """Rank by a percentile of observed values: see rankings.rank().

    Raises:
        UnknownPrecision: it is not kept of histograms.
        LimitExceeded: over MAX_JOINED series, or more slices than are kept.
    """
    assert order.q is not None, "others are ranked by rankings.py"
    # What is not kept is told when the answer tells what is.
    width = precision if precision in kept.histograms else min(kept.histograms)
    number = min(slices or RANKED_SLICES, kept.histograms[width])
    seen = window_of(kept.histograms, width, number)
    wanted = Rankable(name, width, by, where, MAX_JOINED)
    view, replies = yield wanted.reads(keys, keys.hists, keys.moments_of(""), seen)
    check_limits(limit, slices or 1, view.histograms[view.histograms.check(precision)])
    sums = summed(wanted.read(replies), grouping(by))
    chosen, left_out = choose(sums, order.q, min(CANDIDATES * limit, observed.MAX_READ))
    names: list[str] = []
    read = []
    for key in chosen:
        if len(names) + len(sums[key].series) > MAX_READ:
            left_out.append(key)
            continue
        read.append(key)
        names += sums[key].series
    parts: dict[str, Distribution] = {}
    if names:
        fields = seen.slices(Joined(replies[0], 1).now)
        _, texts = yield slices_asked(keys, names, fields)
        parts = slices_answered(names, fields, texts)
    values = {}
    for key in read:
        merged = Distribution()
        for series in sums[key].series:
            if series in parts:
                merged.merge(parts[series])
        if merged.count:
            values[key] = merged.quantile(order.q)
    rows = ranked_values(sums, values, order, limit)
    rest = [one.bound(order.q) for key, one in sums.items() if key not in values]
    rows.complete = not rest or (len(rows) == limit and rows[-1].value > max(rest))
    rows.left_out = tuple(left_out)
    rows.slices = number
    return rows
