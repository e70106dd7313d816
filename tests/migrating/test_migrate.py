"""migrate(): everything arrives, only one of the stores accepts writes, faults do no harm."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from redmeter import Meter, book
from redmeter.errors import StoreError, StoreMoving, StoreUnavailable
from redmeter.migrating import (
    Interrupted,
    MigrationError,
    MigrationReport,
    migrate,
    states,
    survey,
)
from redmeter.migrating import copy as copying
from redmeter.store.config import ShardState, read_states
from support.clusters import Cluster
from support.migrating import Killed, Killer, fill, held
from support.servers import Server
from support.stores import HastyClock, OpenStore, count, opened_stores, server_time

META = "redmeter:meta:"


@pytest.fixture
def open_store() -> Iterator[OpenStore]:
    """Open stores, and close them after the test."""
    yield from opened_stores()


class Pair:
    """A source and a target, in two databases of one server."""

    def __init__(self, server: Server, open_store: OpenStore) -> None:
        self.urls = server.url, server.url.removesuffix("0") + "1"
        self.clients = server.client(), server.client(db=1)
        self._open = open_store
        self.open()

    def open(self) -> None:
        """Open both stores as another process would."""
        self.source, self.target = (self._open(url, clock=HastyClock()) for url in self.urls)

    def expire(self) -> None:
        """Let the source's freeze expire."""
        text: Any = self.clients[0].hget(META, "frozen")
        if text is not None:
            self.clients[0].hset(META, "frozen", f"{text.split()[0].decode()} 1")

    def count(self) -> bool:
        """Count `new` in whichever store accepts it; tell whether one does."""
        for url in self.urls:
            store = self._open(url, clock=HastyClock())
            with contextlib.suppress(StoreMoving):
                count(store, "new", int(server_time(self.clients[0])))
                return True
        return False

    def totals(self) -> list[int]:
        """Return the total of `new` in both."""
        return [int(client.hget("redmeter:total:", "new") or 0) for client in self.clients]


@pytest.fixture
def pair(server: Server, open_store: OpenStore) -> Iterator[Pair]:
    """A filled source, and a target that does not exist yet."""
    fill(server.url)
    pair = Pair(server, open_store)
    yield pair
    for client in pair.clients:
        client.close()


def test_everything_arrives_and_only_the_target_accepts_writes(pair: Pair) -> None:
    """With its times to live and the source's retention, which may be another than the default."""
    pair.source.change_retention([(60, 50)])
    before = held(pair.clients[:1])
    report = migrate(pair.source, pair.target)
    assert held(pair.clients[1:]) == before == held(pair.clients[:1])
    for index in ("messages:", "exceptions:"):
        assert pair.clients[1].ttl(f"redmeter:{index}") > 0
    indexes = {
        "known:",
        "gauges:",
        "hists:",
        "messages:",
        "exceptions:",
        "sums:",
        "spreads:",
        "total:",
    }
    dates = {key for key in before if key.endswith((":start", ":pstart"))}
    assert report.total == len(before.keys() - indexes - dates)
    assert (report.foreign, report.already) == (0, False)
    ttls = [client.ttl('redmeter:count:60:hits{n="1"}') for client in pair.clients]
    assert 0 <= ttls[0] - ttls[1] <= 1
    pair.open()
    assert pair.target.config().retention[60] == 50
    assert pair.target.config().version > pair.source.config().version
    assert pair.count()
    assert pair.totals() == [0, 1]


def test_a_second_run_finds_everything_done(pair: Pair) -> None:
    """Also after events were stored in the target; nothing of them is lost."""
    first = migrate(pair.source, pair.target)
    assert pair.count()
    second = migrate(pair.source, pair.target, replace=True)
    assert (second.already, second.move, second.total) == (True, first.move, 0)
    assert pair.totals() == [0, 1]


