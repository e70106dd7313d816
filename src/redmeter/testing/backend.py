"""The backend of the meter of tests: queries over lists of events; see readings.py."""

import math
from collections import Counter as Multiset
from collections.abc import Iterable, Mapping

from redmeter.analysis.changes import changes
from redmeter.backends import Backend
from redmeter.clock import ManualClock
from redmeter.errors import LimitExceeded
from redmeter.format.mark import distinct
from redmeter.keys import Retention, slice_start
from redmeter.names import parse_name
from redmeter.reading.catalogue import matching
from redmeter.reading.messages import check_limit
from redmeter.reading.ranking import check, intervals_of, rank_counts
from redmeter.reading.series import check_number, window
from redmeter.reading.spread import Summary
from redmeter.reading.summaries import MAX_MERGED, MAX_SERIES, window_of
from redmeter.testing.readings import (
    Window,
    by_the_hour,
    frequencies,
    labelled,
    newest,
    ranked_observed,
    sources,
    summed,
)
from redmeter.testing.recorder import MemoryRecorder
from redmeter.types import (
    Changes,
    Frequency,
    LogSource,
    Mark,
    Message,
    Period,
    Ranking,
    Sample,
    Series,
    Statistics,
    Top,
)


class MemoryBackend(Backend):
    """Reads recorded events.

    Args:
        memory: what was.
        clock: what time it is.
        retention, histograms: of which precisions one may ask, and how far back.
    """

    def __init__(
        self,
        memory: MemoryRecorder,
        clock: ManualClock,
        retention: Retention,
        histograms: Retention,
    ) -> None:
        self._memory, self._clock = memory, clock
        self._retention, self._histograms = retention, histograms

    def series(self, names: list[str], period: Period) -> dict[str, Series[int]]:
        check_number(names)
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

    def gauge(self, name: str, period: Period) -> Series[float | None]:
        self._retention.check(period.precision)
        newest: dict[int, Sample[float]] = {}
        for event in sorted(self._memory.events, key=lambda event: event.time):
            if event.series == name and event.value is not None:
                start = slice_start(event.time, period.precision)
                newest[start] = Sample(start, event.value)
        starts = self._starts(newest, period)
        values = tuple(newest[s].value if s in newest else None for s in starts)
        return Series(name, period.precision, starts.start, values, partial=self._running(starts))

    def _starts(self, found: Iterable[int], period: Period) -> range:
        """Return the slices from the oldest sample that counts to the running one."""
        precision, since, until, _ = period
        first, last = window(self._retention, precision, self._clock.wall(), since, until)
        oldest = min((start for start in found if first <= start <= last), default=last + precision)
        return range(oldest, last + 1, precision)

    def _running(self, starts: range) -> bool:
        return bool(starts) and starts[-1] + starts.step > self._clock.wall()

    def summaries(self, names: list[str], period: Period) -> dict[str, Summary]:
        window = self._window(period)
        if len(names) > MAX_SERIES:
            raise LimitExceeded("summaries", len(names), MAX_SERIES, "ask for fewer at a time")
        now, events = self._clock.wall(), self._memory.events
        return {name: summed(events, name, [name], window, now) for name in names}

    def merged(self, base: str, labels: Mapping[str, str] | None, period: Period) -> Summary:
        names = [n for n in self.names("*", "histograms") if parse_name(n).base == base]
        found = labelled(names, labels)
        if len(found) > MAX_MERGED:
            raise LimitExceeded("label sets", len(found), MAX_MERGED, "give more labels")
        return summed(self._memory.events, base, found, self._window(period), self._clock.wall())

    def _window(self, period: Period) -> Window:
        precision, since, until, slices = period
        now = self._clock.wall()
        return (precision, *window_of(self._histograms, precision, now, since, until, slices))

    def statistics(self, name: str) -> Statistics:
        return by_the_hour(self._memory.events, name, self._clock.wall())

    def marks(self, since: float | None, until: float | None) -> list[Mark]:
        first, last = -math.inf if since is None else since, math.inf if until is None else until
        found = distinct(self._memory.marks)
        return [Mark(one.time, one.label) for one in found if first <= one.time <= last]

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
        found = changes(frequencies(messages, now, sliding=True), now)
        return Changes(found, sources=number, compared=number)

    def total(self, name: str) -> int:
        return sum(event.amount or 0 for event in self._memory.events if event.series == name)

    def names(self, pattern: str, kind: str) -> list[str]:
        found = set()
        for event in self._memory.events:
            told = {"counters": event.amount, "gauges": event.value, "histograms": event.observed}
            if told[kind] is not None:
                found.add(event.series)
        return sorted(matching(found, pattern))

    def top(self, wanted: Top) -> Ranking:
        order = check(wanted)
        counters, observed = self._chosen(wanted, "counters"), self._chosen(wanted, "histograms")
        counted = order.word == "failing" or (
            order.word == "count" and bool(counters or not observed)
        )
        now = self._clock.wall()
        intervals = intervals_of(wanted, self._retention if counted else self._histograms, now)
        if counted:
            within = Period(wanted.precision, intervals.start, intervals.stop - 1)
            totals = {name: one.total for name, one in self.series(counters, within).items()}
            counts = {name: total for name, total in totals.items() if total and intervals}
            found = rank_counts(counts, wanted)
        else:
            found = ranked_observed(self._memory.events, observed, order, intervals, now, wanted)
        found.slices = len(intervals)
        return found

    def _chosen(self, wanted: Top, kind: str) -> list[str]:
        if not wanted.by:
            return labelled(self.names(wanted.name, kind), wanted.where)
        names = [name for name in self.names("*", kind) if parse_name(name).base == wanted.name]
        return labelled(names, wanted.where)
