"""Check the distributions in dist/, or prepare a release. Nothing here publishes anything.

    python tools/release.py check             metadata, contents and size of the files in dist/
    python tools/release.py refuse VERSION    fails if VERSION cannot be released now
    python tools/release.py tag VERSION       writes the version, the section of the changelog and
                                              the recorded public API, commits, builds the commit
                                              twice, compares, tags

`make release VERSION=0.2.0` runs the last two with all checks between them, and prints what is left
to a person. A step that fails leaves the repository as it was.
"""
# ruff: noqa: INP001, T201

import argparse
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path

from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parents[1]
#: Bytes that a wheel may have.
WHEEL_LIMIT = 1_500_000
CHANGELOG = "CHANGELOG.md"
VERSION_FILE = "src/redmeter/__init__.py"
PUBLIC_NAMES = "tests/golden/public/names.txt"
STATIC = "src/redmeter/dashboard/static"
#: The end of a placeholder for an address that only the publisher knows (RFC 2606).
PLACEHOLDER = ".example"
_UNRELEASED = "## Unreleased\n"
_VERSION = re.compile(r'^__version__ = "([^"]*)"$', re.MULTILINE)
_LEFT = """\
{tag} is tagged in this clone, and {files} are in dist/. Left to a person:
{placeholder}\
- read the commit: git show {tag}
- push it: git push origin HEAD {tag}. The workflow "release" builds the tag again and waits for
  approval in the environment "release" before it publishes; trusted publishing has to be set up at
  the package index once, for that workflow and that environment
- compare the checksums that the workflow prints with these:
{sums}
To undo instead: git tag -d {tag} && git reset --hard HEAD~1
"""
_PLACEHOLDER_LEFT = """\
- pyproject.toml still has the addresses {urls}: undo, put in those of the
  repository, and start again. The workflow refuses to publish these
"""


class ReleaseRefused(Exception):
    """The release cannot be made; the message says why."""


