"""A store is moved to another one: all kinds, with writers at work, and told what became of it."""

import itertools
import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from redmeter import StoreUnavailable
from redmeter.errors import InvalidSetting
from redmeter.keys import HOUR, MAX_RECENT, Retention, slice_start
from redmeter.kinds.message import format_entry
from redmeter.migrating import MigrationError, Report, journal, migrate, survey
from redmeter.store import Store
from support.moving import Databases, fill, held, write_log, write_series
from support.servers import Server
from support.stores import OpenMeter, OpenStore, count
from support.waiting import eventually

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to.md"


def sums(report: Report, kind: str) -> dict[int, tuple[int, int, int]]:
    """What was taken, stored and found of a kind, by precision."""
    return {p: (one.taken, one.stored, one.found) for p, one in report.sums[kind].items()}


# --- All of it -----------------------------------------------------------------------------


def test_all_that_is_stored_moves(source: Store, target: Store, clients: Databases) -> None:
    """Every slice, list and set is in TO as it was in FROM, and no longer in FROM."""
    fill(source)
    before = held(clients[0])
    report = migrate(source, target)
    assert held(clients[1]) == before
    assert held(clients[0]) == {}
    assert report.complete
    assert not report.left
    assert not report.strange
    assert {"counters", "gauges", "histograms", "statistics", "patterns", "messages"} < {
        *report.sums
    }
    for kind, some in report.sums.items():
        for one in some.values():
            assert one.taken == one.stored, kind
            assert one.looked_for == one.found, kind
            # As docs/how-to.md tells.
            compared = kind in ("counters", "gauges", "histograms", "totals")
            assert (one.looked_for == one.stored) is compared, kind


@pytest.mark.parametrize("kept", [None, "60=120"])
def test_progress_ends_where_all_is_done(
    open_store: OpenStore, source: Store, clients: Databases, kept: str | None
) -> None:
    """Step by step: also of pages of grand totals, and of what TO does not keep."""
    fill(source, series=3)
    clients[0].hset("redmeter:total:", mapping={f"t{number}": 1 for number in range(450)})
    target = open_store(prefix="other:", retention=kept)
    shown: list[tuple[int, int]] = []
    assert migrate(source, target, progress=lambda *both: shown.append(both)).complete
    (total,) = {total for _, total in shown}
    assert total > 453
    assert [done for done, _ in shown] == sorted(done for done, _ in shown)
    assert shown[-1] == (total, total)
    assert total - 6 <= shown[-2][0] <= total


def test_both_sides_are_counted(source: Store, target: Store) -> None:
    """Of counters: what was taken, what TO said that it stored, and by how much it has more."""
    for name in ("a", "b"):
        count(source, name, int(time.time()), 21)
    report = migrate(source, target)
    assert sums(report, "totals") == {0: (42, 42, 42)}
    assert sums(report, "counters") == dict.fromkeys(source.kept.series, (42, 42, 42))


def in_both_hours(there: dict[str, Any], key: str, member: bytes) -> float:
    """Return what is told of this hour and of the one before, in which a part may lie."""
    return sum(float(there.get(one, {}).get(member, 0)) for one in (key, f"{key}:last"))


def test_what_lies_in_both_adds_up(source: Store, target: Store, clients: Databases) -> None:
    """As if all had been recorded in one; of two values of a gauge the newer stays."""
    now = int(time.time())
    for store, amount in ((source, 2), (target, 40)):
        count(store, "hits", now, amount)
        write_series(store, "both", 2, amount)
        write_log(store, "app", "info", [(now - amount, f"job {amount} failed")])
    migrate(source, target)
    there = held(clients[1])
    assert there["total:"][b"hits"] == b"42"
    assert there["count:86400:hits"] == {str(slice_start(now, 86400)).encode(): b"42"}
    assert sum(map(int, there["count:60:both"].values())) == 2 * (2 + 40)
    assert sum(int(text.split()[0]) for text in there["moments:60:both"].values()) == 12
    assert in_both_hours(there, "stats:both", b"count") == 12
    assert in_both_hours(there, "common:app:info", b"job <n> failed") == 2
    assert [e.split(b" ", 1)[1] for e in there["recent:app:info"]] == [
        b"job 2 failed",
        b"job 40 failed",
    ]


