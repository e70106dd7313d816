"""A way to exchange commands with a cluster: to whom each one goes, and whom it is sent on to."""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from redmeter import Meter, StoreRefused, StoreUnavailable
from redmeter.clock import ManualClock
from redmeter.health.doctor import examine
from redmeter.maintenance import cleaning
from redmeter.reading.join import Joined, join, of_field, of_window
from redmeter.reading.names import read_names
from redmeter.reading.samples import read_totals
from redmeter.reading.windows import whole_window
from redmeter.store import Store
from redmeter.store.servers import cluster as clusters
from redmeter.store.servers import retry
from redmeter.store.servers.cluster import LEFT_ALONE, REDIRECTS, ClusterLink
from redmeter.store.servers.connection import ServerLink
from redmeter.store.servers.replies import Command
from redmeter.store.servers.urls import in_short
from redmeter.stored.shards import TAGS
from support.clusters import Cluster
from support.names import one_in_each
from support.nodes import Node
from support.progress import errors, shards_on, whereabouts
from support.servers import free_port
from support.stores import OpenMeter, OpenStore, link_of, opened_stores
from support.waiting import eventually

#: One for each shard.
NAMES = one_in_each()


@pytest.fixture
def open_store(cluster: Cluster) -> Iterator[OpenStore]:
    """Open stores on the cluster, closed after the test."""
    yield from opened_stores(cluster.url)


@pytest.fixture
def link(open_store: OpenStore) -> ClusterLink:
    """A link to the cluster, which knows who has which slots."""
    link = link_of(open_store(timeout=0.4))
    link.exchange([("TIME",)])
    return link


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many exchanges there were with each node, by its address."""
    seen: Counter[str] = Counter()
    whole = ServerLink.exchange

    def counted(self: ServerLink, *args: Any, **options: Any) -> Any:
        seen[self.location.partition(" ")[0]] += 1
        return whole(self, *args, **options)

    monkeypatch.setattr(ServerLink, "exchange", counted)
    return seen


def key_in(part: int, family: str = "total:") -> str:
    """Return a key of a shard."""
    return f"redmeter:{{{TAGS[part]}}}{family}"


def fill(store: Store) -> None:
    """Count each of NAMES by one more than the shard it lies in."""
    with Meter(store.location, sync=True) as meter:
        for number, name in enumerate(NAMES):
            meter.count(name, number + 1)


COUNTED = {name: number + 1 for number, name in enumerate(NAMES)}


# --- To whom -------------------------------------------------------------------------------


def test_a_reading_about_one_shard_asks_its_node_alone(
    open_store: OpenStore, cluster: Cluster, asked: Counter[str]
) -> None:
    """And needs no other one, also to know what is kept."""
    store = open_store()
    fill(store)
    version = store.config().version
    asked.clear()
    for number in range(0, 64, 7):
        key = store.shards[number].keys.count(60, NAMES[number])
        view, (found,) = store.read([("HGETALL", key)])
        assert len(found) == 2
        assert view.version == version
    assert sum(asked.values()) == 10
    other = cluster.nodes[1]
    here = next(n for n in range(64) if n not in shards_on(cluster, other))
    cluster.pause(other)
    asked.clear()
    store.read([("HGETALL", store.shards[here].keys.count(60, NAMES[here]))])
    assert other.address not in asked


def test_each_command_goes_to_the_master_that_has_its_key(
    link: ClusterLink, cluster: Cluster
) -> None:
    """And each reply stands where its command stood; an error is a reply among the others."""
    sets: list[Command] = [("SET", key_in(part), str(part)) for part in range(64)]
    assert link.exchange(sets) == [b"OK"] * 64
    gets: list[Command] = [("GET", key_in(part)) for part in reversed(range(64))]
    gets.insert(30, ("INCR", "wrong", "number", "of", "arguments"))
    replies = link.exchange(gets)
    refused = replies.pop(30)
    assert isinstance(refused, StoreRefused)
    assert replies == [b"%d" % part for part in reversed(range(64))]
    for master in cluster.masters():
        assert master.client.dbsize() == len(shards_on(cluster, master))
        assert errors(master, "MOVED") == 0


def test_masters_are_asked_at_the_same_time(
    link: ClusterLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None waits until another one has answered."""
    all_three, whole = threading.Barrier(3, timeout=10), ServerLink.exchange

    def met(self: ServerLink, *args: Any, **options: Any) -> Any:
        all_three.wait()
        return whole(self, *args, **options)

    monkeypatch.setattr(ServerLink, "exchange", met)
    assert link.exchange([("GET", key_in(part)) for part in range(64)]) == [None] * 64


