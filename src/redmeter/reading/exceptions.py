"""Groups of exceptions: their values, the window, the order; and how a store is read."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from redmeter.results.exceptions import ExceptionShare, ExceptionSummaries, ExceptionSummary
from redmeter.results.series import Series
from redmeter.store import Store
from redmeter.store.query import Query, run_query
from redmeter.store.servers.replies import Command, is_misplaced, raised
from redmeter.stored.exception import INTERVALS, MAX_COARSE, MAX_GROUPS, counts_between, oldest_kept
from redmeter.stored.keys import HOUR, OTHER, Keys, slice_end, slice_start
from redmeter.types import EXCEPTION_GROUPS, Window

#: The window that is read by default, seconds.
_DEFAULT_WINDOW = 86400
#: Groups that are returned by default, and at most.
DEFAULT_LIMIT, MAX_LIMIT = EXCEPTION_GROUPS, MAX_GROUPS + MAX_COARSE
#: Orders of groups: most frequent in the window, last seen, or first seen, the newest first.
EXCEPTION_ORDERS = ("count", "last", "first")

#: Fields of a stored group that a list shows; the counts follow.
_FIELDS = (
    *("type", "message", "place", "log_place", "function"),
    *("count", "first", "last", "routes", "releases", "coarse"),
)


class ExceptionQuery(NamedTuple):
    """Which groups a query reads."""

    #: Its precision is 0 for the finest that reaches back to the start of the window.
    window: Window = Window(0)
    #: Only groups that were seen on this route, ever.
    route: str | None = None
    order: str = "count"
    limit: int = DEFAULT_LIMIT


class ExceptionWindow(NamedTuple):
    """The intervals that are read."""

    precision: int
    start: int
    end: int
    kept_since: int
    #: Whether the last interval is the current one.
    running: bool


class StoredGroup(NamedTuple):
    """A group as it is stored, in a store or in memory."""

    group: str
    #: The fields of _FIELDS up to `function`.
    texts: Sequence[str]
    total: int
    first: float
    last: float
    routes: tuple[ExceptionShare, ...]
    releases: tuple[ExceptionShare, ...]
    #: Counts of the intervals of the window.
    counts: Sequence[int]
    traceback: str = ""
    coarse: bool = False


def exception_window(window: Window, now: float) -> ExceptionWindow:
    """Return the intervals of a window, as far as they are kept."""
    until = now if window.until is None else min(window.until, now)
    since = window.since
    if since is None:
        since = until - (_DEFAULT_WINDOW if window.last is None else window.last)
    reaching = (width for width in INTERVALS if oldest_kept(width, now) <= since)
    precision = window.precision or next(reaching, max(INTERVALS))
    kept, end = oldest_kept(precision, now), slice_start(now, precision) + precision
    if window.until is not None:
        end = min(end, slice_end(window.until, precision))
    start = end if since > until else min(max(slice_start(since, precision), kept), end)
    return ExceptionWindow(precision, start, end, kept, start < end and end > now)


def parse_group(
    group: str, fields: Sequence[bytes | None], window: ExceptionWindow
) -> StoredGroup | None:
    """Parse a stored group; None if it is missing or of another form.

    Args:
        fields: those of _FIELDS, the counts, and possibly the traceback.
    """
    texts = [(field or b"").decode(errors="replace") for field in fields]
    try:
        total, first, last = int(texts[5]), float(texts[6]), float(texts[7])
    except ValueError:
        return None
    return StoredGroup(
        group,
        texts[:5],
        total,
        first,
        last,
        tuple(sorted(_shares(texts[8]), key=lambda share: -share.count)),
        tuple(sorted(_shares(texts[9]), key=lambda share: (share.name == OTHER, -share.last))),
        counts_between(fields[11], window.precision, window.start, window.end),
        texts[12] if len(texts) > 12 else "",
        texts[10] == "1",
    )


def _shares(text: str) -> list[ExceptionShare]:
    try:
        return [
            ExceptionShare(str(name), int(count), float(first), float(last))
            for name, count, first, last in json.loads(text or "[]")
        ]
    except (ValueError, TypeError):
        return []


def group_in(stored: StoredGroup, window: ExceptionWindow) -> ExceptionSummary:
    """Return a group as it is within a window."""
    kind, message, place, log_place, function = stored.texts
    return ExceptionSummary(
        stored.group,
        kind,
        message,
        place,
        function,
        log_place,
        sum(stored.counts),
        stored.total,
        stored.first,
        stored.last,
        window.start <= stored.first < window.end,
        Series(
            stored.group,
            window.precision,
            window.start,
            tuple(stored.counts),
            partial=window.running,
        ),
        stored.routes,
        stored.releases,
        stored.traceback,
        stored.coarse,
    )


def groups_in(
    stored: Iterable[StoredGroup],
    window: ExceptionWindow,
    wanted: ExceptionQuery,
    *,
    other: Sequence[int] = (),
    evicted: int = 0,
) -> ExceptionSummaries:
    """Return the groups with exceptions in a window, in the order that is asked for."""
    groups = [group_in(one, window) for one in stored if sum(one.counts)]
    if wanted.route is not None:
        groups = [one for one in groups if any(s.name == wanted.route for s in one.routes)]
    orders = {
        "count": lambda one: (-one.count, -one.last, one.id),
        "last": lambda one: (-one.last, one.id),
        "first": lambda one: (-one.first, one.id),
    }
    groups.sort(key=orders[wanted.order])
    return ExceptionSummaries(
        window.precision,
        window.start,
        window.end,
        window.kept_since,
        sum(one.count for one in groups),
        len(groups),
        sum(one.is_new for one in groups),
        sum(other) if wanted.route is None else 0,
        sum(one.count for one in groups if one.coarse),
        evicted,
        tuple(groups[: wanted.limit]),
    )


def shares_of(shares: Mapping[str, tuple[int, float, float]]) -> tuple[ExceptionShare, ...]:
    """Return shares that are in memory, the last seen first."""
    made = [ExceptionShare(name, *share) for name, share in shares.items()]
    return tuple(sorted(made, key=lambda share: (share.name == OTHER, -share.last)))


# --- Reading --------------------------------------------------------------------------------


def exceptions(keys: Keys, wanted: ExceptionQuery, now: float) -> Query[ExceptionSummaries]:
    """Read the groups with exceptions in a window, in two round trips.

    Args:
        now: about the present; the window follows the server's clock.

    Raises:
        StoreError: the server is unreachable or refuses.
    """
    # The index is read from a little earlier: this machine's clock may differ from the server's.
    since = exception_window(wanted.window, now).start - HOUR
    index: Command = (
        *("ZREVRANGEBYSCORE", keys.exceptions, "+inf", str(since)),
        *("LIMIT", "0", str(MAX_LIMIT)),
    )
    view, (members,) = yield [index]
    window = exception_window(wanted.window, view.now)
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
    keys: Keys, group: str, wanted: ExceptionQuery, now: float
) -> Query[tuple[ExceptionWindow, ExceptionSummary | None]]:
    """Read one group with its traceback, and the window; None if it is not kept.

    Raises:
        StoreError: see exceptions().
    """
    guess = exception_window(wanted.window, now)
    view, (reply,) = yield [_fields(keys, group, guess, "traceback")]
    window = exception_window(wanted.window._replace(precision=guess.precision), view.now)
    stored = parse_group(group, raised(reply), window)
    return window, None if stored is None else group_in(stored, window)


def _fields(keys: Keys, group: str, window: ExceptionWindow, *more: str) -> Command:
    return ("HMGET", keys.key("exception", group), *_FIELDS, str(window.precision), *more)


def read_exceptions(store: Store, wanted: ExceptionQuery) -> ExceptionSummaries:
    """Read the groups with exceptions in a window: see exceptions()."""
    return run_query(store, lambda _: exceptions(store.keys, wanted, store.clock.wall()))[1]


def read_exception(store: Store, group: str, wanted: ExceptionQuery) -> ExceptionSummary | None:
    """Read one group with its traceback: see exception()."""
    return run_query(store, lambda _: exception(store.keys, group, wanted, store.clock.wall()))[1][
        1
    ]
