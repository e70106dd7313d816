"""The meter of tests: records into lists, and answers from them as a store would."""

import math
from collections import Counter as Multiset
from collections.abc import Callable, Collection, Iterable, Mapping

from redmeter.analysis.changes import changes
from redmeter.asking import check_kind, spellings
from redmeter.clock import ManualClock
from redmeter.errors import InvalidName, LimitExceeded
from redmeter.keys import (
    DEFAULT_HISTOGRAMS,
    DEFAULT_RETENTION,
    HISTOGRAMS,
    Retention,
    check_times,
    slice_start,
)
from redmeter.kinds.mark import distinct
from redmeter.kinds.message import check_logger, check_severity, severity_of
from redmeter.meter import Meter
from redmeter.model import (
    Changes,
    Frequency,
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
from redmeter.reading.messages import check_limit
from redmeter.reading.rankings import (
    DEFAULT_SLICES,
    check_limits,
    check_order,
    grouped,
    grouping,
    ranked,
    ranked_failing,
)
from redmeter.reading.series import check_number, window
from redmeter.reading.spread import Summary
from redmeter.reading.summaries import MAX_MERGED, MAX_SERIES, check_labels, window_of
from redmeter.recording.direct import DirectRecorder
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
from redmeter.testing.recorder import Event, Logged, MemoryRecorder


class MemoryMeter(Meter):
    """A Meter that keeps what is recorded in memory, for tests.

    Args:
        clock: where time comes from; if not given, one that begins in November 2023.
        retention, histogram_retention: of which precisions one may ask, and how far back; what is
            recorded stays, however old.
        recent_messages: how many recent() knows of each logger and severity; `messages` and
            logged() know all.
        mask, release: see Meter.
    """

    def __init__(
        self,
        *,
        clock: ManualClock | None = None,
        retention: Mapping[int, int] | str | None = None,
        histogram_retention: Mapping[int, int] | str | None = None,
        recent_messages: int | None = None,
        mask: Callable[[str], str] | None = None,
        release: str | None = None,
    ) -> None:
        self.clock = ManualClock() if clock is None else clock
        super().__init__(
            "off", clock=self.clock, mask=mask, release=release, recent_messages=recent_messages
        )
        self._retention = _retention(retention, DEFAULT_RETENTION)
        self._histograms = _retention(histogram_retention, DEFAULT_HISTOGRAMS, of=HISTOGRAMS)
        assert isinstance(self._recorder, DirectRecorder), "it is off"
        self._memory = MemoryRecorder(self.clock, self._recorder.rules)
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
        return [each.message for each in self._logged(logger, severity)]

    def _logged(self, logger: str, severity: int | str | None) -> list[Logged]:
        name = check_logger(logger)
        wanted = None if severity is None else severity_of(check_severity(severity))
        return [
            each
            for each in self._memory.messages
            if each.message.logger == name and wanted in (None, each.message.severity)
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
        wanted = spellings(names)
        check_number(wanted)
        found = {}
        for name in wanted:
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
        return newest(self._messages(logger, severity), self._memory.rules.keep)[:limit]

    def common(self, logger: str, *, severity: int | str | None = None) -> list[Frequency]:
        """Return how often each pattern came. See Meter.common()."""
        return frequencies(self._logged(logger, severity), self.clock.wall())

    def loggers(self) -> list[LogSource]:
        """Return the loggers and severities there are. See Meter.loggers()."""
        return sources(self._memory.messages)

    def changes(self, logger: str | None = None) -> Changes:
        """Return which messages are new, spiking or gone. See Meter.changes()."""
        name = None if logger is None else check_logger(logger)
        messages = [e for e in self._memory.messages if name in (None, e.message.logger)]
        now, number = self.clock.wall(), len(sources(messages))
        found = changes(frequencies(messages, now), now)
        return Changes(found, sources=number, compared=number)

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
            series = canonical(name, labels)
            return self._summed(series, [series], window)
        base = canonical(name)
        if "{" in base:
            raise InvalidName(name, "with all_labels, labels are given beside the name")
        canonical(base, labels)
        names = [n for n in self.names(kind="histograms") if parse_name(n).base == base]
        found = labelled(names, labels)
        if len(found) > MAX_MERGED:
            raise LimitExceeded("series", len(found), MAX_MERGED, "say more labels")
        return self._summed(base, found, window)

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
        wanted = spellings(names)
        if len(wanted) > MAX_SERIES:
            raise LimitExceeded("summaries", len(wanted), MAX_SERIES, "ask for fewer at a time")
        return {name: self._summed(name, [name], window) for name in wanted}

    def statistics(self, name: str, *, labels: Mapping[str, str] | None = None) -> Statistics:
        """Return what was observed by the hour. See Meter.statistics()."""
        return by_the_hour(self._memory.events, canonical(name, labels), self.clock.wall())

    def _window(
        self, precision: int, since: float | None, until: float | None, slices: int | None
    ) -> Window:
        check_times(since, until)
        now = self.clock.wall()
        return (precision, *window_of(self._histograms, precision, now, since, until, slices))

    def _summed(self, name: str, names: Collection[str], window: Window) -> Summary:
        return summed(self._memory.events, name, names, window, self.clock.wall())

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
        check_labels("where", where)

        def chosen(names: Iterable[str]) -> list[str]:
            if not by:
                return labelled(matching(names, name), where)
            return labelled([n for n in names if parse_name(n).base == name], where)

        counters, observed = chosen(self.names()), chosen(self.names(kind="histograms"))
        counted = wanted.word == "failing" or (
            wanted.word == "count" and bool(counters or not observed)
        )
        retention = self._retention if counted else self._histograms
        kept, now = retention[retention.check(precision)], self.clock.wall()
        check_limits(limit, 1 if slices is None else slices, kept)
        number = min(DEFAULT_SLICES, kept) if slices is None else slices
        oldest = slice_start(now, precision) - (number - 1) * precision
        if not counted:
            window = self._window(precision, oldest, None, None)
            found = ranked_observed(
                self._memory.events, observed, group, wanted, window, now, limit
            )
        else:
            totals = {s: self.series(s, precision=precision, since=oldest).total for s in counters}
            counts = {series: total for series, total in totals.items() if total}
            if failing:
                found = ranked_failing(counts, group, failing, limit)
            else:
                found = ranked(grouped(counts, group).items(), limit)
        found.slices = number
        return found


def _retention(
    given: Mapping[int, int] | str | None, default: Mapping[int, int], *, of: str = ""
) -> Retention:
    if isinstance(given, str):
        return Retention.parse(given, of=of)
    return Retention(default if given is None else given, of=of)
