"""Releases: the same bytes from any checkout, and whole or nothing."""

import os
import shutil
import subprocess
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from support.tools import loaded

ROOT = Path(__file__).parents[2]
IGNORED = (".git", "node_modules", "tests", ".venv", ".*_cache", ".cache", ".hypothesis", "dist")


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """tools/release.py, as a module."""
    return loaded("tools/release.py")


def git(root: Path, *arguments: str) -> str:
    """Run git as somebody; return its output."""
    settings = ("user.name=N", "user.email=n@example.org", "commit.gpgsign=false")
    options = [word for setting in settings for word in ("-c", setting)]
    command = ["git", *options, *arguments]
    return subprocess.run(
        command, cwd=root, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def copy(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that copies the checkout, with its page, into a folder of that name."""
    loaded("hatch_build.py").Page(ROOT).build()

    def copied(name: str) -> Path:
        to = tmp_path / name
        shutil.copytree(ROOT, to, ignore=shutil.ignore_patterns(*IGNORED))
        public = Path("tests", "golden", "public")
        shutil.copytree(ROOT / public, to / public)
        return to

    return copied


def started(root: Path) -> Path:
    """Make a folder a repository with one commit; its changelog has one entry to release."""
    (root / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n### Added\n\n- A thing.\n")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "Start")
    return root


@pytest.fixture
def repository(copy: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a whole repository, in which somebody may commit."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "N")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "n@example.org")
    return started(copy("repository"))


@pytest.fixture
def small(tmp_path: Path, tool: ModuleType) -> Path:
    """Return a repository of the files that a refusal is about."""
    for name in ("README.md", tool.VERSION_FILE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return started(tmp_path)


@pytest.mark.slow
def test_two_checkouts_of_one_commit_become_the_same_bytes(
    copy: Callable[[str], Path], tool: ModuleType
) -> None:
    """At another path, with other times and rights of files; a changed byte is another wheel."""
    first, second = copy("first"), copy("the second one")
    for path in second.rglob("*"):
        if path.is_file():
            path.chmod(path.stat().st_mode & 0o700)
            os.utime(path, (1_000_000_000, 1_000_000_000))
    built = tool.build(first)
    assert sorted(name.rpartition(".")[2] for name in built) == ["gz", "whl"]
    assert tool.build(second) == built
    source = second / "src" / "redmeter" / "clock.py"
    source.write_text(source.read_text() + "#\n")
    assert set(tool.build(second).values()) & set(built.values()) == set()


@pytest.mark.nightly
def test_a_wheel_that_is_too_large_or_has_strange_files_is_refused(
    copy: Callable[[str], Path], tool: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one of this checkout has at most 1.5 MB, and neither tests nor tools."""
    root = copy("checkout")
    tool.build(root)
    tool.check(root)
    wheel, _ = tool.distributions(root)
    size = wheel.stat().st_size
    assert size < 1_500_000
    monkeypatch.setattr(tool, "WHEEL_LIMIT", size - 1)
    with pytest.raises(tool.ReleaseRefused, match=f"{size:,} bytes"):
        tool.check(root)
    monkeypatch.setattr(tool, "WHEEL_LIMIT", 2 * size)
    with zipfile.ZipFile(wheel, "a") as packed:
        packed.writestr("tests/test_more.py", "")
    with pytest.raises(tool.ReleaseRefused, match=r"tests/test_more\.py|check_wheel_contents"):
        tool.check(root)
    wheel.unlink()
    with pytest.raises(tool.ReleaseRefused, match="make build"):
        tool.check(root)


@pytest.mark.slow
def test_a_release_is_a_commit_a_tag_and_two_files(repository: Path, tool: ModuleType) -> None:
    """The text that it returns names them, with checksums, and the addresses that are examples."""
    names = repository / tool.PUBLIC_NAMES
    (recorded, text) = names.read_text().split("\n", 1)
    names.write_text(text)
    git(repository, "commit", "--quiet", "--all", "-m", "Less than there is")
    left = tool.tag(repository, "0.2.0")
    assert git(repository, "describe", "--exact-match") == "v0.2.0"
    assert git(repository, "status", "--porcelain") == ""
    changed = git(repository, "diff", "--name-only", "HEAD~1").split()
    assert changed == ["CHANGELOG.md", "src/redmeter/__init__.py", tool.PUBLIC_NAMES]
    assert names.read_text() == f"{recorded}\n{text}"
    assert tool.current_version(repository) == "0.2.0"
    wheel, sdist = tool.distributions(repository)
    for line in (wheel.name, sdist.name, "redmeter.example", "git push origin HEAD v0.2.0"):
        assert line in left
    with zipfile.ZipFile(wheel) as packed:
        assert "redmeter/dashboard/static/index.html" in packed.namelist()
        assert "0.2.0" in packed.read("redmeter/__init__.py").decode()
    with pytest.raises(tool.ReleaseRefused, match=r"v0\.2\.0 is tagged already"):
        tool.refuse(repository, "0.1.5")


@pytest.mark.nightly
def test_a_release_that_fails_leaves_nothing(
    repository: Path, tool: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No commit, no tag, no change."""
    start = git(repository, "rev-parse", "HEAD")
    monkeypatch.setattr(tool, "WHEEL_LIMIT", 1)
    with pytest.raises(tool.ReleaseRefused, match="bytes"):
        tool.tag(repository, "0.2.0")
    assert git(repository, "rev-parse", "HEAD") == start
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "tag") == ""


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("", "is no version"),
        ("new", "is no version"),
        ("0.02", "is written 0.2"),
        ("0.0.9", "newer"),
    ],
)
def test_a_version_that_cannot_be_is_refused(
    version: str, reason: str, small: Path, tool: ModuleType
) -> None:
    """Before any long check."""
    with pytest.raises(tool.ReleaseRefused, match=reason):
        tool.refuse(small, version)


def test_changes_that_are_not_committed_are_no_release(small: Path, tool: ModuleType) -> None:
    """They are named."""
    tool.refuse(small, "0.2.0")
    (small / "README.md").write_text("else")
    with pytest.raises(tool.ReleaseRefused, match=r"README\.md"):
        tool.refuse(small, "0.2.0")


def test_the_section_of_a_release_has_the_entries_of_unreleased(tool: ModuleType) -> None:
    """Or is there already, as for the first release; then there are no others."""
    older = "## 0.1.0 (2026-01-01)\n\nFirst.\n"
    head = "# Changelog\n\n## Unreleased\n\n"
    new = tool.released(f"{head}### Added\n\n- A thing.\n\n{older}", "0.2.0", "2026-02-03")
    assert new == f"{head}## 0.2.0 (2026-02-03)\n\n### Added\n\n- A thing.\n\n{older}"
    first = tool.released(f"{head}## 0.1.0\n\nFirst.\n", "0.1.0", "2026-01-01")
    assert first == head + older
    for text in (f"{head}{older}", f"{head}- A thing.\n\n## 0.2.0\n\nText.\n", "# Changelog\n"):
        with pytest.raises(tool.ReleaseRefused):
            tool.released(text, "0.2.0", "2026-02-03")


def test_the_metadata_is_complete() -> None:
    """Addresses, keywords, and a classifier for each Python that `make matrix` tests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"Homepage", "Documentation", "Source", "Changelog", "Issues"} <= set(project["urls"])
    assert len(project["keywords"]) >= 10
    matrix = (ROOT / "tools" / "matrix").read_text(encoding="utf-8")
    tested = matrix.partition('PYTHONS="')[2].partition('"')[0].split()
    named = [line.rpartition(" ")[2] for line in project["classifiers"] if "Python :: 3." in line]
    assert named == tested
