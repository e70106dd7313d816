"""Exceptions of a store: the groups of a window, and one group with its traceback."""

from redmeter.format.exception import MAX_GROUPS, OTHER, counts_between
from redmeter.keys import HOUR, Keys
from redmeter.reading.error_groups import (
    FIELDS,
    ErrorGroup,
    ErrorGroups,
    ErrorQuery,
    ErrorWindow,
    group_in,
    groups_in,
    parse_group,
    window_of,
)
from redmeter.store import Store
from redmeter.store.query import Query, run
from redmeter.store.replies import Command, is_misplaced, raised


def exceptions(keys: Keys, wanted: ErrorQuery, now: float) -> Query[ErrorGroups]:
    """Read the groups with exceptions in a window, in two round trips.

    Args:
        now: about the present; the window follows the server's clock.

    Raises:
        StoreError: the server is unreachable or refuses.
    """
    # The index is read from a little earlier: this machine's clock may differ from the server's.
    since = window_of(wanted.period, now).start - HOUR
    index: Command = (
        *("ZREVRANGEBYSCORE", keys.exceptions, "+inf", str(since)),
        *("LIMIT", "0", str(MAX_GROUPS)),
    )
    view, (members,) = yield [index]
    window = window_of(wanted.period, view.now)
    groups = [member.decode(errors="replace") for member in raised(members)]
    rest = ("HMGET", keys.key("exception", OTHER), str(window.precision), "evicted")
    _, (others, *replies) = yield [rest, *(_fields(keys, group, window) for group in groups)]
    stored = [
        parse_group(group, raised(reply), window)
        for group, reply in zip(groups, replies, strict=True)
        if not is_misplaced(reply)
    ]
    text, evicted = (None, None) if is_misplaced(others) else raised(others)
    return groups_in(
        [one for one in stored if one is not None],
        window,
        wanted,
        other=counts_between(text, window.precision, window.start, window.end),
        evicted=int(evicted) if evicted is not None and evicted.isdigit() else 0,
    )


def exception(
    keys: Keys, group: str, wanted: ErrorQuery, now: float
) -> Query[tuple[ErrorWindow, ErrorGroup | None]]:
    """Read one group with its traceback, and the window; None if it is not kept.

    Raises:
        StoreError: see exceptions().
    """
    guess = window_of(wanted.period, now)
    view, (reply,) = yield [_fields(keys, group, guess, "traceback")]
    window = window_of(wanted.period._replace(precision=guess.precision), view.now)
    stored = parse_group(group, raised(reply), window)
    return window, None if stored is None else group_in(stored, window)


def _fields(keys: Keys, group: str, window: ErrorWindow, *more: str) -> Command:
    return ("HMGET", keys.key("exception", group), *FIELDS, str(window.precision), *more)


def read_exceptions(store: Store, wanted: ErrorQuery) -> ErrorGroups:
    """Read the groups with exceptions in a window: see exceptions()."""
    return run(store, lambda _: exceptions(store.keys, wanted, store.clock.wall()))[1]


def read_exception(store: Store, group: str, wanted: ErrorQuery) -> ErrorGroup | None:
    """Read one group with its traceback: see exception()."""
    return run(store, lambda _: exception(store.keys, group, wanted, store.clock.wall()))[1][1]
