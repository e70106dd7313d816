"""migrate: what it does and says, how it ends, and that it goes on."""

import contextlib
import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from redmeter import Meter
from redmeter.cli import output
from redmeter.store import opening
from support.commands import Home
from support.moving import fill
from support.servers import Server

Run = Any


@pytest.fixture
def urls(server: Server) -> tuple[str, str]:
    """FROM and TO: two databases of one server."""
    return server.url, server.url.removesuffix("0") + "1"


@pytest.fixture
def total(urls: tuple[str, str]) -> Any:
    """Reads a grand total of TO."""

    def read(name: str) -> int:
        with Meter(urls[1]) as meter:
            return meter.total(name)

    return read


def test_a_store_is_moved_and_told_of(
    redmeter: Run, meter: Meter, urls: tuple[str, str], total: Any
) -> None:
    """A line for each kind and precision, with both sums, and a sum of all."""
    meter.count("hits", 3)
    done = redmeter("migrate", *urls)
    assert (done.code, done.err) == (0, "")
    first, *rows, last = done.out.splitlines()
    assert first == "KIND\tPRECISION\tTAKEN\tSTORED\tTOO OLD\tLOOKED FOR\tFOUND"
    assert "counters\t1h\t3\t3\t0\t3\t3" in rows
    assert "totals\t\t3\t3\t0\t3\t3" in rows
    assert last.startswith("8 pieces in 2 batches, ")
    assert last.endswith("s: 24 taken, 24 stored; looked for 24, found 24")
    assert total("hits") == 3


def test_a_dry_run_tells_what_there_is(
    redmeter: Run, meter: Meter, urls: tuple[str, str], client: Any
) -> None:
    """Series and slices; what TO does not keep, and how the retentions differ."""
    meter.count("hits")
    redmeter("retention", "7=10", "1=0", "--url", urls[1])
    meter.count("hits")
    before = {key: client.dump(key) for key in client.keys("*")}
    done = redmeter("migrate", *urls, "--dry-run")
    assert {key: client.dump(key) for key in client.keys("*")} == before
    assert "counters\t1min\t1\t" in done.out
    assert "counters at 1 s" not in done.out
    assert "counters and gauges at 1 s: FROM keeps 120 samples, TO none" in done.out
    assert "left in FROM, as TO does not keep 1s: 1 series of counters" in done.out
    found = json.loads(redmeter("migrate", *urls, "--dry-run", "--json").out)
    assert found["unkept"] == {"counters": {"1": 1}}
    assert not found["new"]


