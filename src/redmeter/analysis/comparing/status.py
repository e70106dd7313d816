"""Whether the last five complete minutes of an application are as usual, by measure and group.

    requests     five-minute sums against the level before: see traffic.py
    error rate   failures among requests, in all and of each route and background task; client
                 errors of each route; see incidents.py
    p95          the share of values above the usual p95, by the same rule

The cause of a change of the total comes from the same counts: a few groups that carry most of it,
or all groups alike.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal, NamedTuple

from redmeter.analysis.comparing.incidents import (
    BLOCK,
    DAY_SECONDS,
    FALSE_ALARM,
    LEAST_RISE,
    CellGrid,
    Incident,
    Shares,
    UsualShare,
    highest_usual,
    rise_probability,
)
from redmeter.analysis.comparing.sentences import unit_of
from redmeter.analysis.comparing.traffic import (
    LEVEL_BLOCKS,
    NewLevel,
    Quiet,
    TrafficLevel,
    silence,
)
from redmeter.clock import UTC, Zone
from redmeter.names import (
    HITS,
    HITS_FAILED,
    HITS_SECONDS,
    REQUESTS,
    SECONDS,
    TASK_RUNS,
    TASK_SECONDS,
)
from redmeter.results.explanation import ChangedGroup, Check, ExplainLink
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.keys import HOUR, Retention
from redmeter.stored.moments import merge_all
from redmeter.types import Mark

#: Precision -> start of an interval -> number of events; and the same of values.
CountsByWidth = dict[int, dict[int, int]]
TimesByWidth = dict[int, dict[int, Distribution]]

#: Least ratio of a p95 to the usual one; client errors: least ratio, and least rise of the share.
LEAST_SLOWER: Final = 1.1
_CLIENT_RATIO, _CLIENT_RATE = 2.0, 0.2
#: Up to so many routes, each is judged at the level of a total.
_FEW_ROUTES: Final = 10
#: Share of a change that the named groups carry at least, and groups that are named.
_CARRIED: Final = 0.8
_MOST_NAMED: Final = 3
#: Share of the requests in groups that changed alike, for "in all".
_ALIKE: Final = 0.9
#: With so few events that even this share of failures would count as usual, none is judged.
_CERTAIN: Final = 0.5
#: Probability that a group's own change is chance, if it is named.
_OWN: Final = 1e-3
#: A mark belongs to a change that begins up to so long after it, or before it, seconds.
MARK_BEFORE, MARK_AFTER = 300, 120
#: Changes of groups that are listed.
_MAX_GROUPS: Final = 10

CheckState = Literal["usual", "high", "low", "unknown"]


@dataclass(slots=True)
class GroupCounts:
    """The events of a route or a task."""

    of: CountsByWidth
    failed: CountsByWidth = field(default_factory=dict)
    #: Requests that the client got wrong: status 4xx.
    refused: CountsByWidth = field(default_factory=dict)
    seconds: TimesByWidth = field(default_factory=dict)


@dataclass
class Observed:
    """The events of an application."""

    #: The server's clock, Unix seconds.
    now: float
    retention: Retention
    histograms: Retention
    zone: Zone = UTC
    #: All requests, and those that failed; empty: the store has none.
    requests: CountsByWidth = field(default_factory=dict)
    failed: CountsByWidth = field(default_factory=dict)
    seconds: TimesByWidth = field(default_factory=dict)
    #: By route, and by task.
    routes: Mapping[str, GroupCounts] = field(default_factory=dict)
    tasks: Mapping[str, GroupCounts] = field(default_factory=dict)
    #: Counters that are judged where there are no requests.
    counters: Mapping[str, CountsByWidth] = field(default_factory=dict)
    marks: Sequence[Mark] = ()
    #: Labels of marks whose verdict is that the deploy made nothing worse.
    cleared: frozenset[str] = frozenset()

    @cached_property
    def first(self) -> float:
        """When the first event that is kept was recorded, Unix seconds."""
        groups = [*self.routes.values(), *self.tasks.values()]
        counts = [self.requests, self.failed, *self.counters.values(), *(g.of for g in groups)]
        return _first(counts, self.now)

    @cached_property
    def grid(self) -> CellGrid:
        """The cells of counts."""
        return CellGrid(self.now, self.retention, self.first)

    @cached_property
    def timed(self) -> CellGrid:
        """The cells of histograms."""
        groups = [*self.routes.values(), *self.tasks.values()]
        first = _first([self.seconds, *(group.seconds for group in groups)], self.now)
        return CellGrid(self.now, self.histograms, first)


def _first(kept: Iterable[Mapping[int, Mapping[int, object]]], now: float) -> float:
    """Return when the first event was recorded, Unix seconds: the start of its finest interval."""
    starts: list[int] = []
    for by_width in kept:
        first, last = None, 0
        for width in sorted((width for width in by_width if by_width[width]), reverse=True):
            start = min(by_width[width])
            if first is None or start < first + last:  # a finer precision that reaches as far back
                first, last = max(start, first or start), width
        if first is not None:
            starts.append(first)
    return min(starts, default=now)


class _Row(NamedTuple):
    """A group in a comparison with others."""

    value: str
    shares: Shares


def judge_checks(seen: Observed) -> list[Check]:
    """Judge all measures: of all requests first, then of single routes and tasks that stand out."""
    checks: list[Check] = []
    if seen.requests:
        checks += _judge_requests(seen)
    for name, counts in seen.counters.items():
        checks.append(_judge_count(seen, check_of("count", name), counts, {}))
    for task, group in seen.tasks.items():
        checks += _judge_task(seen, task, group)
    return [_with_mark(seen, check) for check in checks]


def new_level_of(seen: Observed) -> NewLevel | None:
    """Return the level of requests that has become usual within the last hours, if there is one."""
    return TrafficLevel(seen.grid, _cells(seen.grid, seen.requests), seen.zone).new_level()


def _judge_requests(seen: Observed) -> list[Check]:
    grid, routes = seen.grid, seen.routes
    requests = _judge_count(
        seen, check_of("requests", HITS), seen.requests, {r: g.of for r, g in routes.items()}
    )
    of = _cells(grid, seen.requests)
    shares = Shares(grid, _cells(grid, seen.failed), of)
    rows = [
        _Row(route, Shares(grid, _cells(grid, group.failed), _cells(grid, group.of)))
        for route, group in routes.items()
    ]
    link = check_of("error rate", HITS_FAILED, ["status=5xx"])
    rate = _judge_share(link, shares, "requests")
    if rate.state == "high":
        rate = _explained(rate, rows, shares)
    p95 = _judge_p95(seen, check_of("p95", HITS_SECONDS), seen.seconds)
    usual = shares.usual(grid.at(rate.began or grid.end - BLOCK))
    p95, slow = _slow_routes(seen, p95)
    level = FALSE_ALARM * min(1.0, max(1 / 3, _FEW_ROUTES / max(len(rows), 1)))
    checks = [requests, rate, p95]
    named = {one.value for one in rate.causes}
    for row in rows:
        if row.value in named or (rate.everywhere and not _stands_out(row.shares, rate, shares)):
            continue
        incident = row.shares.incident(fallback=usual, level=level)
        if incident is not None and not incident.over:
            check = replace(link, labels={"route": row.value})
            checks.append(_of_incident(check, row.shares, incident))
    checks += slow
    for route, group in routes.items():
        refused = Shares(grid, _cells(grid, group.refused), _cells(grid, group.of))
        incident = refused.incident(least_ratio=_CLIENT_RATIO, least_rate=_CLIENT_RATE, level=level)
        if incident is not None and not incident.over:
            check = check_of("client errors", REQUESTS, ["status=4xx"])
            checks.append(_of_incident(replace(check, labels={"route": route}), refused, incident))
        gone = None if requests.state == "low" else silence(grid, _cells(grid, group.of), of)
        if gone is not None:
            check = replace(check_of("requests", REQUESTS), labels={"route": route})
            checks.append(_of_silence(check, grid, gone))
    return checks


def _stands_out(shares: Shares, check: Check, whole: Shares) -> bool:
    """Whether a route fails much more than all do that changed alike."""
    grid, last = whole.grid, len(whole.grid)
    start = grid.at(check.since or grid.end - BLOCK)
    events, of = shares.sums(start, last)
    all_events, all_of = whole.sums(start, last)
    if not of or events / of < 2 * all_events / all_of:
        return False
    usual = UsualShare(all_events, all_of, 1.0, 0.0, grid.starts[0], 0)
    return rise_probability(events, of, usual) < FALSE_ALARM


def _slow_routes(seen: Observed, whole: Check) -> tuple[Check, list[Check]]:
    """Return the check of all requests' p95, and those of single slow routes."""
    judged = [
        replace(_judge_p95(seen, check_of("p95", SECONDS), group.seconds), labels={"route": route})
        for route, group in seen.routes.items()
        if group.seconds
    ]
    slow = [check for check in judged if check.state == "high"]
    if whole.state == "high" and len(slow) > 1:
        of = sum(check.count for check in judged)
        if sum(check.count for check in slow) >= _ALIKE * of:
            return replace(whole, everywhere=True), []
    return whole, slow


