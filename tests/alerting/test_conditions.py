"""Conditions over data in memory, and over a real server when rules are replayed."""

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter import Meter
from redmeter.alerting.conditions import RuleReader, end_of, window_precision
from redmeter.alerting.evaluator import replay_rule
from redmeter.alerting.rules import Rule
from redmeter.alerting.rules_file import parse_rules
from redmeter.alerting.state import Reading
from redmeter.queries import Queries
from redmeter.store import Store
from support.servers import Server

NOW = time.time()
SERIES = {1: 120, 5: 120, 60: 120, 300: 120, 3600: 120, 86400: 120}


def rule(when: str, **fields: Any) -> Rule:
    """Return a rule."""
    return Rule("a", when, **fields)


@pytest.fixture
def conditions(store: Store) -> RuleReader:
    """Conditions over the store."""
    kept = store.config().kept
    return RuleReader(Queries(store), kept.series, kept.histograms)


def read(conditions: RuleReader, wanted: Rule, ago: float = 0.0) -> Reading:
    """Evaluate a rule for now, or for a time before."""
    now = time.time()
    found = conditions.read(wanted, now - ago, now)
    return found.values.get(None, found.others)


@given(st.sampled_from([60, 300, 600, 3600, 7200, 90]), st.floats(0, 1e6))
def test_a_window_is_read_with_the_finest_intervals_that_are_kept(window: int, ago: float) -> None:
    """Of a precision that divides it, and of which all intervals of the window are kept."""
    now = 1_700_000_000.0
    found = window_precision(SERIES, window, now - ago, now)
    for precision, kept in SERIES.items():
        since = end_of(now - ago, precision) - window
        fits = window % precision == 0 and since > now - (kept + 1) * precision
        if found is None or precision < found:
            assert not fits or since <= now - kept * precision
    if found is not None:
        assert window % found == 0
        assert end_of(now - ago, found) - window >= now - SERIES[found] * found


def test_rates_ratios_and_absence(meter: Meter, conditions: RuleReader) -> None:
    """Over the complete intervals of the window, the newest few seconds left out."""
    for minute in range(8):
        at = time.time() - 60 * minute - 30
        meter.count("requests", 90, labels={"status": "2xx"}, at=at)
        meter.count("requests", 10, labels={"status": "5xx"}, at=at)
    meter.count("requests", 10_000)  # not complete yet
    rate = read(conditions, rule("threshold", metric="requests", above=1.0, window=300))
    assert rate.value == pytest.approx(5 * 100 / 300)
    assert rate.holds
    assert "intervals of 5 s" in rate.detail
    failing = {"metric": 'requests{status="5xx"}', "of": "requests"}
    assert read(conditions, rule("ratio", **failing, above=0.05)).value == pytest.approx(0.1)
    assert not read(conditions, rule("ratio", **failing, above=0.2)).holds
    few = read(conditions, rule("ratio", **failing, above=0.05, at_least=1000))
    assert few.holds is False
    assert "fewer than at_least" in few.detail
    slow = rule("threshold", metric="work_seconds", value="p95", above=0.2, window=300)
    meter.observe("work_seconds", 0.188601, at=time.time() - 90)
    assert re.search(r" is 1[89]\d ms \(", read(conditions, slow).detail)
    share = read(conditions, rule("ratio", **failing, above=0.05)).detail
    assert share.startswith("10 %: 50 of 500 in ")
    assert read(conditions, rule("absent", metric="orders", window=600)).holds
    assert read(conditions, rule("absent", metric="requests", window=600)).holds is False
    quick = ((3600, 300, 8.0),)
    burn = read(conditions, rule("burn", **failing, objective=0.99, windows=quick))
    assert burn.holds
    assert burn.value == pytest.approx(10.0)
    usual = read(conditions, rule("burn", **failing, objective=0.99))
    assert "over 6 h and 30 min" in usual.detail
    assert not read(conditions, rule("burn", **failing, objective=0.5)).holds


