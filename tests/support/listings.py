"""The other program on the same database: the listings of "Redis in Action", chapter 5.

Written afresh after their text and its variants, for tests that let that program and ours take
turns. `update` has the two ways in which the variants compute a slice's start, and `clean` is one
pass of the daemon's loop, without its sleep. `log_common` writes the hour of the day to `:start`,
as its variant does, and can be told which one it is.
"""

import bisect
import time
import uuid
from collections.abc import Callable
from typing import Any

import redis

PRECISIONS = (1, 5, 60, 300, 3600, 18000, 86400)
SAMPLES = 120

Starts = Callable[[float, int], float]


def whole_start(now: float, precision: int) -> float:
    """Return an interval's start as most variants compute it, e.g. 1336376400."""
    return int(now / precision) * precision


def float_start(now: float, precision: int) -> float:
    """Return a slice's start as one variant spells it: 1336376400.0 where the time is a float."""
    return now // precision * precision


def update(
    conn: Any, name: str, count: int = 1, now: float | None = None, start: Starts = whole_start
) -> None:
    """Add to a counter at every precision, in one transaction."""
    moment = now or time.time()
    pipe = conn.pipeline()
    for precision in PRECISIONS:
        member = f"{precision}:{name}"
        pipe.zadd("known:", {member: 0})
        pipe.hincrby("count:" + member, str(start(moment, precision)), count)
    pipe.execute()


def get(conn: Any, name: str, precision: int) -> list[tuple[int, int]]:
    """Return a counter's samples in order of time."""
    data = conn.hgetall(f"count:{precision}:{name}")
    return sorted((int(start), int(count)) for start, count in data.items())


def log_recent(
    conn: Any, name: str, message: str, severity: str = "info", pipe: Any = None
) -> None:
    """Put a message in front of the newest 100."""
    key = f"recent:{name}:{severity}"
    pipe = pipe or conn.pipeline()
    pipe.lpush(key, f"{time.asctime()} {message}")
    pipe.ltrim(key, 0, 99)
    pipe.execute()


def log_common(
    conn: Any, name: str, message: str, severity: str = "info", hour: int | None = None
) -> None:
    """Count a message, and put it in front of the newest; over a client that does not decode.

    Args:
        hour: of the day, instead of that of the machine's clock.
    """
    key = f"common:{name}:{severity}"
    start_key = f"{key}:start"
    pipe = conn.pipeline()
    end = time.time() + 5
    while time.time() < end:
        try:
            pipe.watch(start_key)
            this = time.gmtime().tm_hour if hour is None else hour
            existing = pipe.get(start_key)
            pipe.multi()
            if existing and int(existing) < this:
                pipe.rename(key, f"{key}:last")
                pipe.rename(start_key, f"{key}:pstart")
                pipe.set(start_key, this)
            elif not existing:
                pipe.set(start_key, this)
            pipe.zincrby(key, 1, message)
            log_recent(pipe, name, message, severity, pipe)
            return
        except redis.WatchError:
            continue


def clean(conn: Any, passes: int = 0, now: float | None = None) -> None:
    """Make one cleaning pass over a client that does not decode.

    Args:
        passes: how many were made before; a precision of N minutes is due every Nth.
        now: instead of the machine's clock.
    """
    index = 0
    while index < conn.zcard("known:"):
        found = conn.zrange("known:", index, index)
        index += 1
        if not found:
            break
        (member,) = found
        precision = int(member.partition(b":")[0])
        if passes % (precision // 60 or 1):
            continue
        key = b"count:" + member
        cutoff = (time.time() if now is None else now) - SAMPLES * precision
        samples = sorted(int(field) for field in conn.hkeys(key))
        remove = bisect.bisect_right(samples, cutoff)
        if remove:
            conn.hdel(key, *samples[:remove])
            if remove == len(samples) and not conn.hlen(key):
                conn.zrem("known:", member)
                index -= 1


def update_stats(
    conn: Any, context: str, kind: str, value: float, *, hour: int | None = None, timeout: float = 5
) -> list[float]:
    """Take a value into the statistics of an hour; return count, sum and sum of squares.

    As the listing is meant: by its text it compares a text with a number.

    Args:
        hour: of the day, instead of the machine's clock.
    """
    key = f"stats:{context}:{kind}"
    start = key + ":start"
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        with conn.pipeline(True) as pipe:
            try:
                pipe.watch(start)
                now = time.gmtime().tm_hour if hour is None else hour
                existing = pipe.get(start)
                pipe.multi()
                if existing is not None and int(existing) < now:
                    pipe.rename(key, key + ":last")
                    pipe.rename(start, key + ":pstart")
                    pipe.set(start, now)
                elif existing is None:
                    pipe.set(start, now)
                for aggregate in ("min", "max"):
                    other = f"tmp:{uuid.uuid4()}"
                    pipe.zadd(other, {aggregate: value})
                    pipe.zunionstore(key, [key, other], aggregate=aggregate)
                    pipe.delete(other)
                for member, amount in (("count", 1), ("sum", value), ("sumsq", value * value)):
                    pipe.zincrby(key, amount, member)
                return list(pipe.execute()[-3:])
            except redis.exceptions.WatchError:
                continue
    raise TimeoutError(key)


def update_stats_as_printed(conn: Any, context: str, kind: str, value: float, hour: int) -> None:
    """Take a value into the statistics as the variant prints it: `:start` is read, never written.

    Raises:
        TypeError: `:start` exists, and its text is compared with a number.
    """
    key = f"stats:{context}:{kind}"
    existing = conn.get(f"{key}:start")
    with conn.pipeline(True) as pipe:
        if existing and existing < hour:
            pipe.rename(key, f"{key}:last")
            pipe.rename(f"{key}:start", f"{key}:pstart")
            pipe.set(f"{key}:start", hour)
        for aggregate in ("min", "max"):
            other = f"tmp:{uuid.uuid4()}"
            pipe.zadd(other, {aggregate: value})
            pipe.zunionstore(key, [key, other], aggregate=aggregate)
            pipe.delete(other)
        for member, amount in (("count", 1), ("sum", value), ("sumsq", value * value)):
            pipe.zincrby(key, amount, member)
        pipe.execute()


def get_stats(conn: Any, context: str, kind: str) -> dict[str, Any]:
    """Return the statistics with average and standard deviation, by a client that decodes."""
    data: dict[str, Any] = dict(conn.zrange(f"stats:{context}:{kind}", 0, -1, withscores=True))
    data["average"] = data["sum"] / data["count"]
    numerator = data["sumsq"] - data["sum"] ** 2 / data["count"]
    data["stddev"] = (numerator / (data["count"] - 1 or 1)) ** 0.5
    return data
