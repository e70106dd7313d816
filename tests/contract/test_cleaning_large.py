"""Cleaning large hashes: step by step, and back to the compact form."""

import contextlib
from typing import Any

import pytest

from redmeter import AccessDenied, StoreRefused
from redmeter.maintenance.cleaning import clean
from redmeter.store import Store
from support.cleaning import COMPACT, encoding, fill
from support.servers import Server
from support.stores import OpenStore, samples, server_time


@pytest.mark.slow
def test_a_hash_of_100000_stale_fields_is_brought_back_to_the_compact_form(
    client: Any, bare: Store
) -> None:
    """In steps that touch a bounded number of fields each, so that nobody waits for long."""
    now = int(server_time(client))  # so that none leaves within the minute
    fill(client, 60, [now - i * 60 for i in range(100_000)])
    fill(client, 60, [now - i * 60 for i in range(150, 100_000)], "stale")
    assert encoding(client, "count:60:x") == b"hashtable"
    size = client.memory_usage("count:60:x", samples=0)
    client.config_set("slowlog-log-slower-than", "0")
    client.config_set("slowlog-max-len", "10000")
    client.slowlog_reset()
    report = clean(bare)
    calls = client.slowlog_get(10000)
    client.config_set("slowlog-log-slower-than", "10000")
    assert client.hlen("count:60:x") == 120
    assert encoding(client, "count:60:x") in COMPACT
    assert client.memory_usage("count:60:x", samples=0) < size / 100
    assert not client.exists("count:60:stale")
    assert report.samples_removed == 100_000 - 120 + 100_000 - 150
    assert report.compacted == 1
    assert sum(call["command"].startswith(b"HDEL") for call in calls) >= 200
    # The log keeps 31 arguments and says how many more there were.
    for call in calls:
        more = call["command"].rpartition(b"... (")[2].partition(b" more")[0]
        assert not call["command"].endswith(b" more arguments)") or int(more) < 1100
        assert not call["command"].startswith((b"HKEYS", b"HVALS", b"DEL "))
    # On an idle machine none takes 5 ms; on a busy one a few may be kept waiting.
    # An entry whose large hash is gone goes with the next pass at the latest.
    clean(bare)
    assert client.zrange("known:", 0, -1) == [b"60:x"]
    times = sorted(call["duration"] for call in calls)
    assert times[int(len(times) * 0.98)] < 5000


def test_a_hash_that_was_trimmed_by_the_listings_is_made_compact(client: Any, bare: Store) -> None:
    """It has grown past 512 fields before: its few fields fill a hash table, until rewritten."""
    now = int(server_time(client))
    fill(client, 60, [now - i * 60 for i in range(3000)])
    client.expire("count:60:x", 7777)
    assert clean(bare).compacted == 1
    assert encoding(client, "count:60:x") in COMPACT
    assert samples(client, "count:60:x") == {now - i * 60: 1 for i in range(120)}
    assert 7770 <= client.ttl("count:60:x") <= 7777


def test_a_hash_with_a_thousand_live_slices_is_left(client: Any, bare: Store) -> None:
    """Of a clock far ahead: nothing of it has gone."""
    now = int(server_time(client))
    starts = [now + i * 60 for i in range(2000)]
    fill(client, 60, [*starts, now - 60 * 600])
    assert clean(bare).samples_removed == 1
    assert set(samples(client, "count:60:x")) == set(starts)


@pytest.mark.parametrize("missing", ["hset", "pexpire"])
def test_a_user_who_may_not_write_a_hash_anew_loses_nothing(
    any_server: Server, client: Any, open_store: OpenStore, missing: str
) -> None:
    """The rewriting fails before or after, but never between removing and writing."""
    now = int(server_time(client))
    fill(client, 60, [now - i * 60 for i in range(3000)])
    client.expire("count:60:x", 10**6)
    client.execute_command(
        *("ACL", "SETUSER", "app", "on", ">s3cret-word", "~*", "+@all", "-" + missing)
    )
    store = open_store(f"redis://app:s3cret-word@127.0.0.1:{any_server.port}/0", prefix="")
    with pytest.raises(AccessDenied):
        clean(store)
    assert samples(client, "count:60:x") == {now - i * 60: 1 for i in range(120)}


def test_a_server_without_memory_is_cleaned_all_the_same(client: Any, bare: Store) -> None:
    """That is what it needs; a hash that cannot be rewritten is not lost."""
    now = int(server_time(client))
    fill(client, 60, [now - i * 60 for i in range(3000)])
    fill(client, 60, [1336376400], "gone")
    clean(bare, passes=1)  # the scripts are known to the server from here on
    fill(client, 60, [now - i * 60 for i in range(3000)])
    client.config_set("maxmemory", "1")
    with contextlib.suppress(StoreRefused):
        clean(bare)
    client.config_set("maxmemory", "0")
    assert samples(client, "count:60:x") == {now - i * 60: 1 for i in range(120)}
    assert not client.exists("count:60:gone")