def test_percentiles_and_gauges(meter: Meter, conditions: RuleReader) -> None:
    """A window without a value does not hold."""
    for minute in range(2, 8):
        at = time.time() - 60 * minute
        meter.observe("seconds", 2.0, at=at)
        meter.gauge("queue").set(float(minute), at=at)
    slow = rule("threshold", metric="seconds", value="p95", above=1.0)
    assert read(conditions, slow).value == pytest.approx(2.0, rel=0.03)
    assert read(conditions, slow).holds
    low = rule("threshold", metric="queue", value="min", below=3.5, clear=7)
    assert read(conditions, low).holds
    assert not read(conditions, low).clears
    nothing = read(conditions, rule("threshold", metric="none", value="p99", above=1.0))
    assert nothing == Reading(False, None, "no values in 5 min")


def test_a_label_that_no_series_has_is_no_data(meter: Meter, conditions: RuleReader) -> None:
    """Unknown, so nothing fires and nothing resolves; only `absent` holds, as without events."""
    at = time.time() - 90
    meter.count("requests", 100, labels={"status": "2xx"}, at=at)
    meter.observe("seconds", 2.0, labels={"status": "2xx"}, at=at)
    meter.gauge("queue", labels={"status": "2xx"}).set(4, at=at)
    typo, text = '{statu="5xx"}', "no data: no series of 'requests' has the label statu"
    for misspelled in (
        rule("threshold", metric=f"requests{typo}", below=1.0),
        rule("threshold", metric=f"seconds{typo}", value="p95", above=1.0),
        rule("threshold", metric=f"queue{typo}", value="max", above=1.0),
        rule("ratio", metric=f"requests{typo}", of="requests", above=0.1),
        rule("ratio", metric="requests", of="requests", by="statu", above=0.1),
        rule("burn", metric=f"requests{typo}", of="requests", objective=0.9),
        rule("expected", metric=f"requests{typo}", precision=60),
        rule("absent", metric="requests", by="statu"),
    ):
        reading = read(conditions, misspelled)
        name = misspelled.metric.partition("{")[0]
        assert reading.holds is None, misspelled
        assert reading.detail == f"{text.replace('requests', name)}: labels: status"
    absent = read(conditions, rule("absent", metric=f"requests{typo}"))
    assert absent == Reading(True, 0, f"{text}: labels: status")
    unseen = read(conditions, rule("absent", metric='requests{status="5xx"}'))
    assert unseen.detail.startswith("0 events in ")


def test_what_is_not_kept_is_unknown(meter: Meter, conditions: RuleReader) -> None:
    """No coarser precision takes its place, and the reason says how far back it reaches."""
    meter.count("requests")
    old = read(conditions, rule("absent", metric="requests", window=90), ago=7200)
    assert old.holds is None
    assert old.detail == "not kept: 90 s is kept for 10 min"
    many = RuleReader(Queries(None), {60: 5}, {})
    odd = many.read(rule("absent", metric="requests", window=90), NOW, NOW).others
    assert odd.holds is None
    assert "no multiple of a precision that is kept: 60 s" in odd.detail
    patterns = read(conditions, rule("new_pattern"), ago=600)
    assert patterns.holds is None


def test_new_patterns_are_those_of_the_severities(meter: Meter, conditions: RuleReader) -> None:
    """Named in the detail."""
    meter.log("app", "disk is full", severity="error")
    found = read(conditions, rule("new_pattern"))
    assert found.holds
    assert "disk is full" in found.detail
    assert not read(conditions, rule("new_pattern", severities=("critical",))).holds
    assert not read(conditions, rule("new_pattern", logger="other")).holds
    meter.log("mail", "no answer", severity="error")
    meter.log("quiet", "all is well", severity="info")
    assert values_of(conditions, rule("new_pattern", by="logger")) == {"app": True, "mail": True}