def test_nothing_is_left_to_do_a_second_time(
    source: Store, target: Store, clients: Databases
) -> None:
    """Run again, it takes nothing, and what TO has stays."""
    fill(source)
    first = migrate(source, target)
    there = held(clients[1])
    again = migrate(source, target)
    assert held(clients[1]) == there
    assert again.complete
    assert again.resumed
    assert again.total() == first.total()
    assert first.as_dict()["now"] == asdict(first.total()) | {"pieces": first.pieces}
    assert set(again.as_dict()["now"].values()) == {0}
    write_series(source, "late", 1, 2)
    late = migrate(source, target)
    assert 0 < late.now().taken == late.total().taken - first.total().taken
    assert late.as_dict()["now"]["pieces"] == late.pieces - first.pieces


def test_what_was_taken_is_kept_for_a_day(source: Store, target: Store, clients: Databases) -> None:
    """Under other names, in FROM; then it goes by itself, as does what was written down."""
    fill(source)
    migrate(source, target)
    kept = list(clients[0].scan_iter("redmeter:moving:*"))
    assert len(kept) > 10
    assert all(0 < clients[0].ttl(key) <= journal.KEPT for key in kept)


def test_where_it_came_from_is_noted_in_the_target(
    source: Store, target: Store, clients: Databases
) -> None:
    """So that a run that goes on knows its TO again."""
    fill(source)
    migrate(source, target)
    assert clients[1].hlen("redmeter:moved:") == 1
    assert 0 < clients[1].ttl("redmeter:moved:") <= journal.KNOWN


# --- Beside writers ------------------------------------------------------------------------


def test_late_writers_lose_nothing(
    source: Store, target: Store, clients: Databases, open_meter: OpenMeter
) -> None:
    """Writers go on in both stores all the while; a second run takes what came late."""
    fill(source, series=40)
    ended = threading.Event()
    counted = itertools.count()

    def write(store: Store) -> None:
        while not ended.is_set():
            count(store, 'moved{n="0"}', int(time.time()))
            count(store, f"late{next(counted) % 50}", int(time.time()))

    threads = [threading.Thread(target=write, args=(store,)) for store in (source, target)]
    for thread in threads:
        thread.start()
    try:
        report = migrate(source, target)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert report.stragglers > 0
    assert migrate(source, target).complete
    there = held(clients[1])
    assert held(clients[0]) == {}
    for entry in there["known:"]:
        precision, _, name = entry.decode().partition(":")
        if precision == "86400":
            day = sum(map(int, there[f"count:{entry.decode()}"].values()))
            assert day == int(there["total:"][name.encode()]), name
    written = sum(int(n) for name, n in there["total:"].items() if name.startswith(b"late"))
    assert written == next(counted)


def test_messages_are_put_in_order(source: Store, target: Store, clients: Databases) -> None:
    """By their times, with those that TO has already, which none of them is cut for."""
    now = time.time()
    write_log(source, "app", "error", [(now - 2 * n - 1, f"old {n}") for n in range(100)])
    write_log(target, "app", "error", [(now - 2 * n, f"new {n}") for n in range(100)])
    migrate(source, target)
    entries = clients[1].lrange("redmeter:recent:app:error", 0, -1)
    expected = [(f"new {n // 2}", f"old {n // 2}")[n % 2] for n in range(100)]
    assert [entry.decode().split(" ", 1)[1] for entry in entries] == expected


def test_entries_of_other_programs_are_put_in_order_too(
    source: Store, target: Store, clients: Databases
) -> None:
    """Times as `asctime` writes them; one without a time stays behind the one before it."""
    now = 1_700_000_000
    theirs = [
        time.strftime("%a %b %e %H:%M:%S %Y", time.gmtime(now - n)) + f" a{n}" for n in (0, 4)
    ]
    clients[0].rpush("redmeter:recent:app:error", theirs[0], "no time", theirs[1])
    clients[1].rpush("redmeter:recent:app:error", format_entry(now - 2, "b2"))
    migrate(source, target)
    entries = clients[1].lrange("redmeter:recent:app:error", 0, -1)
    assert [entry.decode()[-2:] for entry in entries] == ["a0", "b2", "me", "a4"]


