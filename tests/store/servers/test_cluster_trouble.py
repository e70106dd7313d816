"""A way to exchange commands with a cluster whose nodes are in trouble, or know what was before."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from redmeter import StoreRefused, StoreUnavailable
from redmeter.errors import AccessDenied
from redmeter.health.doctor import examine
from redmeter.store import Store, indexes
from redmeter.store.servers import cluster as clustered
from redmeter.store.servers.replies import Command
from redmeter.store.servers.topology import ASKING, READONLY, own_replies
from redmeter.stored.counter import counter_operations
from redmeter.stored.shards import TAGS
from support.clusters import Cluster
from support.nodes import Node
from support.progress import shards_on, slot_of
from support.stores import OpenStore, link_of, opened_stores
from support.waiting import eventually


@pytest.fixture
def open_store() -> Iterator[OpenStore]:
    """Open stores, closed after the test."""
    yield from opened_stores()


def of_all() -> list[Command]:
    """Return a question to each shard."""
    return [("EXISTS", f"redmeter:{{{tag}}}total:") for tag in TAGS]


def count(store: Store, number: int) -> None:
    """Count something in a shard, at once."""
    part, counts = store.shards[number], {"hits": {int(store.clock.wall()): 1}}
    part.write(lambda kept: counter_operations(part.keys, kept.series, counts))


def total(store: Store, number: int) -> int:
    """Return how often that was."""
    (told,) = store.link.exchange([("HGET", store.shards[number].keys.total, "hits")])
    return int(told or 0)


def asked(node: Node) -> int:
    """Return how often a node was asked whether there is a key."""
    return int(node.info("commandstats").get("cmdstat_exists", {"calls": 0})["calls"])


# --- Nodes that hang, or are cut off --------------------------------------------------------


def test_what_never_went_out_is_not_in_doubt(open_store: OpenStore) -> None:
    """A node that says nothing was asked who has which slots, and nothing else."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis+cluster://127.0.0.1:{silent.getsockname()[1]}"
        for reply in link_of(open_store(url, timeout=0.2)).collect([("INCR", "x"), ("INCR", "y")]):
            assert isinstance(reply, StoreUnavailable)
            assert not reply.sent


def test_what_was_sent_is_tried_again_once_its_node_may_be_asked(
    open_store: OpenStore, cluster: Cluster
) -> None:
    """As often as on one server: that a node is left alone for a while is no try."""
    store = open_store(cluster.url, timeout=0.4)
    node = cluster.nodes[0]
    number = min(shards_on(cluster, node))
    count(store, number)
    cluster.keep_masters()
    cluster.pause(node)
    resume = threading.Timer(1.2, cluster.resume, [node])
    resume.start()
    try:
        count(store, number)
    finally:
        resume.join()
    assert total(store, number) == 2


@pytest.mark.parametrize(
    "number",
    [pytest.param(0, marks=pytest.mark.nightly), 1, pytest.param(2, marks=pytest.mark.nightly)],
)
def test_a_master_that_is_cut_off_from_the_others_is_not_believed(
    number: int, open_store: OpenStore, networked_cluster: Cluster
) -> None:
    """It says that it has its slots still, to whoever reaches it: the others know better."""
    cluster = networked_cluster
    node = cluster.nodes[number]
    store = open_store(cluster.url, timeout=1.0)
    link = link_of(store)
    link.exchange(of_all())
    cluster.cut_off(node, clients=False)
    cluster.wait_failover(node)
    part = store.shards[min(shards_on(cluster, cluster.nodes[number + 3]))]

    def is_found() -> bool:
        store.ask([("EXISTS", part.keys.meta)])
        return node.address not in (f"{host}:{port}" for host, port in link.primaries())

    eventually(is_found, 10.0, "the new master is found")


