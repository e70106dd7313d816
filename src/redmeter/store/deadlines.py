"""A socket that ends at a time. The client's timeout is one of each reception: a server that sends
a byte now and then would keep it for ever."""

import time
from typing import Any


class Bounded:
    """A connected socket, of which nothing is received after a time.

    Args:
        socket: of any class: also TLS, or gevent's.
        until: by the monotonic clock.
    """

    __slots__ = ("_socket", "until")

    def __init__(self, socket: Any, until: float) -> None:
        self._socket = socket
        self.until = until

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def recv(self, *args: Any) -> bytes:
        """Receive as a socket does.

        Raises:
            TimeoutError: the time is over.
        """
        self._limit()
        received: bytes = self._socket.recv(*args)
        return received

    def recv_into(self, *args: Any) -> int:
        """Receive as a socket does. Raises: see recv()."""
        self._limit()
        received: int = self._socket.recv_into(*args)
        return received

    def _limit(self) -> None:
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        if self._socket.gettimeout() != 0:  # else somebody looks whether anything is there
            self._socket.settimeout(left)


def bound(connection: Any, until: float) -> None:
    """Have what a connection receives end at a time, from its first reply on.

    Not bounded as a whole: looking up a host's name, and connecting, with TLS, to each address.
    """
    socket = getattr(connection, "_sock", None)
    if type(socket) is Bounded:
        socket.until = until
    connect = type(connection)._connect
    connection._connect = lambda: Bounded(connect(connection), until)
