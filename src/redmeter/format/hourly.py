"""Parses the hour in `:start` or `:pstart`, as Redmeter and other programs write it.

    1700000000          integer Unix seconds, Redmeter's form: the hour that contains them
    14                  an hour of the day, UTC: its latest occurrence
    2019-06-23T06:00    ISO text, UTC, with any text after the hour

Without a prefix both kinds are stored: the listings compare hours of the day, so `common:…:start`
holds one of these, and a key of ours holds the Unix second that gives it a date.

store/lua/operations/hourly.lua has the same rules for writing.
"""

import math
import re
from collections.abc import Sequence

from redmeter.expressions import late
from redmeter.keys import HOUR, slice_start

#: An hour in the future, which the server replaces with the current one.
THIS_HOUR = 2**40

# Without backtracking, since texts of other programs may be long.
_NUMBER = late(r"\s*+[-+]?(?:\d++\.?\d*+|\.\d++)(?:[eE][-+]?\d++)?\s*+\Z", re.ASCII)
_ISO = late(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d)", re.ASCII)

_DAY = 86400
#: How far the clock of a program that writes an hour of the day may be ahead of ours, seconds.
_AHEAD = 60


def hour_of(text: bytes | str | None, now: float) -> int | None:
    """Return the start of the hour in a text, Unix seconds.

    Args:
        text: as stored.
        now: Unix seconds; an hour of the day is its latest occurrence up to a minute after that.

    Returns:
        None if the text has none of the forms.
    """
    if text is None:
        return None
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    if _NUMBER.match(text):
        number = float(text)
        if not math.isfinite(number):
            return None
        if not 0 <= number < 24:
            return slice_start(number, HOUR)
        now += _AHEAD
        hour = slice_start(now, _DAY) + int(number) * HOUR
        return hour - _DAY if hour > slice_start(now, HOUR) else hour
    parts = _ISO.match(text)
    if parts is None:
        return None
    year, month, day, hour = map(int, parts.groups())
    return _days(year, month, day) * _DAY + hour * HOUR


def hours_of(texts: Sequence[bytes | str | None], now: float) -> tuple[int | None, int | None]:
    """Return the hour that is being counted and the one before it, Unix seconds of their starts.

    Args:
        texts: `:start` and `:pstart`; without a prefix followed by those of the listings, which
            decide where they name another hour of the day than ours: then another program has
            moved the hours on since we wrote.
        now: Unix seconds.
    """
    (start, before), others = (hour_of(text, now) for text in texts[:2]), texts[2:]
    if not others:
        return start, before
    other_start, other_before = (hour_of(text, now) for text in others)
    if other_start is None or _same_of_day(other_start, start):
        return start, before
    if other_before is not None and _same_of_day(other_before, start):
        other_before = start
    return other_start, other_before


def _same_of_day(hour: int, other: int | None) -> bool:
    return other is not None and hour % _DAY == other % _DAY


def _days(year: int, month: int, day: int) -> int:
    """Count the days from 1970 to a date of the Gregorian calendar, which need not exist."""
    if month <= 2:
        year, month = year - 1, month + 12
    leaps = year // 4 - year // 100 + year // 400
    return 365 * year + leaps + (153 * (month - 3) + 2) // 5 + day - 719469
