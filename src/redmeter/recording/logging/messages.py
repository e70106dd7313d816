"""Messages: the instrument of a logger and severity.

Logging appends (time, pattern, text) to a list, like all recording. Slow work happens later,
in the background, and only for texts that are kept: coalesce.py merges messages, redact.py cleans,
masks and counts them.
"""

from collections.abc import Callable, Collection, Mapping

from redmeter.recording.events import Element, EventList
from redmeter.recording.instruments import InstrumentOwner, RedactedInstrument
from redmeter.recording.logging.coalesce import (
    Fingerprint,
    Phrase,
    bytes_of,
    coalesce,
    events_of,
    is_wordless,
    limit_size,
    message_event,
)
from redmeter.recording.logging.redact import MessageRules, redact_messages
from redmeter.recording.pending import PendingRecords
from redmeter.stored.keys import MAX_TIME, Kept, Keys
from redmeter.stored.message import HOURS, LogHour, message_operations, parse_source, source_name
from redmeter.types import Operations


class PendingLog(PendingRecords[LogHour]):
    """Start of an hour -> its redacted messages, which are not stored yet."""

    __slots__ = ()

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
        before = self._texts()
        freed = self._free(LogHour.give_up_texts, need)
        freed += self._free(LogHour.give_up_samples, need - freed)
        return freed, before - self._texts()

    def give_up_patterns(self, need: int) -> int:
        """Count messages as (other), the oldest hours first, until so many bytes are free."""
        return self._free(LogHour.give_up_patterns, need)

    def _free(self, give_up: Callable[[LogHour, int], object], need: int) -> int:
        """Let each hour give up something, the oldest first; return the bytes freed."""
        freed = 0
        for start in sorted(self._intervals):
            hour = self._intervals[start]
            before = hour.bytes
            give_up(hour, need - freed)
            freed += before - hour.bytes
        return freed

    def _texts(self) -> int:
        return sum(len(hour.texts) for hour in self._intervals.values())

    @staticmethod
    def parts_of(value: LogHour) -> int:
        """Return the number of patterns, or 1."""
        return len(value.patterns) or 1

    @staticmethod
    def cut_value(value: LogHour, count: int) -> LogHour:
        return value.cut(count)

    @staticmethod
    def events_of(value: LogHour) -> int:
        return value.events

    @staticmethod
    def home(name: str) -> str:
        """Return the name of the logger."""
        return parse_source(name)[0]

    @staticmethod
    def retention(kept: Kept) -> Mapping[int, int]:  # noqa: ARG004
        """Return the hours in which patterns are counted, independent of the retention."""
        return HOURS

    def fields(self, precisions: Collection[int]) -> int:
        """Return how many fields it writes: each pattern is counted twice, and its sample kept."""
        return 1 + self._texts() + (3 * len(self) if precisions else 0)

    @staticmethod
    def operations(
        keys: Keys,
        kept: Kept,  # noqa: ARG004
        series: Mapping[str, "PendingLog"],
        width: int,
    ) -> Operations:
        """Convert messages into operations; messages older than every hour are not counted."""
        messages = {name: dict(pending) for name, pending in series.items()}
        return message_operations(keys, messages, tallied=width > 0)


def format_message(template: object, args: tuple[object, ...]) -> tuple[str | None, str, str]:
    """Format a message as logging does. Never raises.

    Args:
        template: "retrying %s", or a text where there are no args.
        args: its arguments; a single mapping has them by name.

    Returns:
        The pattern, None if there are no args; the text; and the class of the error if formatting
        failed, else "": then the text is the template and a note.
    """
    try:
        text = str(template)
        if not args:
            return None, text, ""
        values = args[0] if len(args) == 1 and isinstance(args[0], Mapping) and args[0] else args
    except Exception as error:  # noqa: BLE001 - of somebody's __str__
        note = f"({type(template).__name__} without a text)"
        return note, note, type(error).__name__
    try:
        return text, text % values, ""
    except Exception as error:  # noqa: BLE001 - also of somebody's __str__
        problem = type(error).__name__
        words = Phrase(text) if is_wordless(text) else text  # it is the text now
        return words, f"{text} (its arguments do not fit: {problem})", problem


class MessageEvents(EventList):
    """Messages in a list, in one of the forms that coalesce.py describes."""

    PENDING = PendingLog

    @classmethod
    def size(cls, events: list[Element]) -> int:
        return sum(events_of(event) for event in events)

    @classmethod
    def size_in_memory(cls, events: list[Element]) -> int:
        return sum(bytes_of(event) for event in events)


class Messages(RedactedInstrument):
    """The messages of one logger and severity."""

    __slots__ = ("_now", "rules")

    _LIST = MessageEvents

    def __init__(
        self,
        logger: str,
        severity: str,
        owner: InstrumentOwner,
        now: Callable[[], float],
        rules: MessageRules,
    ) -> None:
        super().__init__(source_name(logger, severity), owner)
        self._now = now
        self.rules = rules

    def put_message(self, pattern: Fingerprint, text: str, time: float) -> None:
        """Add a message.

        Args:
            pattern: its fingerprint: see coalesce.py.
            time: Unix seconds; an invalid time becomes the current one.
        """
        now = self._now()
        if not -MAX_TIME < time < MAX_TIME:
            time = now
        self._events.append(message_event(time, pattern, text))
        if now >= self._due:
            self._owner.attend(self)

    def _shorten(self) -> bool:
        count = len(self._events)
        coalesced = coalesce(self._events[:count], self.rules.keep)
        self._events[:count], crowded = limit_size(coalesced, self.rules.keep)
        return crowded

    def _merge(self, events: list[Element]) -> list[Element]:
        """Clean, mask and count: one event for each hour."""
        if len(events) == 1 and len(events[0]) == 2:
            return events
        return list(redact_messages(events, self.rules, self._owner.record_error).items())
