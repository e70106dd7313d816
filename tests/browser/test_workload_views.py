"""Database and Jobs: from the bar to a statement's chart and to a task's page; and both empty."""

from playwright.sync_api import expect

from browser.conftest import Homes, Open, Site, ready, serve


def test_statements_and_tasks_lead_to_their_charts(open_page: Open, homes: Homes) -> None:
    """Without data neither is in the bar, and the views show the code that records it."""
    site: Site = serve(homes("workloads"))
    # The empty answers are of another range: the server keeps an answer for some seconds.
    page = ready(open_page("?view=database&range=300", of=site))
    expect(page.get_by_role("link", name="Jobs", exact=True)).to_have_count(0)
    expect(page.locator("main")).to_contain_text("redmeter.integrations.sqlalchemy")
    page.goto(f"{site.url}?view=jobs&range=300")
    expect(page.locator("main")).to_contain_text("redmeter.integrations.celery")
    with site.meter() as meter:
        meter.observe("db_query_seconds", 0.2, labels={"statement": "SELECT orders"})
        meter.count("db_queries", labels={"task": "shop.send", "statement": "SELECT orders"})
        meter.count("task_runs", labels={"task": "shop.send", "state": "failure"})
        meter.observe("task_seconds", 0.3, labels={"task": "shop.send"})
        meter.log("shop", "shop.send has no address", severity="error")
    page.goto(f"{site.url}?view=database")
    row = page.get_by_role("row").filter(has_text="SELECT orders")
    expect(row).to_contain_text("shop.send")
    row.get_by_role("link", name="shop.send").click()
    expect(page.get_by_role("heading", name="shop.send", level=1)).to_be_visible()
    expect(page.get_by_role("region", name="Database statements")).to_contain_text("SELECT orders")
    expect(page.get_by_role("region", name="Messages")).to_contain_text("has no address")
    page.get_by_role("link", name="SELECT orders").click()
    expect(page.get_by_role("region", name="Percentiles", exact=True)).to_be_visible()
    page.goto(f"{site.url}?view=jobs")
    expect(page.get_by_role("row").filter(has_text="shop.send")).to_contain_text("failure 1")
    page.set_viewport_size({"width": 390, "height": 800})
    for view, rates in (("jobs", ("Failed", "p95")), ("database", ("Errors", "p95"))):
        page.goto(f"{site.url}?view={view}")
        table = page.locator("table").first
        expect(table.locator("tbody tr")).to_have_count(1)
        head, row = table.locator("thead tr"), table.locator("tbody tr").first
        above, below = head.bounding_box(), row.bounding_box()
        assert above
        assert below
        assert above["y"] + above["height"] <= below["y"] + 1
        for title in rates:
            box = head.get_by_text(title, exact=True).bounding_box()
            assert box is not None
            assert 0 <= box["x"] < box["x"] + box["width"] <= 390, title
            assert above["y"] <= box["y"] < box["y"] + box["height"] <= above["y"] + above["height"]
        bottoms = head.evaluate(
            "e => [...e.querySelectorAll('th > *')].map(t => t.getBoundingClientRect().bottom)"
        )
        assert max(bottoms) <= above["y"] + above["height"] + 1
        assert page.evaluate("document.querySelector('.scroll').scrollWidth") <= 390


def test_messages_of_a_window_have_a_link(open_page: Open, site: Site) -> None:
    """It shows that time and nothing else, and reports it where nothing is kept."""
    page = ready(open_page("?view=messages&since=1700000000&until=1700000600"))
    expect(page.get_by_role("region", name="First seen in this window")).to_be_visible()
    expect(page.locator("main")).to_contain_text("No messages in this window")
    page.get_by_role("button", name="Now").click()
    expect(page.get_by_role("region", name="What changed")).to_be_visible()
