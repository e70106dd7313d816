"""Histograms: the distribution of values, by interval.

A histogram has two hashes for each precision, interval start -> text. One holds the buckets; the
other the count, sum and spread, which stay small and are enough for a ranking. Its grand total
is a field with the same two texts in `spreads:` and `sums:`. The statistics of the current hour and
of the one before are in statistics.py. Distributions merge, so values are aggregated before they
are sent: first by intervals of some width, then into those of each precision.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from redmeter.stored import statistics
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.intervals import Runs, by_interval, by_precision, events_at_stake, multiples
from redmeter.stored.keys import HOUR, Keys
from redmeter.stored.moments import Moments, merge_all
from redmeter.stored.packed_text import buckets_text, moments_text
from redmeter.types import Operation, Operations

#: Types that can be merged.
M = TypeVar("M", Distribution, Moments)


def operations(
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
        made += statistics.operations(keys, by_name)
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
