"""For tests of your own: a Meter that needs no server, and a clock that you move.

    from redmeter.testing import MemoryMeter

    def test_signing_up_is_counted():
        meter = MemoryMeter()
        sign_up(meter, plan="pro")
        assert meter.recorded("signups", labels={"plan": "pro"}) == 1

A MemoryMeter takes what a Meter takes, refuses what a Meter refuses, and keeps everything: nothing
is sent, no thread starts, and readings show at once what was recorded. Its clock stands still until
you move it: `meter.clock.advance(60)`. What a store adds (retention of old samples, several
processes) is not imitated: use the embedded server for that.
"""

import math
from collections import Counter as Multiset
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from redmeter.analysis.changes import changes
from redmeter.asking import check_kind
from redmeter.clock import Clock, ManualClock
from redmeter.keys import (
    DEFAULT_HISTOGRAMS,
    DEFAULT_RETENTION,
    HOUR,
    Retention,
    check_time,
    check_times,
    slice_start,
)
from redmeter.kinds.counter import check_amount
from redmeter.kinds.distribution import Distribution, check_value
from redmeter.kinds.mark import distinct
from redmeter.kinds.message import check_logger, severity_of
from redmeter.meter import Meter
from redmeter.model import (
    Change,
    Frequency,
    Hour,
    LogSource,
    Mark,
    Message,
    Ranking,
    Sample,
    Series,
    Statistics,
)
from redmeter.names import canonical, parse_name
from redmeter.reading.catalogue import matching
from redmeter.reading.messages import check_limit, ordered
from redmeter.reading.observed import Sum
from redmeter.reading.rankings import (
    Group,
    Order,
    check_limits,
    check_order,
    grouped,
    grouping,
    ranked,
    ranked_failing,
    ranked_values,
)
from redmeter.reading.series import check_number, window
from redmeter.reading.spread import Spread, Summary
from redmeter.reading.summaries import has_labels, window_of
from redmeter.recording.direct import DirectRecorder
from redmeter.recording.messages import Rules, digested

__all__ = ["Event", "Logged", "ManualClock", "MemoryMeter"]


class Event(NamedTuple):
    """One call that recorded something."""

    #: The series' name, labels included, in its stored spelling.
    series: str
    #: Unix seconds.
    time: float
    #: How often it happened; None of anything but a counter.
    amount: int | None
    #: What a gauge was set to; None of anything else.
    value: float | None
    #: What was observed; None of anything else.
    observed: float | None = None


class _MemoryRecorder(DirectRecorder):
    """Keeps events in a list."""

    def __init__(self, clock: Clock, rules: Rules) -> None:
        super().__init__(None, clock.wall, rules)
        self.events: list[Event] = []
        self.messages: list[Logged] = []
        self.marks: list[Mark] = []

    def log(self, logger: str, severity: str, pattern: str | None, text: str, time: float) -> None:
        for hour in digested([(time, pattern, text)], self.rules, self.trouble).values():
            ((made, _),), ((_, shown),) = hour.patterns.items(), hour.texts
            self.messages.append(Logged(Message(logger, severity, time, shown), made))

    def count(
        self, name: str, amount: int, labels: Mapping[str, str] | None, at: float | None
    ) -> None:
        series = canonical(name, labels)
        check_amount(amount)
        time = self._now() if at is None else check_time(at)
        self.events.append(Event(series, time, amount, None))

    def set(self, series: str, value: float) -> None:
        self.events.append(Event(series, self._now(), None, value))

    def observe(
        self, name: str, value: float, labels: Mapping[str, str] | None, at: float | None
    ) -> None:
        series = canonical(name, labels)
        number = check_value(value)
        time = self._now() if at is None else check_time(at)
        if math.isfinite(number):
            self.events.append(Event(series, time, None, None, number))

    def mark(self, label: str, at: float | None) -> None:
        self.marks.append(Mark(self._now() if at is None else check_time(at), label))


class Logged(NamedTuple):
    """One message, with the pattern by which it is counted; both as they would be stored."""

    message: Message
    pattern: str


