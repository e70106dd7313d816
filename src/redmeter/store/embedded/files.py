"""The files in the data directory, and the server's socket.

Shared by the launcher, in the user's process, and the supervisor, in its own; so it imports
little and no pathlib (5 ms and 1 MB of a process that stays).
"""

# ruff: noqa: PTH105, PTH108, PTH118, PTH123

import contextlib
import errno
import fcntl
import os

#: Locked by the supervisor; holds its pid.
SUPERVISOR_LOCK = "supervisor.lock"
#: Locked by the supervisor and, by inheritance, by the server.
SERVER_LOCK = "server.lock"
#: What runs; there only while the server answers.
STATE_FILE = "server.json"
#: What wrote the data.
VERSION_FILE = "server.version"
LOG_FILE = "server.log"


class Refused(Exception):
    """The server cannot be started; the text has the reason and the fix."""


def is_locked(path: str | os.PathLike[str]) -> bool:
    """Whether somebody holds the lock in this file. Takes microseconds and leaves no trace."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(fd, fcntl.LOCK_UN)  # not only by close(): a fork may have taken a copy
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def why(error: OSError) -> str:
    """Put an error of the file system into words that name the fix."""
    text = f"{error.strerror or error}" + (f" ({error.filename})" if error.filename else "")
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"no room to write: {text}. Free some space, or name another directory"
    if error.errno == errno.ENOLCK:
        return f"{text}: this file system has no locks. Name a directory on a local disk"
    return (
        f"{text}. User {os.geteuid()} must be able to make and write this directory: "
        "change its owner, or name another one with REDMETER_URL=embedded://PATH"
    )


def tail(log: str, start: int = 0) -> str:
    """Return the last five lines of a log that were written since it had `start` bytes."""
    try:
        with open(log, "rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(start, end - 4096) if end >= start else max(0, end - 4096))
            last = file.read().decode(errors="replace").splitlines()[-5:]
    except OSError as exc:
        return f"  (its log cannot be read: {exc.strerror})"
    return "\n".join(f"  {line}" for line in last) or "  (it wrote nothing to its log)"


def replace_file(name: str, text: str) -> None:
    """Write a file so that a reader sees the old one or the whole new one."""
    with open(name + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(name + ".new", name)


def remove_file(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


# --- Socket --------------------------------------------------------------------------------------
# Talk to the server without a client library: one command, one reply, one connection.
#
# Enough to see whether it answers, to count its clients and to end it. Replies are a line or a
# bulk string; arrays are not done.


def ask_socket(socket_path: str, command: str) -> bytes:
    """Send one command; return the raw reply, empty if no piece of it comes for a second."""
    import socket

    reply = b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(1.0)
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


def is_serving(reply: bytes) -> bool:
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
    reply = ask_socket(socket_path, "INFO")
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
        with open(os.path.join(data, STATE_FILE), encoding="utf-8") as file:
            socket_path = json.load(file)["socket"]
        ask_socket(socket_path, "SHUTDOWN")
