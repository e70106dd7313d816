"""Trouble while one looks: the store goes away and comes back, a series vanishes, hours pass."""

import re
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from browser.conftest import MANY, Open, serve
from redmeter.store import embedded
from support.commands import Home
from support.servers import Server

Homes = Callable[[str], Home]


def test_the_store_goes_away_and_comes_back(
    open_page: Open, said: list[str], server: Server, tmp_path: Any
) -> None:
    """The page says so, keeps what it shows, and goes on by itself."""
    home = Home(tmp_path, server.url)
    try:
        away = serve(home)
        page = open_page("?range=1", of=away)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_role("button", name="Live: pause")).to_contain_text("Live")
        server.stop()
        banner = page.get_by_role("alert")
        expect(banner).to_contain_text(re.compile("away", re.IGNORECASE), timeout=15_000)
        expect(page.get_by_role("list", name="The five numbers")).to_be_visible()
        server.start()
        expect(banner).to_have_count(0, timeout=30_000)
        expect(page.get_by_role("button", name="Live: pause")).to_contain_text("Live")
    finally:
        home.close()
    said[:] = [line for line in said if "status of 503" not in line]


def test_the_process_that_serves_it_goes_away(
    open_page: Open, said: list[str], homes: Homes
) -> None:
    """And comes back at the same address."""
    home = homes("restarted")
    first = serve(home)
    port = re.search(r":(\d+)/", first.url)
    assert port is not None
    page = open_page("?range=1", of=first)
    expect(page.get_by_role("button", name="Live: pause")).to_contain_text("Live")
    first.process.finish(signal.SIGINT)
    expect(page.get_by_role("alert")).to_contain_text("server is away", timeout=15_000)
    home.start("up", "--port", port[1])
    expect(page.get_by_role("alert")).to_have_count(0, timeout=30_000)
    said[:] = [line for line in said if "ERR_CONNECTION" not in line and "ERR_EMPTY" not in line]


def test_a_series_that_vanishes_is_told_as_gone(open_page: Open, homes: Homes) -> None:
    """Not drawn as if it were zero."""
    site = serve(homes("vanishing"))
    with site.meter() as meter:
        meter.count("brief", 5)
    page = open_page("?view=series&name=brief&range=1", of=site)
    expect(page.get_by_role("row", name=re.compile("^brief"))).to_contain_text("5")
    site.home.run("clean", "--forget", "--yes")
    client = _client(site)
    for key in client.scan_iter("redmeter:*brief*"):
        client.delete(key)
    for key in client.scan_iter("redmeter:known:"):
        client.delete(key)
    expect(page.locator("main")).to_contain_text(
        re.compile("nothing|no longer|not kept|unknown", re.IGNORECASE)
    )


def _client(site: Any) -> Any:
    import redis

    running = embedded.running(site.home.data)
    assert running is not None
    return redis.Redis(unix_socket_path=str(running.socket))


@pytest.mark.slow
def test_a_minutes_watch_takes_no_more_memory(open_page: Open, homes: Homes) -> None:
    """At the finest range, while events come."""
    site = serve(homes("watched"))
    with site.meter() as meter:
        meter.count("hits")
        page = open_page("?range=1", of=site)
        session = page.context.new_cdp_session(page)

        def used() -> float:
            session.send("HeapProfiler.collectGarbage")
            return float(session.send("Runtime.getHeapUsage")["usedSize"])

        def watch(seconds: float) -> None:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                meter.count("hits", 3)
                page.wait_for_timeout(250)

        watch(15)
        before, nodes = used(), page.evaluate("document.querySelectorAll('*').length")
        watch(60)
        assert used() < before * 1.2 + 500_000
        assert page.evaluate("document.querySelectorAll('*').length") < nodes * 1.2 + 20


def test_a_thousand_counters_are_a_page_like_any_other(open_page: Open, homes: Homes) -> None:
    """It shows some, says how many there are, and finds the others."""
    site = serve(homes("many"))
    with site.meter() as meter:
        for n in range(MANY):
            meter.count(f"events_{n:04}", n + 1)
    page = open_page("?view=counters&range=60", of=site)
    expect(page.locator("main")).to_contain_text("1,000")
    assert page.get_by_role("row").count() < 210
    page.get_by_role("searchbox").first.fill("events_0777")
    expect(page.get_by_role("link", name="events_0777")).to_be_visible()
    overview = open_page("?range=60", of=site)
    expect(overview.get_by_text("events_0999").first).to_be_visible(timeout=10_000)
