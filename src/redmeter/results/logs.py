"""Messages, their patterns, and changes of logs."""

from dataclasses import dataclass, field
from typing import Literal

from redmeter.results.series import _Rows


@dataclass(frozen=True, slots=True)
class Message:
    """One log message."""

    #: The name of the logger.
    logger: str
    #: The severity in stored form, e.g. "error".
    severity: str
    #: Unix seconds; None if it is not stored.
    time: float | None
    #: Without secrets; may hold newlines. Clean it before you print messages of others.
    text: str


@dataclass(frozen=True, slots=True)
class Frequency:
    """The frequency of a log pattern."""

    #: The name of the logger.
    logger: str
    #: The severity in stored form, e.g. "error".
    severity: str
    #: The part that the messages have in common; "(other)" stands for those above the limit.
    pattern: str
    #: Messages of the current hour; if `sliding`, of the last 60 minutes.
    count: int
    #: Messages of the hour before; if `sliding`, of the 60 minutes before.
    before: int
    #: When it was first seen, Unix seconds; None if unknown.
    first: float | None
    #: When it was last seen, Unix seconds; None if unknown.
    last: float | None
    #: The last of the messages, or its beginning; "" if unknown.
    sample: str
    #: Whether the hours are sliding hours; else clock hours, UTC.
    sliding: bool = False
    #: The stored patterns of which it is the sum, the most frequent first, if `pattern` stands for
    #: several that differ in one word: `order of <…> failed`. Otherwise empty.
    variants: tuple[str, ...] = ()


ChangeKind = Literal["new", "spiking", "gone"]


@dataclass(frozen=True, slots=True)
class Change(Frequency):
    """A log pattern that is new, comes more often, or stopped."""

    #: How it changed: "new", "spiking" or "gone".
    kind: ChangeKind = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Changes(_Rows[Change]):
    """The log patterns that changed; also their sequence, by severity, then kind, then count."""

    #: The patterns, by severity, then kind, then count.
    changes: tuple[Change, ...] = ()
    #: Pairs of logger and severity with messages.
    sources: int = 0
    #: How many of them were compared: of thousands, those that logged last.
    compared: int = 0
    #: How many of those compared were compared by clock hours, because their counts by five
    #: minutes do not cover two hours yet, or another program writes them; the others were compared
    #: by sliding hours.
    clock_hours: int = 0

    def _rows(self) -> tuple[Change, ...]:
        return self.changes


@dataclass(frozen=True, slots=True)
class LogSource:
    """A logger and a severity of stored messages."""

    #: The name of the logger.
    logger: str
    #: The severity in stored form, e.g. "error".
    severity: str
    #: The time of the last message, Unix seconds.
    last: float
