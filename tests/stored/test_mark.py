"""Marks: what a label may be, and which marks are the same."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redmeter import InvalidValue, Mark
from redmeter.stored.keys import MAX_TIME, Keys
from redmeter.stored.mark import (
    MAX_LABEL,
    NEAR_SECONDS,
    Noted,
    clean_label,
    distinct,
    mark_operations,
    parse_mark,
)


@pytest.mark.parametrize(
    ("given_label", "kept"),
    [
        ("v1.4.2", "v1.4.2"),
        ("  two\n lines\t", "two lines"),
        ("\x1b[31mred\x1b[0m\x00", "red"),
        ("\x1b]0;title\x07v1 \x9b2Jtwo", "v1 two"),
        ("evil\u202egpj", "evilgpj"),
        ("点击量 🚀", "点击量 🚀"),
        ("half \ud800 pair", "half  pair"),
        ("x" * 100, "x" * 100),
        ("x" * 101, "x" * 99 + "…"),
        ("x" * 10**6, "x" * 99 + "…"),
    ],
)
def test_a_label_is_one_clean_line(given_label: str, kept: str) -> None:
    """Control characters, surrogates and marks of direction go; what is too long is cut."""
    assert clean_label(given_label) == kept


@given(st.text())
def test_any_label_is_clean_afterwards_or_refused(text: str) -> None:
    """Cleaning it again changes nothing."""
    try:
        found = clean_label(text)
    except InvalidValue:
        return
    assert 1 <= len(found) <= MAX_LABEL
    assert "\n" not in found
    found.encode()


@pytest.mark.parametrize("label", ["", "  ", "\x00\x1b"])
def test_a_label_of_nothing_is_refused(label: str) -> None:
    """And one that is no text is a mistake of the caller's."""
    with pytest.raises(InvalidValue):
        clean_label(label)
    wrong: Any = 12
    with pytest.raises(TypeError):
        clean_label(wrong)


def test_the_same_label_within_ten_minutes_is_the_same_mark() -> None:
    """Whatever their order; the first one stays, and one later than that is another."""
    near = float(NEAR_SECONDS)
    marks = [Noted(near, "a"), Noted(0.0, "a"), Noted(0.0, "b"), Noted(near + 1, "a")]
    assert distinct(marks) == [Noted(0.0, "a"), Noted(0.0, "b"), Noted(near + 1, "a")]
    assert distinct([]) == []


def test_going_back_to_a_label_is_a_mark_of_its_own() -> None:
    """Where another lies between, a minute before at least; what each host notes is noted once."""
    back = [Noted(0.0, "v1"), Noted(60.0, "v2"), Noted(120.0, "v1")]
    assert distinct(back) == back
    assert distinct([*back, Noted(121.0, "v1"), Noted(400.0, "v1")]) == back
    assert distinct([Noted(0.0, "v1"), Noted(60.5, "v2"), Noted(120.0, "v1")]) == [
        Noted(0.0, "v1"),
        Noted(60.5, "v2"),
    ]


def test_a_release_is_the_same_mark_until_another_one_follows() -> None:
    """However late it starts again; explicit labels between change nothing, a rollback does."""
    hour = 3600.0
    v1, v2 = Noted(0.0, "v1", release=True), Noted(5 * hour, "v2", release=True)
    again = [Noted(n * hour, "v1", release=True) for n in (1, 2, 3)]
    switched = Noted(1.5 * hour, "cache on")
    assert distinct([v1, *again, switched]) == [v1, switched]
    back = Noted(6 * hour, "v1", release=True)
    assert distinct([v1, v2, back, *again, back._replace(time=9 * hour)]) == [v1, v2, back]
    explicit = Noted(0.0, "v1")
    assert distinct([explicit, again[0]]) == [v1]
    assert distinct([explicit, explicit._replace(time=hour)]) == [
        explicit,
        explicit._replace(time=hour),
    ]


@pytest.mark.parametrize("time", ["nan", "inf", "-inf", "1e300", str(MAX_TIME)])
def test_a_mark_of_no_time_is_none_of_ours(time: str) -> None:
    """Whatever another program has put there."""
    assert parse_mark(f"{time} x".encode()) is None
    assert parse_mark(b"-1.5 x") == Mark(-1.5, "x")


def test_a_mark_is_told_as_lost_by_its_label() -> None:
    """One event each."""
    (one,) = mark_operations(Keys(), [(1.5, "v1")])
    assert (one.code, one.keys, one.args[:2]) == ("mark", ("redmeter:marks:",), ("1.500", "v1"))
    assert one.at_stake() == [("v1", 1)]


@pytest.mark.parametrize(
    ("member", "mark"),
    [
        (b"1700000000.125 v1 and more", Mark(1700000000.125, "v1 and more")),
        (b"1700000000", None),
        (b"soon v1", None),
        (b"12 \xff", Mark(12.0, "\ufffd")),
    ],
)
def test_a_member_that_is_no_mark_is_left_out(member: bytes, mark: Mark | None) -> None:
    """Somebody else's."""
    assert parse_mark(member) == mark
