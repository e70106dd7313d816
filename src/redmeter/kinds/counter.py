"""Counters: how often something happened, by slices of time.

A counter is one hash per precision, slice start -> count, and one field in `total:`. Two counters
merge by adding slice to slice, so events may be summed before they are sent: what is handed in
here is already summed by second, and is summed again into the slices of each precision.
"""

import math
from collections.abc import Iterator, Mapping

from redmeter.errors import InvalidValue
from redmeter.keys import Keys
from redmeter.model import Operations

#: What a signed 64-bit integer holds; HINCRBY refuses more.
MAX_COUNT = 2**63 - 1

#: Fields written by one call of the script: about 3 ms of the server's time.
FIELDS_PER_BATCH = 500


def check_amount(amount: object) -> int:
    """Check how many are counted.

    Raises:
        TypeError: not a whole number.
        InvalidValue: negative, or past 2^63 - 1.
    """
    if isinstance(amount, bool) or not isinstance(amount, int):
        raise TypeError(
            f"count() takes whole numbers, not {type(amount).__name__}: "
            "for measured values use observe"
        )
    if not 0 <= amount <= MAX_COUNT:
        raise InvalidValue(amount, "a count is 0 to 2^63 - 1; counters only go up")
    return amount


def portions(
    counts: Mapping[str, Mapping[int, int]],
    retention: Mapping[int, int],
    *,
    now: float | None = None,
) -> Iterator[dict[str, Mapping[int, int]]]:
    """Cut counts into parts that each make one batch of about FIELDS_PER_BATCH fields.

    The cut is by series and second, not by field, so that a part can be turned into operations
    again when the store's retention turns out to have changed.

    Args:
        counts, retention, now: as operations() is going to be given them.
    """
    part: dict[str, Mapping[int, int]] = {}
    weight = 0
    for name, seconds in counts.items():
        for run, run_weight in _runs(seconds, retention, now):
            if part and (weight + run_weight > FIELDS_PER_BATCH or name in part):
                yield part
                part, weight = {}, 0
            part[name] = run
            weight += run_weight
    if part:
        yield part


def operations(
    keys: Keys,
    retention: Mapping[int, int],
    counts: Mapping[str, Mapping[int, int]],
    *,
    totals: bool = True,
    now: float | None = None,
) -> Operations:
    """Turn counts into the operations of one batch.

    Args:
        keys: the store's.
        retention: precision -> samples.
        counts: series name -> {Unix second -> how many}.
        totals: whether the grand total of each series is added to as well.
        now: slices that have left the retention by then are left out, since the store would
            refuse them. Never later than the server's clock; None sends everything.
    """
    before = keys.count_of("")
    data_keys: list[str] = []
    slices_text: list[str] = []
    for name, seconds in counts.items():
        if not seconds:
            continue
        newest = max(seconds)
        slices, width = seconds, 1
        for precision, samples in retention.items():
            oldest = -math.inf if now is None else now - (samples + 1) * precision
            if newest + precision <= oldest:
                continue
            if len(seconds) == 1:  # one event, counted at once
                start = newest - newest % precision
                if start >= oldest:
                    data_keys.append(f"{before}{precision}:{name}")
                    slices_text.append(f"{precision} {samples} {start} {seconds[newest]}")
                continue
            # A width that is a multiple of the last one sums up fewer, wider slices.
            slices = _by_slice(seconds if precision % width else slices, precision)
            width = precision
            for start, amount in slices.items():
                if start >= oldest:
                    data_keys.append(f"{before}{precision}:{name}")
                    slices_text.append(f"{precision} {samples} {start} {amount}")
    args: list[str | int] = []
    if data_keys:
        args += ("slice", len(data_keys), " ".join(slices_text))
    if totals and counts:
        data_keys += [keys.total] * len(counts)
        args += ("add", len(counts))
        for name, seconds in counts.items():
            args += (name, sum(seconds.values()))
    return Operations(tuple(data_keys), tuple(args))


def _by_slice(seconds: Mapping[int, int], precision: int) -> Mapping[int, int]:
    slices: dict[int, int] = {}
    for second, amount in seconds.items():
        start = second // precision * precision
        slices[start] = slices.get(start, 0) + amount
    return slices


def _runs(
    seconds: Mapping[int, int], retention: Mapping[int, int], now: float | None
) -> Iterator[tuple[Mapping[int, int], int]]:
    """Cut the seconds of one series until each part fits a batch; give each part's fields too."""
    count = len(seconds)
    if count < 2:
        if count:
            yield seconds, len(retention)
        return
    first, last = min(seconds), max(seconds)
    weight = 0
    for precision, samples in retention.items():
        oldest = first if now is None else max(first, math.floor(now) - (samples + 1) * precision)
        if last >= oldest:
            weight += min(count, (last - oldest) // precision + 2)
    if weight <= FIELDS_PER_BATCH:
        yield seconds, weight
        return
    ordered = sorted(seconds)
    for half in (ordered[: count // 2], ordered[count // 2 :]):
        yield from _runs({second: seconds[second] for second in half}, retention, now)
