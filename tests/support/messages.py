"""Messages on their way: a cell for tests, and what comes out of some events."""

from collections import Counter
from typing import Any

from redmeter.recording.instruments import Gauge, Instrument
from redmeter.recording.logging.messages import Messages
from redmeter.recording.logging.redact import MessageRules, redact_messages
from redmeter.stored.keys import HOUR
from redmeter.stored.message import LogHour

NOON = 1700000000 - 1700000000 % HOUR

Trouble = list[tuple[str, str]]


class Nobody:
    """An attendant that does nothing, or what attend() of a recorder does for long lists."""

    def __init__(self, shorten: int = 0) -> None:
        self.troubles: Trouble = []
        self._shorten = shorten

    def attend(self, cell: Instrument) -> None:
        """Shorten the list where it is long."""
        if self._shorten and len(cell._events) >= max(self._shorten, cell._threshold):
            cell._shorten()
            cell._threshold = max(self._shorten, 2 * len(cell._events))

    def record_error(self, kind: str, text: str) -> None:
        """Note it."""
        self.troubles.append((kind, text))

    def process_gauge(self, series: str) -> Gauge:
        """Messages have none."""
        raise AssertionError(series)

    def drop_value(self, series: str) -> None:
        """Drop nothing: no test here records such a value."""
        raise AssertionError(series)


def a_cell(rules: MessageRules = MessageRules(), shorten: int = 0) -> Messages:  # noqa: B008
    """A cell of its own."""
    return Messages("app", "info", Nobody(shorten), lambda: NOON, rules)


def digest(
    *events: Any,
    rules: MessageRules = MessageRules(),  # noqa: B008
    trouble: Any = None,
) -> dict[int, LogHour]:
    """What comes out of some events."""
    return redact_messages(list(events), rules, trouble or (lambda _kind, _text: None))


def sizes(hours: dict[int, LogHour]) -> Counter[str]:
    """How often each pattern came in all hours."""
    found: Counter[str] = Counter()
    for hour in hours.values():
        found.update({pattern: group.events for pattern, group in hour.patterns.items()})
    return found


class Unspeakable(Exception):
    """Has no text."""

    def __str__(self) -> str:
        raise RuntimeError("no")


def failing(error: BaseException, depth: int = 0) -> BaseException:
    """Return an exception that was raised so deep down."""

    def handler(left: int) -> None:
        if left:
            handler(left - 1)
        raise error

    try:
        handler(depth)
    except BaseException as caught:  # noqa: BLE001
        return caught
    raise AssertionError
