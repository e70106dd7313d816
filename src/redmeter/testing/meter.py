"""The meter of tests: records into lists. Its queries read them through source.py."""

from collections.abc import Callable, Mapping

from redmeter import settings
from redmeter.clock import ManualClock, Zone
from redmeter.meter import Meter, _plain
from redmeter.names import canonical
from redmeter.queries import select
from redmeter.reading.aggregates import aggregated
from redmeter.reading.selection import selects
from redmeter.recording.sync import SyncRecorder
from redmeter.results.series import CoveredWindow
from redmeter.stored.keys import HISTOGRAMS, Retention
from redmeter.stored.message import check_logger, check_severity, severity_of
from redmeter.testing.recorder import Event, Logged, MemoryRecorder
from redmeter.testing.source import MemorySource


class MemoryMeter(Meter):
    """A Meter that keeps recorded events in memory, for tests.

    Args:
        clock: where time comes from; if not given, one that begins in November 2023.
        retention, histogram_retention: the precisions that queries can read, and how far back.
            Nothing that was recorded expires.
        recent_messages: how many messages of each logger and severity log_messages()
            returns; `messages` and logged() return all.
        mask, release: see Meter.
        timezone: see Meter; the environment is not asked.
        strict: raise InvalidName for label values that a Meter would cut or clean: values are
            unlimited data, so a Meter never raises for them.
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
        timezone: str = "UTC",
        strict: bool = True,
    ) -> None:
        self.clock = ManualClock() if clock is None else clock
        super().__init__(
            "off", clock=self.clock, mask=mask, release=release, recent_messages=recent_messages
        )
        assert isinstance(self._recorder, SyncRecorder), "it is off"
        self._memory = MemoryRecorder(
            self.clock, self._recorder.rules, strict=strict, release=self._release
        )
        self._recorder = self._memory
        self._by_name = {}
        self._answers = MemorySource(
            self._memory,
            self.clock,
            # As code gives them; the environment is of no concern to a test.
            settings.resolve("retention", _plain(retention), environ={}),
            Retention(
                settings.resolve("histogram_retention", _plain(histogram_retention), environ={}),
                of=HISTOGRAMS,
            ),
            Zone(settings.resolve("timezone", timezone)),
        )

    @property
    def _source(self) -> MemorySource:
        return self._answers

    def __repr__(self) -> str:
        return f"<MemoryMeter {len(self._memory.events)} events>"

    @property
    def events(self) -> list[Event]:
        """Everything that was recorded, in order."""
        return list(self._memory.events)

    def recorded(self, name: str, *, labels: Mapping[str, str] | None = None) -> int:
        """Return the number of events counted, over all label sets; 0 if there are none.

        Args:
            name: of the counter.
            labels: only the series with these label values; None: all label sets.
        """
        return self.total(name, labels=labels)

    def value(self, name: str, *, labels: Mapping[str, str] | None = None) -> float | None:
        """Return the newest value of a gauge, by its time; None if it was never set.

        The values of processes, distinguished by the label `instance`, are summed.

        Raises:
            InvalidValue: the gauge has other labels that `labels` does not name.
        """
        selection, newest = select(name, labels), dict[str, Event]()
        for event in self._memory.events:
            if event.value is not None and selects(selection, event.series):
                last = newest.get(event.series, event)
                newest[event.series] = event if event.time >= last.time else last
        values = {series: (event.value,) for series, event in newest.items()}
        groups = aggregated(values, selection, CoveredWindow(1, 0, 1), None)
        return groups[0][1].values[0] if newest else None

    def observed(self, name: str, *, labels: Mapping[str, str] | None = None) -> list[float]:
        """Return the values observed in a series, in order, without those that are not finite."""
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
        level = None if severity is None else severity_of(check_severity(severity))
        return [one.message.text for one in self._memory.logged(check_logger(logger), level)]

    def forget(self) -> None:
        """Remove everything recorded so far."""
        self._memory.events.clear()
        self._memory.marks.clear()
        self._memory.messages.clear()
        self._memory.exceptions.clear()
