"""The commands on a store that lies on a cluster, also with one of its nodes away."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from redmeter import Meter
from redmeter import store as stores
from redmeter.store.servers import retry
from redmeter.stored.shards import TAGS, shard_of
from support.clusters import Cluster
from support.commands import Done, Home
from support.invoking import Run
from support.nodes import Node
from support.progress import shards_on, slot_of
from support.waiting import eventually

NAMES = [f"n{number}" for number in range(40)]


@pytest.fixture
def filled(cluster: Cluster) -> Cluster:
    """A cluster with something of everything."""
    with Meter(cluster.url, sync=True) as meter:
        for number, name in enumerate(NAMES):
            meter.count(name, number + 1)
            meter.log(f"logger{number}", "late", severity="error")
        for route in ("/", "/cart"):
            labels = {"method": "GET", "route": route}
            meter.count("http_requests", 3, labels=labels | {"status": "2xx"})
            meter.observe("http_request_seconds", 0.2, labels=labels)
        meter.gauge("queue_length").set(7.5)
        meter.mark("v1")
    cluster.keep_masters()
    return cluster


@pytest.fixture
def run(redmeter: Run, cluster: Cluster) -> Run:
    """A command on the cluster's store."""

    def on_cluster(*arguments: str, **options: Any) -> Done:
        url = f"{cluster.url}?socket_timeout=0.3"
        return redmeter(*arguments, "--url", url, **options)

    return on_cluster


