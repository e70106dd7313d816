"""logs: what was logged, in the terminal, in pipes and for programs."""

import json
import re
import time
from typing import Any

import pytest

from redmeter import Meter
from redmeter.clock import ManualClock
from redmeter.reading.logs import recent as reading
from redmeter.stored.keys import HOUR, slice_start
from support.commands import Done, is_clean, plain, unix_seconds
from support.listings import log_common
from support.servers import Server

Run = Any


def write(meter: Meter) -> None:
    """Log something by two loggers."""
    for number in range(12):
        meter.log("worker", "retrying %s", number, severity="warning")
    meter.log("worker", "order 17 failed", severity="error", exception=ValueError("no\naddress"))
    meter.log("web", "started")


def rows(text: str) -> list[list[str]]:
    """Return the columns of lines."""
    return [line.split("\t") for line in text.splitlines()]


def test_without_a_logger_logs_gives_an_overview(redmeter: Run, meter: Meter) -> None:
    """What changed, what is common, and the loggers; an empty line lies between."""
    began = time.time()
    write(meter)
    done = redmeter("logs")
    assert (done.code, done.err) == (0, "")
    changes, common, loggers = (rows(part) for part in done.out.split("\n\n"))
    assert changes[0] == ["CHANGE", "COUNT", "BEFORE", "LOGGER", "SEVERITY", "PATTERN"]
    assert changes[1:] == [  # by severity
        ["new", "1", "0", "worker", "error", "order <n> failed [ValueError]"],
        ["new", "12", "0", "worker", "warning", "retrying %s"],
        ["new", "1", "0", "web", "info", "started"],
    ]
    assert common[0] == ["COUNT", "BEFORE", "FIRST", "LAST", "LOGGER", "SEVERITY", "PATTERN"]
    assert common[1][:2] + common[1][4:] == ["12", "0", "worker", "warning", "retrying %s"]
    assert began - 1 < unix_seconds(common[1][2])
    assert unix_seconds(common[1][2]) <= unix_seconds(common[1][3]) < time.time() + 1
    assert loggers[0] == ["LOGGER", "SEVERITY", "LAST"]
    assert [row[:2] for row in loggers[1:]] == [
        ["web", "info"],
        ["worker", "error"],
        ["worker", "warning"],
    ]


def test_with_a_logger_logs_shows_its_patterns_and_its_newest_messages(
    redmeter: Run, meter: Meter
) -> None:
    """The newest last, each on one line."""
    write(meter)
    changes, common, recent = (rows(p) for p in redmeter("logs", "worker").out.split("\n\n"))
    assert changes[0] == ["CHANGE", "COUNT", "BEFORE", "SEVERITY", "PATTERN"]
    assert len(changes) == 3
    assert common[1][-2:] == ["warning", "retrying %s"]
    assert recent[0] == ["TIME", "SEVERITY", "MESSAGE"]
    assert [row[1:] for row in recent[-2:]] == [
        ["warning", "retrying 11"],
        ["error", "order 17 failed ⏎ ValueError: no ⏎ address"],
    ]
    assert len(recent) == 14


def test_logs_takes_parts_and_a_severity(redmeter: Run, meter: Meter) -> None:
    """What is asked for, and nothing else; a level or another word for it will do."""
    write(meter)
    assert [r[2] for r in rows(redmeter("logs", "worker", "--recent", "2").out)] == [
        *("MESSAGE", "retrying 11", "order 17 failed ⏎ ValueError: no ⏎ address")
    ]
    for severity in ("warning", "WARN", "30"):
        done = redmeter("logs", "worker", "--severity", severity, "--common")
        assert [row[-1] for row in rows(done.out)] == ["PATTERN", "retrying %s"]
    assert [r[0] for r in rows(redmeter("logs", "--changes", "-s", "info").out)] == [
        *("CHANGE", "new")
    ]
    everyone = rows(redmeter("logs", "--recent", "2").out)
    assert everyone[0] == ["TIME", "LOGGER", "SEVERITY", "MESSAGE"]
    assert [row[1] for row in everyone[1:]] == ["worker", "web"]
    assert len(rows(redmeter("logs", "--recent", "50", "-s", "warning").out)) == 13


def test_logs_says_what_it_leaves_out(redmeter: Run, meter: Meter) -> None:
    """On standard error, so that a pipe gets rows alone."""
    write(meter)
    done = redmeter("logs", "--common", "--limit", "1")
    assert len(rows(done.out)) == 2
    assert done.err == "… (2 more; --limit shows them)\n"


