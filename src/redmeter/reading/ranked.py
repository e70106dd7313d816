"""Rankings by a percentile in two round trips: moments of all series, then histograms of some.

Which histograms are read, and what that says of the others, is in observed.py. What is done here in
less time than by rankings.py is bounded by less: MAX_JOINED series, MAX_READ of their histograms.
"""

import itertools
from collections.abc import Mapping

from redmeter.errors import LimitExceeded
from redmeter.keys import Kept, Keys, entry
from redmeter.kinds.distribution import Distribution
from redmeter.model import Ranking
from redmeter.reading import observed
from redmeter.reading.catalogue import matching, matching_ends
from redmeter.reading.join import Joined, join, of_window
from redmeter.reading.observed import CANDIDATES, Sum, choose, sum_of
from redmeter.reading.rankings import DEFAULT_SLICES, Order, check_limits, grouping, ranked_values
from redmeter.reading.summaries import has_labels, slices_answered, slices_asked
from redmeter.reading.together import Question
from redmeter.reading.windows import window_of
from redmeter.store.link import Command, raised

#: Series whose moments are looked at, and those whose histograms are read.
MAX_JOINED, MAX_READ = 2_000, 500


def ends_of(width: int, name: str, by: str | None) -> list[tuple[str | bytes, str | bytes]]:
    """Return where the entries of an index begin and end that can be ranked, for ZRANGEBYLEX.

    With a label all label sets, and the name without any; else what the pattern matches.
    """
    whole = entry(width, name)
    if by:
        return [(f"[{whole}{{", f"({whole}|"), (f"[{whole}", f"[{whole}")]
    return [matching_ends(width, name)]


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
) -> Question[Ranking]:
    """Rank by a percentile of observed values: see rankings.rank().

    Raises:
        UnknownPrecision: it is not kept of histograms.
        LimitExceeded: over MAX_JOINED series, or more slices than are kept.
    """
    assert order.q is not None, "others are ranked by rankings.py"
    # What is not kept is told when the answer tells what is.
    width = precision if precision in kept.histograms else min(kept.histograms)
    number = min(slices or DEFAULT_SLICES, kept.histograms[width])
    seen = window_of(kept.histograms, width, number)
    asks = [of_window(keys.moments_of(""), seen)]
    commands: list[Command] = []
    for ends in ends_of(width, name, by):
        some = ("ZRANGEBYLEX", *ends, "LIMIT", 0, MAX_JOINED)
        commands += [
            join(keys.hists, some, len(entry(width, "")), asks),
            ("ZLEXCOUNT", keys.hists, *ends),
        ]
    view, replies = yield commands
    check_limits(limit, slices or 1, view.histograms[view.histograms.check(precision)])
    there = sum(map(raised, replies[1::2]))
    if there > MAX_JOINED:
        raise LimitExceeded("series", there, MAX_JOINED, "narrow the pattern down")
    joined = [Joined(reply, 1) for reply in replies[::2]]
    group = grouping(by)
    sums: dict[str | None, Sum] = {}
    for member, (texts,) in itertools.chain.from_iterable(one.readable() for one in joined):
        try:
            series = member.decode().partition(":")[2]
        except UnicodeDecodeError:
            continue  # no name of ours
        if (by or matching([series], name)) and (not where or has_labels(series, where)):
            one = Sum()
            for text in texts[1::2]:
                if (part := sum_of(text)) is not None:
                    one.merge(part)
            if one.count:
                sums.setdefault(group(series), Sum()).add(series, one)
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
        fields = seen.slices(joined[0].now)
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
