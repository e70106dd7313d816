"""How the nodes of a cluster are called, reached and let in; and URLs that lead elsewhere."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from redmeter import AccessDenied, Meter, StoreError, StoreRefused, StoreUnavailable
from redmeter.health import doctor
from redmeter.reading.names import read_names
from redmeter.store import Store
from redmeter.store.servers.connection import ServerLink
from redmeter.store.servers.replies import Reply
from redmeter.store.servers.topology import (
    Address,
    SlotRange,
    Slots,
    host_port,
    key_of,
    place_in,
    slot_of,
)
from support.certificates import POSSIBLE
from support.clusters import Cluster
from support.layout import SLOTS
from support.proxy import Proxy
from support.servers import Server, free_port
from support.speaker import papers_in, speaker_of, tls_settings
from support.stores import exchanges, link_of, opened_store
from support.waiting import eventually

A, B, C = ("10.0.0.1", 7000), ("10.0.0.2", 7000), ("10.0.0.3", 7001)


def node(host: bytes | None, port: int, more: Any = ()) -> list[Any]:
    """Return a node as CLUSTER SLOTS tells of it."""
    return [host, port, b"0" * 40, more]


# --- What CLUSTER SLOTS says ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        (node(b"10.0.0.1", 7000), A),
        (node(b"cache-1.example", 7000), ("cache-1.example", 7000)),
        (node(b"2001:db8::1", 7000), ("2001:db8::1", 7000)),
        (node(b"", 7000), ("asked", 7000)),
        (node(None, 7000, [b"ip", b"10.0.0.1"]), ("asked", 7000)),
        (node(b"?", 7000, [b"ip", b"10.0.0.1"]), A),
        (node(b"?", 7000, {b"hostname": b"", b"ip": b"10.0.0.1"}), A),
        (node(b"?", 7000), ("asked", 7000)),
        ([b"10.0.0.1", 7000], A),
    ],
)
def test_a_node_is_where_it_says_or_where_it_was_found(told: Reply, shown: Any) -> None:
    """An address, a host name, nothing; by either protocol, of servers old and new."""
    slots = Slots.read([[0, SLOTS - 1, told]], "asked")
    assert slots.primaries == [shown]


def test_slots_are_found_in_their_ranges() -> None:
    """In no order told, with holes, with replicas and without."""
    slots = Slots.read(
        [
            [100, 199, node(b"10.0.0.2", 7000)],
            [0, 99, node(b"10.0.0.1", 7000), node(b"10.0.0.3", 7001)],
            [300, 300, node(b"10.0.0.1", 7000), node(b"10.0.0.3", 7001)],
        ],
        "asked",
    )
    assert slots.primaries == [A, B]
    assert slots.nodes == [A, B, C]
    assert slots.range_of(0) == slots.range_of(99) == SlotRange(0, 99, A, (C,))
    assert slots.range_of(150) == SlotRange(100, 199, B, ())
    assert slots.range_of(300) == SlotRange(300, 300, A, (C,))
    for nobodys in (200, 299, 301, SLOTS - 1):
        assert slots.range_of(nobodys) is None
    assert Slots([]).range_of(0) is None


def test_a_node_is_where_a_remap_says() -> None:
    """Whatever it is called, or not; one that is known to be meant is there already."""

    def outside(address: Address) -> Address:
        return f"outside-{address[0]}", address[1] + 1

    first = [0, 9, node(b"10.0.0.1", 7000), node(b"", 7001)]
    slots = Slots.read([first], "asked", outside)
    assert slots.nodes == [("outside-10.0.0.1", 7001), ("outside-asked", 7002)]

    def leads(place: str) -> Address | None:
        reply = StoreRefused("MOVED", f"MOVED 3999 {place}")
        return place_in(reply, ("asked", 7000), slots.nodes, outside)

    assert leads("10.0.0.9:7000") == ("outside-10.0.0.9", 7001)
    assert leads(":7000") == leads("?:7000") == ("outside-asked", 7001)
    assert leads("?:7002") == ("outside-asked", 7002)


@pytest.mark.parametrize("reply", [b"text", 7, [[0, 1]], [[0, 1, b"x"]], [["a", 1, node(b"h", 1)]]])
def test_what_cannot_be_understood_is_no_answer(reply: Reply) -> None:
    """Whoever answers there is no node of a cluster."""
    with pytest.raises(StoreUnavailable, match="cannot be parsed"):
        Slots.read(reply, "10.0.0.1")


@pytest.mark.parametrize(
    ("command", "key"),
    [
        (("GET", "a"), "a"),
        (("HGET", b"a", "b"), b"a"),
        (("EVAL", "text", 2, "a", "b", "c"), "a"),
        (("EVALSHA", "sha", 1, "a"), "a"),
        (("MEMORY", "USAGE", "a"), "a"),
        (("OBJECT", "ENCODING", "a"), "a"),
        (("TIME",), None),
        (("SCAN", 0, "MATCH", "a*"), None),
        (("INFO",), None),
    ],
)
def test_a_command_is_about_its_key(command: Any, key: Any) -> None:
    """Which stands first, or after a script, or after a word."""
    assert key_of(command) == key


def test_a_key_with_a_tag_lies_in_the_slot_of_the_tag() -> None:
    """As in the specification: 123456789 has 12739."""
    assert slot_of("123456789") == slot_of("a{123456789}b") == slot_of(b"{123456789}") == 0x31C3
    assert host_port(("::1", 7000)) == "[::1]:7000"
    assert host_port(A) == "10.0.0.1:7000"


# --- Nodes that are called by names --------------------------------------------------------


@pytest.mark.parametrize("kind", ["hostname", "unknown-endpoint"])
@pytest.mark.parametrize("named", [True, False])
def test_nodes_may_be_called_by_host_names_or_not_at_all(
    kind: str, named: bool, cluster: Cluster
) -> None:
    """Where each has one, where none has one, and where clients are to know by themselves."""
    for one in cluster.nodes:
        one.ask("CONFIG", "SET", "cluster-announce-hostname", "localhost" if named else "")
        one.ask("CONFIG", "SET", "cluster-preferred-endpoint-type", kind)
    called = {("hostname", True): "localhost", ("hostname", False): "?"}.get((kind, named))
    eventually(
        lambda: all(
            {each[0] for row in one.ask("CLUSTER", "SLOTS") for each in row[2:]} == {called}
            for one in cluster.nodes
        )
    )
    slot = slot_of("redmeter:{axl}total:")
    cluster.migrate_slot(slot, cluster.other_than(cluster.node_of(slot)))
    first = f"redis+cluster://127.0.0.1:{cluster.nodes[0].port}"
    with Meter(first, sync=True) as meter:
        for number in range(100):
            meter.count(f"n{number}")
        assert len(meter.names()) == 100
        store = meter._store
        assert store is not None
        told = store.link.ask_servers([("PING",)])
        host = "localhost" if named and kind == "hostname" else "127.0.0.1"
        assert {place.partition(":")[0] for place in told} == {host}
        # Now every node calls the others by another name than was known: MOVED says which.
        cluster.migrate_slot(slot, cluster.nodes[0])
        assert len(meter.names()) == 100


# --- One node ------------------------------------------------------------------------------


def clustered(server: Server) -> Server:
    """Give all slots to a server that was started as a node of a cluster."""
    with server.client() as client:
        client.execute_command("CLUSTER", "ADDSLOTS", *range(SLOTS))
    return server


@pytest.fixture
def lone() -> Iterator[Server]:
    """A node of a cluster that has no slots yet, and does not know how it is called."""
    with Server("valkey-9.1", config={"cluster-enabled": "yes"}) as server:
        yield server


def url_of(server: Server, login: str = "") -> str:
    """Return its address as that of a cluster."""
    return f"redis+cluster://{login}127.0.0.1:{server.port}"


def failure(url: str) -> StoreError:
    """Return what goes wrong with a store, the same for who writes and who reads."""
    with opened_store(url, timeout=1.0) as store, pytest.raises(StoreError) as error:
        read_names(store)
    with Meter(url, sync=True, timeout=1.0) as meter, pytest.raises(StoreError) as other:
        meter.count("hits")
    assert type(error.value) is type(other.value)
    return other.value


def test_a_cluster_of_one_node_that_announces_no_host(lone: Server) -> None:
    """It has all shards, and is where it was found; the doctor has no complaint of it."""
    clustered(lone)
    with Meter(url_of(lone), sync=True) as meter:
        meter.count("hits", 3)
        assert meter.total("hits") == 3
        assert meter._store is not None
        found = doctor.examine(meter._store)
    told = [(f.level, f.text) for f in found.findings if f.topic == "cluster"]
    assert told[0] == ("ok", "1 primary, 64 of 64 shards each")


def test_of_addresses_that_are_gone_nothing_is_kept(lone: Server) -> None:
    """Where nodes come and go under new ones, links, connections and what is known would add up."""
    clustered(lone)
    with opened_store(url_of(lone), timeout=1.0) as store, lone.client() as client:
        link, question, held = link_of(store), ("EXISTS", "redmeter:x"), []
        eventually(lambda: client.cluster("INFO")["cluster_state"] == "ok", 10.0)
        client.config_set("cluster-preferred-endpoint-type", "hostname")

        def call(name: str, port: int = 0) -> None:
            client.config_set("cluster-announce-hostname", name)
            client.config_set("cluster-announce-port", port)
            link.recover()

        for name in ("localhost", "Localhost", "LOCALHOST"):
            call(name)
            assert link.exchange([question]) == [0]
            held += link.servers()
            assert held[-1].location.startswith(f"{name}:")
        call("localhost", free_port())
        assert isinstance(link.collect([question])[0], StoreUnavailable)
        call("localhost")
        assert link.exchange([question]) == [0]
        assert set(link._nodes) == {(host, lone.port) for host in ("127.0.0.1", "localhost")}
        assert link._trouble == {}
        # Its own, and one to each name.
        eventually(lambda: len(client.client_list()) == 3)


def test_a_cluster_without_slots_is_said(lone: Server) -> None:
    """It is there, and nothing can be stored."""
    error = failure(url_of(lone))
    assert isinstance(error, StoreRefused)
    assert error.code == "CLUSTERDOWN"
    assert "no node serves any slot" in str(error)


def test_a_cluster_that_is_taken_for_one_server_is_said(cluster: Cluster) -> None:
    """With the URL that would be right; and nothing is left there, on whichever node it were."""
    for one in cluster.nodes[:3]:
        url = f"redis://127.0.0.1:{one.port}/0"
        with opened_store(url) as store:
            told = [failure(url), *(refused(f) for f in (store.load_config, change_of(store)))]
        for error in told:
            assert isinstance(error, StoreRefused)
            assert error.code == "CROSSSLOT"
            assert "it is a node of a cluster: write the URL as redis+cluster://" in str(error)
    assert list(cluster.keys()) == []


@pytest.mark.parametrize("prefix", ["redmeter:", "app:"])
def test_no_reading_takes_a_node_for_an_empty_store(cluster: Cluster, prefix: str) -> None:
    """Also where all that is asked would lie there: the others may have it."""
    for one in cluster.nodes[:3]:
        with Meter(f"redis://127.0.0.1:{one.port}", prefix=prefix) as meter:
            asks: tuple[Callable[[], object], ...] = (
                *(meter.names, meter.loggers, meter.marks, lambda: meter.total("hits")),
                lambda: meter.series("hits", precision=60),
            )
            for ask in asks:
                error = refused(ask)
                assert error.code == "MOVED"
                assert "it is a node of a cluster: write the URL as redis+cluster:" in str(error)


def test_a_node_that_cannot_tell_yet_is_asked_again(lone: Server) -> None:
    """It may have no slots, and get some while we speak to it."""
    with opened_store(lone.url) as store:
        link = store.shards[0].link
        assert isinstance(link, ServerLink)
        ask = [("HGETALL", store.keys.count(60, "hits"))]
        for _ in range(2):
            (reply,) = store.ask(ask)
            assert isinstance(reply, StoreRefused)
            assert not link.standalone
        refused(store.read)
        clustered(lone)
        eventually(lambda: store.ask(ask) == [[]], 10.0)
        assert link.standalone


def test_a_store_is_told_from_a_node_within_the_first_exchange(
    server: Server, conn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the store is empty, the book's or ours; later ones ask for nothing more."""
    conn.hset("count:60:hits", "60", 1)
    with opened_store(server.url, prefix="ours:") as store:
        store.load_config()
    for prefix in ("redmeter:", "", "ours:"):
        for ask in (Store.read, ask_one):
            with opened_store(server.url, prefix=prefix) as store, exchanges(monkeypatch) as seen:
                ask(store)
                assert len(seen) == 1
                ask(store)
                assert len(seen) == 2
                assert seen[1] < seen[0]


