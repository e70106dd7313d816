"""What the shards of a store keep: which of them is right where they differ."""

from collections.abc import Iterator

import pytest

from redmeter import Meter
from redmeter.store import Store
from redmeter.store.config import new_version
from redmeter.store.servers.replies import Command
from redmeter.stored.keys import epoch_of
from support.clusters import Cluster
from support.stores import opened_store

OURS, THEIRS = "1=120 60=200", "1=10"


@pytest.fixture
def store(cluster: Cluster) -> Iterator[Store]:
    """A store on the cluster, which keeps what nobody chose but who was there first."""
    with opened_store(cluster.url, retention=OURS) as store:
        store.load_config()
        yield store


def held(store: Store) -> set[tuple[bytes, bytes]]:
    """Return what the shards say of themselves."""
    asked: list[Command] = [
        ("HMGET", part.keys.meta, "retention", "version") for part in store.shards
    ]
    return {(retention, version) for retention, version in store.link.exchange(asked)}


def test_a_store_is_born_with_one_version(store: Store) -> None:
    """No shard has to be told of another one's."""
    ((retention, version),) = held(store)
    assert (retention.decode(), int(version) % 2) == (OURS, 0)


@pytest.mark.parametrize("forgotten", [0, 7, 63])
def test_a_shard_that_has_forgotten_what_it_kept_is_told_by_the_others(
    forgotten: int, store: Store, cluster: Cluster
) -> None:
    """A new process that is configured otherwise does not change the whole store by it."""
    before = held(store)
    store.link.exchange([("DEL", store.shards[forgotten].keys.meta)])
    with Meter(cluster.url, retention=THEIRS, flush_interval=60) as meter:
        meter.count("hits")
        assert meter.flush(10.0)
    assert held(store) == before


def test_who_writes_at_once_asks_the_others_first(store: Store, cluster: Cluster) -> None:
    """Also where it is the first to write to a shard that has forgotten what it kept."""
    before = held(store)
    number = store.shard_number("hits")
    store.link.exchange([("DEL", store.shards[number].keys.meta)])
    with Meter(cluster.url, retention=THEIRS, sync=True) as meter:
        meter.count("hits")
    assert held(store) == before


def test_a_shard_is_told_again_what_was_chosen_last(store: Store) -> None:
    """Not what this process had heard of that shard, should both be gone."""
    changed = store.change_retention([(5, 77)])
    part = store.shards[9]
    assert part.config is not None
    part.config = part.config._replace(version="2")
    store.link.exchange([("DEL", part.keys.meta)])
    store.load_config()
    assert {retention.decode() for retention, _ in held(store)} == {str(changed)}


def test_shards_of_one_version_that_differ_are_made_alike(store: Store) -> None:
    """Two processes may have begun within a moment."""
    store.link.exchange([("HSET", store.shards[5].keys.meta, "retention", THEIRS)])
    with opened_store(store.location, retention=OURS) as other:
        assert other.load_configs(range(64)) == {}
        assert other.outdated() == [5]
        assert other.update_configs(other.outdated()) == {}
        assert len(held(store)) == 1


def test_what_was_chosen_is_above_what_was_there_first() -> None:
    """Of what was chosen the last; of what somebody began with the first; nothing below both."""
    now = 1_700_000_000.0
    early, late = new_version(now), new_version(now, after=new_version(now))
    chosen = new_version(now, after=late, chosen=True)
    again = new_version(now, after=chosen, chosen=True)
    assert sorted(["", late, chosen, early, again, "0"], key=epoch_of) == [
        *("", "0", late, early, chosen, again)
    ]
