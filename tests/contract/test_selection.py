"""A name means all its label sets: aggregated, filtered by labels, split by a label, or exact.

The rule is the same for a store and for MemoryMeter, so the tests run on both.
"""

from datetime import UTC, datetime
from typing import Any

import pytest

from redmeter import Meter
from redmeter.clock import ManualClock
from redmeter.errors import InvalidName, InvalidValue, LimitExceeded
from redmeter.reading import selection
from redmeter.testing import MemoryMeter
from support.stores import OpenMeter, exchanges


@pytest.fixture(params=["store", "memory"])
def meter(request: pytest.FixtureRequest, open_meter: OpenMeter) -> Meter:
    """Orders by plan and shop, values and gauges of the last minutes."""
    meter: Meter = open_meter()
    now = now_of(meter)
    if request.param == "memory":
        meter = MemoryMeter(clock=ManualClock(now))
    for number, (plan, shop) in enumerate((("pro", "a"), ("pro", "b"), ("free", "a"))):
        for ago in (0, 60, 180):
            meter.count("orders", 10**number, labels={"plan": plan, "shop": shop}, at=now - ago)
        for value in range(10):
            meter.observe("seconds", value + number, labels={"plan": plan}, at=now - 60)
    meter.count("orders", 5000, at=now)  # without labels
    meter.count("orders2", 10**6, labels={"plan": "pro"}, at=now)
    meter.observe("seconds", 100.0, at=now)
    return meter


def now_of(meter: Meter) -> float:
    """Return the time of the clock that a meter's store goes by."""
    if isinstance(meter, MemoryMeter):
        return meter.clock.wall()
    assert meter._store is not None
    return float(int(meter._store.read()[0].now))


def newest(series: Any, count: int) -> list[Any]:
    """Return the newest values; a minute may begin meanwhile, whose value is 0."""
    values = list(series.values)
    return values[-count:] if values[-1] else values[-count - 1 : -1]


def test_a_name_means_all_its_label_sets(meter: Meter) -> None:
    """Their samples are summed, their distributions merged, their totals added."""
    assert meter.total("orders") == 5333
    assert newest(meter.series("orders", precision=60), 4) == [111, 0, 111, 5111]
    assert meter.summary("seconds", precision=60).count == 31
    assert meter.summary("seconds", precision=60).high == 100.0
    assert meter.forecast("orders", precision=60).running in (5111, 0)


def test_labels_filter(meter: Meter) -> None:
    """Beside the name or in braces; values are converted as they are when events are recorded."""
    assert meter.total("orders", labels={"plan": "pro"}) == 33
    assert meter.total('orders{plan="pro"}') == 33
    assert meter.total('orders{plan="pro"}', labels={"shop": "b"}) == 30
    assert meter.total("orders", labels={"plan": "team"}) == 0
    series = meter.series("orders", labels={"shop": "a"}, precision="1m")
    assert (series.name, newest(series, 1)) == ('orders{shop="a"}', [101])
    assert meter.summary("seconds", labels={"plan": "free"}, precision=60).low == 2.0
    meter.count("jobs", labels={"queue": "7"})
    assert meter.total("jobs", labels={"queue": 7}) == 1


def test_by_splits(meter: Meter) -> None:
    """The group with the most events first; None for series without the label."""
    groups = meter.series("orders", by="plan", precision=60)
    assert [(dict(group.labels), group.series.total) for group in groups] == [
        ({"plan": None}, 5000),
        ({"plan": "free"}, 300),
        ({"plan": "pro"}, 33),
    ]
    totals = meter.total("orders", by=["shop", "plan"], labels={"plan": "pro"})
    assert [(group.labels, group.total) for group in totals] == [
        ({"shop": "b", "plan": "pro"}, 30),
        ({"shop": "a", "plan": "pro"}, 3),
    ]
    summaries = meter.summary("seconds", by="plan", precision=60)
    assert {group.labels["plan"]: group.summary.count for group in summaries} == {
        "pro": 20,
        "free": 10,
        None: 1,
    }
    assert meter.series("nothing", by="plan", precision=60) == []


def test_exact_reads_the_one_stored_series(meter: Meter) -> None:
    """Which `orders` has, too, beside its label sets."""
    assert meter.total("orders", exact=True) == 5000
    assert meter.total("orders", labels={"plan": "pro", "shop": "b"}, exact=True) == 30
    assert meter.total("orders", labels={"plan": "pro"}, exact=True) == 0
    assert newest(meter.series("orders", exact=True, precision=60), 1) == [5000]
    assert meter.summary("seconds", exact=True, precision=60).count == 1


