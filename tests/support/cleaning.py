"""Counters without a time to live, for a cleaner, and what is left of them."""

from typing import Any

DAY = 86400

HOUR = 3600


def fill(client: Any, precision: int, starts: list[int], name: str = "x") -> None:
    """Write a counter without time to live, as another program does."""
    pipe = client.pipeline(transaction=False)
    for at in range(0, len(starts), 5000):
        pipe.hset(f"count:{precision}:{name}", mapping={str(s): 1 for s in starts[at : at + 5000]})
    pipe.zadd("known:", {f"{precision}:{name}": 0})
    pipe.execute()


def everything(client: Any) -> dict[bytes, Any]:
    """Return the index and all hashes."""
    found = {key: client.hgetall(key) for key in client.scan_iter("count:*", count=1000)}
    return found | {b"known:": client.zrange("known:", 0, -1)}


def encoding(client: Any, key: str) -> bytes:
    """Return how the server stores a key."""
    return bytes(client.execute_command("OBJECT", "ENCODING", key))


COMPACT = (b"listpack", b"ziplist")
