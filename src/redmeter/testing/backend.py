"""The backend of the meter of tests: queries over lists of events; see readings.py."""

import math
from collections import Counter as Multiset
from collections.abc import Iterable
from dataclasses import replace

from redmeter.analysis.comparing.changes import changes
from redmeter.analysis.explanation import Explanation, Status
from redmeter.backends import Backend, Groups
from redmeter.clock import ManualClock
from redmeter.errors import InvalidValue, LimitExceeded
from redmeter.names import parse_name
from redmeter.reading.aggregates import aggregated, summed_up
from redmeter.reading.diagnosis.verdict import VerdictQuestion, build, find_mark
from redmeter.reading.diagnosis.verdict_data import plan
from redmeter.reading.diagnosis.windows import ExplainRequest
from redmeter.reading.distributions import MAX_SERIES as MAX_NAMES
from redmeter.reading.distributions import window_of
from redmeter.reading.exceptions import (
    ExceptionQuery,
    ExceptionSummaries,
    ExceptionSummary,
    group_in,
    groups_in,
)
from redmeter.reading.exceptions import window_of as exception_window
from redmeter.reading.logs.recent import check_limit
from redmeter.reading.names import matching
from redmeter.reading.ranking import check, groups_of, intervals_of, rank
from redmeter.reading.samples import check_number, window
from redmeter.reading.selection import (
    MAX_HISTOGRAMS,
    MAX_SERIES,
    GroupKey,
    check_label_sets,
    name_of,
    selects,
    split,
)
from redmeter.reading.spread import Summary
from redmeter.results import (
    Changes,
    Frequency,
    LogSource,
    Mark,
    Message,
    QueryResult,
    Ranking,
    Series,
    Statistics,
)
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.keys import Retention, slice_start
from redmeter.stored.mark import distinct
from redmeter.stored.moments import Sums, merge_all
from redmeter.testing.diagnosis import explained, status_of
from redmeter.testing.readings import (
    Window,
    by_the_hour,
    distributions,
    frequencies,
    labelled,
    newest,
    sources,
    stored_group,
    summed,
    traffic,
)
from redmeter.testing.recorder import MemoryRecorder
from redmeter.types import Period, Selector, Top
from redmeter.verdicts import Verdict
from redmeter.zones import Zone


