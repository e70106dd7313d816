"""Messages: the instrument of a logger and severity.

Logging appends (time, pattern, text) to a list, like all recording. Slow work happens later,
in the background, and only for texts that are kept: coalesce.py merges messages, redact.py cleans,
masks and counts them.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from redmeter.format.message import name_of
from redmeter.keys import MAX_TIME
from redmeter.recording.events import Event, EventList
from redmeter.recording.instruments import InstrumentOwner, RedactedInstrument
from redmeter.recording.messages.coalesce import (
    bytes_of,
    coalesce,
    events_of,
    limit_size,
    message_event,
)
from redmeter.recording.messages.fingerprint import Fingerprint, Phrase, is_wordless
from redmeter.recording.messages.pending import PendingLog
from redmeter.recording.messages.redact import MessageRules, redact_messages


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

    @staticmethod
    def merged(events: list[Event]) -> list[Event]:
        raise NotImplementedError("Messages._merge() does it, by rules")

    @classmethod
    def pairs(cls, events: list[Event]) -> Iterable[tuple[float, Any]]:
        return events

    @classmethod
    def size(cls, events: list[Event]) -> int:
        return sum(events_of(event) for event in events)

    @classmethod
    def size_in_memory(cls, events: list[Event]) -> int:
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
        super().__init__(name_of(logger, severity), owner)
        self._now = now
        self.rules = rules

    def put_message(self, pattern: Fingerprint, text: str, time: float) -> None:
        """Add a message.

        Args:
            pattern: its fingerprint: see fingerprint.py.
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

    def _merge(self, events: list[Event]) -> list[Event]:
        """Clean, mask and count: one event for each hour."""
        if len(events) == 1 and len(events[0]) == 2:
            return events
        return list(redact_messages(events, self.rules, self._owner.record_error).items())
