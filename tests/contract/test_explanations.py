"""explain() on a server and in memory: windows, baselines, kinds, and everything it lists."""

import time
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest

from redmeter import Meter
from redmeter.errors import InvalidValue, UnknownPrecision
from redmeter.recording.logging.exceptions import OccurrencesByInterval
from redmeter.results import Explanation
from redmeter.stored.exception import Occurrences, exception_operations
from redmeter.stored.keys import Keys
from redmeter.testing import MemoryMeter
from redmeter.types import Operation
from support.stores import OpenMeter, OpenStore

#: Label sets of the metric that most tests record.
ROUTES = [f"/{number}" for number in range(12)]


@pytest.fixture(params=["store", "memory"])
def meter(
    request: pytest.FixtureRequest, open_meter: OpenMeter, monkeypatch: pytest.MonkeyPatch
) -> Meter:
    """A meter on a server, and one in memory whose clock shows the same time."""
    if request.param == "store":
        meter = open_meter(sync=False)
        explain = meter.explain

        def stored_and_explained(*arguments: Any, **options: Any) -> Explanation:
            assert meter.flush()
            return explain(*arguments, **options)

        monkeypatch.setattr(meter, "explain", stored_and_explained)
        return meter
    memory = MemoryMeter()
    memory.clock.set_wall(time.time())
    return memory


def minute_of(meter: Meter) -> int:
    """Return the start of the running minute."""
    now = meter.clock.wall() if isinstance(meter, MemoryMeter) else time.time()
    return int(now) // 60 * 60


def record(
    meter: Meter, end: int, minutes: int, amount: Callable[[str, int], int], **labels: str
) -> None:
    """Count requests of all routes in the minutes before a time.

    Args:
        amount: how many, of a route and a minute (0 is the oldest).
    """
    for minute in range(minutes):
        at = end - (minutes - minute) * 60
        for route in ROUTES:
            if count := amount(route, minute):
                meter.count("jobs", count, labels={"route": route, **labels}, at=at)


def spike(route: str, minute: int) -> int:
    """Return 50 or so, and 400 of one route in the last five of 30 minutes."""
    return 400 if route == "/7" and minute >= 25 else 50 + (minute * 7 + len(route)) % 5


def test_the_route_that_rose_is_named_with_its_share(meter: Meter) -> None:
    """By default against the same length before, in the finest precision that keeps both."""
    end = minute_of(meter)
    record(meter, end, 30, spike, method="GET")
    found = meter.explain("jobs", end - 300, end)
    assert (found.state, found.measure, found.precision) == ("compared", "count", 60)
    assert (found.since, found.until) == (end - 300, end)
    assert (found.against_since, found.against_until) == (end - 600, end - 300)
    assert [(one.label, one.value) for one in found.causes] == [("route", "/7")]
    assert found.causes[0].count == 2000
    assert found.causes[0].share == pytest.approx(1, abs=0.05)
    assert [one.label for one in found.dimensions] == ["route"]
    assert found.dimensions[0].groups[0] == found.causes[0]
    assert "mainly /7" in found.sentence
    assert "the 5 min before" in found.sentence
    assert "".join(part.text for part in found.parts) == found.sentence
    newest = meter.explain("jobs", last="5m")
    assert newest.precision == 60
    assert newest.until - newest.since == 300
    assert minute_of(meter) > end or newest.causes == found.causes


def test_a_rise_is_told_from_lasting_bursts_by_its_minutes(meter: Meter) -> None:
    """The sum of the window alone might be a burst."""
    random, counts = Random(1), {}
    for route in ROUTES:
        level = 0.0
        for minute in range(90):
            level = 0.8 * level + random.gauss(0, 0.12)
            usual = 500 if route == "/7" and minute >= 75 else 300
            counts[route, minute] = round(usual * (1 + level))
    end = minute_of(meter)
    record(meter, end, 90, lambda *key: counts[key])
    found = meter.explain("jobs", end - 900, end)
    assert [one.value for one in found.causes] == ["/7"]


def test_windows_are_rounded_to_complete_intervals(meter: Meter) -> None:
    """Outwards, and not into the running one; the times that were given are in the result."""
    end = minute_of(meter)
    record(meter, end, 30, spike)
    found = meter.explain("jobs", end - 290, end + 3600, precision="1m")
    assert (found.since, found.until) == (end - 300, end)
    assert found.asked_since == end - 290


