"""Rankings as values: orders, groups of series, and the rows that are made of them. No I/O.

top.py reads the series of a ranking from a store, and redmeter.testing from memory.

Percentiles need histograms, which are ten to a hundred times as large as counts. So they are read
of a bounded number of groups: those that may be the highest, as their moments show. At most a part
1 - q of the values can be far above the mean, since that makes the standard deviation large. So the
quantile q of n values is at most

    mean + stddev * sqrt(min(q / (1 - q), n - 1))

where stddev has n as its divisor. The groups with the largest bounds are read. If the lowest row is
above the bounds of all other groups, the ranking is complete without them.

Source: Cantelli's inequality; Samuelson's for n - 1.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from redmeter.errors import InvalidName, InvalidValue, LimitExceeded
from redmeter.names import canonical, format_name, parse_name
from redmeter.reading.samples import newest_intervals, starts_of
from redmeter.reading.selection import has_labels, label_of
from redmeter.results.series import Ranked, Ranking
from redmeter.stored.exponential_histogram import RELATIVE_ERROR
from redmeter.stored.keys import Retention
from redmeter.stored.moments import Sums
from redmeter.types import RANKED_INTERVALS, Selection, Top, Window

#: Orders of a ranking, in addition to percentiles such as p50 and p99.9.
ORDERS = ("count", "total", "mean", "failing")

#: Groups whose percentiles are read: per row, and in all.
CANDIDATES, MAX_GROUPS = 4, 200
#: Series whose histograms are read at most.
MAX_HISTOGRAMS = 2_500

#: The relative error of a bound: that of a bucket, and the rounding of sums.
_SLACK = RELATIVE_ERROR + 1e-6
#: More than the part of a squared distance that is lost because it is too small: see moments.py.
_LOST = 1e-300

#: Returns the row that a series belongs to: its name, or the value of a label.
GroupBy = Callable[[str], str | None]


class Order(NamedTuple):
    """The order of a ranking."""

    word: str
    #: The quantile of a percentile, 0.95 for p95; else None.
    q: float | None = None

    @classmethod
    def parse(cls, word: object) -> "Order":
        """Parse one of ORDERS or a percentile.

        Raises:
            InvalidValue: it is neither.
        """
        if isinstance(word, str):
            if word in ORDERS:
                return cls(word)
            if word.startswith("p") and word[1:].replace(".", "", 1).isdecimal() and len(word) < 12:
                percent = float(word[1:])
                if word[1:].isascii() and 0 <= percent <= 100:
                    return cls(word, percent / 100)
        raise InvalidValue(word, f"rank by one of {', '.join(ORDERS)}, or a percentile as p95")

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that can be ranked, the first that has some that match."""
        if self.word == "count":
            return ("counter", "histogram")
        return ("counter",) if self.word == "failing" else ("histogram",)


def intervals_of(wanted: Top, retention: Retention, now: float) -> range:
    """Return the starts of the intervals that are ranked, in steps of the precision.

    Raises:
        UnknownPrecision: it is not kept.
        LimitExceeded: more intervals than are kept.
    """
    precision, since, until, last = window = wanted.window
    kept = retention[retention.check(precision)]
    if last is not None and (number := newest_intervals(last, precision)) > kept:
        raise LimitExceeded("intervals", number, kept, "choose a coarser precision, or less time")
    if since is until is last is None:
        window = Window(precision, last=RANKED_INTERVALS * precision)
    return starts_of(window, retention, now)


def single_name(wanted: Top) -> Selection | None:
    """Return the selection of the one name that a ranking reads; None for a pattern."""
    if not wanted.by and any(sign in wanted.name for sign in "*?["):
        return None
    try:
        canonical(wanted.name)
    except InvalidName:
        return None
    return Selection(wanted.name, exact="{" in wanted.name)


def group_by(wanted: Top) -> GroupBy:
    """Return the function that groups the series of a ranking."""
    label, failing = wanted.by, wanted.failing
    if label:
        return lambda series: label_of(series, label)
    if failing:
        return lambda series: _without(series, failing)
    return lambda series: series


def _without(series: str, labels: Collection[str]) -> str:
    try:
        base, pairs = parse_name(series)
    except InvalidName:
        return series
    return format_name(base, {label: value for label, value in pairs if label not in labels})


# --- Groups and rows -----------------------------------------------------------------------