def test_a_store_moves_to_a_cluster_and_back(
    server: Server, cluster: Cluster, open_store: OpenStore
) -> None:
    """Each series and logger into its shard; names that end as keys of hours do as well."""
    fill(server.url, series=10)
    with contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(node.server.client()) for node in cluster.masters()]
        client = stack.enter_context(server.client())
        before = held([client])
        spread = open_store(cluster.url)
        migrate(open_store(server.url), spread)
        assert held(nodes) == before
        with Meter(cluster.url) as meter:
            assert meter.total('hits{n="3"}') == 4
            assert meter.statistics('took:last{n="3"}').this is not None
            meter.count("new")
            assert meter.flush()
        after = held(nodes)
        migrate(spread, open_store(server.url), replace=True, erase=True)
        assert held([client]) == after != before
        assert held(nodes) == {}
    with Meter(server.url) as meter:
        assert meter.total("new") == 1
    with Meter(cluster.url, sync=True) as meter, pytest.raises(StoreMoving):
        meter.count("new")


def test_large_keys_and_keys_of_others_are_copied_in_pieces(pair: Pair) -> None:
    """Hashes, lists and sorted sets of more elements than are read at once."""
    client, _ = pair.clients
    client.hset("redmeter:count:60:large", mapping={str(60 * n): n for n in range(1_300)})
    client.hset("redmeter:total:", mapping={f"t{n}": n for n in range(1_300)})
    client.zadd("redmeter:known:", {f"60:t{n}": 0 for n in range(1_300)} | {"60*60:none": 0})
    client.zadd("redmeter:common:large:info", {f"p{n}": n + 0.1 for n in range(1_300)})
    client.rpush("redmeter:recent:large:info", *(f"m{n}" for n in range(1_300)))
    client.set("redmeter:gauge:60:foreign", "x")
    report = migrate(pair.source, pair.target)
    assert (report.foreign, report.foreign_keys) == (1, ["redmeter:gauge:60:foreign"])
    before = held(pair.clients[:1])
    del before["gauge:60:foreign"]
    assert held(pair.clients[1:]) == before


def test_a_store_without_a_prefix_moves_with_its_exact_hours(
    server: Server, open_store: OpenStore
) -> None:
    """The keys of the listings, and ours under redmeter:bare:; a store beside it stays."""
    fill(server.url, series=1)
    urls = server.url, server.url.removesuffix("0") + "1"
    with server.client() as client, server.client(db=1) as other:
        beside = held([client])
        book.update_counter(client, "hits")
        book.log_common(client, "worker", "retrying")
        book.update_stats(client, "cart", "value", 2.0)
        migrate(*(open_store(url, prefix="") for url in urls))
        now = held([client])
        assert {key: value for key, value in now.items() if not key.startswith("bare:")} == beside
        mine = held([client], "")
        copied = held([other], "")
        left = {key for key in mine if _is_left(key)} | {f"redmeter:{key}" for key in beside}
        assert copied.keys() - {key for key in copied if _is_left(key)} == mine.keys() - left
        assert any(key.startswith("redmeter:bare:common:") for key in copied)
        with pytest.raises(StoreMoving):
            book.update_counter(client, "hits")
        book.update_counter(other, "hits")
        assert book.get_counter(other, "hits", 60)[0][1] == 2


def _is_left(key: str) -> bool:
    """Tell whether a key stays, whatever its prefix."""
    return any(family in key for family in ("meta:", "batch:", "cleaned:"))


def test_a_survey_counts_and_changes_nothing(pair: Pair) -> None:
    """Neither store is frozen, and the target is not made."""
    before = pair.clients[0].hgetall(META)
    found = survey(pair.source)
    assert found.total == migrate(pair.source, pair.target).total
    assert 0 < found.freeze_seconds < 10
    assert pair.clients[0].hgetall(META).keys() == before.keys() | {b"moved", b"moved_prefix"}


# --- Refusals ------------------------------------------------------------------------------


