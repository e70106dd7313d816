"""For everyone: narrow screens, both themes, the keyboard alone, and screen readers (axe)."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import Open, Site

VIEWS = ("overview", "pages", "messages", "counters", "health", "series&name=hits")
_AXE = Path(__file__).parents[2] / "frontend/node_modules/axe-core/axe.min.js"


def ready(page: Page) -> Page:
    """Wait until figures are there."""
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator(".waiting")).to_have_count(0)
    return page


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_no_rule_of_accessibility_is_broken(
    open_page: Open, site: Site, view: str, theme: str
) -> None:
    """Contrast, names, roles and landmarks: all that axe knows of WCAG 2.2 AA and good practice."""
    page = ready(open_page(f"?view={view}&range=86400", color_scheme=theme))
    page.evaluate(_AXE.read_text())
    found: Any = page.evaluate("axe.run()")
    broken = [
        (rule["id"], [node["html"][:200] for node in rule["nodes"]]) for rule in found["violations"]
    ]
    assert broken == []
    assert len(found["passes"]) > 10


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("width", "zoom"), [(360, 1), (640, 2)])
def test_nothing_is_cut_off_on_a_narrow_screen(
    open_page: Open, site: Site, view: str, width: int, zoom: int
) -> None:
    """360 pixels, or 200 % zoom: the page does not scroll sideways, tables do by themselves."""
    page = ready(open_page(f"?view={view}&range=86400", width=width // zoom, height=800))
    assert page.evaluate("document.documentElement.scrollWidth") <= width // zoom


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


def test_everything_can_be_reached_by_the_keyboard(open_page: Open, site: Site) -> None:
    """First a way past the bar; then each control in its order, and where one is can be seen."""
    page = ready(open_page("?range=86400"))
    page.keyboard.press("Tab")
    assert "content" in page.evaluate("document.activeElement.textContent").lower()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('main') !== null")
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        name, outlined = page.evaluate(
            """() => {
                const e = document.activeElement, s = getComputedStyle(e);
                const o = s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0;
                return [e.tagName + (e.getAttribute("aria-label") || e.textContent).slice(0, 40),
                        o || s.boxShadow !== "none" || e === document.body];
            }"""
        )
        assert outlined, name
        seen.add(name)
    assert len(seen) > 15


def test_a_range_is_chosen_by_the_keyboard(open_page: Open, site: Site) -> None:
    """And what is chosen is told, not only coloured."""
    page = ready(open_page("?range=60"))
    button = page.get_by_role("group", name="Range").get_by_role("button").last
    button.focus()
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Space")
    expect(
        page.get_by_role("status").or_(page.locator("[aria-live=polite]")).first
    ).to_be_attached()


def test_who_wants_no_motion_gets_none(open_page: Open, site: Site) -> None:
    """Whatever moves by itself stands still."""
    page = ready(open_page(reduced_motion="reduce"))
    moving = page.evaluate(
        """() => document.getAnimations().filter(a => a.playState === "running"
            && a.effect.getComputedTiming().duration > 1).length"""
    )
    assert moving == 0
