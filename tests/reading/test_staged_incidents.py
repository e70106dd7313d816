"""Incidents with a known truth: their status, at each of their ages.

Ten routes with 600 requests a minute, 1 % of which fail. Each figure in the sentence is counted
again from the ledger, and each noun has to be the one that changed.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from redmeter.analysis.comparing.sentences import value_text
from redmeter.results.explanation import Status
from redmeter.testing import MemoryMeter

SHOP = {"/": 180, "/search": 120, "/p": 90, "/cart": 60, "/login": 48, "/checkout": 30}
SHOP |= {"/api": 30, "/me": 30, "/admin": 6, "/hook": 6}
AGES = (4, 12, 25, 90)
#: The running minute, and how many minutes before it are recorded.
END, MINUTES = 1_700_000_040, 360

Share = Callable[[str], float]


def _only(route: str, value: float, other: float) -> Share:
    return lambda each: value if each == route else other


@dataclass(frozen=True)
class Staged:
    """What changes: the measure that shows it, the route that is the cause; "" for all alike."""

    measure: str
    route: str = ""
    #: The factor of a route's requests, and its error rate, since then.
    traffic: Share = lambda _: 1.0
    failing: Share = lambda _: 0.01
    #: The factor of all requests, before and since.
    size: float = 1.0


STAGED = {
    "a large route fails, 30 %": Staged("error rate", "/", failing=_only("/", 0.3, 0.01)),
    "a route of 10 % fails, 12 %": Staged(
        "error rate", "/cart", failing=_only("/cart", 0.12, 0.01)
    ),
    "a route of 1 % fails wholly": Staged("error rate", "/hook", failing=_only("/hook", 1, 0.01)),
    "all fail, 20 %": Staged("error rate", failing=lambda _: 0.2),
    "half of all fail, at 0.4 of the traffic": Staged(
        "error rate", traffic=lambda _: 0.4, failing=lambda _: 0.5
    ),
    "15 requests a minute, all fail": Staged("error rate", failing=lambda _: 1.0, size=0.025),
    "no requests": Staged("requests", traffic=lambda _: 0.0),
    "a third of the traffic": Staged("requests", traffic=lambda _: 0.33),
    "three times the traffic": Staged("requests", traffic=lambda _: 3.0),
    "a route is missing": Staged("requests", "/search", traffic=_only("/search", 0, 1)),
}


@dataclass
class Ledger:
    """Requests and failures by minute and route."""

    rows: dict[tuple[int, str], tuple[int, int]] = field(default_factory=dict)

    def sums(self, since: float, until: float, route: str = "") -> tuple[int, int]:
        """Return requests and failures of a time, of one route or of all."""
        rows = [
            row
            for (at, name), row in self.rows.items()
            if since <= at < until and route in ("", name)
        ]
        return sum(row[0] for row in rows), sum(row[1] for row in rows)


def stage(staged: Staged, age: int) -> tuple[MemoryMeter, Ledger]:
    """Record six hours, the last minutes of them with an incident."""
    meter, ledger = MemoryMeter(), Ledger()
    meter.clock.set_wall(END + 20)
    draw = random.Random(f"{staged.measure} {staged.route} {age}")
    for ago in range(MINUTES, 0, -1):
        at, now = END - 60 * ago, ago <= age
        of, all_failed = 0, 0
        for route, base in SHOP.items():
            mean = base * staged.size * (staged.traffic(route) if now else 1.0)
            count = max(0, round(draw.gauss(mean, mean**0.5)))
            share = staged.failing(route) if now else 0.01
            failed = sum(draw.random() < share for _ in range(count))
            for status, number in (("2xx", count - failed), ("5xx", failed)):
                if number:
                    labels = {"method": "GET", "route": route, "status": status}
                    meter.count("http_requests", number, labels=labels, at=at)
            ledger.rows[at, route] = count, failed
            of, all_failed = of + count, all_failed + failed
        for name, number in (("hits", of), ("hits_failed", all_failed)):
            if number:
                meter.count(name, number, at=at)
    return meter, ledger


def blamed(status: Status) -> list[str]:
    """Return the routes that are named, in their order."""
    return [part.value or "" for part in status.parts if part.kind == "group"]


def assert_figures(status: Status, ledger: Ledger) -> None:
    """Check the figures of everything that is out of its range."""
    for check in status.checks:
        if check.state not in ("high", "low"):
            continue
        assert check.began is not None
        routes: Sequence[tuple[str, float | None]] = [
            (check.labels.get("route", ""), check.value),
            *((one.value or "", one.after) for one in check.causes),
        ]
        for route, value in routes:
            of, failed = ledger.sums(check.since or status.since, status.until, route)
            truth = of if check.measure == "requests" else failed / of
            assert value == pytest.approx(truth), (check, route)
        assert check.mid is not None
        of, failed = ledger.sums(check.against_since, check.began, check.labels.get("route", ""))
        minutes = (check.began - check.against_since) / 60
        usual = 5 * of / minutes if check.measure == "requests" else failed / of
        assert check.mid == pytest.approx(usual, rel=0.35, abs=0.003), check
        assert value_text(check.mid, check.unit) in status.sentence


@pytest.mark.parametrize("age", AGES)
@pytest.mark.parametrize("title", STAGED)
def test_the_status_of_an_incident_is_true_as_long_as_it_lasts(title: str, age: int) -> None:
    """The measure, the cause, the beginning and each figure."""
    staged = STAGED[title]
    meter, ledger = stage(staged, age)
    status = meter.status()
    assert status.state == "unusual"
    bad = [check for check in status.checks if check.state in ("high", "low")]
    mine = [check for check in bad if check.measure == staged.measure]
    assert mine, status.sentence
    assert_figures(status, ledger)
    if staged.route:
        assert set(blamed(status)) == {staged.route}, status.sentence
    else:
        assert mine[0].everywhere, status.sentence
        assert not blamed(status), status.sentence
        assert ", in all routes" in status.sentence
    began = END - 60 * age
    assert mine[0].began == pytest.approx(began, abs=max(120, 6 * age)), status.sentence
    minutes = re.search(r" for (\d+) min", status.sentence)
    assert minutes, status.sentence
    assert int(minutes[1]) == pytest.approx(age, abs=max(2, age / 10))
    expected = {"error rate", "requests"} - {check.measure for check in bad if not check.labels}
    for measure in expected:
        if not (staged.measure == "requests" and not ledger.sums(status.since, status.until)[0]):
            check = next(one for one in status.checks if one.measure == measure)
            assert check.state == "usual", check


@pytest.mark.parametrize("ago", [4, 10, 20])
def test_an_incident_that_is_over_is_in_the_past_tense(ago: int) -> None:
    """With its own figures and its end; the last minutes are as expected."""
    meter, ledger = MemoryMeter(), Ledger()
    meter.clock.set_wall(END + 20)
    draw = random.Random(ago)
    for minute in range(300, 0, -1):
        at = END - 60 * minute
        share = 0.13 if ago < minute <= ago + 25 else 0.01
        count = round(draw.gauss(600, 24))
        failed = sum(draw.random() < share for _ in range(count))
        ledger.rows[at, "/"] = count, failed
        meter.count("hits", count, at=at)
        meter.count("hits_failed", failed, at=at)
    status = meter.status()
    assert status.state == "usual", status.sentence
    check = status.checks[1]
    assert check.ended == pytest.approx(END - 60 * ago, abs=120)
    assert check.began is not None
    of, failed = ledger.sums(check.began, check.ended or 0)
    assert check.value == pytest.approx(failed / of)
    assert re.search(
        r"Error rate was 1\d\.?\d* % for 2\d min until \d\d:\d\d \(usually [01]", status.sentence
    )


def test_two_missing_minutes_are_no_fall() -> None:
    """They may come late."""
    for missing in ((1, 2), (3, 4)):
        meter = MemoryMeter()
        meter.clock.set_wall(END + 20)
        for minute in range(180, 0, -1):
            if minute not in missing:
                meter.count("hits", 600 + minute % 7, at=END - 60 * minute)
        status = meter.status()
        assert status.checks[0].state == "usual", status.sentence


def test_an_application_that_stopped_long_ago_has_no_requests() -> None:
    """By the hour, where minutes are not known any more."""
    meter = MemoryMeter()
    meter.clock.set_wall(END + 20)
    for minute in range(30 * 60, 11 * 60, -1):
        meter.count("hits", 600 + minute % 7, at=END - 60 * minute)
    status = meter.status()
    assert re.match(r"No requests for about 11 h \(usually 3,0\d\d in 5 min\)", status.sentence), (
        status
    )
    assert "Error rate not judged: no requests." in status.sentence


def test_a_mark_is_blamed_only_for_what_begins_with_it() -> None:
    """Not for a change that began long before it, nor the later one of two."""
    for marks, named in (((4,), None), ((13,), "v13"), ((13, 4), "v13"), ((30,), None)):
        meter, _ = stage(STAGED["a large route fails, 30 %"], 12)
        for ago in marks:
            meter.mark(f"v{ago}", at=END - 60 * ago)
        check = meter.status().checks[1]
        assert (check.mark and check.mark.label) == named, marks


def test_a_clock_that_is_ahead_is_named() -> None:
    """Its minutes are in the future."""
    meter, _ = stage(Staged("requests"), 0)
    meter.count("hits", 10, at=END + 600)
    status = meter.status()
    assert "A writer's clock is 10 min ahead." in status.sentence
    assert status.state == "usual"


@pytest.mark.parametrize(("hours", "note_is"), [(12, "low"), (25, "new"), (40, "")])
def test_traffic_that_has_held_for_a_day_is_the_new_usual(hours: int, note_is: str) -> None:
    """It is low until then, is named once, and is as expected from then on."""
    meter = MemoryMeter()
    end = END // 3600 * 3600 + 600
    meter.clock.set_wall(end + 20)
    draw = random.Random(hours)
    for minute in range(6 * 1440, 0, -1):
        mean = 600 * (0.3 if minute <= 60 * hours else 1)
        meter.count("hits", round(draw.gauss(mean, mean**0.5)), at=end - 60 * minute)
    status = meter.status()
    check = status.checks[0]
    note = re.search(
        r"Requests 1[78]\d a minute since \w+day \d\d:\d\d, before (60\d|59\d)\.", status.sentence
    )
    if note_is == "low":
        assert check.state == "low"
        assert " for about 12 h" in status.sentence, status.sentence
    else:
        assert check.state == "usual", status.sentence
    assert bool(note) == (note_is == "new"), status.sentence
