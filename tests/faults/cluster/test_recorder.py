"""A recorder on a cluster: what it stores where, and that no node's trouble holds up the others."""

import contextlib
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redmeter import Meter
from redmeter.errors import StoreUnavailable
from redmeter.recording.bulk_writer import BulkWriter
from redmeter.recording.recorder import Recorder
from redmeter.recording.sending.flusher import FlushFailed
from redmeter.store import Store
from redmeter.store.config import new_version
from redmeter.stored.shards import SHARDS, TAGS, shard_of
from support.clusters import Cluster
from support.names import one_in_each
from support.nodes import Node
from support.programs import THREADS, Programs
from support.progress import shards_on, slot_of
from support.recorders import OpenBuffered, check_sums
from support.stores import opened_store
from support.waiting import eventually

#: Seconds that a node is waited for.
TIMEOUT = 0.3

NAMES = one_in_each()


def on(cluster: Cluster, node: Node) -> list[str]:
    """Return the names that lie on a node."""
    here = shards_on(cluster, node)
    return [name for name in NAMES if shard_of(name) in here]


def totals(cluster: Cluster) -> Counter[str]:
    """Return the grand totals, each out of its shard."""
    found: Counter[str] = Counter()
    for number, tag in enumerate(TAGS):
        node = cluster.node_of(slot_of(number))
        for name, value in node.client.hgetall(f"redmeter:{{{tag}}}total:").items():
            assert shard_of(name) == number
            assert name not in found
            found[name] = int(value)
    return found


def held(cluster: Cluster, field: str) -> set[str]:
    """Return what the shards say of themselves."""
    found = set()
    for number, tag in enumerate(TAGS):
        node = cluster.node_of(slot_of(number))
        found.add(node.client.hget(f"redmeter:{{{tag}}}meta:", field))
    return found


def count_all(meter: Meter, amount: int = 1) -> None:
    """Count something in each shard."""
    for name in NAMES:
        meter.count(name, amount)


def begun(cluster: Cluster, open_buffered: OpenBuffered) -> Meter:
    """Return a meter that has stored something in each shard."""
    meter = open_buffered(cluster.url, timeout=TIMEOUT, flush_interval=0.05)
    count_all(meter)
    assert meter.flush(10.0)
    return meter


def flush_by_itself(meter: Meter) -> None:
    """Do what the background does after each interval: no one waits for it."""
    recorder = meter._recorder
    assert isinstance(recorder, Recorder)
    with contextlib.suppress(FlushFailed):
        recorder._flush(last=False, requested=False)


@pytest.fixture
def opened(cluster: Cluster) -> Iterator[Store]:
    """A store on the cluster that waits a short while."""
    with opened_store(cluster.url, timeout=TIMEOUT) as store:
        yield store


# --- Where -----------------------------------------------------------------------------------


def test_what_is_recorded_lies_in_its_shard(cluster: Cluster, open_buffered: OpenBuffered) -> None:
    """A series in that of its name, also with the process's number; messages in the logger's."""
    meter = open_buffered(cluster.url)
    for _ in range(2):
        for name in NAMES:
            meter.count(name)
            meter.count(name, labels={"a": "b"})
            meter.gauge(f"{name}.set").set(1.0)
            meter.gauge(f"{name}.own", per_process=True).set(1.0)
            meter.observe(f"{name}.took", 0.5)
            meter.log(name, "hello")
        meter.mark("v1")
        assert meter.flush(10.0)
    health = meter.recorder_health()
    assert (health.instance, health.losses, health.troubles) == (0, (), {})
    check_sums(health)
    found: set[tuple[str, str]] = set()
    for _, key in cluster.keys("redmeter:{*"):
        tag, what, rest = re.fullmatch(r"redmeter:\{(\w+)\}(\w+):(.*)", key, re.DOTALL).groups()  # type: ignore[union-attr]
        if what in ("count", "gauge", "hist"):
            name = rest.partition(":")[2]
        elif what in ("recent", "patterns"):
            name = rest.rpartition(":")[0]
        elif what in ("marks", "writers", "reports", "instances"):
            name = ""
        else:
            continue
        assert TAGS[shard_of(name)] == tag, key
        found.add((what, name))
    assert {("count", name) for name in NAMES} <= found
    assert {("count", f'{name}{{a="b"}}') for name in NAMES} <= found
    assert {("gauge", f"{name}.set") for name in NAMES} <= found
    assert {("gauge", f'{name}.own{{instance="0"}}') for name in NAMES} <= found
    assert {("hist", f"{name}.took") for name in NAMES} <= found
    assert {(what, name) for name in NAMES for what in ("recent", "patterns")} <= found
    assert {("marks", ""), ("writers", ""), ("instances", "")} <= found


