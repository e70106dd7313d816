"""clean, retention, doctor: what they do and say."""

import json
import signal
import time
from typing import Any

import pytest

from redmeter import Meter, UnknownLabel, book
from redmeter.clock import SystemClock
from support.commands import Done, Home
from support.servers import Server

Run = Any


def write_stale(client: Any, names: list[str]) -> None:
    """Write counters by the minute whose samples have all left the retention."""
    for name in names:
        client.zadd("redmeter:known:", {f"60:{name}": 0})
        client.hset(f"redmeter:count:60:{name}", mapping={"3600": 1, "7200": 2})


# ---------------------------------------------------------------- clean


def test_clean_says_what_it_removed(redmeter: Run, meter: Meter, client: Any) -> None:
    """Stale slices, hashes and entries go, what is live stays, what is none is named."""
    meter.count("live")
    write_stale(client, ["old", "older"])
    client.zadd("redmeter:known:", {f"60*60:{n}": 0 for n in "abcde"} | {"60:gone": 0})
    done = redmeter("clean")
    first, second = done.out.splitlines()
    assert first.startswith(
        "10 index entries checked; removed: 4 intervals, 2 whole counters, 3 index entries; "
        "compacted: 0 ("
    )
    assert second == ("not counters, left unchanged: '60*60:e', '60*60:d', '60*60:c' … (2 more)")
    assert (done.code, done.err) == (0, "")
    assert redmeter("names").out == "NAME\tKIND\tTOTAL\nlive\tcounter\t1\n"
    report = json.loads(redmeter("clean", "--json").out)
    assert report["strange_entries"] == 5
    assert [client.zscore("redmeter:known:", entry) for entry in report["strange"]] == [0] * 5


def test_clean_is_json_for_programs(redmeter: Run, client: Any) -> None:
    """The report, field by field."""
    write_stale(client, ["old"])
    report = json.loads(redmeter("clean", "--json").out)
    assert report.pop("seconds") < 5
    assert report == {
        "examined": 1,
        "not_due": 0,
        "samples_removed": 2,
        "hashes_removed": 1,
        "entries_removed": 1,
        "compacted": 0,
        "strange_entries": 0,
        "strange": [],
        "bytes": 0,
        "cursor": 0,
        "complete": True,
    }


def test_clean_works_on_the_counters_without_prefix(redmeter: Run, client: Any) -> None:
    """An empty --prefix is a prefix."""
    client.zadd("known:", {"60:old": 0})
    client.hset("count:60:old", "60", 1)
    assert redmeter("clean", "--json").code == 0
    assert client.exists("count:60:old") == 1
    assert json.loads(redmeter("clean", "--prefix", "", "--json").out)["hashes_removed"] == 1
    assert client.exists("count:60:old", "known:") == 0


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_forgetting_removes_one_counter_and_its_total(
    redmeter: Run, meter: Meter, option: tuple[str, ...]
) -> None:
    """By any spelling of its labels; another one of that name stays."""
    meter.count("sales", labels={"a": "1", "b": "2"})
    meter.count("sales", labels={"a": "1"})
    done = redmeter("clean", "--forget", 'sales{b="2",a="1"}', *option)
    name = 'sales{a="1",b="2"}'
    said = f"forgotten: {name}" if not option else json.dumps({"forgotten": name})
    assert done == Done(0, said + "\n", "")
    assert meter.names() == ['sales{a="1"}']
    with pytest.raises(UnknownLabel):
        meter.total(name)


