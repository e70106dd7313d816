"""Rankings: what is the highest, for top(), the lists of the page, a status and a verdict. No I/O.

All rankings are made of the same five parts:

1. Members: a range of an index, either the label sets of a name (selection.LabelSets) or the series
   that match a pattern (MatchingSeries). join.read_on() reads it in pages, within a join.Budget: so
   many series, so many of them in a round trip; of a background ranking also the server's time.
2. Sums: a page comes with the counts or the moments of its members. sums_of() sums those of the
   window, and those of the time before.
3. Groups: the series of one row, by name or by a label, are added to a RankedGroup.
4. Order: highest() sorts by a value, equal ones by name.
5. The rest: size() of the members is read with the first page, so a result has the number of series
   that were read and the number that there are. top() reads all, or raises an error. A status has
   no such number: it ranks the first counters by name, see diagnosis/busiest.py.

The callers choose the members, the budget and the order: top.py; on the page listing.py,
background_ranking.py, http.py and workloads.py; diagnosis/busiest.py and verdict_data.py.
redmeter.testing ranks series in memory.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from redmeter.errors import InvalidName, InvalidValue, LimitExceeded
from redmeter.names import canonical, format_name, parse_name
from redmeter.reading.join import Ask, join
from redmeter.reading.names import matching_ends
from redmeter.reading.samples import counts_of, covered
from redmeter.reading.selection import has_labels, label_of
from redmeter.results.series import CoveredWindow, Ranked, Ranking
from redmeter.store import indexes
from redmeter.store.query import Read
from redmeter.store.servers.replies import Reply, pairs
from redmeter.stored.counter import count_of
from redmeter.stored.exponential_histogram import RELATIVE_ERROR, Distribution
from redmeter.stored.families import SERIES_KINDS
from redmeter.stored.keys import Keys, Retention, entry
from redmeter.stored.moments import Sums, merge_all
from redmeter.stored.packed_text import merge_moments
from redmeter.types import RANKED_INTERVALS, Selection, Top, Window

T = TypeVar("T")

#: Orders of a ranking, in addition to percentiles such as p50 and p99.9.
RANKING_ORDERS = ("count", "total", "mean", "failing")

#: Groups whose percentiles are read: per row, and in all.
CANDIDATES, MAX_CANDIDATES = 4, 200
#: Series whose histograms are read at most.
MAX_RANKED_HISTOGRAMS = 2_500

#: Where 97.5 % of a normal distribution are below.
_Z = 1.96
#: The relative error of a bound: that of a bucket, and the rounding of sums.
_SLACK = RELATIVE_ERROR + 1e-6
#: More than the part of a squared distance that is lost because it is too small: see moments.py.
_LOST = 1e-300


class Order(NamedTuple):
    """The order of a ranking."""

    word: str
    #: The quantile of a percentile, 0.95 for p95; else None.
    q: float | None = None

    @classmethod
    def parse(cls, word: object) -> "Order":
        """Parse one of RANKING_ORDERS or a percentile.

        Raises:
            InvalidValue: it is neither.
        """
        if isinstance(word, str):
            if word in RANKING_ORDERS:
                return cls(word)
            if word.startswith("p") and word[1:].replace(".", "", 1).isdecimal() and len(word) < 12:
                percent = float(word[1:])
                if word[1:].isascii() and 0 <= percent <= 100:
                    return cls(word, percent / 100)
        raise InvalidValue(
            word, f"rank by one of {', '.join(RANKING_ORDERS)}, or a percentile as p95"
        )

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that can be ranked, the first that has some that match."""
        if self.word == "count":
            return ("counter", "histogram")
        return ("counter",) if self.word == "failing" else ("histogram",)


def ranked_window(wanted: Top, retention: Retention, now: float) -> CoveredWindow:
    """Return the intervals that are ranked.

    Raises:
        UnknownPrecision: the precision is not kept.
    """
    precision, since, until, last = window = wanted.window
    if since is until is last is None:
        kept = retention[retention.check(precision)]
        window = Window(precision, last=min(RANKED_INTERVALS, kept) * precision)
    return covered(window, retention, now)


def single_name(wanted: Top) -> Selection | None:
    """Return the selection of the one name that a ranking reads, or None for a pattern."""
    if not wanted.by and any(sign in wanted.name for sign in "*?["):
        return None
    try:
        canonical(wanted.name)
    except InvalidName:
        return None
    by = (wanted.by,) if wanted.by else ()
    return Selection(wanted.name, wanted.where or {}, by, exact="{" in wanted.name)


