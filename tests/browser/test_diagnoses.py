"""Answers of the overview: whether all is as usual, and whether a deploy made it worse."""

import json
import re
import time

import pytest
from playwright.sync_api import Page, Route, expect

from browser.conftest import Homes, Open, Site, check_rules, ready, serve
from redmeter import Meter
from support.deploys import record_deploy

HOSTILE = "<img src=x onerror=window.hacked=1>"


def check_accessible(page: Page) -> None:
    """Both themes pass all rules of axe, and nothing is wider than a phone."""
    check_rules(page)
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img").count() == 0


def answer_with(page: Page, endpoint: str, **fields: object) -> None:
    """Replace fields of an endpoint's response, for states that take hours to arise."""

    def handle(route: Route) -> None:
        # Unconditional: a 304 has no fields.
        headers = {k: v for k, v in route.request.headers.items() if k != "if-none-match"}
        response = route.fetch(headers=headers)
        route.fulfill(response=response, body=json.dumps(response.json() | fields))

    page.route(re.compile(rf"/api/{endpoint}(\?|$)"), handle)


def test_the_status_of_a_store_is_one_sentence(open_page: Open, site: Site) -> None:
    """On the overview, of what the store has."""
    page = ready(open_page("?range=60"))
    status = page.get_by_role("region", name="Status")
    expect(status).to_contain_text(
        re.compile(r"Now, \d\d:\d\d: .*(as expected|usually|not judged|Not enough data)")
    )


def test_nouns_of_the_status_are_links(open_page: Open, site: Site) -> None:
    """To the explanation of a metric, the page of a route, and the mark; all texts are inert."""
    page = ready(open_page("?range=60"))
    now = page.request.get(f"{site.url}api/status").json()["now"]
    until = now // 60 * 60
    empty = {"name": None, "label": None, "value": None, "time": None}
    parts: list[dict[str, object]] = [
        {"kind": "metric", "text": "Error rate", "name": "hits_failed"},
        {"kind": "text", "text": " 7.7 % on "},
        {"kind": "group", "text": HOSTILE, "label": "route", "value": HOSTILE},
        {"kind": "text", "text": " since "},
        {"kind": "mark", "text": "v1.4.2", "time": now - 60.5},
        {"kind": "text", "text": "."},
    ]
    check = {"name": "hits_failed", "began": until - 600}
    check["explain"] = {"name": "http_requests", "failing": ["status=5xx"]}
    answer_with(
        page,
        "status",
        state="unusual",
        since=until - 300,
        until=until,
        parts=[empty | part for part in parts],
        checks=[check],
    )
    page.reload()
    status = page.get_by_role("region", name="Status")
    expect(status).to_contain_text(f"Error rate 7.7 % on {HOSTILE} since v1.4.2.")
    check_accessible(ready(page))
    status.get_by_role("button", name="v1.4.2").click()
    expect(page).to_have_url(re.compile("mark="))
    status.get_by_role("link", name=HOSTILE).click()
    expect(page).to_have_url(re.compile("view=route"))
    page.go_back()
    status.get_by_role("link", name="Error rate").click()
    expect(page).to_have_url(re.compile(f"since={until - 600:.0f}&until={until:.0f}&explain=error"))
    expect(page.get_by_role("region", name="What changed here")).to_be_visible()


@pytest.fixture(scope="module")
def deployed(homes: Homes) -> Site:
    """A store with a deploy 17 minutes ago that made a route with a hostile name worse."""
    site = serve(homes("deployed"))
    with Meter(f"embedded://{site.home.data}") as meter:
        minutes = range(-61, 18)
        record_deploy(
            meter, time.time() - 1020, routes=("/", HOSTILE), worse=HOSTILE, minutes=minutes
        )
        meter.mark(HOSTILE, at=time.time() - 3 * 86_400)
        assert meter.flush(30)
    return site


