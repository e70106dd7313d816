"""The command alerts: what an operator types, and what is wrong."""

import json
import signal
import time
from pathlib import Path

import pytest

from redmeter import Meter
from redmeter.alerting.evaluator import Evaluator
from redmeter.alerting.rules_file import parse_rules
from support.alerts import RULES
from support.commands import Home
from support.invoking import Run
from support.servers import Server
from support.stores import opened_store
from support.waiting import eventually

#: The settings of the first notifier of RULES.
SENT = 'type = "command"\ncommand = ["true"]'


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A file of alerts."""
    path = tmp_path / "alerts.toml"
    path.write_text(RULES)
    return str(path)


def test_a_file_is_checked(redmeter: Run, file: str) -> None:
    """A valid one, without a store."""
    done = redmeter("alerts", "check", "--file", file, REDMETER_URL="")
    assert (done.code, done.out, done.err) == (0, "valid: 1 alert, 2 notifiers\n", "")
    found = json.loads(redmeter("alerts", "check", "-f", file, "--json", REDMETER_URL="").out)
    assert found == {
        "alerts": ["queue"],
        "notifiers": ["ops", "log"],
        "valid": True,
        "warnings": [],
    }


def test_every_mistake_of_a_file_is_on_a_line(redmeter: Run, file: str) -> None:
    """With the file, the line and the key, also for programs; other actions report them too."""
    Path(file).write_text(RULES.replace("100", "inf").replace('"1m"', '"1"'))
    done = redmeter("alerts", "check", "-f", file, "--json")
    assert done.code == 2
    first, second = done.err.removeprefix("error: ").splitlines()
    assert first.startswith(f'{file}, line 7: alert "queue": above: a number, not inf')
    assert second.startswith(f'{file}, line 8: alert "queue": window: ')
    document = json.loads(done.out)
    assert not document["valid"]
    assert [(each["file"], each["line"], each["key"]) for each in document["mistakes"]] == [
        (file, 7, "above"),
        (file, 8, "window"),
    ]
    assert redmeter("alerts", "run", "-f", file).err == done.err


def test_a_file_is_compared_with_the_store(redmeter: Run, meter: Meter, file: str) -> None:
    """A label that no series has is a warning; so is a store that does not answer."""
    meter.gauge("queue_length", labels={"queue": "mail"}).set(3, at=time.time() - 30)
    named = RULES.replace('"queue_length"', "'queue_length{queu=\"mail\"}'")
    Path(file).write_text(named + RULES[: RULES.index("[notify")].replace('"queue"', '"all"'))
    done = redmeter("alerts", "check", "--file", file)
    assert (done.code, done.out) == (0, "valid: 2 alerts, 2 notifiers\n")
    unknown = "queue: no data: no series of 'queue_length' has the label queu: labels: queue"
    assert f"warning: {unknown}\n" in done.err
    assert "warning: all: cannot be evaluated: " in done.err
    document = json.loads(redmeter("alerts", "check", "--file", file, "--json").out)
    assert document["warnings"][0] == unknown
    kind = named.replace("mail", "x").replace("last", "p95").replace("queu=", "queue=")
    Path(file).write_text(kind)
    assert (
        "warning: queue: cannot be evaluated: 'queue_length' is recorded as a gauge: "
        'value = "last", "min", "max", "mean" or "sum"\n'
    ) in redmeter("alerts", "check", "--file", file).err
    nowhere = redmeter("alerts", "check", "--file", file, "--url", "redis://127.0.0.1:1/0")
    assert nowhere.code == 0
    assert "the store's retention is not checked: no answer from " in nowhere.err
    assert "warning" not in redmeter("alerts", "check", "--file", file, REDMETER_URL="").err


def test_a_metric_without_series_is_a_warning(redmeter: Run, meter: Meter, file: str) -> None:
    """With the names that it resembles; both metrics of a ratio are looked up."""
    meter.counter("signups", labels={"plan": "pro"}).inc()
    meter.counter("visits").inc()
    meter.flush()
    rule = 'when = "ratio"\nmetric = "signup"\nof = "visits"\nabove = 0.5\nnotify = ["ops"]\n'
    notifier = '[notify.ops]\ntype = "command"\ncommand = ["true"]\n'
    Path(file).write_text(f'[[alert]]\nname = "a"\n{rule}{notifier}')
    first = "warning: a: nothing is recorded yet as 'signup'; available: signups"
    done = redmeter("alerts", "check", "-f", file)
    assert (done.code, done.out) == (0, "valid: 1 alert, 1 notifier\n")
    assert done.err.startswith(first)
    Path(file).write_text(Path(file).read_text().replace('"signup"', '"signups"', 1))
    assert redmeter("alerts", "check", "-f", file).err == ""
    Path(file).write_text(Path(file).read_text().replace('"visits"', '"visit"', 1))
    assert "as 'visit'; available: visits" in redmeter("alerts", "check", "-f", file).err


@pytest.mark.parametrize(
    ("old", "new", "warning"),
    [
        (RULES, "", "there is no [[alert]]: nothing is evaluated"),
        ('notify = ["ops", "log"]', "", "without notify, so nothing is sent: queue"),
        (', "log"]', "]", "notify.log: no alert names it in notify"),
        ("above", 'severity = "pagge"\nabove', "queue: severity 'pagge' is unusual"),
        ('["true"]', '["no-such-program -x"]', "notify.ops: there is no program 'no-such-"),
        (SENT, 'type = "slack"\nurl_env = "UNSET"', "notify.ops: the variable UNSET is not set"),
        (
            SENT,
            'type = "slack"\nurl_env = "ODD"',
            "notify.ops: the URL in ODD must begin with https://",
        ),
    ],
)
def test_what_is_valid_and_perhaps_not_meant_is_a_warning(
    redmeter: Run, file: str, old: str, new: str, warning: str
) -> None:
    """On the terminal and for programs; the exit code is that of a valid file."""
    Path(file).write_text(RULES.replace(old, new, 1))
    done = redmeter("alerts", "check", "-f", file, REDMETER_URL="", ODD="hooks.example.com/x")
    assert done.code == 0
    assert f"warning: {warning}" in done.err
    done = redmeter(
        "alerts", "check", "-f", file, "--json", REDMETER_URL="", ODD="hooks.example.com/x"
    )
    assert any(warning in each for each in json.loads(done.out)["warnings"])


def test_a_file_is_utf_8_text(redmeter: Run, file: str) -> None:
    """With or without a byte order mark; another byte is named with its line."""
    Path(file).write_bytes(b"\xef\xbb\xbf" + RULES.encode())
    assert redmeter("alerts", "check", "--file", file).code == 0
    Path(file).write_bytes(b"# 1\n# \xff\n" + RULES.encode())
    done = redmeter("alerts", "check", "-f", file, "--json")
    assert (done.code, f"{file}, line 2: not UTF-8 text" in done.err) == (2, True)
    assert [each["line"] for each in json.loads(done.out)["mistakes"]] == [2]
    Path(file).write_bytes(RULES.encode("utf-16"))
    assert f"{file}, line 1: not UTF-8 text" in redmeter("alerts", "check", "-f", file).err


def test_messages_are_shown_with_sample_values(redmeter: Run, file: str) -> None:
    """Each once: the template of a rule, or its condition."""
    text = RULES.replace(
        "notify = ", 'by = "shop"\nmessage = "{value:.1f} in {labels}"\nnotify = ', 1
    )
    Path(file).write_text(text)
    done = redmeter("alerts", "check", "-f", file, "--test", "--json")
    name = 'queue{shop="example"}'
    assert json.loads(done.out)["messages"] == {name: "100.0 in shop=example"}
    assert (
        f"{name}\t100.0 in shop=example\n" in redmeter("alerts", "check", "-f", file, "--test").out
    )
    done = redmeter("alerts", "list", "--test")
    assert (done.code, done.err) == (2, "error: --test: only for redmeter alerts check\n")


def test_the_retention_of_the_store_is_checked_if_it_is_named(
    redmeter: Run, server: Server, file: str
) -> None:
    """A store that is unreachable is no mistake of the file."""
    Path(file).write_text(RULES.replace('"1m"', '"200d"'))
    done = redmeter("alerts", "check", "-f", file)
    assert f'{file}, line 8: alert "queue": window: not kept' in done.err
    for url in ("redis://127.0.0.1:1", "off"):
        done = redmeter("alerts", "check", "-f", file, "--url", url)
        assert (done.code, done.out) == (0, "valid: 1 alert, 2 notifiers\n")
        assert ("the store's retention is not checked" in done.err) == (url != "off")


def test_silences_are_made_listed_and_removed(redmeter: Run, file: str) -> None:
    """With an ID; a second removal says that there is none."""
    done = redmeter("alerts", "silence", "q*", "--file", file, "--for", "2h", "--json")
    made = json.loads(done.out)["silence"]
    assert made["alerts"] == "q*"
    assert made["until"] > time.time() + 7000
    listed = redmeter("alerts")
    assert f"silence {made['id']}: q* until" in listed.out
    assert "no alert has fired" in listed.out
    assert "no evaluator is running" in listed.err
    assert redmeter("alerts", "unsilence", made["id"]).code == 0
    assert redmeter("alerts", "unsilence", made["id"]).code == 1


def test_an_unknown_alert_cannot_be_silenced(redmeter: Run, server: Server, file: str) -> None:
    """The alerts are those of the file, and of the evaluator that ran last."""
    done = redmeter("alerts", "silence", "queue")
    assert done.code == 1
    assert "no evaluator has run yet: name the file of alerts by --file" in done.err
    by_shop = RULES.replace('"queue"', '"shops"') + '[[alert]]\nname = "x"\nwhen = "verdict"\n'
    with opened_store(server.url) as store:
        Evaluator(store, parse_rules(by_shop.replace("above", 'by = "shop"\nabove'))).cycle()
    for known in ("shops", "s*", 'shops{shop="a"}', "shops{*", "?"):
        assert redmeter("alerts", "silence", known).code == 0
    for unknown in ("queue", "shop", 'shops{plan="a"}', 'x{shop="a"}'):
        done = redmeter("alerts", "silence", unknown)
        assert done.code == 1
        assert "; alerts: shops, x; * and ? match any text" in done.err
    assert redmeter("alerts", "silence", "queue", "--file", file).code == 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("silence",), "needs alerts"),
        (("test", "ops"), "name the file of alerts, or set REDMETER_ALERTS"),
        (("list", "queue"), "takes no further argument, not 'queue'"),
        (("check", "--file", "/no/such/file"), "No such file or directory"),
        (("check", "--file", "/dev/zero"), "larger than 1,000,000 bytes"),
        (("silence", "x", "--for", "soon"), "--for: 'soon': give seconds, or 5s, 1m, 5h, 1d"),
        (("silence", "x", "--for", "0"), "--for: '0': give 1s or more"),
        (("silence", "x", "--for", "999d"), "--for: '999d': give 366d or less"),
        (("run", "--interval", "0"), "--interval: '0': give 1s or more"),
        (("run", "--interval", "abc"), "--interval: 'abc': give seconds"),
        (("run", "--interval", "2d"), "--interval: '2d': give 1d or less"),
        (("fire",), "ACTION: 'fire' is none: give one of 'list', 'history', 'check'"),
    ],
)
def test_a_wrong_call_says_what_would_be_right(
    redmeter: Run, words: tuple[str, ...], reason: str
) -> None:
    """With exit code 2."""
    done = redmeter("alerts", *words)
    assert done.code == 2
    assert reason in done.err


def test_a_replay_and_a_test_notice(redmeter: Run, server: Server, file: str) -> None:
    """Before anything is switched on."""
    with Meter(server.url, sync=True) as meter:
        for ago in range(1200, 600, -30):
            meter.gauge("queue_length").set(500, at=time.time() - ago)
        meter.gauge("queue_length").set(5, at=time.time() - 400)
    done = redmeter("alerts", "replay", "--file", file, "--since", "40m")
    assert "queue: would have fired 1 time since" in done.out
    assert "last of queue_length over 1 min is 500" in done.out
    assert redmeter("alerts", "test", "ops", "--file", file).out == "delivered to ops\n"
    Path(file).write_text(RULES.replace('"true"', '"false"'))
    done = redmeter("alerts", "test", "ops", "--file", file)
    assert done.code == 1
    assert "not delivered: exit code 1" in done.err
    assert redmeter("alerts", "test", "gone", "--file", file).code == 1


@pytest.mark.slow
def test_run_evaluates_until_it_is_told_to_stop(
    redmeter: Run, home: Home, meter: Meter, file: str
) -> None:
    """What it finds is listed by another process, with its history."""
    meter.gauge("queue_length").set(500, at=time.time() - 30)
    running = home.start("alerts", "run", "--file", file, "--interval", "1")

    def fired() -> bool:
        assert running.child.poll() is None
        found = json.loads(redmeter("alerts", "--json").out)
        return [(each["name"], each["status"]) for each in found["alerts"]] == [("queue", "firing")]

    eventually(fired, 30.0, "the alert fires")
    assert json.loads(redmeter("alerts", "--json").out)["running"]
    assert "last of queue_length over 1 min is 500" in redmeter("alerts").out
    assert "firing" in redmeter("alerts", "history").out
    running.child.send_signal(signal.SIGINT)
    assert running.child.wait(20.0) == 0
    assert not json.loads(redmeter("alerts", "--json").out)["running"]


#: Code for evaluators whose lease is short.
SHORT = """
from redmeter.alerting.evaluator import Evaluator
Evaluator.__init__.__kwdefaults__["lease"] = 2.5
"""
#: Code for one that is stopped right before it begins an attempt, as by a debugger or a full disk.
STOPPED = """
import os, signal, subprocess
begin = subprocess.Popen
def stopped(*args, **kwargs):
    subprocess.Popen = begin
    os.kill(os.getpid(), signal.SIGSTOP)
    return begin(*args, **kwargs)
