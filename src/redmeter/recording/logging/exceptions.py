"""Exceptions on their way: the instrument that takes them, and those that are not stored yet.

Recording appends to a list, like all recording. The traceback becomes text at once, since it would
keep the frames and all their variables alive; the background thread cleans and masks it.

**Each exception counts once**, however many integrations see it: a view that logs it and raises it
again, the framework's own log, and the integration that finds it unhandled. An exception object
carries the meters that recorded it in its attribute RECORDED_BY. The first to see it may not know
the route; the one that does adds the route to the same group, without counting the exception again.
An instance that the application raises again, as one at module level, counts again, in the same
group.

**A flood** of groups hides no other one. The server decides which have room, since only it knows
those that are stored; so each exception keeps its group, and has its coarse group with it.

Bound: one event for each group, route and interval waits after a list was shortened. Those beyond
MAX_OCCURRENCES have no route and no traceback; those beyond MAX_WAITING, which an interval has as
well, count in their coarse group, and beyond MAX_COARSE of these as "(other)". Groups that wait
first stay. Under memory pressure, tracebacks are dropped first, then groups are counted in coarse
ones, then as "(other)".
"""

import itertools
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from redmeter.analysis.text.texts import clean_text
from redmeter.names import cleaned
from redmeter.recording.events import Element, EventList
from redmeter.recording.instruments import InstrumentOwner, RedactedInstrument
from redmeter.recording.logging.coalesce import LONGEST
from redmeter.recording.logging.redact import MessageRules, Redactor
from redmeter.recording.logging.tracebacks import Origin, describe_error, origin_of, raised_again
from redmeter.recording.pending import PendingRecords
from redmeter.stored.exception import (
    FINEST,
    INTERVALS,
    MESSAGE_LIMIT,
    SHARE_BYTES,
    TRACEBACK_LIMIT,
    Details,
    Occurrences,
    Share,
    counted_group,
    exception_operations,
    group_of,
)
from redmeter.stored.keys import OTHER, Kept, Keys, slice_start
from redmeter.types import Operations

#: The name under which drops of exceptions are counted.
EXCEPTIONS = "exceptions"
#: The severities of log messages whose exception is recorded.
SEVERITIES = frozenset({"error", "critical"})
#: Attribute of an exception: the meters that recorded it, by number -> group, whether its route was
#: known, and the identity of the first entry of its traceback.
RECORDED_BY = "__redmeter__"
#: Most events that wait in the list, after it was shortened, with all they have; and groups.
MAX_OCCURRENCES, MAX_WAITING = 1_000, 10_000

#: Estimated memory of an event without its texts, of a group, and of one route or release, bytes.
_EVENT_BYTES, _GROUP_BYTES, _SHARE_BYTES = 400, 700, 250
#: The server's work for one group, in fields of a counter: see buffer.py.
_FIELDS = 8

#: Returns the number of a meter, by which an exception remembers that the meter recorded it.
next_number: Callable[[], int] = itertools.count().__next__


class Occurrence(NamedTuple):
    """Exceptions of one group and route, not redacted yet."""

    #: Time of the last one, Unix seconds.
    time: float
    first: float
    #: How many exceptions, and how many of them the route is known of.
    events: int
    on_route: int
    group: str
    route: str
    #: Origin of the last one; None if only the route is added.
    origin: Origin | None
    traceback: str

    @property
    def coarse(self) -> str:
        """See Occurrences; "" if only the route is added."""
        if self.origin is None:
            return ""
        return group_of(("coarse",), (self.origin.kind, self.origin.function))

    def merge(self, other: "Occurrence") -> "Occurrence":
        """Return both as one."""
        newer, older = (other, self) if other.time >= self.time else (self, other)
        if newer.origin is None:
            newer = newer._replace(origin=older.origin, traceback=older.traceback)
        return newer._replace(
            first=min(self.first, other.first),
            events=self.events + other.events,
            on_route=self.on_route + other.on_route,
        )


#: Start of an interval -> group -> exceptions.
OccurrencesByInterval = dict[int, dict[str, Occurrences]]


