"""Counters: how often something happened, by slices of time.

A counter is one hash per precision, slice start -> count, and one field in `total:`. Two counters
merge by adding slice to slice, so events may be summed before they are sent: what is handed in
here is already summed by slices of some width, and is summed again into those of each precision.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from redmeter.errors import InvalidValue
from redmeter.format.intervals import Runs, by_precision, heads, multiples, single, stems, told
from redmeter.format.packed_text import Numbers
from redmeter.keys import Keys
from redmeter.types import Operation, Operations

#: What a signed 64-bit integer holds; HINCRBY refuses more.
MAX_COUNT = 2**63 - 1

#: Reads a count; nothing, as of a slice in which nothing was counted, is a zero. A ValueError says
#: that it is none.
count_of = Numbers({None: 0}).__getitem__


def check_amount(amount: object) -> int:
    """Check how many are counted.

    Raises:
        TypeError: not a whole number.
        InvalidValue: negative, or past 2^63 - 1.
    """
    if isinstance(amount, bool) or not isinstance(amount, int):
        raise TypeError(
            f"count() takes whole numbers, not {type(amount).__name__}: "
            "a measured value is observed: observe(name, value); or gauge(name).set(value)"
        )
    if not 0 <= amount <= MAX_COUNT:
        raise InvalidValue(amount, "a count is 0 to 2^63 - 1; counters only go up")
    return amount


def parse(fields: Sequence[tuple[bytes, bytes]]) -> dict[int, int]:
    """Read the fields of a counter's hash: slice start -> count.

    A start written as a float (`1585900000.0`, as `now // prec * prec` makes it) is the same
    slice, and added to it. Fields that are no numbers belong to somebody else.
    """
    try:
        slices = {int(start): count_of(count) for start, count in fields}
        if len(slices) == len(fields):
            return slices
    except ValueError:
        pass  # some field is no whole number: one by one
    slices = {}
    for start_text, count_text in fields:
        try:
            start, count = int(float(start_text)), count_of(count_text)
        except (ValueError, OverflowError):
            continue
        slices[start] = max(-MAX_COUNT, min(slices.get(start, 0) + count, MAX_COUNT))
    return slices


def operations(
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
        counts: series name -> {start of a slice, Unix seconds -> how many}.
        width: of those slices, seconds. Precisions that are no multiple of it are left out; 0
            leaves out all of them, so that only the grand total is added to.
    """
    runs, before, precisions = Runs(), keys.key("count"), multiples(retention, width)
    stems_here, heads_at = stems(before, precisions), dict[int, tuple[str, ...]]()
    for name, given in counts.items():
        if len(given) == 1:  # as it mostly is, and of few seconds
            ((at, amount),) = given.items()
            value = str(amount)
            if at not in heads_at:
                heads_at[at] = heads(precisions, at)
            for stem, head in zip(stems_here, heads_at[at], strict=True):
                runs.add_one(head, stem + name, value)
            continue
        for precision, samples, slices in by_precision(given, width, precisions, sum):
            key = f"{before}{precision}:{name}"
            runs.add(precision, samples, key, tuple(slices), list(slices.values()))
    made = [_slices(keys, runs.keys(), runs.text())] if runs else []
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
    """Do what operations() does with one event, in half the time: its writer waits for it.

    Args:
        at: when it happened, Unix seconds.
    """
    amount = +amount  # a plain number, also of one that would be spelled by a name
    stems_here, heads_here = _of_second(keys.key("count"), multiples(retention, 1), at)
    made = []
    if stems_here:
        hashes = [stem + name for stem in stems_here]
        made.append(_slices(keys, hashes, single(heads_here, amount)))
    if totals:
        made.append(_totals(keys, [(name, amount)]))
    return tuple(made)


@lru_cache(maxsize=64)
def _of_second(
    before: str, precisions: tuple[tuple[int, int], ...], at: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return stems and heads, which are the same for all that is counted in a second."""
    return stems(before, precisions), heads(precisions, at)


def _slices(keys: Keys, hashes: Sequence[str], text: str) -> Operation:
    """Return what adds to slices: the keys of their hashes, and runs."""
    # A bare store is shared with programs that renew no time to live, and swept.
    args = (str(len(keys.key("count").encode())), "1" if keys.prefix else "0", text)
    return Operation("slice", (keys.known, *hashes), args, lambda: told(text, int))


def _totals(keys: Keys, sums: Sequence[tuple[str, int]]) -> Operation:
    """Return what adds to grand totals."""
    flat = [text for name, amount in sums for text in (name, str(amount))]
    return Operation("add", (keys.total,) * len(sums), tuple(flat), lambda: sums)