def long_list(now: int, many: int, text: str) -> list[str]:
    """Entries of a program that never cuts its list, one a minute, the newest first."""
    return [format_entry(now - 60 * n, f"{text} {n}") for n in range(many)]


@pytest.mark.parametrize("killed", [False, True])
def test_of_a_list_that_nobody_cut_the_newest_move(
    source: Store,
    target: Store,
    clients: Databases,
    monkeypatch: pytest.MonkeyPatch,
    killed: bool,
) -> None:
    """As many as can be kept; the others are too old, once, also where a run was killed midway."""
    theirs = long_list(int(time.time()), 2_500, "a")
    clients[0].rpush("redmeter:recent:app:info", *theirs)
    assert survey(source, target).entries["messages"] == {0: 2_500}
    if killed:
        progress, rounds = journal.Journal.progress, itertools.count(1)

        def kill(self: Any, *args: Any) -> None:
            progress(self, *args)
            if next(rounds) == 2:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(journal.Journal, "progress", kill)
            with pytest.raises(KeyboardInterrupt):
                migrate(source, target)
        assert clients[1].llen("redmeter:recent:app:info") == 400
    report = migrate(source, target)
    assert report.complete
    told = report.sums["messages"][0]
    assert (told.taken, told.stored, told.aged) == (2_500, MAX_RECENT, 1_500)
    assert migrate(source, target).sums["messages"][0] == told
    entries = clients[1].lrange("redmeter:recent:app:info", 0, -1)
    assert [entry.decode() for entry in entries] == theirs[:MAX_RECENT]


def test_no_batch_reads_all_of_a_list_that_nobody_cut(
    source: Store, target: Store, clients: Databases
) -> None:
    """Neither of that in FROM nor of that in TO, which is cut; the newest of both stay."""
    now = int(time.time())
    theirs, there = long_list(now, 2_500, "a"), long_list(now - 30, 2_500, "b")
    clients[0].rpush("redmeter:recent:app:info", *theirs)
    clients[1].rpush("redmeter:recent:app:info", *there)
    with clients[1].monitor() as monitor:
        assert migrate(source, target).complete
        clients[1].echo("over")
        seen = list(itertools.takewhile(lambda one: one != "ECHO over", commands_of(monitor)))
    reads = [one.split() for one in seen if one.startswith("LRANGE redmeter:recent:app:info ")]
    assert len(reads) == MAX_RECENT / 200
    assert {int(stop) - int(start) + 1 for _, _, start, stop in reads} == {MAX_RECENT}
    expected = [each for both in zip(theirs, there, strict=True) for each in both][:MAX_RECENT]
    entries = clients[1].lrange("redmeter:recent:app:info", 0, -1)
    assert [entry.decode() for entry in entries] == expected


def commands_of(monitor: Any) -> Iterator[str]:
    """What a server is told, by scripts too."""
    return (told["command"] for told in monitor.listen())


# --- Retention -----------------------------------------------------------------------------


def test_what_the_target_does_not_keep_stays(
    source: Store, any_server: Server, open_store: OpenStore, clients: Databases
) -> None:
    """It is told, and nothing of it is touched."""
    target = open_store(
        any_server.url.removesuffix("0") + "1",
        retention=Retention({60: 120, 3600: 120}),
        histogram_retention=Retention({60: 120}),
    )
    target.binding()
    fill(source)
    before = held(clients[0])
    report = migrate(source, target)
    assert report.complete
    assert report.unkept["counters"] == dict.fromkeys((1, 5, 300, 18000, 86400), 3)
    assert report.unkept["histograms"] == {5: 3, 3600: 3}
    assert json.loads(clients[0].hget("redmeter:moving:", "unkept")) == {
        kind: {str(precision): number for precision, number in some.items()}
        for kind, some in report.unkept.items()
    }
    assert set(report.sums["counters"]) == {60, 3600}
    left = held(clients[0])
    assert left['count:300:moved{n="1"}'] == before['count:300:moved{n="1"}']
    assert 'count:60:moved{n="1"}' not in left
    assert b'300:moved{n="1"}' in left["known:"]
    assert b'60:moved{n="1"}' not in left["known:"]


