"""The evaluator on a real server: what is recorded once, what is sent, and what survives a kill."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NoReturn

import pytest

from redmeter import Meter
from redmeter.alerting import evaluator as evaluator_module
from redmeter.alerting.conditions import RuleReader
from redmeter.alerting.evaluator import Evaluator
from redmeter.alerting.mistakes import InvalidRules
from redmeter.alerting.rules import Notifier, Rules
from redmeter.alerting.rules_file import parse_rules
from redmeter.alerting.state import AlertState, Readings
from redmeter.alerting.status import make_status
from redmeter.alerting.store import AlertStore, Notice, Silence
from redmeter.errors import StoreUnavailable
from redmeter.store import Store
from support.alerts import RULES, Receiver, fall, rise
from support.clusters import Cluster
from support.servers import Server
from support.stores import opened_store
from support.waiting import eventually

Make = Callable[[Rules], Evaluator]
BOTH = [("queue", "firing"), ("queue", "resolved")]


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


def test_an_evaluator_that_had_lost_its_lease_meanwhile_sends_nothing_of_an_earlier_one(
    server: Server, store: Store, meter: Meter, rules: Rules, receiver: Receiver
) -> None:
    """Though it has the lease again: the other one has sent the same notices."""
    other = Evaluator(store, rules, deliver=receiver.deliver)
    mine = Receiver()

    def interrupted(notifier: Notifier, notice: Notice, seconds: float) -> Iterable[None]:
        if not mine.notices:
            free(server)
            assert other.cycle().delivered == 2
            free(server)
        return mine.deliver(notifier, notice, seconds)

    rise(meter)
    one = Evaluator(store, rules, deliver=interrupted)
    assert one.cycle().delivered == 1  # it had begun this attempt
    assert one.cycle().leading
    assert mine.seen() == BOTH[:1]
    assert mine.seen("log") == []
    assert receiver.seen() == receiver.seen("log") == BOTH[:1]


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


def broken(*_: object) -> NoReturn:
    """Fail, as a bug of ours: with a secret in the text."""
    raise ZeroDivisionError("token=s3cr3t")


#: A bug -> the class and the method, the counted kind, and the notices that arrive.
BUGS = {
    "a rule": (RuleReader, "_gauges", "rule", [("checked", "firing")]),
    "a message": (evaluator_module, "message_of", "message", [("checked", "firing"), *BOTH[:1]]),
    "a cycle": (Evaluator, "_drop_removed", "cycle", []),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_logged_once_and_counted_and_the_others_go_on(
    bug: str,
    meter: Meter,
    evaluator: Make,
    alerts: AlertStore,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Another rule is evaluated, another notice is sent, the next cycle runs."""
    owner, method, kind, seen = BUGS[bug]
    second = '[[alert]]\nname = "checked"\nwhen = "absent"\nmetric = "x"\nnotify = ["ops"]\n'
    one = evaluator(parse_rules(RULES + second))
    one._interval = 0.01
    rise(meter)
    with monkeypatch.context() as patch:
        patch.setattr(owner, method, broken)
        turns = iter([False] * 40)
        one.run(lambda pause: threading.Event().wait(min(pause, 0.02)) or next(turns, True))
    status = make_status(alerts.snapshot())
    assert status.troubles[kind] > 1 or bug == "a message"
    assert status.troubles.keys() == {kind}
    assert status.last_trouble.startswith(
        f"{kind}: ZeroDivisionError: token=*** (test_evaluator.py:"
    )
    logged = [each.getMessage() for each in caplog.records if "itself" in each.getMessage()]
    assert logged == [f"redmeter: an error of the evaluator itself: {status.last_trouble}"]
    assert sorted(receiver.seen()) == seen
    if bug == "a rule":
        (rule,) = (each for each in status.rules if each.name == "queue")
        assert rule.unknown == "cannot be evaluated: ZeroDivisionError: token=***"
    if bug == "a message":
        texts = [notice.message for notice in receiver.notices]
        assert all("(the message cannot be written: ZeroDivision" in text for text in texts)
    turns = iter([False] * 20)
    one.run(lambda _: next(turns, True))
    assert ("queue", "firing") in receiver.seen()


