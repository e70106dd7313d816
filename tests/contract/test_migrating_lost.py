"""TO loses what it had stored, by a restart or a failover: it is sent again, or told."""

import itertools
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from redmeter import StoreUnavailable
from redmeter.migrating import MigrationError, journal, migrate, survey
from redmeter.migrating.journal import Journal
from redmeter.migrating.sending import Sender
from redmeter.migrating.state import Group
from redmeter.migrating.walk import Walk
from redmeter.store import Store
from support.moving import Databases, fill, held
from support.stores import count

BATCHES = "redmeter:batch:*"


class Snapshot:
    """A file that a server begins from once more."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._keys: dict[bytes, bytes] = {}

    def save(self) -> None:
        """Keep what there is."""
        self._keys = {key: self._client.dump(key) for key in self._client.scan_iter("*")}

    def load(self) -> None:
        """Go back to it."""
        self._client.flushdb()
        for key, dumped in self._keys.items():
            self._client.restore(key, 0, dumped)


@pytest.fixture
def snapshot(clients: Databases) -> Snapshot:
    """One of TO."""
    return Snapshot(clients[1])


def at_group(number: int, act: Callable[[], object], *, end: bool = False) -> Callable[[], bool]:
    """Return what does something after so many groups, and may end the run then."""
    groups = itertools.count(1)

    def quit_after() -> bool:
        if next(groups) != number:
            return False
        act()
        return end

    return quit_after


def raising(number: int) -> Callable[..., Any]:
    """Return what sends so many times, and no more."""
    send, calls = Sender.send, itertools.count(1)

    def limited(self: Sender, *args: Any, **options: Any) -> Any:
        if next(calls) == number:
            raise StoreUnavailable(self._target.location, "it is away")
        return send(self, *args, **options)

    return limited


def killed(*_: Any) -> None:
    """Be killed there."""
    raise KeyboardInterrupt


def break_off(source: Store, target: Store, number: int) -> None:
    """Begin a move whose other store goes away at a batch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sender, "send", raising(number))
        with pytest.raises(StoreUnavailable):
            migrate(source, target)


def after_each_round(act: Callable[[], object]) -> Callable[..., None]:
    """Return what notes that a round of a group has arrived, and does something then."""
    progress = Journal.progress

    def note(self: Journal, *args: Any) -> None:
        progress(self, *args)
        act()

    return note


