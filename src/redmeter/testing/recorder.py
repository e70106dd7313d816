"""Records in memory: lists of events, messages and marks."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any, Final

from redmeter.clock import SYSTEM, Clock
from redmeter.errors import InvalidName
from redmeter.names import recorded_name
from redmeter.recording.instruments import Gauge
from redmeter.recording.logging.coalesce import Fingerprint, message_event
from redmeter.recording.logging.exceptions import OccurrencesByInterval
from redmeter.recording.logging.redact import MessageRules, redact_messages
from redmeter.recording.pending import with_instance, without_instance
from redmeter.recording.registry import Labels
from redmeter.recording.sync import SyncMessages, SyncRecorder
from redmeter.results.logs import Message
from redmeter.stored.counter import check_amount
from redmeter.stored.exception import counted_group
from redmeter.stored.keys import OTHER, STEP, check_time, slice_start
from redmeter.stored.mark import Noted
from redmeter.stored.message import source_name
from redmeter.stored.moments import to_float
from redmeter.stored.steps import STEPS, is_coarse, name_in_room, room_of

#: A record that is not older, seconds, is of now.
_JUST_NOW = 1.0


@dataclass(frozen=True, slots=True)
class Event:
    """One call that recorded something."""

    #: The series' name, labels included, in its stored spelling.
    series: str
    #: Unix seconds.
    time: float
    #: The number of events counted; None for other kinds.
    amount: int | None
    #: The value that a gauge was set to; None for other kinds.
    value: float | None
    #: The histogram's value; None for other kinds.
    observed: float | None = None


#: Kind -> what an event of it has.
RECORDED: Final[Mapping[str, Callable[[Event], Any]]] = {
    "counter": attrgetter("amount"),
    "gauge": attrgetter("value"),
    "histogram": attrgetter("observed"),
}
#: One of STATES -> the value of an interval, from its recorded values in order of time.
STATE_VALUES: Final[Mapping[str, Callable[[Sequence[Any]], float]]] = {"gauge": itemgetter(-1)}


@dataclass(frozen=True, slots=True)
class Logged:
    """One message, with the pattern by which it is counted; both as they would be stored."""

    #: The message.
    message: Message
    #: Its pattern.
    pattern: str


class MemoryRecorder(SyncRecorder):
    """Keeps events in a list."""

    def __init__(
        self, clock: Clock, rules: MessageRules, *, strict: bool, release: str = ""
    ) -> None:
        super().__init__(None, clock, rules, release)
        self._strict = strict
        self.events: list[Event] = []
        self.messages: list[Logged] = []
        self.marks: list[Noted] = []
        #: Logger and severity -> names of patterns that have a place -> their last step.
        self._known: dict[tuple[str, str], dict[str, int]] = {}
        #: Start of an interval -> group -> exceptions.
        self.exceptions: OccurrencesByInterval = {}
        self._callbacks: dict[str, tuple[Gauge, Callable[[], float | None]]] = {}

    def log(self, logger: str, severity: str, pattern: Fingerprint, text: str, time: float) -> None:
        event = message_event(time, pattern, text)
        for hour in redact_messages([event], self.rules, self.record_error).values():
            ((made, _),), ((_, shown),) = hour.patterns.items(), hour.texts
            named = self._named((logger, severity), made, time)
            self.messages.append(Logged(Message(logger, severity, time, shown), named))

    def _named(self, source: tuple[str, str], pattern: str, time: float) -> str:
        """Return the name under which a store counts a pattern."""
        known, step = self._known.setdefault(source, {}), slice_start(time, STEP)
        room = room_of(source[1])
        if 2 * len(known) > room and step > max(known.values()):
            left = step - STEPS * STEP
            known = self._known[source] = {p: last for p, last in known.items() if last > left}
        name = name_in_room(pattern, known, room)
        known[name] = max(step, known.get(name, step))
        if is_coarse(name) or name == OTHER:
            counts = self._stats.hidden if name == OTHER else self._stats.coarse
            counts[source_name(*source)] += 1
        return name

    def record_exception(
        self, error: BaseException, route: str = "", traceback: str | None = None
    ) -> None:
        for start, groups in self._redacted(error, route, traceback).items():
            stored = {each for known in self.exceptions.values() for each in known} - {OTHER}
            known = self.exceptions.setdefault(start, {})
            for own, one in groups.items():
                group = counted_group(stored, own, one.coarse)
                if group == OTHER:
                    one = one._replace(details=None, routes={}, releases={})
                known[group] = known[group].merge(one) if group in known else one

    def series_name(self, name: str, labels: Labels, *, reserve: int = 0) -> str:
        """Return the stored spelling of a name.

        Raises:
            InvalidName: if strict, also where a Meter would change the value of a label.
        """
        _, note = recorded_name(name, labels, reserve=reserve)
        if note and self._strict:
            raise InvalidName(name, f"{note}; a Meter changes the value and counts that")
        return super().series_name(name, labels, reserve=reserve)

    def logged(self, logger: str, severity: str | None) -> list[Logged]:
        """Return the messages of a logger, of one severity or of all, in order."""
        return [
            one
            for one in self.messages
            if one.message.logger == logger and severity in (None, one.message.severity)
        ]

    def sink(self, logger: str, severity: str) -> SyncMessages:
        return _Aged(self, logger, severity)

    def count(
        self, name: str, amount: int, labels: Mapping[str, object] | None, at: float | None
    ) -> None:
        series = self.series_name(name, labels)
        amount = check_amount(amount)
        time = self._now() if at is None else check_time(at)
        self.events.append(Event(series, time, amount, None))

    def set(self, series: str, value: float, at: float | None) -> None:
        time = self._now() if at is None else check_time(at)
        if at is None:
            self._levels[series] = value
        self.events.append(Event(with_instance(series, 0), time, None, value))

    def observe(
        self, name: str, value: float, labels: Mapping[str, object] | None, at: float | None
    ) -> None:
        series = self.series_name(name, labels)
        number = to_float(value, "observe()")
        time = self._now() if at is None else check_time(at)
        if math.isfinite(number):
            self.events.append(Event(series, time, None, None, number))
        else:
            self._drop(series, ())

    def drop_value(self, series: str) -> None:
        self._drop(without_instance(series), ())

    def gauge(
        self,
        name: str,
        labels: Mapping[str, object] | None,
        *,
        per_process: bool,
        callback: Callable[[], float | None] | None = None,
    ) -> Gauge:
        gauge = super().gauge(name, labels, per_process=per_process)
        if callback is not None:
            self._callbacks[gauge._series] = gauge, callback
        return gauge

    def flush(self, timeout: float, durability: str = "none") -> bool:  # noqa: ARG002
        """Call the callbacks of gauges, as a Meter does before each flush."""
        for gauge, callback in list(self._callbacks.values()):
            value = callback()
            if value is not None:
                gauge.set(value)
        return True

    def mark(self, label: str, at: float | None, *, release: bool) -> None:
        self.marks.append(Noted(self._now() if at is None else check_time(at), label, release))

    def now(self) -> float:
        """Return the clock's time, Unix seconds."""
        return self._now()


class _Aged(SyncMessages):
    """Takes the messages of a logging library, whose records have the machine's time.

    The meter's clock may differ, so a message keeps its age: one that is logged now has the clock's
    present time. So has one whose time is the clock's already.
    """

    recorder: MemoryRecorder

    def put_message(self, pattern: Fingerprint, text: str, time: float) -> None:
        now, age = self.recorder.now(), SYSTEM.wall() - time
        present = min(abs(age), abs(now - time)) < _JUST_NOW
        self.recorder.log(self.logger, self.severity, pattern, text, now if present else now - age)