@dataclass(slots=True)
class Group:
    """The series that are one row: their names, and their moments, of counters the counts."""

    sums: Sums = field(default_factory=Sums)
    series: list[str] = field(default_factory=list)
    #: Events of the series that have the labels `failing`.
    failed: int = 0

    def value(self, order: Order) -> float | None:
        """Return the value that the group is ranked by, if that is no percentile.

        None for a total or a mean whose sum may have been cut: see Sums.exact_total.
        """
        if order.word == "failing":
            return self.failed
        if order.word == "count":
            return self.sums.count
        return self.sums.exact_total if order.word == "total" else self.sums.exact_mean


def groups_of(sums: Mapping[str, Sums], wanted: Top) -> dict[str | None, Group]:
    """Group the series with events by the rows of a ranking, and merge their moments."""
    group, groups = group_by(wanted), dict[str | None, Group]()
    for series, part in sums.items():
        if part.count > 0:
            row = groups.setdefault(group(series), Group())
            row.sums.merge(part)
            row.series.append(series)
            if wanted.failing and has_labels(series, wanted.failing):
                row.failed += part.count
    return groups


def rank(
    groups: Mapping[str | None, Group], values: Mapping[str | None, float | None], wanted: Top
) -> Ranking:
    """Rank groups by values; groups that lack one are left out, and not compared.

    The share of a group is its part of the count, or of the total of the others if that is ranked;
    of failures, their part of the group's count. Groups without failures have no row.
    """
    count = sum(group.sums.count for group in groups.values())
    known = {key: value for key, value in values.items() if value is not None}
    # By the largest, so that no sum is infinite.
    largest = max(map(abs, known.values()), default=0.0) or 1.0
    total = sum(value / largest for value in known.values()) if wanted.order == "total" else 0.0
    rows = []
    for key, value in known.items():
        events = groups[key].sums.count
        share = events / count
        if wanted.order == "total":
            share = value / largest / total if total else 0.0
        elif wanted.order == "failing":
            share = value / events
        if value or wanted.order != "failing":
            rows.append(Ranked(key, events, share, value))
    rows.sort(key=lambda row: (-row.value, row.key or ""))
    return Ranking(
        tuple(rows[: wanted.limit]),
        groups=len(groups),
        examined=len(known) or len(groups),
        complete=len(known) == len(values),
    )


def bound(sums: Sums, q: float) -> float:
    """Return an upper bound of the quantile q of values, as it is read from buckets."""
    if sums.exact_total is None:
        return math.inf  # total and m2 were cut, and bound nothing
    farthest = sums.count - 1.0
    if q < 1.0:
        farthest = min(q / (1.0 - q), farthest)
    above = math.sqrt((sums.m2 / sums.count + _LOST) * farthest)
    return sums.mean + above + (abs(sums.mean) + above) * _SLACK  # they may cancel each other


def choose(
    groups: Mapping[str | None, Group], q: float, limit: int
) -> tuple[list[str | None], list[str | None]]:
    """Choose the groups whose histograms are read: those with the largest bounds.

    Args:
        q: the quantile, 0 to 1.
        limit: how many rows the ranking has.

    Returns:
        The groups, and those that are left out since they have too many series.

    Raises:
        LimitExceeded: each group has over MAX_HISTOGRAMS series.
    """
    chosen: list[str | None] = []
    left_out: list[str | None] = []
    series = 0
    for key in sorted(groups, key=lambda key: (-bound(groups[key].sums, q), key or "")):
        if len(chosen) == min(CANDIDATES * limit, MAX_GROUPS):
            break
        number = len(groups[key].series)
        if series + number > MAX_HISTOGRAMS:
            left_out.append(key)
            continue
        series += number
        chosen.append(key)
    if groups and not chosen:
        fewest = min(len(group.series) for group in groups.values())
        raise LimitExceeded("series", fewest, MAX_HISTOGRAMS, "narrow them down by labels")
    return chosen, left_out


def rank_percentiles(
    groups: Mapping[str | None, Group],
    values: Mapping[str | None, float | None],
    left_out: Iterable[str | None],
    q: float,
    wanted: Top,
) -> Ranking:
    """Rank groups by percentiles, and note whether the groups without one may be higher."""
    ranking = rank(groups, values, wanted)
    rest = [bound(group.sums, q) for key, group in groups.items() if key not in values]
    full = len(ranking) == wanted.limit
    complete = not rest or (full and ranking[-1].value > max(rest))
    return replace(ranking, complete=complete, left_out=tuple(left_out))
