"""The command alerts: what an operator types, and what is wrong."""

import json
import signal
import time
from pathlib import Path

import pytest

from redmeter import Meter
from support.alerts import RULES
from support.commands import Home
from support.invoking import Run
from support.servers import Server
from support.waiting import eventually


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A file of alerts."""
    path = tmp_path / "alerts.toml"
    path.write_text(RULES)
    return str(path)


def test_a_file_is_checked(redmeter: Run, file: str) -> None:
    """A valid one, and one with a mistake, which names the alert."""
    assert redmeter("alerts", "check", "--file", file).out == "valid: 1 alert, 2 notifiers\n"
    found = json.loads(redmeter("alerts", "check", "--file", file, "--json").out)
    assert found == {
        "alerts": ["queue"],
        "notifiers": ["ops", "log"],
        "valid": True,
        "warnings": [],
    }
    Path(file).write_text(RULES.replace("above", "abov"))
    done = redmeter("alerts", "check", "-f", file)
    assert done.code == 2
    assert f"{file}, line 7: alert \"queue\": unknown key 'abov'" in done.err


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
    nowhere = redmeter("alerts", "check", "--file", file, "--url", "redis://127.0.0.1:1/0")
    assert nowhere.code == 0
    assert "warning: the file was not compared with the store: no answer from " in nowhere.err
    assert "warning" not in redmeter("alerts", "check", "--file", file, REDMETER_URL="").err


def test_silences_are_made_listed_and_removed(redmeter: Run) -> None:
    """With an ID; a second removal says that there is none."""
    made = json.loads(redmeter("alerts", "silence", "q*", "--for", "2h", "--json").out)["silence"]
    assert made["alerts"] == "q*"
    assert made["until"] > time.time() + 7000
    listed = redmeter("alerts")
    assert f"silence {made['id']}: q* until" in listed.out
    assert "no alert has fired" in listed.out
    assert "no evaluator is running" in listed.err
    assert redmeter("alerts", "unsilence", made["id"]).code == 0
    assert redmeter("alerts", "unsilence", made["id"]).code == 1


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("silence",), "needs alerts"),
        (("test", "ops"), "name the file of alerts, or set REDMETER_ALERTS"),
        (("list", "queue"), "takes no further argument, not 'queue'"),
        (("check", "--file", "/no/such/file"), "No such file or directory"),
        (("check", "--file", "/dev/zero"), "larger than 1,000,000 bytes"),
        (("silence", "x", "--for", "soon"), "soon"),
        (("fire",), "fire"),
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
