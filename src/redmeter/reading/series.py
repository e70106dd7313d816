"""Samples and grand totals of counters.

Only the newest samples of the retention count, whatever else lies in a hash: older slices that
nobody has trimmed yet, or slices of a clock that runs ahead. The newest slice is the one that is
running now by the server's clock.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import TypeVar

from redmeter.errors import LimitExceeded, StoreError, StoreRefused
from redmeter.format import counter
from redmeter.format.counter import MAX_COUNT, count_of
from redmeter.keys import Retention, slice_start
from redmeter.reading.foreign_keys import readable, warn_of
from redmeter.store import Store, View, indexes
from redmeter.store.query import ParsedRead
from redmeter.store.replies import Reply, mapped, pairs, raised
from redmeter.types import Series

T = TypeVar("T")

#: Most series that one request may ask for.
MAX_SERIES = 5_000


def read_series(
    store: Store,
    names: Sequence[str],
    precision: int,
    *,
    since: float | None = None,
    until: float | None = None,
    last: float | None = None,
) -> dict[str, Series[int]]:
    """Read the kept samples of many counters in one round trip.

    Args:
        names: in their stored spelling.
        precision: slice width, seconds.
        since, until, last: see Period.

    Returns:
        A series for every name; one without samples where nothing is kept. Names under whose keys
        another program keeps something else are left out: see foreign_keys.py.

    Raises:
        UnknownPrecision: the store does not keep it; the error lists those that it keeps.
        LimitExceeded: over MAX_SERIES names.
        StoreError: the server cannot be reached or refuses.
    """
    return read_hashes(
        store,
        store.keys.count,
        names,
        precision,
        Grid.series,
        since=since,
        until=until,
        seconds=last,
    )[1]


def read_hashes(
    store: Store,
    key: Callable[[int, str], str],
    names: Sequence[str],
    precision: int,
    lay: Callable[["Grid", str, Reply], T],
    *,
    since: float | None,
    until: float | None,
    seconds: float | None = None,
) -> tuple["Grid", dict[str, T]]:
    """Read the hashes of many series in one round trip, and lay each on a grid.

    Args:
        key: makes the key of a precision and a name.
        lay: makes a series of a name and a hash.

    Returns:
        The grid, and a series for each name that can be read.

    Raises:
        UnknownPrecision, LimitExceeded, StoreError: see read_series().
    """
    check_number(names)
    # Whether the precision is kept, the answer tells; until then it must only be a number.
    width = precision if isinstance(precision, int) else 0
    grids: dict[float, Grid] = {}

    def grid_of(view: View) -> Grid:
        grid = grids.get(view.now)
        if grid is None:
            first, last = window(view.retention, precision, view.now, since, until, seconds)
            grid = grids[view.now] = Grid(precision, first, last, view.now)
        return grid

    def read_of(name: str) -> ParsedRead:
        def parse(view: View, reply: Reply) -> T | StoreError:
            return reply if isinstance(reply, StoreError) else lay(grid_of(view), name, reply)

        return ParsedRead(("HGETALL", key(width, name)), parse)

    view, replies = store.read([read_of(name) for name in names])
    found = readable({name: [one] for name, one in zip(names, replies, strict=True)})
    return grid_of(view), {name: one for name, (one,) in found.items()}


def check_number(names: Sequence[str]) -> None:
    """Check how many series are asked for at once.

    Raises:
        LimitExceeded: over MAX_SERIES.
    """
    if len(names) > MAX_SERIES:
        raise LimitExceeded("series", len(names), MAX_SERIES, "ask for fewer at a time")


def read_totals(store: Store, names: Sequence[str]) -> dict[str, int]:
    """Read everything ever counted of each name; 0 for a name that never was.

    Raises:
        LimitExceeded: over MAX_SERIES names.
        StoreError: the server cannot be reached or refuses.
    """
    found = stored_totals(store, names)
    return {name: found.get(name, 0) for name in names}


def stored_totals(store: Store, names: Sequence[str]) -> dict[str, int]:
    """Read the same of those names that have a grand total: what other programs count has none.

    Left out is one too in whose place there is what is no number, another program's, where others
    can be read: see foreign_keys.py.

    Raises:
        LimitExceeded, StoreError: as above.
    """
    if len(names) > MAX_SERIES:
        raise LimitExceeded("totals", len(names), MAX_SERIES, "ask for fewer at a time")
    if not names:
        return {}
    _, (reply,) = store.read([indexes.totals(store.keys, names)])
    there = {name: value for name, value in zip(names, raised(reply), strict=True) if value}
    try:
        return {name: count_of(value) for name, value in there.items()}
    except ValueError:
        return counts_among(there, store.keys.total, of=len(names))


def counts_among(there: Mapping[str, bytes], key: str, *, of: int) -> dict[str, int]:
    """Read counts, and leave out with a warning those that are not numbers.

    Args:
        there: the values by name.
        key: where they are stored.
        of: how many names were read; without those in `there`, the others have no value.

    Raises:
        StoreRefused: none of these is a number, or is missing.
    """
    counts, problems = {}, []
    for name, value in there.items():
        try:
            counts[name] = count_of(value)
        except ValueError:
            told = "another program has put there what is no number"
            problems.append(StoreRefused("not-a-number", told, f"{key} {name}"))
    if problems and len(problems) == of:
        raise problems[0]
    warn_of(problems)
    return counts


def window(
    retention: Retention,
    precision: int,
    now: float,
    since: float | None = None,
    until: float | None = None,
    seconds: float | None = None,
) -> tuple[int, int]:
    """Return the starts of the oldest and the newest interval of a window.

    Args:
        since, until: see Period.
        seconds: `last` of Period.

    Raises:
        UnknownPrecision: the precision is not kept.
    """
    retention.check(precision)
    first, last = retention.oldest(precision, now), slice_start(now, precision)
    if seconds is not None:
        first = max(first, last - (max(1, ceil(seconds / precision)) - 1) * precision)
    if since is not None:
        first = max(first, slice_start(since, precision))
    if until is not None:
        last = min(last, slice_start(until, precision))
    return first, last


def slices_of(reply: Reply) -> dict[int, int]:
    """Read a counter's hash: slice start -> count. See format/counter.py.

    Raises:
        StoreError: the reply is an error, e.g. WRONGTYPE.
    """
    return counter.parse(pairs(raised(reply)))


class Grid:
    """The slices from the oldest to the newest that count, on which samples are laid.

    Args:
        precision: slice width, seconds.
        first, last: starts of the oldest and the newest slice that count.
        now: Unix seconds, by the server's clock.
    """

    def __init__(self, precision: int, first: int, last: int, now: float) -> None:
        self._precision, self._first = precision, first
        #: When it is, and where the slices start that count.
        self.now = now
        self.starts = range(first, last + 1, precision)
        # As they are spelled in a hash, so that most replies need no number made of a field.
        self._fields = [b"%d" % start for start in self.starts]
        #: Whether the newest of them is still running.
        self.running = last + precision > now

    def series(self, name: str, reply: Reply) -> Series[int]:
        """Lay a counter's hash on the grid, from its oldest sample that counts to the end.

        Raises:
            StoreError: the reply is an error, e.g. WRONGTYPE.
        """
        raised(reply)
        counts: list[bytes | None]
        if isinstance(reply, list) and reply[::2] == self._fields:
            counts = reply[1::2]  # in order of time and without gaps, as a busy counter's are
            number = len(counts)
        else:
            found = mapped(reply)
            counts = list(map(found.get, self._fields))
            number = len(found)
        if len(counts) - counts.count(None) == number:
            with contextlib.suppress(ValueError):  # a value that is no number
                return self._laid(name, counts)
        # Other slices too, or other spellings: sort it out number by number.
        told = {start: b"%d" % count for start, count in slices_of(reply).items()}
        return self._laid(name, list(map(told.get, self.starts)))

    def _laid(self, name: str, counts: Sequence[bytes | None]) -> Series[int]:
        oldest = next((at for at, count in enumerate(counts) if count is not None), len(counts))
        start = self._first + oldest * self._precision
        values = tuple(map(count_of, counts[oldest:]))
        return Series(name, self._precision, start, values, partial=bool(values) and self.running)


def whole(reply: Reply) -> int:
    """Read a number; 0 where there is none, or somebody else's text."""
    try:
        number = int(reply or 0)
    except (TypeError, ValueError):
        return 0
    return number if -MAX_COUNT <= number <= MAX_COUNT else 0