# --- Members, sums, groups, order ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MatchingSeries:
    """The series that an index lists at one precision and that can match a pattern: see names.py.

    Those that begin as the pattern does; names.matching() finds those that match.
    """

    keys: Keys
    #: `counter`, `gauge` or `histogram`.
    kind: str
    #: Interval width, seconds.
    precision: int
    pattern: str

    def join(
        self,
        asks: Sequence[Ask],
        count: int,
        after: bytes = b"",
        *,
        offset: int = 0,
        limit_us: int = 0,
    ) -> Read:
        """Read series, with the values of their keys.

        Args:
            asks, count, after: see LabelSets.join().
            offset, limit_us: see redmeter.reading.join.join().
        """
        first, last = matching_ends(self.precision, self.pattern)
        ends, cut = (b"(" + after if after else first, last), len(entry(self.precision, ""))
        return join(
            self.keys, self._index, ends, cut, asks, count=count, offset=offset, limit_us=limit_us
        )

    def size(self) -> Read:
        """Read how many there are."""
        return indexes.size_between(
            self.keys, self._index, *matching_ends(self.precision, self.pattern)
        )

    @property
    def _index(self) -> str:
        return self.keys.key(SERIES_KINDS[self.kind].index.name)


def sums_of(kind: str, reply: Reply, within: range | None = None) -> Sums:
    """Return the moments of a series; of a counter, its count.

    Args:
        kind: `counter` or `histogram`.
        reply: its intervals, [start, value, …], that a join was asked for.
        within: only intervals that start at one of these times; None: all.
    """
    if kind == "counter":
        try:
            if within is None:
                return Sums(sum(map(count_of, reply[1::2])))
        except ValueError:
            pass  # another program's: only the counts are summed
        counts = counts_of(reply)
        return Sums(sum(n for start, n in counts.items() if within is None or start in within))
    if within is None:
        return merge_moments(reply[1::2])
    return merge_moments(text for start, text in pairs(reply) if int(start) in within)


@dataclass(slots=True)
class RankedGroup:
    """The series that are one row, and their sums; of counters these are counts."""

    sums: Sums = field(default_factory=Sums)
    #: The names of the series, as stored -> their events within the window.
    series: dict[str, int] = field(default_factory=dict)
    #: Events of the series that failed.
    failed: int = 0
    #: The sums of the time before the window; None if they were not read, or nothing keeps them.
    before: Sums | None = None

    def add(
        self, name: str, sums: Sums, before: Sums | None = None, *, failed: bool = False
    ) -> None:
        """Add a series."""
        _merge(self.sums, sums)
        self.series[name] = sums.count
        if failed:
            self.failed += sums.count
        if before is not None:
            if self.before is None:
                self.before = Sums()
            _merge(self.before, before)

    @property
    def count_before(self) -> int | None:
        """The events of the time before the window; None: see `before`."""
        return None if self.before is None else self.before.count

    def value(self, order: Order) -> float | None:
        """Return the value that the group is ranked by, if that is no percentile.

        None for a total or a mean whose sum may have been cut: see Sums.exact_total.
        """
        if order.word == "failing":
            return self.failed
        if order.word == "count":
            return self.sums.count
        return self.sums.exact_total if order.word == "total" else self.sums.exact_mean


def _merge(whole: Sums, part: Sums) -> None:
    if part.total or part.m2 or whole.total or whole.m2:
        whole.merge(part)
    else:  # of counters, at a tenth of the time
        whole.count += part.count


def highest(
    items: Iterable[T],
    *values: Callable[[T], float],
    name: Callable[[T], str] = str,
    limit: int | None = None,
) -> list[T]:
    """Return items with the highest first.

    Args:
        values: return the value that is compared, and those that decide between equal ones.
        name: returns what decides in the end.
        limit: how many of them.
    """

    ordered = sorted(items, key=name)
    for value in reversed(values):
        ordered.sort(key=value, reverse=True)  # equal ones stay in their order
    return ordered[:limit]


