"""Context managers and decorators: what is in progress, and which exceptions leave a block."""

import asyncio
import os
from collections.abc import Iterator

import pytest

from redmeter.testing import MemoryMeter


def levels(meter: MemoryMeter, name: str) -> list[float | None]:
    """Return the values that this process's part had, in order."""
    return [event.value for event in meter.events if event.series == f'{name}{{instance="0"}}']


def test_what_is_in_progress_is_counted_up_and_down() -> None:
    """Also if it raises, nested, and in a coroutine; a decorator counts each call."""
    meter = MemoryMeter()
    tracker = meter.gauge("jobs").track_in_progress()
    with tracker, tracker:
        pass
    with pytest.raises(KeyError), tracker:
        raise KeyError
    assert levels(meter, "jobs") == [1, 2, 1, 0, 1, 0]

    @tracker
    async def job() -> None:
        assert levels(meter, "jobs")[-1] == 1

    @tracker
    def numbers() -> Iterator[int]:
        yield 1

    async def run() -> None:
        await job()
        async with tracker:
            pass

    asyncio.run(run())
    assert list(numbers()) == [1]
    assert levels(meter, "jobs")[-6:] == [1, 0, 1, 0, 1, 0]


def test_a_child_that_was_forked_within_a_block_does_not_count_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its own part begins at 0, and would become negative."""
    meter = MemoryMeter()
    with meter.gauge("jobs").track_in_progress():
        monkeypatch.setattr(os, "getpid", lambda: 7)
    assert levels(meter, "jobs") == [1]


def test_exceptions_that_leave_a_block_are_counted_and_pass() -> None:
    """Only those of the given kinds; also by a decorator."""
    meter = MemoryMeter()
    with pytest.raises(ValueError), meter.count_exceptions("failures", labels={"a": "1"}):
        raise ValueError
    with meter.count_exceptions("failures", labels={"a": "1"}):
        pass
    with pytest.raises(KeyboardInterrupt), meter.count_exceptions("failures"):
        raise KeyboardInterrupt
    with pytest.raises(ValueError), meter.count_exceptions("failures", (OSError, KeyError)):
        raise ValueError
    assert [event.series for event in meter.events] == ['failures{a="1"}']

    @meter.count_exceptions("lookups", LookupError)
    def look_up() -> None:
        raise KeyError

    for _ in range(2):
        with pytest.raises(KeyError):
            look_up()
    assert meter.total("lookups") == 2


def test_a_histogram_makes_timers() -> None:
    """By the clock of the meter."""
    meter = MemoryMeter()
    histogram = meter.histogram("job_seconds")
    with histogram.time():
        meter.clock.advance(2.5)
    assert meter.observed("job_seconds") == [2.5]


def test_the_callback_of_a_gauge_is_read_before_a_flush() -> None:
    """None is no value; a second callback replaces the first."""
    meter, lengths = MemoryMeter(), iter([3, None, 5])
    meter.gauge("queue_length", callback=lambda: 99)
    meter.gauge("queue_length", callback=lambda: next(lengths))
    for _ in range(3):
        assert meter.flush()
    assert [event.value for event in meter.events] == [3, 5]
