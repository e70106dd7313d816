"""The source of the meter of tests: queries over lists of events; see readings.py."""

import math
from collections import Counter as Multiset
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from redmeter.analysis.comparing.changes import find_changes
from redmeter.clock import ManualClock, Zone
from redmeter.errors import LimitExceeded
from redmeter.names import parse_name
from redmeter.queries.source import Answers
from redmeter.reading import aggregates
from redmeter.reading.diagnosis.explain import EXPLAINED, read_explanation
from redmeter.reading.diagnosis.judged_status import read_status
from redmeter.reading.diagnosis.verdict import VerdictQuestion, build, find_mark, read_verdict
from redmeter.reading.diagnosis.verdict_data import plan
from redmeter.reading.diagnosis.windows import ExplainRequest
from redmeter.reading.distributions import MAX_SERIES as MAX_NAMES
from redmeter.reading.distributions import read_summaries
from redmeter.reading.exceptions import (
    ExceptionQuery,
    exception_window,
    group_in,
    groups_in,
    read_exception,
    read_exceptions,
)
from redmeter.reading.logs import recent
from redmeter.reading.marks import read_marks
from redmeter.reading.names import matching, read_names
from redmeter.reading.promql import QueryRange, query_result, read_query
from redmeter.reading.ranking import Order, rank, ranked_groups, ranked_window, single_name
from redmeter.reading.samples import (
    check_number,
    covered,
    held_seconds,
    read_gauges,
    read_series,
    series_of,
)
from redmeter.reading.selection import (
    KINDS,
    GroupKey,
    base_of,
    check_found,
    check_label_sets,
    check_labels,
    labels_in,
    name_of,
    selects,
    split,
)
from redmeter.reading.statistics import read_statistics
from redmeter.reading.top import read_top
from redmeter.results.exceptions import ExceptionSummaries, ExceptionSummary
from redmeter.results.explanation import Explanation, Status
from redmeter.results.forecasts import Forecast
from redmeter.results.logs import Changes, Frequency, LogSource, Message
from redmeter.results.promql import QueryResult
from redmeter.results.series import CoveredWindow, Ranking, Series
from redmeter.results.summaries import Statistics, Summary
from redmeter.results.verdict import Verdict
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.families import SERIES_KINDS
from redmeter.stored.keys import OTHER, Retention, slice_start
from redmeter.stored.mark import distinct
from redmeter.stored.moments import Sums, merge_all
from redmeter.testing.diagnosis import explained, status_of
from redmeter.testing.readings import (
    by_the_hour,
    event_distributions,
    event_sums,
    frequencies,
    labelled,
    newest_messages,
    sources,
    stored_group,
    traffic,
)
from redmeter.testing.recorder import RECORDED, STATE_VALUES, MemoryRecorder
from redmeter.types import Mark, Selection, Top, Window

T = TypeVar("T")

#: The number of this process, by which its parts of gauges are stored.
_LIVE = (b"0",)

#: A result for each group of a selection.
_Groups = list[tuple[GroupKey, T]]


