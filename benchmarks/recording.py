"""What recording costs: the application, the way to the store, memory. Rows for run.py."""

import asyncio
import gc
import statistics
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator

import prometheus_client
import redis

import listings
from redmeter import Meter
from redmeter.clock import ManualClock
from redmeter.recording.recorder import Recorder
from redmeter.stored.keys import DEFAULT_RETENTION
from table import Row, micro, nano, sized, turns

#: Calls of one turn, in the application.
CALLS = sized(200_000, 50_000)
#: Events that are stored, series of a flush, and seconds for which a server's commands are counted.
EVENTS, SERIES, WATCHED = sized(1_000_000, 10_000), sized(1_000, 20), sized(12.0, 0.5)


def repeated(statement: str, calls: int = CALLS, **names: object) -> Callable[[], None]:
    """Return a function that runs a statement so often, without a call around each."""
    space: dict[str, Callable[[], None]] = {}
    exec(f"def run():\n for _ in range({calls}):\n  {statement}", names, space)  # noqa: S102
    return space["run"]


def _nothing(_amount: int = 1) -> None:
    """Return at once."""


def _each(ours: Callable[[], None], other: Callable[[], None]) -> tuple[float, float, float]:
    mine, theirs, ratio = turns(ours, other, rounds=15, calls=1)
    return mine / CALLS, theirs / CALLS, ratio


def counting(_conn: redis.Redis, url: str) -> Iterator[Row]:
    """Counting in the application, next to prometheus_client."""
    registry = prometheus_client.CollectorRegistry()
    theirs = prometheus_client.Counter("hits", "hits", ["name"], registry=registry)
    child = theirs.labels("x")
    with Meter(url) as meter:
        counter = meter.counter("hits")
        meter.count("x")
        clock = turns(repeated("now()", now=time.time), lambda: None, rounds=5, calls=1)[0] / CALLS
        call = turns(repeated("f()", f=_nothing), lambda: None, rounds=5, calls=1)[0] / CALLS
        floor = f"an empty call {nano(call)}, time.time() {nano(clock)}"
        ours, other, ratio = _each(
            repeated("counter.inc()", counter=counter), repeated("child.inc()", child=child)
        )
        yield Row("counter.inc(), bound", nano(ours), nano(other), ratio, "<= 0.4", floor)
        ours, other, ratio = _each(
            repeated("meter.count('x')", meter=meter), repeated("c.labels('x').inc()", c=theirs)
        )
        yield Row("meter.count(name)", nano(ours), nano(other), ratio, "<= 0.2", floor)
        pairs = (
            ("counter.inc()", "child.inc()", "inc()"),
            ("meter.count('x')", "theirs.labels('x').inc()", "count(name)"),
        )
        for mine, others, what in pairs:
            names = {"counter": counter, "meter": meter, "child": child, "theirs": theirs}
            for how, spread in (("4 threads", _in_threads), ("1,000 tasks", _in_tasks)):
                ours, other, ratio = _each(spread(mine, names), spread(others, names))
                alone = turns(spread("pass", {}), _nothing, rounds=5, calls=1)[0] / CALLS
                floor = f"without counting {nano(alone)}"
                yield Row(f"{what}, {how}", nano(ours), nano(other), ratio, "<= 0.5", floor)


