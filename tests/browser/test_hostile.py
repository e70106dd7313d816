"""Hostile texts are inert in every view, and addresses that make no sense do no harm."""

import contextlib
import json
import re
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import expect

from browser.conftest import Homes, Open, Site, ready, serve
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
    "\u202egnp.exe",
    "a\u0000b\u001b[31mred",
    "😀 Ω 点击量",
)

VIEWS = ("overview", "routes", "messages", "metrics", "health")
#: What may stand in <main> of what could come from a text; nothing of it does on this page.
MADE = "main script, main iframe, main img, main style, main a[href^='javascript:' i]"


@pytest.fixture(scope="module")
def hostile(homes: Homes) -> Site:
    """A store in which all of it is wherever a text can be."""
    site = serve(homes("hostile"))
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
            with contextlib.suppress(InvalidName):
                meter.log(text, "said by a stranger", severity="warning")
            meter.mark(f"mark {text}")
    return site


@pytest.mark.parametrize("view", [*VIEWS, "series&name=http_requests&table=values"])
@pytest.mark.parametrize("range_", [60, pytest.param(1, marks=pytest.mark.nightly)])
def test_stored_texts_are_texts(open_page: Open, hostile: Site, view: str, range_: int) -> None:
    """Nothing runs, no element comes from them, and they can be read."""
    page = ready(open_page(f"?view={view}&range={range_}", of=hostile))
    main = page.locator("main")
    if view != "health" and (view, range_) != ("overview", 1):
        expect(main).to_contain_text("<script>window.hacked=1</script>")
    if range_ == 60 and view in ("routes", "messages", "metrics"):
        expect(main).to_contain_text("😀 Ω 点击量")
    page.wait_for_timeout(300)
    assert page.evaluate("window.hacked") is None
    assert page.locator(MADE).count() == 0


def test_marks_and_lines_of_a_chart_are_texts(open_page: Open, hostile: Site) -> None:
    """In the legend, in what the cursor points at, and in the table."""
    page = ready(open_page(f"?range=86400&table=traffic&series={quote(CORPUS[0])}", of=hostile))
    expect(page.get_by_role("region", name="Values of Traffic")).to_contain_text(
        f"mark {CORPUS[0]}"
    )
    chart = page.get_by_role("group", name="Traffic")
    chart.focus()
    page.keyboard.press("End")
    expect(page.locator(".tip")).to_contain_text(f"mark {CORPUS[1]}")
    page.wait_for_timeout(200)
    assert page.evaluate("window.hacked") is None
    assert page.locator(MADE).count() == 0


@pytest.mark.parametrize(
    ("first", "view"), [(0, "overview"), (1, "series"), (2, "metrics"), (0, "messages")]
)
def test_texts_in_the_address_are_texts(
    open_page: Open, hostile: Site, allowed: list[str], first: int, view: str
) -> None:
    """In each of its parameters; a question that is refused is told as such.

    An address has a different text in each parameter. In each view, each text is in three of them,
    and in all of them in three views together.
    """
    # To the browser that is an error of the network, of which it tells by itself.
    allowed.append("status of 400")
    names = ("name", "filter", "series", "logger", "severity", "order", "kind", "hidden", "table")
    page = open_page(of=hostile)
    for start in range(first, len(CORPUS), 3):
        texts = (CORPUS[start:] + CORPUS[:start])[: len(names)]
        parameters = {"view": view} | dict(zip(names, texts, strict=True))
        page.goto(f"{hostile.url}?{urlencode(parameters, errors='replace')}")
        ready(page)
        page.wait_for_timeout(30)
        assert page.evaluate("window.hacked") is None, texts
        assert page.locator(MADE).count() == 0, texts
        assert page.locator("nav a").count() == 5, texts


NONSENSE = (
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
    "?since=1&until=253402300799&range=1",
    "?since=1000000000&until=1000000300",
    "?since=1&until=1000000300&explain=hits",
    "?since=1&until=4102444800&view=messages",
    "?since=1&until=300&view=series&name=hits_seconds",
    "?range=7",
    "?last=31622400&range=1",
    "?theme=<b>&clock=mars",
    "?%ff%fe=%00",
    "?" + "&".join(f"series={n}" for n in range(300)),
    "?offset=-1&view=metrics",
    "?offset=99999999&view=metrics",
    "?offset=100000&view=metrics",
    "?view=routes&order=beauty",
    "?view=messages&severity=loud&logger=" + "y" * 900,
)


def test_an_address_that_makes_no_sense_leads_to_a_page(
    open_page: Open, site: Site, allowed: list[str]
) -> None:
    """What cannot be read is left out, or refused in words."""
    allowed.append("status of 400")
    page = open_page()
    for query in NONSENSE:
        page.goto(site.url + query)
        ready(page)
        page.wait_for_timeout(50)
        assert page.locator("nav a").count() == 5, query
        assert all(page.locator(".refused").all_inner_texts()), query


def test_a_list_that_ends_before_is_told_as_such(open_page: Open, site: Site) -> None:
    """With the way back to its beginning."""
    page = open_page("?offset=5000&view=metrics&range=86400")
    page.get_by_role("button", name="Back to the first page").click()
    expect(page.get_by_role("link", name="hits", exact=True)).to_be_visible()
    expect(page).not_to_have_url(re.compile("offset="))


def test_answers_of_the_api_are_never_taken_for_markup(
    open_page: Open, hostile: Site, allowed: list[str]
) -> None:
    """A browser that is led there shows a text."""
    allowed.append("/favicon.ico")  # which it looks for next to whatever is no page of ours
    page = open_page(f"api/series?precision=60&name={quote(CORPUS[0])}", of=hostile)
    assert page.evaluate("document.contentType") == "application/json"
    assert page.evaluate("window.hacked") is None
    assert json.loads(page.evaluate("document.body.innerText"))