class MemorySource(Answers):
    """Answers from recorded events.

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
        super().__init__(
            {
                aggregates.read_counter: self.series,
                aggregates.read_gauge: self.gauges,
                aggregates.read_summary: self.summary,
                aggregates.read_total: self.totals,
                aggregates.read_zoned_forecasts: self.forecasts,
                read_series: self.series_many,
                read_gauges: self.gauges_many,
                read_summaries: self.summary_many,
                read_statistics: self.statistics,
                read_names: self.names,
                read_top: self.top,
                read_marks: self.marks,
                recent.read_recent: self.recent,
                recent.read_common: self.common,
                recent.read_loggers: self.loggers,
                recent.read_changes: self.changes,
                read_exceptions: self.exceptions,
                read_exception: self.exception,
                read_query: self.query,
                read_explanation: self.explain,
                read_status: self.status,
                read_verdict: self.verdict,
            }
        )

    # Each method takes the arguments of the function in the table above.

    def series(self, selection: Selection, window: Window) -> _Groups[Series[int]]:
        self._retention.check(window.precision)
        self._check(selection, "counter")
        return self._counters(selection, window)

    def _counters(self, selection: Selection, window: Window) -> _Groups[Series[int]]:
        names = self._selected(selection, "counter")
        parts = {name: one.values for name, one in self._series(names, window).items()}
        return aggregates.summed_up(parts, selection, self._covered(window))

    def series_many(self, names: list[str], window: Window) -> dict[str, Series[int]]:
        check_number(names)
        self._retention.check(window.precision)
        self._check_kinds(names, "counter")
        return self._series(names, window)

    def _series(self, names: Iterable[str], window: Window) -> dict[str, Series[int]]:
        precision, found = self._retention.check(window.precision), dict[str, Series[int]]()
        for name in names:
            counts = Multiset[int]()
            for event in self._memory.events:
                if event.series == name and event.amount is not None:
                    counts[slice_start(event.time, precision)] += event.amount
            values = [counts[start] for start in self._kept(counts, window)]
            found[name] = series_of(name, self._covered(window), values)
        return found

    def gauges(
        self, selection: Selection, window: Window, aggregate: str | None, *, kind: str = "gauge"
    ) -> _Groups[Series[float | None]]:
        self._retention.check(window.precision)
        self._check(selection, kind)
        return self._gauges(selection, window, aggregate, kind)

    def _gauges(
        self, selection: Selection, window: Window, aggregate: str | None, kind: str = "gauge"
    ) -> _Groups[Series[float | None]]:
        names = self._selected(selection, kind)
        parts = {name: self._state(kind, name, window) for name in names}
        return aggregates.aggregated(parts, selection, self._covered(window), aggregate)

    def gauges_many(
        self, names: list[str], window: Window, kind: str = "gauge"
    ) -> dict[str, Series[float | None]]:
        check_number(names)
        within = self._covered(window)
        self._check_kinds(names, kind)
        return {name: series_of(name, within, self._state(kind, name, window)) for name in names}

    def forecasts(
        self, selection: Selection, precision: int, ahead: int | None, aggregate: str | None
    ) -> _Groups[Forecast]:
        window = Window(precision)
        self._retention.check(precision)
        self._check(selection, "counter", "gauge")
        counters = self._counters(selection, window)
        counted = any(series for _, series in counters)
        gauges = [] if counted else self._gauges(selection, window, aggregate)
        return aggregates.forecasts(selection, precision, counters, gauges, ahead, self._zone)

    def _state(self, kind: str, name: str, window: Window) -> tuple[float | None, ...]:
        values: dict[int, list[Any]] = {}
        now, held = self._clock.wall(), held_seconds(name, _LIVE)
        current = slice_start(now, window.precision)
        newest: list[Any] = []
        for event in sorted(self._memory.events, key=lambda event: event.time):
            value = RECORDED[kind](event)
            if event.series == name and value is not None:
                values.setdefault(slice_start(event.time, window.precision), []).append(value)
                if now - held <= event.time <= now:
                    newest = [value]
        if newest:
            values.setdefault(current, newest)
        return tuple(
            STATE_VALUES[kind](values[start]) if start in values else None
            for start in self._kept(values, window)
        )

    def _check(self, selection: Selection, *expected: str, failing: Iterable[str] = ()) -> None:
        """Check the name and the labels of a query; see check_asked().

        Raises:
            WrongKind: the name has kinds other than these only.
            UnknownLabel: the name has series, and none of them has a certain label.
        """
        self._check_kind(selection, *expected)
        names = {name for kind in RECORDED for name in self.names("*", kind)}
        base, labels = selection.name, list(selection.labels)
        if selection.exact:
            if any(base in self.names("*", kind) for kind in expected):
                return
            base, labels = base_of(selection.name), [*labels, *labels_in(selection.name)]
        stored = [name for name in names if base_of(name) == base]
        check_labels(base, [*labels, *selection.by, *failing], stored)

    def _check_kind(self, selection: Selection, *expected: str) -> None:
        """Check that the name has one of these kinds, or none.

        Raises:
            WrongKind: it has others only.
        """

        def has(kind: str) -> bool:
            names = self.names("*", kind)
            if selection.exact:
                return selection.name in names
            return any(base_of(name) == selection.name for name in names)

        check_found(selection, expected, [kind for kind in RECORDED if has(kind)])

    def _check_kinds(self, names: Iterable[str], kind: str) -> None:
        for name in names:
            self._check_kind(Selection(name, exact=True), kind)

    def _selected(self, selection: Selection, kind: str) -> list[str]:
        names = [name for name in self.names("*", kind) if selects(selection, name)]
        check_label_sets(len(names), KINDS[kind].most)
        return names or [name_of(selection)]

    def _covered(self, window: Window, kind: str = "counter") -> CoveredWindow:
        return covered(window, *self.kept(kind))

    def kept(self, kind: str) -> tuple[Retention, float]:
        """Return the retention of a kind, and the current time."""
        histograms = SERIES_KINDS[kind].retention == "histograms"
        return self._histograms if histograms else self._retention, self._clock.wall()

    def _kept(self, found: Iterable[int], window: Window) -> range:
        """Return the intervals of a window from the oldest sample on."""
        starts = self._covered(window).starts
        oldest = min((start for start in found if start in starts), default=starts.stop)
        return range(oldest, starts.stop, window.precision)

    def summary(self, selection: Selection, window: Window) -> _Groups[Summary]:
        self._histograms.check(window.precision)
        self._check(selection, "histogram")
        names = self._selected(selection, "histogram")
        within = self._covered(window, "histogram")
        groups = split(selection, dict.fromkeys(names))
        rows = [
            (key, event_sums(self._memory.events, name_of(selection), some, within))
            for key, some in groups.items()
        ]
        return sorted(rows, key=lambda row: (-row[1].count, [value or "" for value in row[0]]))

    def summary_many(self, names: list[str], window: Window) -> dict[str, Summary]:
        events, within = self._memory.events, self._covered(window, "histogram")
        if len(names) > MAX_NAMES:
            raise LimitExceeded("summaries", len(names), MAX_NAMES, "ask for fewer at a time")
        self._check_kinds(names, "histogram")
        return {name: event_sums(events, name, [name], within) for name in names}

    def statistics(self, name: str) -> Statistics:
        self._check(Selection(name, exact=True), "histogram")
        return by_the_hour(self._memory.events, name, self._clock.wall())

    def marks(self, *, since: float | None, until: float | None) -> list[Mark]:
        first, last = -math.inf if since is None else since, math.inf if until is None else until
        marks = distinct(self._memory.marks)
        return [Mark(one.time, one.label) for one in marks if first <= one.time <= last]

    def verdict(self, asked: VerdictQuestion) -> tuple[float, Verdict]:
        now, marks = self._clock.wall(), self.marks(since=None, until=None)
        _, moment = find_mark(asked, marks, now)
        kept = self._retention, self._histograms
        windows = plan(moment, now, asked.against, asked.precision, *kept, self._zone)
        data = traffic(self._memory.events, asked.precision)
        patterns = frequencies(self._memory.messages, now, sliding=True)
        return now, build(asked, now, marks, windows, data, patterns)

    def recent(self, logger: str, *, severity: str | None, limit: int) -> list[Message]:
        messages = [each.message for each in self._memory.logged(logger, severity)]
        return newest_messages(messages, self._memory.rules.keep)[:limit]

    def common(self, logger: str, *, severity: str | None) -> list[Frequency]:
        return frequencies(self._memory.logged(logger, severity), self._clock.wall())

    def loggers(self) -> list[LogSource]:
        return sources(self._memory.messages)

    def changes(self, logger: str | None) -> Changes:
        messages = self._memory.messages if logger is None else self._memory.logged(logger, None)
        now, number = self._clock.wall(), len(sources(messages))
        result = find_changes(frequencies(messages, now, sliding=True), now)
        return Changes(tuple(result), sources=number, compared=number)

    def query(self, text: str, at: float | None, window: QueryRange | None) -> QueryResult:
        from redmeter.testing.promql import EventStore

        now = self._clock.wall()
        store = EventStore(self._memory.events, now, self._retention, self._histograms)
        if window is not None:
            start, end, step = window
            window = start, now if end is None else end, step
        return query_result(store, store.exports(), text, now if at is None else at, window)

    def exceptions(self, wanted: ExceptionQuery) -> ExceptionSummaries:
        now = self._clock.wall()
        window = exception_window(wanted.window, now)
        recorded = {group for groups in self._memory.exceptions.values() for group in groups}
        stored = {group: stored_group(self._memory.exceptions, group, window) for group in recorded}
        other = stored.pop(OTHER).counts if OTHER in stored else ()
        return groups_in(stored.values(), window, wanted, other=other)

    def exception(self, group: str, wanted: ExceptionQuery) -> ExceptionSummary | None:
        window = exception_window(wanted.window, self._clock.wall())
        if not any(group in groups for groups in self._memory.exceptions.values()):
            return None
        stored = stored_group(self._memory.exceptions, group, window, traceback=True)
        return group_in(stored, window)

    def totals(self, selection: Selection) -> dict[GroupKey, int]:
        self._check(selection, "counter")
        totals = Multiset[str]()
        for event in self._memory.events:
            if event.amount is not None and selects(selection, event.series):
                totals[event.series] += event.amount
        groups = split(selection, totals)
        return {key: sum(some.values()) for key, some in groups.items()}

    def names(self, pattern: str, kind: str) -> list[str]:
        recorded = RECORDED[kind]
        names = {one.series for one in self._memory.events if recorded(one) is not None}
        return sorted(matching(names, pattern))

    def top(self, wanted: Top) -> Ranking:
        order = Order.parse(wanted.order)
        counters, observed = self._chosen(wanted, "counter"), self._chosen(wanted, "histogram")
        counted = order.word == "failing" or (
            order.word == "count" and bool(counters or not observed)
        )
        window = ranked_window(wanted, *self.kept("counter" if counted else "histogram"))
        intervals = window.starts
        failing = wanted.failing or ()
        if (name := single_name(wanted)) is not None:
            self._check(name, *order.kinds, failing=failing)
        else:
            stored = [one for kind in RECORDED for one in self.names(wanted.name, kind)]
            check_labels(wanted.name, [*(wanted.where or ()), *failing], stored)
        spreads: dict[str, Distribution] = {}
        if counted:
            within = Window(wanted.window.precision, intervals.start, intervals.stop)
            counts = self._series(counters, within) if intervals else {}
            sums = {name: Sums(one.total) for name, one in counts.items()}
        else:
            spreads = event_distributions(self._memory.events, observed, intervals)
            sums = {
                name: Sums(one.count, total=one.moments.total, m2=one.moments.m2)
                for name, one in spreads.items()
            }
        groups = ranked_groups(sums, wanted)
        values = {key: group.value(order) for key, group in groups.items() if order.q is None}
        if order.q is not None:  # of all groups
            for key, group in groups.items():
                whole = merge_all(Distribution(), (spreads[name] for name in group.series))
                values[key] = whole.quantile(order.q)
        return replace(rank(groups, values, wanted), intervals=len(intervals), window=window)

    def explain(self, request: ExplainRequest) -> tuple[float, Explanation]:
        kept = self._retention, self._histograms
        now = self._clock.wall()
        self._check_kind(Selection(request.name), *EXPLAINED)
        return now, explained(self._memory, request, *kept, self._clock, self._zone)

    def status(self) -> tuple[float, Status]:
        kept = self._retention, self._histograms

        def verdict(mark: Mark) -> Verdict:
            return self.verdict(VerdictQuestion(mark.label, None, "previous", 60))[1]

        return self._clock.wall(), status_of(self._memory, *kept, self._clock, self._zone, verdict)

    def _chosen(self, wanted: Top, kind: str) -> list[str]:
        if not wanted.by:
            return labelled(self.names(wanted.name, kind), wanted.where)
        names = [name for name in self.names("*", kind) if parse_name(name).base == wanted.name]
        return labelled(names, wanted.where)
