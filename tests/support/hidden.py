"""Programs in processes that see only some of the installed packages."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import redmeter

#: What `pip install redmeter` brings.
CORE = frozenset({"redmeter", "redis", "hiredis"})

#: Makes finders return nothing for some packages: hidden ones, or all but the core.
_HIDE = """
import sys
hidden, shown = {*sys.argv.pop(1).split()}, {*sys.stdlib_module_names, *sys.argv.pop(1).split()}
class Seen:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        package = name.partition(".")[0]
        if package in hidden if hidden else package not in shown:
            return None
        return self.finder.find_spec(name, path, target)
sys.meta_path[:] = map(Seen, sys.meta_path)
"""


def run_hidden(
    program: str, *arguments: str, hidden: Iterable[str] = (), path: str = "/nowhere", home: Path
) -> subprocess.CompletedProcess[str]:
    """Run a program that does not see all packages.

    Args:
        program: its text.
        arguments: sys.argv of it.
        hidden: the packages that it does not see; by default all but CORE.
        path: PATH, on which a server program may be found.
        home: the home directory.
    """
    return subprocess.run(
        [sys.executable, "-c", _HIDE + program, " ".join(hidden), " ".join(CORE), *arguments],
        env={
            "HOME": str(home),
            "PATH": path,
            "PYTHONPATH": str(Path(redmeter.__file__).parents[1]),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        cwd=home,
        capture_output=True,
        text=True,
        timeout=60,
    )
