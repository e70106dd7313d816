"""The current value of a gauge, read just after an interval began: alike in all readers."""

import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from redmeter.clock import ManualClock
from redmeter.dashboard import Dashboard
from redmeter.export.exposition import Format
from redmeter.reading.export.scrape import Scraper
from redmeter.store.producers import INSTANCE_SECONDS
from redmeter.testing import MemoryMeter
from support.asking import asking
from support.invoking import invoking
from support.pages import read_overview
from support.servers import Server
from support.stores import OpenMeter, OpenStore, measure, server_time

pytestmark = pytest.mark.servers

#: Reads the current value of a gauge.
Current = Callable[[str], float | None]


def just_begun(client: Any) -> tuple[float, int]:
    """Return the time, and a precision whose running interval began a second or two ago."""
    while True:  # there is none in some seconds
        now = server_time(client)
        widths = (width for width in range(600, 1_000_000) if int(now) % width in (1, 2))
        if width := next(widths, 0):
            return now, width
        time.sleep(1.0)


def readers_of(open_meter: OpenMeter, open_store: OpenStore, url: str, width: int) -> Any:
    """Return the readers of a store, by name."""
    meter, store = open_meter(), open_store()

    def newest(found: Any) -> float | None:
        """Return the last value of the only series of a document."""
        (part,) = found.get("series", [found])
        values = part.get("values", [value for _, value in part.get("samples", ())])
        return values[-1] if values else None

    def command(name: str) -> float | None:
        with invoking() as run:
            done = run("series", name, "--json", "--precision", str(width), REDMETER_URL=url)
            return newest(json.loads(done.out))

    def api(name: str) -> float | None:
        options: dict[str, str | int] = {"name": name, "kind": "gauge", "precision": width}
        with asking(Dashboard(url, access="open")) as client:
            return newest(client.get("/api/series", params=options).json())

    def promql(name: str) -> float | None:
        found = meter.query(f"sum({name})").series
        return found[0].samples[0].value if found else None  # type: ignore[return-value]

    def scraped(name: str) -> float | None:
        text = Scraper(store).scrape(Format()).decode()
        values = re.findall(rf"^{name}(?:{{.*}})? (\S+)", text, re.MULTILINE)
        return sum(map(float, values)) if values else None

    def last(values: Any) -> float | None:
        return values[-1] if values else None

    whole: dict[str, Current] = {
        "samples": lambda name: last(meter.gauge_series(name, precision=width).values),
        "aggregated": lambda name: last(
            meter.gauge_series(name, aggregate="sum", precision=width).values
        ),
        "forecast": lambda name: meter.forecast(name, precision=width).running,
        "command": command,
        "api": api,
        "promql": promql,
        "metrics": scraped,
    }
    exact: dict[str, Current] = {
        "exact": lambda name: last(meter.gauge_series(name, exact=True, precision=width).values),
        "many": lambda name: last(
            meter.gauge_series_many([name], precision=width)[name].values,
        ),
        "page": lambda name: last(read_overview(store, width, series=[name]).chart[0].values),
    }
    return whole, exact


@pytest.mark.parametrize("age", [3, 55, 100, INSTANCE_SECONDS - 15])
def test_every_reader_has_it_before_the_interval_has_a_sample(
    client: Any, any_server: Server, open_store: OpenStore, open_meter: OpenMeter, age: int
) -> None:
    """A value that set() set, and the sum of the parts of live processes."""
    now, width = just_begun(client)
    store = open_store(retention={60: 120, width: 120})
    for producer in ("a", "b", "ended"):
        store.publish(producer, "{}", instance=True, ended=False)
    store.publish("ended", "{}", instance=True, ended=True)
    measure(store, {"depth": 17.0}, now - age)
    for number, value in (("0", 1.0), ("1", 2.0)):
        measure(store, {f'jobs{{instance="{number}"}}': value}, now - age)
    measure(store, {'jobs{instance="2"}': 4.0}, now - max(age, 70))
    memory = MemoryMeter(clock=ManualClock(now - age), retention={60: 120, width: 120})
    memory.gauge("depth").set(17)
    memory.gauge("jobs").inc(3)
    memory.clock.advance(age)
    whole, exact = readers_of(open_meter, open_store, any_server.url, width)
    assert {reader: read("depth") for reader, read in (whole | exact).items()} == dict.fromkeys(
        whole | exact, 17.0
    )
    assert {reader: read("jobs") for reader, read in whole.items()} == dict.fromkeys(whole, 3.0)
    for name, value in (("depth", 17.0), ("jobs", 3.0)):
        assert memory.gauge_series(name, precision=width).values[-1] == value
        (series,) = memory.gauge_series_many(
            [next(iter(memory.names(f"{name}*", kind="gauge")))], precision=width
        ).values()
        assert series.values[-1] == value


def test_an_older_value_is_no_current_one(
    client: Any, open_store: OpenStore, open_meter: OpenMeter, any_server: Server
) -> None:
    """The running interval has none then, and neither has a window that ended before it."""
    now, width = just_begun(client)
    age = INSTANCE_SECONDS + 5
    store = open_store(retention={60: 120, width: 120})
    measure(store, {"depth": 17.0}, now - age)
    meter, memory = (
        open_meter(),
        MemoryMeter(clock=ManualClock(now - age), retention={60: 120, width: 120}),
    )
    memory.gauge("depth").set(17)
    memory.clock.advance(age)
    for one in (meter, memory):
        assert one.gauge_series("depth", precision=width).values[-2:] == (17.0, None)
    measure(store, {"depth": 18.0}, now - 10)
    memory.gauge("depth").set(18, at=now - 10)
    for one in (meter, memory):
        assert one.gauge_series("depth", precision=width).values[-2:] == (18.0, 18.0), one
        before = one.gauge_series("depth", precision=width, until=now - 10)
        assert (before.values[-1], before.partial) == (18.0, False)


def test_an_export_has_only_samples_that_are_stored(
    client: Any, any_server: Server, open_store: OpenStore
) -> None:
    """The current value of an interval without a sample is none."""
    now, width = just_begun(client)
    measure(open_store(retention={60: 120, width: 120}), {"depth": 17.0}, now - 10)
    with invoking() as run:
        words = ("export", "depth", "--kind", "gauge", "--precision", str(width))
        done = run(*words, REDMETER_URL=any_server.url)
    assert (done.code, done.out.count("depth")) == (0, 1), done
