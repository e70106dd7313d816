"""explain() and status() over lists of events: the same analysis as of a store."""

from collections import Counter
from collections.abc import Callable

from redmeter.analysis.comparing.incidents import BLOCK, DAY_SECONDS, MINUTE, CellGrid
from redmeter.analysis.comparing.status import Observed
from redmeter.clock import UTC, ManualClock, Zone
from redmeter.names import (
    HITS,
    HITS_FAILED,
    HITS_SECONDS,
    REQUEST_DB_SECONDS,
    REQUESTS,
    SECONDS,
    TASK_RUNS,
    TASK_SECONDS,
    SeriesName,
    parse_name,
)
from redmeter.reading.diagnosis.busiest import RANKED, busiest_names
from redmeter.reading.diagnosis.context import (
    Circumstances,
    changes_of,
    database_time,
    not_kept,
    windows_of,
)
from redmeter.reading.diagnosis.explain import WEB_TOTALS, compose, none_failed, not_compared
from redmeter.reading.diagnosis.label_counts import LabelEvents
from redmeter.reading.diagnosis.status import (
    JUDGED,
    JUDGED_ROUTES,
    JUDGED_TASKS,
    TIMED_ROUTES,
    Surroundings,
    assess,
    by_group,
    new_window,
)
from redmeter.reading.diagnosis.windows import Comparison, ExplainRequest, compare
from redmeter.reading.exceptions import ExceptionWindow
from redmeter.reading.page.http import route_of
from redmeter.reading.selection import base_of, check_labels, labels_in
from redmeter.results.explanation import (
    DatabaseTime,
    ExceptionChanges,
    Explanation,
    LogPattern,
    PatternChanges,
    Status,
)
from redmeter.results.verdict import Verdict
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.keys import HOUR, OTHER, Retention, slice_start
from redmeter.stored.mark import distinct
from redmeter.testing.readings import frequencies, stored_group
from redmeter.testing.recorder import MemoryRecorder
from redmeter.types import Mark

#: Whose values a status reads.
TIMED = (HITS_SECONDS, SECONDS, TASK_SECONDS)
#: Log patterns have no history in memory.
_NO_PATTERNS = "a MemoryMeter does not compare log patterns"


def explained(
    memory: MemoryRecorder,
    request: ExplainRequest,
    retention: Retention,
    histograms: Retention,
    clock: ManualClock,
    zone: Zone = UTC,
    *,
    checked: bool = True,
) -> Explanation:
    """Return what accounts for a rise or a fall of recorded events; see explain().

    Raises:
        UnknownLabel: no series of the name has a label of the request; not without `checked`.
    """
    counters = {parse_name(e.series).base for e in memory.events if e.amount is not None}
    observed = {parse_name(e.series).base for e in memory.events if e.observed is not None}
    name = WEB_TOTALS.get(request.name, request.name)
    if name not in counters | observed:
        name = request.name
    histogram = name in observed and name not in counters
    comparison = compare(request, histograms if histogram else retention, clock.wall(), zone)
    if comparison.reason:
        return not_compared(comparison, name, histogram=histogram)
    around = Circumstances(messages=PatternChanges(reason=_NO_PATTERNS))
    around.marks = [
        Mark(one.time, one.label)
        for one in distinct(memory.marks)
        if comparison.baseline.start <= one.time < comparison.window.stop
    ]
    around.exceptions = _exceptions(memory, comparison, clock.wall())
    if name in (REQUESTS, SECONDS):
        around.database = _database(memory, comparison)
    events = _events(memory, name, comparison, histogram=histogram)
    if checked:
        mine = [event for event in memory.events if base_of(event.series) == name]
        labels = [*request.labels, *request.failing]
        check_labels(name, labels, [event.series for event in mine])
        stored = {e.series for e in mine if (e.observed if histogram else e.amount) is not None}
        around.none_failed = none_failed(name, request.failing, list(map(labels_in, stored)))
    return compose(comparison, name, events, around, histogram=histogram)


