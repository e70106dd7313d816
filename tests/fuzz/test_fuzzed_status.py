"""A status of any events: a sentence without gaps, and ranges that agree with the states."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from redmeter.testing import MemoryMeter
from support.examples import scaled

END = 1_700_000_040


def record(draw: random.Random) -> MemoryMeter:
    """Record some series for some time, with gaps, odd amounts and odd durations."""
    meter = MemoryMeter()
    end = END + draw.randint(0, 86_400) // 60 * 60
    meter.clock.set_wall(end + draw.randint(0, 59))
    minutes = draw.choice([0, 1, 4, 6, 20, 61, 70, 130, 400])
    names = draw.sample(["hits", "hits_failed", "x", "y_bytes"], draw.randint(0, 3))
    gaps = draw.choice([0, 0.02, 0.9])
    for ago in range(minutes, -1, -1):
        at = end - 60 * ago
        if draw.random() < gaps:
            continue
        for name in names:
            amount = draw.choice([1, draw.randint(1, 9), draw.randint(1, 1000), 10**12])
            meter.count(name, amount, at=at)
        if draw.random() < 0.5:
            labels = {"route": draw.choice("ab"), "status": draw.choice(["2xx", "5xx", "404"])}
            meter.count("http_requests", draw.randint(1, 50), labels=labels, at=at)
            state = {"task": "t", "state": draw.choice(["success", "failure"])}
            meter.count("task_runs", draw.randint(1, 5), labels=state, at=at)
            seconds = draw.choice([0, -1, 0.1, 1e9, 1e-9])
            meter.observe("hits_seconds", seconds, at=at)
            meter.observe("task_seconds", seconds, labels={"task": "t"}, at=at)
    if draw.random() < 0.3:
        meter.mark("v2", at=end - draw.randint(0, 5_000))
    return meter


@settings(max_examples=scaled(40), deadline=None)
@given(st.randoms(use_true_random=False))
def test_any_events_have_a_status(draw: random.Random) -> None:
    """It never fails, and a value is where its state puts it."""
    status = record(draw).status()
    assert status.sentence
    assert "".join(part.text for part in status.parts).strip() == status.sentence
    assert "nan" not in status.sentence
    assert "None" not in status.sentence
    for check in status.checks:
        if check.value is None or check.low is None or check.high is None:
            assert check.state in ("unknown", "high", "low")
        elif check.state == "high":
            assert check.value >= check.high
        elif check.state == "usual" and check.ended is None:
            assert check.low <= check.value <= check.high
