"""Hostile requests to the query API: bounded work and memory, a clear refusal, no crash."""

import tracemalloc
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from redmeter import Meter
from redmeter.dashboard import Dashboard
from support.asking import asking

FORM = {"content-type": "application/x-www-form-urlencoded"}
EVERYTHING = '{__name__=~".+"}'


@pytest.fixture
def api(dashboard: Dashboard, filled: Meter) -> Iterator[httpx.Client]:
    """A client of a page whose store has something of everything."""
    filled.flush()
    with asking(dashboard) as client:
        yield client


def post(api: httpx.Client, path: str, **parameters: Any) -> httpx.Response:
    """Send a form."""
    form = urlencode({name.replace("match", "match[]"): v for name, v in parameters.items()}, True)
    return api.post(f"/api/v1/{path}", content=form, headers=FORM)


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        pytest.param("x" * 1_000_000, 413, "bytes", id="1-MB"),
        pytest.param("(" * 60_000, 400, "nested", id="deep"),
        pytest.param("{" + ",".join(['a="b"'] * 12_000) + "}", 400, "characters", id="matchers"),
        pytest.param("-" * 60_000 + "1", 400, "operators", id="operators"),
        pytest.param(" or ".join([EVERYTHING] * 202), 400, "operators", id="selectors"),
        pytest.param("sum_over_time(hits_total[1000d:1ms])", 422, "wider step", id="subquery"),
        pytest.param(
            f"sum_over_time(({EVERYTHING})[90d:1m])", 422, "wider step", id="subquery-of-all"
        ),
        pytest.param("hits_total offset 99999y", 400, "10,000 years", id="offset"),
        pytest.param('hits_total{a=~"("}', 400, "illegal regex", id="regex"),
        pytest.param('hits_total{a=~"' + "x.*" * 6_000 + '"}', 400, "characters", id="long-regex"),
        pytest.param(f"topk(1e300, {EVERYTHING})", 422, "overflows", id="topk"),
        pytest.param(f"sum by (x) ({EVERYTHING}", 400, "parse error", id="open"),
    ],
)
def test_a_hostile_query_is_refused(api: httpx.Client, query: str, status: int, text: str) -> None:
    """With a status, an error in Prometheus' form and a remedy; the API goes on."""
    response = post(api, "query", query=query)
    body = response.json()
    assert (response.status_code, body["status"]) == (status, "error"), body["error"][:300]
    assert text in body["error"]
    assert len(body["error"]) < 2_000
    assert post(api, "query", query="1+1").json()["data"]["result"][1] == "2"


@pytest.mark.parametrize(
    "query",
    [
        'hits_total{a=~"(x+x+)+y"}',
        'label_replace(hits_total, "a", "$1", "__name__", "((((.*)*)*)*)*")',
        f"rate({EVERYTHING}[9000y])",
        "max_over_time(max_over_time(max_over_time(hits_total[1h:1m])[1h:1m])[1h:1m])",
        f"count_values('v', {EVERYTHING}) * on () group_left vector(1)",
        f"quantile(NaN, {EVERYTHING}) or 1 / vector(0) % -Inf ^ 1e308",
        "hits_total @ 99999999999 offset -5y",
    ],
)
def test_a_strange_query_ends(api: httpx.Client, query: str) -> None:
    """With an answer, or with an error of the query."""
    response = post(api, "query", query=query)
    assert response.status_code in (200, 400, 422), response.text[:300]


@pytest.mark.parametrize(
    ("start", "end", "step"),
    [
        (0, 10**11, 1),
        (-(10**11), 10**11, "1ms"),
        ("1e308", "1e309", 1),
        ("NaN", "Inf", "NaN"),
        (0, 10, "99999999999999y"),
        (0, 10, "1e-300"),
    ],
)
def test_a_huge_range_is_refused(api: httpx.Client, start: Any, end: Any, step: Any) -> None:
    """Before anything is read."""
    response = post(api, "query_range", query=EVERYTHING, start=start, end=end, step=step)
    assert response.status_code in (400, 422)
    assert response.json()["errorType"] in ("bad_data", "execution")


def test_a_list_of_many_selectors_ends_in_time(api: httpx.Client) -> None:
    """Each selector looks at all names: the time limit holds for lists, too."""
    response = post(api, "series", match=[EVERYTHING] * 2_000, timeout="1ms")
    assert (response.status_code, response.json()["errorType"]) == (503, "timeout")


def test_a_query_beyond_the_limits_takes_little_memory(api: httpx.Client) -> None:
    """It is refused before its values exist."""
    post(api, "query", query="hits_total")
    tracemalloc.start()
    try:
        response = post(
            api, "query_range", query=f"{EVERYTHING} * 2", start=0, end=10_999_000, step=1_000
        )
        huge = post(api, "query", query=f"sum_over_time(({EVERYTHING})[900d:1s])")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (response.status_code, huge.status_code) in ((200, 422), (422, 422))
    assert peak < 200_000_000
