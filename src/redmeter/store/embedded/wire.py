"""Talk to the server without a client library: one command, one reply, one connection.

Enough to see whether it answers, to count its clients and to end it. Replies are a line or a
bulk string; arrays are not done.
"""
# ruff: noqa: PTH118, PTH123

import contextlib
import os

from redmeter.store.embedded.files import STATE


def ask(socket_path: str, command: str, timeout: float = 1.0) -> bytes:
    """Send one command; return the raw reply, empty if there is none.

    Args:
        timeout: seconds to wait for each piece of the reply.
    """
    import socket

    reply = b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        try:
            connection.connect(socket_path)
            connection.sendall(command.encode() + b"\r\n")
            while piece := connection.recv(65536):
                reply += piece
                head, ended, rest = reply.partition(b"\r\n")
                if ended and len(rest) > _size(head):
                    break
        except OSError:
            return b""
    return reply


def answers(reply: bytes) -> bool:
    """Return whether a reply to PING is that of a serving server, even if it is an error.

    One whose disk is full replies -MISCONF, and still serves reads; -LOADING means not yet.
    """
    return reply[:1] in (b"+", b"-") and not reply.startswith(b"-LOADING")


def _size(head: bytes) -> int:
    """Return how long the text is that follows the first line of a reply; -1 where none does."""
    number = head[1:]
    return int(number) if head.startswith(b"$") and number.isdigit() and len(number) < 12 else -1


def census(socket_path: str) -> tuple[int, int]:
    """Count the clients besides ourselves, and the connections ever made; (1, -1) if it is busy."""
    reply = ask(socket_path, "INFO")
    counts = {}
    for line in reply.splitlines():
        name, _, value = line.partition(b":")
        if value.isdigit() and len(value) < 20:
            counts[name] = int(value)
    clients = counts.get(b"connected_clients", 2) - 1 + counts.get(b"connected_slaves", 0)
    return clients, counts.get(b"total_connections_received", -1)


def end_orphan(data: str | os.PathLike[str]) -> None:
    """Ask a server without a supervisor to sync its file and end."""
    import json

    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        with open(os.path.join(data, STATE), encoding="utf-8") as file:
            socket_path = json.load(file)["socket"]
        ask(socket_path, "SHUTDOWN")
