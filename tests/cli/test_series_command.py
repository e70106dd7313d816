"""names, series: what they print for people, pipes and programs."""

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from redmeter import Meter, book
from redmeter import store as stores
from redmeter.cli import output
from redmeter.cli.output import iso_time
from redmeter.reading import names as reading_names
from redmeter.store import Store
from redmeter.stored.keys import slice_start
from support.commands import Done, is_clean
from support.servers import Server
from support.stores import measure

Run = Any

PLANS = ({"plan": "pro"}, {"plan": "free"})

#: Names that other programs may write, each with something that must not reach a terminal.
HOSTILE = (
    "\x1b[31mred\x1b[0m",
    "\x9b2Jclear",
    "evil\u202egpj.exe",
    "two\nlines",
    "tab\there",
    "[bold red]x[/bold red]",
    "bell\x07",
)


def write_hostile(client: Any, now: float) -> None:
    """Write counters as another program would, under hostile names."""
    for name in HOSTILE:
        for precision in (60, 3600):
            client.zadd("redmeter:known:", {f"{precision}:{name}": 0})
            start = slice_start(now, precision)
            client.hset(f"redmeter:count:{precision}:{name}", str(start), 1)


def test_names_are_listed_with_their_totals(redmeter: Run, meter: Meter) -> None:
    """A header, then a line for each counter, sorted, between tabs."""
    meter.count("signups", 3, labels={"plan": "pro"})
    meter.count("点击量", 2)
    meter.count("hits", 40)
    assert redmeter("names") == Done(
        0,
        'NAME\tKIND\tTOTAL\nhits\tcounter\t40\nsignups{plan="pro"}\tcounter\t3\n'
        "点击量\tcounter\t2\n",
        "",
    )


def test_names_are_json_for_programs(redmeter: Run, meter: Meter) -> None:
    """One document on one line; every script stands as it is."""
    meter.count("点击量", 2)
    done = redmeter("names", "--json")
    row = '{"name": "点击量", "kind": "counter", "total": 2}'
    assert done == Done(0, f'{{"names": [{row}], "missing": []}}\n', "")


def test_names_are_filtered_by_a_pattern(redmeter: Run, meter: Meter) -> None:
    """Stars match any text."""
    for name in ("api_hits", "api_errors", "other"):
        meter.count(name)
    listed = json.loads(redmeter("names", "api_*", "--json").out)["names"]
    assert [row["name"] for row in listed] == ["api_errors", "api_hits"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (
            ["names"],
            "nothing is recorded yet; record metrics in your application, or read an access log: ",
        ),
        (["names", "zz*"], "no counter, gauge or histogram matches zz*"),
        (["top"], "nothing was recorded in the 60 intervals of 1m from 20"),
        (["series", "hits"], "nothing is stored under hits; redmeter names lists"),
        (["clean", "--forget", "hits"], "there is no series hits; redmeter names lists all"),
    ],
)
def test_nothing_found_is_exit_code_1_and_says_what_to_do(
    redmeter: Run, words: list[str], hint: str
) -> None:
    """The output stays empty, the hint goes to standard error."""
    done = redmeter(*words)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: {hint}")


def test_nothing_found_is_still_json(redmeter: Run) -> None:
    """An empty list with the error, and the same exit code as without --json."""
    done = redmeter("names", "--json")
    assert (done.code, json.loads(done.out)["names"]) == (1, [])
    assert json.loads(done.out)["error"]["message"] == "nothing is recorded yet"
    done = redmeter("top", "--json")
    assert (done.code, json.loads(done.out)["rows"]) == (1, [])


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_an_empty_pattern_of_names_is_refused(redmeter: Run, option: tuple[str, ...]) -> None:
    """Exit code 2, and what to give instead."""
    done = redmeter("names", "", *option)
    assert done.code == 2
    assert (list(json.loads(done.out)) == ["error"]) if option else (done.out == "")
    assert done.err.startswith("error: PATTERN: is empty and matches nothing: omit it for all")


