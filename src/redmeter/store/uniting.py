"""Two replies to one command, of two stores, become one: by the command and the family of its key.

Counts add up, of two values of a gauge the newer one counts, histograms and moments merge, indexes
are united, messages put in order of time. What is kept by the hour is put together from all four
keys of both, since the hours may differ. Pure.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from redmeter.errors import StoreError
from redmeter.keys import HOUR, slice_start
from redmeter.kinds.counter import MAX_COUNT
from redmeter.kinds.hourly import hour_of
from redmeter.kinds.message import parse_entry
from redmeter.kinds.moments import Moments, held
from redmeter.kinds.packed import added_buckets, added_moments
from redmeter.kinds.statistics import merged
from redmeter.store.replies import Command, Reply, is_misplaced, pairs, scored

# --- Values --------------------------------------------------------------------------------


def _count(one: bytes, other: bytes) -> bytes:
    """Add counts; what is no number is left out."""
    try:
        return b"%d" % min(int(one) + int(other), MAX_COUNT)
    except ValueError:
        return other if not one.isdigit() else one


def _newer(one: bytes, other: bytes) -> bytes:
    """Return the value of a gauge whose time is the newer."""
    try:
        return max(one, other, key=lambda text: float(text.split(b" ")[1]))
    except (ValueError, IndexError):
        return one


def _seen(one: bytes, other: bytes) -> bytes:
    """Merge what is known of a pattern: FIRST LAST SAMPLE."""
    try:
        times = [[float(word) for word in text.split(b" ", 2)[:2]] for text in (one, other)]
        last = max((one, other), key=lambda text: float(text.split(b" ", 2)[1]))
        sample = last.split(b" ", 2)[2]
        first, newest = min(t[0] for t in times), max(t[1] for t in times)
        return f"{first:.6f} {newest:.6f} ".encode() + sample
    except (ValueError, IndexError):
        return one


_VALUES: dict[str, Callable[[bytes, bytes], bytes]] = {
    "count:": _count,
    "total:": _count,
    "gauge:": _newer,
    "hist:": added_buckets,
    "moments:": added_moments,
    "patterns:": _seen,
}


def _value(family: str, one: bytes | None, other: bytes | None) -> bytes | None:
    if one is None or other is None:
        return other if one is None else one
    return _VALUES[family](one, other)


# --- Replies -------------------------------------------------------------------------------


def united(family: str, command: Command, ours: Reply, theirs: Reply) -> Reply:
    """Make one reply of two."""
    if isinstance(ours, StoreError):
        return ours
    if isinstance(theirs, StoreError):
        return ours if is_misplaced(theirs) else theirs
    return MERGED[str(command[0])][family](family, ours, theirs)


Merge = Callable[[str, Any, Any], Any]


def _fields(family: str, ours: Reply, theirs: Reply) -> Reply:
    """HGETALL: field, value, …"""
    found = dict(pairs(ours))
    for name, value in pairs(theirs):
        found[name] = _value(family, found.get(name), value)  # type: ignore[assignment]
    return [part for one in found.items() for part in one]


def _values(family: str, ours: Reply, theirs: Reply) -> Reply:
    """HMGET: values in the order in which they were asked."""
    return [_value(family, one, other) for one, other in zip(ours, theirs, strict=True)]


def _added(_: str, ours: Reply, theirs: Reply) -> Reply:
    return ours + theirs


def _best(_: str, ours: Reply, theirs: Reply) -> Reply:
    """ZSCORE: of a member that is in one of them at least."""
    return max((one for one in (ours, theirs) if one is not None), key=float, default=None)


def _in_order(_: str, ours: Reply, theirs: Reply) -> Reply:
    """ZRANGEBYLEX: members."""
    return sorted({*ours, *theirs})


def _by_score(_: str, ours: Reply, theirs: Reply) -> Reply:
    """ZREVRANGE WITHSCORES: member, score, …, the highest first."""
    found = dict(scored(theirs))
    for member, score in scored(ours):
        found[member] = max(score, found.get(member, score))
    best = sorted(found.items(), key=lambda one: (one[1], one[0]), reverse=True)
    return [part for member, score in best for part in (member, repr(score).encode())]


def _marks(_: str, ours: Reply, theirs: Reply) -> Reply:
    """ZREVRANGEBYSCORE of marks: TIME LABEL, the newest first."""

    def when(member: bytes) -> tuple[float, bytes]:
        try:
            return float(member.partition(b" ")[0]), member
        except ValueError:
            return 0.0, member

    return sorted({*ours, *theirs}, key=when, reverse=True)


def _entries(_: str, ours: Reply, theirs: Reply) -> Reply:
    """LRANGE: messages, the newest first; one without a time right after the one before it."""
    timed = []
    for entries in (ours, theirs):
        known = float("-inf")
        for entry in reversed(entries):
            own, _text = parse_entry(entry)
            known = known if own is None else own
            timed.append((known, entry))
    timed.reverse()
    return [entry for _, entry in sorted(timed, key=lambda one: one[0], reverse=True)]


_SERIES = ("count:", "gauge:", "hist:", "moments:")
_INDEXES = ("known:", "gauges:", "hists:")

#: Command -> family -> how two replies become one.
MERGED: dict[str, dict[str, Merge]] = {
    "HGETALL": dict.fromkeys((*_SERIES, "patterns:"), _fields),
    "HMGET": dict.fromkeys((*_SERIES, "patterns:", "total:"), _values),
    "HGET": {"total:": lambda family, one, other: _value(family, one, other)},
    "ZSCORE": dict.fromkeys(_INDEXES, _best),
    "ZCARD": dict.fromkeys((*_INDEXES, "messages:"), _added),
    "ZLEXCOUNT": dict.fromkeys(_INDEXES, _added),
    "ZRANGEBYLEX": dict.fromkeys(_INDEXES, _in_order),
    "ZREVRANGE": {"messages:": _by_score, "common:": _by_score},
    "ZRANGE": {"stats:": _by_score},
    "GET": dict.fromkeys(("common:", "stats:"), lambda _, one, other: one or other),
    "LRANGE": {"recent:": _entries},
    "ZREVRANGEBYSCORE": {"marks:": _marks},
}


# --- Hours ---------------------------------------------------------------------------------

#: What the four keys of what is kept by the hour end in: this hour, which that is, the one before.
ROLES = ("", ":start", ":last", ":pstart")

#: Role -> reply.
Four = Mapping[str, Reply]


def role_of(key: str) -> str:
    """Return which of the four keys one is."""
    return next((role for role in ROLES[1:] if key.endswith(role)), "")


def hours_united(family: str, ours: Four, theirs: Four, now: float) -> Four:
    """Make four replies of eight.

    Args:
        now: Unix seconds.
    """
    if any(isinstance(reply, Exception) for four in (ours, theirs) for reply in four.values()):
        return ours
    found: dict[int, list[dict[bytes, float]]] = {}
    for four in (ours, theirs):
        begun = hour_of(four[":start"], now)
        for hour, reply in (
            (slice_start(now, HOUR) if begun is None else begun, four[""]),
            (hour_of(four[":pstart"], now), four[":last"]),
        ):
            if reply and hour is not None:
                found.setdefault(hour, []).append(dict(scored(reply)))
    newest = sorted(found, reverse=True)[:2]
    made: dict[str, Reply] = {"": [], ":start": None, ":last": [], ":pstart": None}
    for hour, (members, which) in zip(newest, ((0, 1), (2, 3)), strict=False):
        together = (_statistics if family == "stats:" else _frequencies)(found[hour])
        best = sorted(together.items(), key=lambda one: (one[1], one[0]), reverse=True)
        made[ROLES[members]] = [part for m, n in best for part in (m, repr(n).encode())]
        made[ROLES[which]] = b"%d" % hour
    return made


def _frequencies(some: Sequence[Mapping[bytes, float]]) -> dict[bytes, float]:
    found: dict[bytes, float] = {}
    for members in some:
        for member, score in members.items():
            found[member] = found.get(member, 0.0) + score
    return found


def _statistics(some: Sequence[Mapping[bytes, float]]) -> dict[bytes, float]:
    if len(some) == 1:
        return dict(some[0])
    found, total, sumsq = Moments(), 0.0, 0.0
    for each in some:
        members = {name.decode(errors="replace"): score for name, score in each.items()}
        found.merge(merged(members))
        total, sumsq = total + members.get("sum", 0.0), sumsq + members.get("sumsq", 0.0)
    told = {b"min": found.low, b"max": found.high, b"mean": found.mean, b"m2": found.m2}
    counts = {b"count": float(found.count), b"n": float(found.count)}
    return counts | told | {b"sum": held(total), b"sumsq": held(sumsq)}