def test_a_target_of_another_retention_is_told_of(
    source: Store, any_server: Server, open_store: OpenStore
) -> None:
    """Before anything moves."""
    target = open_store(any_server.url.removesuffix("0") + "1", retention={60: 30, 3600: 120})
    target.binding()
    fill(source)
    told = survey(source, target).differences
    assert "counters and gauges at 60 s: FROM keeps 120 samples, TO 30" in told
    assert (
        "counters and gauges at 1 s: FROM keeps 120 samples, TO none, so they stay in FROM" in told
    )
    assert not any("at 3600 s" in text for text in told)


def test_slices_that_are_too_old_are_no_loss(
    source: Store, target: Store, clients: Databases
) -> None:
    """They count on neither side; how many they were is told."""
    eventually(lambda: time.time() % 60 > 1)  # until then, what has just left is still sent
    now = int(time.time())
    clients[0].hset(
        "redmeter:count:60:old",
        mapping={slice_start(now, 60) - 60 * age: 1 for age in (0, 119, 120, 500)},
    )
    clients[0].zadd("redmeter:known:", {"60:old": 0})
    report = migrate(source, target)
    told = report.sums["counters"][60]
    assert (told.taken, told.stored, told.aged) == (4, 2, 2)
    assert len(clients[1].hgetall("redmeter:count:60:old")) == 2


def test_hours_long_past_move_as_they_are(source: Store, target: Store, clients: Databases) -> None:
    """What a nightly job observed and logged is told of until it comes again."""
    past = slice_start(time.time(), HOUR) - 9 * HOUR
    key = "redmeter:stats:job"
    scores = {"min": 2, "max": 4, "count": 2, "sum": 6, "sumsq": 20, "n": 2, "mean": 3, "m2": 2}
    for name, hour in ((key, past), (f"{key}:last", past - HOUR)):
        clients[0].zadd(name, scores)
        ending = "start" if name == key else "pstart"
        clients[0].set(f"{key}:{ending}", hour)
    clients[0].zadd("redmeter:common:app:error", {"job failed": 3})
    clients[0].set("redmeter:common:app:error:start", past)
    before = held(clients[0])
    migrate(source, target)
    there = held(clients[1])
    there.pop("messages:")
    assert there == before


def test_hours_that_the_target_has_later_ones_of_are_too_old(
    source: Store, target: Store, clients: Databases
) -> None:
    """Statistics are of two hours."""
    this = slice_start(time.time(), HOUR)
    write_series(target, "job", 1, 1)
    for client, hour in ((clients[0], this - 9 * HOUR), (clients[1], this - HOUR)):
        client.zadd(
            "redmeter:stats:job:last", {"min": 1, "max": 1, "count": 1, "sum": 1, "sumsq": 1}
        )
        client.set("redmeter:stats:job:pstart", hour)
    report = migrate(source, target)
    told = report.sums["statistics"][HOUR]
    assert (told.taken, told.stored, told.aged) == (1, 0, 1)


# --- What is refused -----------------------------------------------------------------------


def test_a_dry_run_changes_nothing(source: Store, target: Store, clients: Databases) -> None:
    """It says how many series there are of each kind, and of what precisions."""
    fill(source)
    dumps = [{key: c.dump(key) for key in c.scan_iter("*")} for c in clients]
    found = survey(source, target)
    assert [{key: c.dump(key) for key in c.scan_iter("*")} for c in clients] == dumps
    assert found.series["counters"] == dict.fromkeys(source.kept.series, 3)
    assert found.series["messages"] == {0: 2}
    assert found.entries["messages"] == {0: 40}
    assert found.new


def test_two_runs_at_once_are_refused(
    source: Store, target: Store, clients: Databases, open_store: OpenStore
) -> None:
    """The second one finds out that the first is at work, and moves nothing."""
    fill(source, series=30)
    refused: list[MigrationError] = []

    def begin_another(_done: int, _all: int) -> None:
        if refused:
            return
        thread = threading.Thread(target=another)
        thread.start()
        while thread.is_alive():
            run.hold()  # as each step does
            time.sleep(0.05)

    def another() -> None:
        with pytest.raises(MigrationError, match="by another run") as caught:
            migrate(open_store(), target)
        refused.append(caught.value)

    run = _Holder(source)
    report = migrate(source, target, progress=begin_another)
    assert len(refused) == 1
    assert report.complete