def refusal(pair: Pair, **options: Any) -> str:
    """Return why a migration is refused, and see that the source is in use."""
    before = held(pair.clients[1:])
    with pytest.raises(MigrationError) as raised:
        migrate(pair.source, pair.target, **options)
    assert held(pair.clients[1:]) == before
    return raised.value.reason


def test_a_target_with_data_is_refused_unless_they_are_to_be_replaced(pair: Pair) -> None:
    """Nothing of it is touched before."""
    fill(pair.urls[1], series=1)
    pair.clients[1].hset("redmeter:count:60:other", "60", "1")
    assert refusal(pair) == "not-empty"
    assert pair.count()
    assert pair.totals() == [1, 0]
    migrate(pair.source, pair.target, replace=True)
    assert held(pair.clients[1:]) == held(pair.clients[:1])


def test_a_store_is_not_moved_onto_itself(server: Server, pair: Pair) -> None:
    """By another name of the server, too; it stays in use."""
    for url in (server.url.replace("127.0.0.1", "localhost"), server.unix_url):
        pair.target = pair._open(url)
        assert refusal(pair, replace=True) == "same"
    assert pair.count()
    assert not pair.clients[0].hexists(META, "probe")


def test_a_source_that_moved_elsewhere_is_refused(pair: Pair, server: Server) -> None:
    """Or two stores would have gone on from one."""
    migrate(pair.source, pair.target)
    pair.target = pair._open(server.url.removesuffix("0") + "2")
    assert refusal(pair) == "moved-elsewhere"
    pair.target = pair._open(pair.urls[0], prefix="")
    assert refusal(pair) == "moved-elsewhere"


def test_a_frozen_source_is_waited_for_unless_its_mover_is_alive(pair: Pair) -> None:
    """A lease that is renewed is another process'; one that is not expires."""
    client, clock = pair.clients[0], pair.source.clock
    assert isinstance(clock, HastyClock)
    for renewed in (True, False):
        client.hset(META, "frozen", f"other {server_time(client) + 20}")
        deadline = server_time(client) + 40 if renewed else 1
        clock.on_sleep = lambda d=deadline: client.hset(META, "frozen", f"other {d}")  # type: ignore[misc]
        if renewed:
            assert refusal(pair) == "busy"
    migrate(pair.source, pair.target)
    assert clock.waits == 2


# --- Faults --------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_mover_may_be_killed_anywhere(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    """At each exchange: one store accepts an event, or none, and the next run completes it."""
    steps, at, accepted = 1, 0, []
    snapshot = dumped(pair.clients[0])
    while at < steps:
        restore(pair, snapshot)
        with monkeypatch.context() as patched:
            killer = Killer(patched, (pair.source, pair.target), at, after=after)
            with contextlib.suppress(Killed):
                migrate(pair.source, pair.target)
            steps = max(steps, killer.exchanges + (killer.exchanges > at))
        pair.expire()
        accepted.append(pair.count())
        pair.open()
        migrate(pair.source, pair.target)
        assert pair.count()
        assert pair.totals()[1] == accepted[-1] + 1, at
        at += 1
    assert at > 20
    assert accepted[0]
    assert accepted[-1]
    assert not all(accepted)


