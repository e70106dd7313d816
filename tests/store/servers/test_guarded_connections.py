"""A connection uses and closes its own socket only, of whatever class the socket is."""

import gc
import os
import socket
import ssl
from collections.abc import Callable
from typing import Any

import pytest
import redis

from redmeter.store.servers import sockets


def encrypted(plain: socket.socket) -> socket.socket:
    """Return a socket for TLS that has not shaken hands."""
    context = ssl.create_default_context()
    context.check_hostname = False
    return context.wrap_socket(plain, do_handshake_on_connect=False, suppress_ragged_eofs=False)


def greenlets(plain: socket.socket) -> Any:
    """Return a socket of gevent's."""
    module = pytest.importorskip("gevent.socket")
    return module.socket(plain.family, plain.type, plain.proto, fileno=plain.detach())


#: Class of sockets -> makes one of a plain one.
KINDS: dict[str, Callable[[socket.socket], Any]] = {
    "plain": lambda plain: plain,
    "TLS": encrypted,
    "gevent": greenlets,
    "bounded": lambda plain: sockets.Bounded(plain, float("inf")),
}


def connected(wrap: Callable[[socket.socket], Any]) -> tuple[Any, socket.socket]:
    """Return a connection of ours, and the other end of its socket."""
    one, other = socket.socketpair()
    given = [wrap(one)]

    class Connection(redis.Connection):
        def _connect(self) -> Any:
            return given.pop()

    connection = sockets.guarded(Connection)(protocol=2)
    connection._sock = connection._connect()
    return connection, other


def is_open(number: int) -> bool:
    """Return whether a descriptor exists."""
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


@pytest.mark.parametrize("way", ["verify", "disconnect", "garbage", "child"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_number_that_became_another_file_is_left_alone(kind: str, way: str) -> None:
    """Neither read, nor written, nor shut down, nor closed."""
    connection, other = connected(KINDS[kind])
    number = connection._sock.fileno()
    mine, peer = socket.socketpair()
    os.dup2(mine.fileno(), number)  # closes it, and takes its number
    if way == "verify":
        connection.verify()
        assert connection._sock is None
    elif way == "disconnect":
        connection.disconnect()
    elif way == "child":
        connection.close_inherited()
    else:
        del connection
        gc.collect()
    os.write(number, b"still here")
    assert peer.recv(100) == b"still here"
    os.close(number)
    for each in (mine, peer, other):
        each.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_child_closes_its_copy_at_once(kind: str) -> None:
    """Without a word to the server, to which the parent goes on talking."""
    connection, other = connected(KINDS[kind])
    number = connection._sock.fileno()
    copy = os.dup(number)
    connection.verify()
    assert connection._sock is not None
    sockets.close_inherited()
    assert not is_open(number)
    os.write(copy, b"the parent's")
    assert other.recv(100) == b"the parent's"
    connection.disconnect()
    os.close(copy)
    other.close()
