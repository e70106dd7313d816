"""status(): reads whether the last five complete minutes are as usual.

The judgment is in analysis/comparing/status.py, the sentence in status_sentence.py. One round trip
for totals, routes and tasks, one more for each _PAGE label sets beyond the first; with them the log
patterns and exceptions, two; and those of a verdict after a deploy.

Each complete minute is judged once, by the first reader that may write: see judged_status.py.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from redmeter.analysis.comparing.incidents import BLOCK, DAY_SECONDS, MINUTE, CellGrid
from redmeter.analysis.comparing.sentences import value_text
from redmeter.analysis.comparing.status import (
    CountsByWidth,
    GroupCounts,
    Observed,
    TimesByWidth,
    judge_checks,
    new_level_of,
)
from redmeter.clock import Zone
from redmeter.names import (
    HITS,
    HITS_FAILED,
    HITS_SECONDS,
    REQUESTS,
    SECONDS,
    TASK_RUNS,
    TASK_SECONDS,
    SeriesName,
    canonical,
    is_failure,
)
from redmeter.reading import marks as marking
from redmeter.reading.diagnosis.busiest import busiest_counters
from redmeter.reading.diagnosis.context import Circumstances, circumstances
from redmeter.reading.diagnosis.explain import explain
from redmeter.reading.diagnosis.status_sentence import local_time, with_sentence
from redmeter.reading.diagnosis.verdict import VerdictQuestion, read_verdict
from redmeter.reading.diagnosis.windows import Comparison, ExplainRequest
from redmeter.reading.distributions import interval_distributions
from redmeter.reading.foreign_keys import there
from redmeter.reading.join import Ask, Joined, series_in
from redmeter.reading.page.http import route_of
from redmeter.reading.ranking import highest
from redmeter.reading.samples import number_of
from redmeter.reading.selection import LabelSets
from redmeter.reading.totals import MAX_SAMPLED
from redmeter.results.explanation import Check, Explanation, Status
from redmeter.results.verdict import BETTER, SAME, WORSE, Verdict
from redmeter.store import Store, indexes
from redmeter.store.query import Query, Read, run_query
from redmeter.store.servers.replies import Reply, pairs
from redmeter.stored.counter import parse_counter
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.families import INDEXES
from redmeter.stored.keys import HOUR, Kept, Keys, slice_start
from redmeter.stored.packed_text import parse_distribution

#: Label sets of requests and of tasks: of a round trip, and in all.
_PAGE, _MOST = 250, 5_000
#: Routes and tasks that are judged one by one: the busiest.
JUDGED_ROUTES, JUDGED_TASKS = 200, 50
#: Routes whose response times are judged: the busiest.
TIMED_ROUTES = 50
#: How long news are shown, and the time before with which they are compared, seconds.
_NEW, _BEFORE = 1_800, 3_600
#: How long after a mark its verdict is read, seconds.
JUDGED: Final = 4_500
#: How far back what accounts for a change is compared, seconds.
_BASELINE: Final = 1_800
#: How far ahead an interval may be before a clock is called wrong, seconds.
_AHEAD: Final = 120
#: Severities whose new patterns are shown.
_ERRORS: Final = ("emergency", "emerg", "panic", "alert", "critical", "error", "err")

_FIRING: Final = "firing"


@dataclass(slots=True)
class Surroundings:
    """The parts of a status other than its checks."""

    around: Circumstances = field(default_factory=Circumstances)
    #: Names of alerts that fire.
    firing: tuple[str, ...] = ()
    #: That of the newest deploy, if it is not long ago.
    verdict: Verdict | None = None
    #: The recorded kinds, if nothing of them is judged: "gauges", "messages".
    kinds: tuple[str, ...] = ()


def assess(
    seen: Observed,
    surroundings: Surroundings,
    explained: Callable[[ExplainRequest], Explanation],
) -> Status:
    """Return the status of an application, judged by the data that were read.

    Args:
        explained: explains a changed p95 or count.
    """
    verdict = surroundings.verdict
    if verdict is not None and verdict.mark is not None and verdict.verdict in (SAME, BETTER):
        seen.cleared = frozenset({verdict.mark.label})
    checks = []
    for check in judge_checks(seen):
        if check.state in ("high", "low") and check.measure in ("p95", "count"):
            check = _explained(check, seen, explained)
        checks.append(check)
    around = surroundings.around
    exceptions = tuple(one for one in around.exceptions.groups if one.kind == "new")
    messages = tuple(one for one in around.messages.new if one.severity in _ERRORS)
    states = {check.state for check in checks}
    worse = verdict is not None and verdict.verdict == WORSE
    unusual = states & {"high", "low"} or surroundings.firing or exceptions or messages or worse
    end = slice_start(seen.now, MINUTE)
    status = Status(
        state="unusual" if unusual else "usual" if "usual" in states else "unknown",
        since=end - BLOCK,
        until=end,
        checks=tuple(checks),
        exceptions=exceptions,
        messages=messages,
        firing=surroundings.firing,
    )
    return with_sentence(status, seen.zone, verdict, _notes(seen), surroundings.kinds)


def _explained(
    check: Check, seen: Observed, explained: Callable[[ExplainRequest], Explanation]
) -> Check:
    """Return a check with the group that accounts for it since it began.

    Which one it is shows in the whole change; its figures are those of the minutes of the check.
    """
    if check.labels:
        return check
    until = slice_start(seen.now, MINUTE)
    began = check.began or until - BLOCK
    change = (check.value or 0.0) - (check.mid or 0.0)

    def compared(since: float) -> Explanation:
        near = until - began + _BASELINE <= 2 * HOUR
        request = ExplainRequest(
            check.explain.name, since, until, "custom", began - _BASELINE, began,
            precision=MINUTE if near else None,
        )  # fmt: skip
        return explained(request)

    groups = [one for one in compared(began).causes if one.change * change > 0]
    named = next((one for one in groups if one.label == "route"), groups[0] if groups else None)
    if named is None:
        return check
    for label in compared(max(began, until - BLOCK)).dimensions:
        for group in label.groups:
            if (group.label, group.value) == (named.label, named.value):
                return replace(check, causes=(group,))
    return check


def _notes(seen: Observed) -> list[str]:
    """Return sentences about a new level of traffic, and about clocks that are wrong."""
    notes = []
    if seen.requests and (level := new_level_of(seen)) is not None:
        since = local_time(level.since, seen.zone, day=True)
        now, before = value_text(level.now), value_text(level.before)
        notes.append(f"Requests {now} a minute since {since}, before {before}.")
    minutes = seen.requests.get(MINUTE, {})
    ahead = max(minutes, default=0) - slice_start(seen.now, MINUTE)
    if ahead > _AHEAD:
        notes.append(f"A writer's clock is {ahead // MINUTE} min ahead.")
    return notes


# --- Reading -------------------------------------------------------------------------------------


def judge_now(store: Store) -> tuple[float, Status]:
    """Judge the last complete minute; return the server's clock, Unix seconds, with it.

    Raises:
        StoreError: the server is unreachable or refuses.
    """
    view, (seen, surroundings) = run_query(
        store, lambda kept: _observed(store.keys, kept, store.zone)
    )
    marks = [mark for mark in seen.marks if view.now - JUDGED < mark.time <= view.now]
    if marks:
        question = VerdictQuestion(marks[-1].label, None, "previous", MINUTE)
        if MINUTE in view.retention:
            surroundings.verdict = read_verdict(store, question)[1]

    def explained(request: ExplainRequest) -> Explanation:
        return run_query(
            store, lambda kept: explain(store.keys, kept, request, store.zone, checked=False)
        )[1]

    return view.now, assess(seen, surroundings, explained)


def _observed(keys: Keys, kept: Kept, zone: Zone) -> Query[tuple[Observed, Surroundings]]:
    """Read the events of an application, its alerts, and its new exceptions and errors."""
    widths = [width for width in (MINUTE, BLOCK, HOUR) if width in kept.series]
    timed = [width for width in (MINUTE, HOUR) if width in kept.histograms]
    listed = widths[-1] if widths else MINUTE
    counts = [Ask("HGETALL", f"{keys.key('count')}{width}:") for width in widths]
    spreads = [
        Ask("HGETALL", f"{keys.key(family)}{width}:")
        for width in timed
        for family in ("hist", "moments")
    ]
    requests = LabelSets(keys, keys.known, listed, REQUESTS)
    runs = LabelSets(keys, keys.known, listed, TASK_RUNS)
    lasted = LabelSets(keys, keys.hists, timed[-1] if timed else MINUTE, TASK_SECONDS)
    totals = LabelSets(keys, keys.hists, timed[-1] if timed else MINUTE, HITS_SECONDS)
    reads: list[Read] = [
        ("HGETALL", keys.count(width, name)) for name in (HITS, HITS_FAILED) for width in widths
    ]
    at = len(reads)
    reads += [
        marking.asked(keys),
        ("HGETALL", keys.key("alerts")),
        requests.join(counts, _PAGE),
        runs.join(counts, _PAGE),
        totals.join_base(spreads),
        totals.join(spreads, MAX_SAMPLED),
        lasted.join(spreads, JUDGED_TASKS),
    ]
    view, replies = yield reads
    seen = Observed(view.now, view.retention, view.histograms, zone)
    seen.requests = _by_width(widths, replies[: len(widths)])
    seen.failed = _by_width(widths, replies[len(widths) : at])
    seen.marks = marking.answered(there(replies[at], []))
    alerts = replies[at + 1]  # which a reader of few rights may not see
    surroundings = Surroundings(
        firing=() if isinstance(alerts, Exception) else tuple(_firing(alerts))
    )
    first = Joined(replies[at + 2], len(counts), needed=False)
    joins = yield from requests.read_on(first, counts, _PAGE, _MOST)
    seen.routes = by_group(
        ((parsed, _by_width(widths, own)) for _, parsed, own in series_in(joins)), JUDGED_ROUTES
    )
    for reply in replies[at + 4 : at + 6]:
        add_times(seen.seconds, timed, Joined(reply, len(spreads), needed=False))
    tasks = [Joined(replies[at + 3], len(counts), needed=False)]
    seen.tasks = by_group(
        ((parsed, _by_width(widths, own)) for _, parsed, own in series_in(tasks)), JUDGED_TASKS
    )
    for _, parsed, own in series_in([Joined(replies[at + 6], len(spreads), needed=False)]):
        group = seen.tasks.get(parsed.label("task") or "")
        if group is not None:
            _merge_times(group.seconds, timed, own)
    yield from _route_times(keys, seen, [parsed for _, parsed, _ in series_in(joins)], timed)
    if not any(seen.requests.values()):
        seen.requests = {}
        if not seen.tasks and BLOCK in view.retention:
            seen.counters = yield from busiest_counters(keys, widths)
    if not (seen.requests or seen.tasks or seen.counters):
        records = {"known": "counters", "hists": "histograms"}
        _, sizes = yield [indexes.size(keys, keys.key(index.name)) for index in INDEXES]
        surroundings.kinds = tuple(
            records.get(index.name, index.name)
            for index, size in zip(INDEXES, sizes, strict=True)
            if number_of(size)
        )
    surroundings.around = yield from circumstances(keys, new_window(view.now), None, view.now)
    return seen, surroundings


def _route_times(
    keys: Keys, seen: Observed, series: Iterable[SeriesName], timed: Sequence[int]
) -> Query[None]:
    """Read the response times of the busiest routes.

    Args:
        series: the label sets of requests.
    """
    chosen = set(list(seen.routes)[:TIMED_ROUTES])
    names = {
        canonical(SECONDS, {key: value for key, value in one.labels if key != "status"}): route
        for one in series
        if (route := route_of(one.labels)) in chosen
    }
    grid = CellGrid(seen.now, seen.histograms, seen.now - DAY_SECONDS)
    for width in timed:
        starts = [
            start for start, length in zip(grid.starts, grid.lengths, strict=True)
            if length == width
        ]  # fmt: skip
        by_name = yield from interval_distributions(keys, list(names), width, starts)
        for name, by_start in by_name.items():
            merged = seen.routes[names[name]].seconds.setdefault(width, {})
            for start, one in by_start.items():
                merged.setdefault(start, Distribution()).merge(one)


def new_window(now: float) -> Comparison:
    """Return the window whose new exceptions and errors are shown, and the time before."""
    end = slice_start(now, MINUTE) + MINUTE
    window = range(end - _NEW - MINUTE, end, MINUTE)
    before = range(window.start - _BEFORE, window.start, MINUTE)
    request = ExplainRequest(REQUESTS)
    return Comparison(request, window.start, now, MINUTE, None, window, before, before)


def _by_width(widths: Sequence[int], replies: Sequence[Reply]) -> CountsByWidth:
    return {
        width: parse_counter(pairs(there(reply, [])))
        for width, reply in zip(widths, replies, strict=True)
    }


def by_group(
    found: Iterable[tuple[SeriesName, CountsByWidth]], most: int
) -> dict[str, GroupCounts]:
    """Return the events of the busiest routes or tasks.

    Args:
        found: label sets of requests or of runs, with their counts by precision.
    """
    groups: dict[str, GroupCounts] = {}
    sizes = Counter[str]()
    for parsed, counts in found:
        labels = dict(parsed.labels)
        if parsed.base == TASK_RUNS:
            value, status = labels.get("task", ""), None
            failed, refused = labels.get("state") == "failure", False
        else:
            value, status = route_of(parsed.labels), labels.get("status")
            failed, refused = is_failure(status), (status or "").startswith("4")
        group = groups.setdefault(value, GroupCounts({}, {}, {}, {}))
        sizes[value] += sum(sum(by.values()) for by in counts.values())
        for kind in (group.of, *([group.failed] if failed else ()),
                     *([group.refused] if refused else ())):  # fmt: skip
            for width, by_start in counts.items():
                sums = kind.setdefault(width, {})
                for start, number in by_start.items():
                    sums[start] = sums.get(start, 0) + number
    chosen = highest(sizes, sizes.__getitem__, limit=most)
    return {value: groups[value] for value in chosen}


def add_times(times: TimesByWidth, widths: Sequence[int], joined: Joined) -> None:
    """Add the histograms of a join, two hashes for each precision."""
    for _, replies in joined.readable():
        _merge_times(times, widths, replies)


def _merge_times(times: TimesByWidth, widths: Sequence[int], replies: Sequence[Reply]) -> None:
    for at, width in enumerate(widths):
        moments = dict(pairs(replies[2 * at + 1]))
        by_start = times.setdefault(width, {})
        for start, bucket in pairs(replies[2 * at]):
            one = parse_distribution(bucket, moments.get(start))
            if one is not None and start.isdigit():
                by_start.setdefault(int(start), Distribution()).merge(one)


def _firing(fields: Sequence[bytes]) -> Iterator[str]:
    """Yield the names of alerts that fire, in the state that the evaluator stores."""
    for name, value in sorted(pairs(fields)):
        if name.startswith(b"alert:"):
            try:
                state = json.loads(value)
            except ValueError:
                continue
            if isinstance(state, dict) and state.get("status") == _FIRING:
                yield name.decode(errors="replace").removeprefix("alert:")
