"""The reading rule, for a Meter and a MemoryMeter alike.

A name means all its label sets, aggregated; labels= filters, by= splits, exact= reads one series.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from redmeter import InvalidValue, LimitExceeded, Meter, UnknownPrecision
from redmeter.clock import ManualClock
from redmeter.testing import MemoryMeter
from support.stores import OpenMeter, server_time

DAY = 86400
#: A value that no name has room for.
LONG = "/reports/" + "x" * 300


@pytest.fixture(params=["store", "memory"])
def meter(request: pytest.FixtureRequest, open_meter: OpenMeter, client: Any) -> Meter:
    """Return a meter of each kind, with the same events, at the same time."""
    at = server_time(client)
    made: Meter
    if request.param == "store":
        made = open_meter()
    else:
        made = MemoryMeter(clock=ManualClock(at), strict=False)
    for amount, labels in (
        (1, None),
        (2, {"plan": "free", "shop": 1}),
        (4, {"plan": "pro", "shop": 1}),
        (8, {"plan": "pro", "shop": 2}),
        (16, {"path": LONG}),
    ):
        made.count("orders", amount, labels=labels, at=at)
    for value, shop in ((1.0, "a"), (3.0, "a"), (10.0, "b")):
        made.observe("seconds", value, labels={"shop": shop}, at=at)
    made.gauge("jobs", per_process=True).set(3)
    made.gauge("heat", labels={"room": "a"}).set(20)
    made.gauge("heat", labels={"room": "b"}).set(30)
    made.flush()
    return made


def last(series: Any) -> Any:
    """Return the newest value of a series."""
    return series.values[-1] if series.values else None


def test_a_name_means_all_its_label_sets(meter: Meter) -> None:
    """Counters are summed, histograms merged."""
    assert meter.total("orders") == 31
    assert meter.series("orders", precision="1d").total == 31
    assert meter.series("orders", precision=DAY, last="2d").total == 31
    summary = meter.summary("seconds", precision=3600)
    assert (summary.count, summary.total, summary.low, summary.high) == (3, 14.0, 1.0, 10.0)


def test_labels_filter(meter: Meter) -> None:
    """In labels= or in braces; values are converted, cleaned and cut as when they were recorded."""
    assert meter.total("orders", labels={"plan": "pro"}) == 12
    assert meter.total('orders{plan="pro"}', labels={"shop": 2}) == 8
    assert meter.series("orders", precision=DAY, labels={"shop": 1}).total == 6
    assert meter.summary("seconds", precision=3600, labels={"shop": "b"}).count == 1
    assert meter.total("orders", labels={"path": LONG}) == 16
    assert meter.total("orders", labels={"path": LONG}, exact=True) == 16
    assert meter.series("orders", precision=DAY, labels={"path": LONG}).total == 16
    assert meter.series("orders", precision=DAY, labels={"plan": "none"}).total == 0


def test_by_splits(meter: Meter) -> None:
    """The largest group first; None for series without the label."""
    totals = [(group.labels, group.total) for group in meter.total("orders", by="plan")]
    assert totals == [({"plan": None}, 17), ({"plan": "pro"}, 12), ({"plan": "free"}, 2)]
    groups = meter.series("orders", precision=DAY, by=("plan", "shop"), labels={"plan": "pro"})
    assert [(group.labels, group.series.total) for group in groups] == [
        ({"plan": "pro", "shop": "2"}, 8),
        ({"plan": "pro", "shop": "1"}, 4),
    ]
    summaries = meter.summary("seconds", precision=3600, by="shop")
    assert [(one.labels["shop"], one.summary.count) for one in summaries] == [("a", 2), ("b", 1)]


def test_forecasts_follow_the_same_rule(meter: Meter) -> None:
    """Of the sum, or of each group, the busiest first; of gauges by their labels."""
    whole = meter.forecast("orders", precision=DAY)
    assert (whole.kind, whole.running) == ("counter", 31)
    groups = meter.forecast("orders", precision=DAY, by="plan")
    assert [(group.labels, group.forecast.running) for group in groups] == [
        ({"plan": None}, 17),
        ({"plan": "pro"}, 12),
        ({"plan": "free"}, 2),
    ]
    rooms = meter.forecast("heat", precision=DAY, by="room", labels={"room": "b"})
    assert [(one.labels, one.forecast.kind, one.forecast.running) for one in rooms] == [
        ({"room": "b"}, "gauge", 30)
    ]
    assert meter.forecast("nothing", precision=DAY, by="plan") == []
    with pytest.raises(InvalidValue):
        meter.forecast("heat", precision=DAY)
    with pytest.raises(InvalidValue):
        meter.forecast("orders", precision=DAY, by="plan", exact=True)  # type: ignore[call-overload]
    for number in range(60):
        meter.count("many", labels={"user": number})
    meter.flush()
    with pytest.raises(LimitExceeded):
        meter.forecast("many", precision=DAY, by="user")


def test_exact_reads_one_stored_series(meter: Meter) -> None:
    """Without the label sets of its name."""
    assert meter.total("orders", exact=True) == 1
    assert meter.series("orders", precision=DAY, exact=True).total == 1
    assert meter.total("orders", labels={"plan": "pro", "shop": 1}, exact=True) == 4
    assert meter.summary("seconds", precision=3600, exact=True).count == 0
    with pytest.raises(InvalidValue):
        meter.series("orders", precision=DAY, by="plan", exact=True)  # type: ignore[call-overload]


def test_gauges_are_summed_over_processes_alone(meter: Meter) -> None:
    """Any other label needs by=, labels= or aggregate=."""
    assert last(meter.gauge_series("jobs", precision=DAY)) == 3
    with pytest.raises(InvalidValue):
        meter.gauge_series("heat", precision=DAY)
    assert last(meter.gauge_series("heat", precision=DAY, aggregate="mean")) == 25
    assert last(meter.gauge_series("heat", precision=DAY, labels={"room": "a"})) == 20
    groups = meter.gauge_series("heat", precision=DAY, by="room")
    assert [(group.labels["room"], last(group.series)) for group in groups] == [
        ("a", 20),
        ("b", 30),
    ]


def test_rankings_follow_the_same_rule(meter: Meter) -> None:
    """Rows, and how many groups were compared."""
    ranking = meter.top("orders", by="plan", precision=DAY)
    assert asdict(ranking)["rows"] == (
        {"key": None, "count": 17, "share": 17 / 31, "value": 17},
        {"key": "pro", "count": 12, "share": 12 / 31, "value": 12},
        {"key": "free", "count": 2, "share": 2 / 31, "value": 2},
    )
    assert (ranking.groups, ranking.examined, ranking.complete) == (3, 3, True)


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (lambda m: m.series("orders", precision=7), UnknownPrecision),
        (lambda m: m.series("orders", precision="soon"), InvalidValue),
        (lambda m: m.series("orders", precision=DAY, last="2h", since=1), InvalidValue),
        (lambda m: m.summary("seconds", precision=3600, intervals=0), LimitExceeded),
        (lambda m: m.top("orders", precision=DAY, limit=0), LimitExceeded),
    ],
)
def test_the_same_arguments_are_refused(
    meter: Meter, query: Callable[[Meter], Any], error: type[Exception]
) -> None:
    """With the same errors."""
    with pytest.raises(error):
        query(meter)


def test_the_value_of_a_gauge_in_memory_follows_the_rule() -> None:
    """Processes are summed; another label has to be named."""
    meter = MemoryMeter()
    assert meter.value("jobs") is None
    meter.gauge("jobs", per_process=True).set(3)
    meter.gauge("jobs").set(4)
    assert meter.value("jobs") == 7
    meter.gauge("heat", labels={"room": "a"}).set(20)
    meter.gauge("heat", labels={"room": "a"}).set(21)
    assert meter.value("heat", labels={"room": "a"}) == 21
    with pytest.raises(InvalidValue):
        meter.value("heat")
