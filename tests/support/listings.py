"""The other program on the same database: the listings of "Redis in Action", chapter 5.

Written afresh after their text and its variants, for tests that let that program and ours take
turns. `update` has the two ways in which the variants compute a slice's start, and `clean` is one
pass of the daemon's loop, without its sleep.
"""

import bisect
import time
from collections.abc import Callable
from typing import Any

PRECISIONS = (1, 5, 60, 300, 3600, 18000, 86400)
SAMPLES = 120

Starts = Callable[[float, int], float]


def whole_start(now: float, precision: int) -> float:
    """Return a slice's start as most variants compute it, e.g. 1336376400."""
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
