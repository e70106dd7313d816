"""Very many series: what the lists of the page are made from, and what they say about it."""

import re
import time

import pytest
from playwright.sync_api import expect

from browser.conftest import Homes, Open, Site, ready, serve
from redmeter import Meter

#: More than an answer reads; the last one by name is the busiest.
OTHERS = 1_600


@pytest.fixture(scope="module")
def many(homes: Homes) -> Site:
    """A store of very many counters."""
    site = serve(homes("many"))
    with Meter(f"embedded://{site.home.data}") as meter:
        for number in range(OTHERS):
            meter.count(f"aaa_{number:04}")
        meter.count("zzz_orders", 500_000)
    return site


def test_the_overview_shows_the_busiest_of_all_counters(open_page: Open, many: Site) -> None:
    """First, and with the age of the ranking."""
    page = ready(open_page("?range=1", of=many))
    panel = page.get_by_role("region", name="Counters", exact=True)
    expect(panel.locator("tbody tr").first).to_contain_text("zzz_orders")
    expect(panel).to_contain_text(
        re.compile(r"the busiest 12 of 1,601, ranked (\d+ s ago|now) from 1,601 series")
    )


def test_a_list_by_count_has_all_counters(open_page: Open, many: Site) -> None:
    """As far as a ranking keeps them; a list by name goes on to the end."""
    page = ready(open_page("?view=metrics&order=count&range=1", of=many, width=390))
    panel = page.get_by_role("region", name="Counters", exact=True)
    expect(panel.locator("tbody tr").first).to_contain_text("zzz_orders")
    expect(panel).to_contain_text(re.compile("1 to 50 of 1,601, ranked .* from 1,601 series"))
    page.get_by_role("group", name="Order").get_by_role("button", name="Name").click()
    expect(panel.locator("tbody tr").first).to_contain_text("aaa_0000")
    expect(panel).not_to_contain_text("ranked")


def test_a_list_of_very_many_is_gone_through_and_each_is_found(open_page: Open, many: Site) -> None:
    """It shows some, and says how many there are."""
    page = ready(open_page("?view=metrics&range=60", of=many))
    card = page.get_by_role("region", name="Counters", exact=True)
    expect(card).to_contain_text("1 to 50 of 1,601")
    assert page.get_by_role("row").count() < 100
    card.get_by_role("button", name="Next").first.click()
    expect(card).to_contain_text("51 to 100 of 1,601")
    expect(page.get_by_role("link", name="aaa_0050")).to_be_visible()
    page.go_back()
    expect(card).to_contain_text("1 to 50 of 1,601")
    page.get_by_role("searchbox").fill("aaa_0777")
    expect(card).to_contain_text("1 to 1 of 1")
    expect(page.get_by_role("link", name="aaa_0777")).to_be_visible()


@pytest.fixture(scope="module")
def labeled(homes: Homes) -> Site:
    """A store of two names with very many label sets, and a counter behind them."""
    site = serve(homes("labeled"))
    with Meter(f"embedded://{site.home.data}", max_label_sets=2_000) as meter:
        for number in range(OTHERS):
            meter.count("carts", 2, labels={"tenant": f"t{number:04}"})
            meter.gauge("load", labels={"tenant": f"t{number:04}"}).set(number)
        meter.count("zzz_orders", 7)
    return site


def test_metrics_of_very_many_label_sets_are_grouped_by_name(
    open_page: Open, labeled: Site
) -> None:
    """With the sum of all; a label set that is searched for has a row of its own."""
    page = ready(open_page("?view=metrics&range=60", of=labeled))
    card = page.get_by_role("region", name="Counters", exact=True)
    expect(card).to_contain_text(re.compile("1 to 2 of 2, ranked .* from 1,601 series"))
    row = card.get_by_role("row").filter(has_text="carts")
    expect(row).to_contain_text("1,600 label sets")
    expect(row).to_contain_text("3,200")
    expect(card.get_by_role("link", name="zzz_orders")).to_be_visible()
    page.get_by_role("searchbox").fill("t0777")
    expect(card.get_by_role("link", name='carts{tenant="t0777"}')).to_be_visible()
    page.goto(f"{labeled.url}?view=metrics&range=60&kind=gauge")
    gauges = page.get_by_role("region", name="Gauges", exact=True)
    expect(gauges.locator("tbody tr")).to_have_count(1)
    expect(gauges.locator("tbody tr")).to_contain_text("1,600 label sets")


@pytest.fixture(scope="module")
def timed(homes: Homes) -> Site:
    """A store of histograms, one of which became slower."""
    site, now = serve(homes("timed")), time.time()
    with Meter(f"embedded://{site.home.data}") as meter:
        for ago, took in ((3 * 3600, 0.1), (3 * 3600 + 60, 0.1), (90 * 60, 0.2), (5, 0.4)):
            for _ in range(20):
                meter.observe("checkout_seconds", took, at=now - ago)
                meter.observe("cart_bytes", 2_000, at=now - ago)
    return site


@pytest.mark.parametrize("width", [1280, 390])
def test_histograms_show_their_p95_and_its_change(open_page: Open, timed: Site, width: int) -> None:
    """Not their counts; ordered by change, the list names what it is ordered by."""
    query = "?view=metrics&kind=histogram&order=change&range=60"
    page = open_page(query, of=timed, width=width)
    panel = ready(page).get_by_role("region", name="Histograms", exact=True)
    row = panel.get_by_role("row").filter(has_text="checkout_seconds")
    expect(row).to_contain_text(re.compile("(39|40)[0-9]? ms"))
    expect(row).to_contain_text(re.compile(r"\+(29|30|31)\d %"))
    expect(panel.get_by_role("columnheader", name="Change of p95")).to_be_attached()
    expect(panel).to_contain_text("ordered by the change of the mean")
    page.get_by_role("group", name="Order").get_by_role("button", name="Count").click()
    expect(panel).not_to_contain_text("ordered by")
