"""What is asked in the end, when nobody writes any more: do the answers say what the keys hold?

And what no other check reads: the buckets of histograms, which have to be as many as their moments
count; statistics by the hour, the newest messages and their patterns.
"""

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from redmeter import Meter
from redmeter.results import Summary
from redmeter.stored.keys import HOUR
from soak.checks import Ledger
from soak.writers import MESSAGE, SEEN
from support.history import OBSERVED, TOTAL, Stored

_HIST = re.compile(r"redmeter:(?:\{\w+\})?hist:(\d+):(.*)", re.DOTALL)
#: How many values each bucket holds, in `-54=1,0,3/12=2`.
_COUNTS = re.compile(r"(?<=[=,])\d+")
_TEXT = re.compile(MESSAGE.replace("%d", r"\d+"))
#: How many of the newest messages are kept of a logger and severity.
NEWEST = 100


def histograms(clients: Iterable[Any], stored: Stored) -> Iterator[str]:
    """Yield which buckets do not add up to the count that is in their moments.

    Args:
        clients: one of each primary, which decodes.
    """
    buckets: dict[tuple[int, str], Counter[int]] = {}
    now = stored.now
    for client in clients:
        for key in client.scan_iter("redmeter:*hist:*", count=1000):
            if found := _HIST.fullmatch(key):
                place = int(found[1]), found[2]
                slices = client.hgetall(key).items()
                buckets[place] = Counter({int(start): _values(text) for start, text in slices})
        now = max(now, int(client.time()[0]))
    places = {place for place in stored.slices if place[1].startswith(OBSERVED)}
    for precision, series in sorted(places | set(buckets)):
        oldest = _oldest(now, precision, stored.observed[precision])
        counts = stored.slices[precision, series]
        there = buckets.get((precision, series), Counter())
        for start in sorted(set(counts) | set(there)):
            if start >= oldest and counts[start] != there[start]:
                where = f"{series} at {precision} s, {start}"
                yield f"{where}: {there[start]} in the buckets, {counts[start]} counted"


def _values(text: str) -> int:
    """Return how many values are in a text of buckets; -1 where it is none."""
    parts = text.split("|")
    if len(parts) != 5 or not parts[2].isdigit():
        return -1
    return int(parts[2]) + sum(map(int, _COUNTS.findall(f"{parts[3]}/{parts[4]}")))


def _oldest(now: float, precision: int, samples: int) -> float:
    """Return the start from which on all intervals are there: see Stored.oldest()."""
    return now // precision * precision - (samples - 2) * precision


def answers(meter: Meter, ledger: Ledger, stored: Stored) -> Iterator[str]:
    """Yield which answers of a Meter are not what the keys hold, or the journals say."""
    observed = sorted(name for name in ledger.recorded if name.startswith(OBSERVED))
    counted = sorted(set(ledger.recorded) - set(observed))
    for series in counted:
        total, there = meter.total(series), stored.slices[TOTAL, series][0]
        if total != there:
            yield f"total of {series}: {total} answered, {there} stored"
    for precision, samples in stored.counted.items():
        found = meter.series_many(counted, precision=precision)
        slices = {
            name: {sample.start: sample.value for sample in one} for name, one in found.items()
        }
        yield from _differing("series", slices, precision, samples, stored)
    for precision, samples in stored.observed.items():
        told = meter.summary_many(observed, precision=precision)
        slices = {name: _counts(summary) for name, summary in told.items()}
        for name, counts in slices.items():
            if told[name].count != sum(counts.values()):
                where = f"summary of {name} at {precision} s"
                yield f"{where}: {told[name].count} in all, {sum(counts.values())} in slices"
        yield from _differing("summary", slices, precision, samples, stored)
    for series in SEEN:
        yield from _statistics(meter, ledger, stored, series)
    for logger in sorted({logger for book in ledger.books for logger in book.logged}):
        yield from _messages(meter, ledger, logger)


def _counts(summary: Summary) -> dict[int, int]:
    slices = summary.over_time()
    return {sample.start: sample.value.count for sample in slices if sample.value is not None}


def _differing(
    question: str,
    answered: dict[str, dict[int, int]],
    precision: int,
    samples: int,
    stored: Stored,
) -> Iterator[str]:
    """Yield which intervals were answered otherwise than they are stored, of those still kept."""
    oldest = _oldest(time.time(), precision, samples)
    for series, slices in answered.items():
        there = stored.slices[precision, series]
        starts = [s for s in sorted(set(slices) | set(there)) if oldest <= s <= stored.now]
        wrong = [start for start in starts if slices.get(start, 0) != there[start]]
        if wrong:
            answer = f"{slices.get(wrong[0], 0)} answered, {there[wrong[0]]} stored"
            where = f"{question} of {series} at {precision} s"
            yield f"{where}: {len(wrong)} slices are not as stored; {wrong[0]}: {answer}"


def _statistics(meter: Meter, ledger: Ledger, stored: Stored, series: str) -> Iterator[str]:
    statistics = meter.statistics(series)
    told = {one.start: one.count for one in (statistics.this, statistics.before) if one}
    wanted: Counter[int] = Counter()
    for second, events in ledger.recorded[series].items():
        wanted[second // HOUR * HOUR] += events
    for start in sorted(set(told) | {stored.now // HOUR * HOUR}):
        count = told.get(start, 0)
        if not wanted[start] - ledger.may_miss[series] <= count <= wanted[start]:
            yield f"statistics of {series}, {start}: {count}, and {wanted[start]} were observed"


def _messages(meter: Meter, ledger: Ledger, logger: str) -> Iterator[str]:
    logged = sum(sum(book.logged[logger].values()) for book in ledger.books)
    least = logged - ledger.may_miss[logger]
    newest = [message.text for message in meter.log_messages(logger)]
    if not min(least, NEWEST) <= len(newest) <= min(logged, NEWEST):
        yield f"{logger}: {len(newest)} messages are the newest, of {logged}"
    if strange := [text for text in newest if not _TEXT.fullmatch(text)]:
        yield f"{logger}: nobody logged {strange[0]!r}"
    for one in meter.log_frequencies(logger):
        if one.pattern != MESSAGE or not _TEXT.fullmatch(one.sample) or one.last is None:
            yield f"{logger}: nobody logged what {one.pattern!r} stands for, or {one.sample!r}"
