"""Pending messages: redacted messages that are not stored yet, by hour."""

from collections.abc import Collection, Mapping
from typing import ClassVar, Self

from redmeter.format import message
from redmeter.format.message import HOURS, LogHour
from redmeter.keys import Kept, Keys
from redmeter.recording.pending import PendingByInterval
from redmeter.types import Operations


class PendingLog(PendingByInterval[LogHour]):
    """Start of an hour -> its messages."""

    __slots__ = ()

    HAS_TOTAL = True
    NUMBERED: ClassVar[bool] = False
    TEXTS: ClassVar[bool] = True

    def __len__(self) -> int:
        """Return the number of parts: an hour has one for each pattern."""
        return sum(map(_parts, self._intervals.values()))

    @property
    def bytes(self) -> int:
        return sum(hour.bytes for hour in self._intervals.values())

    def add(self, start: int, value: LogHour) -> None:
        hour = self._intervals.get(start)
        if hour is None:
            hour = self._intervals[start] = LogHour(value.keep)
        hour.merge(value)

    def give_up_texts(self, need: int) -> tuple[int, int]:
        """Drop texts, the oldest first, then samples, until so many bytes are free.

        Returns:
            Bytes freed, and how many of the newest messages were dropped.
        """
        freed = given_up = 0
        for start in sorted(self._intervals):
            before, texts = self._intervals[start].bytes, len(self._intervals[start].texts)
            self._intervals[start].give_up_texts(need - freed)
            freed += before - self._intervals[start].bytes
            given_up += texts - len(self._intervals[start].texts)
        for start in sorted(self._intervals):
            before = self._intervals[start].bytes
            self._intervals[start].give_up_samples(need - freed)
            freed += before - self._intervals[start].bytes
        return freed, given_up

    def give_up_patterns(self, need: int) -> int:
        """Count messages as (other), the oldest hours first, until so many bytes are free."""
        freed = 0
        for start in sorted(self._intervals):
            before = self._intervals[start].bytes
            self._intervals[start].give_up_patterns(need - freed)
            freed += before - self._intervals[start].bytes
        return freed

    def older(self, time: float) -> int:
        return sum(_parts(hour) for start, hour in self._intervals.items() if start < time)

    def cut(self, count: int) -> Self:
        part = type(self)()
        for start in sorted(self._intervals):
            hour = self._intervals[start]
            if _parts(hour) > count:
                if count:
                    part._intervals[start] = hour.cut(count)
                break
            part._intervals[start] = self._intervals.pop(start)
            count -= _parts(hour)
        return part

    @staticmethod
    def events_of(value: LogHour) -> int:
        return value.events

    @staticmethod
    def home(name: str) -> str:
        """Return the name of the logger."""
        return message.parse_name(name)[0]

    @staticmethod
    def retention(kept: Kept) -> Mapping[int, int]:  # noqa: ARG004
        """Return the hours in which patterns are counted, independent of the retention."""
        return HOURS

    def fields(self, precisions: Collection[int]) -> int:
        """Return how many fields it writes: each pattern is counted twice, and its sample kept."""
        texts = sum(len(hour.texts) for hour in self._intervals.values())
        return 1 + texts + (3 * len(self) if precisions else 0)

    @staticmethod
    def operations(
        keys: Keys,
        kept: Kept,  # noqa: ARG004
        series: Mapping[str, "PendingLog"],
        width: int,
    ) -> Operations:
        """Convert messages into operations; messages older than every hour are not counted."""
        messages = {name: dict(run) for name, run in series.items()}
        return message.operations(keys, messages, tallied=width > 0)


def _parts(hour: LogHour) -> int:
    return len(hour.patterns) or 1
