"""Redaction: cleans and masks messages, and counts them by pattern.

If ten thousand messages arrive between two flushes, people only see the newest hundred, so only
these and one sample of each pattern are cleaned and masked. The pattern of a message without a
format is derived from its text, once for each different text.

Order: a text is cleaned, then masked, and only then is a pattern derived, so that none contains a
secret; formats are masked, too. The flusher's thread does this, never a logging thread. If a
masking function raises, or returns no text, `(masking failed)` replaces the text.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from redmeter.analysis.text.patterns import CHARACTERS_READ, is_object, pattern_of
from redmeter.analysis.text.secrets import mask
from redmeter.analysis.text.texts import clean_text
from redmeter.recording.events import Element
from redmeter.recording.logging.coalesce import (
    FINGERPRINT_LIMIT,
    FORMAT_LIMIT,
    LONGEST,
    SAID_LIMIT,
    TEXT_LIMIT,
    Fingerprint,
    Groups,
    Phrase,
    Place,
    Placed,
    grouped,
    time_of,
)
from redmeter.recording.logging.shortening import has_frames, redact_lines, shorten_traceback
from redmeter.recording.sending.flusher import in_background
from redmeter.stored.keys import HOUR, STEP
from redmeter.stored.message import SAMPLE_LIMIT, LogHour, PatternHour

MASKING_FAILED = "(masking failed)"


class MessageRules(NamedTuple):
    """How messages are redacted."""

    #: How many of the newest messages of a logger and severity are kept.
    keep: int = 100
    #: Masks secrets: text -> text.
    mask: Callable[[str], str] = mask
    #: Whether tracebacks have the source lines of the application's frames.
    source_lines: bool = True


def redact_messages(
    events: list[Element], rules: MessageRules, record_error: Callable[[str, str], None]
) -> dict[int, LogHour]:
    """Clean and mask messages, and count them by pattern.

    Args:
        events: see coalesce.py; they are not changed.
        record_error: called if masking failed, with "mask" and the class of the error.

    Returns:
        Start of an hour, Unix seconds -> its messages.
    """
    reader = Redactor(rules, record_error)
    hours: dict[int, LogHour] = {}

    def hour(time: float) -> LogHour:
        start = math.floor(time) // HOUR * HOUR
        known = hours.get(start)
        if known is None:
            known = hours[start] = LogHour(rules.keep)
        return known

    singles, several = [], []
    for event in events:
        if len(event) == 3:
            singles.append(event)
        elif len(event) == 2:
            hour(event[0]).merge(event[1])
        else:
            several.append(event)
    for (start, grouping, _), group in _by_hour(grouped(several, singles)).items():
        shown = reader.text(group.sample)
        made = reader.pattern(grouping, reader.whole(group.sample))
        hour(start).add(made, group._replace(sample=_sample(shown)))
    newest: dict[int, list[tuple[float, str]]] = {}
    for time, _, text in sorted(singles, key=time_of)[-rules.keep :]:
        newest.setdefault(math.floor(time) // HOUR, []).append((time, reader.text(text)))
    for texts in newest.values():
        hour(texts[0][0]).add_texts(texts)
    return hours


def _sample(text: str) -> str:
    return (shorten_traceback if has_frames(text) else clean_text)(text, SAMPLE_LIMIT)


def _by_hour(groups: Groups) -> dict[tuple[int, Fingerprint, str | None], PatternHour]:
    """Merge the groups of an hour: only one text of each is cleaned and masked."""
    merged: dict[tuple[int, Fingerprint, str | None], PatternHour] = {}
    for (step, grouping, made_of), (count, first, last, text) in groups.items():
        key = math.floor(step * STEP) // HOUR * HOUR, grouping, made_of
        group = PatternHour(count, first, last, text)
        old = merged.get(key)
        merged[key] = group if old is None else group.and_older(old)
    return merged


class Redactor:
    """Cleans and masks texts and derives patterns, once for each different text."""

    def __init__(self, rules: MessageRules, record_error: Callable[[str, str], None]) -> None:
        self._mask = rules.mask
        self._source_lines = rules.source_lines
        self._record_error = record_error
        self._texts: dict[tuple[str, int], str] = {}

    def text(self, text: str, limit: int = TEXT_LIMIT) -> str:
        """Return a text cleaned and masked."""
        known = self._texts.get((text, limit))
        if known is None:
            known = self._texts[text, limit] = self._redacted(text, limit)
        return known

    def whole(self, text: str) -> str:
        """Return a text cleaned and masked, of a JSON object as much as is buffered."""
        is_long = len(text) > CHARACTERS_READ and is_object(text)
        return self.text(text, LONGEST if is_long else TEXT_LIMIT)

    def _redacted(self, text: str, limit: int) -> str:
        if not has_frames(text):
            return self._masked(clean_text(text, limit), limit)

        def redact(part: str) -> str:
            return self._masked(clean_text(part, LONGEST), LONGEST)

        return shorten_traceback(redact_lines(text, redact, keep=self._source_lines), limit)

    def _masked(self, text: str, limit: int) -> str:
        try:
            masked = self._mask(text)
            # A user's function may return anything. Masks may be longer than secrets.
            return text if masked is text else clean_text(str.__str__(masked), 2 * limit)
        except BaseException as error:  # of a user's function: the error's text may be the secret
            # An exception that ends a program or a greenlet is meant for the application's threads.
            # In ours only that function raises it, and it would end all storing.
            if not isinstance(error, Exception) and not in_background():
                raise
            self._record_error("mask", f"masking secrets: {type(error).__name__}")
            return MASKING_FAILED

    def pattern(self, grouping: Fingerprint, text: str) -> str:
        """Return the pattern of a message.

        Args:
            grouping: the fingerprint.
            text: cleaned and masked.
        """
        if grouping is None:
            return pattern_of(text)
        if type(grouping) is Placed:
            return f"{self._words(grouping.words, FORMAT_LIMIT)} {self._place(grouping.place)}"
        if type(grouping) is Place:
            return f"{pattern_of(text)} {self._place(grouping)}"
        assert isinstance(grouping, str), "the remaining type"
        return self._words(grouping, FINGERPRINT_LIMIT)

    def _words(self, words: str, limit: int) -> str:
        if type(words) is Phrase:
            return pattern_of(self.text(words, SAID_LIMIT))
        return self.text(words, limit)

    def _place(self, place: str) -> str:
        return self.text(place, FINGERPRINT_LIMIT)
