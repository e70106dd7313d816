"""The evaluator on a real server: what is recorded once, what is sent, and what survives a kill."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from redmeter import Meter
from redmeter.alerting.evaluator import Evaluator
from redmeter.alerting.rules import Rules
from redmeter.alerting.rules_file import parse_rules
from redmeter.alerting.state import AlertState
from redmeter.alerting.store import AlertStore, Silence
from redmeter.errors import StoreUnavailable
from redmeter.store import Store
from support.alerts import RULES, Receiver
from support.clusters import Cluster
from support.servers import Server
from support.stores import opened_store

Make = Callable[[Rules], Evaluator]
BOTH = [("queue", "firing"), ("queue", "resolved")]


def rise(meter: Meter) -> None:
    """Make the alert's condition hold."""
    meter.gauge("queue_length").set(500, at=time.time() - 30)


def fall(meter: Meter) -> None:
    """End that."""
    meter.gauge("queue_length").set(5, at=time.time() - 12)


def free(server: Server) -> None:
    """End the lease of an evaluator that was killed, as time would."""
    with server.client() as client:
        epoch, _, owner = client.hget("redmeter:alerts:", "lease").split()
        client.hset("redmeter:alerts:", "lease", b"%s 0 %s" % (epoch, owner))


def test_an_alert_fires_and_resolves_once(
    meter: Meter, rules: Rules, evaluator: Make, alerts: AlertStore, receiver: Receiver
) -> None:
    """Each change is one transition and one notice for each notifier, however often it is read."""
    one = evaluator(rules)
    assert not one.cycle().transitions
    rise(meter)
    done = one.cycle()
    assert (done.leading, done.firing, done.transitions, done.delivered) == (True, 1, 1, 2)
    assert one.cycle().transitions == 0
    fall(meter)
    one.cycle()
    one.cycle()
    assert receiver.seen("ops") == receiver.seen("log") == BOTH
    assert [(each.name, each.status) for each in alerts.transitions()] == BOTH[::-1]
    assert len({notice.key for notice in receiver.notices}) == 4
    assert len({notice.incident for notice in receiver.notices}) == 1


def test_one_evaluator_of_many_works_and_another_one_takes_over(
    server: Server, meter: Meter, rules: Rules, evaluator: Make, receiver: Receiver
) -> None:
    """When its lease has ended, or when it gave it back; the state continues."""
    first, second = evaluator(rules), evaluator(rules)
    rise(meter)
    assert first.cycle().leading
    assert not second.cycle().leading
    free(server)
    fall(meter)
    assert second.cycle().transitions == 1
    assert not first.cycle().leading
    second.run(lambda _: True)  # gives the lease back
    assert first.cycle().leading
    assert receiver.seen() == BOTH


def test_an_evaluator_whose_lease_has_passed_changes_nothing(
    server: Server, store: Store, meter: Meter, rules: Rules, evaluator: Make, alerts: AlertStore
) -> None:
    """Though it evaluated before: a write names the lease's epoch and the version it follows."""
    late = AlertStore(store, "late")
    assert late.acquire(60.0) is not None
    free(server)
    rise(meter)
    evaluator(rules).cycle()
    (state,) = alerts.snapshot().states.values()
    assert not late.write("queue", state, None, None, [])
    assert late.acquire(60.0) is None
    assert list(alerts.snapshot().states) == ["queue"]
    free(server)
    assert late.acquire(60.0) is not None
    assert not late.write("queue", AlertState(), state, None, [])  # follows another version
    assert late.write("queue", state, replace(state, version=state.version + 1), None, [])
    assert not late.write("queue", state, state, None, [])