def test_a_filter_by_labels_leaves_out_other_label_sets(meter: Meter) -> None:
    """In braces or as labels."""
    end = minute_of(meter)
    record(meter, end, 30, spike, method="GET")
    record(meter, end, 30, lambda *_: 10, method="POST")
    assert meter.explain("jobs", end - 300, end, labels={"method": "POST"}).count == 600
    assert meter.explain('jobs{method="POST"}', end - 300, end).causes == ()


def test_a_baseline_that_is_not_kept_is_never_replaced_by_a_coarser_one(meter: Meter) -> None:
    """The answer states how far back the precision reaches, and which ones would do."""
    end = minute_of(meter)
    record(meter, end, 30, spike)
    found = meter.explain("jobs", end - 240, end, "yesterday")
    assert found.state == "not kept"
    assert found.precision in (5, 60)
    assert found.reaches is not None
    assert found.reaches > end - 86_400
    assert found.causes == ()
    assert found.dimensions == ()
    assert found.sentence.startswith("Not kept: intervals of")
    hours = [one for one in found.alternatives if one.precision == 3600]
    for one in hours:  # missing within the first minutes of an hour, which is not complete
        assert one.reaches <= end - 86_400


def test_an_hour_is_compared_with_the_same_hour_of_yesterday(meter: Meter) -> None:
    """At hours, since the window is exactly the same at any precision that keeps it."""
    hour = minute_of(meter) // 3600 * 3600
    for back in range(60):
        for route in ROUTES:
            count = 4000 if route == "/7" and back == 1 else 500 + back % 7
            labels = {"route": route, "method": "GET"}
            meter.count("jobs", count, labels=labels, at=hour - back * 3600 + 1)
    found = meter.explain("jobs", hour - 3600, hour, "yesterday")
    assert (found.state, found.precision) == ("compared", 3600)
    assert found.against_since == hour - 3600 - 86_400
    assert [one.value for one in found.causes] == ["/7"]
    assert "the same time yesterday" in found.sentence
    custom = (hour - 7200, hour - 3600)
    assert meter.explain("jobs", hour - 3600, hour, custom, precision=3600).count_before > 0


def test_the_error_rate_is_explained_by_rate_and_mix(meter: Meter) -> None:
    """Of web requests, 5xx stands for every status that failed."""
    end = minute_of(meter)
    for minute in range(30):
        at = end - (30 - minute) * 60
        for route in ROUTES:
            failed = 60 if route == "/3" and minute >= 20 else 2 + minute % 2
            for status, count in (("2xx", 200), ("503", failed)):
                labels = {"route": route, "method": "GET", "status": status}
                meter.count("http_requests", count, labels=labels, at=at)
    found = meter.explain("http_requests", end - 600, end, failing={"status": "5xx"})
    assert (found.measure, found.unit) == ("error rate", "ratio")
    assert [(one.label, one.value) for one in found.causes] == [("route", "/3")]
    assert "status" not in {one.label for one in found.dimensions}
    (routes,) = found.dimensions
    effects = sum((g.rate_effect or 0) + (g.mix_effect or 0) for g in routes.groups)
    assert effects == pytest.approx(found.change)
    assert "Error rate of http_requests rose" in found.sentence
    failures = meter.explain("hits_failed", end - 600, end)
    assert (failures.name, failures.measure) == ("http_requests", "count")
    assert failures.count == 10 * 60 + sum(2 + minute % 2 for minute in range(20, 30)) * 11
    assert meter.explain("hits", end - 600, end).count > failures.count


def test_a_p95_is_explained_in_seconds(meter: Meter) -> None:
    """The slow route is the cause, and the time in the database is listed."""
    end = minute_of(meter)
    for minute in range(24):
        at = end - (24 - minute) * 60
        for number, route in enumerate(ROUTES):
            slower = 4 if route == "/5" and minute >= 16 else 1
            for step in range(0, 20, 3):
                labels = {"route": route, "method": "GET"}
                seconds = slower * (0.1 + 0.005 * (step + number % 3))
                meter.observe("http_request_seconds", seconds, labels=labels, at=at)
                meter.observe("http_request_db_seconds", seconds / 2, labels=labels, at=at)
    found = meter.explain("http_request_seconds", end - 480, end)
    assert (found.measure, found.unit, found.precision) == ("p95", "seconds", 60)
    assert [(one.label, one.value) for one in found.causes] == [("route", "/5")]
    assert found.before == pytest.approx(0.2, rel=0.05)
    assert found.after == pytest.approx(0.58, rel=0.05)
    assert found.causes[0].change > 0.2
    assert found.causes[0].share is None
    assert found.database is not None
    assert found.database.after is not None
    assert found.database.share == pytest.approx(0.5, abs=0.01)
    assert meter.explain("hits_seconds", end - 480, end).causes == found.causes


