"""The embedded server: started once, joined by all, ended when nobody needs it."""

import math
import os
import signal
import stat
import sys
import threading
import time
from pathlib import Path

import pytest

from redmeter.errors import EmbeddedServerError
from redmeter.store import embedded
from store.embedded_home import STARTER, Home, gone, home_of_servers  # noqa: F401  a fixture
from support.waiting import eventually


def test_the_first_call_starts_a_server_that_keeps_what_it_is_told(home: Home) -> None:
    """It listens on its socket alone, appends every write to a file and evicts nothing."""
    client = home.client()
    config = client.config_get()
    assert isinstance(config, dict)
    assert {name: config[name] for name in ("port", "appendonly", "appendfsync", "save")} == {
        "port": "0",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
    }
    assert config["maxmemory-policy"] == "noeviction"
    assert config["dir"] == str(home.data)
    assert (home.data / "appendonlydir").is_dir()
    assert (home.data / "server.log").stat().st_size > 0


def test_only_its_owner_may_enter_the_data_and_the_socket(home: Home) -> None:
    """Directory, files and socket are closed to everybody else."""
    socket = embedded.ensure(home.data)
    assert stat.S_IMODE(home.data.stat().st_mode) == 0o700
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(socket.stat().st_mode) == 0o700
    for file in home.data.rglob("*"):
        assert not file.stat().st_mode & 0o077, file


def test_a_second_call_joins_within_milliseconds(home: Home) -> None:
    """The same socket, the same process, and no new one."""
    socket = embedded.ensure(home.data)
    before = home.processes()
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        assert embedded.ensure(home.data) == socket
        times.append(time.perf_counter() - begin)
    assert sorted(times)[10] < 0.02
    assert home.processes() == before
    assert len(before) == 2


def test_eight_processes_at_once_make_one_server(home: Home) -> None:
    """All are told the same socket, and one server became ready."""
    starters = [home.python(STARTER, home.data) for _ in range(8)]
    for starter in starters:
        assert starter.stdout is not None
        assert starter.stdout.readline() == "here\n"
    for starter in starters:
        assert starter.stdin is not None
        starter.stdin.write("go\n")
        starter.stdin.flush()
    sockets = {starter.stdout.readline() for starter in starters if starter.stdout}
    assert sockets == {f"{home.info().socket}\n"}
    assert home.servers() == {home.info().pid}
    assert (home.data / "server.log").read_text().count("Ready to accept") == 1


