"""What guards every request and every answer."""

import asyncio
import gzip
from typing import Any

import httpx
import pytest

from dashboard.conftest import error_of
from redmeter import Meter
from redmeter.dashboard import Dashboard
from redmeter.dashboard.guard import Hosts, host_of, own_hosts
from redmeter.errors import InvalidSetting
from support.asgi import call, http_scope
from support.asking import asking
from support.servers import Server

PATHS = ["/", "/api/marks", "/api/openapi.json", "/healthz", "/nothing", "/api/series?x=1"]


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_has_the_headers_that_keep_browsers_in_bounds(
    path: str, client: httpx.Client
) -> None:
    """Whatever was asked, errors included."""
    headers = client.get(path).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["form-action"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "camera=()" in headers["permissions-policy"]
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "X<b>"])
@pytest.mark.parametrize("path", ["/", "/api/marks", "/nothing"])
@pytest.mark.parametrize(
    "sent", [{}, {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}]
)
def test_nothing_can_be_changed(
    method: str, path: str, sent: dict[str, str], client: httpx.Client
) -> None:
    """There is nothing that another method than GET could do, wherever it comes from."""
    answer = client.request(method, path, headers=sent)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"
    assert error_of(answer)["code"] == "method-not-allowed"


def test_asking_changes_nothing(client: httpx.Client, filled: Meter, server: Server) -> None:
    """By the server's own count of changes."""
    with server.client() as store:
        before = store.info("persistence")["rdb_changes_since_last_save"]
        for path in ("overview", "routes", "metrics", "messages", "doctor", "detail?name=hits"):
            assert client.get(f"/api/{path}").status_code == 200
        assert store.info("persistence")["rdb_changes_since_last_save"] == before


@pytest.mark.parametrize("path", PATHS)
def test_head_is_get_without_a_body(path: str, client: httpx.Client) -> None:
    """With the same status and headers."""
    got, head = client.get(path), client.head(path)
    assert (head.status_code, head.content) == (got.status_code, b"")
    assert head.headers["content-type"] == got.headers["content-type"]


# --- Hosts ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "host"),
    [
        ("localhost", "localhost"),
        ("LOCALHOST:7380", "localhost"),
        ("127.0.0.1:80", "127.0.0.1"),
        ("[::1]:7380", "::1"),
        ("example.org.", "example.org"),
        ("", None),
        ("a b", None),
        ("localhost@evil.example", None),
        ("localhost/evil", None),
        ("localhost:7380:1", None),
        ("localhost:x", None),
        ("[::1", None),
    ],
)
def test_a_host_is_read_without_its_port(header: str, host: str | None) -> None:
    """And nothing that is none."""
    assert host_of(header) == host


@pytest.mark.parametrize(
    ("bound", "header", "allowed"),
    [
        ("127.0.0.1", "127.0.0.1:7380", True),
        ("127.0.0.1", "localhost:7380", True),
        ("::1", "[::1]:7380", True),
        ("127.0.0.1", "evil.example:7380", False),
        ("127.0.0.1", "127.0.0.1.evil.example", False),
        ("127.0.0.1", "localhost.evil.example", False),
        ("127.0.0.1", "192.168.1.5", False),
        ("127.0.0.1", "metrics.lan", True),
        ("127.0.0.1", "a.intern.example", True),
        ("127.0.0.1", "intern.example", False),
        ("0.0.0.0", "192.168.1.5:7380", True),
        ("0.0.0.0", "evil.example", False),
        ("0.0.0.0", "metrics.lan:7380", True),
    ],
)
def test_the_page_answers_to_its_own_names(bound: str, header: str, allowed: bool) -> None:
    """On loopback to those of loopback; elsewhere to addresses too, which nobody can rebind."""
    hosts = own_hosts(bound, ["metrics.lan", "*.intern.example"])
    assert hosts.allow(header) is allowed