def test_all_shards_keep_what_was_chosen(cluster: Cluster, opened: Store) -> None:
    """Also one that has forgotten it, whatever the next process is configured for."""
    opened.change_retention([(5, 77)])
    chosen = str(opened.config().retention)
    for number in range(7, 20):
        cluster.node_of(slot_of(number)).ask("DEL", f"redmeter:{{{TAGS[number]}}}meta:")
    with Meter(cluster.url, retention={60: 9}, flush_interval=60) as meter:
        meter.count(NAMES[7])
        assert meter.flush(10.0)
    assert held(cluster, "retention") == {chosen}
    assert len(held(cluster, "version")) == 1


def test_a_change_reaches_shards_that_were_away(cluster: Cluster, opened: Store) -> None:
    """By the first recorder that knows of both: without anybody asking for it again."""
    seen = opened.config()
    version = new_version(opened.clock.wall(), seen.version, chosen=True)
    chosen = seen._replace(retention=seen.retention.changed([(5, 77)]), version=version)
    with Meter(cluster.url, flush_interval=60) as meter:
        count_all(meter)
        assert meter.flush(10.0)
        opened._retain(chosen, sorted(shards_on(cluster, cluster.nodes[0])))
        for _ in range(2):
            count_all(meter)
            assert meter.flush(10.0)
        assert meter.recorder_health().losses == ()
    assert held(cluster, "retention") == {str(chosen.retention)}
    assert held(cluster, "version") == {version}
    assert totals(cluster) == Counter(dict.fromkeys(NAMES, 3))


# --- Nodes in trouble ------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["paused", "killed", "full"])
def test_the_others_are_stored_meanwhile(
    cluster: Cluster, open_buffered: OpenBuffered, how: str
) -> None:
    """What is for the node in trouble adds up in memory, and a flush says that it is there."""
    cluster.keep_masters()
    meter = begun(cluster, open_buffered)
    node = cluster.nodes[1]
    waiting = on(cluster, node)
    {"paused": cluster.pause, "killed": cluster.kill, "full": cluster.fill}[how](node)
    for times in range(1, 8):
        count_all(meter)
        eventually(lambda: meter.recorder_health().buffered == times * len(waiting), 10.0)  # noqa: B023
        check_sums(meter.recorder_health())
    assert not meter.flush(0.5)
    assert meter.recorder_health().buffered == 7 * len(waiting)
    code = "OOM" if how == "full" else "StoreUnavailable"
    eventually(lambda: set(meter.recorder_health().troubles) == {code})
    if how == "killed":
        cluster.start_again(node)  # without its data
        cluster.wait_ok()
    elif how == "paused":
        cluster.resume(node)
    else:
        cluster.unfill(node)
    assert meter.flush(20.0)
    health = meter.recorder_health()
    assert (health.recorded, health.stored, health.uncertain) == (
        8 * SHARDS,
        health.recorded,
        0,
    )
    assert totals(cluster) == Counter(dict.fromkeys(NAMES, 8))
    assert health.repaired == (len(waiting) if how == "killed" else 0)


