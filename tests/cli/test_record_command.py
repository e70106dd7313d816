"""count, set, observe: from shell scripts."""

import json
import time
from typing import Any

import pytest

from redmeter import Meter
from support.commands import Done, Home
from support.servers import free_port

Run = Any

#: Command -> a value.
COMMANDS = {"count": "3", "set": "-2.5", "observe": "0.25"}


def recorded(
    meter: Meter, command: str, name: str, labels: dict[str, str] | None = None
) -> float | None:
    """Return the recorded total, newest value or mean of a name."""
    if command == "count":
        return meter.total(name, labels=labels)
    if command == "set":
        return meter.gauge_series(name, labels=labels, precision=86400).values[-1]
    return meter.summary(name, labels=labels, precision=60).mean


@pytest.mark.servers
@pytest.mark.parametrize("command", COMMANDS)
def test_an_event_is_stored_when_the_command_ends(
    redmeter: Run, meter: Meter, command: str
) -> None:
    """It prints nothing, since cron mails what is printed."""
    assert redmeter(command, "backups", COMMANDS[command]) == Done(0, "", "")
    assert recorded(meter, command, "backups") == float(COMMANDS[command])


def test_count_counts_one_by_default(redmeter: Run, meter: Meter) -> None:
    """As inc() does."""
    redmeter("count", "backups")
    redmeter("count", "backups")
    assert meter.total("backups") == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_labels_come_from_options_and_from_braces(
    redmeter: Run, meter: Meter, command: str
) -> None:
    """Of several options, each is one label; a label of both is an error."""
    value = COMMANDS[command]
    done = redmeter(
        command, 'jobs{queue="a b"}', value, "--label", "host=w1", "--label", "zone=x=y"
    )
    assert done.code == 0
    labels = {"queue": "a b", "host": "w1", "zone": "x=y"}
    assert recorded(meter, command, "jobs", labels=labels) == float(value)
    done = redmeter(command, 'jobs{queue="a"}', value, "--label", "queue=b")
    assert (done.code, "the label 'queue' is given twice" in done.err) == (2, True)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_time_can_be_given(redmeter: Run, meter: Meter, command: str) -> None:
    """As an age, in UTC or in Unix seconds; outside the retention nothing is recorded."""
    assert redmeter(command, "old", COMMANDS[command], "--at", "1h").code == 0
    since = time.time() - 3600 - 120
    until = since + 240
    if command == "count":
        assert meter.series("old", precision=60, since=since, until=until).total == 3
    elif command == "set":
        found = meter.gauge_series("old", precision=60, since=since, until=until)
        assert -2.5 in found.values
    else:
        assert meter.summary("old", precision=60, since=since, until=until).count == 1
    for at in ("2001-01-01", "4102444800"):
        done = redmeter(command, "never", COMMANDS[command], "--at", at)
        assert (done.code, "is outside the retention" in done.err) == (2, True)
    assert redmeter("names", "never").code == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("count hits 2.5", "AMOUNT: '2.5': give a whole number"),
        ("count hits -1", "AMOUNT: '-1': give a whole number"),
        ("count hits 99999999999999999999", "2^63 - 1"),
        ("count hits 1 2", "2"),
        ("count {} 1", "invalid series name"),
        ("count hits --label plan", "--label: 'plan'"),
        ("count hits --at soon", "--at: 'soon'"),
        ("count --wrong", "no such option: --wrong"),
        ("count - 3", "the values are in the lines: leave out '3'"),
        ("set q", "VALUE: is missing"),
        ("set q nan", "VALUE: 'nan': give a finite number"),
        ("set q 1_0", "VALUE: '1_0': give a finite number"),
        ("observe q many", "VALUE: 'many': give a finite number"),
        ("observe q 1e999", "VALUE: '1e999': give a finite number"),
    ],
)
def test_wrong_input_is_exit_code_2_and_records_nothing(
    redmeter: Run, words: str, said: str
) -> None:
    """The error names the argument."""
    done = redmeter(*words.split())
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert redmeter("names").code == 1


