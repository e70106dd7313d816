"""Hostile texts are inert in every view, and addresses that make no sense do no harm."""

import contextlib
import json
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import expect

from browser.conftest import Open, Site
from redmeter import InvalidName

#: What does something where a text is taken for markup, a script, a template or an address.
CORPUS = (
    "<script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    '"><svg onload=window.hacked=1>',
    "'-window.hacked=1-'",
    "javascript:window.hacked=1",
    "{{constructor.constructor('window.hacked=1')()}}",
    "${window.hacked=1}",
    "</title></textarea><iframe srcdoc='<script>parent.hacked=1</script>'>",
    "<a href=javascript:window.hacked=1>x</a>",
    "<style>*{display:none}</style>",
    "__proto__",
    "constructor",
    "‮gnp.exe",
    "a\u0000b\u001b[31mred",
    "\ud83d\ude00 Ω 点击量",
)

VIEWS = ("overview", "pages", "messages", "counters", "health")


@pytest.fixture(scope="module")
def hostile(site: Site) -> Site:
    """The site, after all of it was stored wherever a text can be."""
    with site.meter() as meter:
        for text in CORPUS:
            labels = {"method": "GET", "route": text}
            # Names with control characters are not stored at all.
            with contextlib.suppress(InvalidName):
                meter.count(text, 50_000)
            with contextlib.suppress(InvalidName):
                meter.count("http_requests", 50_000, labels=labels | {"status": "5xx"})
                meter.observe("http_request_seconds", 9.0, labels=labels)
            meter.log("shop", text, severity="error")
            meter.mark(f"mark {text}")
    return site


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("range_", [1, 60])
def test_stored_texts_are_texts(open_page: Open, hostile: Site, view: str, range_: int) -> None:
    """Nothing runs, no element comes from them, and they can be read."""
    page = open_page(f"?view={view}&range={range_}")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.wait_for_timeout(300)
    assert page.evaluate("window.hacked") is None
    assert page.locator("main script, main iframe, main img, main style").count() == 0
    assert page.locator("a[href^='javascript:' i]").count() == 0
    if view in ("pages", "counters", "messages"):
        expect(page.locator("main")).to_contain_text("<script>window.hacked=1</script>")


@pytest.mark.parametrize("text", CORPUS[:10])
def test_texts_in_the_address_are_texts(
    open_page: Open, hostile: Site, said: list[str], text: str
) -> None:
    """In each of its parameters; a question that is refused is told as such."""
    parameters = {"name": text, "filter": text, "series": text, "logger": text, "severity": text}
    for view in ("series", "counters", "messages", "overview"):
        page = open_page(f"?{urlencode({'view': view, **parameters})}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.wait_for_timeout(150)
        assert page.evaluate("window.hacked") is None
        page.close()
    # A refused question is an error of the network to the browser, which says so by itself.
    said[:] = [line for line in said if "status of 400" not in line]


@pytest.mark.parametrize(
    "query",
    [
        "?range=0",
        "?range=-60",
        "?range=NaN",
        "?range=1e308",
        "?range=60&range=3600",
        "?view=nosuch",
        "?view=series",
        "?view=series&name=" + "x" * 3_000,
        "?since=9&until=1&range=60",
        "?since=253402300799&until=999999999999&range=60",
        "?theme=<b>&clock=mars",
        "?%ff%fe=%00",
        "?" + "&".join(f"series={n}" for n in range(300)),
        "?offset=-1&view=counters",
        "?offset=99999999&view=counters",
    ],
)
def test_an_address_that_makes_no_sense_leads_to_a_page(
    open_page: Open, site: Site, said: list[str], query: str
) -> None:
    """What cannot be read is left out, or refused in words."""
    page = open_page(query)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.wait_for_timeout(200)
    assert page.locator("nav a").count() == 5
    said[:] = [line for line in said if "status of 4" not in line]


def test_answers_of_the_api_are_never_taken_for_markup(open_page: Open, hostile: Site) -> None:
    """A browser that is led there shows a text."""
    page = open_page(f"api/series?precision=60&name={quote(CORPUS[0])}")
    assert page.evaluate("document.contentType") == "application/json"
    assert page.evaluate("window.hacked") is None
    assert json.loads(page.evaluate("document.body.innerText"))
