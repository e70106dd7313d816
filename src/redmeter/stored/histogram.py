"""Histograms: the distribution of values, by interval.

A histogram has two hashes for each precision, interval start -> text. One holds the buckets; the
other the count, sum and spread, which stay small and are enough for a ranking. Its grand total
is a field with the same two texts in `spreads:` and `sums:`. Distributions merge, so values are
aggregated before they are sent: first by intervals of some width, then into those of each
precision. At the end of this file are the statistics of the current hour and of the one before.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.intervals import Runs, by_interval, by_precision, events_at_stake, multiples
from redmeter.stored.keys import HOUR, Keys
from redmeter.stored.moments import Moments, clamped, merge_all
from redmeter.stored.packed_text import buckets_text, moments_text
from redmeter.types import Operation, Operations

#: Types that can be merged.
M = TypeVar("M", Distribution, Moments)


def histogram_operations(
    keys: Keys,
    retention: Mapping[int, int],
    distributions: Mapping[str, Mapping[int, Distribution]],
    *,
    width: int = 1,
) -> Operations:
    """Turn distributions into the operations of one batch.

    Args:
        keys: the store's.
        retention: precision -> samples, of histograms.
        distributions: series name -> {interval start, Unix seconds -> distribution}. They are not
            changed, and none is empty.
        width: of those intervals, seconds. Precisions that are not multiples of it are skipped, and
            so are the hourly statistics if the hour is not.
    """
    buckets, moments = Runs(), Runs()
    totals: list[tuple[str, int, str, str]] = []
    precisions = multiples(retention, width)
    of_buckets, of_moments = keys.key("hist"), keys.key("moments")
    for name, given in distributions.items():
        texts = _texts(given.values())
        for precision, samples, intervals in by_precision(given, width, precisions, _merged):
            if len(given) > 1:  # else it is the very same one at every precision
                texts = _texts(intervals.values())
            starts, entry = list(intervals), f"{precision}:{name}"
            buckets.add(precision, samples, of_buckets + entry, starts, texts[0])
            moments.add(precision, samples, of_moments + entry, starts, texts[1])
        if len(texts[0]) != 1:  # else the coarsest precision has all values in one interval
            texts = _texts([_merged(list(given.values()))])
        count = sum([distribution.count for distribution in given.values()])
        totals.append((name, count, texts[1][0], texts[0][0]))
    made: list[Operation] = []
    if buckets:
        sums = moments.text()

        def lost() -> list[tuple[str, int]]:
            return events_at_stake(sums, lambda value: int(value.split()[0]))

        hashes = (keys.hists, *buckets.keys())
        made.append(
            Operation("hist", hashes, (str(len(of_buckets.encode())), buckets.text()), lost)
        )
        args = str(len(of_moments.encode())), sums
        made.append(Operation("moments", tuple(moments.keys()), args, lambda: lost()[1:]))
    if totals:
        made.append(_totals(keys, totals))
    if width and HOUR % width == 0:
        by_name = {name: _moments(given) for name, given in distributions.items()}
        made += statistics_operations(keys, by_name)
    return tuple(made)


def _totals(keys: Keys, totals: Sequence[tuple[str, int, str, str]]) -> Operation:
    """Return the operation that adds to grand totals: name, count, moments and buckets of each."""
    at_stake = [pair for name, count, _, _ in totals for pair in ((name, count), ("", 0))]
    args = [text for name, _, moments, buckets in totals for text in (name, moments, buckets)]
    fields = (keys.sums, keys.spreads) * len(totals)
    return Operation("sums", fields, tuple(args), lambda: at_stake)


def _texts(distributions: Iterable[Distribution]) -> tuple[list[str], list[str]]:
    both = list(distributions)
    return [buckets_text(each) for each in both], [moments_text(each) for each in both]


def _moments(given: Mapping[int, Distribution]) -> Mapping[int, Moments]:
    moments = {start: distribution.moments for start, distribution in given.items()}
    return by_interval(moments, HOUR, _merged)


def _merged(parts: Sequence[M]) -> M:
    return merge_all(type(parts[0])(), parts)


# --- Statistics ----------------------------------------------------------------------------------
# A histogram's aggregates of the current hour, and of the last one that had values.
#
# A sorted set holds min, max, count, sum and sumsq, as in the listings of "Redis in Action", and n,
# mean and m2 of the values that Redmeter wrote. The spread of large values that are close together
# cannot be computed from sum and sumsq (see moments.py), so these serve only for values that other
# programs wrote.

#: How long an hour's statistics are kept after it began, seconds.
STATISTICS_LIFE = 7 * 86400

#: The members of a sorted set.
STATISTICS = ("min", "max", "count", "sum", "sumsq", "n", "mean", "m2")


def statistics_operations(
    keys: Keys,
    moments: Mapping[str, Mapping[int, Moments]],
    *,
    return_totals: bool = False,
    as_is: bool = False,
) -> Operations:
    """Turn moments into the operation of one batch.

    Args:
        keys: the store's.
        moments: name -> {start of an hour, Unix seconds -> moments}; none of them is empty.
        return_totals: whether the outcome has the new count, sum and sumsq, as the reply for the
            first of each four keys.
        as_is: whether to use the listings' keys, which have no `~` after the name.
    """
    sorted_sets: list[str] = []
    args = [str(STATISTICS_LIFE), str(int(return_totals)), str(len(keys.stats("")))]
    lost: list[tuple[str, int]] = []
    for name, hours in moments.items():
        hourly = keys.stats(name, as_is=as_is)
        for hour, m in sorted(hours.items()):  # oldest first, since a later hour replaces it
            sorted_sets += hourly
            args += (name, str(hour), str(m.count))
            args += [f"{n:.17g}" for n in (m.low, m.high, m.total, m.sumsq, m.mean, m.m2)]
            lost += [(str(hour), m.count), *[("", 0)] * (len(hourly) - 1)]
    if not sorted_sets:
        return ()
    return (Operation("stat", tuple(sorted_sets), tuple(args), lambda: lost),)


def statistics_moments(members: Mapping[str, float]) -> Moments:
    """Return the moments of a sorted set's members; empty if there are none.

    The values of other programs are the difference between count, sum and sumsq, and n, mean and
    m2. If rounding lost all digits of their spread, it is 0.
    """
    low, high, count, total, sumsq, n, mean, m2 = (
        clamped(members.get(name, 0.0)) for name in STATISTICS
    )
    moments = Moments()
    if n >= 1 and "mean" in members and "m2" in members:
        moments.add(int(n), low, high, clamped(mean * n), max(0.0, m2))
    others = int(count) - moments.count
    if others > 0:
        rest = total - moments.total
        spread = sumsq - m2 - moments.total * mean - rest * (rest / others)
        moments.add(others, low, high, rest, max(0.0, spread) if math.isfinite(spread) else 0.0)
    if moments.count:
        moments.total = total  # exact, unlike the product of mean and count
    return moments
