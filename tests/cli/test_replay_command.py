"""replay: what a log holds, counted independently, is what lies in the store."""

import bz2
import gzip
import json
import lzma
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from redmeter import Meter
from redmeter.names import parse_name
from redmeter.store.producers import InFlightBatch
from redmeter.store.shard import Shard
from support.commands import Done, Home, is_clean
from support.proxy import Proxy
from support.realdata import OWN_LOG, real_log
from support.servers import Server
from support.waiting import eventually

Run = Any


#: A line of a log: time, path.
LINE = '192.0.2.7 - - [{time}] "GET {path} HTTP/1.1" 200 5 "-" "-"\n'


def line_at(when: float, path: str = "/") -> str:
    """Return a line of a log."""
    time_local = datetime.fromtimestamp(when, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
    return LINE.format(time=time_local, path=path)


def independent(log: Path) -> dict[str, Counter[Any]]:
    """Count a log by splitting its lines at quotes and spaces, without any code of the project."""
    found: dict[str, Counter[Any]] = {"path": Counter(), "class": Counter(), "hour": Counter()}
    for line in log.read_bytes().decode(errors="replace").splitlines():
        before, request, after = line.split('"')[:3]
        path = request.split(" ")[1].split("?")[0].split("#")[0]
        found["path"][re.sub("/+", "/", path)] += 1
        found["class"][request.split(" ")[0], after.split()[0][0] + "xx"] += 1
        stamp = before[before.index("[") + 1 : before.index("]")]
        when = datetime.strptime(stamp, "%d/%b/%Y:%H:%M:%S %z")
        found["hour"][int(when.timestamp()) // 3600 * 3600] += 1
    return found


def report_of(done: Done) -> dict[str, Any]:
    """Read the report, every line of which must be accounted for."""
    report: dict[str, Any] = json.loads(done.out)
    notices = report["notices"]
    assert report["lines"] == report["requests"] + notices + sum(report["malformed"].values())
    assert report["requests"] == sum(report["formats"].values())
    assert report["requests"] == report["retained"] + report["too_old"] + report["too_new"]
    return report


def samples(redmeter: Run, name: str, precision: str) -> dict[int, int]:
    """Return what `series` shows: start -> count, without zeros."""
    done = redmeter("series", name, "-p", precision, "--json")
    return {start: count for start, count in json.loads(done.out)["series"][0]["samples"] if count}


@pytest.mark.parametrize(
    ("changes", "series", "top"),
    [
        ("1=120", "1h", "1d"),
        ("3600=0", "5m", "1d"),
        ("86400=0 90=9", "1h", "5h"),
        ("1=0 5=0 60=0 300=0 3600=0", "5h", "1d"),
    ],
)
def test_what_to_do_next_is_at_a_precision_that_is_kept(
    redmeter: Run, tmp_path: Path, changes: str, series: str, top: str
) -> None:
    """The wanted one, else a finer one, else a coarser one; what is named can be typed."""
    (tmp_path / "log").write_text(line_at(time.time()))
    assert redmeter("retention", *changes.split()).code == 0
    done = redmeter("replay", str(tmp_path / "log"))
    assert f"series hits -p {series}" in done.err
    assert f"top http_requests --by route -p {top}" in done.err
    assert redmeter("series", "hits", "-p", series).code == 0
    assert redmeter("top", "http_requests", "--by", "route", "-p", top).code == 0


@pytest.mark.parametrize("piped", [False, True])
def test_where_no_line_is_a_hit_the_code_is_1(redmeter: Run, tmp_path: Path, piped: bool) -> None:
    """The report is printed all the same; of nothing at all there is nothing to be said."""
    log = tmp_path / "a.log"
    data = line_at(time.time()).encode("utf-16")
    log.write_bytes(data)
    done = redmeter("replay", "-", text=data) if piped else redmeter("replay", str(log))
    assert done.code == 1
    assert done.out.startswith("1 line: 0 requests, 0 within the retention\n1 line not counted")
    assert done.err.startswith(
        f"error: {'standard input' if piped else log}: no line is a request; "
    )
    done = redmeter("replay", str(log), "--json")
    assert done.code == 1
    assert report_of(done)["requests"] == 0
    log.write_bytes(b"")
    assert redmeter("replay", str(log)) == Done(
        0, "0 lines: 0 requests, 0 within the retention\n", ""
    )


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("piped", [False, True])
def test_compressed_logs_are_read(redmeter: Run, tmp_path: Path, pack: Any, piped: bool) -> None:
    """Known by the first bytes, not by the name; of several members, as `cat` makes them."""
    data = pack(line_at(time.time()).encode() * 3) + pack(line_at(time.time()).encode())
    (tmp_path / "log").write_bytes(data)
    options = ("--shift-to-now", "--json")
    if piped:
        done = redmeter("replay", "-", *options, text=data)
    else:
        done = redmeter("replay", str(tmp_path / "log"), *options)
    assert report_of(done)["retained"] == 4


def test_a_log_compressed_with_zstd_is_read_or_names_what_reads_it(
    redmeter: Run, tmp_path: Path
) -> None:
    """Python has zstd since 3.14; this one holds one line, in a raw block."""
    text = line_at(time.time()).encode()
    frame = bytes.fromhex("28b52ffd") + b"\x00\x50"  # no size, no checksum; a window of 1 MiB
    block = (len(text) << 3 | 1).to_bytes(3, "little") + text
    log = tmp_path / "a log"
    log.write_bytes(frame + block)
    done = redmeter("replay", str(log), "--json")
    if done.code == 0:
        assert report_of(done)["retained"] == 1
        return
    assert done.code == 2
    assert "compressed with zstd" in done.err
    assert "pip install backports.zstd" in done.err
    assert f"zstdcat '{log}' | redmeter replay -" in done.err


@pytest.mark.slow
@pytest.mark.realdata
def test_totals_of_the_real_log_equal_an_independent_count(redmeter: Run, meter: Meter) -> None:
    """By route, by method and class of status, and by hour: nothing is lost or invented."""
    log = real_log()
    expected = independent(log)
    report = report_of(
        redmeter("replay", str(log), "--shift-to-now", "--json", "--max-routes=9999")
    )
    lines = sum(expected["path"].values())
    assert (report["lines"], report["retained"], report["stored"]) == (
        lines,
        lines,
        2 * lines + report["failed"],
    )
    assert report["other_routes"] == 0
    assert report["complete"]

    rows = json.loads(redmeter("names", "--json").out)["names"]
    totals = {row["name"]: row["total"] for row in rows}
    assert totals.pop("hits") == lines
    failed = totals.pop("hits_failed")
    routes: Counter[str] = Counter()
    classes: Counter[tuple[str, str]] = Counter()
    for name, total in totals.items():
        labels = dict(parse_name(name).labels)
        routes[labels["route"]] += total
        classes[labels["method"], labels["status"]] += total
    assert classes == expected["class"]
    failures = sum(n for (_, status), n in classes.items() if status == "5xx")
    assert failed == report["failed"] == failures > 0
    assert sum(routes.values()) == lines
    # Paths that nothing is folded in are routes as they are.
    simple = re.compile(r"/(?:[a-z_]+/)*(?:[a-z_]+\.(?:css|ico|txt|html|png))?|/")
    alike = {path: n for path, n in expected["path"].items() if simple.fullmatch(path)}
    assert len(alike) > 50
    assert {path: routes[path] for path in alike} == alike

    # The shift is no whole number of hours, so slices are compared second by second.
    seconds: Counter[int] = Counter()
    for line in log.read_text(errors="replace").splitlines():
        stamp = line[line.index("[") + 1 : line.index("]")]
        when = datetime.strptime(stamp, "%d/%b/%Y:%H:%M:%S %z")
        seconds[(int(when.timestamp()) + report["shift"]) // 3600 * 3600] += 1
    assert samples(redmeter, "hits", "1h") == dict(seconds)
    assert len(seconds) > 80


def test_the_projects_own_log_is_accounted_for(redmeter: Run, meter: Meter) -> None:
    """Every line is a hit or malformed; what is kept is stored twice, what failed thrice."""
    report = report_of(redmeter("replay", str(OWN_LOG), "--shift-to-now", "--json"))
    text = OWN_LOG.read_text(errors="replace").splitlines()
    timed = [line for line in text if re.search(r'\] "[^"]*(?:\\"[^"]*)*" [1-5]\d\d\b', line)]
    assert (report["lines"], report["requests"], report["retained"]) == (
        len(text),
        len(timed),
        len(timed),
    )
    assert report["malformed"]
    assert sum(samples(redmeter, "hits", "1d").values()) == len(timed)
    assert meter.total("hits") == len(timed)
    by_status = json.loads(
        redmeter("top", "http_requests", "--by", "status", "-p", "1d", "--json").out
    )["rows"]
    own = Counter(re.findall(r'\] "[^"]*(?:\\"[^"]*)*" ([1-5])\d\d\b', "\n".join(text)))
    assert {row["key"]: row["count"] for row in by_status} == {
        f"{digit}xx": n for digit, n in own.items()
    }


def test_the_newest_line_becomes_now(redmeter: Run, tmp_path: Path) -> None:
    """By the server's clock; the others keep their distance from it."""
    log = tmp_path / "log"
    log.write_text("".join(line_at(1_431_857_103 - n) for n in (7200, 0, 60)))
    before = int(time.time())
    report = report_of(redmeter("replay", str(log), "--shift-to-now", "--json"))
    now = int(report["newest"]) + report["shift"]
    assert before <= now <= time.time()
    assert samples(redmeter, "hits", "60") == {(now - n) // 60 * 60: 1 for n in (0, 60)}


def test_a_line_far_ahead_of_the_others_is_told(redmeter: Run, tmp_path: Path) -> None:
    """It would become now, and so most others would be older than the retention: it is left out."""
    log = tmp_path / "log"
    log.write_text("".join(map(line_at, [*range(1_431_857_103, 1_431_857_106), 253_402_300_799])))
    done = redmeter("replay", str(log), "--shift-to-now")
    assert done.out.startswith("4 lines: 4 requests, 3 within the retention\n")
    assert done.out.splitlines()[2] == (
        "1 request far newer than all others, up to 9999-12-31 23:59:59 UTC: left out"
    )
    log.write_text("".join(map(line_at, [1, *range(1_431_857_103, 1_431_857_106)])))
    said = redmeter("replay", str(log), "--shift-to-now").out.splitlines()[2]
    assert said == "1 request older than the retention"


def test_what_to_do_next_is_about_the_same_store(
    redmeter: Run, server: Server, tmp_path: Path
) -> None:
    """Options that were given are given again; a password is not."""
    log = tmp_path / "log"
    log.write_text(line_at(time.time()))

    def hints(*options: str) -> list[str]:
        lines = redmeter("replay", str(log), *options).err.splitlines()
        return [line.partition("redmeter ")[2] for line in lines]

    first, second = "series hits -p 1h", "top http_requests --by route -p 1d"
    url = server.url.replace("127.0.0.1", "localhost")
    options = f" --url {url} --prefix 'a b:'"
    assert hints("--url", url, "--prefix", "a b:") == [first + options, second + options]
    assert hints("--prefix", "") == [f"{first} --prefix ''", f"{second} --prefix ''"]
    secret = server.url.replace("//", "//default:s3cret@")
    with server.client() as client:
        client.config_set("requirepass", "s3cret")
        try:
            assert hints("--url", secret) == [f"{first} --url …", f"{second} --url …"]
        finally:
            client.config_set("requirepass", "")


def test_query_strings_are_never_stored(redmeter: Run, client: Any) -> None:
    """They may hold passwords: no key, field or member has any of them."""
    redmeter("replay", str(OWN_LOG), "--shift-to-now")
    assert b"password=" in OWN_LOG.read_bytes()
    for key in client.scan_iter(count=1000):
        held = key + (b"".join(client.hkeys(key)) if client.type(key) == b"hash" else b"")
        assert b"password" not in held
        assert b"FAKE" not in held


def test_an_old_log_keeps_nothing_and_says_so(redmeter: Run, client: Any, tmp_path: Path) -> None:
    """Without --shift-to-now times stay; what the retention does not hold is only counted."""
    log = tmp_path / "old.log"
    log.write_text(line_at(1_431_857_103) * 3)
    assert redmeter("replay", str(log)) == Done(
        0,
        "3 lines: 3 requests, 0 within the retention\n"
        "format: combined\n"
        "3 requests older than the retention; --shift-to-now moves the newest line to now\n",
        "",
    )
    assert client.exists("redmeter:known:", "redmeter:total:") == 0


@pytest.mark.slow
@pytest.mark.realdata
def test_the_real_log_is_of_2015_and_keeps_nothing_unshifted(redmeter: Run) -> None:
    """All 10,000 lines are too old."""
    report = report_of(redmeter("replay", str(real_log()), "--json"))
    assert (report["retained"], report["too_old"], report["stored"]) == (0, report["lines"], 0)


def test_only_what_some_precision_shows_is_kept(redmeter: Run, tmp_path: Path) -> None:
    """Exactly the lines counted as kept are in the widest slices; old and future ones are told."""
    day = 86400
    today = int(time.time()) // day * day
    log = tmp_path / "edges.log"
    kept = [today - 119 * day, today - 119 * day + 1, today]
    lost = [today - 119 * day - 1, today - 121 * day, today + 500 * day]
    log.write_text("".join(line_at(second) for second in [*kept, *lost]))
    report = report_of(redmeter("replay", str(log), "--json"))
    assert (report["retained"], report["too_old"], report["too_new"]) == (3, 2, 1)
    assert samples(redmeter, "hits", "1d") == {today - 119 * day: 2, today: 1}
    assert "1 request too far in the future" in redmeter("replay", str(log)).out


def test_a_log_replayed_twice_counts_twice(redmeter: Run, meter: Meter) -> None:
    """As its help says."""
    first = report_of(redmeter("replay", str(OWN_LOG), "--shift-to-now", "--json"))
    redmeter("replay", str(OWN_LOG), "--shift-to-now")
    assert meter.total("hits") == 2 * first["retained"]
    assert "Each run counts the whole file" in redmeter("replay", "--help").out


@pytest.mark.parametrize("shift", [(), ("--shift-to-now",)])
def test_gzip_and_standard_input_are_read_alike(
    redmeter: Run, meter: Meter, tmp_path: Path, shift: tuple[str, ...]
) -> None:
    """A compressed file, by any name, and a pipe, also where it must be read twice."""
    text = "".join(line_at(time.time() - back) for back in range(50)).encode()
    (tmp_path / "log").write_bytes(gzip.compress(text))
    assert report_of(redmeter("replay", str(tmp_path / "log"), "--json", *shift))["retained"] == 50
    assert report_of(redmeter("replay", "-", "--json", *shift, text=text))["retained"] == 50
    packed = gzip.compress(text)
    assert report_of(redmeter("replay", "-", "--json", *shift, text=packed))["retained"] == 50
    assert meter.total("hits") == 150


def test_a_named_pipe_can_be_shifted(home: Home) -> None:
    """What `<(zcat …)` gives can be read only once, so it is copied first."""
    (home.work / "log").write_text("".join(line_at(1_431_857_103 + n) for n in range(30)))
    done = home.shell("redmeter replay <(cat log) --shift-to-now --json")
    assert report_of(done)["retained"] == 30


def test_a_store_with_more_routes_than_can_be_listed_is_no_error(
    redmeter: Run, meter: Meter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is of that run alone then."""
    monkeypatch.setattr("redmeter.ingest.replay.MAX_SCANNED", 1)
    log = tmp_path / "log"
    for paths in (["/a", "/b"], ["/c", "/d"]):
        log.write_text("".join(line_at(time.time(), path) for path in paths))
        report = report_of(redmeter("replay", str(log), "--max-routes", "2", "--json"))
        assert report["other_routes"] == 0


def test_routes_over_the_limit_become_other_and_are_told(
    redmeter: Run, meter: Meter, tmp_path: Path
) -> None:
    """Those that come first keep their names."""
    log = tmp_path / "log"
    paths = ["/a", "/b", "/c", "/a", "/d"]
    log.write_text("".join(line_at(time.time(), path) for path in paths))
    done = redmeter("replay", str(log), "--max-routes", "2")
    assert "2 requests in route (other): a higher --max-routes keeps more routes\n" in done.out
    counted = {
        row.key: row.count for row in meter.top("http_requests", by="route", precision=86400)
    }
    assert counted == {"/a": 2, "/b": 1, "(other)": 2}


def test_the_limit_of_routes_is_of_all_runs(redmeter: Run, meter: Meter, tmp_path: Path) -> None:
    """Or each log that comes would add as many; those of runs before keep their names."""
    log = tmp_path / "log"
    meter.count("http_requests", labels={"method": "GET", "status": "2xx"})  # without a route
    meter.flush()
    for paths, other in ((["/a", "/b"], 0), (["/c", "/b", "/d"], 1), (["/d", "/a"], 1)):
        log.write_text("".join(line_at(time.time(), path) for path in paths))
        done = redmeter("replay", str(log), "--max-routes", "3", "--json")
        assert report_of(done)["other_routes"] == other
    counted = {
        row.key: row.count for row in meter.top("http_requests", by="route", precision=86400)
    }
    assert {key: counted[key] for key in ("/a", "/b", "/c", "(other)")} == {
        "/a": 2, "/b": 2, "/c": 1, "(other)": 2,
    }  # fmt: skip
    assert "/d" not in counted


def test_malformed_lines_are_counted_and_the_first_are_shown(redmeter: Run, tmp_path: Path) -> None:
    """By reason, shortened and inert; those that are not shown are counted too."""
    log = tmp_path / "log"
    bad = ["\x1b[31mred\x1b[0m", "x" * 500, '{"a": 1}', "", "evil\u202e", "six", "seven"]
    log.write_text(line_at(time.time()) + "\n".join(bad) + "\n")
    done = redmeter("replay", str(log))
    assert is_clean(done.out)
    assert done.out == (
        "8 lines: 1 request, 1 within the retention\n"
        "format: combined\n"
        "7 lines not counted (6 no time, 1 empty):\n"
        "    \\x1b[31mred\\x1b[0m\n"
        f"    {'x' * 120}… (380 more)\n"
        '    {"a": 1}\n'
        "    \n"
        "    evil\\u202e\n"
        "    … (2 more)\n"
    )
    done = redmeter("replay", str(log), "--json")
    assert is_clean(done.out)
    assert report_of(done)["examples"][0] == "\x1b[31mred\x1b[0m"


def test_a_file_of_random_bytes_is_no_crash(redmeter: Run, tmp_path: Path) -> None:
    """Each line is counted as malformed."""
    log = tmp_path / "log"
    data = b"".join(bytes([(n * 167 + n // 7) % 256]) for n in range(100_000))
    log.write_bytes(data)
    done = redmeter("replay", str(log))
    assert done.code == 1
    assert is_clean(done.out)
    report = report_of(redmeter("replay", str(log), "--json"))
    assert report["requests"] == 0
    assert report["lines"] == data.count(b"\n") + (not data.endswith(b"\n"))


def test_an_empty_file_is_no_lines(redmeter: Run, tmp_path: Path) -> None:
    """Nothing to count is no error."""
    (tmp_path / "log").write_bytes(b"")
    for option in ((), ("--shift-to-now",)):
        done = redmeter("replay", str(tmp_path / "log"), *option)
        assert done == Done(0, "0 lines: 0 requests, 0 within the retention\n", "")


def test_what_cannot_be_read_is_exit_code_2(redmeter: Run, tmp_path: Path) -> None:
    """No file, a folder, two options that exclude each other: the error names what is wrong."""
    missing = str(tmp_path / "missing.log")
    for option in ((), ("--shift-to-now",), ("--follow",)):
        done = redmeter("replay", missing, *option)
        assert done == Done(2, "", f"error: {missing}: No such file or directory\n")
        if option != ("--follow",):
            done = redmeter("replay", str(tmp_path), *option)
            assert done == Done(2, "", f"error: {tmp_path}: Is a directory\n")
    done = redmeter("replay", str(OWN_LOG), "--follow", "--shift-to-now")
    assert (done.code, done.out) == (2, "")
    assert "omit --shift-to-now" in done.err


def test_a_damaged_gzip_file_keeps_what_came_before(
    redmeter: Run, meter: Meter, tmp_path: Path
) -> None:
    """The report, then the error; exit code 2."""
    text = "".join(line_at(time.time(), f"/{n}") for n in range(5000)).encode()
    (tmp_path / "log.gz").write_bytes(gzip.compress(text)[:-3000])
    done = redmeter("replay", str(tmp_path / "log.gz"), "--json")
    report = report_of(done)
    assert done.code == 2
    assert 0 < report["retained"] < 5000
    assert not report["complete"]
    assert report["stored"] == 2 * report["retained"] + report["failed"]
    assert meter.total("hits") == report["retained"]
    assert "damaged gzip file" in done.err
    packed = gzip.compress(text)[:-3000]
    done = redmeter("replay", "-", "--shift-to-now", text=packed)
    assert done.code == 2
    assert done.err.startswith("error: standard input: damaged gzip file: ")


def test_a_damaged_gzip_in_a_named_pipe_is_called_by_its_name(home: Home) -> None:
    """Not by that of the copy that is read."""
    line = "mkfifo log.gz; (gzip < /dev/urandom | head -c 9999 > log.gz) &"
    done = home.shell(f"{line} redmeter replay log.gz --shift-to-now; wait")
    assert done.err.startswith("error: log.gz: damaged gzip file: ")


@pytest.mark.parametrize("how", ["refused", "unanswered"])
def test_a_server_that_goes_away_is_exit_code_3_and_says_what_is_stored(
    redmeter: Run,
    proxy: Proxy,
    client: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    """What the report calls stored is in the store, what it calls uncertain may be."""
    log = tmp_path / "log"
    now = int(time.time())
    log.write_text("".join(line_at(now - n, f"/{'abcdefgh'[n % 8]}") for n in range(3000)))
    batches = 0

    sending = Shard.sending

    def counted(part: Shard, in_flight: InFlightBatch, **options: Any) -> Any:
        nonlocal batches
        batches = in_flight.number
        if batches == 3 and how == "refused":
            proxy.refuse()
        if batches == 3 and how == "unanswered":
            proxy.drop_replies(10**6)
        return sending(part, in_flight, **options)

    monkeypatch.setattr(Shard, "sending", counted)
    done = redmeter("replay", str(log), "--json", "--url", proxy.url, REDMETER_TIMEOUT="0.1")
    report = report_of(done)
    assert done.code == 3
    assert done.err.startswith(f"error: no answer from {proxy.url}")
    if how == "unanswered":
        assert batches == 3  # it comes again under its number
    assert (report["retained"], report["complete"]) == (3000, False)
    there = sum(int(total) for total in client.hvals("redmeter:total:"))
    assert there == report["stored"] + report["uncertain"] * (how == "unanswered")
    assert 0 < report["stored"] < 6000
    assert (report["uncertain"] > 0) == (how == "unanswered")

    said = redmeter("replay", str(log), "--url", proxy.url, REDMETER_TIMEOUT="0.1")
    assert said.out == ""  # nothing was read before the store was found to be away
    proxy.heal()
    batches = 0
    said = redmeter("replay", str(log), "--url", proxy.url, REDMETER_TIMEOUT="0.1").out.splitlines()
    assert said[0] == "3,000 lines: 3,000 requests, 3,000 within the retention"
    per_hit = "two per request, three if it failed"
    lines = [rf"stored: [\d,]+ of 6,000 counts, {per_hit}"]
    if how == "unanswered":
        lines.append(r"[\d,]+ counts may or may not be stored")
    size = f"{log.stat().st_size:,}"
    assert said[1:3] == ["format: combined", f"read: {size} of {size} bytes (100%)"]
    assert re.fullmatch("\n".join(lines), "\n".join(said[3:]))


def test_a_server_that_is_not_there_is_exit_code_3(redmeter: Run, server: Server) -> None:
    """Nothing was read, so nothing is reported."""
    server.stop()
    for option in ((), ("--json",), ("--shift-to-now",)):
        done = redmeter("replay", str(OWN_LOG), *option)
        assert done.code == 3
        assert list(json.loads(done.out)) == ["error"] if "--json" in option else done.out == ""
        assert "Is the server running, and the URL right?" in done.err


def test_slices_that_the_server_refuses_are_told(
    redmeter: Run, client: Any, tmp_path: Path
) -> None:
    """The rest is stored; exit code 3."""
    log = tmp_path / "log"
    log.write_text(line_at(time.time()))
    client.set("redmeter:count:60:hits", "another program's")
    done = redmeter("replay", str(log))
    assert done.code == 3
    assert "1 count rejected by the server (WRONGTYPE)" in done.out
    assert client.exists("redmeter:count:3600:hits")


# ---------------------------------------------------------------- following

#: Writes lines to a log that it rotates: argv: path, how many, how often it rotates.
WRITER = """
import os, sys, time
path, count, every = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
log = open(path, "a", buffering=1)
for n in range(count):
    stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime())
    log.write(f'192.0.2.7 - - [{stamp}] "GET /n/{n} HTTP/1.1" 200 5\\n')
    if n % every == every - 1:
        os.rename(path, f"{path}.{n}")
        log.write("still to the old file\\n")
        log.close()
        log = open(path, "a", buffering=1)
    if n % 50 == 0:
        time.sleep(0.03)  # the reader looks five times a second
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.nightly)]
)
def test_a_log_that_is_followed_is_counted_once_through_rotation(
    home: Home, meter: Meter, how: signal.Signals
) -> None:
    """A writer renames its log again and again; Ctrl-C and SIGTERM end cleanly, with the report."""
    log = home.work / "access.log"
    log.write_text("")
    child = home.start("replay", "access.log", "--follow", "--json")
    assert child.err(0) == "following access.log; Ctrl-C ends it\n"
    count, every = 3000, 1000
    subprocess.run([sys.executable, "-c", WRITER, str(log), str(count), str(every)], check=True)
    eventually(lambda: meter.total("hits") >= count, 20, "all lines are counted")
    done = child.finish(how)
    assert (done.code, done.err) == (0, child.err(0))
    report = report_of(done)
    assert report["malformed"] == {"no time": count // every}
    assert (report["requests"], report["retained"], report["stored"]) == (
        count,
        count,
        2 * count + report["failed"],
    )
    assert report["complete"]
    assert meter.total("hits") == count


def test_ctrl_c_stores_what_was_read_last(home: Home, meter: Meter) -> None:
    """Lines of the last second before it are not lost."""
    log = home.work / "access.log"
    log.write_text(line_at(time.time()))
    child = home.start(
        "replay",
        "access.log",
        "-f",
        code="import redmeter.cli.replay as r\nr.FLUSH_SECONDS = 1e9",
    )
    child.err(0)
    # The link is idle now: one look at the file, after which the lines are read and unwritten.
    with log.open("a") as more:
        more.write(line_at(time.time()) * 4)
    eventually(lambda: _read_position(child.pid, log) == log.stat().st_size)
    assert meter.total("hits") == 0
    eventually(child.rests)
    done = child.finish(signal.SIGINT)
    assert (done.code, done.out) == (
        0,
        "5 lines: 5 requests, 5 within the retention\nformat: combined\n",
    )
    assert "Traceback" not in done.err
    assert meter.total("hits") == 5


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_right_after_a_rotation_counts_what_is_in_the_new_file(
    home: Home, meter: Meter, how: signal.Signals
) -> None:
    """Whether or not it was looked at by then; a last line without its end too."""
    log = home.work / "access.log"
    log.write_text(line_at(time.time()))
    child = home.start("replay", "access.log", "--follow", "--json")
    eventually(lambda: meter.total("hits") == 1, 20)
    log.rename(log.with_suffix(".1"))
    log.write_text((line_at(time.time()) * 1_000).rstrip("\n"))
    report = report_of(child.finish(how))
    assert (report["requests"], report["complete"]) == (1_001, True)
    assert meter.total("hits") == 1_001


def test_a_second_ctrl_c_ends_it_at_once_and_does_not_say_that_all_was_read(
    home: Home, meter: Meter
) -> None:
    """Both within one look at the log."""
    log = home.work / "access.log"
    log.write_text(line_at(time.time()))
    child = home.start(
        *("replay", "access.log", "--follow", "--json"),
        code="import redmeter.cli.replay as r\nr.FLUSH_SECONDS = 0.0\nr.lines.POLL_SECONDS = 60.0",
    )
    eventually(lambda: meter.total("hits") == 1, 20)
    eventually(child.rests)
    with log.open("a") as more:
        more.write(line_at(time.time()) * 10)
    os.kill(child.pid, signal.SIGINT)
    time.sleep(0.3)
    done = child.finish(signal.SIGINT)
    assert (done.code, report_of(done)["complete"]) == (130, False)
    assert report_of(done)["requests"] == 1


def test_a_pipe_that_is_followed_is_written_as_it_comes(home: Home, meter: Meter) -> None:
    """`tail -F log | redmeter replay - --follow` shows the last line without a next one."""
    child = home.start("replay", "-", "--follow")
    for n in (1, 2):
        child.type(line_at(time.time()))
        # The first one waits for the process to start as well.
        eventually(lambda n=n: meter.total("hits") == n, 30.0)  # type: ignore[misc]
    done = child.finish()
    assert (done.code, done.out) == (
        0,
        "2 lines: 2 requests, 2 within the retention\nformat: combined\n",
    )


def test_ctrl_c_without_follow_is_exit_code_130_with_the_report(home: Home, meter: Meter) -> None:
    """What was read is stored and told; the rest is not."""
    child = home.start("replay", "-")
    child.type(line_at(time.time()) * 3)
    eventually(child.rests)
    assert meter.names() == []
    done = child.finish(signal.SIGINT)
    assert (done.code, done.err) == (130, "error: interrupted\n")
    assert done.out == (
        "3 lines: 3 requests, 3 within the retention\n"
        "format: combined\n"
        "stored: 6 of 6 counts, two per request, three if it failed\n"
    )
    assert meter.total("hits") == 3


def _read_position(pid: int, path: Path) -> int:
    """Return how far a process has read a file."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        if os.path.realpath(link) == str(path):
            told = Path(f"/proc/{pid}/fdinfo/{link.name}").read_text()
            return int(told.split()[1])
    return -1


# ---------------------------------------------------------------- formats, odd lines, a dry run


def test_the_format_is_reported_and_can_be_given(redmeter: Run, tmp_path: Path) -> None:
    """A log in a format of one's own is read with it only; a mixed one is reported."""
    log = tmp_path / "log"
    when = datetime.now(UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
    log.write_text(f"{when}|GET /a HTTP/1.1|200|0.25\n" * 3)
    done = redmeter("replay", str(log))
    assert done.code == 1
    assert "redmeter replay FILE --dry-run shows why, and --format takes" in done.err
    form = "$time_local|$request|$status|$request_time"
    done = redmeter("replay", str(log), "--format", form)
    assert done.out.splitlines()[1:] == ["format: log_format", "3 durations observed"]
    log.write_text(line_at(time.time()) + f'[{when[:11]} {when[12:20]}] "GET /b HTTP/1.1" 200 5\n')
    done = redmeter("replay", str(log))
    assert done.out.splitlines()[1:] == [
        "formats, recognized line by line: combined (1), runserver (1)"
    ]
    done = redmeter("replay", str(log), "--format", "squint")
    assert done.code == 2
    assert "no format is called 'squint'; give nginx's log_format" in done.err


def test_durations_of_a_log_have_percentiles(redmeter: Run, tmp_path: Path) -> None:
    """By method and route, in every reader of the command."""
    log = tmp_path / "log"
    now = time.time()
    entries = [
        {"time": now, "request": f"GET /a/{n} HTTP/1.1", "status": 200, "request_time": n / 100}
        for n in range(1, 101)
    ]
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    report = report_of(redmeter("replay", str(log), "--json"))
    assert (report["durations"], report["stored"]) == (100, 400)
    rows = json.loads(
        redmeter("top", "http_request_seconds", "--by", "route", "--last", "1h", "--json").out
    )["rows"]
    assert [(row["key"], row["count"]) for row in rows] == [("/a/{id}", 100)]
    done = json.loads(redmeter("summary", "hits_seconds", "--last", "1h", "--json").out)
    assert done["p95"] == pytest.approx(0.95, rel=0.0217)


def test_lines_without_a_time_count_when_they_are_read(home: Home, meter: Meter) -> None:
    """Only with --follow; otherwise the time is unknown."""
    log = home.work / "console.log"
    log.write_text(
        'INFO:     127.0.0.1:51234 - "GET /items/9 HTTP/1.1" 200 OK\n'
        "[2024-10-10 13:55:36 +0000] [7] [INFO] Booting worker with pid: 7\n"
    )
    done = home.shell("redmeter replay console.log --json")
    assert (json.loads(done.out)["malformed"], json.loads(done.out)["notices"]) == (
        {"no time: needs --follow": 1},
        1,
    )
    child = home.start("replay", "console.log", "--follow", "--json")
    eventually(lambda: meter.total("hits") == 1, 20)
    report = report_of(child.finish(signal.SIGINT))
    assert (report["retained"], report["notices"]) == (1, 1)


def test_nuls_at_the_beginning_lose_no_request(redmeter: Run, tmp_path: Path) -> None:
    """A writer that does not append leaves them where a log was truncated."""
    log = tmp_path / "log"
    text = "".join(line_at(time.time(), f"/{n}") for n in range(20)).encode()
    log.write_bytes(b"\0" * 70_000 + text + b"\0" * 600_000 + text)
    report = report_of(redmeter("replay", str(log), "--json"))
    assert (report["lines"], report["retained"]) == (40, 40)


def test_one_line_of_another_year_is_left_out_of_a_shift(redmeter: Run, tmp_path: Path) -> None:
    """And counted: the others are as they would be without it."""
    log = tmp_path / "log"
    lines = [line_at(1_431_857_103 + n) for n in range(2_000)]
    lines.insert(1_000, line_at(2_082_758_400))  # 2036
    log.write_text("".join(lines))
    report = report_of(redmeter("replay", str(log), "--shift-to-now", "--json"))
    assert (report["retained"], report["too_new"], report["too_old"]) == (2_000, 1, 0)
    assert report["shift"] == pytest.approx(time.time() - (1_431_857_103 + 1_999), abs=30)


def test_a_dry_run_shows_lines_as_they_are_understood(home: Home) -> None:
    """The first five, and the first of each kind that is not; it needs no store."""
    log = home.work / "log"
    known = "".join(
        f'192.0.2.1 - - [10/Oct/2026:13:55:3{n} +0000] "GET /a/{n}?x HTTP/1.1" 200 5 0.0120\n'
        for n in range(7)
    )
    log.write_text("bad\n" + known + 'worse\n[x:11:11] "GET / HTTP/1.1" 200\n')
    done = home.shell("redmeter replay log --dry-run --url redis://127.0.0.1:1")
    assert done.code == 0
    assert done.out.splitlines() == [
        "10 lines: 7 requests",
        "format: rack",
        "LINE\tTIME (UTC)\tMETHOD\tROUTE\tSTATUS\tBYTES\tSECONDS\tFORMAT",
        *[
            f"{n + 2}\t2026-10-10T13:55:3{n}Z\tGET\t/a/{{id}}\t200\t5\t0.012\track"
            for n in range(5)
        ],
        "not understood, the first of each kind:",
        "LINE\tREASON\tLINES\tTEXT",
        "1\tno time\t2\tbad",
        '10\tbad time\t1\t[x:11:11] "GET / HTTP/1.1" 200',
    ]
    done = home.shell("redmeter replay - --dry-run --json < log")
    shown = json.loads(done.out)
    assert shown["sample"][0] == {
        "line": 2, "format": "rack", "time": 1791640530.0, "method": "GET", "path": "/a/0",
        "status": 200, "size": 5, "seconds": 0.012,
    }  # fmt: skip
    assert [each["line"] for each in shown["refused"]] == [1, 10]
    assert home.shell("echo bad | redmeter replay - --dry-run").code == 1


def test_ctrl_c_says_how_far_it_came(home: Home, meter: Meter) -> None:
    """In bytes of the file; all lines that were read are stored."""
    log = home.work / "access.log"
    log.write_text(line_at(time.time()) * 20_000)
    child = home.start(
        *("replay", "access.log", "--json"),
        code="import redmeter.ingest.lines as l, time\nl.CHUNK_BYTES = 4096\n"
        "c = l.Lines._chunk\n"
        "def slow(self, one):\n    time.sleep(0.02)\n    return c(self, one)\n"
        "l.Lines._chunk = slow",
    )
    eventually(lambda: _read_position(child.pid, log) > 40_000, 20)
    done = child.finish(signal.SIGINT)
    report = report_of(done)
    assert (done.code, report["complete"]) == (130, False)
    assert 0 < report["bytes_read"] < report["bytes_total"] == log.stat().st_size
    assert 0 < report["requests"] < 20_000
    assert meter.total("hits") == report["requests"]