class Killed(BaseException):
    """The end of a process."""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_at_any_step_loses_nothing_and_repeats_at_most_one_notice(
    when: str,
    server: Server,
    meter: Meter,
    rules: Rules,
    store: Store,
    alerts: AlertStore,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before or after each exchange and each notice. Transitions are recorded exactly once."""
    left = [0]

    def dying(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            left[0] -= 1
            if left[0] == 0 and when == "before":
                raise Killed
            result = function(*args)
            if left[0] == 0:
                raise Killed
            return result

        return call

    monkeypatch.setattr(AlertStore, "_run", dying(AlertStore._run))
    deliver = dying(receiver.deliver)
    kills = step = 0
    killed = True
    while killed:
        killed, step = False, step + 1
        server.client().flushall()
        receiver.notices.clear()
        for change in (rise, fall):
            change(meter)
            left[0] = step
            try:
                Evaluator(store, rules, deliver=deliver).cycle()
            except Killed:
                killed, kills = True, kills + 1
            left[0] = 0
            if server.client().hexists("redmeter:alerts:", "lease"):
                free(server)
            Evaluator(store, rules, deliver=deliver).cycle()
            free(server)
        assert [(each.name, each.status) for each in alerts.transitions()] == BOTH[::-1]
        times = Counter(notice.key for notice in receiver.notices)
        assert len(times) == 4
        assert times.total() <= 4 + 2
        for name in ("ops", "log"):
            assert list(dict.fromkeys(receiver.seen(name))) == BOTH
        assert alerts.snapshot().notices == []
    assert kills > 8


def test_a_notice_that_fails_waits_and_holds_back_those_behind_it(
    server: Server,
    meter: Meter,
    rules: Rules,
    evaluator: Make,
    alerts: AlertStore,
    receiver: Receiver,
) -> None:
    """In order for each alert and notifier; the other notifier is not held up."""
    one = evaluator(rules)
    receiver.failing = {"ops"}
    rise(meter)
    assert one.cycle().failed == 1
    fall(meter)
    one.cycle()
    assert receiver.seen("log") == BOTH
    waiting = alerts.snapshot().notices
    assert [(each.status, each.attempts) for each in waiting] == [("firing", 1), ("resolved", 0)]
    assert waiting[0].error == "HTTP status 503"
    receiver.failing = set()
    one.cycle()
    assert receiver.seen("ops") == []  # not due yet
    with server.client() as client:
        number = str(waiting[0].number)
        text = client.hget("redmeter:notices:", number)
        client.hset("redmeter:notices:", number, text.replace(b'"due":', b'"due":0.0,"was":', 1))
        client.hset("redmeter:notices:", number, text.split(b',"due":')[0] + b"}")
    one.cycle()
    assert receiver.seen("ops") == BOTH


def test_silences_and_removed_alerts(
    meter: Meter,
    rules: Rules,
    evaluator: Make,
    alerts: AlertStore,
    receiver: Receiver,
) -> None:
    """A silenced alert fires but is not sent; one that left the file is resolved and forgotten."""
    alerts.silence(Silence("x", "que*", time.time() + 3600))
    rise(meter)
    one = evaluator(rules)
    assert one.cycle().transitions == 1
    assert receiver.notices == []
    assert alerts.unsilence("x")
    assert not alerts.unsilence("x")
    one.cycle()
    assert receiver.seen() == [("queue", "firing")]
    one._rules = parse_rules(RULES.replace('"queue"', '"line"'))
    one.cycle()
    assert ("queue", "resolved") in receiver.seen()
    assert list(alerts.snapshot().states) == ["line"]


def test_nothing_fires_while_the_store_is_unreachable(
    server: Server, meter: Meter, rules: Rules, evaluator: Make, receiver: Receiver
) -> None:
    """The state is unknown then; the evaluator continues afterwards."""
    one = evaluator(rules)
    one.cycle()
    rise(meter)
    server.stop()
    with pytest.raises(StoreUnavailable):
        one.cycle()
    assert receiver.notices == []
    server.start()


def test_alerts_on_a_cluster(cluster: Cluster, rules: Rules, receiver: Receiver) -> None:
    """All keys of alerts share a slot."""
    with Meter(cluster.url, sync=True) as meter, opened_store(cluster.url) as store:
        rise(meter)
        done = Evaluator(store, rules, deliver=receiver.deliver).cycle()
        assert (done.transitions, done.delivered) == (1, 2)
        assert [each.status for each in AlertStore(store).transitions()] == ["firing"]


def test_damaged_entries_are_skipped(
    server: Server, meter: Meter, rules: Rules, evaluator: Make, receiver: Receiver
) -> None:
    """Another program's, or a later release's."""
    with server.client() as client:
        client.hset("redmeter:alerts:", mapping={"alert:queue": "?", "silence:x": "[]", "y": "z"})
        client.hset("redmeter:notices:", mapping={"1": "{}", "2": "?"})
        client.rpush("redmeter:transitions:", "?")
    rise(meter)
    evaluator(rules).cycle()
    assert receiver.seen() == [("queue", "firing")]
