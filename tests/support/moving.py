"""Stores that are moved: something of each kind in one, and what a store holds."""

from collections.abc import Iterable
from typing import Any

from redmeter.keys import HOUR, Kept, slice_start
from redmeter.kinds import counter, gauge, histogram, mark, message
from redmeter.kinds.distribution import Distribution
from redmeter.kinds.message import Group, LogHour
from redmeter.model import Operations
from redmeter.store import Store

#: A client of the store that is moved, and of the one that it is moved to; neither decodes.
Databases = tuple[Any, Any]

#: Families that hold what was recorded, as they follow the prefix and a tag.
_FAMILIES = (
    *("known:", "count:", "gauges:", "gauge:", "hists:", "hist:", "moments:", "total:", "marks:"),
    *("stats:", "messages:", "recent:", "common:", "patterns:"),
)


def fill(store: Store, *, series: int = 3, slices: int = 4) -> None:
    """Store something of each kind: counters, gauges, histograms, messages, marks."""
    for number in range(series):
        write_series(store, f'moved{{n="{number}"}}', slices, number + 1)
    now = store.clock.wall()
    for logger in ("app", "app.worker"):
        write_log(store, logger, "error", [(now - n, f"job {n} failed") for n in range(20)])
    part = store.part("")
    marks = [mark.Noted(now - 5000, "v1"), mark.Noted(now - 100, "v2", release=True)]
    part.write(lambda _: mark.operations(part.keys, marks))


def write_series(
    store: Store, name: str, slices: int, amount: int, now: float | None = None
) -> None:
    """Count, set and observe under a name, at so many half minutes up to now.

    Args:
        now: for what is to be the same in several stores, Unix seconds; None: by the clock.
    """
    part = store.part(name)
    now = store.clock.wall() if now is None else now
    seconds = [slice_start(now - 31 * back, 1) for back in range(slices)]

    def build(kept: Kept) -> Operations:
        observed = {}
        for second in seconds:
            observed[second] = Distribution()
            observed[second].add_all([0.5, 2.0 * amount, 1000.0])
        measured = {second: (second + 0.25, float(amount)) for second in seconds}
        return (
            *counter.operations(part.keys, kept.series, {name: dict.fromkeys(seconds, amount)}),
            *gauge.operations(part.keys, kept.series, {name: measured}),
            *histogram.operations(part.keys, kept.histograms, {name: observed}),
        )

    part.write(build)


def write_log(store: Store, logger: str, severity: str, texts: list[tuple[float, str]]) -> None:
    """Log texts at their times, all of one pattern."""
    hours: dict[int, LogHour] = {}
    for time_of, text in texts:
        hour = hours.setdefault(slice_start(time_of, HOUR), LogHour(100))
        hour.add("job <n> failed", Group(1, time_of, time_of, text))
        hour.add_texts([(time_of, text)])
    part = store.part(logger)
    part.write(lambda _: message.operations(part.keys, {f"{logger}:{severity}": hours}))


def whole(clients: Iterable[Any], prefix: str) -> dict[str, Any]:
    """Return all that was recorded in a store: key without prefix and tag -> what it holds.

    Args:
        clients: one that does not decode for each server, or master, of the store.
    """
    found: dict[str, Any] = {}
    for client in clients:
        for key in client.scan_iter(f"{prefix}*", count=1000):
            family = key.decode()[len(prefix) :]
            family = family.partition("}")[2] if family.startswith("{") else family
            if family.startswith(_FAMILIES):
                _merge(found, family, _held(client, key))
    return found


def held(*clients: Any) -> dict[str, Any]:
    """Return the same of a store with the default prefix."""
    return whole(clients, "redmeter:")


def _held(client: Any, key: bytes) -> Any:
    kind = client.type(key)
    if kind == b"hash":
        return client.hgetall(key)
    if kind == b"zset":
        return {
            member: round(score, 6) for member, score in client.zrange(key, 0, -1, withscores=1)
        }
    return client.lrange(key, 0, -1) if kind == b"list" else client.get(key)


def _merge(found: dict[str, Any], family: str, held: Any) -> None:
    if isinstance(held, dict):
        found[family] = found.get(family, {}) | held
    else:
        assert family not in found
        found[family] = held
