"""The ground the tests stand on: servers start, restart, pause and die as told."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from support import fleet as fleets
from support import servers
from support.binaries import BINARIES, Build, Unavailable, binary
from support.fleet import Fleet
from support.servers import Server, StartFailed
from support.waiting import eventually

pytestmark = pytest.mark.nightly


ROOT = Path(__file__).parents[1]


def refuses(port: int) -> bool:
    """Whether nobody listens on the port."""
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) != 0


def test_a_server_of_each_kind_answers_over_tcp_and_over_its_socket(any_server: Server) -> None:
    """Both addresses lead to the same server, which is of the version its name says."""
    client: Any = any_server.client()
    client.set("key", "value")
    with redis.Redis.from_url(any_server.unix_url) as other:
        assert other.get("key") == b"value"
    assert any_server.name.partition("-")[2] + "." in any_server.version
    about = client.info("server")
    assert about["process_id"] == any_server.pid
    assert about.get("valkey_version", about["redis_version"]) == any_server.version


def test_each_engine_is_tried_at_its_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default every day, and for some tests the oldest; at night all ends; by hand all."""
    monkeypatch.delenv("REDMETER_TEST_SERVERS", raising=False)
    ends = []
    for engine in ("redis", "valkey"):
        anywhere = [name for name, build in BINARIES.items() if not build.debs and engine in name]
        ends += [anywhere[0], anywhere[-1]]
    assert ends == fleets.ENDS
    assert fleets.servers_of_a_test(False) == [ends[-1]]
    assert set(fleets.servers_of_a_test(True)) == {ends[0], ends[-1]}
    nightly = re.search(r"-k '(\S+) or (\S+) or (\S+)'", (ROOT / "Makefile").read_text())
    assert nightly
    assert {fleets.DEFAULT, *nightly.groups()} == set(ends)
    monkeypatch.setenv("REDMETER_TEST_SERVERS", "all")
    assert fleets.servers_of_a_test(False) == list(BINARIES)
    monkeypatch.setenv("REDMETER_TEST_SERVERS", "redis-7.0, redis-6.2")
    assert fleets.servers_of_a_test(False) == ["redis-7.0", "redis-6.2"]
    monkeypatch.setenv("REDMETER_TEST_SERVERS", "redis-1.0")
    with pytest.raises(pytest.UsageError, match=r"no \['redis-1.0'\]"):
        fleets.servers_of_a_test(False)


def test_a_server_without_a_port_is_reached_over_its_socket() -> None:
    """It has no address over TCP, and its path is short enough for every system."""
    with Server(port=False) as server:
        assert server.client().ping()
        assert len(str(server.socket)) < 100
        with pytest.raises(RuntimeError, match="no port"):
            _ = server.url


def test_a_restarted_server_has_its_folder_and_port_again(tmp_path: Path) -> None:
    """With the append-only file on, data outlive a stop and a kill."""
    config = {"appendonly": "yes", "appendfsync": "always"}
    with Server(config=config, dir=tmp_path / "data") as server:
        port, pid, client = server.port, server.pid, server.client()
        client.set("key", "value")
        server.restart()
        assert (server.port, server.pid != pid) == (port, True)
        assert client.get("key") == b"value"
        server.kill()
        server.start()
        assert client.get("key") == b"value"
    assert list((tmp_path / "data").iterdir())


def test_a_server_keeps_nothing_unless_told_to() -> None:
    """Without a word about persistence a restart comes back empty."""
    with Server() as server:
        server.client().set("key", "value")
        server.restart()
        assert server.client().dbsize() == 0


def test_settings_come_as_a_mapping_or_as_arguments() -> None:
    """Numbers, settings of several words, and raw arguments reach the server."""
    with Server(config={"maxmemory": 123456789, "save": ["60", "7"]}) as server:
        found: Any = server.client().config_get("maxmemory", "save")
        assert found == {"maxmemory": "123456789", "save": "60 7"}
    with Server(config=["--maxclients", "321"]) as server:
        assert server.client().config_get("maxclients") == {"maxclients": "321"}


def test_a_killed_server_is_gone() -> None:
    """Its port refuses, its process is collected; to stop it again is harmless."""
    with Server() as server:
        server.kill()
        assert not server.running
        assert refuses(server.port)
        server.stop()


def test_a_paused_server_keeps_connections_but_answers_only_when_resumed() -> None:
    """A reply that fails to come in time is there after the server goes on."""
    with (
        Server() as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=0.1) as sock,
    ):
        server.pause()
        server.pause()
        sock.sendall(b"PING\r\n")
        with pytest.raises(TimeoutError):
            sock.recv(100)
        server.resume()
        sock.settimeout(5.0)
        assert sock.recv(100) == b"+PONG\r\n"


def test_a_paused_server_can_be_stopped() -> None:
    """It is woken to end in good order."""
    with Server() as server:
        server.pause()
        server.stop()
        assert "bye bye" in server.log


