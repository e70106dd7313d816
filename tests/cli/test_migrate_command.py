"""redmeter migrate: what it prints, its exit codes, and what a kill leaves."""

import json
import signal
import subprocess
import sys
from typing import Any

import pytest

from redmeter import Meter, migrating
from redmeter.cli import migrate as command
from redmeter.migrating import states
from redmeter.stored.keys import DEFAULT_RETENTION, slice_start
from support.commands import Home
from support.invoking import Run
from support.migrating import fill, held, replica_of
from support.proxy import Proxy
from support.servers import Server
from support.stores import server_time
from support.waiting import eventually

META = "redmeter:meta:"


@pytest.fixture
def urls(server: Server) -> tuple[str, str]:
    """A filled source, and a target that does not exist yet."""
    fill(server.url)
    return server.url, server.url.removesuffix("0") + "1"


def test_it_copies_and_says_what(redmeter: Run, urls: tuple[str, str], client: Any) -> None:
    """A dry run changes nothing; a second run finds everything done."""
    dry = redmeter("migrate", *urls, "--dry-run")
    assert (dry.code, dry.err) == (0, "")
    assert "SOURCE would be frozen for about" in dry.out
    assert not client.hexists(META, "moved")
    done = redmeter("migrate", *urls)
    assert (done.code, done.err) == (0, "")
    assert "accepts no events any more" in done.out
    again = redmeter("migrate", *urls, "--erase")
    assert again.code == 0
    assert again.out.startswith("everything was copied before")
    assert "removed from SOURCE" in again.out
    assert held([client]) == {}
    assert client.hexists(META, "moved")


def test_json_has_all_that_is_known(redmeter: Run, urls: tuple[str, str]) -> None:
    """Of a dry run, of a run, and of an error."""
    dry = json.loads(redmeter("migrate", *urls, "--dry-run", "--json").out)
    done = json.loads(redmeter("migrate", *urls, "--json").out)
    assert dry.keys() == {"keys", "freeze_seconds", "moved", "total"}
    assert done["keys"] == dry["keys"]
    assert done["move"]
    failed = redmeter("migrate", urls[0], urls[0], "--json")
    assert failed.code == 2
    assert json.loads(failed.out)["error"]["message"] == "source and target are the same store"


def test_refusals_have_exit_codes(redmeter: Run, urls: tuple[str, str], client: Any) -> None:
    """2 for what other arguments mend, 1 for nothing to move, 3 for the store."""
    source, target = urls
    assert redmeter("migrate", target, source).code == 1
    fill(target, series=1)
    refused = redmeter("migrate", source, target)
    assert (refused.code, "--replace" in refused.err) == (2, True)
    assert redmeter("migrate", source, "off").code == 2
    assert redmeter("migrate", source, "redis://127.0.0.1:1").code == 3
    assert redmeter("migrate", "embedded:///nowhere", target).code == 2
    assert not client.hexists(META, "frozen")
    assert redmeter("migrate", source, target, "--target-prefix", "other:").code == 0


