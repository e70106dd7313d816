"""Times and durations as Prometheus' HTTP API takes them, in milliseconds."""

import math
import re
from datetime import datetime

from redmeter.promql.errors import BadQuery

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_UNITS |= {"w": 7 * _UNITS["d"], "y": 365 * _UNITS["d"]}
_DURATION = re.compile(
    r"(?:([0-9]{1,12})y)?(?:([0-9]{1,12})w)?(?:([0-9]{1,12})d)?(?:([0-9]{1,12})h)?"
    r"(?:([0-9]{1,12})m)?(?:([0-9]{1,12})s)?(?:([0-9]{1,12})ms)?"
)
_NUMBER = re.compile(r"[+-]?([0-9]{1,20}(\.[0-9]{0,20})?|\.[0-9]{1,20})([eE][+-]?[0-9]{1,2})?")
#: 10,000 years.
_LONGEST = 10_000 * _UNITS["y"]


def parse_time(name: str, text: str) -> int:
    """Read a time: Unix seconds, or a date and time as RFC 3339 writes it.

    Raises:
        BadQuery: it is neither, or too far away.
    """
    try:
        if _NUMBER.fullmatch(text):
            seconds = float(text)
        else:
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is None or "T" not in text.upper():
                raise ValueError(text)
            seconds = moment.timestamp()
    except (ValueError, OverflowError):
        raise BadQuery(
            f'invalid parameter "{name}": cannot parse "{text[:80]}" to a valid timestamp.'
            " Give Unix seconds, or a time such as 2026-11-23T12:00:00Z"
        ) from None
    if not -_LONGEST < seconds * 1000 < _LONGEST:
        raise BadQuery(f'invalid parameter "{name}": {text[:80]} is out of range')
    return round(seconds * 1000)


def parse_duration(name: str, text: str) -> int:
    """Read a duration: seconds, or text such as 5m or 1h30m.

    Raises:
        BadQuery: it is neither, or too long.
    """
    milliseconds = math.nan
    parts = _DURATION.fullmatch(text)
    if _NUMBER.fullmatch(text):
        milliseconds = float(text) * 1000
    elif text and parts:
        units = ("y", "w", "d", "h", "m", "s", "ms")
        both = zip(parts.groups(), units, strict=True)
        milliseconds = sum(int(count or 0) * _UNITS[unit] for count, unit in both)
    if not abs(milliseconds) < _LONGEST:
        raise BadQuery(
            f'invalid parameter "{name}": cannot parse "{text[:80]}" to a valid duration.'
            " Give seconds, or a duration such as 30s, 5m or 1h"
        )
    return round(milliseconds)
