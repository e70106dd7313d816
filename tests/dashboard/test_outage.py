"""The store goes away, hangs, comes back: a 503 that says so, and then answers again."""

import contextlib
import threading
from typing import Any

import httpx
import pytest
import redis

from dashboard.conftest import error_of
from redmeter import Meter
from redmeter.dashboard import Dashboard, app
from redmeter.dashboard.api import endpoints as api
from redmeter.dashboard.api.prometheus import QUERY_THREADS
from redmeter.dashboard.cache import THREADS, Body
from redmeter.dashboard.errors import HTTPError
from support.asking import asking
from support.proxy import Proxy
from support.servers import Server
from support.waiting import eventually

PATHS = ["/api/overview", "/api/series?name=hits", "/api/doctor", "/api/messages", "/api/top"]


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept for longer than a moment."""
    monkeypatch.setattr(app, "KEEP", 0.01)


def test_a_store_that_is_away_is_a_503_until_it_is_back(server: Server, meter: Meter) -> None:
    """Without a restart of anything; /-/ready says the same, and /-/healthy that the page runs."""
    meter.count("hits")
    dashboard = Dashboard(server.url, access="open")
    with asking(dashboard) as client:
        for path in PATHS:
            assert client.get(path).status_code == 200
        assert client.get("/healthz").json() == {"status": "ok"}
        server.kill()
        eventually(lambda: client.get("/healthz").status_code == 503)
        assert client.get("/healthz").json() == {"status": "unavailable"}
        assert client.get("/-/ready").status_code == 503
        alive = client.get("/-/healthy")
        assert (alive.status_code, alive.json()) == (200, {"status": "ok"})
        for path in PATHS:
            answer = client.get(path)
            assert answer.status_code == 503
            assert error_of(answer)["code"] == "store-unavailable"
            assert answer.headers["retry-after"] == "1"
            assert str(server.port) in error_of(answer)["message"]
        server.start()
        for path in [*PATHS, "/healthz", "/-/ready"]:
            eventually(lambda path=path: client.get(path).status_code == 200)  # type: ignore[misc]
    dashboard.close()


def test_a_password_is_in_no_answer(server: Server) -> None:
    """Neither of a wrong one nor of one that the server does not get to see."""
    url = server.url.replace("://", "://ada:hidden-secret@")
    dashboard = Dashboard(url, access="open")
    with asking(dashboard) as client:
        answer = client.get("/api/overview")
        assert (answer.status_code, error_of(answer)["code"]) == (503, "store-denied")
        assert error_of(answer)["fix"] == "check user and password in the URL"
        assert "hidden" not in answer.text
        server.kill()
        answer = client.get("/api/marks")
        assert (answer.status_code, error_of(answer)["code"]) == (503, "store-unavailable")
        assert "hidden" not in answer.text
        server.start()
    dashboard.close()


@pytest.mark.parametrize("own", [True, False])
def test_a_store_that_hangs_is_a_503_within_the_time_limit(
    own: bool, proxy: Proxy, meter: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a URL or by a client that waits for ever; what needs no store is answered meanwhile."""
    client_of_theirs = redis.Redis(port=proxy.port)
    dashboard = Dashboard(proxy.url if own else client_of_theirs, access="open")
    with asking(dashboard) as client:
        assert client.get("/api/marks").status_code == 200
        proxy.black_hole()
        monkeypatch.setattr(api, "ANSWER_SECONDS", 0.1)
        for number in range(2 * THREADS if not own else 2):
            answer = client.get(f"/api/marks?since={number}")
            assert answer.status_code == 503
            assert error_of(answer)["code"] in ("timed-out", "store-unavailable")
            assert client.get("/api/openapi.json").status_code == 200
        assert sum(t.name == "redmeter-page" for t in threading.enumerate()) <= THREADS
        proxy.heal()
        monkeypatch.setattr(api, "ANSWER_SECONDS", 1.0)
        eventually(lambda: client.get("/api/marks?since=99").status_code == 200, 15.0)
    dashboard.close()
    client_of_theirs.close()


def test_whether_it_is_alive_is_told_though_all_is_busy(dashboard: Dashboard) -> None:
    """Others are told to come again; who asks for that is not."""
    may, begun = threading.Event(), threading.Semaphore(0)
    numbers = iter(range(10_000))

    def wait() -> Body:
        begun.release()
        may.wait(60)
        return Body(b"{}", "application/json")

    def fill() -> None:
        with contextlib.suppress(HTTPError):
            while True:
                dashboard._shared.get(next(numbers), wait, 1.0)

    with asking(dashboard) as client:
        try:
            fill()
            for _ in range(THREADS):
                assert begun.acquire(timeout=30)
            fill()  # what the threads have taken is no longer waiting
            answer = client.get("/api/marks")
            assert (answer.status_code, error_of(answer)["code"]) == (503, "busy")
            assert client.get("/healthz").status_code == 200
        finally:
            may.set()


