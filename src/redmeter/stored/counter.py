"""Counters: how often something happened, by interval.

A counter is one hash per precision, interval start -> count, and one field in `total:`. Counters
merge by summing their intervals, so events are summed before they are sent: the counts passed here
are summed by intervals of some width, and are summed again into those of each precision.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

from redmeter.errors import InvalidValue
from redmeter.stored.intervals import (
    Runs,
    by_precision,
    events_at_stake,
    heads,
    multiples,
    single,
    stems,
)
from redmeter.stored.keys import Keys
from redmeter.stored.moments import to_float
from redmeter.stored.packed_text import Numbers
from redmeter.types import Operation, Operations

#: The largest signed 64-bit integer; HINCRBY rejects more.
MAX_COUNT = 2**63 - 1

#: Parses a count; None, the reply for a missing interval, is 0. ValueError: not a count.
count_of = Numbers({None: 0}).__getitem__


def check_amount(amount: object) -> int:
    """Return how many are counted, of any type of number: int, 2.0, Decimal("2"), numpy.int64(2).

    Raises:
        TypeError: not a whole number.
        InvalidValue: negative, or past 2^63 - 1.
    """
    number = amount if type(amount) is int else _whole(amount)
    if not 0 <= number <= MAX_COUNT:
        raise InvalidValue(amount, "a count is 0 to 2^63 - 1; counters only go up")
    return number


def _whole(amount: object) -> int:
    value = to_float(amount, "count()")
    if math.isinf(value) and amount != value:  # a whole number that no float can hold
        return MAX_COUNT + 1 if value > 0 else -1
    # Exactly: a float holds no more than 53 bits of a Decimal or an integer of numpy.
    number: int | None = int(amount) if math.isfinite(value) else None  # type: ignore[call-overload]
    if number is None or number != amount:
        raise TypeError(
            f"count() takes whole numbers, not {amount!r}: "
            "a measured value is observed: observe(name, value); or gauge(name).set(value)"
        )
    return number


def parse_counter(fields: Sequence[tuple[bytes, bytes]]) -> dict[int, int]:
    """Read the fields of a counter's hash: interval start -> count.

    A start that another program wrote as a float, `1585900000.0`, is the same interval, and its
    count is added. Fields that are not numbers are ignored.
    """
    try:
        counts = {int(start): count_of(count) for start, count in fields}
        if len(counts) == len(fields):
            return counts
    except ValueError:
        pass  # a field is not an integer: parse one by one
    counts = {}
    for start_text, count_text in fields:
        try:
            start, count = int(float(start_text)), count_of(count_text)
        except (ValueError, OverflowError):
            continue
        counts[start] = max(-MAX_COUNT, min(counts.get(start, 0) + count, MAX_COUNT))
    return counts


def counter_operations(
    keys: Keys,
    retention: Mapping[int, int],
    counts: Mapping[str, Mapping[int, int]],
    *,
    width: int = 1,
) -> Operations:
    """Turn counts into the operations of one batch.

    Args:
        keys: the store's.
        retention: precision -> samples.
        counts: series name -> {interval start, Unix seconds -> count}.
        width: of those intervals, seconds. Precisions that are not multiples of it are skipped; 0
            skips all of them, so that only the grand total grows.
    """
    runs, before, precisions = Runs(), keys.key("count"), multiples(retention, width)
    stems_here, heads_at = stems(before, precisions), dict[int, tuple[str, ...]]()
    for name, given in counts.items():
        if len(given) == 1:  # the usual case, with few different seconds
            ((at, amount),) = given.items()
            value = str(amount)
            if at not in heads_at:
                heads_at[at] = heads(precisions, at)
            for stem, head in zip(stems_here, heads_at[at], strict=True):
                runs.add_one(head, stem + name, value)
            continue
        for precision, samples, intervals in by_precision(given, width, precisions, sum):
            key = f"{before}{precision}:{name}"
            runs.add(precision, samples, key, tuple(intervals), list(intervals.values()))
    made = [_of_intervals(keys, runs.keys(), runs.text())] if runs else []
    if counts:
        made.append(_totals(keys, [(name, sum(given.values())) for name, given in counts.items()]))
    return tuple(made)


def event(
    keys: Keys,
    retention: Mapping[int, int],
    name: str,
    at: int,
    amount: int,
    *,
    totals: bool = True,
) -> Operations:
    """Return the operations of one event, twice as fast as counter_operations(): its writer waits.

    Args:
        at: when it happened, Unix seconds.
    """
    amount = +amount  # a plain int, also of a bool or an IntEnum
    stems_here, heads_here = _of_second(keys.key("count"), multiples(retention, 1), at)
    made = []
    if stems_here:
        hashes = [stem + name for stem in stems_here]
        made.append(_of_intervals(keys, hashes, single(heads_here, amount)))
    if totals:
        made.append(_totals(keys, [(name, amount)]))
    return tuple(made)


@lru_cache(maxsize=64)
def _of_second(
    before: str, precisions: tuple[tuple[int, int], ...], at: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return stems and heads, which all events of a second share."""
    return stems(before, precisions), heads(precisions, at)


def _of_intervals(keys: Keys, hashes: Sequence[str], text: str) -> Operation:
    # Hashes of a store without a prefix do not expire, since other programs would not renew them.
    args = (str(len(keys.key("count").encode())), "1" if keys.prefix else "0", text)
    return Operation("slice", (keys.known, *hashes), args, lambda: events_at_stake(text, int))


def _totals(keys: Keys, sums: Sequence[tuple[str, int]]) -> Operation:
    flat = [text for name, amount in sums for text in (name, str(amount))]
    return Operation("add", (keys.total,) * len(sums), tuple(flat), lambda: sums)
