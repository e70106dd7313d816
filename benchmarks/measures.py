"""What run.py measures: the same job done by us and by the listings, on one server."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import hiredis
import redis

import listings
from redmeter import Meter, book
from redmeter.clock import ManualClock
from redmeter.ingest import access_log, lines
from redmeter.ingest import replay as door
from redmeter.maintenance import cleaning
from redmeter.reading.samples import read_series
from redmeter.store import Store
from redmeter.store import open as open_store
from redmeter.store.servers.sockets import pack
from redmeter.stored.keys import DEFAULT_RETENTION
from redmeter.types import Window
from support.realdata import REAL_LOG, any_log
from support.stores import store_all
from table import sized

#: What is replayed: the real log, and in the smoke run the small one where there is no other.
LOG = sized(REAL_LOG, any_log())
#: The retention of the listings.
LISTED = dict.fromkeys(DEFAULT_RETENTION, 120)
#: How long a counter is written to: first by the hour, then by the minute; seconds.
BEFORE, WEEK = sized(114 * 86400, 86400), sized(7 * 86400, 3600)


def updates(conn: redis.Redis, url: str) -> dict[str, Callable[[], object]]:
    """Our two ways to update a counter at once."""
    meter = Meter(url, sync=True)
    other = redis.Redis(unix_socket_path=conn.connection_pool.connection_kwargs["path"], db=1)
    return {
        "Meter.count": lambda: meter.count("hits"),
        "book.update_counter": lambda: book.update_counter(other, "hits"),
    }


def listing_update(conn: redis.Redis) -> Callable[[], object]:
    return lambda: listings.update_counter(conn, "hits")


def _store(url: str | None = None, **options: object) -> Store:
    options.setdefault("retention", LISTED)
    store = open_store(url, **options)  # type: ignore[arg-type]
    assert store is not None, "the URL is not off"
    return store


def fill_for_cleaning(conn: redis.Redis, counters: int, samples: int) -> None:
    """Fill counters as the listing does; every other one holds nothing that still counts."""
    _empty(conn)
    now = int(time.time())
    pipe = conn.pipeline(transaction=False)
    for number in range(counters):
        for width in listings.PRECISIONS:
            # Live ones end a few intervals ahead, so that they stay live while the bench runs.
            newest = now // width * width + (30 * 60 if number % 2 else -130 * width)
            slices = {str(newest - width * age): 1 for age in range(samples)}
            pipe.hset(f"count:{width}:page:{number}", mapping=slices)  # type: ignore[arg-type]
            pipe.zadd("known:", {f"{width}:page:{number}": 0})
        if number % 50 == 49:
            pipe.execute()
    pipe.execute()


def our_pass(conn: redis.Redis) -> Callable[[], object]:
    store = _store(client=conn, prefix="")
    return lambda: cleaning.clean(store, samples={}, other_samples=listings.SAMPLES)


def listing_pass(conn: redis.Redis) -> Callable[[], object]:
    return lambda: listings.clean_pass(conn)


#: Pings every 2 ms until its input ends, then prints the longest wait, seconds.
_PINGER = """
import sys, threading, time, redis
client, ended, longest = redis.Redis.from_url(sys.argv[1]), threading.Event(), 0.0
threading.Thread(target=lambda: (sys.stdin.read(), ended.set())).start()
print("ready", flush=True)
while not ended.wait(0.002):
    started = time.perf_counter()
    client.ping()
    longest = max(longest, time.perf_counter() - started)
print(longest)
"""


@contextmanager
def pinging(url: str) -> Iterator[list[float]]:
    """Let another process ping meanwhile; yields a list that holds the longest wait at the end."""
    longest: list[float] = []
    with subprocess.Popen(
        [sys.executable, "-c", _PINGER, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None, "it is a pipe"
        assert process.stdout is not None, "it is a pipe"
        process.stdout.readline()
        try:
            yield longest
        finally:
            process.stdin.close()
            longest.append(float(process.stdout.read()))


@contextmanager
def slowest_call(conn: redis.Redis) -> Iterator[list[float]]:
    """Let the server note its longest call meanwhile, seconds."""
    longest: list[float] = []
    conn.config_set("slowlog-log-slower-than", 500)
    conn.slowlog_reset()
    try:
        yield longest
    finally:
        entries = conn.slowlog_get(128)
        longest.append(max((entry["duration"] for entry in entries), default=0) / 1e6)


def readings(
    conn: redis.Redis, url: str, count: int
) -> tuple[Callable[[], object], Callable[[], object], Callable[[], object]]:
    """Our reading of many series, the listing's, and the bare exchange of the same replies."""
    names = [f"page:{number}" for number in range(count)]
    newest = int(time.time()) // 60 * 60
    pipe = conn.pipeline(transaction=False)
    for name in names:
        # In order of time, as counting writes them.
        slices = {str(newest - 60 * age): age for age in reversed(range(120))}
        for prefix in ("redmeter:", ""):
            pipe.hset(f"{prefix}count:60:{name}", mapping=slices)  # type: ignore[arg-type]
    pipe.execute()
    store = _store(url)
    packed = b"".join(pack(("HGETALL", f"count:60:{name}")) for name in names)
    bare, reader = socket.socket(socket.AF_UNIX), hiredis.Reader()
    bare.connect(conn.connection_pool.connection_kwargs["path"])

    def exchange() -> None:
        bare.sendall(packed)
        for _ in names:
            while reader.gets() is False:
                reader.feed(bare.recv(65536))

    return (
        lambda: read_series(store, names, Window(60)),
        lambda: [listings.get_counter(conn, name, 60) for name in names],
        exchange,
    )