def _judge_task(seen: Observed, task: str, group: GroupCounts) -> list[Check]:
    shares = Shares(seen.grid, _cells(seen.grid, group.failed), _cells(seen.grid, group.of))
    failing = _judge_share(check_of("failures", TASK_RUNS, ["state=failure"]), shares, "runs")
    slow = _judge_p95(seen, check_of("p95", TASK_SECONDS), group.seconds)
    checks = [check for check in (failing, slow) if check.state == "high"]
    if not seen.requests and not checks and failing.state == "usual":
        checks = [failing]  # an application of tasks alone is as usual
    gone = silence(seen.grid, _cells(seen.grid, group.of))
    if gone is not None:
        checks.append(_of_silence(check_of("requests", TASK_RUNS), seen.grid, gone))
    return [replace(check, labels={"task": task}) for check in checks]


def _cells(grid: CellGrid, counts: CountsByWidth) -> list[int]:
    """Return the events of each cell."""
    none: Mapping[int, int] = {}
    return [
        counts.get(length, none).get(start, 0)
        for start, length in zip(grid.starts, grid.lengths, strict=True)
    ]


# --- Shares --------------------------------------------------------------------------------------


def _judge_share(check: Check, shares: Shares, of_what: str) -> Check:
    """Judge the share of events of the last five minutes."""
    grid, last = shares.grid, len(shares.grid)
    incident = shares.incident()
    if incident is not None:
        return _of_incident(check, shares, incident)
    start = grid.at(grid.end - BLOCK)
    events, of = shares.sums(start, last)
    check = replace(check, value=events / of if of else None, count=of)
    usual = shares.usual(start)
    if usual is not None:
        check = _against(check, usual, grid.end - BLOCK)
    if not of:
        return replace(check, reason=f"no {of_what}")
    if usual is None:
        return replace(check, reason=f"{of_what} are known for less than an hour before")
    high = highest_usual(of, usual)
    if high >= _CERTAIN:
        return replace(check, reason=f"{of:,} {of_what if of > 1 else of_what[:-1]}")
    high = max(high, events / of)
    return replace(check, state="usual", low=0.0, mid=usual.events / usual.of, high=high)