@pytest.mark.parametrize("name", ["", "http://x", "x:80", "a b", 5])
def test_a_name_that_is_none_is_refused(name: Any) -> None:
    """When the page is made, not when somebody asks."""
    with pytest.raises(InvalidSetting, match="allowed_hosts"):
        Hosts([name])


@pytest.mark.parametrize("path", ["/", "/api/marks", "/-/healthy/x", "/nothing"])
def test_another_host_is_refused_wherever_it_points(path: str, server: Server) -> None:
    """A name that is made to point here gets nothing to read, whatever is forwarded."""
    dashboard = Dashboard(server.url, access="open", allowed_hosts=["localhost"])
    with asking(dashboard) as client:
        assert client.get("/api/marks").status_code == 200
        sent = {"Host": "evil.example", "X-Forwarded-Host": "localhost", "Forwarded": "host=a"}
        answer = client.get(path, headers=sent)
        assert answer.status_code == 421
        error = error_of(answer)
        assert error["code"] == "unknown-host"
        assert "--allow-host" in error["fix"]
        doubled = [("Host", "localhost"), ("Host", "evil.example")]
        assert client.get(path, headers=doubled).status_code == 400
    dashboard.close()


@pytest.mark.parametrize("path", ["/healthz", "/-/healthy", "/-/ready"])
def test_a_probe_may_name_any_host_or_none(path: str, server: Server) -> None:
    """It learns that the store answers, and nothing else; nothing else is answered so."""
    dashboard = Dashboard(server.url, access="open", allowed_hosts=["localhost"])
    for hosts in ([], ["10.0.0.7:7380"], ["a<b>"], ["localhost", "evil.example"]):
        for asked in (path, "/api/marks"):
            headers = [(b"host", host.encode()) for host in hosts]
            scope = http_scope("GET", asked, headers=headers)
            answer = asyncio.run(call(dashboard, scope, [{"type": "http.request", "body": b""}]))
            if asked == path:
                assert (answer.status, answer.body) == (200, b'{"status":"ok"}')
            else:
                assert answer.status in (400, 421)
    dashboard.close()


def test_without_a_list_the_application_in_front_decides(client: httpx.Client) -> None:
    """A Host header has to be one, though."""
    assert client.get("/api/marks", headers={"Host": "any.example"}).status_code == 200
    answer = client.get("/api/marks", headers={"Host": "a<b>"})
    assert (answer.status_code, error_of(answer)["code"]) == (400, "bad-host")


# --- What is sent --------------------------------------------------------------------------


def test_what_has_not_changed_is_not_sent_again(client: httpx.Client, filled: Meter) -> None:
    """304 though the time goes on: it is told by a header."""
    first = client.get("/api/marks")
    assert first.headers["cache-control"] == "private, no-cache"
    tag = first.headers["etag"]
    again = client.get("/api/marks", headers={"If-None-Match": f'"x", {tag}'})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == tag
    assert float(again.headers["redmeter-now"]) > 0
    assert "content-security-policy" in again.headers
    other = client.get("/api/marks?since=1", headers={"If-None-Match": '"x"'})
    assert other.status_code == 200


def test_large_answers_are_compressed_where_that_is_taken(
    client: httpx.Client, filled: Meter
) -> None:
    """Small ones are not; and a weight of 0 is a no."""
    plain = client.get("/api/openapi.json", headers={"Accept-Encoding": "gzip;q=0, identity"})
    assert "content-encoding" not in plain.headers
    assert plain.headers["vary"] == "Accept-Encoding"
    with client.stream(
        "GET", "/api/openapi.json", headers={"Accept-Encoding": "br, gzip;q=0.5"}
    ) as packed:
        raw = b"".join(packed.iter_raw())
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) == len(raw) < len(plain.content) / 5
    assert gzip.decompress(raw) == plain.content
    assert "content-encoding" not in client.get("/healthz").headers


def test_what_is_about_the_moment_is_kept_by_nobody(client: httpx.Client) -> None:
    """Errors and liveness."""
    for path in ("/nothing", "/api/series", "/healthz"):
        assert client.get(path).headers["cache-control"] == "no-store"
