"""Deploy verdicts: of a store and in memory, with what is kept and what is not."""

from typing import Any

import pytest

from redmeter import InvalidValue, Meter, UnknownPrecision
from redmeter.clock import ManualClock
from redmeter.testing import MemoryMeter
from support.clusters import Cluster
from support.deploys import REQUESTS, record_deploy
from support.stores import OpenMeter, server_time

HOUR = 3600


def fill(url: str, deploy: float, **options: Any) -> None:
    """Record a deploy in a store."""
    with Meter(url) as meter:
        record_deploy(meter, deploy, **options)
        assert meter.flush(30)


def test_a_store_and_a_meter_in_memory_give_the_same_verdict(
    any_server: Any, client: Any, open_meter: OpenMeter
) -> None:
    """The bad route is named, and the other is not."""
    now = server_time(client)
    deploy, minutes = now - 1000, range(-61, 17)
    fill(any_server.url, deploy, worse="/cart", minutes=minutes)
    memory = MemoryMeter(clock=ManualClock(now))
    record_deploy(memory, deploy, worse="/cart", minutes=minutes)
    found, other = open_meter().verdict("v2"), memory.verdict("v2")
    assert (found.overall, found.routes) == (other.overall, other.routes)
    assert (found.verdict, found.look, found.precision) == ("worse", 900, 60)
    assert found.reason.startswith(("error rate of /cart: ", "p95 of /cart: "))
    cart, home = found.routes
    assert (cart.route, cart.verdict, cart.p95.verdict) == ("/cart", "worse", "worse")
    assert (home.route, home.verdict) == ("/", "same")
    assert cart.requests.after == 15 * REQUESTS
    assert cart.requests.before == 60 * REQUESTS
    assert cart.p95.ratio == pytest.approx(3, rel=0.25)
    assert found.mark is not None
    assert found.after is not None
    assert found.after.since == deploy // 60 * 60 + 60
    assert found.before is not None
    assert found.before.until == deploy // 60 * 60


def test_a_deploy_without_effect_is_the_same(
    any_server: Any, client: Any, open_meter: OpenMeter
) -> None:
    """Also by a time instead of a mark."""
    deploy = server_time(client) - 400
    fill(any_server.url, deploy)
    found = open_meter().verdict(since=deploy)
    assert (found.verdict, found.mark) == ("same", None)
    assert [row.verdict for row in found.routes] == ["same", "same"]


def test_before_the_first_look_there_is_too_little_data(client: Any, open_meter: OpenMeter) -> None:
    """And it is known when there will be more."""
    meter, deploy = open_meter(), server_time(client) - 30
    meter.mark("v3", at=deploy)
    found = meter.verdict()
    assert (found.verdict, found.look, found.overall) == ("too little data", None, None)
    assert found.next_look == deploy // 60 * 60 + 360


def test_a_store_without_requests_has_too_little_data(client: Any, open_meter: OpenMeter) -> None:
    """The reason says so."""
    found = open_meter().verdict(since=server_time(client) - 400)
    assert found.verdict == "too little data"
    assert "no requests after the deploy" in found.reason


