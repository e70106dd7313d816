"""The figures of docs/scaling.md follow from the costs that it states."""

import importlib
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.crc import key_slot

from redmeter.stored.shards import SHARDS, TAGS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def benchmarks() -> Iterator[None]:
    """What is in benchmarks/ can be imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield


@pytest.fixture
def capacity(benchmarks: None) -> Any:
    """benchmarks/capacity.py, as a module."""
    return importlib.import_module("capacity")


@pytest.fixture
def tables(benchmarks: None) -> Any:
    """benchmarks/scaling_tables.py, as a module."""
    return importlib.import_module("scaling_tables")


@pytest.fixture
def costs(tables: Any) -> Any:
    """What the page states."""
    return tables.parse_costs(PAGE)


@pytest.mark.parametrize("table", ["capacity_table", "remedies_table", "costs_table"])
def test_the_tables_are_what_is_computed_of_the_costs(tables: Any, costs: Any, table: str) -> None:
    """To the letter; benchmarks/scaling.py --write puts them there."""
    assert f"\n{getattr(tables, table)(costs)}\n" in PAGE


def test_what_was_measured_is_beside_what_is_computed_of_the_costs(
    capacity: Any, tables: Any, costs: Any
) -> None:
    """And is not too far from it: by a quarter at most."""
    measured = tables.parse_check(PAGE)
    assert f"\n{tables.check_table(costs, measured)}\n" in PAGE
    for spread, (time, size) in enumerate(measured):
        computed_time, computed_size = capacity.checked(costs, spread=bool(spread))
        assert math.isclose(time, computed_time, rel_tol=0.25)
        assert math.isclose(size, computed_size, rel_tol=0.25)


def test_the_page_says_when_and_where_it_was_measured() -> None:
    """In one line."""
    assert re.search(
        r"^Measured on \d{4}-\d\d-\d\d, on .*: valkey-9\.1 \(9\.1\.\d+\), .*$", PAGE, re.MULTILINE
    )


def test_another_cost_makes_another_figure(capacity: Any, tables: Any, costs: Any) -> None:
    """Each cost that has to do with capacity."""
    told = {"counter_young", "logger_memory"}  # for people
    assert set(tables.LABELS) == set(costs._fields)
    for name in costs._fields:
        dearer = costs._replace(**{name: getattr(costs, name) * 1.5 + 50})
        same = [
            capacity.capacity(costs, capacity.USUAL, primaries)
            == capacity.capacity(dearer, capacity.USUAL, primaries)
            for primaries in (1, 64)
        ]
        assert all(same) == (name in told), name


def test_shards_lie_where_a_cluster_puts_them(capacity: Any) -> None:
    """Masters that share the slots evenly, one stretch each."""
    for primaries in (1, 3, 6, 32, 60, 64):
        slots = [key_slot(tag.encode()) for tag in TAGS]
        lie = Counter(slot * primaries // 16384 for slot in slots)
        assert lie == Counter(capacity.primary_of(part, primaries) for part in range(SHARDS))


def test_sixty_masters_have_no_more_room_than_thirty_two(capacity: Any, costs: Any) -> None:
    """Two shards of 64 are on the fullest in either case."""
    found = {n: capacity.capacity(costs, capacity.USUAL, n) for n in (32, 60, 64)}
    assert [found[n].shards for n in (32, 60, 64)] == [2, 2, 1]
    assert found[32].series == found[60].series == found[64].series / 2


def test_slices_are_counted_as_time_passes(capacity: Any) -> None:
    """An interval of a second lies in two seconds, and nearly always in one day."""
    assert capacity.touched([1, 5], 1.0) == 2 + 1.2
    assert capacity.begun([1, 5], 10.0) == 10 + 2
    assert capacity.touched([1, 86400], 1.0, every=5.0) == 0.4
    assert capacity.begun([1, 5, 20], 1.0, every=5.0) == pytest.approx(0.2 + 0.2 + 0.05)
