"""The ground the tests stand on: the proxy breaks exactly what it is told to break."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from support.proxy import Proxy, command_name, split
from support.servers import Server
from support.waiting import eventually

pytestmark = pytest.mark.nightly

INCR = "return redis.call('INCR', KEYS[1])"
NEVER = Retry(NoBackoff(), 0)


@pytest.fixture
def through(proxy: Proxy) -> Iterator[Any]:
    """A client through the proxy that never retries."""
    with redis.Redis.from_url(proxy.url, retry=NEVER) as client:
        yield client


@pytest.fixture
def sha(conn: Any) -> str:
    """The hash of a script that increments a key."""
    return str(conn.script_load(INCR))


def test_a_proxy_without_faults_changes_nothing(proxy: Proxy, through: Any) -> None:
    """Commands and replies of every size pass, and are counted by name."""
    large = bytes(range(256)) * 4096
    assert through.set("key", large)
    assert through.get("key") == large
    with through.pipeline(transaction=True) as pipe:
        for _ in range(100):
            pipe.lpush("list", "x")
        assert pipe.execute() == list(range(1, 101))
    assert (proxy.commands["SET"], proxy.commands["LPUSH"], proxy.commands["EXEC"]) == (1, 100, 1)
    assert (proxy.dropped, proxy.connections) == (0, 1)


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_dropped_reply_is_that_of_a_command_the_server_applied(
    proxy: Proxy, conn: Any, sha: str, protocol: int
) -> None:
    """The script has run, the client sees a closed connection, the next call passes."""
    proxy.drop_replies(1)
    with redis.Redis.from_url(proxy.url, retry=NEVER, protocol=protocol) as client:
        with pytest.raises(redis.ConnectionError):
            client.evalsha(sha, 1, "n")
        assert conn.get("n") == b"1"
        assert client.evalsha(sha, 1, "n") == 2
    assert proxy.dropped == 1
    assert proxy.commands["EVALSHA"] == 2


def test_only_the_nth_reply_of_the_chosen_command_is_dropped(
    proxy: Proxy, through: Any, conn: Any, sha: str
) -> None:
    """Other commands pass and do not count, nor do the first two calls that are skipped."""
    proxy.drop_replies(1, skip=2)
    seen = []
    for _ in range(4):
        through.get("other")
        try:
            seen.append(through.evalsha(sha, 1, "n"))
        except redis.ConnectionError:
            seen.append("lost")
    assert seen == [1, 2, "lost", 4]
    assert conn.get("n") == b"4"


def test_in_a_pipeline_the_replies_before_the_dropped_one_are_delivered(
    proxy: Proxy, sha: str
) -> None:
    """Three calls in one packet, the second reply lost: the first arrives, then the end."""
    proxy.drop_replies(1, skip=1)
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=5.0) as sock:
        sock.sendall(f"EVALSHA {sha} 1 n\r\n".encode() * 3)
        received = b""
        while chunk := sock.recv(100):
            received += chunk
    assert received == b":1\r\n"


def test_an_error_is_not_taken_for_a_reply_worth_dropping(proxy: Proxy, through: Any) -> None:
    """NOSCRIPT says that nothing was applied: it passes, the call after it is dropped."""
    proxy.drop_replies(1)
    with pytest.raises(redis.exceptions.NoScriptError):
        through.evalsha("0" * 40, 1, "n")
    assert proxy.dropped == 0
    with pytest.raises(redis.ConnectionError):
        through.eval(INCR, 1, "n")
    assert proxy.dropped == 1


def test_any_command_can_be_chosen_but_a_connection_comes_about(
    proxy: Proxy, through: Any, conn: Any
) -> None:
    """With every command's reply dropped, HELLO and CLIENT SETINFO still pass."""
    proxy.drop_replies(1, commands=None)
    with pytest.raises(redis.ConnectionError):
        through.incr("n")
    assert conn.get("n") == b"1"
    assert proxy.commands["CLIENT"] > 0
    assert through.incr("n") == 2


