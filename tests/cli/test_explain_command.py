"""explain: for people, pipes and programs."""

import json
import time
from typing import Any

import pytest

from redmeter import Meter
from support.commands import plain
from support.servers import Server

Run = Any


@pytest.fixture
def end(server: Server) -> int:
    """The start of the running minute, before which one of six routes rose."""
    end = int(time.time()) // 60 * 60
    with Meter(server.url, sync=True) as meter:
        for minute in range(30):
            for number in range(6):
                count = 900 if number == 3 and minute >= 25 else 100 + minute % 3
                labels = {"route": f"/page/{number}", "plan": "\x1b[31mpro" if number else "free"}
                meter.count("jobs", count, labels=labels, at=end - (30 - minute) * 60)
        meter.mark("v2", at=end - 200)
    return end


def window(end: int) -> list[str]:
    return ["--since", str(end - 300), "--until", str(end)]


def test_an_explanation_is_columns_in_a_pipe(redmeter: Run, end: int) -> None:
    """Bare numbers, the cause marked by a 1."""
    done = redmeter("explain", "jobs", *window(end))
    assert (done.code, done.err) == (0, "")
    names, *rows = (line.split("\t") for line in done.out.splitlines())
    assert names == ["LABEL", "VALUE", "BEFORE", "NOW", "CHANGE", "SHARE", "CAUSE"]
    causes = [row for row in rows if row[-1] == "1"]
    assert [row[:2] for row in causes] == [["route", "/page/3"]]
    assert causes[0][3] == "4500"


def test_an_explanation_is_json_for_programs(redmeter: Run, end: int) -> None:
    """The same document as the API's."""
    found = json.loads(redmeter("explain", "jobs", *window(end), "--json").out)
    assert (found["state"], found["precision"]) == ("compared", 60)
    assert found["marks"] == [{"time": end - 200, "label": "v2"}]
    assert found["causes"][0]["value"] == "/page/3"
    assert "".join(part["text"] for part in found["parts"]) == found["sentence"]


@pytest.mark.parametrize("columns", [40, 100])
def test_an_explanation_is_a_sentence_and_tables_on_a_terminal(
    screen: Run, end: int, columns: int
) -> None:
    """In the units of the metric, without control characters of a label."""
    done = screen("explain", "jobs", *window(end), columns=columns)
    assert done.code == 0
    seen = plain(done.out)
    assert " ".join(seen.split()).startswith("jobs rose ")
    assert "▲" in seen
    assert "ROUTE" in seen
    assert "v2" in seen
    assert "\x1b[31mpro" not in done.out


def test_a_baseline_that_is_not_kept_exits_with_1(redmeter: Run, end: int) -> None:
    """The error states how far back the precision reaches."""
    done = redmeter("explain", "jobs", *window(end), "--against", "yesterday")
    assert (done.code, done.out) == (1, "")
    assert "not kept: intervals of" in done.err
    found = json.loads(
        redmeter("explain", "jobs", *window(end), "--against", "last-week", "--json").out
    )
    assert found["state"] == "not kept"
    assert found["error"]["message"].startswith("not kept")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--last", "5m", "--since", "1h"),
        ("--last", "soon"),
        ("--against", "tomorrow"),
        ("--against", "2h/3h"),
        ("--failing", "5xx"),
        ("--until", "2h", "--since", "1h"),
        ("--precision", "7x"),
    ],
)
def test_options_that_cannot_be_used_exit_with_2(
    redmeter: Run, end: int, arguments: tuple[str, ...]
) -> None:
    """Each names the option and what to give."""
    done = redmeter("explain", "jobs", *arguments)
    assert (done.code, done.out) == (2, ""), end
    assert done.err.startswith(f"error: {arguments[0]}: ")


def test_a_name_that_does_not_exist_exits_with_1(redmeter: Run, end: int) -> None:
    """With a suggestion."""
    done = redmeter("explain", "job")
    assert done.code == 1, end
    assert "jobs" in done.err
