"""forecast: what it prints for people, pipes and programs."""

import json
import math
import re
import time
from typing import Any

import pytest

from redmeter import Meter
from redmeter import store as stores
from redmeter.store import Store
from redmeter.stored.keys import slice_start
from support.commands import plain, unix_seconds
from support.servers import Server
from support.stores import measure, store_all

Run = Any
HOUR = 3600


def put(server: Server, name: str = "hits", burst: int = 0, hours: int = 100) -> int:
    """Count by the hour, as a day goes; return the running hour's start."""
    newest = slice_start(time.time(), HOUR)
    day = [round(300 - 250 * math.cos(at * math.tau / 24)) + at * 7 % 5 for at in range(hours)]
    counts = {newest - (hours - at) * HOUR: count for at, count in enumerate(day)}
    counts[newest] = 3
    if burst:
        counts[newest - 5 * HOUR] += burst
    store = opened(server)
    store_all(store, {name: counts})
    store.close()
    return newest


def opened(server: Server) -> Store:
    """Open a store on the server."""
    store = stores.open(server.url)
    assert store is not None
    return store


def test_a_forecast_is_columns_in_a_pipe(redmeter: Run, server: Server) -> None:
    """What was with its bands, then what is ahead without a value."""
    newest = put(server, burst=5_000)
    done = redmeter("forecast", "hits", "--ahead", "3")
    assert (done.code, done.err) == (0, "")
    names, *rows = (line.split("\t") for line in done.out.splitlines())
    assert names == ["START", "VALUE", "LOW", "MID", "HIGH", "OUTSIDE"]
    past, ahead = rows[:-3], rows[-3:]
    assert [unix_seconds(row[0]) for row in ahead] == [newest + at * HOUR for at in range(3)]
    assert [(row[1], row[5]) for row in ahead] == [("", "")] * 3
    marked = {unix_seconds(row[0]) for row in past if row[5] == "1"}
    assert newest - 5 * HOUR in marked
    assert all(int(row[2]) <= float(row[3]) <= int(row[4]) for row in rows)


def test_a_forecast_is_json_for_programs(redmeter: Run, server: Server) -> None:
    """One document, with what the running slice holds so far."""
    newest = put(server)
    found = json.loads(redmeter("forecast", "hits", "-p", "1h", "--json").out)
    assert {key: found[key] for key in ("name", "kind", "precision", "level", "reason")} == {
        "name": "hits",
        "kind": "counter",
        "precision": HOUR,
        "level": 0.95,
        "reason": "",
    }
    assert found["running"] == 3
    assert len(found["ahead"]) == 24
    assert list(found["ahead"][0]) == ["start", "low", "mid", "high"]
    assert found["ahead"][0]["start"] == newest
    assert list(found["past"][0]) == ["start", "value", "low", "mid", "high", "outside"]
    assert "time of day" in found["method"]


def test_a_forecast_for_each_value_of_a_label(redmeter: Run, screen: Run, server: Server) -> None:
    """The busiest first. A group with too little data is named, and does not fail the others."""
    put(server, 'hits{plan="free"}')
    put(server, 'hits{plan="pro"}', burst=5_000)
    put(server, 'hits{plan="new"}', hours=2)
    done = redmeter("forecast", "hits", "--by", "plan", "--ahead", "3")
    assert done.code == 0
    assert re.fullmatch(r'no forecast of hits{plan="new"}: [^\n]+\n', done.err)
    names, *rows = (line.split("\t") for line in done.out.splitlines())
    assert names == ["NAME", "START", "VALUE", "LOW", "MID", "HIGH", "OUTSIDE"]
    assert list(dict.fromkeys(row[0] for row in rows)) == ['hits{plan="pro"}', 'hits{plan="free"}']
    alone = redmeter("forecast", 'hits{plan="free"}', "--ahead", "3").out.splitlines()[1:]
    assert ["\t".join(row[1:]) for row in rows if "free" in row[0]] == alone
    groups = json.loads(redmeter("forecast", "hits", "--by", "plan", "--json").out)["groups"]
    assert [group["labels"]["plan"] for group in groups] == ["pro", "free", "new"]
    assert [bool(group["reason"]) for group in groups] == [False, False, True]
    seen = plain(screen("forecast", "hits", "--by", "plan").out)
    assert seen.index('hits{plan="pro"} · every 1h') < seen.index('hits{plan="free"} · every 1h')
    done = redmeter("forecast", "none", "--by", "plan")
    assert (done.code, done.out) == (1, "")
    assert "nothing is stored under none" in done.err


