"""The targets of the Makefile and the tools behind them, as far as that takes no time.

CI runs them: see .ci/smoke.
"""

import os
import re
import runpy
import shlex
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


@pytest.mark.parametrize(
    ("ratio", "target", "missed"),
    [
        (0.4, "<= 0.4", False),
        (0.41, "<= 0.4", True),
        (300, ">= 300", False),
        (299.0, ">= 300", True),
        (9, "none", False),
        (None, "none", False),
    ],
)
def test_a_row_of_the_benchmarks_misses_its_target(
    ratio: float | None, target: str, missed: bool
) -> None:
    """By its ratio; without a target it misses none."""
    row = runpy.run_path(str(ROOT / "benchmarks" / "table.py"))["Row"]
    assert row("a row", "1", "2", ratio, target).is_missed() is missed


def test_every_target_of_the_benchmarks_can_be_judged() -> None:
    """A bound of another form would be an error at the end of an hour."""
    texts = "".join(path.read_text() for path in (ROOT / "benchmarks").glob("*.py"))
    targets = re.findall(r'"([<>]=? [^"]*)"', texts)
    assert len(targets) > 30
    assert [each for each in targets if not re.fullmatch(r"[<>]= [\d.]+", each)] == []


@pytest.mark.slow
def test_draws_are_the_same_by_day_and_a_night_can_be_repeated(tmp_path: Path) -> None:
    """Draws of Hypothesis and `random`, and the order of sets."""
    (tmp_path / "test_drawn.py").write_text(
        """
import os, pathlib, random
from hypothesis import given, strategies as st

def test_that_fails():
    numbers = []
    given(st.integers())(lambda number: numbers.append(number))()
    drawn = [numbers, random.random(), list({"a", "b", "c", "d", "e"})]
    with pathlib.Path(os.environ["DRAWN"]).open("a") as file:
        print(drawn, file=file)
    raise AssertionError
"""
    )
    drawn = tmp_path / "drawn"

    def run(command: str) -> str:
        given = {"DRAWN": str(drawn), "REDMETER_TEST_ONCE": "1", "PYTHONPATH": "tests"}
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=ROOT,
            env=os.environ | given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1, done.stdout + done.stderr
        return done.stdout

    words = f"tools/tests -n 0 -p conftest {shlex.quote(str(tmp_path / 'test_drawn.py'))}"
    run(f"REDMETER_TEST_SEED= {words}")
    assert "REDMETER_TEST_SEED" not in run(f"REDMETER_TEST_SEED=0 {words}")
    out = run(f"REDMETER_TEST_SEED=new {words}")
    again = re.search(r"^REDMETER_TEST_SEED=\d+ tools/tests .*$", out, re.MULTILINE)
    assert again, out
    # The name of a file outside of the repository lacks its folder.
    run(re.sub(r"'[^' ]*test_drawn.py::", f"'{tmp_path}/test_drawn.py::", again[0]))
    one, two, three, four = drawn.read_text().splitlines()
    assert one == two
    assert three == four
    assert one != three
