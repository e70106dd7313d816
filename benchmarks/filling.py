"""Series whose retention is full, made by copying: what a store that runs for months holds.

One series of each kind is filled by the kinds' own operations; DUMP and RESTORE make the others of
it, as the server would have them itself.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import redis

from redmeter.store.shard import Shard
from redmeter.stored.counter import counter_operations
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.families import INDEX_OF, listed_by
from redmeter.stored.gauge import gauge_operations
from redmeter.stored.histogram import histogram_operations
from redmeter.stored.keys import Kept, Keys, entry
from redmeter.types import Operations

#: Values that a service observes in a second, of each series.
VALUES_PER_SECOND = 600
#: Counts of a service in a second, of each series.
COUNTS_PER_SECOND = 400
#: Values of which the buckets of a slice are made at most: there are hardly more buckets of more.
MANY = 20_000


@lru_cache
def observed(count: int, seed: int = 0) -> Distribution:
    """Return the distribution of so many values: log-normal, sigma 1, about half a second."""
    rng, made = random.Random(seed), Distribution()
    made.add_all([rng.lognormvariate(-0.7, 1.0) for _ in range(min(count, MANY))])
    return made


def history(keys: Keys, kept: Kept, kind: str, name: str, before: int) -> list[Operations]:
    """Return operations that fill a series with all slices that ended before a time, newest first.

    Args:
        before: Unix seconds; the interval that holds it stays free.
    """
    made = []
    retention = kept.histograms if kind == "histogram" else kept.series
    for precision, samples in retention.items():
        newest = before // precision * precision
        starts = [newest - precision * age for age in range(samples, 0, -1)]
        one: Mapping[int, int] = {precision: samples}
        if kind == "counter":
            counts = {name: dict.fromkeys(starts, COUNTS_PER_SECOND * precision)}
            made.append(counter_operations(keys, one, counts, width=precision))
        elif kind == "gauge":
            values = {name: {start: (start + 0.123456, 0.1 + start % 7 / 3) for start in starts}}
            made.append(gauge_operations(keys, one, values, width=precision))
        else:
            spread = {
                start: observed(VALUES_PER_SECOND * precision, at % 3)
                for at, start in enumerate(starts)
            }
            # The statistics of the hour are of no use here.
            whole = histogram_operations(keys, one, {name: spread}, width=precision)
            made.append(tuple(each for each in whole if each.code != "stat"))
    return made


def fill(part: Shard, kept: Kept, kind: str, names: Iterable[str], before: int) -> None:
    """Fill series, one after the other."""
    for name in names:
        for operations in history(part.keys, kept, kind, name, before):
            outcome = part.write(lambda _, made=operations: made, refuse=False, trim=False)  # type: ignore[misc]
            assert not outcome.rejections, outcome


def copy(
    conn: redis.Redis,
    keys: Keys,
    kept: Kept,
    kind: str,
    template: str,
    targets: Sequence[tuple[Keys, str]],
) -> None:
    """Make series like one that is there, each with the keys of its shard."""
    index = INDEX_OF[kind]
    retention = kept.histograms if kind == "histogram" else kept.series
    pipe = conn.pipeline(transaction=False)
    for precision, samples in retention.items():
        for family in listed_by(index):
            dumped = conn.dump(keys.key(family.name, entry(precision, template)))
            assert isinstance(dumped, bytes), "the template is there"
            life = (samples + 1) * precision * 1000 * 9 // 8
            for there, name in targets:
                key = there.key(family.name, entry(precision, name))
                pipe.restore(key, life, dumped, replace=True)
                if len(pipe.command_stack) >= 2000:
                    pipe.execute()
        for there, name in targets:
            pipe.zadd(there.key(index.name), {entry(precision, name): 0})
    for there, name in targets:
        if kind == "counter":
            pipe.hset(there.total, name, "123456789")
    pipe.execute()