class _Holder:
    """Renews the lock, whoever has it."""

    def __init__(self, source: Store) -> None:
        self._source = source

    def hold(self) -> None:
        """Let it live for as long as after a step."""
        lives = str(int(journal.LOCK * 1000))
        (done,) = self._source.ask([("PEXPIRE", "redmeter:moving:lock", lives)])
        assert done == 1


def test_a_run_that_lost_its_lock_ends(source: Store, target: Store, clients: Databases) -> None:
    """It stood still for too long, and another one went on: that one has to be let."""
    fill(source, series=30)

    def steal(_done: int, _all: int) -> None:
        clients[0].set("redmeter:moving:lock", "another")

    with pytest.raises(MigrationError, match="has gone on with"):
        migrate(source, target, progress=steal)
    assert clients[0].get("redmeter:moving:lock") == b"another"
    assert not clients[0].hexists("redmeter:moving:", "group")  # it has taken nothing more


def test_a_store_is_not_moved_into_itself(
    any_server: Server, source: Store, open_store: OpenStore, clients: Databases
) -> None:
    """Neither under the same URL nor under another one; nothing is taken, and no key is made."""
    fill(source)
    before = {key: clients[0].dump(key) for key in clients[0].scan_iter("*")}
    for other in (open_store(), open_store(any_server.unix_url)):
        for move in (survey, migrate):
            with pytest.raises(InvalidSetting, match="TO: is the same as FROM"):
                move(source, other)
    assert {key: clients[0].dump(key) for key in clients[0].scan_iter("*")} == before


def test_half_a_store_does_not_go_to_another_target(
    any_server: Server, source: Store, target: Store, open_store: OpenStore, clients: Databases
) -> None:
    """Unless the move was complete: then what comes later may."""
    fill(source, series=30)
    migrate(source, target, quit=lambda: True)
    third = open_store(any_server.url.removesuffix("0") + "2")
    before = {key: clients[0].dump(key) for key in clients[0].scan_iter("*")}
    for move in (survey, migrate):
        with pytest.raises(MigrationError, match="go on with the same TO"):
            move(source, third)
    assert {key: clients[0].dump(key) for key in clients[0].scan_iter("*")} == before
    assert third.ask([("DBSIZE",)]) == [0]
    assert migrate(source, target).complete
    write_series(source, "late", 1, 1)
    assert migrate(source, third).total().taken < 200


def test_what_the_target_refuses_is_kept(source: Store, target: Store, clients: Databases) -> None:
    """Somebody else's text lies under one key there: all else moves, and that alone is kept."""
    now = int(time.time())
    for name in ("a", "b"):
        count(source, name, now, 5)
    clients[1].set("redmeter:count:60:a", "theirs")
    report = migrate(source, target)
    assert report.sums["counters"][60].refused == 5
    assert report.sums["counters"][60].stored == 5
    ((key, what),) = report.left.items()
    assert what == "counters 60:a"
    assert clients[0].hgetall(key) == {b"%d" % slice_start(now, 60): b"5"}
    lasting = {one.decode() for one in clients[0].scan_iter("*moving:*") if clients[0].ttl(one) < 0}
    assert lasting == {key, "redmeter:moving:"}
    assert report.finished
    assert not report.complete
    assert not report.as_dict()["complete"]
    assert clients[0].hget("redmeter:moving:", "left") == b"1"
    assert migrate(source, target).left == report.left


def test_what_was_refused_may_be_moved_once_there_is_room(
    source: Store, target: Store, clients: Databases
) -> None:
    """Under its old name again, as the docs say; then no run tells of it any more."""
    count(source, "a", int(time.time()), 5)
    clients[1].set("redmeter:count:60:a", "theirs")
    ((key, _),) = migrate(source, target).left.items()
    clients[1].delete("redmeter:count:60:a")
    assert clients[0].renamenx(key, "redmeter:count:60:a")
    report = migrate(source, target)
    assert report.complete
    assert not report.left
    assert clients[0].hget("redmeter:moving:", "left") == b"0"
    for precision in (60, 3600):
        assert sum(map(int, clients[1].hvals(f"redmeter:count:{precision}:a"))) == 5


