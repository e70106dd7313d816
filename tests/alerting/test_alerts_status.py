"""The status of alerts: what is joined, and in which order."""

from dataclasses import replace
from typing import Any

from redmeter.alerting.rules_file import parse_rules
from redmeter.alerting.state import (
    FIRING,
    PENDING,
    AlertsReport,
    AlertState,
    Reading,
    read_rules,
    rules_text,
)
from redmeter.alerting.status import AlertsStatus, make_status
from redmeter.alerting.store import Silence, Snapshot, Transition

NOW = 1_795_302_000.0  # Saturday, 23:00
RULES = parse_rules("""
[[alert]]
name = "quiet"
when = "absent"
metric = 'orders{shop="rome"}'
[[alert]]
name = "errors"
when = "ratio"
metric = "bad"
of = "all"
by = "route"
above = 0.05
labels = {team = "shop"}
[[alert]]
name = "slow"
when = "threshold"
metric = "seconds"
value = "p95"
above = 1
[[maintenance]]
alerts = ["slow"]
days = ["sat"]
from = "22:00"
to = "23:30"
""")


def status(**fields: Any) -> AlertsStatus:
    """Return the status of a snapshot with these rules."""
    published = read_rules(rules_text(RULES))
    nothing = Snapshot({}, {}, [], NOW, rules=published)
    return make_status(replace(nothing, **fields))


def test_rules_without_a_state_are_ok() -> None:
    """In the order of the file, with their conditions, before anything was evaluated."""
    found = status()
    assert [(each.name, each.status) for each in found.rules] == [
        ("quiet", "ok"),
        ("errors", "ok"),
        ("slow", "ok"),
    ]
    assert found.rules[0].metric == "orders"
    assert [len(each.alerts) for each in found.rules] == [1, 0, 1]
    assert (found.running, found.evaluated, found.firing) == (False, None, 0)


def test_alerts_that_fire_come_first() -> None:
    """With the newest reading, rather than that of the last change; ok values are counted."""
    firing = AlertState(1, FIRING, NOW - 60, value=0.2, detail="2 of 10")
    report = AlertsReport(
        NOW - 4,
        15,
        {
            'errors{route="/a"}': Reading(True, 0.3, "3 of 10"),
            'errors{route="/b"}': Reading(False, 0.0, "0 of 10"),
            'errors{route="/c"}': Reading(None, None, "not kept"),
            "slow": Reading(None, None, "not kept: 5 min is kept for 2 min"),
        },
        {"errors": 7},
    )
    states = {
        'errors{route="/a"}': firing,
        'errors{route="/c"}': AlertState(1, PENDING, NOW - 9, value=0.1, detail="1 of 10"),
    }
    found = status(states=states, report=report, leased_until=NOW + 9)
    errors, _, slow = found.rules
    assert (errors.name, errors.status, errors.ok, errors.left_out) == ("errors", "firing", 1, 7)
    first, second = errors.alerts
    assert (first.label_value, first.value, first.detail) == ("/a", 0.3, "3 of 10")
    assert first.labels == {"team": "shop", "route": "/a"}
    assert (second.status, second.detail, second.unknown) == ("pending", "1 of 10", "not kept")
    assert slow.unknown.startswith("not kept: 5 min")
    assert slow.alerts[0].maintenance
    assert (found.running, found.firing, found.evaluated) == (True, 1, NOW - 4)
    assert found.maintenance[0].active


def test_silences_and_alerts_of_no_rule() -> None:
    """An alert whose rule was never published is shown without a condition."""
    silences = {
        "old": Silence("old", "*", NOW - 1),
        "now": Silence("now", "lost", NOW + 60, "deploy"),
    }
    states = {"lost": AlertState(1, FIRING, NOW - 60)}
    change = Transition("lost", "firing", NOW - 60)
    found = status(rules=None, states=states, silences=silences, transitions=(change,))
    (lost,) = found.rules
    assert (lost.condition, lost.query, lost.alerts[0].silence) == ("", "", "now")
    assert [each.id for each in found.silences] == ["now"]
    assert found.transitions == (change,)