def fill_patterns(client: Any) -> set[bytes]:
    """Put 900 patterns of this hour into FROM, three rounds of one group."""
    names = {f"p{n:04}": 1 for n in range(900)}
    client.zadd("redmeter:common:app:info", names)
    client.set("redmeter:common:app:info:start", int(time.time()) // 3600 * 3600)
    return {name.encode() for name in names}


def aged(text: bytes, hours: float) -> str:
    """Return a group as if it had been taken so much earlier."""
    group = json.loads(text)
    group[-1] -= hours * 3600
    return json.dumps(group)


def records(client: Any) -> list[bytes]:
    """Return the keys under which FROM has what arrived with which batch."""
    return [key for key in client.scan_iter("redmeter:moving:[0-9]*") if key.count(b":") == 2]


@pytest.mark.parametrize("ended", [True, False])
def test_what_the_other_store_has_lost_since_is_sent_again(
    source: Store, target: Store, clients: Databases, snapshot: Snapshot, ended: bool
) -> None:
    """Broken off or over; the sums are of the whole move, and each event is there once."""
    fill(source)
    before = held(clients[0])
    migrate(source, target, quit=at_group(3, snapshot.save))
    if not ended:
        clients[0].hdel("redmeter:moving:", "complete")
    snapshot.load()
    assert held(clients[1]) != before
    found = survey(source, target)
    (least,) = clients[1].mget(list(clients[1].scan_iter(BATCHES)))
    assert found.lost == int(least.split(b" ")[0]) + 1
    assert not found.moved
    report = migrate(source, target)
    assert held(clients[1]) == before
    assert report.complete
    assert 0 < report.again < report.total().stored
    assert report.total().taken == report.total().stored
    assert report.now().taken == 0
    assert survey(source, target).moved
    again = migrate(source, target)
    assert (again.complete, again.again) == (True, 0)


def test_it_is_sent_before_anything_newer(
    source: Store, target: Store, clients: Databases, snapshot: Snapshot
) -> None:
    """Else a higher number would hide what is missing. What else there is follows."""
    fill(source)
    before = held(clients[0])
    migrate(source, target, quit=at_group(2, snapshot.save))
    count(source, "late", int(time.time()), 7)
    late = held(clients[0])
    snapshot.load()
    report = migrate(source, target)
    assert report.complete
    assert report.again
    there = held(clients[1])
    assert there["count:86400:late"] == late["count:86400:late"]
    assert there["total:"] == before["total:"] | late["total:"]
    assert {key: there[key] for key in before.keys() - late.keys()} == {
        key: before[key] for key in before.keys() - late.keys()
    }


def test_a_loss_within_a_run_ends_it_and_the_next_one_sends_it_again(
    source: Store, target: Store, clients: Databases, snapshot: Snapshot
) -> None:
    """With what was under way."""
    fill(source)
    before = held(clients[0])
    assert not migrate(source, target, quit=at_group(2, snapshot.save, end=True)).finished
    with pytest.raises(MigrationError, match="the same command sends it again"):
        migrate(source, target, quit=at_group(2, snapshot.load))
    report = migrate(source, target)
    assert (report.complete, held(clients[1])) == (True, before)
    assert report.again
    assert report.total().taken == report.total().stored


def test_a_loss_after_the_last_batch_is_seen_at_the_end(
    source: Store,
    target: Store,
    clients: Databases,
    snapshot: Snapshot,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same run sends it again."""
    fill(source)
    before = held(clients[0])
    pages, rounds = Walk.pages, itertools.count(1)

    def look(self: Walk) -> Any:
        if next(rounds) == 2:
            snapshot.load()
        return pages(self)

    monkeypatch.setattr(Walk, "pages", look)
    report = migrate(source, target, quit=at_group(2, snapshot.save))
    assert (report.complete, held(clients[1])) == (True, before)
    assert report.again


def test_batches_of_a_group_that_has_many_are_sent_again_from_the_first_that_is_missing(
    source: Store, target: Store, clients: Databases, snapshot: Snapshot
) -> None:
    """Here 900 patterns of one hour, of which the first 600 had stayed."""
    patterns = fill_patterns(clients[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "progress", after_each_round(snapshot.save))
        migrate(source, target)
    snapshot.load()
    assert clients[1].zcard("redmeter:common:app:info") == 600
    assert migrate(source, target).again == 300
    found = dict(clients[1].zrange("redmeter:common:app:info", 0, -1, withscores=True))
    assert found == dict.fromkeys(patterns, 1.0)


def test_what_had_expired_when_it_was_taken_is_not_missed(
    source: Store,
    target: Store,
    clients: Databases,
    snapshot: Snapshot,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between the moment in which it was seen and that in which it was taken."""
    fill(source)
    take = Journal.take
    gone: list[str] = []

    def late(self: Journal, group: Group, units: list[Any], reads: Any) -> Any:
        if group.family == "gauges" and not gone:
            gone.append(f"redmeter:gauge:{units[0].name}")
            assert clients[0].delete(gone[0])
        return take(self, group, units, reads)

    monkeypatch.setattr(Journal, "take", late)
    snapshot.save()
    migrate(source, target, quit=at_group(1, snapshot.save))
    there = held(clients[1])
    assert gone
    snapshot.load()
    assert migrate(source, target).again
    assert held(clients[1]) == there


@pytest.mark.parametrize("lost", ["the watermark", "all of it", "what was taken", "one of these"])
def test_what_cannot_be_sent_again_is_an_error_that_stays(
    source: Store, target: Store, clients: Databases, snapshot: Snapshot, lost: str
) -> None:
    """It names the batches, and what to do; nothing is called complete, by the dry run neither."""
    fill(source)
    migrate(source, target, quit=at_group(2, snapshot.save))
    if lost == "the watermark":
        clients[1].delete(*clients[1].scan_iter(BATCHES))
    elif lost == "all of it":
        clients[1].flushdb()
    else:
        snapshot.load()
        taken = sorted(clients[0].scan_iter("redmeter:moving:*:0:0"))
        newest = sorted(records(clients[0]), key=lambda key: int(key.split(b":")[2]))[-1:]
        clients[0].delete(*(newest if lost == "what was taken" else taken))
    arrived = held(clients[1])
    for _ in range(2):
        with pytest.raises(MigrationError, match=r"has lost batch(es \d+ to)? \d+ of this move"):
            migrate(source, target)
    if lost != "one of these":
        assert held(clients[1]) == arrived
        with pytest.raises(MigrationError, match=r"delete the field sums of FROM's key"):
            survey(source, target)
    clients[0].hdel("redmeter:moving:", "sums")
    count(source, "late", int(time.time()), 7)
    assert migrate(source, target).complete
    assert clients[1].hget("redmeter:total:", "late") == b"7"


def test_one_goes_on_without_what_is_lost_with_what_was_under_way(
    source: Store, target: Store, clients: Databases
) -> None:
    """Though the other store has nothing of the move any more."""
    fill(source)
    break_off(source, target, 3)
    name = json.loads(clients[0].hget("redmeter:moving:", "group"))[2][0][0]
    clients[1].flushdb()
    with pytest.raises(MigrationError, match="has lost batches"):
        migrate(source, target)
    clients[0].hdel("redmeter:moving:", "sums")
    assert migrate(source, target).complete
    assert any(key.endswith(name) for key in held(clients[1]))


@pytest.mark.parametrize("state", ["no longer kept", "all under way"])
def test_another_day_such_a_loss_is_still_no_other_store(
    source: Store, target: Store, clients: Databases, state: str
) -> None:
    """What had arrived and is lost is so, whatever FROM has of it."""
    if state == "no longer kept":
        fill(source)
        migrate(source, target, quit=at_group(2, lambda: None, end=True))
        clients[0].delete(*records(clients[0]))
    else:
        fill_patterns(clients[0])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Journal, "progress", after_each_round(killed))
            with pytest.raises(KeyboardInterrupt):
                migrate(source, target)
    clients[1].flushdb()
    for look in (survey, migrate):
        with pytest.raises(MigrationError, match=r"has lost batch.* delete the field sums"):
            look(source, target)
    clients[0].hdel("redmeter:moving:", "sums")
    assert migrate(source, target).complete


def test_what_had_not_arrived_is_sent_to_a_store_that_forgot_of_the_move(
    source: Store, target: Store, clients: Databases
) -> None:
    """Nothing of it can be lost there."""
    clients[0].hset("redmeter:total:", "a", 7)
    break_off(source, target, 1)
    clients[1].flushdb()
    assert not survey(source, target).lost
    assert migrate(source, target).complete
    assert clients[1].hget("redmeter:total:", "a") == b"7"


def test_a_watermark_that_is_over_before_the_note_that_it_was_reached(
    source: Store, target: Store, clients: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run was killed after it had sent, hours before the one that noted so: nothing is lost."""
    clients[0].hset("redmeter:total:", "a", 7)
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "settle", killed)
        with pytest.raises(KeyboardInterrupt):
            migrate(source, target)
    taken = clients[0].hget("redmeter:moving:", "group")
    clients[0].hset("redmeter:moving:", "group", aged(taken, hours=24 - 1 / 3600))
    assert migrate(source, target).complete
    (watermark,) = clients[1].scan_iter(BATCHES)
    clients[1].delete(watermark)
    assert not survey(source, target).lost
    assert migrate(source, target).complete
    assert clients[1].hget("redmeter:total:", "a") == b"7"


def test_what_arrived_long_after_it_was_taken_is_missed_for_a_day_from_then(
    source: Store, target: Store, clients: Databases, snapshot: Snapshot
) -> None:
    """Taken while the other store was away, sent ten hours later, lost fifteen hours later."""
    clients[0].hset("redmeter:total:", "a", 7)
    break_off(source, target, 1)
    snapshot.save()
    taken = clients[0].hget("redmeter:moving:", "group")
    clients[0].hset("redmeter:moving:", "group", aged(taken, hours=10))
    assert migrate(source, target).complete
    (key,) = records(clients[0])
    whose, _, text = clients[0].get(key).partition(b" ")
    clients[0].set(key, whose + b" " + aged(text, hours=15).encode(), ex=9 * 3600)
    snapshot.load()
    for look in (survey, migrate):
        with pytest.raises(MigrationError, match="has lost batch"):
            look(source, target)


def test_what_is_forgotten_in_a_day_is_not_lost(
    source: Store, target: Store, clients: Databases
) -> None:
    """Days later TO does not know any more who had sent what, and FROM has nothing of that."""
    fill(source)
    migrate(source, target)
    for client, pattern in ((clients[1], BATCHES), (clients[0], "redmeter:moving:[0-9]*")):
        client.delete(*client.scan_iter(pattern))
    count(source, "late", int(time.time()), 7)
    report = migrate(source, target)
    assert (report.complete, report.again) == (True, 0)
    assert clients[1].hget("redmeter:total:", "late") == b"7"


def test_what_is_refused_when_it_is_sent_again_stays(
    source: Store, target: Store, clients: Databases, snapshot: Snapshot
) -> None:
    """Another program has something under its key by now."""
    count(source, "a", int(time.time()), 7)
    migrate(source, target, quit=at_group(1, snapshot.save))
    snapshot.load()
    clients[1].set("redmeter:total:", "another's")
    report = migrate(source, target)
    assert list(report.left.values()) == ["totals"]
    assert all(clients[0].ttl(key) == -1 for key in report.left)
    assert not migrate(source, target).complete


def test_what_had_arrived_is_kept_for_a_day(
    source: Store, target: Store, clients: Databases
) -> None:
    """With the names that were taken, which their keys do not have any more."""
    count(source, "a", int(time.time()), 7)
    migrate(source, target)
    keys = records(clients[0])
    assert all(0 < clients[0].ttl(key) <= journal.KEPT for key in keys)
    move = clients[0].hget("redmeter:moving:", "id")
    texts = [clients[0].get(key).partition(b" ") for key in keys]
    assert {whose for whose, _, _ in texts} == {move}
    names = [name for _, _, text in texts for name, _ in json.loads(text)[2]]
    assert {"60:a", "86400:a"} <= set(names)