def test_the_node_of_the_first_shard_is_not_needed_for_the_others(
    cluster: Cluster, open_buffered: OpenBuffered
) -> None:
    """Also not by a process that begins meanwhile; what needs a number waits for it."""
    cluster.keep_masters()
    node = cluster.node_of(slot_of(0))
    waiting = on(cluster, node)
    cluster.pause(node)
    meter = open_buffered(cluster.url, timeout=TIMEOUT, flush_interval=0.05)
    count_all(meter)
    own = meter.gauge("own", per_process=True)
    own.set(1.0)
    meter.mark("v1")
    eventually(lambda: meter.recorder_health().buffered == len(waiting) + 2, 10.0)
    assert not meter.flush(0.5)
    assert meter.recorder_health().instance is None
    cluster.resume(node)
    assert meter.flush(20.0)
    own.set(2.0)
    assert meter.flush(20.0)
    health = meter.recorder_health()
    assert (health.instance, health.buffered, health.uncertain) == (0, 0, 0)
    check_sums(health)
    assert totals(cluster) == Counter(dict.fromkeys(NAMES, 1))
    tag = TAGS[shard_of('own{instance="0"}')]
    key = f'redmeter:{{{tag}}}gauge:60:own{{instance="0"}}'
    assert cluster.node_of(key).client.exists(key)


def test_a_node_that_hangs_is_not_waited_for_again_and_again(
    cluster: Cluster, open_buffered: OpenBuffered
) -> None:
    """While one exchange with it is under way there is no other, and then less and less often."""
    cluster.keep_masters()
    meter = begun(cluster, open_buffered)
    node = cluster.nodes[1]
    waiting = on(cluster, node)
    cluster.pause(node)
    until, rounds = time.monotonic() + 3.0, 0
    while time.monotonic() < until:
        rounds += 1
        count_all(meter)
        eventually(lambda: meter.recorder_health().buffered == rounds * len(waiting), 10.0)  # noqa: B023
    assert rounds > 2 * meter.recorder_health().troubles["StoreUnavailable"]
    cluster.resume(node)
    assert meter.flush(20.0)
    assert totals(cluster) == Counter(dict.fromkeys(NAMES, 1 + rounds))


def test_a_cluster_that_is_away_altogether_is_tried_less_and_less_often(
    cluster: Cluster, open_buffered: OpenBuffered
) -> None:
    """As one server is."""
    meter = begun(cluster, open_buffered)
    for node in cluster.nodes:
        cluster.kill(node)
    for _ in range(3):
        count_all(meter)
        before = sum(meter.recorder_health().troubles.values())
        eventually(lambda: sum(meter.recorder_health().troubles.values()) > before, 20.0)  # noqa: B023
    recorder: Any = meter._recorder
    assert recorder._flusher._backoff.failures >= 2
    assert not meter.flush(0.1)
    check_sums(meter.recorder_health())
    assert meter.recorder_health().buffered == 3 * SHARDS


def test_a_shard_on_another_server_is_not_left_alone_for_the_one_before(
    cluster: Cluster, open_buffered: OpenBuffered
) -> None:
    """What was to be left alone for 11 seconds is stored with the first flush after a failover."""
    node = cluster.masters()[1]
    waiting = on(cluster, node)
    meter = open_buffered(cluster.url, timeout=TIMEOUT, flush_interval=3600)
    count_all(meter)
    assert meter.flush(10.0)
    cluster.kill(node)
    count_all(meter)
    flush_by_itself(meter)  # on a busy machine it may be back before the answers are
    eventually(lambda: meter.recorder_health().buffered == len(waiting), 10.0)
    cluster.wait_failover(node)
    flush_by_itself(meter)
    eventually(lambda: meter.recorder_health().buffered == 0, 10.0)
    check_sums(meter.recorder_health())


