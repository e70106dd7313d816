"""What the controls of the page do; all that they set is in the address."""

import re
import struct
from typing import Any

from playwright.sync_api import Page, expect

from browser.conftest import Open, Site, ready
from support.waiting import eventually


def test_ranges_are_the_precisions_that_are_kept(open_page: Open, site: Site) -> None:
    """And an hour, a day and a week; the chosen one is in the address, and holds over a reload."""
    page = open_page()
    buttons = page.get_by_role("group", name="Range").get_by_role("button")
    expect(buttons).to_have_count(10)
    page.get_by_role("button", name=re.compile("^24 h")).click()
    expect(page).to_have_url(re.compile("last=86400"))
    expect(page.locator(".toolbar-title")).to_contain_text("by 1 h")
    page.get_by_role("button", name=re.compile("^10 d")).click()
    expect(page).to_have_url(re.compile("range=3600"))
    page.reload()
    expect(page.get_by_role("button", name=re.compile("^10 d"))).to_have_attribute(
        "aria-pressed", "true"
    )
    page.go_back()
    expect(page.get_by_role("button", name=re.compile("^24 h"))).to_have_attribute(
        "aria-pressed", "true"
    )


def test_an_event_is_on_the_page_soon(open_page: Open, site: Site) -> None:
    """At the finest range, whoever looks; how soon, the benchmarks measure."""
    with site.meter() as meter:
        meter.count("clicks", 2)
        page = open_page("?view=series&name=clicks&range=1")
        row = page.get_by_role("row", name=re.compile("^clicks"))
        expect(row).to_contain_text("2")
        meter.count("clicks", 41)
        expect(row).to_contain_text("43", timeout=8_000)


def test_the_first_event_of_a_series_appears_by_itself(open_page: Open, site: Site) -> None:
    """Until then its page says that nothing is kept, and what would fill it."""
    page = open_page("?view=series&name=sprouts&range=1")
    expect(page.get_by_text("Nothing is stored under this name")).to_be_visible()
    expect(page.get_by_text('Meter().count("sprouts")')).to_be_visible()
    with site.meter() as meter:
        meter.count("sprouts", 5)
    expect(page.get_by_role("row", name=re.compile("^sprouts"))).to_contain_text("5")


def test_paused_or_hidden_a_page_asks_nothing(open_page: Open, site: Site) -> None:
    """Paused by the button, which the address shows; both go on when asked to."""
    hidden = ready(open_page("?range=1"))
    page = ready(open_page("?view=series&name=steps&range=1"))
    page.locator("button.live").click()
    expect(page).to_have_url(re.compile("paused"))
    _set_hidden(hidden, hidden=True)
    page.wait_for_timeout(500)
    asked: list[str] = []
    for each in (page, hidden):
        each.on("request", lambda request: asked.append(request.url))
    with site.meter() as meter:
        meter.count("steps", 9)
    page.wait_for_timeout(1_500)
    assert asked == []
    _set_hidden(hidden, hidden=False)
    eventually(lambda: _waited(hidden, asked), 15.0, "a request")
    page.get_by_role("button", name="Paused: go live").click()
    expect(page.get_by_role("row", name=re.compile("^steps"))).to_contain_text("9")


def test_the_mouse_on_a_chart_holds_it(open_page: Open, site: Site) -> None:
    """Until it leaves."""
    page = ready(open_page("?range=86400&series=signups"))
    plot = page.locator(".u-over").first
    expect(plot).to_be_visible()
    box: Any = plot.bounding_box()
    # Where its newest interval is.
    plot.hover(position={"x": box["width"] - 3, "y": box["height"] / 2})
    button = page.locator("button.live")
    expect(button).to_contain_text("Paused")
    expect(page.locator(".tip").first).to_be_visible()
    page.mouse.move(2, 2)
    expect(button).to_contain_text("Live")


