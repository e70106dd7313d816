"""Which series, or which values of a label, happen most often, take longest or fail most.

Counters are ranked by their counts, or by how many of them failed: all of them are read. Observed
values are ranked by count, total or mean from their moments, a short text a slice, also of all.
Their percentiles need histograms, which are ten to a hundred times as large. So these are read of a
bounded number: of those of which mean and spread allow the highest, see observed.py. What is not
among them is not ranked; the ranking says how many were looked at, of how many, and whether the
others can be among the highest at all.

Windows of observed values are read from the coarsest slices that fit: see summaries.cover().
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from redmeter.errors import InvalidName, InvalidValue, LimitExceeded
from redmeter.format.counter import count_of
from redmeter.keys import Retention
from redmeter.names import format_name, parse_name
from redmeter.reading.catalogue import Candidates, candidates
from redmeter.reading.foreign_keys import readable
from redmeter.reading.label_sets import check_labels, has_labels, label_of
from redmeter.reading.observed import Sum, ask_in_pages, percentiles, read_sums
from redmeter.reading.summaries import check_whole, cover, window_of
from redmeter.store import Store
from redmeter.store.replies import Command
from redmeter.types import MAX_RANKED_ROWS, RANKED_ROWS, RANKED_SLICES, Ranked, Ranking

#: Most series that are counted for one ranking.
MAX_CANDIDATES = 20_000

#: What may be ranked by, beside percentiles: p50, p99.9.
ORDERS = ("count", "total", "mean", "failing")

#: What a row stands for: a series' name, or a value of a label.
Group = Callable[[str], str | None]


class Order(NamedTuple):
    """What a ranking goes by."""

    word: str
    #: For percentiles: 0.95 for p95; else None.
    q: float | None = None

    @classmethod
    def parse(cls, word: object) -> "Order":
        """Read one of ORDERS, or a percentile.

        Raises:
            InvalidValue: none of these.
        """
        if isinstance(word, str):
            if word in ORDERS:
                return cls(word)
            if word.startswith("p") and word[1:].replace(".", "", 1).isdecimal() and len(word) < 12:
                percent = float(word[1:])
                if word[1:].isascii() and 0 <= percent <= 100:
                    return cls(word, percent / 100)
        raise InvalidValue(word, f"rank by one of {', '.join(ORDERS)}, or a percentile as p95")


def rank(
    store: Store,
    name: str,
    precision: int,
    *,
    by: str | None = None,
    slices: int | None = None,
    limit: int = RANKED_ROWS,
    order: str = "count",
    where: Mapping[str, str] | None = None,
    failing: Mapping[str, str] | None = None,
    since: float | None = None,
    until: float | None = None,
) -> Ranking:
    """Rank by what happened within a window: of the newest slices, or of any that are kept.

    A round trip for which series there are, and one for the slices of each 1,000; of percentiles
    one more for each 500 series. Series under whose keys another program keeps something else are
    left out: see foreign_keys.py.

    Args:
        name: with `by`, a name without labels, all of whose label sets are added up by that
            label; without, a pattern (see read_names): each series that matches is a row.
        precision: slice width, seconds.
        by: a label.
        slices: no more than so many of the newest slices, the running one included, at most what
            the store keeps; None: all from `since` to `until` where one of them is given, else
            RANKED_SLICES, or all that are kept.
        limit: how many rows, 1 to MAX_RANKED_ROWS.
        order: `count`, of counters or, where none matches, of observed values; of these `total`,
            `mean`, or a percentile: `p50` to `p99.9`; or `failing`, of counters.
        where: only series that have these labels.
        failing: for that order, the labels of what failed: {"status": "5xx"}.
        since, until: leave out slices that end before or start after, Unix seconds.

    Returns:
        The highest first, equal ones by name; nothing that did not happen at all.

    Raises:
        InvalidValue: no such order; or `failing` without labels, or the other way round.
        TypeError: a number that is none, or labels that are no texts.
        UnknownPrecision: the store does not keep it.
        LimitExceeded: too many rows, slices or candidates.
        StoreError: the server cannot be reached or refuses.
    """
    return rank_now(
        store,
        name,
        precision,
        by=by,
        slices=slices,
        limit=limit,
        order=order,
        where=where,
        failing=failing,
        since=since,
        until=until,
    )[1]


def rank_now(
    store: Store,
    name: str,
    precision: int,
    *,
    by: str | None,
    slices: int | None,
    limit: int,
    order: str,
    where: Mapping[str, str] | None,
    failing: Mapping[str, str] | None,
    since: float | None = None,
    until: float | None = None,
) -> tuple[float, Ranking]:
    """Return a ranking, and the server's clock, Unix seconds: see rank()."""
    wanted = check_order(order, failing)
    check_labels("where", where)
    _check_rows(limit)
    found = (
        candidates(store, precision, base=name)
        if by
        else candidates(store, precision, pattern=name)
    )
    group = grouping(by, failing)
    counted, wished = _with_labels(found.counters, where), (since, until, slices)
    if wanted.word == "failing" or (wanted.word == "count" and (counted or not found.histograms)):
        window = ranked_window(found.view.retention, precision, found.view.now, *wished)
        counts = _counts(store, counted, window)
        if failing:
            rows = ranked_failing(counts, group, failing, limit)
        else:
            rows = ranked(grouped(counts, group).items(), limit)
    else:
        window = ranked_window(found.view.histograms, precision, found.view.now, *wished)
        rows = _rank_observed(store, found, where, group, wanted, window, limit)
    rows.slices = len(window)
    return found.view.now, rows


