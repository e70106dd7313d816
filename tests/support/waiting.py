"""Wait for something to become true, never longer than told: the only sleep of the test suite."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Seconds between two looks.
INTERVAL = 0.003

#: Width of a slice -> how much of the running one is left when a test begins, seconds: longer than
#: tests take, and seldom waited for.
ROOM = {60: 3.0, 3600: 20.0}


def eventually(predicate: Callable[[], T], timeout: float = 5.0, what: str = "") -> T:
    """Call the predicate until it returns something true, and return that.

    Args:
        predicate: asked again and again; an exception of its own ends the wait.
        timeout: seconds until the wait fails.
        what: words for the failure, such as "the server answers".

    Raises:
        AssertionError: the time is up.
    """
    deadline = time.monotonic() + timeout
    while True:
        late = time.monotonic() >= deadline
        if result := predicate():
            return result
        if late:
            raise AssertionError(f"not within {timeout} s: {what or predicate}")
        time.sleep(INTERVAL)


def too_little_room(now: float) -> float:
    """Return how long to wait until no minute, hour or day is about to end; 0 where none is.

    Args:
        now: Unix seconds.
    """
    left = {width: width - now % width for width in ROOM}
    return max((left[width] for width, room in ROOM.items() if left[width] < room), default=0.0)


def room_in_slices() -> None:
    """Wait while a minute, an hour or a day is about to end."""
    if wait := too_little_room(time.time()):
        over = time.time() + wait
        eventually(lambda: time.time() >= over, timeout=2 * wait + 1, what="a slice has ended")
