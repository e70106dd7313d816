"""Wait for something to become true, never longer than told: the only sleep of the test suite."""

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

T = TypeVar("T")

#: Seconds between two looks: at first, and at most. In between a tenth of the time waited so far,
#: since a look may cost a lot: a scan of all processes, a question to each node of a cluster.
INTERVAL, LONGEST_INTERVAL = 0.003, 0.1

#: Interval width -> how much of the current interval must be left when a test begins, seconds.
#: Longer than a test takes that is not marked `slow`, also on a busy machine.
ROOM = {60: 1.0, 3600: 5.0}
#: The same for tests that are marked `slow`, or that have just waited for a cluster.
SLOW_ROOM = {60: 3.0, 3600: 20.0}


def eventually(predicate: Callable[[], T], timeout: float = 30.0, what: str = "") -> T:
    """Call the predicate until it returns something true, and return that.

    Args:
        predicate: asked again and again; an exception of its own ends the wait.
        timeout: seconds until the wait fails.
        what: words for the failure, such as "the server answers".

    Raises:
        AssertionError: the time is up.
    """
    begun = time.monotonic()
    while True:
        waited = time.monotonic() - begun
        if result := predicate():
            return result
        if waited >= timeout:
            raise AssertionError(f"not within {timeout} s: {what or predicate}")
        time.sleep(min(max(INTERVAL, waited / 10), LONGEST_INTERVAL))


def too_little_room(now: float, room: Mapping[int, float] = ROOM) -> float:
    """Return how long to wait until no minute, hour or day is about to end; 0 where none is.

    Args:
        now: Unix seconds.
        room: how much of an interval must be left: `ROOM` or `SLOW_ROOM`.
    """
    left = {width: width - now % width for width in room}
    return max((left[width] for width, least in room.items() if left[width] < least), default=0.0)


def room_in_slices(room: Mapping[int, float] = ROOM) -> None:
    """Wait while a minute, an hour or a day is about to end."""
    if wait := too_little_room(time.time(), room):
        over = time.time() + wait
        eventually(lambda: time.time() >= over, timeout=2 * wait + 1, what="an interval has ended")
