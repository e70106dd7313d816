"""A gauge's callback that does not return: everything else is stored, and the callback is named."""

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from redmeter import Meter
from redmeter.integrations.shared.interface import Instrumentation
from support.servers import Server
from support.waiting import eventually

LATE = 0.05


class Hook:
    """A callback that returns when it may."""

    def __init__(self) -> None:
        self.may_return = threading.Event()
        self.calls = self.thread = 0

    def __call__(self) -> float:
        self.thread = threading.get_ident()
        self.calls += 1
        self.may_return.wait(20)
        return 7.0


@pytest.fixture
def hook() -> Iterator[Hook]:
    """One that hangs until the end of the test."""
    hook = Hook()
    yield hook
    hook.may_return.set()


@pytest.fixture
def meter(server: Server, monkeypatch: pytest.MonkeyPatch, hook: Hook) -> Iterator[Meter]:
    """A meter that flushes fast, and gives callbacks up soon."""
    monkeypatch.setattr("redmeter.recording.hooks.HANGING", LATE)
    meter = Meter(server.url, flush_interval=0.01)
    yield meter
    hook.may_return.set()
    meter.close()


#: How a callback is given.
GIVEN: dict[str, Callable[[Meter, Any], object]] = {
    "a gauge's": lambda meter, hook: meter.gauge("pool", callback=hook),
    "before a flush": lambda meter, hook: Instrumentation(meter).before_flush(hook),
}


@pytest.mark.parametrize("given", GIVEN)
def test_everything_else_is_stored(
    meter: Meter, hook: Hook, given: str, caplog: pytest.LogCaptureFixture
) -> None:
    """In time, with other callbacks; the one that hangs is called again once it has returned."""
    GIVEN[given](meter, hook)
    others = iter(range(10**9))
    meter.gauge("other", callback=lambda: next(others))

    def stored() -> int:
        meter.count("events")
        return meter.total("events")

    eventually(lambda: stored() > 20)
    assert hook.calls == 1
    before = next(others)
    eventually(lambda: stored() and next(others) > before + 10)
    assert meter.flush(5)
    assert hook.calls == 1
    assert meter.recorder_health().troubles == {"callback-hangs": 1}
    (record,) = [each for each in caplog.records if each.name == "redmeter"]
    assert "does not return" in record.getMessage()
    if given == "a gauge's":
        assert "callback of pool" in record.getMessage()

    hook.may_return.set()
    eventually(lambda: stored() and hook.calls > 5)
    assert meter.recorder_health().troubles == {"callback-hangs": 1}


def test_a_flush_that_waits_notices(meter: Meter, hook: Hook) -> None:
    """Though nothing else is recorded."""
    meter.gauge("pool", callback=hook)
    meter.count("events")
    assert meter.flush(5)
    meter.count("events")
    assert meter.flush(5)
    assert meter.total("events") == 2


def test_a_close_stores_and_ends(meter: Meter, hook: Hook) -> None:
    """The thread that is held up ends when the callback returns, and does nothing any more.

    The value is not used: it would start another thread, which nobody closes.
    """
    meter.gauge("pool", callback=hook)
    meter.count("events")
    eventually(lambda: hook.calls)
    meter.count("events")
    meter.close()
    eventually(lambda: meter.total("events") == 2)
    meter.close()  # on a busy machine, the time of the first one may be over
    hook.may_return.set()
    eventually(lambda: hook.thread not in sys._current_frames())
    assert (hook.calls, meter.recorder_health().recorded) == (1, 2)
    meter.count("events")
    meter.close()
    eventually(lambda: meter.total("events") == 3)
