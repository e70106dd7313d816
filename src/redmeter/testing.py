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

from collections import Counter as Multiset
from collections.abc import Mapping
from typing import NamedTuple

from redmeter.clock import Clock, ManualClock
from redmeter.keys import DEFAULT_RETENTION, Retention, check_time, check_times, slice_start
from redmeter.kinds.counter import check_amount
from redmeter.meter import Meter
from redmeter.model import Ranked, Sample, Series
from redmeter.names import canonical, parse_name
from redmeter.reading.catalogue import matching
from redmeter.reading.rankings import check_limits, label_of, ranked
from redmeter.reading.series import check_number, window
from redmeter.recording.direct import DirectRecorder

__all__ = ["Event", "ManualClock", "MemoryMeter"]


class Event(NamedTuple):
    """One call that recorded something."""

    #: The series' name, labels included, in its stored spelling.
    series: str
    #: Unix seconds.
    time: float
    #: How often it happened; None of a gauge.
    amount: int | None
    #: What a gauge was set to; None of a counter.
    value: float | None


class _MemoryRecorder(DirectRecorder):
    """Keeps events in a list."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(None, clock.wall)
        self.events: list[Event] = []

    def count(
        self, name: str, amount: int, labels: Mapping[str, str] | None, at: float | None
    ) -> None:
        series = canonical(name, labels)
        check_amount(amount)
        time = self._now() if at is None else check_time(at)
        self.events.append(Event(series, time, amount, None))

    def set(self, series: str, value: float) -> None:
        self.events.append(Event(series, self._now(), None, value))


class MemoryMeter(Meter):
    """A Meter that keeps what is recorded in memory, for tests.

    Args:
        clock: where time comes from; if not given, one that begins in November 2023.
        retention: precision (seconds) -> samples, of which series() may be asked.
    """

    def __init__(
        self,
        *,
        clock: ManualClock | None = None,
        retention: Mapping[int, int] | None = None,
    ) -> None:
        self.clock = ManualClock() if clock is None else clock
        super().__init__("off", clock=self.clock)
        self._retention = Retention(DEFAULT_RETENTION if retention is None else retention)
        self._memory = _MemoryRecorder(self.clock)
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

    def forget(self) -> None:
        """Forget what was recorded."""
        self._memory.events.clear()

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

    def names(self, pattern: str = "*") -> list[str]:
        """Return the names of all counters that match. See Meter.names()."""
        counted = {e.series for e in self._memory.events if e.amount is not None}
        return sorted(matching(counted, pattern))

    def top(
        self,
        name: str = "*",
        *,
        precision: int,
        by: str | None = None,
        slices: int = 5,
        limit: int = 10,
    ) -> list[Ranked]:
        """Return what happened most often within the newest slices. See Meter.top()."""
        self._retention.check(precision)
        check_limits(limit, slices, self._retention[precision])
        oldest = slice_start(self.clock.wall(), precision) - (slices - 1) * precision
        names = self.names() if by else self.names(name)
        counts = Multiset[str | None]()
        for series in names:
            if by and parse_name(series).base != name:
                continue
            samples = self.series(series, precision=precision, since=oldest)
            counts[label_of(series, by) if by else series] += samples.total
        return ranked([row for row in counts.items() if row[1]], limit)
