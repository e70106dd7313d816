"""verdict: its exit codes, by which a pipeline rolls back or not."""

import json
import time
from typing import Any

import pytest

from redmeter import Meter
from redmeter.queries import Queries
from support.deploys import record_deploy
from support.servers import Server

Run = Any


def fill(server: Server, ago: float = 400, **options: Any) -> None:
    """Record a deploy some seconds ago."""
    with Meter(server.url) as meter:
        record_deploy(meter, time.time() - ago, **options)
        assert meter.flush(30)


def test_a_worse_deploy_is_exit_code_1(redmeter: Run, server: Server) -> None:
    """The reason, a row for each route, and the same as JSON."""
    fill(server, 1000, worse="/cart", minutes=range(-61, 17))
    done = redmeter("verdict", "v2")
    assert done.code == 1
    lines = done.out.splitlines()
    assert lines[0].startswith("worse: ")
    assert " of /cart: " in lines[0]
    assert lines[1] == "15m after v2, against previous · by 1m"
    assert lines[3].startswith("ROUTE\tVERDICT\tREQUESTS/s\tBEFORE\tERRORS")
    assert lines[4].startswith("(all)\tworse\t")
    assert lines[5].startswith("/cart\tworse\t")
    assert lines[6].startswith("/\tsame\t")
    told = redmeter("verdict", "--json")
    found = json.loads(told.out)
    assert told.code == 1
    assert (found["verdict"], found["mark"]["label"]) == ("worse", "v2")
    assert found["routes"][0]["p95"]["verdict"] == "worse"
    assert found["before"]["until"] < found["since"] < found["after"]["since"]


def test_a_deploy_without_effect_is_exit_code_0(redmeter: Run, server: Server) -> None:
    """Nothing to roll back."""
    fill(server)
    done = redmeter("verdict", "v2")
    assert (done.code, done.out.splitlines()[0].partition(":")[0]) == (0, "same")


@pytest.mark.parametrize("since", ["10s", "3h", "unix"])
def test_too_little_data_and_no_baseline_are_exit_code_3(
    redmeter: Run, meter: Meter, since: str
) -> None:
    """A deploy of just now, and one of which no minutes are kept; by age, and by Unix seconds."""
    meter.count("hits")
    done = redmeter("verdict", "--since", str(time.time() - 10) if since == "unix" else since)
    assert done.code == 3
    assert done.out.startswith(("too little data: ", "not kept: "))


@pytest.mark.parametrize(
    "words",
    [
        ["v9"],
        [],
        ["v9", "--since", "1"],
        ["--since", "soon"],
        ["--since", "1", "--against", "tomorrow"],
        ["--since", "1", "-p", "x"],
        ["--since", "1", "-p", "7"],
        ["--no-such-option"],
    ],
)
def test_wrong_usage_and_a_missing_mark_are_exit_code_2(redmeter: Run, words: list[str]) -> None:
    """Never 1."""
    done = redmeter("verdict", *words)
    assert done.code == 2
    assert done.err.startswith("error: ")


def test_an_unknown_mark_is_answered_with_those_that_resemble_it(
    redmeter: Run, meter: Meter
) -> None:
    """Or with the newest ones, and with the command that lists all."""
    assert (
        "there is no mark '2.4.0'; redmeter mark --list lists all"
        in redmeter("verdict", "2.4.0").err
    )
    for ago, label in ((3600, "v1.0.0"), (1800, "v2.4.0"), (60, "autumn")):
        meter.mark(label, at=time.time() - ago)
    assert meter.flush(30)
    done = redmeter("verdict", "2.4.0", "--json")
    assert json.loads(done.out)["error"] == {
        "code": "not-found",
        "message": "there is no mark '2.4.0'",
        "fix": "the nearest: v2.4.0; redmeter mark --list lists all",
    }
    assert done.code == 2
    assert "the newest: autumn, v2.4.0, v1.0.0; redmeter" in redmeter("verdict", "zzz").err


@pytest.mark.parametrize("json_option", [[], ["--json"]])
def test_an_unreachable_store_is_exit_code_4(
    redmeter: Run, server: Server, json_option: list[str]
) -> None:
    """So it never causes a rollback; nor does a store that cannot be found."""
    url = "redis://127.0.0.1:1/0"
    assert redmeter("verdict", "v2", "--url", url, *json_option).code == 4
    assert redmeter("verdict", "v2", "--url", "embedded:///no/such/place").code == 4
    wrong = f"redis://nobody:wrong@127.0.0.1:{server.port}/0"
    assert redmeter("verdict", "v2", "--url", wrong).code == 4


def test_a_bug_is_exit_code_70(redmeter: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python itself would end with 1, which means worse."""

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Queries, "verdict", fail)
    done = redmeter("verdict", "--since", "1")
    assert done.code == 70
    assert "ZeroDivisionError" in done.err
