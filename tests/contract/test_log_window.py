"""The log within a window: its messages, its patterns, and those that are new in it."""

from typing import Any

import pytest

from redmeter.clock import ManualClock
from redmeter.reading.logs.window import MAX_WINDOW_LOGS, LogQuery, LogWindow, log_window
from redmeter.store import Store
from redmeter.store.query import run_query
from support.stores import OpenMeter, OpenStore, exchanges, server_time


def read(store: Store, since: float, until: float, **options: Any) -> LogWindow:
    """Read a window."""
    return run_query(store, lambda _: log_window(store.keys, LogQuery(since, until, **options)))[1]


def test_a_window_has_its_own_messages_and_patterns(
    client: Any, open_meter: OpenMeter, open_store: OpenStore
) -> None:
    """Patterns are compared with as long a time before; new are those first seen in the window."""
    now = server_time(client)
    start = now // 300 * 300 - 3_000
    clock = ManualClock(start - 400)
    meter = open_meter(clock=clock)

    def log_at(time: float, text: str, severity: str = "info") -> None:
        clock.advance(time - clock.wall())
        meter.log("shop", text, severity=severity)

    log_at(start - 400, "stock is low")
    log_at(start + 60, "stock is low")
    log_at(start + 100, "payment refused", "error")
    log_at(start + 120, "stock is low")
    log_at(start + 180, "stock is low")
    log_at(now - 10, "all is well again")
    found = read(open_store(), start, start + 600)
    assert [(one.pattern, one.count, one.before) for one in found.frequent] == [
        ("stock is low", 3, 1),
        ("payment refused", 1, 0),
    ]
    assert [(one.pattern, one.kind) for one in found.changes] == [("payment refused", "new")]
    texts = [one.text for one in found.recent]
    assert texts == ["stock is low", "stock is low", "payment refused", "stock is low"]
    assert found.counted_since < start - 600
    errors = read(open_store(), start, start + 600, severities=("error",))
    assert [one.pattern for one in errors.frequent] == ["payment refused"]
    some = read(open_store(), start, start + 600, containing="stock", limit=2)
    assert [one.text for one in some.recent] == ["stock is low"] * 2
    assert [one.pattern for one in some.frequent] == ["stock is low"]
    assert read(open_store(), start, start + 600, logger="nobody").recent == []


def test_a_window_of_many_loggers_takes_three_round_trips(
    open_meter: OpenMeter, open_store: OpenStore, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that logged last are read."""
    meter, now = open_meter(), server_time(client)
    for number in range(MAX_WINDOW_LOGS + 5):
        meter.log(f"worker.{number}", "done")
    store = open_store()
    store.read()
    with exchanges(monkeypatch) as seen:
        found = read(store, now - 600, now + 60)
    assert len(seen) == 3
    assert (found.sources, found.compared) == (MAX_WINDOW_LOGS + 5, MAX_WINDOW_LOGS)