class MemoryBackend(Backend):
    """Reads recorded events.

    Args:
        memory: the recorded events.
        clock: the current time.
        retention, histograms: precision, seconds -> samples: which precisions can be read, and how
            far back.
        zone: whose time of day is compared.
    """

    def __init__(
        self,
        memory: MemoryRecorder,
        clock: ManualClock,
        retention: Retention,
        histograms: Retention,
        zone: Zone,
    ) -> None:
        self._memory, self._clock = memory, clock
        self._retention, self._histograms = retention, histograms
        self._zone = zone

    def series(self, selector: Selector, period: Period) -> Groups[Series[int]]:
        names = self._selected(selector, "counter", MAX_SERIES)
        parts = {name: one.values for name, one in self._series(names, period).items()}
        starts, running = self._window(period)
        return summed_up(parts, selector, period.precision, starts, running=running)

    def series_many(self, names: list[str], period: Period) -> dict[str, Series[int]]:
        check_number(names)
        return self._series(names, period)

    def _series(self, names: Iterable[str], period: Period) -> dict[str, Series[int]]:
        precision, found = self._retention.check(period.precision), {}
        for name in names:
            counts = Multiset[int]()
            for event in self._memory.events:
                if event.series == name and event.amount is not None:
                    counts[slice_start(event.time, precision)] += event.amount
            starts = self._starts(counts, period)
            values = tuple(counts[start] for start in starts)
            found[name] = Series(
                name, precision, starts.start, values, partial=self._running(starts)
            )
        return found

    def gauges(
        self, selector: Selector, period: Period, aggregate: str | None
    ) -> Groups[Series[float | None]]:
        names = self._selected(selector, "gauge", MAX_SERIES)
        parts = {name: self._gauge(name, period) for name in names}
        starts, running = self._window(period)
        return aggregated(parts, selector, period.precision, starts, aggregate, running=running)

    def _gauge(self, name: str, period: Period) -> tuple[float | None, ...]:
        newest: dict[int, float] = {}
        for event in sorted(self._memory.events, key=lambda event: event.time):
            if event.series == name and event.value is not None:
                newest[slice_start(event.time, period.precision)] = event.value
        return tuple(newest.get(start) for start in self._starts(newest, period))

    def _selected(self, selector: Selector, kind: str, limit: int) -> list[str]:
        names = [name for name in self.names("*", kind) if selects(selector, name)]
        check_label_sets(len(names), limit)
        return names or [name_of(selector)]

    def _window(self, period: Period) -> tuple[range, bool]:
        """Return the starts of the intervals of a period, and whether the newest still runs."""
        precision, since, until, _, seconds = period
        now = self._clock.wall()
        first, last = window(self._retention, precision, now, since, until, seconds)
        return range(first, last + 1, precision), last + precision > now

    def _starts(self, found: Iterable[int], period: Period) -> range:
        """Return the intervals from the oldest retained sample to the current one."""
        starts, _ = self._window(period)
        end = starts.start + len(starts) * period.precision
        oldest = min((start for start in found if start in starts), default=end)
        return range(oldest, end, period.precision)

    def _running(self, starts: range) -> bool:
        return bool(starts) and starts[-1] + starts.step > self._clock.wall()

    def summary(self, selector: Selector, period: Period) -> Groups[Summary]:
        names = self._selected(selector, "histogram", MAX_HISTOGRAMS)
        window, now = self._intervals(period), self._clock.wall()
        groups = split(selector, dict.fromkeys(names))
        rows = [
            (key, summed(self._memory.events, name_of(selector), some, window, now))
            for key, some in groups.items()
        ]
        return sorted(rows, key=lambda row: (-row[1].count, [value or "" for value in row[0]]))

    def summary_many(self, names: list[str], period: Period) -> dict[str, Summary]:
        window = self._intervals(period)
        if len(names) > MAX_NAMES:
            raise LimitExceeded("summaries", len(names), MAX_NAMES, "ask for fewer at a time")
        now, events = self._clock.wall(), self._memory.events
        return {name: summed(events, name, [name], window, now) for name in names}

    def _intervals(self, period: Period) -> Window:
        precision, since, until, intervals, last = period
        now = self._clock.wall()
        bounds = window_of(self._histograms, precision, now, since, until, intervals, last)
        return (precision, *bounds)

    def statistics(self, name: str) -> Statistics:
        return by_the_hour(self._memory.events, name, self._clock.wall())

    def marks(self, since: float | None, until: float | None) -> list[Mark]:
        first, last = -math.inf if since is None else since, math.inf if until is None else until
        marks = distinct(self._memory.marks)
        return [Mark(one.time, one.label) for one in marks if first <= one.time <= last]

    def verdict(self, asked: VerdictQuestion) -> Verdict:
        now, marks = self._clock.wall(), self.marks(None, None)
        _, moment = find_mark(asked, marks, now)
        kept = self._retention, self._histograms
        windows = plan(moment, now, asked.against, asked.precision, *kept, self._zone)
        data = traffic(self._memory.events, asked.precision)
        patterns = frequencies(self._memory.messages, now, sliding=True)
        return build(asked, now, marks, windows, data, patterns)

    def recent(self, logger: str, severity: str | None, limit: int) -> list[Message]:
        check_limit(limit)
        messages = [each.message for each in self._memory.logged(logger, severity)]
        return newest(messages, self._memory.rules.keep)[:limit]

    def common(self, logger: str, severity: str | None) -> list[Frequency]:
        return frequencies(self._memory.logged(logger, severity), self._clock.wall())

    def loggers(self) -> list[LogSource]:
        return sources(self._memory.messages)

    def changes(self, logger: str | None) -> Changes:
        messages = self._memory.messages if logger is None else self._memory.logged(logger, None)
        now, number = self._clock.wall(), len(sources(messages))
        result = changes(frequencies(messages, now, sliding=True), now)
        return Changes(tuple(result), sources=number, compared=number)

    def query(self, promql: str, *_: object) -> QueryResult:
        """Raise InvalidValue: PromQL is evaluated over a store.

        Raises:
            InvalidValue: always.
        """
        raise InvalidValue(promql, "a meter in memory answers no PromQL: use series() or summary()")

    def exceptions(self, wanted: ExceptionQuery) -> ExceptionSummaries:
        now = self._clock.wall()
        window = exception_window(wanted.period, now)
        recorded = {group for groups in self._memory.exceptions.values() for group in groups}
        stored = [stored_group(self._memory.exceptions, group, window) for group in recorded]
        return groups_in(stored, window, wanted)

    def exception(self, group: str, wanted: ExceptionQuery) -> ExceptionSummary | None:
        window = exception_window(wanted.period, self._clock.wall())
        if not any(group in groups for groups in self._memory.exceptions.values()):
            return None
        stored = stored_group(self._memory.exceptions, group, window, traceback=True)
        return group_in(stored, window)

    def totals(self, selector: Selector) -> dict[GroupKey, int]:
        totals = Multiset[str]()
        for event in self._memory.events:
            if event.amount is not None and selects(selector, event.series):
                totals[event.series] += event.amount
        groups = split(selector, totals)
        return {key: sum(some.values()) for key, some in groups.items()}

    def names(self, pattern: str, kind: str) -> list[str]:
        names = set()
        for event in self._memory.events:
            by_kind = {
                "counter": event.amount,
                "gauge": event.value,
                "histogram": event.observed,
            }
            if by_kind[kind] is not None:
                names.add(event.series)
        return sorted(matching(names, pattern))

    def top(self, wanted: Top) -> Ranking:
        order = check(wanted)
        counters, observed = self._chosen(wanted, "counter"), self._chosen(wanted, "histogram")
        counted = order.word == "failing" or (
            order.word == "count" and bool(counters or not observed)
        )
        now = self._clock.wall()
        intervals = intervals_of(wanted, self._retention if counted else self._histograms, now)
        spreads: dict[str, Distribution] = {}
        if counted:
            within = Period(wanted.precision, intervals.start, intervals.stop - 1)
            counts = self._series(counters, within) if intervals else {}
            sums = {name: Sums(one.total) for name, one in counts.items()}
        else:
            spreads = distributions(self._memory.events, observed, intervals)
            sums = {
                name: Sums(one.count, total=one.moments.total, m2=one.moments.m2)
                for name, one in spreads.items()
            }
        groups = groups_of(sums, wanted)
        values = {key: group.value(order) for key, group in groups.items() if order.q is None}
        if order.q is not None:  # of all groups
            for key, group in groups.items():
                whole = merge_all(Distribution(), (spreads[name] for name in group.series))
                values[key] = whole.quantile(order.q)
        return replace(rank(groups, values, wanted), intervals=len(intervals))

    def explain(self, request: ExplainRequest) -> Explanation:
        kept = self._retention, self._histograms
        return explained(self._memory, request, *kept, self._clock, self._zone)

    def status(self) -> Status:
        return status_of(self._memory, self._retention, self._histograms, self._clock)

    def _chosen(self, wanted: Top, kind: str) -> list[str]:
        if not wanted.by:
            return labelled(self.names(wanted.name, kind), wanted.where)
        names = [name for name in self.names("*", kind) if parse_name(name).base == wanted.name]
        return labelled(names, wanted.where)
