"""The API answers what is stored, in two round trips at most, in the shapes that it promises."""

import json
import time
from typing import Any

import httpx
import jsonschema  # type: ignore[import-untyped]
import pytest

from dashboard.conftest import HOSTILE, error_of
from redmeter import Meter
from redmeter.dashboard import app
from redmeter.dashboard.api.endpoints import ENDPOINTS, openapi
from redmeter.reading.page import background_ranking as rowrankings
from redmeter.reading.page import overview
from redmeter.stored.exception import group_of
from support.observed import put_observed
from support.servers import Server
from support.stores import exchanges
from support.waiting import eventually

FAILED = {"status": "5xx"}
#: The group of a KeyError that has no traceback.
GROUP = group_of("KeyError", ())

#: Messages of a window.
WINDOWED = "?since=1700000000&filter=a"

#: Something that each endpoint can be asked.
QUESTIONS = {
    "/api/overview": ["", "?precision=1", "?series=hits&series=queue_length&series=cart_value"],
    "/api/series": [
        "?name=hits&name=nothing",
        "?name=queue_length&kind=gauge&precision=5",
        "?name=http_requests&by=route",
        "?name=hostile&by=text&precision=3600",
        "?name=http_requests&label=method=GET",
        "?name=nothing&by=route",
    ],
    "/api/names": ["", "?pattern=h*", "?kind=gauge", "?kind=histogram&limit=1"],
    "/api/top": [
        "",
        "?name=http_requests&by=route",
        "?name=http_request_seconds&by=route&order=p95",
        "?name=http_request_seconds&by=route&order=total",
        "?order=p50",
        "?name=http_requests&by=route&order=failing&failing=status=5xx&label=method=GET",
    ],
    "/api/summary": [
        "?name=cart_value",
        "?name=cart_value&name=nothing&q=0.5&q=0.99&threshold=50&over_time=1",
        "?name=http_request_seconds&label=route=/cart",
    ],
    "/api/messages": [
        "",
        "?logger=shop",
        "?severity=error",
        "?logger=shop&severity=info&limit=1",
        WINDOWED,
    ],
    "/api/marks": ["", "?since=0&until=4000000000"],
    "/api/routes": ["", "?order=p95", "?order=failing&limit=1", "?order=total"],
    "/api/metrics": ["", "?order=change&grouped=1", "?kind=gauge", "?kind=histogram&pattern=h*"],
    "/api/detail": [
        "?name=hits",
        "?name=http_requests",
        "?name=cart_value",
        "?name=queue_length&precision=3600",
        '?name=http_requests{method="GET",route="/cart",status="5xx"}',
    ],
    "/api/forecast": ["?name=hits", "?name=nothing"],
    "/api/explain": [
        "?name=hits&since=1700000000",
        "?name=http_requests&failing=status=5xx&label=method=GET",
        "?name=cart_value&precision=60&against=yesterday",
        "?name=nothing",
    ],
    "/api/exceptions": ["", "?since=1&route=/&order=first&limit=1&precision=3600"],
    "/api/exception": ["?id=0123456789abcdef", f"?id={GROUP}&precision=300"],
    "/api/status": [""],
    "/api/statements": ["", "?order=p95&filter=SELECT&limit=1", "?caller=/cart&against=yesterday"],
    "/api/jobs": ["", "?order=failing&offset=1"],
    "/api/views": [""],
    "/api/verdict": ["?since=1700000000", "?since=1700000000&against=yesterday&precision=3600"],
    "/api/alert": ["?name=nothing&since=1700000000"],
    "/api/alerts": ["", "?limit=1"],
    "/api/doctor": [""],
}
ASKED = [path + query for path, queries in QUESTIONS.items() for query in queries]


def validator(path: str, status: str = "200") -> Any:
    """Return what checks an answer against the file; what it does not name is a fault."""
    document = json.loads(openapi().content)
    for schema in document["components"]["schemas"].values():
        schema["additionalProperties"] = False
    answers = document["paths"][path]["get"]["responses"][status]
    schema = answers["content"]["application/json"]["schema"]
    return jsonschema.Draft202012Validator({**document, **schema})


