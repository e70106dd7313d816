"""Whatever is killed or removed, the next call finds or makes one server with all its data."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from redmeter.errors import EmbeddedServerError
from redmeter.store import embedded
from redmeter.store.embedded.files import is_locked
from redmeter.store.embedded.supervisor import opens
from store.embedded_home import STARTER, Home, home_of_servers, kill  # noqa: F401  a fixture
from support.waiting import eventually


def test_a_killed_server_is_started_again_with_its_data(home: Home) -> None:
    """Its supervisor ends with it and says why; what was acknowledged is there."""
    home.client().set("key", "value")
    kill(home.info().pid)
    assert home.client().get("key") == "value"
    assert "the end: the server ended by signal 9" in (home.data / "server.log").read_text()
    assert len(home.processes()) == 2


def test_a_killed_server_takes_its_supervisor_along(home: Home) -> None:
    """Nothing runs afterwards, and the socket is gone."""
    socket = embedded.ensure(home.data)
    kill(home.info().pid)
    home.empty(timeout=2.0)
    assert not socket.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end")
def test_a_killed_supervisor_takes_its_server_along(home: Home) -> None:
    """The kernel asks the server to end, so it syncs its file."""
    home.client().set("key", "value")
    kill(home.info().supervisor_pid)
    home.empty(timeout=2.0)
    assert "User requested shutdown" in (home.data / "server.log").read_text()
    assert home.client().get("key") == "value"


def test_the_data_are_locked_for_as_long_as_the_server_lives(home: Home) -> None:
    """Even when its supervisor is dead and it does not react: nobody else starts there."""
    socket = embedded.ensure(home.data)
    info = home.info()
    os.kill(info.pid, signal.SIGSTOP)
    kill(info.supervisor_pid)
    assert is_locked(home.data / "server.lock")
    socket.unlink()
    assert is_locked(home.data / "server.lock")
    os.kill(info.pid, signal.SIGCONT)
    home.empty(timeout=2.0)
    eventually(lambda: not is_locked(home.data / "server.lock"))  # with its last thread


def test_a_call_right_after_the_supervisors_death_gets_a_living_server(home: Home) -> None:
    """It does not join the server that is about to end."""
    home.client().set("key", "value")
    before = home.info()
    kill(before.supervisor_pid)
    assert home.client().get("key") == "value"
    assert home.info().pid != before.pid
    eventually(lambda: home.servers() == {home.info().pid})


def test_both_killed_at_once_are_started_again(home: Home) -> None:
    """Lock files, state and socket of the dead are in nobody's way."""
    home.client().set("key", "value")
    before = home.info()
    kill(before.supervisor_pid, before.pid)
    home.empty(timeout=2.0)
    assert embedded.running(home.data) is None
    assert (home.data / "server.json").exists()
    assert before.socket.exists()
    assert home.client().get("key") == "value"
    assert home.info().socket == before.socket


def test_an_orphan_is_ended_and_replaced(home: Home) -> None:
    """Where no kernel ends it, a server that lost its supervisor ends when the next one comes."""
    home.client().set("key", "value")
    before = home.info()
    embedded.stop(home.data)
    orphan = _orphan(home, before)
    try:
        assert embedded.running(home.data) is None
        assert home.client().get("key") == "value"
        assert orphan.wait(timeout=5.0) == 0
        assert home.servers() == {home.info().pid}
    finally:
        orphan.kill()
        orphan.wait()


@pytest.mark.parametrize("late", [0.0, 0.5])
def test_stop_ends_an_orphan(home: Home, late: float) -> None:
    """There is no supervisor to ask, so the server is asked itself, once it listens."""
    embedded.ensure(home.data)
    before = home.info()
    embedded.stop(home.data)
    orphan = _orphan(home, before, late=late)
    try:
        assert embedded.stop(home.data) is True
        assert orphan.wait(timeout=5.0) == 0
        assert not before.socket.exists()
    finally:
        orphan.kill()
        orphan.wait()


def _orphan(home: Home, before: embedded.Info, *, late: float = 0.0) -> "subprocess.Popen[bytes]":
    """Start a server as a killed supervisor would leave it on a system without death signals.

    Args:
        late: seconds after which it starts to listen; not waited for.
    """
    binary, _ = embedded.find_binary()
    with (home.data / "server.lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        orphan = subprocess.Popen(
            [
                *("sh", "-c", f'sleep {late}; exec "$0" "$@"', binary),
                *("--port", "0", "--unixsocket", before.socket, "--appendonly", "yes"),
            ],
            cwd=home.data,
            pass_fds=[lock.fileno()],
            stdout=subprocess.DEVNULL,
        )
    state = {"pid": orphan.pid, "supervisor": before.supervisor_pid, "socket": str(before.socket)}
    (home.data / "server.json").write_text(json.dumps(state))
    if not late:
        eventually(before.socket.exists)
    return orphan


def test_a_starter_killed_on_the_way_leaves_one_server_or_none(home: Home) -> None:
    """At six moments of a start; whoever comes next gets the one server."""
    for number in range(6):
        data = home.root / f"data{number}"
        starter = home.python(STARTER, data)
        assert starter.stdin is not None
        assert starter.stdout is not None
        starter.stdout.readline()
        starter.stdin.write("go\n")
        starter.stdin.flush()
        begin = time.monotonic()
        eventually(partial(_passed, begin + 0.015 * number))
        starter.kill()
        starter.wait()
        embedded.ensure(data)
        info = embedded.running(data)
        assert info is not None
        serving = [p for p in home.servers() if (Path("/proc") / str(p) / "cwd").readlink() == data]
        assert serving == [info.pid]
        embedded.stop(data)


