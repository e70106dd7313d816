"""Conditions over data in memory, and over a real server when rules are replayed."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter import Meter
from redmeter.alerting.conditions import Conditions, end_of, precision_of
from redmeter.alerting.replay import replay
from redmeter.alerting.rules import Rule, parse_rules
from redmeter.alerting.state import Reading
from redmeter.queries import Queries
from redmeter.store import Store

NOW = time.time()
SERIES = {1: 120, 5: 120, 60: 120, 300: 120, 3600: 120, 86400: 120}


def rule(when: str, **fields: Any) -> Rule:
    """Return a rule."""
    return Rule("a", when, **fields)


@pytest.fixture
def conditions(store: Store) -> Conditions:
    """Conditions over the store."""
    kept = store.config().kept
    return Conditions(Queries(store), kept.series, kept.histograms)


def read(conditions: Conditions, wanted: Rule, ago: float = 0.0) -> Reading:
    """Evaluate a rule for now, or for a time before."""
    now = time.time()
    return conditions.read(wanted, now - ago, now)


@given(st.sampled_from([60, 300, 600, 3600, 7200, 90]), st.floats(0, 1e6))
def test_a_window_is_read_with_the_finest_intervals_that_are_kept(window: int, ago: float) -> None:
    """Of a precision that divides it, and of which all intervals of the window are kept."""
    now = 1_700_000_000.0
    found = precision_of(SERIES, window, now - ago, now)
    for precision, kept in SERIES.items():
        since = end_of(now - ago, precision) - window
        fits = window % precision == 0 and since > now - (kept + 1) * precision
        if found is None or precision < found:
            assert not fits or since <= now - kept * precision
    if found is not None:
        assert window % found == 0
        assert end_of(now - ago, found) - window >= now - SERIES[found] * found


def test_rates_ratios_and_absence(meter: Meter, conditions: Conditions) -> None:
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
    assert read(conditions, rule("absent", metric="orders", window=600)).holds
    assert read(conditions, rule("absent", metric="requests", window=600)).holds is False
    quick = ((3600, 300, 8.0),)
    burn = read(conditions, rule("burn", **failing, objective=0.99, windows=quick))
    assert burn.holds
    assert burn.value == pytest.approx(10.0)
    usual = read(conditions, rule("burn", **failing, objective=0.99))
    assert "over 6 h and 30 min" in usual.detail
    assert not read(conditions, rule("burn", **failing, objective=0.5)).holds


def test_percentiles_and_gauges(meter: Meter, conditions: Conditions) -> None:
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


def test_what_is_not_kept_is_unknown(meter: Meter, conditions: Conditions) -> None:
    """No coarser precision takes its place, and the reason says how far back it reaches."""
    meter.count("requests")
    old = read(conditions, rule("absent", metric="requests", window=90), ago=7200)
    assert old.holds is None
    assert old.detail == "not kept: 90 s is kept for 10 min"
    many = Conditions(Queries(None), {60: 5}, {})
    odd = many.read(rule("absent", metric="requests", window=90), NOW, NOW)
    assert odd.holds is None
    assert "no multiple of a precision that is kept: 60 s" in odd.detail
    patterns = read(conditions, rule("new_pattern"), ago=600)
    assert patterns.holds is None


def test_new_patterns_are_those_of_the_severities(meter: Meter, conditions: Conditions) -> None:
    """Named in the detail."""
    meter.log("app", "disk is full", severity="error")
    found = read(conditions, rule("new_pattern"))
    assert found.holds
    assert "disk is full" in found.detail
    assert not read(conditions, rule("new_pattern", severities=("critical",))).holds
    assert not read(conditions, rule("new_pattern", logger="other")).holds


def test_expected_ranges(meter: Meter, conditions: Conditions) -> None:
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


def test_a_replay_finds_when_an_alert_would_have_fired(
    meter: Meter, conditions: Conditions
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
    found = replay(wanted, conditions, now - 90 * 60, now)
    (firing,) = found.firings
    assert firing.until is not None
    assert 23 * 60 <= now - firing.until <= 36 * 60
    assert 31 * 60 <= now - firing.since <= 42 * 60
    assert (found.evaluated, found.unknown) == (91, 0)
    far = replay(wanted, conditions, now - 86400 * 3, now)
    assert far.unknown
    assert far.reason.startswith("not kept: 5 min is kept for")
