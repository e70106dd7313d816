"""Samples of gauges: what was measured last within each slice, and gaps where nothing was.

Only the newest samples of the retention count, as for counters; see series.py.
"""

import math
from collections.abc import Sequence

from redmeter.model import Series
from redmeter.reading.series import read_hashes
from redmeter.store import Store
from redmeter.store.link import Reply, pairs


def read_gauges(
    store: Store,
    names: Sequence[str],
    precision: int,
    *,
    since: float | None = None,
    until: float | None = None,
) -> dict[str, Series[float | None]]:
    """Read the kept samples of many gauges in one round trip.

    Args:
        names: in their stored spelling.
        precision: slice width, seconds.
        since, until: leave out slices that end before or start after, Unix seconds.

    Returns:
        A series for every name, from its oldest sample to the newest slice, None where nothing
        was measured; one without samples where nothing is kept. See read_series() for what is
        left out.

    Raises:
        UnknownPrecision: the store does not keep it; the error lists those that it keeps.
        LimitExceeded: over MAX_SERIES names.
        StoreError: the server cannot be reached or refuses.
    """
    now, first, last, replies = read_hashes(
        store, store.keys.gauge, names, precision, since=since, until=until
    )
    return {n: laid(n, reply, precision, first, last, now) for n, reply in replies.items()}


def laid(
    name: str, reply: Reply, precision: int, first: int, last: int, now: float
) -> Series[float | None]:
    """Read a gauge's hash, from its oldest sample that counts to the end.

    Args:
        first, last: starts of the oldest and the newest slice that count.
        now: Unix seconds, by the server's clock.
    """
    texts, starts = dict(pairs(reply)), range(first, last + 1, precision)
    values = [value_of(texts.get(b"%d" % start), start, precision) for start in starts]
    oldest = next((at for at, value in enumerate(values) if value is not None), len(values))
    return Series(
        name,
        precision,
        first + oldest * precision,
        tuple(values[oldest:]),
        partial=oldest < len(values) and last + precision > now,
    )


def value_of(text: bytes | None, start: int, precision: int) -> float | None:
    """Read "VALUE TIME"; None where it is something else, or of a time outside of its slice.

    The script that writes takes the same for nothing: see newer() in lua/apply.lua.
    """
    if text is None:
        return None
    try:
        value, time = map(float, text.split(b" "))
    except ValueError:
        return None
    return value if math.isfinite(value) and start <= time < start + precision else None
