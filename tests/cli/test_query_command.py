"""query: PromQL for people, pipes and programs."""

import json
import time
from typing import Any

import pytest

from redmeter import Meter
from support.commands import plain
from support.servers import Server

Run = Any


@pytest.fixture
def counted(server: Server) -> float:
    """Count on the server; return a time by which all of it has arrived."""
    now = time.time()
    with Meter(server.url, sync=True) as meter:
        for route, amount in (("/", 60), ('/"a"', 30)):
            meter.count("http_requests", amount, labels={"route": route}, at=now - 100)
        meter.observe("wait_seconds", 1.5, at=now - 100)
        meter.gauge("temperature").set(4.5)
    return now - 5


def test_a_query_is_columns_in_a_pipe(redmeter: Run, counted: float) -> None:
    """A line for each series and time."""
    done = redmeter("query", "increase(http_requests_total[10m])", "--at", f"{counted:.3f}")
    assert (done.code, done.err) == (0, "")
    columns, *rows = (line.split("\t") for line in done.out.splitlines())
    assert columns == ["SERIES", "TIME", "VALUE"]
    values = {name: float(value) for name, _, value in rows}
    assert values == {'{route="/"}': 60, '{route="/\\"a\\""}': 30}
    histogram = redmeter("query", "increase(wait_seconds[10m])", "--at", f"{counted:.3f}")
    assert histogram.out.splitlines()[1].endswith("\t1")


def test_a_query_is_json_for_programs(redmeter: Run, counted: float) -> None:
    """In the form of Prometheus' HTTP API."""
    done = redmeter("query", "sum(increase(http_requests_total[10m]))", "--at", "5s", "--json")
    answer = json.loads(done.out)
    assert done.code == 0
    assert answer["resultType"] == "vector"
    ((time_, value),) = (row["value"] for row in answer["result"])
    assert float(value) == 90
    assert abs(time_ - counted) < 60
    assert answer["warnings"] == answer["infos"] == []
    window = ("--since", "2m", "--until", "10s", "--step", "10s")
    done = redmeter("query", "temperature", *window, "--json")
    assert json.loads(done.out)["resultType"] == "matrix"


def test_a_query_over_time_is_a_chart_on_a_terminal(screen: Run, counted: float) -> None:
    """One for each series, with what they are."""
    del counted
    done = screen("query", "increase(http_requests_total[10m])", "--since", "5m")
    shown = plain(done.out)
    assert done.code == 0
    assert '{route="/"} · every 3s · 60' in shown
    assert "█" in shown
    now = plain(screen("query", "temperature").out)
    assert "temperature" in now
    assert "4.5" in now
    assert plain(screen("query", '"some text"').out).strip() == "some text"


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["sum("], 2, "parse error"),
        (["time()", "--since", "1h", "--step", "x"], 2, "--step"),
        (["time()", "--until", "1h"], 2, "needs --since"),
        (["time()", "--since", "1h", "--at", "1h"], 2, "--at"),
        (["nothing_total"], 1, "no series matches"),
    ],
)
def test_a_query_that_cannot_be_answered_is_an_error(
    redmeter: Run, counted: float, arguments: list[str], code: int, error: str
) -> None:
    """With an exit code, and the option or the reason."""
    del counted
    done = redmeter("query", *arguments)
    assert done.code == code
    assert error in done.err