@pytest.mark.parametrize("number", range(3))
def test_a_node_that_is_busy_is_left_out_and_named(
    number: int, open_store: OpenStore, cluster: Cluster
) -> None:
    """Whoever goes on without those away goes on without it; the time is asked of another one."""
    store = open_store(cluster.url, timeout=1.0)
    for part in range(64):
        count(store, part)
    node = cluster.nodes[number]
    gone = shards_on(cluster, node)
    node.ask("CONFIG", "SET", "lua-time-limit", "20")
    with script_that_never_ends(node):
        partly = store.best_effort()
        _, replies = partly.read([indexes.size(store.keys, store.keys.known)])
        assert replies == [7 * (64 - len(gone))]
        assert partly.skipped() == [f"{node.address} is busy with a script"]
        assert total(store, min({*range(64)} - gone)) == 1
        store.read()
        health = examine(store)
        assert any(node.address in finding.text for finding in health.findings)
        assert health.missing == [f"{node.address} is busy with a script"]
        (refused,) = store.read([indexes.size(store.keys, store.keys.known)])[1]
        assert isinstance(refused, StoreRefused)
        assert refused.code == "BUSY"
    assert partly.read([indexes.size(store.keys, store.keys.known)])[1] == [7 * 64]


@contextlib.contextmanager
def script_that_never_ends(node: Node) -> Iterator[None]:
    """Have a node do nothing else."""

    def run() -> None:
        with contextlib.suppress(redis.ResponseError), node.server.client() as client:
            client.execute_command("EVAL", "while true do end", 0)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        eventually(lambda: is_busy(node), 10.0, "it says that it is busy")
        yield
    finally:
        node.ask("SCRIPT", "KILL")
        thread.join(10.0)


def is_busy(node: Node) -> bool:
    """Tell whether a node answers nothing but that it is."""
    try:
        node.ask("DBSIZE")
    except redis.ResponseError as error:
        return "BUSY" in str(error)
    return False


# --- Slots that are on their way -----------------------------------------------------------

DENIED = AccessDenied("NOPERM", "no permissions to run the command")
MOVED = StoreRefused("MOVED", "MOVED 1 127.0.0.1:7000")
DO: Command = ("INCR", "x")


@pytest.mark.parametrize(
    ("sent", "replies", "told"),
    [
        ([ASKING, DO], [b"OK", 1], [1]),
        ([ASKING, DO], [DENIED, MOVED], [DENIED]),
        # It has got the slot in between, and has carried it out.
        ([ASKING, DO], [DENIED, 1], [1]),
        ([DO, ASKING, DO, DO], [1, DENIED, MOVED, MOVED], [1, DENIED, MOVED]),
        ([READONLY, DO, DO], [DENIED, MOVED, 1], [DENIED, 1]),
        ([READONLY, DO], [b"OK", MOVED], [MOVED]),
    ],
)
def test_who_may_not_say_a_word_is_told_so_where_it_was_needed(
    sent: list[Command], replies: list[Any], told: list[Any]
) -> None:
    """What was carried out all the same is never taken for what was not."""
    assert own_replies(sent, replies) == told


# --- Replicas ------------------------------------------------------------------------------


