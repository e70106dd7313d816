"""Follow the first page of the docs as a newcomer does, and print how long each step takes.

    python tools/newcomer.py [CHECKOUT]

In a clone, an empty environment and an empty home: the command of the section "Install" of
README.md, the first program on that page, its counter as a chart in a terminal and in a browser,
whose picture is .cache/newcomer.png. The texts are those of README.md: a step that the page lacks
is an error.
"""
# ruff: noqa: INP001, T201

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))

from support import chromium  # noqa: E402
from support.commands import Terminal  # noqa: E402

#: The configuration of pip and npm, which is the machine's.
_FILES = {"PIP_CONFIG_FILE": ".config/pip/pip.conf", "NPM_CONFIG_USERCONFIG": ".npmrc"}
CONFIGURED = {
    name: str(Path.home() / file) for name, file in _FILES.items() if (Path.home() / file).exists()
}


class StepFailed(Exception):
    """A step is missing on the page, or failed; the message has its output."""


def block(text: str, language: str, word: str) -> str:
    """Return the first block of code in a language that has a word."""
    for found in re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        if word in found:
            return str(found)
    raise StepFailed(f"README.md has no block of {language} with {word}")


def run(words: list[str], folder: Path, environment: dict[str, str]) -> str:
    """Run a command; return what it prints."""
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise StepFailed(f"{' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def see(address: str) -> str:
    """Open the page of a metric in a browser; return its title once its charts are drawn."""
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium.find(), args=chromium.flags())
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(address)
        page.locator("canvas").first.wait_for()
        page.locator(".waiting").wait_for(state="detached")
        page.screenshot(path=ROOT / ".cache" / "newcomer.png")
        shown = page.title()
        browser.close()
    return shown


def follow(checkout: Path, folder: Path) -> Iterator[tuple[str, str, float]]:
    """Yield each step: what is done, what it shows, and its seconds."""
    text = (checkout / "README.md").read_text(encoding="utf-8")
    install = re.search(r'^pip (install "\.\[standard\]")', text, re.MULTILINE)
    if install is None:
        raise StepFailed('README.md has no `pip install ".[standard]"`')
    program = block(text, "python", 'meter.count("signups"')
    block(text, "sh", "redmeter up ")
    clone, bin_ = folder / "clone", folder / "environment" / "bin"
    home = folder / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "NPM_"))}
    environment = CONFIGURED | kept | {"HOME": str(home), "PATH": os.environ["PATH"]}

    def timed(*words: str, at: Path = folder) -> tuple[str, float]:
        began = time.perf_counter()
        return run([*words], at, environment), time.perf_counter() - began

    _, took = timed("git", "clone", "--quiet", str(checkout), str(clone))
    yield "git clone", "", took
    _, took = timed(sys.executable, "-m", "venv", str(bin_.parent))
    yield "python -m venv", "", took
    _, took = timed(str(bin_ / "pip"), "install", "--quiet", ".[standard]", at=clone)
    yield 'pip install ".[standard]"', "", took
    (folder / "first.py").write_text(program, encoding="utf-8")
    try:
        _, took = timed(str(bin_ / "python"), "first.py")
        yield "the first program", "", took
        began = time.perf_counter()
        command = [str(bin_ / "redmeter"), "series", "signups", "--precision", "1m"]
        lines = Terminal(command, 100, folder, environment).finish().out.splitlines()
        if not any("┤" in line for line in lines):
            raise StepFailed(f"{' '.join(command)} draws no chart: {lines}")
        yield "redmeter series signups", lines[0], time.perf_counter() - began
        shown, took = timed(str(bin_ / "redmeter"), "up", "--detach", "--port", "0")
        address = re.search(r"http://127\.\S+", shown)
        assert address, shown
        yield "redmeter up", address[0], took
        began = time.perf_counter()
        yield "the page", see(f"{address[0]}?view=series&name=signups"), time.perf_counter() - began
    finally:
        run([str(bin_ / "redmeter"), "stop"], folder, environment)


def main(arguments: list[str]) -> int:
    """Follow the path; return the exit code."""
    checkout = Path(arguments[0]).resolve() if arguments else ROOT
    total = 0.0
    print("| step | shows | seconds |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        try:
            for step, shown, took in follow(checkout, Path(folder)):
                total += took
                print(f"| `{step}` | {shown} | {took:.1f} |", flush=True)
        except StepFailed as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    print(f"| in all | | {total:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
