"""A store whose database other programs use, by examine(), the command and the HTTP API."""

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import redis

from redmeter import Meter
from redmeter.dashboard import Dashboard
from redmeter.health.check import Finding
from redmeter.health.doctor import examine
from support.asking import asking
from support.clusters import Cluster
from support.invoking import Run, invoking
from support.names import one_in_each
from support.servers import Server
from support.stores import opened_store

NOTE = (
    "keys of other programs or stores share this database; FLUSHDB, as Django's cache.clear() "
    "does, would empty the metrics"
)
FIX = "give Redmeter or the cache a database of its own, e.g. a URL that ends in /1"
#: Counts, stores and ends: with the database emptied before the last event.
SCRIPT = """
import sys, redis
from redmeter import Meter
meter = Meter(sys.argv[1])
meter.count("orders", 5)
assert meter.flush()
redis.Redis.from_url(sys.argv[1]).flushdb()
meter.count("orders", 3)
"""


#: A number that each read estimates again on a cluster.
_DRAWN = re.compile(r"about [\d,]+")


class Said(NamedTuple):
    """What one way to ask has said."""

    level: str
    findings: list[Finding]

    def of(self, topic: str) -> list[tuple[str, str, str]]:
        """Return level, text and fix of the findings about something."""
        return [(f.level, f.text, f.fix) for f in self.findings if f.topic == topic]


@pytest.fixture
def redmeter() -> Iterator[Run]:
    """The command in this process."""
    with invoking() as run:
        yield run


def answer(url: str, path: str, prefix: str = "redmeter:") -> dict[str, Any]:
    """Ask the HTTP API."""
    dashboard = Dashboard(url, prefix=prefix, access="open")
    with contextlib.closing(dashboard), asking(dashboard) as client:
        found: dict[str, Any] = client.get(path).json()
        return found


def said(redmeter: Run, url: str, prefix: str = "redmeter:") -> Said:
    """Ask in each way, and return what all of them say."""
    with opened_store(url, prefix=prefix) as store:
        health = examine(store)
    done = redmeter("doctor", "--json", "--url", url, "--prefix", prefix)
    assert done.code == 0
    answers = [json.loads(done.out), answer(url, "/api/doctor", prefix)]
    found = [Said(health.level, _kept(health.findings))]
    for each in answers:
        findings = _kept([Finding(**finding) for finding in each["findings"]])
        found.append(Said(each["level"], findings))
    assert len({_DRAWN.sub("about N", str(each)) for each in found}) == 1
    return found[0]


def _kept(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.topic in ("database", "writers")]


def second(server: Server) -> str:
    """Return the address of the server's database 1."""
    return f"{server.url.removesuffix('/0')}/1"


def cache(client: Any, number: int) -> None:
    """Store keys as Django's cache does."""
    client.mset({f":1:views.{each}": "x" for each in range(number)})


def test_keys_of_others_are_a_note(any_server: Server, redmeter: Run) -> None:
    """With the exact number if there are few; neither the level nor the exit code changes."""
    with Meter(any_server.url, sync=True) as meter, any_server.client() as client:
        meter.count("hits", labels={"a": "b"})
        meter.observe("seconds", 1.5)
        meter.log("app", "hello %s", "you")
        before = said(redmeter, any_server.url)
        assert before.of("database") == []
        cache(client, 1)
        assert said(redmeter, any_server.url).of("database")[0][1].startswith("1 key of other")
        cache(client, 50)
        after = said(redmeter, any_server.url)
        assert after.of("database") == [("note", f"50 {NOTE}", FIX)]
        assert after.level == before.level
        lines = redmeter("doctor", "--url", any_server.url).out.splitlines()
        assert f"note  database     50 {NOTE}" in lines


def test_a_note_leaves_a_store_ok(server: Server, redmeter: Run) -> None:
    """The worst level is that of the other findings."""
    with Meter(server.url, sync=True) as meter, server.client() as client:
        meter.count("hits")
        cache(client, 3)
        client.config_set("save", "3600 1")
        found = said(redmeter, server.url)
        assert (found.level, found.of("database")[0][0]) == ("ok", "note")


def test_many_keys_of_others_are_estimated(server: Server, redmeter: Run) -> None:
    """From a sample of the database: within a fifth of the number, with two digits."""
    url = second(server)
    with Meter(url, sync=True) as meter, redis.Redis.from_url(url) as client:
        for each in range(300):
            meter.count(f"hits{each}")
        cache(client, 4000)
        assert client.dbsize() > 5000
        with server.client() as elsewhere:
            cache(elsewhere, 9000)
        ((level, text, _),) = said(redmeter, url).of("database")
        about, number, rest = text.split(" ", 2)
        assert (level, about, rest) == ("note", "about", NOTE)
        assert 3200 <= int(number.replace(",", "")) <= 4800
        assert int(number.replace(",", "")) % 100 == 0


