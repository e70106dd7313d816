"""The functions of "Redis in Action", chapter 5, under their own names and signatures.

They take a redis-py connection that the caller owns, decode_responses on or off, and work on the
listings' own keys (`known:`, `count:PRECISION:NAME`, no prefix), beside programs that still use
the listings. Unlike those, an update is written once however often a lost reply makes it be
sent again.

    from redmeter import book
    book.PRECISION = [1, 60, 3600]       # may be set; read at each call
    book.update_counter(conn, "hits")
    book.get_counter(conn, "hits", 60)   # [(1585900020, 1)]
"""

import time
import weakref
from collections.abc import Sequence
from functools import lru_cache

import redis

from redmeter import cleaning
from redmeter.errors import InvalidSetting, shown
from redmeter.keys import MAX_SAMPLES, Kept, Retention, check_time, slice_start
from redmeter.kinds import counter
from redmeter.names import check_text
from redmeter.reading.series import slices_of
from redmeter.recording.direct import check_written
from redmeter.store import Store
from redmeter.store.link import Link
from redmeter.store.opening import check_client, location_of

#: Widths of the slices, seconds.
PRECISION: Sequence[int] = [1, 5, 60, 300, 3600, 18000, 86400]
#: How many samples of each precision are left: by update_counter() at the present time, for up to
#: 254 of them, and by clean_counters().
SAMPLE_COUNT = 120
#: Set to True, this ends clean_counters() within a second.
QUIT = False

#: How long an update is tried, seconds.
_TIMEOUT = 2.0

_stores: "weakref.WeakKeyDictionary[redis.Redis, Store]" = weakref.WeakKeyDictionary()


def update_counter(
    conn: "redis.Redis", name: str, count: int = 1, now: float | None = None
) -> None:
    """Add to a counter at every precision of PRECISION.

    Args:
        conn: a redis-py client.
        name: what is counted; 1 to 200 bytes without control characters, stored as it is.
        count: how many, a whole number.
        now: when, Unix seconds, however long ago; the present, if not given (or 0).

    Raises:
        InvalidName, InvalidValue, InvalidSetting: an argument, or PRECISION or SAMPLE_COUNT,
            cannot be used.
        TypeError: the count is not a whole number.
        StoreError: the server cannot be reached, or refuses.
    """
    name = check_text(name)
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"count is a whole number, not {type(count).__name__}")
    if count < 0:
        counter.check_amount(-count)
    else:
        counter.check_amount(count)
    second = slice_start(check_time(now) if now else time.time(), 1)
    store = _store(conn)
    counts = {name: {second: count}}
    outcome = store.write(
        lambda kept: counter.operations(store.keys, kept.series, counts, totals=False),
        kept=_kept(tuple(PRECISION), SAMPLE_COUNT),
        refuse=False,  # no time is refused: the book's own example is of 2012
        trim=not now and SAMPLE_COUNT <= MAX_SAMPLES,  # larger hashes are the cleaner's
    )
    check_written(outcome, store.location)


def get_counter(
    conn: "redis.Redis", name: str, precision: int, data_format: str | None = None
) -> list[tuple[int, int]] | list[tuple[str, int]]:
    """Return all samples of a counter that are stored, in order of time.

    Args:
        conn: a redis-py client.
        name: as given to update_counter().
        precision: slice width, seconds.
        data_format: for strftime(); slice starts are then given as text, in local time.

    Returns:
        (slice start, count) pairs; [] where nothing is kept.

    Raises:
        InvalidName: see update_counter().
        StoreError: the server cannot be reached, or refuses.
    """
    name = check_text(name)
    store = _store(conn)
    (reply,) = store.ask([("HGETALL", store.keys.count(precision, name))])
    samples = sorted(slices_of(reply).items())
    if data_format is None:
        return samples
    return [(time.strftime(data_format, time.localtime(start)), n) for start, n in samples]


def clean_counters(conn: "redis.Redis") -> None:
    """Remove, pass after pass, all but the newest SAMPLE_COUNT samples; until QUIT is set.

    A pass is made every minute; a precision of N minutes is looked at in every Nth. Trouble that
    passes is logged and tried again.

    Args:
        conn: a redis-py client.

    Raises:
        ClockDisagreement: the server's clock and this machine's differ by over an hour.
        AccessDenied: the server does not let us in.
    """
    cleaning.run(_store(conn), quit=lambda: QUIT, samples=lambda: ({}, SAMPLE_COUNT))


def _store(conn: "redis.Redis") -> Store:
    """The store behind a connection, with the pool of producers that its updates share."""
    check_client(conn)
    found = _stores.get(conn)
    if found is None:
        # The reference is weak, or the entry would keep its own key alive.
        link = Link(weakref.ref(conn), location_of(conn), owned=False)
        opened = Store(link, prefix="", retention=Retention({1: 1}), timeout=_TIMEOUT)
        found = _stores.setdefault(conn, opened)
    return found


@lru_cache(maxsize=8)
def _kept(precisions: tuple[int, ...], samples: int) -> Kept:
    """Check PRECISION and SAMPLE_COUNT, which have no other limits than to be whole numbers."""
    for number in (*precisions, samples):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise InvalidSetting(
                "PRECISION, SAMPLE_COUNT", f"{shown(number, 40)} is not a whole number above 0"
            )
    return Kept(dict.fromkeys(precisions, samples), {})
