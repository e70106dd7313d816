"""Where the embedded server's data and socket lie, and who may see them."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from redmeter.errors import EmbeddedServerError
from redmeter.store import embedded
from redmeter.store.embedded import files
from redmeter.store.embedded.paths import LONGEST_SOCKET_PATH, socket_path
from store.embedded_home import ALONE, SOURCES, Home, home_of_servers  # noqa: F401  a fixture
from support.waiting import eventually

NOBODY = 65534


def test_the_default_is_in_the_users_data_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """XDG_DATA_HOME if it is absolute, else the system's custom below HOME."""
    monkeypatch.setenv("XDG_DATA_HOME", "/somewhere")
    assert embedded.default_path() == Path("/somewhere/redmeter/default")
    monkeypatch.setenv("HOME", "/home/somebody")
    for ignored in ("relative/path", ""):
        monkeypatch.setenv("XDG_DATA_HOME", ignored)
        monkeypatch.setattr(sys, "platform", "linux")
        expected = Path("/home/somebody/.local/share/redmeter/default")
        assert embedded.default_path() == expected
        monkeypatch.setattr(sys, "platform", "darwin")
        expected = Path("/home/somebody/Library/Application Support/redmeter/default")
        assert embedded.default_path() == expected


def test_names_of_one_directory_are_one_server(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link to it, a link above it, a relative name."""
    socket = embedded.ensure(home.data)
    (home.root / "link").symlink_to(home.data)
    (home.root / "up").symlink_to(home.root)
    monkeypatch.chdir(home.root)
    monkeypatch.setenv("HOME", str(home.root))
    for name in (home.root / "link", home.root / "up" / "data", "data", "link/../data", "~/data"):
        assert embedded.ensure(name) == socket
    assert len(home.servers()) == 1


@pytest.mark.parametrize(
    "name", ["x" * 200, "with space", "quote\"s '", "new\nline", "-dash", "ünïcödé", "back\\slash"]
)
def test_any_name_of_a_directory_will_do(home: Home, name: str) -> None:
    """However long, and whatever is in it."""
    socket = embedded.ensure(home.root / name)
    assert len(os.fsencode(socket)) <= LONGEST_SOCKET_PATH
    assert home.client(socket).set("key", "value")
    assert embedded.stop(home.root / name)
    assert (home.root / name / "appendonlydir").is_dir()


def test_the_socket_lies_in_the_runtime_directory(home: Home) -> None:
    """In a folder of its own there."""
    socket = embedded.ensure(home.data)
    assert socket.parent == Path(os.environ["XDG_RUNTIME_DIR"]) / "redmeter"


@pytest.mark.parametrize("runtime", ["", "relative", "/does/not/exist", "/" + "long/" * 20])
def test_without_a_runtime_directory_it_lies_in_a_private_folder(
    home: Home, monkeypatch: pytest.MonkeyPatch, runtime: str
) -> None:
    """In the system's temporary directory, named after the user."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    monkeypatch.setattr(tempfile, "tempdir", str(Path(home.root.anchor) / "tmp"))
    home.data.mkdir()
    path = socket_path(home.data)
    assert path.parent == Path(f"/tmp/redmeter-{os.geteuid()}")
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_process_with_another_runtime_directory_joins(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job without a login session finds the server of one."""
    socket = embedded.ensure(home.data)
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert embedded.ensure(home.data) == socket


def test_a_folder_in_which_others_may_write_is_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Open to others, a link, or someone else's: the error names the folder and the fix."""
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    shared = Path(tempfile.mkdtemp(prefix="rm-", dir="/tmp"))
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    folder = shared / f"redmeter-{os.geteuid()}"
    try:
        folder.mkdir()
        folder.chmod(0o755)
        _refused(home, "is open to others")
        folder.rmdir()
        (shared / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(shared / "elsewhere")
        _refused(home, "is a link")
        folder.unlink()
        if os.geteuid() == 0:
            folder.mkdir(mode=0o700)
            os.chown(folder, NOBODY, NOBODY)
            _refused(home, f"belongs to user {NOBODY}")
    finally:
        shutil.rmtree(shared)


def _refused(home: Home, wrong: str) -> None:
    with pytest.raises(EmbeddedServerError, match=f"{wrong}.*set XDG_RUNTIME_DIR"):
        embedded.ensure(home.data)
    assert not home.processes()


def test_a_runtime_directory_of_another_user_is_not_used(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After `su` the variable still names the first user's."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")
    os.chown(os.environ["XDG_RUNTIME_DIR"], NOBODY, NOBODY)
    home.data.mkdir()
    assert socket_path(home.data).parent == Path("/tmp/redmeter-0")


@pytest.mark.parametrize("mode", [0o700, 0o777])
def test_a_directory_of_another_user_is_refused(home: Home, mode: int) -> None:
    """He could read what is stored, or put links where our files go; nothing is written there."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    home.data.mkdir()
    home.data.chmod(mode)
    os.chown(home.data, NOBODY, NOBODY)
    with pytest.raises(EmbeddedServerError, match=f"belongs to user {NOBODY}, not to 0"):
        embedded.ensure(home.data)
    assert list(home.data.iterdir()) == []


def test_a_damaged_state_is_told_with_what_mends_it(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By who joins; a lock that names no process ends none."""
    embedded.ensure(home.data)
    state, lock = home.data / files.STATE_FILE, home.data / files.SUPERVISOR_LOCK
    known, pid = state.read_bytes(), lock.read_bytes()
    state.write_bytes(b'{"pid": -1}')
    for look in (embedded.ensure, embedded.running):
        with pytest.raises(EmbeddedServerError, match=r"server\.json is damaged"):
            look(home.data)
    state.write_bytes(known)
    ended: list[int] = []
    with monkeypatch.context() as patch:
        # Should it be broken, it must not end all processes of this machine.
        patch.setattr(os, "kill", lambda pid, _: ended.append(pid))
        for damaged in (b"-1\n", b"0\n", b"9" * 5000):
            lock.write_bytes(damaged)
            with pytest.raises(EmbeddedServerError, match=r"supervisor\.lock is damaged"):
                embedded.stop(home.data, timeout=0.1)
    assert ended == []
    lock.write_bytes(pid)
    assert embedded.stop(home.data)


def test_an_open_directory_with_other_things_is_left_alone(home: Home) -> None:
    """Its mode is not changed because of a mistyped path; an empty one's is."""
    home.data.mkdir()
    home.data.chmod(0o755)
    (home.data / "thesis.tex").touch()
    with pytest.raises(EmbeddedServerError, match="holds files that are not a server's"):
        embedded.ensure(home.data)
    assert stat.S_IMODE(home.data.stat().st_mode) == 0o755
    (home.data / "thesis.tex").unlink()
    embedded.ensure(home.data)
    assert stat.S_IMODE(home.data.stat().st_mode) == 0o700


def test_an_unprivileged_user_has_a_server_too() -> None:
    """Started, joined and stopped by the user nobody; root's directory is refused to them."""
    if os.geteuid() != 0:
        pytest.skip("this user is unprivileged: all other tests show it")
    python = _python_for_nobody()
    place = Path(tempfile.mkdtemp(prefix="rm-", dir="/tmp"))
    home = Home(place)
    mine = place / "roots"
    mine.mkdir(mode=0o700)
    place.chmod(0o755)
    theirs = place / "theirs"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, NOBODY, NOBODY)
    code = f"""{ALONE}
from redmeter.errors import EmbeddedServerError
socket = embedded.ensure(sys.argv[1])
assert embedded.ensure(sys.argv[1]) == socket
assert embedded.stop(sys.argv[1])
try:
    embedded.ensure(sys.argv[2])
except EmbeddedServerError as exc:
    print(exc)
"""
    try:
        done = subprocess.run(
            [python, "-c", code, theirs / "data", mine],
            env=_environment(TMPDIR=str(theirs)),
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=20,
            cwd="/",
        )
        assert done.returncode == 0, done.stderr
        assert "Permission denied" in done.stdout
        assert f"User {NOBODY} must be able to" in done.stdout
        eventually(lambda: not home.processes())
    finally:
        home.close()
        shutil.rmtree(place)


def _environment(**more: str) -> dict[str, str]:
    paths = [str(SOURCES), *(path for path in sys.path if path.endswith("site-packages"))]
    return {"PYTHONPATH": os.pathsep.join(paths), "PATH": "/usr/bin:/bin", **more}


def _python_for_nobody() -> str:
    """Return an interpreter that nobody may run and that sees our code, or skip."""
    for python in (sys.executable, shutil.which("python3", path="/usr/bin:/usr/local/bin")):
        try:
            done = subprocess.run(
                [python or "", "-c", ALONE],
                env=_environment(),
                user=NOBODY,
                group=NOBODY,
                extra_groups=[],
                capture_output=True,
                cwd="/",
            )
        except OSError:
            continue
        if done.returncode == 0:
            return python or ""
    pytest.skip("no Python that the user nobody may run can import redmeter")