def _of_incident(check: Check, shares: Shares, found: Incident) -> Check:
    """Return the check of an incident."""
    grid = shares.grid
    check = _against(check, found.usual, found.since)
    mid = found.usual.events / found.usual.of
    if found.over or found.unsure_since is not None:
        events, count = found.events, found.of
        since = float(found.since)
    else:
        since = float(max(found.since, grid.end - BLOCK))
        events, count = shares.sums(grid.at(since), len(grid))
    value: float | None = events / count if count else None
    high = min(highest_usual(max(count, 1), found.usual), 1.0)
    state: CheckState = "usual" if found.over else "high"
    if value is not None:
        high = min(high, value)
    return replace(
        check, state=state, value=value, count=count, low=0.0, mid=mid, high=high,
        since=since, began=float(found.since), ended=float(found.until) if found.over else None,
        unsure_since=found.unsure_since,
    )  # fmt: skip


def _against(check: Check, usual: UsualShare, until: float) -> Check:
    """Return a check with its baseline."""
    return replace(
        check,
        precision=BLOCK,
        against_since=float(usual.since),
        against_until=float(until),
        intervals=usual.blocks,
    )


def _explained(check: Check, rows: Sequence[_Row], whole: Shares) -> Check:
    """Return the check of a rise with the groups that account for it.

    Args:
        rows: all groups of a label.
        whole: all of them together.
    """
    assert check.began is not None
    grid = whole.grid
    start, shown = grid.at(check.began), grid.at(check.since or check.began)
    stop = len(grid) if check.ended is None else grid.at(check.ended)
    usual_whole = whole.usual(start)
    risen: list[tuple[float, ChangedGroup]] = []
    excess_of_all, of_all, of_alike = 0.0, 0, 0
    excess: float
    events, of = whole.sums(start, stop)
    rise = events / of - (usual_whole.share if usual_whole else 0.0) if of else 0.0
    for value, shares in rows:
        events, of = shares.sums(start, stop)
        usual = shares.usual(start, fallback=usual_whole)
        if not of or usual is None:
            continue
        if stop == len(grid) and shares.is_usual_again(shown, usual.share, events / of):
            continue  # its part of the change is over
        excess = events - usual.share * of
        excess_of_all += max(excess, 0.0)
        of_all += of
        of_alike += of if events / of - usual.share > rise / 2 else 0
        p = rise_probability(events, of, usual, grid.end - check.began)
        if p < _OWN / len(rows) and events / of >= LEAST_RISE * usual.share:
            shown_events, shown_of = shares.sums(shown, stop)
            group = ChangedGroup(
                label="route",
                value=value,
                before=usual.events / usual.of,
                after=shown_events / shown_of if shown_of else None,
                change=excess,
                count_before=usual.of,
                count=shown_of,
                named=True,
            )
            risen.append((excess, group))
    return _with_groups(check, risen, excess_of_all, of_alike, of_all, len(rows))


