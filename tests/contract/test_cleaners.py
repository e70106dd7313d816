"""Cleaners at work: by their schedule, beside others, and killed half way."""

import itertools
import os
import random
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from redmeter import AccessDenied
from redmeter.clock import ManualClock
from redmeter.maintenance.cleaning import CleaningReport, clean, clean_every_minute
from redmeter.store import Store
from support.cleaning import COMPACT, DAY, HOUR, encoding, fill
from support.servers import Server
from support.stores import OpenStore, count, samples, server_time

# --- Schedule ------------------------------------------------------------------------------


def test_a_precision_of_n_minutes_is_looked_at_in_every_nth_pass(client: Any, bare: Store) -> None:
    """Narrower ones in every pass, and all in the first."""
    precisions = [1, 59, 60, 119, 120, 300, HOUR, DAY]
    client.zadd("known:", {f"{precision}:gone": 0 for precision in precisions})
    for passes in (0, 1, 2, 3, 5, 60, 1440, 1441):
        client.zadd("known:", {f"{precision}:gone": 0 for precision in precisions})
        report = clean(bare, passes=passes)
        due = [precision for precision in precisions if passes % max(1, precision // 60) == 0]
        left = {int(entry.partition(b":")[0]) for entry in client.zrange("known:", 0, -1)}
        assert left == set(precisions) - set(due)
        assert (report.examined, report.not_due) == (len(due), len(left))


def test_a_cleaner_makes_a_pass_a_minute_until_it_is_told_to_stop(
    client: Any, open_store: OpenStore
) -> None:
    """By the monotonic clock; and it asks at least once a second whether to stop."""
    clock = ManualClock(server_time(client))
    asked: list[float] = []
    starts: list[float] = []

    def stop() -> bool:
        asked.append(clock.monotonic())
        return len(starts) == 5

    client.zadd("known:", {f"{HOUR}:gone": 0})
    store = open_store(prefix="", clock=clock)
    clean_every_minute(store, quit=stop, on_pass=lambda _: starts.append(clock.monotonic()))
    # A pass itself takes as long as its pauses by this clock.
    pauses = [b - a for a, b in itertools.pairwise(starts)]
    assert pauses == pytest.approx([60.0] * 4, abs=0.01)
    assert max(b - a for a, b in itertools.pairwise(asked)) <= 1.0


def test_trouble_that_passes_is_logged_and_tried_again(
    client: Any, open_store: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    """The index is another type for the first two passes, then a cleaner works again."""
    clock = ManualClock(server_time(client))
    client.set("known:", "theirs")
    reports: list[CleaningReport] = []
    tries = []

    def stop() -> bool:
        if clock.monotonic() >= 119 and client.type("known:") == b"string":
            client.delete("known:")
            client.zadd("known:", {"60:gone": 0})
        tries.append(clock.monotonic())
        return bool(reports) or clock.monotonic() > 600

    clean_every_minute(open_store(prefix="", clock=clock), quit=stop, on_pass=reports.append)
    assert [report.entries_removed for report in reports] == [1]
    assert 2 <= len(caplog.records) <= 3


def test_trouble_that_does_not_pass_ends_the_cleaner(
    any_server: Server, client: Any, open_store: OpenStore
) -> None:
    """A user who may not clean, at once; not a log line a minute for ever."""
    client.execute_command("ACL", "SETUSER", "app", "on", ">s3cret-word", "~*", "+@all", "-evalsha")
    client.execute_command("ACL", "SETUSER", "app", "-eval")
    fill(client, 60, [1336376400])
    store = open_store(f"redis://app:s3cret-word@127.0.0.1:{any_server.port}/0", prefix="")
    with pytest.raises(AccessDenied) as caught:
        clean_every_minute(store, quit=lambda: False)
    assert caught.value.code == "NOPERM"
    assert "s3cret-word" not in str(caught.value)
    assert client.hlen("count:60:x") == 1


# --- Steps ---------------------------------------------------------------------------------


def test_a_pass_that_runs_out_of_time_goes_on_where_it_stopped(
    client: Any, open_store: OpenStore
) -> None:
    """Page by page; together the passes see every entry, although many go on the way."""
    now = int(server_time(client))
    store = open_store(prefix="")
    pipe = client.pipeline(transaction=False)
    for i in range(3500):
        if i % 3 == 0:
            pipe.hset(f"count:60:s{i:05}", str(now), 1)
        pipe.zadd("known:", {f"60:s{i:05}": 0})
    pipe.execute()
    cursor, looked, removed, calls = 0, 0, 0, 0
    while True:
        report = clean(store, budget=0.0, cursor=cursor)
        looked, removed, calls = (
            looked + report.examined,
            removed + report.entries_removed,
            calls + 1,
        )
        cursor = report.cursor
        if report.complete:
            break
        assert cursor > 0
    assert (looked, removed) == (3500, 3500 - 1167)
    assert 2 <= calls <= 50
    left = client.zrange("known:", 0, -1)
    assert left == [f"60:s{i:05}".encode() for i in range(0, 3500, 3)]


def test_progress_is_told_after_each_page(client: Any, bare: Store) -> None:
    """With the size that the index had."""
    client.zadd("known:", {f"60:s{i}": 0 for i in range(2500)})
    told: list[tuple[int, int]] = []
    clean(bare, progress=lambda report, size: told.append((report.examined, size)))
    looked = [looked for looked, _ in told]
    assert looked == sorted(looked)
    assert 2 <= len(set(looked)) <= 50
    assert looked[-1] == 2500
    assert told[0][1] == 2500


# --- Company -------------------------------------------------------------------------------


def test_two_cleaners_at_once_remove_everything_once(client: Any, open_store: OpenStore) -> None:
    """What the one has removed the other does not count, and no live sample is lost."""
    now = int(server_time(client))
    for i in range(300):
        fill(client, 60, [now - 60 * j for j in range(i, i + 150)], f"s{i}")
    reports: list[CleaningReport] = []

    def work(store: Store) -> None:
        reports.append(clean(store))

    stores = [open_store(prefix="") for _ in range(3)]
    threads = [threading.Thread(target=work, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(report.samples_removed for report in reports) == sum(
        len([j for j in range(i, i + 150) if j >= 120]) for i in range(300)
    )
    assert sum(report.hashes_removed for report in reports) == 180
    assert sum(report.entries_removed for report in reports) == 180
    for i in range(120):
        assert set(samples(client, f"count:60:s{i}")) == {now - 60 * j for j in range(i, 120)}
    assert client.zcard("known:") == 120


def test_cleaners_beside_writers_lose_no_live_sample(client: Any, open_store: OpenStore) -> None:
    """Counters that come back while their last old slice goes: sums and index entries are whole."""
    names = [f"s{i}" for i in range(5)]
    stop = threading.Event()
    failures: list[BaseException] = []
    rounds = 60

    def cleaning() -> None:
        store = open_store()
        try:
            while not stop.is_set():
                clean(store)
        except BaseException as error:
            failures.append(error)
            raise

    def staling() -> None:
        # Another program's slices, long gone, in the same hashes.
        try:
            with_stale = client.pipeline(transaction=False)
            while not stop.is_set():
                for name in names:
                    with_stale.hset(f"redmeter:count:60:{name}", mapping={"60": 1, "120": 1})
                with_stale.execute()
        except BaseException as error:
            failures.append(error)
            raise

    now = int(server_time(client))
    helpers = [threading.Thread(target=cleaning, daemon=True) for _ in range(2)]
    helpers.append(threading.Thread(target=staling, daemon=True))
    for helper in helpers:
        helper.start()
    writers = [open_store() for _ in range(2)]

    def writing(store: Store) -> None:
        for step in range(rounds):
            for name in names:
                count(store, name, now - 60 * (step % 100))

    threads = [threading.Thread(target=writing, args=(store,)) for store in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    for helper in helpers:
        helper.join()
    assert failures == []
    clean(writers[0])
    for name in names:
        stored = samples(client, f"redmeter:count:60:{name}")
        live = {start: n for start, n in stored.items() if start > 200}
        assert sum(live.values()) == 2 * rounds
        assert client.zscore("redmeter:known:", f"60:{name}") == 0.0


def removals(client: Any) -> int:
    """Return how many HDELs the server has carried out."""
    return int(client.info("commandstats").get("cmdstat_hdel", {"calls": 0})["calls"])


_CLEANER = """
import sys
from redmeter import store
from redmeter.maintenance import cleaning
opened = store.open(sys.argv[1], prefix="")
print("ready", flush=True)
while True:
    cleaning.clean(opened)
"""


@pytest.mark.slow
def test_a_cleaner_that_is_killed_half_way_leaves_nothing_half_done(
    any_server: Server, client: Any, bare: Store
) -> None:
    """Live samples and their entries are all there, and the next pass finishes the work."""
    now = int(server_time(client))
    live = [now - 60 * j for j in range(100)]
    stale = [now - 60 * j for j in range(200, 500)]
    rng = random.Random(7)
    for i in range(50):
        fill(client, 60, live + stale, f"mixed{i}")
        fill(client, 60, stale, f"stale{i}")
    fill(client, 60, live + [now - 60 * j for j in range(200, 12_000)], "large")
    for _ in range(2):
        child = subprocess.Popen(
            [sys.executable, "-c", _CLEANER, any_server.url],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        target = removals(client) + rng.randrange(1, 40)
        deadline = time.monotonic() + 5
        while removals(client) < target and client.hlen("count:60:large") > 100:
            assert time.monotonic() < deadline, "the cleaner is not at work"
        child.kill()
        child.wait()
        child.stdout.close()
        for i in range(50):
            assert set(live) <= set(samples(client, f"count:60:mixed{i}"))
            assert client.zscore("known:", f"60:mixed{i}") == 0.0
            # No hash is left without its entry.
            if client.exists(f"count:60:stale{i}"):
                assert client.zscore("known:", f"60:stale{i}") == 0.0
        assert set(live) <= set(samples(client, "count:60:large"))
    clean(bare)
    assert client.zcard("known:") == 51
    assert client.hlen("count:60:large") == 100
    assert encoding(client, "count:60:large") in COMPACT