def status_of(
    memory: MemoryRecorder,
    retention: Retention,
    histograms: Retention,
    clock: ManualClock,
    zone: Zone = UTC,
    verdict: Callable[[Mark], Verdict] | None = None,
) -> Status:
    """Return whether the last five complete minutes are as usual.

    Args:
        verdict: returns the verdict about a mark.
    """
    now = clock.wall()
    seen = Observed(now, retention, histograms, zone)
    seen.marks = [Mark(one.time, one.label) for one in distinct(memory.marks)]
    counts: dict[str, dict[int, dict[int, int]]] = {}
    observed: dict[str, dict[int, dict[int, list[float]]]] = {}
    widths = [width for width in (MINUTE, BLOCK, HOUR) if width in retention]
    reaches = CellGrid(now, histograms, now - DAY_SECONDS).starts
    for event in memory.events:
        if event.amount is not None:
            for width in widths:
                start = slice_start(event.time, width)
                by_start = counts.setdefault(event.series, {}).setdefault(width, {})
                by_start[start] = by_start.get(start, 0) + event.amount
        elif event.observed is not None and base_of(event.series) in TIMED:
            if base_of(event.series) == SECONDS and (not reaches or event.time < reaches[0]):
                continue
            for width in (MINUTE, HOUR):
                start = slice_start(event.time, width)
                values_at = observed.setdefault(event.series, {}).setdefault(width, {})
                values_at.setdefault(start, []).append(event.observed)
    seen.requests, seen.failed = counts.get(HITS, {}), counts.get(HITS_FAILED, {})

    def named(base: str) -> list[tuple[SeriesName, dict[int, dict[int, int]]]]:
        parsed = [(parse_name(series), by) for series, by in counts.items()]
        return [(name, by) for name, by in parsed if name.base == base and name.labels]

    seen.routes = by_group(named(REQUESTS), JUDGED_ROUTES)
    seen.tasks = by_group(named(TASK_RUNS), JUDGED_TASKS)
    for series, by_width in observed.items():
        name = parse_name(series)
        group = seen.tasks.get(name.label("task") or "")
        if name.base == SECONDS:
            route = route_of(name.labels)
            group = seen.routes[route] if route in list(seen.routes)[:TIMED_ROUTES] else None
        target = seen.seconds if name.base == HITS_SECONDS else None
        if target is None and group is not None:
            target = group.seconds
        if target is not None:
            for width, by_values in by_width.items():
                merged = target.setdefault(width, {})
                for start, values in by_values.items():
                    merged.setdefault(start, Distribution()).merge(_distribution(values))
    if not seen.requests and not seen.tasks:
        sums = Counter[str]()
        whole: dict[str, dict[int, dict[int, int]]] = {}
        for series, by in counts.items():
            base = base_of(series)
            for width, by_counts in by.items():
                into = whole.setdefault(base, {}).setdefault(width, {})
                for start, number in by_counts.items():
                    into[start] = into.get(start, 0) + number
                    if width == BLOCK and start >= now - RANKED * BLOCK:
                        sums[base] += number
        seen.counters = {name: whole[name] for name in busiest_names(sums)}
    window = new_window(now)
    around = Circumstances()
    around.exceptions = _exceptions(memory, window, now)
    around.messages = PatternChanges(
        new=tuple(
            LogPattern(
                logger=one.logger,
                severity=one.severity,
                pattern=one.pattern,
                sample=one.sample,
                first=one.first,
                last=one.last or one.first,
                count=one.count,
            )
            for one in frequencies(memory.messages, now, sliding=True)
            if one.first is not None and one.first >= window.window.start
        )
    )
    surroundings = Surroundings(around)
    if not (seen.requests or seen.tasks or seen.counters):
        kept_kinds = {
            "counters": counts,
            "gauges": [e for e in memory.events if e.amount is None and e.observed is None],
            "histograms": [e for e in memory.events if e.observed is not None],
            "messages": memory.messages,
            "exceptions": memory.exceptions,
        }
        surroundings.kinds = tuple(kind for kind, records in kept_kinds.items() if records)
    recent = [mark for mark in seen.marks if now - JUDGED < mark.time <= now]
    if recent and verdict is not None:
        surroundings.verdict = verdict(recent[-1])

    def explanation(request: ExplainRequest) -> Explanation:
        return explained(memory, request, retention, histograms, clock, zone, checked=False)

    return assess(seen, surroundings, explanation)


def _exceptions(memory: MemoryRecorder, comparison: Comparison, now: float) -> ExceptionChanges:
    """Return the groups of exceptions whose rate changed."""
    windows = windows_of(comparison, now)
    if windows is None:
        return not_kept(comparison, now)
    span = windows.all_of
    intervals = ExceptionWindow(windows.width, span.start, span.stop, span.start, False)
    recorded = {group for groups in memory.exceptions.values() for group in groups} - {OTHER}
    stored = [stored_group(memory.exceptions, group, intervals) for group in recorded]
    with_place = [one._replace(texts=one.texts[:3]) for one in stored]
    return changes_of(with_place, windows, comparison)


def _events(
    memory: MemoryRecorder, name: str, comparison: Comparison, *, histogram: bool
) -> LabelEvents:
    """Return the events of the label sets of a name by interval."""
    counts: dict[str, dict[int, int]] = {}
    values: dict[str, dict[int, list[float]]] = {}
    for event in memory.events:
        start = slice_start(event.time, comparison.window.step)
        if histogram and event.observed is not None:
            values.setdefault(event.series, {}).setdefault(start, []).append(event.observed)
        elif not histogram and event.amount is not None:
            intervals = counts.setdefault(event.series, {})
            intervals[start] = intervals.get(start, 0) + event.amount
    result = LabelEvents()
    for series in {**counts, **values}:
        parsed = parse_name(series)
        labels = dict(parsed.labels)
        required = comparison.request.labels.items()
        if parsed.base != name or any(labels.get(key) != value for key, value in required):
            continue
        if series in counts:
            result.counts.append((labels, counts[series]))
        else:
            by_start = values[series].items()
            result.histograms.append((labels, {at: _distribution(each) for at, each in by_start}))
    return result


def _distribution(values: list[float]) -> Distribution:
    distribution = Distribution()
    distribution.add_all(values)
    return distribution


def _database(memory: MemoryRecorder, comparison: Comparison) -> DatabaseTime | None:
    """Return the time in the database per request."""
    sums = []
    for name in (REQUEST_DB_SECONDS, SECONDS):
        sides = []
        for intervals in (comparison.baseline, comparison.window):
            values = [
                event.observed
                for event in memory.events
                if event.observed is not None
                and parse_name(event.series).base == name
                and intervals.start <= event.time < intervals.stop
            ]
            sides.append((len(values), sum(values)))
        sums.append((sides[0], sides[1]))
    return database_time(*sums)