def test_names_are_suggested_where_there_are_too_many_to_look_through(
    redmeter: Run, meter: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that begin alike are found all the same; else the hint is where to look."""
    for number in range(9):
        meter.count(f"sales{number}")
    meter.count("hits")
    monkeypatch.setattr(reading_names, "MAX_NAMES", 5)
    done = redmeter("series", "hitz")
    assert (done.code, "redmeter names lists all" in done.err) == (1, True)
    assert redmeter("series", "hits2").err.endswith("available: hits\n")
    assert redmeter("names", "hit*").out == "NAME\tKIND\tTOTAL\nhits\tcounter\t1\n"
    done = redmeter("names")
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("begin the pattern with more literal text\n")


def test_series_are_columns_in_a_pipe(redmeter: Run, meter: Meter) -> None:
    """Name, slice start and count of every kept sample; zeros filled."""
    now = slice_start(time.time(), 60)
    meter.count("hits", 4, at=now - 120)
    meter.count("hits", 2, at=now)
    done = redmeter("series", "hits", "-p", "1m")
    lines = [line.split("\t") for line in done.out.splitlines()]
    assert lines[0] == ["NAME", "START", "COUNT"]
    assert lines[1:4] == [
        ["hits", iso_time(now - 120), "4"],
        ["hits", iso_time(now - 60), "0"],
        ["hits", iso_time(now), "2"],
    ]
    assert (done.code, done.err) == (0, "")


def test_series_are_json_for_programs(redmeter: Run, meter: Meter) -> None:
    """Several at once; the running slice makes them partial; labels in any order."""
    now = time.time()
    meter.count("hits", 4, at=now)
    meter.count("sales", 1, labels={"a": "1", "b": "2"}, at=now)
    done = redmeter("series", "hits", 'sales{b="2",a="1"}', "-p", "1d", "--json")
    start = slice_start(now, 86400)
    window = {"precision": 86400, "since": start - 119 * 86400, "until": start + 86400}
    whole = {"running": True, "requested": None, "reaching": None}
    common = {"kind": "counter", "window": window | whole}
    assert json.loads(done.out)["series"] == [
        {"name": name, "labels": {}, **common, "total": n, "samples": [[start, n]]}
        for name, n in (("hits", 4), ('sales{a="1",b="2"}', 1))
    ]


def test_a_missing_series_is_named_beside_those_that_are_there(redmeter: Run, meter: Meter) -> None:
    """What is there is printed, what is not is exit code 1, with names that begin alike."""
    meter.count("signups")
    meter.count("signouts")
    done = redmeter("series", "signups", "signals", "sign", "-p", "60")
    assert done.code == 1
    assert done.out.count("signups\t") == 1
    assert done.err == (
        "error: nothing is stored under signals (and 1 more); available: signouts, signups\n"
    )


@pytest.mark.parametrize("prefix", ["", "redmeter:"])
@pytest.mark.parametrize("name", ["x{y", 'hits{b="1",a="2"}', "two\nlines"])
def test_whatever_is_listed_can_be_asked_for(
    redmeter: Run, client: Any, prefix: str, name: str
) -> None:
    """Names of redmeter.book are as they stand, also after a move to a store with a prefix."""
    now = int(time.time())
    for precision in (60, 3600):
        start = str(slice_start(now, precision))
        for one, count in ((name, 3), ('hits{a="2",b="1"}', 5)):
            client.zadd(f"{prefix}known:", {f"{precision}:{one}": 0})
            client.hset(f"{prefix}count:{precision}:{one}", start, count)
    (listed,) = [
        row["name"]
        for row in json.loads(redmeter("names", "--prefix", prefix, "--json").out)["names"]
        if row["name"] == name
    ]
    done = redmeter("series", listed, "--exact", "--prefix", prefix, "--json")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)["series"]
    assert [(one["name"], one["samples"][0][1]) for one in found] == [(name, 3)]
    shown = output.safe(name)
    done = redmeter("forecast", listed, "--exact", "--prefix", prefix)
    assert done.code == 1
    assert done.err.startswith(f"error: no forecast of {shown}: ")
    done = redmeter("summary", listed, "--exact", "--prefix", prefix)
    assert done.code == 1
    assert " is recorded as a counter; redmeter series " in done.err


def test_a_long_pattern_is_not_repeated_whole(redmeter: Run, meter: Meter) -> None:
    """Its beginning tells which it was."""
    meter.count("hits")
    done = redmeter("names", "z" * 6_000)
    assert done.code == 1
    assert f"matches {'z' * 60}… (5940 more); redmeter names lists all" in done.err


def test_what_others_count_has_no_grand_total(
    redmeter: Run, screen: Run, client: Any, meter: Meter
) -> None:
    """It is not known, which is not 0: an empty cell, and null; in JSON it stays a counter."""
    book.update_counter(client, "hits", 15)
    listed = redmeter("names", "--prefix", "")
    assert listed == Done(0, "NAME\tKIND\tTOTAL\nhits\tcounter\t\n", "")
    row = {"name": "hits", "kind": "counter", "total": None}
    assert json.loads(redmeter("names", "--prefix", "", "--json").out)["names"] == [row]
    done = redmeter("series", "hits", "-p", "1d", "--prefix", "", "--json")
    (one,) = json.loads(done.out)["series"]
    assert one["samples"][-1][1] == 15
    assert {key: one[key] for key in row} == row
    assert "total" not in screen("series", "hits", "-p", "1d", "--prefix", "").out
    meter.count("nothing", 0)
    meter.count("jobs", 2)
    client.hset("redmeter:count:60:theirs", "0", 1)
    client.zadd("redmeter:known:", {"60:theirs": 0})
    rows = json.loads(redmeter("names", "--json").out)["names"]
    assert {row["name"]: row["total"] for row in rows} == {"jobs": 2, "nothing": 0, "theirs": None}


def test_a_name_means_all_its_label_sets(redmeter: Run, meter: Meter) -> None:
    """Filtered by --label, split by --by; a filter that matches nothing suggests what there is."""
    for labels in PLANS:
        meter.count("signups", labels=labels)

    def shown(*options: str) -> dict[str, int]:
        found = json.loads(redmeter("series", "signups", "-p", "1d", "--json", *options).out)
        return {str(one["labels"].get("plan")): one["total"] for one in found["series"]}

    assert shown() == {"None": len(PLANS)}
    assert shown("--label", "plan=pro") == shown("--label", "plan=pro", "--exact") == {"None": 1}
    assert shown("--by", "plan") == {"free": 1, "pro": 1}
    rows = redmeter("series", "signups", "-p", "1d", "--by", "plan").out.splitlines()[1:]
    assert sorted(row.split("\t")[0] for row in rows) == [
        'signups{plan="free"}',
        'signups{plan="pro"}',
    ]
    done = redmeter("series", "signups", "--label", "plan=team")
    assert (done.code, 'available: signups{plan="free"}' in done.err) == (1, True)
    for wrong in (["--label", "plan"], ["--exact", "--by", "plan"], ["--aggregate", "median"]):
        assert redmeter("series", "signups", *wrong).code == 2


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("took", "'took' is recorded as a histogram; redmeter summary took"),
        ("lasted", "'lasted' is recorded as a histogram; redmeter summary lasted"),
        ('lasted{route="/"}', "'lasted' is recorded as a histogram; redmeter summary lasted"),
        ('heat{room="b"}', 'nothing is stored under heat{room="b"}; available: heat{room="a"}'),
    ],
)
def test_what_is_stored_under_a_name_is_told(
    redmeter: Run, meter: Meter, name: str, told: str
) -> None:
    """Of another kind, or with labels."""
    meter.observe("took", 1.0)
    meter.observe("lasted", 1.0, labels={"route": "/"})
    meter.gauge("heat", labels={"room": "a"}).set(3)
    meter.flush()
    done = redmeter("series", name)
    assert (done.code, done.err) == (1, f"error: {told}\n")


def test_an_observed_name_is_told_before_names_that_are_alike(redmeter: Run, meter: Meter) -> None:
    """With the command that shows its distribution."""
    meter.count("http_requests")
    meter.observe("http_seconds", 1.0, labels={"route": "/"})
    for command in ("series", "forecast"):
        done = redmeter(command, "http_seconds")
        assert done.code == 1
        assert done.err.endswith("redmeter summary http_seconds\n")


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ("60", 60),
        ("60s", 60),
        ("1m", 60),
        ("1min", 60),
        ("5 min", 300),
        ("5h", 18000),
        ("1d", 86400),
    ],
)
def test_a_precision_may_have_a_unit(redmeter: Run, meter: Meter, given: str, seconds: int) -> None:
    """Seconds where there is none."""
    meter.count("hits")
    done = redmeter("series", "hits", "-p", given, "--json")
    assert json.loads(done.out)["series"][0]["window"]["precision"] == seconds


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("7", "precision 7 is not kept; kept are (seconds): 1, 5, 60, 300, 3600, 18000, 86400"),
        ("1w", "--precision: '1w': give seconds, or 5s, 1m, 5h, 1d"),
        ("-5", "--precision: '-5': give seconds"),
        ("", "--precision: '': give seconds"),
        ("1e9", "--precision: '1e9': give seconds"),
        ("\x1b[31m", "--precision: '\\x1b[31m': give seconds"),
    ],
)
@pytest.mark.parametrize("command", [["series", "hits"], ["top"]])
def test_a_wrong_precision_is_exit_code_2_and_says_what_is_possible(
    redmeter: Run, meter: Meter, command: list[str], given: str, words: str
) -> None:
    """Neither guessed nor a traceback."""
    meter.count("hits")
    done = redmeter(*command, f"--precision={given}")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {words}")


@pytest.mark.parametrize("option", [(), ("--json",)])
@pytest.mark.parametrize(
    "words",
    [
        ["names"],
        ["top", "-p", "60"],
        ["doctor"],
        ["clean"],
        ["series", "evil"],
        ["names", "\x1b[31mno*"],
    ],
)
def test_names_of_other_programs_are_inert(
    redmeter: Run, client: Any, words: list[str], option: tuple[str, ...]
) -> None:
    """No control character of a name in the store reaches output or error, nor is markup obeyed."""
    write_hostile(client, time.time())
    client.zadd("redmeter:known:", {"60*60:\x1b[2Jstrange": 0})
    done = redmeter(*words, *option)
    assert is_clean(done.out)
    assert is_clean(done.err)
    assert done.code == (1 if words[0] == "series" or words[1:] == ["\x1b[31mno*"] else 0)
    if words[0] == "series":
        assert "available: evil\\u202egpj.exe" in done.err
    if words == ["names"] and not option:
        names = {line.split("\t")[0] for line in done.out.splitlines()[1:]}
        assert names == {
            "\\x1b[31mred\\x1b[0m",
            "\\x9b2Jclear",
            "evil\\u202egpj.exe",
            "two\\nlines",
            "tab\\there",
            "[bold red]x[/bold red]",
            "bell\\x07",
        }
    if words == ["names"] and option:
        assert {row["name"] for row in json.loads(done.out)["names"]} == set(HOSTILE)


def test_a_misspelt_name_suggests_the_right_one(redmeter: Run, meter: Meter) -> None:
    """Also where its first letters are wrong."""
    meter.count("hits")
    meter.count("signups")
    assert redmeter("series", "hist").err.endswith("available: hits\n")


def test_watching_needs_a_terminal(redmeter: Run, meter: Meter) -> None:
    """A pipe would fill with drawings."""
    meter.count("hits")
    done = redmeter("series", "hits", "--watch")
    assert (done.code, done.out) == (2, "")
    assert "--watch: draws on a terminal" in done.err


# --- Gauges --------------------------------------------------------------------------------


@pytest.fixture
def store(server: Server) -> Iterator[Store]:
    """A store on the server of the commands."""
    opened = stores.open(server.url)
    assert opened is not None
    yield opened
    opened.close()


def test_gauges_are_listed_beside_the_counters(redmeter: Run, meter: Meter, store: Store) -> None:
    """With their kind, and no total; one of the same name as a counter has a line of its own."""
    meter.count("queue", 3)
    measure(store, {"queue": 17.5, "disk": 1.0}, time.time())
    assert redmeter("names").out == (
        "NAME\tKIND\tTOTAL\ndisk\tgauge\t\nqueue\tcounter\t3\nqueue\tgauge\t\n"
    )
    assert json.loads(redmeter("names", "d*", "--json").out)["names"] == [
        {"name": "disk", "kind": "gauge", "total": None}
    ]


def test_a_gauge_is_columns_in_a_pipe(redmeter: Run, meter: Meter, store: Store) -> None:
    """A gap is an empty column, not a zero; a counter may stand beside it."""
    now = slice_start(time.time(), 86400)
    measure(store, {"queue": -2.5}, now - 2 * 86400 + 7)
    measure(store, {"queue": 0.0}, now + 3)
    meter.count("hits", 4, at=now)
    done = redmeter("series", "queue", "hits", "-p", "1d")
    assert done == Done(
        0,
        "NAME\tSTART\tVALUE\n"
        f"queue\t{iso_time(now - 2 * 86400)}\t-2.5\nqueue\t{iso_time(now - 86400)}\t\n"
        f"queue\t{iso_time(now)}\t0.0\nhits\t{iso_time(now)}\t4\n",
        "",
    )


def test_a_gauge_is_json_with_null_for_a_gap(redmeter: Run, store: Store) -> None:
    """As a counter is, without a total."""
    now = slice_start(time.time(), 86400)
    measure(store, {"queue": 17.25}, now - 2 * 86400)
    (found,) = json.loads(redmeter("series", "queue", "-p", "1d", "--json").out)["series"]
    window = {"precision": 86400, "since": now - 119 * 86400, "until": now + 86400}
    assert found == (
        {
            "name": "queue",
            "labels": {},
            "kind": "gauge",
            "window": {**window, "running": True, "requested": None, "reaching": None},
            "total": None,
            "samples": [[now - 2 * 86400, 17.25], [now - 86400, None], [now, None]],
        }
    )


def test_a_gauge_is_drawn_on_a_terminal(screen: Run, store: Store) -> None:
    """Its lowest, highest and newest value on top, a chart, and the newest samples below."""
    now = slice_start(time.time(), 86400)
    for days, value in ((3, 1234.5), (1, -7.0), (0, 12.0)):
        measure(store, {"queue": value}, now - days * 86400)
    seen = screen("series", "queue", "-p", "1d").out
    plain = re.sub("\x1b\\[[0-9;]*m", "", seen)
    title = "queue · gauge, every 1d · 3 samples · lowest -7 · highest 1,234.5 · newest 12\n"
    assert plain.startswith(title)
    assert "1,234.5 ┤█" in plain
    assert "     -7 ┤█ ▁▁" in plain
    assert re.search(r"VALUE\s+\S+\s+1,234\.5\s", plain)


def test_a_counter_comes_before_a_gauge_of_its_name(
    redmeter: Run, meter: Meter, store: Store
) -> None:
    """The gauge is listed, and read where the counter is gone."""
    meter.count("queue", 3)
    measure(store, {"queue": 17.5}, time.time())
    shown = json.loads(redmeter("series", "queue", "-p", "1d", "--json").out)["series"]
    assert [(one["kind"], one["total"]) for one in shown] == [("counter", 3)]


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_a_gauge_without_samples_at_a_precision_is_not_missing(
    redmeter: Run, store: Store, option: tuple[str, ...]
) -> None:
    """It was set some hours ago: no second has it."""
    measure(store, {"queue": 17.5}, time.time() - 7200)
    done = redmeter("series", "queue", "-p", "1", *option)
    assert (done.code, done.err) == (0, "")
    if option:
        assert json.loads(done.out)["series"][0]["samples"] == []
    else:
        assert done.out == "NAME\tSTART\tVALUE\n"


def test_a_gauge_can_be_forgotten(redmeter: Run, store: Store) -> None:
    """Nothing is left of it, and there is nothing to forget a second time."""
    measure(store, {"queue": 17.5}, time.time())
    assert redmeter("clean", "--forget", "queue") == Done(0, "forgotten: queue\n", "")
    assert redmeter("clean", "--forget", "queue").code == 1
    assert redmeter("series", "queue").code == 1


@pytest.mark.parametrize("kind", ["counter", "gauge", "histogram"])
def test_a_kind_is_named_as_json_names_it(redmeter: Run, meter: Meter, kind: str) -> None:
    """The plural is an error."""
    meter.count("hits")
    meter.gauge("depth").set(1)
    meter.observe("took", 1)
    (one,) = json.loads(redmeter("names", "--kind", kind, "--json").out)["names"]
    assert one["kind"] == kind
    assert redmeter("names", "--kind", f"{kind}s").code == 2


def test_a_series_that_cannot_be_read_leaves_the_others(
    redmeter: Run, meter: Meter, client: Any
) -> None:
    """With a warning; alone it is an error that names its key."""
    meter.count("hits")
    client.set("redmeter:count:60:theirs", "x")
    done = redmeter("series", "hits", "theirs")
    assert (done.code, len(done.out.splitlines())) == (0, 2)
    assert done.err == (
        "warning: left out, since another program keeps something else under: "
        "'redmeter:count:60:theirs'\n"
    )
    done = redmeter("series", "theirs")
    assert (done.code, done.out) == (3, "")
    assert "under 'redmeter:count:60:theirs'" in done.err


def test_names_by_size(redmeter: Run, meter: Meter) -> None:
    """The name whose label has many values takes the most memory."""
    for user in range(30):
        meter.count("logins", labels={"user": str(user)})
    meter.count("orders")
    meter.gauge("queue").set(3)
    meter.observe("seconds", 0.5, labels={"route": "/"})
    meter.log("shop", "no stock")
    meter.flush()
    heading, first, *others = redmeter("names", "--by-size").out.splitlines()
    assert heading.split() == ["NAME", "KIND", "SERIES", "MEMORY", "SHARE"]
    assert first.split()[:3] == ["logins", "counter", "30"]
    named = {tuple(line.split()[:3]) for line in others}
    assert named >= {
        ("orders", "counter", "1"),
        ("queue", "gauge", "1"),
        ("seconds", "histogram", "1"),
        ("shop", "message", "1"),
    }
    done = redmeter("names", "log*", "--by-size", "--json")
    (found,) = json.loads(done.out)["names"]
    assert (found["name"], found["series"]) == ("logins", 30)
    assert 0 < found["bytes"] < json.loads(done.out)["bytes"]