def test_servers_have_the_shards_of_each_master(open_store: OpenStore, cluster: Cluster) -> None:
    """Each shard in one of them."""
    by_server = open_store().by_server()
    assert {name: set(numbers) for name, numbers in by_server.items()} == {
        master.address: set(shards_on(cluster, master)) for master in cluster.masters()
    }
    assert sorted(map(len, by_server.values())) == [21, 21, 22]


def test_what_no_key_is_about_is_asked_of_a_master_that_is_well(
    link: ClusterLink, cluster: Cluster
) -> None:
    """Of the first that was never in trouble."""
    cluster.keep_masters()
    cluster.pause(cluster.nodes[0])
    with pytest.raises(StoreUnavailable):
        link.exchange([("PING",)])
    assert link.exchange([("PING",)]) == [b"PONG"]
    assert link.unreachable() == [cluster.nodes[0].address]


# --- Slots that move -----------------------------------------------------------------------


@pytest.fixture
def at_first_wait(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Callable[[], object]]]:
    """What is done where one would wait for a slot to have moved; that it is, is checked."""
    todo: list[Callable[[], object]] = []
    waiting = SimpleNamespace(sleep=lambda _: todo and todo.pop()())
    monkeypatch.setattr(retry, "time", waiting)
    yield todo
    assert todo == []


def test_a_slot_that_has_moved_is_followed_and_remembered(
    link: ClusterLink, cluster: Cluster
) -> None:
    """One MOVED: then the slots are read again."""
    slot, source, to = whereabouts(cluster, 9)
    link.exchange([("SET", key_in(9), "there")])
    cluster.migrate_slot(slot, to)
    for _ in range(2):
        assert link.exchange([("GET", key_in(9)), ("GET", key_in(10))]) == [b"there", None]
    assert errors(source, "MOVED") == 1


def test_a_key_that_has_moved_before_its_slot_is_asked_for_there(
    link: ClusterLink, cluster: Cluster
) -> None:
    """ASK, for this key alone: the slot stays where it is, and so do its other keys."""
    slot, source, to = whereabouts(cluster, 9)
    both: list[Command] = [("GET", key_in(9, "a")), ("GET", key_in(9, "b"))]
    link.exchange([("SET", key_in(9, "a"), "1"), ("SET", key_in(9, "b"), "2")])
    cluster.open_slot(slot, to)
    cluster.move_key(source, to, key_in(9, "b"))
    for _ in range(2):
        assert link.exchange(both) == [b"1", b"2"]
    assert (errors(source, "ASK"), errors(to, "MOVED")) == (2, 0)
    cluster.move_keys(slot, to)
    cluster.close_slot(slot, to)
    assert link.exchange(both) == [b"1", b"2"]


def test_keys_of_which_some_have_moved_are_a_matter_of_waiting(
    open_store: OpenStore, cluster: Cluster, at_first_wait: list[Callable[[], object]]
) -> None:
    """TRYAGAIN is a reply of the link's; who reads has it asked again until the slot is there."""
    store = open_store()
    slot, source, to = whereabouts(cluster, 9)
    link_of(store).exchange([("SET", key_in(9, "a"), "1"), ("SET", key_in(9, "b"), "2")])
    cluster.open_slot(slot, to)
    cluster.move_key(source, to, key_in(9, "b"))
    both: Command = ("UNLINK", key_in(9, "a"), key_in(9, "b"))
    (reply,) = link_of(store).exchange([both])
    assert isinstance(reply, StoreRefused)
    assert reply.code == "TRYAGAIN"

    def finish() -> None:
        cluster.move_keys(slot, to)
        cluster.close_slot(slot, to)

    at_first_wait.append(finish)
    assert store.link.exchange([both]) == [2]