def _set_hidden(page: Page, *, hidden: bool) -> None:
    """Tell the page what a browser tells it whose tab is left."""
    page.evaluate(
        """hidden => {
            Object.defineProperty(document, "hidden", {configurable: true, get: () => hidden});
            Object.defineProperty(document, "visibilityState",
                {configurable: true, get: () => hidden ? "hidden" : "visible"});
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


def _waited(page: Page, asked: list[str]) -> bool:
    page.wait_for_timeout(50)
    return bool(asked)


def test_the_legend_hides_and_shows_a_line(open_page: Open, site: Site) -> None:
    """A checkbox for each, which holds over a reload."""
    page = open_page("?range=86400")
    box = page.get_by_role("checkbox", name="hits", exact=True)
    expect(box).to_be_checked()
    box.uncheck()
    expect(page).to_have_url(re.compile("hidden=hits"))
    page.reload()
    expect(box).not_to_be_checked()
    box.check()
    expect(page).not_to_have_url(re.compile("hidden"))


def test_behind_a_chart_there_is_a_table(open_page: Open, site: Site) -> None:
    """With the values that it draws."""
    page = open_page("?view=series&name=signups&range=60")
    page.get_by_role("button", name="Table", exact=True).click()
    table = page.get_by_role("region", name="Values of Values")
    expect(table.get_by_role("row").filter(has_text="7")).not_to_have_count(0)
    expect(page).to_have_url(re.compile("table=values"))


def test_axes_of_durations_can_be_logarithmic(open_page: Open, site: Site) -> None:
    """By a button, and at first where percentiles span a decade; counts stay as they are."""
    page = open_page("?view=series&name=http_request_seconds&range=60&log=0")
    button = page.get_by_role("button", name="Log axis")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(page).to_have_url(re.compile("log=1"))
    page.goto(page.url.replace("http_request_seconds", "hits"))
    ready(page)
    expect(page.get_by_role("button", name="Log axis")).to_have_count(0)


def test_a_finger_across_a_chart_zooms(open_page: Open, site: Site) -> None:
    """As a mouse does."""
    page = open_page("?range=86400")
    plot = page.locator(".u-over").first
    expect(plot).to_be_visible()
    box: Any = plot.bounding_box()
    device = page.context.new_cdp_session(page)

    def touch(kind: str, *shares: float) -> None:
        points = [{"x": box["x"] + box["width"] * share, "y": box["y"] + 20} for share in shares]
        device.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 0.6)
    for share in (0.65, 0.7, 0.8, 0.9):
        touch("touchMove", share)
    touch("touchEnd")
    expect(page).to_have_url(re.compile(r"since=\d+"))


def test_a_brush_zooms_every_panel_and_escape_shows_all_again(open_page: Open, site: Site) -> None:
    """The address has the times, and so has each request; a step moves them."""
    page = open_page("?range=86400")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    plot = page.locator(".u-over").first
    expect(plot).to_be_visible()
    box: Any = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 30, steps=5)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"since=\d+"))
    eventually(lambda: any("api/overview" in url and "since=" in url for url in asked), 15.0, "it")
    zoomed = page.url
    page.get_by_role("button", name="Earlier").click()
    expect(page).not_to_have_url(zoomed)
    page.get_by_role("button", name="Zoom out").click()
    page.get_by_label("Compare with").select_option("last week")
    expect(page).to_have_url(re.compile("since=.*against=last-week"))
    expect(page.get_by_text("last week: not kept").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("since="))
    page.go_back()
    expect(page).to_have_url(re.compile("since="))
    page.get_by_role("button", name="Now", exact=True).click()
    expect(page).not_to_have_url(re.compile("since="))


def test_keys_are_listed_and_one_of_them_searches(open_page: Open, site: Site) -> None:
    """Escape closes the list."""
    page = ready(open_page("?view=metrics&range=86400"))
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Filter by name")).to_be_focused()


def test_what_a_chart_shows_can_be_taken_away(open_page: Open, site: Site) -> None:
    """As CSV, with the values, and as a picture."""
    page = ready(open_page("?range=86400"))
    page.locator("summary", has_text="Share").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Values as CSV").click()
    head, *rows = download.value.path().read_text().splitlines()
    assert head.startswith("time,hits,")
    with site.meter() as meter:
        hits = sum(sample.value for sample in meter.series("hits", precision=86400))
    assert sum(int(row.split(",")[1] or 0) for row in rows) == hits
    with page.expect_download() as download:
        page.get_by_role("button", name="Charts as PNG").click()
    picture = download.value.path().read_bytes()
    assert picture.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", picture[16:24])
    charts = page.locator(".figure-chart canvas").evaluate_all(
        "all => [Math.max(...all.map(c => c.width)), all.reduce((sum, c) => sum + c.height, 0)]"
    )
    # The title, and of each chart its caption and at least one line of its legend.
    assert (width, height) >= (charts[0], charts[1] + 48 + 44)


def test_a_file_of_a_dragged_range_has_the_intervals_of_its_title(
    open_page: Open, site: Site
) -> None:
    """The legend, too: its sum is that of the recorded events."""
    now = int(open_page("?range=60").evaluate("Date.now() / 1000")) // 60 * 60
    counts = {now - 60 * ago: 3 + ago * ago for ago in range(50, 5, -1)}
    with site.meter() as meter:
        for at, count in counts.items():
            meter.count("dragged_events", count, at=at)
    since, until = now - 2_400 + 13, now - 1_200 + 31
    page = ready(open_page(f"?range=60&series=dragged_events&since={since}&until={until}"))
    expect(page).to_have_url(re.compile(f"since={since - 13}&until={until + 29}"))
    expected = sum(n for at, n in counts.items() if since - 13 <= at < until + 29)
    page.locator("summary", has_text="Share").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Values as CSV").click()
    _, *rows = download.value.path().read_text().splitlines()
    assert len(rows) == 21
    assert sum(int(row.split(",")[1]) for row in rows) == expected
    legend = page.get_by_role("region", name="Legend of Traffic")
    expect(legend).to_contain_text(f"{expected:,}")


def test_a_window_older_than_its_precision_is_shown_by_one_that_is_kept(
    open_page: Open, site: Site
) -> None:
    """And the page names both."""
    page = open_page("?view=series&name=hits&range=86400")
    ready(page)
    until = int(page.evaluate("Date.now() / 1000"))
    page.goto(f"{site.url}?view=series&name=hits&range=60&since={until - 20_000}&until={until}")
    bar = page.get_by_role("group", name="Time")
    expect(bar).to_contain_text(re.compile(r"by (5 min|1 h) \(1 min is kept for 2 h\)"))
    expect(page.locator("figcaption").first).to_contain_text(re.compile("per (5 min|1 h)"))


def test_a_series_is_put_on_the_chart_by_its_name(open_page: Open, site: Site) -> None:
    """Names of every kind are offered while one types; a button goes back to the usual ones."""
    page = ready(open_page())
    box = page.get_by_label("Show a series in the chart")
    for typed, name in (("signu", "signups"), ("queue_d", "queue_depth")):
        box.fill(typed)
        expect(page.locator(f"datalist option[value='{name}']")).to_have_count(1)
        box.press("Enter")
        expect(page).to_have_url(re.compile(f"series={name}"))
        expect(page.get_by_role("checkbox", name=name, exact=True)).to_be_checked()
    page.get_by_role("button", name="Reset").click()
    expect(page).not_to_have_url(re.compile("series="))


def test_a_series_page_leads_to_the_overview_and_back(open_page: Open, site: Site) -> None:
    """With that series on the chart."""
    page = open_page("?view=series&name=signups&range=60")
    page.get_by_role("link", name="On the overview").click()
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    page.get_by_role("region", name="Legend of Traffic").get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("signups")


def test_small_charts_choose_the_range(open_page: Open, site: Site) -> None:
    """Of a series, at all precisions."""
    page = open_page("?view=series&name=hits&range=60")
    page.get_by_role("region", name="All precisions").get_by_role("button").nth(4).click()
    expect(page).to_have_url(re.compile("range=3600"))


def test_pages_come_in_any_order(open_page: Open, site: Site) -> None:
    """By the buttons above the table, or its heads; the head says which."""
    page = open_page("?view=routes&range=86400")
    for name, order in (("Slowest", "p95"), ("Error rate", "failing"), ("Most time", "total")):
        page.get_by_role("group", name="Order").get_by_role("button", name=name).click()
        expect(page).to_have_url(re.compile(f"order={order}"))
        expect(page.get_by_role("heading", name=name, level=2)).to_be_visible()
        expect(page.locator("th[aria-sort=descending]")).to_have_count(1)
        page.get_by_role("button", name="Requests", exact=True).click()
        expect(page).not_to_have_url(re.compile("order="))


def test_a_route_has_a_page_that_leads_to_its_metrics(open_page: Open, site: Site) -> None:
    """A click anywhere in its row opens it: requests by class of status, and response times."""
    page = open_page("?view=routes&range=86400")
    table = page.get_by_role("region", name="Table: Routes")
    row = table.get_by_role("row").filter(has_text="ms").first
    name = row.get_by_role("link").inner_text()
    row.get_by_role("cell").nth(1).click()
    expect(page).to_have_url(re.compile("view=route&name="))
    expect(page.get_by_role("heading", level=1)).to_contain_text(name)
    expect(page.get_by_role("checkbox", name="2xx", exact=True)).to_be_checked()
    expect(page.get_by_role("checkbox", name="p95", exact=True)).to_be_checked()
    page.get_by_role("link", name="Metrics of this route").click()
    expect(page.get_by_role("link", name=re.compile("^http_requests")).first).to_be_visible()


def test_logged_errors_lead_to_errors_and_critical_messages(open_page: Open, site: Site) -> None:
    """The tile counts both severities, so its link lists both."""
    page = open_page("")
    page.get_by_role("link", name=re.compile("^Errors logged, last 60 min")).click()
    expect(page.get_by_label("Severity")).to_have_value("critical,error")
    expect(
        page.get_by_role("region", name="Recent").get_by_text("payment 17 refused")
    ).to_be_visible()
    expect(page.get_by_text("stock is low")).to_have_count(0)


def test_messages_can_be_narrowed_down(open_page: Open, site: Site) -> None:
    """To a logger, and to a severity."""
    page = open_page("?view=messages")
    recent = page.get_by_role("region", name="Recent")
    expect(recent.get_by_text("stock is low")).to_be_visible()
    page.get_by_label("Severity").select_option("error")
    expect(page.get_by_text("stock is low")).to_have_count(0)
    expect(recent.get_by_text("payment 17 refused")).to_be_visible()
    expect(page).to_have_url(re.compile("severity=error"))
    page.get_by_label("Logger").select_option("shop")
    expect(page).to_have_url(re.compile("logger=shop"))
    page.get_by_text("Latest example").click()
    expect(page.get_by_role("region", name="Frequent").get_by_text("17")).to_be_visible()


def test_counters_are_filtered_while_one_types(open_page: Open, site: Site) -> None:
    """And lead to their pages."""
    page = open_page("?view=metrics&range=86400")
    box = page.get_by_role("searchbox", name="Filter by name")
    box.fill("signups")
    link = page.get_by_role("link", name=re.compile("signups")).first
    expect(link).to_be_visible()
    expect(page.get_by_role("link", name="hits", exact=True)).to_have_count(0)
    counters = page.get_by_role("region", name="Counters", exact=True)
    expect(counters).to_contain_text("1 to 1 of 1")
    expect(counters.locator("tbody tr")).to_contain_text("2 label sets")
    box.fill("no such name")
    expect(page.get_by_text("No counters match")).to_be_visible()
    box.fill("sign*")
    link.click()
    expect(page).to_have_url(re.compile("view=series"))


def test_gauges_and_observed_values_are_listed_too(open_page: Open, site: Site) -> None:
    """By a button; in each order."""
    page = open_page("?view=metrics&range=60")
    for kind, name in (("Gauges", "queue_depth"), ("Histograms", "http_request_seconds")):
        page.get_by_role("button", name=kind).click()
        expect(page).to_have_url(re.compile(rf"kind={kind.lower()[:-1]}\b"))
        expect(page.get_by_role("link", name=re.compile(f"^{name}"))).to_be_visible()
        for order in ("Count", "Change"):
            page.get_by_role("group", name="Order").get_by_role("button", name=order).click()
            expect(page).to_have_url(re.compile(f"order={order.lower()}"))
        expect(page.get_by_role("link", name=re.compile(f"^{name}"))).to_be_visible()


def test_times_are_local_or_utc(open_page: Open, site: Site) -> None:
    """By a button; the address says which."""
    page = ready(open_page("?range=60", timezone_id="Asia/Tokyo"))
    shown = page.locator(".as-of").inner_text()
    page.get_by_role("button", name=re.compile("Times are local")).click()
    expect(page.get_by_role("button", name=re.compile("Times are UTC"))).to_be_visible()
    assert page.locator(".as-of").inner_text()[:2] != shown[:2]
    expect(page).to_have_url(re.compile("clock=utc"))


def test_a_zoomed_window_is_explained_in_one_click(open_page: Open, site: Site) -> None:
    """What changed, by the labels of requests; Escape closes it, and the measure can be changed."""
    page = open_page("?range=60")
    ready(page)
    now = int(page.evaluate("Date.now() / 1000"))
    page.goto(f"{site.url}?range=60&since={now - 900}&until={now}")
    page.get_by_role("button", name="Explain").click()
    panel = page.get_by_role("region", name="What changed here")
    expect(panel).to_be_visible()
    expect(panel.locator(".verdict-line")).not_to_be_empty()
    panel.get_by_role("button", name="Error rate").click()
    expect(page).to_have_url(re.compile("explain=error"))
    expect(panel.locator(".verdict-line")).not_to_be_empty()
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
