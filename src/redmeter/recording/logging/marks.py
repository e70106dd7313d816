"""Marks: the instrument for all of them, and the marks that wait for the store.

Marks are rare, but recording one must not wait for the network either, so they are buffered like
all events. Duplicates are merged by the rules of the store: see stored/mark.py.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from redmeter.errors import InvalidValue
from redmeter.recording.events import Element, EventList
from redmeter.recording.instruments import Instrument
from redmeter.recording.pending import IntervalFull, PendingByInterval
from redmeter.results.recorder import MARKS
from redmeter.stored.keys import Kept, Keys
from redmeter.stored.mark import MARK_LIFE, MAX_MARKS, Noted, clean_label, distinct, mark_operations
from redmeter.types import Operations

#: Estimated memory of a mark, bytes.
_BYTES = 400


def label_of(label: str | None, release: str) -> str:
    """Return the label of a mark: the given one, otherwise the release.

    Raises:
        TypeError: not text.
        InvalidValue: there is neither, or it is empty after cleaning.
    """
    if label is None and not release:
        raise InvalidValue(
            None,
            "mark() needs a label, e.g. a version; or set REDMETER_RELEASE, or Meter(release=…)",
        )
    return clean_label(release if label is None else label)


class TooManyMarks(IntervalFull):
    """More marks are waiting than a store keeps."""

    reason = MARKS


class PendingMarks(PendingByInterval[list[Noted]]):
    """Second -> the marks within it."""

    __slots__ = ()

    HAS_TOTAL: ClassVar[bool] = False

    @property
    def bytes(self) -> int:
        return _BYTES * self.events

    def add(self, start: int, value: list[Noted]) -> None:
        if self.events + len(value) > MAX_MARKS:  # the store keeps no more either
            raise TooManyMarks
        self._intervals.setdefault(start, []).extend(value)

    @staticmethod
    def events_of(value: list[Noted]) -> int:
        return len(value)

    @staticmethod
    def home(name: str) -> str:  # noqa: ARG004
        """Return the text of the first shard."""
        return ""

    @staticmethod
    def retention(kept: Kept) -> Mapping[int, int]:  # noqa: ARG004
        """Return the retention of marks, by the second, whatever that of series is."""
        return {1: MARK_LIFE}

    def fields(self, precisions: Any) -> int:  # noqa: ARG002
        return self.events

    @staticmethod
    def operations(
        keys: Keys,
        kept: Kept,  # noqa: ARG004
        series: Mapping[str, "PendingMarks"],
        width: int,  # noqa: ARG004
    ) -> Operations:
        marks = [one for pending in series.values() for _, some in pending for one in some]
        return mark_operations(keys, sorted(marks))


class MarkEvents(EventList):
    """A list of marks: Noted."""

    PENDING = PendingMarks

    @staticmethod
    def merged(events: list[Element]) -> list[Element]:
        return [*distinct(events)]

    @classmethod
    def pairs(cls, events: list[Element]) -> Iterable[tuple[float, Any]]:
        return [(event.time, [event]) for event in events]


class Marks(Instrument):
    """The instrument for all marks of a recorder."""

    __slots__ = ()

    _LIST = MarkEvents