def ask_one(store: Store) -> object:
    """Read one key."""
    return store.ask([("HGETALL", "count:60:hits")])


def test_a_node_that_takes_the_place_of_a_server_is_refused(
    cluster: Cluster, server: Server
) -> None:
    """As behind an address that leads to another server now: a new connection asks again."""
    with Proxy(server.port) as proxy, opened_store(proxy.url) as store:
        for node in cluster.nodes[:3]:
            proxy.target_port = server.port
            assert store.read()[1] == []
            proxy.target_port = node.port
            proxy.reset()
            assert refused(store.read).code == "MOVED"
            proxy.reset()
            assert refused(lambda: ask_one(store)).code == "MOVED"
            proxy.reset()


def test_one_node_that_has_all_slots_and_is_taken_for_a_server_is_said(lone: Server) -> None:
    """It answers readings; the doctor knows better, on each engine by its own word for it."""
    clustered(lone)
    with opened_store(lone.url) as store, lone.client() as client:
        eventually(lambda: client.cluster("INFO")["cluster_state"] == "ok", 10.0)
        assert refused(store.load_config).code == "CROSSSLOT"
        (found,) = [f for f in doctor.examine(store).findings if f.topic == "server"]
    assert (found.level, "is a node of a cluster" in found.text) == ("warn", True)
    assert "redis+cluster://" in found.fix


