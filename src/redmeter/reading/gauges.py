"""Samples of gauges: what was measured last within each slice, and gaps where nothing was.

Only the newest samples of the retention count, as for counters; see series.py.
"""

from collections.abc import Sequence

from redmeter.format import gauge
from redmeter.reading.series import Grid, read_hashes
from redmeter.store import Store
from redmeter.store.replies import Reply, pairs
from redmeter.types import Series


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
    return read_hashes(store, store.keys.gauge, names, precision, laid, since=since, until=until)[1]


def laid(grid: Grid, name: str, reply: Reply) -> Series[float | None]:
    """Read a gauge's hash, from its oldest sample that counts to the end."""
    texts, starts = dict(pairs(reply)), grid.starts
    values = [value_of(texts.get(b"%d" % start), start, starts.step) for start in starts]
    oldest = next((at for at, value in enumerate(values) if value is not None), len(values))
    return Series(
        name,
        starts.step,
        starts.start + oldest * starts.step,
        tuple(values[oldest:]),
        partial=oldest < len(values) and grid.running,
    )


def value_of(text: bytes | None, start: int, precision: int) -> float | None:
    """Read "VALUE TIME"; None where it is something else: see format/gauge.py."""
    found = None if text is None else gauge.parse(text, start, precision)
    return found and found[1]
