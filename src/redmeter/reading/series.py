"""Samples and grand totals of counters.

Only the newest samples of the retention count, whatever else lies in a hash: older slices that
nobody has trimmed yet, or slices of a clock that runs ahead. The newest slice is the one that is
running now by the server's clock.
"""

from collections.abc import Mapping, Sequence

from redmeter.errors import LimitExceeded
from redmeter.keys import Retention, slice_start
from redmeter.model import Series
from redmeter.store import Store
from redmeter.store.link import Command, Reply, pairs, raised

#: Most series that one request may ask for.
MAX_SERIES = 5_000


def read_series(
    store: Store,
    names: Sequence[str],
    precision: int,
    *,
    since: float | None = None,
    until: float | None = None,
) -> dict[str, Series]:
    """Read the kept samples of many counters in one round trip.

    Args:
        names: in their stored spelling.
        precision: slice width, seconds.
        since, until: leave out slices that end before or start after, Unix seconds.

    Returns:
        A series for every name; one without samples where nothing is kept.

    Raises:
        UnknownPrecision: the store does not keep it; the error lists those that it keeps.
        LimitExceeded: over MAX_SERIES names.
        StoreError: the server cannot be reached or refuses.
    """
    if len(names) > MAX_SERIES:
        raise LimitExceeded("series", len(names), MAX_SERIES, "ask for fewer at a time")
    # Whether the precision is kept, the answer tells; until then it must only be a number.
    width = precision if isinstance(precision, int) else 0
    commands: list[Command] = [("HGETALL", store.keys.count(width, name)) for name in names]
    view, replies = store.read(commands)
    first, last = window(view.retention, precision, view.now, since, until)
    return {
        name: make_series(name, precision, slices_of(reply), first, last, view.now)
        for name, reply in zip(names, replies, strict=True)
    }


def read_totals(store: Store, names: Sequence[str]) -> dict[str, int]:
    """Read everything ever counted of each name; 0 for a name that never was.

    Raises:
        LimitExceeded: over MAX_SERIES names.
        StoreError: the server cannot be reached or refuses.
    """
    if len(names) > MAX_SERIES:
        raise LimitExceeded("totals", len(names), MAX_SERIES, "ask for fewer at a time")
    if not names:
        return {}
    _, (reply,) = store.read([("HMGET", store.keys.total, *names)])
    return {name: int(value or 0) for name, value in zip(names, raised(reply), strict=True)}


def window(
    retention: Retention,
    precision: int,
    now: float,
    since: float | None = None,
    until: float | None = None,
) -> tuple[int, int]:
    """Return the starts of the oldest and the newest slice that count.

    Raises:
        UnknownPrecision: the precision is not kept.
    """
    retention.check(precision)
    first, last = retention.oldest(precision, now), slice_start(now, precision)
    if since is not None:
        first = max(first, slice_start(since, precision))
    if until is not None:
        last = min(last, slice_start(until, precision))
    return first, last


def slices_of(reply: Reply) -> dict[int, int]:
    """Read a counter's hash: slice start -> count.

    A start written as a float (`1585900000.0`, as `now // prec * prec` makes it) is the same
    slice, and added to it. Fields that are no numbers belong to somebody else.

    Raises:
        StoreError: the reply is an error, e.g. WRONGTYPE.
    """
    fields = pairs(raised(reply))
    try:
        slices = {int(start): int(count) for start, count in fields}
        if len(slices) == len(fields):
            return slices
    except ValueError:
        pass  # some field is no whole number: one by one
    slices = {}
    for start_text, count_text in fields:
        try:
            start, count = int(float(start_text)), int(count_text)
        except (ValueError, OverflowError):
            continue
        slices[start] = slices.get(start, 0) + count
    return slices


def make_series(
    name: str, precision: int, slices: Mapping[int, int], first: int, last: int, now: float
) -> Series:
    """Lay slices on a grid from the oldest sample within the window to its end.

    Args:
        slices: slice start -> count, in any order.
        first, last: starts of the oldest and the newest slice that count.
        now: Unix seconds, by the server's clock.
    """
    oldest = min((start for start in slices if first <= start <= last), default=None)
    if oldest is None:
        return Series(name, precision, last, (), partial=False)
    # A hash written at another grid (a precision that is not ours) would fall between.
    oldest = slice_start(oldest, precision)
    get = slices.get
    values = tuple([get(start, 0) for start in range(oldest, last + 1, precision)])
    return Series(name, precision, oldest, values, partial=last + precision > now)
