"""Forecasts from what is stored: in one round trip, as of a meter in memory."""

import json
from typing import Any

import pytest

from redmeter import LimitExceeded, Meter, StoreRefused, UnknownPrecision
from redmeter.clock import ManualClock
from redmeter.dashboard import Dashboard
from redmeter.reading.aggregates import read_forecasts
from redmeter.results import Forecast
from redmeter.store.query import run_query, together
from redmeter.stored.keys import slice_start
from redmeter.testing import MemoryMeter
from redmeter.types import Selection
from support.asking import asking
from support.invoking import invoking
from support.servers import Server
from support.stores import OpenMeter, OpenStore, exchanges, server_time

HOUR = 3600


def put(client: Any, name: str = "x", slices: int = 60) -> int:
    """Write a counter by the hour as another program would; return the running hour's start."""
    newest = slice_start(server_time(client), HOUR)
    counts = {newest - at * HOUR: 100 + at * 7 % 13 for at in range(slices)}
    client.hset(f"redmeter:count:3600:{name}", mapping={str(k): v for k, v in counts.items()})
    client.zadd("redmeter:known:", {f"3600:{name}": 0})
    return newest


def test_a_forecast_begins_with_the_running_slice(client: Any, open_meter: OpenMeter) -> None:
    """What is over is judged, what runs is told as it stands, and comes first of those ahead."""
    newest = put(client)
    found = open_meter().forecast("x", precision=HOUR, ahead=3)
    assert (found.name, found.kind, found.precision) == ("x", "counter", HOUR)
    assert (found.reason, found.level, found.running) == ("", 0.95, 100.0)
    assert [one.start for one in found.ahead] == [newest + at * HOUR for at in range(3)]
    assert found.past[-1].start == newest - HOUR
    assert all(90 <= one.low <= one.mid <= one.high <= 125 for one in found.ahead)


def test_a_forecast_takes_one_round_trip(
    client: Any, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever kind it is of; and together with other questions none of its own."""
    put(client)
    store = open_store()
    store.read()
    with exchanges(monkeypatch) as seen:
        _, one = run_query(store, lambda _: read_forecasts(store.keys, Selection("x"), HOUR))
        assert one[0][1].ahead
        assert len(seen) == 1
        _, found = run_query(
            store,
            lambda _: together([read_forecasts(store.keys, Selection("x"), HOUR) for _ in "123"]),
        )
        assert len(seen) == 2
    assert found == [one] * 3


def test_a_gauge_is_forecast_where_there_is_no_such_counter(
    client: Any, open_meter: OpenMeter
) -> None:
    """Gaps are left out; a counter of the name goes before it."""
    meter = open_meter()
    newest = slice_start(server_time(client), 60)
    values = {newest - at * 60: f"{20 + at % 3} {newest - at * 60 + 1}" for at in range(1, 40)}
    del values[newest - 60 * 5]
    client.hset("redmeter:gauge:60:x", mapping={str(k): v for k, v in values.items()})
    found = meter.forecast("x", precision=60)
    assert (found.kind, found.running, found.reason) == ("gauge", 21.0, "")
    assert newest - 60 * 5 not in [one.start for one in found.past]
    assert all(18 <= one.low <= one.high <= 24 for one in found.ahead)
    meter.count("x")
    assert meter.forecast("x", precision=60).kind == "counter"


def test_where_nothing_is_kept_the_reason_is_said(client: Any, open_meter: OpenMeter) -> None:
    """Of a name that never was, of a young one, and by a meter that is off."""
    meter = open_meter()
    none = meter.forecast("x", precision=HOUR)
    assert (none.reason, none.ahead) == ("no complete interval of 1h is stored", ())
    put(client, slices=5)
    assert meter.forecast("x", precision=HOUR).reason.startswith("4 complete ")
    assert Meter("off").forecast("x", precision=HOUR) == none


def test_what_cannot_be_asked_is_refused(client: Any, open_meter: OpenMeter) -> None:
    """In memory as by a store."""
    for meter in (open_meter(), MemoryMeter()):
        with pytest.raises(UnknownPrecision):
            meter.forecast("x", precision=7)
        for ahead in (0, -1, 49, 10**30):
            with pytest.raises(LimitExceeded, match="at most 48 are allowed"):
                meter.forecast("x", precision=HOUR, ahead=ahead)
        for wrong in (1.5, True, "3"):
            with pytest.raises(TypeError, match="ahead is a whole number"):
                meter.forecast("x", precision=HOUR, ahead=wrong)  # type: ignore[arg-type]


def test_what_another_program_keeps_there_is_an_error(client: Any, open_meter: OpenMeter) -> None:
    """Unless the other kind can be read."""
    client.set("redmeter:count:3600:x", "theirs")
    with pytest.raises(StoreRefused):
        open_meter().forecast("x", precision=HOUR)


def test_a_meter_in_memory_forecasts_the_same(client: Any, open_meter: OpenMeter) -> None:
    """Of the same counts at the same times."""
    clock = ManualClock(server_time(client))
    found: list[Forecast] = []
    for meter in (open_meter(clock=clock), MemoryMeter(clock=clock)):
        for at in range(1, 40):
            meter.count("x", 50 + at % 7, at=clock.wall() - at * 86400)
        found.append(meter.forecast("x", precision=86400))
    real, memory = found
    assert len(real.past) > 20
    assert (real.past, real.ahead, real.reason) == (memory.past, memory.ahead, "")


def test_a_window_limits_the_past_alone(
    client: Any, open_meter: OpenMeter, any_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The forecast is made of all that is kept; alike for all readers."""
    newest = put(client)
    meter = open_meter()
    whole = meter.forecast("x", precision=HOUR)
    day = {"since": newest - 24 * HOUR, "until": newest - 12 * HOUR}
    monkeypatch.setenv("REDMETER_URL", any_server.url)
    dashboard = Dashboard(any_server.url, access="open")
    with invoking() as run, asking(dashboard) as http:
        windows: list[tuple[dict[str, Any], range]] = [
            (day, range(newest - 24 * HOUR, newest - 12 * HOUR, HOUR)),
            ({"last": "12h"}, range(newest - 11 * HOUR, newest, HOUR)),
            ({"last": 12}, range(newest - 11 * HOUR, newest, HOUR)),
        ]
        for window, starts in windows:
            cut = meter.forecast("x", precision=HOUR, **window)
            assert [one.start for one in cut.past] == [*starts]
            assert cut.ahead == whole.ahead
            words = [word for key, value in window.items() for word in (f"--{key}", str(value))]
            shown = json.loads(run("forecast", "x", "-p", "1h", "--json", *words).out)
            answer = http.get("/api/forecast", params={"name": "x", **window}).json()
            for document in (shown, answer):
                assert [one["start"] for one in document["past"]] == [*starts]
                assert [one["start"] for one in document["ahead"]] == [
                    one.start for one in whole.ahead
                ]
    dashboard.close()
