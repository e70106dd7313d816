"""Grand totals of histograms: `sums:` and `spreads:` hold all values, once."""

import random
from typing import Any

import pytest

from redmeter.maintenance.forgetting import forget
from redmeter.store import Store
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.histogram import histogram_operations
from redmeter.stored.keys import Kept
from redmeter.stored.packed_text import buckets_text, parse_distribution
from redmeter.types import Batch, Operations, Outcome
from support.stores import OpenMeter, OpenStore, send, server_time

SUMS, SPREADS = "redmeter:sums:", "redmeter:spreads:"


def distribution_of(values: list[float]) -> Distribution:
    """Return the distribution of some values."""
    distribution = Distribution()
    distribution.add_all(values)
    return distribution


def operations(
    store: Store, kept: Kept, values: dict[int, list[float]], name: str = "x"
) -> Operations:
    """Return the operations that store values, by second."""
    given = {name: {second: distribution_of(some) for second, some in values.items()}}
    return histogram_operations(store.keys, kept.histograms, given)


def observe(store: Store, values: dict[int, list[float]], name: str = "x") -> Outcome:
    """Write values in one batch."""
    return store.shard("").write(lambda kept: operations(store, kept, values, name))


def total_of(client: Any, name: str = "x") -> Distribution:
    """Return a grand total as it is stored."""
    total = parse_distribution(client.hget(SPREADS, name), client.hget(SUMS, name))
    assert total is not None
    return total


def test_a_grand_total_has_the_values_of_all_intervals(client: Any, open_store: OpenStore) -> None:
    """Whatever the batches were: of one second or several, and of intervals that are gone."""
    store, rng = open_store(), random.Random(3)
    now, whole = int(server_time(client)), Distribution()
    batches = [[0], [0, 1, 2], [70], [7000, 3, 0], [100_000, 2_000_000], [1]]
    for ages in batches:
        values = {now - age: [rng.lognormvariate(0, 2) for _ in range(9)] for age in ages}
        values[now - ages[0]] += [0.0, -3.0]
        observe(store, values)
        for some in values.values():
            whole.merge(distribution_of(some))
    stored = total_of(client)
    assert client.hget(SPREADS, "x").decode() == buckets_text(whole)
    assert stored.count == whole.count == 9 * 11 + 2 * 6
    assert stored.moments.total == pytest.approx(whole.moments.total)
    assert stored.moments.stddev() == pytest.approx(whole.moments.stddev())
    assert (client.ttl(SUMS), client.ttl(SPREADS)) == (-1, -1)


def test_a_batch_that_is_sent_again_is_in_the_total_once(
    client: Any, open_store: OpenStore
) -> None:
    """As after a lost reply."""
    store, now = open_store(), int(server_time(client))
    config = store.config()
    kept = Kept(config.retention, config.histograms)
    batch = Batch("p" * 32, 1, operations(store, kept, {now: [1.0, 2.0]}))
    assert send(store, batch, config.version, must_exist=False).applied
    assert not send(store, batch, config.version, must_exist=False).applied
    assert total_of(client).count == 2


@pytest.mark.parametrize("key", [SUMS, SPREADS])
def test_a_total_in_another_programs_key_is_one_loss(
    client: Any, open_meter: OpenMeter, key: str
) -> None:
    """At precision 0; the intervals are stored, and neither of the two fields is written alone."""
    client.set(key, "theirs")
    with open_meter(sync=False) as meter:
        meter.observe("x", 1.5)
        meter.observe("x", 2.5)
        meter.flush()
        (loss,) = meter.recorder_health().losses
        assert (loss.reason, loss.series, loss.precision, loss.events) == ("WRONGTYPE", "x", 0, 2)
        summary = meter.summary("x", precision=60)
        assert summary is not None
        assert summary.count == 2
    other = SPREADS if key == SUMS else SUMS
    assert not client.exists(other)


def test_a_total_of_which_a_half_is_missing_begins_again(
    client: Any, open_store: OpenStore
) -> None:
    """Both halves then describe the same values."""
    store, now = open_store(), int(server_time(client))
    for key in (SUMS, SPREADS):
        observe(store, {now: [1.0, 2.0]})
        client.hdel(key, "x")
        observe(store, {now: [4.0]})
        assert total_of(client).count == 1


def test_a_forgotten_histogram_has_no_total(client: Any, open_store: OpenStore) -> None:
    """Others keep theirs."""
    store, now = open_store(), int(server_time(client))
    for name in ("x", "y"):
        observe(store, {now: [1.0]}, name)
    assert forget(store, "x")
    assert client.hkeys(SUMS) == client.hkeys(SPREADS) == [b"y"]
