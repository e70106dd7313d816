"""The requests of a deploy verdict, by route and interval: of stored series, or of recorded ones.

Pure: verdict.py reads a store, and the meter of tests has events.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from redmeter.analysis import percentiles
from redmeter.analysis.rates import Counts
from redmeter.analysis.verdict import Traffic
from redmeter.format.exponential_histogram import LOWEST, Distribution
from redmeter.format.moments import Moments
from redmeter.names import HITS, HITS_FAILED, REQUESTS, SECONDS, is_failure, parse_name
from redmeter.reading.label_sets import base_of
from redmeter.reading.routes import route_of
from redmeter.reading.verdict_windows import VerdictPlan

#: Routes that are compared: the busiest.
MAX_ROUTES = 200


@dataclass(slots=True)
class VerdictData:
    """Stored requests, by series and interval."""

    #: `hits` and `hits_failed`, and the label sets of `http_requests`.
    counts: dict[str, Mapping[int, int]] = field(default_factory=dict)
    #: `hits_seconds` and `http_request_seconds` with their label sets.
    times: dict[str, Mapping[int, Distribution]] = field(default_factory=dict)
    #: Whether all label sets of requests were read.
    complete: bool = True


def busiest(counts: Mapping[str, Mapping[int, int]], starts: Iterable[int]) -> list[str]:
    """Return the routes with the most requests within some intervals."""
    intervals, sums = list(starts), dict[str, int]()
    for route, _, by_start in _requests(counts):
        number = sum([by_start.get(at, 0) for at in intervals])
        if number:
            sums[route] = sums.get(route, 0) + number
    return sorted(sums, key=lambda route: (-sums[route], route))[:MAX_ROUTES]


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
    failed: dict[str, dict[int, int]] = {}
    of: dict[str, dict[int, int]] = {}
    for route, is_failed, counts in _requests(data.counts):
        for sums in (of, failed) if is_failed else (of,):
            mine = sums.setdefault(route, {})
            for at, number in counts.items():
                mine[at] = mine.get(at, 0) + number
    times: dict[str, list[Mapping[int, Distribution]]] = {}
    whole: list[Mapping[int, Distribution]] = []
    for name, by_start in data.times.items():
        parsed = parse_name(name)
        if parsed.base == SECONDS:
            times.setdefault(route_of(parsed.labels), []).append(by_start)
        else:
            whole.append(by_start)
    starts = windows.starts
    active = [route for route, counts in of.items() if any(at in counts for at in starts)]
    chosen = busiest(data.counts, starts)
    totals = [data.counts.get(name, {}) for name in (HITS, HITS_FAILED)]
    if of and data.complete:
        totals = [percentiles.merged(of.values()), percentiles.merged(failed.values())]
    if not any(whole):
        whole = [one for series in times.values() for one in series]
    traffic = [_of_route(windows, None, totals[0], totals[1], whole)]
    for route in chosen:
        of_route = times.get(route, ())
        traffic.append(_of_route(windows, route, of[route], failed.get(route, {}), of_route))
    return traffic, len(active)


def _of_route(
    windows: VerdictPlan,
    route: str | None,
    of: Mapping[int, int],
    failed: Mapping[int, int],
    times: Sequence[Mapping[int, Distribution]],
) -> Traffic:
    assert windows.after is not None
    assert windows.before is not None
    after, before = (
        range(window.since, window.until, windows.precision)
        for window in (windows.after, windows.before)
    )

    def counts(at: int) -> Counts:
        return Counts(min(failed.get(at, 0), of.get(at, 0)), of.get(at, 0))

    def values(at: int) -> list[Distribution]:
        return [by_start[at] for by_start in times if at in by_start]

    traffic = Traffic(route, [counts(at) for at in after], [counts(at) for at in before])
    traffic.pairs = [(counts(one), counts(other)) for one, other in windows.pairs]
    if times:
        traffic.times_after = [_buckets(values(at)) for at in after]
        traffic.times_before = [_buckets(values(at)) for at in before]
        traffic.times_pairs = [
            (_buckets(values(one)), _buckets(values(other))) for one, other in windows.pairs
        ]
        traffic.all_after = percentiles.merged(traffic.times_after)
        traffic.all_before = percentiles.merged(traffic.times_before)
        traffic.p95_after = _p95(traffic.all_after, [one for at in after for one in values(at)])
        traffic.p95_before = _p95(traffic.all_before, [one for at in before for one in values(at)])
    return traffic


def _buckets(values: Sequence[Distribution]) -> Mapping[int, int]:
    """Return the buckets of values; those that are not positive are below all others."""
    if len(values) == 1 and not values[0].zeros and not values[0].negative:
        return values[0].positive
    buckets = percentiles.merged([one.positive for one in values])
    others = sum(one.count for one in values) - sum(buckets.values())
    return buckets | {LOWEST - 1: others} if others else buckets


def _p95(merged: Mapping[int, int], parts: Sequence[Distribution]) -> float | None:
    """Return the p95 of values; their sums and spreads are not merged.

    Args:
        merged: their buckets, as _buckets() returns them.
        parts: the values themselves.
    """
    if not parts:
        return None
    whole = Distribution()
    whole.positive = {bucket: count for bucket, count in merged.items() if bucket >= LOWEST}
    whole.negative = percentiles.merged([one.negative for one in parts if one.negative])
    whole.zeros = sum(one.zeros for one in parts)
    whole.moments = Moments(
        sum(one.count for one in parts),
        min(one.moments.low for one in parts),
        max(one.moments.high for one in parts),
    )
    return whole.quantile(percentiles.QUANTILE)
