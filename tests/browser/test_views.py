"""What the page shows, on each of its views."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.conftest import Homes, Open, Site, ready, serve
from support.commands import Home
from support.sentinels import Watched
from support.stores import opened_store

#: Each view with its word in the address.
VIEWS = {
    "Overview": "",
    "Routes": "routes",
    "Messages": "messages",
    "Metrics": "metrics",
    "Health": "health",
}


@pytest.mark.realdata
def test_the_overview_shows_the_figures_of_the_log(open_page: Open, site: Site) -> None:
    """As the store has them; five numbers, a chart, and a panel for each question."""
    page = open_page("?range=86400")
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    tiles = page.get_by_role("list", name="Key figures")
    expect(tiles.get_by_role("listitem")).to_have_count(5)
    expect(tiles.get_by_role("listitem").first).to_contain_text(re.compile(r"Requests per .*[1-9]"))
    with site.meter() as meter:
        hits = sum(sample.value for sample in meter.series("hits", precision=86400))
    legend = page.get_by_role("region", name="Legend of Traffic")
    named = page.get_by_text("hits", exact=True)
    expect(legend.get_by_role("row").filter(has=named)).to_contain_text(f"{hits:,}")
    counters = page.get_by_role("region", name="Counters", exact=True)
    expect(counters.get_by_role("row").filter(has=named)).to_contain_text(f"{hits:,}")
    expect(tiles.get_by_role("listitem").filter(has_text="Errors logged")).to_contain_text("1")
    for heading in ("Traffic", "Routes", "Counters", "Messages", "Health"):
        expect(page.get_by_role("heading", name=heading, exact=True, level=2)).to_be_visible()
    expect(page.get_by_role("link", name="payment %s refused")).to_be_visible()


def test_lines_of_finer_slices_are_drawn_to_their_end(open_page: Open, site: Site) -> None:
    """Histograms have precisions of their own: an hour within a day, which has only begun."""
    page = ready(open_page("?range=86400"))
    legend = page.get_by_role("region", name="Lines: p95 response time")
    row = legend.get_by_role("row").filter(has_text="p95 response time")
    expect(row).to_contain_text(re.compile(r"\d+ ms"))


def test_every_view_is_a_link_away(open_page: Open, site: Site) -> None:
    """It has a heading of its own, is in the address, and in the history."""
    page = ready(open_page())
    links = page.get_by_role("navigation").get_by_role("link")
    for view, word in VIEWS.items():
        links.filter(has_text=re.compile("Overview")).click()
        expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
        links.filter(has_text=re.compile(view)).click()
        expect(page.get_by_role("heading", name=view, level=1)).to_be_visible()
        if view != "Overview":
            expect(page).to_have_url(re.compile(f"view={word}"))
            expect(page).to_have_title(re.compile(view))
            page.go_back()
            expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
            page.go_forward()
            expect(page.get_by_role("heading", name=view, level=1)).to_be_visible()


@pytest.mark.realdata
def test_pages_are_counted_as_pages(open_page: Open, site: Site) -> None:
    """And not by their label sets, of which each has several."""
    page = ready(open_page("?view=routes&range=86400"))
    with site.meter() as meter:
        found = meter.top("http_requests", by="route", precision=86400).groups
        assert 1 < found < len(meter.names("http_requests{*"))
    about = page.get_by_role("region", name="Busiest").locator(".about")
    expect(about).to_contain_text(re.compile(rf" of {found}$"))
    page = open_page("?range=86400")
    pages = page.get_by_role("region", name="Routes", exact=True)
    expect(pages).to_contain_text(re.compile(rf"the busiest \d of {found}\D"))


def test_a_series_has_a_page_with_all_precisions_and_labels(open_page: Open, site: Site) -> None:
    """A name stands for all its label sets."""
    page = open_page("?view=series&name=signups&range=60")
    expect(page.get_by_role("heading", level=1)).to_contain_text("signups")
    expect(page.get_by_role("row", name=re.compile("^signups"))).to_contain_text("7")
    expect(page.get_by_role("region", name="All precisions").get_by_role("button")).to_have_count(7)
    expect(page.get_by_role("region", name="By plan")).to_contain_text("pro")
    sets = page.get_by_role("region", name="Label sets")
    sets.get_by_role("link", name=re.compile("free")).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text('plan="free"')
    expect(page.get_by_role("row", name=re.compile("^signups"))).to_contain_text("4")


def test_observed_values_have_percentiles(open_page: Open, site: Site) -> None:
    """Drawn as lines, and told as numbers; and how they were spread."""
    page = open_page("?view=series&name=http_request_seconds&range=60")
    legend = page.get_by_role("region", name="Legend of Percentiles")
    for name in ("p50", "p95", "p99"):
        expect(legend.get_by_role("checkbox", name=name, exact=True)).to_be_checked()
    expect(page.locator(".stats")).to_contain_text(re.compile(r"Highest\s*400 ms"))
    expect(page.get_by_role("region", name="Spread")).to_contain_text("3 values")


def test_a_gauge_shows_what_was_measured(open_page: Open, site: Site) -> None:
    """Its newest value."""
    page = open_page("?view=series&name=queue_depth&range=60")
    expect(page.get_by_role("row", name=re.compile("^queue_depth"))).to_contain_text("17")


def test_days_and_hours_are_a_table_of_their_own(open_page: Open, site: Site) -> None:
    """Of the samples of an hour each; and what is expected is told with its method."""
    page = open_page("?view=series&name=hits&range=3600")
    card = page.get_by_role("region", name="Days and hours", exact=True)
    expect(card).to_be_visible()
    expect(card).to_contain_text("days and hours of local time")
    expect(page.get_by_text("Expected", exact=True)).to_be_visible()


def test_a_deploy_is_told_beside_the_figures_of_its_time(open_page: Open, site: Site) -> None:
    """In the table behind the chart, and where the cursor is; the chart has a line."""
    page = ready(open_page("?range=60&table=traffic&series=signups"))
    table = page.get_by_role("region", name="Values of Traffic")
    expect(table.get_by_role("row").filter(has_text="v1.4.2").first).to_be_visible()


def test_health_says_what_to_do(open_page: Open, site: Site) -> None:
    """The store, its memory, what is kept."""
    page = open_page("?view=health")
    for heading in ("Findings", "Store", "Writers", "Memory", "Retention"):
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    expect(page.locator("main")).to_contain_text("Valkey")


def test_a_note_is_listed_and_colours_nothing(open_page: Open, homes: Homes) -> None:
    """Keys of others in the database: the store is healthy, and so is its dot in the bar."""
    site = serve(homes("note"))
    with site.meter() as meter, opened_store(f"embedded://{site.home.data}") as store:
        meter.count("signups")
        store.link.exchange([("SET", ":1:views.1", "x")])
    page = ready(open_page("?view=health", of=site))
    note = page.get_by_role("listitem").filter(has_text="1 key of other programs or stores")
    expect(note).to_contain_text("give Redmeter or the cache a database of its own")
    expect(note.locator(".dot.note")).to_have_text("note")
    expect(page.get_by_text("Store healthy")).to_be_visible()
    expect(page.locator(".bar .dot.ok")).to_have_count(1)
    expect(page.locator(".bar .dot")).to_have_count(1)


def test_who_reads_from_a_replica_is_told_that_it_may_be_behind(
    open_page: Open, site: Site, tmp_path: Path
) -> None:
    """Next to the store's name, and under health; who reads from the primary is not."""
    expect(ready(open_page("?range=60")).get_by_text("replica")).to_have_count(0)
    behind = "may be some moments behind"
    with Watched(replicas=1, sentinels=1) as group:
        home = Home(tmp_path, group.url)
        home.env["REDMETER_READ_FROM"] = "replica"
        try:
            page = ready(open_page("?view=health", of=serve(home)))
            store = page.get_by_role("definition").filter(has_text=behind)
            expect(store).to_have_count(1)
            expect(page.get_by_text("reads use a replica (1 online)")).to_be_visible()
            link = page.get_by_role("link", name=re.compile(f"^Store redis.sentinel.*{behind}"))
            expect(link).to_have_text(re.compile("replica$"))
            page.context.close()
        finally:
            home.close()


