"""Residue: keys that nothing removes, index entries without a hash, hashes that grew too large.

Every key has a time to live, or is an index that a cleaner sweeps, or is there for ever and one.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from redmeter.stored.families import FAMILIES, SERIES_INDEXES, listed_by

#: Families whose keys have no time to live, or none for a moment: a store's configuration, indexes,
#: grand totals, reports.
_KEPT = {name for name, family in FAMILIES.items() if not family.rest} - {"marks"}
_INDEXES = {index.name: [data.name for data in listed_by(index)] for index in SERIES_INDEXES}
_KEY = re.compile(r"(redmeter:(?:\{\w+\})?)(\w+):(.*)", re.DOTALL)

#: Seconds that a watermark is kept.
DAY, MINUTE = 86_400, 60
#: Most fields of a hash that is stored compactly.
COMPACT = 512


def residue(clients: Iterable[Any], lasted: float) -> Iterator[str]:
    """Yield what should not be there, after a cleaner's pass with nobody writing.

    Args:
        clients: one of each primary, which decodes.
        lasted: how long the stage took, seconds.
    """
    for client in clients:
        keys = set(client.scan_iter("*", count=1000))
        for key in keys:
            found = _KEY.fullmatch(key)
            if found is None or not key.startswith("redmeter:"):
                yield f"{key} is not of the stored format"
                continue
            yield from _lasting(client, key, found[2], lasted)
            if found[2] in ("count", "gauge") and client.hlen(key) > COMPACT:
                yield f"{key} has {client.hlen(key)} fields"
            if found[2] in _INDEXES:
                yield from _index(client, key, found[1], keys)


def _lasting(client: Any, key: str, family: str, lasted: float) -> Iterator[str]:
    left = client.ttl(key)
    if left == -1 and family not in _KEPT:
        yield f"{key} has no time to live"
    if family == "batch" and left != -2 and not DAY - lasted - MINUTE < left <= DAY:
        yield f"the watermark {key} lives for another {left} s"


def _index(client: Any, key: str, head: str, keys: set[str]) -> Iterator[str]:
    families = _INDEXES[key.removeprefix(head).rstrip(":")]
    entries = set(client.zrange(key, 0, -1))
    for family in families:
        before = f"{head}{family}:"
        hashes = {one.removeprefix(before) for one in keys if one.startswith(before)}
        for entry in entries - hashes:
            yield f"{key} names {entry}, and there is no {before}{entry}"
        for entry in hashes - entries:
            yield f"{before}{entry} is not named by {key}"


def read_gauges(clients: Iterable[Any]) -> dict[tuple[int, str], dict[int, str]]:
    """Return what is stored of gauges: (precision, name) -> start -> text."""
    found: dict[tuple[int, str], dict[int, str]] = {}
    for client in clients:
        for key in client.scan_iter("redmeter:*gauge:*", count=1000):
            parsed = _KEY.fullmatch(key)
            if parsed and parsed[2] == "gauge":
                precision, _, name = parsed[3].partition(":")
                fields = client.hgetall(key)
                found[int(precision), name] = {int(start): text for start, text in fields.items()}
    return found


def read_messages(clients: Iterable[Any], pattern: str) -> dict[tuple[str, int], int]:
    """Return how often messages of a pattern came: (logger, hour) -> how often."""
    found: dict[tuple[str, int], int] = {}
    for client in clients:
        for key in client.scan_iter("redmeter:*common:*", count=1000):
            parsed = _KEY.fullmatch(key)
            if not parsed or parsed[2] != "common" or key.endswith((":start", ":last", ":pstart")):
                continue
            logger = parsed[3].rpartition(":")[0]
            for counts, hour in ((key, f"{key}:start"), (f"{key}:last", f"{key}:pstart")):
                start, score = client.get(hour), client.zscore(counts, pattern)
                if start is not None and score is not None:
                    found[logger, int(start)] = int(score)
    return found