def change_of(store: Store) -> Callable[[], object]:
    """Return what changes what a store keeps."""
    return lambda: store.change_retention([(60, 240)])


def refused(do: Callable[[], object]) -> StoreRefused:
    """Return what a server refuses with."""
    with pytest.raises(StoreRefused) as raised:
        do()
    return raised.value


def test_one_server_that_is_taken_for_a_cluster_is_said(server: Server) -> None:
    """With the URL that would be right."""
    error = failure(url_of(server))
    assert "it is a single server, not a cluster: write the URL as redis://HOST:PORT" in str(error)


def test_a_server_that_is_none_of_a_cluster_is_passed_over(
    server: Server, cluster: Cluster
) -> None:
    """Where another one of the URL tells who has which slots."""
    url = f"{url_of(server)},{cluster.nodes[3].address}"
    with Meter(url, sync=True) as meter:
        meter.count("hits")
        assert meter.total("hits") == 1


def test_user_and_password_are_those_of_all_nodes(lone: Server) -> None:
    """A wrong one is said, and none is shown."""
    clustered(lone)
    with lone.client() as client:
        client.execute_command("ACL", "SETUSER", "ada", "on", ">s3cret-word", "~*", "+@all")
        client.config_set("requirepass", "an0ther-word")
    for login in ("ada:s3cret-word@", ":an0ther-word@"):
        with Meter(url_of(lone, login), sync=True) as meter:
            meter.count("hits")
            assert meter.total("hits")
            assert "word" not in f"{meter!r} {meter._store!r}"
    for login in ("ada:wr0ng-word@", ""):
        denied = failure(url_of(lone, login))
        assert isinstance(denied, AccessDenied)
        assert "word@" not in str(denied)
        assert "wr0ng" not in str(denied)


