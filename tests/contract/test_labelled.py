"""All label sets of a name at once: as many single questions say, in two round trips."""

import pytest

from redmeter import Meter
from redmeter.errors import LimitExceeded, UnknownPrecision
from redmeter.reading import labelled
from redmeter.reading.labelled import by_label, summaries_of
from redmeter.store import Store
from redmeter.store.query import run
from support.stores import OpenMeter

ROUTES = ("/", "/cart", "/search", "a=b,{c}")


@pytest.fixture
def meter(open_meter: OpenMeter) -> Meter:
    """Requests of some routes, in several slices, with series beside them."""
    meter = open_meter()
    now = int(store_of(meter).read()[0].now)
    for at, route in enumerate(ROUTES):
        for status in ("2xx", "5xx"):
            labels = {"route": route, "status": status}
            for ago in (0, 60, 180):
                meter.count("requests", 10**at, labels=labels, at=now - ago)
        for number in range(20):
            meter.observe("seconds", (at + 1) * number / 10, labels={"route": route}, at=now - 60)
    meter.count("requests", 7, at=now)  # without labels
    meter.count("requests2", 1000, at=now)
    meter.observe("seconds", 500.0, at=now)
    meter.observe("seconds2", 9999.0, at=now)
    return meter


def store_of(meter: Meter) -> Store:
    """Return the store of a meter."""
    assert meter._store is not None
    return meter._store


def added(meter: Meter, names: list[str]) -> list[int]:
    """Return what single series add up to, by slices up to the newest."""
    found = meter.series_of(names, precision=60)
    longest = max(len(series) for series in found.values())
    columns = [[0] * (longest - len(s)) + list(s.values) for s in found.values()]
    return [sum(column) for column in zip(*columns, strict=True)]


def test_counters_are_added_up_by_a_label(meter: Meter) -> None:
    """The busiest value first, None for those without it; names that only begin so are others."""
    store = store_of(meter)
    _, found = run(store, lambda _: by_label(store.keys, "requests", "route", 60))
    assert list(found.series) == [ROUTES[3], ROUTES[2], ROUTES[1], None, ROUTES[0]] or list(
        found.series
    ) == [ROUTES[3], ROUTES[2], ROUTES[1], ROUTES[0], None]
    assert found.of == 5
    for at, route in enumerate(ROUTES):
        series = found.series[route]
        names = [name for name in meter.names("requests*") if f'route="{route}"' in name]
        assert len(names) == 2
        assert list(series.values) == added(meter, names)
        assert sum(series.values) == 6 * 10**at
        assert series.partial
        assert series.start == meter.series(names[0], precision=60).start
        assert series.start + 60 * len(series) == found.end
    assert list(found.series[None].values) == [7]


def test_all_label_sets_are_one(meter: Meter) -> None:
    """With those without labels."""
    store = store_of(meter)
    _, found = run(store, lambda _: by_label(store.keys, "requests", None, 60))
    (series,) = found.series.values()
    names = [name for name in meter.names("requests*") if name != "requests2"]
    assert list(series.values) == added(meter, names)
    assert found.of == 1


def test_a_window_and_a_limit_hold(meter: Meter) -> None:
    """Of values beyond the limit it is told how many there are."""
    store = store_of(meter)
    now = store.read()[0].now
    _, found = run(
        store,
        lambda _: by_label(store.keys, "requests", "route", 60, since=now - 60, limit=2),
    )
    assert (len(found.series), found.of) == (2, 5)
    assert [len(series) for series in found.series.values()] == [2, 2]
    assert found.end - found.start == 120


def test_nothing_of_a_name_is_nothing(meter: Meter) -> None:
    """No error."""
    store = store_of(meter)
    _, found = run(store, lambda _: by_label(store.keys, "nothing", "route", 60))
    assert (found.series, found.of) == ({}, 0)
    (summary,) = run(store, lambda _: summaries_of(store.keys, ["nothing"], 60, merge=True))[1]
    assert summary.count == 0


@pytest.mark.parametrize("where", [None, {"route": "/cart"}])
def test_summaries_of_several_names_are_those_of_each(
    meter: Meter, where: dict[str, str] | None
) -> None:
    """Merged over label sets, or by themselves."""
    store = store_of(meter)
    found = run(
        store,
        lambda _: summaries_of(store.keys, ["seconds", "seconds2"], 60, merge=True, where=where),
    )[1]
    for one in found:
        single = meter.summary(one.name, precision=60, labels=where, all_labels=True)
        assert one.count == single.count
        assert one.buckets() == single.buckets()
        assert one.over_time().values == single.over_time().values
    (plain,) = run(store, lambda _: summaries_of(store.keys, ["seconds"], 60, merge=False))[1]
    assert plain.count == 1


def test_what_is_too_much_is_refused(meter: Meter, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the number that is allowed, before all of it is read."""
    store = store_of(meter)
    monkeypatch.setattr(labelled, "MAX_ADDED", 3)
    monkeypatch.setattr(labelled, "MAX_MERGED", 3)
    with pytest.raises(LimitExceeded, match="at most 3"):
        run(store, lambda _: by_label(store.keys, "requests", "route", 60))
    with pytest.raises(LimitExceeded, match="at most 3"):
        run(store, lambda _: summaries_of(store.keys, ["seconds"], 60, merge=True))


def test_a_precision_that_is_not_kept_is_refused(meter: Meter) -> None:
    """With those that are."""
    store = store_of(meter)
    with pytest.raises(UnknownPrecision):
        run(store, lambda _: by_label(store.keys, "requests", "route", 61))
    with pytest.raises(UnknownPrecision):
        run(store, lambda _: summaries_of(store.keys, ["seconds"], 61, merge=True))
    with pytest.raises(UnknownPrecision):
        run(store, lambda _: summaries_of(store.keys, ["seconds"], 61, merge=False))
