"""Where time comes from: the Clock protocol, the system's clock and one set by hand.

Storage is in Unix seconds (UTC), by the wall clock. Durations, waits and ages are measured by
the monotonic clock, which no one sets. Code that needs either takes a Clock, so that a test can
hand it one that stands still. Imports nothing of ours.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """What tells the time."""

    def wall(self) -> float:
        """Return Unix seconds, UTC. May jump either way when someone sets the clock."""
        ...

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start. Never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for so many seconds."""
        ...


class SystemClock:
    """The clocks of the machine."""

    #: Return Unix seconds, UTC: the function itself, since every event calls it.
    wall = staticmethod(time.time)

    #: Return seconds since an arbitrary start.
    monotonic = staticmethod(time.monotonic)

    def sleep(self, seconds: float) -> None:
        """Wait for so many seconds."""
        time.sleep(seconds)


class ManualClock:
    """A clock that moves only when told to, for tests.

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
        """Let the time pass at once."""
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks.

        Args:
            seconds: how much, not negative.
        """
        if seconds < 0:
            raise ValueError("time does not go back: use set_wall() for a clock that steps")
        self._wall += seconds
        self._monotonic += seconds

    def set_wall(self, wall: float) -> None:
        """Step the wall clock, either way; the monotonic clock does not notice."""
        self._wall = wall


SYSTEM: Clock = SystemClock()