def test_gauges_are_summed_over_processes_alone(meter: Meter) -> None:
    """Another label needs a choice, also while it has one value."""
    for instance in ("0", "1"):
        meter.gauge("depth", labels={"instance": instance, "host": "a"}).set(2 + int(instance))
    host: dict[str, Any] = {"precision": 3600}
    with pytest.raises(InvalidValue, match="split by host"):
        meter.gauge_series("depth", **host)
    assert meter.gauge_series("depth", labels={"host": "a"}, **host).values[-1] == 5.0
    meter.gauge("depth", labels={"instance": "0", "host": "b"}).set(11)
    (first, second) = meter.gauge_series("depth", by="host", **host)
    assert (first.labels, first.series.values[-1]) == ({"host": "a"}, 5.0)
    assert (second.labels, second.series.values[-1]) == ({"host": "b"}, 11.0)
    found = {
        word: meter.gauge_series("depth", aggregate=word, **host).values[-1]
        for word in ("sum", "min", "max", "mean")
    }
    assert found == {"sum": 16.0, "min": 5.0, "max": 11.0, "mean": 8.0}
    assert meter.forecast("depth", precision=3600, aggregate="max").running == 11.0
    with pytest.raises(InvalidValue, match="sum, min, max, mean"):
        meter.gauge_series("depth", aggregate="median", **host)


def test_windows_are_times_or_the_last_while(meter: Meter) -> None:
    """Unix seconds, datetimes with a time zone, or a duration."""
    now = now_of(meter)
    whole = meter.series("orders", precision="1m")
    assert whole == meter.series("orders", precision=60)
    for since in (now - 60, datetime.fromtimestamp(now - 60, UTC)):
        assert len(meter.series("orders", precision=60, since=since)) in (2, 3)
    assert len(meter.series("orders", precision=60, last="2m")) == 2
    assert len(meter.series("orders", precision=60, last="61s")) == 2
    assert meter.summary("seconds", precision=60, last="1m").count in (0, 1)
    assert len(meter.series_many(["orders"], precision=60, last="1m")["orders"]) in (0, 1)
    for options in (
        {"last": "2h", "since": now},
        {"last": "soon"},
        {"last": 0},
        {"since": datetime(2026, 11, 23)},  # noqa: DTZ001 - that is the point
    ):
        with pytest.raises(InvalidValue):
            meter.series("orders", precision=60, **options)
    with pytest.raises(InvalidValue, match="1h"):
        meter.series("orders", precision="1x")


def test_too_many_label_sets_are_refused(meter: Meter, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the ways to narrow them; a filter that leaves few helps."""
    few = selection.KINDS["counter"]._replace(most=60)
    monkeypatch.setitem(selection.KINDS, "counter", few)
    for number in range(70):
        labels = {"user": f"{number:02}", "odd": str(number % 2)}
        meter.count("logins", number, labels=labels)
    with pytest.raises(LimitExceeded, match=r"70 .*at most 60.*labels=.*top\(\)"):
        meter.series("logins", precision=60)
    assert meter.series("logins", precision=3600, labels={"odd": "1"}).total == sum(range(1, 70, 2))
    assert meter.total("logins") == sum(range(70))


def test_exact_and_by_exclude_each_other(meter: Meter) -> None:
    """And a name that is none can only be read exactly."""
    with pytest.raises(InvalidValue):
        meter.series("orders", precision=60, by="plan", exact=True)  # type: ignore[call-overload]
    with pytest.raises(InvalidName):
        meter.total("orders{")
    assert meter.total("orders{", exact=True) == 0
    with pytest.raises(InvalidName):
        meter.total('orders{plan="pro"}', labels={"plan": "free"})


def test_round_trips(open_meter: OpenMeter, monkeypatch: pytest.MonkeyPatch) -> None:
    """One reads up to 50 label sets, also with a filter; a second one the rest."""
    meter = open_meter()
    for number in range(52):
        meter.count("few" if number < 50 else "more", 1, labels={"n": str(number)})
        meter.count("many", number, labels={"n": str(number), "odd": str(number % 2)})
    meter.total("x")
    for name, options, trips in (
        ("few", {}, 1),
        ("many", {}, 2),
        ("many", {"labels": {"n": "9"}}, 2),
        ("many", {"labels": {"n": "9", "odd": "1"}}, 1),
        ("many", {"labels": {"n": "9", "odd": "1"}, "exact": True}, 1),
    ):
        with exchanges(monkeypatch) as seen:
            meter.series(name, precision=3600, **options)
        assert len(seen) == trips, (name, options)
    assert meter.series("many", precision=3600).total == sum(range(52))
    assert meter.series("many", precision=3600, labels={"odd": "1"}).total == sum(range(1, 52, 2))


def test_neither_a_missing_index_entry_nor_expired_samples_lower_what_was_counted(
    open_meter: OpenMeter,
) -> None:
    """The series without labels is read without the index, and totals are found by name."""
    meter = open_meter()
    meter.count("orders", 7)
    meter.count("orders", 5, labels={"plan": "pro"})
    store = meter._store
    assert store is not None
    keys = [
        *(store.keys.count(60, name) for name in ("orders", 'orders{plan="pro"}')),
        store.keys.known,
    ]
    store.ask([("RENAME", keys[1], "gone"), ("RENAME", keys[2], "gone2")])
    assert meter.series("orders", precision=60).total == 7
    assert meter.total("orders") == 12
    assert meter.total("orders", by="plan")[0].total == 7
