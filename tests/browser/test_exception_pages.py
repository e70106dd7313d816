"""Exceptions on the page: the list, one group, and those of a route."""

import re

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import Homes, Open, Site, ready, serve
from browser.test_diagnoses import check_accessible

HOSTILE = "<img src=x onerror=window.hacked=1>"


class PaymentRefused(Exception):
    """An exception of an application."""


@pytest.fixture(scope="module")
def failing(homes: Homes) -> Site:
    """A store with exceptions of two places, on a route with requests."""
    site = serve(homes("failing"))
    with site.meter() as meter:
        meter.count("http_requests", 9, labels={"method": "GET", "route": "/buy", "status": "5xx"})
        for number in range(3):
            try:
                raise PaymentRefused(HOSTILE)
            except PaymentRefused as error:
                meter.record_exception(error, route="/buy" if number else HOSTILE)
        meter.record_exception(KeyError("colour"), route="/buy")
    return site


def test_a_link_of_an_alert_shows_the_groups_of_its_type(open_page: Open, failing: Site) -> None:
    """As a search for the type, which can be changed."""
    page = ready(open_page("?view=exceptions&filter=KeyError&order=first", of=failing))
    card = page.get_by_role("region", name="Exceptions", exact=True)
    expect(card).to_contain_text("4 in 2 groups, 1 match, 2 new, since ")
    expect(card.locator("tbody tr")).to_have_count(1)
    expect(card.get_by_role("link", name="KeyError")).to_be_visible()
    page.get_by_role("searchbox").fill("nothing such")
    expect(card).to_contain_text("No listed exceptions match")


def open_list(page: Page) -> None:
    """Follow the link to the exceptions."""
    ready(page).get_by_role("link", name="Exceptions", exact=True).click()
    expect(page.get_by_role("heading", name="Exceptions", level=1)).to_be_visible()


def test_exceptions_lead_to_their_traceback_and_routes(open_page: Open, failing: Site) -> None:
    """The most frequent first; each new within the time shown; texts are inert."""
    page = open_page("?range=60", of=failing)
    open_list(page)
    card = page.get_by_role("region", name="Exceptions", exact=True)
    expect(card).to_contain_text("4 in 2 groups, 2 new, since ")
    first = card.get_by_role("row").nth(1)
    expect(first).to_contain_text("new")
    expect(first).to_contain_text(HOSTILE)
    check_accessible(ready(page))
    first.get_by_role("link", name="PaymentRefused").click()
    expect(page.locator(".traceback")).to_contain_text("PaymentRefused")
    expect(page.get_by_role("region", name="Occurrences")).to_contain_text("All-time total3")
    check_accessible(ready(page))
    routes = page.get_by_role("region", name="Routes and tasks")
    expect(routes.get_by_role("link", name=HOSTILE)).to_be_visible()
    expect(page.get_by_role("link", name="Error messages")).to_be_visible()
    routes.get_by_role("link", name="/buy").click()
    expect(page).to_have_url(re.compile("view=route"))
    expect(page.get_by_role("region", name="Exceptions", exact=True)).to_contain_text("KeyError")


def test_the_view_appears_with_the_first_exception(open_page: Open, site: Site) -> None:
    """A store without any has no link to it; its address is a page nevertheless."""
    page = ready(open_page("?view=health", of=site))
    expect(page.get_by_role("link", name="Exceptions", exact=True)).to_have_count(0)
    page.goto(f"{site.url}?view=exceptions")
    expect(page.get_by_text("No exceptions in this window")).to_be_visible()
    page.goto(f"{site.url}?view=exception&name=0123456789abcdef")
    expect(page.get_by_text("No such exception")).to_be_visible()
