"""The site of the docs: complete, with links that lead somewhere, readable without a network."""

import contextlib
import shutil
import signal
import sys
from pathlib import Path
from types import ModuleType

import httpx
import pytest
from playwright.sync_api import Browser

from support.programs import Programs
from support.servers import free_port
from support.tools import loaded
from support.waiting import eventually

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """tools/site.py, as a module."""
    return loaded("tools/site.py")


@pytest.fixture(scope="module")
def site(tool: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; this checks it."""
    folder = tmp_path_factory.mktemp("site")
    assert tool.build(folder / "source", folder / "site") > 80
    return folder / "site"


def test_each_page_is_on_the_site_and_each_recipe_is_one(site: Path, tool: ModuleType) -> None:
    """Pages of recipes list theirs."""
    for page in ROOT.glob("docs/**/*.md"):
        name = page.relative_to(ROOT).as_posix()
        assert (site / tool.place_of(name)).with_suffix(".html").is_file(), name
    recipe = (site / "how-to/record/mark-a-deploy.html").read_text(encoding="utf-8")
    assert "<title>Mark a deploy" in recipe
    listed = (site / "how-to/record/index.html").read_text(encoding="utf-8")
    assert 'href="mark-a-deploy.html"' in listed


def test_faults_of_a_site_are_found(site: Path, tool: ModuleType, tmp_path: Path) -> None:
    """A link, an image and an anchor without target, and an address of another host."""
    broken = tmp_path / "site"
    shutil.copytree(site, broken)
    (broken / "faq.html").write_text(
        '<a href="none.html">a</a> <a href="index.html#none">b</a> <img src="none.png">'
        '<script src="https://cdn.example.org/x.js"></script> <a href="https://example.org">c</a>'
    )
    assert [text for text in tool.faults(broken) if text.startswith("faq")] == [
        "faq.html: loads https://cdn.example.org/x.js",
        "faq.html: no anchor index.html#none",
        "faq.html: no file none.html",
        "faq.html: no file none.png",
    ]
    (broken / "search.js").unlink()
    (broken / "search.json").unlink()
    assert "no index for the search" in tool.faults(broken)


def test_a_page_without_a_place_in_the_navigation_is_refused(tool: ModuleType) -> None:
    """It is named."""
    with pytest.raises(tool.SiteError, match=r"new\.md"):
        tool.navigation({**tool.prepared("https://example.org"), "new.md": "# New\n"})


def test_the_site_is_served_on_loopback_until_ctrl_c(tmp_path: Path) -> None:
    """`make docs-serve`."""
    port = free_port()
    with Programs(tmp_path, "") as programs:
        tool = str(ROOT / "tools" / "site.py")
        program = programs.command(sys.executable, tool, "serve", "--port", str(port))

        def answers() -> bool:
            assert program.running, program.err
            with contextlib.suppress(httpx.TransportError):
                page = httpx.get(f"http://127.0.0.1:{port}/index.html", trust_env=False)
                return "<title>" in page.text
            return False

        eventually(answers, 60.0)
        program.send(signal.SIGINT)
        assert program.finish().code == 0


def test_the_search_works_from_disk_and_asks_no_other_host(site: Path, browser: Browser) -> None:
    """As in a folder that was copied; on a phone and in the dark, too."""
    page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme="dark")
    requests: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((site / "index.html").as_uri())
    assert page.evaluate("document.body.dataset.mdColorScheme") == "slate"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.keyboard.press("/")
    page.keyboard.type("change the retention")
    page.locator('a[href*="change-the-retention.html?h="]').first.wait_for()
    assert [url for url in requests if not url.startswith(site.as_uri())] == []
    assert errors == []
    page.close()
