"""Buffered recorders under test: what they say became of events, held against what is stored."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from redmeter import Meter
from redmeter.results import RecorderHealth
from redmeter.types import Operations
from support.waiting import eventually

#: Seconds from one flush to the next, where a test is not to wait.
INTERVAL = 0.01

#: What the fixture `open_buffered` gives: call it with the options of a Meter.
OpenBuffered = Callable[..., Meter]

#: What the grand total is called among the precisions.
TOTAL = 0


def lost(health: RecorderHealth, series: str = "") -> Counter[int]:
    """Return the losses by precision, for whatever reason; of all series, or of one."""
    found: Counter[int] = Counter()
    for loss in health.losses:
        if series in ("", loss.series):
            found[loss.precision] += loss.events
    return found


def sent(operations: Operations) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Return what operations send: all but the function that says what is lost."""
    return [(one.code, one.keys, one.args) for one in operations]


def stored(client: Any, series: str = "") -> dict[int, int]:
    """Return what is in the store by precision; of all series, or of one.

    Of a store in which everything is a number: a value that is none, or is below zero, fails.
    """
    found = {TOTAL: 0}
    for precision, _ in kept(client):
        found[precision] = 0
    totals = client.hgetall("redmeter:total:")
    counted = [(TOTAL, name.decode(), value) for name, value in totals.items()]
    for key in client.scan_iter("redmeter:count:*", count=1000):
        _, _, precision, name = key.decode().split(":", 3)
        counted += [(int(precision), name, value) for value in client.hvals(key)]
    for precision, name, value in counted:
        assert int(value) >= 0
        if series in ("", name):
            found[precision] = found.get(precision, 0) + int(value)
    return found


def kept(client: Any) -> list[tuple[int, int]]:
    """Return what the store keeps: (precision, samples) pairs."""
    words = (client.hget("redmeter:meta:", "retention") or b"").decode().split()
    return [(int(p), int(samples)) for p, _, samples in (word.partition("=") for word in words)]


def check_sums(health: RecorderHealth) -> None:
    """Check that each event is in one place."""
    parts = (health.stored, health.buffered, health.uncertain, health.dropped)
    assert health.recorded == sum(parts), health
    assert min(parts) >= 0, health


def check_promise(client: Any, *healths: RecorderHealth) -> None:
    """Check what is promised of recorders that have nothing in memory any more.

    At each precision: recorded - lost - uncertain <= stored <= recorded - lost.
    """
    for health in healths:
        check_sums(health)
        assert health.buffered == 0
    recorded = sum(health.recorded for health in healths)
    uncertain = sum(health.uncertain for health in healths)
    losses = sum((lost(health) for health in healths), Counter())
    for precision, number in stored(client).items():
        most = recorded - losses[precision]
        assert most - uncertain <= number <= most, (precision, number, healths)


def check_exact(client: Any, *healths: RecorderHealth) -> None:
    """Check that nothing is lost unless it is written down, and nothing uncertain."""
    assert sum(health.uncertain for health in healths) == 0
    check_promise(client, *healths)


def check_whole(client: Any, health: RecorderHealth, events: int) -> None:
    """Check that a recorder took in so many events, and every precision has all of them."""
    assert (health.recorded, health.stored, health.losses) == (events, events, ())
    check_exact(client, health)


def tries(meter: Meter) -> int:
    """Return how often something went wrong in the background."""
    return sum(meter.recorder_health().troubles.values())


def fail_again(meter: Meter, times: int = 1) -> None:
    """Wait until the background has failed so often once more."""
    wanted = tries(meter) + times
    eventually(lambda: tries(meter) >= wanted, 10.0, "another try has failed")


def stored_by_itself(meter: Meter) -> None:
    """Wait until nothing is in memory any more, without asking for a flush."""
    eventually(lambda: not meter.recorder_health().buffered, 10.0, "the background has stored it")
