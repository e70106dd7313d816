"""When what failed is tried again."""

import pytest

from redmeter.store.servers import retry as backoffs
from redmeter.store.servers.retry import (
    LONGEST_BACKOFF,
    REFUSED_BACKOFF,
    REFUSED_PAUSE,
    Backoff,
)


class Time:
    """A monotonic clock to be set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    """The clock by which backoffs go."""
    time = Time()
    monkeypatch.setattr(backoffs, "time", time)
    return time


def waits(backoff: Backoff, time: Time) -> float:
    """Return how long it waits from now on, to the eighth of a second."""
    started = time.now
    while not backoff.over:
        time.now += 0.125
    return time.now - started


def test_each_failure_makes_it_wait_about_twice_as_long(time: Time) -> None:
    """Three quarters at least of 2, 4, 8 … intervals, up to a bound; a success ends that."""
    backoff = Backoff(1.0)
    assert backoff.over
    for longest in (2.0, 4.0, 8.0, LONGEST_BACKOFF, LONGEST_BACKOFF):
        backoff.failed(passing=True)
        assert 0.75 * longest <= waits(backoff, time) <= longest + 0.125
    assert (backoff.failures, backoff.passing) == (5, True)
    backoff.succeeded()
    assert (backoff.failures, backoff.over) == (0, True)


def test_where_it_was_refused_it_waits_long_but_not_for_who_asks(time: Time) -> None:
    """Who asks for it has to wait a second, and not at all where it may pass by itself."""
    backoff = Backoff(1.0)
    backoff.failed(passing=True)
    assert backoff.pause == 0.0
    backoff.failed(passing=False)
    assert backoff.pause == REFUSED_PAUSE
    assert waits(backoff, time) >= REFUSED_BACKOFF
    assert (backoff.pause, backoff.passing) == (0.0, False)


def test_what_is_soon_over_is_tried_again_after_an_interval(time: Time) -> None:
    """However often it was said; and what failed before or fails then does not add up to it."""
    backoff = Backoff(1.0)
    for _ in range(3):
        backoff.failed(passing=True)
    for _ in range(9):
        backoff.failed(passing=True, soon=True)
        assert 0.75 <= waits(backoff, time) <= 1.125
    backoff.failed(passing=True)
    assert 3.0 <= waits(backoff, time) <= 4.125


def test_it_can_be_waived_and_shared(time: Time) -> None:
    """Shards of one server are tried at the same moment; and failures stay known."""
    backoff, other = Backoff(1.0), Backoff(1.0)
    backoff.failed(passing=True)
    other.like(backoff)
    assert waits(other, time) > 0
    assert backoff.over
    backoff.failed(passing=False)
    backoff.reset()
    assert (backoff.over, backoff.pause, backoff.failures) == (True, 0.0, 2)
