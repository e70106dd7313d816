"""The machine's clock, which a test can move on, for what happens after a day."""

import time


class LaterClock:
    """The machine's clocks, and as much later as they were moved on."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def wall(self) -> float:
        """Return Unix seconds."""
        return time.time() + self._ahead

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start."""
        return time.monotonic() + self._ahead

    def sleep(self, seconds: float) -> None:
        """Wait, by the machine's clock."""
        time.sleep(seconds)

    def advance(self, seconds: float) -> None:
        """Move both clocks on at once."""
        self._ahead += seconds