def _in_threads(statement: str, names: dict[str, object]) -> Callable[[], None]:
    each = repeated(statement, CALLS // 4, **names)

    def run() -> None:
        threads = [threading.Thread(target=each) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return run


def _in_tasks(statement: str, names: dict[str, object]) -> Callable[[], None]:
    """1,000 tasks that count 50 times each between two switches."""
    burst = repeated(statement, 50, **names)

    async def task() -> None:
        for _ in range(CALLS // 50_000):
            burst()
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(*(task() for _ in range(1_000)))

    return lambda: asyncio.run(main())


def storing(conn: redis.Redis, url: str) -> Iterator[Row]:
    """Events recorded and stored, until the last is acknowledged."""
    rounds = []
    for _ in range(sized(3, 1)):
        conn.flushall()
        with Meter(url) as meter:
            counters = [meter.counter("hits", labels={"page": str(n)}) for n in range(100)]
            counters[0].inc()
            meter.flush()  # connected, and the script is known
            burst = repeated("for c in counters: c.inc()", EVENTS // 100, counters=counters)
            started = time.perf_counter()
            burst()
            assert meter.flush(30)
            mine = (time.perf_counter() - started) / EVENTS
            assert meter.recorder_health().stored == EVENTS + 1
        pages = [f"page:{n}" for n in range(100)]
        started = time.perf_counter()
        for n in range(SERIES):
            listings.update_counter(conn, pages[n % 100])
        rounds.append((mine, (time.perf_counter() - started) / SERIES))
    mine, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
    ratio = statistics.median(b / a for a, b in rounds)
    floor = "the ratio is of events a second"
    what = "events stored, 100 series"
    yield Row(what, f"{1 / mine:,.0f}/s", f"{1 / theirs:,.0f}/s", ratio, ">= 300", floor)


def flushing(conn: redis.Redis, url: str) -> Iterator[Row]:
    """Processor time of a flush of 1,000 series of which every interval is new, both sides."""
    for what, existing in (("new series", False), ("new slices", True)):
        rounds = [_flush_both(conn, url, existing) for _ in range(sized(5, 1))]
        for side, target, at in (("client", "<= 0.167", 0), ("server", "<= 0.6", 2)):
            mine = statistics.median(r[at] for r in rounds)
            theirs = statistics.median(r[at + 1] for r in rounds)
            ratio = statistics.median(r[at] / r[at + 1] for r in rounds)
            name = f"flush of {SERIES:,} {what}, {side}"
            floor = "a series"
            if side == "server":
                share = statistics.median(r[4] / r[at + 1] for r in rounds)
                floor += f"; scripts that only HINCRBY: {share:.2f}"
            yield Row(name, micro(mine / SERIES), micro(theirs / SERIES), ratio, target, floor)


#: The least that a flush can be: the same keys and numbers, and nothing but the counting.
HINCRBY = "for i = 1, #KEYS do redis.call('HINCRBY', KEYS[i], ARGV[i], 1) end"


def _flush_both(conn: redis.Redis, url: str, existing: bool) -> tuple[float, ...]:
    """Return processor seconds: our client, the listing's, our server, the listing's, the floor."""
    conn.flushall()
    names = [f"page:{n}" for n in range(SERIES)]
    if existing:
        _fill(conn, names)
    with Meter(url, flush_interval=3600) as meter:
        meter.count("warm")
        meter.flush()
        for name in names:
            meter.count(name)
        before, own = _server_cpu(conn), time.process_time()
        meter.flush(30)
        ours, ours_server = time.process_time() - own, _server_cpu(conn) - before
        assert meter.recorder_health().stored == SERIES + 1
    before, own = _server_cpu(conn), time.process_time()
    for name in names:
        listings.update_counter(conn, name)
    theirs, theirs_server = time.process_time() - own, _server_cpu(conn) - before
    if existing:
        _fill(conn, names)
    script, now = conn.register_script(HINCRBY), int(time.time())
    before = _server_cpu(conn)
    for at in range(0, len(names), 60):
        keys, starts = [], []
        for name in names[at : at + 60]:
            for width in DEFAULT_RETENTION:
                keys.append(f"redmeter:count:{width}:{'' if existing else 'more:'}{name}")
                starts.append(now // width * width + width)
        script(keys, starts)
    return ours, theirs, ours_server, theirs_server, _server_cpu(conn) - before


def _fill(conn: redis.Redis, names: list[str]) -> None:
    """Give each hash 60 samples, none of the present, so that each present slice is a new one."""
    pipe = conn.pipeline(transaction=False)
    now = int(time.time())
    for name in names:
        for width in DEFAULT_RETENTION:
            # A little apart from the present, which goes on meanwhile.
            newest = now // width * width - 2 * width
            slices = {str(newest - width * age): 1 for age in range(60)}
            for prefix in ("redmeter:", ""):
                pipe.hset(f"{prefix}count:{width}:{name}", mapping=slices)  # type: ignore[arg-type]
                pipe.zadd(f"{prefix}known:", {f"{width}:{name}": 0})
            pipe.expire(f"redmeter:count:{width}:{name}", 136 * width)
        if len(pipe.command_stack) > 5_000:
            pipe.execute()
    pipe.execute()


def _server_cpu(conn: redis.Redis) -> float:
    """Processor seconds of the server so far."""
    info = conn.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def buffering(_conn: redis.Redis, _url: str) -> Iterator[Row]:
    """Memory of the buffer: 1,000 series, one minute of outage."""
    clock = ManualClock()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    meter = Meter("redis://127.0.0.1:1/0", clock=clock, flush_interval=3600, timeout=0.05)
    recorder = meter._recorder
    assert isinstance(recorder, Recorder), "it is not sync"
    recorder._flusher.start = lambda: True  # type: ignore[method-assign]  # it is us who collects
    names = [f"page:{n}" for n in range(SERIES)]
    for _ in range(60):
        for name in names:
            meter.count(name)
        clock.advance(1)
        recorder._collector.collect()
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    reported = meter.recorder_health().buffer_bytes
    text = f"{taken / 1e6:.2f} MB"
    yield Row(
        f"buffer, {SERIES:,} series, 1 min away",
        text,
        "2 MB",
        taken / 2e6,
        "<= 1",
        f"reported: {reported / 1e6:.2f} MB",
    )


def repairing(_conn: redis.Redis, url: str) -> Iterator[Row]:
    """Time of a flush of 1,000 counters with and without batches that are kept, in turn."""
    with (
        Meter(url, prefix="kept:", flush_interval=3600) as kept,
        Meter(url, prefix="gone:", flush_interval=3600, repair_bytes=0) as gone,
    ):
        ratios, times = [], []
        for number in range(sized(40, 2)):
            took = {}
            for meter in (kept, gone) if number % 2 else (gone, kept):
                for n in range(SERIES):
                    meter.count(f"page:{n}")
                began = time.perf_counter()
                assert meter.flush(30.0)
                took[meter] = time.perf_counter() - began
            ratios.append(took[kept] / took[gone])
            times.append((took[kept], took[gone]))
        ours, other = (statistics.median(each) * 1000 for each in zip(*times, strict=True))
        memory = kept.recorder_health().buffer_bytes - gone.recorder_health().buffer_bytes
    yield Row(
        f"flush, {SERIES:,} counters, kept for repair",
        f"{ours:.1f} ms",
        f"{other:.1f} ms",
        statistics.median(ratios),
        "none" if sized(0, 1) else "<= 1.05",
        f"kept: {memory / 1e6:.2f} MB",
    )


def commanding(conn: redis.Redis, url: str) -> Iterator[Row]:
    """Commands a second on the server: idle, and with 100 active series."""
    with Meter(url) as meter:
        meter.count("x")
        meter.flush()
        before = _commands(conn)
        time.sleep(WATCHED)
        idle = (_commands(conn) - before) / WATCHED
        counters = [meter.counter("hits", labels={"page": str(n)}) for n in range(100)]
        before, until = _commands(conn), time.monotonic() + WATCHED
        while time.monotonic() < until:
            for counter in counters:
                counter.inc()
            time.sleep(0.05)
        active = (_commands(conn) - before) / WATCHED
    yield Row("commands a second, idle", f"{idle:.2f}", "", None, "near none")
    yield Row("commands a second, 100 series", f"{active:.2f}", "", None, "none")


def _commands(conn: redis.Redis) -> int:
    """Calls of our scripts so far: all that a flusher sends."""
    stats = conn.info("commandstats")
    return sum(
        int(stats.get(f"cmdstat_{name}", {}).get("calls", 0)) for name in ("eval", "evalsha")
    )


ROWS = {
    "counting": counting,
    "storing": storing,
    "flushing": flushing,
    "buffering": buffering,
    "repairing": repairing,
    "commanding": commanding,
}