def test_a_dry_run_tells_of_memory_that_is_missing(
    redmeter: Run, meter: Meter, urls: tuple[str, str], client: Any
) -> None:
    """A store that is full cannot be moved: taking needs some more."""
    meter.count("hits")
    for number in range(500):
        meter.count("hits", labels={"number": str(number)})
    assert json.loads(redmeter("migrate", *urls, "--dry-run", "--json").out)["room"] is None
    used = client.info("memory")["used_memory"]
    try:
        client.config_set("maxmemory", used + 400_000)
        done = redmeter("migrate", *urls, "--dry-run")
        assert "FROM may lack memory for what was taken" in done.out
        assert done.out.splitlines()[-1].endswith("raise its maxmemory by 1 MB")
        client.config_set("maxmemory", used + 100_000_000)
        assert "memory" not in redmeter("migrate", *urls, "--dry-run").out
        client.config_set("maxmemory", used // 2)
        for options in ((), ("--dry-run",)):
            done = redmeter("migrate", *urls, *options)
            assert (done.code, "maxmemory" in done.err) == (3, True)
    finally:
        client.config_set("maxmemory", 0)
    assert redmeter("migrate", *urls).code == 0


def test_a_new_target_keeps_what_the_other_kept(
    redmeter: Run, meter: Meter, urls: tuple[str, str]
) -> None:
    """Whatever this process is configured for."""
    meter.count("hits")
    redmeter("retention", "60=33")
    assert "TO is new, and will keep what FROM keeps" in redmeter("migrate", *urls, "--dry-run").out
    assert redmeter("migrate", *urls, REDMETER_RETENTION="60=9").code == 0
    kept = json.loads(redmeter("retention", "--json", "--url", urls[1]).out)
    assert kept["retention"]["60"] == 33


def test_a_store_without_a_prefix_is_moved(
    redmeter: Run, urls: tuple[str, str], client: Any, total: Any
) -> None:
    """Beside keys that are none of ours, which are named."""
    now = int(time.time())
    client.hset("count:60:hits", now // 60 * 60, 4)
    client.zadd("known:", {"60:hits": 0, "60:text": 0})
    client.set("count:60:text", "x")
    done = redmeter("migrate", urls[0], urls[0], "--from-prefix", "")
    assert done.code == 0
    assert "left alone, since they are none of ours: 'count:60:text'" in done.out
    assert client.hgetall("redmeter:count:60:hits") == {str(now // 60 * 60).encode(): b"4"}


def test_the_environment_may_name_both_stores(
    redmeter: Run, meter: Meter, urls: tuple[str, str], total: Any
) -> None:
    """So that no password stands on the command line."""
    meter.count("hits")
    done = redmeter("migrate", REDMETER_PREVIOUS_URL=urls[0], REDMETER_URL=urls[1])
    assert done.code == 0
    assert total("hits") == 1


@pytest.mark.parametrize("prefix", ["", "="])
def test_the_environment_names_the_other_prefix_as_elsewhere(
    redmeter: Run, meter: Meter, urls: tuple[str, str], client: Any, total: Any, prefix: str
) -> None:
    """Empty, it is the empty one; `=` is that of TO."""
    meter.count("hits")
    client.hset("count:60:bare", int(time.time()) // 60 * 60, 4)
    client.zadd("known:", {"60:bare": 0})
    target = urls[1] if prefix else urls[0]
    both = {"REDMETER_PREVIOUS_URL": urls[0], "REDMETER_URL": target}
    done = redmeter("migrate", **both, REDMETER_PREVIOUS_PREFIX=prefix)
    assert (done.code, done.err) == (0, "")
    moved = "hits" if prefix else "bare"
    with Meter(target) as there:
        assert there.series(moved, precision=60).total == (1 if prefix else 4)
    assert client.exists("count:60:bare") == bool(prefix)


def test_what_a_run_took_is_told_beside_what_all_took(
    redmeter: Run, meter: Meter, urls: tuple[str, str]
) -> None:
    """Once it is nothing, readers may do without FROM; a dry run says where it all is."""
    meter.count("hits", 3)
    assert "readers may do" not in redmeter("migrate", *urls).out
    meter.count("hits", 2)
    done = redmeter("migrate", *urls).out
    assert "with all earlier runs; this one took 16\n" in done
    assert "readers may do" not in done
    done = redmeter("migrate", *urls).out
    assert "with all earlier runs; this one took 0\n" in done
    assert "readers may do without it" in done
    found = json.loads(redmeter("migrate", *urls, "--json").out)
    assert (found["total"]["taken"], found["now"]["taken"], found["complete"]) == (40, 0, True)
    *_, last = redmeter("migrate", *urls, "--dry-run").out.splitlines()
    assert last == f"all of it was moved to {urls[1]}, prefix 'redmeter:'"


@pytest.mark.parametrize("times", [1, 1000])
def test_who_still_writes_to_the_source_is_told_of(
    redmeter: Run,
    meter: Meter,
    urls: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    times: int,
) -> None:
    """Whether the last look has found nothing more, or there were enough looks."""
    left = iter(range(times))

    @contextlib.contextmanager
    def progress(_text: str) -> Iterator[Callable[[int, int], object]]:
        yield lambda _done, _total: meter.count("hits") if next(left, None) is not None else None

    monkeypatch.setattr(output, "progress", progress)
    meter.count("hits")
    done = redmeter("migrate", *urls)
    assert done.code == 0
    *_, one, two = done.out.splitlines()
    assert one.endswith("written to FROM while it was moved")
    assert two == "FROM is still written to: let all writers move, then run it again"


def test_what_is_refused_ends_with_its_own_code(
    redmeter: Run, meter: Meter, urls: tuple[str, str], server: Server
) -> None:
    """And what was taken is not lost."""
    meter.count("hits")
    with server.client(db=1) as other:
        other.set("redmeter:count:60:hits", "theirs")
        done = redmeter("migrate", *urls)
        assert done.code == 3
        assert "1 refused by TO, and kept in FROM" in done.out
        assert "redmeter:moving:" in done.err
        (key,) = json.loads(redmeter("migrate", *urls, "--json").out)["left"]
        other.delete("redmeter:count:60:hits")
    with server.client() as one:
        assert one.renamenx(key, "redmeter:count:60:hits")
    done = redmeter("migrate", *urls)
    assert (done.code, done.err) == (0, "")
    assert "refused" not in done.out


def test_what_the_target_refused_is_named_with_its_key(
    redmeter: Run, meter: Meter, urls: tuple[str, str], server: Server
) -> None:
    """Nothing else is, though it was taken with it; the next run tells it again."""
    for name in ("hits", "other"):
        meter.count(name)
    with server.client(db=1) as other:
        other.set("redmeter:count:60:hits", "theirs")
    for _ in range(2):
        done = redmeter("migrate", *urls)
        assert "(counters 60:hits)" in done.err
        assert "other" not in done.err


def test_where_nothing_is_to_be_moved_that_is_told(redmeter: Run, urls: tuple[str, str]) -> None:
    """As a rule a URL or a prefix is wrong then; and what a new TO will keep, FROM does not say."""
    told = redmeter("migrate", *urls, "--dry-run").out
    assert "FROM has nothing to move" in told
    assert "TO is new, and FROM does not say what it keeps" in told
    done = redmeter("migrate", *urls)
    assert done.code == 1
    assert "error: FROM has nothing to move" in done.err


def test_nothing_to_move_is_not_complete(
    redmeter: Run, meter: Meter, urls: tuple[str, str], client: Any
) -> None:
    """Or who gave a wrong prefix would drop FROM; where all was moved within a day, it is."""
    meter.count("hits")
    wrong = redmeter("migrate", *urls, "--from-prefix", "other:", "--json")
    found = json.loads(wrong.out)
    assert (wrong.code, found["complete"], found["nothing"]) == (1, False, True)
    told = redmeter("migrate", *urls, "--from-prefix", "other:", "--dry-run").out
    assert "FROM has nothing to move" in told
    assert "was moved" not in told
    assert redmeter("migrate", *urls).code == 0
    done = redmeter("migrate", *urls, "--json")
    found = json.loads(done.out)
    assert (done.code, found["complete"], found["nothing"]) == (0, True, False)
    assert redmeter("migrate", *urls, "--from-prefix", "other:").code == 1
    client.delete("redmeter:moving:")  # as it is a day later
    assert redmeter("migrate", *urls).code == 1


@pytest.mark.parametrize("which", [0, 1])
def test_what_is_refused_is_told_with_who_refuses(
    redmeter: Run, meter: Meter, urls: tuple[str, str], client: Any, which: int
) -> None:
    """A wrong password, and a right that is missing."""
    meter.count("hits")
    client.execute_command("ACL", "SETUSER", "ada", "on", ">s", "+@all")  # of no key
    role = ("FROM", "TO")[which]
    for login, fix in (
        ("ada:bad@", "check user and password"),
        ("ada:s@", "ACL SETUSER grants it"),
    ):
        both = list(urls)
        both[which] = urls[which].replace("://", f"://{login}")
        for option in ((), ("--dry-run",)):
            done = redmeter("migrate", *both, *option)
            assert done.code == 3
            assert done.err.startswith(f"error: {role}: access denied: ")
            assert fix in done.err
            assert "bad" not in done.err


def test_one_store_is_no_move(redmeter: Run, urls: tuple[str, str]) -> None:
    """Nor is none."""
    assert redmeter("migrate", urls[0], urls[0]).code == 2
    assert redmeter("migrate", "off", urls[0]).err == "error: FROM: off is no store\n"
    assert redmeter("migrate", urls[0], "off").code == 2
    assert redmeter("migrate", urls[0], "redis://127.0.0.1:1/0").code == 3


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_one_store_by_two_names_is_no_move(
    redmeter: Run, meter: Meter, urls: tuple[str, str], client: Any, dry: tuple[str, ...]
) -> None:
    """Neither when it is only looked at; no key is made."""
    meter.count("hits")
    before = set(client.keys("*"))
    done = redmeter("migrate", urls[0], urls[0].replace("127.0.0.1", "localhost"), *dry)
    assert (done.code, done.out) == (2, "")
    assert done.err == "error: TO: is the same as FROM: name another server or prefix\n"
    assert set(client.keys("*")) == before


def test_a_store_that_is_not_there_is_not_made(
    redmeter: Run, urls: tuple[str, str], tmp_path: Path
) -> None:
    """As a rule its path is wrong."""
    path = tmp_path / "none"
    done = redmeter("migrate", f"embedded://{path}", urls[1], "--dry-run")
    assert (done.code, done.err) == (2, f"error: FROM: there is no store in {path}\n")
    assert not path.exists()


def test_ctrl_c_ends_it_and_the_next_run_goes_on(
    home: Home, urls: tuple[str, str], server: Server
) -> None:
    """What is under way is brought to its end first; the lock is given back."""
    source = opening.open(urls[0])
    assert source is not None
    fill(source, series=400)
    process = home.start("migrate", *urls)
    with server.client(db=1) as other:
        while not other.exists("redmeter:known:"):
            time.sleep(0.01)
    ended = process.finish(signal.SIGINT)
    with server.client() as client:
        assert not client.exists("redmeter:moving:lock")
        assert not client.hexists("redmeter:moving:", "group")
    if ended.code == 130:  # else it was done already
        assert "the same command goes on" in ended.err
        assert "still written to" not in ended.out
    assert home.run("migrate", *urls).code == 0
    assert source.ask([("EXISTS", "redmeter:known:")]) == [0]
    source.close()


def test_another_run_is_waited_for_as_long_as_one_likes(
    home: Home, urls: tuple[str, str], server: Server
) -> None:
    """It is said that one waits, and for how long; Ctrl-C ends that at once."""
    with server.client() as client:
        client.set("redmeter:moving:lock", "of one that was killed", px=60_000)
        process = home.start("migrate", *urls)
        assert process.err(0) == "another run is or was at work: waiting, 15 s at most\n"
        ended = process.finish(signal.SIGINT)
        assert (ended.code, ended.out) == (130, "")
        assert ended.err.endswith("interrupted; the same command goes on\nerror: interrupted\n")
        assert client.keys("*") == [b"redmeter:moving:lock"]
