"""The data of a deploy verdict: its windows, and the requests within them. No I/O.

After the deploy come fixed looks, which begin after the interval that contains the mark; that
interval is excluded. `previous` compares with the intervals right before it. `yesterday` and
`last-week` compare with the same local time of day then; how much two days differ is learned from
the hours before the deploy, each compared with the same hour of the other day.

`previous` also reads the 5-minute sums of up to ten hours before the deploy, as many as are kept:
they show how noisy error rates are.

A baseline that is not kept at this precision is reported, and no coarser one is used.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile

from redmeter.analysis.comparing.significance import QUANTILE, BucketCounts, Counts, sum_counts
from redmeter.analysis.comparing.storms import LEAST_SUMS, SUM_WIDTH
from redmeter.analysis.comparing.verdict_metrics import BLOCKS, MIN_PAIRS, Traffic
from redmeter.clock import UTC, Zone
from redmeter.names import HITS, HITS_FAILED, REQUESTS, SECONDS, is_failure, parse_name
from redmeter.reading.page.http import route_of
from redmeter.reading.ranking import highest
from redmeter.reading.selection import base_of
from redmeter.results.verdict import LOOKS, NotKept, VerdictWindow, level_of
from redmeter.stored.exponential_histogram import LOWEST, Distribution
from redmeter.stored.keys import (
    DEFAULT_RETENTION,
    HISTOGRAMS,
    HOUR,
    MAX_SAMPLES,
    Retention,
    slice_start,
)
from redmeter.stored.moments import Moments

_DAY = 24 * HOUR
#: What a deploy may be compared with -> how much earlier that is, in seconds without changes of the
#: clock; 0: right before.
AGAINST = {"previous": 0, "yesterday": _DAY, "last-week": 7 * _DAY}
#: Pairs of intervals that are compared before a deploy.
_PAIRS = 24
#: How far back 5-minute sums are read, seconds.
_HISTORY = 10 * HOUR
#: The baseline right before a deploy: seconds, and intervals at least.
_BASELINE, _INTERVALS = HOUR, 12


@dataclass(frozen=True, slots=True)
class VerdictPlan:
    """What a verdict compares."""

    precision: int
    looks: tuple[int, ...]
    look: int | None
    next_look: int | None
    after: VerdictWindow | None = None
    before: VerdictWindow | None = None
    #: If the baseline is on another day: starts of intervals before the deploy, and of theirs.
    pairs: tuple[tuple[int, int], ...] = ()
    #: About counters, or only about histograms.
    not_kept: NotKept | None = None
    paired: bool = False
    #: The 5-minute sums that are kept before the deploy; None if there are too few.
    noise: VerdictWindow | None = None

    @property
    def compares(self) -> bool:
        """Whether there is something to compare."""
        return self.look is not None and (self.not_kept is None or self.not_kept.of == HISTOGRAMS)

    @property
    def level(self) -> float:
        """The part of the error budget that each look has."""
        return level_of(self.look or self.looks[-1], self.looks)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths of blocks, in intervals."""
        longest = BLOCKS.get(self.look or 0, self.precision) // self.precision
        return (1, longest) if longest > 1 else (1,)

    @property
    def starts(self) -> list[int]:
        """The intervals that are compared, ascending."""
        if self.after is None or self.before is None:
            return []
        starts = {start for pair in self.pairs for start in pair}
        for window in (self.after, self.before):
            starts |= {*range(window.since, window.until, self.precision)}
        return sorted(starts)


