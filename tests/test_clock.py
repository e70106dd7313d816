"""Clocks: the machine's two, and one that moves only when told to."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.clock import SYSTEM, Clock, ManualClock, SystemClock

moves = st.lists(
    st.tuples(st.sampled_from(["advance", "sleep", "set_wall"]), st.integers(0, 10**9)),
    max_size=20,
)


def test_the_systems_clock_tells_the_machines_times() -> None:
    """Unix seconds by the wall, and a monotonic count that agrees with Python's own."""
    clock: Clock = SystemClock()
    before, wall, after = time.time(), clock.wall(), time.time()
    assert before <= wall <= after
    first, middle, last = time.monotonic(), clock.monotonic(), time.monotonic()
    assert first <= middle <= last
    assert isinstance(SYSTEM, SystemClock)


def test_the_systems_clock_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """For as many seconds as it is told."""
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    SystemClock().sleep(0.25)
    assert waited == [0.25]


def test_a_manual_clock_stands_still() -> None:
    """Until told otherwise, from the time it was given."""
    clock: Clock = ManualClock(-5.5)
    assert (clock.wall(), clock.wall()) == (-5.5, -5.5)
    assert (clock.monotonic(), clock.monotonic()) == (0.0, 0.0)


@given(moves)
def test_a_manual_clock_adds_up_what_passed(steps: list[tuple[str, int]]) -> None:
    """Both times pass together; a step of the wall clock leaves the monotonic one alone."""
    clock = ManualClock(wall := 1000)
    passed = 0
    for name, seconds in steps:
        getattr(clock, name)(seconds)
        wall, passed = (
            (seconds, passed) if name == "set_wall" else (wall + seconds, passed + seconds)
        )
        assert (clock.wall(), clock.monotonic()) == (wall, passed)


def test_a_manual_clock_sleeps_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is past at once."""
    monkeypatch.delattr(time, "sleep")
    clock = ManualClock(0.0)
    clock.sleep(3600.0)
    assert (clock.wall(), clock.monotonic()) == (3600.0, 3600.0)


@pytest.mark.parametrize("move", ["advance", "sleep"])
def test_time_does_not_go_back(move: str) -> None:
    """A negative span is a mistake in a test; only the wall clock may be set back."""
    clock = ManualClock(100.0)
    with pytest.raises(ValueError, match="use set_wall"):
        getattr(clock, move)(-1.0)
    assert (clock.wall(), clock.monotonic()) == (100.0, 0.0)
    clock.set_wall(-3600.0)
    assert (clock.wall(), clock.monotonic()) == (-3600.0, 0.0)