def test_new_exceptions_are_those_of_the_types(meter: Meter, conditions: RuleReader) -> None:
    """First seen within the window, however often each has happened; named in the detail."""
    nothing = read(conditions, rule("new_exception"))
    assert nothing == Reading(False, 0, "no new exceptions")
    for error in (LookupError("no card"), LookupError("no card"), TypeError("none")):
        meter.record_exception(error)
    meter.flush()
    found = read(conditions, rule("new_exception", types=("LookupError",)))
    assert (found.holds, found.value) == (True, 1)
    assert found.detail.startswith("1 new: LookupError at ")
    assert read(conditions, rule("new_exception")).value == 2
    by_type = rule("new_exception", by="type")
    assert values_of(conditions, by_type) == {"LookupError": True, "TypeError": True}
    assert not read(conditions, rule("new_exception", types=("KeyError",))).holds
    old = read(conditions, rule("new_exception"), ago=600)
    assert old == Reading(None, detail="new_exception is only known for now")
    later = time.time() + 900  # the groups are older than the window of five minutes then
    assert not conditions.read(rule("new_exception"), later, later).values[None].holds


def test_a_verdict_holds_only_if_it_is_worse(
    server: Server, meter: Meter, conditions: RuleReader
) -> None:
    """A bad deploy holds; without a mark it is unknown, and too little data do not hold."""
    nothing = read(conditions, rule("verdict"))
    assert nothing.holds is None
    assert "mark" in nothing.detail
    start = (time.time() // 60 - 20) * 60
    for minute in range(-30, 18):
        at = start + 60 * minute + 1
        for route, failed in (("/buy", 60 if minute > 0 else 4), ("/", 4)):
            ok, bad = ({"route": route, "method": "GET", "status": each} for each in ("2xx", "5xx"))
            meter.count("http_requests", 200 - failed, labels=ok, at=at)
            meter.count("http_requests", failed, labels=bad, at=at)
            meter.count("hits", 200, at=at)
            meter.count("hits_failed", failed, at=at)
    meter.mark("2.4.1", at=time.time() - 30)
    assert read(conditions, rule("verdict")).holds is False
    with server.client() as client:
        client.delete("redmeter:marks:")
    meter.mark("2.4.0", at=start)
    found = read(conditions, rule("verdict"))
    assert (found.holds, found.detail) == (True, "worse, against the time right before")
    by_route = rule("verdict", by="route")
    assert values_of(conditions, by_route) == {"/buy": True, "/": False}
    old = read(conditions, rule("verdict"), ago=600)
    assert old == Reading(None, detail="verdict is only known for now")


def values_of(conditions: RuleReader, wanted: Rule) -> dict[str | None, bool | None]:
    """Return whether the condition of a rule with `by` holds, by value."""
    now = time.time()
    return {key: each.holds for key, each in conditions.read(wanted, now, now).values.items()}


def test_a_rule_by_a_label_has_a_reading_for_each_value(
    meter: Meter, conditions: RuleReader
) -> None:
    """Series without the label are left out; a value without events is absent, not gone."""
    at = time.time() - 100  # in a minute that is complete
    for route, ok, bad in (("/a", 500, 10), ("/b", 100, 100), ("/c", 7, 3)):
        meter.count("requests", ok, labels={"route": route, "status": "2xx"}, at=at)
        meter.count("requests", bad, labels={"route": route, "status": "5xx"}, at=at)
        slow = 3.0 if route == "/b" else 0.1
        meter.observe("seconds", slow, labels={"route": route}, at=at - 120)
        meter.gauge("load", labels={"route": route}).set(ok, at=at)
    meter.count("requests", 10_000, at=at)
    meter.count("requests", 5, labels={"route": "/old"}, at=at - 3000)
    failing: dict[str, Any] = {"metric": 'requests{status="5xx"}', "of": "requests", "by": "route"}
    found = values_of(conditions, rule("ratio", **failing, above=0.05))
    assert found == {"/a": False, "/b": True, "/c": False}
    assert next(iter(found)) == "/a"  # the busiest first
    rate = rule("threshold", metric="requests", by="route", above=0.5)
    assert values_of(conditions, rate) == {"/a": True, "/b": True, "/c": False}
    absent = rule("absent", metric="requests", by="route")
    assert values_of(conditions, absent) == {"/a": False, "/b": False, "/c": False, "/old": True}
    p95 = rule("threshold", metric="seconds", value="p95", by="route", above=1.0)
    assert values_of(conditions, p95) == {"/a": False, "/b": True, "/c": False}
    loaded = rule("threshold", metric="load", value="last", by="route", below=50.0)
    assert values_of(conditions, loaded) == {"/a": False, "/b": False, "/c": True}
    quick = ((3600, 300, 8.0),)
    burn = rule("burn", **failing, objective=0.95, windows=quick)
    assert values_of(conditions, burn) == {"/a": False, "/b": True, "/c": False, "/old": False}


def test_expected_ranges(meter: Meter, conditions: RuleReader) -> None:
    """A value far outside of its range holds; without enough data it is unknown."""
    wanted = rule("expected", metric="requests", precision=60, direction="above")
    assert read(conditions, wanted).holds is None
    now = time.time()
    last = (now - 5) // 60 * 60 - 60
    for number in range(60):
        meter.count("requests", 100 + number % 3, at=last - 60 * number)
    assert read(conditions, wanted).holds is False
    meter.count("requests", 5000, at=last)
    found = read(conditions, wanted)
    assert found.holds, found
    assert "expected" in found.detail
    assert not read(
        conditions, rule("expected", metric="requests", precision=60, direction="below")
    ).holds


def test_expected_ranges_by_label(meter: Meter, conditions: RuleReader) -> None:
    """One range for each value; a value without one is unknown, and a replay judges the others."""
    last = (time.time() - 5) // 60 * 60 - 60
    for number in range(60):
        for route in ("/a", "/b"):
            meter.count(
                "requests", 100 + number % 3, labels={"route": route}, at=last - 60 * number
            )
    meter.count("requests", 5000, labels={"route": "/b"}, at=last)
    meter.count("requests", 9, labels={"route": "/new"}, at=last)
    meter.count("requests", 9, at=last)
    wanted = rule("expected", metric="requests", precision=60, by="route")
    now = last + 66
    values = conditions.read(wanted, now, now).values
    assert {key: each.holds for key, each in values.items()} == {
        "/a": False,
        "/b": True,
        "/new": None,
    }
    found = replay_rule(wanted, conditions, last - 600, now)
    assert [firing.name for firing in found.firings] == ['a{route="/b"}']
    assert found.unknown == 0


def test_a_replay_finds_when_an_alert_would_have_fired(
    meter: Meter, conditions: RuleReader
) -> None:
    """With its beginning and end; times without data kept are counted as unknown."""
    now = time.time()
    for minute in range(100):
        failed = 50 if 30 <= minute < 40 else 0
        at = now - 60 * minute
        meter.count("requests", 100, at=at)
        if failed:
            meter.count("failures", failed, at=at)
    (wanted,) = parse_rules(
        '[[alert]]\nname = "a"\nwhen = "ratio"\nmetric = "failures"\nof = "requests"\nabove = 0.2\n'
    ).alerts
    found = replay_rule(wanted, conditions, now - 90 * 60, now)
    (firing,) = found.firings
    assert firing.until is not None
    assert 23 * 60 <= now - firing.until <= 36 * 60
    assert 31 * 60 <= now - firing.since <= 42 * 60
    assert (found.evaluated, found.unknown) == (91, 0)
    far = replay_rule(wanted, conditions, now - 86400 * 3, now)
    assert far.unknown
    assert far.reason.startswith("not kept: 5 min is kept for")