def half_moved(cluster: Cluster, part: int, *families: str) -> Callable[[], object]:
    """Move some keys of a shard to another node; return what moves the others, and the slot."""
    slot, source, to = whereabouts(cluster, part)
    cluster.open_slot(slot, to)
    keys = [k for f in families for k in source.client.scan_iter(key_in(part, f) + "*", count=1000)]
    assert keys
    cluster.move_key(source, to, *keys)

    def finish() -> None:
        cluster.move_keys(slot, to)
        cluster.close_slot(slot, to)

    return finish


@pytest.mark.parametrize("gone", ["known:", "count:", "total:"])
def test_a_join_while_its_slot_moves_leaves_nothing_out(
    gone: str, open_store: OpenStore, cluster: Cluster, at_first_wait: list[Callable[[], object]]
) -> None:
    """The index is here and what it names is there, or the other way round: asked again."""
    store = open_store()
    fill(store)
    keys, window = store.keys, whole_window(store.seen.series, 86400)
    asks = [of_window(keys.key("count"), window), of_field(keys.total)]
    ends = "[86400:", "(86400;"
    wanted = join(keys, keys.known, ends, len("86400:"), asks, count=100)

    def ask() -> dict[bytes, int]:
        found = Joined(store.ask([wanted])[0], 2).readable()
        return {member: int(total) for member, (slices, total) in found if slices}

    before = ask()
    assert before == {f"86400:{name}".encode(): count for name, count in COUNTED.items()}
    at_first_wait.append(half_moved(cluster, 9, gone))
    assert ask() == before


@pytest.mark.parametrize("gone", ["known:", "count:"])
def test_cleaning_while_a_slot_moves_removes_nothing_that_is_there(
    gone: str, open_store: OpenStore, cluster: Cluster, at_first_wait: list[Callable[[], object]]
) -> None:
    """A hash that is on another node is no hash that is gone: its entry stays."""
    store = open_store()
    fill(store)
    at_first_wait.append(half_moved(cluster, 9, gone))
    report = cleaning.clean(store)
    assert (report.entries_removed, report.strange, report.complete) == (0, [], True)
    assert read_names(store) == sorted(NAMES)


def test_nodes_that_send_one_to_each_other_are_asked_a_few_times(
    link: ClusterLink, cluster: Cluster
) -> None:
    """Nothing was done, and it may pass: so TRYAGAIN, and what else is asked is answered."""
    slot, source, to = whereabouts(cluster, 9)
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id)
    refused, other = link.exchange([("GET", key_in(9)), ("GET", key_in(10))])
    assert isinstance(refused, StoreRefused)
    assert (refused.code, other) == ("TRYAGAIN", None)
    assert errors(source, "ASK") + errors(to, "MOVED") == REDIRECTS
    source.ask("CLUSTER", "SETSLOT", slot, "STABLE")