def main(arguments: list[str]) -> int:
    """Run one of the steps; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    steps = parser.add_subparsers(dest="step", required=True)
    check_step = steps.add_parser("check")
    check_step.add_argument("--publishable", action="store_true", help="refuse example addresses")
    for name in ("refuse", "tag"):
        steps.add_parser(name).add_argument("version")
    given = parser.parse_args(arguments)
    try:
        if given.step == "check":
            check(ROOT, publishable=given.publishable)
        elif given.step == "refuse":
            refuse(ROOT, given.version)
        else:
            print(tag(ROOT, given.version), end="")
    except ReleaseRefused as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


# ---------------------------------------------------------------- distributions


def distributions(root: Path) -> list[Path]:
    """Return wheel and sdist of the current version.

    Raises:
        ReleaseRefused: one of them is missing.
    """
    version = current_version(root)
    names = (f"redmeter-{version}-py3-none-any.whl", f"redmeter-{version}.tar.gz")
    files = [root / "dist" / name for name in names]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise ReleaseRefused(f"dist/ has no {' and no '.join(missing)}: make build")
    return files


def check(root: Path, *, publishable: bool = False) -> None:
    """Check wheel and sdist of dist/ with twine and check-wheel-contents, and the wheel's size.

    Args:
        root: the checkout.
        publishable: whether example addresses in the metadata are an error.

    Raises:
        ReleaseRefused: one of the checks failed.
    """
    wheel, sdist = distributions(root)
    _tool("twine", "check", "--strict", str(wheel), str(sdist))
    _tool("check_wheel_contents", str(wheel))
    size = wheel.stat().st_size
    if size > WHEEL_LIMIT:
        raise ReleaseRefused(f"the wheel has {size:,} bytes, more than {WHEEL_LIMIT:,}")
    with zipfile.ZipFile(wheel) as packed:
        strange = [
            name
            for name in packed.namelist()
            if not re.match(r"redmeter(/|-[^/]*\.dist-info/)", name)
        ]
    if strange:
        raise ReleaseRefused(
            f"the wheel has files outside of the package: {', '.join(strange[:3])}"
        )
    if publishable and (urls := _placeholders(root)):
        raise ReleaseRefused(f"project.urls in pyproject.toml has examples: {', '.join(urls)}")
    print(f"{wheel.name}: {size:,} bytes; {sdist.name}: {sdist.stat().st_size:,} bytes")


def build(tree: Path) -> dict[str, str]:
    """Build wheel and sdist of a tree into its dist/; return their checksums by name."""
    _tool("hatchling", "build", folder=tree)
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in distributions(tree)
    }


# ---------------------------------------------------------------- releases


def refuse(root: Path, text: str) -> None:
    """Check that a version can be released.

    Raises:
        ReleaseRefused: why not.
    """
    try:
        version = Version(text)
    except InvalidVersion:
        raise ReleaseRefused(f'"{text}" is no version: make release VERSION=0.2.0') from None
    if str(version) != text:
        raise ReleaseRefused(f'"{text}" is written {version}')
    if changed := _git(root, "status", "--porcelain").strip():
        raise ReleaseRefused(f"commit or remove these changes first:\n{changed}")
    tags = [name for name in _git(root, "tag", "--list", "v*").split() if _is_version(name[1:])]
    newer = [name for name in tags if Version(name[1:]) >= version]
    if newer:
        raise ReleaseRefused(f"{newer[-1]} is tagged already, which is not older than {text}")
    if Version(current_version(root)) > version:
        raise ReleaseRefused(f"{VERSION_FILE} is at {current_version(root)}, newer than {text}")
    released(_read(root / CHANGELOG), text, "")


def released(changelog: str, version: str, day: str) -> str:
    """Return a changelog in which a version has its section, with a date, and Unreleased is empty.

    A section of that version without a date, which the first release has, gets the date.

    Raises:
        ReleaseRefused: there is nothing to release, or entries too many.
    """
    before, found, rest = changelog.partition(_UNRELEASED)
    if not found:
        raise ReleaseRefused(f'{CHANGELOG} has no section "Unreleased"')
    entries, _, older = rest.partition("\n## ")
    older = f"## {older}" if older else ""
    written = older.startswith(f"## {version}\n")
    if written and entries.strip():
        raise ReleaseRefused(
            f"{CHANGELOG} has a section for {version}, and entries under Unreleased: move them"
        )
    if not written and not entries.strip():
        raise ReleaseRefused(f"{CHANGELOG} has no entries under Unreleased")
    body = older.partition("\n")[2] if written else f"\n{entries.strip()}\n\n{older}"
    return f"{before}{_UNRELEASED}\n## {version} ({day})\n{body}".rstrip("\n") + "\n"


def tag(root: Path, version: str) -> str:
    """Commit and tag a release, and leave its distributions in dist/.

    Returns:
        What is left to do.

    Raises:
        ReleaseRefused: it cannot be made. The repository is as before.
    """
    refuse(root, version)
    start = _git(root, "rev-parse", "HEAD").strip()
    day = time.strftime("%Y-%m-%d", time.gmtime())
    try:
        changelog, source = root / CHANGELOG, root / VERSION_FILE
        changelog.write_text(released(_read(changelog), version, day), encoding="utf-8")
        source.write_text(
            _VERSION.sub(f'__version__ = "{version}"', _read(source)), encoding="utf-8"
        )
        _run([sys.executable, "tools/api.py", "--record"], root, PYTHONPATH=str(root / "src"))
        _git(root, "add", CHANGELOG, VERSION_FILE, PUBLIC_NAMES)
        _git(root, "commit", "--quiet", "-m", f"Release {version}")
        sums = build_commit(root)
        check(root)
    except BaseException:
        _git(root, "reset", "--quiet", "--hard", start)
        raise
    _git(root, "tag", "-a", f"v{version}", "-m", f"Release {version}")
    urls = _placeholders(root)
    return _LEFT.format(
        tag=f"v{version}",
        files=" and ".join(sums),
        placeholder=_PLACEHOLDER_LEFT.format(urls=", ".join(urls)) if urls else "",
        sums="\n".join(f"  {digest}  {name}" for name, digest in sums.items()),
    )


def build_commit(root: Path) -> dict[str, str]:
    """Build HEAD twice, in two folders, and put the distributions into dist/.

    The page is taken from the checkout, if it was built from the same sources.

    Returns:
        Checksums by name.

    Raises:
        ReleaseRefused: the two builds differ, or a build fails.
    """
    archive = subprocess.run(
        ["git", "archive", "HEAD"], cwd=root, check=True, capture_output=True
    ).stdout
    found: list[dict[str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("first", "second of two"):
            tree = Path(folder) / name
            with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
                packed.extractall(tree, filter="data")
            if (root / STATIC).is_dir():
                shutil.copytree(root / STATIC, tree / STATIC)
            found.append(build(tree))
        if found[0] != found[1]:
            raise ReleaseRefused(f"two builds of one commit differ: {found[0]}, {found[1]}")
        (root / "dist").mkdir(exist_ok=True)
        for name in found[0]:
            shutil.copy(Path(folder) / "first" / "dist" / name, root / "dist" / name)
    return found[0]


def current_version(root: Path) -> str:
    """Return the version that the sources have."""
    found = _VERSION.search(_read(root / VERSION_FILE))
    assert found, VERSION_FILE
    return found[1]


def _placeholders(root: Path) -> list[str]:
    urls = tomllib.loads(_read(root / "pyproject.toml"))["project"]["urls"].values()
    return [url for url in urls if PLACEHOLDER in url]


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise ReleaseRefused(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def _tool(module: str, *arguments: str, folder: Path | None = None) -> None:
    _run([sys.executable, "-m", module, *arguments], folder)


def _run(command: list[str], folder: Path | None, **environment: str) -> None:
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True
    )
    if done.returncode:
        raise ReleaseRefused(f"{' '.join(command[1:4])}:\n{done.stdout}{done.stderr}".rstrip())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