def test_a_mark_opens_the_verdict_on_its_deploy(open_page: Open, deployed: Site) -> None:
    """Overall and by route, with the tests; Escape closes it; it can be compared with last week."""
    page = ready(open_page("?range=60", of=deployed))
    page.get_by_role("region", name="Traffic").get_by_role("button", name=re.compile("^v2 ")).press(
        "Enter"
    )
    card = page.get_by_role("region", name="Deploy verdict", exact=True)
    expect(card.locator(".verdict-line .pill")).to_have_text("worse")
    expect(card).to_contain_text("v2, ")
    row = card.get_by_role("row", name=HOSTILE)
    expect(row).to_contain_text("worse")
    expect(card.get_by_role("row").nth(3)).not_to_contain_text("worse")
    expect(card.get_by_role("row", name="All requests")).to_be_visible()
    card.get_by_text("share an error budget").click()
    expect(card.get_by_text(f"{HOSTILE}, p95: worse")).to_be_visible()
    check_accessible(ready(page))
    card.get_by_role("button", name="Last week").click()
    expect(page).to_have_url(re.compile("against=last-week"))
    expect(card.locator(".verdict-line .pill")).to_have_text("too little data")
    page.keyboard.press("Escape")
    expect(card).to_have_count(0)
    expect(page).not_to_have_url(re.compile("mark="))


def test_a_watched_deploy_and_a_changed_mix_are_shown(open_page: Open, deployed: Site) -> None:
    """With the hours that show the noise, and the effect of the mix; all texts are inert."""
    page = ready(open_page("?range=60", of=deployed))
    until = int(time.time()) // 300 * 300
    mix = {"verdict": "worse", "reason": f"p95 of {HOSTILE}: 430 ms → 511 ms, +80 ms by the mix"}
    reason = "worse so far: error rate of /cart: 1 % → 15 %"
    noise = {"since": until - 7 * 3600, "until": until}
    answer_with(page, "verdict", verdict="watching", reason=reason, mix=mix, noise=noise)
    page.goto(f"{deployed.url}?range=60&mark={int(time.time()) - 1020}")
    card = page.get_by_role("region", name="Deploy verdict", exact=True)
    expect(card.locator(".verdict-line .pill")).to_have_text("watching")
    expect(card).to_contain_text(reason)
    expect(card).to_contain_text("The noise of error rates is that of 7 h of 5-minute sums before.")
    expect(card).to_contain_text(f"Mix of routes: {mix['reason']}")
    check_accessible(ready(page))


def test_a_verdict_whose_baseline_is_not_kept_says_so(open_page: Open, deployed: Site) -> None:
    """With how far back the store reaches, and the command that keeps more."""
    mark = int(time.time()) - 8_000
    page = ready(open_page(f"?range=60&mark={mark}", of=deployed))
    card = page.get_by_role("region", name="Deploy verdict", exact=True)
    expect(card.locator(".verdict-line .pill")).to_have_text("not kept")
    expect(card).to_contain_text("reach back to")
    expect(card).to_contain_text("redmeter retention")


def test_an_explanation_lists_exceptions(open_page: Open, site: Site) -> None:
    """With a link to the page of each; texts are inert."""
    page = ready(open_page("?range=60"))
    now = int(page.evaluate("Date.now() / 1000"))
    change: dict[str, object] = {
        "id": "0123456789abcdef",
        "type": "shop.Refused",
        "message": HOSTILE,
        "place": "a.py",
    }
    change |= {"kind": "more", "before": 2.4, "count": 30, "first": now - 90, "last": now}
    exceptions = {"groups": [change], "precision": 300, "reason": ""}
    answer_with(page, "explain", exceptions=exceptions, state="compared", dimensions=[])
    page.goto(f"{site.url}?range=60&since={now - 900}&until={now}&explain=hits")
    listed = page.get_by_role("region", name="What changed here").get_by_role(
        "region", name="Exceptions"
    )
    expect(listed).to_contain_text("Exceptions, by 5 min")
    expect(listed.get_by_role("listitem")).to_contain_text(["2 → 30"])
    check_accessible(ready(page))
    listed.get_by_role("link", name="Refused").click()
    expect(page).to_have_url(re.compile("view=exception&name=0123456789abcdef"))


