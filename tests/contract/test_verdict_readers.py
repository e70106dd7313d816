"""A verdict is one answer: of a store, in memory, of the command and its exit code, of the API."""

import json
import random
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from redmeter import Meter
from redmeter.clock import ManualClock
from redmeter.dashboard import Dashboard
from redmeter.results import Verdict
from redmeter.testing import MemoryMeter
from support.asking import asking
from support.deploys import record_requests
from support.invoking import invoking
from support.stores import OpenMeter, server_time

#: Records requests around a deploy: a meter, and the start of its minute.
Story = Callable[[Any, float], None]


def mixed(meter: Any, start: float) -> None:
    """Record four times the traffic on the slow route, which is as slow as before."""
    rng = random.Random(3)
    for minute in range(-61, 7):
        at = start + 60 * minute
        record_requests(meter, at, "/", 100, 1, rng=rng, seconds=0.05)
        number = 80 if minute > 0 else 20
        record_requests(meter, at, "/report", number, number // 10, rng=rng, seconds=0.5)


def answers(
    story: Story, url: str, now: float, ago: float, open_meter: OpenMeter, *options: str
) -> tuple[Verdict, int, str]:
    """Return the verdict that all readers give, the command's exit code, and its first lines."""
    deploy = float(int(now - ago))
    memory = MemoryMeter(clock=ManualClock(now))
    with Meter(url) as meter:
        for one in (meter, memory):
            story(one, deploy // 60 * 60)
            one.mark("v2", at=deploy)
        assert meter.flush(60)
    reader = open_meter()
    verdict = reader.verdict("v2")
    assert memory.verdict("v2") == verdict
    plain = json.loads(json.dumps(asdict(verdict)))
    with invoking() as run, asking(Dashboard(reader, access="open")) as http:
        answer = http.get("/api/verdict", params={"mark": "v2"})
        assert answer.status_code == 200, answer.text
        shown = answer.json()
        assert {name: shown[name] for name in plain} == plain
        done = run("verdict", "v2", "--json", "--url", url, *options)
        assert json.loads(done.out) == plain
        text = run("verdict", "v2", "--url", url, *options)
        assert text.code == done.code
    return verdict, done.code, text.out


def test_a_changed_mix_is_reported_and_not_worse(
    any_server: Any, client: Any, open_meter: OpenMeter
) -> None:
    """With the part of the difference that it makes; exit code 0."""
    now = server_time(client)
    found, code, text = answers(mixed, any_server.url, now, 400, open_meter)
    assert (found.verdict, code, found.mix.verdict) == ("same", 0, "worse")
    assert "p95 of all requests: " in found.mix.reason
    assert text.startswith(f"same: no route is better or worse; {found.mix.reason}")
    assert found.overall is not None
    for metric in (found.overall.error_rate, found.overall.p95):
        assert metric.difference is not None
        assert metric.mix is not None
        assert metric.mix > 0.7 * metric.difference > 0


def test_fail_on_mix_is_exit_code_1(any_server: Any, client: Any, open_meter: OpenMeter) -> None:
    """For pipelines that want it; the answer is the same."""
    now = server_time(client)
    found, code, _ = answers(mixed, any_server.url, now, 400, open_meter, "--fail-on", "mix")
    assert (found.verdict, code) == ("same", 1)
    with invoking() as run:
        done = run("verdict", "v2", "--fail-on", "storms", "--url", any_server.url)
    assert done.code == 2
    assert "--fail-on mix" in done.err


def failing(
    meter: Any, start: float, *, hours: int = 1, failed: int = 15, minutes: int = 6
) -> None:
    """Record a route that fails more often after a deploy; half of the requests are to it.

    Args:
        hours: before the deploy.
        failed: of 100 requests.
        minutes: after the deploy.
    """
    for ago in range(60 * hours, 60, -5):
        for route in ("/", "/cart"):
            record_requests(meter, start - 60 * ago, route, 500, 4 + ago // 5 % 3)
    for minute in range(-60, minutes + 1):
        for route in ("/", "/cart"):
            bad = failed if minute > 0 and route == "/cart" else minute % 2
            record_requests(meter, start + 60 * minute, route, 100, bad)


def test_a_rise_that_could_be_a_storm_is_watched(
    any_server: Any, client: Any, open_meter: OpenMeter
) -> None:
    """After five minutes and with an hour before; exit code 3."""
    now = server_time(client)
    verdict, code, text = answers(failing, any_server.url, now, 400, open_meter)
    assert (verdict.verdict, code, verdict.noise) == ("watching", 3, None)
    assert text.startswith("watching: worse so far: error rate of /cart: ")
    assert "until it has lasted for more than 8 minutes" in verdict.reason
    (cart, home) = verdict.routes
    assert (cart.route, cart.verdict, home.verdict) == ("/cart", "watching", "too little data")
    assert cart.error_rate.reason == "could be a storm of up to 8 minutes"


def test_seven_hours_of_five_minute_sums_make_it_worse(
    any_server: Any, client: Any, open_meter: OpenMeter
) -> None:
    """The answer names them as the scale of the noise."""
    now = server_time(client)
    story: Story = partial(failing, hours=7)
    verdict, code, text = answers(story, any_server.url, now, 400, open_meter)
    assert (verdict.verdict, code) == ("worse", 1)
    assert verdict.noise is not None
    hours = (verdict.noise.until - verdict.noise.since) / 3600
    assert 6 <= hours <= 7.1
    assert f"noise of error rates: that of {hours:.1f} hours of 5-minute sums before" in text
    expected = f"more unusual than all of {hours:.1f} hours of 5-minute sums"
    assert verdict.routes[0].error_rate.reason == expected


def test_a_rise_that_lasts_is_worse(any_server: Any, client: Any, open_meter: OpenMeter) -> None:
    """At the look of 15 minutes."""
    now = server_time(client)
    story: Story = partial(failing, minutes=16)
    verdict, code, _ = answers(story, any_server.url, now, 1000, open_meter)
    assert (verdict.verdict, verdict.look, code) == ("worse", 900, 1)
    assert verdict.routes[0].error_rate.reason == "lasts longer than 8 minutes"


def test_half_of_all_requests_are_worse_at_once(
    any_server: Any, client: Any, open_meter: OpenMeter
) -> None:
    """With an hour before."""
    now = server_time(client)
    story: Story = partial(failing, failed=100)
    verdict, code, _ = answers(story, any_server.url, now, 400, open_meter)
    assert (verdict.verdict, verdict.look, code) == ("worse", 300, 1)
    assert verdict.routes[0].error_rate.reason == "more requests fail than in any storm"
