"""Clocks: the Clock protocol, the system's clock, and a manual one for tests.

Stored times are Unix seconds (UTC) of the wall clock. Durations, waits and ages are measured with
the monotonic clock, which nobody sets. Code that needs either takes a Clock, so that a test can
control the time. Durations can be text: "5m". Imports no other module of Redmeter.
"""

import re
import time
from typing import Protocol

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
