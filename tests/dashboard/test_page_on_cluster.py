"""The page of a store on a cluster, also with a node away: what there is, and what is missing."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from dashboard.conftest import error_of
from dashboard.test_api import ASKED, validator
from redmeter import Meter
from redmeter.dashboard import Dashboard, app
from redmeter.reading.page import background_ranking as rowrankings
from redmeter.reading.page.listing import RowListing
from redmeter.store.servers import retry
from redmeter.store.servers.connection import ServerLink
from redmeter.stored.shards import shard_of
from support.asking import asking
from support.clusters import Cluster
from support.progress import shards_on, slot_of
from support.stores import opened_store
from support.waiting import eventually

NAMES = [f"n{number}" for number in range(40)]


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept for longer than a moment."""
    monkeypatch.setattr(app, "KEEP", 0.0)


@pytest.fixture
def client(cluster: Cluster) -> Iterator[httpx.Client]:
    """A client of the page of a store that has something of everything, in all shards."""
    with Meter(cluster.url, sync=True) as meter:
        for number, name in enumerate(NAMES):
            meter.count(name, number + 1)
            meter.log(f"logger{number}", "late")
        for status in ("2xx", "5xx"):
            labels = {"method": "GET", "route": "/cart", "status": status}
            meter.count("http_requests", 3, labels=labels)
        meter.observe("http_request_seconds", 0.2, labels={"method": "GET", "route": "/cart"})
        meter.observe("cart_value", 12.5)
        meter.gauge("queue_length").set(7.5)
        meter.mark("v1")
    cluster.keep_masters()
    dashboard = Dashboard(f"{cluster.url}?socket_timeout=0.3", access="open")
    with asking(dashboard) as client:
        yield client
    dashboard.close()


def counters(client: httpx.Client) -> Any:
    """Return what the list of counters answers: all of NAMES that there are."""
    answer = client.get("/api/metrics?pattern=n*&limit=200")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_nothing_is_missing_where_all_nodes_answer(client: httpx.Client) -> None:
    """Each answer says so, in the shape that is promised."""
    for url in ASKED:
        answer = client.get(url)
        assert answer.status_code == 200, answer.text
        assert answer.json()["missing"] == []
        assert list(validator(url.partition("?")[0]).iter_errors(answer.json())) == []
    assert client.get("/api/doctor").json()["level"] != "fail"
    assert client.get("/api/top?name=n*").json()["complete"] is True


def test_with_a_node_away_the_page_shows_what_there_is(
    client: httpx.Client, cluster: Cluster
) -> None:
    """Every question is answered, and says who does not; once it is back, all is there."""
    assert len(counters(client)["rows"]) == len(NAMES)
    node = cluster.nodes[1]
    cluster.pause(node)
    away = shards_on(cluster, node)
    there = {name for name in NAMES if shard_of(name) not in away}
    told = [f"{node.address} does not answer"]
    found = counters(client)
    assert {row["name"] for row in found["rows"]} == there
    assert found["missing"] == told
    for url in ASKED:
        answer = client.get(url)
        if answer.status_code == 503:  # all that was asked for lies there
            assert node.address in error_of(answer)["message"], url
            continue
        assert answer.status_code == 200, (url, answer.text)
        if not url.startswith(("/api/marks", "/api/forecast", "/api/series", "/api/summary")):
            assert answer.json()["missing"] == told, url
    for url in ("/api/overview", "/api/metrics", "/api/messages", "/api/names", "/api/doctor"):
        assert client.get(url).status_code == 200
    assert client.get("/healthz").status_code == 200
    levels = {f["level"] for f in client.get("/api/doctor").json()["findings"]}
    assert "fail" in levels
    assert client.get("/api/top?name=n*").json()["complete"] is False
    unknown = client.get("/api/top?name=n*&label=rout=/")
    assert unknown.status_code == 503
    assert f"on the nodes that answer ({node.address} " in error_of(unknown)["message"]
    cluster.resume(node)
    eventually(lambda: counters(client)["missing"] == [], 10.0)
    assert len(counters(client)["rows"]) == len(NAMES)
    eventually(lambda: client.get("/api/top?name=n*&label=rout=/").status_code == 400, 10.0)


