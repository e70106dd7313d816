"""status() on a server and in memory: as usual, a failing route, slow requests, too little data."""

import re
import time

import pytest

from redmeter import Meter
from redmeter.testing import MemoryMeter
from support.stores import OpenMeter

ROUTES = [f"/{number}" for number in range(6)]


@pytest.fixture(params=["store", "memory"])
def meter(request: pytest.FixtureRequest, open_meter: OpenMeter) -> Meter:
    """A meter on a server, and one in memory whose clock shows the same time."""
    if request.param == "store":
        return open_meter(sync=False)
    memory = MemoryMeter()
    memory.clock.set_wall(time.time())
    return memory


def record(meter: Meter, *, failed: int = 1, seconds: float = 0.1) -> int:
    """Record two hours of requests; the last six minutes differ. Return the running minute.

    The running minute is recorded, too: it may be over when the status is read.
    """
    now = meter.clock.wall() if isinstance(meter, MemoryMeter) else time.time()
    end = int(now) // 60 * 60
    for minute in range(119):
        at, last = end - (118 - minute) * 60, minute >= 112
        count = failures = 0
        for number, route in enumerate(ROUTES):
            wrong = failed if last and route == "/3" else int((minute + number) % 5 == 0)
            for status, amount in (("2xx", 160 - wrong + (minute + number) % 9), ("5xx", wrong)):
                labels = {"route": route, "method": "GET", "status": status}
                meter.count("http_requests", amount, labels=labels, at=at)
                count += amount
            failures += wrong
        meter.count("hits", count, at=at)
        meter.count("hits_failed", failures, at=at)
        for step in range(25):
            meter.observe("hits_seconds", (seconds if last else 0.1) * (1 + step / 50), at=at)
    assert meter.flush(20)
    return end


def test_usual_minutes_are_as_expected(meter: Meter) -> None:
    """Each check has its range and its baseline."""
    end = record(meter)
    status = meter.status()
    assert status.state == "usual", status
    assert (status.until, status.since) in {(end, end - 300), (end + 60, end - 240)}
    assert [check.measure for check in status.checks] == ["requests", "error rate", "p95"]
    for check in status.checks:
        assert check.low is not None
        assert check.high is not None
        assert check.value is not None
        assert check.low <= check.value <= check.high
        assert check.intervals >= 12
        assert check.began is None
    assert status.sentence.startswith("Requests, error rate and p95 response time as expected.")
    assert "Compared with the " in status.sentence


def test_a_failing_route_is_named_with_its_release(meter: Meter) -> None:
    """The sentence has a part for each noun."""
    end = record(meter, failed=60)
    meter.mark("shop 2.4.0", at=end - 400)
    assert meter.flush(20)
    status = meter.status()
    assert status.state == "unusual"
    check = status.checks[1]
    assert (check.measure, check.state) == ("error rate", "high")
    assert [(one.label, one.value) for one in check.causes] == [("route", "/3")]
    assert check.began is not None
    assert end - 480 <= check.began <= end - 240
    assert check.mark is not None
    assert status.sentence.startswith("Error rate ")
    assert re.search(r": /3 3\d\.?\d* % \(usually 0\.\d+ %\)", status.sentence), status.sentence
    assert ", since shop 2.4.0: " in status.sentence
    kinds = {part.kind for part in status.parts}
    assert {"metric", "value", "group", "usual", "mark", "time", "baseline"} <= kinds
    assert "".join(part.text for part in status.parts) == status.sentence


def test_slow_requests_are_unusual(meter: Meter) -> None:
    """By the p95; the other measures are as expected."""
    record(meter, seconds=0.2)
    status = meter.status()
    assert [check.state for check in status.checks] == ["usual", "usual", "high"]
    assert status.sentence.startswith("p95 response time ")
    assert "Requests and error rate as expected." in status.sentence


def test_a_store_without_requests_has_too_little_data(meter: Meter) -> None:
    """No check is judged, and the sentence gives a reason."""
    status = meter.status()
    assert (status.state, status.checks) == ("unknown", ())
    assert status.sentence.startswith("Not enough data: no requests, no tasks and no counters ")
    meter.count("hits", 3, at=status.until - 120)
    assert meter.flush(20)
    if isinstance(meter, MemoryMeter):  # in a store, the minute is judged already
        status = meter.status()
        assert status.state == "unknown"
        assert all(check.reason for check in status.checks)
        assert "Error rate not judged: " in status.sentence


@pytest.mark.parametrize("last", [40, 400])
def test_an_application_without_requests_is_judged_by_its_busiest_counters(
    meter: Meter, last: int
) -> None:
    """Three at most, all label sets of each, and what rose is named with its group."""
    now = meter.clock.wall() if isinstance(meter, MemoryMeter) else time.time()
    end = int(now) // 60 * 60
    for minute in range(119):
        at = end - (118 - minute) * 60
        for queue in ("mail", "pdf", "sync"):
            amount = last if minute >= 112 and queue == "pdf" else 40 + minute % 5
            meter.count("jobs", amount, labels={"queue": queue}, at=at)
        for name, amount in (("rows", 90), ("files", 30), ("rare", 1)):
            meter.count(name, amount + minute % 7, at=at)
    assert meter.flush(20)
    status = meter.status()
    assert [(one.measure, one.name) for one in status.checks] == [
        ("count", "jobs"),
        ("count", "rows"),
        ("count", "files"),
    ]
    if last == 40:
        assert status.state == "usual", status
        assert status.sentence.startswith("jobs, rows and files as expected. Compared with ")
        return
    assert [one.state for one in status.checks] == ["high", "usual", "usual"]
    assert [(one.label, one.value) for one in status.checks[0].causes] == [("queue", "pdf")]
    assert status.sentence.startswith("jobs ")
    assert ": queue pdf 2,000 (usually 210)" in status.sentence