@pytest.mark.parametrize("columns", [30, 80, 200])
def test_a_forecast_is_drawn_on_a_terminal(screen: Run, server: Server, columns: int) -> None:
    """The band as shade, what fell outside as a sign and in a table, within the terminal."""
    put(server, burst=5_000)
    seen = plain(screen("forecast", "hits", columns=columns).out)
    lines = seen.splitlines()
    assert lines[0].startswith("hits · every 1h · 24 intervals ahead")
    drawn = [line for line in lines if "┤" in line]
    assert len(drawn) == 12
    assert max(map(len, drawn)) <= columns
    assert "░" in seen
    assert "─" in seen
    if columns > 30:
        assert re.search(r"OUTSIDE \(UTC\) .*\n\d{4}-\d\d-\d\d \d\d:00 +5,\d\d\d ", seen)
        assert "▲" in seen
        assert "│ ahead" in seen
        assert "◦" in seen
    told = re.search(
        r"expected range \(95 %\); (\d+) of (\d+) intervals \((\d+) %\) outside "
        r"· by level, trend and",
        " ".join(seen.split()),
    )
    assert told is not None
    outside, judged, part = map(int, told.groups())
    assert outside >= 1
    assert part == round(outside / judged * 100)


def test_a_gauge_is_drawn_in_its_unit(screen: Run, server: Server) -> None:
    """From the lowest value, also where that is below zero."""
    now, store = slice_start(time.time(), 60), opened(server)
    for at in range(40):
        if at != 7:
            measure(store, {"drift_seconds": 0.25 * math.sin(at) - 0.1}, now - 60 * at)
    store.close()
    seen = plain(screen("forecast", "drift_seconds", "-p", "1m").out)
    assert re.search(r"-\d+ ms ┤", seen)
    drawn = [line.partition("┤")[2] for line in seen.splitlines() if "┤" in line]
    gap = len(drawn[0]) - 12 - 7  # before 12 intervals ahead, the running one among them
    assert {line[gap] for line in drawn} == {" "}
    assert {line[gap + 1] for line in drawn} != {" "}
    assert "12 intervals ahead" in seen


def test_a_constant_and_huge_numbers_can_be_drawn(screen: Run, server: Server) -> None:
    """Nothing but zeros after the first, and as many bytes as there are."""
    now, store = slice_start(time.time(), 60), opened(server)
    store_all(
        store, {"zeros": {now - 60 * 50: 1}, "huge": {now - 60 * n: 2**53 for n in range(50)}}
    )
    store.close()
    for name in ("zeros", "huge"):
        done = screen("forecast", name, "-p", "60", columns=60)
        assert done.code == 0
        assert "12 intervals ahead" in plain(done.out)


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_too_little_is_exit_code_1_and_says_why(
    redmeter: Run, meter: Meter, option: tuple[str, ...]
) -> None:
    """On standard error; JSON has the reason too."""
    meter.count("young")
    done = redmeter("forecast", "young", *option)
    assert done.code == 1
    assert done.err == "error: no forecast of young: no complete interval of 1h is stored\n"
    if option:
        assert json.loads(done.out)["reason"] == "no complete interval of 1h is stored"
    else:
        assert done.out == ""


def test_a_name_that_is_not_there_says_what_is(redmeter: Run, meter: Meter) -> None:
    """Or what it is instead."""
    meter.count("signups")
    meter.observe("took", 1.0)
    assert redmeter("forecast", "signup").err == (
        "error: nothing is stored under signup; available: signups\n"
    )
    done = redmeter("forecast", "took")
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: 'took' is recorded as a histogram; redmeter summary took\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--ahead", "49"], "49 intervals ahead asked for, at most 48 are allowed"),
        (["--ahead", "0"], "0 intervals ahead asked for, at most 48 are allowed"),
        (["-p", "7"], "precision 7 is not kept"),
        (["-p", "1w"], "--precision: '1w': give seconds"),
    ],
)
def test_wrong_use_is_exit_code_2(redmeter: Run, meter: Meter, words: list[str], told: str) -> None:
    """And says what is possible."""
    meter.count("hits")
    done = redmeter("forecast", "hits", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {told}")


def test_hostile_names_are_inert(screen: Run, client: Any) -> None:
    """No control character of a name reaches the terminal."""
    name = "\x1b[31mred\u202e"
    now = slice_start(time.time(), 60)
    client.hset(f"redmeter:count:60:{name}", mapping={str(now - 60 * n): n for n in range(1, 40)})
    client.zadd("redmeter:known:", {f"60:{name}": 0})
    for words in ((name,), (name, "--json")):
        done = screen("forecast", *words, "-p", "60", NO_COLOR="1")
        assert "\x1b[31m" not in done.out
        assert "\u202e" not in done.out
