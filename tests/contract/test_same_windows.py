"""One rule of windows, for every reader: [since, until), in whole intervals, and what is missing.

A reader that is listed in READERS answers these questions as all others do.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, NamedTuple

import httpx
import pytest

from redmeter import InvalidValue, Meter
from redmeter.clock import ManualClock
from redmeter.dashboard import Dashboard
from redmeter.results import CoveredWindow
from redmeter.testing import MemoryMeter
from support.asking import asking
from support.invoking import Run, invoking
from support.servers import Server
from support.stores import server_time

HOUR = 3600


class World(NamedTuple):
    """The same events in a store and in memory, and the ways to ask for them."""

    store: Meter
    memory: MemoryMeter
    redmeter: Run
    http: httpx.Client
    #: Start of the hour that has 600 events; the hours around it have others.
    hour: int


class Answer(NamedTuple):
    """The events within a window, and the window that is covered; None if a reader has none."""

    events: float
    window: dict[str, Any] | None


@pytest.fixture
def world(any_server: Server, client: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Record 600 events within an hour that is over, one every six seconds, and others around."""
    now = server_time(client)
    hour = int(now) // HOUR * HOUR - 3 * HOUR
    memory = MemoryMeter(clock=ManualClock(now))
    monkeypatch.setenv("REDMETER_URL", any_server.url)
    with Meter(any_server.url) as store:
        for meter in (store, memory):
            for at in range(hour - 60, hour + HOUR + 60, 6):
                meter.count("orders", at=at)
                if at % 60 == 0:
                    meter.observe("seconds", 1.0, at=at)
            meter.count("orders", 50)
            assert meter.flush()
        dashboard = Dashboard(any_server.url, access="open")
        with asking(dashboard) as http, invoking() as run:
            yield World(store, memory, run, http, hour)
        dashboard.close()


Reader = Callable[..., Answer]


def python(method: str, name: str, *, memory: bool = False) -> Reader:
    """Return what asks a method of Meter, or of MemoryMeter."""

    def ask(world: World, **options: Any) -> Answer:
        meter = world.memory if memory else world.store
        found = getattr(meter, method)([name] if method.endswith("many") else name, **options)
        if method.endswith("many"):
            found = found[name]
        if method == "top":
            return Answer(sum(row.count for row in found), asdict(found.window))
        return Answer(
            getattr(found, "count", 0) if name == "seconds" else found.total, asdict(found.window)
        )

    return ask


def words(options: dict[str, Any]) -> list[str]:
    """Return options of the command."""
    return [text for key, value in options.items() for text in (f"--{key}", str(value))]


def command(kind: str, name: str) -> Reader:
    """Return what asks the command for JSON."""

    def ask(world: World, **options: Any) -> Answer:
        done = world.redmeter(kind, name, "--json", *words(options))
        assert done.code in (0, 1), done.err
        return of_json(json.loads(done.out))

    return ask


def api(kind: str, name: str) -> Reader:
    """Return what asks the HTTP API."""

    def ask(world: World, **options: Any) -> Answer:
        answer = world.http.get(f"/api/{kind}", params={"name": name, **options})
        assert answer.status_code == 200, answer.text
        return of_json(answer.json())

    return ask


def of_json(found: dict[str, Any]) -> Answer:
    """Return what an answer in JSON has."""
    if "rows" in found:
        return Answer(sum(row["count"] for row in found["rows"]), found["window"])
    (part,) = found.get("series") or found.get("summaries") or [found]
    window = found.get("window") or part["window"]
    if "count" in part:
        return Answer(part["count"], window)
    values = [v for _, v in part["samples"]] if "samples" in part else part["values"]
    return Answer(sum(values), window)


def exported(world: World, **options: Any) -> Answer:
    """Ask an export."""
    done = world.redmeter("export", "orders", "--kind", "counter", *words(options))
    assert done.code in (0, 1), done.err
    rows = list(csv.DictReader(io.StringIO(done.out)))
    return Answer(sum(float(row["value"]) for row in rows), None)


def explained(world: World, **options: Any) -> Answer:
    """Ask for an explanation."""
    done = world.redmeter("explain", "orders", "--json", *words(options))
    assert done.code in (0, 1), done.err
    return Answer(json.loads(done.out)["count"], None)


def listed(world: World, **options: Any) -> Answer:
    """Ask the list of the page."""
    answer = world.http.get("/api/metrics", params={"pattern": "orders", **options})
    assert answer.status_code == 200, answer.text
    (row,) = answer.json()["rows"]
    return Answer(row["count"], None)


def detailed(world: World, **options: Any) -> Answer:
    """Ask the page of one histogram, whose distribution is that of the window."""
    answer = world.http.get("/api/detail", params={"name": "seconds", **options})
    assert answer.status_code == 200, answer.text
    return Answer(answer.json()["summary"]["count"], None)


def queried(world: World, **options: Any) -> Answer:
    """Ask PromQL, at the end of the window, whose ends are edges."""
    since, until = options["since"], options["until"]
    found = world.store.query(f"increase(orders_total[{until - since}s])", at=until)
    return Answer(round(float(str(found.series[0].samples[0].value))), None)


