"""The page where people have it: in an application, behind a token, and as the demo's."""

import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from browser.conftest import Homes, Open, Site, ready, serve
from redmeter import Meter
from support.programs import Programs
from support.servers import Server

#: An application that has the page below a path of two steps, and a page of its own.
MOUNTED = """
import socket, uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from redmeter.dashboard import Dashboard

app = Starlette(routes=[
    Route("/", lambda request: PlainTextResponse("a shop")),
    Mount("/ops/metrics", Dashboard(URL, access="open")),
])
at = socket.socket()
at.bind(("127.0.0.1", 0))
print(at.getsockname()[1])
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[at])
"""


def test_who_has_no_cookie_signs_in_by_a_form(
    homes: Homes, open_page: Open, allowed: list[str]
) -> None:
    """By the keyboard alone and without scripts; the view that was asked for comes next."""
    allowed.append("status of 401")  # the browser's own words
    home = homes("token")
    home.env["REDMETER_TOKEN"] = "a-token-of-my-own"
    site = serve(home)
    for scheme in ("light", "dark"):
        page = open_page(
            "?range=60", of=site, width=360, java_script_enabled=False, color_scheme=scheme
        )
        expect(page.get_by_role("heading", name="Sign in to Redmeter")).to_be_visible()
        field = page.get_by_label("Token")
        expect(field).to_be_focused()
        expect(field).to_have_accessible_description(re.compile("REDMETER_TOKEN"))
        field.fill("none-of-mine")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_have_text("This token is not valid.")
        expect(field).to_be_empty()
        box = page.locator("main").bounding_box()
        assert box is not None
        assert 0 <= box["x"] < box["x"] + box["width"] <= 360
    page = open_page("?range=60", of=site)
    page.get_by_label("Token").fill("a-token-of-my-own")
    page.get_by_role("button", name="Sign in").click()
    ready(page)
    assert page.url == f"{site.url}?range=60"


@pytest.fixture
def mounted(server: Server, tmp_path: Path) -> Iterator[str]:
    """The address of an application that has the page below /ops/metrics."""
    with Programs(tmp_path, server.url) as programs:
        port = programs.start(MOUNTED).line(0)
        yield f"http://127.0.0.1:{port}"


def test_below_a_path_of_an_application_all_of_it_works(
    site: Site, server: Server, mounted: str, open_page: Open
) -> None:
    """Links, questions, files and the history stay below that path."""
    with Meter(server.url, sync=True) as meter:
        meter.count("signups", 3)
    asked: list[str] = []
    # Without its slash, to which it leads.
    page = ready(open_page("/ops/metrics?range=1", of=site._replace(url=mounted)))
    assert page.url == f"{mounted}/ops/metrics/?range=1"
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    page.get_by_role("navigation").get_by_role("link", name="Metrics").click()
    page.get_by_role("link", name="signups").click()
    expect(page.get_by_role("row", name=re.compile("^signups"))).to_contain_text("3")
    assert urlsplit(page.url).path == "/ops/metrics/"
    page.reload()
    expect(page.get_by_role("row", name=re.compile("^signups"))).to_contain_text("3")
    page.get_by_role("link", name="Redmeter, overview").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_contain_text("signups")
    assert [path for path in asked if not path.startswith("/ops/metrics/")] == []
    assert any(path.startswith("/ops/metrics/assets/") for path in asked)


def test_the_printed_address_lets_in_and_leaves_no_token_behind(
    open_page: Open, homes: Homes, allowed: list[str]
) -> None:
    """The token becomes a cookie that scripts cannot read; who has none is told what to do."""
    site = serve(homes("token"), "--host", "0.0.0.0")
    printed = urlsplit(site.url)
    assert re.fullmatch(r"token=[\w-]{32,}", printed.query), site.url
    # Its own name need not lead anywhere where tests run.
    there = printed._replace(netloc=f"127.0.0.1:{printed.port}")
    page = open_page("&range=1", of=site._replace(url=there.geturl()))
    ready(page)
    expect(page).to_have_url(f"http://{there.netloc}/?range=1")
    (cookie,) = [c for c in page.context.cookies() if c["httpOnly"]]
    token = printed.query.removeprefix("token=")
    assert cookie["sameSite"] == "Strict"
    assert token not in cookie["value"]
    assert page.evaluate("document.cookie") == "redmeter-signed-in=1"
    assert token not in page.content()
    page.reload()
    ready(page)
    with site.meter() as meter:
        meter.count("secrets", 2)
    page.goto(f"http://{there.netloc}/?view=series&name=secrets&range=1")
    expect(page.get_by_role("row", name=re.compile("^secrets"))).to_contain_text("2")
    allowed += ["status of 401", "favicon.ico"]
    stranger = open_page(of=site._replace(url=f"http://{there.netloc}/"))
    expect(stranger.locator("body")).to_contain_text("redmeter up")
    page.context.clear_cookies()
    expect(page.locator("main").get_by_role("alert")).to_contain_text("who you are")


@pytest.mark.nightly
def test_the_demo_ends_at_a_page_on_which_its_visitors_are(
    open_page: Open, site: Site, homes: Homes
) -> None:
    """Traffic comes by itself, and the deploy is told where it was."""
    home = homes("demo")
    (home.root / "tmp").mkdir()
    # Of the past, an hour is enough.
    short = "import redmeter.demo.past as past; past.REACH = 3600"
    programs = f"{Path(sys.executable).parent}:{home.env['PATH']}"
    child = home.start(
        "demo", "--minutes", "5", code=short, TMPDIR=str(home.root / "tmp"), PATH=programs
    )
    found = re.search(r"http://\S+", child.out(1))
    assert found is not None, child.so_far()
    shop = site._replace(url=found[0])
    page = ready(open_page("?range=1", of=shop))
    hits = page.get_by_role("list", name="Key figures").get_by_role("listitem").first
    expect(hits).to_contain_text(re.compile(r"[1-9]"))
    pages = page.get_by_role("region", name="Routes", exact=True)
    expect(pages.get_by_role("link", name="/", exact=True)).to_be_visible()
    legend = page.get_by_role("region", name="Legend of Traffic")
    row = legend.get_by_role("row").filter(has=page.get_by_text("hits", exact=True))
    shown = row.text_content() or ""
    expect(row).not_to_have_text(shown)
    page.goto(f"{shop.url}?range=18000&table=traffic")
    table = page.get_by_role("region", name="Values of Traffic")
    expect(table.get_by_role("row").filter(has_text="shop 2.3.1").first).to_be_visible()
    page.context.close()
    assert child.finish(signal.SIGINT).code == 0
