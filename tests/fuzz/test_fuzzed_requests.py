"""Fuzz: what a stranger's request holds: queries, paths, hosts, headers, tokens and cookies.

Next to tests/dashboard/test_parameters.py, which tries queries of one endpoint, and
test_schema.py, where Schemathesis makes requests from openapi.json.
"""

import asyncio
import base64
import contextlib
from typing import Any
from urllib.parse import quote, unquote_plus, urlencode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.requests import Request

from redmeter.dashboard import Dashboard
from redmeter.dashboard.access import Given
from redmeter.dashboard.api.endpoints import ENDPOINTS
from redmeter.dashboard.api.parameters import parse_query
from redmeter.dashboard.api.serialize import as_json
from redmeter.dashboard.cache import Body, _matches, _takes_gzip
from redmeter.dashboard.errors import HTTPError
from redmeter.dashboard.guard import HEADERS, Hosts, host_of
from redmeter.dashboard.login import Login
from support.fuzzing import (
    HOSTILE,
    assert_work_is_linear,
    fuzzed,
    fuzzed_slowly,
    grown,
    mutated,
    mutated_bytes,
)

TOKEN, PASSWORD = "a-token-that-nobody-guesses", "a-password-too"
BASIC = "Basic " + base64.b64encode(f"ada:{PASSWORD}".encode()).decode()
QUERIES = (
    *("name=hits&precision=60", "name=x%7Ba%3D%221%22%7D&since=1700000000.5&until=1.8e9"),
    *("by=route&label=status%3D5xx&order=p99.9&limit=20", "pattern=sal*&grouped=1&offset=50"),
    *("logger=shop&severity=error&over_time=1&q=0.5", "kind=gauge&intervals=12", "filter=%2Fa"),
)
HOSTS = ("localhost", "localhost:8265", "[::1]:8265", "127.0.0.1:", "example.org.", "LOCALHOST")
PATHS = (
    "/",
    "/api/overview",
    "/api/series",
    "/assets/x.js",
    "//evil",
    "/api/../healthz",
    "/healthz",
)


@fuzzed
@given(st.sampled_from(ENDPOINTS), mutated(QUERIES))
def test_a_query_of_any_endpoint_is_read_or_refused(endpoint: Any, query: str) -> None:
    """A refusal is one that can be sent."""
    refused, values = None, {}
    try:
        values = parse_query(endpoint, query.encode(errors="surrogatepass"))
    except HTTPError as refusal:
        refused = refusal
    if refused is not None:
        assert 400 <= refused.status < 500
        assert as_json(refused.answer()).isascii()
    else:
        assert set(values) == {parameter.name for parameter in endpoint.parameters}


@fuzzed
@given(mutated(HOSTS))
def test_only_what_is_called_as_we_are_is_allowed(header: str) -> None:
    """Whatever else is in the header."""
    host = host_of(header)
    assert host is None or host == host.lower()
    for hosts in (Hosts(["localhost", "*.example.org"]), Hosts([], addresses=True)):
        if hosts.allow(header):
            assert host is not None
    if Hosts(["localhost"]).allow(header):
        assert host == "localhost"
        assert header.lower().startswith("localhost")


@fuzzed
@given(mutated(('W/"0123456789abcdef"', '"x", *', "*", "gzip, deflate;q=0.5, *;q=0", "gzip;q=nan")))
def test_headers_of_caches_are_read(header: str) -> None:
    """A match is one that is there."""
    etag = Body(b"{}", "application/json").etag
    if _matches(header, etag):
        assert etag.removeprefix("W/") in header or "*" in header
    assert _takes_gzip(header) in (True, False)


Headers = list[tuple[bytes, bytes]]
ANY_HEADERS = st.lists(
    st.tuples(
        st.sampled_from(
            [b"authorization", b"cookie", b"if-none-match", b"accept-encoding", b"origin", b"host"]
        )
        | st.binary(max_size=5),
        mutated_bytes((*HOSTS, BASIC, f"Bearer {TOKEN}", "redmeter-0=1; a=b", "gzip")),
    ),
    max_size=4,
)