def test_a_mover_that_sleeps_past_its_deadline_has_lost_the_source(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it wakes up while it copies, or right before it seals the source."""
    monkeypatch.setattr(states, "RENEWAL", 0.0)

    def sleep(*_: object) -> None:
        pair.expire()
        assert pair.count()

    with pytest.raises(MigrationError) as raised:
        migrate(pair.source, pair.target, progress=sleep)
    assert raised.value.reason == "expired"
    monkeypatch.setattr(states, "RENEWAL", 1000.0)
    with monkeypatch.context() as patched:
        patched.setattr(copying, "check_servers", sleep)
        with pytest.raises(MigrationError) as raised:
            migrate(pair.source, pair.target)
    assert raised.value.reason == "expired"
    assert pair.totals()[0] == 3
    migrate(pair.source, pair.target)
    assert pair.totals()[1] == 3


def test_of_two_movers_one_completes(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is stalled while it copies cannot write to the target that another one fills."""
    stalled = pair.source, pair.target
    reports: list[MigrationReport] = []

    def go_on_elsewhere(_: int) -> None:
        if not reports:
            pair.expire()
            assert pair.count()
            pair.open()
            reports.append(migrate(pair.source, pair.target))
            assert pair.count()

    monkeypatch.setattr(states, "RENEWAL", 1000.0)
    with pytest.raises(MigrationError) as raised:
        migrate(*stalled, progress=go_on_elsewhere)
    assert raised.value.reason == "fenced"
    assert pair.totals() == [1, 2]
    assert migrate(pair.source, pair.target).already


def test_ctrl_c_ends_the_freeze(pair: Pair) -> None:
    """Whoever asked for it is told that nothing has changed."""
    pressed: list[bool] = []
    with pytest.raises(Interrupted):
        migrate(pair.source, pair.target, progress=pressed.append, quit=lambda: bool(pressed))  # type: ignore[arg-type]
    assert pair.count()
    migrate(pair.source, pair.target)
    assert pair.totals()[1] == 1


def test_a_target_that_is_killed_ends_the_freeze(
    pair: Pair, server: Server, open_store: OpenStore
) -> None:
    """It comes back empty: the next run copies everything again."""
    with Server("valkey-9.1") as other:
        pair.target = open_store(other.url, timeout=0.5)

        def kill(_: int) -> None:
            other.kill()

        with pytest.raises(StoreError):
            migrate(pair.source, pair.target, progress=kill)
        assert pair.count()
        other.restart()
        migrate(pair.source, pair.target)
        with other.client() as client:
            assert held([client]) == held(pair.clients[:1])


def test_a_target_that_restarts_unnoticed_is_not_used(pair: Pair, open_store: OpenStore) -> None:
    """Connections are reopened automatically; but it is another process."""
    with Server("valkey-9.1", config={"save": ""}) as other:
        pair.target = open_store(other.url)

        def restart(_: int) -> None:
            with other.client() as client:
                meta = client.hgetall(META)
            other.kill()
            other.restart()
            with other.client() as client:
                client.hset(META, mapping=meta)

        with pytest.raises(MigrationError) as raised:
            migrate(pair.source, pair.target, progress=restart)
        assert raised.value.reason in ("server-changed", "differs")
    assert pair.count()


@pytest.mark.parametrize("loses", ["what was verified", "everything"])
def test_a_target_restored_from_an_older_snapshot_is_copied_to_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, loses: str
) -> None:
    """After the source was sealed: nothing was lost, since the target was never opened."""
    snapshots: list[dict[bytes, Any]] = []
    opening = states.open_shards

    def open_restored(*args: Any) -> None:
        pair.clients[1].flushdb()
        if loses == "what was verified":
            for key, value in snapshots[0].items():
                pair.clients[1].restore(key, 0, value)
        opening(args[0], [read_states(pair.target)[0]], args[2])

    with monkeypatch.context() as patched:
        patched.setattr(states, "open_shards", open_restored)
        with pytest.raises(MigrationError) as raised:
            migrate(
                pair.source,
                pair.target,
                progress=lambda _: snapshots.append(dumped(pair.clients[1])),
            )
    assert raised.value.reason == "not-verified"
    assert not pair.count() or loses == "everything"
    pair.open()
    if loses == "everything":  # nothing there says that it is the target of this move
        assert refusal(pair) == "moved-elsewhere"
    migrate(pair.source, pair.target, replace=loses == "everything")
    assert pair.count()
    assert pair.totals() == [0, 1]
    assert held(pair.clients[:1]).keys() <= held(pair.clients[1:]).keys()