def test_the_label_of_a_mark_is_clicked_in_the_chart(open_page: Open, deployed: Site) -> None:
    """Labels are in a lane above the plot."""
    page = ready(open_page("?range=60", of=deployed))
    chart = page.get_by_role("group", name=re.compile("^Traffic: ")).first
    plot = chart.locator(".u-over").bounding_box()
    assert plot is not None
    for x in range(int(plot["x"] + plot["width"]), int(plot["x"]), -10):
        page.mouse.click(x, plot["y"] - 10)
        if "mark=" in page.url:
            break
    expect(page.get_by_role("region", name="Deploy verdict", exact=True)).to_contain_text("v2, ")


@pytest.fixture(scope="module")
def broken(homes: Homes) -> Site:
    """A store whose small route fails and whose task fails, since a deploy 15 minutes ago."""
    site = serve(homes("broken"))
    start = int(time.time()) // 60 * 60
    with Meter(f"embedded://{site.home.data}") as meter:
        for ago in range(110, -1, -1):
            at = start - 60 * ago
            for route, events, failures in (
                ("/", 100, 1),
                ("/pay", 10, 6 if ago <= 15 else 0),
            ):
                labels = {"method": "GET", "route": route}
                for status, number in (("2xx", events - failures), ("5xx", failures)):
                    if number:
                        meter.count(
                            "http_requests", number, labels=labels | {"status": status}, at=at
                        )
            meter.count("hits", 110, at=at)
            meter.count("hits_failed", 7 if ago <= 15 else 1, at=at)
            failed = 6 if ago <= 15 else 0
            for state, number in (("success", 10 - failed), ("failure", failed)):
                if number:
                    meter.count("task_runs", number, labels={"task": "mail", "state": state}, at=at)
        meter.mark("shop 2.4", at=start - 60 * 15)
        assert meter.flush(30)
    return site


def test_an_incident_is_on_top_of_the_page_and_its_parts_are_a_click_away(
    open_page: Open, broken: Site
) -> None:
    """The line, the tile and the first rows name the same; a range before it has its own answer."""
    page = ready(open_page(of=broken))
    status = page.get_by_role("region", name="Status")
    expect(status).to_contain_text(re.compile(r"Now, \d\d:\d\d: "))
    expect(status.get_by_role("link", name="/pay", exact=True).first).to_be_visible()
    expect(status.get_by_role("link", name="mail", exact=True)).to_be_visible()
    expect(status.locator(".dot.fail")).to_have_count(1)
    tile = page.get_by_role("list", name="Key figures").get_by_role("listitem").nth(1)
    expect(tile.locator(".tile-value")).to_have_text("6.4 %")
    expect(tile.locator(".pill.bad")).to_contain_text("usually 0.91 %")
    routes = page.get_by_role("region", name="Routes and tasks", exact=True).get_by_role("table")
    for route, red in (("/", 0), ("/pay", 1)):
        row = routes.get_by_role("row").filter(has=page.get_by_role("link", name=route, exact=True))
        expect(row.locator(".share.bad")).to_have_count(red)
    rows = page.get_by_role("list", name="What stands out").get_by_role("listitem")
    expect(rows.first).to_contain_text(re.compile(r"/pay.*error rate 60 % \(usually 0 %\)"))
    expect(rows.nth(1)).to_contain_text(re.compile(r"mail.*failures 60 %"))
    check_accessible(page)
    rows.nth(1).get_by_role("link").click()
    figures = page.get_by_role("list", name="Key figures").get_by_role("listitem")
    expect(figures.nth(1)).to_contain_text("60 %")
    expect(figures.nth(1)).to_contain_text("last 5 min")

    # A quiet range between edges: whole minutes, no cause, and the line is still of now.
    quiet = int(time.time()) - 3600
    page.goto(f"{broken.url}?since={quiet - 601}&until={quiet}")
    ready(page)
    expect(page.get_by_role("region", name="This range")).to_contain_text("nothing stands out")
    expect(status).to_have_class(re.compile("small"))
    expect(status.get_by_role("link", name="/pay", exact=True).first).to_be_visible()
    expect(page.get_by_role("list", name="What stands out")).to_have_count(0)
    since, until = (int(at) for at in re.findall(r"since=(\d+)&until=(\d+)", page.url)[0])
    assert (since % 60, until % 60) == (0, 0)
    minutes = (until - since) // 60
    expect(page.get_by_role("row", name=re.compile(f"^hits {110 * minutes:,}"))).to_be_visible()
    expect(page.get_by_role("row", name="/pay")).to_contain_text(f"{10 * minutes}")
    page.get_by_role("button", name="Explain", exact=True).click()
    expect(page.get_by_role("region", name="What changed here")).to_be_visible()
    expect(page.get_by_label("Compare with")).to_be_visible()