def test_a_rule_whose_data_the_server_refuses_is_unknown_and_the_others_go_on(
    server: Server, meter: Meter, rules: Rules, receiver: Receiver, alerts: AlertStore
) -> None:
    """As with a user that may not read what one rule needs."""
    denied = '[[alert]]\nname = "denied"\nwhen = "new_exception"\n'
    rise(meter)
    with server.client() as client:
        keys = ("resetkeys", "~redmeter:[^e]*")
        client.execute_command("ACL", "SETUSER", "ada", "on", ">pw", "+@all", *keys)
    with opened_store(server.url.replace("://", "://ada:pw@")) as store:
        rules = parse_rules(denied + RULES)
        assert Evaluator(store, rules, deliver=receiver.deliver).cycle().delivered == 2
    (status,) = (each for each in make_status(alerts.snapshot()).rules if each.name == "denied")
    assert status.unknown.startswith("cannot be evaluated: ")
    assert make_status(alerts.snapshot()).troubles == {}


@pytest.mark.parametrize("template", ["{value!x}", "{value!r:.1f}", "{value.x}", "{nothing}", "{"])
def test_a_template_that_cannot_be_used_does_not_hold_a_notice_back(
    template: str, meter: Meter, rules: Rules, evaluator: Make, receiver: Receiver
) -> None:
    """A file with it is refused; the notice of another rule has the reason in its text."""
    with pytest.raises(InvalidRules, match="message"):
        parse_rules(RULES.replace('"1m"', f'"1m"\nmessage = "{template}"'))
    bad = Rules((replace(rules.alerts[0], message=template),), rules.notifiers)
    rise(meter)
    evaluator(bad).cycle()
    assert receiver.seen() == [("queue", "firing")]
    assert "(the message cannot be written: " in receiver.notices[0].message


def test_what_came_of_an_attempt_is_stored_when_the_store_is_reachable_again(
    store: Store, meter: Meter, rules: Rules, alerts: AlertStore, receiver: Receiver
) -> None:
    """A notice that was delivered is not sent again."""
    settle, failing = AlertStore.settle, [True, True]

    def unreachable(*args: Any, **kwargs: Any) -> bool:
        if failing:
            failing.pop()
            raise StoreUnavailable("redis://127.0.0.1", "no answer")
        return settle(*args, **kwargs)

    one = Evaluator(store, rules, deliver=receiver.deliver, interval=0.01)
    rise(meter)
    turns = iter([False] * 40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AlertStore, "settle", unreachable)
        one.run(lambda _: next(turns, True))
    assert failing == []
    assert alerts.snapshot().notices == []
    assert Counter(notice.key for notice in receiver.notices).most_common(1)[0][1] == 1
    assert receiver.seen("log") == receiver.seen("ops") == BOTH[:1]


def test_the_lease_is_renewed_between_rules(
    store: Store, meter: Meter, rules: Rules, alerts: AlertStore, receiver: Receiver
) -> None:
    """One that takes longer than the lease in all keeps it; when it is lost, a cycle ends."""
    rise(meter)
    names = [f"a{number}" for number in range(8)]
    many = Rules(tuple(replace(rules.alerts[0], name=name) for name in names), rules.notifiers)
    one = Evaluator(store, many, deliver=receiver.deliver, lease=2.0)
    read = RuleReader.read
    other = AlertStore(store, "other")
    taken: list[float | None] = []

    def slow(*args: Any) -> Readings:
        over = time.monotonic() + 0.4
        eventually(lambda: time.monotonic() > over)
        taken.append(other.acquire(2.0))
        return read(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RuleReader, "read", slow)
        done = one.cycle()
    assert (done.evaluated, done.delivered) == (8, 16)
    assert taken == [None] * 8
    over = time.monotonic() + 2.1
    eventually(lambda: time.monotonic() > over and other.acquire(3.5))
    assert not one.cycle().leading
