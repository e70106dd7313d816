"""What one operation touches belongs to one name: so it stays whole in a store of shards."""

from collections.abc import Callable

import pytest

from redmeter.stored import message
from redmeter.stored.counter import counter_operations
from redmeter.stored.exponential_histogram import Distribution
from redmeter.stored.gauge import gauge_operations
from redmeter.stored.histogram import histogram_operations, statistics_operations
from redmeter.stored.keys import DEFAULT_HISTOGRAMS, DEFAULT_RETENTION, HOUR, Keys
from redmeter.stored.mark import mark_operations
from redmeter.types import Operations

KEYS = Keys()
NOW = 1_700_000_000 // HOUR * HOUR


def observed() -> Distribution:
    """Return a few values."""
    found = Distribution()
    found.add_all([0.1, 2.0])
    return found


def indexes() -> set[str]:
    """Return the keys that have one entry for each name, and lie in every shard."""
    shared = (KEYS.known, KEYS.gauges, KEYS.hists, KEYS.messages, KEYS.total, KEYS.marks)
    return {*shared, KEYS.sums, KEYS.spreads, KEYS.meta}


KINDS: dict[str, Callable[[str], Operations]] = {
    "counter": lambda n: counter_operations(KEYS, DEFAULT_RETENTION, {n: {NOW: 1}}),
    "gauge": lambda n: gauge_operations(KEYS, DEFAULT_RETENTION, {n: {NOW: (NOW, 1.0)}}),
    "histogram": lambda n: histogram_operations(KEYS, DEFAULT_HISTOGRAMS, {n: {NOW: observed()}}),
    "statistics": lambda n: statistics_operations(KEYS, {n: {NOW: observed().moments}}),
    "messages": lambda n: message.book_operations(
        KEYS, n, "error", NOW, "text", keep=3, tallied=True
    ),
    "mark": lambda n: mark_operations(KEYS, [(NOW, n)]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_keys_of_an_operation_are_of_one_name_or_indexes(kind: str) -> None:
    """Whatever else is in the batch."""
    for operation in KINDS[kind]("some_name"):
        own = {key for key in operation.keys if key not in indexes()}
        assert all("some_name" in key for key in own), operation.keys
