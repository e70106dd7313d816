"""What may be asked: everything else is a 400 that says what mends it."""

from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.conftest import error_of
from redmeter.dashboard.api.endpoints import ENDPOINTS
from redmeter.dashboard.api.parameters import MAX_QUERY, parse_query
from redmeter.dashboard.api.serialize import as_json
from redmeter.dashboard.errors import HTTPError

SERIES = next(endpoint for endpoint in ENDPOINTS if endpoint.path == "/api/series")

BAD = [
    ("series", "bad-parameter", "name=hits&precision=0"),
    ("series", "bad-parameter", "name=hits&precision=-60"),
    ("series", "bad-parameter", "name=hits&precision=60.0"),
    ("series", "bad-parameter", "name=hits&precision=NaN"),
    ("series", "bad-parameter", "name=hits&precision=1e308"),
    ("series", "bad-parameter", "name=hits&precision=" + "9" * 400),
    ("series", "bad-parameter", "name=hits&precision=" + quote("６０")),
    ("series", "unknown-precision", "name=hits&precision=61"),
    ("summary", "unknown-precision", "name=hits&precision=300"),
    ("top", "unknown-precision", "name=hits&precision=7&order=p95"),
    ("overview", "unknown-precision", "precision=2"),
    ("detail", "unknown-precision", "name=hits&precision=2"),
    ("forecast", "unknown-precision", "name=hits&precision=2"),
    ("explain", "unknown-precision", "name=hits&precision=2"),
    ("explain", "missing-parameter", "since=1700000000"),
    ("explain", "start-after-end", "name=hits&since=1700000060&until=1700000000"),
    ("explain", "bad-combination", "name=hits&since=1700000000&until=1700000000"),
    ("explain", "bad-combination", "name=hits&against_since=1700000000"),
    (
        "explain",
        "bad-combination",
        "name=hits&against=last-week&against_since=1700000000&against_until=1700000060",
    ),
    ("explain", "bad-parameter", "name=hits&against=tomorrow"),
    ("explain", "bad-combination", "name=hits{a=%22b%22}&label=a=c"),
    ("series", "bad-parameter", "name=hits&since=nan"),
    ("series", "bad-parameter", "name=hits&since=inf"),
    ("series", "bad-parameter", "name=hits&since=1e308"),
    ("series", "bad-parameter", "name=hits&since=253402300799"),
    ("series", "bad-parameter", "name=hits&since=9999-12-31"),
    ("series", "bad-parameter", "name=hits&until=-1"),
    ("series", "start-after-end", "name=hits&since=1700000060&until=1700000000"),
    ("series", "missing-parameter", "precision=60"),
    ("series", "bad-parameter", "name="),
    ("series", "bad-parameter", "name=" + "x" * 201),
    ("series", "bad-parameter", "name=a%00b"),
    ("series", "bad-parameter", "name=a%E2%80%AEb"),
    ("series", "bad-parameter", "name=a%1B%5B31m"),
    ("series", "bad-parameter", "name=%7B%7B7*7%7D%7D"),
    ("series", "not-utf-8", "name=%ED%A0%80"),
    ("series", "not-utf-8", "name=%FF"),
    ("series", "doubled-parameter", "name=hits&precision=60&precision=60"),
    ("series", "unknown-parameter", "name=hits&step=60"),
    ("series", "unknown-parameter", "name=hits&<script>alert(1)</script>=1"),
    ("series", "too-many", "&".join(f"name=n{number}" for number in range(201))),
    ("series", "bad-combination", "name=hits&name=b&by=route"),
    ("series", "bad-combination", "name=hits&by=route&exact=1"),
    ("series", "bad-parameter", "name=hits&by=%3Cb%3E"),
    ("series", "bad-parameter", "name=hits&kind=histogram"),
    ("series", "bad-parameter", "name=hits&exact=yes"),
    ("names", "bad-parameter", "limit=0"),
    ("names", "bad-parameter", "limit=10001"),
    ("top", "bad-parameter", "order=p101"),
    ("top", "bad-parameter", "order=%7B%7B7*7%7D%7D"),
    ("top", "bad-combination", "order=failing"),
    ("top", "bad-combination", "failing=status=5xx"),
    ("top", "bad-parameter", "label=route"),
    ("top", "bad-combination", "label=a=1&label=a=2"),
    ("summary", "bad-parameter", "name=a&q=1.5"),
    ("summary", "bad-parameter", "name=a&q=nan"),
    ("summary", "bad-parameter", "name=a&threshold=1e309"),
    ("summary", "bad-combination", "name=a&exact=1&by=c"),
    ("messages", "bad-parameter", "logger=" + "x" * 300),
    ("metrics", "bad-parameter", "offset=-1"),
    ("detail", "doubled-parameter", "name=hits&name=b"),
    ("doctor", "unknown-parameter", "x=1"),
]


