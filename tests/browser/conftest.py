"""The page in a real Chromium, served by `redmeter up` in a process of its own.

One browser and one tab for the tests of a file: a new tab takes half a second of processor time. A
page that is opened with options, or of another site, has a context of its own, as if opened for the
first time. A test fails where the browser's console says anything.
"""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Error,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)

from redmeter import Meter
from support import chromium
from support.commands import Home, Running
from support.realdata import any_log

#: Opens the page at a query, e.g. "?range=60", in a window of some size.
Open = Callable[..., Page]
#: Makes a home for commands.
Homes = Callable[[str], Home]

#: Whatever is waited for is there within this time, milliseconds; a busy machine has it too.
PATIENCE = 15_000

expect.set_options(timeout=PATIENCE)


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


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium without a window, for the tests of one file.

    As long as it runs, so does an event loop in this thread; tests of other folders have their own.
    """
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


@pytest.fixture(scope="module")
def tabs(browser: Browser) -> list[Page]:
    """Tabs of one context that no test uses at the moment."""
    return [browser.new_page()]


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homes]:
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
def site(homes: Homes) -> Site:
    """A store with an access log in it, and with something of everything there is."""
    site = serve(homes("site"))
    done = site.home.run("replay", str(any_log()), "--shift-to-now", timeout=120.0)
    assert done.code == 0, done.err
    with site.meter() as meter:
        meter.count("signups", 3, labels={"plan": "pro"})
        meter.count("signups", 4, labels={"plan": "free"})
        meter.gauge("queue_depth").set(17)
        for took in (0.01, 0.02, 0.4):
            meter.observe("http_request_seconds", took, labels={"method": "GET", "route": "/"})
            meter.observe("hits_seconds", took)
        meter.log("shop", "payment %s refused", 17, severity="error")
        meter.log("shop", "stock is low", severity="warning")
        meter.mark("v1.4.2")
    return site


@pytest.fixture
def allowed() -> list[str]:
    """What the console may say: texts that a test puts here before it provokes them."""
    return []


@pytest.fixture
def open_page(browser: Browser, tabs: list[Page], site: Site, allowed: list[str]) -> Iterator[Open]:
    """Open the page; the console must stay empty."""
    shared, contexts = [], []
    said: list[str] = []

    def note(message: ConsoleMessage) -> None:
        said.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def note_error(error: Error) -> None:
        said.append(f"error: {error}")

    def one(
        query: str = "", *, width: int = 1280, height: int = 900, of: Site = site, **options: Any
    ) -> Page:
        size: ViewportSize = {"width": width, "height": height}
        if tabs and of is site and not options:
            page = tabs.pop()
            page.set_viewport_size(size)
            shared.append(page)
        else:
            context = browser.new_context(viewport=size, **options)
            contexts.append(context)
            page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", note)
        page.on("pageerror", note_error)
        page.goto(of.url + query)
        return page

    yield one
    for context in contexts:
        context.close()
    for page in shared:
        page.mouse.move(0, 0)
        page.goto("about:blank")
        page.remove_listener("console", note)
        page.remove_listener("pageerror", note_error)
        tabs.append(page)
    assert [line for line in said if not any(text in line for text in allowed)] == []


def ready(page: Page) -> Page:
    """Wait until figures are there, and charts drawn: before, a chart has no cursor for keys."""
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator(".waiting")).to_have_count(0)
    expect(page.locator(".chart[role=group]:visible:not(:has(canvas))")).to_have_count(0)
    return page


#: Elements that one clicks and that are less than 24 px high or wide, apart from links in text.
SMALL = """() => [...document.querySelectorAll("button, summary, input, a, select")]
  .filter(one => one.checkVisibility() && getComputedStyle(one).display !== "inline")
  .map(one => [one.outerHTML.slice(0, 120), (one.closest("label") ?? one).getBoundingClientRect()])
  .filter(([_, box]) => box.width > 1 && (box.width < 23.9 || box.height < 23.9))
  .map(([text, box]) => [text, box.width, box.height])"""

_AXE = Path(__file__).parents[2] / "frontend/node_modules/axe-core/axe.min.js"
#: Returns the broken rules and the number of kept ones: axe describes each at length.
_RUN_AXE = """options => axe.run({...options, resultTypes: ["violations"]}).then(found => ({
    passes: found.passes.length,
    broken: found.violations.map(rule => [rule.id, rule.nodes.map(n => n.html.slice(0, 200))])}))"""


def check_rules(page: Page) -> None:
    """Check all rules of axe in the light theme, and in the dark one those of colors."""
    page.evaluate(_AXE.read_text())
    for dark in (True, False):  # a tab begins in light
        page.emulate_media(color_scheme="dark" if dark else "light")
        options = {"runOnly": ["color-contrast", "link-in-text-block"]} if dark else {}
        found: Any = page.evaluate(_RUN_AXE, options)
        assert found["broken"] == [], "dark" if dark else "light"
        assert dark or found["passes"] > 10