def test_a_replica_that_is_back_is_asked_again(
    open_store: OpenStore, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some time after it did not answer; meanwhile its master is asked."""
    monkeypatch.setattr(clustered, "LATER", 1.0)
    link = link_of(open_store(cluster.url, read_from="replica", timeout=0.3).reader)
    replica = cluster.nodes[4]
    cluster.wait_for_replicas()
    link.exchange(of_all())
    assert asked(replica) > 0
    cluster.pause(replica)
    link.collect(of_all())
    assert link.exchange(of_all()) == [0] * 64
    cluster.resume(replica)
    before = asked(replica)

    def is_asked() -> bool:
        link.exchange(of_all())
        return asked(replica) > before

    eventually(is_asked, 10.0, "the replica is asked again")


def test_a_replica_that_came_later_is_asked_after_a_while(
    open_store: OpenStore, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No reply tells of it."""
    monkeypatch.setattr(clustered, "AGAIN", 0.5)
    home, other, replica = cluster.nodes[1], cluster.nodes[2], cluster.nodes[4]
    replica.ask("CLUSTER", "REPLICATE", other.id)
    cluster.wait_for_replicas()
    link = link_of(open_store(cluster.url, read_from="replica").reader)
    questions = [of_all()[number] for number in sorted(shards_on(cluster, home))]
    link.exchange(questions)
    replica.ask("CLUSTER", "REPLICATE", home.id)
    cluster.wait_for_replicas()
    before = asked(replica)

    def is_asked() -> bool:
        link.exchange(questions)
        return asked(replica) > before

    eventually(is_asked, 10.0, "the replica is asked")


@pytest.fixture
def lonely(cluster: Cluster) -> Iterator[Node]:
    """A replica that does not hear from its primary, which is cluster.nodes[1]."""
    master, replica = cluster.nodes[1], cluster.nodes[4]
    cluster.wait_for_replicas()
    master.ask("ACL", "SETUSER", "default", "-psync", "-sync")
    master.ask("CLIENT", "KILL", "TYPE", "replica")
    eventually(lambda: replica.info("replication")["master_link_status"] == "down", 10.0)
    yield replica
    master.ask("ACL", "SETUSER", "default", "+psync", "+sync")
    eventually(lambda: replica.info("replication")["master_link_status"] == "up", 10.0)


def test_a_replica_that_does_not_hear_from_its_master_is_passed_over(
    open_store: OpenStore, cluster: Cluster, lonely: Node
) -> None:
    """It would answer with what was once, for as long as it is cut off; the doctor tells."""
    store = open_store(cluster.url, read_from="replica", timeout=1.0)
    number = min(shards_on(cluster, cluster.nodes[1]))
    for wanted in range(1, 4):
        count(store, number)
        assert total(store.reader, number) == wanted
    (finding,) = [one for one in examine(store).findings if "do not follow" in one.text]
    assert (finding.level, finding.topic) == ("warn", "cluster")
    assert finding.text.startswith(f"1 of the replicas of 127.0.0.1:{cluster.nodes[1].port} ")
    assert lonely.info("replication")["master_link_status"] == "down"


def test_a_replica_that_does_not_hear_from_its_master_is_asked_where_that_one_is_away(
    open_store: OpenStore, cluster: Cluster, lonely: Node
) -> None:
    """What it knows is the newest that there is."""
    cluster.keep_masters()
    store = open_store(cluster.url, read_from="replica", timeout=0.5)
    number = min(shards_on(cluster, cluster.nodes[1]))
    count(store, number)
    assert total(store.reader, number) == 1
    cluster.pause(cluster.nodes[1])
    with pytest.raises(StoreUnavailable, match=str(cluster.nodes[1].port)):
        total(store.reader, number)
    assert total(store.reader, number) == 0
    cluster.resume(cluster.nodes[1])
    assert lonely.info("replication")["master_link_status"] == "down"


def test_what_a_master_hands_over_is_not_waited_for(
    open_store: OpenStore, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that stands still is no trouble for readings that its replica answers."""
    monkeypatch.setattr(clustered, "AGAIN", 0.0)
    monkeypatch.setattr(clustered, "LOOKUP_PATIENCE", 0.05)
    cluster.keep_masters()
    cluster.wait_for_replicas()
    link = link_of(open_store(cluster.url, read_from="replica").reader)
    link.exchange(of_all())
    cluster.pause(cluster.nodes[1])
    assert [link.exchange(of_all()) for _ in range(3)] == [[0] * 64] * 3
    assert link.unreachable() == []
    cluster.resume(cluster.nodes[1])


@pytest.mark.parametrize("allowed", [True, False])
def test_what_is_handed_over_is_asked_of_the_masters(
    allowed: bool, open_store: OpenStore, any_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica of Redis would say that what has gone ahead is not there.

    Who may not ask for the role of a node, nor which slots it hands over, reads all the same.
    """
    monkeypatch.setattr(clustered, "AGAIN", 0.0)
    writer = open_store(any_cluster.url)
    # Not on the first master, which is asked who has which slots before.
    number = min(shards_on(any_cluster, any_cluster.nodes[1]))
    count(writer, number)
    any_cluster.wait_for_replicas()
    rules = ("+@all",) if allowed else ("+@all", "-role", "-cluster", "+cluster|slots")
    for node in any_cluster.nodes:
        node.ask("ACL", "SETUSER", "looker", "reset", "on", ">x", "~*", *rules)
    url = any_cluster.url.replace("://", "://looker:x@")
    reader = open_store(url, read_from="replica", timeout=0.5).reader
    eventually(lambda: total(reader, number) == 1)
    slot = slot_of(number)
    to = any_cluster.other_than(any_cluster.node_of(slot))
    any_cluster.open_slot(slot, to)
    any_cluster.move_keys(slot, to)
    if allowed:
        assert [total(reader, number) for _ in range(20)] == [1] * 20
        monkeypatch.setattr(clustered, "LATER", 1.0)
        source = any_cluster.node_of(slot)
        any_cluster.pause(source)
        with pytest.raises(StoreUnavailable, match=str(source.port)):
            total(reader, number)
        any_cluster.resume(source)

        def is_back() -> bool:
            try:
                assert total(reader, number) == 1  # and never 0: that it hands it over is known
            except StoreUnavailable:
                return False
            return True

        eventually(is_back, 10.0)
    any_cluster.close_slot(slot, to)
    eventually(lambda: total(reader, number) == 1, 10.0)
    for node in any_cluster.nodes:
        node.ask("ACL", "DELUSER", "looker")


def test_a_replica_that_lost_its_master_is_made_up_for(
    open_store: OpenStore, cluster: Cluster
) -> None:
    """It says that it has nothing to say; its master has."""
    link = link_of(open_store(cluster.url, read_from="replica", timeout=1.0).reader)
    master, replica = cluster.nodes[1], cluster.nodes[4]
    cluster.wait_for_replicas()
    link.exchange(of_all())
    replica.ask("CONFIG", "SET", "replica-serve-stale-data", "no")
    master.ask("ACL", "SETUSER", "default", "-psync", "-sync")
    try:
        master.ask("CLIENT", "KILL", "TYPE", "replica")
        eventually(lambda: replica.info("replication")["master_link_status"] == "down", 10.0)
        assert link.exchange(of_all()) == [0] * 64
        assert asked(master) > 0
    finally:
        master.ask("ACL", "SETUSER", "default", "+psync", "+sync")
    eventually(lambda: replica.info("replication")["master_link_status"] == "up", 10.0)


def test_a_node_that_refuses_is_told_to_refuse_also_where_it_is_left_alone(
    open_store: OpenStore,
) -> None:
    """The second try, which is too soon, says what the first one met."""
    with pytest.raises(StoreUnavailable, match=r"[Cc]onnection refused"):
        open_store("redis+cluster://127.0.0.1:1").read()


def test_of_many_nodes_a_message_names_two_beside_the_one_that_it_is_about(
    open_store: OpenStore,
) -> None:
    """Where the store is, is told in full by whoever is asked for that."""
    nodes = [f"127.0.0.1:{port}" for port in range(1, 6)]
    store = open_store(f"redis+cluster://{','.join(nodes)}")
    with pytest.raises(StoreUnavailable) as caught:
        store.read()
    place = "127.0.0.1:1 (a node of redis+cluster://127.0.0.1:1,127.0.0.1:2 …)"
    assert caught.value.location == place
    assert not any(node in str(caught.value) for node in nodes[2:])
    assert all(node in store.location for node in nodes)
