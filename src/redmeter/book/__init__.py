"""The functions of "Redis in Action", chapter 5, under their own names and signatures.

Counters, logs and statistics. They take a redis-py connection that the caller owns,
decode_responses on or off, and work on the listings' own keys (`known:`, `count:PRECISION:NAME`,
`recent:NAME:SEVERITY`, `common:NAME:SEVERITY`, `stats:CONTEXT:TYPE`, no prefix), next to programs
that still use the listings. Unlike with those, an update is stored exactly once, also if it is sent
again after a lost reply.

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
from collections.abc import Iterator, Sequence
from functools import lru_cache

import redis

from redmeter.analysis.text.secrets import mask
from redmeter.analysis.text.texts import clean_text
from redmeter.book import stores
from redmeter.errors import InvalidSetting, InvalidValue, StoreError, UnknownPrecision, shown
from redmeter.maintenance import cleaning
from redmeter.names import check_text
from redmeter.reading.samples import counts_of
from redmeter.recording.logging.coalesce import TEXT_LIMIT
from redmeter.recording.sync import check_written
from redmeter.store import Store
from redmeter.store.opening import location_of
from redmeter.store.servers.client_options import check_client
from redmeter.store.servers.connection import ServerLink
from redmeter.store.servers.replies import raised
from redmeter.stored import counter
from redmeter.stored import message as message_kind
from redmeter.stored.histogram import STATISTICS, statistics_moments, statistics_operations
from redmeter.stored.intervals import THIS_HOUR
from redmeter.stored.keys import MAX_SAMPLES, Kept, Keys, check_time, slice_start
from redmeter.stored.moments import MAX_DOUBLE, Moments, to_float
from redmeter.types import Operations

#: Widths of the intervals, seconds.
PRECISION: Sequence[int] = [1, 5, 60, 300, 3600, 18000, 86400]
#: How many samples of each precision are left: by update_counter() at the present time, for up to
#: 254 of them, and by clean_counters().
SAMPLE_COUNT = 120
#: Set to True, this ends clean_counters() within a second.
QUIT = False

#: Names of the levels of logging, and of themselves.
SEVERITY: dict[int | str, str] = {}
SEVERITY.update(message_kind.SEVERITY_OF_LEVEL.items())
SEVERITY.update((name, name) for name in message_kind.SEVERITY_OF_LEVEL.values())

#: How many of the newest messages are kept.
_RECENT = 100

#: Maximum number of precisions that an error lists.
_PRECISIONS = 50
#: Maximum seconds between two tests of QUIT by the cleaner, for one to three calls, whatever the
#: client's own timeout is.
_STEP = 0.8

#: What access_time() is the type of.
_ACCESS_TIME = "AccessTime"

_KEYS = Keys("")


def update_counter(
    conn: "redis.Redis", name: str, count: int = 1, now: float | None = None
) -> None:
    """Add to a counter at every precision of PRECISION.

    Args:
        conn: a redis-py client.
        name: the counter; 1 to 200 bytes without control characters, stored as it is.
        count: the number that is added, a whole number.
        now: the time, Unix seconds, however long ago. Default, and if 0: the present.

    Raises:
        InvalidName, InvalidValue, InvalidSetting: an argument, or PRECISION or SAMPLE_COUNT,
            cannot be used.
        TypeError: the count is not a whole number.
        StoreError: the server is unreachable or refuses.
    """
    name = check_text(name, "counter name")
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"count must be an int, not {type(count).__name__}")
    if abs(count) > counter.MAX_COUNT:
        raise InvalidValue(count, "count must be between -(2^63 - 1) and 2^63 - 1")
    second = slice_start(check_time(now) if now else time.time(), 1)
    store = stores.store_of(conn)
    (part,) = store.shards
    outcome = part.write(
        lambda kept: counter.event(part.keys, kept.series, name, second, count, totals=False),
        kept=_chosen(PRECISION),
        refuse=False,  # no time is refused: the book's own example is of 2012
        trim=not now and SAMPLE_COUNT <= MAX_SAMPLES,  # larger hashes are the cleaner's
        events=abs(count),
    )
    check_written(outcome, store.location)


def get_counter(
    conn: "redis.Redis", name: str, precision: int, data_format: str | None = None
) -> list[tuple[int, int]] | list[tuple[str, int]]:
    """Return all samples of a counter that are stored, in order of time.

    Args:
        conn: a redis-py client.
        name: as given to update_counter().
        precision: interval width, seconds.
        data_format: a format of strftime(), for interval starts as text, in local time.

    Returns:
        Pairs of interval start and count; [] if nothing is stored.

    Raises:
        InvalidName: the name is not allowed.
        UnknownPrecision: the counter is kept at other precisions, and not at this one.
        StoreError: the server is unreachable or refuses.
    """
    name = check_text(name, "counter name")
    store = stores.store_of(conn)
    (reply,) = store.ask([("HGETALL", store.keys.count(precision, name))])
    samples = sorted(counts_of(reply).items())
    if not samples:
        with contextlib.suppress(StoreError):  # an ACL may allow this key without the index
            _check_kept(store, name, precision)
    if data_format is None:
        return samples
    return [(time.strftime(data_format, time.localtime(start)), n) for start, n in samples]


def _check_kept(store: Store, name: str, precision: int) -> None:
    """Check that the lack of samples at a precision does not mean that it is not stored.

    Programs may store any precisions, and an idle counter loses its fine samples first. So it is an
    error only if samples at other precisions are so recent that this one would have a sample too.

    Raises:
        UnknownPrecision: the precision is not stored.
    """
    kept: list[int] = []
    after = "-"
    for _ in range(_PRECISIONS):
        (next_,) = store.ask([("ZRANGEBYLEX", store.keys.known, after, "+", "LIMIT", "0", "1")])
        if not raised(next_):
            break
        width, _, _ = next_[0].decode(errors="replace").partition(":")
        after = f"({width};"  # which follows all entries of this precision
        if width.isascii() and width.isdecimal() and len(width) <= 10:
            kept.append(int(width))
    others = [width for width in kept if width != precision]
    # The precision is read last, so that it has all that another program writes meanwhile.
    time_, *replies = store.ask(
        [
            ("TIME",),
            *(("HGETALL", store.keys.count(width, name)) for width in (*others, precision)),
        ]
    )
    *other_counts, counts = map(counts_of, replies)
    since = int(raised(time_)[0]) - precision * SAMPLE_COUNT
    stored = sorted(w for w, at in zip(others, other_counts, strict=True) if at)
    if not counts and any(max(at, default=since) > since for at in other_counts):
        raise UnknownPrecision(precision, stored)


def clean_counters(conn: "redis.Redis") -> None:
    """Remove, pass after pass, all but the newest SAMPLE_COUNT samples; until QUIT is set.

    Makes a pass every minute; cleans precisions of N minutes in every Nth pass. Temporary errors
    are logged and tried again, also a server that takes over 0.8 s for the commands between two
    checks of QUIT.

    Args:
        conn: a redis-py client.

    Raises:
        InvalidSetting: SAMPLE_COUNT cannot be used.
        ClockDisagreement: the server's clock and this machine's differ by over an hour.
        AccessDenied: the server rejects the credentials, or a command.
    """

    def samples() -> tuple[dict[int, int], int]:
        _chosen(())
        return {}, SAMPLE_COUNT

    def quit_() -> bool:
        link.end_within(_STEP)  # for all calls until the next test of QUIT
        return QUIT

    check_client(conn)
    link = ServerLink(lambda: conn, location_of(conn), owned=False)
    with contextlib.closing(stores.opened(link)) as store:
        cleaning.clean_every_minute(store, quit=quit_, samples=samples)


def log_recent(
    conn: "redis.Redis",
    name: str,
    message: str,
    severity: int | str = logging.INFO,
    pipe: "redis.client.Pipeline | None" = None,
) -> None:
    """Add a message to the newest 100 of a name and severity.

    Its time is written as `2026-11-21T16:13:00.123456Z`, UTC; the listings write time.asctime().
    Secrets are masked, control characters removed, and messages truncated to 2,000 characters.

    Args:
        conn: a redis-py client.
        name: of the log; 1 to 200 bytes without control characters.
        message: a text.
        severity: a level of logging, or a name; SEVERITY has the names of levels.
        pipe: a pipeline of yours: the message is queued on it, and it is executed. If it is sent
            again, also by the client library, the message is logged once.

    Raises:
        InvalidName, InvalidSetting: an argument cannot be used.
        TypeError: the message is not text.
        StoreError: the server is unreachable or refuses. With a pipe, errors are redis-py's, except
            for a rejection of the message alone.
    """
    operations = _message(name, message, severity, tallied=False)
    if pipe is None:
        stores.apply_operations(stores.store_of(conn), operations)
    else:
        stores.queue(pipe, operations)


def log_common(
    conn: "redis.Redis",
    name: str,
    message: str,
    severity: int | str = logging.INFO,
    timeout: float = 5,
) -> None:
    """Count a message by the hour, and add it to the newest ones.

    The text is counted as it is, with its secrets masked. The first call of a new hour moves the
    old hour to `:last`. At most 1,000 different messages of a name are counted in an hour, of all
    severities together; further ones are counted as `(other)`.

    Args:
        conn, name, message, severity: as for log_recent().
        timeout: how long the call may take, seconds, whatever the client's timeouts are.

    Raises:
        InvalidName, InvalidSetting: an argument cannot be used.
        InvalidValue: the timeout is not a number above 0.
        TypeError: the message is not text.
        StoreError: the server is unreachable or refuses.
    """
    operations = _message(name, message, severity, tallied=True)
    stores.apply_operations(stores.store_of(conn), operations, within=_check_timeout(timeout))


def update_stats(
    conn: "redis.Redis",
    context: str,
    type: str,  # noqa: A002
    value: float,
    timeout: float = 5,
) -> list[float]:
    """Add a value to the statistics of the current hour.

    The first call of a new hour moves the old hour to `:last`.

    Args:
        conn: a redis-py client.
        context, type: the name of the statistics; together up to 199 bytes without control
            characters.
        value: a finite number.
        timeout: how long the call may take, seconds, whatever the client's timeouts are.

    Returns:
        Count, sum and sum of squares of the current hour.

    Raises:
        InvalidName: context or type is not allowed.
        InvalidValue: the value or the timeout cannot be used.
        TypeError: the value is not a number.
        StoreError: the server is unreachable or refuses.
    """
    number = to_float(value, "update_stats()")
    if not math.isfinite(number):
        raise InvalidValue(value, "a statistic is of finite numbers")
    within = _check_timeout(timeout)
    moments = Moments()
    moments.add(1, number, number, number, 0.0)
    hours = {_stats_name(context, type): {THIS_HOUR: moments}}
    operations = statistics_operations(_KEYS, hours, return_totals=True, as_is=True)
    outcome = stores.apply_operations(stores.store_of(conn), operations, within)
    ((_, totals),) = outcome.answers
    return [float(word) for word in totals.split(" ")]


def get_stats(
    conn: "redis.Redis",
    context: str,
    type: str,  # noqa: A002
) -> dict[str, float | None]:
    """Return the statistics of the hour that was updated last, usually the current one.

    Args:
        conn: a redis-py client.
        context, type: as given to update_stats().

    Returns:
        min, max, count, sum, sumsq, average and stddev (of a sample; 0 of one value); an empty dict
        if nothing is stored. The stddev of values that are large and close together is accurate if
        update_stats() wrote them, and not if the listings did. sum, and the average of different
        values, are None if the count times the largest magnitude reaches 1.8e308; sumsq and stddev
        are None if they reached the largest double, with values or a spread above about 1e154.

    Raises:
        InvalidName: context or type is not allowed.
        StoreError: the server is unreachable or refuses.
    """
    key, *_ = _KEYS.stats(_stats_name(context, type), as_is=True)
    (reply,) = stores.store_of(conn).ask([("ZMSCORE", key, *STATISTICS)])
    scores = zip(STATISTICS, raised(reply), strict=True)
    members = {member: float(score) for member, score in scores if score is not None}
    moments = statistics_moments(members)
    if not moments.count:
        return {}
    ends = {member: members.get(member, 0.0) for member in ("min", "max", "count")}
    sumsq = members.get("sumsq", 0.0)
    return {
        **ends,
        "sum": moments.exact_total,
        "sumsq": sumsq if sumsq < MAX_DOUBLE else None,
        "average": moments.exact_mean,
        "stddev": moments.exact_stddev,
    }


@contextlib.contextmanager
def access_time(conn: "redis.Redis", context: str) -> Iterator[None]:
    """Add the duration of its body, seconds, to the statistics of `context` and `AccessTime`.

    Also if the body raises; then only its exception is raised, not an error of the store.

    Args:
        conn: a redis-py client.
        context: the name of the block, such as a page.

    Raises:
        InvalidName: the name is not allowed; raised before the body runs.
        StoreError: the server is unreachable or refuses.
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
    """Return the operations that record a message."""
    level = check_text(str(SEVERITY.get(severity, severity)).lower(), "severity")
    if not isinstance(message, str):
        raise TypeError(f"a message is text (str), not {type(message).__name__}")
    return message_kind.book_operations(
        _KEYS,
        check_text(name, "name of a log"),
        level,
        time.time(),
        mask(clean_text(message, TEXT_LIMIT)),
        keep=_RECENT,
        tallied=tallied,
    )


def _check_timeout(timeout: object) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < 1e9:
        raise InvalidValue(timeout, "a timeout is a number of seconds above 0")
    return timeout


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