def test_eight_threads_at_once_make_one_server(home: Home) -> None:
    """Threads of one process are as safe as processes."""
    sockets: list[Path] = []
    threads = [
        threading.Thread(target=lambda: sockets.append(embedded.ensure(home.data)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sockets == [home.info().socket] * 8
    assert home.servers() == {home.info().pid}


def test_looking_starts_nothing_and_tells_what_runs(home: Home) -> None:
    """running() is None before and after, and the facts in between."""
    assert embedded.running(home.data) is None
    assert not home.data.exists()
    begin = time.time()
    client = home.client()
    info = home.info()
    assert info.socket == embedded.ensure(home.data)
    assert info.pid == client.info()["process_id"]
    assert info.version == f"valkey {client.info()['valkey_version']}"
    assert begin <= info.started <= time.time()
    assert set(home.processes()) == {info.pid, info.supervisor_pid}
    assert embedded.stop(home.data)
    assert embedded.running(home.data) is None


def test_stop_keeps_the_data_and_leaves_no_process_and_no_socket(home: Home) -> None:
    """What was written a moment before is there after the next start."""
    client = home.client()
    client.set("key", "value")
    info = home.info()
    assert embedded.stop(home.data) is True
    home.empty(timeout=1.0)
    assert not info.socket.exists()
    assert "Calling fsync() on the AOF file" in (home.data / "server.log").read_text()
    assert embedded.stop(home.data) is False
    assert home.client().get("key") == "value"


def test_stop_of_nothing_is_false_and_makes_nothing(home: Home) -> None:
    """No directory appears."""
    assert embedded.stop(home.data) is False
    assert not home.data.exists()


@pytest.mark.slow
def test_stop_kills_a_server_that_hangs(home: Home) -> None:
    """After a grace period; what it had acknowledged is kept."""
    home.client().set("key", "value")
    os.kill(home.info().pid, signal.SIGSTOP)
    assert embedded.stop(home.data) is True
    home.empty(timeout=1.0)
    assert home.client().get("key") == "value"


def test_stop_says_so_when_it_is_out_of_time(home: Home) -> None:
    """The error names the supervisor."""
    embedded.ensure(home.data)
    owner = home.info().supervisor_pid
    os.kill(owner, signal.SIGSTOP)
    with pytest.raises(EmbeddedServerError, match=f"pid {owner}.*within 0 s"):
        embedded.stop(home.data, timeout=0.05)
    os.kill(owner, signal.SIGCONT)
    home.empty()


def test_an_idle_server_ends_by_itself(home: Home) -> None:
    """Server and supervisor go; the next call starts them again."""
    embedded.ensure(home.data, idle_timeout=0.3)
    home.empty(timeout=3.0)
    assert "the end: no client" in (home.data / "server.log").read_text()
    embedded.ensure(home.data)


@pytest.mark.slow
def test_a_connected_client_is_not_idle(home: Home) -> None:
    """However long it is silent."""
    client = home.client(embedded.ensure(home.data, idle_timeout=0.8))
    client.ping()
    log = home.data / "server.log"
    with log.open() as lines:
        begin = time.monotonic()
        eventually(lambda: time.monotonic() > begin + 2.0)
        assert "the end" not in lines.read()
    assert len(home.processes()) == 2
    client.close()
    home.empty(timeout=3.0)


@pytest.mark.slow
def test_clients_that_come_and_go_keep_the_server(home: Home) -> None:
    """Nobody has to stay connected."""
    embedded.ensure(home.data, idle_timeout=1.5)
    pid = home.info().pid
    begin = time.monotonic()
    while time.monotonic() < begin + 4.0:
        eventually(lambda: home.client(home.info().socket).ping())
        home.close_clients()
    assert home.info().pid == pid
    home.empty(timeout=5.0)


@pytest.mark.parametrize("seconds", [0, -1, math.nan])
def test_an_idle_time_must_be_positive(home: Home, seconds: float) -> None:
    """Nothing is started."""
    with pytest.raises(EmbeddedServerError, match="seconds above 0"):
        embedded.ensure(home.data, idle_timeout=seconds)
    assert not home.data.exists()


def test_the_supervisor_costs_little(home: Home) -> None:
    """A few megabytes, one thread, and none of our modules but its own."""
    embedded.ensure(home.data)
    process = Path("/proc") / str(home.info().supervisor_pid)
    status = dict(line.split(":\t") for line in (process / "status").read_text().splitlines())
    assert int(status["VmRSS"].split()[0]) < 16_000  # kB; about 9,500, half of it shared
    assert status["Threads"] == "1"
    maps = (process / "maps").read_text()
    assert "hiredis" not in maps
    assert "site-packages" not in maps
    cpu = (process / "stat").read_text().rpartition(")")[2].split()[11:13]
    assert sum(map(int, cpu)) <= 20  # hundredths of a second, its start included


def test_the_log_is_bounded(home: Home) -> None:
    """A log that has grown is put aside, over the one put aside before."""
    client = home.client(embedded.ensure(home.data, idle_timeout=2.0))
    client.ping()  # and stays
    log, older = home.data / "server.log", home.data / "server.log.1"
    older.write_text("oldest")
    with log.open("a") as file:
        file.write("x" * 79 + "\n" + "y" * 1_000_000)
    eventually(lambda: older.stat().st_size > 1_000_000)
    client.bgrewriteaof()
    eventually(lambda: log.exists() and "rewriting" in log.read_text())
    assert log.stat().st_size < 100_000


def test_the_starter_may_end_or_be_killed(home: Home) -> None:
    """The server survives either, as nobody's child."""
    home.run("embedded.ensure(sys.argv[1])", home.data)
    pid = home.info().pid
    other = home.root / "other"
    starter = home.python(STARTER, other)
    assert starter.stdin is not None
    assert starter.stdout is not None
    starter.stdin.write("go\n")
    starter.stdin.flush()
    assert starter.stdout.readline() == "here\n"
    assert starter.stdout.readline().endswith(".sock\n")
    starter.kill()
    starter.wait()
    assert embedded.running(other) is not None
    assert home.info().pid == pid
    assert not gone(pid)


def test_a_fork_of_the_starter_owns_nothing(home: Home) -> None:
    """Neither the end of a forked child nor that of its parent ends the server."""
    told = home.run(
        """
import os
embedded.ensure(sys.argv[1])
before = embedded.running(sys.argv[1])
if os.fork() == 0:
    embedded.ensure(sys.argv[1])
    sys.exit(0)
os.wait()
assert embedded.running(sys.argv[1]) == before
print(before.pid)
""",
        home.data,
    )
    assert home.info().pid == int(told)
    assert home.client().ping()


def test_ctrl_c_at_the_starters_terminal_does_not_reach_the_server(home: Home) -> None:
    """The starter's whole process group is interrupted; server and supervisor go on."""
    starter = home.python(STARTER, home.data)
    assert starter.stdin is not None
    assert starter.stdout is not None
    starter.stdin.write("go\n")
    starter.stdin.flush()
    starter.stdout.readline()
    starter.stdout.readline()
    os.killpg(starter.pid, signal.SIGINT)
    assert starter.wait(20) != 0
    info = home.info()
    assert os.getsid(info.pid) == os.getsid(info.supervisor_pid) != starter.pid
    assert home.client(info.socket).ping()


def test_ctrl_c_while_it_starts_leaves_no_child(home: Home) -> None:
    """KeyboardInterrupt comes through; the start goes on without the starter."""
    home.run(
        """
import os, pathlib, signal, threading
from redmeter.store.embedded.files import is_locked

def interrupt():
    while not is_locked(pathlib.Path(sys.argv[1]) / "supervisor.lock"):
        pass
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    embedded.ensure(sys.argv[1])
    signal.pause()
except KeyboardInterrupt:
    pass
try:
    os.waitpid(-1, 0)
except ChildProcessError:
    sys.exit(0)
sys.exit("a child was left")
""",
        home.data,
    )
    embedded.ensure(home.data)
    assert home.servers() == {home.info().pid}


def test_a_start_and_a_stop_leave_no_zombie(home: Home) -> None:
    """Not one child of this process is added, dead or alive."""
    children = Path("/proc/self/task") / str(os.getpid()) / "children"
    before = children.read_text()
    embedded.ensure(home.data)
    assert children.read_text() == before
    embedded.stop(home.data)
    assert children.read_text() == before


def test_the_server_does_not_see_the_starters_secrets(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its environment, which it keeps for as long as it lives, holds what it needs."""
    monkeypatch.setenv("DATABASE_PASSWORD", "hunter2")
    embedded.ensure(home.data)
    for pid in home.processes():
        assert "hunter2" not in (Path("/proc") / str(pid) / "environ").read_text()


@pytest.mark.parametrize("program", ["uwsgi", ""])
def test_a_program_that_embeds_python_starts_it_too(
    home: Home, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """There sys.executable is no interpreter."""
    monkeypatch.setattr(sys, "executable", program)
    assert home.client().ping()