def test_logs_finds_what_failed_however_many_others_log(
    redmeter: Run, meter: Meter, client: Any
) -> None:
    """A severity is chosen before anything is cut; the loggers are cut like everything else."""
    for _ in range(3):
        meter.log("payment", "declined", severity="error")
    for number in range(120):
        meter.log(f"other{number}", "hello")
    done = redmeter("logs", "-s", "error", "--changes")
    assert (done.code, done.err) == (0, "")
    assert rows(done.out)[1:] == [["new", "3", "0", "payment", "error", "declined"]]
    done = redmeter("logs", "--limit", "5")
    loggers = rows(done.out.split("\n\n")[2])
    assert len(loggers) == 1 + 5
    assert done.err == "… (116 more; --limit shows them)\n" * 3
    assert rows(done.out)[1][3] == "payment"
    assert len(json.loads(redmeter("logs", "-l", "3", "--json").out)["loggers"]) == 3


def test_logs_says_of_how_many_it_is(
    redmeter: Run, meter: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where not all loggers were compared."""
    monkeypatch.setattr(reading, "MAX_COMPARED_LOGS", 2)
    for number in range(5):
        meter.log(f"other{number}", "hello")
    told = (
        "compared: 2 of 5 loggers and severities, those that logged last; name a logger to "
        "compare it\n"
    )
    assert redmeter("logs", "--common").err == told
    found = json.loads(redmeter("logs", "--common", "--json").out)
    assert (found["sources"], found["compared"]) == (5, 2)
    assert redmeter("logs", "other0", "--common").err == ""


def test_logs_leaves_out_what_another_program_uses(
    redmeter: Run, meter: Meter, client: Any
) -> None:
    """And says so, once."""
    write(meter)
    client.delete("redmeter:recent:web:info")
    client.set("redmeter:recent:web:info", "theirs")
    done = redmeter("logs", "--recent", "5", "-s", "error")
    assert (done.code, done.err) == (0, "")
    done = redmeter("logs", "--recent", "50")
    assert len(rows(done.out)) == 14
    assert done.err == (
        "warning: left out, since another program keeps something else under: "
        "'redmeter:recent:web:info'\n"
    )
    assert redmeter("logs", "web", "--recent", "5", "-s", "info").code == 3


def test_logs_fits_narrow_terminals(screen: Run, meter: Meter) -> None:
    """No time and no number breaks, and a long pattern takes two lines or three."""
    name = "worker.of.a.long.name.indeed"
    for _ in range(1234):
        meter.log(name, f"start {'word ' * 36}end %s", "x")
    for columns in (100, 80, 60, 40, 20):
        for words, tables in ((["logs"], 2), (["logs", name, "--common"], 1)):
            seen = plain(screen(*words, columns=columns).out).replace("\r", "")
            lines = [line.rstrip() for line in seen.splitlines()]
            assert len([line for line in lines if "1,234" in line]) == tables
            assert len([line for line in lines if "word" in line or line.endswith("…")]) <= (
                4 * tables
            )
            assert not re.search(r"\d:\d?$", seen, re.MULTILINE)
            assert "…" not in "".join(line for line in lines if "COUNT" in line)


def test_a_sample_stands_below_its_pattern_where_it_says_more(screen: Run, meter: Meter) -> None:
    """On a terminal, and once."""
    meter.log("worker", "retrying %s", "order 17\nnow")
    meter.log("worker", "started")
    seen = plain(screen("logs", columns=100).out)
    assert seen.count("retrying order 17") == 1
    assert seen.count("started") == 2
    seen = plain(screen("logs", "worker", "--common", columns=100).out)
    assert seen.count("retrying order 17") == 1
    assert "retrying order 17" not in plain(screen("logs", "--common", columns=100).out)


def test_logs_is_json_for_programs(redmeter: Run, meter: Meter) -> None:
    """One document with the parts that were asked for."""
    write(meter)
    found = json.loads(redmeter("logs", "worker", "-s", "error", "--json").out)
    assert set(found) == {
        *("changes", "common", "recent", "sources", "compared", "clock_hours", "missing")
    }
    assert found["missing"] == []
    assert (found["sources"], found["compared"]) == (1, 1)
    (message,) = found["recent"]
    assert message["text"] == "order 17 failed\nValueError: no\naddress"
    assert (message["logger"], message["severity"]) == ("worker", "error")
    assert abs(message["time"] - time.time()) < 60
    (change,) = found["changes"]
    assert change["kind"] == "new"
    assert change["pattern"] == "order <n> failed [ValueError]"
    assert found["common"][0]["count"] + found["common"][0]["before"] == 1
    assert found["common"][0]["sample"].startswith("order 17 failed")
    overview = json.loads(redmeter("logs", "--json").out)
    assert set(overview) == {
        *("changes", "common", "loggers", "sources", "compared", "clock_hours", "missing")
    }
    assert overview["clock_hours"] == 0
    assert {each["sliding"] for each in (*overview["changes"], *overview["common"])} == {True}
    assert [s["logger"] for s in overview["loggers"]] == ["web", "worker", "worker"]
    assert set(json.loads(redmeter("logs", "--recent", "1", "--json").out)) == {"recent", "missing"}


def test_spiking_and_gone_messages_are_told(redmeter: Run, meter: Meter, client: Any) -> None:
    """This hour against the hour before it, as other programs count them as well."""
    hour = slice_start(time.time(), HOUR)
    for severity, now, before in (("error", {b"timeout": 40}, {b"timeout": 2, b"quiet": 3600}),):
        key = f"redmeter:common:db:{severity}"
        client.zadd(key, now)
        client.zadd(f"{key}:last", before)
        client.set(f"{key}:start", hour)
        client.set(f"{key}:pstart", hour - HOUR)
    done = redmeter("logs", "db", "--changes")
    found = {row[4]: row[0] for row in rows(done.out)[1:]}
    assert found["timeout"] == "spiking"
    assert "compared by clock hours: 1 loggers and severities" in done.err
    assert found.get("quiet") == ("gone" if time.time() - hour > 5 else found.get("quiet"))


def test_nothing_new_is_no_error(redmeter: Run, meter: Meter, client: Any) -> None:
    """It is said, on standard error."""
    key = "redmeter:common:db:error"
    client.zadd(key, {"timeout": 2})
    client.set(f"{key}:start", slice_start(time.time(), HOUR))
    done = redmeter("logs", "db", "--changes")
    assert done == Done(0, "", "nothing is new, spiking or gone\n")


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_that_nothing_is_logged_is_good_news(
    redmeter: Run, meter: Meter, option: tuple[str, ...]
) -> None:
    """Exit code 0, and what there is instead."""

    def note(*words: str) -> str:
        done: Done = redmeter("logs", *words, *option)
        assert done.code == 0
        assert "error" not in json.loads(done.out) if option else done.out == ""
        return done.err

    how = "redmeter.integrations.logging records what an application logs"
    assert note() == note("-s", "error") == f"nothing is logged yet; {how}\n"
    assert redmeter("logs", "worker").err == f"error: nothing is logged under worker; {how}\n"
    write(meter)
    assert note("worker", "-s", "debug") == (
        "nothing is logged under worker with the severity debug; available: error, warning\n"
    )
    assert note("-s", "critical").startswith(
        "nothing is logged with the severity critical; available: "
    )


def test_a_logger_that_was_silent_for_hours_is_no_error(redmeter: Run, client: Any) -> None:
    """It is known, so its name is not mistyped."""
    client.zadd("redmeter:messages:", {"db:error": time.time() - 20_000})
    for words in (("db", "--common"), ("--common",)):
        done = redmeter("logs", *words)
        under = " under db" if words[0] == "db" else ""
        said = f"nothing is logged{under} in this hour or the one before\n"
        assert done == Done(0, "", said)


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_a_mistyped_logger_or_severity_says_what_there_is(
    redmeter: Run, meter: Meter, option: tuple[str, ...]
) -> None:
    """Exit code 1: nobody knows whether the one that was meant is silent."""
    write(meter)
    done = redmeter("logs", "workr", *option)
    assert done.code == 1
    assert done.err == "error: nothing is logged under workr; available: worker\n"
    done = redmeter("logs", "-s", "eror", *option)
    assert done.code == 1
    assert done.err.startswith("error: nothing is logged with the severity eror; available: ")


@pytest.mark.parametrize(
    "words",
    [
        ["worker", "--recent", "0"],
        ["worker", "--recent", "10001"],
        ["worker", "--recent", "x"],
        ["worker", "--limit", "0"],
        ["worker", "--severity", " "],
        [""],
        ["two\nlines"],
    ],
)
def test_logs_refuses_what_it_cannot_use(redmeter: Run, meter: Meter, words: list[str]) -> None:
    """Exit code 2, and what is allowed."""
    write(meter)
    done = redmeter("logs", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err


#: What other programs may have written, whose text nobody cleaned.
EVIL = "\x1b[31mred\x1b[0m \x9b2J\u202egpj\x07 [bold]x[/bold]\r\nline\ttwo\x85three"


def write_evil(client: Any) -> None:
    """Write messages as another program might."""
    now = time.time()
    client.zadd("redmeter:messages:", {"evil:error": now, "\x1b[2J:\x1b[31m": now, "bad": now})
    for logger, severity in (("evil", "error"), ("\x1b[2J", "\x1b[31m")):
        client.lpush(f"redmeter:recent:{logger}:{severity}", EVIL, b"\xff" + EVIL.encode())
        key = f"redmeter:common:{logger}:{severity}"
        client.zadd(key, {EVIL: 3, b"\xff": 2})
        client.set(f"{key}:start", slice_start(now, HOUR))
        client.hset(f"redmeter:patterns:{logger}:{severity}", EVIL, f"{now} {now} {EVIL}")


@pytest.mark.parametrize("option", [(), ("--json",)])
@pytest.mark.parametrize("words", [[], ["evil"], ["--recent", "9"], ["\u202eevil"]])
def test_messages_of_other_programs_are_inert(
    redmeter: Run, client: Any, words: list[str], option: tuple[str, ...]
) -> None:
    """Nothing in them moves the cursor, changes colours or turns text around."""
    write_evil(client)
    done = redmeter("logs", *words, *option)
    assert is_clean(done.out)
    assert is_clean(done.err)
    assert done.code == (2 if words == ["\u202eevil"] else 0)
    if words == ["evil"] and not option:
        assert "⏎ line" in done.out


@pytest.mark.parametrize("words", [[], ["evil"], ["--recent", "9"]])
def test_messages_are_inert_on_a_terminal(screen: Run, client: Any, words: list[str]) -> None:
    """Colours are ours alone, and further lines of a message are indented."""
    write_evil(client)
    seen = screen("logs", *words).out
    assert is_clean(plain(seen))
    assert "\\x1b[31mred" in plain(seen).replace("\n", "")
    if words == ["evil"]:
        assert "\n    line    two\n    three\n" in plain(seen).replace("\r", "")


def test_a_terminal_gets_titles_and_times_of_the_day(screen: Run, meter: Meter) -> None:
    """The messages as a log, with their further lines below them."""
    write(meter)
    seen = plain(screen("logs", "worker", columns=100).out).replace("\r", "")
    assert "changed since the hour before\nCHANGE" in seen
    assert "most common in the last hour\nCOUNT" in seen
    assert "newest messages\n20" in seen
    assert "  error  order 17 failed\n    ValueError: no\n    address\n" in seen
    seen = plain(screen("logs", columns=100).out)
    assert "loggers" in seen


def test_what_the_listings_write_is_read_too(redmeter: Run, client: Any) -> None:
    """With an empty prefix, as they have none."""
    for _ in range(3):
        log_common(client, "test", "a message", "info")
    found = json.loads(redmeter("logs", "test", "--prefix", "", "--json").out)
    assert [m["text"] for m in found["recent"]] == ["a message"] * 3
    assert abs(found["recent"][0]["time"] - time.time()) < 90000
    assert [(f["pattern"], f["count"]) for f in found["common"]] == [("a message", 3)]


def test_a_window_has_its_messages_and_patterns(redmeter: Run, server: Server) -> None:
    """[since, until): patterns first seen in it are new; older counts are said to be missing."""
    now = time.time()
    clock = ManualClock(now - 3000)
    with Meter(server.url, clock=clock) as meter:
        meter.log("app", "disk is full", severity="error")
        clock.advance(1800)
        meter.log("app", "late", severity="error")
        meter.log("other", "late")
        clock.advance(1140)
        meter.log("app", "now", severity="error")
        assert meter.flush()
    window = ("--since", str(now - 1500), "--until", str(now - 600))
    answer = json.loads(redmeter("logs", "app", *window, "--json").out)
    assert [one["text"] for one in answer["recent"]] == ["late"]
    assert [(one["pattern"], one["count"]) for one in answer["common"]] == [("late", 1)]
    assert [(one["kind"], one["pattern"]) for one in answer["changes"]] == [("new", "late")]
    limits = [answer["window"][end] for end in ("since", "until")]
    assert limits == pytest.approx([now - 1500, now - 600])
    overview = json.loads(redmeter("logs", *window, "--json").out)
    assert {one["logger"] for one in overview["common"]} == {"app", "other"}
    newest = redmeter("logs", "app", "--last", "90s", "--recent", "9", "--json")
    assert [one["text"] for one in json.loads(newest.out)["recent"]] == ["now"]
    assert "patterns are counted since" in redmeter("logs", "app", "--since", "1d").err
    assert "patterns are counted since" not in redmeter("logs", "app", "--last", "30m").err
    assert redmeter("logs", "--last", "24").code == 2