class MemoryMeter(Meter):
    """A Meter that keeps what is recorded in memory, for tests.

    Args:
        mask: see Meter.
        clock: where time comes from; if not given, one that begins in November 2023.
        retention: precision (seconds) -> samples, of which series() may be asked.
    """

    def __init__(
        self,
        *,
        clock: ManualClock | None = None,
        retention: Mapping[int, int] | None = None,
        mask: Callable[[str], str] | None = None,
    ) -> None:
        self.clock = ManualClock() if clock is None else clock
        super().__init__("off", clock=self.clock, mask=mask)
        self._retention = Retention(DEFAULT_RETENTION if retention is None else retention)
        rules = Rules() if mask is None else Rules(mask=mask)
        self._memory = _MemoryRecorder(self.clock, rules)
        self._recorder = self._memory
        self._by_name = {}

    def __repr__(self) -> str:
        return f"<MemoryMeter {len(self._memory.events)} events>"

    @property
    def events(self) -> list[Event]:
        """Everything that was recorded, in order."""
        return list(self._memory.events)

    def recorded(self, name: str, *, labels: Mapping[str, str] | None = None) -> int:
        """Return how often something was counted; 0 where it never was.

        Args:
            name, labels: of one series: labels are not summed over.
        """
        series = canonical(name, labels)
        return sum(e.amount or 0 for e in self._memory.events if e.series == series)

    def value(self, name: str, *, labels: Mapping[str, str] | None = None) -> float | None:
        """Return what a gauge was set to last; None where it never was."""
        series = canonical(name, labels)
        values = [e.value for e in self._memory.events if e.series == series]
        return next((value for value in reversed(values) if value is not None), None)

    def observed(self, name: str, *, labels: Mapping[str, str] | None = None) -> list[float]:
        """Return what was observed of a series, in order, without what is not finite."""
        series = canonical(name, labels)
        return [
            e.observed for e in self._memory.events if e.series == series and e.observed is not None
        ]

    @property
    def messages(self) -> list[Logged]:
        """Every message that was logged, in order."""
        return list(self._memory.messages)

    def logged(self, logger: str, severity: int | str | None = None) -> list[str]:
        """Return the texts that were logged, in order, without secrets.

        Args:
            severity: only of this one: a name, or a level of logging.
        """
        return [m.text for m in self._messages(logger, severity)]

    def _messages(self, logger: str, severity: int | str | None) -> list[Message]:
        wanted = None if severity is None else severity_of(severity)
        return [
            each.message
            for each in self._memory.messages
            if each.message.logger == check_logger(logger)
            and wanted in (None, each.message.severity)
        ]

    def forget(self) -> None:
        """Forget what was recorded."""
        self._memory.events.clear()
        self._memory.marks.clear()
        self._memory.messages.clear()

    # Asking, as of a store

    def series_of(
        self,
        names: list[str],
        *,
        precision: int,
        since: float | None = None,
        until: float | None = None,
    ) -> dict[str, Series[int]]:
        """Return the samples of many counters. See Meter.series_of()."""
        check_number(names)
        found = {}
        for name in map(canonical, names):
            counts = Multiset[int]()
            for event in self._memory.events:
                if event.series == name and event.amount is not None:
                    counts[slice_start(event.time, precision)] += event.amount
            starts = self._starts(counts, precision, since, until)
            values = tuple(counts[start] for start in starts)
            found[name] = Series(
                name, precision, starts.start, values, partial=self._running(starts, precision)
            )
        return found

    def gauge_series(
        self,
        name: str,
        *,
        precision: int,
        labels: Mapping[str, str] | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> Series[float | None]:
        """Return the samples of a gauge. See Meter.gauge_series()."""
        series = canonical(name, labels)
        newest: dict[int, Sample[float]] = {}
        for event in sorted(self._memory.events, key=lambda event: event.time):
            if event.series == series and event.value is not None:
                start = slice_start(event.time, precision)
                newest[start] = Sample(start, event.value)
        starts = self._starts(newest, precision, since, until)
        values = tuple(newest[s].value if s in newest else None for s in starts)
        partial = self._running(starts, precision)
        return Series(series, precision, starts.start, values, partial=partial)

    def _starts(
        self, found: Mapping[int, object], precision: int, since: float | None, until: float | None
    ) -> range:
        """Return the slices from the oldest sample that counts to the running one."""
        check_times(since, until)
        first, last = window(self._retention, precision, self.clock.wall(), since, until)
        oldest = min((start for start in found if first <= start <= last), default=last + precision)
        return range(oldest, last + 1, precision)

    def _running(self, starts: range, precision: int) -> bool:
        return bool(starts) and starts[-1] + precision > self.clock.wall()

    def total(self, name: str, *, labels: Mapping[str, str] | None = None) -> int:
        """Return everything counted of a series. See Meter.total()."""
        return self.recorded(name, labels=labels)

    def recent(
        self, logger: str, *, severity: int | str | None = None, limit: int = 100
    ) -> list[Message]:
        """Return the newest messages of a logger, the newest first. See Meter.recent()."""
        check_limit(limit)
        found = sorted(self._messages(logger, severity), key=lambda m: m.time or 0.0)
        return found[::-1][:limit]

    def common(self, logger: str, *, severity: int | str | None = None) -> list[Frequency]:
        """Return how often each pattern came. See Meter.common()."""
        known = {id(message) for message in self._messages(logger, severity)}
        return self._frequencies([e for e in self._memory.messages if id(e.message) in known])

    def _frequencies(self, messages: list[Logged]) -> list[Frequency]:
        hour = slice_start(self.clock.wall(), HOUR)
        groups: dict[tuple[str, str, str], list[Message]] = {}
        for message, pattern in messages:
            groups.setdefault((message.logger, message.severity, pattern), []).append(message)
        found = []
        for group, members in groups.items():
            times = sorted(message.time or 0.0 for message in members)
            starts = [slice_start(time, HOUR) for time in times]
            count, before = starts.count(hour), starts.count(hour - HOUR)
            if count or before:
                found.append(
                    Frequency(*group, count, before, times[0], times[-1], members[-1].text)
                )
        return ordered(found)

    def loggers(self) -> list[LogSource]:
        """Return the loggers and severities there are. See Meter.loggers()."""
        last: dict[tuple[str, str], float] = {}
        for message, _ in self._memory.messages:
            source = message.logger, message.severity
            last[source] = max(last.get(source, -math.inf), message.time or 0.0)
        found = [LogSource(*source, time) for source, time in last.items()]
        return sorted(found, key=lambda source: source.last, reverse=True)

    def changes(self, logger: str | None = None) -> list[Change]:
        """Return which messages are new, spiking or gone. See Meter.changes()."""
        found = self._frequencies(
            [e for e in self._memory.messages if logger in (None, e.message.logger)]
        )
        return changes(found, self.clock.wall())

    def marks(self, *, since: float | None = None, until: float | None = None) -> list[Mark]:
        """Return what was noted by mark(). See Meter.marks()."""
        check_times(since, until)
        first, last = -math.inf if since is None else since, math.inf if until is None else until
        return [one for one in distinct(self._memory.marks) if first <= one.time <= last]

    def names(self, pattern: str = "*", *, kind: str = "counters") -> list[str]:
        """Return the names of all counters that match, or of another kind. See Meter.names()."""
        check_kind(kind)
        found = set()
        for event in self._memory.events:
            told = {"counters": event.amount, "gauges": event.value, "histograms": event.observed}
            if told[kind] is not None:
                found.add(event.series)
        return sorted(matching(found, pattern))

    def summary(
        self,
        name: str,
        *,
        precision: int,
        labels: Mapping[str, str] | None = None,
        all_labels: bool = False,
        since: float | None = None,
        until: float | None = None,
        slices: int | None = None,
    ) -> Summary:
        """Return how observed values were spread. See Meter.summary()."""
        window = self._window(precision, since, until, slices)
        if not all_labels:
            return self._summed(canonical(name, labels), [canonical(name, labels)], *window)
        names = [n for n in self.names(kind="histograms") if parse_name(n).base == name]
        return self._summed(name, [n for n in names if has_labels(n, labels or {})], *window)

    def summaries(
        self,
        names: list[str],
        *,
        precision: int,
        since: float | None = None,
        until: float | None = None,
        slices: int | None = None,
    ) -> dict[str, Summary]:
        """Return the summaries of many series. See Meter.summaries()."""
        window = self._window(precision, since, until, slices)
        return {name: self._summed(name, [name], *window) for name in map(canonical, names)}

    def statistics(self, name: str, *, labels: Mapping[str, str] | None = None) -> Statistics:
        """Return what was observed by the hour. See Meter.statistics()."""
        series, this = canonical(name, labels), slice_start(self.clock.wall(), HOUR)
        hours = {}
        for start in sorted({slice_start(e.time, HOUR) for e in self._observed([series])}):
            m = self._summed(series, [series], HOUR, start, start + HOUR).distribution.moments
            ends = m.low, m.high
            hours[start] = Hour(start, m.count, *ends, m.total, m.mean, m.stddev())
        before = [hour for start, hour in hours.items() if start < this]
        return Statistics(series, hours.get(this), before[-1] if before else None)

    def _observed(self, names: Collection[str]) -> list[Event]:
        return [e for e in self._memory.events if e.observed is not None and e.series in names]

    def _window(
        self, precision: int, since: float | None, until: float | None, slices: int | None
    ) -> tuple[int, int, int]:
        check_times(since, until)
        kept, now = Retention(DEFAULT_HISTOGRAMS), self.clock.wall()
        return (precision, *window_of(kept, precision, now, since, until, slices))

    def _summed(
        self, name: str, names: Collection[str], precision: int, first: int, end: int
    ) -> Summary:
        slices: dict[int, list[float]] = {}
        for event in self._observed(names):
            if first <= event.time < end:
                values = slices.setdefault(slice_start(event.time, precision), [])
                values.append(event.observed or 0.0)
        whole, parts = Distribution(), dict[int, Distribution]()
        for start, values in slices.items():
            parts[start] = Distribution()
            parts[start].add_all(values)
            whole.merge(parts[start])
        starts = range(min(parts, default=end), end, precision)
        partial = first < end and end > self.clock.wall()
        over_time = [Spread(parts[at]) if at in parts else None for at in starts]
        return Summary(whole, name, precision, first, end, partial, lambda: over_time)

    def top(
        self,
        name: str = "*",
        *,
        precision: int,
        by: str | None = None,
        slices: int = 5,
        limit: int = 10,
        order: str = "count",
        where: Mapping[str, str] | None = None,
        failing: Mapping[str, str] | None = None,
    ) -> Ranking:
        """Return what happened most often, took longest or failed most. See Meter.top()."""
        wanted, group = check_order(order, failing), grouping(by, failing)

        def chosen(names: Iterable[str]) -> list[str]:
            found = (
                [n for n in names if parse_name(n).base == name] if by else matching(names, name)
            )
            return [n for n in found if has_labels(n, where or {})]

        counters, observed = chosen(self.names()), chosen(self.names(kind="histograms"))
        if wanted.word != "failing" and not (wanted.word == "count" and (counters or not observed)):
            return self._top_observed(observed, group, wanted, precision, slices, limit)
        self._retention.check(precision)
        check_limits(limit, slices, self._retention[precision])
        oldest = slice_start(self.clock.wall(), precision) - (slices - 1) * precision
        totals = {
            series: self.series(series, precision=precision, since=oldest).total
            for series in counters
        }
        counts = {series: total for series, total in totals.items() if total}
        if failing:
            return ranked_failing(counts, group, failing, limit)
        return ranked(grouped(counts, group).items(), limit)

    def _top_observed(
        self, names: list[str], group: Group, order: Order, precision: int, slices: int, limit: int
    ) -> Ranking:
        kept = Retention(DEFAULT_HISTOGRAMS)
        check_limits(limit, slices, kept[kept.check(precision)])
        window = self._window(precision, None, None, slices)
        members: dict[str | None, list[str]] = {}
        for series in names:
            members.setdefault(group(series), []).append(series)
        found = {key: self._summed("", some, *window) for key, some in members.items()}
        sums = {key: Sum(one.count, one.total) for key, one in found.items() if one.count}
        values = {
            key: one.value(order.word)
            if order.q is None
            else found[key].distribution.quantile(order.q)
            for key, one in sums.items()
        }
        return ranked_values(sums, values, order, limit)