@pytest.mark.slow
@pytest.mark.skipif(not POSSIBLE, reason="there is no openssl to make certificates")
def test_a_whole_cluster_is_reached_over_tls(tmp_path: Path) -> None:
    """Each node by what the first one tells of it, also one that takes another's place."""
    papers, ports = papers_in(tmp_path), list[int]()

    def own() -> dict[str, str | int]:
        ports.append(free_port())
        return tls_settings(papers, ports[-1])

    with Cluster("redis-7.4", own=own) as cluster:
        url = f"rediss+cluster://127.0.0.1:{ports[0]}?ssl_ca_certs={papers.ca}"
        names = [f"n{number}" for number in range(100)]
        with Meter(url, sync=True) as meter:
            for name in names:
                meter.count(name)
            cluster.wait_for_replicas()
            cluster.kill(cluster.nodes[1])
            cluster.wait_failover(cluster.nodes[1])
            for name in names:
                meter.count(name)
            assert meter.names() == sorted(names)
            assert {meter.total(name) for name in names} == {2}
        with opened_store(url) as store:
            told = {server.location.partition(" ")[0] for server in store.link.servers()}
            partly = store.best_effort()
            assert read_names(partly) == sorted(names)
            admin = cluster.nodes[2].client
            shown = ("tls-cert-file", papers.expired.file, "tls-key-file", papers.expired.key)
            admin.execute_command("CONFIG", "SET", *map(str, shown))
            admin.execute_command("CLIENT", "KILL", "TYPE", "normal")
            assert 0 < len(read_names(partly)) < len(names)
            (missing,) = partly.skipped()
            with pytest.raises(StoreUnavailable, match="The server needs a new certificate"):
                read_names(store)
    assert told == {f"127.0.0.1:{ports[number]}" for number in (0, 2, 4)}
    assert missing.startswith(f"127.0.0.1:{ports[2]} does not answer (")
    assert "certificate has expired" in missing
    assert "the server needs a new certificate, or the clock" in missing


