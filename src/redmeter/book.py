"""The functions of "Redis in Action", chapter 5, under their own names and signatures.

Counters, logs and statistics. They take a redis-py connection that the caller owns,
decode_responses on or off, and work on the listings' own keys (`known:`, `count:PRECISION:NAME`,
`recent:NAME:SEVERITY`, `common:NAME:SEVERITY`, `stats:CONTEXT:TYPE`, no prefix), beside programs
that still use the listings. Unlike those, an update is written once however often a lost reply
makes it be sent again.

    from redmeter import book
    book.PRECISION = [1, 60, 3600]       # may be set; read at each call
    book.update_counter(conn, "hits")
    book.get_counter(conn, "hits", 60)   # [(1585900020, 1)]
    book.log_common(conn, "worker", "retrying", logging.WARNING)
    book.update_stats(conn, "cart", "value", 42.5)
"""

import contextlib
import logging
import math
import time
import weakref
from collections.abc import Iterator, Sequence
from functools import lru_cache

import redis

from redmeter import cleaning
from redmeter.analysis.secrets import mask
from redmeter.analysis.texts import clean
from redmeter.errors import InvalidSetting, InvalidValue, StoreError, UnknownPrecision, shown
from redmeter.format import counter, exponential_histogram, statistics
from redmeter.format import message as message_kind
from redmeter.format.hourly import THIS_HOUR
from redmeter.format.moments import MAX_DOUBLE, Moments
from redmeter.keys import MAX_SAMPLES, Kept, Keys, Retention, check_time, slice_start
from redmeter.names import check_text
from redmeter.reading.samples import counts_of
from redmeter.recording.messages.coalesce import TEXT_LIMIT
from redmeter.recording.sync import check_written
from redmeter.store import Store
from redmeter.store.connection import ServerLink
from redmeter.store.opening import check_client, check_pipeline, location_of
from redmeter.store.replies import Command, Reply, raised
from redmeter.types import Operations, Outcome

#: Widths of the slices, seconds.
PRECISION: Sequence[int] = [1, 5, 60, 300, 3600, 18000, 86400]
#: How many samples of each precision are left: by update_counter() at the present time, for up to
#: 254 of them, and by clean_counters().
SAMPLE_COUNT = 120
#: Set to True, this ends clean_counters() within a second.
QUIT = False

#: Names of the levels of logging, and of themselves.
SEVERITY: dict[int | str, str] = {}
SEVERITY.update(message_kind.SEVERITY.items())
SEVERITY.update((name, name) for name in message_kind.SEVERITY.values())

#: How many of the newest messages are kept.
_RECENT = 100

#: How long an update is tried, seconds; each try as long as the client's own timeouts say.
_TIMEOUT = 2.0
#: Most precisions that an error about another one knows of.
_PRECISIONS = 50
#: How long the cleaner waits for what it asks between two looks at QUIT (a call, or three of them),
#: seconds, whatever the client would.
_STEP = 0.8

#: What access_time() is the type of.
_ACCESS_TIME = "AccessTime"

_KEYS = Keys("")
_NOTHING = Kept({}, {})