def test_forgetting_removes_what_the_listings_call_so(redmeter: Run, client: Any) -> None:
    """Without a prefix names are as they stand, whatever they hold."""
    theirs, ours, odd = 'hits{b="1",a="2"}', 'hits{a="2",b="1"}', "x{y"
    for name in (theirs, ours, odd):
        book.update_counter(client, name)
    for name in (theirs, odd):
        assert redmeter("clean", "--prefix", "", "--forget", name).out == f"forgotten: {name}\n"
    assert redmeter("clean", "--prefix", "", "--forget", theirs).code == 1
    listed = json.loads(redmeter("names", "--prefix", "", "--json").out)["names"]
    assert [row["name"] for row in listed] == [ours]


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_forgetting_a_logger_removes_what_it_said(
    redmeter: Run, meter: Meter, option: tuple[str, ...]
) -> None:
    """Of all severities; the others stay."""
    meter.log("worker", "the password is x", severity="error")
    meter.log("worker", "fine", severity="odd")
    meter.log("web", "started")
    done = redmeter("clean", "--forget-logger", "worker", *option)
    assert (done.code, done.err) == (0, "")
    assert done.out == ('{"forgotten": "worker"}\n' if option else "forgotten: worker\n")
    assert [source.logger for source in meter.loggers()] == ["web"]
    done = redmeter("clean", "--forget-logger", "worker", *option)
    told = "error: nothing is logged under worker; redmeter logs lists all loggers\n"
    assert (done.code, done.err) == (1, told)
    for words in (["--daemon"], ["--forget", "x"]):
        assert redmeter("clean", "--forget-logger", "web", *words).code == 2


def test_forgetting_takes_no_daemon_and_no_wrong_name(redmeter: Run) -> None:
    """Exit code 2, and why."""
    done = redmeter("clean", "--daemon", "--forget", "x")
    assert done == Done(2, "", "error: --forget: runs once: omit --daemon\n")
    done = redmeter("clean", "--forget", "x{")
    assert (done.code, done.out) == (2, "")
    assert "invalid series name 'x{'" in done.err