@pytest.mark.slow
@pytest.mark.skipif(not POSSIBLE, reason="there is no openssl to make certificates")
def test_nodes_are_verified_over_tls(tmp_path: Path) -> None:
    """By rediss+cluster:// and the file of the CA; a stranger's certificate is refused."""
    papers = papers_in(tmp_path)
    speaker = speaker_of("redis-7.2", papers)
    speaker.server.config += ["--cluster-enabled", "yes", "--tls-cluster", "yes"]
    with speaker.server:
        speaker.server.start()
        clustered(speaker.server)
        place = f"rediss+cluster://127.0.0.1:{speaker.port}"
        with Meter(f"{place}?ssl_ca_certs={papers.ca}", sync=True) as meter:
            meter.count("hits", 2)
            assert meter.total("hits") == 2
            assert meter.names() == ["hits"]
        for url, fix in (
            (place, "ssl_ca_certs"),
            (f"{place}?ssl_ca_certs={papers.other_ca}", "ssl_ca_certs"),
            (f"redis+cluster://127.0.0.1:{speaker.port}", "TLS"),
        ):
            broken = failure(url)
            assert isinstance(broken, StoreUnavailable)
            assert fix in str(broken), broken
        speaker.set(tls_auth_clients="yes")
        ours = f"ssl_certfile={papers.expired.file}&ssl_keyfile={papers.expired.key}"
        broken = failure(f"{place}?ssl_ca_certs={papers.ca}&{ours}")
        assert "The certificate in ssl_certfile has expired" in str(broken)