def plan(
    mark: float,
    now: float,
    against: str,
    precision: int,
    retention: Retention,
    histograms: Retention,
    zone: Zone = UTC,
) -> VerdictPlan:
    """Return the windows of a verdict.

    Args:
        mark, now: Unix seconds.
        against: a key of AGAINST.
        precision: interval width, seconds.
        retention, histograms: what the store keeps.
        zone: whose time of day another day has.

    Raises:
        UnknownPrecision: counters are not kept at this precision.
    """
    retention.check(precision)
    interval = slice_start(mark, precision)
    first = interval + precision
    looks = tuple(look for look in LOOKS if not look % precision) or (precision,)
    look = max((one for one in looks if first + one <= now), default=None)
    later = min((first + one for one in looks if first + one > now), default=None)
    earlier = AGAINST[against]
    if look is None:
        return VerdictPlan(precision, looks, None, later, paired=bool(earlier))
    after = VerdictWindow(first, first + look)

    def other(start: int) -> int:
        return start - zone.back(start, earlier, precision)

    if earlier:
        longest = shortest = other(interval - MIN_PAIRS * precision)
    else:
        length = max(_BASELINE, _INTERVALS * precision)
        longest = interval - length
        shortest = interval - length // 2
    oldest, missing = retention.oldest(precision, now), None
    if oldest > shortest:
        missing = NotKept("counters", shortest, oldest, _command(precision, now - longest, ""))
        return VerdictPlan(
            precision, looks, look, later, after, not_kept=missing, paired=bool(earlier)
        )
    oldest_times = histograms.oldest(precision, now) if precision in histograms else int(now)
    if oldest_times > shortest:
        command = _command(precision, now - longest, "--histograms ")
        missing = NotKept("histograms", shortest, oldest_times, command)
    else:
        oldest = max(oldest, oldest_times)
    if earlier:
        before = VerdictWindow(other(first), other(first) + look)
        starts = [interval - number * precision for number in range(1, _PAIRS + 1)]
        pairs = tuple((one, other(one)) for one in starts if other(one) >= oldest)
    else:
        before, pairs = VerdictWindow(max(longest, oldest), interval), ()
    return VerdictPlan(
        precision,
        looks,
        look,
        later,
        after,
        before,
        pairs,
        missing,
        paired=bool(earlier),
        noise=None if earlier else _history(interval, now, retention),
    )


def _history(until: int, now: float, retention: Retention) -> VerdictWindow | None:
    if SUM_WIDTH not in retention:
        return None
    end = slice_start(until, SUM_WIDTH)
    since = max(end - _HISTORY, retention.oldest(SUM_WIDTH, now))
    return VerdictWindow(since, end) if end - since >= LEAST_SUMS * SUM_WIDTH else None


