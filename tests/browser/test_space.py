"""Wide screens are filled, text has the room that numbers leave, and no word is broken."""

from typing import Any

import pytest
from playwright.sync_api import expect

from browser.conftest import Homes, Open, Site, ready, serve

VIEWS = ("overview", "routes", "database", "jobs", "exceptions", "health", "metrics&kind=all")
ROUTES = ("/", "/products/{id}", "/orders/{order_id}/invoices")

#: Words of table cells and legends that have parts in several lines.
BROKEN = """() => {
    const broken = [];
    for (const cell of document.querySelectorAll("th, td, figcaption, .messages .pattern")) {
        const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
        for (let node = walker.nextNode(); node; node = walker.nextNode())
            for (const word of node.data.matchAll(/[\\w.]+/g)) {
                const range = document.createRange();
                range.setStart(node, word.index);
                range.setEnd(node, word.index + word[0].length);
                const tops = [...range.getClientRects()].map(each => Math.round(each.top));
                if (new Set(tops).size > 1) broken.push(word[0]);
            }
    }
    return broken;
}"""

#: Tables with a sparkline: the share of their width that columns have beyond their content.
UNUSED = """() => [...document.querySelectorAll("table.list:has(.spark)")].map(table => {
    const rows = [...table.rows], columns = rows[0].cells.length;
    let unused = 0;
    for (let i = 0; i < columns; i++) {
        const slack = rows.map(row => {
            const cell = row.cells[i], range = document.createRange();
            if (cell.querySelector(".spark")) return 0;
            range.selectNodeContents(cell);
            return cell.clientWidth - range.getBoundingClientRect().width;
        });
        unused += Math.min(...slack);
    }
    return [table.parentElement.ariaLabel, unused / table.clientWidth];
})"""


@pytest.fixture(scope="module")
def spacious(homes: Homes) -> Site:
    """A store with something in each view, and with names of different lengths."""
    site = serve(homes("spacious"))
    with site.meter() as meter:
        for number, route in enumerate(ROUTES):
            labels = {"method": "GET", "route": route}
            meter.count("http_requests", 50 - number, labels={**labels, "status": "2xx"})
            meter.count("hits", 50 - number)
            meter.observe("http_request_seconds", 0.02 * (1 + number), labels=labels)
            meter.observe("hits_seconds", 0.02 * (1 + number))
        for task in ("shop.confirm_order", "mail.send"):
            meter.count("task_runs", 7, labels={"task": task, "state": "success"})
            meter.observe("task_seconds", 0.3, labels={"task": task})
            statement = f"SELECT products JOIN carts WHERE {task}"
            meter.observe("db_query_seconds", 0.2, labels={"statement": statement})
            meter.record_exception(KeyError("colour"), route=task)
        meter.log("shop.confirmations", "order %d is not confirmed", 7, severity="error")
    return site


@pytest.mark.parametrize("width", [1440, 1920])
def test_a_wide_screen_is_filled_and_breaks_no_word(
    open_page: Open, spacious: Site, width: int
) -> None:
    """In each view; a sparkline shares what the numbers of its row leave."""
    page = open_page("?range=60", of=spacious, width=width)
    for view in VIEWS:
        page.goto(f"{spacious.url}?range=60&view={view}")
        ready(page)
        assert page.evaluate(BROKEN) == [], view
        main = page.locator(".view").first.bounding_box()
        assert main is not None
        assert main["width"] >= width - 64, view
        unused: Any = page.evaluate(UNUSED)
        assert all(share <= 0.3 for _, share in unused), (view, unused)


def test_tables_of_the_overview_fit_a_laptop(open_page: Open, spacious: Site) -> None:
    """None of the two columns scrolls sideways."""
    page = ready(open_page("?range=60", of=spacious, width=1280))
    expect(page.get_by_role("region", name="Routes").first).to_contain_text("Share of time")
    wide = """() => [...document.querySelectorAll(".column .scroll")]
        .filter(table => table.scrollWidth > table.clientWidth).map(table => table.ariaLabel)"""
    assert page.evaluate(wide) == []


def test_a_short_legend_is_one_row_above_its_chart(open_page: Open, spacious: Site) -> None:
    """With its last value, its maximum and its sum; the columns below the chart end together."""
    page = ready(open_page("?range=60", of=spacious, width=1440))
    traffic = page.get_by_role("region", name="Traffic", exact=True)
    legend = traffic.get_by_role("region", name="Legend of Traffic")
    row = legend.get_by_role("row").filter(has_text="hits")
    for figure in ("last", "max", "sum"):
        expect(row.locator(f"[data-title={figure}]")).to_have_count(1)
    expect(row.locator("[data-title=sum]")).to_have_text("147")
    above, chart = legend.bounding_box(), traffic.locator(".chart").first.bounding_box()
    card = traffic.bounding_box()
    assert above is not None
    assert chart is not None
    assert card is not None
    assert above["height"] < 40
    assert above["y"] + above["height"] <= chart["y"]
    assert chart["width"] >= card["width"] - 20
    ends = page.evaluate(
        """() => [...document.querySelectorAll(".column")].map(column =>
            column.lastElementChild.getBoundingClientRect().bottom)"""
    )
    assert len(ends) == 2
    assert abs(ends[0] - ends[1]) < 2


def test_a_sparkline_has_a_base_line_at_zero(open_page: Open, spacious: Site) -> None:
    """Below values above zero; it is as long as the sparkline is wide."""
    page = ready(open_page("?view=routes&range=60", of=spacious, width=1440))
    spark = page.locator(".spark").first
    expect(spark.locator("path.base")).to_have_attribute("d", "M0 22.0H120")