def check_order(order: object, failing: Mapping[str, str] | None) -> Order:
    """Read what a ranking goes by.

    Raises:
        InvalidValue: see rank().
    """
    found = Order.parse(order)
    check_labels("failing", failing)
    if (found.word == "failing") != bool(failing):
        raise InvalidValue(
            failing or order,
            "order='failing' and the labels of what failed go together: "
            'top(…, order="failing", failing={"status": "5xx"})',
        )
    return found


def ranked_window(
    retention: Retention,
    precision: int,
    now: float,
    since: float | None,
    until: float | None,
    slices: int | None,
) -> range:
    """Return the starts of the slices that are ranked, in steps of the precision.

    Raises:
        UnknownPrecision, LimitExceeded, TypeError: see rank().
    """
    retention.check(precision)
    if slices is None and since is None and until is None:
        slices = min(RANKED_SLICES, retention[precision])
    first, end = window_of(retention, precision, now, since, until, slices)
    return range(first, end, precision)


def _with_labels(names: Sequence[str], where: Mapping[str, str] | None) -> Sequence[str]:
    found = [n for n in names if has_labels(n, where)] if where else names
    if len(found) > MAX_CANDIDATES:
        raise LimitExceeded("series", len(found), MAX_CANDIDATES, "narrow the pattern down")
    return found


# --- Counters ------------------------------------------------------------------------------


def _counts(store: Store, names: Sequence[str], window: range) -> dict[str, int]:
    """Return how often each series happened; those that did not are left out."""
    if not window:
        return {}
    # Both spellings of a slice start; the second is that of `now // prec * prec`.
    fields = [spelling for start in window for spelling in (str(start), f"{start}.0")]
    commands: list[Command] = [
        ("HMGET", store.keys.count(window.step, series), *fields) for series in names
    ]
    replies = ask_in_pages(store, commands)
    found = readable({series: [reply] for series, reply in zip(names, replies, strict=True)})
    counts = {}
    for series, (reply,) in found.items():
        count = sum(map(_whole, reply))
        if count > 0:
            counts[series] = count
    return counts


def grouped(counts: Mapping[str, int], group: Group) -> dict[str | None, int]:
    """Add up the counts of series by the rows that they belong to."""
    sums: dict[str | None, int] = {}
    for series, count in counts.items():
        key = group(series)
        sums[key] = sums.get(key, 0) + count
    return sums


