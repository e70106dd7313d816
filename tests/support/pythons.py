"""Other Pythons than the one that runs the tests, each with the Redis client next to it.

Some faults exist in some versions only: threads cannot be started at shutdown from 3.12 on. What
is installed for them is in `.cache/pythons` of the checkout and is kept.
"""

import fcntl
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "pythons"

#: The one that runs the tests, and those to look for.
PYTHONS = ["this", "3.12", pytest.param("3.13", marks=pytest.mark.nightly)]

#: Seconds that pip may take.
TIMEOUT = 120.0


def python(version: str) -> str:
    """Return the path of an interpreter that has what redmeter needs; skip where there is none."""
    if version == "this":
        return sys.executable
    found = _prepared(version)
    if found is None:
        pytest.skip(f"there is no Python {version}")
    return found


@functools.cache
def _prepared(version: str) -> str | None:
    base = _find(version)
    if base is None:
        return None
    pins = [
        line
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line.partition("==")[0] in ("redis", "hiredis")
    ]
    environment = CACHE / f"{version}-{'+'.join(sorted(pins))}"
    found = environment / "bin" / "python"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (environment / "ready").exists():
            shutil.rmtree(environment, ignore_errors=True)
            command = [base, "-m", "venv", "--without-pip", str(environment)]
            subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT)
            (folder,) = environment.glob("lib/python*/site-packages")
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
            command += ["--disable-pip-version-check", "--only-binary=:all:"]
            command += [f"--python-version={version}", f"--target={folder}", *pins]
            subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT)
            (environment / "ready").touch()
        # Else each program compiles all of it again: programs of tests write no bytecode.
        command = [str(found), "-m", "compileall", "-q", str(environment), str(ROOT / "src")]
        subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT)
    return str(found)


def _find(version: str) -> str | None:
    """Return a Python of that version that really is one: pyenv's shims only complain."""
    name = f"python{version}"
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    beside = [str(path) for path in versions.glob(f"{version}.*/bin/{name}")]
    for candidate in [shutil.which(name), *beside]:
        if candidate is not None:
            asked = subprocess.run([candidate, "-V"], capture_output=True, text=True, check=False)
            if asked.stdout.startswith(f"Python {version}."):
                return candidate
    return None