def test_a_cleaner_refuses_to_work_by_a_wrong_clock(
    redmeter: Run, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 3, nothing touched."""
    write_stale(client, ["old"])
    now = time.time()
    monkeypatch.setattr(SystemClock, "wall", staticmethod(lambda: now + 7200))
    done = redmeter("clean")
    assert (done.code, done.out) == (3, "")
    assert "Set both clocks (NTP)" in done.err
    assert client.exists("redmeter:count:60:old") == 1


@pytest.mark.slow
def test_the_daemon_makes_a_pass_a_minute_and_survives_its_server(
    home: Home, server: Server, client: Any
) -> None:
    """JSON lines come as they are made; trouble is told with its time; Ctrl-C ends it with 0."""
    hasty = "import redmeter.maintenance.cleaning as c\nc.PASS_INTERVAL = 0.1\n"
    child = home.start("clean", "--daemon", "--json", code=hasty, REDMETER_TIMEOUT="0.1")
    assert child.err(0) == f"cleaning {server.url} every minute; Ctrl-C ends it\n"
    assert json.loads(child.out(0))["examined"] == 0
    write_stale(client, ["old"])
    assert any(json.loads(child.out(n))["hashes_removed"] == 1 for n in (1, 2))
    server.kill()
    assert (
        " UTC warning: redmeter could not clean, and tries again in a minute: no answer from "
        in child.err(1)
    )
    server.start()
    passes = len(child.so_far())
    child.out(passes + 1)
    done = child.finish(signal.SIGINT)
    assert done.code == 0
    assert done.err.endswith("\nended\n")
    assert "Traceback" not in done.err


# ---------------------------------------------------------------- retention


def test_retention_is_shown(redmeter: Run) -> None:
    """Width in words and seconds, samples, and how far they reach back."""
    lines = redmeter("retention").out.splitlines()
    assert lines[0] == "PRECISION\tSECONDS\tSAMPLES\tREACHES BACK\tOF"
    assert lines[3] == "1m\t60\t120\t2h\tcounters, gauges"
    assert lines[8] == "5s\t5\t24\t2m\thistograms"
    assert len(lines) == 11
    kept = json.loads(redmeter("retention", "--json").out)
    assert kept == {
        "retention": dict.fromkeys(("1", "5", "60", "300", "3600", "18000", "86400"), 120)
        | {"3600": 240},
        "histogram_retention": {"5": 24, "60": 120, "3600": 240},
    }
    assert json.loads(redmeter("retention", "--histograms", "--json").out) == kept


def test_retention_is_changed_for_all(redmeter: Run, meter: Meter) -> None:
    """A precision more, one less, one with a unit; a meter that was there goes by it."""
    meter.count("hits")
    done = redmeter("retention", "10=30", "1=0", "1m=240", "--json")
    assert done.code == 0
    assert done.err.startswith("changed: every writer applies it")
    kept = {"5": 120, "10": 30, "60": 240, "300": 120, "3600": 240, "18000": 120, "86400": 120}
    assert json.loads(done.out)["retention"] == kept
    meter.count("hits")
    assert meter.series("hits", precision=10).total == 1
    assert redmeter("series", "hits", "-p", "1").code == 2


def test_without_a_prefix_no_counter_expires_and_it_is_said(redmeter: Run, client: Any) -> None:
    """Other programs write there too, by their own retention; of histograms there are only ours."""
    book.update_counter(client, "hits")
    done = redmeter("retention", "1=0", "60=240", "--prefix", "")
    assert done.code == 0
    assert "every writer" not in done.err
    assert "redmeter.book and the listings have their own, and no counter expires" in done.err
    book.update_counter(client, "hits")
    assert [client.ttl(f"count:{width}:hits") for width in (1, 60)] == [-1, -1]
    done = redmeter("retention", "--histograms", "60=240", "--prefix", "")
    assert done.err.startswith("changed: every writer applies it")


@pytest.mark.parametrize("words", [["60=120"], ["7=0"], ["--histograms", "7=0"]])
def test_what_is_so_already_is_no_change(redmeter: Run, words: list[str]) -> None:
    """It says that nothing changes."""
    assert redmeter("retention", *words).err == "no change: this is the current retention\n"
    assert redmeter("retention", "60=121").err.startswith("changed: ")
    assert redmeter("retention", *words).err.startswith(
        "changed: " if words == ["60=120"] else "no change: "
    )


def test_the_retention_of_histograms_is_changed_by_itself(redmeter: Run) -> None:
    """That of counters stays as it is."""
    before = json.loads(redmeter("retention", "--json").out)
    done = redmeter("retention", "--histograms", "1m=240", "5=0", "--json")
    assert json.loads(done.out) == before | {"histogram_retention": {"60": 240, "3600": 240}}
    assert redmeter("retention", "--json").out == done.out
    assert json.loads(redmeter("doctor", "--json").out)["histogram_retention"]["60"] == 240


@pytest.mark.parametrize(
    "words",
    [
        ["60"],
        ["60="],
        ["=60"],
        ["x=1"],
        ["60=x"],
        ["60=-1"],
        ["60=1000"],
        ["0=5"],
        ["60=1.5"],
        ["60=1", "60=2"],
        ["1m=5", "300=5", "60=5"],
        ["1w=5"],
        ["60=5", "oops"],
        [f"{p}=0" for p in (1, 5, 60, 300, 3600, 18000, 86400)],
        ["9" * 50 + "=1"],
        ["\x1b[31m=1"],
    ],
)
def test_a_wrong_retention_changes_nothing(redmeter: Run, client: Any, words: list[str]) -> None:
    """Exit code 2; the error says what is possible; the store stays as it was."""
    before = redmeter("retention", "--json").out
    done = redmeter("retention", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: retention: ")
    assert done.err.isprintable() or done.err.strip().isprintable()
    assert redmeter("retention", "--json").out == before


def test_a_running_meter_in_another_process_follows_a_change(
    redmeter: Run, home: Home, meter: Meter
) -> None:
    """Its next write goes by the new retention; it is not restarted."""
    code = (
        "import sys\nfrom redmeter import Meter\n"
        "with Meter() as meter:\n"
        "    for _ in sys.stdin:\n"
        "        meter.count('hits')\n"
        "        meter.flush()\n"
        "        print('counted', flush=True)\n"
        "sys.exit()\n"
    )
    child = home.start(code=code)
    for number, changes in enumerate(([], ["10=30", "1=0"])):
        if changes:
            assert redmeter("retention", *changes).code == 0
        child.type("\n")
        assert child.out(number) == "counted\n"
    assert child.finish().code == 0
    assert meter.series("hits", precision=10).total == 1
    assert meter.series("hits", precision=60).total == 2


# ---------------------------------------------------------------- doctor


def test_doctor_tells_what_it_connected_to(redmeter: Run, meter: Meter, server: Server) -> None:
    """A line for each topic, what to do below it, then contents; exit code 0 with warnings."""
    meter.count("hits")
    done = redmeter("doctor")
    lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert lines[0] == f"{server.url}  prefix redmeter:"
    assert lines[1] == f"ok    server       Valkey {server.version}, standalone"
    assert [line.split()[1] for line in lines[1:5]] == ["server", "clock", "memory", "persistence"]
    assert lines[4] == "warn  persistence  none: a restart loses all counts"
    assert lines[5] == f"{'':19}-> set appendonly yes"
    assert lines[-4] == "counters   1s 1, 5s 1, 1m 1, 5m 1, 1h 1, 5h 1, 1d 1"
    assert (
        lines[-3] == "others     gauges 0, histograms 0, messages 0, exceptions 0 (index entries)"
    )
    assert lines[-2].startswith("memory     counters ")
    assert lines[-1] == "producers  1 wrote in the last 24 h"


def test_doctor_is_json_for_programs(redmeter: Run, meter: Meter, server: Server) -> None:
    """Everything it knows, and the worst level."""
    meter.count("hits")
    health = json.loads(redmeter("doctor", "--json").out)
    assert health["location"] == server.url
    assert (health["server"], health["version"]) == ("Valkey", server.version)
    assert health["level"] == "warn"
    assert health["series"] == dict.fromkeys(("1", "5", "60", "300", "3600", "18000", "86400"), 1)
    assert health["retention"]["60"] == 120
    others = {"exceptions", "gauges", "histograms", "messages"}
    assert set(health["bytes"]) == {"counters", "index", "totals", *others}
    assert set(health["others"]) == others
    assert {finding["topic"] for finding in health["findings"]} >= {"server", "clock", "memory"}
    assert all(set(f) == {"level", "topic", "text", "fix"} for f in health["findings"])


def test_doctor_tells_of_the_writers(redmeter: Run, meter: Meter, client: Any) -> None:
    """What they lost with what to do about it, in words; whole reports as JSON."""
    assert "ok    writers      none within a day" in redmeter("doctor").out
    report = {"lost": {"aged": {"1": 12}}, "host": "web-1", "pid": "7", "new": [1.5]}
    client.zadd("redmeter:writers:", {"ada": int(time.time())})
    client.hset("redmeter:reports:", "ada", json.dumps(report))
    client.hset("redmeter:instances:", "ada", 3)
    done = redmeter("doctor")
    lines = [line for line in done.out.splitlines() if " writers " in line]
    assert lines == [
        "ok    writers      1 active within 3m, 1 within a day",
        (
            "warn  writers      events that arrived too late (aged) are missing: 12 in charts by "
            "1s; all others and the grand totals have them; by web-1 pid 7"
        ),
    ]
    assert "-> these events cannot be recovered" in done.out
    (told,) = json.loads(redmeter("doctor", "--json").out)["writers"]
    assert abs(told.pop("seen") - time.time()) < 30
    assert told == {"producer": "ada", "instance": 3, "report": report}


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_doctor_ends_with_1_where_something_fails(
    redmeter: Run, client: Any, option: tuple[str, ...]
) -> None:
    """So that a script can ask it."""
    client.config_set("maxmemory", "500mb")
    client.config_set("maxmemory-policy", "allkeys-lru")
    done = redmeter("doctor", *option)
    assert done.code == 1
    assert done.err == ""
    assert "counts may vanish or double: set maxmemory-policy noeviction" in done.out


@pytest.mark.parametrize("command", [["doctor"], ["names"], ["clean"], ["retention", "60=5"]])
def test_a_store_that_cannot_be_used_is_exit_code_3(
    redmeter: Run, server: Server, client: Any, command: list[str]
) -> None:
    """Wrong password, no server: each with what to look at, and without the password."""
    client.execute_command("ACL", "SETUSER", "default", "resetpass", ">hidden-right")
    try:
        url = server.url.replace("://", "://:hidden-wrong@")
        done = redmeter(*command, "--url", url)
        assert (done.code, done.out) == (3, "")
        assert "check user and password in the URL" in done.err
        assert "hidden" not in done.err
        done = redmeter(*command)
        assert (done.code, done.out) == (3, "")
        assert "access denied" in done.err
    finally:
        server.kill()
    done = redmeter(*command, "--url", url)
    assert (done.code, done.out) == (3, "")
    assert f"no answer from {server.url}" in done.err
    assert "hidden" not in done.err