def test_what_is_not_there_afterwards_is_told(
    source: Store,
    target: Store,
    clients: Databases,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """TO says that it has stored it, and has not: an error, and what was taken stays."""
    count(source, "a", int(time.time()), 5)
    whole_send = type(target.parts[0]).sending

    def sending(self: Any, *args: Any, **options: Any) -> Any:
        outcome = yield from whole_send(self, *args, **options)
        clients[1].delete("redmeter:count:60:a")
        return outcome

    monkeypatch.setattr(type(target.parts[0]), "sending", sending)
    with pytest.raises(MigrationError, match=r"counters 'a' at 60 s.*5 stored, 0 found"):
        migrate(source, target)
    kept = list(clients[0].scan_iter("redmeter:moving:[0-9]*"))
    assert any(clients[0].ttl(key) == -1 for key in kept)


# --- Trouble -------------------------------------------------------------------------------


def test_a_target_that_is_away_ends_the_run(
    source: Store, open_store: OpenStore, clients: Databases
) -> None:
    """Nothing was taken."""
    fill(source)
    before = held(clients[0])
    with pytest.raises(StoreUnavailable):
        migrate(source, open_store("redis://127.0.0.1:1/0", timeout=0.1))
    assert held(clients[0]) == before


def test_a_large_series_moves_in_steps(source: Store, target: Store, clients: Databases) -> None:
    """A hash of thousands of slices, and as many patterns as other programs like."""
    now = int(time.time())
    newest = slice_start(now, 1)
    clients[0].hset("redmeter:count:1:x", mapping={newest - age: 1 for age in range(5000)})
    clients[0].zadd("redmeter:known:", {"1:x": 0})
    clients[0].zadd("redmeter:common:app:info", {f"p{n}": n + 1 for n in range(2500)})
    clients[0].set("redmeter:common:app:info:start", slice_start(now, HOUR))
    report = migrate(source, target)
    told = report.sums["counters"][1]
    assert told.taken == 5000
    # The second that is about to leave may be sent, and trimmed right away.
    assert 100 < clients[1].hlen("redmeter:count:1:x") <= told.stored <= 122
    scores = dict(clients[1].zrange("redmeter:common:app:info", 0, -1, withscores=True))
    assert sum(scores.values()) == sum(range(1, 2501))
    assert len(scores) == 1001  # and (other)


# --- Rights --------------------------------------------------------------------------------

_LINE = re.compile(r"^ACL SETUSER metrics-(from|to) on >\w+ (.*)$", re.MULTILINE)


@pytest.mark.parametrize("large", [False, True])
def test_the_users_of_the_docs_may_do_all_of_it(
    any_server: Server, source: Store, clients: Databases, open_store: OpenStore, large: bool
) -> None:
    """With the lines of docs/how-to.md, and nothing more; what is large is read otherwise."""
    fill(source)
    if large:
        now = int(time.time())
        clients[0].hset("redmeter:count:1:x", mapping={now - age: 1 for age in range(2000)})
        clients[0].zadd("redmeter:common:big:info", {f"p{n}": 1 for n in range(1500)})
        write_log(source, "big", "info", [(now - n, f"job {n}") for n in range(300)])
        clients[0].hset("redmeter:count:60:mixed", mapping={"note": "x", str(now // 60 * 60): 1})
    admin = clients[0]
    for name, rules in _LINE.findall(HOW_TO.read_text(encoding="utf-8")):
        made = ("ACL", "SETUSER", f"metrics-{name}", "reset", "on", ">s3cret")
        admin.execute_command(*made, *rules.split())
    place = f"127.0.0.1:{any_server.port}"
    one = open_store(f"redis://metrics-from:s3cret@{place}/0")
    other = open_store(f"redis://metrics-to:s3cret@{place}/0", prefix="redmeter:two:")
    assert survey(one, other).series
    report = migrate(one, other)
    assert report.complete
    whole_sum = report.total()
    assert whole_sum.taken == whole_sum.stored + whole_sum.aged
    assert migrate(one, other).complete
    source.ask([("DEL", "redmeter:count:60:mixed")])
    assert held(clients[0]) == {}