def test_a_pattern_loses_two_replies_in_three(
    proxy: Proxy, through: Any, conn: Any, sha: str
) -> None:
    """Of nine calls every third is heard of, all nine are applied."""
    proxy.drop_pattern("xx.")
    heard = []
    for _ in range(9):
        with contextlib.suppress(redis.ConnectionError):
            heard.append(through.evalsha(sha, 1, "n"))
    assert heard == [3, 6, 9]
    assert conn.get("n") == b"9"
    assert proxy.dropped == 6


def test_a_black_hole_takes_connections_and_answers_nothing_until_healed(
    proxy: Proxy, through: Any, conn: Any
) -> None:
    """A new connection is taken and times out, the server sees none of it; then all is well."""
    proxy.black_hole()
    with (
        redis.Redis.from_url(proxy.url, retry=NEVER, socket_timeout=0.1) as impatient,
        pytest.raises(redis.TimeoutError),
    ):
        impatient.incr("n")
    assert proxy.connections == 1
    assert not proxy.commands
    proxy.heal()
    assert through.incr("n") == 1


def test_healing_resets_a_connection_that_lost_bytes(proxy: Proxy) -> None:
    """A client still waiting for a swallowed reply is told so."""
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=5.0) as sock:
        sock.sendall(b"PING\r\n")
        assert sock.recv(100) == b"+PONG\r\n"
        proxy.black_hole()
        sock.sendall(b"PING\r\n")
        eventually(lambda: any(link.lossy for link in proxy._links))
        proxy.heal()
        with pytest.raises(ConnectionResetError):
            sock.recv(100)
    assert proxy.commands["PING"] == 1


def test_a_refused_connection_is_accepted_again_after_healing(proxy: Proxy, through: Any) -> None:
    """Open connections end and new ones are refused, on the same port as afterwards."""
    port = proxy.port
    assert through.ping()
    proxy.refuse()
    assert proxy.open == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5.0)
    with pytest.raises(redis.ConnectionError):
        through.ping()
    proxy.heal()
    assert through.ping()
    assert proxy.port == port


def test_a_reset_in_the_middle_of_a_request_leaves_it_unapplied(
    proxy: Proxy, through: Any, conn: Any, sha: str
) -> None:
    """Twenty bytes of the command arrive, then both ends are reset; the next call passes."""
    proxy.reset_after(20, of="requests")
    with pytest.raises(redis.ConnectionError):
        through.evalsha(sha, 1, "n")
    assert conn.get("n") is None
    assert proxy.commands["EVALSHA"] == 0
    assert through.evalsha(sha, 1, "n") == 1


def test_a_reset_in_the_middle_of_a_reply_comes_after_it_was_applied(
    proxy: Proxy, conn: Any, sha: str
) -> None:
    """Two bytes of the reply arrive and then a reset, not an orderly end."""
    proxy.reset_after(2)
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=5.0) as sock:
        sock.sendall(f"EVALSHA {sha} 1 n\r\n".encode())
        assert sock.recv(2) == b":1"
        with pytest.raises(ConnectionResetError):
            sock.recv(2)
    assert conn.get("n") == b"1"


def test_a_delayed_reply_comes_late_though_the_command_was_applied_at_once(
    proxy: Proxy, conn: Any, sha: str
) -> None:
    """Nothing is heard until healing ends the delay."""
    proxy.delay(60.0)
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=0.1) as sock:
        sock.sendall(f"EVALSHA {sha} 1 n\r\n".encode())
        eventually(lambda: conn.get("n") == b"1")
        with pytest.raises(TimeoutError):
            sock.recv(100)
        proxy.heal()
        sock.settimeout(5.0)
        assert sock.recv(100) == b":1\r\n"