_pools: "weakref.WeakKeyDictionary[redis.ConnectionPool, Store]" = weakref.WeakKeyDictionary()
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
    name = check_text(name, "counter name")
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"count is a whole number, not {type(count).__name__}")
    if abs(count) > counter.MAX_COUNT:
        raise InvalidValue(count, "what is added is within 2^63 - 1 of zero")
    second = slice_start(check_time(now) if now else time.time(), 1)
    store = _store(conn)
    (part,) = store.shards
    outcome = part.write(
        lambda kept: counter.event(part.keys, kept.series, name, second, count, totals=False),
        kept=_chosen(PRECISION),
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
        UnknownPrecision: the counter is kept at other precisions, and not at this one.
        StoreError: the server cannot be reached, or refuses.
    """
    name = check_text(name, "counter name")
    store = _store(conn)
    (reply,) = store.ask([("HGETALL", store.keys.count(precision, name))])
    samples = sorted(counts_of(reply).items())
    if not samples:
        with contextlib.suppress(StoreError):  # who may read this key need not read the index
            _check_kept(store, name, precision)
    if data_format is None:
        return samples
    return [(time.strftime(data_format, time.localtime(start)), n) for start, n in samples]


def _check_kept(store: Store, name: str, precision: int) -> None:
    """Check that a counter without samples at a precision may have some there.

    Programs keep what they like, and a counter that rests loses its fine samples first; so it is
    an error only if the counter was counted so recently, by its samples at other precisions, that
    this one would have to have a sample too.

    Raises:
        UnknownPrecision: it is not kept.
    """
    kept: list[int] = []
    after = "-"
    for _ in range(_PRECISIONS):
        (found,) = store.ask([("ZRANGEBYLEX", store.keys.known, after, "+", "LIMIT", "0", "1")])
        if not raised(found):
            break
        width, _, _ = found[0].decode(errors="replace").partition(":")
        after = f"({width};"  # which follows all entries of this precision
        if width.isascii() and width.isdecimal() and len(width) <= 10:
            kept.append(int(width))
    others = [width for width in kept if width != precision]
    # The precision comes last: what another program writes meanwhile is in it as well.
    time_, *replies = store.ask(
        [
            ("TIME",),
            *(("HGETALL", store.keys.count(width, name)) for width in (*others, precision)),
        ]
    )
    *lively, asked = map(counts_of, replies)
    since = int(raised(time_)[0]) - precision * SAMPLE_COUNT
    found_at = sorted(w for w, found in zip(others, lively, strict=True) if found)
    if not asked and any(max(found, default=since) > since for found in lively):
        raise UnknownPrecision(precision, found_at)


def clean_counters(conn: "redis.Redis") -> None:
    """Remove, pass after pass, all but the newest SAMPLE_COUNT samples; until QUIT is set.

    A pass is made every minute; a precision of N minutes is looked at in every Nth. Trouble that
    passes is logged and tried again: also a server that takes over 0.8 s for what is asked
    between two looks at QUIT.

    Args:
        conn: a redis-py client.

    Raises:
        InvalidSetting: SAMPLE_COUNT cannot be used.
        ClockDisagreement: the server's clock and this machine's differ by over an hour.
        AccessDenied: the server does not let us in.
    """

    def samples() -> tuple[dict[int, int], int]:
        _chosen(())
        return {}, SAMPLE_COUNT

    def quit_() -> bool:
        link.end_within(_STEP)  # what is asked until QUIT is looked at again
        return QUIT

    check_client(conn)
    link = ServerLink(lambda: conn, location_of(conn), owned=False)
    with contextlib.closing(_opened(link)) as store:
        cleaning.run(store, quit=quit_, samples=samples)


def log_recent(
    conn: "redis.Redis",
    name: str,
    message: str,
    severity: int | str = logging.INFO,
    pipe: "redis.client.Pipeline | None" = None,
) -> None:
    """Put a message in front of the newest 100 of a name and severity.

    Its time is written as `2026-11-21T16:13:00.123456Z`, UTC; the listings write time.asctime().
    Secrets are masked, control characters removed, and what is longer than 2,000 characters is cut.

    Args:
        conn: a redis-py client.
        name: of the log; 1 to 200 bytes without control characters.
        message: a text.
        severity: a level of logging, or a name: see SEVERITY.
        pipe: a pipeline of yours: the message is queued on it, and it is executed. Sent again, also
            by the client library, it is logged once.

    Raises:
        InvalidName, InvalidSetting: an argument cannot be used.
        TypeError: the message is no text.
        StoreError: the server cannot be reached, or refuses. With a pipe the errors are redis-py's,
            but for what the server refused of the message alone.
    """
    operations = _message(name, message, severity, tallied=False)
    if pipe is None:
        _apply(_store(conn), operations)
    else:
        _queue(pipe, operations)


def log_common(
    conn: "redis.Redis",
    name: str,
    message: str,
    severity: int | str = logging.INFO,
    timeout: float = 5,
) -> None:
    """Count a message by the hour, and put it in front of the newest ones.

    What is counted is the message as it is, without its secrets. Whoever comes first in a new hour
    moves the old one to `:last`. At most 1,000 different messages of a name are counted in an hour,
    of all severities together, then `(other)`.

    Args:
        conn, name, message, severity: see log_recent().
        timeout: how long the call may take, seconds, whatever the client would wait for.

    Raises:
        InvalidName, InvalidSetting, InvalidValue, TypeError, StoreError: see log_recent().
    """
    operations = _message(name, message, severity, tallied=True)
    _apply(_store(conn), operations, within=_check_timeout(timeout))


def update_stats(
    conn: "redis.Redis",
    context: str,
    type: str,  # noqa: A002
    value: float,
    timeout: float = 5,
) -> list[float]:
    """Take a value into the statistics of this hour.

    Whoever comes first in a new hour moves the old one to `:last`.

    Args:
        conn: a redis-py client.
        context, type: what is measured; together up to 199 bytes without control characters.
        value: a finite number.
        timeout: how long the call may take, seconds, whatever the client would wait for.

    Returns:
        Count, sum and sum of squares of this hour as they are now.

    Raises:
        InvalidName, InvalidValue, StoreError: see log_common().
        TypeError: the value is no number.
    """
    number = exponential_histogram.check_value(value)
    if not math.isfinite(number):
        raise InvalidValue(value, "a statistic is of finite numbers")
    within = _check_timeout(timeout)
    moments = Moments()
    moments.add(1, number, number, number, 0.0)
    hours = {_stats_name(context, type): {THIS_HOUR: moments}}
    operations = statistics.operations(_KEYS, hours, tell=True, as_is=True)
    outcome = _apply(_store(conn), operations, within)
    ((_, told),) = outcome.answers
    return [float(word) for word in told.split(" ")]


def get_stats(
    conn: "redis.Redis",
    context: str,
    type: str,  # noqa: A002
) -> dict[str, float | None]:
    """Return the statistics that were updated last: as a rule those of this hour.

    Args:
        conn: a redis-py client.
        context, type: as given to update_stats().

    Returns:
        min, max, count, sum, sumsq, average and stddev (of a sample; 0 of one value); an empty dict
        where nothing is stored. The spread of values that are large and close together is right for
        those that were written here; from what the listings write it cannot be told. A sum, and an
        average of different values, is None where the count times the largest magnitude reaches
        1.8e308; sumsq and stddev are None where they reached the largest double, of values or a
        spread above about 1e154.

    Raises:
        InvalidName, StoreError: see update_stats().
    """
    key, *_ = _KEYS.stats(_stats_name(context, type), as_is=True)
    (reply,) = _store(conn).ask([("ZMSCORE", key, *statistics.MEMBERS)])
    scores = zip(statistics.MEMBERS, raised(reply), strict=True)
    members = {member: float(score) for member, score in scores if score is not None}
    found = statistics.merged(members)
    if not found.count:
        return {}
    ends = {member: members.get(member, 0.0) for member in ("min", "max", "count")}
    sumsq = members.get("sumsq", 0.0)
    return {
        **ends,
        "sum": found.exact_total,
        "sumsq": sumsq if sumsq < MAX_DOUBLE else None,
        "average": found.exact_mean,
        "stddev": found.exact_stddev,
    }


@contextlib.contextmanager
def access_time(conn: "redis.Redis", context: str) -> Iterator[None]:
    """Take how long its body takes, in seconds, into the statistics of `context` and `AccessTime`.

    Also where the body raises; the exception passes on, and is then all that is told.

    Args:
        conn: a redis-py client.
        context: what is measured, e.g. a page.

    Raises:
        InvalidName, StoreError: see update_stats(); a name that is not allowed, before the body.
    """
    _stats_name(context, _ACCESS_TIME)
    check_client(conn)
    start = time.perf_counter()
    try:
        yield
    except BaseException:
        with contextlib.suppress(StoreError):
            update_stats(conn, context, _ACCESS_TIME, time.perf_counter() - start)
        raise
    update_stats(conn, context, _ACCESS_TIME, time.perf_counter() - start)


def _stats_name(context: str, type: str) -> str:  # noqa: A002
    parts = check_text(context, "context"), check_text(type, "type of statistics")
    return check_text(":".join(parts), "name of statistics")


def _message(name: str, message: str, severity: int | str, *, tallied: bool) -> Operations:
    """Return what is to be done with a message."""
    level = check_text(str(SEVERITY.get(severity, severity)).lower(), "severity")
    if not isinstance(message, str):
        raise TypeError(f"a message is text (str), not {type(message).__name__}")
    return message_kind.book_operations(
        _KEYS,
        check_text(name, "name of a log"),
        level,
        time.time(),
        mask(clean(message, TEXT_LIMIT)),
        keep=_RECENT,
        tallied=tallied,
    )


def _check_timeout(timeout: object) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < 1e9:
        raise InvalidValue(timeout, "a timeout is a number of seconds above 0")
    return timeout


def _apply(store: Store, operations: Operations, within: float | None = None) -> Outcome:
    """Write operations at once, by what the listings keep.

    Raises:
        StoreError: a part of them was refused, or all.
    """
    outcome = store.shard("").write(lambda _: operations, kept=_NOTHING, within=within)
    check_written(outcome, store.location)
    return outcome


def _queue(pipe: "redis.client.Pipeline", operations: Operations) -> None:
    """Queue operations on a caller's pipeline, and execute it."""
    check_pipeline(pipe)
    pool = pipe.connection_pool
    store = _pools.get(pool)
    if store is None:
        link = ServerLink(lambda: None, "the caller's pipeline", owned=False)
        store = _pools.setdefault(pool, _opened(link))

    def call(command: Command) -> Reply:
        reply = pipe.execute_command(*command)  # type: ignore[no-untyped-call]
        replies = pipe.execute()
        return replies[-1] if reply is pipe else reply  # what watches carries out at once

    check_written(store.shard("").write_by(call, operations), store.location)


def _opened(link: ServerLink) -> Store:
    return Store(link, prefix="", retention=Retention({1: 1}), timeout=_TIMEOUT)


def _store(conn: "redis.Redis") -> Store:
    """The store behind a connection, with the pool of producers that its updates share."""
    try:
        found = _stores.get(conn)
    except TypeError:  # nothing that could be a client
        found = None
    if found is None:
        check_client(conn)
        # The reference is weak, or the entry would keep its own key alive.
        link = ServerLink(weakref.ref(conn), location_of(conn), owned=False)
        found = _stores.setdefault(conn, _opened(link))
        # What was connected for calls with a timeout is not in the client's own pool.
        weakref.finalize(conn, link.close).atexit = False
    return found


def _chosen(precisions: Sequence[int]) -> Kept:
    """Check PRECISION and SAMPLE_COUNT, which have no other limits than to be whole numbers."""
    try:
        return _kept(tuple(precisions), SAMPLE_COUNT)
    except TypeError as error:  # None, a list in a list
        reason = f"a list of whole numbers, and a whole number: {error}"
        raise InvalidSetting("PRECISION, SAMPLE_COUNT", reason) from None


@lru_cache(maxsize=8)
def _kept(precisions: tuple[int, ...], samples: int) -> Kept:
    for number in (*precisions, samples):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise InvalidSetting(
                "PRECISION, SAMPLE_COUNT", f"{shown(number, 40)} is not a whole number above 0"
            )
    return Kept(dict.fromkeys(precisions, samples), {})