def test_a_baseline_that_is_not_kept_is_named_and_not_replaced(
    client: Any, open_meter: OpenMeter
) -> None:
    """Neither a coarser precision nor a shorter window is used."""
    meter, now = open_meter(), server_time(client)
    meter.count("hits")
    old = meter.verdict(since=now - 5 * HOUR)
    assert (old.verdict, old.precision, old.overall) == ("not kept", 60, None)
    assert old.not_kept is not None
    assert (old.not_kept.of, old.not_kept.oldest) == ("counters", now // 60 * 60 - 119 * 60)
    assert old.not_kept.command == ""  # no retention keeps so many minutes
    later = meter.verdict(since=now - 2 * HOUR).not_kept
    assert later is not None
    assert later.command == "redmeter retention 60=254"
    minutes = meter.verdict(since=now - 400, against="yesterday", precision=60)
    assert minutes.verdict == "not kept"


def test_last_week_is_compared_by_the_hour(
    any_server: Any, client: Any, open_meter: OpenMeter
) -> None:
    """With a new store's retention."""
    now = server_time(client)
    deploy = now - 2 * HOUR
    hours = range(-30, 2)
    for days in (7, 0):
        with Meter(any_server.url) as meter:
            worse = "" if days else "/cart"
            options: dict[str, Any] = {"width": HOUR, "minutes": hours, "worse": worse}
            record_deploy(meter, deploy - days * 86400, **options)
            assert meter.flush(30)
    found = open_meter().verdict(since=deploy, against="last-week")
    assert (found.precision, found.look, found.verdict) == (HOUR, HOUR, "worse")
    assert found.routes[0].route == "/cart"
    assert "pairs of intervals" in found.routes[0].error_rate.test
    assert found.routes[1].verdict != "worse"


def test_new_and_vanished_patterns_are_listed() -> None:
    """New since the mark; vanished, if it was expected."""
    meter = MemoryMeter()
    for _ in range(60):
        meter.clock.advance(15)
        meter.log("shop", "cache warmed")
    meter.clock.advance(1)
    deploy = meter.clock.wall()
    meter.clock.advance(500)
    meter.log("shop", "no such cart", severity="error")
    meter.clock.advance(500)
    found = meter.verdict(since=deploy).patterns
    assert found.kept
    assert [one.pattern for one in found.new] == ["no such cart"]
    assert [one.pattern for one in found.vanished] == ["cache warmed"]
    assert not meter.verdict(since=deploy - 2 * HOUR).patterns.kept


def test_a_burst_right_before_a_deploy_has_not_vanished() -> None:
    """The rate is that of an hour, and a look must be complete."""
    meter = MemoryMeter()
    for _ in range(12):
        meter.clock.advance(1)
        meter.log("shop", "shutting down")
    meter.clock.advance(1)
    deploy = meter.clock.wall()
    meter.clock.advance(400)
    found = meter.verdict(since=deploy)
    assert found.look == 300
    assert (found.patterns.kept, found.patterns.vanished) == (True, ())
    for _ in range(900):
        meter.clock.advance(2)
        meter.log("shop", "cache warmed")
    meter.clock.advance(50)
    found = meter.verdict(since=meter.clock.wall() - 50)
    assert (found.look, found.patterns.vanished) == (None, ())


def test_new_patterns_of_a_store_are_listed(client: Any, open_meter: OpenMeter) -> None:
    """Those that were first logged after the moment of the deploy."""
    meter = open_meter()
    meter.log("shop", "no such cart", severity="error")
    now = server_time(client)
    assert meter.verdict(since=now).patterns.new == ()
    (one,) = meter.verdict(since=now - 60).patterns.new
    assert one.pattern == "no such cart"


def test_other_marks_within_the_windows_are_listed(client: Any, open_meter: OpenMeter) -> None:
    """A deploy within the baseline explains a difference."""
    meter, now = open_meter(), server_time(client)
    meter.mark("v1", at=now - 1400)
    meter.mark("v2", at=now - 400)
    found = meter.verdict("v2")
    assert [one.label for one in found.marks] == ["v1"]


def test_a_cluster_gives_the_verdict_of_a_server(cluster: Cluster) -> None:
    """Routes are on all shards."""
    with Meter(cluster.url) as meter:
        meter.mark("v1")
        assert meter.flush(30)
        (mark,) = meter.marks()
        deploy = mark.time - 1000
        routes = ("/", "/cart", "/help", "/login")
        minutes = range(-61, 17)
        record_deploy(meter, deploy, routes=routes, worse="/cart", minutes=minutes)
        assert meter.flush(60)
        found = meter.verdict("v2")
    assert (found.verdict, found.routes[0].route) == ("worse", "/cart")
    assert [row.verdict for row in found.routes[1:]] == ["same"] * 3
    assert found.overall is not None
    assert found.overall.requests.before == 60 * 4 * REQUESTS


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"mark": "v1", "since": 1.0}, InvalidValue, "not both"),
        ({"mark": "missing"}, InvalidValue, "no mark with this label"),
        ({}, InvalidValue, "there is no mark yet"),
        ({"against": "tomorrow"}, InvalidValue, "previous, yesterday, last-week"),
        ({"since": 1.0, "precision": 7}, UnknownPrecision, "7"),
        ({"since": 1.0, "precision": 7, "against": "yesterday"}, InvalidValue, "no multiple"),
        ({"since": 1e12}, InvalidValue, "future"),
        ({"since": float("nan")}, InvalidValue, "Unix seconds"),
        ({"mark": 5}, TypeError, "the label of a mark"),
    ],
)
def test_arguments_that_cannot_be_used_are_errors(
    open_meter: OpenMeter, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    """By a store and in memory alike."""
    for meter in (open_meter(), MemoryMeter()):
        with pytest.raises(error, match=text):
            meter.verdict(**options)


def test_a_meter_that_is_off_has_no_marks_and_no_requests() -> None:
    """As an empty store."""
    with Meter("off") as meter:
        with pytest.raises(InvalidValue, match="no mark"):
            meter.verdict("v1")
        assert meter.verdict(since=1.0).verdict == "not kept"