@pytest.fixture
def unreachable(filled: Cluster) -> Iterator[Node]:
    """A node that stands still."""
    node = filled.nodes[1]
    filled.pause(node)
    yield node
    filled.resume(node)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot that nobody serves is not waited for: no test that wants this mends it meanwhile."""
    monkeypatch.setattr(retry, "MOVING_TRIES", 1)
    monkeypatch.setattr(retry, "MOVING_TRIES_BEST_EFFORT", 1)


def told(done: Done) -> Any:
    """Return the JSON that a command printed."""
    assert done.code == 0, done.err
    return json.loads(done.out)


# --- All nodes there -----------------------------------------------------------------------


def test_what_is_read_is_read_of_all_shards(filled: Cluster, run: Run) -> None:
    """Names with totals, series, rankings, summaries, messages, marks, forecasts."""
    listed = {row["name"]: row["total"] for row in told(run("names", "--json"))["names"]}
    assert {name: listed[name] for name in NAMES} == {n: at + 1 for at, n in enumerate(NAMES)}
    assert len(listed) == 40 + 2 + 2 + 1
    assert run("series", *NAMES[:3]).code == 0
    rows = told(run("top", "n*", "--limit", "3", "--json"))["rows"]
    assert [row["key"] for row in rows] == ["n39", "n38", "n37"]
    routes = told(run("top", "http_requests", "--by", "route", "--json"))["rows"]
    assert sorted(row["key"] for row in routes) == ["/", "/cart"]
    assert told(run("summary", "http_request_seconds", "--json"))
    logs = told(run("logs", "--json", "--limit", "50"))
    assert len(logs["common"]) == 40
    assert "v1" in run("mark", "--list").out


def test_what_changes_something_reaches_its_shard(filled: Cluster, run: Run) -> None:
    """A mark, a pass of the cleaner, what is to be forgotten."""
    assert run("mark", "v2").code == 0
    assert "v2" in run("mark", "--list").out
    assert told(run("clean", "--json"))["complete"]
    assert run("clean", "--forget", "n7").code == 0
    assert run("clean", "--forget-logger", "logger7").code == 0
    assert run("mark", "--remove", "v1").code == 0
    assert "n7" not in [row["name"] for row in told(run("names", "--json"))["names"]]
    assert run("clean", "--forget", "n7").code == 1
    with Meter(filled.url) as meter:
        assert "logger7" not in {source.logger for source in meter.loggers()}
        assert [mark.label for mark in meter.marks()] == ["v2"]


def test_a_log_is_replayed_to_all_shards(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    """And stored once."""
    log = tmp_path / "access.log"
    line = '1.2.3.4 - - [01/Jan/2024:00:00:{:02}] "GET /p{} HTTP/1.1" 200 5 "-" "-"\n'
    log.write_text(
        "".join(line.format(n % 60, n % 20).replace("] ", " +0000] ") for n in range(300))
    )
    done = run("replay", str(log), "--shift-to-now")
    assert done.code == 0, done.err
    with Meter(cluster.url) as meter:
        assert meter.total("hits") == 300
        rows = meter.top("http_requests", by="route", precision=86400, limit=50)
        assert sum(row.count for row in rows) == 300
    tags = {key.partition("}")[0] for _, key in cluster.keys("redmeter:{*}count:*")}
    assert len(tags) > 5


def test_a_change_of_the_retention_reaches_all_shards(filled: Cluster, run: Run) -> None:
    """Whoever writes goes by it, whichever shard it is."""
    assert told(run("retention", "60=77", "--json"))["retention"]["60"] == 77
    for node in filled.masters():
        for key in node.client.scan_iter("redmeter:*meta:", count=1000):
            assert "60=77" in node.client.hget(key, "retention")


def test_the_doctor_tells_of_the_masters(filled: Cluster, run: Run) -> None:
    """What is well once; what is not by the node that it is about."""
    filled.nodes[2].ask("CONFIG", "SET", "maxmemory", "50mb")
    filled.nodes[2].ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    filled.nodes[1].ask("CONFIG", "SET", "cluster-require-full-coverage", "yes")
    done = run("doctor", "--json", REDMETER_READ_FROM="replica")
    found = told_health(done)
    assert any(
        ", cluster (and 2 more primaries)" in one["text"] and one["level"] == "ok"
        for one in found["server"]
    )
    assert "use a replica of each primary" in found["replicas"][0]["text"]
    # A process is another producer in each shard.
    assert json.loads(done.out)["producers"] is None
    assert found["cluster"][0]["text"] == "3 primaries, 21 to 22 of 64 shards each"
    (memory,) = (one for one in found["memory"] if one["level"] != "ok")
    assert memory["text"].startswith(filled.nodes[2].address)
    (coverage,) = found["coverage"]
    assert coverage["text"].startswith(filled.nodes[1].address)


def test_a_cluster_that_serves_nothing_is_one_finding(
    filled: Cluster, run: Run, impatient: None
) -> None:
    """And not that nothing was counted, or that another program uses the keys."""
    for node in filled.nodes:
        node.ask("CONFIG", "SET", "cluster-require-full-coverage", "yes")
    lost, other = filled.nodes[:2]
    filled.pause(lost)
    eventually(lambda: "cluster_state:fail" in str(other.ask("CLUSTER", "INFO")), 20.0)
    found = told_health(run("doctor", "--json"))
    filled.resume(lost)
    failed = [one["text"] for one in found["cluster"] if one["level"] == "fail"]
    assert any("nothing can be stored or read" in text for text in failed)
    assert any(lost.address in text for text in failed)
    assert not {"counters", "cleaner", "writers"} & found.keys()


def test_the_doctor_tells_of_uneven_slots(cluster: Cluster, run: Run) -> None:
    """One master with most of them has most of the load."""
    to, moved = cluster.nodes[0], [slot_of(part) for part in range(24, 40)]
    for slot in moved:
        cluster.migrate_slot(slot, to)
    found = told_health(run("doctor", "--json"))["cluster"]
    assert (found[0]["level"], "rebalance" in found[0]["fix"]) == ("warn", True)
    assert "the largest has far more than its share" in found[0]["text"]


def told_health(done: Done) -> dict[str, list[dict[str, str]]]:
    """Return what the doctor found, by topic."""
    found: dict[str, list[dict[str, str]]] = {}
    for one in json.loads(done.out)["findings"]:
        found.setdefault(one["topic"], []).append(one)
    return found


def test_up_serves_the_page_and_cleans(filled: Cluster, tmp_path: Path) -> None:
    """Of a store that lies elsewhere nothing is started but these two."""
    home = Home(tmp_path, filled.url)
    try:
        up = home.start("up", "--port", "0")
        place = re.search(r"http://\S+", up.out(1))
        assert place is not None
        names = httpx.get(f"{place[0].rstrip('/')}/api/names?pattern=n*").json()
        assert names["total"] == 40
        key = f"redmeter:{{{TAGS[0]}}}cleaned:"
        until = time.monotonic() + 20
        while not filled.node_of(key).client.exists(key) and time.monotonic() < until:
            time.sleep(0.05)
        assert filled.node_of(key).client.hget(key, "redmeter:")
    finally:
        home.close()


# --- One of them away ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [("names",), ("top",), ("logs",), ("retention", "60=77"), ("retention", "60=77", "--json")],
)
def test_a_command_that_needs_a_node_that_is_away_names_it(
    command: tuple[str, ...], unreachable: Node, filled: Cluster, run: Run
) -> None:
    """Nothing is half told, and nothing half changed."""
    done = run(*command)
    assert done.code == 3
    if "--json" in command:
        assert set(json.loads(done.out)) == {"error"}
        assert json.loads(done.out)["error"]["code"] == "store-unavailable"
    else:
        assert done.out == ""
    assert unreachable.address in done.err
    assert ("--best-effort" in done.err) == (command[0] != "retention")
    assert sum(node.address in done.err for node in filled.nodes) <= 3
    filled.resume(unreachable)
    assert json.loads(run("retention", "--json").out)["retention"]["60"] != 77


def test_data_on_other_nodes_is_read_and_written(
    unreachable: Node, filled: Cluster, run: Run
) -> None:
    """A series and a mark need their own shard alone."""
    gone = shards_on(filled, unreachable)
    there = [name for name in NAMES if shard_of(name) not in gone][:3]
    assert 0 not in gone
    assert run("series", "--exact", *there).code == 0
    assert run("mark", "v3").code == 0
    assert run("clean", "--forget", there[0]).code == 0


def test_partly_shows_what_there_is_and_says_what_is_missing(
    unreachable: Node, filled: Cluster, run: Run
) -> None:
    """Where one asks for that."""
    gone = shards_on(filled, unreachable)
    there = {name for name in NAMES if shard_of(name) not in gone}
    warning = f"warning: {unreachable.address} does not answer: its data is missing"
    names = run("names", "n*", "--best-effort", "--json")
    assert {row["name"] for row in told(names)["names"]} == there
    top = run("top", "n*", "--best-effort", "--limit", "50", "--json")
    assert {row["key"] for row in told(top)["rows"]} == there
    logs = run("logs", "--best-effort", "--json", "--limit", "50")
    assert 0 < len(told(logs)["common"]) < 40
    for done in (names, top, logs):
        assert warning in done.err
    for done in (names, top, logs):
        assert told(done)["missing"] == [f"{unreachable.address} does not answer"]
    assert told(top)["complete"] is False
    labelled = run("top", "n*", "--best-effort", "--label", "rout=/")
    assert labelled.code == 3
    assert "error: not found on the nodes that answer (" in labelled.err


def test_partly_does_not_take_what_lies_elsewhere_for_nothing(cluster: Cluster, run: Run) -> None:
    """Where all of it lies on a node that is away, nobody knows whether there is any."""
    node = cluster.nodes[1]
    gone = shards_on(cluster, node)
    there = next(name for name in NAMES if shard_of(name) in gone)
    with Meter(cluster.url, sync=True) as meter:
        meter.count(there)
        meter.log(there, "late")
    cluster.keep_masters()
    cluster.pause(node)
    asked = ("names",), ("names", there), ("top",), ("top", there), ("logs",)
    for command in asked:
        done = run(*command, "--best-effort")
        assert (done.code, done.out) == (3, ""), command
        text = f"not found on the nodes that answer ({node.address} does not answer)"
        assert f"error: {text}\n" in done.err, command
        document = json.loads(run(*command, "--best-effort", "--json").out)
        assert document["missing"] == [f"{node.address} does not answer"]
        assert document["error"]["message"] == text
    cluster.resume(node)
    for command in asked:
        assert run(*command).code == 0


def test_cleaning_reports_its_results_before_unreachable_nodes(unreachable: Node, run: Run) -> None:
    """The others are cleaned."""
    done = run("clean")
    assert done.code == 3
    assert "checked; removed" in done.out
    assert unreachable.address in done.err
    done = run("clean", "--json")
    assert done.code == 3
    report = json.loads(done.out)
    assert (report["complete"], report["examined"] > 0) == (False, True)
    assert unreachable.address in done.err


def test_cleaning_a_cluster_that_is_down_says_what_mends_that(
    filled: Cluster, run: Run, impatient: None
) -> None:
    """As every other command does."""
    for node in filled.nodes:
        node.ask("CONFIG", "SET", "cluster-require-full-coverage", "yes")
    slot = slot_of(9)
    home = filled.node_of(slot)
    filled.drop_slot(slot)
    try:
        eventually(lambda: all(map(is_down, filled.masters())), 10.0, "all say that it is down")
        for command in ("clean", "names"):
            done = run(command)
            assert (done.code, done.out) == (3, "")
            assert "The cluster is down" in done.err
            assert "start the missing nodes, or see cluster-require-full-coverage" in done.err
            assert "Is the server running" not in done.err
    finally:
        filled.serve_slot(slot, home)
        filled.wait_ok()


def is_down(node: Node) -> bool:
    """Tell whether a node takes the cluster for incomplete."""
    return "cluster_state:fail" in str(node.ask("CLUSTER", "INFO"))


def test_the_doctor_fails_on_an_unreachable_node_and_examines_the_rest(
    unreachable: Node, run: Run
) -> None:
    """Which one it is, what that means, and what to do."""
    done = run("doctor", "--json")
    assert done.code == 1
    failing = [one for one in told_health(done)["cluster"] if one["level"] == "fail"]
    assert failing[0]["text"].startswith(f"{unreachable.address} does not answer")
    assert failing[0]["fix"]
    assert "a node of" not in failing[0]["text"]
    assert "Is the server running" not in failing[0]["text"]
    (server,) = told_health(done)["server"]
    assert server["text"].endswith("(and 1 more primary)")
    assert json.loads(done.out)["series"]["60"] > 20
    assert json.loads(done.out)["clock_difference"] == 0  # whoever else was waited for
    assert f"{unreachable.address} does not answer" in run("doctor").out


def test_a_shard_that_missed_a_change_follows_when_it_is_used_again(
    filled: Cluster, run: Run
) -> None:
    """As if its node had gone away in the middle of the change."""
    assert run("retention", "60=66").code == 0
    part = stores.open(filled.url).shards[30]  # type: ignore[union-attr]
    node = filled.node_of(part.keys.meta)
    before = node.client.hgetall(part.keys.meta)
    assert run("retention", "60=77").code == 0
    node.client.hset(part.keys.meta, mapping=before)
    assert json.loads(run("retention", "--json").out)["retention"]["60"] == 77
    assert run("retention", "300=55").code == 0
    assert node.client.hget(part.keys.meta, "retention").split()[2:4] == ["60=77", "300=55"]


@pytest.mark.parametrize("command", ["count", "set", "observe"])
def test_lines_are_recorded_on_every_node(run: Run, command: str) -> None:
    """Each on the shard of its series."""
    text = b"".join(b'lines{n="%d"} 1\n' % number for number in range(50))
    assert run(command, "-", text=text).err == "50 lines recorded, 0 refused\n"
    listed = run("names", "lines*", "--json")
    assert len(json.loads(listed.out)["names"]) == 50