def test_a_delayed_request_reaches_the_server_after_its_client_has_gone(
    proxy: Proxy, conn: Any, sha: str
) -> None:
    """A request that was on its way is applied although nobody waits for it any more."""
    proxy.delay(60.0, of="requests")
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=5.0) as sock:
        sock.sendall(f"EVALSHA {sha} 1 n\r\n".encode())
    assert conn.get("n") is None
    proxy.heal()
    eventually(lambda: conn.get("n") == b"1")


def test_every_connection_can_be_reset_at_once(proxy: Proxy, through: Any) -> None:
    """The idle connection of a client is gone, its next call makes another."""
    assert through.ping()
    proxy.reset()
    assert proxy.open == 0
    assert through.ping()
    assert proxy.connections == 2


def test_a_connection_that_has_only_just_come_is_closed_too(proxy: Proxy) -> None:
    """Refusing while connections come in leaves no socket open on either side."""
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=5.0) as sock:
            proxy.refuse()
            with pytest.raises(ConnectionResetError):
                sock.recv(1)
        proxy.heal()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_does_not_hold_connections_open(proxy: Proxy) -> None:
    """What the proxy closes is closed, though a child lives on that had copies of it all."""
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=5.0) as sock:
        sock.sendall(b"PING\r\n")
        assert sock.recv(100) == b"+PONG\r\n"
        waits, ends = os.pipe()
        if (child := os.fork()) == 0:
            os.close(ends)
            os.read(waits, 1)
            os._exit(0)
        proxy.refuse()
        with pytest.raises(ConnectionResetError):
            sock.recv(100)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", proxy.port), timeout=5.0)
        os.close(ends)
        os.close(waits)
        assert os.waitpid(child, 0)[1] == 0


def test_a_server_that_is_gone_resets_the_client(proxy: Proxy, server: Server) -> None:
    """The proxy listens, the server does not: the connection ends at once."""
    server.kill()
    with (
        pytest.raises(ConnectionResetError),  # on connecting already, where the proxy is quick
        socket.create_connection(("127.0.0.1", proxy.port), timeout=5.0) as sock,
    ):
        sock.recv(1)


def test_no_thread_is_left_of_a_proxy(server: Server) -> None:
    """Also with a connection open and bytes held back."""
    before = set(threading.enumerate())
    with Proxy(server.port) as proxy:
        proxy.delay(60.0)
        sock = socket.create_connection(("127.0.0.1", proxy.port), timeout=5.0)
        sock.sendall(b"PING\r\n")
        eventually(lambda: proxy.commands["PING"])
        assert set(threading.enumerate()) != before
    sock.close()
    assert set(threading.enumerate()) == before


@pytest.mark.parametrize(
    "frame",
    [
        b"+OK\r\n",
        b":12\r\n",
        b"$-1\r\n",
        b"$0\r\n\r\n",
        b"$4\r\n\r\n\r\n\r\n",
        b"*-1\r\n",
        b"*0\r\n",
        b"*2\r\n*1\r\n:1\r\n$1\r\nx\r\n",
        b"%1\r\n+a\r\n~2\r\n:1\r\n#t\r\n",
        b"|1\r\n+ttl\r\n:1\r\n*1\r\n_\r\n",
        b"=5\r\ntxt:a\r\n",
        b">2\r\n+invalidate\r\n_\r\n",
    ],
)
def test_a_frame_ends_where_the_protocol_says(frame: bytes) -> None:
    """Each kind of frame, twice in a row and cut off at every byte."""
    assert split(frame * 2) == ([frame, frame], b"")
    for cut in range(len(frame)):
        assert split(frame[:cut]) == ([], frame[:cut])


def test_a_command_is_known_by_its_name_in_either_form() -> None:
    """As an array of strings and as a line, in small letters and in capitals."""
    assert command_name(b"*1\r\n$4\r\nping\r\n") == "PING"
    assert command_name(b"EvalSha abc 0\r\n") == "EVALSHA"