async def answered(app: Any, scope: dict[str, Any]) -> tuple[int, Headers, bytes]:
    """Hand a request to an application, as a server does, and return what it answers."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], sent[0]["headers"], body


@pytest.mark.parametrize("guarded", [False, True])
@fuzzed
@given(
    mutated(PATHS),
    mutated_bytes((*QUERIES, f"token={TOKEN}&a=b")),
    ANY_HEADERS,
    st.sampled_from(["GET", "HEAD", "POST", "get", "\r\n"]),
    st.sampled_from(["", "/metrics", "/a b/", "//evil"]),
)
@example("//evil.example", f"token={TOKEN}".encode(), [], "GET", "")
@example("/", b"a=\r\nSet-Cookie: a=b", [], "GET", "//evil")
@example("/", b"", [], "POST", "")
def test_any_request_has_an_answer_that_keeps_browsers_in_bounds(
    caplog: pytest.LogCaptureFixture,
    guarded: bool,
    path: str,
    query: bytes,
    headers: Headers,
    method: str,
    root: str,
) -> None:
    """Never a failure of ours, and nothing in a header that would be a second one."""
    access: Given = Login([TOKEN], {"ada": PASSWORD}, sleep=_no_wait) if guarded else "open"
    dashboard = Dashboard("off", access=access)
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": root + path.encode("utf-8", "replace").decode(),
        "root_path": root,
        "query_string": query,
        "headers": [(b"host", b"localhost"), *headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8265),
    }
    status, told, body = asyncio.run(answered(dashboard, scope))
    dashboard.close()
    assert status in (200, 303, 304, 307, 400, 401, 403, 404, 405, 414, 415, 421, 503), body
    names = [name.lower() for name, _ in told]
    assert {name.lower().encode() for name in HEADERS} <= set(names)
    assert not any(b"\r" in value or b"\n" in value for _, value in told)
    for name, value in told:
        if name.lower() == b"location":
            assert value[:1] in (b"/", b".", b"?")
            assert value[:2] not in (b"//", b"/\\")
    assert "dashboard failed" not in caplog.text


def nearly(right: str) -> str:
    """Return a secret of which only the last character is wrong: all others are right."""
    return right[:-1] + ("-" if right[-1] != "-" else "_")


async def _no_wait(_: float) -> None:
    """Answer a failure at once."""


LOGIN = Login([TOKEN], {"ada": PASSWORD}, sleep=_no_wait)
COOKIE, VALUE = "redmeter-0", LOGIN._cookies[LOGIN._digest(TOKEN)]
#: The credentials, by the way on which they come.
WAYS = ("basic", "bearer", "cookie", "query")
SECRETS = {"basic": f"ada:{PASSWORD}", "bearer": TOKEN, "cookie": VALUE, "query": TOKEN}


def lets_pass(way: str, secret: str) -> bool:
    """Tell whether somebody passes who says a secret, as it is, on one of the ways."""
    basic = base64.b64encode(secret.encode()).decode()
    said = {
        "basic": (f"Basic {basic}", "", ""),
        "bearer": (f"Bearer {secret}", "", ""),
        "cookie": ("", f"{COOKIE}={secret}", ""),
        "query": ("", "", urlencode({"token": secret})),
    }
    return passes(*said[way])


async def _ask(login: Login, scope: dict[str, Any]) -> Any:
    return await login(Request(scope))


def passes(header: str, cookie: str, query: str) -> bool:
    """Tell whether a request passes, or is given the cookie with which the next one does."""
    given_headers = [
        (b"authorization", header.encode("latin-1", "replace")),
        (b"cookie", cookie.encode("latin-1", "replace")),
    ]
    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": "/",
        "server": ("localhost", 80),
        "query_string": query.encode(errors="replace"),
        "headers": given_headers,
    }
    with contextlib.suppress(HTTPError):
        answer = asyncio.run(_ask(LOGIN, scope))
        return answer is True or VALUE in getattr(answer, "headers", {}).get("set-cookie", "")
    return False


@pytest.mark.parametrize("way", WAYS)
def test_nobody_passes_by_a_secret_that_is_nearly_right(way: str) -> None:
    """One character is wrong, missing or too many, at the end or at the beginning."""
    right = SECRETS[way]
    assert lets_pass(way, right)
    for wrong in (nearly(right), right[:-1], right + right[-1], nearly(right[::-1])[::-1]):
        assert not lets_pass(way, wrong), wrong
    for at in range(len(right)):
        assert not lets_pass(way, right[:at] + nearly(right[at]) + right[at + 1 :]), at


@fuzzed
@given(
    mutated(("", BASIC, f"Bearer {TOKEN}", f"bearer  {TOKEN} ")),
    mutated(("", "redmeter-0=1; a=b", f"{COOKIE}={VALUE}", f"a=b; {COOKIE}={VALUE}")),
    mutated(("", "a=b", f"token={TOKEN}", f"token={TOKEN}&a=b")),
)
@example(f"Bearer {nearly(TOKEN)}", "", "")
@example("Basic " + base64.b64encode(f"ada:{nearly(PASSWORD)}".encode()).decode(), "", "")
@example("", f"{COOKIE}={nearly(VALUE)}", "")
@example("", "", f"token={nearly(TOKEN)}")
def test_nobody_passes_by_damaged_credentials(header: str, cookie: str, query: str) -> None:
    """Only with the whole of them."""
    known = (
        TOKEN in header,
        PASSWORD in decoded(header),
        VALUE in cookie,
        TOKEN in unquote_plus(query),
    )
    assert not passes(header, cookie, query) or any(known)


def decoded(header: str) -> str:
    """Return what a header says of name and password; nothing where it cannot be read."""
    with contextlib.suppress(ValueError):
        return base64.b64decode(header.partition(" ")[2].strip()).decode()
    return ""


@fuzzed_slowly
@given(grown((*QUERIES, *HOSTS, *HOSTILE, BASIC, "&", "name=", "%7B", "a,", ";q=", "[", "token=")))
def test_requests_take_work_by_their_length(of_length: object) -> None:
    """Whatever is repeated in them."""
    login = Login([TOKEN], {"ada": PASSWORD}, sleep=_no_wait)

    def work(given_text: str) -> None:
        text = given_text.encode(errors="replace").decode()
        for query in (text, urlencode({"name": text}), quote(text)):
            for endpoint in ENDPOINTS:
                with contextlib.suppress(HTTPError):
                    parse_query(endpoint, query.encode(errors="replace"))
        host_of(text)
        _matches(text, '"x"')
        _takes_gzip(text)
        data = text.encode("latin-1", "replace")
        for name in (b"authorization", b"cookie"):
            scope = {
                "type": "http",
                "method": "GET",
                "path": "/",
                "query_string": data,
                "headers": [(name, b"Basic " + data)],
            }
            with contextlib.suppress(HTTPError):
                asyncio.run(_ask(login, scope))

    assert_work_is_linear(work, of_length)  # type: ignore[arg-type]
