"""The files in the data directory: their names, their locks, the log's last lines.

Shared by the launcher, in the user's process, and the supervisor, in its own; so it imports
little and no pathlib (5 ms and 1 MB of a process that stays).
"""
# ruff: noqa: PTH105, PTH108, PTH123

import contextlib
import errno
import fcntl
import os

#: Locked by the supervisor; holds its pid.
SUPERVISOR_LOCK = "supervisor.lock"
#: Locked by the supervisor and, by inheritance, by the server.
SERVER_LOCK = "server.lock"
#: What runs; there only while the server answers.
STATE = "server.json"
#: What wrote the data.
VERSION = "server.version"
LOG = "server.log"


class Refused(Exception):
    """The server cannot be started; the text has the reason and the fix."""


def held(path: str | os.PathLike[str]) -> bool:
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


def tail(log: str, start: int = 0, lines: int = 5) -> str:
    """Return the last lines of a log that were written since it had `start` bytes."""
    try:
        with open(log, "rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(start, end - 4096) if end >= start else max(0, end - 4096))
            last = file.read().decode(errors="replace").splitlines()[-lines:]
    except OSError as exc:
        return f"  (its log cannot be read: {exc.strerror})"
    return "\n".join(f"  {line}" for line in last) or "  (it wrote nothing to its log)"


def replace(name: str, text: str) -> None:
    """Write a file so that a reader sees the old one or the whole new one."""
    with open(name + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(name + ".new", name)


def forget(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
