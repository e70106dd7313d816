"""A store that is moved from again: to another place, or after it has lost what it wrote last."""

import itertools
import time
from typing import Any

import pytest

from redmeter.keys import HOUR, slice_start
from redmeter.migrating import MigrationError, journal, migrate, survey
from redmeter.store import Store
from support.moving import Databases, fill, held, write_series
from support.servers import Server
from support.stores import OpenStore


def test_what_an_earlier_move_had_taken_is_not_moved_again(
    source: Store, target: Store, clients: Databases, open_store: OpenStore, any_server: Server
) -> None:
    """Though it lies there for a day; statistics of which one hour came late go elsewhere."""
    hour = slice_start(time.time(), HOUR)
    name = "redmeter:common:app:info"
    clients[0].zadd(name, {"one": 1})
    clients[0].zadd(f"{name}:last", {"before": 1})
    clients[0].mset({f"{name}:start": hour, f"{name}:pstart": hour - HOUR})
    assert migrate(source, target).complete
    clients[0].zadd(name, {"late": 1})
    clients[0].set(f"{name}:start", hour)
    third = open_store(any_server.url.removesuffix("0") + "2")
    assert migrate(source, third).total().taken == 1


@pytest.mark.parametrize("when", ["between two runs", "within one", "before it has arrived"])
def test_a_source_that_has_lost_what_it_wrote_last_is_refused(
    source: Store,
    target: Store,
    clients: Databases,
    monkeypatch: pytest.MonkeyPatch,
    when: str,
) -> None:
    """As after a failover to a replica that lagged: what was moved since then lies in both."""
    fill(source)
    before: dict[bytes, bytes] = {}
    groups = itertools.count(1)
    noted = journal.Journal.settle

    def go_back() -> None:
        clients[0].flushdb()
        for key, dumped in before.items():
            clients[0].restore(key, 0, dumped)

    def quit_after() -> bool:
        number = next(groups)
        if number == 1:
            before.update({key: clients[0].dump(key) for key in clients[0].scan_iter("*")})
        if number == 3 and when == "within one":
            go_back()
        return number == 3 and when == "between two runs"

    def settle(self: Any, *args: Any, **options: Any) -> None:
        if before and when == "before it has arrived":
            go_back()
        noted(self, *args, **options)

    monkeypatch.setattr(journal.Journal, "settle", settle)
    if when == "between two runs":
        assert not migrate(source, target, quit=quit_after).complete
        go_back()
        clients[0].delete("redmeter:moving:lock")
    with pytest.raises(MigrationError, match="has lost what it wrote last"):
        migrate(source, target, quit=quit_after)
    arrived = held(clients[1])
    with pytest.raises(MigrationError, match="has lost what it wrote last"):
        migrate(source, target)
    assert held(clients[1]) == arrived


def test_a_dry_run_beside_a_run_at_work_refuses_nothing(
    source: Store, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run goes on between two looks: TO knows a later batch than had been written down."""
    fill(source)
    look, steps = journal.Journal.state, itertools.count()
    old = []
    for _ in range(2):
        assert not migrate(source, target, quit=lambda: next(steps) % 2 == 1).finished
        old.append(look(journal.Journal(source)))
    assert old[0].number < old[1].number
    monkeypatch.setattr(journal.Journal, "state", lambda self: old.pop(0) if old else look(self))
    assert survey(source, target).series


def test_who_is_refused_changes_nothing_of_what_is_written_down(
    source: Store, target: Store, clients: Databases, open_store: OpenStore, any_server: Server
) -> None:
    """A move that is over stays so, and is forgotten in a day."""
    fill(source)
    migrate(source, target)
    clients[1].set(f"redmeter:batch:{clients[0].hget('redmeter:moving:', 'id').decode()}", "999 0")
    before = clients[0].hgetall("redmeter:moving:")
    with pytest.raises(MigrationError, match="has lost what it wrote last"):
        migrate(source, target)
    assert clients[0].hgetall("redmeter:moving:") == before
    assert 0 < clients[0].ttl("redmeter:moving:") <= journal.KEPT
    assert not clients[0].exists("redmeter:moving:lock")


def test_a_dry_run_tells_that_all_was_moved(source: Store, target: Store) -> None:
    """Where to; it looks like a store that was never filled else."""
    fill(source)
    assert survey(source, target).moved == ""
    migrate(source, target)
    found = survey(source, target)
    assert (found.series, found.moved) == ({}, f"{target.location}, prefix 'redmeter:'")


def test_a_move_that_goes_on_is_not_forgotten(
    source: Store, target: Store, clients: Databases
) -> None:
    """Though it was over before, and would have been in a day."""
    fill(source)
    migrate(source, target)
    write_series(source, "late", 1, 1)
    assert clients[0].ttl("redmeter:moving:") > 0
    assert not migrate(source, target, quit=lambda: True).finished
    assert clients[0].ttl("redmeter:moving:") == -1