@pytest.mark.parametrize(("path", "code", "query"), BAD)
def test_what_cannot_be_used_is_refused_with_what_mends_it(
    path: str, code: str, query: str, client: httpx.Client
) -> None:
    """JSON of ASCII with a code, a message and a fix; never a 500."""
    answer = client.get(f"/api/{path}?{query}")
    assert answer.status_code == 400, answer.text
    assert error_of(answer)["code"] == code
    assert answer.text.isascii()
    assert len(answer.content) < 1000
    assert answer.headers["cache-control"] == "no-store"


def test_an_unknown_precision_lists_those_that_are_kept(client: httpx.Client) -> None:
    """With what each is in words."""
    error = error_of(client.get("/api/series?name=hits&precision=61"))
    assert error["fix"] == (
        "kept are: 1 (1s), 5 (5s), 60 (1m), 300 (5m), 3600 (1h), 18000 (5h), 86400 (1d)"
    )


@pytest.mark.parametrize(("number", "status"), [(201, 400), (1_001, 400), (10_000, 414)])
def test_ten_thousand_names_are_refused(number: int, status: int) -> None:
    """Whether the query is too long or has too many of them."""
    query = "&".join(f"name=n{one}" for one in range(number)).encode()
    with pytest.raises(HTTPError) as raised:
        parse_query(SERIES, query)
    assert raised.value.status == status
    assert (len(query) > MAX_QUERY) is (status == 414)
    assert "at a time" in raised.value.fix or "fewer" in raised.value.fix


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/nothing", "/x", "/assets/../app.py"])
def test_what_is_nowhere_is_a_404(client: httpx.Client, path: str) -> None:
    """JSON too, with the way to what there is."""
    answer = client.get(path)
    assert answer.status_code == 404
    assert error_of(answer)["code"] == "not-found"


def test_a_path_of_markup_is_told_as_text(client: httpx.Client) -> None:
    """In JSON, as ASCII, cut to a length."""
    answer = client.get("/%3Cscript%3Ealert(1)%3C/script%3E%E2%80%AE" + "x" * 500)
    assert answer.status_code == 404
    error_of(answer)
    assert answer.text.isascii()
    assert len(answer.content) < 400
    assert client.get("/" + "x" * 2000).status_code == 414


def test_a_series_that_is_nowhere_is_told_as_such(client: httpx.Client) -> None:
    """It is no fault to ask for it: it may come yet. In a list of many it is an empty one."""
    found = client.get("/api/detail?name=nothing").json()
    assert (found["name"], found["kind"], found["total"]) == ("nothing", "", None)
    assert (found["precisions"], found["summary"], found["forecast"]) == ([], None, None)
    (series,) = client.get("/api/series?name=nothing").json()["series"]
    assert series["values"] == []


QUERIES = st.one_of(
    st.binary(max_size=60),
    st.lists(
        st.tuples(
            st.sampled_from(["name", "precision", "since", "until", "by", "sum", "kind", "x"]),
            st.text(max_size=20) | st.integers().map(str) | st.floats().map(str),
        ),
        max_size=5,
    ).map(lambda pairs: "&".join(f"{k}={quote(v, errors='replace')}" for k, v in pairs).encode()),
)


@given(QUERIES)
def test_any_query_is_read_or_refused(query: bytes) -> None:
    """Nothing else comes out, whatever goes in; and a refusal can be sent."""
    values, refusal = read(query)
    if refusal is not None:
        assert refusal.status == 400
        assert all(vars(refusal.answer().error).values())
        assert as_json(refusal.answer()).isascii()
    else:
        assert 1 <= values["precision"] <= 366 * 86400
        assert 1 <= len(values["name"]) <= 200


def read(query: bytes) -> tuple[dict[str, Any], HTTPError | None]:
    """Return what is read, or the refusal."""
    try:
        return parse_query(SERIES, query), None
    except HTTPError as refusal:
        return {}, refusal