def test_a_slot_that_nobody_serves_is_said(
    open_store: OpenStore, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies in others is read; what lies there, or in all, is an error."""
    store = open_store()
    fill(store)
    slot, source, _ = whereabouts(cluster, 9)
    cluster.drop_slot(slot)
    monkeypatch.setattr(retry, "MOVING_TRIES", 2)
    try:
        link_of(store).recover()
        refused, value = link_of(store).exchange(
            [("HGET", key_in(9), NAMES[9]), ("HGET", key_in(10), NAMES[10])]
        )
        assert isinstance(refused, StoreRefused)
        assert (refused.code, value) == ("CLUSTERDOWN", b"11")
        with pytest.raises(StoreRefused, match="cluster is incomplete"):
            read_names(store)
        assert read_totals(store, NAMES[:9]) == {name: COUNTED[name] for name in NAMES[:9]}
        partly = store.best_effort()
        assert read_names(partly) == sorted(set(NAMES) - {NAMES[9]})
        assert partly.skipped() == [f"nobody serves slot {slot}"]
        found = [f for f in examine(store).findings if f.topic == "cluster" and f.level == "fail"]
        assert "1 of 16,384 slots are not served" in found[0].text
    finally:
        cluster.serve_slot(slot, source)
        cluster.wait_ok()


# --- Nodes that are away -------------------------------------------------------------------


def test_a_node_that_stands_still_is_named_and_the_others_are_read(
    open_store: OpenStore, cluster: Cluster
) -> None:
    """What needs it is an error; what does not is answered; once it is back, all is."""
    store = open_store(timeout=0.3)
    fill(store)
    cluster.keep_masters()
    node = cluster.nodes[1]
    away = shards_on(cluster, node)
    there = [name for number, name in enumerate(NAMES) if number not in away]
    gone = [name for number, name in enumerate(NAMES) if number in away]
    cluster.pause(node)
    for ask in (read_names, lambda store: read_totals(store, gone)):
        with pytest.raises(StoreUnavailable, match=node.address) as error:
            ask(store)
        assert f"(a node of {in_short(cluster.url)})" in str(error.value)
    assert read_totals(store, there) == {name: COUNTED[name] for name in there}
    assert store.link.unreachable() == [node.address]
    partly = store.best_effort()
    assert read_names(partly) == sorted(there)
    assert partly.skipped() == [f"{node.address} does not answer"]
    assert store.skipped() == []
    assert read_totals(partly, NAMES) == {name: COUNTED[name] for name in there}
    cluster.resume(node)
    eventually(lambda: read_names(partly) == sorted(NAMES), 2 * LEFT_ALONE + 5)
    assert read_totals(store, NAMES) == COUNTED
    assert store.link.unreachable() == []


def test_a_node_that_kept_us_waiting_is_left_alone_for_a_while(
    open_store: OpenStore, cluster: Cluster, asked: Counter[str]
) -> None:
    """At once it is said that it does not answer: it is not asked."""
    partly = open_store(timeout=0.5).best_effort()
    read_names(partly)
    cluster.keep_masters()
    node = cluster.nodes[2]
    cluster.pause(node)
    read_names(partly)
    waited = asked[node.address]
    read_names(partly)
    assert asked[node.address] == waited
    eventually(lambda: bool(read_names(partly) == [] and asked[node.address] > waited), 10.0)


def test_a_reading_that_goes_on_without_those_away_asks_others_what_anybody_can_tell(
    open_store: OpenStore, cluster: Cluster
) -> None:
    """What time it is, when the first that is asked turns out to be away."""
    store = open_store(timeout=0.3)
    fill(store)
    assert read_names(store) == sorted(NAMES)
    cluster.keep_masters()
    away = shards_on(cluster, cluster.nodes[0])
    cluster.pause(cluster.nodes[0])
    there = [name for number, name in enumerate(NAMES) if number not in away]
    assert read_names(store.best_effort()) == sorted(there)


def test_all_nodes_away_is_an_error_also_where_one_goes_on_without_some(
    open_store: OpenStore, cluster: Cluster
) -> None:
    """There is nothing to show."""
    partly = open_store(timeout=0.2).best_effort()
    read_names(partly)
    for node in cluster.nodes:
        cluster.pause(node)
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            read_names(partly)


def test_another_master_is_found_in_place_of_one_that_died(
    open_store: OpenStore, cluster: Cluster
) -> None:
    """Its replica, told by any of the nodes that were known; the dead one is away no more."""
    store = open_store(f"redis+cluster://{cluster.nodes[0].address}", timeout=1.0)
    fill(store)
    assert read_names(store) == sorted(NAMES)
    cluster.wait_for_replicas()
    cluster.kill(cluster.nodes[0])
    cluster.wait_failover(cluster.nodes[0])
    assert read_totals(store, NAMES) == COUNTED
    assert read_names(store) == sorted(NAMES)
    assert store.link.unreachable() == []


def test_any_of_the_nodes_of_the_url_will_do(cluster: Cluster, open_store: OpenStore) -> None:
    """One that is gone is passed over; where all are, they are named."""
    dead = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    store = open_store(f"redis+cluster://{dead[0]},{cluster.nodes[4].address}", timeout=1.0)
    assert read_names(store) == []
    with pytest.raises(StoreUnavailable, match=dead[0]):
        read_names(open_store(f"redis+cluster://{','.join(dead)}", timeout=1.0))


def test_who_has_which_slots_is_asked_of_a_node_that_is_well(
    link: ClusterLink, cluster: Cluster, asked: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of the one that just kept us waiting, also where it is left alone no more."""
    monkeypatch.setattr(clusters, "LEFT_ALONE", 0.0)
    cluster.keep_masters()
    cluster.pause(cluster.nodes[0])
    link.collect([("GET", key_in(part)) for part in range(64)])
    asked.clear()
    link.recover()
    assert len(link.primaries()) == 3
    assert asked[cluster.nodes[0].address] == 0
    assert asked.total() == 1


def test_a_process_that_ends_waits_for_no_node_longer_than_told(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for those that it did not know before."""
    told: list[float] = []
    monkeypatch.setattr(ServerLink, "cap_timeout", lambda _, seconds: told.append(seconds))
    link = link_of(open_store(timeout=5.0))
    link.node(("127.0.0.1", 1))
    link.cap_timeout(0.7)
    link.cap_timeout(2.0)
    link.node(("127.0.0.1", 2))
    assert told == [0.7, 2.0, 0.7]


def test_a_fork_does_not_use_the_connections_of_its_parent(open_store: OpenStore) -> None:
    """Both read all there is, and go on doing so."""
    store = open_store()
    fill(store)
    assert read_names(store) == sorted(NAMES)
    child = os.fork()
    if child == 0:  # pragma: no cover - in another process
        right = False
        try:
            right = all(read_totals(store, NAMES) == COUNTED for _ in range(20))
        finally:
            os._exit(0 if right else 1)
    assert all(read_totals(store, NAMES) == COUNTED for _ in range(20))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# --- Replicas ------------------------------------------------------------------------------


def calls(node: Node, command: str) -> int:
    """Return how often a node carried out a command since its cluster was as new."""
    found = node.info("commandstats").get(f"cmdstat_{command}", {"calls": 0})
    return int(found["calls"])


def test_replicas_are_read_where_one_wants_that(open_store: OpenStore, cluster: Cluster) -> None:
    """And nothing but: what they answer is what the masters have."""
    store = open_store(read_from="replica")
    fill(store)
    cluster.wait_for_replicas()
    for node in cluster.nodes:
        node.ask("CONFIG", "RESETSTAT")
    assert read_names(store.reader) == sorted(NAMES)
    assert read_totals(store.reader, NAMES) == COUNTED
    for master in cluster.masters():
        assert calls(master, "hmget") == calls(master, "zrangebylex") == 0
    for replica in cluster.replicas():
        assert calls(replica, "hmget") > 0
        assert errors(replica, "MOVED") == 0


def test_a_replica_that_is_away_is_made_up_for_by_its_master(
    open_store: OpenStore, cluster: Cluster
) -> None:
    """Nothing is missing."""
    store = open_store(read_from="replica", timeout=0.5)
    fill(store)
    cluster.wait_for_replicas()
    assert read_totals(store.reader, NAMES) == COUNTED
    cluster.pause(cluster.nodes[4])
    assert read_totals(store.reader, NAMES) == COUNTED
    assert store.reader.link.unreachable() == []


def test_what_is_written_at_once_is_waited_for_so_on_a_cluster(
    cluster: Cluster, waits: list[bool], open_meter: OpenMeter
) -> None:
    """At each of its nodes; what is read is not."""
    meter = open_meter(cluster.url)
    meter.count("hits")
    waits.clear()
    for number in range(10):
        meter.count(f"hits{number}")
    assert len(waits) >= 10
    waits.clear()
    assert meter.total("hits") == 1
    assert not waits


def test_a_release_is_noted_once_on_a_cluster(cluster: Cluster) -> None:
    """Whoever starts with it, and however late; as on a server of its own."""
    clock = ManualClock(time.time() - 86400)
    for release in ("v1", "v1", "v2", "v2", "v1"):
        with Meter(cluster.url, release=release, clock=clock, flush_interval=60) as meter:
            meter.mark()
            assert meter.flush(10.0)
            labels = [one.label for one in meter.marks()]
        clock.advance(960)
    assert labels == ["v1", "v2", "v1"]
