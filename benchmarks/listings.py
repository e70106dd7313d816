"""The other side: the listings of "Redis in Action", chapter 5, written afresh after their text.

What they do is kept, commands and round trips included: an update is one transaction of a ZADD and
a HINCRBY for each precision; a reading is one HGETALL; a cleaning pass asks for the size of the
index and for one entry of it in turn, and reads all fields of each hash.
"""

import bisect
import time

import redis

PRECISIONS = (1, 5, 60, 300, 3600, 18000, 86400)
SAMPLES = 120


def update_counter(conn: redis.Redis, name: str, count: int = 1, now: float | None = None) -> None:
    """Add to a counter: 14 commands in one transaction."""
    moment = now or time.time()
    pipe = conn.pipeline()
    for precision in PRECISIONS:
        member = f"{precision}:{name}"
        pipe.zadd("known:", {member: 0})
        pipe.hincrby("count:" + member, str(int(moment / precision) * precision), count)
    pipe.execute()


def get_counter(conn: redis.Redis, name: str, precision: int) -> list[tuple[int, int]]:
    """Return a counter's samples, in order of time."""
    data: dict[bytes, bytes] = conn.hgetall(f"count:{precision}:{name}")  # type: ignore[assignment]
    samples = [(int(start), int(count)) for start, count in data.items()]
    samples.sort()
    return samples


def clean_pass(conn: redis.Redis, passes: int = 0) -> None:
    """Clean every counter that is due in this pass, once; the daemon's loop and sleep left out."""
    pipe = conn.pipeline(True)
    index = 0
    while index < conn.zcard("known:"):
        entries: list[bytes] = conn.zrange("known:", index, index)  # type: ignore[assignment]
        index += 1
        if not entries:
            break
        entry = entries[0]
        precision = int(entry.partition(b":")[0])
        if passes % (precision // 60 or 1):
            continue
        key = b"count:" + entry
        cutoff = time.time() - SAMPLES * precision
        fields: list[bytes] = conn.hkeys(key)  # type: ignore[assignment]
        samples = sorted(map(int, fields))
        stale = bisect.bisect_right(samples, cutoff)
        if not stale:
            continue
        conn.hdel(key, *map(str, samples[:stale]))
        if stale == len(samples):
            try:
                pipe.watch(key)  # type: ignore[no-untyped-call]
                if pipe.hlen(key):
                    pipe.unwatch()
                else:
                    pipe.multi()
                    pipe.zrem("known:", entry)
                    pipe.execute()
                    index -= 1
            except redis.WatchError:
                pass
