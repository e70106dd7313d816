"""Answers of the overview: whether all is as usual."""

import json
import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, Route, expect

from browser.conftest import Open, Site, ready

_AXE = Path(__file__).parents[2] / "frontend/node_modules/axe-core/axe.min.js"
HOSTILE = "<img src=x onerror=window.hacked=1>"


def check_accessible(page: Page) -> None:
    """Both themes pass all rules of axe, and nothing is wider than a phone."""
    page.evaluate(_AXE.read_text())
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        found: Any = page.evaluate("axe.run()")
        assert [(theme, one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img").count() == 0


def answer_with(page: Page, endpoint: str, **fields: object) -> None:
    """Replace fields of an endpoint's response, for states that take hours to arise."""

    def handle(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, body=json.dumps(response.json() | fields))

    page.route(re.compile(rf"/api/{endpoint}(\?|$)"), handle)


def test_the_status_of_a_store_is_one_sentence(open_page: Open, site: Site) -> None:
    """On the overview, of what the store has."""
    page = ready(open_page("?range=60"))
    status = page.get_by_role("region", name="Status")
    expect(status).to_contain_text(re.compile("as expected|usually|Not enough data"))


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
    expect(status).to_have_text(f"Error rate 7.7 % on {HOSTILE} since v1.4.2.")
    check_accessible(ready(page))
    status.get_by_role("button", name="v1.4.2").click()
    expect(page).to_have_url(re.compile("mark="))
    status.get_by_role("link", name=HOSTILE).click()
    expect(page).to_have_url(re.compile("view=route"))
    page.go_back()
    status.get_by_role("link", name="Error rate").click()
    expect(page).to_have_url(re.compile(f"since={until - 600:.0f}&until={until:.0f}&explain=error"))
    expect(page.get_by_role("region", name="What changed here")).to_be_visible()