def test_many_events_of_the_past_are_stored_but_for_those_of_a_node(
    cluster: Cluster, opened: Store
) -> None:
    """Whoever waits for that is reported; and tried again, each is stored once."""
    cluster.keep_masters()
    bulk, now = BulkWriter(opened), int(time.time())
    for name in NAMES:
        for second in range(500):
            bulk.add(name, now - second, 1, now)
    node = cluster.nodes[2]
    waiting = on(cluster, node)
    cluster.pause(node)
    with pytest.raises(StoreUnavailable):
        bulk.write(0.0, now)
    assert bulk.health().buffered == 500 * len(waiting)
    cluster.resume(node)
    bulk.write(10.0, now)
    assert (bulk.health().buffered, bulk.health().uncertain) == (0, 0)
    assert totals(cluster) == Counter(dict.fromkeys(NAMES, 500))


# --- Processes -------------------------------------------------------------------------------

PROGRAM = """
names = sys.argv[2].split()
meter = Meter(URL, flush_interval=60, timeout=3.0)

def count():
    for name in names:
        meter.count(name)
"""


@pytest.fixture
def programs(cluster: Cluster, tmp_path: Path) -> Iterator[Programs]:
    """Starts programs that are given the address of the cluster."""
    with Programs(tmp_path, cluster.url) as programs:
        yield programs


def test_the_end_of_a_process_waits_for_the_other_nodes(
    cluster: Cluster, programs: Programs
) -> None:
    """One that hangs makes it no later than any store that hangs."""
    cluster.keep_masters()
    node = cluster.nodes[1]
    waiting = on(cluster, node)
    code = (
        PROGRAM + "count()\nassert meter.flush(10)\ncount()\nprint('here')\ninput = sys.argv[3]\n"
    )
    code += "while not os.path.exists(input):\n    time.sleep(0.01)\nprint(time.monotonic())\n"
    go_on = programs.folder / "go on"
    program = programs.start(code, " ".join(NAMES), str(go_on))
    assert program.line(0) == "here"
    cluster.pause(node)
    go_on.touch()
    done = program.finish()
    assert done.code == 0
    cluster.resume(node)
    expected = Counter(dict.fromkeys(NAMES, 2))
    # What was sent to the node while it stood still may be carried out by it now.
    found = totals(cluster)
    assert {name: found[name] for name in NAMES if name not in waiting} == {
        name: 2 for name in NAMES if name not in waiting
    }
    assert all(1 <= found[name] <= expected[name] for name in waiting)


def test_a_child_has_nothing_of_a_parent_that_hangs(cluster: Cluster, programs: Programs) -> None:
    """Forked while a thread of its parent waits for a node."""
    cluster.keep_masters()
    node = cluster.nodes[1]
    waiting = on(cluster, node)
    code = (
        PROGRAM
        + """
count()
assert meter.flush(10)
print("here")
while not os.path.exists(sys.argv[3]):
    time.sleep(0.01)
count()
assert not meter.flush(0.5)
if os.fork() == 0:
    names = sys.argv[4].split()
    count()
    assert meter.flush(1.0), meter.recorder_health()
    assert meter.recorder_health().stored == len(names), meter.recorder_health()
    os._exit(0)
assert os.wait()[1] == 0
os._exit(0)
"""
    )
    go_on = programs.folder / "go on"
    others = [name for name in NAMES if name not in waiting]
    program = programs.start(code, " ".join(NAMES), str(go_on), " ".join(others))
    assert program.line(0) == "here"
    cluster.pause(node)
    go_on.touch()
    done = program.finish()
    assert (done.code, "Traceback" in done.err) == (0, False)
    cluster.resume(node)
    counted = totals(cluster)
    assert {name: counted[name] for name in others} == dict.fromkeys(others, 3)


def test_no_thread_is_left_once_a_meter_is_closed(programs: Programs) -> None:
    """Those that sent to the nodes end with the one that flushed; counting starts them again."""
    done = programs.run(
        THREADS
        + PROGRAM
        + """
for _ in range(2):
    count()
    assert meter.flush(10)
    assert threads() > 2
    meter.close()
    eventually(1)
""",
        " ".join(NAMES),
    )
    assert (done.code, done.err) == (0, "")
