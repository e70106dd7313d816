"""Babbler: a server that answers every command with the same bytes."""

import contextlib
import socket
import threading


class Babbler:
    """Accepts one connection at a time, and sends the same bytes whatever the command.

    Args:
        listening: a socket that listens.

    Attributes:
        says: these bytes.
        polite: whether it replies OK to CLIENT and HELLO's relatives first, and so lets a client
            finish its handshake.
        stays: whether it keeps the connection open, until the client closes it.
        closed: connections that a client has closed, of those that stayed open.
    """

    def __init__(self, listening: socket.socket) -> None:
        self.says = b""
        self.polite = False
        self.stays = False
        self.closed = 0
        self._socket = listening
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(5)
                    while self.polite and (asked := connection.recv(65_536)):
                        if b"CLIENT" not in asked:
                            break
                        connection.sendall(b"+OK\r\n" * asked.count(b"CLIENT"))
                    if not self.polite:
                        connection.recv(65_536)
                    connection.sendall(self.says)
                    while self.stays and connection.recv(65_536):
                        pass
                    self.closed += self.stays

    def close(self) -> None:
        """Stop listening, and end the thread."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)