def test_there_is_a_question_for_each_endpoint() -> None:
    """So that none is left out below."""
    assert set(QUESTIONS) == {endpoint.path for endpoint in ENDPOINTS}


@pytest.mark.parametrize("url", ASKED)
def test_an_answer_is_what_the_file_says(url: str, client: httpx.Client, filled: Meter) -> None:
    """Of each endpoint, asked in several ways, of a store with something of everything."""
    answer = client.get(url)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    validator(url.partition("?")[0]).validate(answer.json())
    assert abs(float(answer.headers["redmeter-now"]) - answer.json()["now"]) < 0.001


@pytest.mark.parametrize("url", ASKED)
def test_an_answer_about_an_empty_store_is_too(url: str, client: httpx.Client) -> None:
    """Nothing is there yet."""
    answer = client.get(url)
    assert answer.status_code == 200, answer.text
    validator(url.partition("?")[0]).validate(answer.json())


@pytest.mark.parametrize("url", ASKED)
def test_an_answer_takes_two_round_trips_at_most(
    url: str, client: httpx.Client, filled: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it shows; what the store keeps is known, as after the first answer.

    A verdict takes four: marks, requests, response times, and log patterns. Messages of a window
    take three, and so does an explanation: exceptions have an index of their own. A status is
    judged once a minute, in up to thirteen; then it is kept, and takes two.
    """
    assert client.get("/healthz").status_code == 200
    chosen = url.startswith(("/api/series", "/api/top", "/api/summary")) and "precision" not in url
    with exchanges(monkeypatch) as seen:
        assert client.get(url).status_code == 200
    three = url.startswith("/api/explain") or url.endswith(WINDOWED)
    most = 4 if url.startswith("/api/verdict") else 3 if three else 2
    most = 13 if url == "/api/status" else most
    assert 1 <= len(seen) <= most + chosen  # which precisions there are


# --- Figures -------------------------------------------------------------------------------


def test_series_have_what_was_counted(client: httpx.Client, filled: Meter) -> None:
    """In the order in which they were asked for; what is nowhere is empty, at the window's end."""
    found = client.get("/api/series?name=nothing&name=hits").json()
    nothing, hits = found["series"]
    assert (nothing["values"], nothing["start"]) == ([], found["window"]["until"])
    assert sum(hits["values"]) == 12
    assert hits["partial"]
    assert hits["start"] + 60 * len(hits["values"]) == found["window"]["until"] > found["now"]
    (queue,) = client.get("/api/series?name=queue_length&kind=gauge").json()["series"]
    assert queue["values"][-1] == 7.5
    assert client.get("/api/series?name=queue_length").json()["error"]["code"] == "wrong-kind"


def test_hostile_texts_come_back_as_they_are(client: httpx.Client, filled: Meter) -> None:
    """In every answer that has them, letter by letter, and as ASCII on the way."""
    answer = client.get("/api/series?name=hostile&by=text")
    assert {series["labels"]["text"] for series in answer.json()["series"]} == set(HOSTILE)
    assert answer.json()["of"] == len(HOSTILE)
    assert answer.text.isascii()
    rows = client.get("/api/top?name=hostile&by=text").json()["rows"]
    assert {row["key"] for row in rows} == set(HOSTILE)
    marks = client.get("/api/marks").json()["marks"]
    assert {mark["label"] for mark in marks} == {f"deploy {text}" for text in HOSTILE}
    said = client.get("/api/messages?severity=error").json()
    assert {message["text"] for message in said["recent"]} == {
        f"cannot do {text}" for text in HOSTILE
    }


def test_rankings_and_summaries_are_those_of_the_meter(client: httpx.Client, filled: Meter) -> None:
    """Row by row."""
    options = {"by": "route", "precision": 60, "last": 3600}
    for name, order in (("http_requests", "count"), ("http_request_seconds", "p95")):
        found = client.get(f"/api/top?name={name}&by=route&order={order}").json()
        rows = filled.top(name, order=order, **options)  # type: ignore[arg-type]
        assert [(row["key"], row["count"], row["value"]) for row in found["rows"]] == [
            (row.key, row.count, row.value) for row in rows
        ]
    url = "/api/summary?name=cart_value&q=0.5&q=1&threshold=50&over_time=1"
    (summary,) = client.get(url).json()["summaries"]
    assert (summary["count"], summary["total"], summary["high"]) == (2, 111.5, 99.0)
    assert summary["quantiles"]["1"] == 99.0
    assert summary["share_above"] == 0.5
    assert sum(summary["over_time"]["count"]) == 2
    assert [bucket[2] for bucket in summary["buckets"]] == [1, 1]


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("name=*", {}),
        ("name=h*&last=2&precision=60", {"last": 2}),
        ("name=hits&precision=5", {"precision": 5, "last": 60}),
        ("name=http_requests&by=status", {"by": "status"}),
        ("name=http_requests&by=route&label=status=5xx", {"by": "route", "labels": FAILED}),
        (
            "name=http_requests&by=route&order=failing&failing=status=5xx",
            {"by": "route", "order": "failing", "failing": FAILED},
        ),
        ("name=http_requests*&order=failing&failing=status=5xx", {"failing": FAILED}),
        ("name=cart_value", {}),
        ("name=cart_value&order=total", {"order": "total"}),
        ("name=http_request_seconds&by=route&order=mean", {"by": "route", "order": "mean"}),
        ("name=http_request_seconds&order=total&by=route", {"by": "route", "order": "total"}),
        ("name=nothing", {}),
        ("name=nothing&order=mean", {"order": "mean"}),
    ],
)
def test_what_is_summed_up_is_ranked_as_the_meter_does(
    query: str, options: Any, client: httpx.Client, filled: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By few round trips."""
    client.get("/api/marks")
    with exchanges(monkeypatch) as seen:
        found = client.get(f"/api/top?{query}&limit=50").json()
    most = 2 + (not found["groups"])  # the kinds of a name without series
    # Without a precision, each kind has its finest.
    assert len(seen) <= (most if "precision" in query else 2 * (most + 1))
    if "failing" in options:
        options = {"order": "failing", **options}
    name = query.partition("&")[0].removeprefix("name=")
    rows = filled.top(name, **{"precision": 60, "last": "1h", "limit": 50, **options})
    assert [tuple(row.values()) for row in found["rows"]] == [
        (row.key, row.count, row.share, row.value) for row in rows
    ]
    assert (found["groups"], found["examined"]) == (rows.groups, rows.examined)
    assert found["intervals"] == rows.intervals


def test_a_ranking_of_very_many_series_is_refused(
    client: httpx.Client, filled: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Since the server would do nothing else meanwhile; it is told how many there are."""
    monkeypatch.setattr("redmeter.reading.top.MAX_RANKED_SERIES", 14)
    assert client.get("/api/top?name=http_requests*").status_code == 200
    answer = client.get("/api/top?name=*")
    assert (answer.status_code, error_of(answer)["code"]) == (400, "too-many")
    assert error_of(answer)["fix"] == "narrow the pattern down"


def test_names_are_told_with_how_many_there_are(client: httpx.Client, filled: Meter) -> None:
    """Though not all are shown."""
    found = client.get("/api/names?pattern=http_requests*&limit=3").json()
    assert found["total"] == 8
    assert found["names"] == filled.names("http_requests*")[:3]


def test_what_is_too_large_is_refused(
    client: httpx.Client, filled: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With how large it would be."""
    monkeypatch.setattr("redmeter.dashboard.app.MAX_ANSWER_BYTES", 100)
    answer = client.get("/api/overview")
    assert answer.status_code == 400
    error = error_of(answer)
    assert (error["code"], error["fix"]) == ("answer-too-large", "at most 100: ask for less")


@pytest.mark.parametrize(
    ("precision", "setting", "other"), [(1, "KEEP_FINE", "KEEP"), (60, "KEEP", "KEEP_FINE")]
)
def test_however_many_watch_the_server_is_asked_once_within_the_time(
    precision: int,
    setting: str,
    other: str,
    client: httpx.Client,
    filled: Meter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them at another moment."""
    keep = 0.3
    monkeypatch.setattr(app, setting, keep)
    monkeypatch.setattr(app, other, 0.0)
    path = f"/api/series?name=hits&precision={precision}"
    client.get(path)
    with exchanges(monkeypatch) as seen:
        began = time.monotonic()
        while time.monotonic() < began + 2.5 * keep:
            assert client.get(path).status_code == 200
            time.sleep(keep / 10)
        passed = time.monotonic() - began
    assert 1 <= len(seen) <= passed / keep + 1


def test_what_a_page_repeats_is_shared_until_it_is_asked_again(
    client: httpx.Client, filled: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So tabs that were opened at different moments read once; other answers are shared shorter."""
    monkeypatch.setattr(app, "KEEP", 1e-6)
    monkeypatch.setattr(app, "REPEATED", 60e6)
    for path, reads in (("/api/overview", 0), ("/api/status", 0), ("/api/routes", 5)):
        client.get(path)
        with exchanges(monkeypatch) as seen:
            for _ in range(5):
                assert client.get(path).status_code == 200
        assert len(seen) >= reads if reads else not seen, path


def test_ten_who_watch_cost_what_one_does(
    client: httpx.Client, filled: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a moment; whatever the order in which they write it."""
    monkeypatch.setattr("redmeter.dashboard.app.KEEP", 60.0)
    assert client.get("/healthz").status_code == 200
    with exchanges(monkeypatch) as seen:
        for _ in range(5):
            client.get("/api/series?name=hits&precision=60")
            client.get("/api/series?precision=60&name=hits")
    assert len(seen) == 1


# --- Very many series ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("/api/overview", "zzz_orders"),
        ("/api/metrics?order=count&limit=10", "zzz_orders"),
        ("/api/metrics?order=change&pattern=*o*&limit=10", "zzz_orders"),
        ("/api/metrics?order=count&kind=histogram", "zzz_took"),
    ],
)
def test_of_very_many_series_the_busiest_is_first_whatever_its_name(
    url: str,
    name: str,
    client: httpx.Client,
    meter: Meter,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread of the page ranks all of them; then an answer takes two round trips as ever."""
    monkeypatch.setattr(app, "KEEP", 0.0)
    monkeypatch.setattr(overview, "PANELS_SECONDS", 0.0)
    meter.count("zzz_orders", 500_000)
    now = time.time()
    with server.client() as redis:
        put_observed(redis, {"zzz_took": [(now, 0.5)] * 3})
        for index in ("known", "hists"):
            names = {f"60:aaa_orders_{n:04}": 0 for n in range(1_600)}
            redis.zadd(f"redmeter:{index}:", names)

    def listed() -> Any:
        answer = client.get(url)
        assert answer.status_code == 200, answer.text
        validator(url.partition("?")[0]).validate(answer.json())
        return answer.json()["counters"] if "overview" in url else answer.json()

    first = listed()
    assert (first["ranked_at"], first["examined"], first["total"]) == (None, 1_000, 1_601)
    eventually(lambda: listed()["ranked_at"] is not None)
    with exchanges(monkeypatch) as seen:
        then = listed()
        assert len(seen) == 2
    assert (then["rows"][0]["name"], then["examined"], then["found"]) == (name, 1_601, 1_601)
    assert 0 <= time.time() - then["ranked_at"] < 60


def test_lists_by_name_are_never_ranked(
    client: httpx.Client, meter: Meter, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor are gauges, whose samples add up to nothing: both go on page by page."""
    monkeypatch.setattr(app, "KEEP", 0.0)
    ranked: list[Any] = []
    monkeypatch.setattr(rowrankings, "rank_all", lambda *given: ranked.append(given))
    with server.client() as redis:
        for index in ("known", "gauges"):
            names = {f"60:n{n:04}": 0 for n in range(1_600)}
            redis.zadd(f"redmeter:{index}:", names)
    for query in ("order=name", "kind=gauge&order=count", "kind=gauge&order=change"):
        found = client.get(f"/api/metrics?{query}&offset=1550&limit=50").json()
        assert [row["name"] for row in found["rows"]] == [f"n{n:04}" for n in range(1_550, 1_600)]
        assert (found["found"], found["ranked_at"]) == (1_600, None)
    assert ranked == []
