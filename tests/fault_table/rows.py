"""The rows of the fault table: what is done to the servers while a writer records.

A fault is done when its function returns: the store takes writes again then, or soon. Where a
failover is to cost something, the replicas are cut off before and further events are acknowledged,
which no replica has: see `_cut_off`.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from fault_table.places import OneServer, Pair, Place, SentinelGroup, ThreeNodes
from fault_table.writers import Writer
from redmeter import Meter
from redmeter.store.producers import KEPT_SECONDS
from support.servers import Server
from support.waiting import eventually

#: Seconds that a server stands still, or is away.
WHILE = 1.0
#: Watermarks: of a Meter, and of the book.
WATERMARKS = ("redmeter:*batch:*", "batch:*")


class Row(NamedTuple):
    """A row: what is done, and what that may cost."""

    name: str
    fault: Callable[[Any, Writer], None]
    #: Whether nobody can know what is lost.
    unknown: bool = False
    #: Whether the fault itself starts the writer.
    starts: bool = False


# --- One server --------------------------------------------------------------------------------


def _kill(server: Server) -> None:
    server.kill()
    Place.hold(WHILE)
    server.start()


def kill_empty(place: OneServer, writer: Writer) -> None:
    """It starts without its data."""
    _kill(place.server)


def kill_snapshot(place: OneServer, writer: Writer) -> None:
    """It starts from its last snapshot."""
    with place.server.client() as client:
        client.save()
    writer.more()
    _kill(place.server)


def _keep_file(server: Server, fsync: str = "everysec") -> None:
    """Have it write an append-only file."""
    server.config += ["--appendonly", "yes", "--appendfsync", fsync]
    with server.client() as client:
        client.config_set("appendfsync", fsync)
        client.config_set("appendonly", "yes")

        def written() -> bool:
            told: Any = client.info("persistence")
            return not (told["aof_rewrite_in_progress"] or told["aof_rewrite_scheduled"])

        eventually(written, what="all it has is on disk")


def kill_file(place: OneServer, writer: Writer) -> None:
    """It starts from its append-only file: SIGKILL loses nothing that was written to the kernel."""
    _keep_file(place.server)
    writer.more()
    _kill(place.server)


def stop_a_while(place: OneServer, writer: Writer) -> None:
    """SIGSTOP, SIGCONT."""
    place.server.pause()
    Place.hold(WHILE)
    place.server.resume()


def _restore(server: Server, save: Callable[[], object], between: Callable[[], None]) -> None:
    """Stop it, and start it from an older dump.

    Args:
        save: has it write a dump.
        between: done between the dump and the stop.
    """
    dump, older = server.dir / "dump.rdb", server.dir / "older.rdb"
    save()
    shutil.copy(dump, older)
    between()
    server.stop()
    shutil.copy(older, dump)
    server.start()


def older_dump(place: OneServer, writer: Writer) -> None:
    """An RDB file of a moment ago is put back."""
    _restore(place.server, place.server.client().save, writer.more)


def _age(writer: Writer) -> None:
    """Have the batches so far be too old to be sent again."""
    writer.more()
    writer.clock.advance(KEPT_SECONDS + 10)
    writer.more()


def much_older_dump(place: OneServer, writer: Writer) -> None:
    """An RDB file of before the kept batches is put back."""
    _restore(place.server, place.server.client().save, lambda: _age(writer))


def dump_before_the_writer(place: OneServer, writer: Writer) -> None:
    """The store is older than the writer; it lacks the writer's first batches."""
    with Meter(place.url, sync=True) as meter:
        meter.count("earlier")

    def start() -> None:
        writer.start()
        writer.more()

    _restore(place.server, place.server.client().save, start)


def older_file(place: OneServer, writer: Writer) -> None:
    """An append-only file of a moment ago is put back."""
    server = place.server
    _keep_file(server, "always")
    writer.more()
    kept, older = _file_of(server), server.dir / "older"
    copy = shutil.copytree if kept.is_dir() else shutil.copy
    copy(kept, older)
    writer.more()
    server.kill()
    if kept.is_dir():
        shutil.rmtree(kept)
    else:
        kept.unlink()
    older.rename(kept)
    server.start()


def _file_of(server: Server) -> Path:
    folder = server.dir / "appendonlydir"
    return folder if folder.is_dir() else server.dir / "appendonly.aof"


def _on_server(*words: str) -> Callable[[OneServer, Writer], None]:
    def fault(place: OneServer, writer: Writer) -> None:
        with place.server.client() as client:
            client.execute_command(*words)

    return fault


def flush_old(place: OneServer, writer: Writer) -> None:
    """Most of what is lost is too old to be sent again."""
    _age(writer)
    _on_server("FLUSHDB")(place, writer)


