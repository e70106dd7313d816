"""A Chromium for the tests of the page: found, or installed.

    REDMETER_TEST_CHROMIUM     path of one
    PATH                       chromium, google-chrome …
    apt-get                    Debian's package, where we are root
    playwright install         else, Playwright's own

`python tests/support/chromium.py` installs one where none is found, and prints its path. That is
what `make test` does before the tests, which themselves install nothing.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

#: Environment variable that names one.
NAMED = "REDMETER_TEST_CHROMIUM"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

#: It shall neither look for updates nor ask anybody anything. Without the last flag, each window
#: draws the list of its address bar, unseen, which takes a third of a processor all the time.
FLAGS = (
    *("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-default-apps"),
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup",
)


def find() -> str | None:
    """Return the path of a Chromium that is there; None where there is none."""
    named = os.environ.get(NAMED)
    if named:
        return named
    return next(filter(None, map(shutil.which, _NAMES)), None) or _own()


def flags() -> list[str]:
    """Return how to start it: root has no sandbox."""
    return [*FLAGS, "--no-sandbox"] if os.geteuid() == 0 else list(FLAGS)


def _own() -> str | None:
    """Return the path of the one that Playwright has installed."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        path = started.chromium.executable_path
    return path if Path(path).exists() else None


def install() -> None:
    """Install one; what that says goes to standard error."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        packages = ["apt-get", "install", "-qq", "-y", "--no-install-recommends", "chromium"]
        if _run("apt-get", "update", "-qq") and _run(*packages):
            return
    _run(sys.executable, "-m", "playwright", "install", "chromium")


def _run(*command: str) -> bool:
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, stdout=sys.stderr, env=quiet, check=False).returncode == 0


if __name__ == "__main__":
    if find() is None:
        sys.stderr.write("no Chromium is here: installing one for the tests of the page\n")
        install()
    sys.stdout.write(f"{find() or ''}\n")