def test_few_requests_are_not_judged_by_their_errors(meter: Meter) -> None:
    """One failure among three is no error rate, and three of three are."""
    record(meter)
    if isinstance(meter, MemoryMeter):
        meter.clock.advance(600)
        meter.count("hits", 3, at=meter.clock.wall() - 90)
        meter.count("hits_failed", 1, at=meter.clock.wall() - 90)
        check = meter.status().checks[1]
        assert (check.state, check.value, check.reason) == ("unknown", 1 / 3, "3 requests")
        assert "Error rate not judged: 3 requests. " in meter.status().sentence
        meter.count("hits_failed", 2, at=meter.clock.wall() - 90)
        assert meter.status().checks[1].state == "high"


def test_a_meter_that_is_off_answers_that_it_is() -> None:
    """Instead of an error."""
    with Meter("off") as off:
        assert off.status().sentence == "Redmeter is off: nothing is recorded."


def test_counters_of_bytes_are_judged_and_explained_in_bytes(meter: Meter) -> None:
    """In the sentences, by the unit in the name."""
    now = meter.clock.wall() if isinstance(meter, MemoryMeter) else time.time()
    end = int(now) // 60 * 60
    for minute in range(89):
        at, factor = end - (88 - minute) * 60, 10 if minute >= 82 else 1
        meter.count("sent_bytes", 400_000 * factor, labels={"zone": "eu"}, at=at)
        for number, zone in enumerate(("us", "asia", "sea")):
            amount = 100_000 + (minute + number) % 3 * 1000
            meter.count("sent_bytes", amount, labels={"zone": zone}, at=at)
    assert meter.flush(20)
    (check,) = meter.status().checks
    assert (check.unit, check.value) == ("bytes", 21_515_000)
    sentence = meter.status().sentence
    assert re.match(r"sent_bytes 21\.5 MB \(usually 3\.5 MB\) for [67] min: zone eu ", sentence)
    assert ": zone eu 20 MB (usually 2 MB)" in sentence
    explained = meter.explain("sent_bytes", end - 360, end)
    assert explained.unit == "bytes"
    assert ", from 4.2 MB to 25.8 MB, mainly zone eu (2.4 MB to 24 MB, " in explained.sentence


def test_a_slow_route_is_judged_by_itself(meter: Meter) -> None:
    """Though the p95 of all requests is as expected: it has few of them."""
    end = record(meter)
    for minute in range(119):
        at, last = end - (118 - minute) * 60, minute >= 106
        for number, route in enumerate(ROUTES):
            labels = {"route": route, "method": "GET"}
            slow = 8.0 if last and number == 4 else 1.0
            for step in range(6):
                seconds = 0.1 * (1 + (step + minute) % 6 / 9) * slow
                meter.observe("http_request_seconds", seconds, labels=labels, at=at)
    assert meter.flush(20)
    status = meter.status()
    slow_checks = [check for check in status.checks if check.state != "usual"]
    assert [(check.measure, check.labels) for check in slow_checks] == [("p95", {"route": "/4"})]
    assert status.sentence.startswith("p95 response time of /4 "), status.sentence
    assert status.state == "unusual"
    p95 = slow_checks[0]
    assert p95.value == pytest.approx(8 * 0.155, rel=0.05)
    assert p95.mid == pytest.approx(0.155, rel=0.05)


def test_a_failing_and_a_slow_task_are_named(meter: Meter) -> None:
    """In an application of tasks alone; the others are as expected."""
    now = meter.clock.wall() if isinstance(meter, MemoryMeter) else time.time()
    end = int(now) // 60 * 60
    for minute in range(119):
        at, last = end - (118 - minute) * 60, minute >= 106
        for task in ("mail", "pdf", "sync"):
            failed = 4 if last and task == "mail" else int(minute % 40 == 0)
            for state, amount in (("success", 8 - failed), ("failure", failed)):
                if amount:
                    meter.count("task_runs", amount, labels={"task": task, "state": state}, at=at)
            for step in range(8):
                seconds = (1 + (step + minute) % 8 / 20) * (10 if last and task == "pdf" else 1)
                meter.observe("task_seconds", seconds, labels={"task": task}, at=at)
    assert meter.flush(20)
    status = meter.status()
    assert status.state == "unusual"
    assert [
        (check.measure, check.labels["task"]) for check in status.checks if check.state == "high"
    ] == [("failures", "mail"), ("p95", "pdf")] or "mail" in status.sentence
    assert "Failures of task mail 50 % (usually " in status.sentence
    assert "p95 of task pdf 13" in status.sentence
    assert "Failures of 1 task as expected." in status.sentence


def test_what_is_new_is_named(meter: Meter) -> None:
    """An exception and an error in the log, without any requests."""
    for number in range(30):
        meter.log("shop.pay", "no answer from %s after %d s", "bank", number, severity="error")
    try:
        raise KeyError("cart")
    except KeyError as error:
        meter.record_exception(error)
    assert meter.flush(20)
    status = meter.status()
    assert status.state == "unusual"
    assert "New exception KeyError in test_status.py:" in status.sentence
    assert "New error in shop.pay: no answer from " in status.sentence
    assert [one.count for one in status.messages] == [30]


def test_a_store_of_gauges_and_messages_names_them(meter: Meter) -> None:
    """Nothing of it is judged."""
    meter.gauge("queue_length").set(3)
    meter.log("shop", "started", severity="info")
    assert meter.flush(20)
    status = meter.status()
    assert status.state == "unknown"
    assert status.sentence.startswith(
        "Not enough data: gauges and messages are recorded, but no requests, no tasks and no "
    )
