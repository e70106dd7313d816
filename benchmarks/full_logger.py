"""Measure a logger whose severities are all full: memory, and the server's time for a message.

    python benchmarks/full_logger.py

Each of five severities logs SIZE different messages of three words and a name, and then batches of
20 messages: of patterns that have a place, and of new ones, which have none. The server's time is
that of the scripts (INFO commandstats), the memory that of the keys (MEMORY USAGE).
"""

import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from redmeter import Meter
from support.servers import Server

SEVERITIES = ("debug", "info", "warning", "error", "critical")
SIZE, BATCHES, BATCH = 1_300, 200, 20


def names(number: int) -> list[str]:
    chance = random.Random(number)
    return ["".join(chance.choices("abcdefghijklmnop", k=12)) for _ in range(number)]


def main() -> None:
    known = names(SIZE)
    with Server() as server, Meter(server.url, flush_interval=3600) as meter:
        client = server.client()

        def spent() -> int:
            stats = client.info("commandstats")
            return sum(
                stats.get(f"cmdstat_{name}", {}).get("usec", 0) for name in ("eval", "evalsha")
            )

        def log(texts: list[str]) -> float:
            """Return the server's time for a message, microseconds."""
            before = spent()
            for text in texts:
                for severity in SEVERITIES:
                    meter.log("shop", f"payment failed for cus_{text}", severity=severity)
            meter.flush()
            return (spent() - before) / len(texts) / len(SEVERITIES)

        first = log(known)
        memory = sum(client.memory_usage(key, samples=0) or 0 for key in client.scan_iter("*shop*"))
        patterns = sum(client.zcard(f"redmeter:common:shop:{severity}") for severity in SEVERITIES)
        placed = [log(known[:BATCH]) for _ in range(BATCHES // 5)]
        fresh = names(BATCH * BATCHES)
        new = [log(fresh[at * BATCH :][:BATCH]) for at in range(BATCHES // 5)]
    print(f"{patterns:,} patterns of an hour, {memory / 1e6:.2f} MB; server time for a message:")
    print(f"  {first:.1f} us while it fills", end="; ")
    print(f"{sorted(placed)[len(placed) // 2]:.1f} us of known patterns", end="; ")
    print(f"{sorted(new)[len(new) // 2]:.1f} us of new ones without a place")


if __name__ == "__main__":
    started = time.perf_counter()
    main()
    print(f"{time.perf_counter() - started:.0f} s")