def _delete(client: Any, *patterns: str) -> None:
    for pattern in patterns:
        for key in list(client.scan_iter(pattern, count=1000)):
            client.unlink(key)


def delete_watermarks(place: OneServer, writer: Writer) -> None:
    """The data stays."""
    with place.server.client() as client:
        _delete(client, *WATERMARKS)


def evict_watermarks(place: OneServer, writer: Writer) -> None:
    """Memory is short, and the server may evict what expires; grand totals do not."""
    with place.server.client(decode_responses=True) as client:
        client.config_set("maxmemory-policy", "volatile-lru")

        def evicted() -> bool:
            client.config_set("maxmemory", client.info("memory")["used_memory"] - 4096)
            return not any(list(client.scan_iter(pattern, count=1000)) for pattern in WATERMARKS)

        eventually(evicted, what="the watermarks are gone")
        client.config_set("maxmemory", 0)


def evict_data(place: OneServer, writer: Writer) -> None:
    """The watermarks stay: as an eviction, or another program, takes some keys."""
    with place.server.client() as client:
        _delete(client, "redmeter:*total:*", "redmeter:*count:*", "count:*")


def writer_ended(place: OneServer, writer: Writer) -> None:
    """FLUSHALL after that: nobody is there to find it."""
    writer.end()
    _on_server("FLUSHALL")(place, writer)


SERVER_ROWS = (
    Row("kill -9, no persistence", kill_empty),
    Row("kill -9, snapshots", kill_snapshot),
    Row("kill -9, append-only file", kill_file),
    Row("SIGSTOP for a second", stop_a_while),
    Row("an older RDB file restored", older_dump),
    Row("an older append-only file restored", older_file),
    Row("an RDB file older than the kept batches restored", much_older_dump),
    Row("an RDB file older than the writer restored", dump_before_the_writer, starts=True),
    Row("FLUSHDB", _on_server("FLUSHDB")),
    Row("FLUSHALL", _on_server("FLUSHALL")),
    Row("FLUSHDB, batches older than the kept ones", flush_old),
    Row("watermarks deleted", delete_watermarks),
    Row("watermarks evicted", evict_watermarks),
    Row("FLUSHALL, the writer has ended", writer_ended, unknown=True),
    Row("data evicted", evict_data, unknown=True),
)


# --- Two servers behind an address -------------------------------------------------------------


def _cut_off(replicas: list[Server], primary: Server, writer: Writer) -> None:
    """Have replicas stand still, and events be acknowledged that none of them has."""
    for replica in replicas:
        replica.pause()
    with primary.client() as client:
        client.execute_command("CLIENT", "KILL", "TYPE", "replica")
    writer.more()


def old_returns(place: Pair, writer: Writer) -> None:
    """What it had is there again, and its successor's is not."""
    _cut_off([place.other], place.server, writer)
    place.other.resume()
    place.switch(place.other)
    writer.more()
    place.switch(place.server)


PAIR_ROWS = (Row("failover, then the old primary is the primary again", old_returns),)


# --- Sentinel ----------------------------------------------------------------------------------


def _unreplicated(place: SentinelGroup, writer: Writer) -> list[Server]:
    """Have events be acknowledged that no replica has; return the replicas, which stand still."""
    master, replicas = place.group.master, place.group.replicas
    _cut_off(replicas, master, writer)
    return replicas


def _resume(servers: list[Server]) -> None:
    for server in servers:
        server.resume()


def _lose_primary(place: SentinelGroup, writer: Writer, lose: Callable[[Server], None]) -> Server:
    """Lose the primary with events that no replica has; return it."""
    before = place.group.master
    replicas = _unreplicated(place, writer)
    lose(before)
    _resume(replicas)
    place.group.moved_from(before)
    return before


def sentinel_kill(place: SentinelGroup, writer: Writer) -> None:
    """SIGKILL; another server is promoted."""
    _lose_primary(place, writer, Server.kill)


def sentinel_stop(place: SentinelGroup, writer: Writer) -> None:
    """SIGSTOP; another server is promoted; the old primary goes on, and becomes a replica."""
    before = _lose_primary(place, writer, Server.pause)
    before.resume()
    writer.more()
    place.group.heal()


def sentinel_split(place: SentinelGroup, writer: Writer) -> None:
    """It serves the connections that it has, and neither sentinels nor replicas."""
    group, before = place.group, place.group.master
    with before.client() as client:
        client.ping()
        replicas = _unreplicated(place, writer)
        most = client.config_get("maxclients")["maxclients"]
        client.config_set("maxclients", 1)  # no new connections
        for line in client.client_list():
            if line["name"].startswith("sentinel-") or line["flags"] == "P":
                client.client_kill_filter(_id=line["id"])
        _resume(replicas)
        group.moved_from(before)
        Place.hold(WHILE)
        client.config_set("maxclients", most)
    group.heal()


