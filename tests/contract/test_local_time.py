"""Local time is one rule: a meter, the command, the API, alerts and a meter in memory follow it."""

import json
import math
from typing import Any

import pytest

from redmeter import Meter
from redmeter.alerting.conditions import RuleReader
from redmeter.alerting.rules import Rule
from redmeter.clock import ManualClock, Zone
from redmeter.dashboard import Dashboard
from redmeter.stored.keys import DEFAULT_HISTOGRAMS, DEFAULT_RETENTION, slice_start
from redmeter.testing import MemoryMeter
from support.asking import asking
from support.invoking import invoking
from support.stores import OpenMeter, server_time
from support.zones import NAME, install

HOUR, DAY = 3600, 86_400

pytestmark = pytest.mark.parametrize(
    ("before", "after"), [(HOUR, 2 * HOUR), (2 * HOUR, HOUR)], ids=["spring", "autumn"]
)


def record(meter: Meter, now: float, zone: Zone) -> None:
    """Record ten days of requests that follow local time, and a mark three hours ago.

    They are the same whenever the test runs: the running hour is the first of their day.
    """
    running = slice_start(now, HOUR)
    for at in range(running - 239 * HOUR, running + 1, HOUR):
        since = at - running
        hour = (since + zone.offset(at)) % DAY / HOUR
        number = round(1000 + 900 * math.cos(hour / 12 * math.pi)) + since // HOUR * 7 % 13
        labels = {"method": "GET", "route": "/", "status": "2xx"}
        meter.count("http_requests", number, labels=labels, at=at)
        meter.count("x", number, at=at)
    meter.mark("v2", at=running - 3 * HOUR)


def test_every_reader_follows_the_zone(
    any_server: Any,
    client: Any,
    open_meter: OpenMeter,
    monkeypatch: pytest.MonkeyPatch,
    before: int,
    after: int,
) -> None:
    """Forecasts, comparisons with yesterday and last week, and verdicts, five hours after it."""
    now = server_time(client)
    install(monkeypatch, slice_start(now, HOUR) - 5 * HOUR, before, after)
    day = DAY - (after - before)
    meter = open_meter(timezone=NAME)
    memory = MemoryMeter(clock=ManualClock(now), timezone=NAME)
    for one in (meter, memory):
        record(one, now, Zone(NAME))
    assert meter.flush(30)
    dashboard = Dashboard(meter, access="open")
    end = slice_start(now, HOUR)
    with invoking() as run, asking(dashboard) as http:

        def asked(path: str, **values: Any) -> Any:
            answer = http.get(path, params=values)
            assert answer.status_code == 200, answer.text
            return answer.json()

        def command(*words: str) -> Any:
            zone = ("--timezone", NAME)
            done = run(*words, "--json", "--url", any_server.url, *zone)
            assert done.code in (0, 3), done.err
            return json.loads(done.out)

        def ranges(past: Any) -> list[tuple[float, ...]]:
            fields = ("start", "value", "low", "mid", "high", "outside")
            return [tuple(point[field] for field in fields) for point in past]

        # Forecasts.
        found = meter.forecast("x", precision=HOUR)
        past = ranges(vars_of(point) for point in found.past)
        assert memory.forecast("x", precision=HOUR) == found
        assert ranges(command("forecast", "x")["past"]) == past
        assert ranges(asked("/api/forecast", name="x", precision=HOUR)["past"]) == past
        shown = asked("/api/detail", name="x", precision=HOUR)["forecast"]["past"]
        assert [point["high"] for point in shown] == [point.high for point in found.past]
        utc = open_meter().forecast("x", precision=HOUR)
        recent = slice_start(now, HOUR) - 5 * HOUR
        assert [p for p in found.past if p.start < recent] == [
            p for p in utc.past if p.start < recent
        ]
        assert not any(point.outside for point in found.past[-5:])
        assert any(point.outside for point in utc.past[-5:])

        # Alerts.
        kept: Any = DEFAULT_RETENTION, DEFAULT_HISTOGRAMS
        rule = Rule("unusual", "expected", metric="x", precision=HOUR)
        (reading,) = RuleReader(meter, *kept).read(rule, now, now).values.values()
        (other,) = RuleReader(memory, *kept).read(rule, now, now).values.values()
        assert reading == other
        assert not reading.holds

        # Comparisons with another day.
        for against, back in (("yesterday", day), ("last-week", day + 6 * DAY)):
            window = end - 2 * HOUR, end
            why = meter.explain("x", *window, against, precision=HOUR)
            times = (why.since - back, why.until - back)
            assert (why.against_since, why.against_until) == times
            rest = {"since": window[0], "until": end, "against": against, "precision": HOUR}
            several = (
                vars_of(memory.explain("x", *window, against, precision=HOUR)),
                command("explain", "x", "-p", "1h", *of(window), "--against", against),
                asked("/api/explain", name="x", **rest),
            )
            for each in several:
                assert (each["against_since"], each["against_until"]) == times
                assert each["count_before"] == why.count_before

            verdict = meter.verdict("v2", against=against)
            assert verdict.after is not None
            assert verdict.before is not None
            assert verdict.before.since == verdict.after.since - back
            assert memory.verdict("v2", against=against).before == verdict.before
            since = {"since": verdict.before.since, "until": verdict.before.until}
            assert command("verdict", "v2", "--against", against)["before"] == since
            assert asked("/api/verdict", mark="v2", against=against)["before"] == since

            page = asked(
                "/api/overview", precision=HOUR, since=window[0], until=end, against=against
            )
            assert page["window"]["before_start"] == window[0] - back


def vars_of(found: Any) -> dict[str, Any]:
    """Return the fields of a result."""
    return {name: getattr(found, name) for name in found.__dataclass_fields__}


def of(window: tuple[int, int]) -> list[str]:
    """Return the options that name a window."""
    return ["--since", str(window[0]), "--until", str(window[1])]
