"""The page in a real Chromium, served by `redmeter up` in a process of its own.

One browser and one server process for each test worker; each test has a context of its own, as a
person who opens the page anew. A test fails where the browser's console says anything.
"""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from redmeter import Meter
from support import chromium
from support.commands import Home, Running
from support.realdata import real_log

#: Opens the page at a query, e.g. "?range=60", in a window of some size.
Open = Callable[..., Page]

#: Counters of the store that has a thousand of them.
MANY = 1_000


class Site(NamedTuple):
    """A page that is served, and the store behind it."""

    url: str
    home: Home
    process: Running

    def meter(self) -> Meter:
        """Open a meter on its store, which writes at once."""
        return Meter(f"embedded://{self.home.data}", sync=True)


def serve(home: Home, *arguments: str) -> Site:
    """Start `up` on a free port, and return when the page answers."""
    process = home.start("up", "--port", "0", *arguments)
    found = re.search(r"http://\S+", process.out(1))
    assert found is not None, process.so_far()
    return Site(found[0], home, process)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A Chromium without a window."""
    path = chromium.find()
    if path is None:
        reason = f"no Chromium is here: set {chromium.NAMED}, or run make test, which installs one"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=chromium.flags())
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Home]]:
    """Homes for commands; whatever runs in them ends with the session."""
    made: list[Home] = []

    def one(name: str) -> Home:
        home = Home(tmp_path_factory.mktemp(name))
        made.append(home)
        return home

    yield one
    for home in made:
        home.close()


@pytest.fixture(scope="session")
def site(homes: Callable[[str], Home]) -> Site:
    """A store with the real access log in it, and what a small application adds."""
    site = serve(homes("site"))
    log = Path(__file__).parents[1] / "data" / "access.log"
    with_real = real_log_or_own(log)
    done = site.home.run("replay", str(with_real), "--shift-to-now", timeout=120.0)
    assert done.code == 0, done.err
    return site


def real_log_or_own(own: Path) -> Path:
    """Return the real access log; where it is not there, and this is not CI, our own small one."""
    try:
        return real_log()
    except pytest.skip.Exception:
        return own


@pytest.fixture
def said() -> list[str]:
    """What the console of the browser said."""
    return []


@pytest.fixture
def open_page(browser: Browser, site: Site, said: list[str]) -> Iterator[Open]:
    """Open the page; the console must stay empty."""
    contexts: list[BrowserContext] = []

    def one(
        query: str = "", *, width: int = 1280, height: int = 900, of: Site = site, **options: object
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            **options,  # type: ignore[arg-type]
        )
        contexts.append(context)
        context.set_default_timeout(10_000)
        page = context.new_page()
        page.on("console", lambda message: said.append(_told(message)))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.goto(of.url + query)
        return page

    yield one
    for context in contexts:
        context.close()
    assert said == []


def _told(message: ConsoleMessage) -> str:
    return f"{message.type}: {message.text} ({message.location.get('url', '')})"