def _with_groups(
    check: Check,
    changed: list[tuple[float, ChangedGroup]],
    change: float,
    alike: float,
    of: float,
    number: int,
) -> Check:
    """Return a check with the groups that carry a change, or that all changed alike."""
    if number > 1 and of and alike >= _ALIKE * of and len(changed) > 1:
        return replace(check, everywhere=True)
    changed.sort(key=lambda one: -one[0])
    carried: float = sum(size for size, _ in changed[:_MAX_GROUPS])
    if not change or carried < _CARRIED * change:
        return check
    groups = list[ChangedGroup]()
    carried = 0.0
    for size, group in changed[:_MAX_GROUPS]:
        if carried >= _CARRIED * change and size < 0.1 * change:
            break
        groups.append(replace(group, share=size / change))
        carried += size
    return replace(check, causes=tuple(groups))


# --- Percentiles ---------------------------------------------------------------------------------


def _judge_p95(seen: Observed, check: Check, times: TimesByWidth) -> Check:
    """Judge the p95 of the last five minutes, by the share of values above the usual one."""
    grid = seen.timed
    none: Mapping[int, Distribution] = {}
    cells = [
        times.get(length, none).get(start)
        for start, length in zip(grid.starts, grid.lengths, strict=True)
    ]
    usual_bucket = _usual_bucket(grid, cells)
    window = _merged(cells[grid.at(grid.end - BLOCK) :])
    check = replace(check, value=window.quantile(0.95) if window.count else None,
                    count=window.count)  # fmt: skip
    if usual_bucket is None:
        reason = f"{window.count:,} values" if window.count else "no values"
        return replace(check, reason=reason)
    above = [_above(one, usual_bucket) if one else 0 for one in cells]
    shares = Shares(grid, above, [one.count if one else 0 for one in cells])
    judged = _judge_share(check, shares, "values")
    judged = replace(judged, value=check.value, count=check.count)
    if judged.mid is None:
        return judged
    begin = grid.at(judged.began or grid.end - BLOCK)
    stop = len(grid) if judged.ended is None else grid.at(judged.ended)
    before = _merged(cells[grid.at((judged.began or grid.end - BLOCK) - DAY_SECONDS) : begin])
    mid, usual_p95 = before.quantile(0.95), before.quantile(0.95)
    share = min(max(judged.high or 0.0, 0.05), 0.95)
    edge = before.quantile(1 - share)
    high = max(LEAST_SLOWER * mid, mid * mid / edge) if edge > 0 else LEAST_SLOWER * mid
    if judged.began is None:
        high = max(high, check.value or 0.0)
        return replace(judged, low=0.0, mid=mid, high=high)
    since = begin if judged.ended or judged.unsure_since else grid.at(judged.since or 0)
    merged = _merged(cells[since:stop])
    value = merged.quantile(0.95) if merged.count else check.value
    if value is None or value < LEAST_SLOWER * usual_p95 or _is_habit(seen, cells, value):
        ranged = max(high, check.value or 0.0)
        return replace(
            judged, state="usual", began=None, ended=None, unsure_since=None, since=None,
            low=0.0, mid=mid, high=ranged,
        )  # fmt: skip
    return replace(judged, value=value, count=merged.count, low=0.0, mid=mid, high=min(high, value))