def test_a_query_that_waits_for_others_times_out_as_they_do(
    dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the error type and the words that Prometheus has for it."""
    may, begun = threading.Event(), threading.Semaphore(0)

    def wait() -> Body:
        begun.release()
        may.wait(60)
        return Body(b"{}", "application/json")

    with asking(dashboard) as client:
        try:
            for number in range(QUERY_THREADS):
                dashboard._queries.get(number, wait, 1.0)
                assert begun.acquire(timeout=30)
            monkeypatch.setattr(api, "ANSWER_SECONDS", 0.1)
            answer = client.get("/api/v1/query?query=up")
            assert (answer.status_code, answer.json()["errorType"]) == (503, "timeout")
            assert answer.json()["error"].startswith("query timed out after")
        finally:
            may.set()


def test_switched_off_is_said(client: Any) -> None:
    """An application whose store is off is not disturbed by the page that it mounts."""
    dashboard = Dashboard("off", access="open")
    with asking(dashboard) as off:
        answer = off.get("/api/overview")
        assert (answer.status_code, error_of(answer)["code"]) == (503, "switched-off")
        assert off.get("/healthz").status_code == 503


def test_a_series_that_vanishes_while_it_is_looked_at(
    client: httpx.Client, meter: Meter, server: Server
) -> None:
    """Its page says that it is gone until it comes again, a list shows nothing of it."""
    meter.count("hits")
    meter.observe("cart_value", 1.0)
    assert client.get("/api/detail?name=hits").status_code == 200
    with server.client() as store:
        store.flushdb()
    gone = client.get("/api/detail?name=hits&precision=5").json()
    assert (gone["kind"], gone["precisions"], gone["hours"]) == ("", [], None)
    assert client.get("/api/series?name=hits&precision=5").json()["series"][0]["values"] == []
    (summary,) = client.get("/api/summary?name=cart_value&precision=5").json()["summaries"]
    assert (summary["count"], summary["mean"], summary["buckets"]) == (0, None, [])
    meter.count("hits", 2)
    again = client.get("/api/detail?name=hits&precision=300").json()
    assert (again["kind"], again["total"]) == ("counter", 2)


def test_what_another_program_keeps_there_is_no_failure(
    client: httpx.Client, meter: Meter, server: Server
) -> None:
    """Of many names the others are shown; of one alone it is said."""
    meter.count("hits")
    with server.client() as store:
        store.set("redmeter:count:60:other", "a text")
        store.zadd("redmeter:known:", {b"60:other": 0, b"60:\xff\xfe": 0, "nonsense": 0})
        store.rpush("redmeter:hist:60:hits", "x")
    shown = client.get("/api/series?name=hits&name=other").json()["series"]
    assert [(series["name"], sum(series["values"])) for series in shown] == [("hits", 1)]
    answer = client.get("/api/series?name=other")
    assert (answer.status_code, error_of(answer)["code"]) == (503, "store-refused")
    for path in ("overview", "metrics", "routes", "names", "top", "doctor", "detail?name=hits"):
        assert client.get(f"/api/{path}").status_code == 200, path


@pytest.mark.parametrize(
    "key",
    [
        "redmeter:total:",
        "redmeter:marks:",
        "redmeter:messages:",
        "redmeter:writers:",
        "redmeter:reports:",
        "redmeter:instances:",
        "redmeter:hists:",
        "redmeter:gauges:",
        "redmeter:known:",
        "redmeter:count:60:hits",
        "redmeter:count:60:hits_failed",
        "redmeter:hist:60:hits_seconds",
        "redmeter:hist:60:TIMED",
        "redmeter:moments:60:TIMED",
    ],
)
def test_a_panel_that_another_program_takes_is_empty_and_the_others_are_there(
    key: str, client: httpx.Client, meter: Meter, server: Server
) -> None:
    """Whichever of our keys it keeps something else under."""
    labels = {"method": "GET", "route": "/"}
    meter.count("hits", 3)
    meter.count("hits_failed", 1)
    meter.observe("hits_seconds", 0.2)
    meter.count("http_requests", 3, labels={**labels, "status": "2xx"})
    meter.observe("http_request_seconds", 0.2, labels=labels)
    meter.observe("cart_value", 12.5, labels={"shop": "tea"})
    meter.log("shop", "paid", severity="error")
    meter.mark("deploy")
    key = key.replace("TIMED", 'http_request_seconds{method="GET",route="/"}')
    with server.client() as store:
        store.delete(key)
        store.set(key, "a text")
    for path in ("overview", "routes", "detail?name=hits", "detail?name=http_requests"):
        answer = client.get(f"/api/{path}")
        assert answer.status_code == 200, (path, answer.text)
    for name in ("http_request_seconds", "cart_value"):
        assert client.get(f"/api/detail?name={name}").status_code == 200
    seen = client.get("/api/overview").json()
    hits, errors, p95 = (seen["numbers"][name] for name in ("hits", "errors", "p95"))
    # Totals are read without the index; where they cannot be read, requests are by label set.
    unread = key == "redmeter:count:60:hits"
    assert (hits["count"], hits["name"]) == (3, "http_requests" if unread else "hits")
    assert (errors["value"] is None) is (unread or key == "redmeter:count:60:hits_failed")
    assert (p95["value"] is None) is (key == "redmeter:hist:60:hits_seconds")
    assert bool(seen["marks"]) is (key != "redmeter:marks:")
    assert bool(seen["messages"]["frequent"]) is (key != "redmeter:messages:")


def test_a_new_retention_is_followed(client: httpx.Client, meter: Meter) -> None:
    """Precisions that come and go while the page is open."""
    meter.count("hits")
    assert client.get("/api/overview").status_code == 200
    assert meter._store is not None
    meter._store.change_retention([(60, 0), (10, 100)])
    answer = client.get("/api/overview?precision=60&series=hits")
    assert (answer.status_code, error_of(answer)["code"]) == (400, "unknown-precision")
    assert "10 (10s)" in error_of(answer)["fix"]
    assert client.get("/api/overview?precision=10").status_code == 200
