"""For everyone: narrow screens, both themes, the keyboard alone, and screen readers (axe)."""

import pytest
from playwright.sync_api import expect

from browser.conftest import Open, Site, check_rules, ready

VIEWS = (
    *("overview", "routes", "messages", "metrics", "health", "database", "jobs"),
    *(
        "route&name=/",
        "series&name=hits&table=values",
        "series&name=http_request_seconds",
        "series&name=nobody",
    ),
)

#: What is further to the right than the window, but for what scrolls there or is for readers alone.
OUTSIDE = """() => [...document.querySelectorAll("button, a, input, select, h1, h2")]
    .filter(e => !e.closest(".scroll, nav, .away") && e.getClientRects().length > 0)
    .filter(e => e.getBoundingClientRect().right > innerWidth + 1
              && getComputedStyle(e).position !== "absolute")
    .map(e => e.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_accessible_and_fits_a_narrow_screen(
    open_page: Open, site: Site, view: str
) -> None:
    """Contrast, names, roles and landmarks: all that axe knows of WCAG 2.2 AA and good practice.

    At 360 pixels, or 1280 at 200 %, the page does not scroll sideways; tables do. To a page,
    zoom is a window of fewer pixels, each of several of the screen's.
    """
    page = ready(open_page(f"?view={view}&range=86400"))
    check_rules(page)
    for width in (640, 360):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_timeout(100)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(OUTSIDE) == [], width


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_is_the_systems_until_it_is_chosen(
    open_page: Open, site: Site, theme: str
) -> None:
    """By a button, which goes round; what was chosen holds."""
    page = ready(open_page(color_scheme=theme))

    def ground() -> float:
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return float(sum(map(float, colour.strip("rgba()").split(",")[:3])))

    first = ground()
    assert (first > 382) == (theme == "light")
    page.get_by_role("button", name="Colours").click()
    page.get_by_role("button", name="Colours: light").wait_for()
    assert ground() > 382
    page.get_by_role("button", name="Colours").click()
    page.get_by_role("button", name="Colours: dark").wait_for()
    assert ground() < 382
    page.reload()
    ready(page)
    assert ground() < 382
    page.get_by_role("button", name="Colours").click()
    page.get_by_role("button", name="Colours: as the system").wait_for()
    assert ground() == first


def test_everything_can_be_reached_by_the_keyboard(open_page: Open, site: Site) -> None:
    """First a way past the bar; then each control in its order, and where one is can be seen."""
    page = ready(open_page("?range=86400"))
    page.keyboard.press("Tab")
    assert "Skip" in page.evaluate("document.activeElement.textContent")
    assert page.evaluate("document.activeElement.getBoundingClientRect().bottom") > 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.reload()
    ready(page)
    wanted = page.evaluate(
        """() => [...document.querySelectorAll("a, button, input, select, summary, [tabindex='0']")]
            .filter(e => !e.disabled && e.tabIndex >= 0 && e.checkVisibility()).length"""
    )
    reached = set()
    for _ in range(wanted + 5 + 6):  # the parts of the date, too
        page.keyboard.press("Tab")
        place, name, outlined = page.evaluate(
            """() => {
                const e = document.activeElement, s = getComputedStyle(e);
                const o = s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0;
                return [[...document.querySelectorAll("*")].indexOf(e),
                        e.outerHTML.slice(0, 100),
                        o || s.boxShadow !== "none" || e === document.body];
            }"""
        )
        assert outlined, name
        reached.add(place)
    # The end of the page is one more: there the browser's own controls come.
    assert len(reached) >= wanted


def test_a_chart_is_read_and_zoomed_by_the_keyboard(open_page: Open, site: Site) -> None:
    """Arrows go through the intervals, plus and minus zoom; a table has the same."""
    page = ready(open_page("?view=series&name=hits&range=60"))
    page.get_by_role("group", name="Values").focus()
    page.keyboard.press("Home")
    tip = page.locator(".tip-time")
    expect(tip).to_be_visible()
    first = tip.text_content() or ""
    page.keyboard.press("ArrowRight")
    expect(tip).not_to_have_text(first)
    page.keyboard.press("+")
    page.wait_for_url("**since=**")
    page.keyboard.press("Tab")
    expect(tip).to_have_count(0)


def test_a_range_is_chosen_by_the_keyboard(open_page: Open, site: Site) -> None:
    """What is chosen is told, not only coloured; and figures are said to who cannot see them."""
    page = ready(open_page("?range=60"))
    expect(page.get_by_role("status").filter(has_text="requests per")).to_have_count(1)
    button = page.get_by_role("group", name="Range").get_by_role("button").last
    button.focus()
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "true")


def test_who_follows_a_link_by_the_keyboard_goes_on_there(open_page: Open, site: Site) -> None:
    """Not at the top of the page again."""
    page = ready(open_page("?range=86400"))
    page.get_by_role("link", name="All routes").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Routes", level=1)).to_be_focused()


def test_who_wants_no_motion_gets_none(open_page: Open, site: Site) -> None:
    """Whatever moves by itself stands still."""
    page = ready(open_page(reduced_motion="reduce"))
    moving = page.evaluate(
        """() => document.getAnimations().filter(a => a.playState === "running"
            && a.effect.getComputedTiming().duration > 1).length"""
    )
    assert moving == 0