def sentinel_planned(place: SentinelGroup, writer: Writer) -> None:
    """SENTINEL FAILOVER, both primaries being well."""
    place.group.fail_over()
    place.group.heal()  # the old one took writes until then


def sentinel_double(place: SentinelGroup, writer: Writer) -> None:
    """Two, one after the other: what was sent again is lost again."""
    for _ in range(2):
        _lose_primary(place, writer, Server.kill)
        place.group.heal()


def sentinel_flush(place: SentinelGroup, writer: Writer) -> None:
    """FLUSHALL on the primary."""
    with place.group.master.client() as client:
        client.flushall()


SENTINEL_ROWS = (
    Row("kill -9 of the primary", sentinel_kill),
    Row("SIGSTOP of the primary, which returns as a replica", sentinel_stop),
    Row("split: the old primary serves its clients", sentinel_split),
    Row("planned failover", sentinel_planned),
    Row("two failovers", sentinel_double),
    Row("FLUSHALL", sentinel_flush),
)


# --- A cluster ---------------------------------------------------------------------------------


def _cluster_lose(place: ThreeNodes, writer: Writer, lose: Callable[[Any], None]) -> Any:
    """Lose a primary with events that its replica has not; return it."""
    node, replica = place.first()
    replica.server.pause()
    node.ask("CLIENT", "KILL", "TYPE", "replica")
    writer.more(60)  # in all shards
    lose(node)
    replica.server.resume()
    place.cluster.wait_failover(node)
    return node


def cluster_kill(place: ThreeNodes, writer: Writer) -> None:
    """SIGKILL; the replica is promoted; the old primary returns empty, as a replica."""
    node = _cluster_lose(place, writer, place.cluster.kill)
    place.cluster.start_again(node)
    place.cluster.wait_ok()


def cluster_stop(place: ThreeNodes, writer: Writer) -> None:
    """SIGSTOP; the replica is promoted; the old primary returns as a replica."""
    node = _cluster_lose(place, writer, place.cluster.pause)
    place.cluster.resume(node)
    place.cluster.wait_ok()


def cluster_split(place: ThreeNodes, writer: Writer) -> None:
    """The old primary is cut off from the other nodes, not from its clients."""
    node, _ = place.first()
    place.cluster.cut_off(node, clients=False)
    place.cluster.wait_failover(node)
    Place.hold(WHILE)
    place.cluster.heal(node)
    place.cluster.wait_ok()


def cluster_planned(place: ThreeNodes, writer: Writer) -> None:
    """CLUSTER FAILOVER: the replica waits until it has everything."""
    node, replica = place.first()
    replica.ask("CLUSTER", "FAILOVER")
    eventually(lambda: node.id not in place.cluster.layout(), what="the replica is promoted")
    place.cluster.wait_ok()


def cluster_double(place: ThreeNodes, writer: Writer) -> None:
    """The promoted replica is lost as well, once the old primary follows it."""
    _, other = place.first()
    cluster_kill(place, writer)
    other.server.pause()
    place.cluster.wait_failover(other)
    place.cluster.resume(other)
    place.cluster.wait_ok()


def cluster_older_dump(place: ThreeNodes, writer: Writer) -> None:
    """A node starts from an older RDB file before it is replaced."""
    node, _ = place.first()
    place.cluster.keep_masters()
    _restore(node.server, lambda: node.ask("SAVE"), lambda: writer.more(60))
    place.cluster.wait_ok()


def _on_node(*words: str) -> Callable[[ThreeNodes, Writer], None]:
    def fault(place: ThreeNodes, writer: Writer) -> None:
        place.first()[0].ask(*words)

    return fault


def cluster_delete_watermarks(place: ThreeNodes, writer: Writer) -> None:
    """On one node; the data stays."""
    _delete(place.first()[0].client, *WATERMARKS)


CLUSTER_ROWS = (
    Row("kill -9 of a primary", cluster_kill),
    Row("SIGSTOP of a primary, which returns as a replica", cluster_stop),
    Row("split: the old primary serves its clients", cluster_split),
    Row("planned failover", cluster_planned),
    Row("two failovers", cluster_double),
    Row("an older RDB file restored on a node", cluster_older_dump),
    Row("FLUSHDB on a node", _on_node("FLUSHDB")),
    Row("FLUSHALL on a node", _on_node("FLUSHALL")),
    Row("watermarks deleted on a node", cluster_delete_watermarks),
)