def _command(precision: int, seconds: float, option: str) -> str:
    """Return the command that keeps a time; "" if no retention does."""
    samples = int(seconds // precision) + 2
    if samples > MAX_SAMPLES:
        return ""
    usual = DEFAULT_RETENTION.get(precision, 0)
    return f"redmeter retention {option}{precision}={usual if usual >= samples else MAX_SAMPLES}"


# --- Requests by route and interval ----------------------------------------------------------

#: Routes that are compared: the busiest.
_MAX_ROUTES = 200


@dataclass(slots=True)
class VerdictData:
    """Stored requests, by series and interval."""

    #: `hits` and `hits_failed`, and the label sets of `http_requests`.
    counts: dict[str, Mapping[int, int]] = field(default_factory=dict)
    #: `hits_seconds` and `http_request_seconds` with their label sets.
    times: dict[str, Mapping[int, Distribution]] = field(default_factory=dict)
    #: The same as `counts`, by 5 minutes; empty against another day.
    sums: dict[str, Mapping[int, int]] = field(default_factory=dict)
    #: Whether all label sets of requests were read.
    complete: bool = True


def busiest_routes(counts: Mapping[str, Mapping[int, int]], starts: Iterable[int]) -> list[str]:
    """Return the routes with the most requests within some intervals."""
    intervals, sums = list(starts), dict[str, int]()
    for route, _, by_start in _requests(counts):
        number = sum([by_start.get(at, 0) for at in intervals])
        if number:
            sums[route] = sums.get(route, 0) + number
    return highest(sums, sums.__getitem__, limit=_MAX_ROUTES)


def _requests(
    counts: Mapping[str, Mapping[int, int]],
) -> Iterable[tuple[str, bool, Mapping[int, int]]]:
    """Yield the label sets of requests: route, whether they failed, counts."""
    for name, by_start in counts.items():
        if base_of(name) == REQUESTS and name != REQUESTS:
            labels = parse_name(name).labels
            yield route_of(labels), is_failure(dict(labels).get("status")), by_start


def traffic_of(windows: VerdictPlan, data: VerdictData) -> tuple[list[Traffic], int]:
    """Return all requests, then the busiest routes; and how many routes there are."""
    requests = _by_route(data.counts, complete=data.complete)
    history = _by_route(data.sums, complete=data.complete)
    times: dict[str, list[Mapping[int, Distribution]]] = {}
    whole: list[Mapping[int, Distribution]] = []
    for name, by_start in data.times.items():
        parsed = parse_name(name)
        if parsed.base == SECONDS:
            times.setdefault(route_of(parsed.labels), []).append(by_start)
        else:
            whole.append(by_start)
    starts = windows.starts
    active = [
        route
        for route, counts in requests.items()
        if route is not None and any(at in counts.of for at in starts)
    ]
    chosen: list[str | None] = [None, *busiest_routes(data.counts, starts)]
    if not any(whole):
        whole = [one for series in times.values() for one in series]
    traffic = []
    for route in chosen:
        of_route = whole if route is None else times.get(route, ())
        one = _of_route(windows, route, requests[route], of_route)
        if windows.noise:
            since, until = windows.noise.since, windows.noise.until
            sums = history.get(route, _Requests())
            counts = [sums.at(at) for at in range(since, until, SUM_WIDTH)]
            one.history = [*dropwhile(lambda each: not each.of, counts)]
        traffic.append(one)
    return traffic, len(active)


@dataclass(slots=True)
class _Requests:
    """Requests and failures of a route, by the start of an interval."""

    of: dict[int, int] = field(default_factory=dict)
    failed: dict[int, int] = field(default_factory=dict)

    def at(self, start: int) -> Counts:
        of = self.of.get(start, 0)
        return Counts(min(self.failed.get(start, 0), of), of)


def _by_route(
    counts: Mapping[str, Mapping[int, int]], *, complete: bool
) -> dict[str | None, _Requests]:
    """Return the requests of each route, and of None for all.

    Args:
        complete: whether all label sets are there.
    """
    routes: dict[str | None, _Requests] = {}
    for route, is_failed, by_start in _requests(counts):
        mine = routes.setdefault(route, _Requests())
        mine.of = sum_counts((mine.of, by_start))
        if is_failed:
            mine.failed = sum_counts((mine.failed, by_start))
    if routes and complete:
        parts = [*routes.values()]
        routes[None] = _Requests(
            sum_counts(one.of for one in parts), sum_counts(one.failed for one in parts)
        )
    else:
        routes[None] = _Requests(*(dict(counts.get(name, {})) for name in (HITS, HITS_FAILED)))
    return routes


def _of_route(
    windows: VerdictPlan,
    route: str | None,
    requests: _Requests,
    times: Sequence[Mapping[int, Distribution]],
) -> Traffic:
    assert windows.after is not None
    assert windows.before is not None
    after, before = (
        range(window.since, window.until, windows.precision)
        for window in (windows.after, windows.before)
    )

    def values(at: int) -> list[Distribution]:
        return [by_start[at] for by_start in times if at in by_start]

    counts = requests.at
    traffic = Traffic(route, [*map(counts, after)], [*map(counts, before)])
    traffic.pairs = [(counts(one), counts(other)) for one, other in windows.pairs]
    if times:
        traffic.times_after = [_buckets(values(at)) for at in after]
        traffic.times_before = [_buckets(values(at)) for at in before]
        traffic.times_pairs = [
            (_buckets(values(one)), _buckets(values(other))) for one, other in windows.pairs
        ]
        traffic.all_after = sum_counts(traffic.times_after)
        traffic.all_before = sum_counts(traffic.times_before)
        traffic.p95_after = _p95(traffic.all_after, [one for at in after for one in values(at)])
        traffic.p95_before = _p95(traffic.all_before, [one for at in before for one in values(at)])
    return traffic


def _buckets(values: Sequence[Distribution]) -> Mapping[int, int]:
    """Return the buckets of values; those that are not positive are below all others."""
    if len(values) == 1 and not values[0].zeros and not values[0].negative:
        return values[0].positive
    buckets = sum_counts([one.positive for one in values])
    others = sum(one.count for one in values) - sum(buckets.values())
    return buckets | {LOWEST - 1: others} if others else buckets


def _p95(merged: BucketCounts, parts: Sequence[Distribution]) -> float | None:
    """Return the p95 of values; their sums and spreads are not merged.

    Args:
        merged: their buckets, as _buckets() returns them.
        parts: the values themselves.
    """
    if not parts:
        return None
    whole = Distribution()
    whole.positive = {bucket: int(n) for bucket, n in merged.items() if bucket >= LOWEST}
    whole.negative = sum_counts([one.negative for one in parts if one.negative])
    whole.zeros = sum(one.zeros for one in parts)
    whole.moments = Moments(
        sum(one.count for one in parts),
        min(one.moments.low for one in parts),
        max(one.moments.high for one in parts),
    )
    return whole.quantile(QUANTILE)
