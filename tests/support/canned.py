"""Canned: a server with prepared answers, for what no real one says when it is asked to."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry


class Last(bytes):
    """A reply after which the connection is closed."""


class Canned:
    """A server that says what it is reported to, in place of what it is asked for.

    Args:
        tls: what it speaks TLS by; None: it does not.

    Attributes:
        replies: for each command in turn, what is sent back; None closes the connection, and
            a function is called first.
        heard: the commands that arrived, but for what clients say of themselves.
        connections: how many there have been.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.replies: list[bytes | Callable[[], bytes] | None] = []
        self.heard: list[list[bytes]] = []
        self.connections = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        """Close the connections and end the threads."""
        for each in (self._socket, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(5)

    def drop(self) -> None:
        """Close the connections that there are, as a server does when it ends."""
        for each in self._open:
            each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.connections += 1
                self._open.append(connection)
                self._threads.append(threading.Thread(target=self._serve, args=(connection,)))
                self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_side=True)
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as stream:
            while head := stream.readline():
                command = []
                for _ in range(int(head[1:])):
                    command.append(stream.read(int(stream.readline()[1:])))
                    stream.read(2)
                if command[0] == b"CLIENT":
                    connection.sendall(b"+OK\r\n")
                    continue
                self.heard.append(command)
                reply = self.replies.pop(0)
                if callable(reply):
                    reply = reply()
                if reply is None:
                    return
                connection.sendall(reply)
                if isinstance(reply, Last):
                    return


def client_of(canned: Canned, **options: Any) -> redis.Redis:
    """Return a client as an application might have set it up: eager to try again."""
    settled: dict[str, Any] = {"protocol": 2, "retry": Retry(NoBackoff(), 5), **options}
    return redis.Redis(port=canned.port, **settled)