def test_a_node_that_stands_still_holds_up_no_other_question(
    client: httpx.Client, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is waited for once; while it is left alone, it is not even asked."""
    counters(client)
    asked: list[str] = []
    whole = ServerLink.exchange

    def noted(self: ServerLink, *args: Any, **options: Any) -> Any:
        asked.append(self.location.partition(" ")[0])
        return whole(self, *args, **options)

    monkeypatch.setattr(ServerLink, "exchange", noted)
    node = cluster.nodes[2]
    cluster.pause(node)

    def is_left_alone() -> bool:
        counters(client)
        asked.clear()
        answer = client.get("/api/overview")
        assert answer.status_code == 200, answer.text
        assert asked
        return node.address not in asked

    counters(client)
    assert node.address in asked
    # It is left alone for 2 s at most, which a busy machine may spend between the two requests.
    eventually(is_left_alone, 30.0)


def test_a_scrape_is_whole_or_refused(client: httpx.Client, cluster: Cluster) -> None:
    """With a node away, Prometheus would see sums fall; `partial=1` reports it instead."""

    def scraped(query: str = "") -> tuple[int, str]:
        answer = client.get(f"/metrics{query}")
        return answer.status_code, answer.text

    status, text = scraped()
    assert status == 200
    assert "scrape_complete" not in text
    assert "\nredmeter_scrape_complete 1\n" in scraped("?partial=1")[1]
    node = cluster.nodes[1]
    cluster.pause(node)
    away = shards_on(cluster, node)
    eventually(lambda: scraped()[0] == 503, 10.0)
    status, text = scraped()
    assert (status, node.address in text) == (503, True)
    status, text = scraped("?partial=1")
    assert status == 200
    assert "\nredmeter_scrape_complete 0\n" in text
    assert "no-total" not in text
    present = {name for name in NAMES if f"\n{name}_total " in text}
    assert present == {name for name in NAMES if shard_of(name) not in away}
    cluster.resume(node)
    eventually(lambda: scraped()[0] == 200, 10.0)
    eventually(lambda: "redmeter_scrape_complete 1" in scraped("?partial=1")[1], 10.0)
    assert client.get("/metrics?partial=2").status_code == 400


def test_a_query_warns_of_a_node_that_is_away_until_it_is_back(
    client: httpx.Client, cluster: Cluster
) -> None:
    """Each answer has the warnings of its own reads."""

    def warnings() -> list[str]:
        answer = client.get('/api/v1/query?query=count({__name__=~"n.*_total"})')
        assert answer.status_code == 200, answer.text
        warned: list[str] = answer.json().get("warnings", [])
        return warned

    assert warnings() == []
    node = cluster.nodes[1]
    cluster.pause(node)
    eventually(lambda: warnings() == [f"{node.address} does not answer"], 10.0)
    cluster.resume(node)
    eventually(lambda: warnings() == [], 10.0)


def test_a_slot_that_nobody_serves_is_named(
    client: httpx.Client, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies there is missing, and the rest is shown."""
    monkeypatch.setattr(retry, "MOVING_TRIES_BEST_EFFORT", 1)
    slot = slot_of(63)
    home = cluster.node_of(slot)
    cluster.drop_slot(slot)
    try:
        eventually(lambda: counters(client)["missing"] == [f"nobody serves slot {slot}"], 10.0)
        assert client.get("/api/overview").status_code == 200
    finally:
        cluster.serve_slot(slot, home)
        cluster.wait_ok()


def test_all_nodes_away_is_a_503(client: httpx.Client, cluster: Cluster) -> None:
    """There is nothing to show."""
    for node in cluster.masters():
        cluster.pause(node)
    answer = client.get("/api/overview")
    assert (answer.status_code, error_of(answer)["code"]) == (503, "store-unavailable")
    assert client.get("/healthz").status_code == 503


def test_series_of_all_shards_are_ranked(
    client: httpx.Client, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Page by page, each of series from several shards: none is missed, none comes twice."""
    monkeypatch.setattr(rowrankings, "MIN_PAGE", 7)
    monkeypatch.setattr(rowrankings, "MAX_PAGE", 7)
    with opened_store(cluster.url) as store:
        ranked, _ = rowrankings.rank_all(store, rowrankings.RankingKey(60))
    found = [(group.row.name, group.row.count) for group in ranked.rows]
    counted = [(name, number + 1) for number, name in enumerate(NAMES)]
    assert [one for one in found if one in counted] == sorted(counted, key=lambda one: -one[1])
    assert (ranked.examined, len(found)) == (len(NAMES) + 2, len(NAMES) + 2)


def test_a_ranking_that_lacks_a_node_is_not_kept(
    client: httpx.Client, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would go on lacking its series when the node is back."""
    monkeypatch.setattr(rowrankings, "MAX_LISTED_SERIES", 3)
    with opened_store(f"{cluster.url}?socket_timeout=0.3") as store:
        rankings = rowrankings.RowRankings(store, lambda work: work())
        key = rowrankings.RankingKey(60)
        found = RowListing([], total=len(NAMES), examined=3, found=3)
        node = cluster.masters()[0]
        cluster.pause(node)
        rankings.refresh(key, found)
        assert rankings.last(key) is None
        cluster.resume(node)
        monkeypatch.setattr(rowrankings, "RANK_SECONDS", 0.0)

        def ranked() -> bool:
            rankings._kept.clear()
            rankings.refresh(key, found)
            return rankings.last(key) is not None

        eventually(ranked, 10)