def replay(url: str) -> tuple[int, float]:
    """Replay the real log as `redmeter replay --shift-to-now` does; lines and seconds."""
    store = _store(url)
    started = time.perf_counter()
    with lines.Lines(LOG) as source:
        newest = door.newest_time(source)
    assert newest is not None, "the log holds hits"
    with lines.Lines(LOG) as source:
        report = door.replay(store, source, shift=int(time.time()) - int(newest))
    seconds = time.perf_counter() - started
    assert report.retained == report.requests > 0, "every hit is stored"
    store.close()
    return report.lines, seconds


def parse_only() -> float:
    """Seconds a line to read and parse the real log."""
    started, count = time.perf_counter(), 0
    with lines.Lines(LOG) as source:
        for batch in source:
            for line in batch:
                try:  # noqa: SIM105 - suppress() would take longer than the parsing
                    access_log.parse_hit(line)
                except access_log.MalformedLine:
                    pass
            count += len(batch)
    return (time.perf_counter() - started) / count


def memory_full(conn: redis.Redis, url: str, count: int) -> tuple[float, float]:
    """Bytes that a full counter takes, by the server's own sum: ours and the listing's."""
    _empty(conn)
    store = _store(url)
    now = int(time.time())
    # The script is loaded once, whatever is counted, and what the server's Lua leaves behind grows
    # for a while.
    for number in range(sized(100, 3)):
        store_all(store, {f"before:{number}": _full(now)})
    before = _used(conn)
    for number in range(1, count + 1):
        store_all(store, {f"page:{number}": _full(int(time.time()))})
    store.close()
    ours = (_used(conn) - before) / count
    copy = {
        width: [
            (
                now // width * width - width * age,
                _count(conn, width, now // width * width - width * age),
            )
            for age in range(120)
        ]
        for width in listings.PRECISIONS
    }
    _empty(conn)
    before = _used(conn)
    pipe = conn.pipeline(transaction=False)
    for number in range(count):
        for width, slices in copy.items():
            for start, amount in slices:
                pipe.hincrby(f"count:{width}:page:{number}", str(start), amount)
            pipe.zadd("known:", {f"{width}:page:{number}": 0})
        pipe.execute()
    return ours, (_used(conn) - before) / count


def _empty(conn: redis.Redis) -> None:
    """Empty the server, and return when its memory is free again."""
    conn.execute_command("FLUSHALL", "SYNC")  # type: ignore[no-untyped-call]


def _full(now: int) -> dict[int, int]:
    """Return events that fill 120 intervals of each precision, no more."""
    return {
        _within(now // width * width - width * age, width, now): 1
        for width, samples in DEFAULT_RETENTION.items()
        for age in range(samples)
    }


def _within(start: int, width: int, now: int) -> int:
    """Return a second of a slice that adds no slice to a finer precision that is full already."""
    for second in range(start, start + width, max(1, width // 16)):
        ages = [(now // finer - second // finer) for finer in listings.PRECISIONS if finer < width]
        if not any(120 <= age <= 123 for age in ages):
            return second
    raise AssertionError("a slice has seconds enough")


def _count(conn: redis.Redis, width: int, start: int) -> int:
    """What an interval of the first counter holds, so that the other side holds the same."""
    found = conn.hget(f"redmeter:count:{width}:page:0", str(start))
    return int(found or 1)


def memory_week(conn: redis.Redis, url: str) -> tuple[float, float]:
    """Bytes of a counter's hashes after a week of an event a second, without a cleaner.

    The week is simulated by a producer whose clock is set back and moved forward; before it come
    114 days at the coarse precisions.
    """
    _empty(conn)
    now = int(time.time())
    clock = ManualClock(now - BEFORE - WEEK)
    store = _store(url, clock=clock)
    while clock.wall() < now - WEEK:
        store_all(store, {"page": {int(clock.wall()): 1}})
        clock.advance(3600)
    clock.set_wall(now - WEEK)
    while clock.wall() < now:
        second = int(clock.wall())
        store_all(store, {"page": {second - age: 1 for age in range(60)}})
        clock.advance(60)
    for width in listings.PRECISIONS:
        for age in range(120):
            start = now // width * width - width * age
            count = conn.hget(f"redmeter:count:{width}:page", str(start)) or 1
            conn.hset(f"count:{width}:page", str(start), count)
    sizes = [
        sum(conn.memory_usage(f"{prefix}count:{width}:page") or 0 for width in listings.PRECISIONS)
        for prefix in ("redmeter:", "")
    ]
    store.close()
    return sizes[0], sizes[1]


def _used(conn: redis.Redis) -> int:
    """Bytes that data take: of each key all that the server says, whatever else it has in memory.

    So neither buffers nor what Lua leaves behind count, and the tables that hold the keys are the
    server's estimate for each.
    """
    keys = list(conn.scan_iter(count=1000))
    pipe = conn.pipeline(transaction=False)
    for key in keys:
        pipe.memory_usage(key, samples=0)
    return sum(size or 0 for size in pipe.execute())
