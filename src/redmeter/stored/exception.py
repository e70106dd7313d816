"""Exceptions: the stored groups, their counts, and the last traceback of each.

    exceptions:          sorted set, GROUP, scored with the time of its last exception
    exception:GROUP      hash, see FIELDS; of "(other)": exceptions of groups beyond the limit

GROUP is a hash of what its exceptions have in common (group_of()). Every process computes the same
group, without asking another one.

Counts by interval are texts, the newest interval first, as those of steps.py:

    "300"    "1784700300 3 0 1"    3 in the five minutes from 1784700300, 1 ten minutes before

Routes and releases are bounded lists, as JSON: `[["/buy", count, first, last], …]`. Beyond the
limit, those that were seen last stay, and the others are merged as "(other)".

Bound: MAX_GROUPS groups. Known groups keep counting. An exception of a new one counts in the coarse
group of its type and the application's innermost function, of which there are MAX_COARSE; beyond
those, in "(other)". No group is removed to make room.

Pure: no I/O.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from redmeter.errors import InvalidValue
from redmeter.stored.keys import OTHER, Keys, slice_start
from redmeter.stored.steps import StepCounts, parse_steps
from redmeter.types import Operation

#: How long a group is kept after its last exception, seconds: 90 days.
EXCEPTION_LIFE = 90 * 86400
#: Most groups of a store, and most coarse groups in addition.
MAX_GROUPS, MAX_COARSE = 1_000, 100

#: Interval width -> number of intervals that are kept, seconds: a day, 10 days and 90 days.
INTERVALS = {300: 288, 3600: 254, 86400: 90}
#: The width of the intervals in which exceptions wait.
FINEST = 300

#: Most routes and releases of a group.
MAX_ROUTES, MAX_RELEASES = 20, 10
#: Characters of the message and of the traceback, and bytes of a route or release.
MESSAGE_LIMIT, TRACEBACK_LIMIT, SHARE_BYTES = 300, 6_000, 120

#: Fields of a group that describe its newest exception, in the order of Details.
DETAILS = ("type", "message", "place", "log_place", "function", "traceback")


class Details(NamedTuple):
    """The newest exception of a group, redacted."""

    #: Module and qualified name of the type.
    kind: str
    message: str
    #: The innermost frame of the application, `pay.py:42 in charge`; "" without a traceback.
    place: str
    #: What log messages have in their pattern, `[PaymentFailed at pay.py:42 in charge]`.
    log_place: str
    #: Module and qualified name of the function of `place`, `shop.pay.Order.charge`.
    function: str
    #: Frames, messages and causes; "" if it was dropped for lack of memory.
    traceback: str

    @property
    def size(self) -> int:
        """Number of characters."""
        return sum(map(len, self))


class Share(NamedTuple):
    """How often the exceptions of a group came from one route, or from one release."""

    events: int
    #: Unix seconds.
    first: float
    last: float

    def merge(self, other: "Share") -> "Share":
        """Return the sum of both."""
        ends = min(self.first, other.first), max(self.last, other.last)
        return Share(self.events + other.events, *ends)


class Occurrences(NamedTuple):
    """Exceptions of one group within an interval."""

    events: int
    #: Unix seconds.
    first: float
    last: float
    #: None for OTHER, and for all intervals of a group but the newest.
    details: Details | None
    routes: Mapping[str, Share]
    releases: Mapping[str, Share]
    #: The group that has them where there is no room for theirs; "" for OTHER.
    coarse: str = ""

    def merge(self, other: "Occurrences") -> "Occurrences":
        """Return the sum of both, with the details of the newer one."""
        newer, older = (other, self) if other.last >= self.last else (self, other)
        return Occurrences(
            self.events + other.events,
            min(self.first, other.first),
            newer.last,
            newer.details or older.details,
            merge_shares(self.routes, other.routes, MAX_ROUTES),
            merge_shares(self.releases, other.releases, MAX_RELEASES),
            self.coarse or other.coarse,
        )


def merge_shares(
    some: Mapping[str, Share], others: Mapping[str, Share], most: int
) -> dict[str, Share]:
    """Merge routes, or releases; beyond `most` of them, those seen least recently are OTHER."""
    merged = dict(some)
    for name, share in others.items():
        merged[name] = share.merge(merged[name]) if name in merged else share
    named = sorted((name for name in merged if name != OTHER), key=lambda name: merged[name].last)
    for name in named[: max(0, len(named) - most)]:
        share = merged.pop(name)
        merged[OTHER] = share.merge(merged[OTHER]) if OTHER in merged else share
    return merged


def group_of(*parts: Iterable[str]) -> str:
    """Return the group of exceptions that have some texts in common: 16 hexadecimal digits.

    Args:
        parts: lists of texts. Those at the end that are empty change nothing.
    """
    text = "\n\n".join("\n".join(part) for part in parts).rstrip("\n")
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=8).hexdigest()


def counted_group(groups: Collection[str], group: str, coarse: str, most: int = MAX_GROUPS) -> str:
    """Return the group in which an exception counts, as the server decides it.

    Args:
        groups: those there are.
        group, coarse: that of the exception, and the one that has it if there is no room.
        most: groups, without coarse ones.
    """
    if group in groups or group == OTHER:
        return group
    if group != coarse and len(groups) < most:
        return group
    if coarse and (coarse in groups or len(groups) < most + MAX_COARSE):
        return coarse
    return OTHER


def is_group(text: str) -> bool:
    """Return whether a text is a group: what group_of() returns."""
    return len(text) == 16 and not text.strip("0123456789abcdef")


def check_group(group: object) -> str:
    """Check the group that a caller gave, and return it.

    Raises:
        InvalidValue: it is none.
    """
    if not isinstance(group, str) or not is_group(group):
        raise InvalidValue(group, "the ID of a group of exceptions is 16 hexadecimal digits")
    return group


def exception_operations(
    keys: Keys, found: Mapping[int, Mapping[str, Occurrences]], width: int
) -> tuple[Operation, ...]:
    """Turn exceptions into the operations of one batch.

    Args:
        found: start of an interval -> group -> exceptions.
        width: of the intervals, seconds; 0: only the totals are counted.
    """
    precisions = [(p, kept) for p, kept in INTERVALS.items() if width and p % width == 0]
    numbers = (
        EXCEPTION_LIFE,
        MAX_GROUPS,
        MAX_COARSE,
        MAX_ROUTES,
        MAX_RELEASES,
        len(keys.key("exception").encode()),
    )
    args = [*map(str, numbers), str(len(precisions))]
    for pair in precisions:
        args += map(str, pair)
    newest = {group: start for start in sorted(found) for group in found[start]}
    named = [keys.exceptions, keys.key("exception", OTHER)]
    losses = [("", 0), ("", 0)]
    for start in sorted(found):
        for group, one in found[start].items():
            named.append(keys.key("exception", group))
            losses.append(("exceptions", one.events))
            details = one.details if newest[group] == start else None
            args += (group, one.coarse, str(start), str(one.events))
            args += (f"{one.first:.3f}", f"{one.last:.3f}")
            args += details or [""] * len(DETAILS)
            for shares in (one.routes, one.releases):
                args.append(str(len(shares)))
                for name, share in shares.items():
                    args += (name, str(share.events))
                    args += (f"{share.first:.0f}", f"{share.last:.0f}")
    if len(named) == 2:
        return ()
    return (Operation("exception", tuple(named), tuple(args), lambda: losses),)


def counts_between(text: bytes | None, width: int, start: int, end: int) -> list[int]:
    """Return the counts of the intervals that begin within [start, end), the oldest first.

    Args:
        text: as it is stored; None and other forms mean that nothing was counted.
        start, end: multiples of the width.
    """
    steps: StepCounts | None = parse_steps(text)
    counts = [0] * max(0, (end - start) // width)
    if steps is not None:
        for number, events in enumerate(steps.counts):
            at = (steps.newest - number * width - start) // width
            if 0 <= at < len(counts):
                counts[at] += events
    return counts


def oldest_kept(width: int, now: float) -> int:
    """Return the start of the oldest interval that is kept."""
    return slice_start(now, width) - (INTERVALS[width] - 1) * width