#: Readers of counters, and of histograms.
READERS: dict[str, Reader] = {
    "series": python("series", "orders"),
    "series_many": python("series_many", "orders"),
    "top": python("top", "orders"),
    "memory series": python("series", "orders", memory=True),
    "memory series_many": python("series_many", "orders", memory=True),
    "memory top": python("top", "orders", memory=True),
    "command series": command("series", "orders"),
    "command top": command("top", "orders"),
    "api series": api("series", "orders"),
    "api top": api("top", "orders"),
}
OF_HISTOGRAMS: dict[str, Reader] = {
    "summary": python("summary", "seconds"),
    "summary_many": python("summary_many", "seconds"),
    "memory summary": python("summary", "seconds", memory=True),
    "memory summary_many": python("summary_many", "seconds", memory=True),
    "command summary": command("summary", "seconds"),
    "api summary": api("summary", "seconds"),
}
#: Readers whose answers name their window in another way.
OTHERS: dict[str, Reader] = {
    "export": exported,
    "explain": explained,
    "page": listed,
    "PromQL": queried,
}


def test_all_readers_count_the_same_events(world: World) -> None:
    """Those of exactly one hour; an interval that begins at the end does not belong to it."""
    window = {"since": world.hour, "until": world.hour + HOUR}
    for precision in (300, HOUR):
        for name, ask in (READERS | OTHERS).items():
            options = window if name == "PromQL" else window | {"precision": precision}
            answer = ask(world, **options)
            assert answer.events == 600, (name, precision)
            if answer.window is not None:
                expected = CoveredWindow(precision, world.hour, world.hour + HOUR)
                assert answer.window == asdict(expected), name
    assert detailed(world, **window, precision=HOUR).events == 60
    for name, ask in OF_HISTOGRAMS.items():
        answer = ask(world, **window, precision=HOUR)
        expected = CoveredWindow(HOUR, world.hour, world.hour + HOUR)
        assert answer == (60, asdict(expected)), name


def test_ends_within_intervals_cover_never_less(world: World) -> None:
    """The start is floored and the end ceiled to the edges of the precision."""
    window = {"since": world.hour + 1, "until": world.hour + HOUR - 1, "precision": HOUR}
    for name, ask in (READERS | {"export": exported, "page": listed}).items():
        assert ask(world, **window).events == 600, name


def test_two_adjoining_windows_have_each_event_once(world: World) -> None:
    """No interval belongs to both."""
    middle = world.hour + 1800
    for name, ask in (READERS | {"export": exported, "page": listed}).items():
        halves = [
            ask(world, since=since, until=until, precision=300).events
            for since, until in ((world.hour, middle), (middle, world.hour + HOUR))
        ]
        assert halves == [300, 300], name


def test_what_is_no_longer_kept_is_said(world: World) -> None:
    """Since when, and which precision keeps all of it."""
    wanted = world.hour - 30 * HOUR
    for name, ask in READERS.items():
        window = ask(world, since=wanted, precision=300).window
        assert window is not None
        assert window["since"] > wanted, name
        assert (window["requested"], window["reaching"]) == (wanted, HOUR), name
        assert window["running"]
        window = ask(world, last="40h", precision=300).window
        assert window is not None
        assert window["requested"] < window["since"], name
        assert window["reaching"] == HOUR, name
        window = ask(world, last="1h", precision=300).window
        assert window is not None
        assert (window["requested"], window["reaching"]) == (None, None), name


def test_the_command_says_what_it_left_out(world: World) -> None:
    """One line, on standard error, that names the precision."""
    line = (
        r"intervals of 5m are kept since [-0-9]+ [0-9:]+ UTC, not since [-0-9]+ [0-9:]+ UTC: "
        r"-p 1h reaches back to the start\n"
    )
    for kind in ("series", "top", "export"):
        done = world.redmeter(kind, "orders", "-p", "5m", "--since", str(world.hour - 30 * HOUR))
        assert done.code == 0
        assert re.search(line, done.err), kind
    done = world.redmeter("series", "orders", "-p", "1h", "--since", str(world.hour))
    assert (done.code, done.err) == (0, "")


def test_without_a_precision_the_finest_that_keeps_the_window_is_read(world: World) -> None:
    """And without any time, the last hour."""
    for name, ask in READERS.items():
        found = ask(world, since=world.hour, until=world.hour + HOUR)
        assert found.events == 600, name
        assert found.window is not None
        assert found.window["precision"] == 300, name
        hour = ask(world).window
        assert hour is not None
        assert (hour["precision"], hour["until"] - hour["since"]) == (60, HOUR), name
    for name, ask in OF_HISTOGRAMS.items():
        found = ask(world, since=world.hour, until=world.hour + HOUR)
        assert found.events == 60, name
        assert found.window is not None
        assert found.window["precision"] == HOUR, name


def test_a_bare_number_is_a_number_of_intervals(world: World) -> None:
    """It needs a width, or a unit."""
    for name, ask in READERS.items():
        for last in (2, "2", "10m"):
            window = ask(world, last=last, precision=300).window
            assert window is not None
            assert window["until"] - window["since"] == 600, name
    for meter in (world.store, world.memory):
        with pytest.raises(InvalidValue, match="of which width"):
            meter.series("orders", last=24)
    done = world.redmeter("series", "orders", "--last", "24")
    assert (done.code, "--last: 24 intervals of which width" in done.err) == (2, True)
    answer = world.http.get("/api/series", params={"name": "orders", "last": "24"})
    assert (answer.status_code, "of which width" in answer.text) == (400, True)