def occurrence(
    number: int, error: BaseException, time: float, route: str, traceback: str | None
) -> Occurrence | None:
    """Return the event of an exception; None if the meter has recorded it. Never raises.

    Args:
        number: of the meter's instrument.
        time: Unix seconds.
        route: "" if unknown.
        traceback: as describe_error() returned it; None: it is made here.
    """
    route = cleaned(route, SHARE_BYTES)
    try:
        mark = vars(error).setdefault(RECORDED_BY, {})
        before = mark.get(number)
        head = id(error.__traceback__)
        if before is not None and not raised_again(error, before[2]):
            mark[number] = before[0], before[1] or bool(route), head
            if before[1] or not route:
                return None
            return Occurrence(time, time, 0, 1, before[0], route, None, "")
    except Exception:  # noqa: BLE001 - of a class that has no attributes, or computes them
        mark, before, head = {}, None, 0
    origin = origin_of(error)
    if traceback is None:
        traceback = describe_error(error)[1]
    if len(traceback) > LONGEST:
        traceback = clean_text(traceback, LONGEST)
    if len(origin.message) > LONGEST:
        origin = origin._replace(message=clean_text(origin.message, MESSAGE_LIMIT))
    group = before[0] if before else group_of(*origin.key)
    mark[number] = group, bool(route), head
    return Occurrence(time, time, 1, int(bool(route)), group, route, origin, traceback)


def redact_exceptions(
    events: Iterable[Element],
    rules: MessageRules,
    release: str,
    record_error: Callable[[str, str], None],
) -> OccurrencesByInterval:
    """Clean and mask exceptions, and count them by interval and group.

    Args:
        events: Occurrence, or start of an interval and its groups as this function returns them.
        release: of the application; "" if unknown.
        record_error: called where masking failed, see Redactor.
    """
    redactor = Redactor(rules, record_error)
    recorded: OccurrencesByInterval = {}
    for event in _coalesced(event for event in events if type(event) is Occurrence):
        start = slice_start(event.time, FINEST)
        counts = Share(event.events, event.first, event.time)
        shares = counts._replace(events=event.on_route)
        one = Occurrences(
            *counts,
            _details(event, redactor),
            {event.route: shares} if event.on_route else {},
            {release: counts} if release and event.events else {},
            event.coarse,
        )
        _add(recorded.setdefault(start, {}), event.group, one)
    for event in events:
        if type(event) is not Occurrence:
            start, groups = event
            for group, one in groups.items():
                _add(recorded.setdefault(start, {}), group, one)
    return recorded


def _details(event: Occurrence, redactor: Redactor) -> Details | None:
    origin = event.origin
    if origin is None:
        return None
    return Details(
        clean_text(origin.kind),
        redactor.text(origin.message, MESSAGE_LIMIT) if origin.message else "",
        redactor.text(origin.place) if origin.place else "",
        redactor.text(origin.log_place),
        clean_text(origin.function) if origin.function else "",
        redactor.text(event.traceback, TRACEBACK_LIMIT) if event.traceback else "",
    )


def _add(groups: dict[str, Occurrences], group: str, one: Occurrences) -> None:
    """Add to a group; where there are too many, to its coarse one, or to OTHER."""
    group = counted_group(groups, group, one.coarse, MAX_WAITING)
    if group == OTHER:
        one = one._replace(details=None, routes={}, releases={}, coarse="")
    known = groups.get(group)
    groups[group] = one if known is None else known.merge(one)


def _coalesced(events: Iterable[Occurrence]) -> list[Occurrence]:
    """Merge events of one interval, group and route; the last of too many lose their texts."""
    merged: dict[tuple[int, str, str], Occurrence] = {}
    for event in events:
        key = slice_start(event.time, FINEST), event.group, event.route
        merged[key] = merged[key].merge(event) if key in merged else event
    if len(merged) <= MAX_OCCURRENCES:
        return list(merged.values())
    ordered = sorted(merged.values(), key=lambda event: event.first)
    kept = ordered[:MAX_OCCURRENCES]
    groups = {one.group for one in kept}
    bare: dict[tuple[int, str], Occurrence] = {}
    for one in ordered[MAX_OCCURRENCES:]:
        group = counted_group(groups, one.group, one.coarse, MAX_WAITING)
        groups.add(group)
        place = slice_start(one.time, FINEST), group
        without = _bare(one, group)
        bare[place] = bare[place].merge(without) if place in bare else without
    return kept + list(bare.values())


def _bare(one: Occurrence, group: str) -> Occurrence:
    origin = None if group == OTHER else one.origin
    if origin is not None and len(origin.message) > MESSAGE_LIMIT:
        origin = origin._replace(message=clean_text(origin.message, MESSAGE_LIMIT))
    return one._replace(group=group, route="", on_route=0, origin=origin, traceback="")