def test_a_closed_server_leaves_no_folder() -> None:
    """Socket, log and data are gone with it."""
    with Server() as server:
        home = server.socket.parent
        assert server.socket.exists()
    assert not home.exists()


def test_a_server_that_nobody_closed_ends_with_its_object() -> None:
    """Process and folder go when the last reference does."""
    server = Server().start()
    port, home = server.port, server.socket.parent
    del server
    assert refuses(port)
    assert not home.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help exists on Linux only")
def test_a_server_dies_with_a_test_process_that_is_killed() -> None:
    """SIGKILL leaves the test process no time to clear up; the kernel does it."""
    code = """
import os, signal
from support.servers import Server
server = Server().start()
print(server.port, server.socket.parent, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    port, home = done.stdout.split()
    try:
        eventually(lambda: refuses(int(port)), what="the orphan is gone")
    finally:
        shutil.rmtree(home)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_cannot_end_its_parents_server() -> None:
    """Closing the child's copy touches neither the process nor the folder."""
    with Server() as server:
        child = os.fork()
        if child == 0:
            server.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert server.running
        assert server.socket.exists()
        assert server.client().ping()


def test_a_server_that_cannot_start_says_why() -> None:
    """The error ends with what the server said last."""
    server = Server(config={"no-such-setting": "1"})
    with pytest.raises(StartFailed, match="no-such-setting"):
        server.start()
    server.close()


def test_a_port_that_was_taken_meanwhile_is_given_up_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between finding a free port and using it, someone else may be faster."""
    free = servers.free_port()
    with socket.create_server(("127.0.0.1", servers.free_port())) as taken:
        offers = [free, taken.getsockname()[1]]
        monkeypatch.setattr(servers, "free_port", offers.pop)
        with Server() as server:
            assert server.port == free


def test_a_server_that_reads_its_data_can_be_used_before_it_is_done(tmp_path: Path) -> None:
    """Told not to wait, start returns while the server still answers LOADING."""
    with Server(dir=tmp_path) as server:
        with server.client().pipeline() as pipe:
            for n in range(2000):
                pipe.set(f"key{n}", f"value{n}")
            pipe.execute()
        server.client().save()
        server.stop()
        # 2 ms a key, with a look at its connections every 1,024 bytes.
        server.config += ["--key-load-delay", "2000"]
        server.config += ["--loading-process-events-interval-bytes", "1024"]
        server.start(loaded=False)
        with socket.create_connection(("127.0.0.1", server.port), timeout=5.0) as sock:
            sock.sendall(b"GET key1\r\n")
            assert sock.recv(100).startswith(b"-LOADING")
        server.kill()


def test_a_server_that_cannot_be_had_is_named_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A wrong version is as good as none, and an unknown name is a mistake."""
    monkeypatch.setitem(BINARIES, "valkey-0.1", Build("0.1.", "valkey-server"))
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"valkey-0\.1 .* is version 9\.") as caught:
            binary("valkey-0.1")
    assert caught.value.name == "valkey-0.1"
    with pytest.raises(ValueError, match=re.escape("'redis-5'")):
        binary("redis-5")


# --- The fixtures' servers ------------------------------------------------------------------


def _password(server: Server) -> None:
    server.client().config_set("requirepass", "secret")


def _users(server: Server) -> None:
    client: Any = server.client()
    client.execute_command("ACL", "SETUSER", "guest", "on", "nopass", "+ping")
    client.execute_command("ACL", "SETUSER", "default", "-incr")


def _settings(server: Server) -> None:
    server.client().config_set("maxmemory", 123456789)
    server.client().config_set("maxmemory-policy", "allkeys-lru")


def _replica(server: Server) -> None:
    client: Any = server.client()
    client.replicaof("127.0.0.1", "1")


def _client_pause(server: Server) -> None:
    client: Any = server.client()
    client.client_pause(600_000, all=True)


def _data(server: Server) -> None:
    server.client(db=3).set("key", "value")
    server.client().script_load("return 1")


@pytest.mark.parametrize("name", ["valkey-9.1", "redis-6.2"])
@pytest.mark.parametrize(
    "harm",
    [
        *(_password, _users, _settings, _replica, _client_pause, _data),
        *(Server.pause, Server.kill, Server.stop),
    ],
)
def test_a_fixtures_server_is_as_new_whatever_was_done_to_it(
    fleet: Fleet, name: str, harm: Callable[[Server], None]
) -> None:
    """Passwords, users, settings, data, replication, pauses and its end are all undone."""
    server = fleet.get(name)
    with server.client() as client:
        before = client.config_get()
    harm(server)
    assert fleet.get(name) is server
    after: Any
    with server.client() as after:
        assert after.config_get() == before
        assert after.acl_users() == ["default"]
        assert after.info("keyspace") == {}
        assert after.script_exists("e0e1f9fabfc9d4800c877a703b823ac0578ff8db") == [False]
        assert after.incr("n") == 1
    server.close_clients()