def _merged(cells: Iterable[Distribution | None]) -> Distribution:
    return merge_all(Distribution(), (one for one in cells if one is not None))


def _above(one: Distribution, bucket: int) -> int:
    return sum([count for at, count in one.positive.items() if at > bucket])


def _usual_bucket(grid: CellGrid, cells: Sequence[Distribution | None]) -> int | None:
    """Return the bucket of the usual p95: the median of that of all blocks, by their length."""
    buckets: list[tuple[int, int]] = []
    for a, b in grid.blocks:
        merged = _merged(cells[a:b])
        if merged.count:
            left = 0.95 * merged.count - merged.zeros - sum(merged.negative.values())
            bucket = None
            for bucket in sorted(merged.positive):
                left -= merged.positive[bucket]
                if left <= 0:
                    break
            if bucket is not None:
                buckets.append((bucket, sum(grid.lengths[a:b])))
    buckets.sort()
    half = sum(length for _, length in buckets) / 2
    for bucket, length in buckets:
        half -= length
        if half <= 0:
            return bucket
    return None


def _is_habit(seen: Observed, cells: Sequence[Distribution | None], value: float) -> bool:
    """Whether a p95 is no more than it was at this time of other days, by the hour."""
    grid = seen.timed
    by_start = {
        start: one
        for start, length, one in zip(grid.starts, grid.lengths, cells, strict=True)
        if length == HOUR and one is not None
    }
    near = int(grid.end - BLOCK - 1800), int(grid.end + 1800)
    days = []
    for day in range(1, 11):
        values = [
            by_start[hour - back].quantile(0.95)
            for hour in range(near[0] - near[0] % HOUR, near[1], HOUR)
            if hour - (back := seen.zone.back(hour, day * DAY_SECONDS, HOUR)) in by_start
        ]
        if values:
            days.append(max(values))
    days.sort()
    highest = days[-2:][0] if len(days) >= 5 else days[-1:][0] if len(days) >= 2 else 0.0
    return value <= LEAST_SLOWER * highest


# --- Counts -------------------------------------------------------------------------------------


def _judge_count(
    seen: Observed, check: Check, counts: CountsByWidth, groups: Mapping[str, CountsByWidth]
) -> Check:
    """Judge the events of the last five minutes.

    Args:
        groups: the same events by route.
    """
    grid = seen.grid
    cells = _cells(grid, counts)
    number = sum(cells[grid.at(grid.end - BLOCK) :])
    check = replace(check, value=number, count=number, precision=BLOCK)
    quiet = silence(grid, cells)
    rows = [
        _Row(value, Shares(grid, _cells(grid, by_width), cells))
        for value, by_width in groups.items()
    ]
    if quiet is not None:
        check = _of_silence(check, grid, quiet)
        return replace(check, everywhere=len(rows) > 1)
    traffic = TrafficLevel(grid, cells, seen.zone)
    if traffic.blocks < LEVEL_BLOCKS:
        few = f"{traffic.blocks} blocks of 5 min before are too few: {LEVEL_BLOCKS} are needed"
        return replace(check, reason=few)
    if not number and not any(cells[grid.at(grid.end - DAY_SECONDS) :]):
        return replace(check, reason="none for over a day")
    judgment = traffic.judge()
    if judgment.low < 1 and judgment.high > max(10 * judgment.mid, judgment.mid + 100):
        varying = f"it varies from {judgment.low:,.0f} to {judgment.high:,.0f}"
        return replace(check, reason=varying)
    over = judgment.state == "usual" and judgment.ended
    check = replace(
        check,
        state=judgment.state,  # type: ignore[arg-type]
        low=judgment.low,
        mid=judgment.mid,
        high=judgment.high,
        against_since=float(judgment.since),
        against_until=float(judgment.until),
        intervals=judgment.blocks,
        began=judgment.began and float(judgment.began),
        ended=judgment.ended and float(judgment.ended),
        value=judgment.while_it_lasted if over else number,
        since=float(judgment.began) if judgment.began and over else None,
    )
    if check.state == "low" and not number and check.began is not None:
        # The silence, and not the time since which there are few.
        last = max((at for at, count in enumerate(cells) if count), default=-1)
        check = replace(check, began=max(check.began, float(grid.starts[last + 1])))
    return _by_route(check, rows) if check.state in ("high", "low") else check