def _passed(moment: float) -> bool:
    return time.monotonic() >= moment


def test_stale_files_are_in_nobodys_way(home: Home) -> None:
    """A socket file nobody listens on, a state of long ago, locks with rubbish in them."""
    socket = embedded.ensure(home.data)
    embedded.stop(home.data)
    socket.write_text("no socket")
    (home.data / "server.json").write_text("{")
    (home.data / "supervisor.lock").write_text("1\n")
    (home.data / "server.lock").write_text("rubbish")
    assert embedded.running(home.data) is None
    assert embedded.stop(home.data) is False
    assert embedded.ensure(home.data) == socket
    assert home.client().ping()


def test_a_server_whose_socket_is_removed_is_replaced(home: Home) -> None:
    """A cleaner of temporary files took it; nobody could reach that server any more."""
    home.client(embedded.ensure(home.data, idle_timeout=1.0)).set("key", "value")
    before = home.info()
    before.socket.unlink()
    assert home.client().get("key") == "value"
    assert home.info().pid != before.pid
    eventually(lambda: home.servers() == {home.info().pid})


def test_a_server_whose_directory_is_deleted_ends(home: Home) -> None:
    """Even with a client connected."""
    client = home.client(embedded.ensure(home.data, idle_timeout=2.0))
    client.ping()
    socket = home.info().socket
    shutil.rmtree(home.data)
    home.empty(timeout=1.8)
    assert not socket.exists()


def test_a_directory_made_anew_gets_a_server_of_its_own(home: Home) -> None:
    """While the server of the deleted one still ends."""
    client = home.client(embedded.ensure(home.data, idle_timeout=2.0))
    client.set("key", "old")
    old = home.info()
    shutil.rmtree(home.data)
    new = home.client()
    assert new.get("key") is None
    assert home.info().socket != old.socket
    eventually(lambda: home.servers() == {home.info().pid})
    assert new.ping()


def test_a_directory_that_moves_takes_its_data_along(home: Home) -> None:
    """The server at the old place ends, the one at the new place has it all."""
    home.client(embedded.ensure(home.data, idle_timeout=1.0)).set("key", "value")
    home.close_clients()
    moved = home.root / "moved"
    home.data.rename(moved)
    home.empty()
    assert home.client(embedded.ensure(moved)).get("key") == "value"


def test_a_copied_directory_is_another_server(home: Home) -> None:
    """The copy's files name the original's socket, but its locks are free."""
    home.client().set("key", "value")
    copy = home.root / "copy"
    shutil.copytree(home.data, copy)
    assert embedded.running(copy) is None
    assert embedded.ensure(copy) != home.info().socket
    assert len(home.servers()) == 2


def test_stop_while_it_starts_ends_it(home: Home) -> None:
    """The starter is told, and nothing is left."""
    starter = home.python(STARTER, home.data)
    assert starter.stdin is not None
    assert starter.stdout is not None
    starter.stdout.readline()
    starter.stdin.write("go\n")
    starter.stdin.flush()
    eventually(lambda: embedded.stop(home.data))
    home.empty()


def test_data_of_a_newer_server_are_not_opened(home: Home) -> None:
    """The error names both versions, and nothing is started or changed."""
    embedded.ensure(home.data)
    embedded.stop(home.data)
    (home.data / "server.version").write_text("valkey 99.1.0\n")
    with pytest.raises(EmbeddedServerError, match=r"valkey 99\.1\.0 wrote .*pip install -U"):
        embedded.ensure(home.data)
    assert (home.data / "server.version").read_text() == "valkey 99.1.0\n"
    home.empty(timeout=1.0)


def test_data_of_an_older_server_are_opened_and_noted(home: Home) -> None:
    """From then on the older server may not open them."""
    embedded.ensure(home.data)
    embedded.stop(home.data)
    (home.data / "server.version").write_text("redis 7.0.15\n")
    assert home.client().ping()
    assert (home.data / "server.version").read_text() == f"{home.info().version}\n"


def test_a_running_server_is_joined_whatever_its_version(home: Home) -> None:
    """Only stopped data have an owner."""
    socket = embedded.ensure(home.data)
    (home.data / "server.version").write_text("valkey 99.1.0\n")
    assert embedded.ensure(home.data) == socket


@pytest.mark.parametrize(
    ("ours", "theirs", "allowed"),
    [
        ("valkey 9.1.2", "valkey 9.1.2", True),
        ("valkey 9.1.10", "valkey 9.1.9", True),
        ("valkey 9.1.2", "valkey 9.1.3", False),
        ("valkey 9.1.2", "valkey 10.0.0", False),
        ("redis 7.0.15", "redis 6.2.14", True),
        ("valkey 8.0.1", "redis 7.2.4", True),
        ("valkey 9.1.2", "redis 7.4.1", False),
        ("redis 8.2.3", "valkey 7.2.0", False),
        ("valkey 9.1.2", "rubbish", False),
    ],
)
def test_data_move_forward_only(ours: str, theirs: str, allowed: bool) -> None:
    """The same program, the same or a newer version; Valkey goes on from Redis 7.2."""
    assert opens(ours, theirs) is allowed


def test_many_deaths_in_a_row_lose_nothing(home: Home) -> None:
    """Server, supervisor, both, in turn: each write that was acknowledged is there."""
    for number in range(9):
        client = home.client()
        assert client.incr("key") == number + 1
        info = home.info()
        kill(*[(info.pid,), (info.supervisor_pid,), (info.pid, info.supervisor_pid)][number % 3])
    assert home.client().get("key") == "9"
    eventually(lambda: home.servers() == {home.info().pid})
    assert os.path.lexists(home.info().socket)
