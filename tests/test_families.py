"""The table of key families: as documented, as stored, and as sharded."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.dashboard import errors as http_errors
from redmeter.export import prometheus_names
from redmeter.reading import selection
from redmeter.reading.export import rows
from redmeter.reading.page import curves
from redmeter.stored.families import (
    FAMILIES,
    INDEXES,
    SERIES_KINDS,
    STATES,
    Family,
    listed_by,
    owner,
)
from redmeter.stored.keys import BARE_OWN, Keys
from redmeter.stored.shards import TAGS, ShardedKeys, shard_of
from redmeter.testing import recorder

ROOT = Path(__file__).parents[1]
DOC = (ROOT / "docs" / "stored-format.md").read_text("utf-8")
STORED = ROOT / "tests" / "golden" / "stored"
TYPES = {"sorted set": "zset"}

families = pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
SPREAD = ShardedKeys("app:")
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


def documented() -> dict[str, tuple[str, str, str]]:
    """Return each family of the docs' table of keys: name -> (PREFIX or OWN, rest, type)."""
    rows = re.findall(r"^\| `(PREFIX|OWN)(\w+):([A-Z:]*)` \| ([\w ]+) \|", DOC, re.MULTILINE)
    return {name: (head, rest, TYPES.get(kind, kind)) for head, name, rest, kind in rows}


def test_the_documented_families_are_those_of_the_table() -> None:
    """With the beginning, the rest and the type of their keys."""
    table = {
        family.name: ("PREFIX" if family.shared else "OWN", family.rest, family.type)
        for family in FAMILIES.values()
    }
    assert documented() == table


def test_the_documented_shards_are_those_of_the_table() -> None:
    """By NAME, by LOGGER, the first, every one; members of an index are with their names."""
    section = DOC[DOC.index("## Shards") : DOC.index("## Intervals")]
    rows = re.findall(r"^\| (.*`\w+:\w*`.*) \| (.*) \|$", section, re.MULTILINE)
    found = [set(re.findall(r"`(\w+):", keys)) for keys, _ in rows]
    table: list[set[str]] = [set(), set(), set(), set()]
    for family in FAMILIES.values():
        row = {"first": 2, "every": 3}.get(family.shard, "LOGGER" in family.rest + family.members)
        table[row].add(family.name)
    assert found == table


@families
def test_a_stored_key_of_each_family_is_pinned(family: Family) -> None:
    """The golden files have it, with the type and the expiry that the table states."""
    texts = [file.read_text("utf-8") for file in STORED.iterdir()]
    line = rf"^redmeter:{family.name}:(\S*)  (\w+), (stays|[\d.]+ s)$"
    pinned = [found for text in texts for found in re.findall(line, text, re.MULTILINE)]
    pinned = [one for one in pinned if not (family.hourly and one[0].endswith(("start", "last")))]
    assert pinned, "write a chapter or a line of tests/golden/story.py that stores one"
    assert {kind for _, kind, _ in pinned} == {family.type}
    assert {life != "stays" for _, _, life in pinned} == {family.expires}
    assert {bool(rest) for rest, _, _ in pinned} == {bool(family.rest)}


def test_a_store_owns_each_key_that_it_stores() -> None:
    """All of the golden files, and no other program's or other store's."""
    texts = "\n".join(file.read_text("utf-8") for file in STORED.iterdir())
    pinned = re.findall(r"^(redmeter:\S+)  \w+, (?:stays|[\d.]+ s)$", texts, re.MULTILINE)
    assert len(pinned) > len(FAMILIES)
    keys, bare = Keys(), Keys("")
    for key in pinned:
        if key.startswith(BARE_OWN):
            assert (bare.owns(key), keys.owns(key)) == (True, False)
            continue
        assert keys.owns(key)
        assert not any(other.owns(key) for other in (bare, SPREAD, Keys("redmeter:x:")))
        assert not keys.owns(key.replace("redmeter:", "redmeter:staging:"))
    assert not any(map(keys.owns, ("redmeter:", "redmeter:known", "redmeter:known:x", ":1:views")))
    assert not any(map(keys.owns, ("redmeter:count:", "count:60:hits", "known:", "celery")))


@families
@given(name=names)
def test_a_store_owns_its_keys_whatever_their_names(family: Family, name: str) -> None:
    """With a prefix, without one, and in each shard of a cluster."""
    rest = name if family.rest else ""
    for keys in (Keys("app:"), Keys(""), SPREAD):
        stored = [one for key in keys.keys_of(family, rest) for one in keys.in_each(key)]
        assert stored
        assert all(map(keys.owns, stored))


def test_an_index_lists_hashes_and_comes_before_them() -> None:
    """The cleaner walks the two hashes of an entry at most; families of an index share its kind."""
    order = list(FAMILIES)
    for index in INDEXES:
        data = listed_by(index)
        assert {family.kind for family in data} == {index.kind}
        assert all(order.index(family.name) > order.index(index.name) for family in data)
        if index.members == "PRECISION:NAME":
            assert len(data) <= 2
            assert {(family.type, family.rest) for family in data} == {("hash", index.members)}
    assert {family.index for family in FAMILIES.values()} <= {"", *(one.name for one in INDEXES)}


@families
@given(name=names)
def test_all_keys_of_a_family_are_in_the_shard_of_their_owner(family: Family, name: str) -> None:
    """For readers of a whole cluster and for a writer to one shard alike."""
    if family.shard == "every":
        return
    if not family.rest:
        number = 0
        key = SPREAD.key(family.name)
        if family.shard != "first":
            assert key in SPREAD.spread
            key = SPREAD.in_shard(key, number)
        assert key == Keys("app:", TAGS[number]).key(family.name)
        return
    if family.shard == "first":
        assert SPREAD.key(family.name, name) == Keys("app:", TAGS[0]).key(family.name, name)
        return
    logger = name.replace(":", "")
    if not logger:
        return
    rest = family.rest.replace("PRECISION", "60").replace("SEVERITY", "info")
    rest = rest.replace("NAME", name).replace("LOGGER", logger)
    text = owner(family.rest, rest)
    assert text in (name, logger)
    part = Keys("app:", TAGS[shard_of(text)])
    assert SPREAD.keys_of(family, rest) == part.keys_of(family, rest)
    for key in part.keys_of(family, rest):
        assert SPREAD.shard_of_key(key) == shard_of(text)
    assert owner(family.rest, rest.encode()) == text.encode()


@families
def test_with_an_empty_prefix_only_the_listings_families_have_none(family: Family) -> None:
    """All others start with redmeter:bare:."""
    assert Keys("").key(family.name).startswith(BARE_OWN) is not family.shared


@pytest.mark.parametrize(
    "table",
    [
        selection.KINDS,
        curves.KINDS,
        rows._KINDS,
        prometheus_names._KINDS,
        recorder.RECORDED,
        http_errors._CALLS,
    ],
)
def test_each_kind_of_series_has_a_row_in_each_layer(table: Mapping[str, object]) -> None:
    """And its hashes are all the data that its index lists."""
    assert table.keys() == SERIES_KINDS.keys()
    for name, kind in SERIES_KINDS.items():
        assert kind.index.kind == name
        assert kind.hashes == listed_by(kind.index)
        assert kind.events in (None, *kind.hashes)


def test_each_state_has_one_hash_a_parser_and_a_value_in_memory() -> None:
    """So everything that reads a gauge can read it."""
    assert recorder.STATE_VALUES.keys() == set(STATES)
    assert {kind for kind, row in selection.KINDS.items() if row.parse} == set(STATES)
    assert all(len(SERIES_KINDS[kind].hashes) == 1 for kind in STATES)
