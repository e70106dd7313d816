"""Trouble while one looks: the store goes away and comes back, a series vanishes, hours pass."""

import contextlib
import re
import signal
import time
from pathlib import Path

import pytest
import redis
from playwright.sync_api import TimeoutError, expect

from browser.conftest import Homes, Open, ready, serve
from redmeter import Meter
from redmeter.store import embedded
from support.clusters import Cluster
from support.commands import Home
from support.servers import Server


def test_the_store_goes_away_and_comes_back(
    open_page: Open, allowed: list[str], server: Server, tmp_path: Path
) -> None:
    """The page reports it, keeps what it shows, and goes on by itself."""
    allowed.append("status of 503")
    home = Home(tmp_path, server.url)
    try:
        with Meter(server.url, sync=True) as meter:
            meter.count("beats", 7)
        site = serve(home)
        overview = ready(open_page("?range=1", of=site))
        status = overview.get_by_role("region", name="Status")
        expect(status).to_contain_text("Now, ")
        page = ready(open_page("?view=series&name=beats&range=1", of=site))
        row = page.get_by_role("row", name=re.compile("^beats"))
        expect(row).to_contain_text("7")
        button = page.locator("button.live")
        expect(button).to_contain_text("Live")
        server.stop()
        banner = page.get_by_role("alert")
        expect(banner).to_contain_text("Can't reach the store")
        expect(banner).to_contain_text("Showing data from")
        expect(button).to_contain_text("Away")
        expect(banner).not_to_contain_text("retries automatically")
        expect(row).to_contain_text("7")
        expect(status).to_contain_text("Status unknown: can't reach the store.")
        server.start()
        expect(banner).to_have_count(0, timeout=30_000)
        expect(overview.get_by_role("alert")).to_have_count(0, timeout=30_000)
        expect(status).to_contain_text("Now, ", timeout=5_000)
        expect(button).to_contain_text("Live")
        # A restarted server is empty, and that is shown, too.
        expect(page.get_by_text("Nothing is stored under this name").or_(row)).to_be_visible()
        for each in (overview, page):
            each.context.close()
    finally:
        home.close()


def test_a_node_of_a_cluster_goes_away_and_comes_back(
    open_page: Open, cluster: Cluster, tmp_path: Path
) -> None:
    """The page shows what there is, says who does not answer, and goes on by itself."""
    cluster.keep_masters()
    home = Home(tmp_path, f"{cluster.url}?socket_timeout=0.3")
    try:
        with Meter(cluster.url, sync=True) as meter:
            for number in range(40):
                meter.count(f"beats{number}", 7)
        page = ready(open_page("?view=metrics&range=1", of=serve(home)))
        rows = page.get_by_role("row", name=re.compile("^beats"))
        expect(rows).to_have_count(40)
        node = cluster.nodes[1]
        cluster.pause(node)
        banner = page.locator(".banner")
        expect(banner).to_contain_text(f"{node.address} does not answer. Its data is missing here")
        expect(rows).not_to_have_count(40)
        expect(rows).not_to_have_count(0)
        expect(page.locator("button.live")).to_contain_text("Live")
        page.get_by_role("link", name="Messages", exact=True).click()
        expect(page.get_by_text("data may be missing").first).to_be_visible()
        page.get_by_role("link", name="Metrics", exact=True).click()
        cluster.resume(node)
        expect(banner).to_have_count(0, timeout=30_000)
        expect(rows).to_have_count(40)
        page.context.close()
    finally:
        home.close()


def test_the_process_that_serves_it_goes_away(
    open_page: Open, allowed: list[str], homes: Homes
) -> None:
    """And comes back at the same address; who does not want to wait presses a button."""
    allowed += ["ERR_CONNECTION", "ERR_EMPTY_RESPONSE", "ERR_SOCKET", "status of 503"]
    home = homes("restarted")
    first = serve(home)
    port = re.search(r":(\d+)/", first.url)
    assert port is not None
    page = ready(open_page("?range=1", of=first))
    first.process.finish(signal.SIGINT)
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Can't reach the server")
    expect(page.get_by_role("region", name="Status")).to_have_text(
        "Status unknown: can't reach the server."
    )
    again = home.start("up", "--port", port[1])
    assert port[1] in again.out(1)
    with contextlib.suppress(TimeoutError):  # it may come back by itself before the click
        alert.get_by_role("button", name="Try now").click(timeout=3_000)
    expect(alert).to_have_count(0, timeout=30_000)
    expect(page.locator("button.live")).to_contain_text("Live")


def test_a_series_that_vanishes_is_told_as_gone(open_page: Open, homes: Homes) -> None:
    """Not drawn as if it were zero; and it is there again with its next event."""
    site = serve(homes("vanishing"))
    with site.meter() as meter:
        meter.count("brief", 5)
    page = open_page("?view=series&name=brief&range=1", of=site)
    row = page.get_by_role("row", name=re.compile("^brief"))
    expect(row).to_contain_text("5")
    running = embedded.running(site.home.data)
    assert running is not None
    with redis.Redis(unix_socket_path=str(running.socket)) as client:
        client.delete(*client.scan_iter("redmeter:*brief*"), "redmeter:known:")
    expect(page.get_by_text("Nothing is stored under this name")).to_be_visible()
    expect(row).to_have_count(0)
    with site.meter() as meter:
        meter.count("brief", 8)
    expect(row).to_contain_text("8")


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_minutes_watch_takes_no_more_memory(open_page: Open, homes: Homes) -> None:
    """At the finest range, while events come: neither values, nor elements, nor listeners."""
    site = serve(homes("watched"))
    with site.meter() as meter:
        meter.count("hits")
        page = ready(open_page("?range=1", of=site))
        session = page.context.new_cdp_session(page)

        def used() -> dict[str, float]:
            session.send("HeapProfiler.collectGarbage")
            found: dict[str, float] = session.send("Memory.getDOMCounters")
            return found | {"bytes": session.send("Runtime.getHeapUsage")["usedSize"]}

        def watch(seconds: float) -> None:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                meter.count("hits", 3)
                page.wait_for_timeout(250)

        watch(6)
        before = used()
        watch(60)
        after = used()
    assert after["bytes"] < before["bytes"] * 1.2 + 500_000, (before, after)
    assert after["nodes"] < before["nodes"] * 1.2 + 100, (before, after)
    assert after["jsEventListeners"] < before["jsEventListeners"] * 1.2 + 20, (before, after)
