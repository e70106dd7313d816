"""The targets of the Makefile and the tools behind them, as far as that takes no time.

CI runs them: see .ci/smoke.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
#: The targets that a user may ask for.
TARGETS = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split()  # type: ignore[index]
SCRIPTS = (
    *(".ci/run", ".ci/smoke", ".ci/installed", "tools/clocks", "tools/matrix", "tools/npm"),
    "tools/tests",
)


def make(*words: str) -> str:
    """Run make, and return what it prints."""
    command = ["make", "--no-print-directory", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_lists_every_target() -> None:
    """With what it does."""
    listed = {line.split()[1]: line.split()[2:] for line in make("help").splitlines()}
    assert set(listed) == set(TARGETS)
    assert all(listed.values())


def test_the_commands_of_every_target_expand() -> None:
    """In a dry run."""
    assert make("--dry-run", "--always-make", *TARGETS)


def test_every_target_is_documented() -> None:
    """In CONTRIBUTING.md."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [target for target in TARGETS if f"`make {target}" not in page] == []


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_parse(script: str) -> None:
    """Also those that CI does not run."""
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run([bash, "-n", ROOT / script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_folders_whose_clocks_are_shifted_exist() -> None:
    """Those that `tools/clocks` names."""
    script = (ROOT / "tools" / "clocks").read_text(encoding="utf-8")
    named = re.search(r'^TESTS="([^"]*)"', script, re.MULTILINE)
    assert named
    assert [each for each in named[1].split() if not (ROOT / each).is_dir()] == []


def test_files_of_tests_have_names_of_their_own() -> None:
    """Tests are in no package, so pytest cannot import two files of one name."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


def test_no_file_is_named_like_an_option() -> None:
    """A tool that takes any word for a folder has made one of `--help`."""
    assert [path.name for path in ROOT.iterdir() if path.name.startswith("-")] == []
