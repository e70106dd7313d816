"""Rankings by what can be summed up: counts, failures, totals and means; two round trips.

The server looks the slices of all series up by itself (join.py), so they cost a tenth of what
rankings.py spends on them. What it does meanwhile holds up others: no more than MAX_SUMMED series.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from redmeter.errors import LimitExceeded
from redmeter.keys import Kept, Keys, Retention, entry
from redmeter.model import Ranking
from redmeter.reading.catalogue import matching
from redmeter.reading.join import Joined, counts_of, join, of_window
from redmeter.reading.observed import Sum, sum_of
from redmeter.reading.ranked import ends_of
from redmeter.reading.rankings import (
    DEFAULT_SLICES,
    Order,
    check_limits,
    grouped,
    grouping,
    ranked,
    ranked_failing,
    ranked_values,
)
from redmeter.reading.summaries import has_labels
from redmeter.reading.together import Question
from redmeter.reading.windows import window_of
from redmeter.store.link import Command, Reply, raised

#: Series that are summed up.
MAX_SUMMED = 5_000


class _Wanted(NamedTuple):
    """Which series are ranked."""

    name: str
    precision: int
    by: str | None
    where: Mapping[str, str] | None
    slices: int | None


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
) -> Question[Ranking]:
    """Rank by anything but a percentile: see rankings.rank(). Starts are whole numbers here.

    Raises:
        UnknownPrecision: it is not kept of what is ranked.
        LimitExceeded: over MAX_SUMMED series, or more slices than are kept.
    """
    assert order.q is None, "percentiles are ranked by ranked.py"
    wanted = _Wanted(name, precision, by, where, slices)
    group = grouping(by, failing)
    if order.word in ("count", "failing"):
        view, replies = yield _asked(keys.known, keys.count_of(""), kept.series, wanted)
        counts = {one: sum(counts_of(slices).values()) for one, slices in _read(replies, wanted)}
        happened = {name: count for name, count in counts.items() if count > 0}
        if failing:
            rows = ranked_failing(happened, group, failing, limit)
        else:
            rows = ranked(grouped(happened, group).items(), limit)
        if failing or counts:
            rows.slices = _slices(view.retention, wanted, limit)
            return rows
    view, replies = yield _asked(keys.hists, keys.moments_of(""), kept.histograms, wanted)
    found = list(_read(replies, wanted))
    if order.word == "count" and not found:
        rows.slices = _slices(view.retention, wanted, limit)
        return rows
    sums: dict[str | None, Sum] = {}
    for one, texts in found:
        whole = Sum()
        for text in texts[1::2]:
            if (part := sum_of(text)) is not None:
                whole.merge(part)
        if whole.count:
            sums.setdefault(group(one), Sum()).add(one, whole)
    values = {key: one.value(order.word) for key, one in sums.items()}
    rows = ranked_values(sums, values, order, limit)
    rows.slices = _slices(view.histograms, wanted, limit)
    return rows


def _asked(index: str, family: str, kept: Mapping[int, int], wanted: _Wanted) -> list[Command]:
    """Return what asks for series with their slices, and how many there are, by turns."""
    width = wanted.precision
    if width not in kept:
        return []  # whether that is an error is told by what else there is
    seen = window_of(kept, width, min(wanted.slices or DEFAULT_SLICES, kept[width]))
    commands: list[Command] = []
    for ends in ends_of(width, wanted.name, wanted.by):
        some = ("ZRANGEBYLEX", *ends, "LIMIT", 0, MAX_SUMMED)
        commands += [
            join(index, some, len(entry(width, "")), [of_window(family, seen)]),
            ("ZLEXCOUNT", index, *ends),
        ]
    return commands


def _read(replies: Sequence[Reply], wanted: _Wanted) -> Iterator[tuple[str, Sequence[bytes]]]:
    """Yield the series that are ranked, with their slices.

    Raises:
        LimitExceeded: there are too many.
    """
    there = sum(map(raised, replies[1::2]))
    if there > MAX_SUMMED:
        raise LimitExceeded("series", there, MAX_SUMMED, "narrow the pattern down")
    for reply in replies[::2]:
        for member, (slices,) in Joined(reply, 1).readable():
            try:
                series = member.decode().partition(":")[2]
            except UnicodeDecodeError:
                continue  # no name of ours
            fits = wanted.by or matching([series], wanted.name)
            if fits and (not wanted.where or has_labels(series, wanted.where)):
                yield series, slices


def _slices(kept: Retention, wanted: _Wanted, limit: int) -> int:
    """Check what was asked for, and return how many slices were ranked."""
    most = kept[kept.check(wanted.precision)]
    check_limits(limit, wanted.slices or 1, most)
    return min(wanted.slices or DEFAULT_SLICES, most)
