"""Time: clocks, durations as text, and time zones.

Stored times are Unix seconds (UTC) of the wall clock. Durations, waits and ages are measured with
the monotonic clock, which nobody sets. Code that needs either takes a Clock, so that a test can
control the time. Durations can be text: "5m".

**Local time.** Habits follow the clock on the wall, and not UTC. Every reader that compares hours
or days with earlier ones asks the zone of its store how long ago it was the same time of day. In
UTC, and in any zone whose clocks are never changed, a day ago is 24 hours ago; on the day of a
change it is 23 hours ago in spring and 25 in autumn. Both passes of the hour that a clock repeats
are compared with the same hour before. Where the hour before was skipped, the next one is compared.
"""

import contextlib
import re
import time
from datetime import UTC as _UTC
from datetime import datetime, timedelta, tzinfo
from typing import Final, Protocol

from redmeter.errors import InvalidSetting, shown

#: Seconds of the units of a duration.
UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def seconds_of(text: str) -> int | None:
    """Return the seconds of a duration, such as 60, 60s, 1m, 1min, 5h or 1d; None if it is none."""
    match = re.fullmatch(r"([0-9]{1,9})\s*([a-z]*)", text.strip())
    if match is None or match[2] not in UNITS:
        return None
    return int(match[1]) * UNITS[match[2]]


class Clock(Protocol):
    """A source of time."""

    def wall(self) -> float:
        """Return Unix seconds, UTC. Jumps in either direction when the clock is set."""
        ...

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start. Never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for a number of seconds."""
        ...


class SystemClock:
    """The clocks of the machine."""

    #: Return Unix seconds, UTC: the function itself, since every event calls it.
    wall = staticmethod(time.time)

    #: Return seconds since an arbitrary start.
    monotonic = staticmethod(time.monotonic)

    def sleep(self, seconds: float) -> None:
        """Wait for a number of seconds."""
        time.sleep(seconds)


class ManualClock:
    """A clock for tests that moves only by advance(), sleep() and set_wall().

    Args:
        wall: Unix seconds to start with.
    """

    def __init__(self, wall: float = 1_700_000_000.0) -> None:
        self._wall = wall
        self._monotonic = 0.0

    def wall(self) -> float:
        """Return Unix seconds as last set."""
        return self._wall

    def monotonic(self) -> float:
        """Return seconds passed by advance() since the start."""
        return self._monotonic

    def sleep(self, seconds: float) -> None:
        """Advance the clock without waiting."""
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Advance both clocks.

        Args:
            seconds: not negative.
        """
        if seconds < 0:
            raise ValueError("seconds is negative: use set_wall() to set the wall clock back")
        self._wall += seconds
        self._monotonic += seconds

    def set_wall(self, wall: float) -> None:
        """Set the wall clock, forward or back; the monotonic clock is unchanged."""
        self._wall = wall


SYSTEM: Clock = SystemClock()


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=_UTC)
#: The last moment whose offset is looked up: the end of 9998. Later ones have the same.
_LAST: Final = 253_370_764_799


class Zone:
    """A time zone.

    Args:
        name: an IANA name, such as Europe/Berlin. UTC needs no time zone database.

    Raises:
        InvalidSetting: there is no such zone.
    """

    def __init__(self, name: str = "UTC") -> None:
        self.name = name
        self._rules = None if name == "UTC" else _rules(name)

    def offset(self, moment: float) -> int:
        """Return by how many seconds local time is ahead of UTC at a Unix time."""
        if self._rules is None:
            return 0
        at = _EPOCH + timedelta(seconds=max(0.0, min(moment, _LAST)))
        offset = at.astimezone(self._rules).utcoffset()
        assert offset is not None, "a zone has an offset at any time"
        return round(offset.total_seconds())

    def back(self, moment: float, seconds: int, step: int = 1) -> int:
        """Return how long ago it was the same local time of an earlier day.

        Args:
            moment: Unix seconds.
            seconds: the length of the days in between, without changes of the clock.
            step: width of an interval: a change counts as the nearest number of these.
        """
        change = self.offset(moment) - self.offset(moment - seconds)
        return seconds - round(change / step) * step


#: The default zone.
UTC: Final = Zone()

#: Longest name of a time zone, characters; those of IANA have at most 32.
MAX_ZONE_NAME: Final = 64


def _rules(name: str) -> tzinfo:
    # Imported only if it is used.
    from zoneinfo import ZoneInfo, available_timezones

    # Other names are none, and as a path or the name of a module they could be anything.
    if len(name) <= MAX_ZONE_NAME and re.fullmatch(r"[A-Za-z0-9_+/-]+", name):
        with contextlib.suppress(KeyError, ValueError, OSError):
            return ZoneInfo(name)
    if available_timezones():
        reason = f"{shown(name, 40)} is no time zone: give an IANA name such as Europe/Berlin"
    else:
        reason = f"{shown(name, 40)}: there is no time zone database here: pip install tzdata"
    raise InvalidSetting("timezone", reason)