def test_names_that_are_asked_for_on_the_overview_are_drawn(open_page: Open, site: Site) -> None:
    """Of any kind; a name without labels stands for all its label sets."""
    page = ready(open_page("?range=60&series=signups&series=queue_depth&series=nobody"))
    legend = page.get_by_role("region", name="Legend of Traffic")
    expect(legend.get_by_role("row").filter(has_text="signups")).to_contain_text("7")
    expect(legend.get_by_role("row").filter(has_text="queue_depth")).to_contain_text("17")
    expect(legend.get_by_role("row").filter(has_text="nobody")).to_contain_text("–")


def test_a_store_of_messages_alone_has_tiles_of_them(open_page: Open, homes: Homes) -> None:
    """By severity; a store of its own, since the server keeps an empty answer for seconds."""
    messages = serve(homes("messages"))
    with messages.meter() as meter:
        meter.log("shop", "stock is low", severity="warning")
    page = open_page(of=messages)
    tile = page.get_by_role("listitem").filter(has_text="Messages, warning")
    expect(tile).to_contain_text("in the last 60 min")
    expect(page.get_by_role("heading", name="Traffic", exact=True)).to_have_count(0)


def test_a_store_of_gauges_alone_lists_them(open_page: Open, homes: Homes) -> None:
    """On the overview, by a link and in the chart; and by the name that they share."""
    gauges = serve(homes("gauges"))
    with gauges.meter() as meter:
        meter.gauge("depth", labels={"queue": "mail"}).set(17)
        meter.gauge("depth", labels={"queue": "jobs"}).set(4)
    page = open_page("?view=overview", of=gauges)
    expect(page.get_by_text("Only gauges are stored")).to_be_visible()
    expect(page.get_by_text("Nothing is counted yet")).to_have_count(0)
    tiles = page.get_by_role("list", name="Key figures")
    expect(tiles.get_by_role("listitem").first).to_contain_text(re.compile(r"depth.*steady"))
    for card in ("Traffic", "Counters", "Routes"):
        expect(page.get_by_role("heading", name=card, exact=True)).to_have_count(0)
    page.goto(f"{gauges.url}?view=series&name=depth")
    expect(page.get_by_text("This is a gauge with labels")).to_be_visible()
    expect(page.get_by_text("Nothing is stored under this name")).to_have_count(0)
    page.goto(f"{gauges.url}?series=depth")
    page.get_by_role("button", name="Show them in the chart").click()
    legend = page.get_by_role("region", name="Legend of Traffic")
    expect(legend.get_by_role("row").filter(has_text="mail")).to_contain_text("17")
    expect(legend.get_by_role("row").filter(has_text="jobs")).to_contain_text("4")


def test_an_empty_store_says_what_would_fill_it(open_page: Open, homes: Homes) -> None:
    """Every panel, with a line to copy."""
    empty = serve(homes("empty"))
    page = open_page(of=empty, permissions=["clipboard-read", "clipboard-write"])
    expect(page.get_by_role("list", name="Key figures")).to_contain_text("–")
    for panel in ("Traffic", "Routes", "Counters"):
        card = page.get_by_role("region", name=panel, exact=True)
        expect(card.get_by_role("button", name="Copy")).to_be_visible()
    page.get_by_role("region", name="Counters").get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert "Meter().count(" in page.evaluate("navigator.clipboard.readText()")
    page.goto(f"{empty.url}?view=messages")
    expect(page.get_by_text("No messages in the last two hours").first).to_be_visible()