def test_a_killed_run_that_replaces_a_lost_copy_is_gone_on_with(
    pair: Pair,
) -> None:
    """The source was sealed by an earlier run. What the target has is known as this move's."""
    first = migrate(pair.source, pair.target)
    pair.clients[1].flushdb()

    def kill(_: int) -> None:
        raise Killed

    with pytest.raises(Killed):
        migrate(pair.source, pair.target, replace=True, progress=kill)
    assert not pair.count()
    pair.open()
    report = migrate(pair.source, pair.target)
    assert (report.already, report.move == first.move) == (False, False)
    assert held(pair.clients[1:]) == held(pair.clients[:1])
    assert pair.count()
    assert pair.totals() == [0, 1]


def test_to_open_needs_what_was_verified(pair: Pair) -> None:
    """The script itself looks, since the target may be restored after its state was read."""
    fence = "token move"
    states.begin(pair.target, fence, pair.source.config(), [0], replace=False)
    claimed = [ShardState(verified=fence)]
    with pytest.raises(MigrationError):
        states.open_shards(pair.target, claimed, "move")
    states.mark_verified(pair.target, fence, [0])
    states.open_shards(pair.target, claimed, "move")
    assert read_states(pair.target) == claimed


def test_a_source_that_lost_its_freeze_by_a_failover_stays_in_use(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica that had not heard of it took over, and accepts events."""

    def fail_over(*_: object) -> None:
        pair.clients[0].hdel(META, "frozen")
        assert pair.count()

    with monkeypatch.context() as patched:
        patched.setattr(copying, "check_servers", fail_over)
        with pytest.raises(MigrationError) as raised:
            migrate(pair.source, pair.target)
    assert raised.value.reason == "expired"
    migrate(pair.source, pair.target)
    assert pair.totals()[1] == 2


def test_what_others_change_meanwhile_is_noticed(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program of the listings that writes on, or something that removes keys of the target."""
    changes: list[Callable[[], object]] = [
        lambda: pair.clients[1].zrem("redmeter:known:", '60:hits{n="0"}'),
        lambda: pair.clients[1].hincrby("redmeter:total:", 'hits{n="0"}', 1),
        *(lambda name=name: _change_a_field(pair.clients[1], name) for name in ("sums", "spreads")),
    ]
    copied = copying.check_contents
    for change in changes:

        def changed(*args: Any, change: Callable[[], object] = change) -> None:
            change()
            copied(*args)

        with monkeypatch.context() as patched:
            patched.setattr(copying, "check_contents", changed)
            with pytest.raises(MigrationError) as raised:
                migrate(pair.source, pair.target)
        assert raised.value.reason == "differs"
    assert pair.count()


def _change_a_field(client: Any, family: str) -> None:
    """Change a field of grand totals; their number stays."""
    (name, value), *_ = client.hgetall(f"redmeter:{family}:").items()
    client.hset(f"redmeter:{family}:", name, value + b"0")


def test_a_source_that_cannot_be_reached_is_told(pair: Pair, server: Server) -> None:
    """As every command does; the target is empty, and not open."""

    def stop(_: int) -> None:
        server.kill()

    pair.source = pair._open(server.url, timeout=0.3)
    with pytest.raises(StoreUnavailable):
        migrate(pair.source, pair.target, progress=stop)
    server.restart()


def dumped(client: Any) -> dict[bytes, Any]:
    """Return everything that a database holds."""
    return {key: client.dump(key) for key in client.scan_iter(count=1000)}


def restore(pair: Pair, snapshot: dict[bytes, Any]) -> None:
    """Have the source hold this, and the target nothing."""
    source, target = pair.clients
    target.flushdb()
    source.flushdb()
    pipe = source.pipeline(transaction=False)
    for key, value in snapshot.items():
        pipe.restore(key, 0, value)
    pipe.execute()
    pair.open()
