"""`redmeter migrate`: how long a move takes, and how long other clients of the source wait."""

import time
from collections.abc import Iterator

import redis

import measures
from redmeter import store as stores
from redmeter.migrating import migrate
from redmeter.store import Store
from redmeter.stored.keys import DEFAULT_RETENTION, slice_start
from support.servers import Server
from table import Row, sized

COUNTERS, SAMPLES = sized(20_000, 100), 6


def fill(conn: redis.Redis) -> None:
    """Store counters at all precisions, with some samples each."""
    now = time.time()
    pipe = conn.pipeline(transaction=False)
    for number in range(COUNTERS):
        for precision in DEFAULT_RETENTION:
            newest = slice_start(now, precision)
            samples = {str(newest - precision * age): age + 1 for age in range(SAMPLES)}
            pipe.hset(f"redmeter:count:{precision}:c{number}", mapping=samples)  # type: ignore[arg-type]
            pipe.zadd("redmeter:known:", {f"{precision}:c{number}": 0})
        pipe.hset("redmeter:total:", f"c{number}", "21")
        if number % 100 == 99:
            pipe.execute()
    pipe.execute()


def _open(url: str) -> Store:
    store = stores.open(url)
    assert store is not None, "the URL is not off"
    return store


def moving(conn: redis.Redis, url: str) -> Iterator[Row]:
    """Counters at seven precisions, to another server of the same machine."""
    with Server("valkey-9.1") as other:
        fill(conn)
        with measures.pinging(url) as alone:
            time.sleep(sized(3.0, 0.2))
        source, target = _open(url), _open(other.unix_url)
        with measures.pinging(url) as waits:
            report = migrate(source, target)
        assert report.total == COUNTERS * len(DEFAULT_RETENTION), "nothing is lost"
        yield Row(
            f"migrate, {COUNTERS:,} counters, {SAMPLES} samples each",
            f"{report.seconds:.1f} s",
            "20 s",
            report.seconds / 20,
            "<= 1",
            f"{report.total:,} hashes, {report.values:,} values, "
            f"frozen {report.freeze_seconds:.1f} s",
        )
        yield Row(
            "migrate, longest PING meanwhile",
            f"{max(waits) * 1e3:.1f} ms",
            "10 ms",
            max(waits) / 0.01,
            "<= 1",
            f"PING alone {max(alone) * 1e3:.1f} ms",
        )


ROWS = {"migrate": moving}