subprocess.Popen = stopped
"""


@pytest.mark.slow
def test_an_evaluator_that_was_stopped_and_lost_its_lease_does_not_send(
    redmeter: Run, home: Home, meter: Meter, file: str
) -> None:
    """It was about to: another one has sent the notice meanwhile. It goes on as the second."""
    received = home.root / "received"
    note = json.dumps(["sh", "-c", f"cat >> {received}; echo >> {received}"])
    Path(file).write_text(RULES.replace('["true"]', note).replace('["ops", "log"]', '["ops"]'))
    meter.gauge("queue_length").set(500, at=time.time() - 30)
    run = ("alerts", "run", "--file", file, "--interval", "1")
    first = home.start(*run, code=SHORT + STOPPED)

    def is_stopped() -> bool:
        return Path(f"/proc/{first.child.pid}/stat").read_text().split(") ")[1][0] == "T"

    eventually(is_stopped, 30.0, "it is about to send")
    second = home.start(*run, code=SHORT)
    eventually(lambda: received.exists() and received.read_text(), 30.0, "the second one sends")

    def is_recorded() -> bool:
        return not json.loads(redmeter("alerts", "--json").out)["undelivered"]

    eventually(is_recorded, 30.0, "the second one has recorded it")
    first.child.send_signal(signal.SIGCONT)
    second.child.kill()  # now the first one takes over, once it has noticed
    over = time.monotonic() + 4.0
    eventually(lambda: time.monotonic() > over and not is_stopped(), 30.0)
    meter.gauge("queue_length").set(5, at=time.time() - 12)
    eventually(lambda: "resolved" in received.read_text(), 30.0, "the first one goes on")
    keys = [json.loads(line)["key"] for line in received.read_text().splitlines() if line]
    assert len(keys) == len(set(keys)) == 2
    first.child.send_signal(signal.SIGTERM)
    assert first.child.wait(20.0) == 0


@pytest.mark.slow
def test_run_ends_while_the_server_does_not_answer(
    redmeter: Run, home: Home, server: Server, file: str
) -> None:
    """Though a request waits for a reply."""
    running = home.start("alerts", "run", "--file", file, "--interval", "1")
    eventually(lambda: json.loads(redmeter("alerts", "--json").out)["running"], 30.0)
    with server.client() as client:
        client.execute_command("CLIENT", "PAUSE", "9000", "ALL")
    over = time.monotonic() + 4.5  # by then it waits for a reply
    eventually(lambda: time.monotonic() > over)
    begun = time.monotonic()
    running.child.send_signal(signal.SIGTERM)
    assert running.child.wait(20.0) == 0
    took = time.monotonic() - begun
    assert took < 2.0, "the end waited for the server"


@pytest.mark.slow
def test_another_evaluator_takes_over_soon_after_a_kill(
    redmeter: Run, home: Home, server: Server, meter: Meter, file: str
) -> None:
    """While an attempt of the first one runs; the second one sends the notice."""
    received = home.root / "received"
    note = json.dumps(
        ["sh", "-c", f"echo sent >> {received}; test -e {received}.2 || exec sleep 99"]
    )
    Path(file).write_text(RULES.replace('["true"]', note).replace('["ops", "log"]', '["ops"]'))
    meter.gauge("queue_length").set(500, at=time.time() - 5)
    first = home.start("alerts", "run", "--file", file)
    eventually(received.exists, 30.0, "an attempt runs")
    home.start("alerts", "run", "--file", file)

    def owner() -> bytes:
        with server.client() as client:
            return bytes(client.hget("redmeter:alerts:", "lease").split()[2])

    leading = owner()
    Path(f"{received}.2").touch()
    first.child.kill()
    eventually(lambda: owner() != leading, 15.0, "another one has the lease")
    eventually(lambda: received.read_text() == "sent\nsent\n", 15.0, "it sends the notice")
    eventually(lambda: not json.loads(redmeter("alerts", "--json").out)["undelivered"])
    eventually(lambda: len(home.processes()) == 1, 15.0, "the first one's attempt has ended")