class PendingExceptions(PendingRecords[dict[str, Occurrences]]):
    """Interval start -> group -> exceptions."""

    __slots__ = ()

    @property
    def bytes(self) -> int:
        return sum(_size(one) for groups in self._intervals.values() for one in groups.values())

    def add(self, start: int, value: Mapping[str, Occurrences]) -> None:
        groups = self._intervals.setdefault(start, {})
        for group, one in value.items():
            _add(groups, group, one)

    def give_up_texts(self, need: int) -> tuple[int, int]:
        """Drop tracebacks, the oldest first, until `need` bytes are free; no event is lost."""
        freed = 0
        for start in sorted(self._intervals):
            groups = self._intervals[start]
            for group, one in groups.items():
                if freed >= need:
                    return freed, 0
                if one.details is not None and one.details.traceback:
                    freed += sys.getsizeof(one.details.traceback)
                    groups[group] = one._replace(details=one.details._replace(traceback=""))
        return freed, 0

    def give_up_patterns(self, need: int) -> int:
        """Count in coarse groups, then as (other), the oldest first, until `need` bytes free."""
        freed = 0
        for to_coarse in (True, False):
            for start in sorted(self._intervals):
                groups = self._intervals[start]
                for group in [each for each in groups if each != OTHER]:
                    if freed >= need:
                        return freed
                    one = groups[group]
                    target = one.coarse if to_coarse and one.coarse else OTHER
                    if target != group:
                        del groups[group]
                        size = _size(groups[target]) if target in groups else 0
                        _add(groups, target, one._replace(routes={}, releases={}))
                        freed += _size(one) + size - _size(groups[target])
        return freed

    @staticmethod
    def parts_of(value: Mapping[str, Occurrences]) -> int:
        """Return the number of groups."""
        return len(value)

    @staticmethod
    def cut_value(value: dict[str, Occurrences], count: int) -> dict[str, Occurrences]:
        return {group: value.pop(group) for group in list(value)[:count]}

    @staticmethod
    def events_of(value: Mapping[str, Occurrences]) -> int:
        return sum(one.events for one in value.values())

    @staticmethod
    def home(name: str) -> str:  # noqa: ARG004
        """Return the text of the first shard, which has all exceptions."""
        return ""

    @staticmethod
    def retention(kept: Kept) -> Mapping[int, int]:  # noqa: ARG004
        """Return the intervals in which exceptions are counted, whatever is kept of series."""
        return INTERVALS

    def fields(self, precisions: Any) -> int:  # noqa: ARG002
        return _FIELDS * len(self)

    @staticmethod
    def operations(
        keys: Keys,
        kept: Kept,  # noqa: ARG004
        series: Mapping[str, "PendingExceptions"],
        width: int,
    ) -> Operations:
        intervals: OccurrencesByInterval = {}
        for pending in series.values():
            for start, groups in pending:
                intervals.setdefault(start, {}).update(groups)
        return exception_operations(keys, intervals, width)


def _size(one: Occurrences) -> int:
    shares = _SHARE_BYTES * (len(one.routes) + len(one.releases))
    return _GROUP_BYTES + shares + (0 if one.details is None else one.details.size)


class ExceptionEvents(EventList):
    """Exceptions in a list: Occurrence, or start of an interval and its groups once redacted."""

    PENDING = PendingExceptions

    @classmethod
    def size(cls, events: list[Element]) -> int:
        return sum(
            event.events if type(event) is Occurrence else PendingExceptions.events_of(event[1])
            for event in events
        )

    @classmethod
    def size_in_memory(cls, events: list[Element]) -> int:
        return sum(
            _EVENT_BYTES + len(event.traceback)
            if type(event) is Occurrence
            else sum(map(_size, event[1].values()))
            for event in events
        )


class Exceptions(RedactedInstrument):
    """All exceptions of a recorder."""

    __slots__ = ("_now", "_number", "_release", "_rules")

    _LIST = ExceptionEvents

    def __init__(
        self,
        owner: InstrumentOwner,
        now: Callable[[], float],
        rules: MessageRules,
        release: str,
    ) -> None:
        super().__init__(EXCEPTIONS, owner)
        self._now = now
        self._rules = rules
        self._release = cleaned(release, SHARE_BYTES)
        self._number = next_number()

    def put_exception(self, error: BaseException, route: str, traceback: str | None) -> None:
        """Add an exception, unless it was recorded before. Never raises. See occurrence()."""
        now = self._now()
        event = occurrence(self._number, error, now, route, traceback)
        if event is not None:
            self._put(event, now)

    def _shorten(self) -> bool:
        count = len(self._events)
        events = self._events[:count]
        redacted = [event for event in events if type(event) is not Occurrence]
        self._events[:count] = redacted + _coalesced(
            event for event in events if type(event) is Occurrence
        )
        return False

    def _merge(self, events: list[Element]) -> list[Element]:
        if all(type(event) is not Occurrence for event in events):
            return events
        intervals = redact_exceptions(events, self._rules, self._release, self._owner.record_error)
        return list(intervals.items())