def test_a_long_freeze_is_asked_about(
    redmeter: Run, urls: tuple[str, str], client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program has to say --yes."""
    monkeypatch.setattr(command, "ASKED", 0.0)
    dry = redmeter("migrate", *urls, "--dry-run")
    assert (dry.code, "without --yes, the command asks before" in dry.out) == (0, True)
    assert "asks" not in redmeter("migrate", *urls, "--dry-run", "--yes").out
    asked = redmeter("migrate", *urls)
    assert (asked.code, "give --yes" in asked.err) == (2, True)
    assert not client.hexists(META, "moved")
    assert redmeter("migrate", *urls, "--yes").code == 0


def test_ctrl_c_says_how_to_go_on(
    redmeter: Run, urls: tuple[str, str], client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source is in use again."""
    monkeypatch.setattr(command._Brake, "is_pulled", lambda _: True)
    done = redmeter("migrate", *urls)
    assert done.code == 130
    assert "SOURCE is in use again, and unchanged" in done.err
    assert not client.hexists(META, "frozen")


def test_other_trouble_says_how_to_go_on(
    redmeter: Run, urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it was, the same command is safe."""

    def fail(*_: Any, **__: Any) -> None:
        raise migrating.MigrationError("expired", "the source was not frozen all the time")

    monkeypatch.setattr(migrating, "migrate", fail)
    done = redmeter("migrate", *urls)
    assert (done.code, "the same command starts again" in done.err) == (3, True)


def test_what_it_waits_for_is_told(
    redmeter: Run, screen: Run, urls: tuple[str, str], client: Any
) -> None:
    """Every two seconds in lines, on a terminal on one line; the JSON is as ever."""
    client.hset(META, "frozen", f"killed {server_time(client) + 3.5}")
    done = redmeter("migrate", *urls, "--json")
    assert json.loads(done.out)["move"]
    lines = done.err.splitlines()
    assert len(lines) == 2
    told = "waiting for the freeze by an earlier run to end, at most "
    seconds = [int(line.removeprefix(told).removesuffix(" s")) for line in lines]
    assert 1 <= seconds[0] - seconds[1] <= 3
    client.hdel(META, "moved")
    client.hset(META, "frozen", f"killed {server_time(client) + 1.2}")
    shown = screen("migrate", *urls, "--replace", columns=160)
    assert shown.code == 0
    assert f"{told}1 s" in shown.out
    assert f"\n{told}" not in shown.out


def test_a_seal_that_no_replica_confirms_is_a_warning(
    redmeter: Run, urls: tuple[str, str], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what to do; a source without a replica is only told."""
    with replica_of(server) as replica:
        replica.pause()
        with monkeypatch.context() as patched:
            patched.setattr(states, "CONFIRM", 0.3)
            done = redmeter("migrate", *urls)
        assert done.code == 0
        assert "warning: no replica of redis://127.0.0.1:" in done.err
        assert "run the same command again" in done.err
        replica.resume()
        again = redmeter("migrate", *urls, "--json")
        assert again.code == 0
        assert [*json.loads(again.out)["seal"].values()] == ["replicated"]
    with server.client() as client:
        eventually(lambda: client.info("replication")["connected_slaves"] == 0)
    assert "no replica is connected to redis://127" in redmeter("migrate", *urls).out


def test_a_process_that_is_killed_while_writers_run(server: Server, home: Home) -> None:
    """The source thaws when the lease has expired; run again, each event is there once."""
    target = server.url.removesuffix("0") + "1"
    with server.client() as client, server.client(db=1) as other, Proxy(server.port) as proxy:
        slow = proxy.url.removesuffix("0") + "1"
        arguments = [sys.executable, "-m", "redmeter", "migrate", server.url, slow]
        proxy.delay(0.01)
        _fill_many(client)
        meter = Meter(server.url, next_url=target, flush_interval=0.05)
        meter.count("hits")
        assert meter.flush()
        process = subprocess.Popen(arguments, env=home.env, cwd=home.work)
        eventually(lambda: other.dbsize() > 100)
        process.send_signal(signal.SIGKILL)
        process.wait()
        proxy.heal()
        assert client.hget(META, "frozen") is not None
        meter.count("hits", 10)
        assert not meter.flush(0.2)
        client.hset(META, "frozen", f"killed {server_time(client) - 1}")
        eventually(lambda: meter.flush(2.0))
        assert client.hget("redmeter:total:", "hits") == b"11"
        done = subprocess.run(arguments, env=home.env, cwd=home.work, check=True)
        assert done.returncode == 0
        meter.count("hits", 100)
        eventually(lambda: meter.flush(2.0))
        assert other.hget("redmeter:total:", "hits") == b"111"
        health = meter.recorder_health()
        assert (health.recorded, health.stored, health.dropped) == (111, 111, 0)
        meter.close()


def _fill_many(client: Any) -> None:
    """Store 300 counters at all precisions."""
    now, pipe = server_time(client), client.pipeline(transaction=False)
    for number in range(300):
        for precision in DEFAULT_RETENTION:
            pipe.hset(f"redmeter:count:{precision}:c{number}", slice_start(now, precision), 1)
            pipe.zadd("redmeter:known:", {f"{precision}:c{number}": 0})
    pipe.execute()