def at_least(failed: int, count: int) -> float:
    """Return the lowest likely error rate, with 97.5 %: the lower end of Wilson's interval.

    By it, one failure of one event ranks below a hundred of a thousand.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference".
    """
    if not failed:
        return 0.0
    share, doubt = failed / count, _Z * _Z / count
    spread = _Z * math.sqrt(share * (1 - share) / count + doubt / (4 * count))
    return max(0.0, (share + doubt / 2 - spread) / (1 + doubt))


def quantile_of(q: float, spreads: Iterable[Distribution | None]) -> float | None:
    """Return a quantile of distributions together; None if they have no values.

    Args:
        q: 0 to 1.
        spreads: None stands for one that could not be read.
    """
    whole = merge_all(Distribution(), filter(None, spreads))
    return whole.quantile(q) if whole.count else None


# --- top() ---------------------------------------------------------------------------------


def ranked_groups(sums: Mapping[str, Sums], wanted: Top) -> dict[str | None, RankedGroup]:
    """Group the series with events by the rows of a ranking, and merge their moments."""
    groups = dict[str | None, RankedGroup]()
    for series, part in sums.items():
        if part.count > 0:
            failed = has_labels(series, wanted.failing) if wanted.failing else False
            group = groups.setdefault(_row_of(series, wanted), RankedGroup())
            group.add(series, part, failed=failed)
    return groups


def _row_of(series: str, wanted: Top) -> str | None:
    """Return the row of a series: the value of a label, or its name without those of failures."""
    if wanted.by:
        return label_of(series, wanted.by)
    if not wanted.failing:
        return series
    try:
        base, pairs = parse_name(series)
    except InvalidName:
        return series
    return format_name(
        base, {label: value for label, value in pairs if label not in wanted.failing}
    )


def rank(
    groups: Mapping[str | None, RankedGroup], values: Mapping[str | None, float | None], wanted: Top
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
    return Ranking(
        tuple(
            highest(rows, lambda row: row.value, name=lambda row: row.key or "", limit=wanted.limit)
        ),
        groups=len(groups),
        examined=len(known) or len(groups),
        complete=len(known) == len(values),
    )


def upper_bound(sums: Sums, q: float) -> float:
    """Return an upper bound of the quantile q of values, as it is read from buckets."""
    if sums.exact_total is None:
        return math.inf  # total and m2 were cut, and bound nothing
    farthest = sums.count - 1.0
    if q < 1.0:
        farthest = min(q / (1.0 - q), farthest)
    above = math.sqrt((sums.m2 / sums.count + _LOST) * farthest)
    return sums.mean + above + (abs(sums.mean) + above) * _SLACK  # they may cancel each other


def choose_candidates(
    groups: Mapping[str | None, RankedGroup], q: float, limit: int
) -> tuple[list[str | None], list[str | None]]:
    """Choose the groups whose histograms are read: those with the largest bounds.

    Args:
        q: the quantile, 0 to 1.
        limit: how many rows the ranking has.

    Returns:
        The groups, and those that are left out since they have too many series.

    Raises:
        LimitExceeded: each group has over MAX_RANKED_HISTOGRAMS series.
    """
    chosen: list[str | None] = []
    left_out: list[str | None] = []
    series = 0
    for key in highest(
        groups, lambda key: upper_bound(groups[key].sums, q), name=lambda key: key or ""
    ):
        if len(chosen) == min(CANDIDATES * limit, MAX_CANDIDATES):
            break
        number = len(groups[key].series)
        if series + number > MAX_RANKED_HISTOGRAMS:
            left_out.append(key)
            continue
        series += number
        chosen.append(key)
    if groups and not chosen:
        fewest = min(len(group.series) for group in groups.values())
        raise LimitExceeded("series", fewest, MAX_RANKED_HISTOGRAMS, "narrow them down by labels")
    return chosen, left_out


def rank_percentiles(
    groups: Mapping[str | None, RankedGroup],
    values: Mapping[str | None, float | None],
    left_out: Iterable[str | None],
    q: float,
    wanted: Top,
) -> Ranking:
    """Rank groups by percentiles, and note whether the groups without one may be higher."""
    ranking = rank(groups, values, wanted)
    rest = [upper_bound(group.sums, q) for key, group in groups.items() if key not in values]
    full = len(ranking) == wanted.limit
    complete = not rest or (full and ranking[-1].value > max(rest))
    return replace(ranking, complete=complete, left_out=tuple(left_out))
