"""Which series, or which values of a label, happen most often."""

from collections.abc import Iterable

from redmeter.errors import InvalidName, LimitExceeded
from redmeter.keys import slice_start
from redmeter.model import Ranked
from redmeter.names import parse_name
from redmeter.reading.catalogue import candidates
from redmeter.store import Store
from redmeter.store.link import Command, raised

#: Most rows of a ranking.
MAX_ROWS = 1_000
#: Most series that are counted for one ranking.
MAX_CANDIDATES = 20_000


def rank(
    store: Store,
    name: str,
    precision: int,
    *,
    by: str | None = None,
    slices: int = 5,
    limit: int = 10,
) -> list[Ranked]:
    """Rank by how often it happened within the newest slices, the running one included.

    Two round trips: which series there are, and their newest slices.

    Args:
        name: with `by`, a name without labels, all of whose label sets are added up by that
            label; without, a pattern (see read_names): each series that matches is a row.
        precision: slice width, seconds.
        by: a label.
        slices: how many of the newest slices, at most what the store keeps.
        limit: how many rows, 1 to MAX_ROWS.

    Returns:
        The highest counts first, equal ones by name; nothing that did not happen at all.

    Raises:
        UnknownPrecision: the store does not keep it.
        LimitExceeded: too many rows, slices or candidates.
        StoreError: the server cannot be reached or refuses.
    """
    _check_rows(limit)
    if by:
        view, names = candidates(store, precision, base=name)
    else:
        view, names = candidates(store, precision, pattern=name)
    check_limits(limit, slices, view.retention[precision])
    if len(names) > MAX_CANDIDATES:
        raise LimitExceeded("series", len(names), MAX_CANDIDATES, "narrow the pattern down")
    newest = slice_start(view.now, precision)
    starts = range(newest, newest - slices * precision, -precision)
    # Both spellings of a slice start; the second is that of `now // prec * prec`.
    fields = [spelling for start in starts for spelling in (str(start), f"{start}.0")]
    commands: list[Command] = [
        ("HMGET", store.keys.count(precision, series), *fields) for series in names
    ]
    counts: dict[str | None, int] = {}
    for series, reply in zip(names, store.ask(commands) if commands else [], strict=True):
        count = sum(map(_whole, raised(reply)))
        if count > 0:
            key = label_of(series, by) if by else series
            counts[key] = counts.get(key, 0) + count
    return ranked(counts.items(), limit)


def check_limits(limit: int, slices: int, kept: int) -> None:
    """Check how many rows and slices are asked for.

    Raises:
        LimitExceeded: none, or too many.
    """
    _check_rows(limit)
    if not 1 <= slices <= kept:
        raise LimitExceeded("slices", slices, kept, "ask for 1 or more, up to what is kept")


def _check_rows(limit: int) -> None:
    if not 1 <= limit <= MAX_ROWS:
        raise LimitExceeded("rows", limit, MAX_ROWS, "ask for 1 or more, up to the limit")


def _whole(value: bytes | None) -> int:
    try:
        return int(value or 0)
    except ValueError:
        return 0  # somebody else's: see slices_of()


def label_of(series: str, by: str) -> str | None:
    """Return the value of a label, None where the series has no such label."""
    try:
        return parse_name(series).label(by)
    except InvalidName:
        return None  # written by someone else, in a form that has no labels


def ranked(counts: Iterable[tuple[str | None, int]], limit: int) -> list[Ranked]:
    """Return the rows of a ranking, the highest counts first, equal ones by name."""
    rows = sorted(counts, key=lambda row: (-row[1], row[0] or ""))
    whole = sum(count for _, count in rows)
    return [Ranked(key, count, count / whole) for key, count in rows[:limit]]