def test_marks_and_log_patterns_are_listed(meter: Meter) -> None:
    """A pattern that was first seen in the window is new."""
    end = minute_of(meter)
    record(meter, end, 30, spike)
    meter.mark("shop 2.4.0", at=end - 120)
    meter.log("payments", "card refused: %s", "expired", severity="error")
    found = meter.explain("jobs", end - 300, end)
    assert [mark.label for mark in found.marks] == ["shop 2.4.0"]
    assert found.messages.new == ()


def test_exceptions_of_a_meter_in_memory_are_compared() -> None:
    """An exception that came first in the window is new."""
    meter = MemoryMeter()
    meter.clock.set_wall(1_700_000_400)
    end = minute_of(meter)
    record(meter, end, 30, spike)
    try:
        raise KeyError("card")
    except KeyError as error:
        meter.record_exception(error, route="/7")
    meter.clock.set_wall(end + 120)
    found = meter.explain("jobs", end - 300, end + 120).exceptions
    (one,) = found.groups
    assert (one.type, one.kind, one.count, one.before) == ("KeyError", "new", 1, 0)
    assert found.precision == 300


def _written(keys: Keys, steps: OccurrencesByInterval, _: object) -> tuple[Operation, ...]:
    return exception_operations(keys, steps, 300)


def test_a_stored_group_of_exceptions_is_compared(
    open_meter: OpenMeter, open_store: OpenStore
) -> None:
    """By its counts of five minutes; foreign keys are left out."""
    meter = open_meter()
    end = minute_of(meter) // 300 * 300
    record(meter, end, 30, spike)
    keys = open_store().shard("").keys
    for name, minutes in (("a" * 16, (20, 15, 10, 5)), ("b" * 16, (20,))):
        for ago in minutes:
            found = Occurrences(40 if ago == 5 else 3, end - 60 * ago, end - 60 * ago, None, {}, {})
            steps = {end - 60 * ago: {name: found}}
            open_store().shard("").write(partial(_written, keys, steps))
    explained = meter.explain("jobs", end - 300, end)
    assert [(one.id, one.kind, one.count) for one in explained.exceptions.groups] == [
        ("a" * 16, "more", 40)
    ]
    assert explained.not_compared == ()


def test_nothing_recorded_is_no_data(meter: Meter) -> None:
    """Neither a rise nor an error."""
    end = minute_of(meter)
    found = meter.explain("jobs", end - 300, end)
    assert (found.state, found.causes) == ("no data", ())
    assert found.sentence == "Nothing to compare: no events in either window."


def test_too_few_intervals_are_listed_but_not_judged(meter: Meter) -> None:
    """The changes are there; their noise is unknown."""
    end = minute_of(meter)
    record(meter, end, 4, lambda route, minute: 400 if minute > 1 and route == "/7" else 50)
    found = meter.explain("jobs", end - 120, end, precision=60)
    assert found.judged is False
    assert "8 are needed" in found.judged_reason
    assert found.causes == ()
    assert found.dimensions[0].groups[0].value == "/7"


@pytest.mark.parametrize(
    "arguments",
    [
        {"since": 200.0, "until": 100.0},
        {"since": 100.0, "until": 200.0, "against": "tomorrow"},
        {"since": 100.0, "until": 200.0, "against": (2.0, 1.0)},
        {"since": 100.0, "until": 200.0, "against": (1.0,)},
        {"since": 100.0, "last": "5m"},
        {"last": "soon"},
        {"last": 0},
    ],
)
def test_arguments_that_cannot_be_used_are_refused(meter: Meter, arguments: Any) -> None:
    """Before the store is read."""
    with pytest.raises(InvalidValue):
        meter.explain("jobs", **arguments)


def test_a_precision_that_is_not_kept_is_refused(meter: Meter) -> None:
    """With those that are."""
    with pytest.raises(UnknownPrecision, match="3600"):
        meter.explain("jobs", last="1h", precision=7)


def test_a_meter_that_is_off_answers_that_it_is() -> None:
    """Instead of an error."""
    with Meter("off") as off:
        assert off.explain("jobs", last="1h").sentence == "Redmeter is off: nothing is recorded."
