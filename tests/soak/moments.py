"""A clock for writers: it can be set, and stands still while an event is noted and recorded."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path


class SoakClock:
    """The machine's clock, so many seconds off.

    Args:
        file: says how many seconds; read by look(). None: never off.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._offset = 0.0
        self._held: float | None = None

    def look(self) -> None:
        """Set the clock as the file says."""
        if self._file is not None:
            with contextlib.suppress(FileNotFoundError):
                self._offset = float(self._file.read_text() or 0.0)

    @contextlib.contextmanager
    def held(self) -> Iterator[float]:
        """Stand still; give the time. So it is known in which interval an event has to lie."""
        self._held = now = self.wall()
        try:
            yield now
        finally:
            self._held = None

    def wall(self) -> float:
        """Return Unix seconds."""
        held = self._held
        return time.time() + self._offset if held is None else held

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait for so many seconds."""
        time.sleep(seconds)
