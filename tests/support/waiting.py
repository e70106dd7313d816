"""Wait for something to become true, never longer than told: the only sleep of the test suite."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Seconds between two looks.
INTERVAL = 0.003


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
