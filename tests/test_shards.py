"""Shards: evenly shared, found by the name alone, and the same for all time."""

import binascii
import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot

from redmeter.stored.keys import Keys, entry
from redmeter.stored.shards import SHARDS, TAGS, ShardedKeys, shard_of
from support.layout import SLOTS

#: Text that a name, or a logger, may be.
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


def test_tags_are_as_long_as_each_other_and_all_different() -> None:
    """So each series takes the same memory wherever it lies."""
    assert len(TAGS) == len(set(TAGS)) == SHARDS == 64
    assert {len(tag) for tag in TAGS} == {3}
    assert all(tag.isascii() and tag.isalpha() and tag.islower() for tag in TAGS)


def test_a_tags_slot_is_the_middle_of_its_part_of_all_slots() -> None:
    """Of shard 0 it is slot 128 or the next, of shard 1 slot 384 or the next, …."""
    width = SLOTS // SHARDS
    for number, tag in enumerate(TAGS):
        middle = number * width + width // 2
        assert key_slot(tag.encode()) in (middle, middle + 1), (number, tag)


def test_the_tags_of_the_page_on_the_stored_format_are_these() -> None:
    """Other programs go by that page."""
    page = Path(__file__).parents[1] / "docs" / "stored-format.md"
    rows = re.findall(r"^\| (\d+) \|((?: `\w{3}` \|){8})$", page.read_text("utf-8"), re.MULTILINE)
    assert [int(first) for first, _ in rows] == list(range(0, SHARDS, 8))
    assert tuple(tag for _, row in rows for tag in re.findall(r"\w+", row)) == TAGS


@pytest.mark.parametrize("masters", range(1, SHARDS + 1))
def test_masters_with_even_shares_of_slots_have_even_shares_of_shards(masters: int) -> None:
    """Two differ by one shard at most; as redis-cli and the operators share slots."""
    ends = [round(SLOTS * number / masters) for number in range(masters + 1)]
    slots = [key_slot(tag.encode()) for tag in TAGS]
    held = [sum(first <= slot < end for slot in slots) for first, end in itertools.pairwise(ends)]
    assert sum(held) == SHARDS
    assert min(held) >= 1
    assert max(held) - min(held) <= 1


@pytest.mark.parametrize(
    ("text", "number"),
    [
        # CRC-32 of "123456789" is CBF43926, as every table of checksums has it; the others are
        # what gzip says of the same bytes.
        ("123456789", 0xCBF43926 % 64),
        ("", 0),
        ("hits", 0x1A8F6C2B % 64),
        ('http_requests{method="GET",route="/cart",status="2xx"}', 0x19AF127F % 64),
        ("naïve 点击量 😀", 0xC25946AD % 64),
    ],
)
def test_where_a_name_lies_is_a_part_of_the_stored_format(text: str, number: int) -> None:
    """Another version that finds another shard finds nothing of what is stored."""
    assert shard_of(text) == number


def by_hand(data: bytes) -> int:
    """CRC-32 bit by bit, as ISO 3309 tells it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0xEDB88320 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@given(texts)
def test_a_shard_is_the_crc_of_the_name_modulo_64(text: str) -> None:
    """Computed by hand, and by Python's other one; of text and of its bytes the same."""
    raw = text.encode()
    assert shard_of(text) == shard_of(raw) == by_hand(raw) % 64
    assert shard_of(text) == binascii.crc32(raw) % 64


@given(texts, st.sampled_from([1, 60, 86400]))
def test_what_is_asked_for_by_a_name_is_the_key_of_its_shard(name: str, width: int) -> None:
    """Whoever reads a whole store finds what whoever writes one shard wrote."""
    spread, part = ShardedKeys("app:"), Keys("app:", TAGS[shard_of(name)])
    for family in ("count", "gauge", "hist", "moments"):
        key = getattr(part, family)(width, name)
        assert getattr(spread, family)(width, name) == key
        assert spread.key(family, entry(width, name)) == key
    assert spread.stats(name) == part.stats(name)
    assert spread.stats(name, as_is=True) == part.stats(name, as_is=True)


@given(texts.filter(lambda text: ":" not in text))
def test_messages_lie_in_the_shard_of_their_logger(logger: str) -> None:
    """Of all its severities, so that what is counted of all together lies together."""
    spread, part = ShardedKeys("app:"), Keys("app:", TAGS[shard_of(logger)])
    for severity in ("info", "critical"):
        for family in ("recent", "common", "patterns"):
            assert getattr(spread, family)(logger, severity) == getattr(part, family)(
                logger, severity
            )
    assert spread.distinct(logger) == part.distinct(logger)


@given(texts, st.sampled_from(range(SHARDS)))
def test_keys_of_a_shard_share_its_slot(name: str, number: int) -> None:
    """So that one script may write all that a batch has."""
    keys = Keys("app:", TAGS[number])
    some = [keys.count(60, name), keys.known, keys.total, keys.meta, keys.batch("0" * 32)]
    some += [keys.recent("shop", "info"), keys.messages, keys.marks, *keys.stats(name)]
    assert {key_slot(key.encode()) for key in some} == {key_slot(TAGS[number].encode())}


def test_what_every_shard_has_is_called_as_if_there_were_none() -> None:
    """And is of one shard by its number; a head of keys likewise."""
    spread, alone = ShardedKeys("app:"), Keys("app:")
    for family in ("known", "gauges", "hists", "messages", "total", "meta"):
        key = getattr(spread, family)
        assert key == getattr(alone, family)
        assert key in spread.spread
        for number in (0, 63):
            assert spread.in_shard(key, number) == getattr(Keys("app:", TAGS[number]), family)
    for family in ("count", "gauge", "hist", "moments"):
        head = spread.key(family)
        assert spread.in_shard(head, 7) == Keys("app:", TAGS[7]).key(family)


def test_what_is_there_once_lies_in_the_first_shard() -> None:
    """Marks, what writers tell of themselves, when a cleaner was there."""
    spread, first = ShardedKeys("app:"), Keys("app:", TAGS[0])
    for family in ("marks", "cleaned", "writers", "reports", "instances"):
        assert getattr(spread, family) == getattr(first, family)