def _of_silence(check: Check, grid: CellGrid, quiet: Quiet) -> Check:
    return replace(
        check, state="low", value=0.0, count=0, low=min(1.0, quiet.expected),
        mid=quiet.expected, high=quiet.expected, precision=quiet.precision,
        against_since=float(max(quiet.since - DAY_SECONDS, grid.starts[0])),
        against_until=float(quiet.since), began=float(quiet.since),
        since=float(max(quiet.since, grid.end - BLOCK)), intervals=LEVEL_BLOCKS,
    )  # fmt: skip


def _by_route(check: Check, rows: Sequence[_Row]) -> Check:
    """Return the check of a changed count with the groups that account for it."""
    if check.began is None or check.mid is None or not rows:
        return check
    grid = rows[0].shares.grid
    begin, first = grid.at(check.began), grid.at(check.began - HOUR)
    window = grid.at(grid.end - BLOCK)
    seconds = check.began - grid.starts[first]
    expected = {row.value: row.shares.sums(first, begin)[0] for row in rows}
    of = sum(expected.values())
    if not of or seconds <= 0:
        return check
    scale = BLOCK / seconds
    total = check.value or 0.0
    sign = 1 if total > of * scale else -1
    whole = math.log((total + 0.5) / (of * scale + 0.5))
    changed, change, alike = list[tuple[float, ChangedGroup]](), 0.0, 0.0
    for row in rows:
        before, after = expected[row.value] * scale, row.shares.sums(window, len(grid))[0]
        moved = (after - before) * sign
        change += max(moved, 0.0)
        factor = math.log((after + 0.5) / (before + 0.5))
        alike += before if factor * sign > abs(whole) / 2 else 0.0
        if moved > 4 * math.sqrt(before + 1) and moved > 0.2 * before:
            group = ChangedGroup(
                label="route", value=row.value, before=before, after=float(after),
                change=after - before, count_before=expected[row.value], count=after, named=True,
            )  # fmt: skip
            changed.append((moved, group))
    return _with_groups(check, changed, change, alike, of * scale, len(rows))


# --- Marks ---------------------------------------------------------------------------------------


def _with_mark(seen: Observed, check: Check) -> Check:
    """Return a check with the mark that its change began with, if there is one."""
    if check.began is None:
        return check
    near = [
        mark
        for mark in seen.marks
        if -MARK_BEFORE <= mark.time - check.began <= MARK_AFTER and mark.label not in seen.cleared
    ]
    began = check.began
    nearest = min(near, key=lambda mark: (abs(mark.time - began), -mark.time), default=None)
    return replace(check, mark=nearest)


def check_of(
    measure: Literal["requests", "error rate", "p95", "count", "client errors", "failures"],
    name: str,
    failing: Sequence[str] = (),
) -> Check:
    """Return a check that is not judged yet.

    Args:
        failing: labels of the events that failed, such as "status=5xx".
    """
    web = {HITS: REQUESTS, HITS_FAILED: REQUESTS, HITS_SECONDS: SECONDS}
    rates = ("error rate", "client errors", "failures")
    return Check(
        measure=measure,
        name=name,
        unit="ratio" if measure in rates else "seconds" if measure == "p95" else unit_of(name),
        explain=ExplainLink(name=web.get(name, name), failing=tuple(failing)),
    )