def test_another_store_of_redmeter_is_of_others_too(server: Server, redmeter: Run) -> None:
    """Also if its prefix begins with this one's, and if one of them has none."""
    prefixes = ("redmeter:", "redmeter:staging:", "")
    sizes = dict[str, int]()
    with server.client() as client:
        for prefix in prefixes:
            before = client.dbsize()
            with Meter(server.url, prefix=prefix, sync=True) as meter:
                meter.count("hits")
                meter.observe("seconds", 1.5)
                meter.log("app", "hello")
            sizes[prefix] = client.dbsize() - before
        for prefix in prefixes:
            others = sum(sizes.values()) - sizes[prefix]
            found = said(redmeter, server.url, prefix).of("database")
            assert found == [("note", f"{others} {NOTE}", FIX)]


def test_only_the_database_of_the_store_counts(server: Server, redmeter: Run) -> None:
    """A cache in another one is what the note asks for."""
    with Meter(second(server), sync=True) as meter, server.client() as client:
        meter.count("hits")
        cache(client, 50)
        assert said(redmeter, second(server)).of("database") == []


def test_an_emptied_store_is_a_warning(server: Server, redmeter: Run) -> None:
    """With the events; keys that share the database are the likely cause, and no note any more."""
    with Meter(server.url) as meter, server.client() as client:
        meter.count("orders", 5)
        assert meter.flush(5.0)
        cache(client, 50)
        client.flushdb()
        meter.count("orders", 3)
        assert meter.flush(5.0)
        assert meter.total("orders") == 8
        health = meter.recorder_health()
        assert (health.emptied, health.repaired, health.troubles) == (5, 5, {"emptied": 1})
        assert health.last_trouble.startswith("the store was emptied")
        (_, (level, text, fix)) = said(redmeter, server.url).of("writers")
        happened = (
            "the store was emptied: of 5 acknowledged events, 5 were sent again and 0 are lost"
        )
        assert (level, text.partition(";")[0]) == ("warn", happened)
        assert (
            fix == "give the metrics a server or a database of their own, and turn persistence on"
        )
        cache(client, 50)
        found = said(redmeter, server.url)
        (_, (level, text, fix)) = found.of("writers")
        assert (level, fix, found.level) == ("warn", FIX, "warn")
        cause = "50 keys of other programs or stores share this database"
        assert text.startswith(happened)
        assert f"the likely cause: {cause}, and FLUSHDB" in text
        assert found.of("database") == []
        # The page shows the same judgment.
        panel = answer(server.url, "/api/doctor")
        texts = [finding["text"].partition(";")[0] for finding in panel["findings"]]
        assert panel["level"] == "warn"
        assert happened in texts


def test_a_process_that_ends_right_after_says_so_in_its_last_report(
    server: Server, redmeter: Run
) -> None:
    """Its last flush finds it."""
    subprocess.run([sys.executable, "-c", SCRIPT, server.url], check=True, timeout=60)
    (_, (level, text, _)) = said(redmeter, server.url).of("writers")
    assert (level, text.partition(";")[0]) == (
        "warn",
        "the store was emptied: of 5 acknowledged events, 5 were sent again and 0 are lost",
    )


def test_a_cluster_names_the_primaries_that_have_them(cluster: Cluster, redmeter: Run) -> None:
    """One note for all of them; a cluster has one database, so the fix is another server."""
    with Meter(cluster.url, sync=True) as meter:
        for name in one_in_each():
            meter.count(name)
    assert said(redmeter, cluster.url).of("database") == []
    host, _, port = cluster.nodes[0].address.rpartition(":")
    with redis.RedisCluster(host, int(port)) as client:
        for each in range(2000):
            client.set(f":1:views.{each}", "x")
    found = said(redmeter, cluster.url)
    ((level, text, fix),) = found.of("database")
    assert level == "note"
    assert fix == "give Redmeter or the cache a server of its own: a cluster has only database 0"
    about, number, rest = text.split(" ", 2)
    assert about == "about"
    assert 1500 <= int(number.replace(",", "")) <= 2500
    keys, _, places = rest.partition(";")[0].partition(", on ")
    assert keys == "keys of other programs or stores share this cluster"
    assert set(places.split(", ")) == {node.address for node in cluster.masters()}