def ranked_failing(
    counts: Mapping[str, int], group: Group, failing: Mapping[str, str], limit: int
) -> Ranking:
    """Rank groups by how many of them failed; the share is that of the group's own count."""
    whole = grouped(counts, group)
    failed = grouped({s: n for s, n in counts.items() if has_labels(s, failing)}, group)
    rows = [Ranked(key, whole[key], n / whole[key], n) for key, n in failed.items()]
    return _sorted(rows, limit, len(whole))


def ranked(counts: Iterable[tuple[str | None, int]], limit: int) -> Ranking:
    """Return the rows of a ranking by count, equal ones by name."""
    rows = list(counts)
    whole = sum(count for _, count in rows)
    return _sorted([Ranked(key, n, n / whole, n) for key, n in rows], limit, len(rows))


def _sorted(rows: Collection[Ranked], limit: int, groups: int, looked_at: int = 0) -> Ranking:
    highest = sorted(rows, key=lambda row: (-row.value, row.key or ""))[:limit]
    return Ranking(highest, groups=groups, looked_at=looked_at or groups)


# --- Observed values -----------------------------------------------------------------------


def _rank_observed(
    store: Store,
    found: Candidates,
    where: Mapping[str, str] | None,
    group: Group,
    order: Order,
    window: range,
    limit: int,
) -> Ranking:
    names = _with_labels(found.histograms, where)
    fields = cover(found.view.histograms, found.view.now, window.start, window.stop)
    sums: dict[str | None, Sum] = {}
    for series, part in read_sums(store, names, fields).items():
        sums.setdefault(group(series), Sum()).add(series, part)
    if order.q is None:
        values = {key: one.value(order.word) for key, one in sums.items()}
        return ranked_values(sums, values, order, limit)
    values, left_out, rest = percentiles(store, sums, fields, order.q, limit)
    rows = ranked_values(sums, values, order, limit)
    full = len(rows) == limit
    rows.complete = rest is None or (full and rows[-1].value > rest)
    rows.left_out = tuple(left_out)
    return rows


def ranked_values(
    sums: Mapping[str | None, Sum], values: Mapping[str | None, float], order: Order, limit: int
) -> Ranking:
    """Rank groups by their values, which some of them may lack."""
    count = sum(one.count for one in sums.values())
    whole = sum(one.total for one in sums.values()) if order.word == "total" else 0.0
    rows = []
    for key, value in values.items():
        share = sums[key].count / count
        if order.word == "total":
            share = value / whole if whole else 0.0
        rows.append(Ranked(key, sums[key].count, share, value))
    return _sorted(rows, limit, len(sums), len(values))


# --- Groups and limits ---------------------------------------------------------------------


def grouping(by: str | None, failing: Mapping[str, str] | None = None) -> Group:
    """Return what tells the row that a series belongs to."""
    if by:
        return lambda series: label_of(series, by)
    if failing:
        return lambda series: _without(series, failing)
    return lambda series: series


def _without(series: str, labels: Collection[str]) -> str:
    try:
        base, pairs = parse_name(series)
    except InvalidName:
        return series
    return format_name(base, {key: value for key, value in pairs if key not in labels})


def check_limits(limit: int, slices: int, kept: int) -> None:
    """Check how many rows and slices are asked for.

    Raises:
        LimitExceeded: none, or too many.
    """
    _check_rows(limit)
    check_whole("slices", slices)
    if not 1 <= slices <= kept:
        raise LimitExceeded("intervals", slices, kept, "ask for 1 or more, up to what is kept")


def _check_rows(limit: int) -> None:
    check_whole("limit", limit)
    if not 1 <= limit <= MAX_RANKED_ROWS:
        raise LimitExceeded("rows", limit, MAX_RANKED_ROWS, "ask for 1 or more, up to the limit")


def _whole(value: bytes | None) -> int:
    try:
        return count_of(value or None)
    except ValueError:
        return 0  # somebody else's: see slices_of()