def test_a_store_of_tasks_alone_has_tiles_of_tasks(open_page: Open, homes: Homes) -> None:
    """The one that fails now is red, with its own usual value; no panel misses requests."""
    site = serve(homes("tasks"))
    start = int(time.time()) // 60 * 60
    with Meter(f"embedded://{site.home.data}") as meter:
        for ago in range(110, -1, -1):
            for task, failed in (("mail", 6 if ago <= 15 else 0), ("report", 0)):
                for state, number in (("success", 10 - failed), ("failure", failed)):
                    labels = {"task": task, "state": state}
                    meter.count("task_runs", number, labels=labels, at=start - 60 * ago)
                seconds = 4.0 if task == "report" else 0.1
                meter.observe("task_seconds", seconds, labels={"task": task}, at=start - 60 * ago)
        assert meter.flush(30)
    page = ready(open_page(of=site))
    tiles = page.get_by_role("list", name="Key figures").get_by_role("listitem")
    for number, (title, figure) in enumerate(
        (("Runs of tasks", "100"), ("Failed runs", "60 %"), ("Slowest task, p95", "4 s"))
    ):
        expect(tiles.nth(number)).to_contain_text(title)
        expect(tiles.nth(number).locator(".tile-value")).to_have_text(re.compile(figure[:2]))
        expect(tiles.nth(number)).to_contain_text("last 5 min")
    expect(tiles.nth(1).locator(".pill.bad")).to_contain_text("usually 0 %")
    expect(tiles.nth(1)).to_contain_text("mail")
    expect(tiles.nth(2)).to_contain_text("report")
    jobs = page.get_by_role("region", name="Jobs", exact=True)
    expect(jobs.get_by_role("listitem").first).to_contain_text("mail")
    expect(page.locator("main")).not_to_contain_text("No requests")
    jobs.get_by_role("link", name="mail").first.click()
    expect(page.locator("main .bad-text").first).to_contain_text("60 % (usually 0 %)")


def test_the_slowest_route_is_that_of_now(open_page: Open, homes: Homes) -> None:
    """Beneath it, that of the range, where it is another one; both with their figures."""
    site = serve(homes("slowest"))
    start = int(time.time()) // 60 * 60
    with Meter(f"embedded://{site.home.data}") as meter:
        for ago in range(70, -1, -1):
            for route, seconds in (("/was", 2.0 if ago > 20 else 0.1), ("/is", 0.5)):
                labels = {"method": "GET", "route": route}
                for _ in range(5):
                    meter.observe(
                        "http_request_seconds", seconds, labels=labels, at=start - 60 * ago
                    )
                    meter.observe("hits_seconds", seconds, at=start - 60 * ago)
                meter.count(
                    "http_requests", 5, labels=labels | {"status": "2xx"}, at=start - 60 * ago
                )
                meter.count("hits", 5, at=start - 60 * ago)
        assert meter.flush(30)
    page = ready(open_page(of=site))
    tile = page.get_by_role("list", name="Key figures").get_by_role("listitem").nth(3)
    expect(tile).to_contain_text("Slowest route, p95")
    expect(tile.locator(".tile-value")).to_have_text(re.compile(r"^(4[89]\d|5\d\d) ms$"))
    expect(tile.locator(".tile-note").last).to_have_text("/is")
    expect(tile).to_contain_text(re.compile(r"(1\.9\d*|2\.?\d*) s in the last 2 h"))
    expect(tile).to_contain_text("of /was")