def test_json_has_the_stored_name_the_value_and_the_time(redmeter: Run) -> None:
    """And the error, if there is one."""
    done = redmeter("set", "q", "1.5", "--at", "2001-01-01", "--json")
    assert json.loads(done.out)["error"]["code"] == "bad-parameter"
    done = redmeter("set", 'q{b="1",a="2"}', "1.5", "--json")
    found = json.loads(done.out)
    assert abs(found.pop("time") - time.time()) < 60
    assert found == {"name": 'q{a="2",b="1"}', "kind": "gauge", "value": 1.5}


def test_without_a_store_the_exit_code_is_3(redmeter: Run) -> None:
    """And nothing is left in memory that could be stored later."""
    done = redmeter("count", "hits", REDMETER_URL=f"redis://127.0.0.1:{free_port()}")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error: no answer from redis://127.0.0.1")


def test_a_rejected_event_is_exit_code_3(redmeter: Run, client: Any) -> None:
    """The key belongs to another program."""
    client.set("redmeter:count:60:hits", "theirs")
    done = redmeter("count", "hits")
    assert done.code == 3
    assert "the server rejected hits (WRONGTYPE)" in done.err


def test_durability_is_asked_for(redmeter: Run, meter: Meter) -> None:
    """A server without replicas cannot confirm; the event is stored all the same."""
    done = redmeter("count", "hits", REDMETER_DURABILITY="replica")
    assert done.code == 3
    assert "replica" in done.err
    assert meter.total("hits") == 1


LINES = b"""\
hits 2
hits
\tpages{route="/a b}",method="GET"}\t3

bad name here
pages{route=} 1
hits -4
pages{route="x"}
\xff 1
"""


def test_lines_of_standard_input_are_recorded_without_the_bad_ones(
    redmeter: Run, meter: Meter
) -> None:
    """Each bad one is named by its number; then the exit code is 1."""
    done = redmeter("count", "-", "--label", "host=w1", text=LINES)
    assert (done.code, done.out) == (1, "")
    *listed, last = done.err.splitlines()
    numbers = [line.partition(":")[0] for line in listed]
    assert numbers[:3] == ["line 5", "line 6", "line 7"]
    assert last == f"error: {9 - 1 - len(numbers)} lines recorded, {len(numbers)} refused"
    assert meter.total("hits", labels={"host": "w1"}) == 3
    pages = {"route": "/a b}", "method": "GET", "host": "w1"}
    assert meter.total("pages", labels=pages) == 3
    assert meter.total("pages", labels={"route": "x"}) == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_many_lines_are_summed_up_on_standard_error(
    redmeter: Run, meter: Meter, command: str
) -> None:
    """The output stays empty."""
    lines = "".join(f'm{{n="{number}"}} {number}\n' for number in range(1000))
    assert redmeter(command, "-", text=lines.encode()) == Done(
        0, "", "1,000 lines recorded, 0 refused\n"
    )
    assert recorded(meter, command, "m", labels={"n": "999"}) == 999


def test_many_lines_need_few_round_trips(redmeter: Run, client: Any) -> None:
    """They are sent in one pipeline, not one by one."""
    redmeter("count", "hits")
    before = client.info("commandstats")
    redmeter("count", "-", text=b"".join(b"m%d 1\n" % number for number in range(300)))
    after = client.info("commandstats")
    calls = [
        stats["calls"] - before.get(name, {"calls": 0})["calls"]
        for name, stats in after.items()
        if name.startswith("cmdstat_eval")
    ]
    assert 1 <= sum(calls) < 30


def test_json_of_lines_counts_them_and_names_the_bad_ones(redmeter: Run) -> None:
    """The first twenty; an empty line is none."""
    text = b"q 1\n\n" + b"bad\n" * 30
    done = redmeter("set", "-", "--json", text=text)
    found = json.loads(done.out)
    errors = found.pop("errors")
    assert [each["line"] for each in errors] == list(range(3, 23))
    assert found.pop("error")["code"] == "bad-parameter"
    assert found == {"lines": 32, "recorded": 1, "refused": 30}
    assert "… (10 more)" in done.err


def test_lines_of_a_pipe_are_stored_as_they_come(home: Home, meter: Meter) -> None:
    """`tail -f | … | redmeter count -` does not wait for an end that never comes."""
    done = home.shell(
        "(echo early; until redmeter names early >/dev/null 2>&1; do sleep 0.1; done; echo late) "
        "| redmeter count -"
    )
    assert done == Done(0, "", "2 lines recorded, 0 refused\n")
    assert meter.total("late") == 1
