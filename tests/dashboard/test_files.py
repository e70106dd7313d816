"""The page itself: what the build left, by exact names."""

from pathlib import Path

import httpx
import pytest

from dashboard.conftest import error_of
from redmeter.dashboard import Dashboard
from redmeter.dashboard.errors import HTTPError
from redmeter.dashboard.files import Files


@pytest.fixture
def built(tmp_path: Path, dashboard: Dashboard) -> Path:
    """A page that is built, small."""
    (tmp_path / "index.html").write_text("<!doctype html><title>page</title>")
    assets = tmp_path / "assets"
    assets.mkdir()
    (assets / "index-1a2b.js").write_text("const a = 1;\n" * 500)
    (assets / "style.css").write_text("a{}")
    (assets / "odd.weird").write_bytes(b"\x00\xff")
    (assets / "below").mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    dashboard._files = Files(tmp_path)
    return tmp_path


def test_the_page_is_at_the_root_alone(built: Path, client: httpx.Client) -> None:
    """It is requested again, and not sent again."""
    answer = client.get("/?view=routes&name=<script>")
    assert answer.text == "<!doctype html><title>page</title>"
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "private, no-cache"
    tag = answer.headers["etag"]
    assert client.get("/", headers={"If-None-Match": tag}).status_code == 304
    assert error_of(client.get("/index.html"))["code"] == "not-found"
    (built / "index.html").write_text("<!doctype html><title>another</title>")
    assert "another" in client.get("/", headers={"If-None-Match": tag}).text


def test_its_files_are_kept_for_ever(built: Path, client: httpx.Client) -> None:
    """Their names change with what they hold; types are not the machine's."""
    answer = client.get("/assets/index-1a2b.js")
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.text.startswith("const a")
    assert client.get("/assets/style.css").headers["content-type"] == "text/css; charset=utf-8"
    odd = client.get("/assets/odd.weird")
    assert odd.headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize(
    "path",
    [
        "/assets/nothing.js",
        "/assets/",
        "/assets/below",
        "/assets/..%2fsecret.txt",
        "/assets/%2e%2e/secret.txt",
        "/assets/..%5csecret.txt",
        "/assets//etc/passwd",
        "/assets/%2fetc%2fpasswd",
        "/secret.txt",
        "/static/index.html",
        "/assets/index-1a2b.js%00",
    ],
)
def test_no_path_leads_elsewhere(path: str, built: Path, client: httpx.Client) -> None:
    """Names are looked up in a list of what is there."""
    answer = client.get(path)
    assert answer.status_code == 404
    assert "secret" not in answer.text.replace("secret.txt", "")
    error_of(answer)


def test_a_page_that_is_not_built_says_what_to_type(
    tmp_path: Path, dashboard: Dashboard, client: httpx.Client
) -> None:
    """Its JSON is there."""
    dashboard._files = Files(tmp_path)
    assert not dashboard.built
    answer = client.get("/")
    assert (answer.status_code, error_of(answer)["code"]) == (503, "page-not-built")
    assert "make " in error_of(answer)["fix"]
    assert client.get("/api/marks").status_code == 200
    with pytest.raises(HTTPError):
        Files(tmp_path).asset("x.js")
