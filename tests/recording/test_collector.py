"""Collecting: events move from the cells into the buffer, and none falls between."""

from typing import Any

import pytest

from redmeter import store as stores
from redmeter.clock import ManualClock
from redmeter.recording.events import CounterEvents
from redmeter.recording.instruments import Counter
from redmeter.recording.recorder import Recorder

NOW = 1_700_000_000.0


@pytest.fixture
def recorder() -> Recorder:
    """One without a thread, and with a store that nobody asks."""
    store = stores.open("redis://127.0.0.1:1", clock=ManualClock(NOW))
    assert store is not None
    limits: dict[str, Any] = {"limit": 2**20, "keep": 0, "max_series": 10, "max_label_sets": 10}
    return Recorder(store, interval=3600.0, **limits)


def books(recorder: Recorder) -> tuple[int, int, int]:
    """Return what was taken in, what is in memory, and what is still in the cells."""
    health = recorder.health()
    cells = sum(len(cell._events) for cell in recorder._registry.instruments())
    return health.recorded, health.buffered, cells


def test_events_are_in_the_books_before_and_after_they_are_collected(recorder: Recorder) -> None:
    """The same number at any moment."""
    recorder.instrument(Counter, "a")._events += [NOW, NOW, NOW - 1, (NOW - 2, 5)]
    assert books(recorder) == (8, 8, 4)
    recorder._collector.collect()
    assert books(recorder) == (8, 8, 0)


def test_an_event_that_comes_while_its_cell_is_collected_is_collected_next(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread appends between the reading of the list and its shortening."""
    cell = recorder.instrument(Counter, "a")
    cell._events += [NOW, NOW, NOW - 1]

    merged = CounterEvents.merged

    def interrupted(events: list[Any]) -> list[Any]:
        cell._events.append(NOW + 1)
        return merged(events)

    with monkeypatch.context() as patch:
        patch.setattr(CounterEvents, "merged", staticmethod(interrupted))
        recorder._collector.collect()
    assert cell._events == [NOW + 1]
    assert books(recorder) == (4, 4, 1)
    recorder._collector.collect()
    assert books(recorder) == (4, 4, 0)


def test_in_a_forked_child_nothing_is_the_parents(recorder: Recorder) -> None:
    """Neither events nor books nor producer; a counter that is held goes on in the same list."""
    cell = recorder.instrument(Counter, "a")
    held = cell._events
    held += [NOW, NOW]
    recorder._collector.collect()
    held.append(NOW)
    producer = recorder.health().producer
    recorder.after_fork()
    assert books(recorder) == (0, 0, 0)
    assert recorder.health().producer != producer
    assert recorder.instrument(Counter, "a")._events is held
