"""Alerts by the values of a label: each fires and resolves on its own."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from redmeter import Meter
from redmeter.alerting.conditions import RuleReader
from redmeter.alerting.evaluator import Evaluator, replay_rule
from redmeter.alerting.rules import Rule, Rules
from redmeter.alerting.rules_file import parse_rules
from redmeter.alerting.state import (
    MAX_RULE_ALERTS,
    Reading,
    Readings,
    alert_name,
    split_name,
)
from redmeter.alerting.store import AlertStore, Silence
from redmeter.queries import Queries
from redmeter.store import Store
from support.alerts import Receiver
from support.servers import Server

Make = Callable[[Rules], Evaluator]
RULES = parse_rules("""
[[alert]]
name = "queue"
when = "threshold"
metric = "queue_length"
value = "last"
by = "shop"
above = 100
window = "1m"
message = "{name} is {value:.0f} ({labels})"
labels = {team = "ops"}
notify = ["ops"]
[notify.ops]
type = "command"
command = ["true"]
""")


def fill(meter: Meter, shop: str, length: float) -> None:
    """Set the queue of a shop, later each time."""
    meter.gauge("queue_length", labels={"shop": shop}).set(length, at=time.time() - 15)


@pytest.mark.parametrize("value", ["/a", 'a"}', "{", "ä\u202e\n", ""])
def test_the_name_of_an_alert_holds_its_value(value: str) -> None:
    """Whatever the value is; a rule without a label has none."""
    rule = Rule("errors", "ratio", by="route")
    assert split_name(alert_name(rule, value)) == ("errors", "route", value)
    assert split_name(alert_name(rule, None)) == ("errors", "", None)


def test_each_value_fires_and_resolves_on_its_own(
    meter: Meter, evaluator: Make, alerts: AlertStore, receiver: Receiver
) -> None:
    """With labels of its own; only those that are pending or fire are kept."""
    one = evaluator(RULES)
    fill(meter, "rome", 500)
    fill(meter, "oslo", 1)
    assert one.cycle().firing == 1
    fill(meter, "oslo", 200)
    assert one.cycle().firing == 2
    assert set(alerts.snapshot().states) == {'queue{shop="oslo"}', 'queue{shop="rome"}'}
    meter.gauge("queue_length", labels={"shop": "rome"}).set(1, at=time.time() - 11)
    assert one.cycle().firing == 1
    assert receiver.seen() == [
        ('queue{shop="rome"}', "firing"),
        ('queue{shop="oslo"}', "firing"),
        ('queue{shop="rome"}', "resolved"),
    ]
    assert receiver.notices[0].message == 'queue{shop="rome"} is 500 (team=ops, shop=rome)'
    assert receiver.notices[0].labels == {"team": "ops", "shop": "rome"}
    assert set(alerts.snapshot().states) == {'queue{shop="oslo"}'}


def test_a_value_that_vanishes_resolves(
    server: Server, meter: Meter, evaluator: Make, alerts: AlertStore, receiver: Receiver
) -> None:
    """When its series are no longer stored; so does one whose rule lost its label."""
    one = evaluator(RULES)
    fill(meter, "rome", 500)
    fill(meter, "oslo", 500)
    one.cycle()
    with server.client() as client:
        client.delete(*client.keys("redmeter:gauge*"))
    fill(meter, "oslo", 500)
    one.cycle()
    assert receiver.seen()[-1] == ('queue{shop="rome"}', "resolved")
    assert alerts.transitions()[0].detail == "no longer stored"
    one._rules = replace(RULES, alerts=(Rule("queue", "verdict"),))
    one.cycle()
    assert receiver.seen()[-1] == ('queue{shop="oslo"}', "resolved")
    assert not [name for name in alerts.snapshot().states if "{" in name]


def test_there_are_at_most_so_many_alerts_of_a_rule() -> None:
    """Those that fire stay; the number of the others is known."""
    readings = Readings({str(n): Reading(False) for n in range(MAX_RULE_ALERTS + 7)})
    chosen, left_out = readings.chosen(["105", "gone"])
    assert (len(chosen), left_out) == (MAX_RULE_ALERTS, 8)
    assert chosen["105"].holds is False
    assert chosen["gone"].detail == "no longer stored"
    assert "0" in chosen
    assert "106" not in chosen


def test_too_many_values_are_reported(meter: Meter, evaluator: Make, alerts: AlertStore) -> None:
    """Not silently left out."""
    for number in range(MAX_RULE_ALERTS + 3):
        fill(meter, str(number), 1)
    evaluator(RULES).cycle()
    report = alerts.snapshot().report
    assert report is not None
    assert report.left_out == {"queue": 3}
    assert len(report.readings) == MAX_RULE_ALERTS


def test_silences_cover_a_rule_or_one_of_its_values(
    meter: Meter, evaluator: Make, alerts: AlertStore, receiver: Receiver
) -> None:
    """By the rule's name, or by that of one alert."""
    assert Silence("x", "queue", 10).covers('queue{shop="rome"}', 9)
    assert not Silence("x", "queue", 10).covers('queues{shop="rome"}', 9)
    alerts.silence(Silence("x", '*"rome"}', time.time() + 3600))
    fill(meter, "rome", 500)
    fill(meter, "oslo", 500)
    evaluator(RULES).cycle()
    assert receiver.seen() == [('queue{shop="oslo"}', "firing")]


def test_a_replay_names_the_values(meter: Meter, store: Store) -> None:
    """Each with its own times."""
    now = time.time()
    for minute in range(60):
        meter.gauge("queue_length", labels={"shop": "rome"}).set(
            500 if 20 <= minute < 30 else 5, at=now - 60 * minute
        )
    kept = store.config().kept
    found = replay_rule(
        RULES.alerts[0], RuleReader(Queries(store), kept.series, kept.histograms), now - 3000, now
    )
    (firing,) = found.firings
    assert firing.name == 'queue{shop="rome"}'
    assert firing.until is not None


def test_the_report_has_rules_and_readings(
    meter: Meter, evaluator: Make, alerts: AlertStore
) -> None:
    """As they are in the file, but for notifiers, which stay on the host."""
    assert alerts.snapshot().rules is None
    fill(meter, "rome", 500)
    evaluator(RULES).cycle()
    snapshot = alerts.snapshot()
    assert snapshot.rules is not None
    assert snapshot.rules.alerts == RULES.alerts
    assert snapshot.rules.notifiers == {}
    assert "command" not in snapshot.rules_text
    assert snapshot.report is not None
    assert snapshot.report.interval == 15
    assert snapshot.report.readings['queue{shop="rome"}'].value == 500
