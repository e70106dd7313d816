"""Replies of two stores become one: each kind as if all had been recorded in one store."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter.errors import StoreRefused
from redmeter.keys import HOUR
from redmeter.kinds.distribution import Distribution
from redmeter.kinds.packed import (
    added_buckets,
    added_moments,
    buckets_text,
    moments_text,
    parse,
)
from redmeter.store.uniting import hours_united, united

VALUES = st.lists(st.floats(-1e9, 1e9, allow_nan=False).map(lambda x: round(x, 6)), min_size=1)


def spread(values: list[float]) -> Distribution:
    """How values are spread."""
    found = Distribution()
    found.add_all(values)
    return found


@given(VALUES, VALUES)
def test_texts_of_buckets_and_moments_merge_as_distributions_do(
    some: list[float], others: list[float]
) -> None:
    """Buckets exactly, moments but for rounding."""
    one, other = spread(some), spread(others)
    buckets = added_buckets(buckets_text(one).encode(), buckets_text(other).encode())
    moments = added_moments(moments_text(one).encode(), moments_text(other).encode())
    found, whole = parse(buckets, moments), spread([*some, *others])
    assert found is not None
    assert (found.positive, found.negative, found.zeros) == (
        *(whole.positive, whole.negative),
        whole.zeros,
    )
    assert (found.moments.low, found.moments.high) == (whole.moments.low, whole.moments.high)
    assert found.count == whole.count
    assert found.moments.total == pytest.approx(whole.moments.total, abs=1e-3)
    assert found.moments.m2 == pytest.approx(whole.moments.m2, rel=1e-6, abs=1e-3)


@pytest.mark.parametrize("other", [b"", b"x", b"1|2|3", b"1.0|0.5|0|9=1,/3=2|"])
def test_a_text_that_is_none_leaves_the_other_one(other: bytes) -> None:
    """Whichever comes first."""
    one = buckets_text(spread([1.0, 2.0])).encode()
    assert added_buckets(one, other) == added_buckets(other, one) == one
    moments = moments_text(spread([1.0, 2.0])).encode()
    assert added_moments(moments, other) == added_moments(other, moments) == moments


@pytest.mark.parametrize(
    ("command", "family", "ours", "theirs", "expected"),
    [
        ("HGETALL", "count:", [b"60", b"1"], [b"0", b"5", b"60", b"2"], {b"60": b"3", b"0": b"5"}),
        ("HMGET", "count:", [b"1", None, b"2"], [b"1", b"4", None], [b"2", b"4", b"2"]),
        ("HMGET", "count:", [b"x"], [b"4"], [b"4"]),
        ("HMGET", "gauge:", [b"1.0 9.0"], [b"2.0 8.5"], [b"1.0 9.0"]),
        ("HMGET", "gauge:", [b"1.0 8.0"], [b"2.0 8.5"], [b"2.0 8.5"]),
        ("HGET", "total:", None, b"7", b"7"),
        ("HGET", "total:", b"9223372036854775807", b"7", b"9223372036854775807"),
        ("ZSCORE", "known:", None, b"0", b"0"),
        ("ZRANGEBYLEX", "known:", [b"a", b"d"], [b"b", b"d"], [b"a", b"b", b"d"]),
        ("ZREVRANGE", "messages:", [b"a", b"3"], [b"b", b"5", b"a", b"4"], [b"b", b"a"]),
        ("ZREVRANGEBYSCORE", "marks:", [b"2.000 b"], [b"9.000 a", b"2.000 b"], None),
    ],
)
def test_replies_become_one(
    command: str, family: str, ours: Any, theirs: Any, expected: Any
) -> None:
    """By the command and the family of its key."""
    found = united(family, (command, "key"), ours, theirs)
    if command == "HGETALL":
        found = dict(zip(found[::2], found[1::2], strict=True))
    elif command == "ZREVRANGE":
        found = found[::2]
    assert found == (expected or [b"9.000 a", b"2.000 b"])


def test_messages_are_put_in_order_of_time() -> None:
    """One without a time stays behind the one before it."""
    ours = [b"2026-01-01T00:00:09Z c", b"stray", b"2026-01-01T00:00:01Z a"]
    found = united("recent:", ("LRANGE", "k"), ours, [b"2026-01-01T00:00:05Z b"])
    assert [entry[-1:] for entry in found] == [b"c", b"b", b"y", b"a"]


def test_what_another_program_keeps_in_the_previous_store_hides_nothing() -> None:
    """Another error is told."""
    wrong, gone = StoreRefused("WRONGTYPE", "no"), StoreRefused("LOADING", "no")
    assert united("count:", ("HMGET", "k"), [b"1"], wrong) == [b"1"]
    assert united("count:", ("HMGET", "k"), [b"1"], gone) is gone
    assert united("count:", ("HMGET", "k"), wrong, [b"1"]) is wrong


def test_of_hours_the_two_newest_count() -> None:
    """Of both stores, each put together."""
    ours = {"": [b"p", b"2"], ":start": b"7200", ":last": [b"p", b"9"], ":pstart": b"3600"}
    theirs = {"": [b"p", b"5", b"q", b"1"], ":start": b"3600", ":last": [b"r", b"4"]}
    found = hours_united("common:", ours, theirs | {":pstart": b"0"}, 2 * HOUR + 1.0)
    assert found[":start"] == b"7200"
    assert found[""] == [b"p", b"2.0"]
    assert found[":pstart"] == b"3600"
    assert found[":last"] == [b"p", b"14.0", b"q", b"1.0"]
